"""cuFFT in the simulator, or NVIDIA's on a GPU: transforms against torch.fft in double precision."""

import pytest
import torch
from cuda_libraries import ON_SIMULATOR, load, random
from simt_programs import operators

import kernel_xray

pytestmark = pytest.mark.slow
R2C, C2R, C2C, D2Z, Z2D, Z2Z = 0x2A, 0x2C, 0x29, 0x6A, 0x6C, 0x69
FORWARD, INVERSE = -1, 1

fft = operators(load, "fft", "cufft")


def close(got, expected):
    single = got.dtype in (torch.float32, torch.complex64)
    expected = expected.to(got.device).to(got.dtype)
    error = (got - expected).abs().max().item()
    assert error <= (3e-6 if single else 1e-13) * max(1.0, expected.abs().max().item())


# Powers of two, mixed factors, primes below and above those that are summed term by term.
LENGTHS = [1, 2, 3, 4, 8, 30, 31, 37, 64, 97, 100, 121, 360, 1009, 1024, 2 * 3 * 5 * 7 * 11, 4 * 41]


@pytest.mark.parametrize("n", LENGTHS)
def test_one_dimension(fft, n):
    batch = 3
    for complex_type, dtype in ((C2C, torch.complex64), (Z2Z, torch.complex128)):
        x = random(batch, n, dtype=dtype).to(kernel_xray.device)
        for direction, norm, function in ((FORWARD, "backward", torch.fft.fft), (INVERSE, "forward", torch.fft.ifft)):
            out = torch.zeros_like(x)
            fft.transform([x, out], [complex_type, direction, batch, n])
            close(out, function(x.to(torch.complex128), norm=norm))
            fft.transform([same := x.clone(), same], [complex_type, direction, batch, n])
            close(same, out)
    for forward, backward, dtype in ((R2C, C2R, torch.float32), (D2Z, Z2D, torch.float64)):
        x = random(batch, n, dtype=dtype).to(kernel_xray.device)
        spectrum = torch.zeros(batch, n // 2 + 1, dtype=torch.complex(x, x).dtype, device=kernel_xray.device)
        fft.transform([x, spectrum], [forward, FORWARD, batch, n])
        close(spectrum, torch.fft.rfft(x.double()))
        back = torch.zeros_like(x)
        fft.transform([spectrum, back], [backward, INVERSE, batch, n])
        close(back, n * x)


@pytest.mark.parametrize("shape", [(4, 6), (33, 8), (5, 1), (3, 4, 10), (8, 1, 7)], ids=str)
def test_two_and_three_dimensions(fft, shape):
    x = random(*shape, dtype=torch.complex64).to(kernel_xray.device)
    out = torch.zeros_like(x)
    fft.transform([x, out], [C2C, FORWARD, 1, *shape])
    close(out, torch.fft.fftn(x.to(torch.complex128)))
    fft.transform([out, out], [C2C, INVERSE, 1, *shape])
    close(out, x.numel() * x)
    real = random(*shape, dtype=torch.float64).to(kernel_xray.device)
    spectrum = torch.zeros(*shape[:-1], shape[-1] // 2 + 1, dtype=torch.complex128, device=kernel_xray.device)
    fft.transform([real, spectrum], [D2Z, FORWARD, 1, *shape])
    close(spectrum, torch.fft.rfftn(real))
    back = torch.zeros_like(real)
    fft.transform([spectrum, back], [Z2D, INVERSE, 1, *shape])
    close(back, real.numel() * real)


@pytest.mark.parametrize("shape", [(10,), (7,), (6, 10), (3, 4, 7)], ids=str)
def test_real_transforms_in_place(fft, shape):
    """The rows of real numbers are padded to the length of their spectrum."""
    half = shape[-1] // 2 + 1
    x = random(*shape)
    padded = torch.zeros(*shape[:-1], 2 * half)
    padded[..., : shape[-1]] = x
    data = padded.to(kernel_xray.device)
    fft.transform([data, data], [R2C, FORWARD, 1, *shape])
    close(torch.view_as_complex(data.view(*shape[:-1], half, 2)), torch.fft.rfftn(x.double()))
    fft.transform([data, data], [C2R, INVERSE, 1, *shape])
    close(data[..., : shape[-1]], x.numel() * x)


def test_strided_batches(fft):
    batch, n = 3, (4, 6)
    x = random(batch, *n, dtype=torch.complex64)
    # Element (b, i, j) at 2 ((i 8) + j) + 70 b of the input, and at (i 7 + j) 3 + b of the output.
    source = torch.full((batch * 70,), float("nan"), dtype=torch.complex64)
    source.as_strided((batch, *n), (70, 16, 2)).copy_(x)
    source = source.to(kernel_xray.device)
    out = torch.full((4 * 7 * 3 + 3,), 5.0, dtype=torch.complex64, device=kernel_xray.device)
    fft.many([source, out], [C2C, FORWARD, batch, *n, 4, 8, 2, 70, 4, 7, 3, 1])
    close(out.as_strided((batch, *n), (1, 21, 3)), torch.fft.fftn(x.to(torch.complex128), dim=(1, 2)))
    gap = out.as_strided((batch, 4), (1, 21), 6 * 3)  # the column behind the six of each row
    assert (gap == 5).all()
    real = random(batch, *n)
    inputs = torch.zeros(batch, 5, 9)
    inputs[:, :4, :6] = real
    spectrum = torch.zeros(batch, 4, 4, dtype=torch.complex64, device=kernel_xray.device)
    fft.many([inputs.to(kernel_xray.device), spectrum], [R2C, FORWARD, batch, *n, 5, 9, 1, 45, 4, 4, 1, 16])
    close(spectrum, torch.fft.rfftn(real.double(), dim=(1, 2)))


def test_plans(fft):
    x = torch.arange(8.0, device=kernel_xray.device).to(torch.complex64)
    expected = torch.fft.fft(x.view(2, 4).to(torch.complex128))
    fft.plans([x], [])  # the case raises at the first wrong answer
    close(x.view(2, 4), expected)


@ON_SIMULATOR
def test_mistakes_are_named(fft):
    with pytest.raises(RuntimeError, match="cufftExecC2C: the input, 256 bytes, ends 8 bytes past the end"):
        fft.mistakes([], [])
