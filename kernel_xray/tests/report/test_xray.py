"""X-ray: every planted fault is found at its line, block and thread, its fixed twin is silent, and costs are exact.

Two extensions hold all kernels. `python test_xray.py` prints all verdicts and costs as JSON; one test runs that with
clang++ and compares it with what g++ gave.
"""

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from simt_programs import line_marked, load_cases, operators

import kernel_xray
from kernel_xray.machine import cache, toolchain
from kernel_xray.report import facts, findings, picture
from kernel_xray.report.kernel_names import shown_name, shown_names
from kernel_xray.report.resident_warps import occupancy
from kernel_xray.report.run import xray
from kernel_xray.runtime.libsimt import compiler, is_clang
from kernel_xray.trace import tracer

HERE = Path(__file__).parent
CLANG = is_clang()
ORIGIN = (0, 0, 0)
zeros = torch.zeros
pytestmark = pytest.mark.usefixtures("few_objects")


def test_a_long_name_of_a_kernel_is_shown_with_fewer_template_arguments():
    assert shown_name("scale<Pair<float, 4>, 128>") == "scale<Pair<float, 4>, 128>"
    layouts = ", ".join(f"Layout<Shape<{i}, 16>, Stride<1, {i}>>" for i in range(9))
    kernel, other = (f"gemm<Shared<float, {layouts}>, Shape<64, 64>, {end}>" for end in ("float", "half"))
    assert re.fullmatch(r"gemm<Shared<…>, Shape<…>, float> #[0-9a-f]{8}", shown_name(kernel))
    alike = [shown_name(name) for name in (f"gemm<{layouts}>", f"gemm<{layouts}, {layouts}>")]
    assert alike[0].startswith("gemm<Layout<…>, ") and alike[1].startswith("gemm<…> #")
    assert shown_names([kernel, other, kernel]) == f"{shown_name(kernel)}, {shown_name(other)}"
    assert len(shown_name("k" * 500)) < 150


def load(name):
    return load_cases(HERE / f"{name}.cu", f"xray_{name}", traced=True)


faults = operators(load, "faults")
metrics = operators(load, "metrics")


def marked(name, file="faults"):
    return line_marked(HERE / f"{file}.cu", name)


def numbers(n):
    return torch.arange(n, dtype=torch.float32)


def bins():
    return torch.arange(256, dtype=torch.int32) % 8, torch.zeros(8, dtype=torch.int32)


def floats():
    return numbers(256), zeros(256)


# ----------------------------------------------------------------------------------------------------------------------
# Faults, all in block 0: number of the case in faults.cu, kind, thread (None: any), a part of the message, arguments.

CASES = {
    "before": (0, "out-of-bounds", ORIGIN, "reads 4 bytes, 4 bytes before the start of a (256 float32)", floats),
    "dynamic_shared": (1, "out-of-bounds", (5, 0, 0), "just past the end of the dynamic shared memory", floats),
    "row": (2, "out-of-bounds", (31, 0, 0), "index 32 is outside the array of type 'float", floats),
    "pointer": (3, "out-of-bounds", (28, 0, 0), "just past the end of a shared array of 128 bytes", floats),
    "local": (4, "out-of-bounds", (4, 0, 0), "index 4 is outside the array of type 'float", floats),
    "misaligned": (5, "misaligned", ORIGIN, "16 bytes at once, 8 bytes into a", floats),
    "unset_shared": (6, "uninitialised-read", (32, 0, 0), "a shared array of 256 bytes, 128 bytes into", floats),
    "reverse": (7, "race", ORIGIN, "races with the write by thread (63, 0, 0) of the same block", floats),
    "tree": (8, "race", ORIGIN, "of the same block: nothing orders the two", floats),
    "reuse": (9, "race", ORIGIN, "a read of a shared array", floats),
    "neighbour": (10, "race", ORIGIN, "a read of c (256 float32)", floats),
    "halo": (11, "race", (31, 0, 0), "by thread (0, 0, 0) of block (1, 0, 0)", floats),
    "histogram": (12, "race", None, "a read of c (8 int32)", bins),
    "atomic_then_read": (13, "race", None, "races with the atomic update", bins),
    "two_barriers": (14, "divergent-barrier", ORIGIN, "different __syncthreads", floats),
    "not_named": (16, "divergent-barrier", (16, 0, 0), "does not name the calling lane 16", floats),
    "absent_lane": (17, "divergent-barrier", (8, 0, 0), "lane 16, which takes no part", floats),
    "stuck": (18, "deadlock", ORIGIN, "thread 0 waits in __syncwarp with mask 0xffffffff", floats),
    "endless": (19, "time-limit", None, "did not end within 0.5 s of processor time", floats),
    "other_local": (20, "out-of-bounds", (3, 0, 0), "in a local variable of another thread", floats),
    "assert": (21, "assert", (7, 0, 0), "assertion failed: c == nullptr", floats),
    "trap": (22, "trap", (7, 0, 0), "__trap", floats),
    "exception": (23, "exception", (7, 0, 0), "an exception was thrown in the kernel: thrown", floats),
    "division": (24, "division-by-zero", (7, 0, 0), "division by zero", floats),
    "recursion": (25, "stack-overflow", (7, 0, 0), "stack overflow", floats),
    "wild": (26, "out-of-bounds", (7, 0, 0), "belongs to no tensor and no allocation", floats),
    "whole": (27, "out-of-bounds", (255, 0, 0), "writes 4 bytes just past the end of c", floats),
    "power": (28, "out-of-bounds", (255, 0, 0), "writes 4 bytes just past the end of c", floats),
    "quotient": (29, "out-of-bounds", (255, 0, 0), "writes 4 bytes just past the end of c", floats),
    "cosine": (30, "out-of-bounds", (255, 0, 0), "writes 4 bytes just past the end of c", floats),
    "heap": (31, "out-of-bounds", (7, 0, 0), "just past the end of an allocation of 16 bytes", floats),
}
REMARKS = {"gone": (15, "divergent-barrier", ORIGIN, "24 of the block's 64 threads have ended", floats)}
LINE_UNKNOWN = {"exception"}  # with g++ its line is that of the launch


def run(ops, name, fixed, **options):
    number, *_, arguments = (CASES | REMARKS)[name]
    options.setdefault("budget", 300_000)
    return xray(ops.run, *arguments(), number, fixed, **options)


@pytest.fixture(autouse=True)
def short_limit(monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")


def test_threads_that_have_ended_before_a_barrier_are_a_remark(faults):
    report = run(faults, "gone", fixed=False)
    (remark,) = report.remarks
    assert report.faults == [] and report.error is None
    assert (remark.kind, remark.line) == ("divergent-barrier", marked("gone"))
    assert remark.block == remark.thread == ORIGIN and REMARKS["gone"][3] in remark.message
    assert "REMARKS" in str(report) and "24 of the block" in report._repr_html_()
    fixed = run(faults, "gone", fixed=True)
    assert fixed.faults == fixed.remarks == [] and "REMARKS" not in str(fixed)


def test_what_exceeds_the_budget_is_a_remark_and_runs_on(faults):
    a, c = numbers(256), zeros(256)
    report = xray(faults.copy, a, c, 256, budget=100)
    assert report.faults == [] and report.remarks[0].kind == "budget"
    assert "the first 100 steps of this block" in report.remarks[0].message and "budget=" in report.remarks[0].message
    assert torch.equal(c, a)
    assert not report.complete and "; incomplete" in repr(report)
    assert "INCOMPLETE: the trace of copy_kernel ended early" in str(report) and "INCOMPLETE" in report._repr_html_()
    whole = xray(faults.copy, a, c, 256)
    assert whole.complete and whole.remarks == [] and "ncomplete" not in str(whole) + repr(whole)


def test_a_long_block_is_traced_on_while_there_is_time(faults, monkeypatch):
    a, c = numbers(256), zeros(256)
    whole = xray(faults.copy, a, c, 256, seed=1)
    monkeypatch.setattr(facts, "_STEPS", 100)
    on = xray(faults.copy, a, c, 256, seed=1, seconds=60)
    assert on.complete and on.lines == whole.lines and on.launches == whole.launches
    monkeypatch.setattr(facts, "_STEPS", 400)
    cut = xray(faults.copy, a, c, 256, seed=1, seconds=0)
    assert not cut.complete and cut.launches[0].cut_blocks == cut.launches[0].traced_blocks > 0
    assert 0 < sum(line.requests for line in cut.lines) < sum(line.requests for line in whole.lines)
    rows = [row for row in str(cut).splitlines() if "global" in row]
    assert rows and all(row.endswith("(incomplete)") for row in rows) and not any(line.complete for line in cut.lines)


def test_a_sample_and_a_faulty_run_are_not_complete(faults):
    a, c = numbers(256), zeros(256)
    assert not xray(faults.copy, a, c, 256, max_blocks=1).complete
    assert not run(faults, "wild", fixed=False).complete and run(faults, "wild", fixed=True).complete


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_found_and_its_fixed_twin_is_silent(faults, name):
    _, kind, thread, text, _ = CASES[name]
    report = run(faults, name, fixed=False)
    assert [fault.kind for fault in report.faults] == [kind], report.faults
    (fault,) = report.faults
    assert text in fault.message
    assert fault.block == ORIGIN and (thread is None or fault.thread == thread)
    assert Path(fault.file) == HERE / "faults.cu"
    if name not in LINE_UNKNOWN:
        assert fault.line == marked(name)
    assert run(faults, name, fixed=True).faults == []


@pytest.mark.slow
def test_verdicts_do_not_depend_on_the_seed(faults):
    def verdicts(name, seed):
        report = run(faults, name, fixed=False, seed=seed)
        return [(f.kind, f.line, f.block, CASES[name][2] and f.thread) for f in report.faults]

    for name in CASES:
        first = verdicts(name, 0)
        assert first and all(verdicts(name, seed) == first for seed in range(1, 20)), name
        assert not any(run(faults, name, fixed=True, seed=seed).faults for seed in range(5)), name


def test_the_same_seed_gives_the_same_report(faults):
    one, two = (str(run(faults, "histogram", fixed=False, seed=7)) for _ in range(2))
    assert one == two and "seed 7" in one
    others = {str(run(faults, "histogram", fixed=False, seed=seed)) for seed in range(10)}
    assert len(others) > 1, "the schedule is the same for every seed"


# -- bounds, per tensor and to the byte --------------------------------------------------------------------------------


def test_a_tensor_ends_at_its_last_byte(faults):
    assert not xray(faults.copy, numbers(1000), zeros(1000), 1000).faults
    (fault,) = xray(faults.copy, numbers(1000), zeros(1001), 1001).faults
    assert (fault.kind, fault.line) == ("out-of-bounds", marked("read"))
    assert (fault.block, fault.thread) == ((7, 0, 0), (104, 0, 0))
    assert "reads 4 bytes just past the end of a (1000 float32)" in fault.message
    (fault,) = xray(faults.copy, numbers(1001), zeros(1000), 1001).faults
    assert (fault.line, fault.thread) == (marked("write"), (104, 0, 0))
    assert "writes 4 bytes just past the end of c (1000 float32)" in fault.message


def test_a_write_into_the_neighbouring_allocation_is_found(faults):
    pool = torch.zeros(4096)  # as a caching allocator hands it out: nothing lies between but padding
    first, second = pool[:1000], pool[1024:2024]
    assert not xray(faults.copy, second, first, 1000).faults
    (fault,) = xray(faults.copy, second, first[:999], 1000).faults
    assert fault.kind == "out-of-bounds" and "past the end of c (999 float32)" in fault.message
    assert pool[999] == 0, "the access happened"


def test_a_view_ends_inside_its_storage(faults):
    pool = numbers(100)
    assert not xray(faults.copy, pool[10:20], zeros(10), 10).faults
    (fault,) = xray(faults.copy, pool[10:20], zeros(20), 11).faults
    assert "just past the end of a (10 float32)" in fault.message
    assert not xray(faults.copy, pool.view(10, 10)[:, 3], zeros(91), 91).faults  # strided: from its first to its last
    (fault,) = xray(faults.copy, pool.view(10, 10)[:, 3], zeros(92), 92).faults
    assert "the end of a (10 float32)" in fault.message


def test_tensors_inside_other_arguments_and_beside_them(faults):
    pair, outside = {"from": [numbers(10)], "to": zeros(10)}, zeros(10)

    def copy(tensors, n):
        faults.copy(tensors["from"][0], tensors["to"], n)

    def into_outside(tensor, n):
        faults.copy(tensor, outside, n)

    assert not xray(copy, pair, 10).faults
    (fault,) = xray(copy, pair, 11).faults
    assert "the end of a (10 float32)" in fault.message
    assert not xray(into_outside, numbers(10), 10).faults
    (fault,) = xray(into_outside, numbers(11), 11).faults
    assert "the end of c (10 float32)" in fault.message


def test_tensors_that_no_argument_holds_are_looked_for(faults):
    a, c = numbers(10), zeros(10)
    operator = torch.ops.xray_faults.copy  # not through what load returned

    assert not xray(lambda n: operator(a, c, n), 10).faults
    (fault,) = xray(lambda n: operator(a, c, n), 11).faults
    assert fault.kind == "out-of-bounds" and "a tensor that is not an argument" in fault.message


def test_tensors_that_the_extension_allocates(faults):
    a = numbers(100)
    assert torch.equal(xray(faults.copy_of, a, 100).result, a)
    (fault,) = xray(faults.copy_of, numbers(101)[:100], 101).faults
    assert "the end of a (100 float32)" in fault.message

    def through_python(n, more):
        c = torch.empty(n)
        faults.copy(torch.ones(n + more), c, n + more)
        return c

    assert torch.equal(xray(through_python, 100, 0).result, torch.ones(100))
    (fault,) = xray(through_python, 100, 1).faults
    assert "just past the end of a tensor of 400 bytes that the function allocated" in fault.message


def test_memory_of_cuda_malloc_and_freed_memory(faults):
    assert not xray(faults.cuda_malloc, numbers(100), 100).faults

    def twice(a):
        faults.cuda_malloc(a, 200)
        faults.cuda_malloc(a, 99)

    for seed in range(15, 30):  # in some of these schedules the thread that strays is the first to come there
        (fault,) = xray(twice, numbers(100), seed=seed).faults
        assert (fault.kind, fault.line) == ("out-of-bounds", marked("write"))
        assert "just past the end of an allocation of 396 bytes" in fault.message
    assert not xray(faults.freed, numbers(100), True).faults
    (fault,) = xray(faults.freed, numbers(100), False).faults
    assert (fault.kind, fault.line) == ("out-of-bounds", marked("write"))


def test_an_index_outside_its_array_in_host_code(faults):
    assert xray(faults.host_index, zeros(1), 3).result == 14
    (fault,) = xray(faults.host_index, zeros(1), 5).faults
    assert (fault.kind, fault.line, fault.kernel) == ("out-of-bounds", marked("host"), "")
    assert "index 5" in fault.message and "in host code" in fault.message


def test_a_report_of_a_fault_does_not_keep_the_arguments_alive(faults):
    """Where a stray access falls into memory that lives on, it is not seen to stray."""
    a = numbers(100)
    alive = weakref.ref(a)
    gc.disable()
    try:
        report = xray(faults.copy, a, zeros(101), 101)
        del a
        assert report.faults and report.error and alive() is None
    finally:
        gc.enable()


# -- what was never written --------------------------------------------------------------------------------------------


def test_fresh_global_memory(faults):
    assert xray(faults.total, numbers(100), True).result == 4950
    (fault,) = xray(faults.total, numbers(100), False).faults
    assert (fault.kind, fault.line) == ("uninitialised-read", marked("unset_global"))


def test_what_pytorch_wrote_counts_as_written(faults):
    def copy_of(fresh):
        c = torch.empty(100)
        faults.copy(fresh(100), c, 100)
        return c

    for fresh in (zeros, torch.rand, numbers, lambda n: torch.full((n,), float("nan")), torch.empty(100).new_ones):
        assert not xray(copy_of, fresh).faults
    (fault,) = xray(copy_of, torch.empty).faults
    assert (fault.kind, fault.line) == ("uninitialised-read", marked("read"))


# -- between blocks ----------------------------------------------------------------------------------------------------

WITHOUT_FENCE, WITH_FENCE, ALL_FENCE = 0, 1, 2


@pytest.mark.parametrize("form", [WITH_FENCE, ALL_FENCE])
def test_the_last_block_may_read_what_others_have_fenced(faults, form):
    for seed in range(20):
        report = xray(faults.last_block, numbers(256), torch.zeros(1, dtype=torch.int32), form, seed=seed)
        assert report.faults == [] and report.result == 32640


def test_without_the_fence_it_may_not(faults):
    for seed in range(20):
        report = xray(faults.last_block, numbers(256), torch.zeros(1, dtype=torch.int32), WITHOUT_FENCE, seed=seed)
        (fault,) = report.faults
        assert (fault.kind, fault.line) == ("race", marked("last_block"))


# ----------------------------------------------------------------------------------------------------------------------
# Costs. Every number is worked out by hand: 32-byte sectors, 32 banks of 4 bytes.

# (size, stride, offset, lanes) of elements: sectors, and the fewest that could hold the bytes asked for
GLOBAL = {
    **{(size, 1, 0, 32): (size, size) for size in (1, 2, 4, 8, 16)},
    **{(size, 1, 1, 32): (size + 1, size) for size in (1, 2, 4, 8, 16)},
    (1, 2, 0, 32): (2, 1),
    (1, 8, 0, 32): (8, 1),
    (1, 32, 0, 32): (32, 1),
    (2, 2, 0, 32): (4, 2),
    (2, 8, 0, 32): (16, 2),
    (2, 32, 0, 32): (32, 2),
    (4, 2, 0, 32): (8, 4),
    (4, 8, 0, 32): (32, 4),
    (4, 32, 0, 32): (32, 4),
    (8, 2, 0, 32): (16, 8),
    (8, 8, 0, 32): (32, 8),
    (16, 2, 0, 32): (32, 16),  # every other half of a sector
    (16, 32, 0, 32): (32, 16),
    (4, 1, 0, 1): (1, 1),
    (4, 1, 0, 20): (3, 3),
    (4, 1, 7, 20): (4, 3),
    (16, 1, 0, 5): (3, 3),
}


@pytest.mark.parametrize("access", GLOBAL)
def test_sectors(metrics, access):
    size, stride, offset, lanes = access
    memory = (1 << 15) + 64
    a, c = torch.zeros(2, memory, dtype=torch.uint8).unbind()
    report = xray(metrics.global_memory, a, c, size, stride, offset, lanes)
    assert report.faults == []
    for kind in ("load", "store"):
        (record,) = [r for r in report.lines if r.line == marked(kind, "metrics")]
        assert (record.space, record.kind, record.size) == ("global", kind, size)
        assert (record.requests, record.active_lanes) == (1, lanes)
        assert (record.sectors, record.ideal_sectors) == GLOBAL[access]
        assert record.wavefronts == 0


def test_a_view_keeps_its_place_in_the_storage(metrics):
    a, c = torch.zeros(2, 4096).unbind()
    for first, sectors in ((0, 4), (1, 5), (7, 5), (8, 4)):
        report = xray(metrics.global_memory, a[first:], c, 4, 1, 0, 32)
        assert [r.sectors for r in report.lines if r.kind == "load"] == [sectors]


def test_broadcast_and_scatter(metrics):
    a, c = numbers(4096), zeros(32)

    def loads(index):
        report = xray(metrics.gather, a, index.int(), c)
        assert torch.equal(c, a[index]) and not report.faults
        (record,) = [r for r in report.lines if r.line == marked("gather", "metrics")]
        return record.sectors, record.ideal_sectors

    lane = torch.arange(32)
    assert loads(lane * 0 + 5) == (1, 1)
    assert loads(lane // 2) == (2, 2)
    assert loads(31 - lane) == (4, 4)
    assert loads(lane * 128) == (32, 4)
    assert loads((lane * 5) % 32) == (4, 4)
    assert loads(torch.where(lane < 16, lane, lane + 100)) == (5, 4)


# (size, stride, offset, lanes): wavefronts, and those without conflicts
SHARED = {
    **{(size, 1, 0, 32): (max(1, size // 4),) * 2 for size in (1, 2, 4, 8, 16)},
    **{(4, stride, 0, 32): (stride, 1) for stride in (1, 2, 4, 8, 16, 32)},
    (4, 33, 0, 32): (1, 1),
    (4, 3, 0, 32): (1, 1),
    (4, 6, 5, 32): (2, 1),
    (4, 0, 9, 32): (1, 1),  # all lanes want one word
    (4, 32, 0, 20): (20, 1),
    (1, 8, 0, 32): (2, 1),
    (2, 32, 0, 32): (16, 1),
    (8, 2, 0, 32): (4, 2),  # two half-warps, each with two words in every other pair of banks
    (8, 16, 0, 32): (32, 2),
    (8, 17, 0, 32): (2, 2),
    (8, 0, 0, 32): (1, 1),
    (16, 0, 0, 32): (2, 2),
    (8, 1, 0, 16): (1, 1),
    (16, 2, 0, 32): (8, 4),
    (16, 8, 0, 32): (32, 4),
    (16, 9, 0, 32): (4, 4),
    (16, 1, 0, 9): (2, 2),
}


@pytest.mark.parametrize("access", SHARED)
def test_wavefronts(metrics, access):
    size, stride, offset, lanes = access
    report = xray(metrics.shared_memory, torch.zeros(512, dtype=torch.uint8), size, stride, offset, lanes)
    assert report.faults == []
    (read,) = [r for r in report.lines if r.line == marked("read", "metrics")]
    assert (read.space, read.kind, read.size, read.requests) == ("shared", "load", size, 1)
    assert (read.wavefronts, read.ideal_wavefronts) == SHARED[access]
    assert read.sectors == 0
    (fill,) = [r for r in report.lines if r.line == marked("fill", "metrics")]
    assert fill.kind == "store"
    if not (CLANG and size == 16):  # clang returns a float4 in two registers and stores it in two pieces
        assert (fill.requests, fill.efficiency) == (16384 // size // 32, 1.0)


# As an H200 counts: wavefronts of a request in which lane i reads element i / divide % modulus, for 4, 8 and 16 bytes.
PAIRS = {
    (2, 32): (1, 1, 2),  # neighbours read the same
    (4, 32): (1, 1, 2),
    (1, 1): (1, 1, 2),  # all read the same
    (1, 2): (1, 1, 2),  # lanes that are two apart read the same
    (1, 4): (1, 2, 4),
    (1, 8): (1, 2, 4),
    (1, 16): (1, 2, 4),
    (1, 32): (1, 2, 4),
}


@pytest.mark.parametrize("pattern", PAIRS)
def test_wide_reads_of_pairs_are_served_together(metrics, pattern):
    for size, wavefronts in zip((4, 8, 16), PAIRS[pattern], strict=True):
        report = xray(metrics.shared_memory, torch.zeros(512, dtype=torch.uint8), size, 1, 0, 32, *pattern)
        (read,) = [r for r in report.lines if r.line == marked("read", "metrics")]
        assert (read.wavefronts, read.ideal_wavefronts) == (wavefronts, wavefronts)
        text = repr(report.plot(read.line)) if pattern == (2, 32) else picture._title(read)  # without drawing it
        assert f": {wavefronts} wavefront" in text
    # With a gap between, each pair of phases has conflicts: as many wavefronts as before.
    report = xray(metrics.shared_memory, torch.zeros(512, dtype=torch.uint8), 16, 2, 0, 32, 2, 32)
    (read,) = [r for r in report.lines if r.line == marked("read", "metrics")]
    assert (read.wavefronts, read.ideal_wavefronts) == (4, 2)


@pytest.mark.parametrize(("width", "wavefronts"), [(32, 1024), (33, 32)])
def test_padding_ends_the_conflicts_of_a_transpose(metrics, width, wavefronts):
    a, c = numbers(1024), zeros(1024)
    report = xray(metrics.transpose, a, c, width)
    assert torch.equal(c.view(32, 32), a.view(32, 32).T) and not report.faults
    costs = {(r.line, r.space, r.kind): (r.requests, r.cost) for r in report.lines}
    rows, columns = marked("rows", "metrics"), marked("columns", "metrics")
    assert costs == {
        (rows, "global", "load"): (32, 128),
        (rows, "shared", "store"): (32, 32),
        (columns, "shared", "load"): (32, wavefronts),
        (columns, "global", "store"): (32, 128),
    }
    assert (report.worst is None) == (width == 33)


# What each line does: its mark, the kind of access, requests, mean of the active lanes, sectors
COUNTED = {
    "atomics are one access and no race": (
        (zeros(1), zeros(32, dtype=torch.int32), 0),
        {"atomic_float": ("atomic", 1, 32, 1), "atomic_int": ("atomic", 1, 32, 4)},
    ),
    "divergent branches are requests of their own": (
        (zeros(1), zeros(64), 1),
        {"quarter": ("store", 1, 8, 4), "rest": ("store", 1, 24, 4), "together": ("store", 1, 32, 4)},
    ),
    "loops of different length stay in step": (  # round i has 32 - i lanes, which read one element
        (numbers(32), zeros(32), 2),
        {"trip": ("load", 32, 16.5, 32), "after": ("store", 1, 32, 4)},
    ),
    "a branch now and then brings no lane out of step": (  # lane i % 32 in round i
        ((torch.arange(800)[:, None] % 32 == torch.arange(32)) * (1 + numbers(800)[:, None]), zeros(32), 17),
        {"round": ("load", 800, 32, 3200), "after_rounds": ("store", 1, 32, 4)},
    ),
    "function calls bring lanes together again": (  # 8 lanes, then all 32
        (numbers(64), zeros(32), 3),
        {"in_function": ("load", 2, 20, 5), "after_call": ("store", 1, 32, 4)},
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), COUNTED.values(), ids=COUNTED)
def test_accesses_of_a_line(metrics, arguments, expected):
    report = xray(metrics.run, *arguments)
    assert report.faults == []
    found = {r.line: (r.kind, r.requests, r.active_lanes, r.sectors) for r in report.lines}
    assert found == {marked(name, "metrics"): counts for name, counts in expected.items()}
    if "quarter" in expected:
        assert 16 < report.launches[0].active_lanes < 32


@pytest.mark.parametrize(
    ("case", "size", "requests"),
    [(5, 16, 1), (6, 16, 1), (7, 8, 1)]
    + [
        pytest.param(8, 4, 4, marks=pytest.mark.skipif(CLANG, reason="clang copies a struct of 4 floats at once")),
    ],
)
def test_vectors_move_whole(metrics, case, size, requests):
    a, c = numbers(128), zeros(128)
    report = xray(metrics.run, a, c, case)
    assert not report.faults and c.count_nonzero()
    assert {(r.kind, r.size, r.requests) for r in report.lines} == {("load", size, requests), ("store", size, requests)}


def test_16_bit_numbers_that_are_passed_by_value_are_seen(metrics):
    """g++ tells its hooks nothing of them where a function is not inlined, and does not inline what can be replaced."""
    a, c = numbers(32).repeat(2).bfloat16(), zeros(32)
    report = xray(metrics.run, a, c, 9)
    assert torch.equal(c, 3 * numbers(32)) and not report.faults
    reads = {r.line: (r.size, r.requests, r.sectors) for r in report.lines if r.kind == "load"}
    assert reads == {marked(name, "metrics"): (2, 1, 2) for name in ("by_value", "by_value_again")}


def test_a_sample_tells_what_all_blocks_cost(faults):
    n = 128 * 300 + 40  # the last of 301 blocks costs less
    a, c = numbers(n), zeros(n)
    whole, sample = xray(faults.copy, a, c, n, max_blocks=301), xray(faults.copy, a, c, n, max_blocks=20)
    for all_blocks, some in zip(whole.lines, sample.lines, strict=True):
        assert (all_blocks.all_blocks, all_blocks.error) == (all_blocks.cost, 0) and some.cost < all_blocks.cost / 10
        assert 0 < abs(some.all_blocks - all_blocks.cost) <= 2 * some.error < 0.1 * all_blocks.cost
        assert f"all blocks: about {some.all_blocks:,} sectors, ± {2 * some.error:,}" in str(sample)
    few = xray(faults.copy, a, c, n, blocks=7)  # between two that cost the same, none is run unless all do
    for all_blocks, some in zip(whole.lines, few.lines, strict=True):
        assert 0 < abs(some.all_blocks - all_blocks.cost) <= 2 * some.error < 0.03 * all_blocks.cost
    assert few.launches[0].scale == pytest.approx(
        sum(x.cost for x in whole.lines) / sum(x.cost for x in few.lines), rel=0.005
    )
    assert "all blocks" in sample._repr_html_() and "all blocks:" not in str(whole) + whole._repr_html_()
    even = xray(faults.copy, a, c, 128 * 300, max_blocks=20)
    assert {(line.all_blocks, line.error) for line in even.lines} == {(128 * 300 * 4 // 32, 0)}


def test_large_launches_are_sampled_and_say_so(metrics):
    c = zeros(1024 * 32)
    report = xray(metrics.run, zeros(1), c, 4, max_blocks=10)
    assert torch.equal(c, numbers(1024 * 32)), "blocks that are not traced run as well"
    (launch,) = report.launches
    assert (launch.blocks, launch.traced_blocks) == (1024, 10)
    assert [r.requests for r in report.lines] == [10]
    assert "10 of 1024 blocks traced" in str(report) and "of the traced blocks only" in str(report)
    assert "10 of 1024 blocks traced" in report._repr_html_()
    whole = xray(metrics.run, zeros(1), c, 4, max_blocks=1024)
    assert [r.requests for r in whole.lines] == [1024] and "Counts are of all blocks" in str(whole)


# ----------------------------------------------------------------------------------------------------------------------
# Calls


def test_a_traced_function_raises_its_first_fault_outside_xray(faults):
    c = zeros(10)
    faults.copy(numbers(10), c, 10)
    assert torch.equal(c, numbers(10))
    with pytest.raises(kernel_xray.KernelFault, match=r"just past the end of a \(10 float32\)") as caught:
        faults.copy(numbers(10), zeros(11), 11)
    assert caught.value.kind == "out-of-bounds"
    with pytest.raises(kernel_xray.KernelFault, match="races with"):
        faults.run(*floats(), CASES["reverse"][0], False)


def test_a_fault_ends_the_function_and_other_errors_are_its_own(faults):
    reached = []

    def faulty():
        faults.copy(numbers(10), zeros(11), 11)
        reached.append(True)

    def raises():
        raise KeyError("mine")

    report = xray(faulty)
    assert report.faults and report.result is None and not reached
    assert isinstance(report.error, kernel_xray.KernelFault)
    with pytest.raises(KeyError, match="mine"):
        xray(raises)
    assert not xray(faults.copy, numbers(10), zeros(10), 10).faults, "the next X-ray works"


@pytest.mark.slow
def test_the_time_limit_ends_a_block_before_its_budget(faults, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.3")
    for _ in range(5):
        (fault,) = run(faults, "endless", fixed=False, budget=10**15).faults
        assert fault.kind == "time-limit" and "time limit" in fault.message
        assert fault.line - marked("endless") in (0, 1), "where in the loop it was is chance"
    assert not run(faults, "endless", fixed=True).faults


def test_bad_calls_of_xray(faults):
    with pytest.raises(TypeError, match="function is 3"):
        xray(3)
    with pytest.raises(ValueError, match="max_blocks is 0"):
        xray(faults.copy, max_blocks=0)
    with pytest.raises(ValueError, match="budget is -1"):
        xray(faults.copy, budget=-1)
    with pytest.raises(RuntimeError, match="xray was called by the function that it X-rays"):
        xray(lambda: xray(faults.copy, numbers(1), zeros(1), 1))


def _host_writes():
    """What host code may do to memory that it has just allocated, each in its own way."""
    random = torch.Generator().manual_seed(0)
    shape = (37, 53)
    yield torch.randn(64, 777)
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        yield torch.randn(shape, generator=random).to(dtype)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int64):
        yield torch.randint(-128 if dtype.is_signed else 0, 127, shape, dtype=dtype, generator=random)
    yield torch.rand(shape) < 0.5
    yield torch.full(shape, float("nan"))
    yield torch.full(shape, -1)
    yield torch.arange(1000).flip(0)
    yield torch.cat([torch.zeros(3), torch.ones(5)])
    yield torch.tensor([1.5, 2.5, 3.5], dtype=torch.float16)
    yield torch.linspace(0, 1, 999).to(torch.complex64)
    filled = torch.empty(shape)
    filled.T.copy_(torch.rand(53, 37))  # column by column
    yield filled
    for n in range(1, 34):
        yield torch.randint(0, 256, (n,), dtype=torch.uint8, generator=random)
        halves = torch.empty(n, dtype=torch.float16)
        for i in range(n):
            halves[i] = i
        yield halves


def test_what_the_host_has_written_counts_as_written(faults):
    def run():
        sum = torch.zeros(1, dtype=torch.int64)
        for tensor in _host_writes():
            faults.bytes(tensor, sum, tensor.numel() * tensor.element_size())

    for seed in range(3):
        assert xray(run, seed=seed).faults == []


def test_bytes_equal_to_the_fill_count_as_written_if_the_host_wrote_beside_them(faults):
    """The fill shows in memory that nothing has written; copied into data, it is data."""
    found = []

    def run():
        fill = torch.empty(64, dtype=torch.uint8)
        for period in (2, 4, 6):
            mixed = torch.zeros(64, dtype=torch.uint8)
            for start in range(0, 64 - period, 8):
                mixed[start : start + period] = fill[start : start + period]
            faults.bytes(mixed, torch.zeros(1, dtype=torch.int64), 64)
        found.append(int(fill[0]))

    assert xray(run).faults == [] and found


@pytest.mark.parametrize("size", [2, 3, 4, 7, 8, 9, 12, 16, 30, 64, 1000])
def test_what_nothing_has_written_is_found_in_every_size(faults, size):
    def run(written):
        memory = torch.empty(size, dtype=torch.uint8)
        memory[:written] = 7
        faults.bytes(memory, torch.zeros(1, dtype=torch.int64), size)

    (fault,) = xray(run, 0).faults
    assert (fault.kind, fault.line) == ("uninitialised-read", marked("byte"))
    assert xray(run, size).faults == []
    if size > 16:
        (fault,) = xray(run, size // 2).faults
        assert fault.kind == "uninitialised-read"


def test_without_traced_kernels_a_report_is_empty():
    report = xray(torch.add, numbers(3), numbers(3))
    assert torch.equal(report.result, 2 * numbers(3))
    assert (report.lines, report.faults, report.launches) == ([], [], [])
    assert "no traced kernel" in str(report) and "no traced kernel" in repr(report)
    with pytest.raises(ValueError, match="nothing was recorded"):
        report.plot()


# ----------------------------------------------------------------------------------------------------------------------
# The report


def test_the_text_names_lines_and_the_worst_of_them(metrics):
    report = xray(metrics.transpose, numbers(1024), zeros(1024), 32, seed=3)
    text = str(report)
    (worst,) = [line for line in text.splitlines() if "<- worst" in line]
    assert "shared load of 4 bytes" in worst and "1024 wavefronts" in worst and " 3%" in worst
    assert "tile[threadIdx.x][threadIdx.y]" in text and "Schedule drawn from seed 3." in text
    assert max(map(len, text.splitlines())) <= 120
    again = xray(metrics.transpose, numbers(1024), zeros(1024), 32, seed=4)
    assert repr(report) == repr(again) == "<X-ray of transpose_kernel<32>: no faults; 4 kinds of access>"
    padded = xray(metrics.transpose, numbers(1024), zeros(1024), 33)
    assert "<- worst" not in str(padded)


def test_the_html_shows_source_and_faults_and_loads_nothing(faults, metrics):
    page = xray(metrics.transpose, numbers(1024), zeros(1024), 32)._repr_html_()
    assert page.count("worst") == 1 and "1,024 wavefronts" in page
    assert "tile[threadIdx.x][threadIdx.y]" in page
    assert not re.search(r"https?:|src=|<script|@import|url\(", page)
    faulty = run(faults, "reverse", fixed=False)._repr_html_()
    assert ">race</b>" in faulty and "tile[63 - threadIdx.x]" in faulty
    assert "&lt;-" in faulty, "the source's own characters are escaped"


def test_the_picture(metrics):
    report = xray(metrics.transpose, numbers(1024), zeros(1024), 32)
    worst = repr(report.plot())
    assert "32 wavefronts a request, where 1 would do: efficiency 3%" in worst and "\n" not in worst
    both = repr(report.plot(marked("columns", "metrics")))
    assert "4 sectors a request, the fewest possible" in both and "32 wavefronts" in both
    lines = f"no access was recorded on line 1; there are some on {report.lines[0].line},"
    with pytest.raises(ValueError, match=lines):
        report.plot(1)
    image, _ = report.plot()._repr_png_()
    assert image.startswith(b"\x89PNG")


@pytest.mark.parametrize("access", list(GLOBAL)[:15:3])
def test_the_picture_agrees_with_the_count(metrics, access):
    a, c = torch.zeros(2, (1 << 15) + 64, dtype=torch.uint8).unbind()
    report = xray(metrics.global_memory, a, c, *access)
    sectors, ideal = GLOBAL[access]
    named = repr(report.plot(marked("load", "metrics")))
    assert f": {sectors} sector" in named and (sectors == ideal) == ("fewest" in named)


# ----------------------------------------------------------------------------------------------------------------------
# Occupancy and the benchmark


def test_occupancy_by_hand():
    full = occupancy(256, 32)  # 8 warps a block: 8 blocks fill 64 warps and 65,536 registers alike
    assert (full.blocks, full.warps, full.share, full.limits) == (8, 64, 1.0, ("warps", "registers"))
    assert "theoretical occupancy 100%" in str(full)
    few = occupancy(256, 33)  # 33 * 32 registers are given out as 1,280 a warp: 48 warps
    assert (few.blocks, few.limits) == (6, ("registers",))
    assert occupancy(32, 16).limits == ("blocks",)
    shared = occupancy(128, 32, 48 * 1024)  # with the kilobyte that the system takes, 49 of 164
    assert (shared.blocks, shared.limits) == (3, ("shared memory",))
    assert occupancy(128, 32, 48 * 1024, "9.0").blocks == 4
    assert occupancy(1024, 128).blocks == 0  # more registers than there are: it cannot be launched
    bad = {"threads": (0, 32), "registers": (32, 256), "shared": (32, 32, -1), "capability": (32, 32, 0, "1.0")}
    for name, arguments in bad.items():
        with pytest.raises(ValueError, match=f"{name} is"):
            occupancy(*arguments)


def test_occupancy_agrees_with_nvidias_header(tmp_path):
    nvcc = toolchain.find_nvcc()
    folders = [Path(nvcc).resolve().parent.parent / "include"] if nvcc else []
    folders += sorted(Path("/usr/local").glob("cuda*/include"))
    include = next((folder for folder in folders if (folder / "cuda_occupancy.h").exists()), None)
    if include is None:
        pytest.skip("needs cuda_occupancy.h of a CUDA toolkit")
    program = tmp_path / "occupancy"
    subprocess.run([*compiler().split(), f"-I{include}", HERE / "occupancy.cpp", "-o", program], check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) > 10_000
    for line in lines:
        capability, threads, registers, shared, blocks = line.split()
        found = occupancy(int(threads), int(registers), int(shared), capability)
        assert found.blocks == int(blocks), line


@pytest.mark.slow  # nvcc and ptxas, for two architectures; the arithmetic with what they print is in the tests above
def test_occupancy_of_what_was_launched(metrics):
    report = xray(metrics.transpose, numbers(1024), zeros(1024), 33)
    if toolchain.find_nvcc() is None:
        with pytest.raises(RuntimeError, match="nvcc is not installed"):
            report.occupancy()
        return
    assert "theoretical" not in str(report)
    ampere, hopper = report.occupancy()
    assert (ampere.kernel, ampere.capability, hopper.capability) == ("transpose_kernel<33>", "8.0", "9.0")
    assert (ampere.threads, ampere.shared, ampere.blocks) == (1024, 33 * 32 * 4, 2)
    assert 8 <= ampere.registers <= 40
    assert str(report).count("theoretical occupancy 100%") == report._repr_html_().count("theoretical") == 2


# ----------------------------------------------------------------------------------------------------------------------
# Compilers


def everything():
    """All verdicts and the costs that do not differ between compilers, as plain data."""
    faults, metrics = load("faults"), load("metrics")
    found = {}
    for name in CASES:
        for fixed in (False, True):
            report = run(faults, name, fixed)
            found[f"{name} {'fixed' if fixed else 'wrong'}"] = [
                [f.kind, 0 if name in LINE_UNKNOWN else f.line] for f in report.faults
            ]
    a, c = torch.zeros(2, (1 << 15) + 64, dtype=torch.uint8).unbind()
    for access in GLOBAL:
        report = xray(metrics.global_memory, a, c, *access)
        found[f"global {access}"] = [[r.line, r.kind, r.requests, r.sectors, r.ideal_sectors] for r in report.lines]
    for access in SHARED:
        lines = xray(metrics.shared_memory, c, *access).lines
        found[f"shared {access}"] = [[r.requests, r.wavefronts] for r in lines if r.line == marked("read", "metrics")]
    for case in (0, 1, 2, 3, 5, 6, 7):
        out = torch.zeros(128, dtype=torch.int32 if case == 0 else torch.float32)
        lines = xray(metrics.run, numbers(128), out, case).lines
        found[f"case {case}"] = [[r.line, r.kind, r.requests, r.cost, r.active_lanes] for r in lines]
    return found


def test_copies_that_a_compiler_makes_of_one_barrier_are_one():
    finding = {"kind": "divergent-barrier", "kernel": "k", "message": "m", "pc": 1, "other_pc": 2, "rank": 0}
    finding |= {"position": 0, "remark": 0, "block": [0, 0, 0], "thread": [0, 0, 0], "file": "", "line": 0}
    assert findings._faults([finding], {1: ("k.cu", 5), 2: ("k.cu", 5)}, {}, []) == ([], [])
    (fault,), _ = findings._faults([finding], {1: ("k.cu", 5), 2: ("k.cu", 6)}, {}, [])
    assert "the other place is k.cu:6" in fault.message


@pytest.mark.slow
@pytest.mark.skipif(CLANG or not shutil.which("clang++"), reason="needs g++ as the compiler and clang++ beside it")
def test_clang_gives_what_gcc_gives():
    environment = {**os.environ, "CXX": "clang++", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    ours, theirs = json.loads(json.dumps(everything())), json.loads(done.stdout)
    assert {k: v for k, v in theirs.items() if ours[k] != v} == {}
    assert sum(bool(v) for k, v in theirs.items() if "wrong" in k) == len(CASES)


if __name__ == "__main__":
    print(json.dumps(everything()))


class Wrapped(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} was called")


def wrapped():
    return torch.Tensor._make_subclass(Wrapped, torch.empty(4))


def fake():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(4)


# To make a fake one takes seconds of imports; what tells both from others is the same.
@pytest.mark.parametrize("make", [wrapped, pytest.param(fake, marks=pytest.mark.slow)])
def test_fake_tensors_are_not_asked_for_their_memory(make, recwarn):
    fake = make()
    real = torch.empty(4)
    live = list(tracer._live_tensors())
    assert any(tensor is real for tensor in live) and not any(tensor is fake for tensor in live)
    assert not recwarn.list


TWO_CACHES = """
import os, sys
import torch, kernel_xray

source, traced, plain = sys.argv[1:]
os.environ["KERNEL_XRAY_CACHE"] = plain
scale = kernel_xray.load("plain", [source], is_python_module=False).scale
os.environ["KERNEL_XRAY_CACHE"] = traced
past_end = kernel_xray.load("traced", [source], is_python_module=False, traced=True).past_end
for _ in range(2):
    scale(torch.ones(8), 2.0, 1)
    report = kernel_xray.xray(past_end, torch.zeros(8), seed=0)
    print([fault.kind for fault in report.faults])
"""


@pytest.mark.slow
def test_kernels_of_two_caches_have_one_simulator(tmp_path):
    """A second copy of its library would be told to trace, and see nothing: the kernels are bound to the first."""
    for folder in (*cache.root().glob("simt-*"), *cache.root().glob("headers-*")):
        shutil.copytree(folder, tmp_path / folder.name)
    environment = {**os.environ, "KERNEL_XRAY_TARGET": "simulator"}
    source = HERE.parent / "build" / "strided.cu"
    command = [sys.executable, "-c", TWO_CACHES, str(source), str(cache.root()), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["['out-of-bounds']"] * 2, done.stdout + done.stderr


def test_what_each_thread_does_is_counted_and_the_last_writers_are_kept_on_request(metrics):
    a, c = numbers(64), zeros(64)
    report = xray(metrics.global_memory, a, c, 4, 1, 0, 17, seed=0, who_wrote=True)
    (launch,) = report.launches
    assert (launch.loading, launch.storing, launch.most_loads, launch.most_stores) == (17, 17, 1, 1)
    assert [(w.name, w.offset, w.size, w.block, w.thread) for w in report.writers] == [
        ("c (64 float32)", 4 * i, 4, 0, i) for i in range(17)
    ]
    assert not xray(metrics.global_memory, a, c, 4, 1, 0, 17, seed=0).writers
