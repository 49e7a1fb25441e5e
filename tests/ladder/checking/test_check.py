"""The checker: it accepts results that are right within rounding, and rejects all others with a useful message."""

import math

import pytest
import torch

from helpers.ladder.checking.checker import CheckFailed, assert_close, check
from helpers.ladder.checking.compare import tolerance_for, unit_roundoff

N = 1000
NARROWER = {torch.float64: torch.float32, torch.float32: torch.bfloat16}


@pytest.fixture
def pair():
    torch.manual_seed(0)
    return torch.randn(2, N).unbind(0)


def failure(function, *inputs, reference=torch.add, **options) -> str:
    """The message of a check that must fail, on one line."""
    with pytest.raises(CheckFailed) as caught:
        check(function, *inputs, reference=reference, **options)
    return " ".join(str(caught.value).split())


def damaged(change):
    """An add whose result `change` damages in place."""

    def add(a, b):
        out = a + b
        change(out)
        return out

    return add


def fill_bits(tensor):
    """Fills it as torch fills fresh memory, which is what a result that was not written holds."""
    tensor.fill_(math.nan)


# -- right answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 255, 256, 257, N])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_right_results_pass(pair, size, dtype):
    a, b = ((10 * t[:size]).to(dtype) for t in pair)
    result = check(torch.add, a, b, reference=torch.add)
    assert result.elements == size
    assert repr(result).startswith("add: 1 element agrees" if size == 1 else f"add: {size:,} elements agree")
    assert "\n" not in repr(result)


def test_nan_and_infinity_pass_only_where_expected(pair):
    a, b = pair
    a[3], a[4], a[5] = math.nan, math.inf, -math.inf
    check(torch.add, a, b, reference=torch.add)
    assert "[7]" in failure(damaged(lambda out: out[7].fill_(math.nan)), a, b)
    assert "[7]" in failure(damaged(lambda out: out[7].fill_(math.inf)), a, b)
    assert "[3]" in failure(damaged(lambda out: out[3].fill_(0)), a, b)
    assert "[4]" in failure(damaged(lambda out: out[4].fill_(1e30)), a, b)
    assert "[5]" in failure(damaged(lambda out: out[5].fill_(math.inf)), a, b)


def test_overflow_of_the_output_dtype_is_expected():
    big = torch.full((4,), 3e38)
    check(torch.add, big, big, reference=torch.add)
    assert "[2]" in failure(damaged(lambda out: out[2].fill_(-math.inf)), big, big)


def test_several_outputs_out_arguments_and_in_place_changes(pair):
    a, b = pair
    check(lambda a, b: (a + b, a - b), a, b, reference=lambda a, b: (a + b, a - b))
    assert "output 1" in failure(lambda a, b: (a + b, a + b), a, b, reference=lambda a, b: (a + b, a - b))
    assert "expected 2 output" in failure(torch.add, a, b, reference=lambda a, b: (a + b, a - b))

    def add_into(a, b, out):
        out.copy_(a + b)

    check(add_into, a, b, torch.empty(N), reference=torch.add, out=[2])
    c = a.clone()
    check(lambda c, b: c.add_(b), c, b, reference=torch.add, mutates=[0])
    assert torch.equal(c, a + b)


def test_an_out_argument_is_poisoned_even_if_it_held_the_answer(pair):
    a, b = pair
    out = a + b
    message = failure(lambda a, b, out: None, a, b, out, out=[2])
    assert "1,000 of 1,000" in message
    assert "never written" in message


def test_only_out_arguments(pair):
    fill, reference = lambda out: out.copy_(torch.arange(5)), lambda: torch.arange(5.0)
    check(fill, torch.empty(5), reference=reference, out=[0], dtype=torch.float32)


# -- wrong answers of each kind ----------------------------------------------------------------------------------------


def test_wrong_shape_dtype_kind_and_changed_input(pair):
    a, b = pair
    assert "expected [1000], got [999]" in failure(lambda a, b: (a + b)[:-1], a, b)
    assert "expected torch.float32, got torch.float64" in failure(lambda a, b: a.double() + b, a, b)
    assert "expected a tensor, got float" in failure(lambda a, b: 1.0, a, b)
    assert "expected 1 output tensor, got 0" in failure(lambda a, b: None, a, b)
    assert "changed its input 0" in failure(lambda a, b: a.add_(b), a.clone(), b)


def test_wrong_device(pair):
    a, b = pair
    assert "wrong device: expected cpu" in failure(lambda a, b: torch.empty(N, device="meta"), a, b)


def test_changing_a_nan_input_into_itself_is_no_change():
    a = torch.tensor([math.nan, 1.0])
    check(torch.neg, a, reference=torch.neg)


def test_first_worst_and_count(pair):
    def change(out):
        out[17] += 1
        out[40] += 5

    message = failure(damaged(change), *pair)
    assert "2 of 1,000 elements are wrong" in message
    assert "first [17]" in message
    assert "worst [40]" in message
    assert "2.4e-07 * |expected|" in message


def test_indices_are_those_of_the_shape():
    a = torch.ones(4, 5, 6)
    assert "[1, 2, 3]: expected 2, got 9" in failure(damaged(lambda out: out[1, 2, 3].fill_(9)), a, a)
    scalar = torch.tensor(1.0)
    assert "[]: expected 2, got 9" in failure(damaged(lambda out: out.fill_(9)), scalar, scalar)


def test_memory_never_written_is_seen(pair):
    """Without the poison, the allocator would return the memory that holds the right answer."""
    a, b = pair

    def partly(a, b):
        out = torch.empty_like(a)
        out[: N // 2] = a[: N // 2] + b[: N // 2]
        return out

    first = a + b
    del first
    message = failure(partly, a, b)
    assert "500 of 1,000" in message
    assert "from index 500 on" in message
    assert "never written" in message
    assert "were never written" not in failure(damaged(lambda out: out.fill_(torch.tensor(-math.nan))), *pair)
    whole = torch.arange(N)
    message = failure(lambda i: torch.empty_like(i), whole, reference=lambda i: i)
    assert "never written" in message


def test_poisoning_leaves_the_settings_as_they_were(pair):
    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(ZeroDivisionError):
        check(lambda a, b: 1 // 0, *pair, reference=torch.add)
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda out: fill_bits(out[-2:]), "Only the last 2 elements"),
        (lambda out: out[-8:].add_(1), "Only the last 8 elements"),
        (lambda out: out[300:].add_(1), "from index 300 on"),
        (lambda out: out[:300].add_(1), "Only the first 300 elements are wrong"),
        (lambda out: out[::2].add_(1), "Every 2nd element is wrong, from index 0"),
        (lambda out: out[1::11].add_(1), "Every 11th element is wrong, from index 1"),
        (lambda out: out[1::23].add_(1), "Every 23rd element is wrong, from index 1"),
        (lambda out: out[7].add_(1), "1 of 1,000 elements is wrong"),
        (lambda out: fill_bits(out[7:8]), "It holds the value that filled fresh memory before the run: it was"),
        (lambda out: out[7].fill_(-math.nan), "It is NaN where a number is expected: 0/0, inf - inf"),
        (lambda out: out[3::4].add_(1), "Every 4th element is wrong, from index 3"),
        (lambda out: fill_bits(out[5:9]), "never written"),
        (lambda out: out.mul_(2), "Each is 2 times"),
        (lambda out: out.neg_(), "is the sign right"),
        (lambda out: out.mul_(0.125), "Each is 0.125 times"),
        (lambda out: out.zero_(), "all 0: was it stored before it was computed?"),
        (lambda out: out.copy_(out.roll(1)), "one too small"),
        (lambda out: out.copy_(out.roll(-1)), "one too large"),
        (lambda out: out.copy_(out.half()), "narrower dtype"),
    ],
)
def test_hints_and_counts(pair, change, words):
    assert words in failure(damaged(change), *pair)


@pytest.mark.parametrize(
    "change",
    [
        lambda out: out[-1].add_(1),
        lambda out: out[-7:].add_(torch.arange(7.0) + 1),
        lambda out: out[0].add_(1),
        lambda out: out[:7].zero_(),
        lambda out: out[7].mul_(2),
        lambda out: out[3:700:100].mul_(0.5),
        lambda out: out[:5].copy_(out[:5].roll(1)),
    ],
)
def test_fewer_than_eight_elements_are_no_evidence(pair, change):
    assert "hint" not in failure(damaged(change), *pair)


def test_integers_that_are_nearly_right_get_no_hint_on_roundings():
    """Each count is one in a thousand too high."""
    counts = 1000 + torch.arange(64) * 37 % 64
    assert "hint" not in failure(lambda a: 2 * a + 1, counts, reference=lambda a: 2 * a)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_some_ulps_are_not_a_narrower_dtype(pair, dtype):
    a, b = (x.to(dtype) for x in pair)
    off = 1 + torch.rand(N, dtype=dtype) * 32 * torch.finfo(dtype).eps
    assert "hint" not in failure(lambda a, b: (a + b) * off, a, b)
    assert "narrower dtype" in failure(lambda a, b: (a + b).to(NARROWER[dtype]).to(dtype), a, b)


def test_no_guess_at_a_place_in_a_matrix_or_a_short_vector(pair):
    m = pair[0][:900].view(30, 30)
    assert "hint" not in failure(damaged(lambda out: out[-1].add_(torch.arange(30.0))), m, m)
    short = pair[0][:24]
    assert "hint" not in failure(damaged(lambda out: out[-8:].add_(torch.arange(8.0) + 1)), short, short)


def test_a_tail_is_a_small_part_of_the_whole(pair):
    """The second of two blocks of 32 or so is not a tail."""
    short = pair[0][:64]
    assert "hint" not in failure(damaged(lambda out: out[-31:].add_(torch.arange(31.0) + 1)), short, short)
    assert "the last 15 elements" in failure(damaged(lambda out: out[-15:].add_(torch.arange(15.0) + 1)), short, short)


def test_integers_have_all_of_their_digits_and_one_element_is_the_only_one():
    x = torch.full((1,), 2**31 - 1, dtype=torch.int32)
    message = failure(lambda x: x - 1, x, reference=lambda x: x.clone())
    assert "the only element is wrong" in message
    assert "expected 2147483647, got 2147483646" in message


def test_a_nan_that_was_lost_is_told(pair):
    a, b = pair
    a[3] = math.nan
    assert "A NaN was lost" in failure(damaged(lambda out: out[3].fill_(1)), a, b)


def test_memory_never_written_is_told_from_nan_inputs(pair):
    a, b = pair
    out = torch.empty(N)
    a[3] = math.nan

    def lose(a, b, out):
        out.copy_(a + b)
        out[500] = a[3]

    message = failure(lose, a, b, out, out=[2])
    assert "It holds the value" not in message
    assert "It is NaN where a number is expected" in message
    assert "never written" in failure(lambda a, b, out: out[1:].copy_((a + b)[1:]), a, b, out, out=[2])


def test_hints_that_need_inputs_or_a_matrix(pair):
    assert "values of input 1, unchanged" in failure(lambda a, b: b.clone(), *pair)
    m = torch.randn(6, 6)
    assert "transposed" in failure(lambda m: (2 * m).T.contiguous(), m, reference=lambda m: 2 * m)


def test_one_nan_is_counted_in_the_singular(pair):
    def change(out):
        out[3] += 1
        out[77] = math.nan

    assert "hint 1 is NaN where a number is expected" in failure(damaged(change), *pair)


def test_no_hint_for_no_pattern(pair):
    places, errors = torch.tensor([3, 77, 500]), torch.tensor([1.0, -3, 8])
    assert "hint" not in failure(damaged(lambda out: out.index_add_(0, places, errors)), *pair)


# -- tolerances --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_tolerance_is_a_few_roundings(dtype):
    one = torch.ones(1, dtype=torch.float64)
    u = unit_roundoff(dtype)
    assert_close((one + 2 * u).to(dtype), one)
    with pytest.raises(CheckFailed):
        assert_close((one + 6 * u).to(dtype), one)


def test_unit_roundoff():
    assert unit_roundoff(torch.float32) == 2.0**-24
    assert unit_roundoff(torch.bfloat16) == 2.0**-8


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("k", [16, 1024, 4096])
def test_a_matmul_needs_its_accumulation(dtype, k):
    torch.manual_seed(k)
    a, b = torch.randn(32, k).to(dtype), torch.randn(k, 32).to(dtype)

    def wide(a, b):
        return (a.float() @ b.float()).to(dtype)

    check(wide, a, b, reference=torch.mm, accumulation=k)
    if k > 16 and dtype == torch.float32:
        failure(wide, a, b, reference=torch.mm)
    failure(lambda a, b: (a[:, :-1].float() @ b[:-1].float()).to(dtype), a, b, reference=torch.mm, accumulation=k)


def test_sums_kept_in_half_are_rejected():
    torch.manual_seed(0)
    x = torch.rand(64, 2048, dtype=torch.float16)

    def narrow(x):
        total = torch.zeros(64, dtype=torch.float16)
        for column in x.T:
            total = total + column
        return total

    check(lambda x: x.float().sum(1).half(), x, reference=lambda x: x.sum(1), accumulation=2048)
    failure(narrow, x, reference=lambda x: x.sum(1), accumulation=2048)


def test_given_tolerances_replace_the_rule():
    want = torch.tensor([1.0, 100.0], dtype=torch.float64)
    assert_close(torch.tensor([1.5, 100.5]), want, atol=0.6)
    assert_close(torch.tensor([1.005, 100.5]), want, rtol=0.01)
    with pytest.raises(CheckFailed, match="as given"):
        assert_close(torch.tensor([1.5, 100.5]), want, rtol=0.01)


def test_integers_must_be_equal():
    want = torch.tensor([2**53 + 1])
    assert_close(want.clone(), want)
    with pytest.raises(CheckFailed):
        assert_close(want - 1, want)
    with pytest.raises(CheckFailed):
        assert_close(torch.tensor([True, False]), torch.tensor([True, True]))


@pytest.mark.parametrize("wrong", [{"accumulation": 0}, {"rtol": -1.0}, {"atol": math.nan}])
def test_senseless_tolerances_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        tolerance_for(torch.float32, **wrong)


def test_senseless_arguments_are_refused(pair):
    with pytest.raises(ValueError, match="'nope'"):
        check(torch.add, *pair, reference=torch.add, out=["nope"])
    with pytest.raises(ValueError, match="at least one tensor"):
        check(lambda n: n, 3, reference=lambda n: n)
