"""cuRAND in the simulator, or NVIDIA's on a GPU: bits against their published definition, numbers against theirs."""

import math
from functools import cache

import numpy as np
import pytest
import torch
from cuda_libraries import ON_SIMULATOR, load
from simt_programs import operators

import kernel_xray

pytestmark = pytest.mark.slow
BITS, UNIFORM, UNIFORM_DOUBLE, NORMAL, NORMAL_DOUBLE, LOG_NORMAL, LOG_NORMAL_DOUBLE, POISSON = range(8)
XORWOW, PHILOX, MRG = range(3)
DEFAULT, LEGACY = 101, 103
M32 = 2**32 - 1

random = operators(load, "random", "curand")


# ----------------------------------------------------------------------------------------------------------------------
# The engines, from their definitions


def step_xorwow(v):
    """One step of the register, a list of five words."""
    t = v[0] ^ (v[0] >> 2)
    return [*v[1:], (v[4] ^ (v[4] << 4) ^ t ^ (t << 1)) & M32]


def words(x):
    return [x >> (32 * i) & M32 for i in range(5)]


def number_of(v):
    return sum(word << (32 * i) for i, word in enumerate(v))


def times(matrix, x):
    """A matrix over the field of two elements, as the images of the bits, times a vector of bits."""
    out = 0
    while x:
        low = x & -x
        out ^= matrix[low.bit_length() - 1]
        x ^= low
    return out


@cache
def xorwow_power(log2):
    if log2 == 0:
        return [number_of(step_xorwow(words(1 << bit))) for bit in range(160)]
    root = xorwow_power(log2 - 1)
    return [times(root, image) for image in root]


def xorwow(seed, sequence, offset):
    s0, s1 = (seed & M32) ^ 0xAAD26B49, (seed >> 32) ^ 0xF7DCEFDD
    t0, t1 = 1099087573 * s0 & M32, 2591861531 * s1 & M32
    d = 6615241 + t0 + t1 + 362437 * offset
    v = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
    x = number_of([word & M32 for word in v])
    for count, first in ((sequence, 67), (offset, 0)):
        for bit in range(count.bit_length()):
            if count >> bit & 1:
                x = times(xorwow_power(first + bit), x)
    v = words(x)
    while True:
        v = step_xorwow(v)
        d += 362437
        yield d + v[4] & M32


def philox_rounds(counter, key):
    """Random123's philox4x32 with ten rounds."""
    c, k = list(counter), list(key)
    for _ in range(10):
        x, z = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(z >> 32) ^ c[1] ^ k[0], z & M32, (x >> 32) ^ c[3] ^ k[1], x & M32]
        k = [k[0] + 0x9E3779B9 & M32, k[1] + 0xBB67AE85 & M32]
    return c


def philox(seed, sequence, offset):
    position = (sequence << 66) + offset
    while True:
        counter = position // 4
        yield philox_rounds([counter >> 32 * i & M32 for i in range(4)], [seed & M32, seed >> 32])[position % 4]
        position += 1


M1, M2 = 4294967087, 4294944443


def mrg(seed, sequence, offset):
    """The differences before they are scaled: from 1 to M1."""
    x, y = (seed & M32) ^ 0x55555555, (seed >> 32) ^ 0xAAAAAAAA
    s1 = np.array([12345 * f % M1 for f in ((x, y, x) if seed else (1, 1, 1))], dtype=object)
    s2 = np.array([12345 * f % M2 for f in ((y, x, y) if seed else (1, 1, 1))], dtype=object)
    a1 = np.array([[0, 1, 0], [0, 0, 1], [-810728, 1403580, 0]], dtype=object)
    a2 = np.array([[0, 1, 0], [0, 0, 1], [-1370589, 0, 527612]], dtype=object)

    def power(matrix, n, modulus):
        out = np.eye(3, dtype=int).astype(object)
        while n:
            if n & 1:
                out = out.dot(matrix) % modulus
            matrix, n = matrix.dot(matrix) % modulus, n >> 1
        return out

    s1 = power(a1, (sequence << 76) + offset, M1).dot(s1) % M1
    s2 = power(a2, (sequence << 76) + offset, M2).dot(s2) % M2
    while True:
        s1, s2 = a1.dot(s1) % M1, a2.dot(s2) % M2
        yield (int(s1[2]) - int(s2[2]) - 1) % M1 + 1


ENGINES = [xorwow, philox, mrg]


def take(n, iterator):
    return [next(iterator) for _ in range(n)]


def bits_of(engine, drawn):
    return [int(x * 1.000000048662) for x in drawn] if engine == MRG else drawn


def sequence(random, engine, seed, subsequence, offset, kind, n):
    signed = [x - 2**64 if x >= 2**63 else x for x in (seed, subsequence, offset)]
    bits = torch.zeros(n, dtype=torch.uint32, device=kernel_xray.device)
    values = torch.zeros(n, dtype=torch.float64, device=kernel_xray.device)
    random.sequence([bits, values], [engine, *signed, kind])
    return bits.tolist() if kind == BITS else values.tolist()


STARTS = [
    (0, 0, 0), (1234, 0, 0), (0xDEADBEEFCAFEBABE, 0, 3), (7, 1, 0), (7, 123_456, 1_000_003), (7, 2**40 + 5, 2**44 + 1),
]  # fmt: skip


@pytest.mark.parametrize("engine", [XORWOW, PHILOX, MRG], ids=["xorwow", "philox", "mrg"])
@pytest.mark.parametrize("start", STARTS, ids=str)
def test_bits(random, engine, start):
    want = bits_of(engine, take(11, ENGINES[engine](*start)))
    assert sequence(random, engine, *start, BITS, 11) == want
    assert len(set(want)) > 8


# From Random123's kat_vectors: counter, key, answer.
ONES = 0xFFFFFFFF
KNOWN = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([ONES] * 4, [ONES] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers_of_philox(random, counter, key, answer):
    seed, low, high = (pair[1] << 32 | pair[0] for pair in (key, counter[:2], counter[2:]))
    out = torch.zeros(4, dtype=torch.uint32, device=kernel_xray.device)
    random.philox([out], [x - 2**64 if x >= 2**63 else x for x in (seed, high, low)])
    # Four skips of `low` numbers move the counter on by `low`.
    assert philox_rounds(counter, key) == answer
    assert out.tolist() == answer


def unit(x):
    return float(np.float32(x) * np.float32(2**-32) + np.float32(2**-33))


def unit_double(x, y):
    return (x ^ y << 21) * 2.0**-53 + 2.0**-54


def normal_pair(u, v):
    radius = math.sqrt(-2 * math.log(u))
    return [radius * math.sin(2 * math.pi * v), radius * math.cos(2 * math.pi * v)]


def numbers(engine, drawn, kind):
    """The numbers of a kind that one state makes of what its engine draws, before mean and deviation."""
    scale = 2.3283065498378288e-10
    if engine == MRG:
        units = [x * scale for x in drawn]
        if kind in (UNIFORM, UNIFORM_DOUBLE):
            return units
        return [x for i in range(0, len(units) - 1, 2) for x in normal_pair(units[i], units[i + 1])]
    if kind == UNIFORM:
        return [unit(x) for x in drawn]
    if kind == UNIFORM_DOUBLE:
        if engine == PHILOX:  # a single one is made of 32 bits
            return [x * 2.0**-32 + 2.0**-32 for x in drawn]
        return [unit_double(*drawn[i : i + 2]) for i in range(0, len(drawn) - 1, 2)]
    if kind == NORMAL:
        return [x for i in range(0, len(drawn) - 1, 2) for x in normal_pair(unit(drawn[i]), unit(drawn[i + 1]))]
    pieces = [drawn[i : i + 4] for i in range(0, len(drawn) - 3, 4)]
    return [x for a, b, c, d in pieces for x in normal_pair(unit_double(a, b), unit_double(c, d))]


@pytest.mark.parametrize("engine", [XORWOW, PHILOX, MRG], ids=["xorwow", "philox", "mrg"])
def test_numbers_of_one_thread(random, engine):
    drawn = take(48, ENGINES[engine](99, 5, 1))
    for kind in (UNIFORM, UNIFORM_DOUBLE):
        got = sequence(random, engine, 99, 5, 1, kind, 9)
        assert got == pytest.approx(numbers(engine, drawn, kind)[:9], rel=1e-7 if kind == UNIFORM else 1e-15)
    for kind, tolerance in ((NORMAL, 2e-5), (NORMAL_DOUBLE, 1e-12)):
        want = numbers(engine, drawn, kind)[:9]
        assert sequence(random, engine, 99, 5, 1, kind, 9) == pytest.approx(want, abs=tolerance)
        log_kind = LOG_NORMAL if kind == NORMAL else LOG_NORMAL_DOUBLE
        want = [math.exp(0.25 + 2 * x) for x in want]
        assert sequence(random, engine, 99, 5, 1, log_kind, 9) == pytest.approx(want, rel=2 * tolerance + 1e-6)


def test_fours_of_philox(random):
    for before in range(4):
        drawn = take(12, philox(77, 0, before))
        units = [unit(x) for x in drawn]
        doubles = [unit_double(*drawn[:2]), unit_double(*drawn[2:4])]
        pairs = [*normal_pair(*units[:2]), *normal_pair(*units[2:4])]
        answers = [drawn[:4], units[:4], doubles, pairs, normal_pair(*doubles), pairs[:2],
                   [math.exp(0.25 + 2 * x) for x in pairs]]  # fmt: skip
        for kind, want in enumerate(answers):
            bits = torch.zeros(4, dtype=torch.uint32, device=kernel_xray.device)
            values = torch.zeros(4, dtype=torch.float64, device=kernel_xray.device)
            random.fours([bits, values], [77, before, kind])
            got = (bits if kind == 0 else values).tolist()[: len(want)]
            assert got == (want if kind == 0 else pytest.approx(want, rel=5e-5, abs=2e-5))


# ----------------------------------------------------------------------------------------------------------------------
# Distributions


def distance(values, distribution):
    """Kolmogorov and Smirnov's statistic, scaled: above 1.95 with a probability of 0.001."""
    x = values.cpu().double().sort().values
    n = x.numel()
    expected = distribution(x)
    steps = torch.arange(n + 1, dtype=torch.float64) / n
    return max((steps[1:] - expected).max(), (expected - steps[:-1]).max()).item() * math.sqrt(n)


def normal_cdf(x):
    return torch.special.ndtr(x)


DISTRIBUTIONS = {
    UNIFORM: lambda x: x,
    UNIFORM_DOUBLE: lambda x: x,
    NORMAL: normal_cdf,
    NORMAL_DOUBLE: normal_cdf,
    LOG_NORMAL: lambda x: normal_cdf((x.log() - 0.25) / 0.5),
    LOG_NORMAL_DOUBLE: lambda x: normal_cdf((x.log() - 0.25) / 0.5),
}


@pytest.mark.parametrize("engine", [XORWOW, PHILOX, MRG], ids=["xorwow", "philox", "mrg"])
def test_distributions_over_a_grid(random, engine):
    n, each = 1000, 6
    for kind, distribution in DISTRIBUTIONS.items():
        values = torch.zeros(n * each, dtype=torch.float64, device=kernel_xray.device)
        random.grid([values], [engine, 4321, kind, n, each, 50])
        assert distance(values, distribution) < 1.95
        assert distance(values * 0.9, distribution) > 1.95  # the test tells a wrong distribution
        assert values.unique().numel() > 0.99 * values.numel()
        threads = values.view(each, n)
        assert abs(torch.corrcoef(threads)[0, 1].item()) < 0.15  # draws of one thread are independent


MEANS = [0.5, 5.0, 29.5, 30.5, 63.0, 65.0, 200.0, 5000.0]


def poisson_distance(values, mean):
    """The largest difference of the distribution functions, scaled: a bound for discrete values, too."""
    counts = torch.bincount(values.long().cpu()).double()
    k = torch.arange(len(counts), dtype=torch.float64)
    density = (k * math.log(mean) - mean - torch.lgamma(k + 1)).exp()
    n = counts.sum()
    return ((counts.cumsum(0) / n - density.cumsum(0)).abs().max() * n.sqrt()).item()


@pytest.mark.parametrize("mean", MEANS)
def test_poisson(random, mean):
    for engine in (XORWOW, PHILOX, MRG):
        values = torch.zeros(6000, dtype=torch.float64, device=kernel_xray.device)
        random.grid([values], [engine, 99, POISSON, 1000, 6, round(100 * mean)])
        assert poisson_distance(values, mean) < 1.95
        assert poisson_distance(values, mean * 1.2) > 1.95
        assert values.var().item() == pytest.approx(mean, rel=0.08)


# ----------------------------------------------------------------------------------------------------------------------
# Generators on the host


def generate(random, engine, kind, n, *, seed=1234, offset=0, order=DEFAULT, parameter=1.0, first=0):
    dtypes = {BITS: torch.int32, POISSON: torch.int32, UNIFORM: torch.float32, NORMAL: torch.float32}
    out = torch.zeros(n, dtype=dtypes.get(kind, torch.float64), device=kernel_xray.device)
    if kind == LOG_NORMAL:
        out = out.float()
    random.generate([out], [engine, seed, offset, order, kind, round(100 * parameter), first])
    return out.cpu()


# Sequences that a generator draws from side by side, and the numbers that each gives in turn.
WIDTHS = {(XORWOW, DEFAULT): 4096, (XORWOW, LEGACY): 4096, (MRG, DEFAULT): 81920, (MRG, LEGACY): 4096,
          (PHILOX, DEFAULT): 65536, (PHILOX, LEGACY): 65536}  # fmt: skip


@pytest.mark.parametrize(("engine", "order"), WIDTHS, ids=str)
@pytest.mark.parametrize("offset", [0, 5])
def test_order_of_a_generator(random, engine, order, offset):
    width, group = WIDTHS[engine, order], 4 if engine == PHILOX else 1
    n = 3 * width * group
    bits = generate(random, engine, BITS, n, offset=offset, order=order, first=1000).numpy().view(np.uint32)
    places = [0, 1, 2, 3, 4, 7, 999, 1000, width - 1, width, width + 1, width * group, 2 * width * group + 9]
    for place in places:
        turn, index = divmod(place + offset, group)
        source = ENGINES[engine](1234, turn % width, turn // width * group + index)
        assert bits[place] == bits_of(engine, [next(source)])[0], place
    uniform = generate(random, engine, UNIFORM, 8, offset=offset, order=order)
    if engine != MRG:
        assert uniform.tolist() == [unit(int(x)) for x in bits[:8]]


@pytest.mark.parametrize("engine", [XORWOW, PHILOX, MRG], ids=["xorwow", "philox", "mrg"])
def test_numbers_of_a_generator(random, engine):
    # Each sequence gives two normal numbers in turn, or four.
    group = 4 if engine == PHILOX else 2
    for kind, needed, tolerance in ((NORMAL, 1, 2e-5), (NORMAL_DOUBLE, 2, 1e-12)):
        got = generate(random, engine, kind, 12, parameter=2.0).tolist()
        drawn = [take(needed * group, ENGINES[engine](1234, i, 0)) for i in range(12 // group)]
        want = [0.25 + 2 * x for d in drawn for x in numbers(engine, d, kind)[:group]]
        assert got == pytest.approx(want, abs=4 * tolerance)
    doubles = generate(random, engine, UNIFORM_DOUBLE, 8).tolist()
    if engine == PHILOX:
        want = [unit_double(*pair) for i in range(2) for d in [take(8, philox(1234, i, 0))]
                for pair in (d[:2], d[2:4], d[4:6], d[6:])]  # fmt: skip
    else:
        want = [numbers(engine, take(2, ENGINES[engine](1234, i, 0)), UNIFORM_DOUBLE)[0] for i in range(8)]
    assert doubles == pytest.approx(want, rel=1e-15)


@pytest.mark.parametrize("engine", [XORWOW, PHILOX, MRG], ids=["xorwow", "philox", "mrg"])
def test_distributions_of_a_generator(random, engine):
    n = 20_000
    for kind, distribution in DISTRIBUTIONS.items():
        values = generate(random, engine, kind, n, parameter=0.5, first=n // 2)
        if kind in (NORMAL, NORMAL_DOUBLE):
            values = (values.double() - 0.25) / 0.5
        assert distance(values, distribution) < 1.95
        assert distance(values * 0.9, distribution) > 1.95
    for mean in (4.0, 100.0):
        assert poisson_distance(generate(random, engine, POISSON, n, parameter=mean), mean) < 1.95


def test_seeds_differ_and_repeat(random):
    one, same, other = (generate(random, XORWOW, UNIFORM, 100, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_statuses(random):
    random.statuses([torch.zeros(4, device=kernel_xray.device)], [])  # the case raises at the first wrong answer


@ON_SIMULATOR
def test_refused(random):
    with pytest.raises(RuntimeError, match="not supported by the simulator: the random generator of number 141"):
        random.refused([], [0])
    with pytest.raises(RuntimeError, match="curandGenerateUniform: the output, 20 bytes, ends 4 bytes past the end"):
        random.refused([], [1])


@ON_SIMULATOR
def test_other_states_do_not_compile():
    text = "#include <curand_kernel.h>\nvoid f() {}\n%s"
    kernel_xray.load_inline(
        "simt_random_good", text % "curandState s;", no_implicit_headers=True, is_python_module=False
    )
    with pytest.raises(
        kernel_xray.UnsupportedError, match=r":3: not supported by the simulator: this random generator"
    ):
        kernel_xray.load_inline("simt_random_bad", text % "curandStateSobol32_t s;", no_implicit_headers=True)
