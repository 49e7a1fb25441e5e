"""The runner of the benchmarks of our own tools: what it prints, records and refuses, and its exit status."""

import json

import pytest

import helpers
from helpers.upkeep.benchmarks import first_result, overhead, scaling
from helpers.upkeep.benchmarks.command import main
from helpers.upkeep.benchmarks.tools import Benchmark

RECORDED = {first_result: "on a GPU's host", overhead: "on a GPU's host", scaling: "with two GPUs"}


@pytest.mark.parametrize("module", RECORDED)
def test_missing_records_are_reported_with_the_command_that_makes_them(module, tmp_path):
    flag, file = module.BENCHMARK.flag, module.BENCHMARK.file
    wanted = f"not measured yet; {RECORDED[module]}: python -m helpers bench {flag} --record results/{file}"
    assert module.recorded(tmp_path / file) == wanted
    (tmp_path / file).write_text(json.dumps({"machine": {}, "records": [1, 2]}))
    shown = Benchmark("--x", "", lambda options: None, lambda found: f"{found['records']}", file=file)
    assert shown.recorded(tmp_path / file) == "[1, 2]"


@pytest.mark.skipif(helpers.target == "gpu", reason="with a GPU it would measure")
@pytest.mark.parametrize("module", RECORDED)
def test_the_simulator_is_not_timed(module, capsys, tmp_path):
    assert main([module.BENCHMARK.flag, "--record", str(tmp_path / "record.json")]) == 1
    said = capsys.readouterr()
    assert "says nothing about a GPU, so nothing is timed" in said.err and "recorded on" in said.out
    assert not list(tmp_path.iterdir())


def test_what_is_measured_is_printed_and_recorded(capsys, tmp_path):
    def measured(options):
        if options.count == 0:
            raise RuntimeError("nothing to count")
        return options.count

    recorded = {"file": "x.json", "right": lambda found: found < 3}
    bench = Benchmark("--x", "", measured, lambda found: f"{found} found", {"--count": {"type": int}}, **recorded)
    path = tmp_path / "x.json"
    for count, status in (("2", 0), ("3", 1)):
        assert bench.main(["--x", "--count", count, "--record", str(path)]) == status
        assert capsys.readouterr().out == f"{count} found\n" and path.read_text() == f"{count}\n"
    assert bench.main(["--x", "--count", "0"]) == 1
    assert capsys.readouterr().err == "bench: nothing to count\n"
