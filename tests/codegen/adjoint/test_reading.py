"""What names stand for after loops, branches and helpers, against exact derivatives."""

import math
import pickle

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint.test_traps import RNG, X, Y, Z, check

TABLE = np.arange(20.0)[::3]


def test_a_loop_variable_after_its_loop():
    def f(x, n):
        i = 0
        v = 0.5
        s = 0.0
        for i in range(n):
            s += x[i] * x[i]
        for v in x[:n]:
            s *= v
        return s * x[i] * v

    for n in (0, 1, 4):
        check(f, X, n)


def test_loops_over_items_that_are_left():
    def f(x, y):
        j = 0
        v = 0.0
        s = 0.0
        for j, v in enumerate(x):
            if v > 0.3:
                break
            s += v * y[j]
        for a, b in zip(x, y):  # noqa: B905
            if a < b:
                continue
            s += a * b
        for k, i in enumerate(range(1, len(x))):
            if x[i] > 1.2:
                return s * x[k]
            s += x[i] * x[k]
        return s * v * x[j]

    check(f, X, Y)
    check(f, -np.abs(X), Y)


def test_an_array_is_returned_early():
    def f(x):
        w = np.zeros(len(x))
        for i in range(len(x)):
            w[i] = x[i] * x[i - 1]
            if w[i] < -0.5:
                return w, x[i]
        return w, x[0]

    check(f, X)
    check(f, np.abs(X))


def test_arrays_made_in_a_loop_take_turns():
    def f(x, z):
        total = 0.0
        for i in range(z.shape[0]):
            old = np.zeros(z.shape[1])
            new = np.zeros(z.shape[1])
            for k in range(3):
                for j in range(1, z.shape[1]):
                    new[j] = math.sin(old[j - 1] + z[i, j] * x[k])
                old, new = new, old
            total += old[2] * new[3]
        return total

    check(f, X, Z)


def exchanged(x, steps):
    old = x.copy()
    new = np.zeros_like(x)
    for _ in range(steps):
        for i in range(1, len(x)):
            new[i] = old[i - 1] * x[i]
        old, new = new, old
    return old[2]


def test_arrays_of_helpers_take_turns():
    def f(x, y):
        return exchanged(x, 2) * exchanged(y, 3)

    check(f, X, Y)


def test_arrays_change_places_in_a_branch():
    def f(x, a):
        u = x.copy()
        v = 2.0 * x
        if a > 0.0:
            u, v = v, u
        u[0] = v[1] * u[2]
        return u[0] * v[2] * a

    check(f, X, 0.5)
    check(f, X, -0.5)


def test_an_array_is_another_in_each_iteration():
    def f(x, z):
        w = np.zeros(5)
        s = w[0]
        for i in range(z.shape[0]):
            w = z[i] * x[i]
            w[1] *= w[0]
            s += w[1] * w[2]
        return s

    check(f, X, Z)

    def stale(x, z):
        row = z[0]
        for row in z:
            x[0] += row[1]
        return row[0]

    with pytest.raises(ng.errors.NumgradKernelError, match="row"):
        ng.kernel(stale, writes="x")(X, Z)


def test_a_value_with_two_names():
    def f(x):
        t = u = x[0] * x[1]
        pair = (x[1] * x[2], x[3])
        v = pair[0]
        return t * u + v * pair[0]

    check(f, X)


def test_an_array_is_made_in_a_branch():
    def f(x, z):
        s = 0.0
        for i in range(z.shape[0]):
            if x[i] > -0.4:
                w = np.zeros(5)
                for j in range(1, 5):
                    w[j] = w[j - 1] * 0.5 + z[i, j] * z[i, j]
                s += w[4] * w[2]
        if x[0] < 10.0:
            u = x * x
            u[0] *= u[1]
            s *= u[0]
        return s

    check(f, X, Z)


def test_captured_arrays_of_any_layout():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * x[i] * TABLE[i]
        return s

    check(f, X)


def test_names_like_those_of_generated_texts():
    def f(x, k0_, n0_, tape_s, x__b):
        s__b = n0_
        tape = tape_s * 0.5
        for np_ in range(len(x)):
            s__b = s__b * x[np_] + k0_ * tape
            tape = math.sin(s__b) * x__b
        return s__b * tape

    check(f, X, 0.3, 0.7, 0.9, 1.1)


def test_reductions_along_an_axis_and_outer_products():
    def f(x, z):
        means = np.mean(z, axis=0)
        z -= means
        z[:, 1] += np.sum(z * z, axis=1) + z.max(axis=-1)
        w = np.outer(x, means[:3]) * 2.0
        return np.sum(w, axis=0)[1] * w[2, 0]

    check(f, X, Z, writes=("z",))


def test_numbers_of_all_dtypes():
    def f(x, z, a, k):
        s = z * a
        for i in range(len(x)):
            s = s * x[i] + k
        return s

    z, a = np.complex64(1 + 2j), np.float32(0.5)
    out = ng.kernel(f)(X, z, a, np.int32(3))
    np.testing.assert_allclose(complex(out), f(X, z, a, 3), rtol=1e-12)


def test_all_gradients_by_one_sweep():
    """Also where a backward is recorded."""

    def f(x, y, a):
        s = 0.0
        for i in range(len(x)):
            s += a * x[i] * y[i]
        return s

    k = ng.kernel(f)
    given = [ng.tensor(v, requires_grad=True) for v in (X, Y, 0.5)]
    gx, gy, ga = ng.autograd.grad(k(*given), given, create_graph=True)
    assert gx.grad_fn is gy.grad_fn is ga.grad_fn


def squares(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * x[i]
    return s


KERNEL = ng.kernel(squares)


def test_kernels_are_pickled_by_name():
    again = pickle.loads(pickle.dumps(KERNEL))
    assert float(again(X)) == float(KERNEL(X))


def test_two_kernels_of_one_name():
    """A compiled function does not mistake one for the other."""

    def make(c):
        def f(x):
            s = 0.0
            for i in range(len(x)):
                s += c * x[i] * x[i]
            return s

        return ng.kernel(f)

    one, other = make(1.0), make(2.0)
    np.testing.assert_allclose(ng.jit(ng.grad(one))(X), 2 * X)
    np.testing.assert_allclose(ng.jit(ng.grad(other))(X), 4 * X)


def test_reports_and_texts():
    def f(x):
        s = 1.0
        for i in range(len(x)):
            s = math.sin(s * x[i])
        return s

    k = ng.kernel(f)
    with pytest.raises(ng.errors.NumgradValueError, match="arguments"):
        k.report()
    report = k.report(X)
    assert [v.dtype.name for v in report.kept] == ["float64"]
    assert str(report.kept[0].line) in str(report)
    with pytest.raises(ng.errors.NumgradValueError, match="sideways"):
        k.source("sideways", X)
    assert RNG is not None
