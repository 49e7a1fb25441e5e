"""cuBLAS in the simulator, or NVIDIA's on a GPU: every function against PyTorch in double precision."""

import itertools

import pytest
import torch
from cuda_libraries import ON_SIMULATOR, elements, load, random, read, stored, vector
from simt_programs import operators

import kernel_xray

pytestmark = pytest.mark.slow
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
N, T, C = range(3)

blas = operators(load, "blas", "cublas")


@pytest.fixture(params=range(4), ids=["S", "D", "C", "Z"])
def number(request):
    return request.param


def operated(matrix, op):
    return matrix if op == N else matrix.mT if op == T else matrix.mH


def wide(x):
    return x.to(torch.complex128 if x.dtype.is_complex else torch.float64)


def scalars(dtype, *values, mode=0):
    """Tensors of one element, on the side where the pointer mode has them."""
    if dtype.is_complex:
        values = [complex(v, -v / 3 if v else 0) for v in values]  # with a beta of 0 - 0j, cuBLAS reads c
    return [torch.tensor([v], dtype=dtype, device=kernel_xray.device if mode else "cpu") for v in values]


def real_of(dtype):
    return {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)


def close(got, expected, size=1):
    """`size`: the number of terms of each sum."""
    single = real_of(got.dtype) in (torch.float32, torch.float16, torch.bfloat16)
    tolerance = (2e-6 if single else 1e-14) * max(1, size**0.5) * 4
    torch.testing.assert_close(wide(got.cpu()), wide(expected.cpu()), rtol=tolerance, atol=tolerance * 4)


# ----------------------------------------------------------------------------------------------------------------------
# Level 1


@pytest.mark.parametrize(("n", "incx", "incy"), [(37, 1, 1), (5, 3, -2), (4, -1, 2), (1, 1, 1), (0, 1, 1)])
@pytest.mark.parametrize("mode", [0, 1])
def test_level_1(blas, number, n, incx, incy, mode):
    dtype = DTYPES[number]
    x, y = random(n, dtype=dtype, seed=1), random(n, dtype=dtype, seed=2)
    a, b = wide(x), wide(y)

    def run(name, *results, factor=()):
        left, right = vector(x, incx), vector(y, incy)
        single = name == "scal"
        tensors = [*factor, left, *([] if single else [right]), *results]
        getattr(blas, name)(tensors, [number, mode, n, incx, *([] if single else [incy])])
        return elements(left, incx), elements(right, incy)

    (alpha,) = scalars(dtype, 1.5, mode=mode)
    factor = wide(alpha.cpu())
    close(run("axpy", factor=[alpha])[1], factor * a + b)
    close(run("copy")[1], a)
    for got, expected in zip(run("swap"), (b, a), strict=True):
        close(got, expected)
    if incx > 0:  # as BLAS has it, nothing happens for a negative increment
        close(run("scal", factor=[alpha])[0], factor * a)
    cosine = torch.tensor([0.6], dtype=real_of(dtype), device=alpha.device)
    sine = torch.tensor([0.8], dtype=dtype, device=alpha.device)
    left, right = run("rot", cosine, sine)
    close(left, 0.6 * a + 0.8 * b)
    close(right, 0.6 * b - 0.8 * a)
    for name, first in (("dotu", a), ("dotc", a.conj())):
        result = torch.full_like(alpha, float("nan"))
        run(name, result)
        close(result[0], (first * b).sum(), n)


def test_norms_and_extrema(blas, number):
    dtype = DTYPES[number]
    for n, incx in [(100, 1), (7, 4), (1, 1), (0, 1)]:
        x = random(n, dtype=dtype)
        a = wide(x)
        magnitudes = a.real.abs() + (a.imag.abs() if dtype.is_complex else 0)
        result = torch.full((1,), float("nan"), dtype=real_of(dtype))
        blas.nrm2([vector(x, incx), result], [number, 0, n, incx])
        close(result[0], torch.linalg.vector_norm(a), n)
        blas.asum([vector(x, incx), result], [number, 0, n, incx])
        close(result[0], magnitudes.sum(), n)
        for name, best in (("amax", torch.argmax), ("amin", torch.argmin)):
            index = torch.full((1,), -1, dtype=torch.int32)
            getattr(blas, name)([vector(x, incx), index], [number, 0, n, incx])
            assert index.item() == (best(magnitudes).item() + 1 if n else 0)
    ties = torch.tensor([1, -3, 3, 0, -3, 0], dtype=dtype, device=kernel_xray.device)
    for name, first in (("amax", 2), ("amin", 4)):
        index = torch.zeros(1, dtype=torch.int32)
        getattr(blas, name)([ties, index], [number, 0, 6, 1])
        assert index.item() == first


def test_norm_does_not_overflow(blas):
    for number, dtype in ((0, torch.float32), (1, torch.float64)):
        large = torch.finfo(dtype).max / 4
        x = torch.full((4,), large, dtype=dtype, device=kernel_xray.device)
        result = torch.zeros(1, dtype=dtype)
        blas.nrm2([x, result], [number, 0, 4, 1])
        assert result.item() == pytest.approx(2 * large)


# ----------------------------------------------------------------------------------------------------------------------
# Level 2


@pytest.mark.parametrize("op", [N, T, C])
@pytest.mark.parametrize(("m", "n", "incx", "incy"), [(33, 17, 1, 1), (3, 5, 2, -1), (5, 3, -2, 3), (1, 1, 1, 1)])
def test_gemv(blas, number, op, m, n, incx, incy):
    dtype = DTYPES[number]
    a = random(m, n, dtype=dtype)
    rows, columns = (m, n) if op == N else (n, m)
    x, y = random(columns, dtype=dtype, seed=1), random(rows, dtype=dtype, seed=2)
    for mode, factors in itertools.product((0, 1), ((1.5, -0.5), (1.5, 0.0), (0.0, 2.0))):
        alpha, beta = scalars(dtype, *factors, mode=mode)
        out = vector(y if factors[1] else torch.full_like(y, float("nan")), incy)
        tensors = [alpha, stored(a, m + 2), vector(x, incx), beta, out]
        blas.gemv(tensors, [number, mode, op, m, n, m + 2, incx, incy])
        expected = wide(alpha.cpu()) * (operated(wide(a), op) @ wide(x))
        close(elements(out, incy), expected + (wide(beta.cpu()) * wide(y) if factors[1] else 0), columns)


def test_updates_of_rank_one(blas, number):
    dtype, m, n = DTYPES[number], 5, 4
    a, x, y = random(m, n, dtype=dtype), random(m, dtype=dtype, seed=1), random(n, dtype=dtype, seed=2)
    (alpha,) = scalars(dtype, 0.75)
    for function, row in ((blas.geru, wide(y)), (blas.gerc, wide(y).conj())):
        out = stored(a, 7)
        function([alpha, vector(x, -2), vector(y, 3), out], [number, 0, m, n, -2, 3, 7])
        close(read(out, m), wide(a) + wide(alpha) * torch.outer(wide(x), row))
    square = random(n, n, dtype=dtype, seed=3)
    for uplo, half in enumerate((torch.tril, torch.triu)):
        out = stored(square, 6)
        blas.syr([alpha, vector(y, 2), out], [number, 0, uplo, n, 2, 6])
        change = wide(alpha) * torch.outer(wide(y), wide(y))
        close(read(out, n), wide(square) + half(change))


def half_of(matrix, uplo, kind="symmetric"):
    """The whole matrix that one stored half describes."""
    part = torch.tril if uplo == 0 else torch.triu
    stored_half = part(matrix)
    if kind == "triangular":
        return stored_half
    other = stored_half.mH if kind == "hermitian" else stored_half.mT
    diagonal = torch.diag(torch.diagonal(matrix))
    if kind == "hermitian":
        return stored_half + other - torch.diag(torch.diagonal(matrix).conj())
    return stored_half + other - diagonal


def test_symv(blas, number):
    dtype, n = DTYPES[number], 9
    a, x, y = random(n, n, dtype=dtype), random(n, dtype=dtype, seed=1), random(n, dtype=dtype, seed=2)
    alpha, beta = scalars(dtype, 1.5, -0.5)
    for uplo in (0, 1):
        out = vector(y, -1)
        blas.symv([alpha, stored(a, 9), vector(x, 2), beta, out], [number, 0, uplo, n, 9, 2, -1])
        expected = wide(alpha) * (half_of(wide(a), uplo) @ wide(x)) + wide(beta) * wide(y)
        close(elements(out, -1), expected, n)


def triangle(a, uplo, op, diag):
    half = half_of(wide(a), uplo, "triangular")
    if diag:
        half = half - torch.diag(torch.diagonal(half)) + torch.eye(len(half), dtype=half.dtype)
    return operated(half, op)


TRIANGLES = list(itertools.product((0, 1), (N, T, C), (0, 1)))


def test_triangular_matrix_and_vector(blas, number):
    dtype, n = DTYPES[number], 8
    a = random(n, n, dtype=dtype) / 4 + 2 * torch.eye(n, dtype=dtype)
    x = random(n, dtype=dtype, seed=1)
    for uplo, op, diag in TRIANGLES:
        matrix = triangle(a, uplo, op, diag)
        solution = torch.linalg.solve(matrix, wide(x))
        for function, expected in ((blas.trmv, matrix @ wide(x)), (blas.trsv, solution)):
            out = vector(x, -2)
            function([stored(a, 10), out], [number, 0, uplo, op, diag, n, 10, -2])
            close(elements(out, -2), expected, 4 * n)


# ----------------------------------------------------------------------------------------------------------------------
# Products

SHAPES = [(1, 1, 1), (2, 3, 4), (31, 17, 60), (33, 17, 65), (8, 4, 0), (0, 4, 3), (4, 0, 3), (100, 64, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gemm(blas, number, shape):
    dtype, (m, n, k) = DTYPES[number], shape
    for transa, transb in itertools.product((N, T, C), repeat=2):
        a = random(*((m, k) if transa == N else (k, m)), dtype=dtype, seed=1)
        b = random(*((k, n) if transb == N else (n, k)), dtype=dtype, seed=2)
        c = random(m, n, dtype=dtype, seed=3)
        product = operated(wide(a), transa) @ operated(wide(b), transb)
        for mode, factors, padding in ((0, (1.0, 0.0), 0), (1, (-0.5, 2.0), 3), (0, (0.0, 1.5), 1)):
            alpha, beta = scalars(dtype, *factors, mode=mode)
            lds = [max(1, x.shape[0]) + padding for x in (a, b, c)]
            start = c if factors[1] else torch.full_like(c, float("nan"))
            tensors = [stored(x, ld) for x, ld in zip((a, b, start), lds, strict=True)]
            blas.gemm([alpha, *tensors[:2], beta, tensors[2]], [number, mode, transa, transb, m, n, k, *lds])
            expected = wide(alpha.cpu()) * product + (wide(beta.cpu()) * wide(c) if factors[1] else 0)
            close(read(tensors[2], m), expected, max(k, 1))
            assert torch.isnan(tensors[2][:, m:].cpu()).all()  # between the columns, nothing was written


def batch_lists(tensors):
    """For each batch of matrices, the list of their addresses, in device memory."""
    lists = [[x.data_ptr() + i * x[0].numel() * x.element_size() for i in range(len(x))] for x in tensors]
    return [torch.tensor(addresses, dtype=torch.int64, device=kernel_xray.device) for addresses in lists]


@pytest.mark.parametrize("form", ["Strided", ""])
def test_batches(blas, number, form):
    dtype, (m, n, k), count = DTYPES[number], (5, 7, 6), 4
    a, b = random(count, m, k, dtype=dtype, seed=1), random(count, n, k, dtype=dtype, seed=2)
    c = random(count, m, n, dtype=dtype, seed=3)
    alpha, beta = scalars(dtype, 1.5, 0.5)
    tensors = [stored(a, 6), stored(b, 7), stored(c, 5)]
    left, right, out = tensors if form else batch_lists(tensors)
    lds = [y for ld, x in zip((6, 7, 5), tensors, strict=True) for y in ([ld, x[0].numel()] if form else [ld])]
    getattr(blas, f"gemm{form}Batched")([alpha, left, right, beta, out], [number, 0, N, T, m, n, k, *lds, count])
    close(read(tensors[2], m), wide(alpha) * (wide(a) @ wide(b).mT) + wide(beta) * wide(c), k)


# cudaDataType and cublasComputeType_t
R_32F, R_64F, R_16F, R_8I, C_32F, C_64F, R_32I, R_16BF = 0, 1, 2, 3, 4, 5, 10, 14
COMPUTE_16F, COMPUTE_32F, COMPUTE_64F, COMPUTE_32I, FAST_TF32 = 64, 68, 70, 72, 77
TYPES = {
    R_32F: torch.float32, R_64F: torch.float64, R_16F: torch.float16, R_8I: torch.int8, C_32F: torch.complex64,
    C_64F: torch.complex128, R_32I: torch.int32, R_16BF: torch.bfloat16,
}  # fmt: skip
COMBINATIONS = [  # A and B, C, the sum, the scalars
    (R_16F, R_16F, COMPUTE_16F, torch.float16),
    (R_8I, R_32I, COMPUTE_32I, torch.int32),
    (R_16BF, R_16BF, COMPUTE_32F, torch.float32),
    (R_16F, R_16F, COMPUTE_32F, torch.float32),
    (R_8I, R_32F, COMPUTE_32F, torch.float32),
    (R_16BF, R_32F, COMPUTE_32F, torch.float32),
    (R_16F, R_32F, COMPUTE_32F, torch.float32),
    (R_32F, R_32F, COMPUTE_32F, torch.float32),
    (R_32F, R_32F, FAST_TF32, torch.float32),
    (C_32F, C_32F, COMPUTE_32F, torch.complex64),
    (R_64F, R_64F, COMPUTE_64F, torch.float64),
    (C_64F, C_64F, COMPUTE_64F, torch.complex128),
]


@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
@pytest.mark.parametrize("form", [0, 1, 2], ids=["one", "strided", "batched"])
def test_gemm_of_mixed_types(blas, combination, form):
    factors, result, compute, scalar = combination
    m, n, k, count = 16, 8, 24, 1 if form == 0 else 3  # multiples of 4, as cuBLAS asks for bytes
    a, b = random(count, m, k, dtype=TYPES[factors], seed=1), random(count, k, n, dtype=TYPES[factors], seed=2)
    c = random(count, m, n, dtype=TYPES[result], seed=3)
    alpha, beta = scalars(scalar, 2, 1)
    if scalar.is_complex:
        alpha, beta = alpha.real.to(scalar), beta.real.to(scalar)
    # An 8-bit product on a GPU asks for A transposed and B as it is.
    tensors = [stored(a.mT, k), stored(b, k), stored(c, m)]
    numbers = [0, 0, form, T, N, m, n, k, k, k, m, count, factors, result, compute]
    left, right, out = batch_lists(tensors) if form == 2 else tensors
    blas.gemm_ex([alpha, left, right, beta, out], numbers)
    expected = 2 * (wide(a) @ wide(b)) + wide(c)
    got = read(tensors[2], m)
    coarse = {torch.float16: 2**-10, torch.bfloat16: 2**-7}.get(got.dtype, 0)
    if compute == COMPUTE_16F or (compute == FAST_TF32 and kernel_xray.target == "gpu"):
        coarse = 2**-7
    if coarse:
        torch.testing.assert_close(wide(got), expected, rtol=coarse, atol=8 * coarse)
    else:
        close(got, expected, k)
    assert not torch.equal(wide(got), wide(c))


def test_half_precision(blas):
    m, n, k = 8, 16, 24
    a, b, c = (random(*shape, dtype=torch.float16, seed=i) for i, shape in enumerate([(m, k), (n, k), (m, n)]))
    alpha, beta = scalars(torch.float16, 0.5, 2.0)
    out = stored(c, m)
    blas.hgemm([alpha, stored(a, m), stored(b, n), beta, out], [0, 0, N, T, m, n, k, m, n, m])
    expected = 0.5 * (wide(a) @ wide(b).mT) + 2 * wide(c)
    torch.testing.assert_close(wide(read(out, m)), expected, rtol=2**-7, atol=2**-5)


# ----------------------------------------------------------------------------------------------------------------------
# The other matrix functions


def test_geam(blas, number):
    dtype, (m, n) = DTYPES[number], (6, 4)
    for transa, transb in itertools.product((N, T, C), repeat=2):
        a = random(*((m, n) if transa == N else (n, m)), dtype=dtype, seed=1)
        b = random(*((m, n) if transb == N else (n, m)), dtype=dtype, seed=2)
        out = torch.full((n, 9), float("nan"), dtype=dtype, device=kernel_xray.device)
        alpha, beta = scalars(dtype, 1.5, -2.0)
        tensors = [alpha, stored(a, 8), beta, stored(b, 7), out]
        blas.geam(tensors, [number, 0, transa, transb, m, n, 8, 7, 9])
        close(read(out, m), wide(alpha) * operated(wide(a), transa) + wide(beta) * operated(wide(b), transb))


def test_dgmm(blas, number):
    dtype, (m, n) = DTYPES[number], (6, 4)
    a = random(m, n, dtype=dtype)
    for side, length in enumerate((m, n)):
        x = random(length, dtype=dtype, seed=1)
        out = torch.zeros(n, m, dtype=dtype, device=kernel_xray.device)
        blas.dgmm([stored(a, 7), vector(x, 2), out], [number, 0, side, m, n, 7, 2, m])
        close(read(out, m), torch.diag(wide(x)) @ wide(a) if side == 0 else wide(a) @ torch.diag(wide(x)))


@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
def test_symm(blas, number, kind):
    dtype, (m, n) = DTYPES[number], (6, 4)
    if kind == "hermitian" and not dtype.is_complex:
        kind = "symmetric"
    alpha, beta = scalars(dtype, 1.5, -0.5)
    b, c = random(m, n, dtype=dtype, seed=1), random(m, n, dtype=dtype, seed=2)
    for side, uplo in itertools.product((0, 1), repeat=2):
        order = n if side else m
        a = random(order, order, dtype=dtype)
        if kind == "hermitian":
            a = a - torch.diag(1j * torch.diagonal(a).imag)  # the diagonal is real
        whole = half_of(wide(a), uplo, kind)
        out = stored(c, 8)
        function = blas.hemm if kind == "hermitian" else blas.symm
        tensors = [alpha, stored(a, order + 1), stored(b, 7), beta, out]
        function(tensors, [number, 0, side, uplo, m, n, order + 1, 7, 8])
        product = wide(b) @ whole if side else whole @ wide(b)
        close(read(out, m), wide(alpha) * product + wide(beta) * wide(c), order)


def test_syrk(blas, number):
    dtype, (n, k) = DTYPES[number], (6, 9)
    alpha, beta = scalars(dtype, 1.5, -0.5)
    c = random(n, n, dtype=dtype, seed=1)
    for uplo, op in itertools.product((0, 1), (N, T)):
        a = random(*((n, k) if op == N else (k, n)), dtype=dtype)
        out = stored(c, 8)
        blas.syrk([alpha, stored(a, 10), beta, out], [number, 0, uplo, op, n, k, 10, 8])
        factor = operated(wide(a), op)
        change = wide(alpha) * (factor @ factor.mT) + wide(beta) * wide(c)
        part, rest = (torch.tril, torch.triu) if uplo == 0 else (torch.triu, torch.tril)
        close(part(read(out, n)), part(change), k)
        offset = 1 if uplo == 0 else -1
        assert torch.equal(rest(read(out, n), offset), rest(c, offset))


def test_herk(blas):
    n, k, dtype = 5, 7, torch.complex128
    c = half_of(random(n, n, dtype=dtype, seed=1), 0, "hermitian")
    c = c - torch.diag(1j * torch.diagonal(c).imag)
    alpha, beta = scalars(torch.float64, 1.5, -0.5)
    for uplo, op in itertools.product((0, 1), (N, C)):
        a = random(*((n, k) if op == N else (k, n)), dtype=dtype)
        out = stored(c, n)
        blas.herk([alpha, stored(a, 8), beta, out], [3, 0, uplo, op, n, k, 8, n])
        factor = operated(a, op)
        part = torch.tril if uplo == 0 else torch.triu
        close(part(read(out, n)), part(1.5 * (factor @ factor.mH) - 0.5 * c), k)


def test_triangular_matrices(blas, number):
    dtype, (m, n) = DTYPES[number], (7, 5)
    b = random(m, n, dtype=dtype, seed=1)
    (alpha,) = scalars(dtype, 1.5)
    for side, (uplo, op, diag) in itertools.product((0, 1), TRIANGLES):
        order = n if side else m
        a = random(order, order, dtype=dtype) / 4 + 2 * torch.eye(order, dtype=dtype)
        matrix = triangle(a, uplo, op, diag)
        numbers = [number, 0, side, uplo, op, diag, m, n, order + 2, 8]
        out = stored(b, 8)
        blas.trmm([alpha, stored(a, order + 2), out, out], [*numbers, 8])  # in place
        close(read(out, m), wide(alpha) * (wide(b) @ matrix if side else matrix @ wide(b)), 4 * order)
        out = stored(b, 8)
        blas.trsm([alpha, stored(a, order + 2), out], numbers)
        right_side = wide(alpha) * wide(b)
        solution = torch.linalg.solve(matrix.mT, right_side.mT).mT if side else torch.linalg.solve(matrix, right_side)
        close(read(out, m), solution, 4 * order)


# ----------------------------------------------------------------------------------------------------------------------
# Handles and mistakes


def test_handles_and_statuses(blas):
    blas.handles([], [])  # the case raises at the first call with a wrong answer


MISTAKES = [
    r"cublasSscal: x, 44 bytes, ends 4 bytes past the end of an allocation of 40 bytes",
    r"cublasSgemm: A, 48 bytes, ends 8 bytes past the end",
    r"cublasSgemv: a, 16 bytes, is a null pointer",
    r"cublasSscal: x, 40 bytes, begins .*not allocated",
    r"cublasSscal: alpha is on the device, and the pointer mode is CUBLAS_POINTER_MODE_HOST",
    r"cublasSgemm: lda is 1, which is less than the 2 rows that a has in memory",
]


@ON_SIMULATOR
@pytest.mark.parametrize("which", range(len(MISTAKES)))
def test_mistakes_are_named(blas, which):
    with pytest.raises(RuntimeError, match=MISTAKES[which]):
        blas.mistakes([], [which])


@ON_SIMULATOR
def test_a_call_in_a_kernel_is_a_fault(blas):
    with pytest.raises(RuntimeError, match="cublasSscal is for host code"):
        blas.in_kernel([torch.ones(1)], [])
