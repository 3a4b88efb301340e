"""Real special functions and activations, and their derivatives, where they are hard.

Tails down to underflow, arguments beside poles and zeros, and beyond the range of a square.
"""

import mpmath
import numpy as np
import pytest

import numgrad as ng
from numgrad.nn import functional as F
from tests.kernels.ulp import assert_ulp

EXP = mpmath.exp


def gelu(x):
    return x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_slope(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2 + x * EXP(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


def logistic(x):
    return 1 / (1 + EXP(-x))


def gate_argument(x):
    return mpmath.sqrt(8 / mpmath.pi) * (x + mpmath.mpf(0.044715) * x**3)


def gelu_tanh(x):
    return x * logistic(gate_argument(x))


def gelu_tanh_slope(x):
    u = gate_argument(x)
    slope = mpmath.sqrt(8 / mpmath.pi) * (1 + 3 * mpmath.mpf(0.044715) * x * x)
    return logistic(u) + x * logistic(u) * logistic(-u) * slope


def silu_slope(x):
    return logistic(x) * (1 + x * logistic(-x))


def mish_slope(x):
    t = mpmath.tanh(mpmath.log1p(EXP(x)))
    return t + x * (1 - t * t) * logistic(x)


def log_gamma(x):
    return mpmath.log(abs(mpmath.gamma(x)))


def erf_slope(x):
    return 2 / mpmath.sqrt(mpmath.pi) * EXP(-x * x)


def either_side(*centres, least=1e-15, most=0.3):
    steps = np.geomspace(least, most, 14)
    return np.concatenate([c + s * steps for c in centres for s in (1, -1)])


TAIL = -np.linspace(1.2, 37.4, 60)
GATE_TAIL = -np.linspace(1.2, 21.0, 60)
WIDE = np.concatenate([np.linspace(-30, -2, 25), np.linspace(0.1, 40, 25)])
TABLE = [  # function, truth, its derivative, points, errors allowed (of the derivative)
    ("gelu", F.gelu, gelu, gelu_slope, np.concatenate([TAIL, WIDE[25:]]), 4),
    ("gelu_tanh", lambda x: F.gelu(x, "tanh"), gelu_tanh, gelu_tanh_slope,
     np.concatenate([GATE_TAIL, WIDE[25:]]), 5),
    ("silu", F.silu, lambda x: x * logistic(x), silu_slope, WIDE, 5),
    ("mish", F.mish, lambda x: x * mpmath.tanh(mpmath.log1p(EXP(x))), mish_slope, WIDE, 8),
    ("erf", ng.erf, mpmath.erf, erf_slope, np.linspace(-26, 26, 50), 3),
    ("erfc", ng.erfc, mpmath.erfc, lambda x: -erf_slope(x), np.linspace(-26, 26, 50), 3),
    ("digamma", ng.digamma, mpmath.digamma, lambda x: mpmath.psi(1, x),
     either_side(-1, -2, -3, -10, -50, least=2e-14, most=0.1), 4),
    ("gammaln", ng.gammaln, log_gamma, mpmath.digamma,
     np.concatenate([either_side(1, 2), [0.5, 0.75, 1.499, 1.5, 1.75, 2.499]]), 4),
    ("logit", ng.logit, lambda x: mpmath.log(x / (1 - x)), lambda x: 1 / (x * (1 - x)),
     np.concatenate([either_side(0.5), [1e-300, 1e-310, 1e-9, 1 - 1e-9]]), 4),
    ("expm1", ng.expm1, mpmath.expm1, EXP, np.linspace(-700, 30, 30), 3),
    ("arcsinh", ng.arcsinh, mpmath.asinh, lambda x: 1 / mpmath.sqrt(1 + x * x),
     np.array([1e-9, 1.0, 9e8, 1.1e9, 1e150, 1e200, -1e300]), 4),
    ("arctan", ng.arctan, mpmath.atan, lambda x: 1 / (1 + x * x),
     np.array([1e-9, 1.0, 9e8, -1.1e9, 1e150]), 4),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_values_and_derivatives(row, dtype):
    name, function, truth, slope, x, limit = row
    if dtype is np.float32:  # without what under- or overflows there, or rounds to a zero or pole
        low = {"gelu": -12.9, "gelu_tanh": -9, "erf": -9, "erfc": -9}.get(name, -87)
        x = x[(x > low) & (x < 1e18) & (abs(x) > 1e-37)].astype(dtype)
        x = x[(x != np.rint(x)) & (x != 0.5)]
    argument = ng.tensor(x, requires_grad=True)
    y = function(argument)
    y.backward(np.ones_like(x))
    assert_ulp(y.numpy(force=True), truth, x, limit=4, precision=400)
    assert_ulp(argument.grad.numpy(), slope, x, limit=limit, precision=400)


def test_tails_underflow_gradually():
    x = np.array([-37.6, -38.0, -38.4, -39.5, -1e5])
    assert_ulp(F.gelu(x).numpy(), gelu, x, limit=2, precision=400)
    np.testing.assert_array_equal(F.gelu(ng.tensor([np.inf, 1e300])).numpy(), [np.inf, 1e300])


def test_derivatives_of_digamma_far_out():
    x = np.array([1e155, 1e200, -100.25, -3e4 + 0.25, -1e9 + 0.25])
    argument = ng.tensor(x, requires_grad=True)
    ng.digamma(argument).sum().backward()
    with mpmath.workprec(200):
        reflected = [mpmath.pi**2 / mpmath.sin(mpmath.pi * mpmath.mpf(v)) ** 2 for v in x]
        expected = [
            float(1 / mpmath.mpf(v)) if v > 0 else float(r - 1 / (1 - mpmath.mpf(v) - 0.5))
            for v, r in zip(x, reflected, strict=True)
        ]
    np.testing.assert_allclose(argument.grad.numpy(), expected, rtol=1e-6)


def test_poles_of_the_gamma_functions():
    poles = ng.tensor([-1.0, -2.0, -np.inf])
    assert np.isnan(ng.digamma(poles).numpy()).all()
    np.testing.assert_array_equal(ng.digamma(ng.tensor([0.0, -0.0])).numpy(), [-np.inf, np.inf])
    np.testing.assert_array_equal(ng.gammaln(ng.tensor([1.0, 2.0, np.inf])).numpy(), [0, 0, np.inf])


def inverse(complement):
    """Where erfc is ``complement``, by Newton's method on its logarithm."""
    y = mpmath.sqrt(-mpmath.log(complement)) * mpmath.mpf("0.95")
    if complement > 0.3:
        return mpmath.erfinv(1 - complement)
    for _ in range(12):
        e = mpmath.erfc(y)
        y += (
            (mpmath.log(e) - mpmath.log(complement))
            * e
            * mpmath.exp(y * y)
            * mpmath.sqrt(mpmath.pi)
            / 2
        )
    return y


def quantile(p):
    root = mpmath.sqrt(2)
    return -root * inverse(2 * p) if p < 0.5 else root * inverse(2 * (1 - p))


BOTH = np.concatenate([np.linspace(0.03, 11, 40), np.geomspace(1e-20, 1e12, 20)])
FAST = [  # forms of few instructions, on both sides of where they begin
    ("erfinv", lambda x: mpmath.sign(x) * inverse(1 - abs(x)),
     np.concatenate([np.linspace(-0.999, 0.9995, 40), 1 - np.geomspace(1e-15, 1e-3, 20)])),
    ("ndtri", quantile,
     np.concatenate([np.linspace(0.001, 0.999, 20), np.geomspace(1e-300, 1e-3, 16)])),
    ("erfcinv", lambda y: inverse(y) if y < 1 else -inverse(2 - y), np.geomspace(1e-300, 1.9, 20)),
    ("gammaln", log_gamma, BOTH),
    ("digamma", mpmath.digamma,
     np.concatenate([BOTH, 1.4616321449683622 + np.linspace(-1, 1, 9) / 1e3])),
    ("i0e", lambda x: mpmath.besseli(0, x) * EXP(-x), np.geomspace(1e-8, 1e4, 60)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("row", FAST, ids=[row[0] for row in FAST])
def test_forms_of_few_instructions(row, dtype):
    name, truth, x = row
    if dtype is np.float32:
        x = x[(x > 1e-30) & (x.astype(dtype) < (1 if name in ("erfinv", "ndtri") else 1e9))]
    x = x.astype(dtype)
    y = getattr(ng.special, name)(ng.tensor(x)).numpy()
    assert_ulp(y, truth, x, limit=5, precision=200)
