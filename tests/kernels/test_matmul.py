"""The matmul ladder: every rung at awkward sizes: its error, special values, views, accesses, and planted mistakes."""

import itertools
import math

import pytest
import torch
from contracted import every_choice_of_tiles
from inputs import factors, load, mistaken

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.catalogue.matmul import MATMUL, RUNGS
from helpers.ladder.checking.checker import check
from helpers.ladder.pytorch import operators
from helpers.paths import KERNELS

pytestmark = pytest.mark.slow
SIZES = (0, 1, 7, 16, 17, 128, 129)
EVERY = [(rung, torch.float32) for rung in operators.MATMUL_WITH_GRADIENTS + operators.MATMUL_FLOAT]
EVERY += [(rung, torch.bfloat16) for rung in operators.MATMUL_TENSOR_CORES]
NAMES = [f"{rung}, {str(dtype).removeprefix('torch.')}" for rung, dtype in EVERY]
every_rung = pytest.mark.parametrize(("rung", "dtype"), EVERY, ids=NAMES)
simulated = pytest.mark.skipif(helpers.target != "simulator", reason="some of these hang a GPU")


def error(c, a, b):
    """The largest error, in units of the error that rounding explains.

    A unit is one rounding of the result to its dtype, plus sqrt(k) roundings of a typical sum to the dtype of the sums.
    """
    exact = a.double() @ b.double()
    sums = torch.finfo(torch.promote_types(c.dtype, torch.float32)).eps / 2
    typical = exact.square().mean().sqrt() * math.sqrt(a.shape[1])
    unit = torch.finfo(c.dtype).eps / 2 * exact.abs() + sums * typical
    return ((c.double() - exact).abs() / unit).max().item()


# -- Right -------------------------------------------------------------------------------------------------------------


@every_rung
def test_every_size(rung, dtype):
    op = operators.matmul(rung)
    for number, (m, n, k) in enumerate(itertools.product(SIZES, repeat=3)):
        if number % 3 == 0 or min(m, n, k) == 0:
            check(op, *factors(m, n, k, dtype), reference=torch.mm, accumulation=max(1, k), name=f"{m} x {n} x {k}")


@every_rung
@pytest.mark.parametrize("shape", [(300, 264, 520), (8, 8, 8), (129, 256, 64), (2, 1032, 40), (1032, 264, 8)])
def test_rows_of_whole_16_bytes(rung, dtype, shape):
    a, b = factors(*shape, dtype)
    check(operators.matmul(rung), a, b, reference=torch.mm, accumulation=shape[2])


@every_rung
def test_rounding_explains_the_error(rung, dtype):
    op = operators.matmul(rung)
    for k in (16, 256, 2048):
        a, b = factors(40, 72, k, dtype)
        assert error(op(a, b), a, b) < 4


def test_sums_in_16_bits_and_sums_without_a_term_are_seen_as_wrong():
    a, b = factors(40, 72, 2048, torch.float16)
    in_half = torch.zeros(40, 72, dtype=torch.float16, device=a.device)
    for i in range(2048):
        in_half = (in_half.float() + a[:, i : i + 1].float() * b[i : i + 1].float()).half()
    assert error(in_half, a, b) > 4
    assert error((a[:, 1:].double() @ b[1:].double()).half(), a, b) > 4
    assert error((a.double() @ b.double()).half(), a, b) <= 1


@pytest.mark.skipif(helpers.target != "gpu", reason="needs a GPU")
@every_rung
def test_4096(rung, dtype):
    for m, n, k in ((4096, 4096, 4096), (4096, 4099, 4101)):
        a, b = factors(m, n, k, dtype)
        assert error(operators.matmul(rung)(a, b), a, b) < 8  # tensor cores cut sums off


@every_rung
@pytest.mark.parametrize("shape", [(33, 40, 24), (130, 131, 129)])
def test_nan_and_infinity_stay_in_their_row_and_column(rung, dtype, shape):
    m, n, k = shape
    a, b = (x.abs() + 1 for x in factors(m, n, k, dtype))
    a[3, k - 1], a[m - 1, 0], b[k - 1, n - 1] = torch.nan, torch.inf, -torch.inf
    c = operators.matmul(rung)(a, b)
    assert c[3].isnan().all() and (c[m - 1, : n - 1] == torch.inf).all()
    assert c[m - 1, n - 1].isnan()  # infinity minus infinity
    others = [row for row in range(m) if row not in (3, m - 1)]
    assert (c[others][:, n - 1] == -torch.inf).all() and c[others][:, : n - 1].isfinite().all()
    b[0] = 0
    assert operators.matmul(rung)(a, b)[m - 1].isnan().all()  # infinity times zero


@pytest.mark.parametrize("kernel", [kernel for kernel in MATMUL.kernels if kernel.tiles], ids=lambda k: k.name)
def test_every_choice_of_tiles_is_right(kernel):
    every_choice_of_tiles(kernel)


def test_a_wrong_order_of_tiles_shows_beyond_a_group_of_rows(tmp_path):
    source = mistaken(KERNELS / "matmul/08_warp_tile.cu", "(first + within % rows)", "(within % rows)", tmp_path)
    wrong = load("matmul_wrong_order", source).matmul_warp_tile
    check(wrong, *factors(1024, 264, 8, torch.float32), reference=torch.mm, accumulation=8)
    with pytest.raises(helpers.CheckFailed, match=r"\[1024, 0\]"):
        check(wrong, *factors(1032, 264, 8, torch.float32), reference=torch.mm, accumulation=8)


# -- Views and refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rung", operators.MATMUL_WITH_GRADIENTS)
def test_views_are_read_in_place(rung):
    op = operators.matmul(rung)
    a, b = factors(45, 37, 50, torch.float64)
    for x, y in (
        (a.t().contiguous().t(), b.t().contiguous().t()),
        (a[::2], b[:, 1::3]),
        (a[:, 7:17], b[20:30]),
        (a[:1].expand(45, 50), b[:, :1].expand(50, 37)),
    ):
        check(op, x, y, reference=torch.mm, accumulation=50)


@every_rung
def test_wrong_arguments_are_refused(rung, dtype):
    op = operators.matmul(rung)
    a, b = factors(8, 8, 16, dtype)
    for x, y, message in (
        (a, a, r"b must have as many rows as a has columns, got shapes \[8, 16\] and \[8, 16\]; is one of them tran"),
        (a[0], b, r"a must be a matrix, got shape \[16\]"),
        (a, b[None], r"b must be a matrix, got shape \[1, 16, 8\]"),
        (a.int(), b.int(), "a must be .*, got int32"),
        (a, b.int(), "b must be .*, got int32"),
    ):
        with pytest.raises(RuntimeError, match=message):
            op(x, y)
    if rung not in operators.MATMUL_WITH_GRADIENTS:
        with pytest.raises(RuntimeError, match="b must be contiguous"):
            op(a, b.t().contiguous().t())


def test_factors_of_two_dtypes_are_refused():
    a, b = factors(8, 8, 8, torch.float32)
    with pytest.raises(RuntimeError, match="a and b must have the same dtype, got float32 and float64"):
        operators.matmul("matmul_tiled")(a, b.double())


# Rungs that share a file, not all of which are under contract.
WARP_STEPS, MMA_STEPS = (
    [rung for rung, file in RUNGS.items() if file == RUNGS[last]] for last in ("matmul_warp_tile", "matmul_mma_grouped")
)


@pytest.mark.parametrize("rung", WARP_STEPS + MMA_STEPS)
def test_each_step_within_a_file_is_right(rung):
    op = getattr(extension(f"matmul_{RUNGS[rung][10:-3]}", (RUNGS[rung],)), rung)
    for dtype in (torch.float16, torch.bfloat16) if rung in MMA_STEPS else (torch.float32,):
        for m, n, k in ((1, 1, 1), (129, 131, 33), (130, 136, 72), (2500, 24, 40), (16, 8, 0)):
            check(op, *factors(m, n, k, dtype), reference=torch.mm, accumulation=4 * max(1, k))


# -- Accesses in the X-ray ---------------------------------------------------------------------------------------------


def xray(name, function, *inputs):
    ops = extension(f"{name.replace('/', '_')}_traced", (RUNGS.get(name, f"{name}.cu"),), traced=True)
    return helpers.xray(getattr(ops, function), *(x.cpu() for x in inputs))


def each(report, space, kind):
    """Sectors or wavefronts per request, over all lines of the report."""
    lines = [line for line in report.lines if (line.space, line.kind) == (space, kind)]
    return sum(line.cost for line in lines) / sum(line.requests for line in lines)


def test_x_for_the_column_is_coalesced_and_x_for_the_row_is_not():
    a, b = factors(64, 64, 64, torch.float32)
    naive = xray("matmul_naive", "matmul_naive", a, b)
    coalesced = xray("matmul_coalesced", "matmul_coalesced", a, b)
    assert (each(naive, "global", "load"), each(naive, "global", "store")) == ((32 + 1) / 2, 32)
    assert (each(coalesced, "global", "load"), each(coalesced, "global", "store")) == ((1 + 4) / 2, 4)


def test_padding_removes_the_bank_conflicts_of_transposed_factors():
    a, b = factors(64, 64, 64, torch.float32)
    for function, cost in (("matmul_tiled_unpadded", 32), ("matmul_tiled", 1)):
        report = xray("matmul_tiled", function, a.t(), b.t())
        assert each(report, "shared", "store") == cost
        assert each(report, "global", "load") == 4
        assert each(xray("matmul_tiled", function, a, b), "shared", "store") == 1


def test_padding_or_the_swizzle_removes_the_bank_conflicts_of_ldmatrix():
    a, b = factors(256, 128, 64, torch.float16)
    of_lines = {}
    for rung in MMA_STEPS:
        report = xray(rung, rung, a, b)
        assert report.faults == []
        loads = [line for line in report.lines if (line.space, line.kind) == ("shared", "load")]
        of_lines[rung] = sorted(line.wavefronts / line.requests for line in loads)  # of a, with shorter rows, and of b
    assert of_lines.pop("matmul_mma_unswizzled") == [16, 32]
    assert set(map(tuple, of_lines.values())) == {(4, 4)}


@pytest.mark.parametrize("rung", operators.MATMUL_FLOAT + operators.MATMUL_TENSOR_CORES)
def test_fast_rungs_have_no_race_and_read_shared_memory_without_conflicts(rung):
    dtype = torch.float32 if rung in operators.MATMUL_FLOAT else torch.float16
    for shape in ((130, 136, 72), (33, 31, 17)):
        report = xray(rung, rung, *factors(*shape, dtype))
        assert report.faults == []
        # wmma's results pass through shared memory at the end, with bank conflicts.
        reads = [line for line in report.lines if (line.space, line.kind) == ("shared", "load")]
        reads = [line for line in reads if "results[" not in line.source]
        assert reads and all(line.cost == line.ideal for line in reads)


def test_the_wrong_kernels_of_lesson_07_are_wrong_as_it_says():
    a, b = factors(40, 64, 32, torch.float32)
    assert xray("wrong/matmul", "matmul_linear_guard", a, b).faults == []
    faults = xray("wrong/matmul", "matmul_linear_guard", a, b[:, :50].contiguous()).faults
    assert {fault.kind for fault in faults} & {"out-of-bounds", "race"}
    a, b = factors(64, 64, 64, torch.float32)
    assert [fault.kind for fault in xray("wrong/matmul", "matmul_one_barrier", a, b).faults] == ["race"]
    with pytest.raises(RuntimeError, match="multiples of 32"):
        xray("wrong/matmul", "matmul_one_barrier", a[:40], b)


MISTAKES = {  # rung, correct source, wrong source
    "tiles not waited for": ("matmul_async", "copies.wait<0>();", ""),
    "filled while it is read": ("matmul_async", "stages[read_stage ^ 1]", "stages[read_stage]"),
    "waits for one group too few": ("matmul_warp_tile", "wait<T::kStages - 2>", "wait<T::kStages - 1>"),
    "no empty group": ("matmul_warp_tile", "copies.commit();", ""),
    "wrong stage": ("matmul_mma", "write_stage = read_stage;", ""),
    "next stage not waited for": ("matmul_mma", "wait<S::kStages - 2>", "wait<S::kStages - 1>"),
    "another part of k": ("matmul_mma", "(S::kStages - 1) * S::kK, step", "(S::kStages - 2) * S::kK, step"),
    "written in another order": ("matmul_mma", "swizzled<width>(first + j * apart,", "j + swizzled<width>(first,"),
    "ring without a wait": ("matmul_mma_ring", "copies.template wait<S::kStages - 2>();", ""),
    "ring one stage behind": ("matmul_mma_ring", "begin + (S::kStages - 1) * kK", "begin + (S::kStages - 2) * kK"),
    "b not transposed": ("matmul_mma", "load_transposed(\n          b[s]", "load_matrices(\n          b[s]"),
    "halves of k exchanged": ("matmul_mma", "a[r], b[s / 2][s % 2 * 2],\n", "a[r], b[s / 2][s % 2 * 2 + 1],\n"),
    "fragment of the next column": ("matmul_wmma", "&tile_b[i][column + 16 * s]", "&tile_b[i][column]"),
}  # fmt: skip


@simulated
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_product(mistake, tmp_path):
    rung, right, wrong = MISTAKES[mistake]
    source = mistaken(KERNELS / RUNGS[rung], right, wrong, tmp_path)
    ops = load("mistaken", source)
    a, b = factors(64, 128, 320, torch.float32 if rung in operators.MATMUL_FLOAT else torch.float16)
    with pytest.raises((helpers.CheckFailed, helpers.KernelFault)):
        check(getattr(ops, rung), a, b, reference=torch.mm, accumulation=320)
