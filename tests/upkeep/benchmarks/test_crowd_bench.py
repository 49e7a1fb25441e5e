"""`bench --load`: what it says of a crowd of processes; and small crowds of the real ones."""

import os
import shutil
import sys

import pytest

from helpers.upkeep.benchmarks import crowd as bench

HOLDS_40_MB = "import time; held = b'x' * 40_000_000; time.sleep(1.5)"


@pytest.mark.slow  # a benchmark of our own tools
def test_what_is_said_of_a_crowd():
    fails = "import sys; print('before', flush=True); sys.exit('no luck')"
    commands = [[sys.executable, "-c", code] for code in (HOLDS_40_MB, fails, HOLDS_40_MB)]
    crowd = bench.run("processes", commands, every=0.1)
    assert 0.08 < crowd.gigabytes < 0.5
    assert sorted(crowd.seconds) == crowd.seconds and 1.5 < crowd.seconds[-1] <= crowd.wall
    assert crowd.wrong == ["status 1: before / no luck"]
    text = str(crowd)
    assert "processes: 3 at once" in text and "2 of 3" in text and "failed: status 1: before / no luck" in text
    assert crowd.compilers == 0


@pytest.mark.slow  # a benchmark of our own tools
def test_compilers_are_counted(tmp_path):
    compiler = tmp_path / "cc1plus"
    shutil.copy(shutil.which("sleep"), compiler)
    crowd = bench.run("compilers", [[str(compiler), "1"], [str(compiler), "1"], ["sleep", "1"]], every=0.1)
    assert crowd.compilers == 2
    assert crowd.wrong == []


def test_an_interrupt_ends_the_crowd(monkeypatch):
    def interrupted(crowd, running):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_sample", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.run("processes", [["sleep", "600"]])


def test_the_exit_status_is_that_of_the_results(monkeypatch, capsys):
    for wrong in ([], ["status 1: no luck"]):
        crowd = bench.Crowd("processes", seconds=[1.0], wrong=wrong)
        monkeypatch.setattr(bench, "checks", lambda count, crowd=crowd: crowd)
        monkeypatch.setattr(bench, "notebooks", lambda count, crowd=crowd: crowd)
        assert bench.BENCHMARK.main(["--load", "--checks", "3"]) == len(wrong)
        assert "processes: 1 at once" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_exercise_checks_at_once():
    crowd = bench.checks(4)
    assert crowd.wrong == []
    assert crowd.compilers <= (os.cpu_count() or 1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_notebooks_at_once_on_an_empty_cache():
    assert bench.notebooks(3).wrong == []
