"""``x[mask]`` where the mask has no numbers: compiled, and by example, against eager code."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradIndexError, NumgradTraceError

X = np.array([-1.0, 2.0, 3.0, -0.5, 0.7])
ROWS = np.stack([X, -X, X * 0.3 - 0.2])


def assigned(x):
    y = x * 1.0
    y[y > 0.5] = np.sin(x)[y > 0.5] * x[1]
    y[y < 0] = 0.25
    return y * x


def augmented(x):
    y, mask = x * 1.0, x > 0
    y[mask] += 1
    y[mask] *= np.sqrt(x[mask])  # not a number elsewhere
    return y


def averages(x):
    mask = x > 0
    return np.mean(x[mask] ** 2) + np.var(x[mask], ddof=1) + x[x < 0.6].std() + np.prod(x[mask])


def logarithms(x):
    mask = x > 0
    part = np.log(x[mask] * x[1] ** 2)
    return np.sum(part) + part @ x[mask] + np.count_nonzero(part > 0)


def table(x):
    y = np.outer(x, x)
    mask = y > 0
    return np.sum(y[mask] * x[0]) + np.sum(np.sum(y[x > 0] * x, axis=1) ** 2)


def extremes(x):
    mask = x > -0.6
    rows = np.outer(x, x)[mask]
    ends = np.max(x[mask]) * x[mask].min() + np.ptp(x[mask]) + ng.logsumexp(x[mask])
    return ends + np.sum(rows.max(axis=0) * x) + np.sum(np.min(rows, axis=1))


PROGRAMS = [assigned, augmented, averages, logarithms, table, extremes]


def total(f):
    return lambda x: np.sum(f(x) ** 2)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    np.testing.assert_allclose(ng.jit(f)(X), f(X), rtol=1e-12)
    both = ng.jit(lambda x: (ng.grad(total(f))(x), ng.hessian(total(f))(x)))
    for found, expected in zip(
        both(X), (ng.grad(total(f))(X), ng.hessian(total(f))(X)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_by_example(f, compiled):
    with np.errstate(all="ignore"):
        gradients = ng.vmap(ng.grad(total(f)))
        found = (ng.jit(gradients) if compiled else gradients)(ROWS)
        expected = [ng.grad(total(f))(row) for row in ROWS]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_deviation_of_equal_elements(compiled):
    def f(x):
        rows = np.stack([x, x], axis=1)[x < 2.5]
        part = x[x < 2.5]
        return np.std(part) + np.var(part) * 3 + np.sum(np.std(rows, axis=0)) + np.mean(part)

    x = np.array([[2.0, 2.0, 9.0], [5.0, 1.0, 7.0], [np.nan, 2.0, np.inf]])
    gradients = ng.vmap(ng.grad(f))
    found = (ng.jit(gradients) if compiled else gradients)(x)
    np.testing.assert_array_equal(found, [[0.5, 0.5, 0], [0, 1, 0], [0, 1, 0]])


def test_in_a_step():
    def f(x):
        return np.sum(ng.scan(lambda c, _: (augmented(c) * 0.3, None), x, length=2)[0])

    np.testing.assert_allclose(ng.jit(ng.grad(f))(X), ng.grad(f)(X), rtol=1e-12)


def moved(x):
    y = x * 1.0
    part = y[y > 0]
    y[0] = 5.0
    y[y > 0] = part


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 0].shape[0],
        lambda x: len(x[x > 0]),
        lambda x: x[x > 0].argmax(),
        lambda x: (x > 0)[x > 0].max(),
        lambda x: x[x > 0][0],
        lambda x: x[x > 0] + np.ones(3),
        lambda x: x[x > 0] + x[x < 0],
        lambda x: list(x[x > 0]),
        lambda x: x[x > 0],
        lambda x: x[x[:2] > 0],
        moved,
    ],
)
def test_what_needs_their_number_is_refused(f):
    for call in (lambda: ng.jit(f)(X), lambda: ng.vmap(f)(ROWS)):
        with pytest.raises((NumgradIndexError, NumgradTraceError), match="mask"):
            call()


def test_extremes_of_nothing_are_not_numbers():
    for f in (np.max, np.min):
        found = ng.jit(ng.value_and_grad(lambda x, f=f: f(x[x > 9])))(X)
        np.testing.assert_array_equal(found[0], np.nan)
        np.testing.assert_array_equal(found[1], 0)
