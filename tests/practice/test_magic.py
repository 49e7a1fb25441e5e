"""Exercises in a notebook: the cell magic, hints, solutions, and verdicts as HTML."""

import os
import signal
import subprocess
import sys

import pytest
from wrong_answers import cell_of

from helpers import set_up
from helpers.paths import ROOT
from helpers.practice import isolated, judge, magic, registry, verdict

UNKNOWN = "there is no exercise 'rol'; did you mean roll? The exercises are lanes, "


@pytest.fixture
def shell():
    pytest.importorskip("IPython")
    from IPython.testing.globalipapp import start_ipython

    start_ipython()
    import IPython

    assert magic.register()
    magic._unfolded.clear()
    return IPython.get_ipython()


def test_the_magic_checks_a_cell(shell):
    unsolved = shell.run_cell_magic("exercise", "vector_scale", registry.read("vector_scale").cell_text + "\n\n")
    assert repr(unsolved) == (
        "vector_scale: not solved yet: replace the comment in this cell with your code (about 2 lines) and run it "
        'again; hint("vector_scale") shows a hint'
    )
    solved = shell.run_cell_magic("exercise", "vector_scale", cell_of("vector_scale"))
    assert solved.accepted
    unknown = shell.run_cell_magic("exercise", "vector_skale", "x")
    assert unknown.kind == "unknown"
    assert "there is no exercise 'vector_skale'" in repr(unknown)


@pytest.mark.slow  # starts IPython; every lesson with an exercise uses the magic
@pytest.mark.parametrize("with_extension", [True, False])
def test_an_exercise_may_come_before_the_import(tmp_path, with_extension):
    """With what set-up writes into the environment; without it, IPython does not know the magic."""
    config = tmp_path / "ipython_config.py"
    config.write_text(set_up.EXTENSION if with_extension else "get_config().InteractiveShellApp.extensions = []\n")
    code = "import sys; print('torch' in sys.modules, 'hint' in dir()); get_ipython().run_cell('%%exercise rol\\nx')"
    command = [sys.executable, "-m", "IPython", "--no-banner", f"--config={config}", "-c", code]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    known, unknown = UNKNOWN, "Cell magic `%%exercise` not found"
    assert [said in ran.stdout + ran.stderr for said in (known, unknown)] == [with_extension, not with_extension]
    assert f"False {with_extension}\n" in ran.stdout  # a notebook that has nothing to do with the course starts fast


@pytest.mark.parametrize(("error", "kind"), [(KeyboardInterrupt(), "interrupted"), (OSError("disk full"), "fault")])
def test_the_magic_never_raises(monkeypatch, error, kind):
    def broken(name, text):
        raise error

    monkeypatch.setattr(judge, "check_cell", broken)
    answer = magic.exercise("vector_scale", "x")
    assert answer.kind == kind
    assert str(error) in repr(answer)


def test_an_interrupted_check_leaves_no_process(monkeypatch):
    started = []

    def interrupted(self, header, parts=()):
        started.append(self.process)
        raise KeyboardInterrupt

    monkeypatch.setattr(isolated.Process, "ask", interrupted)
    answer = magic.exercise("vector_scale", cell_of("vector_scale"))
    assert answer.kind == "interrupted"
    assert [process.poll() for process in started] == [-signal.SIGKILL]


def test_hints_unfold_one_by_one(shell):
    hints = registry.read("vector_scale").hints
    seen = [repr(shell.user_ns["hint"]("vector_scale")) for _ in range(len(hints) + 1)]
    for shown, text in enumerate(seen[:-1], 1):
        assert [hint in text for hint in hints] == [i < shown for i in range(len(hints))]
    assert seen[-1] == seen[-2]
    assert 'solution("vector_scale") is next' in seen[-1]


@pytest.mark.parametrize("function", ["hint", "solution"])
def test_an_unknown_exercise_in_a_notebook_is_a_message_without_a_traceback(shell, capsys, function):
    shell.run_cell(f'{function}("rol")')
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"UnknownExercise: {UNKNOWN}reverse, ")


def test_the_solution_is_folded(shell):
    shown = shell.user_ns["solution"]("vector_scale")
    assert repr(shown) == "the solution of vector_scale is in kernels/solutions/vector_scale.cu"
    page = shown._repr_html_()
    assert page.startswith("<details><summary>")
    assert "factor" in page
    with pytest.raises(registry.UnknownExercise):
        magic.solution("vector_skale")


def test_a_verdict_as_html_is_escaped_and_folds_help():
    assert "in <code>x[i] &lt; 1</code>." in verdict.Verdict("roll", "rejected", "in `x[i] < 1`.")._repr_html_()
    page = verdict.Verdict("roll", "rejected", "a < b\nc")._repr_html_()
    assert "a &lt; b" in page
    assert page.count("<details>") == len(registry.read("roll").hints) + 1
    assert "Hint" not in verdict.Verdict("roll", "accepted", "9 cases")._repr_html_()
