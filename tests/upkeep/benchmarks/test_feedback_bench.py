"""`bench --feedback`: the waits, and that their stages add up."""

import pytest

from helpers.upkeep.benchmarks import feedback


def test_the_table_has_a_column_for_each_wait():
    stages = dict.fromkeys(feedback.STAGES, 0.25)
    waits = [feedback.Wait(what, 1.75, 1.5, stages) for what in ("new shell", "open notebook")]
    lines = feedback.table("roll", waits).splitlines()
    assert lines[0].startswith("seconds to a verdict on roll, cores: ")
    assert lines[1:3] == ["  A  new shell", "  B  open notebook"]
    assert lines[3].split() == ["A", "B"]
    assert [line.split()[-2:] for line in lines[4:-2]] == [["0.25", "0.25"]] * len(feedback.STAGES)
    assert lines[-2].split() == ["in", "all", "1.75", "1.75"]
    assert lines[-1].split()[-2:] == ["1.50", "1.50"]


@pytest.mark.slow
def test_all_seconds_of_a_wait_are_in_its_stages():
    waits = feedback.measure("vector_scale")
    assert [wait.what for wait in waits] == [
        f"{where}, {kernel} kernel" for where in ("new shell", "open notebook") for kernel in ("edited", "unchanged")
    ]
    for wait in waits:
        assert set(wait.stages) == set(feedback.STAGES)
        assert sum(wait.stages.values()) == pytest.approx(wait.seconds)
        assert min(wait.stages.values()) >= 0 and wait.stages["build"] > 0 and wait.stages["traced run"] > 0
        assert (wait.stages[feedback.STAGES[0]] > 0) == wait.what.startswith("new shell")
        assert wait.cpu_seconds > 0


@pytest.mark.slow
def test_an_answer_that_is_not_accepted_is_not_measured(monkeypatch):
    def edit(answer, name):
        answer.write_text("not C++")

    monkeypatch.setattr(feedback, "_edit", edit)
    with pytest.raises(RuntimeError, match=r"ended with status 1: .*does not build"):
        feedback.measure("vector_scale")
