"""Lengths that calls cannot compare: kernels do, read nothing out of range, and calls raise."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradKernelError

X = np.arange(1.0, 9.0)
FAR = np.full(1000, 1e300)  # whatever lies behind an array would show
FAR[:8] = X
Q = np.array([1, 2, 2])


def computed(x, q):
    k = 0
    for i in range(len(q)):
        k += q[i]
    return np.sum(x[:k] + x[1:3])


def branch(x, q):
    s = 0.0
    if q[0] > 0:
        s = np.sum(x[1:] * x)
    return s


def assigned(x, q):
    y = np.zeros(len(x))
    for i in range(len(q)):
        y[: q[i]] = x[: q[i] + 1]
    return np.sum(y * y)


def product(x, q):
    k = 0
    while k < 3:
        k += 1
    return np.dot(x[: k + 1], x[:k])


def matrix(x, q):
    k = 0
    while k < 3:
        k += 1
    y = np.ones((2, k))
    return np.sum(y @ x[: k - 1])


def row(x, q):
    k = 0
    while k < 3:
        k += 1
    y = np.zeros((k, k))
    y[1, :] = x[: k + 1]
    return np.sum(y * y)


def mask(x, q):
    k = 0
    while k < 3:
        k += 1
    m = x[:k] > 1.5
    return np.sum(x[: k - 1][m])


def folded(x, q):
    k = 0
    while k < 3:
        k += 1
    return np.sum(x[:k].reshape(2, k))


def nothing(x, q):
    k = 0
    while k < 0:
        k += 1
    return np.max(x[:k])


def overwritten(x, q):
    k = 0
    while k < 3:
        k += 1
    y = x[:k].copy()
    z = np.zeros(k)
    for j in range(4):
        y[:] = x[j : 2 * j]
        z += y
    return np.sum(z)


def complex_product(x, q):
    return np.vdot(x[: q[2]], x)


def interpolated(x, q):
    return np.interp(2.5, x, x[:5])


def crossed(x, q):
    return np.sum(np.cross(x[:3], x[:4]))


WRONG = [
    complex_product,
    interpolated,
    crossed,
    computed,
    branch,
    assigned,
    product,
    matrix,
    row,
    mask,
    folded,
    nothing,
    overwritten,
]


@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_lengths_that_differ_raise(function):
    kernel = ng.kernel(function)
    message = rf"^{function.__name__}: .*(lengths|without elements).*, line \d+ of "
    with pytest.raises(ng.NumgradValueError, match=message):
        kernel(FAR[:8], Q)
    with pytest.raises(ng.NumgradValueError, match=message):
        ng.grad(lambda x: kernel(x, Q))(FAR[:8])
    with pytest.raises(ng.NumgradValueError, match=message):
        kernel(ng.tensor(FAR[:8], requires_grad=True), Q)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_transforms_raise_as_well(function):
    kernel = ng.kernel(function)
    ones = np.ones(8)
    for call in (
        lambda: ng.jit(ng.value_and_grad(lambda x: kernel(x, Q)))(X),
        lambda: ng.jvp(lambda x: kernel(x, Q), (X,), (ones,)),
        lambda: ng.hvp(lambda x: kernel(x, Q))(X, ones),
        lambda: ng.vmap(lambda x: kernel(x, Q))(np.stack([X, X])),
        lambda: ng.vmap(ng.grad(lambda x: kernel(x, Q)))(np.stack([X, X])),
        lambda: ng.vmap(lambda q: kernel(X, q))(np.stack([Q, Q])),
    ):
        with pytest.raises(ng.NumgradValueError, match=function.__name__):
            call()


def fitting(x, q):
    k = 0
    for i in range(len(q)):
        k += q[i]
    y = np.zeros(len(x))
    for i in range(len(q)):
        y[: q[i]] += x[: q[i]] * x[1 : 1 + q[i]]
    if k > 3:
        y[k - 1 :] = x[k - 1 : 8] ** 2
    return np.sum(y[:k] * x[8 - k :]) + np.dot(y[: k + 1], x[7 - k :])


def test_lengths_that_are_equal_in_the_call():
    kernel = ng.kernel(fitting)
    np.testing.assert_allclose(float(kernel(X, Q)), fitting(X, Q), rtol=1e-14)
    h = 1e-6
    wanted = [(fitting(X + h * e, Q) - fitting(X - h * e, Q)) / (2 * h) for e in np.eye(8)]
    for form in (ng.grad, lambda f: ng.jit(ng.grad(f)), ng.jacfwd):
        np.testing.assert_allclose(np.asarray(form(lambda x: kernel(x, Q))(X)), wanted, rtol=1e-7)
    seen = ng.vmap(lambda q: kernel(X, q))(np.stack([Q, Q[::-1]]))
    np.testing.assert_allclose(np.asarray(seen), [fitting(X, Q), fitting(X, Q[::-1])], rtol=1e-14)


def cut(x, n):
    return np.sum(x[:n] * x[1:])


def test_numbers_that_differ_by_example():
    kernel = ng.kernel(cut)
    with pytest.raises(ng.NumgradValueError, match="lengths, 3 and 7"):
        ng.vmap(lambda n: kernel(X, n))(np.array([7, 3]))
    with pytest.raises(ng.NumgradValueError, match="lengths, 3 and 7"):
        ng.jit(ng.vmap(lambda n: kernel(X, n)))(np.array([7, 3]))
    seen = ng.vmap(lambda n: kernel(X, n))(np.array([7, 7]))
    np.testing.assert_allclose(np.asarray(seen), [cut(X, 7)] * 2, rtol=1e-14)


@ng.kernel
def multiples(x, count=3):
    out = np.empty((count, len(x)))
    for k in range(count):
        for i in range(len(x)):
            out[k, i] = x[i] * (k + 1)
    return out


@pytest.mark.parametrize(
    "call",
    [multiples, lambda x: multiples(x, 2), lambda x: multiples(x, x.shape[0] - 1)],
    ids=["default", "number", "length"],
)
def test_a_compiled_function_knows_integers_that_give_a_length(call):
    def total(x):
        return np.sum(call(x) ** 2)

    count = {multiples: 3}.get(call, 2)  # of three elements
    x, factor = np.array([1.0, 2.0, 4.0]), sum(k * k for k in range(1, count + 1))
    value, gradient = ng.jit(ng.value_and_grad(total))(x)
    np.testing.assert_allclose(value, factor * 21, rtol=1e-14)
    np.testing.assert_allclose(gradient, 2 * factor * x, rtol=1e-14)
    tangent = ng.jit(lambda x: ng.jvp(total, (x,), (x,))[1])(x)
    np.testing.assert_allclose(tangent, 2 * factor * 21, rtol=1e-14)


def test_lengths_from_arguments_of_a_compiled_function():
    with pytest.raises(NumgradKernelError, match="static_argnums"):
        ng.jit(lambda x, n: multiples(x, n))(X, 2)
    assert ng.jit(lambda x, n: multiples(x, n), static_argnums=1)(X, 2).shape == (2, 8)
