"""The window and the reserved memory of far tests: what runs, what is left out, and what stays as it was."""

import mmap

import pytest
import torch
from inputs import needs_far_memory

from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.checking.both_ends import check_far
from helpers.ladder.checking.compare import CheckFailed
from kernel_xray.runtime import far

pytestmark = needs_far_memory
BLOCK = 256
N = 10 * BLOCK + 5


@pytest.fixture(scope="module")
def add():
    return extension("vector_add", ("vector_add.cu",)).vector_add_simple


def test_only_the_first_and_the_last_blocks_run(add):
    x = torch.ones(N)
    with far.window(2) as opened:
        out = add(x, x)
    assert opened.left_out == 11 - 4
    assert torch.equal(out[: 2 * BLOCK], torch.full((2 * BLOCK,), 2.0))
    assert not out[2 * BLOCK : 9 * BLOCK].any()
    assert torch.equal(out[9 * BLOCK :], torch.full((BLOCK + 5,), 2.0))


def test_a_grid_that_fits_the_window_is_whole(add):
    x = torch.ones(4 * BLOCK)
    with far.window(2) as opened:
        out = add(x, x)
    assert opened.left_out == 0
    assert bool((out == 2).all())


def test_grids_are_whole_again_afterwards_even_after_an_error(add):
    x = torch.ones(N)
    with pytest.raises(RuntimeError, match="b must be"), far.window(1):
        add(x, x.double())
    assert bool((add(x, x) == 2).all())


def test_memory_is_reserved_zero_and_given_back(add):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    before = resident()
    with far.window():
        x = torch.empty(2**38)  # 1 TiB
        x[-1] = 3
        out = add(x, x)
        assert (x[2**37].item(), out[-1].item(), out[0].item()) == (0, 6, 0)
    assert resident() - before < 2**28
    del x, out
    assert torch.empty(2**20).untyped_storage().nbytes() == 2**22  # from the usual allocator


def test_an_index_that_loses_its_upper_bits_meets_no_other_tensor():
    with far.window():
        one, other = torch.empty(2**33), torch.empty(2**33)
    apart = abs(one.data_ptr() - other.data_ptr())
    assert apart >= 2**35 + 2 * 2**32 * 16


def call(function, n=2**33 + 7, reference=torch.add, **options):
    x = torch.empty(n, device="meta")
    return check_far(function, [x, x], reference=reference, name="sum", **options)


def test_results_are_compared_at_both_ends(add):
    assert call(add).shapes == [(2**33 + 7,)]
    with pytest.raises(CheckFailed, match=r"^sum: element \[0\] is \S+, expected"):
        call(add, reference=lambda a, b: a - 2 * b)

    def last(a, b):
        expected = a + b
        expected[-1] += 1
        return expected

    with pytest.raises(CheckFailed, match=r"^sum: element \[8,589,934,598\] is \S+, expected"):
        call(add, reference=last)


def test_a_call_whose_blocks_all_run_is_no_far_case(add):
    with pytest.raises(ValueError, match="all blocks ran; a far case needs more than 4"):
        call(add, n=700)
