"""Numbers of one kind where another is due: cmath of real numbers, what arrays cannot hold."""

import cmath

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint.test_refusals import marked_line


@pytest.mark.parametrize("function", [cmath.sqrt, cmath.log, cmath.acos, cmath.atanh])
@pytest.mark.parametrize("x", [-2.5, 3.0])
def test_functions_of_cmath_are_complex_of_real_numbers(function, x):
    def f(x):
        w = function(x)
        return w.real + 2 * w.imag

    kernel, step = ng.kernel(f), 1e-5
    slope = (f(x + step) - f(x - step)) / (2 * step)
    np.testing.assert_allclose(kernel(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(ng.grad(kernel)(x), slope, rtol=1e-8)
    np.testing.assert_allclose(ng.jvp(kernel, (x,), (1.0,))[1], slope, rtol=1e-8)


def test_results_of_cmath_are_those_of_python():
    @ng.kernel
    def f(x):
        return cmath.sqrt(-1), cmath.sqrt(x), cmath.log(x, 10.0), cmath.exp(x), cmath.phase(x)

    truth = f.__wrapped__(-2.0)
    for own, other in zip(f(-2.0), truth, strict=True):
        assert own.dtype.kind == np.asarray(other).dtype.kind
        np.testing.assert_allclose(own, other, rtol=1e-13)


def adds_complex(z):
    o = np.zeros(1)
    o[0] += z * 2  # here
    return o


def converts(z):
    return float(z)  # here


def scales(z):
    o = np.ones(2)
    o *= z  # here
    return o


def assigns_a_part(z):
    o = np.zeros(4)
    o[1:] = np.array([z, 1.0, 2.0])  # here
    return o


def assigns_chosen(z):
    o = np.arange(4.0)
    o[o > 1.0] = z  # here
    return o


def assigns_by_places(z):
    o = np.zeros(4)
    o[np.array([0, 2])] += z  # here
    return o


def complex_of_complex(z):
    return complex(1.0, z)  # here


def adds_a_float(z):
    n = np.zeros(3, np.int64)
    n += 0.7  # here
    return n


def divides(z):
    n = np.ones(3, np.int64)
    n /= 2  # here
    return n


def adds_floats_to_a_part(z):
    n = np.ones(3, np.int32)
    n[1:] += np.ones(2)  # here
    return n


def divides_by_places(z):
    n = np.ones(3, np.int64)
    n[np.array([0, 2])] /= 2  # here
    return n


LOSSES = (
    adds_complex, converts, scales, assigns_a_part, assigns_chosen, assigns_by_places,
    complex_of_complex, adds_a_float, divides, adds_floats_to_a_part, divides_by_places,
)  # fmt: skip


@pytest.mark.parametrize("function", LOSSES, ids=lambda f: f.__name__)
def test_numbers_that_an_array_cannot_hold_are_refused(function):
    line = marked_line(function)
    with pytest.raises(ng.errors.NumgradKernelError, match=f"line {line} .*; (take|make)"):
        ng.kernel(function)(1 + 2j)


def test_elements_and_parts_that_numpy_casts_are_cast():
    def f(x):
        n = np.ones(4, np.int64)
        n[0] = 2.7
        n[1] += x
        n[2:] = x
        n *= 3
        n **= 2
        b = x > np.arange(4.0)
        b |= n > 4
        o = np.zeros(4)
        o += n
        o *= b
        return o

    np.testing.assert_array_equal(ng.kernel(f)(1.7), f(1.7))
