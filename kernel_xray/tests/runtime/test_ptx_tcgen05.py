"""Blackwell's tensor memory by inline PTX alone (cases/ptx_tcgen05.cu): products, shapes, planted mistakes."""

import pytest
import torch
from simt_programs import CASES, assert_matches, line_marked, load_cases, operators, run
from test_ptx_units import integers

import kernel_xray
from kernel_xray import xray
from kernel_xray.build import flags

SIMULATOR = kernel_xray.target == "simulator"
BLACKWELL = SIMULATOR or torch.cuda.get_device_capability()[0] == 10
# No lesson and no kernel of the course has these units.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BLACKWELL, reason="tcgen05 needs compute capability 10.0")]
SOURCE = CASES / "ptx_tcgen05.cu"
HALF, BF16, TF32, E4M3, E5M2 = torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn, torch.float8_e5m2
INT8, UINT8, INT32 = torch.int8, torch.uint8, torch.int32
KINDS = {HALF: (0, 0), BF16: (0, 1), TF32: (1, 2), E4M3: (2, 0), E5M2: (2, 1), UINT8: (3, 0), INT8: (3, 1)}
SUMS = {HALF: 0, TF32: 1, INT32: 2}

# With the flag, the simulated device of this process would be a Blackwell.
unit = operators(load_cases, SOURCE, "simt_case_ptx_tcgen05", () if SIMULATOR else flags.SM_100A)
traced = operators(load_cases, SOURCE, "simt_case_ptx_tcgen05_traced", traced=True)


def tile(lines):
    """The bytes of lines of 128 bytes with the swizzle of 128 bytes: the line's number changes the places of pieces."""
    pieces = lines.contiguous().view(torch.uint8).view(len(lines), 8, 16)
    places = torch.arange(8) ^ (torch.arange(len(lines)) % 8)[:, None]
    return pieces.gather(1, places[:, :, None].expand_as(pieces)).flatten()


def descriptor(start):
    """Of lines of 128 bytes with a swizzle of 128 bytes, 8 of them each 1024 bytes; version 1."""
    return 2 << 61 | 1 << 46 | 64 << 32 | 1 << 16 | start >> 4


def types_of(a, b, of_sums, m, n, a_transposed=0, b_transposed=0, negative=0):
    """An instruction descriptor."""
    formats = KINDS[a][1] << 7 | KINDS[b][1] << 10 | SUMS[of_sums] << 4
    return formats | negative << 13 | a_transposed << 15 | b_transposed << 16 | n // 8 << 17 | m // 16 << 24


def product(a, b, of_sums=TF32, m=128, negative=0, b_transposed=0):
    """The memory, the numbers and the exact sums of a product of four steps along k."""
    n, lines = len(b), b.mT if b_transposed else b
    types = types_of(a.dtype, b.dtype, of_sums, m, n, 0, b_transposed, negative)
    numbers = [descriptor(0), descriptor(len(a) * 128), 2, 128 if b_transposed else 2, 4, KINDS[a.dtype][0], types]
    exact = (-1 if negative else 1) * (a.double() @ b.double().mT)
    return torch.cat([tile(a), tile(lines)]), [*numbers, n, 1], exact


PRODUCTS = {
    "f16": (HALF, HALF, TF32, 128, 0, 0),
    "f16, 64 rows": (HALF, HALF, TF32, 64, 0, 0),
    "bf16, negative, b transposed": (BF16, BF16, TF32, 128, 1, 1),
    "f16, sums too": (HALF, HALF, HALF, 128, 0, 0),
    "tf32": (TF32, TF32, TF32, 128, 0, 0),
    "f8": (E4M3, E5M2, TF32, 128, 0, 0),
    "i8": (INT8, UINT8, INT32, 128, 0, 0),
}


@pytest.mark.parametrize("form", PRODUCTS)
def test_products_of_one_block(unit, form):
    torch.manual_seed(0)
    of_a, of_b, of_sums, m, negative, b_transposed = PRODUCTS[form]
    k, n = 128 // torch.empty(0, dtype=of_a).element_size(), 64
    a, b = integers(of_a, m, k), integers(of_b, n, k)
    memory, numbers, exact = product(a, b, of_sums, m, negative, b_transposed)
    _, out = run(unit.product, [memory, torch.zeros(128, n, dtype=INT32)], [*numbers, 0])
    if m == 64:
        out = out.view(4, 32, n)[:, :16].reshape(64, n)
    got = out.view(torch.int16)[:, ::2].contiguous().view(HALF) if of_sums == HALF else out.view(of_sums)
    assert torch.equal(got.double(), exact)


@pytest.mark.parametrize("m", [128, 256])
def test_products_of_a_pair_of_blocks(unit, m):
    torch.manual_seed(m)
    rows, n = m // 2, 64
    a, b = integers(HALF, m, 64), integers(HALF, n, 64)
    halves = [torch.cat([tile(a[rows * i : rows * (i + 1)]), tile(b[n // 2 * i : n // 2 * (i + 1)])]) for i in (0, 1)]
    types = types_of(HALF, HALF, TF32, m, n)
    numbers = [descriptor(0), descriptor(rows * 128), 2, 2, 4, 0, types, n, 2, 0]
    _, out = run(unit.product, [torch.cat(halves), torch.zeros(2, 128, n, dtype=INT32)], numbers)
    sums = out.view(TF32)
    if m == 128:  # the second half of the columns is in the lanes from 64 on
        sums = sums[:, :, : n // 2].reshape(2, 2, 64, n // 2).transpose(1, 2).reshape(2, 64, n)
    assert torch.equal(sums.reshape(m, n), a.float() @ b.float().mT)


def test_a_factor_in_tensor_memory(unit):
    torch.manual_seed(1)
    a, b = integers(HALF, 128, 16), integers(HALF, 32, 64)
    tensors = [a.view(INT32), tile(b), torch.zeros(128, 32, dtype=INT32)]
    *_, out = run(unit.from_cells, tensors, [descriptor(0), types_of(HALF, HALF, TF32, 128, 32)])
    assert torch.equal(out.view(TF32), a.float() @ b[:, :16].float().mT)


def test_shared_addresses_in_a_cluster_of_16_blocks(unit):
    (ranks,) = run(unit.large_cluster, [torch.zeros(16, dtype=INT32)], [])
    assert ranks.tolist() == list(range(16))


# Where register r of lane t lies in a warp's rows: (row, column), or its first column if it holds halves of two.
SHAPES = [
    lambda t, r: (t, r),
    lambda t, r: (t // 4 + t % 2 * 8, 2 * r + t // 2 % 2),
    lambda t, r: (t // 4 + r % 2 * 8, r // 2 * 4 + t % 4),
    lambda t, r: (t // 4 + r // 2 * 8, t % 4 * 2 + r % 2),
    lambda t, r: (t % 16, r + t // 16 * 8),
    lambda t, r: (t, 2 * r),
    lambda t, r: (t // 4 + r // 2 * 8, 2 * (t % 4 * 2 + r % 2)),
]


@pytest.mark.parametrize("form", range(len(SHAPES)))
def test_shapes_of_loads_and_stores(unit, form):
    torch.manual_seed(form)
    threads, numbers = torch.arange(128)[:, None].expand(128, 4), torch.arange(4).expand(128, 4)
    rows, columns = (x.broadcast_to(128, 4) for x in SHAPES[form](threads % 32, numbers))
    rows, packed = rows + threads // 32 * 32, form >= 5
    cells = torch.randint(0, 2**15, (128, 16), dtype=INT32)
    expected = cells[rows, columns] + (cells[rows, columns + 1] * 2**16 if packed else 0)
    _, registers = run(unit.shapes, [cells, torch.zeros(128, 4, dtype=INT32)], [form, 1])
    assert torch.equal(registers, expected)
    stored, _ = run(unit.shapes, [torch.zeros_like(cells), registers], [form, 0])
    wanted = torch.zeros_like(cells)
    wanted[rows, columns] = cells[rows, columns]
    if packed:
        wanted[rows, columns + 1] = cells[rows, columns + 1]
    assert torch.equal(stored, wanted)


# In the order of the source's enumeration: kind, the lines of which one is named, a part of the message.
MISTAKES = {
    "no fence.proxy.async": ("race", ["product"], "no fence makes what threads write known to units"),
    "no wait": ("race", ["product", "load"], "uses columns of tensor memory that a tcgen05"),
    "a factor is overwritten before the wait": ("race", ["product", "overwrite"], "tcgen05.mma's read .* the write by"),
    "beyond the allocation": ("out-of-bounds", ["load"], "tcgen05.ld uses the columns .*, which are not all allocated"),
    "not freed": ("tensor-memory", ["allocation"], "ends with 64 columns of tensor memory .*tcgen05.dealloc"),
    "no commit": ("race", ["product"], "the thread ends while a tcgen05.mma may still be at work"),
    "summed again while it is read": ("race", ["product", "load"], "uses columns of tensor memory that a tcgen05"),
    "": None,  # summed again after it was read
    "lanes of another warp": ("out-of-bounds", ["load"], "in warp 1 uses lanes .* reaches the lanes 32 to 63"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_with_its_line(traced, mistake):
    torch.manual_seed(0)
    a, b = integers(HALF, 128, 64), integers(HALF, 64, 64)
    memory, numbers, exact = product(a, b)
    wrong, right = 1 + list(MISTAKES).index(mistake), 0 if mistake else 8
    for seed in range(3):
        out = torch.zeros(128, 64, dtype=INT32)
        report = xray(traced.product, [memory, out], [*numbers, right], seed=seed)
        assert report.faults == [] and report.remarks == []
        assert torch.equal(out.view(TF32).double(), exact)
        if not mistake:
            continue
        kind, lines, message = MISTAKES[mistake]
        places = [line_marked(SOURCE, line) for line in lines]
        faults = xray(traced.product, [memory, out], [*numbers, wrong], seed=seed).faults
        found = [fault.message for fault in faults if fault.kind == kind and fault.line in places]
        assert found, faults
        assert_matches(message, "\n".join(found))


def test_the_products_of_a_pair_are_silent(traced):
    a, b = integers(HALF, 256, 64), integers(HALF, 64, 64)
    halves = [torch.cat([tile(a[128 * i : 128 * (i + 1)]), tile(b[32 * i : 32 * (i + 1)])]) for i in (0, 1)]
    numbers = [descriptor(0), descriptor(128 * 128), 2, 2, 4, 0, types_of(HALF, HALF, TF32, 256, 64), 64, 2, 0]
    for seed in range(3):
        out = torch.zeros(2, 128, 64, dtype=INT32)
        report = xray(traced.product, [torch.cat(halves), out], numbers, seed=seed)
        assert report.faults == [] and report.remarks == []
        assert torch.equal(out.view(TF32).reshape(256, 64), a.float() @ b.float().mT)


def test_loads_and_stores_and_a_factor_in_tensor_memory_are_silent(traced):
    for form in range(len(SHAPES)):
        tensors = [torch.zeros(128, 16, dtype=INT32), torch.zeros(128, 4, dtype=INT32)]
        assert xray(traced.shapes, tensors, [form, form % 2]).faults == []
    tensors = [torch.zeros(128, 8, dtype=INT32), tile(integers(HALF, 32, 64)), torch.zeros(128, 32, dtype=INT32)]
    assert xray(traced.from_cells, tensors, [descriptor(0), types_of(HALF, HALF, TF32, 128, 32)]).faults == []


@pytest.mark.skipif(not SIMULATOR, reason="a GPU waits for ever")
def test_columns_that_are_not_freed_end_a_plain_run(unit):
    memory, numbers, _ = product(integers(HALF, 128, 64), integers(HALF, 64, 64))
    with pytest.raises(kernel_xray.KernelFault, match="columns of tensor memory") as caught:
        unit.product([memory, torch.zeros(128, 64, dtype=INT32)], [*numbers, 5])
    assert caught.value.kind == "tensor-memory"
