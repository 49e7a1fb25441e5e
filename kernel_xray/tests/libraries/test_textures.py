"""Textures, surfaces and CUDA arrays: what kernels read, beside CUDA's definition written in NumPy."""

from itertools import product

import numpy as np
import pytest
import torch
from simt_programs import CASES, load_cases, operators

import kernel_xray

SIMULATOR = kernel_xray.target == "simulator"
pytestmark = pytest.mark.slow
WRAP, CLAMP, MIRROR, BORDER = range(4)
POINT, LINEAR = range(2)
AS_THEY_ARE, AS_FRACTIONS = range(2)

cases = operators(load_cases, CASES / "textures.cu", "textures")


def on_device(array):
    return torch.from_numpy(np.ascontiguousarray(array)).to(kernel_xray.device)


def addressed(index, n, mode, normalised):
    """The element that an index stands for; -1 on the border."""
    if mode == BORDER:
        return np.where((index >= 0) & (index < n), index, -1)
    if mode == CLAMP or not normalised:
        return np.clip(index, 0, n - 1)
    period = n if mode == WRAP else 2 * n
    k = index % period
    return np.where(k < n, k, period - 1 - k)


def element(values, indices):
    """values[indices], and 0 where an index is -1."""
    outside = np.any(np.stack(indices) < 0, axis=0)
    picked = values[tuple(indices)]
    picked[outside] = 0
    return picked


def texture(values, places, mode, filtering, normalised):
    """What CUDA's programming guide says of a texture. values[z, y, x, component], places[n, 3] of x, y, z."""
    sizes = values.shape[-2::-1]  # x, y, z
    at = [places[:, d].astype(np.float64) * (n if normalised else 1) for d, n in enumerate(sizes)]
    if filtering == POINT:
        indices = [addressed(np.floor(x).astype(int), n, mode, normalised) for x, n in zip(at, sizes, strict=True)]
        return element(values, indices[::-1])
    lower = [np.floor(x - 0.5) for x in at]
    upper_weight = [np.floor((x - 0.5 - low) * 256 + 0.5) / 256 for x, low in zip(at, lower, strict=True)]
    total = 0
    for corner in product((0, 1), repeat=len(sizes)):
        indices = [
            addressed((low + up).astype(int), n, mode, normalised)
            for low, up, n in zip(lower, corner, sizes, strict=True)
        ]
        weight = np.prod([w if up else 1 - w for w, up in zip(upper_weight, corner, strict=True)], axis=0)
        total = total + weight[:, None] * element(values, indices[::-1])
    return total


def places(sizes, normalised, seed=1):
    """Inside, on and outside the edges of a texture of these sizes (x, y, z); multiples of 1/64 of an element."""
    random = np.random.default_rng(seed)
    at = np.stack([random.integers(-2 * 64 * n, 3 * 64 * n, 400) / 64 for n in sizes], axis=1)
    at = at + 1 / 256  # never on the border between two elements
    if normalised:
        at = at / np.array(sizes)
    return np.concatenate([at, np.zeros((400, 3 - len(sizes)))], axis=1).astype(np.float32)


SIZES = {1: (16,), 2: (8, 4), 3: (4, 8, 2)}


def tolerance(filtering):
    """Of values up to 8, filtered: CUDA does not say how a GPU rounds the products of its weights of 8 bits.

    On an H100 results are off by at most 0.05.
    """
    return 8 * 4 / 256 if filtering == LINEAR and not SIMULATOR else 1e-5


@pytest.mark.parametrize("dimensions", SIZES)
@pytest.mark.parametrize("filtering", [POINT, LINEAR])
@pytest.mark.parametrize(
    ("mode", "normalised"), [*product([WRAP, CLAMP, MIRROR, BORDER], [True]), (CLAMP, False), (BORDER, False)]
)
def test_address_and_filter_modes(cases, dimensions, filtering, mode, normalised):
    sizes = SIZES[dimensions]
    values = np.random.default_rng(0).integers(-8, 9, (*sizes[::-1], 1)).astype(np.float32)
    at = places(sizes, normalised)
    out = torch.zeros(len(at), device=kernel_xray.device)
    extent = [*sizes, 0, 0][:3]
    cases.floats([on_device(values), on_device(at), out], [*extent, -1, mode, filtering, AS_THEY_ARE, normalised])
    expected = texture(values, at, mode, filtering, normalised)[:, 0]
    if not SIMULATOR and dimensions == 1 and (mode, filtering) == (BORDER, LINEAR):
        expected /= 2  # an H100 filters a 1-D array as one row at y = 0, half of which is the border
    np.testing.assert_allclose(out.cpu().numpy(), expected, atol=tolerance(filtering))


@pytest.mark.parametrize("filtering", [POINT, LINEAR])
def test_vectors_and_layers(cases, filtering):
    values = np.random.default_rng(2).integers(-8, 9, (3, 4, 8, 4)).astype(np.float32)
    at = places((8, 4), False)
    out = torch.zeros(len(at), 4, device=kernel_xray.device)
    for layer, expected_layer in ((0, 0), (2, 2), (7, 2)):
        numbers = [8, 4, 3, layer, CLAMP, filtering, AS_THEY_ARE, 0]
        cases.float4s([on_device(values), on_device(at), out], numbers)
        expected = texture(values[expected_layer], at, CLAMP, filtering, False)
        np.testing.assert_allclose(out.cpu().numpy(), expected, atol=tolerance(filtering))


INTEGERS = {  # the case, the type, components, the read mode, the divisor, the filter mode
    "bytes": ("bytes", np.uint8, 1, AS_THEY_ARE, 1, POINT),
    "bytes as fractions": ("bytes_as_fractions", np.uint8, 1, AS_FRACTIONS, 255, POINT),
    "bytes filtered": ("bytes_as_fractions", np.uint8, 1, AS_FRACTIONS, 255, LINEAR),
    "signed as fractions": ("signed_as_fractions", np.int16, 2, AS_FRACTIONS, 32767, POINT),
    "signed filtered": ("signed_as_fractions", np.int16, 2, AS_FRACTIONS, 32767, LINEAR),
    "integers": ("integers", np.int32, 2, AS_THEY_ARE, 1, POINT),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(cases, name):
    case, dtype, components, read, divisor, filtering = INTEGERS[name]
    limits = np.iinfo(dtype)
    values = np.random.default_rng(3).integers(limits.min, limits.max, (4, 8, components), dtype, endpoint=True)
    at = places((8, 4), False)
    out = np.zeros((len(at), components), np.float32 if read == AS_FRACTIONS else dtype)
    out = on_device(out)
    getattr(cases, case)([on_device(values), on_device(at), out], [8, 4, 0, -1, BORDER, filtering, read, 0])
    read_values = np.maximum(values / divisor, -1) if read == AS_FRACTIONS else values
    expected = texture(read_values, at, BORDER, filtering, False)
    np.testing.assert_allclose(out.cpu().numpy(), expected, atol=max(tolerance(filtering) / 8, 1e-6))


def test_linear_memory(cases):
    values = torch.arange(1.0, 31.0, device=kernel_xray.device)
    out = torch.full((32,), -1.0, device=kernel_xray.device)
    cases.linear([values, out], [])
    assert out.tolist() == [0, *values.tolist(), 0]


def test_pitched_memory(cases):
    values = np.random.default_rng(4).integers(-8, 9, (5, 13)).astype(np.float32)
    out = torch.zeros(5, 13, device=kernel_xray.device)
    cases.pitched([on_device(values), out], [5, 13])
    right = np.concatenate([values[:, 1:], values[:, -1:]], axis=1)
    np.testing.assert_allclose(out.cpu().numpy(), (values + right) / 2)


def test_gather(cases):
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    out = torch.zeros(9, 4, device=kernel_xray.device)
    cases.gather([on_device(values), out], [])
    corners = [[values[y + 1, x], values[y + 1, x + 1], values[y, x + 1], values[y, x]] for y, x in np.ndindex(3, 3)]
    assert out.tolist() == corners


ZERO, SURFACE_CLAMP, TRAP = range(3)


@pytest.mark.parametrize(("step", "mode"), [(0, TRAP), (3, ZERO), (-2, ZERO), (3, SURFACE_CLAMP), (-2, SURFACE_CLAMP)])
def test_surfaces(cases, step, mode):
    n = 8
    values = np.random.default_rng(5).integers(-99, 99, (n, n, 2)).astype(np.int16)
    out = torch.zeros(n, n, 2, dtype=torch.int16, device=kernel_xray.device)
    cases.surfaces([on_device(values), out], [n, step, mode])
    columns = np.arange(n) + step
    expected = values.transpose(1, 0, 2)[:, np.clip(columns, 0, n - 1)]
    if mode == ZERO:
        expected = np.where(((columns >= 0) & (columns < n))[None, :, None], expected, 0)
    assert np.array_equal(out.cpu().numpy(), expected)


def test_copies_between_arrays_and_memory(cases):
    cases.copies([], [])


def test_wrong_calls_return_errors(cases):
    cases.wrong_calls([], [])


in_the_simulator = pytest.mark.skipif(not SIMULATOR, reason="undefined, or the end of the process, on a GPU")
MISUSES = ["other dimensions", "reads integers", None, "other dimensions", None, "does not exist",
           "illegal memory access", "does not exist"]  # fmt: skip


@in_the_simulator
@pytest.mark.parametrize("which", range(len(MISUSES)))
def test_a_misuse_in_a_kernel_is_a_fault(cases, which):
    data, out = torch.arange(16.0), torch.full((1,), -1.0)
    if MISUSES[which] is None:
        cases.misuse([data, out], [which])
        assert out.item() == (1 if which == 2 else 0)
        return
    with pytest.raises(kernel_xray.KernelFault, match=f"(?s){MISUSES[which]}.*misuse_kernel"):
        cases.misuse([data, out], [which])


@in_the_simulator
def test_a_surface_is_not_read_outside(cases):
    values = torch.zeros(8, 8, 2, dtype=torch.int16)
    with pytest.raises(kernel_xray.KernelFault, match="outside: x 32 bytes, y 0, z or layer 0 of 32 bytes, 8, 1"):
        cases.surfaces([values, values.clone()], [8, 1, TRAP])


@in_the_simulator
def test_an_xray_ignores_textures():
    traced = load_cases(CASES / "textures.cu", "textures_traced", traced=True)
    values, out = torch.arange(1.0, 31.0), torch.full((32,), -1.0)
    report = kernel_xray.xray(traced.linear, [values, out], [])
    assert report.faults == []
    assert out.tolist() == [0, *values.tolist(), 0]
    assert {(line.kind, line.kernel) for line in report.lines} == {("store", "fetch_kernel")}
    report = kernel_xray.xray(traced.pitched, [values, torch.zeros(30)], [3, 10])
    assert report.faults == []
