"""X-rays with sass=True, of the kernels in upkeep/validation/rearranged.cu, by nvcc and nvdisasm. Counted by hand."""

import pytest
import torch

import helpers
from helpers.upkeep.validation import counters
from helpers.upkeep.validation.counted import CASES
from helpers.upkeep.validation.rearranged import REARRANGED
from kernel_xray.report import machine_code

try:
    machine_code.tools()
    MISSING = ""
except RuntimeError as error:
    MISSING = str(error)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

BY_NAME = {case.name.partition(",")[0]: case for case in REARRANGED}
LOADS, SECTORS = "global load requests", "global load sectors"
READS, PASSES = "shared load requests", "shared load wavefronts"
STORES, STORED = "shared store requests", "shared store wavefronts"

# Of 4 warps: counts of the source, and corrected.
BY_HAND = {
    "shared pair": {READS: (8, 4), PASSES: (16, 8)},
    "shared quad": {READS: (16, 4), PASSES: (64, 16)},
    "shared octet": {READS: (32, 8), PASSES: (256, 64)},
    "shared odd pair": {READS: (8, 8), PASSES: (16, 16)},  # not aligned to 8 bytes
    "shared broadcast": {READS: (64, 16), PASSES: (64, 32)},
    "shared column": {READS: (32, 32), PASSES: (32, 32)},  # not neighbours
    "shared row and column": {READS: (64, 40), PASSES: (64, 48)},
    "shared two rows": {READS: (32, 16), PASSES: (256, 128)},
    "shared neighbours": {READS: (12, 12)},
    "shared store pair": {STORES: (8, 4), STORED: (16, 8), READS: (4, 4)},
    "shared store quad": {STORES: (16, 4), STORED: (64, 16)},
    "global pair": {LOADS: (8, 4), SECTORS: (64, 32)},
    "global quad": {LOADS: (16, 4), SECTORS: (256, 64)},
    "global three": {LOADS: (12, 12), SECTORS: (144, 144)},  # aligned to 4 bytes
    "global neighbours": {LOADS: (8, 8)},  # alignment not known to nvcc
    "global in both branches": {LOADS: (8, 4), SECTORS: (32, 16)},
    "copy 8": {LOADS: (4, 4), SECTORS: (32, 32), STORES: (4, 4), STORED: (8, 0)},
    "copy 16 past l1": {SECTORS: (64, 64), STORED: (16, 0)},
    "copy 16 past l1 from the middle": {SECTORS: (68, 80), STORED: (16, 0)},
}


@pytest.mark.parametrize("name", BY_HAND)
def test_counts_are_corrected_where_nvcc_rearranges_and_only_there(name):
    source, corrected = counters.simulated(BY_NAME[name]).values, counters.simulated(BY_NAME[name], sass=True).values
    assert {key: (source[key], corrected[key]) for key in BY_HAND[name]} == BY_HAND[name]
    others = counters.METRICS.keys() - BY_HAND[name].keys()
    assert {key: corrected[key] for key in others} == {key: source[key] for key in others}


@pytest.mark.parametrize(
    ("name", "source", "on_an_h200"),
    [
        ("row_sum_warp, 33 x 1001", (1056, 5026), (1551, 5925)),  # in steps of 16: lanes have 31 or 32 elements
        ("row_sum_block, 33 x 1001", (1056, 5026), (1155, 5113)),  # in steps of 4: threads have 3 or 4
        ("row_sum_tree, 33 x 1001", (1056, 5026), (1155, 5113)),
        ("softmax, float32, 3 x 300000", (14064, 225_000), (14_070, 225_000)),  # in steps of 2
        # A column's bias is loaded only by threads that have rows.
        ("bias_gelu_backward_simple, float32, 60 x 1000", (5888, 23_000), (5760, 22_500)),
    ],
)
def test_loops_are_counted_as_nvcc_arranges_them(name, source, on_an_h200):
    (case,) = [case for case in CASES if case.name == name]
    found = [counters.simulated(case, sass=sass).values for sass in (False, True)]
    assert [(values[LOADS], values[SECTORS]) for values in found] == [source, on_an_h200]


def test_the_report_says_what_nvcc_did_on_each_corrected_line():
    report = helpers.xray(BY_NAME["shared quad"].prepared(torch.device("cpu"), True), seed=0, sass=True)
    said = {(record.space, record.kind): record.nvcc for record in report.lines if "+ 3]" in record.source}
    assert said[("shared", "load")] == "4 loads of 4 B became 1 of 16 B" and said[("global", "store")] == ""
    for text in (str(report), report._repr_html_()):
        assert "4 loads of 4 B became 1 of 16 B" in text
    assert f"machine code for {machine_code.architecture()}" in str(report)
    without = helpers.xray(BY_NAME["shared quad"].prepared(torch.device("cpu"), True), seed=0)
    assert "became" not in str(without) and "of the source" in str(without)


def test_a_line_that_cannot_be_corrected_is_marked_and_keeps_its_counts():
    """A loop unrolled by 4 with a rest: how often each of its instructions runs is not known."""
    run = BY_NAME["shared in every round"].prepared(torch.device("cpu"), True)
    (marked,) = [r for r in helpers.xray(run, seed=0, sass=True).lines if r.nvcc.startswith("not corrected")]
    (same,) = [r for r in helpers.xray(run, seed=0).lines if (r.line, r.kind) == (marked.line, marked.kind)]
    assert "LDS.128" in marked.nvcc and marked.requests == same.requests
