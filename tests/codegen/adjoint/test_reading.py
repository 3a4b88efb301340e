"""What names stand for after loops, branches and helpers, against exact derivatives."""

import math
import pickle

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradKernelError, NumgradValueError
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

    def last_row(x, z):
        row = z[0]
        for row in z:
            x[0] += row[1] * x[0]
        return row[0] * row[1]

    check(last_row, X, Z, writes=["x"])


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


def test_and_and_or_give_one_of_their_operands():
    def first_or_three(x):
        return x or 3.0

    def number_and_element(s, x):
        return s and x[0]

    def downwards(n, a):
        total = 0.0
        while n and a[n] > 0:
            total += a[n] ** 2
            n -= 1
        return total

    f, g = ng.kernel(first_or_three), ng.kernel(number_and_element)
    assert float(f(2.0)) == 2.0
    assert float(f(0.0)) == 3.0
    assert ng.grad(f)(2.0) == 1.0
    assert ng.grad(f)(0.0) == 0.0
    value, (by_s, by_x) = ng.value_and_grad(g, (0, 1))(2.0, np.array([5.0]))
    assert (value, by_s, list(by_x)) == (5.0, 0.0, [1.0])
    assert float(g(0.0, np.array([5.0]))) == 0.0
    slope = ng.grad(ng.kernel(downwards), 1)(3, np.array([1.0, -1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(slope, [0.0, 0.0, 4.0, 6.0])


def test_captured_arrays_are_those_of_the_first_call():
    weights = np.array([1.0, 2.0])

    @ng.kernel
    def weighted(x):
        return x**2 * weights[1]

    x = ng.tensor(1.0, requires_grad=True)
    y = weighted(x)
    weights[1] = 7.0
    y.backward()
    assert x.grad == 4.0
    assert float(weighted(1.0)) == 2.0


def test_captured_tensors_are_refused():
    weight = ng.tensor([1.0, 2.0], requires_grad=True)

    @ng.kernel
    def weighted(x):
        return x * weight[1]

    with pytest.raises(NumgradKernelError, match=r"weight is a captured Tensor.*as argument"):
        weighted(2.0)


def test_arrays_of_different_lengths_are_refused():
    @ng.kernel(writes="u")
    def assign(u, v):
        u[1:4] = v[:5]

    @ng.kernel
    def product(u, v):
        return np.sum(u * v)

    @ng.kernel
    def either(u, v):
        if len(u) == len(v):
            return np.sum(u * v)
        return 0.0

    with pytest.raises(NumgradValueError, match=r"different lengths, 3 and 5"):
        assign(np.zeros(6), np.arange(6.0))
    with pytest.raises(NumgradValueError, match=r"different lengths, 6 and 4"):
        ng.grad(product)(np.zeros(6), np.arange(4.0))
    assert float(either(np.ones(3), np.ones(2))) == 0.0
    assert float(either(np.ones(3), np.ones(3))) == 3.0


def test_names_of_results_are_free_for_users():
    @ng.kernel
    def power_series(result0, x):
        s = 1.5
        for q in range(len(x)):
            s = s * x[q] + result0[q] * s
        return s

    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.6, 0.7])
    value, (by_a, by_b) = ng.value_and_grad(power_series, (0, 1))(a, b)
    np.testing.assert_allclose(value, 1.5 * np.prod(a + b), rtol=1e-14)
    np.testing.assert_allclose(by_a, 1.5 * np.prod(a + b) / (a + b), rtol=1e-14)
    np.testing.assert_array_equal(by_a, by_b)


def test_names_are_looked_up_when_a_kernel_is_called():
    @ng.kernel
    def squared_late(x):
        return late(x) * x

    def late(x):
        return x * x

    assert ng.grad(squared_late)(2.0) == 12.0


def test_len_of_a_number_is_refused():
    @ng.kernel
    def total(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s

    with pytest.raises(NumgradKernelError, match=r"len\(x\) of a number"):
        total(3.0)


def test_a_kernel_of_a_kernel_is_that_kernel():
    @ng.kernel
    def square(x):
        return x * x

    assert ng.kernel(square) is square


def test_second_derivatives_with_a_captured_transpose():
    weights = np.arange(6.0).reshape(2, 3).T

    @ng.kernel
    def series(x):
        s = 0.0
        for i in range(3):
            for j in range(2):
                s += weights[i, j] * x**i
        return s

    assert ng.grad(ng.grad(series))(1.5) == 2 * weights[2].sum()


def test_integers_divided_by_zero_give_zero():
    @ng.kernel
    def divided(x, n, k):
        return x * (n // k) + n % k

    assert float(divided(2.0, 3, 0)) == 0.0


@pytest.mark.parametrize("captured", [False, True])
def test_unsigned_integers_of_64_bits_are_refused(captured):
    counts = np.array([2**63 + 5], dtype=np.uint64)

    @ng.kernel
    def scaled(x, n):
        return x * (counts[0] if captured else n[0])

    with pytest.raises(NumgradKernelError, match=r"uint64.*astype"):
        scaled(2.0, np.array([1]) if captured else counts)
