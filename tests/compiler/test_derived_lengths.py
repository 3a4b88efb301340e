"""Compiled loops over arrays whose length is derived, with steps that are not one kernel.

Values are held to plain NumPy in loops of Python, derivatives to differences of these.
"""

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating

X = np.array([0.71, -0.42, 1.13, 0.27, -0.88, 0.55])
DIRECTION = np.cos(np.arange(6.0))
TIMES = np.array([0.3, -0.5, 0.8])
FACTORS = np.array([1.3, 0.5])
WEIGHTS = np.array([0.2, 0.5, 0.3])
GRID = np.linspace(-5.0, 5.0, 11)
SINES = np.sin(np.arange(11.0))

DERIVED = {
    "part": lambda x: x[1:],
    "inner part": lambda x: x[1:-1],
    "every second": lambda x: x[::2],
    "backwards": lambda x: x[-2::-1],
    "half": lambda x: x[: len(x) // 2],
    "flat": lambda x: np.ravel(x[:, None] * x[:3]),
    "reshaped": lambda x: np.reshape(x, (2, -1))[1],
    "joined": lambda x: np.concatenate([x, x[1:]]),
    "stacked": lambda x: np.hstack([x, 2 * x]),
    "padded": lambda x: np.pad(x, (1, 2)),
    "repeated": lambda x: np.repeat(x, 2),
    "tiled": lambda x: np.tile(x, 2),
    "outer": lambda x: np.outer(x, x[:2]).ravel(),
    "kron": lambda x: np.kron(x, FACTORS),
    "differences": lambda x: np.diff(x),
    "appended": lambda x: np.append(x, 0.25),
    "deleted": lambda x: np.delete(x, 1),
    "rolled part": lambda x: np.roll(x, 1)[2:],
    "filled": lambda x: np.full(len(x) - 1, 0.5) * x[0],
    "convolved": lambda x: np.convolve(x, WEIGHTS),
}


class Eager:
    """The functions of this package."""

    scan, fori_loop, while_loop, map = ng.scan, ng.fori_loop, ng.while_loop, ng.map
    cond, associative_scan = ng.cond, ng.associative_scan


class Plain:
    """The same as loops of Python."""

    @staticmethod
    def scan(step, carry, xs, reverse=False):
        rows = []
        for x in xs[::-1] if reverse else xs:
            carry, row = step(carry, x)
            rows.append(row)
        return carry, np.stack(rows[::-1] if reverse else rows)

    @staticmethod
    def fori_loop(lower, upper, body, init):
        for k in range(lower, upper):
            init = body(k, init)
        return init

    @staticmethod
    def while_loop(cond, body, init):
        while cond(init):
            init = body(init)
        return init

    @staticmethod
    def map(f, xs):
        return np.stack([f(x) for x in xs])

    @staticmethod
    def cond(flag, one, other, *operands):
        return one(*operands) if flag else other(*operands)

    @staticmethod
    def associative_scan(f, xs):
        rows = [xs[0]]
        for x in xs[1:]:
            rows.append(f(rows[-1], x))
        return np.stack(rows)


@ng.primitive()
def squares_backwards(x):
    """Squares, from the end."""
    return (x * x)[::-1].copy()


squares_backwards.vjp(x=lambda g, x: 2 * x * g[::-1])
squares_backwards.shape(lambda x: x)

STEPS = {
    "sort": lambda m, c: np.real(np.sort(c + 0j)) * 0.7,
    "fft": lambda m, c: np.real(np.fft.ifft(np.fft.fft(c) * 0.8)),
    "convolve": lambda m, c: np.convolve(c, WEIGHTS, "same"),
    "interp": lambda m, c: np.interp(c, GRID, SINES),
    "median": lambda m, c: c * 0.5 + np.median(c),
    "solve": lambda m, c: np.linalg.solve(np.eye(len(c)) + 0.1 * np.outer(c, c), c),
    "primitive": lambda m, c: 0.2 * (
        squares_backwards(c) if m is Eager else (c * c)[::-1]
    ),
    "loop": lambda m, c: m.scan(lambda a, t: (np.sin(a) * t, a[0]), c, TIMES)[0],
    "uncounted loop": lambda m, c: m.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, np.real(np.sort(s[1] + 0j)) * 0.9), (0, c)
    )[1],
    "branch": lambda m, c: m.cond(
        np.sum(c) > 0.3, lambda c: np.real(np.sort(c + 0j)) * 0.5, np.sin, c
    ),
    "loop of a branch": lambda m, c: m.fori_loop(
        0, 2, lambda k, a: m.cond(a[0] > 0.1, np.sin, lambda a: a * 0.5 + 0.01, a), c
    ),
}  # fmt: skip


def _scan(m, step, c):
    last, rows = m.scan(lambda c, t: (step(m, c) + t, np.cos(c)), c, TIMES)
    return last, rows


def _reversed(m, step, c):
    return m.scan(lambda c, t: (step(m, c) + t, step(m, c * t)), c, TIMES, reverse=True)


def _nested(m, step, c):
    def outer(c, t):
        inner, rows = m.scan(lambda a, s: (step(m, a) * s, a), c, FACTORS)
        return inner + t, rows

    return m.scan(outer, c, TIMES)


def _over_rows(m, step, c):
    table = np.stack([c, c * 0.5, np.cos(c)])
    return m.scan(lambda a, row: (step(m, a) + row, row * a), c * 0.3, table)


def _merged(m, step, c):
    """The largest of all so far, as many as a row has: associative."""

    def merge(a, b):
        return np.sort(np.concatenate([a, b], -1), -1)[..., -c.shape[0] :]

    return step(m, m.associative_scan(merge, np.sort(np.stack([c, c * 0.5, np.cos(c)]), -1))[1])


LOOPS = {
    "scan": _scan,
    "reverse": _reversed,
    "nested": _nested,
    "rows": _over_rows,
    "fori": lambda m, step, c: m.fori_loop(0, 3, lambda k, c: step(m, c) + 0.1 * k, c),
    "while": lambda m, step, c: m.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, step(m, s[1]) + 0.2), (0, c)
    )[1],
    "map": lambda m, step, c: m.map(lambda t: step(m, c * t), TIMES),
    "associative": _merged,
}
MODES = ["value", "gradient", "second", "vmap", "jvp"]


def function(m, loop, step, derive):
    """The loop as a function of one array to a number."""

    def total(x):
        found = LOOPS[loop](m, STEPS[step], DERIVED[derive](x))
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(np.sin(1.0 + part) * part) for part in parts)

    return total


def central(f, x, direction, step=1e-5):
    """The directional derivative by differences, of fourth order."""
    far, near = (f(x + k * step * direction) - f(x - k * step * direction) for k in (2, 1))
    return (8 * near - far) / (12 * step)


def check(mode, loop, step, derive):
    f, plain = function(Eager, loop, step, derive), function(Plain, loop, step, derive)
    more = np.concatenate([X, [0.33, -0.61]])  # derived lengths of another kind of even length
    if mode == "value":
        fast = ng.jit(f)
        for x in (X, more):
            np.testing.assert_allclose(fast(x), plain(x), rtol=1e-11)
        assert fast.statistics.traces <= 2
    elif mode == "gradient":
        fast = ng.jit(ng.grad(f))
        for x in (X, more):
            found = fast(x)
            expected = [central(plain, x, row) for row in np.eye(len(x))]
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    elif mode == "second":
        found = ng.jit(lambda x: ng.hvp(f)(x, DIRECTION))(X)
        slope = ng.grad(f)
        expected = central(slope, X, DIRECTION)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    elif mode == "vmap":
        xs = np.stack([X, X[::-1] * 1.1, np.cos(X)])
        expected = [plain(x) for x in xs]
        np.testing.assert_allclose(ng.jit(ng.vmap(f))(xs), expected, rtol=1e-11)
    else:
        value, tangent = ng.jit(lambda x: ng.jvp(f, (x,), (DIRECTION,)))(X)
        np.testing.assert_allclose(value, plain(X), rtol=1e-11)
        np.testing.assert_allclose(tangent, central(plain, X, DIRECTION), rtol=1e-7, atol=1e-8)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("derive", DERIVED)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("mode", MODES)
def test_derived_lengths(mode, step, loop, derive):
    with emulating():
        check(mode, loop, step, derive)


@pytest.mark.parametrize("number", range(len(DERIVED)))
def test_each_once(number):
    """Every loop, step, length and mode once at least."""
    lists = [list(found) for found in (MODES, LOOPS, STEPS, DERIVED)]
    with emulating():
        check(*(found[number % len(found)] for found in lists))


def test_in_machine_code():
    check("gradient", "scan", "sort", "part")


def test_adaptive_steps():
    """A linear equation whose solution is known in Fourier space."""
    rates = np.array([-0.3, -0.6, -0.7, -0.7, -0.6])
    times = np.array([0.0, 0.4, 1.0])

    def last(x):
        def slope(c, t):
            return np.real(np.fft.ifft(np.fft.fft(c) * rates))

        found = ng.odeint(slope, x[1:], times, rtol=1e-10, atol=1e-12)
        return np.sum(np.sin(found[-1]))

    def closed(x):
        whole = np.fft.fft(x[1:]) * np.exp(rates)
        return np.sum(np.sin(np.real(np.fft.ifft(whole))))

    value, gradient = ng.jit(ng.value_and_grad(last))(X)
    np.testing.assert_allclose(value, closed(X), rtol=1e-8)
    expected = [central(closed, X, row) for row in np.eye(6)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)
