"""Trigonometric functions, their inverses and error functions: accuracy, special values, asm."""

import functools
import math
import platform
import re

import mpmath
import numba
import numpy as np
import pytest

from numgrad.kernels.vmath import error_function, inverse_trigonometric, trigonometric
from tests.kernels.ulp import assert_ulp

pytestmark = pytest.mark.slow

# What is promised is 2 (float64) and 1 (float32); measured are at most 0.97 and 0.94.
LIMIT = {np.float64: 1.2, np.float32: 1.0}
SUFFIX = {np.float64: "_f64", np.float32: "_f32"}
MODULE = {
    **dict.fromkeys(("sin", "cos", "tan"), trigonometric),
    **dict.fromkeys(("asin", "acos", "atan", "atan2"), inverse_trigonometric),
    **dict.fromkeys(("erf", "erfc"), error_function),
}
UNARY = [name for name in MODULE if name != "atan2"]
PERIODIC = ["sin", "cos", "tan"]
NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}
NUMPY |= {"sin": np.sin, "cos": np.cos, "tan": np.tan}
LIBM_CALL = re.compile(
    r"[\s$:,](?:sin|cos|tan|sincos|asin|acos|atan|atan2|erf|erfc|exp|log|fma|sqrt|rint)f?\b(?!=)"
)

float_types = pytest.mark.parametrize("dtype", [np.float64, np.float32])
unary = pytest.mark.parametrize("name", UNARY)
periodic = pytest.mark.parametrize("name", PERIODIC)


def function(name, dtype):
    return getattr(MODULE[name.split("_")[0]], name + SUFFIX[dtype])


@functools.cache
def kernel(name, dtype):
    """A plain contiguous loop over the fast function, compiled for ``dtype``."""
    scalar = function(name, dtype)
    vector = numba.types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")
    if name == "atan2":

        def loop(y, x, out):
            for i in range(out.size):
                out[i] = scalar(y[i], x[i])

        return numba.njit((vector, vector, vector), error_model="numpy")(loop)

    def loop(x, out):
        for i in range(out.size):
            out[i] = scalar(x[i])

    return numba.njit((vector, vector), error_model="numpy")(loop)


@functools.cache
def guarded_kernel(name, dtype):
    """The loop for rare arguments, as the loop generator writes it."""
    fast, slow = function(name, dtype), function(name + "_slow", dtype)
    rare = function(name + "_rare", dtype)
    vector = numba.types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")

    def loop(x, out):
        for i in range(out.size):
            out[i] = slow(x[i]) if rare(x[i]) else fast(x[i])

    return numba.njit((vector, vector), error_model="numpy")(loop)


@functools.cache
def flag_kernel(name, dtype):
    """A block evaluated by the fast function while the rare flags are collected."""
    fast, rare = function(name, dtype), function(name + "_rare", dtype)
    vector = numba.types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")

    def loop(x, out):
        found = False
        for i in range(out.size):
            out[i] = fast(x[i])
            found |= rare(x[i])
        return found

    return numba.njit((vector, vector), error_model="numpy")(loop)


def evaluate(compiled, *arguments):
    out = np.empty_like(arguments[0])
    compiled(*arguments, out)
    return out


def check(name, *arguments):
    dtype = arguments[0].dtype.type
    got = evaluate(kernel(name, dtype), *arguments)
    assert_ulp(got, getattr(mpmath, name), *arguments, limit=LIMIT[dtype], precision=220)


def fast_limit(dtype):
    return getattr(trigonometric, "FAST_LIMIT" + SUFFIX[dtype].upper())


def magnitudes(rng, dtype, count, most=None):
    """Positive numbers of every exponent, subnormal ones included."""
    info = np.finfo(dtype)
    most = info.max if most is None else most
    bits = np.dtype(dtype).str.replace("f", "i")
    last = int(np.array(most, dtype).view(bits))
    return rng.integers(1, last, count, endpoint=True).astype(bits).view(dtype)


def multiples_of_half_pi(rng, dtype, count):
    """The floats on either side of multiples of pi/2 in the fast range."""
    k = rng.integers(1, int(fast_limit(dtype) / 1.6), count)
    with mpmath.workprec(200):
        x = np.array([float(int(i) * mpmath.pi / 2) for i in k]).astype(dtype)
    return np.concatenate([x, np.nextafter(x, dtype(0)), np.nextafter(x, dtype(np.inf))])


def nearest_to_half_pi(dtype, step):
    """Floats that are closer to a multiple of pi/2 than all simpler ones.

    For each exponent e, the denominators m of the continued fraction of 2**e 2/pi: m 2**e 2/pi is
    closer to an integer than with any smaller m.
    """
    info = np.finfo(dtype)
    digits = info.nmant + 1
    found = []
    with mpmath.workprec(2500):
        for e in range(-digits, int(info.maxexp) - digits, step):
            y = mpmath.mpf(2) ** e * 2 / mpmath.pi
            m, previous = 0, 1
            of_exponent = []
            while m < 2**digits:
                of_exponent.append(m)
                m, previous = int(mpmath.floor(y)) * m + previous, m
                y = 1 / (y - mpmath.floor(y))
            found += [float(mpmath.ldexp(m, e)) for m in of_exponent[-3:]]
    found = np.array(found, dtype)
    return found[found > 0]


@float_types
@periodic
def test_periodic_functions_in_the_fast_range(name, dtype):
    rng = np.random.default_rng(1)
    limit = fast_limit(dtype)
    x = [
        np.linspace(-7, 7, 1501),
        rng.uniform(-100, 100, 1000),
        rng.uniform(-limit, limit, 700),
        magnitudes(rng, dtype, 500, limit),
        [limit, -limit, np.nextafter(limit, dtype(0))],
    ]
    check(name, np.concatenate(x).astype(dtype))


@float_types
@periodic
def test_periodic_functions_beside_multiples_of_half_pi(name, dtype):
    rng = np.random.default_rng(2)
    x = np.concatenate([multiples_of_half_pi(rng, dtype, 300), nearest_to_half_pi(dtype, 3)])
    x = x[x <= fast_limit(dtype)]
    check(name, np.concatenate([x, -x]))


@float_types
@periodic
def test_huge_arguments_take_the_slow_function(name, dtype):
    rng = np.random.default_rng(3)
    largest = np.finfo(dtype).max
    limit = fast_limit(dtype)
    x = [np.nextafter(limit, dtype(np.inf)), 1e22, 2.0**100, largest, largest / 3]
    if dtype is np.float64:
        x += [2.0**1000, 1e300, 6381956970095103 * 2.0**797]  # the last has a cosine of -4.7e-19
    huge = np.concatenate([magnitudes(rng, dtype, 300), nearest_to_half_pi(dtype, 7)])
    x = np.concatenate([np.array(x, dtype), huge[huge > limit]])
    x = np.concatenate([x, -x])
    got = evaluate(guarded_kernel(name, dtype), x)
    assert_ulp(got, getattr(mpmath, name), x, limit=LIMIT[dtype], precision=1400)


@float_types
@periodic
def test_the_slow_function_takes_every_argument(name, dtype):
    rng = np.random.default_rng(9)
    slow = function(name + "_slow", dtype)

    @numba.njit
    def one(x):
        return slow(x)

    for x in (np.inf, -np.inf, np.nan):
        assert np.isnan(one(dtype(x)))
    x = np.concatenate([[0.0, -0.0], rng.uniform(-9, 9, 200), magnitudes(rng, dtype, 100)])
    x = x.astype(dtype)
    got = np.array([one(v) for v in x], dtype)
    assert_ulp(got, getattr(mpmath, name), x, limit=LIMIT[dtype], precision=1400)
    assert np.signbit(got[1]) == (name != "cos")


@float_types
@periodic
def test_rare_is_what_is_finite_and_beyond_the_limit(name, dtype):
    limit, inf = fast_limit(dtype), dtype(np.inf)
    out = np.empty(1, dtype)
    for x in (0.0, -1.0, limit, -limit, inf, -inf, np.nan):
        assert not flag_kernel(name, dtype)(np.array([x], dtype), out)
    for x in (np.nextafter(limit, inf), -np.nextafter(limit, inf), np.finfo(dtype).max):
        assert flag_kernel(name, dtype)(np.array([x, 0.0], dtype), np.empty(2, dtype))
    assert limit >= 1e5


@float_types
@pytest.mark.parametrize("name", ["asin", "acos"])
def test_inverse_sine_and_cosine(name, dtype):
    rng = np.random.default_rng(4)
    from_one = 1 - np.exp(rng.uniform(-38, 0, 500))
    x = [
        np.linspace(-1, 1, 1501),
        rng.uniform(-1, 1, 1000),
        rng.uniform(0.49, 0.51, 300),
        from_one,
        -from_one,
        magnitudes(rng, dtype, 300, 1.0),
        -magnitudes(rng, dtype, 300, 1.0),
        [0.5, np.nextafter(dtype(0.5), dtype(1)), np.nextafter(dtype(1), dtype(0))],
    ]
    check(name, np.concatenate(x).astype(dtype))


@float_types
def test_inverse_tangent(dtype):
    rng = np.random.default_rng(5)
    x = [
        np.linspace(-5, 5, 1501),
        rng.uniform(0.41, 0.47, 700),  # where the pieces meet, tan(pi/8), and its reciprocal
        rng.uniform(2.3, 2.5, 300),
        magnitudes(rng, dtype, 700),
        -magnitudes(rng, dtype, 300),
    ]
    check("atan", np.concatenate(x).astype(dtype))


@float_types
def test_angle_of_a_point(dtype):
    rng = np.random.default_rng(6)
    turn = rng.uniform(-np.pi, np.pi, 1000)
    radius = magnitudes(rng, dtype, 1000, np.finfo(dtype).max / 2)
    sign = rng.choice([-1, 1], (4, 600))
    wide = [s * magnitudes(rng, dtype, 600) for s in sign]
    y = np.concatenate([np.sin(turn), radius * np.sin(turn), wide[0], wide[1]]).astype(dtype)
    x = np.concatenate([np.cos(turn), radius * np.cos(turn), wide[2], np.abs(wide[1])])
    check("atan2", y, x.astype(dtype))


@float_types
def test_angle_of_a_point_beside_the_limits_of_its_scaling(dtype):
    rng = np.random.default_rng(7)
    exponents = (100, 900, -200) if dtype is np.float64 else (24, 90, -60)
    x = np.concatenate([2.0**e * rng.uniform(0.5, 2, 150) for e in exponents]).astype(dtype)
    tiny = np.finfo(dtype).tiny * rng.uniform(0, 4, x.size) * np.maximum(x.astype(float), 1)
    check("atan2", tiny.astype(dtype), x)
    check("atan2", (x * rng.uniform(0.3, 3, x.size)).astype(dtype), -x)


@float_types
@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_function(name, dtype):
    rng = np.random.default_rng(8)
    end = 27.3 if dtype is np.float64 else 10.2
    x = [
        np.linspace(-6.5, 6.5, 1301),
        rng.uniform(0.7, 1.1, 500),  # where the pieces meet
        rng.uniform(0.5, end, 700),
        np.linspace(0.974 * end, end, 300),  # subnormal results, then zero
        magnitudes(rng, dtype, 300, 10.0),
        -magnitudes(rng, dtype, 300, 10.0),
    ]
    check(name, np.concatenate(x).astype(dtype))


SPECIAL = [0.0, 1.0, np.inf, 1.5, 2.0, 30.0]


@float_types
@unary
def test_special_values(name, dtype):
    info = np.finfo(dtype)
    x = np.array([*SPECIAL, info.smallest_subnormal, info.tiny, np.nan], dtype)
    x = np.concatenate([x, -x])
    with np.errstate(all="ignore"):
        if name in NUMPY:
            expected = NUMPY[name](x)
        else:
            expected = np.array([getattr(math, name)(v) for v in x.astype(float)]).astype(dtype)
    got = evaluate(kernel(name, dtype), x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_max_ulp(got[~np.isnan(got)], expected[~np.isnan(got)], 1)
    exact = (x == 0) | np.isinf(x)
    np.testing.assert_array_equal(got[exact], expected[exact])
    np.testing.assert_array_equal(
        np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(got)])
    )


@float_types
def test_special_values_of_the_angle(dtype):
    info = np.finfo(dtype)
    tiny = info.smallest_subnormal
    values = [0.0, 1.0, np.inf, info.tiny, tiny, 3 * tiny, info.max, info.max / 3, 1e-30, 1e30]
    values = np.array([*values, np.nan], dtype)
    values = np.concatenate([values, -values])
    y, x = (v.ravel() for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = np.array([math.atan2(*p) for p in zip(y, x, strict=True)]).astype(dtype)
    got = evaluate(kernel("atan2", dtype), y, x)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(got), ~number)
    np.testing.assert_array_max_ulp(got[number], expected[number], 1)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))
    exact = number & (np.isinf(y) | np.isinf(x) | (y == 0) | (x == 0))
    np.testing.assert_array_equal(got[exact], expected[exact])


def assert_packed(compiled, dtype):
    """The machine code computes on vectors of at least 256 bits (128 on Arm), without libm."""
    (signature,) = compiled.signatures
    text = compiled.inspect_asm(signature)
    if platform.machine().lower() in ("x86_64", "amd64"):
        kind = "pd" if dtype is np.float64 else "ps"
        packed = rf"v(?:mul|add|sub|fn?m(?:add|sub)\d+){kind}\s[^\n]*%[yz]mm"
    else:
        lanes = "2d" if dtype is np.float64 else "4s"
        packed = rf"f(?:mul|add|sub|mla|mls)(?:\.{lanes}|\s+v\d+\.{lanes})"
    assert len(re.findall(packed, text)) >= 10
    assert not LIBM_CALL.findall(text)


@float_types
@pytest.mark.parametrize("name", MODULE)
def test_a_plain_loop_is_vectorised(name, dtype):
    assert_packed(kernel(name, dtype), dtype)


@float_types
@periodic
def test_the_loop_that_collects_rare_flags_is_vectorised(name, dtype):
    assert_packed(flag_kernel(name, dtype), dtype)


@pytest.mark.parametrize("name", ["sin", "erf"])
def test_a_call_of_libm_would_be_noticed(name):
    scalar = getattr(math, name)
    vector = numba.types.Array(numba.float64, 1, "C")

    @numba.njit((vector, vector))
    def loop(x, out):
        for i in range(out.size):
            out[i] = scalar(x[i])

    assert LIBM_CALL.findall(loop.inspect_asm(loop.signatures[0]))
