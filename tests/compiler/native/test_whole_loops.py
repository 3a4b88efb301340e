"""Loops whose steps call functions of ``ng.kernel``: in machine code, with the bits of Python."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.loops import loop_program
from numgrad.compiler.native.whole_loops import LoopEntry
from numgrad.errors import InterpretedLoopWarning
from tests.compiler.native import kernels_of_loops as own


@pytest.fixture(params=["machine code", "Python"])
def way(request, monkeypatch):
    """How steps are made: by calls of machine code, or without one."""
    calls, call = [], LoopEntry.call

    def counted(self, *args):
        calls.append(len(args))
        call(self, *args)

    monkeypatch.setattr(LoopEntry, "call", counted)
    with warnings.catch_warnings():
        if request.param == "Python":
            monkeypatch.setattr(loop_program, "SHORT", 0.0)
            monkeypatch.setattr(loop_program, "SHORT_AROUND", 0.0)
            warnings.simplefilter("ignore", InterpretedLoopWarning)
        yield request.param
    assert bool(calls) == (request.param == "machine code")


def leapfrog(m, steps):
    """Places of three bodies, at all times."""

    def step(state, _):
        q, v, a = state
        v = v + 0.005 * a
        q = q + 0.01 * v
        a = own.pulls(q, m)
        return (q, v + 0.005 * a, a), q

    start = own.PLACES, own.SPEEDS, own.pulls(own.PLACES, m)
    return ng.scan(step, start, length=steps)[1]


def by_numpy(m, steps):
    q, v, a, places = own.PLACES, own.SPEEDS, own.plain(own.PLACES, m), []
    for _ in range(steps):
        v = v + 0.005 * a
        q = q + 0.01 * v
        a = own.plain(q, m)
        v = v + 0.005 * a
        places.append(q)
    return np.array(places)


@pytest.mark.slow(cases=1)
def test_a_scan_and_its_gradient(way):
    m = np.array([0.9, 0.5, 0.4])
    fast = ng.jit(ng.value_and_grad(lambda m: np.sum(leapfrog(m, 150) ** 2)))
    first, again = fast(m), fast(m)
    np.testing.assert_array_equal(first[1], again[1])  # the first call changes ways in between
    np.testing.assert_allclose(first[0], np.sum(by_numpy(m, 150) ** 2), rtol=1e-12)
    push = 1e-5 * np.array([1.0, -2.0, 0.5])
    total = [np.sum(by_numpy(m + s * push, 150) ** 2) for s in (1, -1)]
    np.testing.assert_allclose(first[1] @ push, (total[0] - total[1]) / 2, rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_in_either_direction_and_lengths_that_change(way, reverse):
    @ng.jit
    def sums(x, start):
        return ng.scan(
            lambda c, row: (own.mixed(c, row), own.mixed(row, c)), start, x, reverse=reverse
        )

    for rows, width in ((100, 3), (100, 5), (7, 3), (130, 3)):
        draw = np.random.default_rng(rows + width)
        x, carry = draw.random((rows, width)), draw.random(width)
        last, made = sums(x, carry)
        wanted = []
        for row in x[::-1] if reverse else x:
            carry, out = own.plain_mixed(carry, row), own.plain_mixed(row, carry)
            wanted.append(out)
        np.testing.assert_allclose(last, carry, rtol=1e-13)
        np.testing.assert_allclose(made, wanted[::-1] if reverse else wanted, rtol=1e-13)


def test_loops_that_end_by_themselves(way):
    @ng.jit
    def halved(x):
        return ng.while_loop(lambda s: s[0] > 1e-3, lambda s: (own.shrunk(s[0]), s[1] + 1), (x, 0))

    for start in (5.0, 5.0, 800.0, 1e-4):
        x, count = start, 0
        while x > 1e-3:
            x, count = x - 0.1 * x, count + 1
        value, steps = halved(np.float64(start))
        np.testing.assert_allclose(value, x, rtol=1e-12)
        assert steps == count


@pytest.mark.slow(cases=1)
def test_a_differential_equation(way):
    times = np.linspace(0.0, 4.0, 9)

    @ng.jit
    def last(rate):
        return ng.odeint(lambda y, t, rate: own.decay(y, rate), np.array([1.0, 2.0]), times, rate)

    for _ in range(3):
        np.testing.assert_allclose(last(0.3)[-1], np.exp(-1.2) * np.array([1.0, 2.0]), rtol=1e-6)
    slope = ng.jit(ng.grad(lambda rate: np.sum(last(rate)[-1])))
    for _ in range(3):
        np.testing.assert_allclose(slope(0.3), -4 * 3 * np.exp(-1.2), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::numgrad.errors.InterpretedLoopWarning")
def test_a_step_that_fails_says_why():
    @ng.jit
    def walk(x):
        return ng.scan(lambda k, _: (own.following(x, k), None), 0, length=200)[0]

    assert walk(np.ones(50)) == walk(np.ones(90)) == 200
    with pytest.raises(ng.NumgradValueError, match="lengths"):
        walk(np.ones(300))


def test_arrays_that_a_kernel_captured(way):
    @ng.jit
    def scaled(x):
        return ng.scan(lambda c, _: (own.by_captured(c), None), x, length=100)[0]

    for _ in range(2):
        np.testing.assert_allclose(scaled(np.float64(3.0)), 3 * 0.99**100, rtol=1e-13)


def test_what_stays_in_python_says_so():
    @ng.jit
    def called(x):
        def step(c, _):
            return own.shrunk(c) + 0 * ng.special.pbdv(0.5, c)[0], None

        return ng.scan(step, x, length=100)[0]

    with pytest.warns(InterpretedLoopWarning, match="pbdv"):
        called(np.float64(1.0))


def test_a_loop_of_unknown_length_in_a_branch_of_another(way, monkeypatch):
    """The outer loop has no kernel of its own; busy machines do not decide what is short."""
    monkeypatch.setattr(loop_program, "SHORT_AROUND", 10.0 * (way == "machine code"))

    def root(a):  # Newton's method until it stands
        moved = lambda s: np.abs(s[0] - s[1]) > 1e-14  # noqa: E731
        return ng.while_loop(moved, lambda s: ((s[0] + a / s[0]) / 2, s[0]), (a, 0 * a))[0]

    def total(a):
        def step(k, s):
            return s + ng.cond(k % 2 == 0, lambda: root(a + k), lambda: -0.5 * (a + k) ** 0.5)

        return ng.fori_loop(0, 150, step, 0.0 * a)

    compiled, slope = ng.jit(total), ng.jit(ng.jacfwd(total))
    found = [(compiled(a), slope(a)) for a in (2.0, 3.5)]
    k = np.arange(150)
    for a, (value, derivative) in zip((2.0, 3.5), found, strict=True):
        weights = np.where(k % 2 == 0, 1.0, -0.5)
        np.testing.assert_allclose(value, np.sum(weights * np.sqrt(a + k)), rtol=1e-13)
        want = np.sum(weights / 2 / np.sqrt(a + k))
        np.testing.assert_allclose(derivative, want, rtol=1e-12)
