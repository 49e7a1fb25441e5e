"""The benchmarks of bias_gelu: every variant is right, and a wrong result has no record."""

import dataclasses

import pytest
import torch
from scripted import Script

import helpers
from helpers.ladder.catalogue import OPERATORS
from helpers.upkeep.benchmarks.cell import measure_cell

NAMES = [name for name in OPERATORS if name.startswith("bias_gelu")]
SHAPE = (260, 96)


@pytest.fixture(scope="module", params=NAMES)
def operator(request):
    functions, failures = OPERATORS[request.param].load()
    assert not failures
    return OPERATORS[request.param], functions


class Counting(Script):
    def peak_bytes(self, contender):
        return sum(t.nbytes for t in contender.outputs(contender.inputs))


def measured(operator, functions, dtype, backend=None):
    backend = backend or Script()
    return measure_cell(operator, functions, dtype, SHAPE, backend, device=helpers.device, compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_variants_and_eager_are_right(operator, dtype):
    cell = measured(*operator, dtype)
    assert set(cell.failures) <= {"triton"}, cell.failures
    assert {record["variant"] for record in cell.records} == set(operator[1])
    assert all("eager" in record["vs"] for record in cell.records)


@pytest.mark.slow
def test_a_wrong_variant_has_no_time(operator):
    entry, functions = operator
    name = next(iter(functions))

    def slightly_wrong(*inputs):
        right = functions[name](*inputs)
        return right * 1.01 if isinstance(right, torch.Tensor) else (*right[:-1], right[-1] * 1.01)

    assert name in measured(entry, {name: slightly_wrong}, "float32").failures

    def lower(*arguments):  # moves x to where GELU is small and steep: a rounding of x + bias shows
        *first, x, bias = entry.sample(*arguments)
        return (*first, x - 1, bias)

    coarse = dataclasses.replace(entry, sample=lower, peer_sums=0)
    assert "eager" in measured(coarse, functions, "bfloat16").failures  # eager rounds in between, which needs peer_sums


@pytest.mark.slow
def test_peak_memory_is_recorded_for_ours_and_the_peers(operator):
    for record in measured(*operator, "float32", Counting()).records:
        assert record["peak_bytes"] == record["peak_bytes_of"]["eager"] > 0
    assert all("peak_bytes" not in record for record in measured(*operator, "float32").records)


def test_a_step_is_compiled_without_its_backward():
    """torch.compile gets the forward only; autograd stays outside."""
    step, given = OPERATORS["bias_gelu_training"], []
    whole = step.compiled(lambda function: given.append(function) or function)
    inputs = step.inputs((5, 8), torch.float64, "cpu")
    for got, wanted in zip(whole(*inputs), step.reference(*inputs), strict=True):
        torch.testing.assert_close(got, wanted)
    assert [function.__name__ for function in given] == ["forward"]
