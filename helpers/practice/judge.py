"""From a file or a notebook's cell to a verdict: the way of an answer, which docs/answers.md explains.

    the learner's process                                            the answer's process

    magic.py, command.py    a cell, or a file
    judge.py                the starter? a cell becomes a source; the outcome becomes a verdict
    quoted.py               the answer's text, read before it runs: verdicts quote it, and no other file
    trial.py                what is asked, in this order:
      traced_run.py           small cases under an X-ray
      attested.py             a registration, on random values
      case_runner.py          all cases, then drawn ones             python_answer.py   runs Python
      far_case.py             indices of more than 32 bits           answering.py       builds it, calls it
                                                                     preprocessed.py    its source, expanded
                                                                     object_code.py     its code, before it is loaded
    remote.py               a call, and the result that came back      |
    isolated.py             starts the process, asks it, ends it       |
    allowance.py            how long it may take                       |
    messages.py             a header of JSON, tensors as bytes  <------+

Each file calls those below it, and none calls back. What comes back is compared in the learner's process.
"""

import os
from contextlib import suppress
from pathlib import Path

from helpers.paths import ROOT
from helpers.practice import registry, starters, trial
from helpers.practice.verdict import Verdict
from kernel_xray.build import flags
from kernel_xray.machine import cache, turns
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime import precompiled


def check_file(name: str, path: Path | None = None) -> Verdict:
    """Checks a file, by default the learner's starter, as an answer to exercise `name`.

    Raises UnknownExercise, and FileNotFoundError if there is no such file.
    """
    path = path or starters.mine(name)
    return starters.unsolved(name, path) or run(name, path)


def check_cell(name: str, text: str) -> Verdict:
    """Checks the text of a notebook's cell, without its first line `%%exercise NAME`. Raises UnknownExercise."""
    registry.find(name)
    marked = registry.read(name)
    if starters.same(text, marked.cell_text):
        return Verdict(name, "unsolved", f'{marked.task("this cell")} and run it again; hint("{name}") shows a hint')
    source = assemble(name, text, cache.root() / "exercises" / cache.digest(name, marked.starter, text))
    return run(name, source, shown_as="cell")


def run(name: str, source: Path, shown_as: str = "") -> Verdict:
    """Builds and runs `source`, even if it is unsolved. Messages call the file `shown_as`, by default its path."""
    prepare()
    with Progress(f"checking {name}", after=2.0), turns.turn("check"):
        outcome = trial.run(name, source)

    def shown(text: str) -> str:
        text = text.replace(f"{ROOT}{os.sep}", "")
        if shown_as:
            for path in sorted({str(source), os.path.relpath(source), source.name}, key=len, reverse=True):
                text = text.replace(path, shown_as)
        return text

    message, table = shown(outcome.message), shown(outcome.table)
    shows = table, outcome.film, outcome.picture, outcome.case
    return Verdict(name, outcome.kind, message, outcome.printed, *shows, counts=outcome.counts, killed=outcome.killed)


def prepare() -> None:
    """Builds what the first answer needs, here, where a learner sees it, and all of it at the same time."""
    with suppress(RuntimeError, OSError):  # the answer's own process meets it again, and its reason is in the verdict
        precompiled.with_library(flags.of_kernels(traced=True))


def assemble(name: str, cell: str, folder: Path) -> Path:
    """Writes the starter with `cell` in place of its cell to a source in `folder`; returns the path of the source.

    The text before and after the cell goes into separate files, so that line numbers in the source are those of the
    notebook's cell, whose first line is `%%exercise NAME`. Kernels include these files; for Python answers,
    python_answer.run runs them.
    """
    exercise, marked = registry.find(name), registry.read(name)
    before, after = marked.around_cell
    if exercise.starter.suffix == ".py":
        source = folder / f"{name}_cell.py"
        _write(source.with_suffix(".before"), before)
        _write(source.with_suffix(".after"), after)
        _write(source, f"# the cell's first line\n{cell.rstrip()}\n")
        return source
    start = marked.cell[1] + 1
    _write(folder / f"{name}_before.h", f'#line 1 "{exercise.starter}"\n{before}')
    _write(folder / f"{name}_after.h", f'#line {start} "{exercise.starter}"\n{after}')
    source = folder / f"{name}_cell.cu"
    text = f'#include "{name}_before.h"\n{cell.rstrip()}\n#include "{name}_after.h"\n'
    _write(source, text)
    return source


def _write(path: Path, text: str) -> None:
    """Writes a text unless it is there already, as in a read-only cache."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
