"""What the text asks of launches: what is missing is said in words, and a launch that is as asked is silent."""

import pytest
import torch

from helpers.practice.asked import Launched, each, missing, near_bound
from kernel_xray.report.facts import Launch, Line
from kernel_xray.report.report import Report


def launch(kernel="k", grid=(2, 1, 1), traced=2, **counts):
    counts = {"loading": 64, "storing": 64, "most_loads": 2, "most_stores": 1} | counts
    return Launch(kernel, "", 1, grid, (32, 1, 1), grid[0], traced, 32.0, 0, 0, **counts)


def line(space, kind, requests, lanes=32.0, kernel="k"):
    return Line("", 7, kernel, space, kind, requests, 1, 1, 1, 1, lanes, 4)


READS_TWICE = [line("global", "load", 2)]


def report(*launches, lines=()):
    return Report(None, list(lines), [], list(launches))


def test_counts_of_a_trace_that_ended_early_show_no_idle_thread_but_too_many_loads():
    idle = report(launch(storing=1, most_loads=9))
    assert "only 1 of 64 threads writes" in missing(idle, [Launched(storing=64)])
    idle = report(launch(storing=1, most_loads=9, cut_blocks=1))
    assert missing(idle, [Launched(storing=64, tiles=True)]) == ""
    assert "one thread loads 9 times" in missing(idle, [Launched(loads=2)])


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        (Launched(), []),
        (Launched(storing=64, loading=64, loads=2), []),
        (Launched(storing=1000), []),  # more than there are threads
        (Launched(grid=(2, 1, 1), block=(32, 1, 1)), []),
        (Launched(reads=64), [*READS_TWICE, line("global", "store", 99), line("global", "load", 9, 32, "l")]),
        (Launched(shared=64, tiles=True), [line("shared", "load", 2)]),
        (Launched(atomics=False), [line("shared", "atomic", 2), line("global", "atomic", 2, 32, "other")]),
    ],
)
def test_a_launch_that_is_as_asked_is_silent(asked, lines):
    assert missing(report(launch(), lines=lines), [asked]) == ""


@pytest.mark.parametrize(
    ("asked", "found", "lines", "said"),
    [
        (Launched(storing=64), {"storing": 1}, [], "only 1 of 64 threads writes global memory, where at least 64"),
        (Launched(loading=8), {"loading": 7}, [], "in k, only 7 of 64 threads read global memory, where at least 8"),
        (Launched(loads=4), {"most_loads": 5}, [], "one thread loads 5 times from global memory, where 4 would do"),
        (Launched(grid=(3, 1, 1)), {}, [], "k is launched with 2 blocks, where the caller asked for 3"),
        (Launched(block=(8, 4, 1)), {}, [], "k is launched with 32 threads a block, where the caller asked for 8 x 4"),
        (Launched(reads=64), {}, [line("global", "load", 3)], "k reads global memory 96 times, where 64 would do"),
        (Launched(shared=64), {}, [line("shared", "load", 3)], "access shared memory 96 times, where at most 64"),
        (Launched(tiles=True), {}, [line("global", "load", 3)], "k does not use shared memory"),
        (Launched(atomics=False), {}, [line("global", "atomic", 3)], "by atomic functions, in line 7"),
    ],
)
def test_what_is_missing_is_said(asked, found, lines, said):
    assert said in missing(report(launch(**found), lines=lines), [asked])


def test_near_the_bound_of_any_kernel():
    """100 cycles for 12,800 bytes: 1.2 times as many are near, and two for each line; shared memory counts as well."""
    asked = Launched(bytes=12_800)
    near = [line("global", "load", 100), line("global", "store", 23), line("shared", "load", 9)]  # a wavefront
    assert missing(report(launch(), lines=[*near, line("global", "load", 99, 32, "another")]), [asked]) == ""
    far = missing(report(launch(), lines=[*near, line("global", "load", 5)]), [asked])
    assert "busy for 129 cycles, where any kernel for this needs 100: " in far
    assert far.endswith("In line 7, a lane moves 4")
    assert missing(report(launch(traced=1), lines=9 * near), [asked]) == ""  # of a sample


def test_any_kernel_reads_its_inputs_and_writes_a_result_like_the_first():
    x, y = torch.zeros(1000, dtype=torch.float16), torch.zeros(1000)
    assert near_bound(0.5, x, y, per_thread=8) == [Launched(storing=125, bytes=2 * 2000 + 4000)]
    assert near_bound(x[:9], per_thread=8) == [Launched(storing=2)] and near_bound(x[:0], per_thread=8) == []


def test_the_number_of_launches():
    assert missing(report(), []) == ""
    assert "no kernel was launched" in missing(report(), [Launched()])
    twice = missing(report(launch(), launch(), launch("l")), [Launched()])
    assert twice == "the call launches 3 kernels (k 2 times, l), where 1 would do"
    assert missing(report(launch()), []) == "the call launches 1 kernel (k), where none would do"


def test_threads_of_a_sample_of_blocks_are_not_counted_for_all():
    assert missing(report(launch(grid=(99, 1, 1), storing=1)), [Launched(storing=64)]) == ""


def test_each_thread_owns_some_elements():
    assert each(0) == []
    assert each(17, 8) == [Launched(storing=3)]
