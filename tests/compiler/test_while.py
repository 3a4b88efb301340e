"""``ng.while_loop`` under ``ng.jit``: a native loop, against the same loop run eagerly."""

import _thread
import inspect
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler import passes
from numgrad.errors import InterpretedLoopWarning, NumgradIndexError

RNG = np.random.default_rng(0)
P = np.array([0.7, 1.3, 4.0])
MATRIX = ng.asarray(RNG.normal(size=(3, 3)) / 3)


def newton(a):
    """A square root, which takes as many steps as it takes."""
    return ng.while_loop(lambda x: abs(x * x - a) > 1e-12 * a, lambda x: 0.5 * (x + a / x), a)


def number(p):
    return newton(p[0]) + newton(p[2]) * p[1]


def vectors(p):
    """A carry in parts, one an integer, and arrays that all steps read."""

    def goes_on(c):
        return np.logical_and(np.sum(c["h"] ** 2) < 3.0, c["k"] < 20)

    def body(c):
        h = np.tanh(MATRIX @ c["h"] + np.sin(p))
        return {"k": c["k"] + 1, "h": h, "s": c["s"] + np.sum(h) * p[0]}

    last = ng.while_loop(goes_on, body, {"k": 0, "h": p * 0.1, "s": 0.0})
    return np.sum(last["h"] ** 2) * last["k"] + last["s"]


def nested(p):
    """A loop within a loop, of which each step makes another number of steps."""

    def body(c):
        k, x = c
        return k + 1, newton(x + p[1]) + ng.scan(lambda a, b: (a * b, None), x, p)[0] / 9

    return ng.while_loop(lambda c: c[0] < 3, body, (0, p[0]))[1]


def in_steps(p):
    """A loop in the steps of another one."""

    def step(c, x):
        return c / 2 + newton(x * p[1]), c

    last, rows = ng.scan(step, p[2], p)
    return last + np.sum(rows**2)


PROGRAMS = [number, vectors, nested, in_steps]
DERIVATIVES = {
    "gradient": ng.value_and_grad,
    "hessian": ng.hessian,
    "forward": ng.jacfwd,
    "forward over reverse": lambda f: ng.jacfwd(ng.grad(f)),
    "batch": lambda f: lambda p: ng.vmap(ng.grad(f))(np.stack([p, p * 1.1, p * 9])),
    "batch forward": lambda f: lambda p: ng.vmap(ng.jacfwd(f))(np.stack([p, p * 7])),
}


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives(f, name):
    found = DERIVATIVES[name](f)
    for a, b in zip(ng.jit(found)(P), found(P), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_transforms_of_a_compiled_loop():
    """The compiled function is differentiated, and runs for a batch."""
    compiled = ng.jit(vectors)
    np.testing.assert_allclose(ng.hessian(compiled)(P), ng.hessian(vectors)(P), rtol=1e-10)
    p = ng.tensor(P, requires_grad=True)
    compiled(p).backward()
    np.testing.assert_allclose(p.grad.numpy(), ng.grad(vectors)(P), rtol=1e-11)
    points = np.stack([P, P * 3])
    np.testing.assert_allclose(
        ng.vmap(ng.grad(compiled))(points), [ng.grad(vectors)(p) for p in points], rtol=1e-10
    )


def test_lengths_are_those_of_the_call():
    def f(a):
        body = lambda c: (c[0] + 1, np.sin(c[1] * a) + np.sum(a[1:] * a[:-1]) * a.shape[0])  # noqa: E731
        return np.sum(ng.while_loop(lambda c: c[0] < 4, body, (0, a))[1])

    compiled = ng.jit(f)
    derived = ng.jit(ng.grad(f))
    for n in (3, 5, 2, 1, 0):
        a = np.linspace(0.1, 1.0, n)
        np.testing.assert_allclose(compiled(a), f(a), rtol=1e-12)
        np.testing.assert_allclose(derived(a), ng.grad(f)(a), rtol=1e-11)
    np.testing.assert_allclose(ng.hessian(compiled)(a), ng.hessian(f)(a), rtol=1e-10)


def test_no_step_one_step_and_not_a_number():
    f = lambda x: ng.while_loop(lambda x: x > 1, lambda x: np.log(x) * 2, x)  # noqa: E731
    both = ng.jit(ng.value_and_grad(f))
    assert both(0.5) == (0.5, 1.0)
    np.testing.assert_allclose(both(1.5), (2 * np.log(1.5), 2 / 1.5))
    assert np.isnan(both(np.nan)[0])
    assert both(np.nan)[1] == 1.0
    nan = ng.jit(lambda x: ng.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (0, x))[1])
    assert np.isnan(nan(np.nan))
    points = np.array([0.5, 1.2, 4.0])  # the logarithm of those that are done is none
    roots = lambda x: ng.while_loop(  # noqa: E731
        lambda c: c[0] > 1, lambda c: (np.log(c[0]), c[1] + np.sqrt(c[0] - 1)), (x, 0.0)
    )[1]
    slopes = ng.jit(ng.vmap(ng.grad(roots)))(points)
    np.testing.assert_allclose(slopes, [ng.grad(roots)(x) for x in points], rtol=1e-12)
    assert ng.jit(ng.vmap(ng.grad(roots)))(points[:0]).shape == (0,)


def test_dtypes():
    halves = ng.jit(lambda x: ng.while_loop(lambda c: abs(c) > 1, lambda c: c / 2, x))
    for x, dtype in ((9, np.float64), (np.float32(9), np.float32), (9j, np.complex128)):
        assert (halves(x), halves(x).dtype) == (x / 16, dtype)

    def narrow(x):
        return ng.while_loop(lambda c: c < 9, lambda c: (c * 2).astype(np.float32), x)

    for call in (narrow, ng.jit(narrow)):  # a number has the dtype that a step gives it
        assert (call(1.1), call(1.1).dtype) == (2**4 * np.float32(1.1), np.float32)
        wide = call(np.float64(1.1))
        assert (wide, wide.dtype) == (2.0**4 * np.float64(np.float32(1.1)), np.float64)


def test_an_index_out_of_range_is_the_error_of_the_step():
    table = ng.arange(5.0)
    f = ng.jit(
        lambda k: ng.while_loop(lambda c: c[0] != 3, lambda c: (c[0] + 1, table[c[0]]), k)[1]
    )
    assert f((0, 0.0)) == 2.0
    with pytest.raises(NumgradIndexError, match="out of range"):
        f((4, 0.0))


def test_a_step_that_needs_other_code_runs_between():
    def f(x):
        body = lambda c: (c[0] + 1, np.linalg.eigvalsh(c[1] + c[1].T)[:, None] * x)  # noqa: E731
        return np.sum(ng.while_loop(lambda c: c[0] < 2, body, (0, x))[1])

    x = RNG.normal(size=(3, 3))
    np.testing.assert_allclose(ng.jit(f)(x), f(x), rtol=1e-12)
    np.testing.assert_allclose(ng.jit(ng.grad(f))(x), ng.grad(f)(x), rtol=1e-8)


def test_bounds_that_are_found_while_running():
    def f(low, high, x):
        return ng.fori_loop(low, high, lambda i, c: np.sin(c) * x + i, x * 2)

    both = ng.jit(ng.value_and_grad(f, 2))
    for low, high in ((0, 3), (2, 7), (1, 1), (4, 0)):
        expected = ng.value_and_grad(lambda x: f(low, high, x))(0.7)  # noqa: B023
        np.testing.assert_allclose(both(low, high, 0.7), expected, rtol=1e-12)
    second = ng.jit(lambda n, x: ng.hessian(lambda x: f(0, n, x))(x))
    np.testing.assert_allclose(second(4, 0.7), ng.hessian(lambda x: f(0, 4, x))(0.7), rtol=1e-11)
    highs = np.array([3, 0, 5])
    slopes = [ng.grad(lambda x: f(1, n, x))(0.7) for n in highs]  # noqa: B023
    each = ng.vmap(ng.grad(f, 2), (None, 0, None))
    np.testing.assert_allclose(each(1, highs, 0.7), slopes, rtol=1e-12)
    np.testing.assert_allclose(ng.jit(each)(1, highs, 0.7), slopes, rtol=1e-12)


def test_control_c_ends_a_long_loop():
    f = ng.jit(lambda x: ng.while_loop(lambda c: c > 0, lambda c: np.sin(c) * 0 + 1, x))
    f(-1.0)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(1.0)
    timer.join()


@pytest.mark.parametrize("derive", [ng.grad, lambda f: ng.grad(ng.grad(f))])
def test_what_no_step_reads_has_no_part_in_gradients(derive):
    """It is computed before the loop, where it has no value."""

    def until(x):
        return ng.while_loop(lambda c: c > 0, lambda c: c - np.sqrt(x), x * x * np.sign(x))

    def counted(x, n):
        return x * x + ng.fori_loop(0, n, lambda i, c: c + np.sqrt(x), 0.0)

    def along(x, rows):
        return x * x + ng.scan(lambda c, _: (c + np.sqrt(x), None), 0.0, rows)[0]

    assert ng.jit(derive(until))(-2.0) == derive(until)(-2.0)
    assert ng.jit(derive(counted))(-2.0, 0) == derive(counted)(-2.0, 0)
    assert ng.jit(derive(along))(-2.0, np.ones(0)) == derive(along)(-2.0, np.ones(0))
    np.testing.assert_allclose(ng.jit(derive(counted))(2.0, 3), derive(counted)(2.0, 3))


def _steps_with(chosen):
    """A loop with a branch that reads the length of an argument, and nothing else of it."""

    def f(x, other):
        def body(state):
            y, k = state
            return ng.cond(np.sum(y) < 1e3, lambda: y * other.size, lambda: y - 1.0), k + 1

        return chosen(ng.while_loop(lambda s: s[1] < 40, body, (x, 0))[0])

    return f


def test_a_length_that_only_a_branch_reads_leaves_a_loop_native():
    f = _steps_with(lambda y: y)
    value, slope = ng.jit(f), ng.jit(ng.grad(_steps_with(np.sum)))
    for n in (3, 5):
        x, expected, factor = np.array([1.0, 2.0]), np.array([1.0, 2.0]), 1.0
        for _ in range(40):
            low = expected.sum() < 1e3
            expected, factor = (expected * n, factor * n) if low else (expected - 1.0, factor)
        np.testing.assert_array_equal(value(x, np.zeros(n)), expected)
        np.testing.assert_array_equal(slope(x, np.zeros(n)), [factor, factor])
    assert value.statistics.traces == 1
    assert "while_loop" in value.report()
    for fast in (value, slope):
        assert "is a native loop" in fast.report()
        assert "in Python" not in fast.report()


def test_a_loop_that_is_not_native_is_named_with_the_operation_that_keeps_it():
    def f(x):
        def body(state):
            y, k = state
            return np.sort(y + 0j).real[::-1] * 0.5, k + 1  # named

        return ng.while_loop(lambda s: s[1] < 40, body, (x, 0))[0]

    fast = ng.jit(f)
    with pytest.warns(InterpretedLoopWarning, match="40 steps .* since sort has no form") as caught:
        fast(np.array([1.0, 3.0]))
    (warning,) = caught
    line = inspect.getsource(inspect.getmodule(f)).splitlines()[warning.lineno - 1]
    assert (warning.filename, "# named" in line) == (__file__, True)
    fast(np.array([1.0, 3.0]))  # said once
    assert "makes its steps in Python:" in fast.report()
    assert f"sort ({__file__}:{warning.lineno}) has no form" in fast.report()


@pytest.mark.parametrize("n", [0, 1, 7, 256, 257, 5000])
def test_loops_of_few_and_many_steps_make_as_many(n):
    """Of one call of a kernel, and of several; the second time it is known how many to make."""

    @ng.jit
    def of_condition(n):
        return ng.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + 2.0 * s[0]), (0, 1.0))

    @ng.jit
    def of_length(x):
        return ng.scan(lambda c, v: (c + v, c), 1.0, x)

    @ng.jit
    @ng.grad
    def decaying(x):
        return ng.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.999), (0, x))[1]

    x = np.arange(n) * 2.0
    before = np.concatenate([[1.0], 1.0 + np.cumsum(x)])
    for _ in range(2):
        count, total = of_condition(n)
        assert (int(count), float(total)) == (n, before[-1])
        last, rows = of_length(x)
        assert float(last) == before[-1]
        np.testing.assert_array_equal(rows, before[:-1])
        np.testing.assert_allclose(decaying(3.0), 0.999**n, rtol=1e-12)


def _ascent(p, start):
    """Where ``p**2 - q**2`` is largest: ``p`` moves what steps compare, never where they go."""

    def step(state):
        q, value, rate = state
        following = q - rate * 2 * q
        higher = p**2 - np.sum(following**2)
        return ng.cond(
            higher > value, lambda: (following, higher, rate), lambda: (q, value, rate / 2)
        )

    init = (start, p**2 - np.sum(start**2), 0.9)
    return ng.while_loop(lambda s: np.sum(s[0] ** 2) * s[2] > 1e-6, step, init)[0]


@pytest.mark.parametrize("derive", [ng.grad, ng.jacfwd])
def test_loops_that_what_moves_does_not_reach_are_not_differentiated(derive):
    start = np.array([1.0, 0.5])
    fast = ng.jit(derive(lambda p: p**3 + np.sum(_ascent(p, start) ** 2)))
    assert float(fast(0.7)) == pytest.approx(3 * 0.7**2)
    assert "segment" not in fast.report()
    moving = ng.jit(derive(lambda x: np.sum(_ascent(0.7, x * start) ** 2)))
    h = 1e-5
    plus, minus = (float(np.sum(np.asarray(_ascent(0.7, x * start)) ** 2)) for x in (1 + h, 1 - h))
    assert float(moving(1.0)) == pytest.approx((plus - minus) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("derive", [ng.grad, ng.jacfwd])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_carries_that_steps_set_anew_have_derivatives_where_there_is_no_step(derive, steps):
    """The last carry is the first one then; each of them is useful and varied in its own way."""

    def last(x):
        def step(carry, _):
            _, b, c = carry
            return (np.cos(b) * 1.0, np.floor(c) + 0.5, b * c), None

        return ng.scan(step, (x * 2.0, x**2, np.sin(x)), length=steps)[0]

    def total(x):
        a, b, c = last(x)
        return a + 10.0 * b + 100.0 * c

    h = 1e-6
    expected = (float(total(0.3 + h)) - float(total(0.3 - h))) / (2 * h)
    assert float(ng.jit(derive(total))(0.3)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("steps", [1, 7])
def test_what_a_gradient_does_not_need_is_not_computed(steps):
    """The loop backwards has no cotangent of the length of a step, though steps read it."""

    def last(x, n):
        h = 2.0 / n
        return ng.fori_loop(0, n, lambda _, y: y + h * np.sin(x * y), x)[-1]

    def cut(x, n):  # also without a loop
        return ng.cond(n > 3, lambda: (x * x, np.sum(x) * n), lambda: (x, 0.5 * np.sum(x)))[0][-1]

    x = np.linspace(0.5, 1.0, 5)
    for f in (last, cut):
        compiled = ng.jit(ng.grad(f))
        found = compiled(x, steps)
        assert compiled.statistics.traces == 1
        moved = x.astype(complex)
        moved[-1] += 1e-20j
        if f is last:
            y, h = moved, 2.0 / steps
            for _ in range(steps):
                y = y + h * np.sin(moved * y)
        else:
            y = moved * moved if steps > 3 else moved
        np.testing.assert_allclose(found[-1], y[-1].imag / 1e-20, rtol=1e-13)
        np.testing.assert_array_equal(found[:-1], 0.0)
    graph = ng.jit(ng.grad(last)).graph(x, steps)
    passes.optimize(graph)
    (loop,) = [node for node in graph.nodes if node.name == "subgraph"]
    assert all(v.shape for v in loop.outputs), "x alone has a cotangent"
