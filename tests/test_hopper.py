"""matmul_wgmma.cu, and that the simulated TMA, mbarrier and wgmma find the mistakes that they are there to find."""

from pathlib import Path

import pytest
import torch

import helpers

KERNEL = Path(__file__).resolve().parent.parent / "kernels" / "matmul_wgmma.cu"
HOPPER = helpers.target == "simulator" or torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="wgmma and TMA exist on compute capability 9.0 only")


def build(name, source):
    flags = ["-gencode=arch=compute_90a,code=sm_90a"]
    return helpers.load(name, [source], extra_cuda_cflags=flags, is_python_module=False).matmul_wgmma


@pytest.fixture(scope="module")
def matmul():
    return build("matmul_wgmma", KERNEL)


def operands(m, n, k):
    torch.manual_seed(0)
    return tuple(torch.randn(shape).bfloat16().to(helpers.device) for shape in ((m, k), (k, n)))


def right(matmul, m, n, k):
    """Whether the product is within half an ulp of bfloat16, and what k float32 additions may add to that."""
    a, b = operands(m, n, k)
    exact = a.double() @ b.double()
    got = matmul(a, b)
    assert got.shape == (m, n) and got.dtype == torch.bfloat16
    return bool(((got.double() - exact).abs() <= exact.abs() * 2**-8 + k * 2**-20).all())


@pytest.mark.parametrize(
    "shape",
    [
        (128, 256, 64),  # one tile, one stage
        (128, 256, 256),  # the ring of four stages just full
        (128, 256, 640),  # and more than twice around
        (1, 8, 8),
        (129, 264, 72),  # the edges of all three
        (300, 520, 200),
        (2200, 256, 64),  # more rows of tiles than a group has
    ],
)
def test_products(matmul, shape):
    assert right(matmul, *shape)


def test_more_tiles_than_multiprocessors(matmul):
    rows = 140 if helpers.target == "simulator" else 300
    assert right(matmul, rows * 128, 256, 64)


def test_nothing_to_add_or_to_write(matmul):
    assert (matmul(*operands(5, 16, 0)) == 0).all()
    assert matmul(*operands(0, 16, 8)).shape == (0, 16)
    assert matmul(*operands(5, 0, 8)).shape == (5, 0)


def test_nan_and_infinity_stay_in_their_row(matmul):
    a, b = operands(130, 264, 72)
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
def test_what_is_refused(matmul, m, n, k, dtype, message):
    with pytest.raises(RuntimeError, match=message):
        matmul(*(t.to(dtype) for t in operands(m, n, k)))


MISTAKES = {
    "sums not kept": ("step + k > 0", "k > 0"),
    "panel too near": ("hopper::descriptor(stage.b, sizeof(stage.b[0]))", "hopper::descriptor(stage.b, 64)"),
    "wrong rows": ("stage.a[which * 64]", "stage.a[which * 32]"),
    "k in numbers": ("a + k * (32 >> 4)", "a + k * (16 >> 4)"),
    "stage filled too soon": ("hopper::wait(shared.empty[place.stage], place.parity ^ 1);", ""),
    "wrong parity": (
        "wait(shared.full[place.stage], place.parity)",
        "wait(shared.full[place.stage], place.parity ^ 1)",
    ),
    "bytes that never come": ("arrive_and_expect(full, sizeof(Stage))", "arrive_and_expect(full, 2 * sizeof(Stage))"),
    "stage never released": ("if (speaker && before) hopper::arrive(*before);\n      before", "before"),
}


@pytest.mark.skipif(helpers.target != "simulator", reason="some of these hang a GPU")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_ends_in_a_wrong_product_or_a_fault(mistake, tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_LADDER_BLOCK_SECONDS", "0.5")
    good, bad = MISTAKES[mistake]
    text = KERNEL.read_text()
    assert text.count(good) == 1
    source = tmp_path / "mistaken.cu"
    source.write_text(text.replace(good, bad))
    mistaken = build("mistaken", source)
    try:
        found = not right(mistaken, 128, 256, 640)
    except helpers.KernelFault:
        found = True
    assert found
