"""CUDA graphs: what a capture records, explicit nodes, updates, and what a capture forbids."""

import pytest
from simt_programs import CASES, load_cases, operators, zeros

import kernel_xray

pytestmark = pytest.mark.slow
in_the_simulator = pytest.mark.skipif(kernel_xray.target != "simulator", reason="a fault ends the process on a GPU")

cases = operators(load_cases, CASES / "graphs.cu", "graphs")


def test_captured_streams(cases):
    x = zeros(32)
    cases.captured([x], [])
    assert x.tolist() == [((1 * 3 + 1) * 3 + 1) * 3] * 32


def test_explicit_nodes(cases):
    cases.explicit_nodes([zeros(32)], [])


def test_updates(cases):
    x = zeros(32)
    cases.updates([x], [])
    assert x.tolist() == [2 * 1 + 2 * 10] * 32


def test_what_a_capture_forbids(cases):
    cases.forbidden([zeros(32)], [])


@in_the_simulator
def test_a_fault_in_a_graph_names_its_kernel(cases):
    cases.write_at([], [31])
    with pytest.raises(kernel_xray.KernelFault, match=r"(?s)illegal memory access.*write_kernel.*graphs\.cu"):
        cases.write_at([], [1 << 28])


@in_the_simulator
def test_an_xray_sees_the_kernels_of_a_graph():
    traced = load_cases(CASES / "graphs.cu", "graphs_traced", traced=True)
    x = zeros(32)
    report = kernel_xray.xray(traced.captured, [x], [])
    assert report.faults == []
    assert x.tolist() == [39] * 32
    assert sorted(launch.kernel for launch in report.launches) == ["add_kernel"] * 6 + ["scale_kernel"] * 3
    with pytest.raises(kernel_xray.KernelFault, match="out-of-bounds"):
        traced.write_at([], [1 << 28])
