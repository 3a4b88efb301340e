"""Fourier transforms in steps of loops: Note [Calls in loops] in ``lower.library_calls``."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.compile import compile_kernel

KERNEL = """
from numba import int64, {dtype}
from numgrad.kernels.fourier import fourier_rows

def kernel(x, y, rows, n, form, scale, middle):
    a, b = int64(x.ctypes.data), int64(y.ctypes.data)
    fourier_rows({dtype}, a, b, rows, n, form, scale, middle)
"""
LENGTHS = [*range(1, 34), 49, 60, 64, 67, 77, 120, 128, 243]


def transformed(x, shape, dtype, n, form, scale=0, middle=0):
    y = np.full(shape, np.nan, dtype)
    real = "float32" if y.dtype in ("float32", "complex64") else "float64"
    entry = compile_kernel(
        "transforms",
        KERNEL.format(dtype=real),
        f"void({x.dtype}[::1], {dtype}[::1], {', '.join(['int64'] * 5)})",
        externals=[f"numgrad.kernels.fourier:fourier_rows_{real}"],
    ).entry
    entry(x.ravel(), y.ravel(), x.shape[0], n, form, scale, middle)
    return y


def close(a, b, single=False):
    scale = np.abs(b).max() if b.size else 1.0
    np.testing.assert_allclose(a, b, rtol=0, atol=(2e-7 if single else 3e-15) * max(scale, 1))


@pytest.mark.slow
@pytest.mark.parametrize("single", [False, True])
def test_rows_of_any_length_are_those_of_numpy(single):
    draw = np.random.default_rng(0)
    real, cplx = ("float32", "complex64") if single else ("float64", "complex128")
    for n in LENGTHS:
        x = draw.normal(size=(2, n)).astype(real)
        z = (x + 1j * draw.normal(size=(2, n))).astype(cplx)
        wide = z.astype("complex128")
        close(transformed(z, z.shape, cplx, n, 1), np.fft.fft(wide), single)
        close(transformed(z, z.shape, cplx, n, 0, 1), np.fft.ifft(wide), single)
        spectrum = np.fft.fft(x.astype("float64"), norm="ortho")
        close(transformed(x, z.shape, cplx, n, 5, 2), spectrum, single)
        half = np.fft.rfft(x.astype("float64"))
        mine = transformed(x, half.shape, cplx, n, 13)
        close(mine, half, single)
        assert not mine[:, 0].imag.any()
        assert n % 2 or not mine[:, -1].imag.any()
        doubled = half.copy()
        doubled[:, 1 : (n + 1) // 2] *= 2
        close(transformed(x, half.shape, cplx, n, 13, 0, 1), doubled, single)
        half = half.astype(cplx)
        close(transformed(half, x.shape, real, n, 2, 1), x, single)
        wide = np.fft.hfft(half.astype("complex128"), n)
        close(transformed(half, x.shape, real, n, 3), wide, single)


def repeated(step, x):
    for _ in range(3):
        x = step(x)
    return x


def scanned(step):
    """Three steps as a loop."""
    return lambda x: ng.scan(lambda c, _: (step(c), None), x, None, length=3)[0]


STEPS = {
    "energy": lambda x: x / (1 + np.sum(np.abs(np.fft.rfft(x)) ** 2) / 99),
    "complex axes": lambda x: np.fft.ifftn(np.fft.fftn(x) ** 2).real / 30,
    "half": lambda x: np.fft.irfft(np.fft.rfft(x) ** 2 * (0.3 + 0.1j), x.shape[-1]) / 9,
    "real": lambda x: np.abs(np.fft.fft(x)) / 3,
    "columns": lambda x: np.fft.ifft(np.fft.fft(x, axis=0, norm="ortho") * 0.5).real,
    "forward": lambda x: np.fft.fft(x, norm="forward").imag + x,
    "middle axis": lambda x: x + np.fft.fft(np.stack([x, x * x]), axis=1).imag[1] / 9,
    "both axes": lambda x: np.fft.irfft2(np.fft.rfft2(x) ** 2, x.shape) / 30,
    "Hermitian": lambda x: np.fft.hfft(np.fft.ihfft(x) * (0.3 + 0.1j), x.shape[-1]),
    "filled up": lambda x: np.fft.irfft(np.fft.rfft(x, 9) * 0.4j, 9)[..., : x.shape[-1]],
    "convolution": lambda x: np.fft.ifft(np.fft.fft(x) * np.fft.fft(np.tanh(x))).real / 4,
}


@pytest.fixture(autouse=True)
def natively():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", STEPS)
def test_steps_are_native_and_have_the_numbers_of_numpy(name):
    step = STEPS[name]
    fast = ng.jit(scanned(step))
    slope = ng.jit(ng.grad(lambda x, w: np.sum(scanned(step)(x) * w)))
    for shape in ((4, 6), (6, 7), (8, 8)):
        x, w, d = np.random.default_rng(shape[1]).normal(size=(3, *shape))
        np.testing.assert_allclose(fast(x), repeated(step, x), rtol=1e-9, atol=1e-12)
        h = 1e-6
        expected = np.sum((repeated(step, x + h * d) - repeated(step, x - h * d)) * w) / (2 * h)
        np.testing.assert_allclose(np.sum(slope(x, w) * d), expected, rtol=1e-6, atol=1e-7)
    assert "Python" not in fast.report()


def test_other_dtypes_a_point_and_batches():
    fast = ng.jit(scanned(lambda z: np.fft.ifft(np.fft.fft(z) * 0.5)))
    draw = np.random.default_rng(5)
    z = draw.normal(size=(3, 5)) + 1j * draw.normal(size=(3, 5))
    for x in (z, z.astype("complex64"), z[:, :1], z[:0]):
        result = fast(x)
        assert result.dtype == x.dtype
        np.testing.assert_allclose(result, x / 8, rtol=1e-5 if x.dtype == "complex64" else 1e-12)
    single = ng.jit(scanned(lambda x: np.fft.irfft(np.fft.rfft(x), 5)))
    x = draw.normal(size=5).astype("float32")
    assert single(x).dtype == np.float32
    np.testing.assert_allclose(single(x), x, rtol=1e-5)
    batch = ng.jit(ng.vmap(lambda z: fast(z)))
    np.testing.assert_allclose(batch(np.stack([z, 2 * z])), [z / 8, z / 4], rtol=1e-12)
    point = ng.jit(scanned(lambda x: np.fft.irfft(np.fft.rfft(x), 1)))
    np.testing.assert_array_equal(point(x[:1]), x[:1])


@pytest.mark.slow(cases=0)
def test_a_length_with_a_large_prime_is_left_to_the_library():
    fast = ng.jit(scanned(STEPS["real"]))
    x = np.random.default_rng(0).normal(size=71)
    np.testing.assert_allclose(fast(x), repeated(STEPS["real"], x), rtol=1e-9)
    assert "fourier" in fast.report()
