"""The plugin for pytest: the test of its page passes, and the options fail tests that they should fail."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "pytest.md").read_text(encoding="utf-8")
OTHERS = """

def test_wasteful(xray):
    assert len(xray(ops.scale, torch.randn(1024), 2.0, 32).lines) == 2

def test_race(xray):
    xray(ops.race, torch.zeros(64))

def test_wrong(xray):
    assert xray(ops.scale, torch.ones(256), 2.0, 1).result.sum() == 0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("of_an_author")
    shutil.copy(HERE / "strided.cu", folder / "scale.cu")
    (listing,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len([line for line in listing.splitlines() if line]) <= 6
    (folder / "test_scale.py").write_text(listing + OTHERS)
    return folder


@pytest.fixture
def run(folder, monkeypatch, capfd):
    """Runs pytest there, inside this process, which has PyTorch; returns the outcome of each test, and the output."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*arguments):
        monkeypatch.delitem(sys.modules, "test_scale", raising=False)
        given = ["-p", "kernel_xray.build.pytest_plugin", "-p", "no:faulthandler", "-p", "no:cacheprovider", "-rA"]
        pytest.main([*given, "-c", os.devnull, "--rootdir", str(folder), *map(str, arguments), str(folder)])
        text = "".join(capfd.readouterr())
        outcomes = re.findall(r"^(PASSED|FAILED) \S+::(\w+)", text, re.MULTILINE)
        return {name: how == "PASSED" for how, name in outcomes}, text

    return run


MOVES = "test_scale_moves_no_more_than_it_has_to"


def test_a_fault_fails_a_test_and_a_failed_test_shows_the_report(run):
    passed, text = run()
    assert passed == {MOVES: True, "test_wasteful": True, "test_race": False, "test_wrong": False}
    assert "the X-ray found: race" in text and "FAULTS\nscale.cu:" in text
    assert "X-ray call" in text and "scale_kernel<<<1, 256>>> at scale.cu:" in text


@pytest.mark.slow
def test_a_budget_and_seeds(run, tmp_path):
    budget = tmp_path / "budget.json"
    budget.write_text('{"kernels": {"scale_kernel": {"sectors": 256}, "none_kernel": {"sectors": 0}}}')
    passed, text = run("--xray-budget", budget, "--xray-seeds", "3")
    assert passed == {MOVES: True, "test_wasteful": False, "test_race": False, "test_wrong": False}
    assert "kernel scale_kernel: sectors: allowed 256, got 2,048" in text and "drawn from seed 2" in text
    assert f"no X-ray had these entries of {budget}: none_kernel" in text
    for wrong in (["--xray-seeds", "0"], ["--xray-budget", tmp_path / "missing.yml"]):
        passed, text = run(*wrong)
        assert not passed and str(wrong[1]) in text and "Traceback" not in text
