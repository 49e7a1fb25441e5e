"""Hopper's units by inline PTX alone (cases/ptx_units.cu), on either target: tiles of tensor maps, wgmma."""

import itertools
import math

import pytest
import torch
from simt_programs import load_case, operators, run

import kernel_xray
from kernel_xray.build import flags

SIMULATOR = kernel_xray.target == "simulator"
HOPPER = SIMULATOR or torch.cuda.get_device_capability() == (9, 0)
pytestmark = pytest.mark.skipif(not HOPPER, reason="TMA and wgmma need compute capability 9.0")
UINT8, UINT16, UINT32, FLOAT32, FLOAT64 = 0, 1, 2, 7, 8  # of CUtensorMapDataType
BYTES = {UINT8: 1, UINT16: 2, UINT32: 4, FLOAT32: 4, FLOAT64: 8}
INVALID, NOT_SUPPORTED = 1, 801

units = operators(load_case, "ptx_units", flags.SM_90A)


# ----------------------------------------------------------------------------------------------------------------------
# Tiles


def five(values, rest):
    return [*values, *[rest] * (5 - len(values))]


def map_of(kind, sizes, box, swizzle=0, interleave=0, steps=(1, 1, 1, 1, 1), strides=None):
    """The numbers of a map of a contiguous tensor, or of one with other strides in bytes."""
    contiguous = [BYTES[kind] * math.prod(sizes[:d]) for d in range(1, len(sizes))]
    strides = contiguous if strides is None else strides
    padded = [*strides, *[16] * (4 - len(strides))]
    return [len(sizes), kind, swizzle, interleave, *five(sizes, 1), 0, *padded, *five(box, 1), *five(steps, 1)]


def tile_of(tensor, box, at):
    """The rows of a tile, as bytes; zeros outside. tensor: dimensions from the outermost, then an element's bytes."""
    rows = []
    for outer in itertools.product(*(range(n) for n in reversed(box[1:]))):
        row = torch.zeros(box[0], tensor.shape[-1], dtype=torch.uint8)
        where = [i + a for i, a in zip(outer, reversed(at[1:]), strict=True)]
        if all(0 <= i < n for i, n in zip(where, tensor.shape, strict=False)):
            for x in range(box[0]):
                if 0 <= x + at[0] < tensor.shape[-2]:
                    row[x] = tensor[(*where, x + at[0])]
        rows.append(row.flatten())
    return torch.stack(rows)


def swizzled(rows, swizzle):
    """The bytes of rows as they lie in shared memory."""
    flat = rows.flatten()
    pieces = flat.view(-1, 16)
    places = [p ^ (p >> 3) % 2**swizzle for p in range(len(pieces))]
    return pieces[places].flatten()


TILES = [  # type, sizes, box, swizzle, where it is loaded from and stored to; dimension 0 is the innermost
    (UINT16, (72, 20), (64, 8), 3, (8, 3), (0, 2)),
    (UINT16, (72, 20), (64, 8), 3, (-8, 15), (64, 15)),  # over the edges
    (UINT16, (72, 20), (64, 8), 3, (0, -9), (0, 19)),  # all rows outside
    (FLOAT32, (40, 9), (16, 5), 2, (8, 6), (28, 0)),
    (UINT8, (64, 33), (32, 16), 1, (32, 1), (16, 20)),
    (FLOAT64, (6, 7), (4, 3), 0, (2, 1), (4, 5)),
    (UINT8, (1008,), (256,), 0, (-16,), (800,)),
    (UINT16, (16, 5, 4), (8, 3, 2), 0, (8, 3, 1), (0, 0, 3)),
    (UINT16, (64, 5, 4), (64, 8, 1), 3, (0, 2, 4), (0, 1, 2)),  # a matrix that is not there
    (FLOAT32, (8, 3, 4, 2), (4, 2, 2, 2), 0, (4, 1, 3, -1), (0, 2, 0, 1)),
    (UINT8, (32, 2, 3, 2, 3), (16, 2, 2, 1, 2), 0, (16, 1, 1, 1, 2), (0, 0, 2, 0, 0)),
]


@pytest.mark.parametrize(("kind", "sizes", "box", "swizzle", "at", "to"), TILES)
def test_a_tile_is_loaded_and_stored(units, kind, sizes, box, swizzle, at, to):
    torch.manual_seed(0)
    shape = (*reversed(sizes), BYTES[kind])
    tensor, out = torch.randint(1, 256, shape, dtype=torch.uint8), torch.zeros(shape, dtype=torch.uint8)
    raw = torch.zeros(math.prod(box) * BYTES[kind], dtype=torch.uint8)
    numbers = [*map_of(kind, sizes, box, swizzle), *five(at, 0), *five(to, 0), len(sizes)]
    _, raw, out = run(units.tile, [tensor, raw, out], numbers)
    rows = tile_of(tensor, box, at)
    assert torch.equal(raw, swizzled(rows, swizzle))
    inside = torch.ones(shape, dtype=torch.uint8)
    wanted = tile_of(inside, box, to) * rows
    assert torch.equal(tile_of(out, box, to), wanted) and out.count_nonzero() == wanted.count_nonzero()


MATRIX = {"kind": UINT16, "sizes": (72, 20), "box": (64, 8), "swizzle": 3}
ENCODED = [
    ({}, 0, 0),
    ({"strides": (160,)}, 0, 0),
    ({}, 8, INVALID),  # the data begin at a multiple of 8 bytes
    ({"sizes": (0, 20), "strides": (144,)}, 0, INVALID),
    ({"strides": (150,)}, 0, INVALID),
    ({"box": (64, 257)}, 0, INVALID),
    ({"box": (60, 8)}, 0, INVALID),  # rows of 120 bytes
    ({"box": (72, 8)}, 0, INVALID),  # wider than the swizzle
    ({"box": (32, 8), "swizzle": 2}, 0, 0),
    ({"box": (64, 8), "swizzle": 2}, 0, INVALID),
    ({"box": (72, 8), "swizzle": 0}, 0, 0),
    ({"steps": (1, 9)}, 0, INVALID),
]


@pytest.mark.parametrize(("changes", "offset", "result"), ENCODED)
def test_what_a_map_may_be(units, changes, offset, result):
    data, got = torch.zeros(4096, dtype=torch.uint8, device=kernel_xray.device), torch.zeros(1, dtype=torch.int32)
    units.encode([data, got], [*map_of(**MATRIX | changes), offset])
    assert got.item() == result


@pytest.mark.skipif(not SIMULATOR, reason="a GPU has them")
@pytest.mark.parametrize("changes", [{"steps": (1, 2)}, {"interleave": 1, "swizzle": 0}, {"swizzle": 4}])
def test_maps_that_the_simulator_does_not_have(units, changes):
    got = torch.zeros(1, dtype=torch.int32)
    units.encode([torch.zeros(4096, dtype=torch.uint8), got], [*map_of(**MATRIX | changes), 0])
    assert got.item() == NOT_SUPPORTED


def test_a_function_that_the_driver_does_not_have(units):
    found = torch.zeros(1, dtype=torch.int32)
    units.no_such_function([found], [])
    assert found.item() == 1


WRONG = [  # where from, where to, coordinates, a part of the message
    ((4, 0), (0, 0), 2, "a column that is a multiple of 16 bytes"),
    ((0, 0), (0, -1), 2, "from a negative row or column"),
    ((0, 0), (0, 0), 3, "another number of coordinates than its tensor map has dimensions"),
]


@pytest.mark.skipif(not SIMULATOR, reason="a GPU's fault would end the process")
@pytest.mark.parametrize(("at", "to", "coordinates", "message"), WRONG)
def test_a_tile_that_tma_refuses(units, at, to, coordinates, message):
    tensors = [torch.zeros(n, dtype=torch.uint8) for n in (20 * 144, 1024, 20 * 144)]
    with pytest.raises(kernel_xray.KernelFault, match=message):
        run(units.tile, tensors, [*map_of(**MATRIX), *five(at, 0), *five(to, 0), coordinates])


# A sum of a tile, of which two numbers are inside the tensor; a maximum of a tile; an OR of plain memory.
@pytest.mark.parametrize(
    ("how", "reduced"), [(0, [5, 0, 0, 9, 4, 4]), (1, [5, 2, 2, 9, 1, 1]), (2, [7, 3, 3, 11, 1, 1])]
)
def test_reductions_by_two_blocks(units, how, reduced):
    data = torch.tensor([5, 0, 0, 9, 1, 1], dtype=torch.int32)
    (data,) = run(units.reduce, [data], [*map_of(UINT32, (6,), (4,)), 0, *[0] * 9, how])
    assert data.tolist() == reduced


@pytest.mark.skipif(not SIMULATOR, reason="a GPU's fault would end the process")
@pytest.mark.parametrize(("offset", "message"), [(0, "not a tensor map"), (8, "a multiple of 64 bytes")])
def test_a_map_that_tma_refuses(units, offset, message):
    memory = torch.zeros(256, dtype=torch.uint8)
    offset += -memory.data_ptr() % 64
    with pytest.raises(kernel_xray.KernelFault, match=message):
        run(units.misplaced_map, [memory], [offset])


# ----------------------------------------------------------------------------------------------------------------------
# wgmma. A factor is a matrix of lines; elements are small integers, so that sums are exact in every order.

HALF, BF16, E4M3, E5M2 = torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2


TF32, INT8, UINT8, INT32 = torch.float32, torch.int8, torch.uint8, torch.int32


def integers(dtype, *shape):
    return torch.randint(0 if dtype == UINT8 else -4, 5, shape).float().to(dtype)


def laid_out(lines, swizzle, to_next_row, to_next_8):
    """The bytes of shared memory for lines of elements, as a PTX descriptor with these strides describes them.

    The strides of a transposed factor that is not swizzled change places.
    """
    memory = torch.zeros(8192, dtype=torch.uint8)
    row_bytes = 16 << swizzle
    for i, line in enumerate(lines.view(torch.uint8)):
        for p, piece in enumerate(line.view(-1, 16)):
            row, within = divmod(16 * p, row_bytes)
            at = i // 8 * to_next_8 + i % 8 * row_bytes + row * to_next_row + within
            at ^= (at >> 7) % 2**swizzle << 4
            memory[at : at + 16] = piece
    return memory


def descriptor(start, swizzle, to_next_row, to_next_8):
    mode = {0: 0, 1: 3, 2: 2, 3: 1}[swizzle]
    bits = mode << 62 | to_next_8 >> 4 << 32 | to_next_row >> 4 << 16 | start >> 4
    return bits - 2**64 if bits >> 63 else bits


def sums_of(c):
    """What each of the 128 threads has of c, 64 rows."""
    rows = torch.arange(128) // 32 * 16 + torch.arange(128) % 32 // 4
    pairs = torch.arange(c.shape[1] // 8)[:, None] * 8 + torch.arange(2)
    columns = (torch.arange(128) % 4 * 2)[:, None, None] + pairs
    return torch.stack([c[(rows + 8 * i)[:, None, None], columns] for i in range(2)], dim=2).flatten(1)


def registers_of(a):
    """What each thread has of a, 64 rows of 32 bytes, in four registers."""
    words = a.view(torch.int32)  # 8 of a row
    rows = torch.arange(128) // 32 * 16 + torch.arange(128) % 32 // 4
    return torch.stack([words[rows + i % 2 * 8, torch.arange(128) % 4 + i // 2 * 4] for i in range(4)], dim=1)


# types of a, b and the sums; whether a and b are transposed; the product's sign
FORMS = [(HALF, HALF, TF32, 0, 0, 1), (BF16, BF16, TF32, 1, 0, 1), (HALF, HALF, TF32, 0, 1, 1)]
FORMS += [(BF16, BF16, TF32, 1, 1, -1), (E4M3, E4M3, TF32, 0, 0, 1), (E5M2, E4M3, TF32, 0, 0, -1)]
FORMS += [(TF32, TF32, TF32, 0, 0, -1), (INT8, UINT8, INT32, 0, 0, 1)]
FORMS += [(HALF, HALF, HALF, 1, 0, -1), (E4M3, E5M2, HALF, 0, 0, 1)]
FORMS += [(HALF, HALF, TF32, 0, 0, 1), (BF16, BF16, TF32, 0, 1, -1), (E4M3, E5M2, TF32, 0, 0, 1)]  # a in registers
FORMS += [(TF32, TF32, TF32, 0, 0, 1), (UINT8, INT8, INT32, 0, 0, 1)]


def registers_of_sums(c, dtype):
    """The registers that each thread has of c, as numbers of 32 bits."""
    sums = sums_of(c).to(dtype)
    filler = torch.zeros_like(sums) if dtype == HALF else sums[:, :0]  # two of a register: half of them are not used
    return torch.cat([sums, filler], dim=1).view(INT32)


@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize("swizzle", [0, 1, 2, 3])
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_products(units, form, swizzle, add):
    torch.manual_seed(form)
    of_a, of_b, of_sums, a_transposed, b_transposed, sign = FORMS[form]
    n, k = 8 if form < 10 else 16, 32 // torch.empty(0, dtype=of_a).element_size()
    a, b, c = integers(of_a, 64, k), integers(of_b, n, k), integers(torch.float32, 64, n)
    memory, described = [], []
    for factor, transposed in ((a, a_transposed), (b, b_transposed)):
        lines, to_next_8 = factor.mT.contiguous() if transposed else factor, 128 << swizzle
        to_next_row = to_next_8 * (len(lines) // 8)
        memory.append(laid_out(lines, swizzle, to_next_row, to_next_8))
        strides = (to_next_row, to_next_8) if swizzle or not transposed else (to_next_8, to_next_row)
        described.append(descriptor(8192 * len(described), swizzle, *strides))
    left = registers_of(a) if form >= 10 else torch.zeros(512, dtype=torch.int32)
    *_, got = run(units.wgmma, [torch.cat(memory), left, registers_of_sums(c, of_sums)], [*described, add, form])
    exact = sign * (a.float() @ b[:n].float().mT) + add * c
    assert torch.equal(got.view(of_sums)[:, : n // 2], sums_of(exact).to(of_sums))
