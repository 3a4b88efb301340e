"""What the table's operations are compared with: NumPy, SciPy, or a formula given here."""

import importlib
import itertools
import warnings

import numpy as np

from numgrad.op import AxisOp, Elementwise
from numgrad.op.base import OPS
from numgrad.testing.samples import SPECIAL_VALUES, draw


def _from_parts(a, b):
    dtype = np.result_type(np.copysign(a, b))
    out = np.empty(np.broadcast(a, b).shape, np.result_type(result_dtype(dtype), np.complex64))
    out.real, out.imag = a, b
    return out


def _scipy(name):
    return getattr(importlib.import_module("scipy.special"), name)


def _of_floats(function):
    """NumPy computes in float16 for 8-bit integers; we do not."""
    return lambda *args: function(
        *[a if np.asarray(a).dtype.kind in "fc" else np.asarray(a, np.float64) for a in args]
    )


_OF_FLOATS = {
    "leaky_relu": lambda x, slope: np.where(x > 0, x, slope * x),
    "prelu": lambda x, slope: np.where(x > 0, x, slope * x),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "celu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
    "gelu": lambda x: x * _scipy("ndtr")(x),
    "gelu_tanh": lambda x: (
        0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * np.power(x, 3.0))))
    ),
    "silu": lambda x: x * _scipy("expit")(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(x, 0.0)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "log_sigmoid": lambda x: _scipy("log_expit")(x),
    "hardtanh": lambda x, low, high: np.where(x <= low, low, np.where(x >= high, high, x)),
    "softplus_scaled": lambda x, beta, threshold: np.where(
        x * beta > threshold, x, np.logaddexp(x * beta, 0.0) / beta
    ),
    "squared_error": lambda x, t: np.square(x - t),
    "absolute_error": lambda x, t: np.abs(x - t),
    "smooth_absolute_error": lambda x, t, beta: np.where(
        np.abs(x - t) < beta,
        np.square(x - t) / 2 / beta,
        np.abs(x - t) - beta / 2,
    ),
    "huber_error": lambda x, t, delta: _scipy("huber")(delta, x - t),
    "bernoulli_error": lambda x, t: (
        -(t * np.maximum(np.log(x), -100) + (1.0 - t) * np.maximum(np.log1p(-x), -100))
    ),
    "bernoulli_logit_error": lambda x, t: (1.0 - t) * x + np.logaddexp(-x, 0.0),
    "weighted_bernoulli_logit_error": lambda x, t, w: (
        (1.0 - t) * np.logaddexp(x, 0.0) + t * w * np.logaddexp(-x, 0.0)
    ),
    "divergence_error": lambda x, t: _scipy("xlogy")(t, t) - t * x,
    "log_divergence_error": lambda x, t: np.exp(t) * (t - x),
    "poisson_log_error": lambda x, t: np.exp(x) - t * x,
    "poisson_error": lambda x, t, eps: x - t * np.log(x + eps),
    "stirling": lambda x: np.where(
        x > 1, x * np.log(np.maximum(x, 1)) - x + np.log(2 * np.pi * np.maximum(x, 1)) / 2, 0
    ),
    "gaussian_error": lambda x, t, var, eps: (
        (np.log(np.maximum(var, eps)) + np.square(x - t) / np.maximum(var, eps)) / 2
    ),
}
NEURAL = {name: _of_floats(function) for name, function in _OF_FLOATS.items()}
NEURAL["relu"] = lambda x: np.maximum(x, 0)
"""Activations and losses: of real operands only, with floating results; ``relu`` keeps integers."""

OTHER = NEURAL | {
    "clip_below": lambda x, low: np.where((x < low) | (low != low), low, x),
    "clip_above": lambda x, high: np.where((x > high) | (high != high), high, x),
    "from_parts": lambda a, b: _from_parts(a, b),
    "replace_nonfinite": lambda x, nan, posinf, neginf: np.where(
        np.isnan(x), nan, np.where(np.isinf(x), np.where(x > 0, posinf, neginf), x)
    ),
    "norm2": lambda x, **params: np.sqrt(np.sum(np.abs(x) ** 2, **params)),
}

OF_COMPLEX = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "logit": lambda x: np.log(x) - np.log1p(-x),
}

ELEMENTWISE = [op for op in OPS.values() if isinstance(op, Elementwise)]
UNARY = [op for op in ELEMENTWISE if len(op.inputs) == 1]
BINARY = [op for op in ELEMENTWISE if len(op.inputs) == 2]
ALONG_AXES = [op for op in OPS.values() if isinstance(op, AxisOp)]
TINY = {np.dtype(np.float32): 1e-41, np.dtype(np.float64): 1e-310}


def by_name(ops):
    return {"argvalues": ops, "ids": [op.name for op in ops]}


def reference(op):
    """The function with the same meaning, which is not numgrad's."""
    if op.name in OTHER:
        return OTHER[op.name]
    if isinstance(op.ref, str):
        module, name = op.ref.rsplit(".", 1)
        return getattr(importlib.import_module(module), name)
    assert op.ref is not None, f"{op.name} has no reference; add one to OTHER"
    return op.ref


def quiet(function, *args, **params):
    """Call NumPy without its warnings about special values."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **params)


def special_values(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        return np.zeros(0, dtype)
    values = np.array(SPECIAL_VALUES)
    tiny = np.abs(values) == 1e-310
    values[tiny] = np.sign(values[tiny]) * TINY[dtype]
    return values.astype(dtype)


def operands(op, dtype, special=True):
    """One-dimensional operands: inside the domain, then special values in every combination."""
    count = len(op.inputs)
    inside = [draw(op, (9,), dtype, k) for k in range(count)]
    if not special or count > 2 or np.dtype(dtype).kind != "f":
        return inside
    extra = special_values(dtype)
    if count == 1:
        own = np.asarray(op.special, dtype)
        return [np.concatenate([inside[0], extra, own])]
    pairs = np.array(list(itertools.product(extra, extra)), dtype).T
    return [np.concatenate([x, p]) for x, p in zip(inside, pairs, strict=True)]


def result_dtype(dtype):
    """The dtype of NumPy's result, float16 (of 8-bit integers) replaced by float32."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def tolerance(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind not in "fc":
        return 0.0
    return 64 * np.finfo(dtype).eps


def assert_same(actual, expected, rtol, signs=True):
    """Shapes, dtypes (float16 as float32), values, NaNs, and signs of zeros."""
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == result_dtype(expected.dtype)
    if expected.dtype == np.float16:
        rtol, signs = 2e-3, False
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 1e-3, equal_nan=True)
    if signs and expected.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(actual[zero]), np.signbit(expected[zero]))
