"""Common subexpressions and loop-invariant code motion: what moves, what must not, same bits."""

import math

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.science import CASES

X = np.random.default_rng(3).uniform(0.2, 1.2, 6)


def gradients(function, *arguments):
    return hyperdual.run(function, list(arguments), (), [1.0]).gradients


def body_of(source):
    """The lines in loops."""
    return [line for line in source.splitlines() if line.startswith("        ")]


def test_what_is_the_same_in_each_iteration_is_computed_before_the_loop():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            s += math.sqrt(a) * x[i] + math.sqrt(a)
        return s

    kernel = ng.kernel(f)
    inner = "\n".join(kernel.source("forward", X, 0.5).split("for k0_")[1:])
    assert "sqrt" not in inner
    assert kernel.source("forward", X, 0.5).count("sqrt_f64") == 1
    assert not kernel.report(X, 0.5).kept
    g = ng.grad(f := kernel, argnums=(0, 1))(X, 0.5)
    exact = gradients(f.function, X, 0.5)
    np.testing.assert_allclose(np.asarray(g[0]), exact[0], rtol=1e-13)
    np.testing.assert_allclose(float(g[1]), exact[1], rtol=1e-13)


def test_an_infinite_slope_of_what_never_ran_is_no_part_of_a_gradient():
    """A loop of no iteration, and a branch that is not taken."""

    def f(x, a):
        s = a
        for i in range(len(x)):
            s += math.sqrt(a) * x[i]
        return s

    kernel = ng.kernel(f)
    assert float(ng.grad(kernel, argnums=1)(np.empty(0), 0.0)) == 1.0

    def g(x, a):
        s = a
        for i in range(len(x)):
            if x[i] > 5.0:
                s += math.sqrt(a) * x[i]
        return s

    assert float(ng.grad(ng.kernel(g), argnums=1)(X, 0.0)) == 1.0


def test_elements_are_read_only_if_an_iteration_reads_them():
    """An empty array, whose first element an inner loop would read; bounds are checked in tests."""

    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            for k in range(len(y)):
                s += x[i] * y[0] * y[k]
        return s

    kernel = ng.kernel(f)
    source = kernel.source("forward", X, X)
    assert source.index("y[0]") < source.index("for k1_")
    assert source.index("if (0 < y.shape[0])") < source.index("y[0]")
    assert float(kernel(X, np.empty(0))) == 0.0
    np.testing.assert_allclose(np.asarray(ng.grad(kernel)(X, X)), gradients(f, X, X)[0], rtol=1e-13)


def test_elements_that_the_loop_writes_stay():
    def f(x, y):
        s = 0.0
        for i in range(1, len(x)):
            y[0] += x[i] * y[i - 1]
            s += y[0] * y[0]
            y[i] = y[0]
            s += y[0] * x[i]
        return s

    kernel = ng.kernel(f, writes="y")
    seen = kernel(X, X + 1.0)
    y = X + 1.0
    assert float(seen[0]) == f(X, y)
    np.testing.assert_array_equal(np.asarray(seen[1]), y)
    exact = hyperdual.run(f, [X, X + 1.0], (1,), [1.0, np.zeros(6)]).gradients
    for k in (0, 1):
        g = ng.grad(lambda *a: kernel(*a)[0], argnums=k)(X, X + 1.0)
        np.testing.assert_allclose(np.asarray(g), exact[k], rtol=1e-12)


def test_an_element_that_was_just_set_is_what_it_was_set_to():
    def f(x, a):
        w = np.empty(len(x))
        s = 0.0
        for i in range(len(x)):
            w[i] = math.exp(a * x[i])
            s += w[i] * w[i]
            w[0] = s
            s += w[i] * w[0]
        return s * s

    kernel = ng.kernel(f)
    source = kernel.source("forward", X, 0.5)
    assert source.count("= w[") == 1  # w[i] once more, as w[0] may be it
    for k in (0, 1):
        seen = np.asarray(ng.grad(kernel, argnums=k)(X, 0.5))
        np.testing.assert_allclose(seen, gradients(f, X, 0.5)[k], rtol=1e-12)


def test_zeros_of_both_signs_are_different_values():
    def f(x):
        a = math.atan2(0.0, x)
        b = math.atan2(-0.0, x)
        return a - b

    assert float(ng.kernel(f)(-1.0)) == 2 * math.pi


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_values_of_all_dtypes_leave_loops(dtype):
    def f(x, a):
        s = x[0]
        for i in range(1, len(x)):
            for k in range(i - 1):
                s += a * a * x[i] * x[k]
        return s * s

    x = X.astype(dtype)
    a = np.asarray(0.5, dtype)
    kernel = ng.kernel(f)
    wanted = f(x.astype(complex), complex(a))
    np.testing.assert_allclose(complex(np.asarray(kernel(x, a))), wanted, rtol=1e-5)
    h = 1e-6
    ends = [f(x.astype(complex), complex(a) + s * h) for s in (1, -1)]
    g = ng.grad(lambda a: np.real(kernel(x, a)))(a)
    np.testing.assert_allclose(
        complex(np.asarray(g)).real, (ends[0] - ends[1]).real / (2 * h), rtol=1e-4
    )


@pytest.mark.slow(cases=len(CASES) // 2)
@pytest.mark.parametrize("name", [name for k in range(2) for name in [*CASES][k::2]])
def test_values_are_those_of_the_plain_function(name):
    """The texts that run are simplified; Python runs the function as it is written."""
    case = CASES[name]
    arguments = case.draw(case.size)
    seen = ng.kernel(case.function, writes=case.writes)(*arguments)
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    out = case.function(*given)
    out = () if out is None else out if isinstance(out, tuple) else (out,)
    wanted = [*out, *(given[k] for k in case.written)]
    seen = seen if isinstance(seen, tuple) else (seen,)
    for a, b in zip(seen, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12, atol=1e-13)
