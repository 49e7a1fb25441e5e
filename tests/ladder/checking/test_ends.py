"""The ends of long tensors: what is kept of them, and which mistakes a comparison of the ends finds."""

import pytest
import torch

from helpers.ladder.checking.both_ends import assert_ends_close
from helpers.ladder.checking.compare import CheckFailed
from kernel_xray.runtime.ends import LONG, ends, fill_ends

N = LONG + 100


def test_long_dimensions_keep_their_ends_and_short_ones_everything():
    x = torch.arange(3 * N).view(3, N)
    assert torch.equal(ends(x, 4), torch.cat([x[:, :4], x[:, -4:]], 1))
    assert torch.equal(ends(x.t(), 4), ends(x, 4).t())
    assert torch.equal(ends(x[:, :LONG], 4), x[:, :LONG])
    assert ends(torch.tensor(5.0), 4).item() == 5


def test_only_the_ends_are_filled():
    x = fill_ends(torch.zeros(2, N), 8)
    assert x[:, :8].all()
    assert x[:, -8:].all()
    assert not x[:, 8:-8].any()
    assert torch.equal(x, fill_ends(torch.zeros(2, N), 8))
    assert not torch.equal(x, fill_ends(torch.zeros(2, N), 8, seed=1))


def test_integers_are_filled_with_numbers_that_may_be_indices():
    x = fill_ends(torch.zeros(N, dtype=torch.int64), 64)
    assert x.min() == 0
    assert 1 <= x.max() < 9


def compare(change=None, **options):
    x = fill_ends(torch.zeros(N), 16)
    want = ends(x, 16).double()
    if change:
        change(x)
    assert_ends_close(ends(x, 16), want, x.shape, edge=16, sure=(4,), name="out", **options)


def test_what_was_not_written_may_be_missing_only_between_the_outermost_elements():
    compare()
    compare(lambda x: x[4:-4].zero_())
    with pytest.raises(CheckFailed, match=rf"^out: element \[{N - 4:,}\] was not written, expected -?[\d.]+$"):
        compare(lambda x: x[4:-3].zero_())
    with pytest.raises(CheckFailed, match=r"element \[3\] was not written"):
        compare(lambda x: x[3:-4].zero_())


@pytest.mark.parametrize("at", [0, 10, N - 10, N - 1])
def test_a_wrong_value_is_found_anywhere_in_the_ends(at):
    with pytest.raises(CheckFailed, match=rf"element \[{at:,}\] is 9, expected"):
        compare(lambda x: x[at : at + 1].fill_(9))
    with pytest.raises(CheckFailed, match=rf"element \[{at:,}\] is nan, expected"):
        compare(lambda x: x[at : at + 1].fill_(float("nan")))


def test_the_tolerance_is_that_of_other_comparisons():
    with pytest.raises(CheckFailed):
        compare(lambda x: x.mul_(1.001))
    compare(lambda x: x.mul_(1.001), rtol=0.01)


def test_an_infinity_equals_only_itself():
    infinite = torch.full((32,), float("inf"))
    assert_ends_close(infinite, infinite.double(), (N,), edge=16, sure=(4,))
    with pytest.raises(CheckFailed, match="element \\[0\\] is -inf, expected inf"):
        assert_ends_close(-infinite, infinite.double(), (N,), edge=16, sure=(4,))


def test_another_shape_is_wrong():
    with pytest.raises(CheckFailed, match=r"wrong shape: got \[3\]"):
        assert_ends_close(torch.zeros(3), torch.zeros(4), (3,), edge=16, sure=(1,))
