"""hopper_bulk.h: neighbouring bytes copied to shared memory, and what happens without a wait or at odd addresses."""

from pathlib import Path

import pytest
import torch
from test_hopper import HOPPER, SIMULATOR

import helpers
from helpers.build import flags
from helpers.machine.paths import KERNELS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOPPER, reason="TMA needs compute capability 9.0")]
NOTHING, NO_WAIT, MISALIGNED = range(3)


def build(name, **options):
    given = {"extra_include_paths": [KERNELS / "include"], "extra_cuda_cflags": flags.SM_90A, **options}
    return helpers.load(name, [Path(__file__).parent / "hopper_bulk.cu"], is_python_module=False, **given)


def test_it_copies():
    x = torch.randn(128, device=helpers.device)
    to = torch.zeros_like(x)
    build("hopper_bulk").copy(to, x, NOTHING)
    assert torch.equal(to, x)


@pytest.mark.skipif(not SIMULATOR, reason="ends the context of a GPU")
def test_it_needs_multiples_of_16_bytes():
    with pytest.raises(helpers.KernelFault, match="load_bytes copies a multiple of 16 bytes"):
        build("hopper_bulk").copy(torch.zeros(128), torch.zeros(128), MISALIGNED)


@pytest.mark.skipif(not SIMULATOR, reason="an X-ray is of the simulator")
def test_the_xray_finds_a_missing_wait_and_nothing_else():
    ops = build("hopper_bulk_traced", traced=True)
    for wrong, kinds in ((NOTHING, set()), (NO_WAIT, {"race"})):
        for seed in range(3):
            faults = helpers.xray(ops.copy, torch.zeros(128), torch.randn(128), wrong, seed=seed).faults
            assert {fault.kind for fault in faults} == kinds
