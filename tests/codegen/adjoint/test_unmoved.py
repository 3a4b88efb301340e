"""Operands without a tangent: nothing is computed for them, so no infinite slope of theirs counts.

The truth is the derivative by hand, of the operands that move.
"""

import math

import numpy as np
import pytest

import numgrad as ng


@ng.kernel
def power(x, p):
    return x**p


@ng.kernel
def powers(x, p):
    total = 0.0
    for k in range(len(x)):
        total += np.power(x[k], p[k])
    return total


@ng.kernel
def beside_roots(x, a):
    y = np.zeros(len(x))
    for k in range(len(x)):
        y[k] = x[k] ** 3 * (2.0 + math.sqrt(a[k]) + np.arccos(1.0 - a[k]) + abs(a[k]) ** 0.5)
    return y


def test_a_power_of_a_negative_number_by_an_exponent_that_does_not_move():
    def f(x):
        return power(x, 3.0)

    assert ng.jvp(f, (-2.0,), (1.0,)) == (-8.0, 12.0)
    assert ng.jit(lambda x: ng.jvp(f, (x,), (1.0,))[1])(-2.0) == 12.0
    assert ng.jvp(ng.grad(f), (-2.0,), (1.0,)) == (12.0, -12.0)
    assert ng.hessian(f)(-2.0) == -12.0
    assert ng.grad(lambda x: ng.jvp(f, (x,), (1.0,))[1])(-2.0) == -12.0
    assert ng.jvp(lambda x: ng.jvp(f, (x,), (1.0,))[1], (-2.0,), (1.0,)) == (12.0, -12.0)
    assert ng.grad(ng.grad(ng.grad(f)))(-2.0) == 6.0


def test_powers_in_a_loop_by_exponents_that_do_not_move():
    x, p, t = np.array([-2.0, 3.0, -1.0]), np.array([3.0, 2.0, 4.0]), np.array([1.0, -2.0, 3.0])
    slopes = p * x ** (p - 1)
    curvatures = p * (p - 1) * x ** (p - 2)

    def f(x):
        return powers(x, p)

    np.testing.assert_allclose(ng.jvp(f, (x,), (t,))[1], slopes @ t)
    np.testing.assert_allclose(ng.jvp(ng.grad(f), (x,), (t,))[1], curvatures * t)
    np.testing.assert_allclose(ng.hessian(f)(x), np.diag(curvatures))
    each = ng.vmap(lambda x, t: ng.jvp(f, (x,), (t,))[1])(np.stack([x, -x]), np.stack([t, t]))
    np.testing.assert_allclose(each, [slopes @ t, (p * (-x) ** (p - 1)) @ t])


def test_an_exponent_that_moves_has_its_own_slope():
    def f(p):
        return power(2.0, p)

    np.testing.assert_allclose(ng.jvp(f, (3.0,), (1.0,))[1], 8 * math.log(2))
    both = ng.jvp(lambda x, p: power(x, p), (2.0, 3.0), (1.0, 1.0))[1]
    np.testing.assert_allclose(both, 12 + 8 * math.log(2))
    assert np.isnan(ng.jvp(lambda x, p: power(x, p), (-2.0, 3.0), (1.0, 1.0))[1])


def test_slopes_that_are_infinite_at_what_does_not_move():
    x, a, t = np.array([2.0, -1.0]), np.zeros(2), np.array([1.0, 3.0])

    def f(x):
        return beside_roots(x, a)

    np.testing.assert_allclose(ng.jvp(f, (x,), (t,))[1], 6 * x**2 * t)
    gradient = ng.grad(lambda x: beside_roots(x, a).sum())
    np.testing.assert_allclose(ng.jvp(gradient, (x,), (t,))[1], 12 * x * t)


@pytest.mark.parametrize("moved", [0, 1])
def test_cotangents_of_which_one_moves(moved):
    @ng.kernel
    def f(x):
        return x * x, x * x * x

    def gradient(s):
        seeds = (s, 2.0) if moved == 0 else (2.0, s)
        return ng.vjp(f, 3.0)[1](seeds)

    assert ng.jvp(gradient, (5.0,), (1.0,))[1] == (6.0 if moved == 0 else 27.0)

    def product(x):
        return ng.vjp(f, x)[1]((x, 2.0) if moved == 0 else (2.0, x))

    assert ng.jvp(product, (3.0,), (1.0,))[1] == (12.0 + 36 if moved == 0 else 4.0 + 81)
