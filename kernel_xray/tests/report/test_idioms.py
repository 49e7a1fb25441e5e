"""The corpus of idioms: the X-ray accepts the correct kernels, whatever the schedule, and finds the bug of each twin.

The inputs of one and the same kernel are made in three ways, because the X-ray knows different things about them.
"""

import re
from pathlib import Path

import pytest
import torch
from idiom_corpus import FAMILIES, FOLDER, IDIOMS, Idiom, operators

from kernel_xray.report.facts import FaultRecord, source_line
from kernel_xray.report.report import Report
from kernel_xray.report.run import xray

pytestmark = pytest.mark.usefixtures("few_objects")

# One seed for each idiom, so that a third of them has its inputs made in each of the ways below; slow tests have all.
# A family is one build: the quick suite has that in which the order of accesses is hardest to tell.
QUICK = ("atomics",)
FEW = [
    pytest.param(
        idiom,
        range(i % 3, i % 3 + 1),
        id=f"{idiom.name}-few",
        marks=() if idiom.family in QUICK else pytest.mark.slow,
    )
    for i, idiom in enumerate(IDIOMS)
]
MANY = [pytest.param(idiom, range(100), id=f"{idiom.name}-many", marks=pytest.mark.slow) for idiom in IDIOMS]
each = pytest.mark.parametrize(("idiom", "seeds"), FEW + MANY)


def view_of_larger(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements, with others before and behind them, at an address that is a multiple of 16 bytes."""
    room = torch.ones(16 + tensor.numel() + 16, dtype=tensor.dtype)
    room[16:-16] = tensor.reshape(-1)
    return room[16:-16].view(tensor.shape)


WAYS = (torch.clone, None, view_of_larger)  # None: inside the X-rayed function


def run(idiom: Idiom, bug: bool, seed: int, **options) -> Report:
    """One X-ray. The seed also chooses how the inputs are made."""
    make = WAYS[seed % len(WAYS)]

    def call(*given):
        tensors = [*(given or map(torch.clone, idiom.inputs)), *map(torch.empty_like, idiom.outputs)]
        getattr(operators(idiom.family), idiom.name)(tensors, list(idiom.numbers), bug)
        return tensors[idiom.answer]

    return xray(call, *map(make, idiom.inputs) if make else (), seed=seed, **options)


def sources(record: FaultRecord) -> list[str]:
    """The source lines that a fault names: its own and, of a race, the others."""
    others = re.findall(r"(\w+\.(?:cu|h)):(\d+)", record.message)
    places = [(record.file, record.line), *((str(FOLDER / name), int(line)) for name, line in others)]
    return [source_line(file, line) for file, line in places]


def in_order(idiom: Idiom, tensor: torch.Tensor) -> torch.Tensor:
    return tensor if idiom.ordered else tensor.sort().values


@each
def test_a_correct_kernel_is_accepted(idiom, seeds):
    expected = in_order(idiom, idiom.expected(*idiom.inputs))
    for seed in seeds:
        report = run(idiom, False, seed)
        assert report.faults == [], f"seed {seed}"
        torch.testing.assert_close(in_order(idiom, report.result), expected, rtol=1e-4, atol=1e-5)
        if idiom.remark:
            assert any(re.search(idiom.remark, line) for remark in report.remarks for line in sources(remark))


@pytest.mark.slow  # a family of idioms is built for it alone
def test_without_an_xray_a_thread_that_polls_lets_the_others_run():
    idiom = next(one for one in IDIOMS if one.name == "block_flag")
    tensors = [*map(torch.clone, idiom.inputs), *map(torch.empty_like, idiom.outputs)]
    operators(idiom.family).untraced.block_flag(tensors, list(idiom.numbers), False)
    assert torch.equal(tensors[idiom.answer], idiom.expected(*idiom.inputs))


@each
def test_its_twin_is_found(idiom, seeds, monkeypatch):
    if idiom.seconds:
        monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", str(idiom.seconds))
        seeds = seeds[:1]
    for seed in seeds:
        faults = run(idiom, True, seed, seconds=0).faults
        found = [fault for fault in faults if fault.kind == idiom.kind and Path(fault.file).stem == idiom.family]
        assert any(re.search(idiom.line, line) for fault in found for line in sources(fault)), f"seed {seed}: {faults}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_idiom_is_in_the_corpus(family):
    defined = re.findall(r"^IDIOM(?:_OF)?\((\w+)", (FOLDER / f"{family}.cu").read_text(), re.MULTILINE)
    assert defined and sorted(defined) == sorted(idiom.name for idiom in IDIOMS if idiom.family == family)


def test_instances_of_a_template_are_different_kernels():
    (cas_sum,) = (idiom for idiom in IDIOMS if idiom.name == "cas_sum")
    for bug, name in ((False, "cas_sum_kernel<false>"), (True, "cas_sum_kernel<true>")):
        report = run(cas_sum, bug, 0)
        assert {record.kernel for record in [*report.launches, *report.lines, *report.faults]} == {name}
        assert f"{name}<<<2, 64>>> at atomics.cu:" in str(report)


@pytest.mark.slow  # a family of idioms is built for it alone
def test_an_honest_kernel_that_exceeds_its_budget_is_not_at_fault():
    (saxpy,) = (idiom for idiom in IDIOMS if idiom.name == "saxpy")
    report = run(saxpy, False, 0, budget=200)
    assert report.faults == []
    assert [remark.kind for remark in report.remarks] == ["budget"]
