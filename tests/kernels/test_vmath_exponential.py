"""Accuracy, special values and vectorisation of the exponential, logarithm, hyperbolic and power
functions of ``numgrad.kernels.vmath``."""

import functools
import importlib
import platform
import re

import mpmath
import numba
import numpy as np
import pytest

import numgrad as ng
from tests.kernels.ulp import assert_ulp

pytestmark = pytest.mark.slow

if numba.config.DISABLE_JIT:
    pytest.skip("LLVM intrinsics have no interpreted form", allow_module_level=True)

MODULES = {
    "exponential": ("exp", "exp2", "expm1", "sigmoid", "softplus"),
    "logarithm": ("log", "log2", "log10", "log1p"),
    "hyperbolic": ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    "power": ("pow",),
    "roots": ("sqrt", "cbrt", "hypot"),
}
MODULE_OF = {name: module for module, names in MODULES.items() for name in names}
UNARY = [name for name in MODULE_OF if name not in ("pow", "hypot")]
TYPES = {"f64": np.float64, "f32": np.float32}
LIMIT = {"f64": 2.0, "f32": 1.0}
both_types = pytest.mark.parametrize("t", list(TYPES))


@functools.cache
def kernel(name, t):
    """A plain contiguous loop over the function, compiled once for all tests."""
    module = importlib.import_module(f"numgrad.kernels.vmath.{MODULE_OF[name]}")
    f = getattr(module, f"{name}_{t}")
    if name == "pow":
        rare, slow = getattr(module, f"pow_rare_{t}"), getattr(module, f"pow_slow_{t}")

        @numba.njit(error_model="numpy")
        def loop(x, y, out):
            for i in range(out.size):
                out[i] = slow(x[i], y[i]) if rare(x[i], y[i]) else f(x[i], y[i])
    elif name in UNARY:

        @numba.njit(error_model="numpy")
        def loop(x, out):
            for i in range(out.size):
                out[i] = f(x[i])
    else:

        @numba.njit(error_model="numpy")
        def loop(x, y, out):
            for i in range(out.size):
                out[i] = f(x[i], y[i])

    return loop


def evaluate(name, t, *arguments):
    out = np.empty(arguments[0].size, TYPES[t])
    kernel(name, t)(*arguments, out)
    return out


def nan_outside(inside, f):
    return lambda x: f(x) if inside(x) else mpmath.nan


def odd(f):
    return lambda x: f(x) if x >= 0 else -f(-x)


def log_or_edge(f):
    return lambda x: f(x) if x > 0 else (-mpmath.inf if x == 0 else mpmath.nan)


TRUTH = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "expm1": mpmath.expm1,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "log": log_or_edge(mpmath.log),
    "log2": log_or_edge(lambda x: mpmath.log(x) / mpmath.ln2),
    "log10": log_or_edge(lambda x: mpmath.log(x) / mpmath.ln10),
    "log1p": nan_outside(lambda x: x >= -1, mpmath.log1p),
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": odd(mpmath.asinh),
    "acosh": nan_outside(lambda x: x >= 1, mpmath.acosh),
    "atanh": nan_outside(lambda x: abs(x) <= 1, mpmath.atanh),
    "sqrt": nan_outside(lambda x: x >= 0, mpmath.sqrt),
    "cbrt": odd(mpmath.cbrt),
}
# The intervals where each function does something, for float64 and float32.
EXP_SPAN = {"f64": (-746.0, 710.0), "f32": (-104.5, 89.0)}
RANGES = {
    "exp": [EXP_SPAN, (-1, 1), (-20, 20)],
    "exp2": [{"f64": (-1076.0, 1025.0), "f32": (-150.5, 129.0)}, (-1, 1)],
    "expm1": [{"f64": (-40.0, 710.0), "f32": (-20.0, 89.0)}, (-1, 1), (-3, 3)],
    "sigmoid": [EXP_SPAN, (-3, 3), (-40, 40)],
    "softplus": [EXP_SPAN, (-3, 3), (-40, 40)],
    "log": [(0.5, 2), (0.99, 1.01), (0, 1e5)],
    "log2": [(0.5, 2), (0.99, 1.01), (0, 1e5)],
    "log10": [(0.5, 2), (0.99, 1.01), (0, 1e5)],
    "log1p": [(-1, 2), (-0.01, 0.01), (0, 1e5)],
    "sinh": [{"f64": (-711.0, 711.0), "f32": (-90.0, 90.0)}, (-1, 1), (-30, 30)],
    "cosh": [{"f64": (-711.0, 711.0), "f32": (-90.0, 90.0)}, (-1, 1), (-30, 30)],
    "tanh": [(-1, 1), (-23, 23)],
    "asinh": [(-1, 1), (-100, 100), (0, 1e5)],
    "acosh": [(1, 1.01), (1, 10), (1, 1e5)],
    "atanh": [(-1, 1), (-0.01, 0.01)],
    "sqrt": [(0, 10)],
    "cbrt": [(-10, 10)],
}


def neighbours(values, dtype, steps=3):
    """The given points and the floats next to them on both sides."""
    points = np.asarray(values, dtype)
    out = [points]
    for direction in (-np.inf, np.inf):
        p = points
        for _ in range(steps):
            p = np.nextafter(p, dtype(direction))
            out.append(p)
    return np.concatenate(out)


def samples(name, t, rng):
    """Random points of every interval, and of every binade of the whole float range."""
    dtype, info = TYPES[t], np.finfo(TYPES[t])
    parts = []
    for interval in RANGES[name]:
        low, high = interval[t] if isinstance(interval, dict) else interval
        parts.append(rng.uniform(low, high, 300))
    lowest, highest = np.log2(float(info.smallest_subnormal)), info.maxexp
    for sign in (-1, 1):
        parts.append(sign * np.exp2(rng.uniform(lowest, highest - 1e-6, 200)))
        parts.append(sign * np.exp2(rng.uniform(-12, 12, 150)))
    # Halves of the argument reductions, and the borders of the float range.
    parts.append(np.arange(-40, 40) * np.log(2) / 2)
    parts.append(np.arange(-20, 20) / 2)
    parts.append(2.0 ** np.arange(-30, 30) * np.sqrt(0.5))
    with np.errstate(over="ignore", under="ignore"):
        x = np.concatenate([np.asarray(p).astype(dtype) for p in parts])
        border = [0, 1, -1, info.tiny, -info.tiny, info.max, info.smallest_subnormal]
        return np.concatenate([x, neighbours(border, dtype), edges(t)])


def edges(t):
    """Neighbourhoods of the arguments at which results overflow, underflow or turn subnormal."""
    if t == "f64":
        points = [709.782712893384, 710.4758600739439, -745.1332191019412, -708.3964185322641]
        points += [-36.7368005696771, 36.7368005696771, 18.714973875118524, 1024, -1022, -1074.5]
    else:
        points = [88.72283935546875, 89.41598510742188, -103.972084045, -87.3365478515625]
        points += [-17.32867951, 17.32867951, 9.010913, 128, -126, -149.5]
    return neighbours(points, TYPES[t], steps=4)


@pytest.mark.slow(cases=0)
@both_types
@pytest.mark.parametrize("name", UNARY)
def test_unary_error_is_bounded(name, t):
    x = samples(name, t, np.random.default_rng(7))
    x = x[np.isfinite(x)]
    if name == "softplus":  # beyond it mpmath would need exp(1e300); the value is x
        x = x[x < 2000]
    # 1 - exp(-x) and its like cancel down to 2**-1074 in the truth itself: mpmath works it out from
    # series there, but sums like 1 + exp(x) need bits for the smaller term.
    assert_ulp(evaluate(name, t, x), TRUTH[name], x, limit=LIMIT[t], precision=1300)


REFERENCE = {
    "sigmoid": lambda x: np.where(np.isnan(x), x, np.where(x > 0, 1, 0) + 0.5 * (x == 0)),
    "softplus": lambda x: np.where(x == 0, np.log(2), np.maximum(x, 0)),
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}


@both_types
@pytest.mark.parametrize("name", UNARY)
def test_unary_special_values_are_those_of_numpy(name, t):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], TYPES[t])
    got = evaluate(name, t, x)
    with np.errstate(all="ignore"):
        expected = REFERENCE.get(name, getattr(np, name, None))(x).astype(x.dtype)
    np.testing.assert_array_max_ulp(got[~np.isnan(x)], expected[~np.isnan(x)], 1)
    assert np.isnan(got[np.isnan(x)]).all()
    number = ~np.isnan(expected)
    assert (np.signbit(got) == np.signbit(expected))[number].all()


@both_types
@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "tanh", "asinh", "atanh"])
def test_subnormal_arguments_pass_unchanged(name, t):
    least = np.finfo(TYPES[t]).smallest_subnormal
    x = np.array([1, 3, 12345, -1, -7], TYPES[t]) * least
    np.testing.assert_array_equal(evaluate(name, t, x), x)


@both_types
def test_logarithms_of_powers_are_whole(t):
    n = np.arange(-40, 38) if t == "f32" else np.arange(-300, 308)
    tens = np.array([float(f"1e{i}") for i in n if i >= 0], TYPES[t])
    exact = tens[:23] if t == "f64" else tens[:11]  # larger powers of ten are rounded
    np.testing.assert_array_equal(evaluate("log10", t, exact), np.arange(exact.size))
    k = np.arange(-149, 128) if t == "f32" else np.arange(-1074, 1024)
    np.testing.assert_array_equal(evaluate("log2", t, np.ldexp(TYPES[t](1), k)), k)
    np.testing.assert_array_equal(evaluate("exp2", t, k.astype(TYPES[t])), np.ldexp(TYPES[t](1), k))


def power_pairs(t, rng):
    """Arguments of pow that reach every size of result, the extreme ones most often."""
    n, dtype = 400, TYPES[t]
    e, top = (300, 1074) if t == "f64" else (37, 149)
    near = 1e-3 * rng.uniform(-1, 1, n)
    pairs = [
        (rng.uniform(0.1, 10, n), rng.uniform(-5, 5, n)),
        (10 ** rng.uniform(-e, e, n), rng.uniform(-3, 3, n)),
        (10 ** rng.uniform(-e, e, n), 1 / rng.uniform(-1, 1, n)),
        (1 + near, top * rng.uniform(-1, 1, n) * 700),
        (rng.uniform(1, 2, n), rng.uniform(0.9, 1, n) * top),
        (rng.uniform(0.5, 1, n), rng.uniform(0.9, 1.05, n) * top),
        (rng.uniform(1.05, 1.12, n), top * rng.uniform(-6, 6, n)),
        (-rng.uniform(0.1, 10, n), rng.integers(-30, 30, n)),
        (np.full(n, 2.0), rng.uniform(-top - 2, top, n)),
        (np.full(n, float(np.finfo(dtype).smallest_subnormal)), rng.uniform(-1, 1, n)),
    ]
    x, y = (np.concatenate(c).astype(dtype) for c in zip(*pairs, strict=True))
    return x, y


@both_types
def test_pow_error_is_bounded(t):
    x, y = power_pairs(t, np.random.default_rng(8))
    assert_ulp(evaluate("pow", t, x, y), mpmath.power, x, y, limit=LIMIT[t], precision=220)


@both_types
def test_pow_slow_has_the_bits_of_pow_where_that_holds(t):
    """So results do not depend on what else is in the block."""
    power = importlib.import_module("numgrad.kernels.vmath.power")
    fast, rare, slow = (getattr(power, f"pow{s}_{t}") for s in ("", "_rare", "_slow"))

    @numba.njit(error_model="numpy")
    def loop(x, y, out, found):
        for i in range(out.size):
            out[i] = fast(x[i], y[i]) - slow(x[i], y[i])
            found[i] = rare(x[i], y[i])

    rng, n = np.random.default_rng(11), 20_000
    large = 1000 if t == "f64" else 120
    x, y = power_pairs(t, rng)
    more_x = np.concatenate([rng.uniform(0.1, 10, n), rng.uniform(0.8, 1.2, n)]).astype(x.dtype)
    more_y = np.concatenate([rng.uniform(-9, 9, n), rng.uniform(-large, large, n)]).astype(x.dtype)
    x, y = np.concatenate([x, more_x]), np.concatenate([y, more_y])
    difference, found = np.empty_like(x), np.empty(x.size, bool)
    loop(x, y, difference, found)
    assert (difference[~found] == 0).all()
    assert found[x <= 0].all()
    assert not found[-2 * n : -n].any()  # the powers of every day


@both_types
def test_pow_special_values_are_those_of_numpy(t):
    info = np.finfo(TYPES[t])
    some = [0, 1, 2, 0.5, 3, 2.5, 4, np.inf, info.max, info.tiny, info.smallest_subnormal]
    some += [2 ** (info.nmant + 1) - 1, 2 ** (info.nmant + 1), 1e18, 1 + info.eps, 1 - info.epsneg]
    values = np.array([s * v for v in some for s in (1, -1)] + [np.nan], TYPES[t])
    x, y = (g.ravel() for g in np.meshgrid(values, values))
    got = evaluate("pow", t, x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))
        np.testing.assert_array_max_ulp(got[number], expected[number], 2)


@both_types
def test_pow_is_exact_where_the_power_is_a_float(t):
    x, n = (g.ravel().astype(TYPES[t]) for g in np.meshgrid(np.arange(-20, 21), np.arange(5)))
    np.testing.assert_array_equal(evaluate("pow", t, x, n), x.astype(float) ** n.astype(float))
    n = np.arange(23 if t == "f64" else 11).astype(TYPES[t])
    expected = np.array([float(f"1e{int(i)}") for i in n], TYPES[t])
    np.testing.assert_array_equal(evaluate("pow", t, np.full_like(n, 10), n), expected)


@both_types
def test_pow_of_fixed_exponents(t):
    """Compiled functions know exponents, and write some powers as products."""
    exponents = (1, 3, 4, -2, -3, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5)
    dtype = np.dtype(TYPES[t]).type
    limits = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -2.0, -1.0, 1.0, limits.max, -limits.max]
    edges = np.log([limits.smallest_subnormal, limits.max])
    x = np.exp(np.random.default_rng(0).uniform(*edges, 300))
    x = np.concatenate([special, x, [limits.tiny, limits.smallest_subnormal]]).astype(dtype)
    found = ng.jit(lambda x: [np.power(x, p) for p in exponents])(x)
    for p, y in zip(exponents, found, strict=True):
        with np.errstate(all="ignore"):
            expected = np.power(x, np.full_like(x, p))
        number = ~np.isnan(expected)
        assert y.dtype == dtype
        np.testing.assert_array_equal(np.signbit(y[number]), np.signbit(expected[number]))
        np.testing.assert_allclose(y, expected, rtol=5 * limits.eps, atol=limits.smallest_subnormal)


@both_types
def test_hypot_error_is_bounded(t):
    rng, dtype, info = np.random.default_rng(10), TYPES[t], np.finfo(TYPES[t])
    lowest = np.log2(float(info.smallest_subnormal))
    x = np.exp2(rng.uniform(lowest, info.maxexp - 1, 1500)).astype(dtype)
    with np.errstate(over="ignore"):
        y = (x * np.exp2(rng.uniform(-60, 60, 1500))).astype(dtype)
    x, y = x[np.isfinite(y)], -y[np.isfinite(y)]
    assert_ulp(evaluate("hypot", t, x, y), mpmath.hypot, x, y, limit=1.0)
    sides = np.array([[3, 4, 5], [5, 12, 13], [8, 15, 17], [0, 7, 7]], dtype)
    np.testing.assert_array_equal(evaluate("hypot", t, *sides.T[:2].copy()), sides[:, 2])


@both_types
def test_hypot_special_values_are_those_of_numpy(t):
    info = np.finfo(TYPES[t])
    some = [0, 1, np.inf, info.max, info.tiny, info.smallest_subnormal]
    values = np.array([s * v for v in some for s in (1, -1)] + [np.nan], TYPES[t])
    x, y = (g.ravel() for g in np.meshgrid(values, values))
    with np.errstate(over="ignore"):
        np.testing.assert_array_max_ulp(evaluate("hypot", t, x, y), np.hypot(x, y), 1)


X86 = re.compile(r"v(?:add|sub|mul|sqrt|f(?:n?m)(?:add|sub)\d+)p([sd])\b.*%[yz]mm")
ARM = re.compile(r"f(?:add|sub|mul|mla|mls|sqrt)\s+v\d+\.(2d|4s)")
WIDTH = {"f64": ("d", "2d"), "f32": ("s", "4s")}
WIDENED = ("cbrt", "hypot")  # float32 computed in float64


@both_types
@pytest.mark.parametrize("name", list(MODULE_OF))
def test_plain_loop_is_vectorised_without_calls(name, t):
    x = np.ones(4, TYPES[t])
    evaluate(name, t, *([x] if name in UNARY else [x, x]))
    (assembly,) = kernel(name, t).inspect_asm().values()
    pattern = X86 if platform.machine() in ("x86_64", "AMD64") else ARM
    packed = set(pattern.findall(assembly))
    wanted = WIDTH["f64"] if t == "f32" and name in WIDENED else WIDTH[t]
    assert packed & set(wanted), f"only {packed} in the loop"
    libm = re.findall(r"(?:call\w*|bl|jmp|\$)\s*_*((?:log|exp|pow|sqrt|fma|ldexp)\w*)", assembly)
    assert not libm, libm


def test_the_exponential_is_written_where_it_is_called():
    # a loop that calls it loads its constants again for each vector: a tenth more time
    ng.exp(ng.ones(3))
    text = ng.ops["exp"].llvm()
    assert " x double>" in text
    assert "@exp_f64(" not in text
