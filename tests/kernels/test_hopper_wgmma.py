"""Products of hopper_wgmma.h: factors either way round, in shared memory and in registers, and planted mistakes."""

from pathlib import Path

import pytest
import torch
from simt_programs import load_cases, operators
from test_hopper import for_hopper, in_the_simulator

import helpers
from kernel_xray.build import flags

pytestmark = [pytest.mark.slow, for_hopper]
SOURCE = Path(__file__).parent / "hopper_wgmma.cu"
# a turned, b turned, a in registers: every function
FORMS = [(False, False, False), (False, True, False), (True, False, False), (True, True, False)]
FORMS += [(False, False, True), (False, True, True)]
NOTHING, NO_WAIT_FOR_TILE, PANEL, STEP, TURNED, NO_WAIT, FLAT = range(7)
products = operators(load_cases, SOURCE, "hopper_wgmma", flags.SM_90A)
traced = operators(load_cases, SOURCE, "hopper_wgmma_traced", traced=True)


def given(n, a_turned, b_turned, rows):
    """Three matrices a and b as they lie in memory, the first `rows` rows of each; the product of the second ones."""
    torch.manual_seed(0)
    a, b = (torch.randn(3, rows, columns).bfloat16() for columns in (64, n if b_turned else 64))
    if not b_turned:
        b = torch.randn(3, n - 64 + rows, 64).bfloat16()
    whole = [torch.zeros(64, x.shape[2]) if i == 0 or b_turned else torch.zeros(n, 64) for i, x in enumerate((a, b))]
    for to, x in zip(whole, (a, b), strict=True):
        to[: x.shape[1]] = x[1].float()
    exact = (whole[0].mT if a_turned else whole[0]) @ (whole[1] if b_turned else whole[1].mT)
    return a.to(helpers.device), b.to(helpers.device), exact


def product(function, n, form, rows=64, wrong=NOTHING):
    """Whether the function's product is right."""
    a, b, exact = given(n, *form[:2], rows)
    c = torch.full((64, n), torch.nan, device=helpers.device)
    function([a, b, c], [*form, 1, wrong])
    return torch.allclose(c.cpu(), exact, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows", [64, 50])
@pytest.mark.parametrize("n", [64, 128])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_products(products, n, form, rows):
    assert product(products.product, n, form, rows)


@in_the_simulator
@pytest.mark.parametrize(
    ("form", "wrong"),
    [(FORMS[1], PANEL), (FORMS[5], PANEL), (FORMS[0], STEP), (FORMS[3], STEP), (FORMS[0], TURNED), (FORMS[2], TURNED)],
)
def test_a_wrong_descriptor_gives_a_wrong_product(products, form, wrong):
    assert not product(products.product, 128, form, wrong=wrong)


@in_the_simulator
def test_a_tile_of_a_matrix_of_several_needs_three_coordinates(products):
    with pytest.raises(helpers.KernelFault, match="another number of coordinates than its tensor map has dimensions"):
        product(products.product, 64, FORMS[0], wrong=FLAT)


@in_the_simulator
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_xray_finds_missing_waits_and_nothing_else(traced, form):
    for wrong in (NOTHING, NO_WAIT_FOR_TILE, NO_WAIT):
        for seed in range(3):
            a, b, _ = given(128, *form[:2], 64)
            faults = helpers.xray(traced.product, [a, b, torch.zeros(64, 128)], [*form, 1, wrong], seed=seed).faults
            assert {fault.kind for fault in faults} == ({"race"} if wrong else set())
