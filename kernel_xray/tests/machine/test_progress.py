"""Progress in a notebook is an output of its cell, not an error; elsewhere a line on stderr."""

import re
import time

import pytest
from jupyter_client.manager import start_new_kernel

from kernel_xray.machine.paths import PACKAGE
from kernel_xray.machine.progress import MARK, Progress

CELL = f"""
import sys, time
sys.path.insert(0, {str(PACKAGE.parent)!r})
from kernel_xray.machine.progress import Progress
with Progress("waiting", after=0.05):
    time.sleep(0.3)
with Progress("never said", after=5):
    pass
"""


def test_a_terminal_gets_a_line(capsys):
    with Progress("waiting", after=0.0):
        time.sleep(0.1)
    with Progress("never said", after=5):
        pass
    assert re.fullmatch(r"waiting \.\.\. \d\.\d s\n", capsys.readouterr().err)


@pytest.mark.parametrize("first", [0.0, 0.02])
def test_a_line_in_between_is_ended_and_begun_again(capsys, first):
    with Progress("outer", after=first):
        time.sleep(0.1)
        with Progress("inner", after=0.0):
            time.sleep(0.1)
    assert re.fullmatch(r"outer \.\.\.\ninner \.\.\. \d\.\d s\nouter \.\.\. \d\.\d s\n", capsys.readouterr().err)


def outputs(cell):
    """The type and content of each output of a cell in a new kernel."""
    messages = []
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        reply = client.execute_interactive(cell, timeout=60, output_hook=messages.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply["content"]
    return [(m["msg_type"], m["content"]) for m in messages if m["msg_type"] not in ("status", "execute_input")]


def test_a_notebook_gets_an_output_and_no_error():
    shown = outputs(CELL)
    assert [kind for kind, _ in shown] == ["display_data", "update_display_data"]
    assert all(content["metadata"] == MARK for _, content in shown)
    assert shown[0][1]["data"] == {"text/plain": "waiting ..."}
    assert re.fullmatch(r"waiting \.\.\. \d\.\d s", shown[1][1]["data"]["text/plain"])
    assert shown[0][1]["transient"] == shown[1][1]["transient"]


@pytest.mark.slow  # starts a kernel; the test above does too
def test_a_fork_of_a_notebook_says_it_on_stderr_and_sends_nothing(tmp_path):
    """As the process that builds and runs an answer is one; the kernel would warn on the file descriptor of stderr."""
    said = tmp_path / "said"
    fork = f"""
import os
child = os.fork()
if not child:
    sys.stderr = open({str(said)!r}, "w")
    os.dup2(sys.stderr.fileno(), 1), os.dup2(sys.stderr.fileno(), 2)
    with Progress("waiting", after=0.0):
        time.sleep(0.3)
    sys.stderr.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    shown = outputs(CELL + fork)  # from Python 3.12 on, with a warning of fork's on stderr
    assert [kind for kind, _ in shown if kind != "stream"] == ["display_data", "update_display_data"]
    assert not any("waiting" in content["text"] for kind, content in shown if kind == "stream")
    assert re.fullmatch(r"waiting \.\.\. \d\.\d s\n", said.read_text())
