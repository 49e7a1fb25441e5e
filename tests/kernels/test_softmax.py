"""The softmax of lesson 07: every path of its launcher, difficult rows, and refused inputs."""

import functools

import pytest
import torch
from inputs import FLOATING, NARROW, load, mistaken, only, randn

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.catalogue.softmax import exact as reference
from helpers.ladder.checking.checker import CheckFailed, check
from helpers.paths import KERNELS

# Vectors of a row that 8 lanes keep, 64 threads, a block with 2 and one with 8 in each thread, 2 and 8 blocks.
LANES, FEW, BLOCK, FULL, CLUSTER, LARGE = 8 * 8, 64 * 2, 1024 * 2, 512 * 8, 1024 * 8, 4096 * 8


@pytest.fixture(scope="module")
def softmax(ops):
    return ops.softmax.default


def columns_of_each_path(dtype):
    """Row lengths on both sides of each change of kernel, in whole vectors and in single elements."""
    size = 16 // dtype.itemsize
    edges = (LANES, FEW, BLOCK, FULL, CLUSTER, LARGE)
    return [1, 31, 32, 33] + [n * size + more for n in edges for more in (0, size)] + [n + 1 for n in edges]


@pytest.mark.parametrize("dtype", FLOATING)
def test_rows_of_every_length(softmax, dtype):
    torch.manual_seed(0)
    for columns in columns_of_each_path(dtype):
        x = torch.randn(3, columns, dtype=torch.float64).mul(3).to(dtype).to(helpers.device)
        check(softmax, x, reference=reference, accumulation=32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_narrow_rows_of_which_a_warp_has_several(softmax, dtype):
    for vectors in NARROW:
        x = randn(517, vectors * 16 // dtype.itemsize, dtype=dtype)
        check(softmax, x, reference=reference, accumulation=32)


@pytest.mark.parametrize("columns", [64, 1000, 40_000])
def test_a_row_has_the_same_bits_in_any_batch(softmax, columns):
    x = torch.randn(3, columns, generator=torch.Generator().manual_seed(0)).to(helpers.device)
    assert torch.equal(softmax(x)[1:2], softmax(x[1:2].clone()))


@pytest.mark.parametrize("columns", [1, 8, 31, 1023, 1024])
def test_views_that_begin_between_vectors(softmax, columns):
    for skip in (1, 2, 5):
        x = torch.randn(7 * columns + skip, generator=torch.Generator().manual_seed(skip)).to(helpers.device)
        for dtype in (torch.float32, torch.bfloat16):
            check(softmax, x.to(dtype)[skip:].view(7, columns), reference=reference, accumulation=32)


def test_a_build_for_one_dtype_is_right_and_refuses_the_others():
    ops = extension("softmax_traced", ("softmax.cu",), traced=True, flags=("-DLADDER_ONLY=Float",)).untraced
    check(ops.softmax, torch.randn(3, 33), reference=reference, accumulation=32)
    with pytest.raises(RuntimeError, match=r'"a kernel that was built for one dtype" not implemented for \'Double\''):
        ops.softmax(torch.randn(3, 33).double())


def test_a_row_added_up_in_float32_or_in_one_chain_is_rejected_in_float64():
    x = 3 * torch.randn(3, 65_538, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    powers = (x - x.amax(-1, keepdim=True)).exp()

    def check_sum(total):
        check(lambda x: powers / total, x, reference=reference, accumulation=32)

    check_sum(powers.sum(-1, keepdim=True))
    for total in (powers.float().sum(-1, keepdim=True), powers.cumsum(-1)[:, -1:]):
        with pytest.raises(CheckFailed):
            check_sum(total)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 1001])
def test_any_number_of_rows_and_dimensions(softmax, rows):
    x = torch.randn(rows, 2, 33, device=helpers.device)
    check(softmax, x, reference=reference, accumulation=32)
    assert softmax(x[..., :0].contiguous()).shape == (rows, 2, 0)


@pytest.mark.parametrize("columns", [5, 64, LANES * 4 + 4, BLOCK * 4 + 4, FULL * 4 + 4, LARGE * 4 + 4, LARGE + 1])
def test_large_numbers_infinities_and_nan(softmax, columns):
    def expect(x):
        got, wanted = softmax(x), torch.softmax(x.double(), -1)
        assert torch.equal(got.isnan(), wanted.isnan())
        torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-7, equal_nan=True)

    x = torch.randn(6, columns, device=helpers.device)
    x[0] += 1e4  # exp(x) would overflow
    x[1, : columns // 2] = -torch.inf  # masked, as in attention: the first threads see nothing else
    x[2] = -torch.inf
    x[3, columns // 3] = torch.inf
    x[4, columns - 1] = torch.nan
    x[5] = -3e38
    expect(x)
    assert softmax(x)[:2].isfinite().all() and softmax(x)[2:5].isnan().all()


def test_sum_is_one_and_bits_are_the_same_each_time(softmax):
    x = torch.randn(50, 3000, device=helpers.device)
    first = softmax(x)
    sums = first.double().sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=1e-5, atol=0)
    assert all(torch.equal(softmax(x), first) for _ in range(5))


def test_what_is_refused(softmax):
    for bad, message in (
        (torch.zeros((), device=helpers.device), "x must have a dimension"),
        (torch.zeros(3, dtype=torch.int32, device=helpers.device), "x must be float64, float32, float16 or bfloat16"),
        (torch.zeros(4, 4, device=helpers.device).t(), "x must be contiguous"),
    ):
        with pytest.raises(RuntimeError, match=message):
            softmax(bad)


# -- Small blocks: the simulator has no room for 4 or 8 blocks of 512 threads ------------------------------------------

SMALL = "constexpr int kThreads = 512;", "constexpr int kThreads = 128;"


# The packed 16-bit types take the most paths; the others are slow tests.
EACH = [pytest.param(dtype, marks=() if dtype == torch.bfloat16 else pytest.mark.slow) for dtype in FLOATING]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A function from a dtype to softmax in small blocks. In the simulator one build serves X-rays and other calls."""

    @functools.cache
    def build(dtype, traced):
        folder = tmp_path_factory.mktemp("small")
        source = only(dtype, mistaken(KERNELS / "softmax.cu", *SMALL, folder), folder)
        serves_both = helpers.target == "simulator"
        built = load("small_softmax", source, traced=traced or serves_both)
        return (built if traced or not serves_both else built.untraced).softmax

    return build


def small_rows(dtype, blocks):
    """Five rows for clusters of `blocks` blocks of 96 threads, not aligned; difficult values in four of them."""
    size = 16 // dtype.itemsize
    x = torch.randn(
        5, 96 * blocks * 8 * size - size - 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    x[1, : x.shape[1] // 2] = -torch.inf
    x[2] = -torch.inf
    x[3, x.shape[1] // 3] = torch.inf
    x[4, -1] = torch.nan
    return x.to(dtype).to(helpers.device)


def close(got, x):
    wanted = reference(x.double())
    atol = 1e-2 if x.dtype.itemsize == 2 else 1e-6
    return torch.allclose(got.double(), wanted, rtol=0, atol=atol, equal_nan=True)  # NaN in the same places


@pytest.mark.slow  # one more build of softmax; two blocks are in the contract and in lesson 07
@pytest.mark.parametrize("dtype", EACH)
def test_rows_for_clusters_of_four_and_eight_blocks(small, dtype):
    softmax = small(dtype, False)
    for blocks in (4, 8):
        x = small_rows(dtype, blocks)
        first = softmax(x)
        assert close(first, x)
        assert all(torch.equal(softmax(x).nan_to_num(), first.nan_to_num()) for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATING)
def test_an_xray_of_large_clusters_finds_no_fault(small, dtype):
    for blocks in (4, 8):
        x = small_rows(dtype, blocks).cpu()
        for seed in range(5):
            report = helpers.xray(small(dtype, True), x, seed=seed, max_blocks=300)
            assert report.faults == []
            assert close(report.result, x)


# -- X-rays: of rows for a few lanes, blocks of many sizes, clusters of two blocks, and longer -------------------------

SHAPES = (
    (300, 4),
    (300, 24),
    (40, 33),
    (9, 500),
    (5, 2001),
    (3, 8000),
    (7, 20_000),
    (6, 40_003),
    (2, 140_000),
    (2, 140_001),
)


def faults(ops, shape, dtype, seed):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    return helpers.xray(ops.softmax, x, seed=seed, max_blocks=300).faults


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_an_xray_finds_no_fault(shape):
    ops = extension("softmax_traced", ("softmax.cu",), traced=True)
    for dtype in (torch.float32, torch.bfloat16):
        for seed in range(2):
            assert faults(ops, shape, dtype, seed) == []


MISTAKES = {
    "a block does not wait for its warps": (
        "    __syncthreads();  // every warp has written its state\n  }", "  }"
    ),
    "a cluster does not wait for its blocks": ("Cluster::wait(mailbox, 0);", "", "cluster.h"),
    "a block expects too few bytes": ("init(mailbox, warps * int(sizeof(T)))", "init(mailbox, 8)", "cluster.h"),
    "no block waits until all have begun": ("sizeof(T)));\n    Cluster::sync();", "sizeof(T)));", "cluster.h"),
    "a warp writes where another one does": ("threadIdx.x) / 32;", "0) / 32;", "cluster.h"),
    "single elements after the vectors are left out": ("if (thread < after)", "if (thread + 1 < after)", "row.h"),
    "a block that is not the first takes the elements before the vectors": ("if (which > 0)", "if (false)", "row.h"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake, tmp_path):
    good, bad, *header = MISTAKES[mistake]
    source = mistaken(KERNELS / "softmax.cu", good, bad, tmp_path, *header)
    ops = load("mistaken_softmax", source, traced=True)

    def wrong(shape, seed):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).bfloat16()
        report = helpers.xray(ops.softmax, x, seed=seed, max_blocks=300)
        return report.faults or not torch.allclose(report.result.double(), x.double().softmax(-1), atol=1e-2)

    assert any(wrong(shape, seed) for shape in ((3, 16_000), (3, 40_004)) for seed in range(3))
