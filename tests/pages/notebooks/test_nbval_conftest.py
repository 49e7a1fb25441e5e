"""notebooks/conftest.py makes nbval do what it promises: a notebook for each point that fails without it."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from helpers.paths import NOTEBOOKS

pytestmark = pytest.mark.slow
CONFTEST = NOTEBOOKS / "conftest.py"
WITHOUT_HELPERS = """import sys
get_ipython().magics_manager.magics["cell"].pop("exercise", None)  # which set-up gives all notebooks
for name in [name for name in sys.modules if name.partition(".")[0] == "helpers"]: del sys.modules[name]"""
RAISES = {"tags": ["raises-exception"]}
PRINT_IN_C = "# NBVAL_CHECK_OUTPUT\nimport ctypes\nlibc = ctypes.CDLL(None)\nlibc.puts(b'from C')\nlibc.fflush(None);"


def cell(source, text=None, tags=None):
    outputs = [new_output("stream", name="stdout", text=text)] if text else []
    return new_code_cell(source, execution_count=1, outputs=outputs, metadata=tags or {})


NOTEBOOKS = {
    "c_output": [cell(PRINT_IN_C, "from C\n"), cell(PRINT_IN_C, "something else\n")],
    "dead": [cell("import os\nos._exit(3)")],
    "raises": [cell("1 / 0", tags=RAISES), cell("1 / 1", tags=RAISES), cell("# NBVAL_RAISES_EXCEPTION\n1 / 1")],
    "magic": [
        *(cell(WITHOUT_HELPERS), cell("%%exercise copy\nx = 1"), cell("import helpers")),
        *(cell("%%exercise copy\nx = 1"), cell("%lsmagic_of_tomorrow")),
    ],
    "history": [
        cell("# NBVAL_CHECK_OUTPUT\nprint('seen')\n6 * 7;", "seen\n"),
        cell("# NBVAL_CHECK_OUTPUT\nprint('seen')\n6 * 7", "seen\n"),
        cell("assert _ == 42"),
    ],
    "long": [cell("kept = 1"), cell("kept = 2", tags={"tags": ["slow"]}), cell("assert kept == 1")],
    "environment": [
        cell("import os, sys\nassert os.environ['PATH'].split(os.pathsep)[0] == os.path.join(sys.prefix, 'bin')"),
        cell("assert os.getcwd().endswith('lessons')"),
    ],
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """(the output of pytest, {"notebook::Cell n": "PASSED" or "FAILED"}) of a run of all of them, in one process."""
    folder = tmp_path_factory.mktemp("nbval") / "lessons"
    folder.mkdir()
    shutil.copy(CONFTEST, folder)
    for name, cells in NOTEBOOKS.items():
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = "-rA --color=no -p no:cacheprovider -p no:xdist --nbval-lax --nbval-current-env --nbval-cell-timeout=120"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options.split(), "-m", "not slow", "--rootdir", str(folder), str(folder)],
        capture_output=True,
        text=True,
        cwd=folder.parent,
        env={**environment, "PATH": os.defpath},
        timeout=300,
    )
    found = re.findall(r"^(PASSED|FAILED) \S*?(\w+)\.ipynb::(Cell \d+)", run.stdout, re.MULTILINE)
    results = {f"{name}::{number}": state for state, name, number in found}
    assert len(results) == sum(map(len, NOTEBOOKS.values())) - 1, run.stdout + run.stderr
    return run.stdout, results


@pytest.mark.parametrize(
    ("name", "states", "printed"),
    [
        ("c_output", ["PASSED", "FAILED"], ""),  # the output of C code is compared
        ("dead", ["FAILED"], "the notebook's process died"),
        ("raises", ["PASSED", "FAILED", "FAILED"], "raised nothing"),  # a cell that must raise must raise
        ("magic", ["PASSED", "FAILED", "PASSED", "PASSED", "FAILED"], "defines it: run the cell with the imports"),
        ("history", ["PASSED", "FAILED", "PASSED"], ""),  # the second cell shows a value, which its outputs lack
        ("long", ["PASSED", None, "PASSED"], "1 deselected"),  # the quick suite leaves a slow cell out
        ("environment", ["PASSED", "PASSED"], ""),
    ],
)
def test_each_cell_passes_or_fails_as_it_should(outcome, name, states, printed):
    text, results = outcome
    assert [results.get(f"{name}::Cell {number}") for number in range(len(states))] == states
    assert printed in text
    assert "Timeout of 120" not in text
