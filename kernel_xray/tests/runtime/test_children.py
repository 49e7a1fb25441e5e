"""Kernels that launch kernels: order, visibility, depth, and what is refused."""

import random

import pytest
import torch
from simt_programs import CASES, load_cases, operators, zeros

import kernel_xray

NOT_LINKED = "PyTorch's loader does not link device code, as launches from kernels need on a GPU"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(kernel_xray.target != "simulator", reason=NOT_LINKED)]

cases = operators(load_cases, CASES / "children.cu", "children")
traced = operators(load_cases, CASES / "children.cu", "children_traced", traced=True)


def test_a_child_sees_what_its_parent_wrote(cases):
    written, out = zeros(96), zeros(96)
    cases.one_each([written, out], [])
    assert out.tolist() == [i // 32 * 32 + 1 for i in range(96)]


def test_launches_of_a_thread_are_in_order(cases):
    out = zeros(3)
    cases.ordered([out], [])
    assert out.tolist() == [12345, 67, 8]


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_tail_launch_follows_all_descendants(cases, depth):
    out = zeros(2)
    cases.tree([out], [depth])
    grids = [2**level for level in range(depth + 1)]  # each block launches a grid of two blocks of two threads
    assert out.tolist() == [4 * sum(grids)] * 2


def test_quicksort(cases):
    values = list(range(150)) * 2
    random.Random(1).shuffle(values)
    data = torch.tensor(values, dtype=torch.int32, device=kernel_xray.device)
    cases.sort([data], [])
    assert data.tolist() == sorted(values)


MISTAKES = {  # the case, its number, what is right, the message
    "too deep": ("deep", [], None, "launch of 'deep_kernel' at .*children.cu:.* nested deeper than 24"),
    "no blocks": ("empty_grid", 0, 1, r"grid \(0, 1, 1\), block \(1, 1, 1\)"),
    "a local variable": ("local", 1, 0, "passes a pointer to a local variable or to shared memory"),
    "shared memory": ("local", 2, 0, "passes a pointer to a local variable or to shared memory"),
    "a fault of the child": ("outside", [], None, "(?s)illegal memory access.*outside_kernel', block.*children.cu"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(cases, name):
    case, wrong, right, message = MISTAKES[name]
    with pytest.raises(kernel_xray.KernelFault, match=message):
        getattr(cases, case)([zeros(1)], [wrong] if right is not None else [])
    if right is not None:
        getattr(cases, case)([zeros(1)], [right])


def test_an_xray_sees_the_children(traced):
    out = zeros(64)
    report = kernel_xray.xray(traced.same, [out], [1])
    assert report.faults == []
    assert [launch.kernel for launch in report.launches] == ["parent_of_same_kernel", "same_kernel", "same_kernel"]
    assert {line.kernel for line in report.lines} == {"parent_of_same_kernel", "same_kernel"}
    report = kernel_xray.xray(traced.same, [out], [2])
    assert {(fault.kind, fault.kernel) for fault in report.faults} == {("race", "same_kernel")}
    with pytest.raises(kernel_xray.KernelFault, match="passes a pointer to a local variable"):
        traced.local([zeros(1)], [1])
    traced.local([zeros(1)], [0])
