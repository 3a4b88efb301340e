"""Matrices drawn at random, and how close results of them are."""

import numpy as np

rng = np.random.default_rng(7)


def array(shape, dtype="float64"):
    dtype = np.dtype(dtype)
    x = rng.normal(size=shape)
    if dtype.kind == "i":
        return np.rint(3 * x).astype(dtype) + 9 * np.eye(*shape[-2:], dtype=dtype)
    if dtype.kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(x).swapaxes(-1, -2)


def definite(shape, dtype="float64"):
    x = array(shape, dtype)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def close(actual, expected, dtype="float64", factor=1.0):
    single = np.dtype(dtype).name in ("float32", "complex64")
    tolerance = factor * (2e-3 if single else 1e-9)
    for a, e in zip(parts(actual), parts(expected), strict=True):
        a, e = np.asarray(getattr(a, "_array", a)), np.asarray(e)
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)


def parts(x):
    return list(x) if isinstance(x, tuple) else [x]
