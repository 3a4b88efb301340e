"""Complex elementary functions: special values, accuracy, branch cuts, ng.jit, gradients.

One kernel of each function evaluates a whole grid.
"""

import cmath

import mpmath
import numpy as np
import pytest

import numgrad as ng
from tests.quiet import quiet

NUMPY = {
    name: getattr(np, name)
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "reciprocal", "sign",
        "absolute", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
        "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh",
    )
}  # fmt: skip
OWN = ("sigmoid", "softplus", "logit")
BOTH_DTYPES = [np.complex128, pytest.param(np.complex64, marks=pytest.mark.slow)]
functions = pytest.mark.parametrize("name", NUMPY)
all_functions = pytest.mark.parametrize("name", [*NUMPY, *OWN])
both_dtypes = pytest.mark.parametrize("dtype", BOTH_DTYPES)


def reals(dtype):
    """Zeros, subnormal, small, middling, beyond exp's range, nearly infinite, infinite, NaN."""
    info = np.finfo(dtype)
    tiny = [info.smallest_subnormal, info.tiny, info.eps / 4]
    x = np.array([0.0, *tiny, 0.5, 1.0, 1.5, 20.0, 50.0, 95.0, 400.0, 720.0], info.dtype)
    x = np.concatenate([x, [info.max, np.inf, np.nan]]).astype(info.dtype)
    return np.concatenate([x, -x])


def grid(dtype):
    x = reals(dtype)
    z = np.empty((x.size, x.size), dtype)
    z.real, z.imag = x[:, None], x
    return z.ravel()


def computed(name, z):
    return getattr(ng, name)(ng.tensor(z)).numpy()


def parts(z):
    return np.stack([z.real, z.imag], -1) if z.dtype.kind == "c" else z[:, None]


def assert_same_bits(actual, expected):
    a, b = parts(actual), parts(expected)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    assert same.all(), list(zip(actual, expected, strict=True))[np.argmin(same.all(-1))]


@pytest.mark.slow(cases=4)
@both_dtypes
@functions
def test_values_at_infinity_and_nan_are_those_of_annex_g(name, dtype):
    z = grid(dtype)
    z = z[~np.isfinite(z)]
    if name == "expm1":  # NumPy multiplies infinity by zero there
        expected = quiet(np.exp, z)
        expected.real -= 1
    elif name == "exp2":  # the product with log(2) is rounded in NumPy
        z = z[(abs(z.imag) < 1e9) | ~np.isfinite(z.imag)]
        expected = quiet(np.exp2, z)
    else:
        expected = quiet(NUMPY[name], z)
    actual = computed(name, z)
    a, b = parts(actual), parts(expected)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    np.testing.assert_allclose(abs(a), abs(b), rtol=4 * np.finfo(dtype).eps, equal_nan=True)
    # the sign of a part beside a NaN, or of a zero that comes from one, is not prescribed
    known = ~np.isnan(b).any(-1) & ~((b == 0).any(-1) & (np.isinf(z.real) & np.isinf(z.imag)))
    np.testing.assert_array_equal(np.signbit(a[known]), np.signbit(b[known]))


@both_dtypes
def test_values_of_the_logistic_functions_at_infinity(dtype):
    inf = np.inf
    z = np.array([inf + 1j, -inf + 2j, complex(inf, inf), complex(-inf, inf)], dtype)
    np.testing.assert_array_equal(computed("sigmoid", z), [1, 0, 1, 0])
    np.testing.assert_allclose(computed("softplus", z[:2]), [inf + 1j, 0], rtol=1e-6)


# ------------------------------------------------------------------------------- accuracy

TRUTH = {
    "exp": mpmath.exp, "exp2": lambda z: mpmath.exp(z * mpmath.log(2)), "expm1": mpmath.expm1,
    "log": mpmath.log, "log2": lambda z: mpmath.log(z) / mpmath.log(2), "log10": mpmath.log10,
    "log1p": lambda z: mpmath.log(1 + z), "sqrt": mpmath.sqrt, "reciprocal": lambda z: 1 / z,
    "sign": mpmath.sign, "absolute": abs, "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan, "sinh": mpmath.sinh,
    "cosh": mpmath.cosh, "tanh": mpmath.tanh, "arcsinh": mpmath.asinh, "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh, "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "softplus": lambda z: mpmath.log(1 + mpmath.exp(z)),
    "logit": lambda z: mpmath.log(z / (1 - z)),
}  # fmt: skip
CANCEL_ON_A_CURVE = {"expm1", "sigmoid", "softplus", "logit"}
"""Functions one part of which is a difference: only the error of the whole is small there."""


def points(dtype):
    """In the plane, beside branch points, on the unit circle, and where exp leaves its range."""
    rng = np.random.default_rng(0)
    eps = float(np.finfo(dtype).eps)
    small = np.sqrt(eps)
    near = [d * (1 + 0.7j) for d in (eps, small, -small, 1e-3)]
    edge = 709.0 if dtype is np.complex128 else 88.0
    z = [
        *(rng.uniform(-3, 3, 12) + 1j * rng.uniform(-3, 3, 12)),
        *np.exp(1j * rng.uniform(-np.pi, np.pi, 6)),
        *(centre + d for centre in (0, 1, -1, 1j, -1j, 1j * np.pi / 2, 0.5) for d in near),
        1e-10 + 1e-10j, 400 + 1j, 50 + 1j, 1 + 400j, 30 - 2j, -30 + 2j, 1e9 + 3j, 3 - 1e9j,
        edge + 1 + 1e-3j, edge + 4 + 1.5j, -edge - 1 + 1j, edge / 2 + 1j, 1e15 + 1e15j, 1e-20 + 1j,
    ]  # fmt: skip
    return np.array(z, dtype)


def errors(value, truth, dtype):
    """Of the parts, each in units of its own last place, and of the whole."""
    info = np.finfo(dtype)
    eps, largest = float(info.eps), float(info.max)
    found, expected = [value.real, value.imag], [truth.real, truth.imag]
    scales = []
    differences = []
    for a, b in zip(found, expected, strict=True):
        if abs(b) > largest:
            assert np.isinf(a), (value, truth)
            continue
        differences.append(abs(mpmath.mpf(float(a)) - b))
        scales.append(max(abs(b), mpmath.mpf(float(info.tiny))))
    each = max((d / s for d, s in zip(differences, scales, strict=True)), default=0)
    whole = max(differences, default=0) / max(scales, default=1)
    return float(each) / eps, float(whole) / eps


@both_dtypes
@all_functions
def test_parts_are_accurate(name, dtype):
    z = points(dtype)
    for x, y in zip(z, computed(name, z), strict=True):
        with mpmath.workprec(2000):
            truth = mpmath.mpc(TRUTH[name](mpmath.mpc(float(x.real), float(x.imag))))
            each, whole = errors(y, truth, dtype)
        assert whole <= 3, (x, y, whole)
        if name not in CANCEL_ON_A_CURVE:
            assert each <= 5 or name.startswith("log"), (x, y, each)


def test_the_logarithm_of_the_modulus_is_accurate_beside_the_unit_circle():
    z = np.exp(1j * np.linspace(0.1, 3, 50))
    for x, y in zip(z, computed("log", z), strict=True):
        with mpmath.workprec(300):
            truth = mpmath.log(mpmath.mpc(x)).real
        assert abs(y.real - truth) <= 1e-10 * abs(truth)


def test_complex64_goes_on_where_exp_overflows():
    z = np.array([50 + 1j, 88.9 + 0.8j, -400 + 1j], np.complex64)
    np.testing.assert_allclose(computed("tanh", z), np.tanh(z.astype(complex)), rtol=1e-6)
    assert np.isfinite(computed("exp", z)).all()


# ----------------------------------------------------------------------------- branch cuts


@all_functions
def test_conjugates_and_sides_of_cuts(name):
    z = grid(np.complex128)
    # NumPy's sign of zero and of what is infinite has no signed zeros
    z = z[np.isfinite(z) & (z != 0)] if name == "sign" else z[~np.isnan(z)]
    y = computed(name, z)
    with_imaginary = ~np.isnan(parts(y)).any(-1)
    assert_same_bits(
        np.conj(computed(name, np.conj(z)))[with_imaginary].astype(y.dtype), y[with_imaginary]
    )
    peer = getattr(cmath, name.replace("arc", "a"), None)
    cuts = [complex(a, b) for a in (-3.0, -0.25, 0.0, -0.0, 0.25, 3.0) for b in (0.0, -0.0)]
    cuts += [complex(z.imag, z.real) for z in cuts]
    if peer is not None:
        cuts = [z for z in cuts if z != 0 or not name.startswith("log")]
        expected = np.array([peer(z) for z in cuts])
        actual = computed(name, np.array(cuts))
        np.testing.assert_allclose(parts(actual), parts(expected), rtol=1e-14, atol=1e-16)
        np.testing.assert_array_equal(np.signbit(parts(actual)), np.signbit(parts(expected)))


# ------------------------------------------------------------------------ ng.jit, gradients


@pytest.mark.parametrize(
    "names", [("tanh", "arccosh"), pytest.param([*NUMPY, *OWN], marks=pytest.mark.slow)]
)
def test_jitted_functions_have_the_bits_of_eager_ones(names):
    z = grid(np.complex128)
    found = ng.jit(lambda z: [getattr(ng, name)(z) for name in names])(ng.tensor(z))
    for name, y in zip(names, found, strict=True):
        assert_same_bits(y.numpy(), computed(name, z))


@pytest.mark.parametrize(
    ("name", "z", "expected"),
    [
        ("tanh", 400 + 1j, 0),
        ("tan", 1 + 400j, 0),
        ("sigmoid", 900 + 1j, 0),
        ("softplus", 900 + 1j, 1),
        ("arcsinh", -1e200 + 1e200j, 1 / (1e200 + 1e200j)),
        ("arcsin", 1e200 - 1e200j, np.conj(1 / (-1j * 1e200 * (1 - 1j)) * -1)),
        ("arctan", 1e200 + 1e200j, 0),
        ("arctanh", 1e200 + 1e200j, 0),
        ("logit", 1e200 + 1e200j, 0),
    ],
)
def test_gradients_far_out(name, z, expected):
    x = ng.tensor(np.array(z), requires_grad=True)
    ng.real(getattr(ng, name)(x)).backward()
    np.testing.assert_allclose(np.asarray(x.grad), expected, rtol=1e-14, atol=1e-300)


def raised(z, w):
    return ng.power(ng.tensor(z), ng.tensor(w)).numpy()


@both_dtypes
def test_powers_are_accurate(dtype):
    """Against mpmath: the error grows with the exponent's size and the logarithm's."""
    draw = np.random.default_rng(0)
    z = (draw.normal(size=60) + 1j * draw.normal(size=60)) * 10.0 ** draw.uniform(-4, 4, 60)
    eps = np.finfo(dtype).eps
    for w in (
        3 * draw.normal(size=60) + 1j * draw.normal(size=60),
        draw.integers(-8, 9, 60) + 0j,
        draw.uniform(-6, 6, 60) + 0j,
    ):
        z, w = z.astype(dtype), w.astype(dtype)
        with mpmath.workdps(40):
            exact = [
                complex(mpmath.mpc(complex(a)) ** mpmath.mpc(complex(b)))
                for a, b in zip(z, w, strict=True)
            ]
        error = np.abs(raised(z, w) - exact) / np.abs(exact)
        assert (error <= eps * (4 + np.abs(w * np.log(np.abs(z))) + 4 * np.abs(w))).all()


def test_powers_that_are_known():
    z = np.array([3 - 4j, 1e200 + 1e200j, 1j, -2.0, 0.0, 0.0, 0.0, 0.0, np.inf, 2.0])
    w = np.array([2, -2, 3, 0, 0, 2, 0.5 + 1j, -1, 1, 1], complex)
    expected = np.array([-7 - 24j, 0, -1j, 1, 1, 0, 0, np.nan, np.inf, 2])
    found = raised(z, w)
    np.testing.assert_array_equal(found.real, expected.real)
    np.testing.assert_array_equal(
        found.imag[expected == expected], expected[expected == expected].imag
    )
    assert np.isnan(found[7].imag)


def test_powers_do_not_overflow_on_the_way():
    """``exp(w log z)`` where neither ``|z|**p`` nor ``exp(-q angle)`` is a number."""
    z, w = np.array([1e300j, 1e-300j]), np.array([1.5 + 250j, -1.5 - 250j])
    with mpmath.workdps(40):
        exact = [
            complex(mpmath.mpc(complex(a)) ** mpmath.mpc(complex(b)))
            for a, b in zip(z, w, strict=True)
        ]
    np.testing.assert_allclose(raised(z, w), exact, rtol=1e-10)
