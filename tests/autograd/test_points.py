"""Jacobians whose rows have nothing in common take one backward: the same as row by row."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd.structured_jacobians import rows_by_point
from numgrad.errors import NumgradNotImplementedError

COUNT = 7
draw = np.random.default_rng(0)
X, TABLE, B = draw.random(COUNT) + 0.5, draw.random((COUNT, 3)), draw.random(6) + 0.5

APART = {
    "decay": lambda b: b[0] * np.exp(-b[1] * X) + b[2],
    "unpacked": lambda b: (lambda a, c, *rest: a * np.sin(c * X))(*b),
    "powers": lambda b: sum(b[k] * X**k for k in range(6)) + X ** b[1] + b[2] ** X,
    "of parameters alone": lambda b: np.exp(b[0]) * X + b[1] ** 2 * X + b[2] * b[3],
    "along rows": lambda b: np.sum(np.exp(b[:3] * TABLE), axis=1) - X,
    "along columns": lambda b: np.sum(np.exp(b[:3, None] * TABLE.T), axis=0, keepdims=True)[0],
    "product": lambda b: np.tanh(TABLE @ b[:3] + TABLE @ b[3:]),
    "logsumexp": lambda b: ng.logsumexp(b[:3] * TABLE, axis=1) * np.max(b[3:] * TABLE, axis=1),
    "softmax": lambda b: ng.softmax(b[:3] * TABLE, axis=1)[:, 1],
    "views": lambda b: np.exp(b[:3] * TABLE).T[0].reshape(-1, 1)[:, 0] * b[1],
    "choice": lambda b: np.where(X > 1, b[0] * X, b[1]) + np.clip(b[2] * X, 0.4, 0.9),
    "as many": lambda b: np.sum(np.tanh(b[0] * (X[:, None] - X) * b[1]), axis=1),
    "one": lambda b: (lambda e: e * X + e)(np.exp(b[0]) * b[1:2]),
    "two pieces": lambda b: (b[:2][:, None] * X)[1] * b[2:4][1] + b.reshape(2, 3)[1, 0] * X,
    "not selected": lambda b: np.where(b[0] > 0, X * b[0], np.nan * np.where(b[0] > 0, 0.0, b[0])),
    "diagonal": lambda b: b**2 + np.sin(b),
    "constant": lambda b: ng.tensor(X),
}
MIXED = {
    "mean": lambda b: (lambda z: z - np.mean(z))(b[0] * X ** b[1]),
    "softmax": lambda b: ng.softmax(b[0] * X),
    "differences": lambda b: np.diff(np.exp(b[0] * X)),
    "reversed": lambda b: (lambda z: z * z[::-1])(np.exp(b[0] * X)),
    "shared and not": lambda b: b * b[0],
    "pieces": lambda b: b[:3] * b[3:],
    "spread": lambda b: np.broadcast_to(b[0] * b[1], (COUNT,)) * X,
    "pairs": lambda b: np.sum(b[:2][:, None] * b[2] * X, axis=0),
    "joined": lambda b: np.concatenate([b[0] * X, b[1] * X]),
    "complex": lambda b: np.abs(np.exp(1j * b[0] * X) + b[1]),
    "converted": lambda b: (b[0] * X).astype(np.float32) * b[1],
}


def in_turn(function, b):
    p = ng.tensor(b, requires_grad=True)
    y = function(p)
    if not y.requires_grad:
        return np.zeros((*y.shape, *p.shape))
    return np.stack([ng.autograd.grad(row, [p], retain_graph=True)[0].numpy() for row in y])


@pytest.mark.parametrize("name", APART)
def test_rows_that_are_apart(name):
    function, p = APART[name], ng.tensor(B, requires_grad=True)
    (found,) = rows_by_point(function(p), [p])
    expected = in_turn(function, B)
    if found is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    for transform in (ng.jacobian, ng.jacfwd):
        np.testing.assert_allclose(transform(function)(B), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", MIXED)
def test_rows_that_are_mixed_are_left_to_other_ways(name):
    function, p = MIXED[name], ng.tensor(B, requires_grad=True)
    with pytest.raises(NumgradNotImplementedError, match="points"):
        rows_by_point(function(p), [p])
    expected, tolerance = in_turn(function, B), 1e-6 if name == "converted" else 1e-13
    np.testing.assert_allclose(ng.jacobian(function)(B), expected, rtol=tolerance, atol=1e-15)


def test_precision_is_that_of_the_result():
    single = B.astype(np.float32)
    found = ng.jacobian(lambda b: b[0] * np.exp(-b[1] * X.astype(np.float32)))(single)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, in_turn(APART["decay"], B) * [1, 1, 0, 0, 0, 0], rtol=1e-5)
    mixed = ng.jacfwd(lambda b: b[0] * X)(single)
    assert mixed.dtype == np.float64


def test_several_arrays_and_results():
    def function(a, b):
        return {"sum": a * X + b, "one": np.exp(a) * X}

    found = ng.jacobian(function, (0, 1))(2.0, np.array([3.0]))
    np.testing.assert_allclose(found["sum"][0], X)
    np.testing.assert_array_equal(found["sum"][1], np.ones((COUNT, 1)))
    np.testing.assert_allclose(found["one"][0], np.exp(2.0) * X)
    np.testing.assert_array_equal(found["one"][1], np.zeros((COUNT, 1)))


def test_hooks_see_rows():
    seen = []

    def function(b):
        y = b[0] * X
        y.register_hook(lambda g: seen.append(g.shape))
        return y * b[1]

    np.testing.assert_allclose(ng.jacobian(function)(B), in_turn(function, B))
    assert len(seen) > COUNT
    p = ng.tensor(B, requires_grad=True)
    p.register_hook(print)
    with pytest.raises(NumgradNotImplementedError, match="points"):
        rows_by_point(p * 2, [p])


def test_derivatives_of_what_is_taken_at_once():
    found = ng.jacobian(ng.jacobian(APART["decay"]))(B)
    expected = np.zeros((COUNT, 6, 6))
    expected[:, 0, 1] = expected[:, 1, 0] = -X * np.exp(-B[1] * X)
    expected[:, 1, 1] = B[0] * X**2 * np.exp(-B[1] * X)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_fits_evaluate_once_a_point():
    calls = []

    def residuals(b):
        calls.append(1)
        return b[0] * np.exp(-b[1] * X) - 2.0 * np.exp(-0.7 * X)

    found = ng.least_squares(residuals, np.array([1.0, 0.1]))
    np.testing.assert_allclose(found.x, [2.0, 0.7], rtol=1e-8)
    assert len(calls) <= found.nfev + 1
