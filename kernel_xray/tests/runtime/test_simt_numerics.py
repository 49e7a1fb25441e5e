"""CUDA's mathematical functions, in units in the last place (ULPs) of the result's type.

The kernels are in `cases/maths.cu`. The references are float64 values of NumPy and PyTorch; the
allowed errors are those that NVIDIA documents, 0.5 where it promises the correctly rounded value.
"""

import math

import numpy as np
import pytest
import torch

import kernel_xray

pytestmark = (
    pytest.mark.slow
)  # all functions of CUDA, to the ULP; the lessons and the contract compute with what they use

EXACT = 0.5 + 1e-5

# Significant bits and the least exponent of a normal number.
PRECISION = {torch.float16: (11, -14), torch.float32: (24, -126), torch.float64: (53, -1022)}


def ulps(got: torch.Tensor, exact: np.ndarray) -> float:
    """The largest distance of `got` from the float64 values `exact`, in ULPs of got's type.

    Infinite if a NaN or an infinity is missing or unexpected.
    """
    bits, least = PRECISION[got.dtype]
    rounded = torch.from_numpy(exact).to(got.dtype).double().numpy()
    got = got.double().cpu().numpy()
    special = ~np.isfinite(rounded)
    if not np.array_equal(got[special], rounded[special], equal_nan=True):
        return math.inf
    got, exact = got[~special], exact[~special]
    exponent = np.where(exact == 0.0, least, np.maximum(np.frexp(exact)[1] - 1, least))
    error = np.abs(got - exact) / np.ldexp(1.0, exponent - (bits - 1))
    return math.inf if np.isnan(error).any() else float(error.max(initial=0.0))


def test_ulps_rejects():
    """The measure itself: right values pass, and each kind of wrong value shows."""
    one = np.array([1.0, math.inf, math.nan, 0.0])
    right = torch.tensor([1.0, math.inf, math.nan, 0.0])
    assert ulps(right, one) == 0.0
    assert ulps(torch.tensor([1.0 + 2**-22]), np.array([1.0])) == 2.0
    assert ulps(torch.tensor([1.0 + 2**-9], dtype=torch.float16), np.array([1.0])) == 2.0
    for wrong in ([math.nan, math.inf, math.nan, 0.0], [1.0, -math.inf, math.nan, 0.0], [1.0, math.inf, 3.0, 0.0]):
        assert ulps(torch.tensor(wrong), one) == math.inf
    assert ulps(torch.tensor([1.0, math.inf, math.nan, 1e-3]), one) > 1e6


def on_device(values, dtype=torch.float32):
    return torch.as_tensor(values).to(kernel_xray.device, dtype)


def each(function):
    """A function of Python floats, applied to arrays."""
    return np.vectorize(function, otypes=[np.float64])


def of_torch(function):
    return lambda *x: function(*(torch.from_numpy(v) for v in x)).numpy()


# ----------------------------------------------------------------------------------------------------------------------
# Functions of one argument: name, reference, range, ULPs

erfinv, ndtri = of_torch(torch.erfinv), of_torch(torch.special.ndtri)
bessel_i0, bessel_i1 = of_torch(torch.special.i0), of_torch(torch.special.i1)
ndtr = each(lambda x: 0.5 * math.erfc(-x * math.sqrt(0.5)))
erf, erfc, erfcx = map(of_torch, (torch.erf, torch.erfc, torch.special.erfcx))
lgamma, bessel_j0 = of_torch(torch.lgamma), of_torch(torch.special.bessel_j0)
tgamma = each(math.gamma)


def sinpi(x):
    """Reduced to half a turn first, which is exact, so nothing is lost near integers."""
    turn = x - 2 * np.round(x / 2)
    return np.sin(np.pi * np.where(np.abs(turn) > 0.5, np.copysign(1.0, turn) - turn, turn))


def cospi(x):
    return sinpi(0.5 - np.abs(x - 2 * np.round(x / 2)))


def erfcinv(x):
    return -ndtri(x / 2) * math.sqrt(0.5)


def half_away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def reciprocal_root(x):
    return 1 / np.sqrt(x)


def reciprocal_cube_root(x):
    return 1 / np.cbrt(x)


BOTH = [  # name, reference; in float, with an f behind the name, the range and ULPs; in double the range and ULPs
    ("tan", np.tan, (-10, 10), 4, (-10, 10), 3),
    ("asin", np.arcsin, (-1.1, 1.1), 4, (-1, 1), 3),
    ("acos", np.arccos, (-1.1, 1.1), 2, (-1, 1), 3),
    ("atan", np.arctan, (-50, 50), 2, (-50, 50), 3),
    ("sinh", np.sinh, (-20, 20), 3, (-20, 20), 3),
    ("cosh", np.cosh, (-20, 20), 2, (-20, 20), 3),
    ("tanh", np.tanh, (-5, 5), 2, (-5, 5), 3),
    ("exp2", np.exp2, (-140, 130), 2, (-700, 700), 2),
    ("exp10", lambda x: 10.0**x, (-40, 40), 2, (-300, 300), 3),
    ("expm1", np.expm1, (-5, 5), 2, (-5, 5), 3),
    ("log", np.log, (-1, 1000), 1, (-1, 1000), 2),
    ("log2", np.log2, (-1, 1000), 1, (0.1, 1000), 2),
    ("log10", np.log10, (-1, 1000), 2, (0.1, 1000), 3),
    ("log1p", np.log1p, (-0.9, 5), 1, (-0.9, 5), 3),
    ("sqrt", np.sqrt, (-1, 1e6), EXACT, (-1, 1000), 0),
    ("rsqrt", reciprocal_root, (1e-3, 1e6), 2, (0.1, 1000), 3),
    ("cbrt", np.cbrt, (-1e3, 1e3), 1, (-1000, 1000), 3),
    ("erf", erf, (-3, 3), 2, (-3, 3), 4),
    ("erfc", erfc, (-3, 5), 4, (-3, 5), 8),
    ("erfinv", erfinv, (-0.99, 0.99), 2, (-0.99, 0.99), 16),
    ("normcdf", ndtr, (-6, 3), 5, (-3, 3), 16),
    ("lgamma", lgamma, (2.5, 50), 6, (2.5, 50), 16),
    ("tgamma", tgamma, (0.1, 30), 11, (0.1, 30), 16),
    ("sinpi", sinpi, (-40.3, 40), 2, (-3.4, 3.4), 4),
    ("cospi", cospi, (-40.3, 40), 2, (-3.4, 3.4), 4),
    ("floor", np.floor, (-9, 9), 0, (-9, 9), 0),
    ("ceil", np.ceil, (-9, 9), 0, (-9, 9), 0),
    ("trunc", np.trunc, (-9, 9), 0, (-9, 9), 0),
    ("rint", np.rint, "halves", 0, "halves", 0),
    ("round", half_away, "halves", 0, "halves", 0),
    ("fabs", np.abs, (-9, 9), 0, (-9, 9), 0),
]
UNARY_FLOAT = [
    *[(f"{name}f", reference, span, allowed) for name, reference, span, allowed, *_ in BOTH],
    *[(name, f, r, 2) for name, f in [("sinf", np.sin), ("cosf", np.cos)] for r in [(-4, 4), (-1e5, 1e5)]],
    ("asinhf", np.arcsinh, (-50, 50), 3),
    ("acoshf", np.arccosh, (0.5, 50), 4),
    ("atanhf", np.arctanh, (-0.99, 0.99), 3),
    *[("expf", np.exp, r, 2) for r in [(-1, 1), (-100, 90)]],
    ("rcbrtf", reciprocal_cube_root, (-1e3, 1e3), 2),
    ("erfcxf", erfcx, (-2, 20), 4),
    ("erfcinvf", erfcinv, (0.05, 1.95), 4),
    ("normcdfinvf", ndtri, (0.01, 0.45), 5),
    ("sinpif", sinpi, (-2.5, 1e6), 2),
    ("j0f", bessel_j0, (0.1, 2), 9),
    ("nearbyintf", np.rint, "halves", 0),
    ("logbf", lambda x: np.floor(np.log2(np.abs(x))), (0.1, 1000), 0),
    # Fast intrinsics: near their documented error, on a range where it is a small number of ULPs.
    ("__expf", np.exp, (-5, 5), 8),
    ("__exp10f", lambda x: 10.0**x, (-3, 3), 11),
    ("__logf", np.log, (2.5, 1000), 4),
    ("__log2f", np.log2, (2.5, 1000), 4),
    ("__log10f", np.log10, (2.5, 1000), 6),
    ("__sinf", np.sin, (0.5, 2.5), 16),
    ("__cosf", np.cos, (-1, 1), 16),
    ("__tanf", np.tan, (0.5, 1.2), 40),
    ("__saturatef", lambda x: np.nan_to_num(np.clip(x, 0, 1), nan=0.0), (-1, 2), 0),
    ("__frcp_rn", lambda x: 1 / x, (0.1, 50), EXACT),
    ("__fsqrt_rn", np.sqrt, (0, 50), EXACT),
    ("__frsqrt_rn", reciprocal_root, (0.1, 50), EXACT),
    # C++'s overloads of these names.
    ("exp", np.exp, (-10, 10), 2),
    ("log", np.log, (0.1, 100), 1),
    ("sqrt", np.sqrt, (0, 100), EXACT),
    ("rsqrt", reciprocal_root, (0.1, 100), 2),
    ("tanh", np.tanh, (-5, 5), 2),
    ("sin", np.sin, (-10, 10), 2),
    ("fabs", np.abs, (-9, 9), 0),
    ("abs", np.abs, (-9, 9), 0),
    ("floor", np.floor, (-9, 9), 0),
]
UNARY_DOUBLE = [
    *[(name, reference, span, allowed) for name, reference, *_, span, allowed in BOTH],
    ("sin", np.sin, (-100, 100), 3),
    ("cos", np.cos, (-100, 100), 3),
    ("exp", np.exp, (-700, 700), 2),
    ("rcbrt", reciprocal_cube_root, (-1e3, 1e3), 16),
    *[("erfcx", erfcx, span, 64) for span in [(-5, 20), (20, 1e10)]],
    ("erfcinv", erfcinv, (1e-300, 1.95), 64),
    ("normcdfinv", ndtri, (0.01, 0.45), 64),
    ("sinpi", sinpi, (-2.5, 1e6), 4),
    ("cospi", cospi, (-2.5, 1e6 + 0.5), 4),
    ("cyl_bessel_i0", bessel_i0, (-100, 100), 64),
    ("cyl_bessel_i1", bessel_i1, (-100, 100), 64),
    ("__dsqrt_rn", np.sqrt, (0, 50), 0),
    ("__drcp_rn", lambda x: 1 / x, (0.1, 50), 0),
]


def arguments(span, dtype, count, seed=0):
    """`count` values in the range, with some special ones; as the operator's tensor and as the float64 reference."""
    if span == "halves":
        values = np.concatenate([np.arange(-12, 13) * 0.5, [1e9, math.inf, -math.inf, math.nan]])
    else:
        values = np.random.default_rng(seed).uniform(*span, count)
        values[:3] = math.nan, *span
    tensor = on_device(values, dtype)
    return tensor, tensor.double().cpu().numpy()


# ----------------------------------------------------------------------------------------------------------------------
# Functions of two arguments: name, reference, both ranges, ULPs

BINARY_BOTH = [  # name, reference, both ranges; ULPs in float, with an f behind the name, and in double
    ("pow", np.power, (0.01, 20), (-10, 10), 8, 3),
    ("atan2", np.arctan2, (-5, 5), (-5, 5), 3, 3),
    ("hypot", np.hypot, (-5, 5), (-5, 5), 3, 3),
    ("fmod", np.fmod, (-50, 50), (0.5, 3), 0, 0),
    ("fmax", np.fmax, (-5, 5), (-5, 5), 0, 0),
    ("fmin", np.fmin, (-5, 5), (-5, 5), 0, 0),
    ("copysign", np.copysign, (0.1, 5), (-5, 5), 0, 0),
]
BINARY_FLOAT = [
    *[(f"{name}f", *row, allowed) for name, *row, allowed, _ in BINARY_BOTH],
    ("powf", np.power, (-3, 3), "halves", 8),
    ("pow", np.power, (0.01, 20), (-10, 10), 8),
    ("rhypotf", lambda x, y: 1 / np.hypot(x, y), (-5, 5), (-5, 5), 3),
    ("remainderf", each(lambda x, y: math.remainder(x, y) if x == x else math.nan), (-50, 50), (0.5, 3), 0),
    ("fmax", np.fmax, (-5, 5), (-5, 5), 0),
    ("max", np.fmax, (-5, 5), (-4, 6), 0),
    ("min", np.fmin, (-5, 5), (-4, 6), 0),
    ("fdimf", lambda x, y: np.where(x <= y, 0.0, x - y), (-5, 5), (-5, 5), EXACT),
    ("nextafterf", lambda x, y: np.nextafter(np.float32(x), np.float32(y)).astype(float), (-5, 5), (-5, 5), 0),
    ("fdividef", np.divide, (-5, 5), (0.1, 5), 2),
    ("__fdividef", np.divide, (-5, 5), (0.1, 5), 2.5),  # 2, after the exact quotient is rounded
    ("__powf", np.power, (0.5, 4), (-3, 3), 64),
]
BINARY_DOUBLE = [
    *[(name, *row, allowed) for name, *row, _, allowed in BINARY_BOTH],
    ("rhypot", lambda x, y: 1 / np.hypot(x, y), (-5, 5), (-5, 5), 16),
    ("max", np.fmax, (-5, 5), (-4, 6), 0),
    ("min", np.fmin, (-5, 5), (-4, 6), 0),
    ("__dadd_rn", np.add, (-5, 5), (-5, 5), 0),
    ("__dmul_rn", np.multiply, (-5, 5), (-5, 5), 0),
]


# Fast intrinsics: name, reference, range, the largest documented error and whether it is in ULPs; the ranges on which
# they misbehave are in test_fast_intrinsics_outside_their_range.
FAST = [
    ("__expf", np.exp, (-80, 80), lambda x: 2 + np.floor(np.abs(1.173 * x)), True),
    ("__exp10f", lambda x: 10.0**x, (-35, 35), lambda x: 2 + np.floor(np.abs(2.97 * x)), True),
    ("__logf", np.log, (0.5, 2), lambda x: 2**-21.41, False),
    ("__logf", np.log, (2.001, 1000), lambda x: 3, True),
    ("__log2f", np.log2, (0.5, 2), lambda x: 2**-22, False),
    ("__log2f", np.log2, (2.001, 1000), lambda x: 2, True),
    ("__log10f", np.log10, (0.5, 2), lambda x: 1.1 * 2**-24, False),  # an H200 errs by 1.03 times what is documented
    ("__log10f", np.log10, (2.001, 1000), lambda x: 3, True),
    ("__sinf", np.sin, (-3.14, 3.14), lambda x: 2**-21.41, False),
    ("__cosf", np.cos, (-3.14, 3.14), lambda x: 2**-21.19, False),
    ("rsqrtf", reciprocal_root, (1e-3, 1e6), lambda x: 2, True),
]


OPERATORS = {
    "unary_float": (torch.float32, UNARY_FLOAT),
    "unary_double": (torch.float64, UNARY_DOUBLE),
    "binary_float": (torch.float32, BINARY_FLOAT),
    "binary_double": (torch.float64, BINARY_DOUBLE),
}
FUNCTIONS = [
    pytest.param(operator, dtype, *row, id=f"{operator} {row[0]}")
    for operator, (dtype, table) in OPERATORS.items()
    for row in [(name, reference, spans, allowed) for name, reference, *spans, allowed in table]
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns about intended NaN results
@pytest.mark.parametrize(("operator", "dtype", "name", "reference", "spans", "allowed"), FUNCTIONS)
def test_function(built, operator, dtype, name, reference, spans, allowed):
    count = 29 if "halves" in spans else 4000
    inputs = [arguments(span, dtype, count, seed) for seed, span in enumerate(spans)]
    if len(inputs) == 2:
        (x, x64), _ = inputs
        x[:3], x64[:3] = x[3:6].clone(), x64[3:6]  # y's NaN is enough
    tensors = [tensor for tensor, _ in inputs]
    out = torch.full_like(tensors[0], -77.0)
    getattr(built("maths"), operator)([*tensors, out], [ord(c) for c in name])
    assert ulps(out, reference(*(x64 for _, x64 in inputs))) <= allowed


def fast(built, name, x):
    out = torch.empty_like(x)
    built("maths").unary_float([x, out], [ord(c) for c in name])
    return out.double().cpu().numpy()


@pytest.mark.parametrize(("name", "reference", "span", "bound", "in_ulps"), FAST)
def test_fast_intrinsics_err_as_documented(built, name, reference, span, bound, in_ulps):
    x = on_device(np.random.default_rng(7).uniform(*span, 100_000))
    x64 = x.double().cpu().numpy()
    exact = reference(x64)
    rounded = exact.astype(np.float32).astype(np.float64)
    unit = np.spacing(np.abs(rounded).astype(np.float32)).astype(np.float64) if in_ulps else 1.0
    error = np.abs(fast(built, name, x) - (rounded if in_ulps else exact)) / unit
    assert (error <= bound(x64)).all(), float((error / bound(x64)).max())
    assert error.max() >= (1 if in_ulps else 2.0**-25)  # not the correctly rounded result everywhere


def test_fast_intrinsics_outside_their_range(built):
    """Where they fail on a GPU they fail here: far from 0, sines lose all digits; a large divisor gives 0."""
    far = on_device([5e4, 7.7e4, 1e5])
    error = np.abs(fast(built, "__sinf", far) - np.sin(far.double().cpu().numpy()))
    assert 1e-4 < error.max() < 0.1
    assert fast(built, "__expf", on_device([89.0, -math.inf, 0.0])).tolist() == [math.inf, 0.0, 1.0]
    x, y, out = on_device([1.0, 1.0, 3.0]), on_device([2.0**126, 1.5 * 2.0**126, 2.0**127]), on_device([-1.0] * 3)
    built("maths").binary_float([x, y, out], [ord(c) for c in "__fdividef"])
    assert out.tolist() == [2.0**-126, 0.0, 0.0]
    built("maths").binary_float([-x, 2 * x, out], [ord(c) for c in "__powf"])
    assert out.isnan().all()


# ----------------------------------------------------------------------------------------------------------------------
# Functions of another form


def test_functions_with_two_results(built):
    x, x64 = arguments((-20, 20), torch.float32, 50)
    x[0], x64[0] = 0.75, 0.75
    out = torch.zeros(14, 50, device=kernel_xray.device)
    built("maths").forms([x, out], [])
    fraction, whole = np.modf(x64)
    mantissa, exponent = np.frexp(x64)
    expected = [
        (np.sin(x64), 2), (np.cos(x64), 2), (sinpi(x64), 2), (cospi(x64), 2), (fraction, 0), (whole, 0), (mantissa, 0),
        (exponent.astype(float), 0), (8 * x64, 0), (x64 / 4, 0), (x64 * x64 - 1, EXACT), (np.sqrt(x64**2 + 13), 3),
    ]  # fmt: skip
    for k, (exact, allowed) in enumerate(expected):
        assert ulps(out[k], exact) <= allowed, f"row {k}"
    near = np.abs(x64) < math.pi
    assert np.abs(out[12].double().cpu().numpy() - np.sin(x64))[near].max() < 2**-21
    assert np.abs(out[13].double().cpu().numpy() - np.cos(x64))[near].max() < 2**-21


def test_classification(built):
    values = [0.0, -0.0, 1.5, 2.5, -2.5, -1e6, math.inf, -math.inf, math.nan, 1e-40]
    x = on_device(values)
    out = torch.zeros(len(values), 12, dtype=torch.int32, device=kernel_xray.device)
    built("maths").classify([x, out], [])
    bits = np.array(values, dtype=np.float32).view(np.int32).tolist()
    for v, b, row in zip(values, bits, out.tolist(), strict=True):
        assert row[:4] == [math.isnan(v), math.isinf(v), math.isfinite(v), math.copysign(1, v) < 0]
        assert row[4:6] == [v == math.inf, v == -math.inf]
        if not math.isnan(v):
            assert row[6:8] == [b, b ^ -(2**31)]
        if math.isfinite(v):
            assert row[8:] == [round(v), math.trunc(v), math.floor(v), math.ceil(v)]


def test_overloads_and_constants(built):
    """Functions of C++ and CUDA for arguments of several types; test_ptx_values.py has the intrinsics for integers."""
    out = torch.zeros(14, dtype=torch.float64, device=kernel_xray.device)
    built("maths").overloads([out], [])
    sizes = [70000, -70000, 81234, 3, 7, 0x6789ABCDEF, -3, 2**32 - 1]
    assert out.tolist() == [*sizes, 2, 2**40, -9, math.pi, math.inf, 1]
