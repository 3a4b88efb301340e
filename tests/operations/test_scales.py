"""Derivatives of functions of matrices and of numbers where sizes are far apart, against truth."""

import numpy as np
import pytest
import scipy.linalg

import numgrad as ng

_A = np.array([[2.0, 1.0, 0.3], [0.5, 3.0, -0.2], [0.1, 0.4, 1.5]])
_T = np.arange(9.0).reshape(3, 3) - 3
_SCALES = [2.0**-1040, 1e-300, 1e-20, 1.0, 1e8, 1e15, 1e300]


def _log_slope(a, t):
    """The derivative of the logarithm by divided differences of eigenvalues (Daleckii, Krein)."""
    w, v = np.linalg.eig(a)
    off = w[:, None] - w + np.eye(len(w))
    divided = (np.log(w)[:, None] - np.log(w)) / off + np.diag(1 / w)
    found = v @ (np.linalg.solve(v, t @ v) * divided) @ np.linalg.inv(v)
    return found if np.iscomplexobj(a) or np.iscomplexobj(t) else found.real


def _exp_slope(a, t):
    return scipy.linalg.expm_frechet(a, t, compute_expm=False)


_FUNCTIONS = [(ng.linalg.logm, _log_slope), (ng.linalg.expm, _exp_slope)]


@pytest.mark.parametrize(("function", "slope"), _FUNCTIONS)
@pytest.mark.parametrize("scale", _SCALES)
def test_derivative_is_linear_in_its_direction(function, slope, scale):
    tolerance = {"rtol": 0, "atol": 1e-12 if scale > 1e-305 else 1e-8}
    got = ng.jvp(function, (_A,), (scale * _T,))[1]
    np.testing.assert_allclose(got / scale, slope(_A, _T), **tolerance)
    got = ng.vjp(function, _A)[1](scale * _T)
    got = got[0] if isinstance(got, tuple) else got
    np.testing.assert_allclose(got / scale, slope(_A.T, _T), **tolerance)


@pytest.mark.parametrize(("function", "slope"), _FUNCTIONS)
def test_each_matrix_of_a_stack_has_a_scale_of_its_own(function, slope):
    scales = np.array([1e-200, 1.0, 0.0, 1e200])[:, None, None]
    stack = np.stack([_A, 2 * _A, 1j * _T + 5 * _A, _A / 3])
    loss = lambda t: lambda a: np.sum(np.real(np.conj(t) * function(a)))  # noqa: E731
    got = ng.grad(loss(scales * _T))(stack)
    one = np.stack([slope(np.conj(a.T), _T + 0j) for a in stack])
    want = scales * one
    np.testing.assert_allclose(got, want, rtol=1e-11)
    mapped = ng.vmap(lambda a, t: ng.grad(loss(t))(a))(stack, scales * _T)
    np.testing.assert_allclose(mapped, want, rtol=1e-11)


def test_scaled_direction_in_compiled_function():
    got = ng.jit(ng.grad(lambda a: 1e20 * np.sum(_T * ng.linalg.logm(a))))(_A)
    np.testing.assert_allclose(got / 1e20, _log_slope(_A.T, _T), rtol=1e-11)


@pytest.mark.parametrize("function", [ng.linalg.logm, ng.linalg.expm])
def test_direction_that_is_not_finite_spoils_its_own_matrix(function):
    t = np.stack([_T, _T, _T])
    t[0, 1, 1], t[2, 0, 2] = np.nan, np.inf
    got = ng.jvp(function, (np.stack([_A] * 3),), (t,))[1]
    assert np.isnan(got[[0, 2]]).all()
    np.testing.assert_allclose(got[1], ng.jvp(function, (_A,), (_T,))[1], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e-10, 1e-4, 1e100])
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_logarithm_of_scaled_matrix_has_inversely_scaled_derivatives(scale, dtype):
    if dtype == "f4":
        scale = float(np.float32(max(min(scale, 1e20), 1e-20)))
    a = (scale * _A).astype(dtype)
    value = lambda a: np.sum(np.real(_T.astype(dtype) * ng.linalg.logm(a)))  # noqa: E731
    got = ng.grad(value)(a)
    assert got.dtype == dtype
    want = _log_slope(_A.T, _T) / scale
    accuracy = 1e-4 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(got, want, rtol=0, atol=accuracy * abs(want).max())


def test_second_derivatives_of_logarithm_at_any_scale():
    value = lambda a: np.sum(_T * ng.linalg.logm(a))  # noqa: E731
    h, e = 1e-4, _T / 7
    want = (_log_slope(_A.T + h * e.T, _T) - _log_slope(_A.T - h * e.T, _T)) / (2 * h)
    for scale, weight in ((1.0, 1.0), (1e-9, 1.0), (1.0, 1e30), (1e50, 1e-200)):
        grad = ng.grad(lambda a, weight=weight: weight * value(a))
        got = ng.jvp(grad, (scale * _A,), (e,))[1] * (scale * scale / weight)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        got = ng.grad(lambda a, grad=grad: np.sum(grad(a) * e))(scale * _A)
        np.testing.assert_allclose(got * (scale * scale / weight), want, rtol=1e-6)
