"""Kernels that are forked are as those that Jupyter starts, but for the modules that they find loaded."""

import json
import os
import sys

import pytest

from helpers.pages.notebooks import forked

PROBE = """
import json, os, sys
seen = {
    "loaded": [name for name in ("torch", "helpers", "kernel_xray") if name in sys.modules],
    "asks for a GPU": "torch.utils.cpp_extension" in sys.modules,
    "argv": sys.argv[1:], "name": __name__, "cwd": os.getcwd(), "variable": os.environ.get("PROBE"),
    "inherits a variable": "PYTEST_CURRENT_TEST" in os.environ, "leads its group": os.getpgrp() == os.getpid(),
}
with open("seen.part", "w") as file:
    json.dump(seen, file)
os.rename("seen.part", "seen.json")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere kernels are not forked")
def test_a_fork_has_its_own_arguments_folder_and_environment_and_nothing_of_the_course(tmp_path):
    (tmp_path / "probe_of_forks.py").write_text(PROBE)
    end = forked.start()
    try:
        environment = {"PROBE": "ä b", "PATH": os.environ["PATH"]}
        process = forked.launch([sys.executable, "-m", "probe_of_forks", "-f", "x y"], environment, tmp_path)
        assert process.wait(timeout=120) == 0 and process.poll() == 0
    finally:
        end()
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "loaded": ["torch"],
        "asks for a GPU": False,
        "argv": ["-f", "x y"],
        "name": "__main__",
        "cwd": str(tmp_path),
        "variable": "ä b",
        "inherits a variable": False,
        "leads its group": True,
    }
