"""In a notebook: the cell magic `%%exercise NAME`, and the functions `hint` and `solution`.

`import helpers` defines them. Set-up also makes this module an IPython extension of the environment's notebooks, so
that a cell with an exercise may be the first one to run.
"""

import sys

from helpers.practice import registry
from helpers.practice.assistance import Hints, Solution
from helpers.practice.verdict import Verdict

_unfolded: dict[str, int] = {}  # exercise -> hints unfolded so far


def exercise(line: str, cell: str) -> Verdict:
    """Checks the cell as an answer to the exercise named in its first line. Never raises: errors become verdicts."""
    from helpers.practice import judge, learner

    name = line.strip()
    try:
        return learner.noted(judge.check_cell(name, cell))
    except registry.UnknownExercise as error:
        return Verdict(name, "unknown", str(error))
    except KeyboardInterrupt:
        return Verdict(name, "interrupted", "the check was stopped before it had a verdict")
    except Exception as error:  # an exercise must not stop a run of the whole notebook
        return Verdict(name, "fault", f"the check itself failed: {type(error).__name__}: {error}")


def hint(name: str) -> Hints:
    """The hints of an exercise, one more at each call. Raises UnknownExercise."""
    registry.find(name)
    _unfolded[name] = min(_unfolded.get(name, 0) + 1, len(registry.read(name).hints))
    return Hints(name, _unfolded[name])


def solution(name: str) -> Solution:
    """The solution of an exercise, folded. Raises UnknownExercise."""
    return Solution(registry.find(name).name)


def register() -> bool:
    """Defines `%%exercise`, `hint` and `solution` in the notebook that runs this; False outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return False
    shell.register_magic_function(exercise, "cell", "exercise")
    for function in (hint, solution):
        shell.user_ns.setdefault(function.__name__, function)
    return True


def load_ipython_extension(shell: object) -> None:
    """What IPython calls at the start of a notebook; the import of this module has already done the work."""
    register()
