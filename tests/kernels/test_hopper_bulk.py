"""hopper_bulk.h: neighbouring bytes copied to shared memory, and what happens without a wait or at odd addresses."""

from pathlib import Path

import pytest
import torch
from simt_programs import load_cases
from test_hopper import for_hopper, in_the_simulator

import helpers
from kernel_xray.build import flags

pytestmark = [pytest.mark.slow, for_hopper]
NOTHING, NO_WAIT, MISALIGNED, NO_FENCE = range(4)


def build(name, **options):
    return load_cases(Path(__file__).parent / "hopper_bulk.cu", name, flags.SM_90A, **options)


@pytest.mark.parametrize("how", ["copy", "send"])
def test_it_copies(how):
    x = torch.randn(128, device=helpers.device)
    to = torch.zeros_like(x)
    getattr(build("hopper_bulk"), how)([to, x], [NOTHING])
    assert torch.equal(to, x)


@in_the_simulator
@pytest.mark.parametrize("how", ["copy", "send"])
def test_it_needs_multiples_of_16_bytes(how):
    with pytest.raises(helpers.KernelFault, match="bulk copies whole pieces of 16 bytes"):
        getattr(build("hopper_bulk"), how)([torch.zeros(128), torch.zeros(128)], [MISALIGNED])


@in_the_simulator
@pytest.mark.parametrize(
    ("how", "wrong", "kinds"),
    [
        ("copy", NOTHING, set()),
        ("copy", NO_WAIT, {"race"}),
        ("send", NOTHING, set()),
        ("send", NO_WAIT, {"race"}),
        ("send", NO_FENCE, {"race"}),
    ],
)
def test_the_xray_finds_a_missing_wait_or_fence_and_nothing_else(how, wrong, kinds):
    work = getattr(build("hopper_bulk_traced", traced=True), how)
    for seed in range(3):
        faults = helpers.xray(work, [torch.zeros(128), torch.randn(128)], [wrong], seed=seed).faults
        assert {fault.kind for fault in faults} == kinds
