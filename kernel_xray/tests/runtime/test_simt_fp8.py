"""The 8-bit types of <cuda_fp8.h> against PyTorch's float8 types: every code, and every conversion of many numbers."""

import numpy as np
import pytest
import torch

import kernel_xray

KINDS = {"e4m3": (torch.float8_e4m3fn, 448.0), "e5m2": (torch.float8_e5m2, 57344.0)}
# What is nearer to the next power of two than to the largest value, and what it becomes: NaN or infinity.
OVERFLOW = {"e4m3": (lambda size: size > 464, 0x7F), "e5m2": (lambda size: size >= 61440, 0x7C)}
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def here(tensor):
    return tensor.to(kernel_xray.device)


def values_of(kind):
    """The 256 values, as double."""
    return torch.arange(256, dtype=torch.uint8).view(KINDS[kind][0]).double()


def saturated(kind, x):
    """The codes of float or double values; NaN is 0x7f, whatever its sign."""
    dtype, largest = KINDS[kind]
    return torch.where(x.isnan(), 0x7F, x.clamp(-largest, largest).to(dtype).view(torch.uint8))


def codes_of(kind, x):
    """The same without saturation, which versions of PyTorch differ about."""
    overflows, code = OVERFLOW[kind]
    return torch.where(overflows(x.abs()), code + 0x80 * x.signbit().to(torch.uint8), saturated(kind, x))


@pytest.fixture(scope="module")
def numbers():
    """Doubles: the values of both types, the midpoints between neighbours with the doubles beside them, and others."""
    found = [torch.tensor([0.0, np.inf, np.nan, 1e-45, 1e-300, 3e38, 1e300, 448, 464, 480, 57344, 61440, 65536])]
    for kind in KINDS:
        finite = values_of(kind)[: 0x7C if kind == "e5m2" else 0x7F]
        middle = (finite[1:] + finite[:-1]) / 2
        found += [finite, middle, middle.nextafter(middle + 1), middle.nextafter(middle - 1)]
    random = np.random.default_rng(1).integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    everything = torch.cat([*found, torch.from_numpy(random)]).double()
    return torch.cat([everything, -everything])


@pytest.fixture(scope="module")
def encoded(built, numbers):
    """By kind, the codes of the numbers: [number, from double, float, half or bfloat16, how]."""
    out = [here(torch.zeros(len(numbers), 4, 3, dtype=torch.uint8)) for _ in KINDS]
    built("fp8").encode([here(numbers), *out], [])
    return dict(zip(KINDS, (codes.cpu() for codes in out), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_each_code_has_pytorchs_value(built, kind):
    tensors = []
    for _ in KINDS:
        tensors += [here(torch.zeros(256, 5, dtype=torch.float64)), here(torch.zeros(256, 9, dtype=torch.int64))]
    built("fp8").decode(tensors, [])
    got, integers = (t.cpu() for t in tensors[2 * list(KINDS).index(kind) :][:2])
    expected = values_of(kind)
    for column in got.T:
        assert torch.equal(column.isnan(), expected.isnan())
        assert torch.equal(column[~expected.isnan()], expected[~expected.isnan()])
        assert torch.equal(column.signbit()[~expected.isnan()], expected.signbit()[~expected.isnan()])
    for column, dtype in zip(integers.T[:8], INTEGERS, strict=True):
        limits = np.iinfo(dtype)
        nan = limits.min if dtype == np.int64 else -(2**63) if dtype == np.uint64 else 0  # bit 63, read as signed
        clamped = expected.nan_to_num(0, np.inf, -np.inf).clamp(limits.min, limits.max).trunc()
        top = torch.where(clamped >= 2**63, limits.max if dtype == np.int64 else -1, clamped.clamp(max=2.0**62).long())
        assert torch.equal(column, torch.where(expected.isnan(), nan, top)), dtype
    assert torch.equal(integers[:, 8], (expected != 0).long())


@pytest.mark.parametrize("kind", KINDS)
def test_conversions_round_as_pytorch_does(encoded, numbers, kind):
    narrow = [numbers.float(), numbers.half().float(), numbers.bfloat16().float()]
    for got, x in zip(encoded[kind].transpose(0, 1)[1:], narrow, strict=True):
        assert torch.equal(got[:, 0], codes_of(kind, x))
        assert torch.equal(got[:, 1], saturated(kind, x))
        assert torch.equal(got[:, 2], saturated(kind, x))
    assert not torch.equal(encoded[kind][:, 1, 0], encoded[kind][:, 1, 1])  # saturation is visible


@pytest.mark.parametrize("kind", KINDS)
def test_a_double_is_rounded_once(encoded, numbers, kind):
    """To the nearest value, found by its distance; a second rounding, by way of float, would be wrong at midpoints."""
    finite = values_of(kind)[: 0x7C if kind == "e5m2" else 0x7F].numpy()
    table = np.append(finite, 2 * finite[-1] - finite[-2])  # one step beyond: overflow
    size = np.nan_to_num(numbers.abs().numpy(), nan=0.0)
    low = np.minimum(np.searchsorted(table, size, side="right") - 1, len(table) - 2)
    down, up = size - table[low], table[low + 1] - size
    code = low + ((up < down) | ((up == down) & (low % 2 == 1)))
    sign = numbers.signbit().numpy() * 0x80
    nosat = torch.from_numpy(np.where(numbers.isnan(), 0x7F, code + sign).astype(np.uint8))
    sat = torch.from_numpy(np.where(numbers.isnan(), 0x7F, np.minimum(code, len(finite) - 1) + sign).astype(np.uint8))
    got = encoded[kind][:, 0]
    number = ~numbers.isnan()  # a GPU keeps the sign of a double NaN
    assert torch.equal(got[number, 0], nosat[number])
    assert torch.equal(got[number, 1], sat[number])
    assert torch.equal(got[number, 2], sat[number])
    assert (got[~number, 0] & 0x7F >= 0x7D).all()
    assert not torch.equal(got[number, 0], codes_of(kind, numbers.float())[number])


def test_integers(built):
    out = here(torch.zeros(6, dtype=torch.uint8))
    built("fp8").of_integers([out], [])
    e4m3 = saturated("e4m3", torch.tensor([3.0, -1000.0, 17.0]))
    e5m2 = saturated("e5m2", torch.tensor([-3.0, 2.0**40, 70000.0]))
    assert torch.equal(out.cpu(), torch.cat([e4m3, e5m2]))


def test_pairs_and_fours_have_the_codes_of_their_numbers(built):
    x = torch.tensor([[1.5, -2.25, 0.0, 448.0], [1000.0, -70000.0, 0.001, -0.3], [np.inf, -np.inf, 3.0, 1e-3]])
    codes, values = here(torch.zeros(3, 2, 11, dtype=torch.int32)), here(torch.zeros(3, 2, 3, 4))
    built("fp8").many([here(x), codes, values], [])
    weights = torch.tensor([1, 256, 65536, 1 << 24])
    for k, (kind, (dtype, _)) in enumerate(KINDS.items()):
        narrowed = [x, x.half().float(), x.bfloat16().float()]
        fours = [(saturated(kind, n).long() * weights).sum(1) for n in narrowed]
        pairs = [(saturated(kind, n[:, :2]).long() * weights[:2]).sum(1) for n in [*narrowed, x]]
        open_pairs = [(codes_of(kind, n[:, :2]).long() * weights[:2]).sum(1) for n in [x, x, *narrowed[1:]]]
        expected = torch.stack(fours + pairs + open_pairs, 1)
        assert torch.equal(codes[:, k].cpu().long() & 0xFFFFFFFF, expected)
        back = saturated(kind, x).view(dtype).float()
        assert torch.equal(values[:, k, 0].cpu(), back)
        assert torch.equal(values[:, k, 1].cpu(), back[:, [0, 1, 0, 1]])
        assert torch.equal(values[:, k, 2].cpu(), back)
