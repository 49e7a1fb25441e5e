"""elementwise_mult's three bindings and two wrong ones, beyond the contract."""

import re
from pathlib import Path

import pytest
import torch
from inputs import randn

import helpers
from helpers.ladder.catalogue.elementwise import ELEMENTWISE_MULT
from helpers.ladder.checking.checker import check
from helpers.paths import KERNELS

pytestmark = pytest.mark.slow


@pytest.fixture(params=ELEMENTWISE_MULT.kernels, ids=lambda kernel: kernel.files[0])
def multiply(request):
    return getattr(request.param.extension(), request.param.function or request.param.name)


@pytest.fixture
def pair():
    return randn(2, 1024).unbind(0)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 2), (1, 1), (4, 4)])
def test_slices_that_start_inside_16_bytes(multiply, pair, first, second):
    a, b = pair
    for size in (1, 3, 4, 5, 1001):
        check(multiply, a[first : first + size], b[second : second + size], reference=torch.mul)


def test_messages_name_the_input_and_what_to_do(multiply, pair):
    a, b = (t[:100] for t in pair)
    for bad, message in (
        (b.half(), r"b must be float32.*, got (float16|Half); (pass|convert it with) b\."),
        (b.view(10, 10).t(), r"b must be contiguous, .*; pass b\.contiguous\(\)"),
        (b.view(10, 10), r"a and b must have the same shape, got \[100\] and \[10, 10\]"),
    ):
        with pytest.raises(RuntimeError, match=message):
            multiply(a, bad)


def test_a_product_that_counts_elements_takes_a_column_for_a_row(wrong, multiply):
    column, row = torch.arange(1.0, 5.0).view(4, 1), 10 * torch.arange(1.0, 5.0).view(1, 4)
    column, row = column.to(helpers.device), row.to(helpers.device)
    assert wrong.mult_same_count(column, row).tolist() == [[10], [40], [90], [160]]
    with pytest.raises(RuntimeError, match="same shape"):
        multiply(column, row)


def test_waiting_for_the_gpu_does_not_change_the_result(wrong, pair):
    check(wrong.mult_synchronising, *pair, reference=torch.mul)


INCLUDE = re.compile(r'^#include [<"](?:torch|ATen|c10)/', re.MULTILINE)


def test_the_split_kernel_includes_no_pytorch_header():
    seen, waiting = {}, [KERNELS / "elementwise_mult_kernel.cu"]
    while waiting:
        path = waiting.pop()
        seen[path.name] = path.read_text()
        for name in re.findall(r'^#include "(.+)"', seen[path.name], re.MULTILINE):
            waiting += [p for p in (path.parent / name, KERNELS / "include" / name) if p.is_file()]
    assert set(seen) == {"elementwise_mult_kernel.cu", "elementwise_mult_kernel.h", "vector.h"}
    assert not any(INCLUDE.search(text) for text in seen.values())
    assert INCLUDE.search((KERNELS / "elementwise_mult.cu").read_text())  # the pattern finds an include


def test_the_split_binding_does_without_the_large_headers():
    text = Path(KERNELS / "elementwise_mult.cpp").read_text()
    large = re.compile(r"^#include <(?:torch/extension\.h|torch/torch\.h|torch/all\.h|ATen/ATen\.h)>", re.MULTILINE)
    assert not large.search(text)
    assert large.search((KERNELS / "elementwise_mult.cu").read_text())
