"""What follows an accepted answer: the solution, the counts of both, the next exercise; and hints in a terminal."""

import pytest

from helpers.practice import beside, command, hint_command, registry, trial
from helpers.practice.traced_run import Counts
from helpers.practice.verdict import Verdict
from kernel_xray.machine import cache

MINE, THEIRS = Counts(1, 8, 40, 0, 0), Counts(1, 4, 40, 0, 0)


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    return tmp_path


def test_the_counts_of_both_stand_side_by_side(own_cache, monkeypatch):
    asked = []
    monkeypatch.setattr(trial, "count", lambda name, source, label: asked.append((name, source, label)) or THEIRS)
    for _ in range(2):
        found = beside.beside("vector_scale", "n = 257", MINE)
        assert str(found).splitlines() == [
            "the solution is in kernels/solutions/vector_scale.cu",
            f"{'n = 257':<28} {'yours':>10} {'solution':>10}",
            f"  {'kernels launched':<26} {1:>10} {1:>10}",
            f"  {'requests to global memory':<26} {8:>10} {4:>10}",
            f"  {'sectors of global memory':<26} {40:>10} {40:>10}",
            "next: A few threads for many elements (my_lessons/exercises/saxpy.cu)",
        ]
    assert asked == [("vector_scale", registry.find("vector_scale").solution, "n = 257")], "counted once, then kept"
    page = found.as_html()
    assert page.startswith("<details><summary>Beside the solution</summary><table>")
    assert "Next: A few threads for many elements (<code>saxpy</code>)." in page
    assert page in Verdict("vector_scale", "accepted", "8 cases", case="n = 257", counts=MINE)._repr_html_()


def test_without_counts_there_is_no_table(own_cache, monkeypatch):
    monkeypatch.setattr(trial, "count", lambda *arguments: None)
    last = registry.exercises()[-1]
    for mine in (None, MINE):
        found = str(beside.beside(last.name, "n = 1", mine))
        assert found == f"the solution is in kernels/solutions/{last.solution.name}"


@pytest.mark.slow
def test_the_solution_is_counted_in_a_process_of_its_own():
    solution = registry.find("vector_scale").solution
    found = trial.count("vector_scale", solution, "n = 257")
    assert (found.launches, found.requests, found.shared) == (1, 18, 0)  # 9 warps read and write
    assert trial.count("vector_scale", solution, "n = 258") is None


def test_hints_in_a_terminal_come_one_by_one(own_cache, capsys):
    hints = registry.read("roll").hints
    for shown in range(1, len(hints) + 2):
        assert hint_command.main(["roll"]) == 0
        text = capsys.readouterr().out
        assert [hint in text for hint in hints] == [i < shown for i in range(len(hints))]
        assert "hint(" not in text
    assert "no more hints; the solution of roll is in kernels/solutions/roll.cu" in text
    assert hint_command.main(["roll", "--again"]) == 0
    assert "python -m helpers hint roll shows the next one; 2 left" in capsys.readouterr().out
    assert hint_command.main(["rol"]) == 2
    assert "there is no exercise 'rol'; did you mean roll? The exercises are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "then"),
    [("accepted", "beside"), ("rejected", "python -m helpers hint roll shows a hint"), ("unsolved", "")],
)
def test_a_terminal_is_told_what_to_do_next(monkeypatch, capsys, kind, then):
    from helpers.practice import judge, starters

    verdict = Verdict("roll", kind, "why")
    monkeypatch.setattr(beside, "beside", lambda *arguments: "beside")
    monkeypatch.setattr(starters, "unsolved", lambda name, file: None)
    monkeypatch.setattr(judge, "check_file", lambda name, file: verdict)
    assert command.main(["roll"]) == (kind != "accepted")
    assert capsys.readouterr().out.splitlines() == [repr(verdict), *filter(None, [then])]
