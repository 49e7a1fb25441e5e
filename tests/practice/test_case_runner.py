"""The case runner: what it accepts, and what it reports of a wrong result, a stray write, or a missing refusal."""

import pytest
import torch

from helpers.practice import case_runner, cases, drawn


def fenced_call(function, **kwargs):
    kwargs = {"further": False} | kwargs
    case = cases.Case("a case", (torch.ones(3),), {"out": torch.zeros(3)})
    return case_runner.run_cases(function, cases.Check(lambda x: 2 * x, lambda: [case], **kwargs), torch.device("cpu"))


def test_cases_pass_and_are_listed():
    assert fenced_call(lambda x, out: out.copy_(2 * x)) == ["a case"]


def test_a_write_outside_is_seen():
    def outside(x, out, at):
        out.copy_(2 * x)
        out.as_strided((1,), (1,), out.storage_offset() + at).fill_(1)

    for at in (-1, 3):
        said = rf"a case: it wrote outside out: out\[{at}\] changed; out has ele"
        with pytest.raises(case_runner.Rejected, match=said):
            fenced_call(lambda x, out, at=at: outside(x, out, at))


def test_a_read_outside_spoils_the_result():
    with pytest.raises(case_runner.Rejected, match=r"1 of 3 elements is wrong"):
        fenced_call(lambda x, out: out.copy_(2 * x.as_strided((3,), (1,), x.storage_offset() + 1)))


def test_an_error_is_not_a_rejection():
    def refuse(x, out):
        raise RuntimeError("no\nException raised from nowhere")

    with pytest.raises(RuntimeError, match=r"^a case: no$"):
        fenced_call(refuse)


def test_tensors_begin_where_the_case_says():
    seen = []

    def twice(x, out):
        seen.append((x.data_ptr() % 64, out.data_ptr() % 64))
        out.copy_(2 * x)

    for offsets in ((), (1,), (0, 3)):
        case = cases.Case("a case", (torch.ones(3),), {"out": torch.zeros(3)}, offsets=offsets)
        what = cases.Check(lambda x: 2 * x, lambda case=case: [case], further=False)
        case_runner.run_cases(twice, what, torch.device("cpu"))
    assert seen == [(0, 0), (4, 0), (0, 12)]


def test_a_result_that_changes_from_call_to_call_is_seen():
    calls = []

    def almost(x, out):
        calls.append(1)
        out.copy_(2 * x * (1 + 1e-7 * (len(calls) == 4)))

    with pytest.raises(case_runner.Rejected, match=r"a case, again and again: out had different bits in 1 of 5 calls"):
        fenced_call(almost, repeatable=True)
    assert fenced_call(lambda x, out: out.copy_(2 * x), repeatable=True) == ["a case", "a case, again and again"]


def test_a_changed_input_is_seen():
    def change(x, out):
        out.copy_(2 * x)
        x.zero_()

    with pytest.raises(case_runner.Rejected, match="changed its input"):
        fenced_call(change)


def test_no_cases_is_an_error():
    with pytest.raises(RuntimeError, match="no cases"):
        case_runner.run_cases(lambda: None, cases.Check(lambda: None, list), torch.device("cpu"))


@pytest.mark.parametrize(
    ("message", "complaint"),
    [(None, "accepted, and misread"), ("b is wrong", "does not say float64"), ("wrong float64", "does not name b")],
)
def test_a_refusal_must_say_what_is_wrong(message, complaint):
    def refuse(x):
        if message:
            raise RuntimeError(message)

    refusal = cases.Refusal("b is float64", (1,), {"name b": r"\bb\b", "say float64": "float64"})
    what = cases.Check(lambda: None, list, lambda device: [refusal])
    with pytest.raises(case_runner.Rejected, match=complaint):
        case_runner.run_cases(refuse, what, torch.device("cpu"))


def test_drawn_cases_differ_in_values_and_an_answer_meets_the_same_again():
    long = cases.Case("n", (torch.ones(9), 2.5, 3), {"out": torch.zeros(9)}, {"edge": 4, "rtol": 1e-3})
    what = cases.Check(lambda x: x, lambda: [long], drawn=lambda n: long)
    (one, two), again, other = (list(drawn.drawn_cases(what, long, seed)) for seed in (1, 1, 2))
    for case in (one, two):
        assert case.label.startswith("n, with other values")
        assert case.tolerance == {"rtol": 1e-3, "dtype": torch.float32}
        assert 0.25 <= case.inputs[1] <= 0.75
        assert case.inputs[2] == 3
    assert not torch.equal(one.inputs[0], two.inputs[0])
    assert torch.equal(one.inputs[0], again[0].inputs[0])
    assert not torch.equal(one.inputs[0], other[0].inputs[0])


def test_a_result_kept_from_an_earlier_call_is_wrong():
    kept = {}

    def memoised(x, out):
        out.copy_(kept.setdefault(x.shape, 2 * x))

    with pytest.raises(case_runner.Rejected, match="with other values: 3 of 3 elements are wrong"):
        fenced_call(memoised, further=True)
    more = ["with other values", "with other values again", "on a busy stream"]
    assert fenced_call(lambda x, out: out.copy_(2 * x), further=True)[1:] == [f"a case, {how}" for how in more]


def test_the_inputs_at_the_first_wrong_element_are_shown():
    def wrong(x, rows, factor, out):
        out.copy_(factor * x * rows[:, None])
        out[1, 2] += 1

    wrong.names = ("x", "rows", "factor", "out")
    x, rows = torch.arange(6.0).view(2, 3), torch.tensor([1.0, 10.0])
    case = cases.Case("a case", (x, rows, 0.5), {"out": x})
    what = cases.Check(lambda x, rows, factor: factor * x * rows[:, None], lambda: [case], further=False)
    with pytest.raises(case_runner.Rejected) as caught:
        case_runner.run_cases(wrong, what, torch.device("cpu"))
    said = "  first      [1, 2]: expected 25, got 26\n  inputs     x[1, 2] = 5, rows[1] = 10, factor = 0.5\n"
    assert said in str(caught.value)
    assert (caught.value.output, caught.value.index) == ("out", (1, 2))


def test_results_that_are_rounded_once_are_known_from_others():
    x = torch.rand(1000, generator=torch.Generator().manual_seed(0)) + 0.5
    case = cases.Case("a case", (x,), {"out": x}, {"rtol": 1e-6})
    what = cases.Check(lambda x: x * x * x, lambda: [case], further=False)
    for square, once in ((lambda x: (x.double() ** 3).float(), True), (lambda x: x * x * x, False)):
        found = []
        cube = lambda x, out, square=square: out.copy_(square(x))  # noqa: E731
        case_runner.run_cases(cube, what, torch.device("cpu"), found=found)
        assert [(result.elements, result.rounded) for result in found] == [(1000, once)]
