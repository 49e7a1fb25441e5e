"""Adapts nbval to these notebooks. pytest loads this file; a notebook never does.

- ipykernel forwards C output (a kernel's printf) unless it thinks that it runs under pytest, which it does when the
  variable PYTEST_CURRENT_TEST is set. The notebook's kernel starts without that variable.
- nbval waits for a cell's reply without checking that the kernel is alive, so a dead kernel costs the whole time limit.
  Here a dead kernel is noticed within seconds.
- Under nbval, a cell tagged `raises-exception` passes even if it raises nothing. In a lesson that shows a mistake, this
  would hide that the mistake is gone. Here such a cell fails.
- nbval reads what a cell printed, not whether it succeeded. A cell that IPython rejects, such as `%%exercise` before
  `import helpers`, prints an error as text, and would pass. Here it fails.
- Progress comes only if something had to be built: it does not belong to what a cell shows.
- Numbers that depend on the processor alone are not compared (see tests/sanitized.cfg).
- nbval keeps cells out of the history, so a `;` at the end of a cell does not hide its value and `_` is not the last
  value, unlike in JupyterLab. Here cells are stored in the history.
- Without a GPU the cells show recorded measurements, and the numbers that the prose quotes must be among them: the last
  cell of a lesson fails if one is shown nowhere (see helpers/pages/notebooks/quotes.py).
- A cell tagged `slow` waits for PyTorch's compiler, for pip, for the headers of a classic binding, for the largest
  kernels' builds or films, or for a training: `make course` and `make test TESTS=all` run it. The quick suite's own tests
  compile the same operators with `aot_eager`. Classic bindings, RMSNorm, Hopper's attention, the choice of a product's
  tiles, the rungs of lessons 09 and 11 under the X-ray and lesson 10's steps are checked by TESTS=all alone: a change of
  these wants it, or their lesson: `pytest --nbval-lax notebooks/07_softmax.ipynb`.
- The environment's bin folder is on PATH even if the environment is not activated, so that ninja is found.
- Kernels are forks of one process that has imported PyTorch (see helpers/pages/notebooks/forked.py).
"""

import os
import sys
import time
from queue import Empty
from unittest import mock

import nbval.plugin
import pytest
from jupyter_client.provisioning import local_provisioner
from nbval.kernel import RunningKernel

from helpers.pages.notebooks import forked, quotes
from helpers.paths import ROOT
from kernel_xray.machine import toolchain
from kernel_xray.machine.progress import MARK
from kernel_xray.runtime import libsimt

POLL_SECONDS = 2.0
SANITIZED = ROOT / "tests" / "sanitized.cfg"
# Cells that clang++ does not give the output of g++ in the simulator.
NOT_WITH_CLANG = {
    "00_start_here.ipynb::Cell 13": "clang++ makes one store of those that end two branches"
}
HINTS = {
    "Cell magic `%%exercise` not found.": " `import helpers` defines it: run the cell with the imports first."
}


class CourseKernel(RunningKernel):
    """nbval's kernel, started in a learner's environment and watched while it runs a cell."""

    def __init__(self, *args, **kwargs):
        changed = {
            "PYTEST_CURRENT_TEST": None,
            "JUPYTER_PREFER_ENV_PATH": "1",
            "PATH": os.pathsep.join(
                [os.path.join(sys.prefix, "bin"), os.environ.get("PATH", os.defpath)]
            ),
        }
        before = {name: os.environ.get(name) for name in changed}
        self._set_environment(changed)
        try:
            launch = (
                forked.launch if forked.ADDRESS in os.environ else local_provisioner.launch_kernel
            )
            with mock.patch.object(local_provisioner, "launch_kernel", launch):
                super().__init__(*args, **kwargs)
        finally:
            self._set_environment(before)

    @staticmethod
    def _set_environment(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def execute_cell_input(self, cell_input, allow_stdin=None):
        return self.kc.execute(
            cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
        )

    def get_message(self, stream, timeout=None):
        message = super().get_message(stream, timeout=timeout)
        while message["content"].get("metadata") == MARK:
            message = super().get_message(stream, timeout=timeout)
        if message["header"]["msg_type"] == "execute_reply":
            self.outcome = message["content"]
        return message

    def await_reply(self, msg_id, timeout=None):
        self.outcome = {}
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic())
            if left <= 0:
                raise Empty
            try:
                return super().await_reply(msg_id, timeout=left)
            except Empty:
                if not self.is_alive():
                    raise RuntimeError(
                        "the notebook's process died while it ran this cell"
                    ) from None


nbval.plugin.RunningKernel = CourseKernel


def pytest_configure(config):
    config.option.nbval_sanitize_with = config.option.nbval_sanitize_with or SANITIZED
    if not config.option.collectonly:
        config.add_cleanup(forked.start())


def pytest_itemcollected(item):
    if isinstance(item, nbval.plugin.IPyNbCell) and "slow" in item.cell.metadata.get("tags", ()):
        item.add_marker("slow")
    reason = next((why for cell, why in NOT_WITH_CLANG.items() if item.nodeid.endswith(cell)), None)
    if reason and toolchain.of_programs() == "simulator" and libsimt.is_clang():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    result = yield
    if not isinstance(item, nbval.plugin.IPyNbCell):
        return result
    raised = any(output.output_type == "error" for output in item.test_outputs or [])
    outcome = getattr(item.parent.kernel, "outcome", {})
    if item.options["check_exception"] and not raised:
        item.raise_cell_error("The cell is tagged raises-exception and raised nothing")
    if outcome.get("status") == "error" and not raised:
        item.raise_cell_error(
            f"IPython rejected the cell: {outcome['evalue']}{HINTS.get(outcome['evalue'], '')}"
        )
    check_quotes(item)
    return result


def check_quotes(item):
    """After the last cell, if all have run: does a cell show each number that the prose quotes?"""
    ran = item.parent.__dict__.setdefault("shown_here", {})
    ran[item.cell_num] = quotes.texts(item.test_outputs or [])
    notebook = item.parent.nb
    if toolchain.target == "simulator" and len(ran) == sum(
        cell.cell_type == "code" for cell in notebook.cells
    ):
        missing = quotes.unshown_here(item.path.stem, notebook, ran.values())
        if missing:
            item.raise_cell_error(
                f"quoted in the lesson, and shown by no cell here: {', '.join(missing)}"
            )
