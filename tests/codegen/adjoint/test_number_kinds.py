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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quotients_rounded_down_are_numpys(dtype):
    """Of zeros of either sign, infinities, NaN and numbers of any size."""

    @ng.kernel
    def f(a, b):
        o = np.zeros_like(a)
        for i in range(len(a)):
            o[i] = a[i] // b[i]
        return o, np.floor_divide(a, b)

    values = [0.0, 1.0, 2.5, 7.0, 1e-30, 1e30, 0.1, np.inf]
    values = np.array([*values, *np.negative(values), np.nan], dtype)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        truth = np.floor_divide(a, b)
    for own in f(a, b):
        np.testing.assert_array_equal(own, truth)
        np.testing.assert_array_equal(np.signbit(own)[truth == 0], np.signbit(truth)[truth == 0])


def test_quotients_rounded_down_of_numbers():
    @ng.kernel
    def f(a, b):
        return a // b, divmod(a, b)[0] + a * b

    assert f(1.0, -np.inf)[0] == 1.0 // -np.inf == -1.0
    assert np.isnan(f(np.inf, 1.0)[0])
    assert ng.grad(lambda a: f(a, 3.0)[1])(7.5) == 3.0
    assert ng.jvp(lambda a: f(a, 3.0)[1], (7.5,), (1.0,))[1] == 3.0


def strided(x, k):
    s = 0.0
    for i in range(0, len(x), k):
        s += x[i]
    return s


def strided_ever_closer(x, n):
    s, k = 0.0, 3
    for _ in range(n):
        for i in range(0, len(x), k):
            s += x[i]
        k -= 1
    return s


def test_steps_of_zero_raise():
    x = np.arange(6.0)
    one, other = ng.kernel(strided), ng.kernel(strided_ever_closer)
    assert one(x, 2) == strided(x, 2)
    assert one(x, -1) == 0
    assert other(x, 3) == strided_ever_closer(x, 3)
    for call in (one, ng.grad(one)):
        with pytest.raises(ValueError, match="step is zero, line"):
            call(x, 0)
    for call in (other, ng.grad(other)):
        with pytest.raises(ValueError, match="step is zero, line"):
            call(x, 4)

    def constant(x):
        for _ in range(0, 3, 0):
            x += 1
        return x

    with pytest.raises(ng.errors.NumgradKernelError, match="is zero, line"):
        ng.kernel(constant)(1.0)


def test_the_length_of_a_text():
    @ng.kernel
    def f(x):
        return x * len("abc")

    assert f(2.0) == 6.0
