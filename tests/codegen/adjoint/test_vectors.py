"""Vector form of innermost loops: which loops have it, and that they compute the same."""

from functools import cache

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint.judge import exact, judge
from tests.codegen.adjoint.plain import plainly
from tests.crossed import each_first

LONG = 41
"""Iterations: enough for whole vectors and some left over."""


def draw(*shape):
    return np.random.default_rng(7).uniform(-1.0, 1.0, shape)


kernel_of = cache(ng.kernel)
"""One kernel for a function that several cases call."""


def right(function, *arguments, writes=(), save="all", second=False):
    """The kernel of a function, whose derivatives were compared with exact ones."""
    kernel = kernel_of(function, writes=writes, save=save)
    names = function.__code__.co_varnames
    truth = exact(function, arguments, [names.index(name) for name in writes], 3)
    assert truth is not None
    judge(kernel, *truth, arguments, second=second)
    return kernel


def obstacles(kernel, sweep):
    return [loop.obstacle for loop in kernel.report().scalar if loop.sweep == sweep]


def steps_of_two(u, steps):
    a, b = u.copy(), u.copy()
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            b[i] = 0.5 * a[i] + 0.2 * a[i - 1] * a[i + 1]
        a, b = b, a
    return a.copy()


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize(("steps", "save"), each_first([0, 1, 2, 5], ["all", "less"]))
def test_two_arrays_exchanged_an_odd_or_even_number_of_times(steps, save):
    kernel = right(steps_of_two, draw(LONG), steps, save=save, second=steps > 1)
    assert not obstacles(kernel, "function")
    assert not obstacles(kernel, "gradient")


def test_exchanged_arrays_keep_no_selectors():
    kernel = right(steps_of_two, draw(LONG), 3)
    assert all(value.dtype == np.float64 for value in kernel.report().kept)


def nonlinear(u, k, steps):
    v = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                lap = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                v[i, j] = u[i, j] + 0.1 * k[i, j] * (1.0 + 0.1 * u[i, j] ** 2) * lap
        u, v = v, u
    return u.copy()


@pytest.mark.parametrize("steps", [0, 1, 3, 4])
def test_an_array_is_kept_whole_where_several_values_of_it_would_be(steps):
    kernel = right(nonlinear, draw(5, LONG), draw(5, LONG), steps, second=steps == 3)
    report = kernel.report(draw(50, LONG), draw(50, LONG), 10)
    assert not report.kept
    assert [array.dtype for array in report.arrays] == [np.float64]
    assert report.bytes < 13 * 50 * LONG * 8


def test_an_array_that_a_step_goes_through_in_part_is_not_kept_whole():
    def some(u, places, steps):
        v = u.copy()
        for _ in range(steps):
            for p in range(len(places)):
                i = places[p]
                v[i] = v[i] * v[i - 1] * v[i + 1]
        return v

    kernel = right(some, draw(LONG), np.array([3, 9, 20]), 4)
    assert not kernel.report().arrays


def test_reads_after_stores_of_a_step_are_not_of_its_start():
    def twice(u, steps):
        a, b = u.copy(), u.copy()
        for _ in range(steps):
            for i in range(1, len(u) - 1):
                b[i] = a[i] * a[i - 1] + 0.3 * a[i + 1] * a[i]
            for i in range(1, len(u) - 1):
                a[i] += b[i] * b[i - 1] * a[i]
            a, b = b, a
        return a.copy()

    right(twice, draw(LONG), 3)


def steps_of_three(u, steps):
    a, b, c = u.copy(), u.copy(), np.zeros_like(u)
    for _ in range(steps):
        for i in range(1, len(u) - 1):
            c[i] = 1.5 * b[i] - 0.6 * a[i] + 0.1 * b[i - 1] * b[i + 1]
        a, b, c = b, c, a
    return b.copy()


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize(("steps", "save"), each_first([1, 2, 3], ["all", "less"]))
def test_three_arrays_in_rotation(steps, save):
    kernel = right(steps_of_three, draw(LONG), steps, save=save, second=steps > 1)
    assert not obstacles(kernel, "gradient")


def test_exchange_in_some_steps_only():
    def sometimes(u, steps):
        a, b = u.copy(), u * 0.5
        for t in range(steps):
            for i in range(1, len(u) - 1):
                b[i] += 0.3 * a[i] * a[i - 1] + 0.1 * a[i + 1]
            if t % 3 != 1:
                a, b = b, a
        return a.copy()

    kernel = right(sometimes, draw(LONG), 5)
    assert not obstacles(kernel, "gradient")


@pytest.mark.parametrize("length", [3, 15, 40, 256, 257, 300, 530])
def test_contributions_in_strips(length):
    def blur(x):
        y = np.zeros_like(x)
        for i in range(2, len(x) - 2):
            y[i] = math_of(x[i - 2], x[i - 1]) + x[i] * x[i + 2] - x[i + 1]
        return y

    def math_of(a, b):
        return a * b + 0.5 * a * a

    kernel = ng.kernel(blur)
    x, g = draw(length), draw(length + 1)[1:]
    _, pullback = ng.vjp(kernel, x)
    seen = np.asarray(pullback(g))
    wanted = np.zeros(length)
    for i in range(2, length - 2):
        wanted[i - 2] += g[i] * (x[i - 1] + x[i - 2])
        wanted[i - 1] += g[i] * x[i - 2]
        wanted[i] += g[i] * x[i + 2]
        wanted[i + 2] += g[i] * x[i]
        wanted[i + 1] -= g[i]
    np.testing.assert_allclose(seen, wanted, rtol=1e-13, atol=1e-13)
    assert not obstacles(kernel, "gradient")


def test_sweeps_in_place_stay_as_they_are():
    """Gauss and Seidel's iteration reads what it has just written."""

    def gauss_seidel(u, f):
        for _ in range(3):
            for i in range(1, len(u) - 1):
                u[i] = 0.5 * (u[i - 1] + u[i + 1] * f[i])

    kernel = right(gauss_seidel, draw(LONG), draw(LONG), writes=("u",), second=True)
    assert "u[i" in obstacles(kernel, "function")[0]
    assert "u__b[i" in obstacles(kernel, "gradient")[0]


def test_rows_that_may_be_near_each_other():
    """Rows of five elements are less than a vector apart."""

    def columns(u):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = v[i - 1, j] * u[i, j] + u[i + 1, j - 1] * u[i, j + 1]
        return v

    for shape in ((6, 5), (4, 9), (4, 60)):
        right(columns, draw(*shape))


def test_one_row_by_its_number_is_not_taken_for_another():
    """Rows ``p`` and ``q`` may be the same."""

    def mixed(u, p, q):
        for _ in range(2):
            for j in range(1, u.shape[1] - 1):
                u[p, j] = 0.5 * u[q, j + 1] + u[q, j - 1] * u[p, j]

    for p, q in ((0, 1), (1, 1), (2, 0)):
        kernel = right(mixed, draw(3, LONG), p, q, writes=("u",))
        assert obstacles(kernel, "gradient")


def test_sums_into_one_element_and_into_a_number():
    def moments(x, w, c):
        out = np.zeros(w.shape[0])
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                out[i] += c * w[i, j] * x[i] * x[i]
        return out

    right(moments, draw(4), draw(4, LONG), 0.7, second=True)


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
def test_other_dtypes(dtype):
    def step(u, k):
        v = u.copy()
        for i in range(1, len(u) - 1):
            v[i] = k * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        return v

    u = (draw(300) + (1j * draw(301)[1:] if dtype[0] == "c" else 0)).astype(dtype)
    g = draw(302)[2:].astype(dtype)
    _, pullback = ng.vjp(lambda u: ng.kernel(step)(u, 0.5), u)
    seen = np.asarray(pullback(g))
    u, g = u.astype(complex), g.astype(complex)
    wanted = g.copy()
    wanted[1:-1] = 0
    lap = u[:-2] - 2 * u[1:-1] + u[2:]
    inner = 0.5 * g[1:-1]
    wanted[1:-1] += inner * np.conj(lap - 2 * u[1:-1])
    wanted[:-2] += inner * np.conj(u[1:-1])
    wanted[2:] += inner * np.conj(u[1:-1])
    assert seen.dtype == dtype
    tolerance = 1e-5 if dtype in ("f4", "c8") else 1e-13
    np.testing.assert_allclose(
        seen,
        wanted.astype(dtype) if dtype[0] == "c" else wanted.real,
        rtol=tolerance,
        atol=tolerance,
    )


def test_staggered_grids():
    """The electric and the magnetic field of a wave, one between the other."""

    def fdtd(e, h, c, steps):
        for _ in range(steps):
            for i in range(len(h) - 1):
                h[i] += c[i] * (e[i + 1] - e[i]) * h[i]
            for i in range(1, len(e)):
                e[i] += 0.5 * (h[i] - h[i - 1])

    kernel = right(fdtd, draw(LONG), draw(LONG), draw(LONG), 4, writes=("e", "h"))
    assert not obstacles(kernel, "gradient")
    right(fdtd, draw(LONG), draw(LONG), draw(LONG), 4, writes=("e", "h"), save="less", second=True)


def test_names_like_those_of_vector_form():
    def plain(row1_, terms2_, sum3_, q4_):
        s5_ = row1_.copy()
        for m6_ in range(1, len(row1_) - 1):
            s5_[m6_] = terms2_[m6_ - 1] * row1_[m6_ + 1] * sum3_ + q4_[m6_] * row1_[m6_]
        return s5_

    right(plain, draw(LONG), draw(LONG), 0.7, draw(LONG))


# ------------------------------------------------------------------------------------- checkpoints


def test_checkpoints_keep_the_square_root_of_the_steps():
    def bytes_of(save, steps):
        kernel = ng.kernel(steps_of_two, save=save)
        return kernel.report(draw(1000), steps).bytes

    for steps in (100, 400):
        assert bytes_of("all", steps) > steps * 998 * 8
        assert bytes_of("less", steps) < 5 * np.sqrt(steps) * 1000 * 8


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("span", [(2, 9, 2), (10, 1, -3), (3, 3, 1), (0, 7, 1), (9, 1, -1)])
def test_checkpoints_of_ranges(span):
    low, high, step = span

    def walk(x, low, high):
        y = x.copy()
        s = 1.0
        for t in range(low, high, step):
            s = s * 0.9 + 0.01 * t
            for i in range(1, len(y)):
                y[i] = 0.4 * y[i - 1] * np.sin(y[i]) + 0.2 * s * x[i]
        return y, s

    right(walk, draw(9), low, high, save="less")


def test_checkpoints_and_what_changes_after_the_loop():
    def later(x, c, steps):
        k = c.copy()
        y = x.copy()
        for t in range(steps):
            for i in range(len(y)):
                y[i] = k[i] * y[i] * y[i - 1] + 0.1 * t
        for i in range(len(k)):
            k[i] = k[i] * y[i]
        return k

    right(later, draw(9), draw(9), 5, save="less", second=True)


def test_checkpoints_of_a_loop_that_has_no_range():
    def until(x):
        y = x.copy()
        k = 0
        while k < 5:
            for i in range(len(y)):
                y[i] = y[i] * y[i - 1]
            k += 1
        return y

    kernel = ng.kernel(until, save="less")
    with pytest.raises(ng.errors.NumgradKernelError, match=r'line \d+ of .*; use save="all"'):
        kernel(draw(9))


def test_checkpoints_of_a_loop_whose_step_is_an_argument():
    def stepped(x, low, high, step):
        s = 0.5
        for k in range(low, high, step):
            for i in range(len(x)):
                s = np.sin(s * x[i]) + 0.1 * k * s
        return s

    with plainly():
        for low, high, step in ((0, 20, 3), (20, 1, -4), (3, 3, 2), (0, 7, -1)):
            right(stepped, draw(3), low, high, step, save="less")


def test_save_is_one_of_two_words():
    with pytest.raises(ValueError, match="'all', 'less', not 'some'"):
        ng.kernel(steps_of_two, save="some")  # pyright: ignore[reportArgumentType]


def periodic(u, c, steps):
    n, m = u.shape
    v = np.zeros_like(u)
    for _ in range(steps):
        for i in range(n):
            for j in range(m):
                around = u[i, (j - 1) % m] + u[(i + 1) % n, (j + 2) % m]
                v[i, j] = u[i, j] + c[i, j] * u[i, j] * (around - 2.0 * u[(i - 1) % n, j])
        u, v = v, u
    return u.copy()


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("columns", [LONG, 3, 1, 2, 4, 0])
def test_moduli_of_the_length_are_taken_at_the_ends_only(columns):
    kernel = right(periodic, draw(3, columns), draw(3, columns), 2, second=True)
    assert not obstacles(kernel, "function")
    assert not obstacles(kernel, "gradient")


def inner_places(u, c):
    m = len(u)
    v = u.copy()
    for j in range(2, m - 1):
        v[j] += c[(j + 3) % m] * u[(j - 4) % m] + c[(j * 2) % m] * (u[j] % 0.7)
    return v


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("length", [LONG, 4, 5, 8, 3, 2, 1])
def test_other_ranges_and_other_moduli(length):
    kernel = right(inner_places, draw(length), draw(length))
    assert "m1_ = n" in kernel.source("forward")


def test_moduli_in_a_sweep_that_reads_what_it_wrote():
    def relaxed(u, c):
        m = len(u)
        for j in range(m):
            u[j] = 0.5 * u[(j - 1) % m] + c[j] * u[(j + 1) % m]
        return u.copy()

    kernel = right(relaxed, draw(LONG), draw(LONG), writes=("u",))
    assert "%" in kernel.source("forward")
    assert "m1_" not in kernel.source("forward")


def test_a_loop_downwards_whose_last_iteration_is_read_after_it():
    def last(x, z):
        s = 1.0
        for i in range(len(x) - 1, -1, -1):
            s = 0.7 * x[i] * z[i]
        return s

    right(last, draw(LONG), draw(LONG) + 2.0, second=True)
