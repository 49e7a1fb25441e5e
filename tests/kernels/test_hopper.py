"""The rungs in 11_wgmma.cu and 12_*.cu: products, refusals, and mistakes that must be found."""

import re
import shutil
from pathlib import Path

import pytest
import torch
from contract import on_a_busy_stream
from inputs import factors, load, mistaken
from running import run
from simt_programs import operators
from torch.utils import cpp_extension

import helpers
from helpers.ladder.catalogue.matmul import RUNGS
from helpers.paths import KERNELS
from kernel_xray.build import flags

FILES = ("matmul/11_wgmma.cu", "matmul/12_cluster.cu", "matmul/12_split.cu", "matmul/13_choice.cu")
KERNELS_IN = dict(zip(FILES, (2, 8, 7, 25), strict=True))
HOPPER_RUNGS = [rung for rung, file in RUNGS.items() if file in FILES]
SIMULATOR = helpers.target == "simulator"
for_hopper = pytest.mark.skipif(
    not SIMULATOR and torch.cuda.get_device_capability() != (9, 0), reason="wgmma and TMA need compute capability 9.0"
)
in_the_simulator = pytest.mark.skipif(not SIMULATOR, reason="for the simulator: an X-ray, or what hangs a GPU")
pytestmark = [pytest.mark.slow, for_hopper]


def build(name, source, rung, **options):
    return getattr(load(name, source, **options), rung)


def wrong_or_fault(is_right):
    """Whether a planted mistake shows: in what `is_right` returns, or as a fault of the kernel that it calls."""
    try:
        return not is_right()
    except helpers.KernelFault:
        return True


@pytest.fixture(scope="module", params=HOPPER_RUNGS)
def matmul(request):
    file = KERNELS / RUNGS[request.param]
    return build(file.stem[3:], file, request.param)


def mistaken_choice(source, file, good, bad, folder, **options):
    """The operators of a source in a copy of all kernels, in whose `file` the only `good` is replaced by `bad`."""
    ignored = shutil.ignore_patterns("solutions", "wrong", "museum")
    copy = Path(shutil.copytree(KERNELS, folder / "kernels", ignore=ignored))
    text = (copy / file).read_text()
    assert text.count(good) == 1
    (copy / file).write_text(text.replace(good, bad))
    options |= {"extra_include_paths": [copy / "include"], "is_python_module": False}
    return helpers.load(f"mistaken_{source.stem}", [copy / source.relative_to(KERNELS)], **options)


def right(matmul, m, n, k):
    """Whether the error is within half an ULP of bfloat16 plus the rounding of k float32 additions."""
    a, b = factors(m, n, k, torch.bfloat16)
    exact = a.double() @ b.double()
    got = matmul(a, b)
    assert got.shape == (m, n) and got.dtype == torch.bfloat16
    return bool(((got.double() - exact).abs() <= exact.abs() * 2**-8 + k * 2**-20).all())


@pytest.mark.parametrize(
    "shape",
    [
        (128, 256, 64),  # one tile, one stage
        (128, 256, 256),  # the ring of four stages just full
        (128, 256, 640),  # more than twice around the ring
        (1, 8, 8),
        (129, 264, 72),  # the edges of all three
        (300, 520, 200),  # an odd count of tile rows: the last cluster's second block has none
        (2200, 256, 64),  # more tile rows than a group has
        (640, 768, 1152),  # matmul_split: tiles of 64 x 128, in clusters of 2 x 2 in the simulator
        (900, 1400, 72),  # and of 128 x 128
    ],
)
def test_products(matmul, shape):
    assert right(matmul, *shape)


def test_more_tiles_than_sms(matmul):
    rows = 140 if SIMULATOR else 300
    assert right(matmul, rows * 128, 512, 72)


@pytest.mark.parametrize("shape", [(33000, 8, 8), (8, 33000, 8)])
def test_rows_and_columns_that_16_bits_cannot_count(matmul, shape):
    assert right(matmul, *shape)


def test_empty_sums_and_empty_products(matmul):
    assert (matmul(*factors(5, 16, 0, torch.bfloat16)) == 0).all()
    assert matmul(*factors(0, 16, 8, torch.bfloat16)).shape == (0, 16)
    assert matmul(*factors(5, 0, 8, torch.bfloat16)).shape == (5, 0)


def test_nan_and_infinity_stay_in_their_row(matmul):
    a, b = factors(130, 264, 72, torch.bfloat16)
    a[3, 5], a[129, 71] = torch.nan, torch.inf
    got = matmul(a, b)
    assert got[3].isnan().all() and got[129].isinf().all()
    assert got[[0, 2, 4, 128]].isfinite().all()


@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "message"),
    [
        (8, 8, 12, torch.bfloat16, "a must have rows of whole 16 bytes"),
        (8, 12, 8, torch.bfloat16, "b must have rows of whole 16 bytes"),
        (8, 8, 8, torch.float16, "a must be bfloat16"),
    ],
)
def test_wrong_arguments_are_refused(matmul, m, n, k, dtype, message):
    with pytest.raises(RuntimeError, match=message):
        matmul(*factors(m, n, k, dtype))


def test_results_repeat_on_any_stream(matmul):
    given = factors(300, 520, 200, torch.bfloat16)
    (again,) = on_a_busy_stream(matmul, given)
    assert torch.equal(again, matmul(*given))


# -- The epilogue: gelu(a @ b + bias) ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["matmul/12_cluster.cu", "matmul_choice_gelu.cu"])
def matmul_gelu(request):
    rung = {"12_cluster": "matmul_cluster_gelu"}.get(name := Path(request.param).stem, name)
    return build(name.removeprefix("12_"), KERNELS / request.param, rung)


def twice_u(z):
    """2u, where gelu(z) = z * sigmoid(2u)."""
    return 1.5957691216057308 * z + 0.07135481627260025 * z**3


def gelu(z):
    """In its tanh form, with all digits for negative z too: PyTorch's 1 + tanh(u) has none left below -7."""
    return z * torch.sigmoid(twice_u(z))


def half_ulp(x):
    """Of bfloat16, at x >= 0 in float64."""
    return torch.where(x > 0, torch.ldexp(torch.ones_like(x), torch.frexp(x)[1].clamp(min=-125) - 9), 0)


def share_of_rounding(got, a, b, bias, waits):
    """The largest |got - gelu(a @ b + bias)|, as a share of what the operator's roundings allow. 1 is the most.

    A product of 16 along k adds 17 terms, each cut 24 bits below the largest; up to 32 parts are added in float32, and
    then the bias. waits: the sum is rounded to bfloat16 before GELU. GELU has exp2 of 2u in float32, and its result is
    rounded.
    """
    a, b, bias = a.double(), b.double(), bias.double()
    z, terms = a @ b + bias, a.abs() @ b.abs()
    off = (17 * -(-a.shape[1] // 16) + 32) * 2**-24 * terms
    off += (z.abs() + off) * 2**-24
    if waits:
        off += half_ulp(z.abs() + off)
    exact, lowest = gelu(z), -0.7524614  # where GELU turns
    error = torch.maximum((gelu(z + off) - exact).abs(), (gelu(z - off) - exact).abs())
    turn = exact - gelu(torch.tensor(lowest, dtype=z.dtype, device=z.device))
    error = torch.where((z - lowest).abs() < off, torch.maximum(error, turn), error)
    u = twice_u(z)
    error += (exact.abs() + error) * (2**-20 + u.abs() * 2**-22 * torch.sigmoid(-u))
    return ((got.double() - exact).abs() / (error + half_ulp(exact.abs() + error) + 2**-120)).max().item()


@pytest.mark.parametrize(
    "shape", [(128, 256, 64), (129, 264, 72), (300, 520, 200), (2200, 256, 64), (1, 8, 8), (64, 64, 5000)]
)
def test_bias_and_gelu_are_rounded_as_few_times_as_said(matmul_gelu, shape):
    a, b = factors(*shape, torch.bfloat16)
    b = (b / shape[2] ** 0.5).bfloat16()
    bias = torch.randn(shape[1], device=a.device).bfloat16()
    got = matmul_gelu(a, b, bias)
    assert got.shape == (shape[0], shape[1]) and got.dtype == torch.bfloat16
    waits = matmul_gelu._qualified_op_name.endswith("cluster_gelu") or shape[0] > 2000  # for which the choice takes it
    assert share_of_rounding(got, a, b, bias, waits) <= 1


def test_other_roundings_and_mistakes_are_more_than_the_roundings_allow():
    a, b = factors(300, 264, 520, torch.bfloat16)
    b = (b / 520**0.5).bfloat16()
    bias = 4 * torch.randn(264, device=a.device).bfloat16()
    products = a.double() @ b.double()
    less = bias.double()
    less[7] = 0
    once = gelu(products + bias.double()).bfloat16()
    assert share_of_rounding(once, a, b, bias, False) <= 1
    for waits, wrong in (
        (False, gelu(products.bfloat16().double() + bias.double())),  # the product is rounded
        (False, gelu((products + bias.double()).bfloat16().double())),  # the sum is rounded
        (True, gelu(products + less)),
        (True, gelu(a[:, :-16].double() @ b[:-16].double() + bias.double())),
        (True, torch.nn.functional.gelu(products + bias.double())),
    ):
        assert share_of_rounding(wrong.bfloat16(), a, b, bias, waits) > 1


@pytest.mark.parametrize("shape", [(129, 264, 72), (140 * 128, 256, 72), (140 * 128, 256, 600)])
def test_the_saved_product_is_that_of_the_rung_without_an_epilogue(shape):
    a, b = factors(*shape, torch.bfloat16)
    bias = torch.randn(shape[1], device=a.device).bfloat16()
    product, fused, saving = (
        build("cluster", KERNELS / "matmul" / "12_cluster.cu", f"matmul_cluster{name}")
        for name in ("", "_gelu", "_gelu_saving")
    )
    y, sums = saving(a, b, bias)
    assert torch.equal(sums, product(a, b))
    for got, z in ((y, sums.double() + bias.double()), (fused(a, b, bias), a.double() @ b.double() + bias.double())):
        torch.testing.assert_close(got.double(), gelu(z), rtol=2**-6, atol=2**-6)


def test_a_bias_that_does_not_fit_is_refused(matmul_gelu):
    a, b = factors(130, 264, 72, torch.bfloat16)
    bias = torch.randn(265, device=a.device).bfloat16()
    for bad, message in (
        (bias[:263], "bias must have one element for each column of b"),
        (bias[:264].float(), "bias must be bfloat16"),
        (bias[1:], "bias must begin at a multiple of 4 bytes"),
    ):
        with pytest.raises(RuntimeError, match=message):
            matmul_gelu(a, b, bad)
    with pytest.raises(RuntimeError, match="a must have at least one column"):
        matmul_gelu(a[:, :0].contiguous(), b[:0], bias[:264])


# -- Mistakes ----------------------------------------------------------------------------------------------------------

WGMMA_MISTAKES = {
    "sums not kept": ("add || k > 0", "k > 0"),
    "panel too near": ("hopper::descriptor(stage.b, sizeof(stage.b[0]))", "hopper::descriptor(stage.b, 64)"),
    "wrong rows": ("stage.a[consumer * 64]", "stage.a[consumer * 32]"),
    "k in elements": ("a + k * (32 >> 4)", "a + k * (16 >> 4)"),
    "stage filled too soon": ("hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);", ""),
    "wrong parity": ("full[pipe.stage], pipe.parity);", "full[pipe.stage], pipe.parity ^ 1);"),
    "bytes that never arrive": ("arrive_and_expect(full, sizeof(Stage))", "arrive_and_expect(full, 2 * sizeof(Stage))"),
    "stage never released": ("if (leader && before) hopper::arrive(*before);\n      before", "before"),
}
IN_TURNS_MISTAKES = {
    "wrong parity": ("hopper::wait(shared.full, step % 2)", "hopper::wait(shared.full, 0)"),
    "a tile for each SM": ("one_per_tile);\n}\nTensor matmul_wgmma_ring", "one_per_sm);\n}\nTensor matmul_wgmma_ring"),
    "the same rows twice": ("int consumer = threadIdx.x / kWarpGroup;", "int consumer = 0;"),
}
# For an X-ray: the order of the simulator's threads happens to be right.
BARRIERS_NOT_THERE_YET = ("block.\n  hopper::cluster_sync();", "block.\n  __syncthreads();")
CLUSTER_MISTAKES = {
    **WGMMA_MISTAKES,
    "panel too near": ("F::e4m3 ? 16 : sizeof(stage.b[0])", "64"),
    "stage never released": ("if (before >= 0) release(before);", ""),
    "bytes that never arrive": ("panels * sizeof(stage.b[0])", "2 * panels * sizeof(stage.b[0])"),
    "no arrival at the other block": ("if (thread < F::cluster)", "if (thread == scheduler.rank)"),
    "for this block only": ("hopper::load_tile_for(cluster_mask,", "hopper::load_tile_for(1 << scheduler.rank,"),
    "for the other block only": ("hopper::load_tile_for(cluster_mask,", "hopper::load_tile_for(2 >> scheduler.rank,"),
    "for a block too many": ("hopper::load_tile_for(cluster_mask,", "hopper::load_tile_for(2 * cluster_mask + 1,"),
    "one half by both": ("share = scheduler.rank * F::lines", "share = 0"),
    "one tile for both": ("* F::cluster + rank) * F::m", "* F::cluster) * F::m"),
    "one panel of c": ("panel, row, column + p * kPanel", "panel, row, column"),
    "c not swizzled": ("hopper::swizzled(lane / 4", "(lane / 4"),
    "rows of another warp": ("consumer * 64 + warp * kWarpRows;", "consumer * 64;"),
    "the last tile missing": (
        "waits) store_one(i)",
        "waits && steps > 0) store_one(i)",
    ),
}
SPLIT_MISTAKES = {
    "all of k twice": ("part * steps / F::splits", "0"),
    "sent to itself": ("rank + i / chunks * F::tiles", "rank + part * F::tiles"),
    "the same half by both": ("split * F::n / F::splits", "0"),
    "sends what it keeps": ("if (i / chunks == part)", "if (i / chunks != part)"),
    "sums replaced": ("kept[4 * i + l] + more[l]", "more[l]"),
    "added too soon": ("  hopper::wait(shared.sums_full, 0);\n", ""),
    "b for this block only": ("load_tile_for(work.blocks_of_b", "load_tile_for(1 << hopper::cluster_rank()"),
    "no arrival at the others": ("if (awaited && arrives)", "if (awaited && thread == hopper::cluster_rank())"),
    "stage never released": ("if (awaited && arrives) hopper::arrive_at(thread, shared.empty[before]);", ""),
    "one panel of b": ("line / kK * kPanel", "0"),
}
SHARING_MISTAKES = {
    "one share of a by all": ("column * F::share_a", "0"),
    "one share of b by all": ("row * F::share_b", "0"),
    "a for the wrong blocks": ("i * F::rows + row)", "i)"),
    "the same rows by a column's blocks": ("* F::rows + row) * F::m", "* F::rows) * F::m"),
}
MISTAKES_IN = {
    "matmul_wgmma_in_turns": IN_TURNS_MISTAKES,
    "matmul_wgmma": WGMMA_MISTAKES,
    "matmul_cluster_only": {"rows of the other consumer": ("work.row + consumer * 64, work", "work.row, work")},
    "matmul_cluster_stored": {"never stored": ("waits = !work.sums;", "waits = false;")},
    "matmul_cluster": CLUSTER_MISTAKES,
    "matmul_split": SPLIT_MISTAKES | SHARING_MISTAKES,
}
MISTAKES = [(rung, mistake, *change) for rung, mistakes in MISTAKES_IN.items() for mistake, change in mistakes.items()]


@in_the_simulator
@pytest.mark.parametrize(("rung", "mistake", "good", "bad"), MISTAKES, ids=[f"{m[0]}, {m[1]}" for m in MISTAKES])
def test_a_mistake_ends_in_a_wrong_product_or_a_fault(rung, mistake, good, bad, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_BLOCK_SECONDS", "0.5")
    m, n, k = 128, 256, 640
    if "cluster" in rung:
        m = 256
    elif mistake == "a tile for each SM":
        m, k = 128 * 141, 8
    elif mistake in SHARING_MISTAKES:
        m, n = 640, 768  # too many tiles for halves of k
    elif rung == "matmul_split":
        k = 1152  # more than once around the ring
    matmul = build("mistaken", mistaken(KERNELS / RUNGS[rung], good, bad, tmp_path), rung)
    assert wrong_or_fault(lambda: right(matmul, m, n, k))


# -- The choice: each form, with k in one piece and in parts -----------------------------------------------------------

PARTS = [(0, 1), (0, 2), (0, 3), (1, 2)]  # tiles that stay whole, parts of the others
FORMS = range(24)
SPLITS = 3  # the form whose clusters have halves of k
CHOICE = KERNELS / "matmul" / "13_choice.cu"
choice = operators(load, "choice", CHOICE)


def possible(a):
    """The arguments of matmul_as that these sizes allow: each part of k has 64 elements at least."""
    steps = -(-a.shape[1] // 64)
    for form in FORMS:
        halves = 2 if form == SPLITS else 1
        yield from ((form, whole, parts) for whole, parts in PARTS if halves * parts <= steps)


@pytest.mark.parametrize("shape", [(8, 8, 8), (130, 264, 200), (16, 136, 520), (300, 520, 648)])
def test_every_form_gives_the_product(choice, shape):
    a, _ = factors(*shape, torch.bfloat16)
    for form, whole, parts in possible(a):
        assert right(lambda a, b, given=(form, whole, parts): choice.matmul_as(a, b, *given), *shape)


def test_parts_of_a_form_are_added_up_in_one_order(choice):
    a, b = factors(300, 520, 1288, torch.bfloat16)
    for given in [(0, 1, 3), (2, 0, 3), (SPLITS, 0, 2), (17, 1, 2)]:
        assert torch.equal(choice.matmul_as(a, b, *given), choice.matmul_as(a, b, *given))


def test_the_choice_is_the_form_with_the_least_time(choice):
    for shape in [(128, 256, 64), (16, 4096, 512), (3072, 3072, 8), (4096, 2048, 512)]:
        a, b = (torch.empty(size, dtype=torch.bfloat16, device=helpers.device) for size in (shape[::2], shape[:0:-1]))
        form, whole, parts, time = choice.matmul_plan(a, b)
        times = [choice.matmul_plan(a, b, f)[3] for f in FORMS if shape[2] > 64 or f != SPLITS]
        assert time == min(times) > 0 and choice.matmul_plan(a, b, form) == (form, whole, parts, time)


@pytest.mark.parametrize(
    ("given", "message"),
    [((24, 0, 1), "form must be 0 to 23, got 24"), ((0, -1, 1), "whole must be"), ((0, 0, 3), "parts must be 1 to 2")],
)
def test_a_form_that_does_not_exist_is_refused(choice, given, message):
    with pytest.raises(RuntimeError, match=message):
        choice.matmul_as(*factors(8, 8, 128, torch.bfloat16), *given)


@in_the_simulator
def test_the_xray_of_each_form_is_silent():
    matmul_as = load("choice_traced", CHOICE, traced=True).matmul_as
    a, b = (x.cpu() for x in factors(70, 136, 328, torch.bfloat16))
    for form, whole, parts in possible(a):
        report = helpers.xray(matmul_as, a, b, form, whole, parts)
        assert report.faults == [], (form, whole, parts)


CLUSTER, OF_PARTS, SWAPPED = "matmul/12_cluster.cu", "include/hopper_parts.h", "include/hopper_swapped.h"
FORM_MISTAKES = {  # of which form, with how many parts: what is wrong
    "a part twice": (0, 3, OF_PARTS, "int(int64_t(i) * steps / count)", "0"),
    "one part missing": (5, 3, OF_PARTS, "part < (inside ?", "part + 1 < (inside ?"),
    "one place for all parts": (10, 3, OF_PARTS, "int64_t(part.slot) * elements", "0 * elements"),
    "panels of two tiles in one buffer": (1, 1, CLUSTER, "panels[(stored + store) %", "panels[store %"),
    "rows that nobody wrote": (4, 1, "matmul/12_split.cu", "i < zeros * F::stages", "i < 0"),
    "panels that nobody wrote": (0, 1, CLUSTER, "filled < F::stages ? INT_MAX : n", "n"),
    "rows for one block": (17, 1, SWAPPED, "load<F::across>(", "load<1>("),
    "columns for one block": (
        15,
        1,
        SWAPPED,
        "load<F::down>(stage.b[p][line], b, full, step",
        "load<1>(stage.b[p][line], b, full, step",
    ),
    "a stage that a neighbour still reads": (12, 1, SWAPPED, "shared.init(F::cluster * ", "shared.init("),
    "the next 8 x 8 of the sums": (14, 1, SWAPPED, "epilogue({sums[2], sums[3]}", "epilogue({sums[0], sums[3]}"),
    "sums as c lies": (11, 3, SWAPPED, "(j / 4 * 8 + j % 2) * columns", "(j / 4 * 8 + j % 2) * 8"),
}


@in_the_simulator
@pytest.mark.parametrize("mistake", FORM_MISTAKES)
def test_a_mistake_in_a_form_is_found(mistake, tmp_path):
    form, parts, file, good, bad = FORM_MISTAKES[mistake]
    mistaken_as = mistaken_choice(CHOICE, file, good, bad, tmp_path, traced=True).matmul_as
    m, n, k = (8, 192 * 70, 8) if "two tiles" in mistake else (40, 136, 328)  # 70 tiles are two for a cluster
    a, b = (x.cpu() for x in factors(m, n, k, torch.bfloat16))
    report = helpers.xray(mistaken_as, a, b, form, 0, parts)
    exact = a.double() @ b.double()
    assert report.faults or not torch.allclose(report.result.double(), exact, rtol=2**-7, atol=1e-2)


# -- The X-ray ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=HOPPER_RUNGS)
def traced(request):
    file = KERNELS / RUNGS[request.param]
    return build(f"{file.stem[3:]}_traced", file, request.param, traced=True)


@pytest.mark.parametrize("shape", [(128, 256, 320), (129, 264, 72)])
def test_the_xray_reports_nothing_under_any_seed(traced, shape):
    a, b = (x.cpu() for x in factors(*shape, torch.bfloat16))
    for seed in range(3):
        assert helpers.xray(traced, a, b, seed=seed).faults == []


def test_the_xray_finds_shared_memory_that_no_launch_asked_for(tmp_path):
    launch = "hopper::kSharedBytes<Shared>, stream"
    source = mistaken(KERNELS / "matmul/11_wgmma.cu", launch, "hopper::kSharedBytes<Shared> / 2, stream", tmp_path)
    matmul = build("mistaken_traced", source, "matmul_wgmma", traced=True)
    faults = helpers.xray(matmul, *(x.cpu() for x in factors(128, 256, 320, torch.bfloat16))).faults
    assert faults and faults[0].kind == "out-of-bounds", faults


# -- The compiler's report ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A function from a source to ptxas's report on it."""
    nvcc = Path(cpp_extension.CUDA_HOME or "/usr/local/cuda") / "bin" / "nvcc"
    if not nvcc.exists():
        pytest.skip("needs nvcc from the CUDA toolkit, which reports registers, spills and serialised wgmma")
    folder = tmp_path_factory.mktemp("cubin")
    includes = [f"-I{path}" for path in (KERNELS / "include", *cpp_extension.include_paths())]
    defines = ["-DUSE_CUDA", "-DTORCH_EXTENSION_NAME=report"]

    def compile(source):
        command = [nvcc, "-std=c++17", "-O3", *flags.SM_90A, *defines, *includes, "-Xptxas", "-v", "-cubin", source]
        done = run(*command, "-o", folder / "report.cubin")
        return done.stdout + done.stderr

    return compile


def assert_no_spills(text, kernels, with_roles):
    """The report is of that many kernels; those with roles have 65,536 registers for 384 threads."""
    assert text.count("Compiling entry function") == text.count("0 bytes spill stores, 0 bytes spill loads") == kernels
    assert text.count("Used 168 registers") == with_roles  # setmaxnreg distributes these
    assert "(C75" not in text


@pytest.mark.parametrize("file", sorted({RUNGS[rung] for rung in HOPPER_RUNGS}))
def test_no_spills_and_no_serialised_products(report, file):
    text, kernels = report(KERNELS / file), KERNELS_IN[file]
    without_roles = re.findall(r"function '\w*(?:in_turns|small|sum_parts|ConfigILi\d+ELi64E)", text)
    assert_no_spills(text, kernels, kernels - len(without_roles))


@pytest.mark.parametrize(
    ("good", "bad", "code"),
    [
        ("hopper::wgmma_commit();", "hopper::wgmma_commit(); d[0] += 1;", "(C7511)"),  # serialised
        ("hopper::wgmma_wait_for<0>(d);", "", "(C7517)"),  # a wait that the compiler had to insert
    ],
)
def test_the_report_names_sums_used_too_soon(report, good, bad, code, tmp_path):
    assert code in report(mistaken(KERNELS / RUNGS["matmul_cluster"], good, bad, tmp_path))
