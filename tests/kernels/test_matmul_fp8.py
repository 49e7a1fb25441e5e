"""13_fp8.cu and hopper_fp8.h: products, refusals, and mistakes that the simulator and the X-ray must find."""

import hashlib

import pytest
import torch
from contract import on_a_busy_stream
from inputs import mistaken, randn
from simt_programs import load_cases
from test_hopper import CLUSTER, SIMULATOR, SWAPPED, build, for_hopper, in_the_simulator, mistaken_choice

import helpers
from helpers.ladder.catalogue.fp8 import FLOAT8, MATMUL_FP8, factors, quantised, terms
from helpers.paths import KERNELS, TESTS
from kernel_xray.build import flags

pytestmark = [pytest.mark.slow, for_hopper]
SOURCE, NAME = KERNELS / "matmul" / "13_fp8.cu", "matmul_fp8"
CHOICE = KERNELS / "matmul_choice_fp8.cu"
FORMS = range(15)


def given(m, n, k):
    return MATMUL_FP8.inputs((m, n, k), FLOAT8, helpers.device)


def check(matmul, *shape):
    reference, options = MATMUL_FP8.reference, {"dtype": torch.bfloat16, "accumulation": terms(shape)}
    return helpers.check(matmul, *given(*shape), reference=reference, **options)


@pytest.fixture(scope="module", params=(NAME, "matmul_choice_fp8"))
def matmul(request):
    if request.param == NAME:
        return build("fp8", SOURCE, NAME)
    return build("choice_fp8", CHOICE, request.param)


@pytest.mark.parametrize(
    "shape",
    [
        (128, 256, 128),  # one tile, one stage
        (256, 256, 512),  # the ring of four stages just full
        (256, 256, 1280),  # more than twice around the ring
        (1, 8, 16),
        (129, 264, 144),  # the edges of all three
        (300, 520, 208),  # an odd count of tile rows: the last cluster's second block has none
        (2200, 256, 128),  # more tile rows than a group has
    ],
)
def test_products(matmul, shape):
    check(matmul, *shape)


def test_more_tiles_than_sms(matmul):
    check(matmul, 140 * 128 if SIMULATOR else 300 * 128, 512, 144)


def test_empty_sums_and_empty_products(matmul):
    one = torch.ones(1, device=helpers.device)
    empty = [torch.empty(shape, device=helpers.device).to(FLOAT8) for shape in ((5, 0), (16, 0), (0, 16))]
    assert (matmul(empty[0], empty[1].t(), one, one) == 0).all()
    assert matmul(empty[2], torch.ones(8, 16, device=helpers.device).to(FLOAT8).t(), one, one).shape == (0, 8)


def test_every_number_of_8_bits_is_multiplied_as_pytorch_reads_it(matmul):
    codes = torch.arange(256, dtype=torch.uint8, device=helpers.device).view(FLOAT8)
    a, b = torch.zeros(256, 16, device=helpers.device).to(FLOAT8), torch.eye(8, 16, device=helpers.device).to(FLOAT8)
    a[:, 3] = codes
    one = torch.ones(1, device=helpers.device)
    got = matmul(a, b.t(), one, 2 * one)[:, 3]
    torch.testing.assert_close(got, 2 * codes.bfloat16(), rtol=0, atol=0, equal_nan=True)


def test_nan_stays_in_its_row(matmul):
    a, b, *scales = given(130, 264, 80)
    a[3, 5] = torch.nan
    got = matmul(a, b, *scales)
    assert got[3].isnan().all() and got[[0, 2, 4, 129]].isfinite().all()


def test_wrong_arguments_are_refused(matmul):
    a, b, of_a, of_b = given(16, 24, 32)
    for bad, message in (
        ((a, b.contiguous(), of_a, of_b), "b must be column-major"),
        ((a.t().contiguous().t(), b, of_a, of_b), "a must be row-major"),
        ((a.bfloat16(), b, of_a, of_b), "a must be float8_e4m3fn, got bfloat16"),
        ((a, b[:16], of_a, of_b), "b must have as many rows as a has columns"),
        ((a[0], b, of_a, of_b), "a and b must be matrices"),
        ((a[:, :8].contiguous(), b[:8].t().contiguous().t(), of_a, of_b), "a must have whole 16 bytes along k"),
        ((a, b[:, :12], of_a, of_b), "b must have a multiple of 8 columns"),
        ((a, b, of_a.double(), of_b), "scale_a must be float32"),
        ((a, b, of_a, torch.cat([of_b, of_b])), "scale_b must have one element"),
    ):
        with pytest.raises(RuntimeError, match=message):
            matmul(*bad)


def test_results_repeat_on_any_stream(matmul):
    arguments = given(300, 520, 208)
    (again,) = on_a_busy_stream(matmul, arguments)
    assert torch.equal(again, matmul(*arguments))


def test_quantised_numbers_are_near_and_reach_the_largest():
    x = randn(64, 32).t()
    small, scale = quantised(x)
    assert small.stride() == x.stride() and small.double().abs().max() == 448
    assert ((small.double() * scale.double() - x).abs() <= x.abs() * 2**-4 + scale * 2**-10).all()
    assert (quantised(torch.zeros(4, 4))[0].float() == 0).all()


def test_the_peer_and_eager_compute_the_same():
    arguments = factors([(32, 64), (64, 48), (1,), (1,)], FLOAT8, "cpu")
    exact = MATMUL_FP8.reference(*(x.double() for x in arguments))
    for peer in (MATMUL_FP8.reference, MATMUL_FP8.peers["cublas"]()):
        got = peer(*arguments)
        assert got.dtype == torch.bfloat16
        torch.testing.assert_close(got.double(), exact, rtol=2**-6, atol=2**-6)


# -- The instruction alone ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def add_product():
    return load_cases(TESTS / "kernels" / "fp8_product.cu", "fp8_product", flags.SM_90A).add_product


def exponents(x):
    return torch.where(x == 0, -1000, torch.frexp(x)[1] - 1)


def as_the_unit_adds(a, b, c, instructions):
    """c + a @ b.T with the bits that tensor cores keep: 13 below the largest power of two in the terms of each 32."""
    a, b, c = a.double().cpu(), b.double().cpu(), c.double().cpu()
    for k in range(0, 32 * instructions, 32):
        x, y = a[:, None, k : k + 32], b[None, :, k : k + 32]
        top = torch.maximum((exponents(x) + exponents(y)).amax(2), exponents(c))[:, :, None]
        unit = torch.ldexp(torch.ones_like(c)[:, :, None], top - 13)
        c = (torch.cat([c[:, :, None], x * y], 2) / unit).trunc().sum(2) * unit[:, :, 0]
        unit = torch.ldexp(torch.ones_like(c), exponents(c).clamp(min=-500) - 13)
        c = (c / unit).trunc() * unit
    return c


@pytest.mark.parametrize("instructions", [1, 4])
def test_an_instruction_adds_up_32_products_and_drops_bits(add_product, instructions):
    a, b, c = randn(64, 128).to(FLOAT8), randn(256, 128, seed=1).to(FLOAT8), randn(64, 256, seed=2)
    k = 32 * instructions
    exact = c.double() + a[:, :k].double() @ b[:, :k].double().t()
    wanted = as_the_unit_adds(a, b, c, instructions)
    add_product([a, b, c], [instructions])
    assert torch.equal(c.double().cpu(), wanted)
    assert 2**-12 < (c - exact).abs().max() < 2**-4


def test_sums_have_the_bits_of_an_h200s(add_product):
    torch.manual_seed(1)
    a, b = (torch.randn(rows, 128).to(FLOAT8).to(helpers.device) for rows in (64, 256))
    c = torch.zeros(64, 256, device=helpers.device)
    add_product([a, b, c], [4])
    recorded = "679fd26dc87e1b05"  # on an H200, 2026-11-23
    assert hashlib.sha256(c.cpu().numpy().tobytes()).hexdigest().startswith(recorded)


# -- The choice: each form, with k in one piece and in parts -----------------------------------------------------------


def possible(k):
    """Form, tiles that stay whole and parts of the others: each part has 128 elements of k at least."""
    most = -(-k // 128)
    return [(form, *given) for form in FORMS for given in ((0, 1), (0, 2), (1, 3)) if given[1] <= most]


@pytest.mark.parametrize("shape", [(8, 8, 16), (130, 264, 400), (16, 136, 1040), (300, 520, 1296)])
def test_every_form_gives_the_product(shape):
    matmul_as = build("choice_fp8", CHOICE, "matmul_fp8_as")
    for form in possible(shape[2]):
        check(lambda *arguments, form=form: matmul_as(*arguments, *form), *shape)


def test_the_choice_is_the_form_with_the_least_time():
    plan = build("choice_fp8", CHOICE, "matmul_fp8_plan")
    for shape in [(128, 256, 128), (16, 4096, 1024), (3072, 3072, 16), (4096, 2048, 1024)]:
        a, b, *_ = given(*shape)
        form, whole, parts, time = plan(a, b)
        assert time == min(plan(a, b, f)[3] for f in FORMS) > 0 and plan(a, b, form) == (form, whole, parts, time)


@in_the_simulator
def test_the_xray_of_each_form_is_silent():
    matmul_as = build("choice_fp8_traced", CHOICE, "matmul_fp8_as", traced=True)
    arguments = [x.cpu() for x in given(70, 136, 656)]
    for form in possible(656):
        assert helpers.xray(matmul_as, *arguments, *form).faults == [], form


EPILOGUE = "include/hopper_epilogue.h"
FORM_MISTAKES = {  # of which form: what is wrong
    "b by rows, in a tile of 256": (0, CLUSTER, "if (F::e4m3) row = column + line, column = step * kK;", ""),
    "b by rows": (2, SWAPPED, "if (F::e4m3) {", "if (false) {"),
    "panels of bfloat16": (9, SWAPPED, "next_k = F::e4m3 ? 32", "next_k = F::e4m3 ? 16"),
    "one scale": (12, EPILOGUE, "of_column(int) const { return *a * *b; }", "of_column(int) const { return *a; }"),
    "no scale for what waits": (1, EPILOGUE, "return (*this)(sums, scale);", "return rounded(sums);"),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", FORM_MISTAKES)
def test_a_mistake_in_a_form_is_found(mistake, tmp_path):
    form, file, good, bad = FORM_MISTAKES[mistake]
    matmul_as = mistaken_choice(CHOICE, file, good, bad, tmp_path).matmul_fp8_as
    with pytest.raises((helpers.CheckFailed, helpers.KernelFault)):
        check(lambda *arguments: matmul_as(*arguments, form, 0, 1), 300, 264, 400)


# -- Mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES = {
    "sums not kept": ("add || k > 0", "k > 0"),
    "wrong rows": ("stage.a[consumer * 64]", "stage.a[consumer * 32]"),
    "k of bfloat16": ("a + k * (32 >> 4), b + k * (32 >> 4)", "a + k * (64 >> 4), b + k * (64 >> 4)"),
    "k of b stands still": ("b + k * (32 >> 4)", "b"),
    "steps of bfloat16": ("a, full, tile.row, step * (kK / 2)", "a, full, tile.row, step * kK"),
    "the other half of b": ("full, tile.column + share", "full, tile.column + kShare - share"),
    "one half by both": ("stage.b[share], b", "stage.b[0], b"),
    "no scale": ("__floats2bfloat162_rn(scale * d[2 * i], ", "__floats2bfloat162_rn(d[2 * i], "),
    "stage never released": ("if (before >= 0) release(before);", ""),
    "c not swizzled": ("hopper::swizzled((lane / 4", "((lane / 4"),
    "a row of pairs": ("size.k, kM)", "2 * size.k, kM)"),
}
RACES = {
    "a stage released too soon": ("hopper::wgmma_e4m3", "hopper::wgmma_wait<1>", "hopper::wgmma_wait<2>"),
    "no fence before a store": ("hopper::store_tile", "  hopper::fence_before_store();\n", ""),
    "a store outlives its block": ("hopper::store_tile", "  hopper::store_wait<0>();", ""),
    "a stage read too soon": ("hopper::wgmma_e4m3", "hopper::wait(shared.full[pipe.stage], pipe.parity);", ""),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_product_or_a_fault(mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    matmul = build("mistaken", mistaken(SOURCE, *MISTAKES[mistake], tmp_path), NAME)
    with pytest.raises((helpers.CheckFailed, helpers.KernelFault)):
        check(matmul, 256, 256, 1280)


def test_the_kernel_is_without_fault():
    matmul = build("fp8_traced", SOURCE, NAME, traced=True)
    for shape in ((256, 256, 640), (129, 264, 144), (1, 8, 16)):
        arguments = [x.cpu() for x in given(*shape)]
        for seed in range(3):
            report = helpers.xray(matmul, *arguments, seed=seed)
            assert report.faults == []
            assert not [remark for remark in report.remarks if remark.kind == "budget"]  # every step was traced


@pytest.mark.parametrize("mistake", RACES)
def test_a_race_is_named_with_its_line(mistake, tmp_path):
    line, good, bad = RACES[mistake]
    matmul = build("fp8_traced", mistaken(SOURCE, good, bad, tmp_path), NAME, traced=True)
    arguments = [x.cpu() for x in given(256, 256, 640)]
    faults = helpers.xray(matmul, *arguments, seed=0).faults
    assert any(fault.kind == "race" and line in str(fault) for fault in faults), faults
