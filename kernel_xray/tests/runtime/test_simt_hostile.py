"""Hostile kernels and calls: each ends with the documented error, and the process survives.

Each fault runs in this process, and a correct kernel after it. So they do, in slow tests, in a process without pytest,
which reports as JSON (`python test_simt_hostile.py` is that process).
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from simt_programs import assert_matches, load_cases, operators

import kernel_xray

TESTS = Path(__file__).parent
SIMULATOR = kernel_xray.target == "simulator"
on_simulator = pytest.mark.skipif(not SIMULATOR, reason="on a GPU this ends the process's use of the device")
SLOWEST = 10.0  # seconds within which each error must be reported
LIMIT = "KERNEL_XRAY_BLOCK_SECONDS"

# ----------------------------------------------------------------------------------------------------------------------
# Kernels that fault: the message, the kernel, the block and the thread (None: any).

ILLEGAL, STACK, TIME, ZERO = "illegal memory access", "stack overflow", "time limit", "integer division by zero"
ORIGIN = (0, 0, 0)
FAULTS = {
    "null_write": (ILLEGAL, "null_write_kernel", ORIGIN, ORIGIN),
    "null_read": (ILLEGAL, "null_read_kernel", ORIGIN, ORIGIN),
    "wild_pointer": (ILLEGAL, "store_kernel", ORIGIN, ORIGIN),
    "impossible_pointer": (ILLEGAL, "store_kernel", ORIGIN, ORIGIN),
    "code_is_read_only": (ILLEGAL, "store_kernel", ORIGIN, ORIGIN),
    "far_behind": (ILLEGAL, "far_kernel", ORIGIN, (1, 0, 0)),
    "far_before": (ILLEGAL, "far_kernel", ORIGIN, (1, 0, 0)),
    "second_block": (ILLEGAL, "second_block_kernel", (1, 2, 0), (3, 1, 1)),
    "after_barrier": (ILLEGAL, "after_barrier_kernel", ORIGIN, (40, 0, 0)),
    "null_function": (ILLEGAL, "null_function_kernel", ORIGIN, ORIGIN),
    "null_kernel": (ILLEGAL, "kernel", ORIGIN, ORIGIN),
    "in_a_template": (ILLEGAL, "template_fault_kernel", ORIGIN, ORIGIN),
    "in_a_lambda": (ILLEGAL, "apply_kernel", ORIGIN, ORIGIN),
    "endless_recursion": (STACK, "recursion_kernel", ORIGIN, ORIGIN),
    "endless_recursion_after_barrier": (STACK, "recursion_after_barrier_kernel", ORIGIN, (5, 0, 0)),
    "huge_local_array": (STACK, "huge_array_kernel", ORIGIN, ORIGIN),
    "endless_loop": (TIME, "endless_kernel", ORIGIN, ORIGIN),
    "endless_loop_in_all": (TIME, "empty_loop_kernel", None, ORIGIN),
    "endless_in_one_thread": (TIME, "endless_in_one_kernel", (2, 0, 0), (7, 0, 0)),
    "endless_with_barrier": (TIME, "endless_barrier_kernel", ORIGIN, None),
    "endless_with_shuffle": (TIME, "endless_shuffle_kernel", ORIGIN, None),
    "endless_spin_on_atomic": (TIME, "spin_kernel", None, None),
    "endless_sleep": (TIME, "sleep_kernel", ORIGIN, None),
    "assertion": (r"assertion failed: int\(threadIdx.x\) < limit", "assert_kernel", None, (5, 0, 0)),
    "assertion_with_text": ("the index is within the row", "assert_text_kernel", ORIGIN, (2, 0, 0)),
    "trap": ("trap", "trap_kernel", ORIGIN, (9, 0, 0)),
    "exception": ("exception was thrown in the kernel: thrown in a kernel", "throw_kernel", ORIGIN, (2, 0, 0)),
    "exception_after_barrier": ("thrown behind a barrier", "throw_after_barrier_kernel", ORIGIN, (2, 0, 0)),
    "exception_of_no_class": ("exception was thrown in the kernel", "throw_int_kernel", ORIGIN, ORIGIN),
    "exception_of_the_library": ("exception was thrown .*range", "vector_at_kernel", ORIGIN, ORIGIN),
    "bad_alloc": ("bad_alloc|out of memory|bad_array", "allocate_kernel", ORIGIN, ORIGIN),
    "division_by_zero": (ZERO, "divide_kernel", ORIGIN, ORIGIN),
    "remainder_by_zero": (ZERO, "remainder_kernel", ORIGIN, ORIGIN),
    "deadlock": ("deadlock", "half_and_half_kernel", ORIGIN, None),
    "crossed_collectives": ("deadlock", "crossed_collectives_kernel", ORIGIN, None),
    "lane_not_in_its_mask": ("mask", "not_in_mask_kernel", ORIGIN, (16, 0, 0)),
    "syncwarp_in_a_branch": ("deadlock", "tree_kernel", ORIGIN, None),
    "fault_in_a_thread": (ILLEGAL, "null_write_kernel", ORIGIN, ORIGIN),
    "fault_beside_good_launches": (ILLEGAL, "null_write_kernel", ORIGIN, ORIGIN),
}


def load_hostile(name):
    flags = ["--extended-lambda"] if kernel_xray.target == "gpu" else []
    return load_cases(TESTS / "hostile" / f"{name}.cu", f"hostile_{name}", flags)


def fault_of(operators, name):
    """The error that ends a case: its type, its message, the seconds it took; the type is "none" if there is none."""
    started = time.monotonic()
    try:
        getattr(operators, name)([torch.zeros(256, dtype=torch.int32)], [0])
    except BaseException as error:
        kind = "KernelFault" if isinstance(error, kernel_xray.KernelFault) else type(error).__name__
        return {"type": kind, "message": str(error), "seconds": time.monotonic() - started}
    return {"type": "none", "message": "", "seconds": time.monotonic() - started}


def correct_answer(operators) -> bool:
    out = torch.zeros(192, dtype=torch.int32)
    operators.correct([out], [])
    sums = 31 * 32 // 2 + (32 + 63) * 32 // 2
    return out.view(3, 64).tolist() == [[sums + block] * 64 for block in range(3)]


def run(operators, name):
    """How a case ends, and whether a correct kernel after it has the right answer."""
    return fault_of(operators, name) | {"correct_afterwards": correct_answer(operators)}


def interrupted(operators, handler):
    """An endless kernel, while another thread sends this process Ctrl-C."""
    before = signal.signal(signal.SIGINT, handler)
    sender = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    sender.start()
    try:
        return run(operators, "endless_loop")
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)


def report():
    """The separate process: all faults, a correct kernel after each, JSON on the last line."""
    operators = load_hostile("faults")
    seen = {}
    for name in FAULTS:
        seen[name] = run(operators, name)
        print(name, seen[name], file=sys.stderr, flush=True)
    print(json.dumps(seen), flush=True)


@pytest.fixture(scope="module")
def reported():
    environment = os.environ | {LIMIT: "0.4"}
    process = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert process.returncode == 0, f"the process ended with {process.returncode}:\n{process.stderr[-3000:]}"
    return json.loads(process.stdout.splitlines()[-1])


def check_fault(seen, name):
    kind, kernel, block, thread = FAULTS[name]
    assert seen["type"] == "KernelFault", seen
    assert_matches(kind, seen["message"])
    place = rf"kernel '[^']*{kernel}[^']*', block {as_text(block)}, thread {as_text(thread)}"
    assert_matches(place, seen["message"])
    assert seen["seconds"] < SLOWEST and seen["correct_afterwards"]


def as_text(index):
    return r"\(\d+, \d+, \d+\)" if index is None else r"\({}, {}, {}\)".format(*index)


faults = operators(load_hostile, "faults")


@on_simulator
@pytest.mark.parametrize("name", FAULTS)
def test_fault(faults, name, monkeypatch):
    monkeypatch.setenv(LIMIT, "0.1")
    check_fault(run(faults, name), name)


@pytest.mark.slow  # a process that imports PyTorch; the test above has the same faults
@on_simulator
@pytest.mark.parametrize("name", FAULTS)
def test_fault_in_a_process_without_pytest(reported, name):
    check_fault(reported[name], name)


@on_simulator
def test_interrupt(faults, monkeypatch):
    monkeypatch.setenv(LIMIT, "60")  # on a busy machine the other thread may be late
    seen = interrupted(faults, signal.default_int_handler)
    assert seen["type"] == "KeyboardInterrupt"
    assert seen["seconds"] < SLOWEST and seen["correct_afterwards"]


@on_simulator
def test_a_process_that_ignores_interrupts_is_not_interrupted(faults, monkeypatch):
    monkeypatch.setenv(LIMIT, "0.5")
    seen = interrupted(faults, signal.SIG_IGN)
    assert "interrupted" not in seen["message"]
    assert seen["seconds"] > 0.4  # until the time limit


@on_simulator
def test_no_fault_where_there_is_none(faults):
    assert fault_of(faults, "correct")["type"] == "none"


@on_simulator
def test_faults_again_and_again(faults):
    """Faults leak nothing: neither stacks nor handlers nor threads."""
    for _ in range(100):
        for name in ("null_write", "after_barrier", "exception_after_barrier"):
            assert fault_of(faults, name)["type"] == "KernelFault"
    assert correct_answer(faults)


# ----------------------------------------------------------------------------------------------------------------------
# Calls of the host API with bad arguments

API = ["double_free", "free_of_host_memory", "free_inside_allocation", "bad_device", "bad_copies", "huge_allocation"]
API += ["unused_events", "copy_beyond_symbol"]

misuse = operators(load_hostile, "faults" if SIMULATOR else "api_misuse")


@pytest.mark.parametrize("case", API)
def test_api_misuse(misuse, case):
    getattr(misuse, case)([], [])  # raises unless each call gave the error that is expected there


@on_simulator
def test_destroyed_handles(misuse):
    misuse.destroyed_handles([], [])
    out = torch.zeros(1, dtype=torch.int32)
    misuse.launch_on_destroyed_stream([out], [])
    assert out.item() == 0


if __name__ == "__main__":
    report()
