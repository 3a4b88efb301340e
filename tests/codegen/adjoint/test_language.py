"""The language of kernels, construct by construct, against exact derivatives of the plain function.

Each function runs as it is on hyper-dual numbers; its programs run as plain Python, and compiled in
the left-out tests.
"""

import ast
import cmath
import contextlib
import math
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint.plain import plainly
from tests.codegen.adjoint.test_traps import P, Q, X, Y, Z, check

D = np.random.default_rng(0).normal(size=(3, 4, 5))
TABLE, GAIN, PAIRS = np.array([0.5, 1.5, 2.5]), 3.0, ((1.0, 2), (3.0, 4))
CASES: dict = {}


def case(*arguments):
    """A function of the language, and what it is tried on."""

    def enter(function):
        CASES[function.__name__] = function, arguments
        return function

    return enter


# tuples, and arrays that depend on conditions


@case(X, Y)
def tuples_that_loops_hand_on(x, y):
    p = (x[0], 0, True)
    for i in range(1, 6):
        a, k, b = p
        if x[i] > 0.1:
            p = (a * x[i], k + 1, b)
        else:
            p = (a + y[i], k, x[i] > -0.4)
    return p[0] * p[1] if p[2] else p[0]


@case(X)
def tuples_in_loops_that_are_left(x):
    p = (0, x[0])
    for i in range(6):
        for j in range(i):
            p = (p[1] * 0.5, p[0] + x[j])
        if p[0] > 0.2:
            break
    return p[0] * p[1]


@case(X, Y)
def arrays_of_conditional_expressions(x, y):
    s = 0.0
    for i in range(6):
        w = x if x[i] > 0.1 else y
        s += w[i] * w[0]
    z = x * 2 if s > 0.3 else y + 1
    return s * z[0] + ((x if s > 1 else y)[1:] * z[1:]).sum()


@case(X, Y)
def a_name_for_one_of_two_arrays(x, y):
    if x[0] > 0.1:
        a, b = x, y * 2
    else:
        a, b = y, x
    for k in range(3):
        a = a * b if k % 2 == 0 else a + x
    return (a * b).sum()


# names


@case(X)
def a_loop_variable_after_its_loop(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i - 1]
    return s * x[i] * i


@case(X)
def a_number_of_the_last_iteration(x):
    for v in x:
        square = v * v
    return square * v


@case(X)
def a_number_of_the_iteration_before(x):
    s = 0.0
    for i in range(len(x)):
        if i > 0:
            s += before * x[i]  # noqa: F821
        before = x[i] * x[i]  # noqa: F841
    return s


@case(X)
def the_first_iteration_sets_names(x):
    first = True
    for i in range(len(x)):
        if first or x[i] > best:  # noqa: F821
            best, place, first = x[i], i, False
    return best * place


@case(X)
def a_while_loop_sets_a_name(x):
    i = 0
    while i < len(x):
        double = 2.0 * x[i]
        i += 1
    return double * double


@case(X)
def a_nested_loop_sets_a_name(x):
    s = 0.0
    for i in range(3):
        for j in range(i, 5):
            t = x[i] * x[j]
        s += t * t
    return s + t


@case(X)
def a_branch_sets_a_name(x):
    if x[0] > -9.0:
        t = x[0] * x[1]
    s = x[2]
    if x[0] > -9.0:
        s *= t
    return s


@case(X)
def annotations_and_docstrings(x):
    """Docstring."""
    s: float = 0.0
    k: int
    k = 2
    "a text"
    pass
    s += x[k] * x[0]
    return s


def helper(u, v=2.0, k=3, *, w=1.5):
    if u > 0:
        return u * v * w, k
    return v, k + 1


@case(X)
def helpers_with_defaults_and_keywords(x):
    a, k = helper(x[0])
    b, _ = helper(x[1], k=5, w=x[2])
    return a * b * helper(v=x[2], u=x[3])[0] * k


@case(X)
def functions_inside(x):
    gain = x[1]

    def bent(u):
        if u > 0.0:
            return u * u
        return -gain * u

    twice = lambda u: 2.0 * bent(u) * gain  # noqa: E731
    gain = x[2]
    return bent(x[0]) + twice(x[3])


def _with_closure():
    scale, weights = 2.5, np.array([1.0, 2.0])

    def closure(x):
        return x[0] * scale * weights[1] * TABLE[2] * GAIN * PAIRS[1][0] * x[1]

    return closure


case(X)(_with_closure())


@case(X)
def asserts_and_raises(x):
    assert len(x) > 2, "short"
    assert x[0] > -100.0
    if len(x) > 100:
        raise ValueError("long")
    return x[0] * x[1]


# tuples, loops


@case(X)
def tuples(x):
    pair = (x[0], x[1])
    nested = (pair, x[2])
    (a, b), c = nested
    a, b = b, a + b
    return a * b * c + nested[0][1]


@case(X, Y)
def enumerate_and_zip(x, y):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, y)):  # noqa: B905
        s += i * a * b
    for a, k in zip(x[::-1], range(2, 8)):  # noqa: B905
        s += a * k * a
    for i, v in enumerate(x, start=2):
        s += i * v * v
    return s


@case(X)
def tuples_are_gone_through(x):
    s = 0.0
    for v in (0.5, 1.5):
        s += v * x[0] * x[1]
    for a, b in ((0, 1), (1, 2)):
        s += x[a] * x[b]
    for w in [x[0], x[1]]:
        s *= 1.0 + w
    for i in np.arange(4):
        s += x[i] * x[0]
    return s


@case(X)
def ranges(x):
    s = 0.0
    for i in range(len(x) - 1, -1, -1):
        s = s * 0.5 + x[i] * x[i]
    for i in range(5, 0, -2):
        s += x[i] * s
    for i in reversed(range(1, 4)):
        s = s * 0.5 + x[i]
    return s


@case(Z)
def all_places(z):
    s = 0.0
    for i, j in np.ndindex(z.shape):
        s += z[i, j] * z[i, 0] * j
    for (i, j), v in np.ndenumerate(z):
        s += v * v * i + j
    for v in z.flat:
        s += v * z[0, 0]
    for row in z:
        for v in row:
            s += v * row[0]
    return s


@case(X)
def loops_with_else(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 100.0:
            break
        s += x[i] * x[i]
    else:
        s *= 2.0
    k = 0
    while k < 3:
        k += 1
        if k == 2:
            break
    else:
        s *= 5.0
    for i in range(2):
        s *= 1.0 + x[i]
    else:
        s += x[0]
    return s


@case(X)
def comprehensions(x):
    squares = np.array([v * v for v in x])
    return sum([x[i] * x[i] for i in range(4)]) * squares[2] + max(v * x[0] for v in x[1:3])


# numbers


@case(P, 3)
def whole_powers(p, n):
    s = p[0] ** n + p[1] ** (-n) + 2.0**n + p[2] * (-1) ** n + p[3] * 2**n
    for k in range(5):
        s += p[k] ** k * (-p[0]) ** (k + 1)
    return s


@case(X, 7, 3)
def integers(x, a, b):
    q, r = divmod(a, b)
    s = x[0] * q * r + x[1] * (a & b) + x[2] * (a | b) + x[3] * (a ^ b) + x[4] * (a << b)
    s += x[5] * (a >> 1) + x[0] * (~a) + x[1] * (-a // b) * (-a % b) + x[2] * math.gcd(12, a)
    return s * x[0] * math.factorial(b)


@case(X)
def truths(x):
    a, b = x[0] > 0, x[1] > 0
    c = (a and b) or not a
    chain = -9.0 < x[2] <= 9.0 != 1.0
    return x[2] * x[2] * (1 + c + (a & b) + (a | b) + (a ^ b) + chain)


@case(X)
def complex_numbers(x):
    z = complex(x[0], x[1])
    w = z * z + 1j * x[2]
    return abs(w) + w.real * w.imag + cmath.exp(w).real


# arrays


@case(X)
def slices(x):
    s = np.sum(x[::2]) * x[-1] + np.sum(x[::-1] * x) + np.sum(x[4:0:-1] * x[1:5])
    s += np.sum(x[-3:] ** 2) * np.sum(x[:-2]) + np.sum(x[-2:-5:-2] * x[:2]) + np.sum(x[9:2:-1])
    return s * x[0]


@case(Z)
def statements_of_rows(z):
    a = z.copy()
    for i in range(1, len(a)):
        a[i] -= a[i - 1] * 0.5
        a[i, :] *= 2.0
        a[:, 0] += a[i, 1] * a[0, 1]
    a[0], a[1, 2:] = a[1], 0.5
    return a.sum() * a[0, 0]


@case(X, Y)
def choices_of_arrays(x, y):
    a = np.where(x > 0.0, x * x, -x)
    b = np.where((x > y) & ~(x < 0.1) | (y > 0.3), x, 2.0 * y)
    return np.sum(a * b)


@case(X)
def masks(x):
    y = x * x
    y[x > 0.2] = 0.5
    y[x < 0.0] *= 3.0
    y[y > 0.6] = x[y > 0.6] * 2.0
    count = np.sum(x > 0.0) + (x < 0.3).sum() + np.count_nonzero(x > 0.1)
    s = np.sum(x[x > 0.2] ** 2) * np.sum(y * y) * count
    if np.any(x > 1.0) or not np.all(x < 9.0):
        s *= 2.0
    return s


@case(Z)
def masks_of_matrices(z):
    y = z.copy()
    y[z > 0.5] = 0.0
    return np.sum(y * y) + np.sum(z[z < -0.2] ** 2) + np.sum(z[z[:, 0] > 0.0] ** 2)


@case(X, Q, Z, np.array([0, -1, 2]))
def arrays_of_indices(x, q, z, k):
    y = x[q] * x[q]
    w = np.zeros(6)
    w[q] = x * y
    w[k] += 2.0 * x[k]
    rows = z[k]
    return np.sum(w * y) + np.sum(rows * rows) + np.sum(z[1, k] * z[:, k][0]) + np.sum(z[k, k] ** 2)


@case(Z, X[:5])
def broadcasting(z, x):
    a = x[:, None] * x[None, :]
    b = x[:, np.newaxis] - x
    return ((z - x) ** 2).sum() + np.sum(a * b * b) + np.sum(z * 2.0 + 1.0)


@case(Z, D)
def reductions(z, d):
    s = z.sum() + z.mean() * z.max() + z.min() * z[0].prod() + z.size * z[0, 0] + z.ndim
    s += np.sum(z, axis=0)[1] * z.sum(axis=1)[2] + np.max(z, axis=1)[0] * z.mean(axis=0)[1]
    s += d.sum() * d[0].T[1, 2] + d.max() * np.sum(d[1, :, 2] * d[0, :, 1])
    s += np.sum(np.sum(d, axis=1)[:, 2]) * d.mean(axis=-1)[0, 1] + z.std() * z.var()
    return s + np.ptp(z) * np.linalg.norm(z) + z.argmax() * z[0, 0] + np.argmin(z[1]) * z[1, 1]


@case(X, Y)
def vectors(x, y):
    a = np.outer(x, y)
    s = x @ y + np.dot(x, a @ y) + x.dot(x) * (a @ a)[0, 1] + np.trace(a) + np.diag(a)[2]
    s += np.cumsum(x)[3] * np.cumprod(y)[2] + np.diff(x)[1] * np.cross(x[:3], y[:3])[1]
    s += np.sum(np.tril(a) * np.triu(a, 1)) + np.sum(np.tril(a, -1)) + np.roll(x, 2)[0] * x[1]
    return s + np.searchsorted(TABLE, 1.7) * x[0] * x[1] + np.flip(x)[1] * np.repeat(y, 2)[3]


@case(X)
def makers(x):
    a, b, c = np.zeros_like(x), np.arange(6), np.linspace(0.0, 1.0, 6)
    d, e, f = np.ones((2, 3)), np.full((2,), x[0]), np.arange(1.0, 4.0, 0.5)
    g, h = np.eye(3), np.identity(2)
    for i in range(6):
        a[i] = b[i] * c[i] * x[i] + d[1, 2] + e[1] * f[i] * x[i]
    m = np.array([[x[0], 1.0], [2.0, x[1]]])
    joined = np.concatenate((x, 2.0 * x, m[0]))
    stacked, longer = np.vstack((x, a)), np.append(x, x[0] * x[1])
    b[1:4] = 7
    return a.sum() * g[1, 1] * h[0, 0] * m[1, 1] * joined[8] * stacked[1, 2] * longer[6] + b[2]


@case(X, Z)
def other_shapes(x, z):
    y = x.reshape(2, 3)
    w = (x * x).reshape(-1, 2)
    t = np.transpose(z.reshape(2, 2, 5), (1, 0, 2))
    f = z.flatten()
    f[0] = x[1]
    n, m = np.shape(z)
    s = y[1, 2] * w[2, 1] * t[0, 1, 3] * z.ravel()[7] * f[0] * np.reshape(z, (n * m,))[6]
    return s * z.T[2, 1] * z[1][2] * np.swapaxes(z, 0, 1)[1, 2] * len(z) * np.size(x)


@case(X)
def arrays_share_memory(x):
    y = x.copy()
    z = np.asarray(y)
    z[0] = 5.0 * x[1]
    y[1], y[2] = y[2], y[1]
    y.fill(y[0] * z[1])
    y[...] += 1.0
    return y.sum() * z[3]


@case(X, Z)
def arrays_made_anew_in_loops(x, z):
    place, speed = x, np.zeros(6)
    last = np.zeros(5)
    for i in range(3):
        place = place + 0.1 * speed
        force = -place * place + x[::-1]
        speed = speed + 0.1 * force
        if place[0] > 0.0:
            speed = speed * place
        last = z[i] * speed[i]
        last[1] *= 2.0
    return np.sum(place * speed) + last[1] * last[2]


@case(X)
def functions_of_arrays(x):
    y = np.exp(x) + np.sin(x) * np.clip(x, -0.5, 0.5) * np.maximum(x, 0.0)
    return (y * -x * +x * abs(x)).sum() * np.tanh(y[1:3] @ y[2:4])


@pytest.mark.parametrize("name", CASES)
def test_plain_runs(name):
    function, arguments = CASES[name]
    with plainly():
        check(function, *arguments)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", CASES)
def test_compiled(name):
    function, arguments = CASES[name]
    check(function, *arguments)


# functions of numbers, which hyper-dual numbers do not know all: against differences

U = 0.4 + 0.1 * P
NUMBERS = """
math.sin math.cos math.tan math.asin math.acos math.atan math.sinh math.cosh math.tanh math.asinh
math.atanh math.exp math.expm1 math.log math.log1p math.log2 math.log10 math.sqrt math.erf math.erfc
math.gamma math.lgamma math.fabs math.cbrt math.exp2 math.degrees math.radians math.floor math.ceil
math.trunc np.sin np.arcsin np.arccos np.arctan np.arcsinh np.arctanh np.exp np.exp2 np.expm1 np.log
np.log2 np.log10 np.log1p np.sqrt np.square np.cbrt np.abs np.absolute np.fabs np.sign np.negative
np.positive np.reciprocal np.deg2rad np.rad2deg np.radians np.degrees np.rint np.floor
np.ceil np.trunc np.round np.tanh np.sinh np.cosh np.float64 np.real np.conj
"""
PAIRS_OF_NUMBERS = """
math.pow math.hypot math.atan2 math.copysign math.fmod math.log np.hypot np.arctan2 np.power
np.maximum np.minimum np.fmax np.fmin np.mod np.remainder np.floor_divide np.add np.subtract
np.multiply np.divide np.true_divide np.logaddexp np.logaddexp2 np.copysign np.fmod np.heaviside
min max pow
"""


def _called(word):
    """A kernel that calls a function of one or two numbers."""
    two = word in PAIRS_OF_NUMBERS.split()
    text = f"def f(u):\n    return 1.5 * {word}({'u[0], u[1]' if two else 'u[0]'}) * u[2]\n"
    from tests.codegen.adjoint.programs import Program

    return Program(0, text.replace("def f", "def program"), ("u",), (), False).function()


@pytest.mark.parametrize("word", [*NUMBERS.split(), *PAIRS_OF_NUMBERS.split()])
def test_functions_of_numbers(word):
    function = _called(word)
    with plainly():
        kernel = ng.kernel(function)
        assert float(kernel(U)) == pytest.approx(float(function(U)), rel=1e-14)
        seen = ng.grad(kernel)(U)
    h = 1e-6 * np.eye(6)
    wanted = [(function(U + e) - function(U - e)) / 2e-6 for e in h]
    np.testing.assert_allclose(seen, wanted, rtol=1e-6, atol=1e-8)


# what is said at the call


def checked(x, y, k):
    assert len(x) == len(y), "lengths"
    if k < 0:
        raise IndexError("negative k")
    if x.ndim != 1:
        raise ValueError("a vector, please")
    return x[k] * y[k]


def test_assertions_and_errors_are_raised_at_the_call():
    kernel = ng.kernel(checked)
    assert float(kernel(X, Y, 1)) == X[1] * Y[1]
    with pytest.raises(ng.errors.NumgradAssertionError, match="lengths: len"):
        kernel(X, Y[1:], 1)
    with pytest.raises(IndexError, match="negative k"):
        kernel(X, Y, -1)
    with pytest.raises(IndexError, match="negative k"):
        ng.grad(kernel)(X, Y, -2)
    with pytest.raises(ValueError, match="a vector"):
        kernel(Z, Z, 1)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "ptp"])
def test_reductions_of_nothing(name):
    space: dict = {}
    exec(f"import numpy as np\ndef f(x):\n    return np.{name}(x) * x[0]", space)
    space["f"].__kernel_text__ = f"def f(x):\n    return np.{name}(x[1:])\n"
    with contextlib.ExitStack() as stack:
        stack.enter_context(plainly())
        kernel = ng.kernel(space["f"])
        kernel(X)
        with pytest.raises(ng.errors.NumgradValueError, match="without elements"):
            kernel(X[:1])


def test_names_that_no_path_assigns_are_nan():
    def f(x, n):
        for i in range(n):
            t = x[i]
        return t, i

    with plainly():
        number, place = ng.kernel(f)(X, 0)
    assert math.isnan(float(number))
    assert int(place) == 0


def test_a_kernel_in_a_kernel_is_a_function():
    @ng.kernel(writes="u")
    def scaled(u, a):
        for i in range(len(u)):
            u[i] *= a * u[i - 1]

    @ng.kernel(writes={"out": ng.like("x")})
    def squares(x, out):
        for i in range(len(x)):
            out[i] = x[i] * x[i]
        return x[0]

    def f(x, a):
        first, y = squares(x)
        z = scaled(y, a)
        return np.sum(z * y) * first

    def g(x, a):
        y = x * x
        z = y.copy()
        for i in range(len(z)):
            z[i] *= a * z[i - 1]
        return np.sum(z * y) * x[0]

    with plainly():
        check(g, X, 0.7, kernel=ng.kernel(f))


@pytest.mark.parametrize("compiled", [False, True])
def test_names_of_other_alphabets(compiled):
    def größe(α, β):
        γ = α[0] * α[1]
        δ = np.zeros(2)
        for ι in range(len(α)):
            γ += math.sin(β * α[ι])
            δ[ι % 2] += γ
        return γ, δ

    with contextlib.nullcontext() if compiled else plainly():
        check(größe, X, 0.7)


def test_keyword_only_parameters_have_defaults():
    @ng.kernel
    def scaled(x, n=3, *, factor=0.5):
        return x[0] * n * factor

    with plainly():
        assert [float(scaled(X)), float(scaled(X, 2, factor=3.0))] == [1.5 * X[0], 6.0 * X[0]]
        assert ng.grad(scaled)(X, factor=2.0)[0] == 6.0
        for call in (scaled, ng.grad(scaled), ng.jit(scaled)):
            with pytest.raises(TypeError, match=r"by position|positional"):
                call(X, 2, 3.0)
    with pytest.raises(ng.errors.NumgradKernelError, match="b has no default"):

        @ng.kernel
        def late(x, a=1.0, *, b):
            return x[0] * a * b


@pytest.mark.parametrize(("x", "y"), [(0.7, 0.4), (-0.7, 0.4), (5.3, -2.0), (5.0, 2.0)])
def test_remainder_of_math_is_to_the_nearest_multiple(x, y):
    def f(x, y):
        return math.remainder(x, y)

    with plainly():
        kernel = ng.kernel(f)
        assert float(kernel(x, y)) == math.remainder(x, y)
        assert float(ng.grad(kernel)(x, y)) == 1.0


@pytest.mark.parametrize("x", [0.0, 1e-3, 0.3, -1.7])
def test_sinc_and_its_derivatives(x):
    def f(x):
        return np.sinc(x)

    with plainly():
        kernel = ng.kernel(f)
        assert float(kernel(x)) == pytest.approx(np.sinc(x), rel=1e-15)
        h = 1e-4
        slope = (np.sinc(x + h) - np.sinc(x - h)) / (2 * h)
        curve = (np.sinc(x + h) - 2 * np.sinc(x) + np.sinc(x - h)) / h**2
        assert float(ng.grad(kernel)(x)) == pytest.approx(slope, abs=1e-7)
        assert float(ng.grad(ng.grad(kernel))(x)) == pytest.approx(curve, abs=1e-6)


def test_reductions_along_an_axis_are_computed_once():
    """Where they are broadcast; no loop runs in three others."""

    def centred(x):
        y = x - x.mean(axis=0)
        z = np.empty(x.shape)
        z[:] = np.sum(x, axis=0)
        return (y * z) / np.std(x, axis=0)

    def depth(block):
        loops = [s for s in block if isinstance(s, ast.For)]
        return max((1 + depth(loop.body) for loop in loops), default=0)

    kernel = ng.kernel(centred)
    with plainly():
        check(centred, Z, kernel=kernel)
        (function,) = ast.parse(kernel.source("forward")).body
    assert depth(function.body) == 2


TIES = np.array([3.0, 1.0, 3.0, 3.0])


@pytest.mark.parametrize(
    ("call", "shares"),
    [
        ("x.max()", [1 / 3, 0, 1 / 3, 1 / 3]),
        ("np.amin(-x)", [-1 / 3, 0, -1 / 3, -1 / 3]),
        ("np.ptp(x)", [1 / 3, -1, 1 / 3, 1 / 3]),
        ("np.max(0.5 * x * x)", [1, 0, 1, 1]),
        ("np.max(x.reshape((2, 2)), axis=1).sum()", [1, 0, 0.5, 0.5]),
        ("np.max(x * np.array([1.0, np.nan, 1.0, np.nan]))", [0, np.nan, 0, np.nan]),
    ],
)
def test_equal_extremes_share_the_derivative(call, shares):
    space = {"np": np}
    text = f"def extreme(x):\n    return {call}\n"
    exec(text, space)
    extreme: Any = space["extreme"]
    extreme.__kernel_text__ = text
    kernel = ng.kernel(extreme)
    with plainly(), np.errstate(all="ignore"):
        np.testing.assert_allclose(kernel(TIES), extreme(TIES))
        np.testing.assert_allclose(ng.grad(kernel)(TIES), np.array(shares), rtol=1e-14)
        if np.isfinite(shares).all():
            tangent = ng.jvp(kernel, (TIES,), (np.arange(4.0),))[1]
            assert tangent == pytest.approx(np.dot(shares, np.arange(4.0)))
            twice = ng.hessian(lambda x: kernel(x) ** 2)(TIES)
            own = 2 * np.outer(shares, shares)
            if "x * x" not in call:
                np.testing.assert_allclose(twice, own, atol=1e-14)
