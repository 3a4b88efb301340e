"""Loops whose derivatives are easily wrong, against exact derivatives of the plain function."""

import math
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import judge
from tests.codegen.adjoint.modes import every_mode
from tests.codegen.adjoint.plain import plainly

RNG = np.random.default_rng(5)
X, Y, Z = RNG.normal(size=6), RNG.normal(size=6), RNG.normal(size=(4, 5))
P = RNG.uniform(0.5, 1.5, 6)
Q = np.array([3, 0, 3, 1, 5, 0])


def check(function, *arguments, writes=(), tolerance=1e-9, kernel=None, second=True):
    """All modes of a function against exact derivatives of its plain form."""
    names = function.__code__.co_varnames
    rng = np.random.default_rng(3)

    def like(value):
        out = rng.normal(size=np.shape(value))
        return out + 1j * rng.normal(size=np.shape(value)) if np.iscomplexobj(value) else out

    directions = [like(a) if hyperdual.differentiable(a) else None for a in arguments]
    written = [names.index(name) for name in writes]
    truth = hyperdual.run(function, arguments, written, like, directions)
    kernel = ng.kernel(function, writes=writes) if kernel is None else kernel
    judge(kernel, truth, directions, arguments, tolerance=tolerance, second=second)
    return truth


# arrays that iterations make


def steps_of(made, branch):
    """Steps in time, each with an array of its own that a branch reads."""
    text = f"""
def steps(u, dt, c):
    for _ in range(2):
        {made}
        for i in range(len(u)):
            {branch}
            u[i] += dt * f
"""
    space: dict[str, Any] = {"np": np}
    exec(text, space)
    space["steps"].__kernel_text__ = text.strip()
    return space["steps"]


@pytest.mark.parametrize(
    ("made", "branch"),
    [
        ("o = u * 1.0", "f = o[i] if i > 1 else 0.0"),
        ("o = u.copy(); o = o * 2.0", "f = o[i] * (o[i] - o[i - 1]) if c[i] > 0 else o[i]"),
        (
            "o = np.zeros(len(u)); o[:] = u * 1.0",
            "f = c[i] * (o[i] - o[i - 1]) if c[i] > 0 else c[i] * (o[(i + 1) % len(u)] - o[i])",
        ),
    ],
)
def test_branches_read_an_array_that_each_step_makes(made, branch):
    """The backward sweep makes it again before it computes what the branch gave."""
    function = steps_of(made, branch)
    arguments = X, 0.3, Y
    with plainly():
        truth = check(function, *arguments, writes=("u",))
        every_mode(function, ("u",), truth, arguments, (Y, 0.2, X))


# what is carried


def test_a_carried_variable_is_overwritten_by_an_inactive_value():
    def f(x, a):
        s = a
        total = 0.0
        for i in range(len(x)):
            s = s * x[i]
            total += s * s
            if i % 2 == 1:
                s = 0.5
        return total + s

    check(f, X, 0.7)


def test_a_carried_variable_is_inactive_only_in_the_last_iteration():
    def f(x, a):
        s = a
        for i in range(len(x)):
            s = math.sin(s) + x[i]
            if i == 5:
                s = 2.0
        return s * x[0]

    check(f, X, 0.7)


def test_a_variable_passes_through_a_loop_of_no_iterations():
    def f(x, n, a):
        s = a * a
        for i in range(n):
            s = s * x[i]
        k = 0
        while k < n:
            s += x[k]
            k += 1
        return s * a

    for n in (0, 1, 4):
        check(f, X, n, 0.7)


def test_a_variable_is_carried_across_a_loop_of_dynamic_length():
    def f(x, y):
        s = 0.3
        total = 0.0
        for i in range(len(x)):
            t = s
            count = 1 + int(3.0 * abs(x[i])) % 4
            for k in range(count):
                t = t * 0.5 + math.sin(t * y[k])
            while t > 0.2:
                t *= 0.6 * abs(y[i]) / (1.0 + abs(y[i]))
            s = s * t + x[i]
            total += s * s
        return total

    check(f, X, Y)


def test_variables_exchange_their_roles():
    def f(x, a):
        s, t, u = a, 0.5, 0.1
        for i in range(len(x)):
            s, t, u = t, u + s * x[i], s
        return s * t + u

    check(f, X, 0.7)


def test_continue_before_an_update():
    def f(x, y):
        s = 1.0
        k = 0
        for i in range(len(x)):
            if x[i] < 0.0:
                continue
            s = s * (1.0 + 0.1 * y[k])
            k += 1
            y[i] = s
        return s * y[k]

    check(f, X, Y, writes=("y",))


def test_break_and_return_within_loops_within_loops():
    def f(x, z):
        s = 0.0
        for i in range(z.shape[0]):
            for j in range(z.shape[1]):
                if z[i, j] > 1.4:
                    return s * z[i, j] + x[0]
                if z[i, j] < -0.8:
                    break
                s += z[i, j] * x[i]
            s *= 1.1
        return s

    check(f, X, Z)
    check(f, X, Z.T.copy() * 0.9)
    big = np.where(np.arange(20).reshape(4, 5) == 7, 1.5, 0.1 * Z)
    check(f, X, big)


def test_a_name_changes_from_int_to_float():
    def f(x):
        s = 0
        best = 1
        for i in range(len(x)):
            s = s + x[i] * best
            best = max(best, x[i] * 1.5)
        return s

    check(f, X)


# arrays


def test_arrays_swapped_an_odd_or_even_number_of_times():
    def f(u, v, steps):
        for _ in range(steps):
            for i in range(1, len(u) - 1):
                v[i] = u[i] + 0.3 * (u[i - 1] - 2.0 * u[i] * u[i] + u[i + 1])
            u, v = v, u
        return u[2] * v[3] + u[0]

    kernel = ng.kernel(f, writes=("u", "v"))
    for steps in range(4):
        check(f, X, Y, steps, writes=("u", "v"), kernel=kernel)


def test_arrays_swapped_in_a_branch():
    def f(u, v, x):
        for t in range(len(x)):
            if x[t] > 0.0:
                u, v = v, u
            u[t] = v[t] * x[t] + u[0]
        return u[1] * v[2]

    check(f, X, Y, RNG.normal(size=5), writes=("u", "v"))


def test_local_arrays_of_inner_loops():
    def f(x, z):
        total = 0.0
        for i in range(z.shape[0]):
            w = np.zeros(z.shape[1])
            for j in range(z.shape[1]):
                w[j] = z[i, j] * x[i]
            for j in range(1, z.shape[1]):
                w[j] = w[j] * w[j - 1]
                v = np.empty(3)
                for k in range(3):
                    v[k] = w[j] + x[k]
                for k in range(2):
                    v[k + 1] *= v[k]
                total += v[2]
            total *= 0.9
        return total

    check(f, X, Z)


def test_elements_are_overwritten_again_and_again():
    def f(x, q):
        for _ in range(3):
            for i in range(len(x)):
                x[q[i]] = x[i] * x[q[i]] + 0.1
                x[i] *= x[(i + 1) % len(x)]
        return x[0] + x[3]

    check(f, P, Q, writes=("x",))


def test_an_element_is_divided_in_place():
    def f(x, y):
        for i in range(1, len(x)):
            x[i] /= x[i - 1]
            x[i] *= y[i]
            x[i] -= x[i - 1] * x[i]
            x[0] /= y[i]

    check(f, P, Y + 3.0, writes=("x",))


def test_an_element_is_read_overwritten_and_read_again():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            before = x[2]
            x[2] = before * a + x[i]
            s += before * x[2]
        x[2] = 1.0
        return s

    check(f, X, 0.6, writes=("x",))


def test_the_seed_of_what_is_returned_meets_other_uses():
    """The returned array is read after it was made, and its seed must not be assigned over."""

    def f(x):
        w = np.empty(len(x))
        s = 0.0
        for i in range(len(x)):
            w[i] = x[i] * x[i]
            s += w[i] * x[0]
        t = s * s
        return s, w, t, s

    check(f, X)


def test_an_argument_is_returned():
    def f(x, d):
        for i in range(1, len(x)):
            d[i] = x[i] * x[i - 1] + d[i] * d[i]
        return d

    check(f, X, Y, writes=("d",))


def test_a_number_is_returned_as_it_came():
    def f(a, b):
        return a, a * b, b

    check(f, 0.3, 0.8)


def test_active_arrays_nobody_asked_for():
    """Only one argument is differentiated; another one that is written stays right."""

    def f(x, y):
        for i in range(1, len(x)):
            y[i] = x[i] * y[i - 1]
            x[i] = y[i] * x[i - 1]
        return x[5] * y[5]

    k = ng.kernel(f, writes=("x", "y"))
    y = ng.tensor(Y, requires_grad=True)
    out = k(X, y)
    out[0].backward()
    truth = hyperdual.run(f, [X, Y], [0, 1], [1.0, 0 * X, 0 * Y])
    np.testing.assert_allclose(np.asarray(y.grad), truth.gradients[1], rtol=1e-12)
    np.testing.assert_array_equal(Y, RNG_Y)


RNG_Y = Y.copy()


def test_an_output_that_is_not_used_has_no_gradient_of_its_own():
    def f(x):
        w = np.zeros(len(x))
        for i in range(len(x)):
            w[i] = x[i] ** 3
        return w[0] * w[1], w

    x = ng.tensor(X, requires_grad=True)
    _, w = ng.kernel(f)(x)
    w.sum().backward()
    np.testing.assert_allclose(np.asarray(x.grad), 3 * X**2, rtol=1e-12)


def test_views_of_arguments_and_locals():
    def f(z, x):
        row = z[1]
        column = z[:, 2]
        part = row[1:4]
        turned = z.T
        back = x[::-1]
        for i in range(3):
            part[i] *= back[i]
            column[i] += part[i] * part[0]
            turned[0, i] = row[i] * column[i]
        w = np.zeros((2, 6))
        one = w[0]
        one[:] = x * 2.0
        w[1, 1:] = one[:-1] * back[1:]
        s = 0.0
        for i in range(6):
            s += w[1, i] * w[0, i]
        return s

    check(f, Z, X, writes=("z",))


def test_slices_that_overlap_are_read_before_they_are_written():
    def f(x, z):
        x[1:] = 0.5 * x[:-1] + x[1:] * x[1:]
        x[:-1] += x[1:] * 0.3
        x[::2] *= x[1::2]
        z[1:, :] = z[:-1, :] * 0.7
        z[0, :] -= z[2, :] * z[0, 1]

    check(f, X, Z, writes=("x", "z"))


# control flow that depends on values


def test_a_test_never_reads_out_of_range():
    def f(a):
        s = 0.0
        k = 0
        while k < len(a) and a[k] > 0.0:
            s += a[k] * a[k]
            k += 1
        while k > 0 and (a[k - 1] < 1.0 or a[k - 1] > 1.3):
            s *= a[k - 1]
            k -= 1
        if k < len(a) and a[k] > 0.1:
            s += a[k]
        t = a[k] if k < len(a) else 1.0
        return s * t

    check(f, P)
    check(f, np.array([1.1]))
    check(f, X)
    check(f, np.abs(X))


def test_integers_come_from_floats():
    def f(x, table):
        s = 0.0
        for i in range(len(x)):
            u = 2.0 * abs(x[i])
            k = int(u)
            w = u - k
            j = int(math.floor(x[i] * 1.7)) % len(table)  # noqa: RUF046
            s += (1.0 - w) * table[k % 6] + w * table[(k + 1) % 6] + table[j] * x[i]
        return s

    check(f, X, Y)


def test_integers_that_were_computed_are_carried():
    def f(x, q):
        k = 0
        j = 1
        s = 1.0
        for _ in range(len(x)):
            k = k + 2
            j = q[(j + k) % len(q)]
            s = s * x[j] + x[k % len(x)]
            if s > 1.0:
                k += 1
        return s

    check(f, X, Q)


def test_what_flags_say_is_remembered():
    def f(x, a):
        up = a > 0.0
        s = 0.0
        for i in range(len(x)):
            if up and x[i] > 0.3:
                s += x[i] * a
                up = False
            elif not up:
                s *= x[i] + 1.5
                up = x[i] < 0.0
        return s

    check(f, X, 0.4)
    check(f, X, -0.4)


def test_branches_within_loops_keep_values_of_either_side():
    def f(x, z):
        s = 0.2
        for i in range(z.shape[0]):
            for j in range(z.shape[1]):
                if z[i, j] > 0.0:
                    t = math.exp(s * 0.1) * z[i, j]
                    u = t * t
                elif z[i, j] < -1.0:
                    t = s
                    u = math.sin(t)
                else:
                    t = 1.0
                    u = x[i]
                s = 0.9 * s + 0.1 * u * t
        return s

    check(f, X, Z)


# arithmetic


def test_one_over_a_sum_in_a_loop():
    def f(z):
        for i in range(z.shape[0]):
            total = 0.0
            for j in range(z.shape[1]):
                total += math.exp(z[i, j])
            for j in range(z.shape[1]):
                z[i, j] = math.exp(z[i, j]) / total
        s = 0.0
        for i in range(1, z.shape[0]):
            s += z[i, 0] * z[i - 1, 1]
        return s

    check(f, Z, writes=("z",))


def test_the_sign_of_zero_is_kept():
    def f(x, a):
        s = -0.0
        t = 0.0 * a
        u = -t
        w = 0.0
        w = -w
        k = -0.0 * 1.0
        return (
            math.atan2(s, -1.0 - x[0] ** 2),
            math.atan2(u, -1.0 - x[0] ** 2),
            math.atan2(w, -2.0),
            math.atan2(k, -2.0),
            math.copysign(1.0, s + u),
        )

    k = ng.kernel(f)
    got = [float(v) for v in k(X, 0.7)]
    assert got == [float(v) for v in f(X, 0.7)] == [-math.pi] * 4 + [-1.0]
    assert [float(v) for v in k(X, -0.7)] == [float(v) for v in f(X, -0.7)]


def test_a_gradient_of_minus_zero_adds_nothing():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += -x[i] * 0.0 + x[i] * x[i]
        return s

    check(f, np.array([-0.0, 0.0, 1.0]))


def test_powers_at_zero():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] ** 2 + x[i] ** 3 + 2.0 * x[i] ** 1 + x[i] ** 0
        return s

    x = ng.tensor([0.0, -1.5, 2.0], requires_grad=True)
    ng.kernel(f)(x).backward()
    np.testing.assert_allclose(np.asarray(x.grad), [2.0, 5.75, 18.0], rtol=1e-12)


def test_ties_are_those_of_operations():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            s += np.maximum(x[i], y[i]) + 2.0 * np.minimum(x[i], y[i]) + abs(x[i])
        return s

    x, y = np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, -1.0])
    wanted = []
    for function in (f, lambda x, y: (np.maximum(x, y) + 2 * np.minimum(x, y) + abs(x)).sum()):
        a, b = ng.tensor(x, requires_grad=True), ng.tensor(y, requires_grad=True)
        (ng.kernel(f) if function is f else function)(a, b).backward()
        wanted.append((np.asarray(a.grad), np.asarray(b.grad)))
    np.testing.assert_array_equal(wanted[0], wanted[1])


def test_single_precision_stays_single():
    def f(x, a):
        s = np.float32(0.0)
        for i in range(len(x)):
            x[i] = x[i] * a + x[i - 1]
            s += x[i]
        return s

    x = ng.tensor(X.astype(np.float32), requires_grad=True)
    k = ng.kernel(f, writes=("x",))
    s, new = k(x, 0.5)
    assert new.dtype == np.float32
    (s + new.sum()).backward()
    assert x.grad.dtype == np.float32
    truth = hyperdual.run(f, [X.astype(np.float32), 0.5], [0], [1.0, np.ones(6)])
    np.testing.assert_allclose(np.asarray(x.grad), truth.gradients[0], rtol=2e-6)


def test_complex_numbers():
    def f(z, w, a):
        s = 0.0 + 0.0j
        total = 0.0
        for i in range(len(z)):
            s = s * z[i] + np.conj(w[i]) * a
            z[i] = np.exp(0.1j * s) + z[i - 1].real
            total += abs(z[i] + 2.0) + s.imag * z[i].real + (s * s.conjugate()).real
        return total, s

    check(f, X + 1j * Y, Y - 0.5j * X, 0.7, writes=("z",))


# the call


def test_the_state_changes_between_forward_and_backward():
    """What a backward needs is saved with its version, or copied: never what stands there now."""

    def f(x, w):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * x[i] * w[i]
        return s

    k = ng.kernel(f)
    x = ng.tensor(X, requires_grad=True)
    w = ng.tensor(Y)
    out = k(x, w)
    w *= 2.0
    with pytest.raises(ng.errors.NumgradError, match=r"modified|changed|in place|version"):
        out.backward()


def test_written_arguments_stay_as_they_are():
    def f(x, y):
        for i in range(len(x)):
            x[i] *= 2.0
            y[i] += x[i]

    k = ng.kernel(f, writes=("x", "y"))
    x, y = X.copy(), ng.tensor(Y)
    new_x, new_y = k(x, y)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(np.asarray(y), Y)
    np.testing.assert_array_equal(np.asarray(new_x), 2 * X)
    np.testing.assert_array_equal(np.asarray(new_y), 2 * X + Y)


def test_names_of_written_arguments_as_one_word_or_several():
    def f(x):
        x[0] = 2.0 * x[1]

    for kernel in (ng.kernel(f, writes="x"), ng.kernel(writes="x")(f), ng.kernel(writes=["x"])(f)):
        np.testing.assert_array_equal(np.asarray(kernel(X))[0], 2 * X[1])


def down(z, w):
    for i in range(1, z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = z[i - 1, j] * w[i, j] + math.sin(z[i, j])
    return z[2, 1] * w[1, 1]


DOWN = ng.kernel(down, writes=("z",))


@pytest.mark.parametrize("layout", ["fortran", "strided", "reversed", "transposed", "readonly"])
def test_layouts_in_memory(layout):
    def laid_out(a):
        if layout == "fortran":
            return np.asfortranarray(a)
        if layout == "strided":
            memory = np.zeros((8, 15))
            memory[::2, ::3] = a
            return memory[::2, ::3]
        if layout == "reversed":
            return a[::-1, ::-1].copy()[::-1, ::-1]
        if layout == "transposed":
            return a.T.copy().T
        out = a.copy()
        out.flags.writeable = False
        return out

    check(down, laid_out(Z), laid_out(Z + 0.3), writes=("z",), kernel=DOWN)


def test_empty_arrays():
    def f(x, z):
        s = 1.0
        for i in range(len(x)):
            s *= x[i]
        for i in range(z.shape[0]):
            for j in range(z.shape[1]):
                z[i, j] *= s
        return s

    check(f, np.zeros(0), np.zeros((0, 3)), writes=("z",))
    check(f, np.zeros(0), Z, writes=("z",))


def test_the_same_array_given_twice():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * y[i] * y[0]
        return s

    x = ng.tensor(X, requires_grad=True)
    ng.kernel(f)(x, x).backward()
    truth = hyperdual.run(f, [X, X], (), [1.0])
    np.testing.assert_allclose(
        np.asarray(x.grad), truth.gradients[0] + truth.gradients[1], rtol=1e-12
    )


def test_integers_and_bools_have_no_gradient():
    def f(x, q, b, k):
        s = 0.0
        for i in range(len(x)):
            if b[i]:
                s += x[q[i]] * x[(i + k) % len(x)]
        return s, q[k], b[k], k + 1

    outputs = ng.kernel(f)(ng.tensor(X, requires_grad=True), Q, X > 0, 2)
    assert outputs[0].requires_grad
    assert [int(np.asarray(v)) for v in outputs[1:]] == [Q[2], int(X[2] > 0), 3]
    check(f, X, Q, X > 0, 2)


def test_functions_compiled_by_numba_are_read():
    numba = pytest.importorskip("numba")

    @numba.njit
    def half(u):
        if u < 0.0:
            return 0.1 * u
        return 0.5 * u * u

    @numba.njit(fastmath=True)
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += half(x[i])
        return s

    check(f.py_func, X, kernel=ng.kernel(f))


def test_closures_and_globals_are_constants():
    scale = 1.7
    table = np.array([0.5, 2.0, -1.0])

    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += scale * x[i] * table[i % 3] * FACTOR
        return s

    check(f, X)


FACTOR = 0.3
