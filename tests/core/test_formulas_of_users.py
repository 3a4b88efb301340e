"""Formulas of users: names around them, results that are real, functions of Python's."""

import cmath
import math
import types

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTypeError

X = np.array([0.5, 1.5])
Z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
K = 2.0
TABLE = [2.0]
BOX = types.SimpleNamespace(k=2.0)


def helper(x):
    return K * x


def by_global(x):
    return K * x * x


def by_item(x):
    return TABLE[0] * x * x


def by_attribute(x):
    return BOX.k * x * x


def by_helper(x):
    return helper(x) * x


def enclosed():
    k = 2.0

    def f(x):
        return k * x * x

    def change():
        nonlocal k
        k = 5.0

    return f, change


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("name", ["by_global", "by_item", "by_attribute", "by_helper", "enclosed"])
def test_results_and_gradients_are_of_one_function(name, declared, monkeypatch):
    f, change = enclosed() if name == "enclosed" else (globals()[name], lambda: None)
    op = ng.elementwise()(f)
    if declared:
        op.vjp(x=lambda g, x: g * 2.0 * f(x) / x)
    t = ng.tensor(X, requires_grad=True)
    y = op(t)
    change()
    monkeypatch.setitem(globals(), "K", 5.0)
    TABLE[0] = BOX.k = 5.0
    try:
        y.sum().backward()
        np.testing.assert_allclose(y.detach(), 2.0 * X * X)
        np.testing.assert_allclose(t.grad, 4.0 * X)
        for function in (op, ng.jit(op)):
            s = ng.tensor(X.astype("float32"), requires_grad=True)
            y = function(s)
            y.sum().backward()
            np.testing.assert_allclose(y.detach(), 2.0 * X * X, rtol=1e-6)
            np.testing.assert_allclose(s.grad, 4.0 * X, rtol=1e-6)
    finally:
        TABLE[0] = BOX.k = 2.0


REAL = {
    "abs": lambda x: np.abs(x) * 2.0,
    "parts": lambda x: x.real * x.imag,
    "angle": lambda x: np.angle(x),
    "square": lambda x: np.real(np.conj(x) * x),
    "where": lambda x: np.where(x.real > 0, x.imag, 1.0),
    "complex": lambda x: x * np.abs(x),
}


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", REAL)
def test_results_have_numpys_dtype(name, dtype):
    f, z = REAL[name], Z.astype(dtype)
    op = ng.elementwise()(f)
    for function in (op, ng.jit(op)):
        for operand in (z, ng.tensor(z)):
            y = np.asarray(function(operand))
            assert y.dtype == f(z).dtype
            np.testing.assert_allclose(y, f(z), rtol=1e-5)
    if dtype == np.complex64:
        return
    h, gradient = 1e-6, ng.grad(lambda t: np.sum(np.real(op(t))))(z)
    along = [np.real(f(z + h * d) - f(z - h * d)) / (2 * h) for d in (1.0, 1.0j)]
    np.testing.assert_allclose(gradient, along[0] + 1j * along[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "f",
    [math.sin, math.floor, math.fsum, cmath.exp, float, int, round, lambda x: math.hypot(x, 1.0)],
)
def test_functions_of_python_are_named(f):
    def unary(x):
        return f([x]) if f is math.fsum else f(x)

    with pytest.raises(NumgradTypeError, match=r"np\.sin for math\.sin"):
        ng.elementwise()(unary)(X)


@pytest.mark.parametrize("name", ["g", "y", "self", "empty"])
def test_operands_may_have_names_that_formulas_and_entries_use(name):
    text = f"def scaled(u, {name}):\n    return u * {name} + 1.0\n"
    scope = {"__name__": __name__}
    exec(text, scope)
    scaled = ng.elementwise()(scope["scaled"])
    u, v = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(scaled(u, v), u * v + 1)
    np.testing.assert_array_equal(scaled(u, **{name: v}), u * v + 1)
    a, b = ng.tensor(u, requires_grad=True), ng.tensor(v, requires_grad=True)
    result = scaled(a, b)
    result.sum().backward()
    np.testing.assert_array_equal(result.detach(), u * v + 1)
    np.testing.assert_array_equal(a.grad, v)
    np.testing.assert_array_equal(b.grad, u)
    fast = ng.jit(ng.grad(lambda u, v: np.sum(scaled(u, v) ** 2), argnums=1))
    np.testing.assert_allclose(fast(u, v), 2 * (u * v + 1) * u)
    scaled.vjp(**{name: lambda g, u: 7 * g * u})  # a rule by the operand's own name
    np.testing.assert_array_equal(ng.grad(lambda v: np.sum(scaled(u, v)))(v), 7 * u)


def test_one_operand_may_be_called_y():
    @ng.elementwise()
    def shifted_square(y):
        """The square, and one."""
        return y * y + 1

    @ng.elementwise()
    def doubled_and_other(y, y_):
        """Names that differ by an underscore."""
        return 2 * y + y_ * y_

    assert doubled_and_other(np.float64(1.0), np.float64(3.0)) == 11
    assert ng.grad(doubled_and_other, argnums=(0, 1))(1.0, 3.0) == (2.0, 6.0)
    assert doubled_and_other(y=np.float64(1.0), y_=np.float64(3.0)) == 11
    assert shifted_square(np.float64(2.0)) == 5
    assert ng.grad(shifted_square)(3.0) == 6
    assert ng.grad(ng.grad(shifted_square))(3.0) == 2


@pytest.mark.parametrize("how", ["eager", "compiled", "gradient", "batch", "number"])
@pytest.mark.parametrize("declare", [ng.elementwise, ng.primitive])
def test_operations_of_real_operands_refuse_complex_ones(declare, how):
    """The gradient formula of a square, ``2 g x``, holds of real operands alone."""

    @declare(real_only=True)
    def real_square(x):
        return x * x

    real_square.vjp(x=lambda g, x: 2 * g * x)
    if declare is ng.primitive:
        real_square.shape(lambda x: x)
    call = {
        "eager": real_square,
        "compiled": ng.jit(real_square),
        "gradient": lambda z: ng.grad(lambda z: np.abs(real_square(z)).sum())(z),
        "batch": ng.vmap(real_square),
        "number": lambda z: real_square(complex(np.asarray(z)[0])),
    }[how]
    with pytest.raises(ng.NumgradTypeError, match="real_square: defined for real operands only"):
        call(ng.tensor([1 + 2j, 3.0]))
    x = ng.tensor([3.0], requires_grad=True)
    real_square(x).sum().backward()
    np.testing.assert_array_equal(x.grad, [6.0])
