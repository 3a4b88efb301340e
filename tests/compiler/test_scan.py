"""``ng.scan`` under ``ng.jit``: a native loop, against the same loop run eagerly."""

import _thread
import threading
import tracemalloc

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.loops import loop_program
from numgrad.errors import NumgradIndexError
from tests.transforms.test_loops import WEIGHTS, remembering

RNG = np.random.default_rng(0)
P = np.array([10.0, 28.0, 8 / 3])
MATRIX = ng.asarray(RNG.normal(size=(5, 5)) / 5)
TABLE = ng.asarray(RNG.normal(size=(5, 4)))
XS = RNG.normal(size=(6, 5))
PLACES = np.array([0, 3, -1, 2, 2, 1])


def lorenz(s, p):
    x, y, z = s
    return np.stack([p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z])


def small(p):
    """A few numbers, which stay in registers."""

    def step(s, _):
        k1 = lorenz(s, p)
        k2 = lorenz(s + 0.01 * k1, p)
        return s + 0.005 * (k1 + k2), s[0] * s[1]

    s, rows = ng.scan(step, ng.ones(3), length=7)
    return np.sum(s) + np.sum(rows**2)


def recurrent(p):
    """A matrix that all steps read, a part of it computed before them."""

    def step(h, x):
        return np.tanh(np.sin(MATRIX * p[0]) @ h + x * p[1]), h

    h, rows = ng.scan(step, ng.zeros(5), ng.asarray(XS), reverse=True)
    return np.sum(h * ng.arange(5.0)) + np.sum(rows * rows) * p[2]


def looked_up(p):
    """Numbers read at places that differ by step, and a carry of two parts, one an integer."""

    def step(carry, x):
        k, value = carry
        value = value * np.cos(TABLE[k, x] * p[0]) + np.max(MATRIX[k] * p[1])
        return ((k + 1) % 5, value), (value, k)

    (k, value), (rows, ks) = ng.scan(step, (0, p[2]), ng.asarray(PLACES))
    return value * k + np.sum(rows * ks)


def nested(p):
    """A loop in a loop, and derivatives in a step."""

    def step(x, y):
        inner, _ = ng.scan(lambda a, b: (a * np.sin(b), None), x, ng.arange(1.0, 4.0) * y)
        return inner + ng.grad(lambda x: x**3 * p[0])(x), inner

    x, rows = ng.scan(step, p[1] / 40, ng.arange(1.0, 4.0) / p[2])
    return x + np.sum(rows)


def unchanged(p):
    """Parts that are given back as they are, in other places, and constants."""

    def step(carry, x):
        a, b, c = carry
        return (b, a, c), (a, 2.0, x, c * 1.0)

    (a, b, c), (r, ones, xs, cs) = ng.scan(step, (p, p * 2, p[0]), ng.asarray(XS[:5, 0]) * p[1])
    return np.sum(a * 3 + b) * c + np.sum(r[:, 0] * ones * xs + cs)


@ng.primitive()
def reversed_sums(x):
    """Sums from the end."""
    return np.cumsum(x[::-1])[::-1].copy()


reversed_sums.vjp(x=lambda g: np.cumsum(g))
reversed_sums.shape(lambda x: x)

PROGRAMS = [small, recurrent, looked_up, nested, unchanged]


@pytest.mark.parametrize("f", PROGRAMS)
def test_value_and_gradient(f):
    value, gradient = ng.jit(ng.value_and_grad(f))(P)
    np.testing.assert_allclose(value, f(P), rtol=1e-12)
    np.testing.assert_allclose(gradient, ng.grad(f)(P), rtol=1e-11, atol=1e-12)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "save",
    ["sqrt", "all", "carries", 3, pytest.param(lambda n: n // 2 + 1, id="callable")],
    ids=str,
)
def test_gradients_do_not_depend_on_what_is_kept(save, reverse):
    w, xs = WEIGHTS, np.sin(np.arange(33.0).reshape(11, 3))
    expected = ng.value_and_grad(remembering(None, reverse), (0, 1))
    found = ng.jit(ng.value_and_grad(remembering(save, reverse), (0, 1)))
    for n in (11, 4, 1, 0):
        leaves = [ng.tree.leaves(f(w, xs[:n])) for f in (found, expected)]
        for a, b in zip(*leaves, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    second = ng.jit(ng.hessian(lambda w: remembering(save, reverse)(w, XS[:, :3])))
    plain = ng.hessian(lambda w: remembering(None, reverse)(w, XS[:, :3]))
    np.testing.assert_allclose(second(w), plain(w), rtol=1e-9, atol=1e-11)


def test_memory_grows_as_the_root_of_the_length():
    def made(save):
        def total(p):
            return np.sum(
                ng.scan(
                    lambda s, _: (s + 1e-4 * lorenz(s, p), None), ng.ones(3), length=N, save=save
                )[0]
            )

        return ng.jit(ng.value_and_grad(total))

    N = 60_000
    found = {}
    for save in ("sqrt", "carries"):
        f = made(save)
        found[save] = f(P)
        f(P)  # loops of loops become machine code
        tracemalloc.start()
        f(P)
        found[save] += (tracemalloc.get_traced_memory()[1] / (3 * P.itemsize),)
        tracemalloc.stop()
    np.testing.assert_allclose(found["sqrt"][1], found["carries"][1], rtol=1e-9)
    assert found["sqrt"][2] < 0.1 * N < N <= found["carries"][2]


DERIVATIVES = {
    "hessian": ng.hessian,
    "forward": ng.jacfwd,
    "forward over reverse": lambda f: ng.jacfwd(ng.grad(f)),
    "batch": lambda f: lambda p: ng.vmap(ng.grad(f))(np.stack([p, p * 1.1])),
}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_other_derivatives(f, name):
    found = DERIVATIVES[name](f)
    np.testing.assert_allclose(ng.jit(found)(P), found(P), rtol=1e-9, atol=1e-9)


def test_the_tape_goes_through_a_compiled_loop():
    p = ng.tensor(P, requires_grad=True)
    ng.jit(recurrent)(p).backward()
    np.testing.assert_allclose(p.grad.numpy(), ng.grad(recurrent)(P), rtol=1e-11)


def test_lengths_are_those_of_the_call():
    f = ng.jit(lambda x: ng.scan(lambda c, x: (c + x, c), 0.0, x))
    for n in (3, 5, 1, 2, 0):
        total, rows = f(np.arange(float(n)))
        assert total == n * (n - 1) / 2
        np.testing.assert_array_equal(rows, np.r_[0.0, np.cumsum(np.arange(float(n)))][:n])


def test_dtypes():
    xs = np.arange(3, dtype=np.float32)
    total, rows = ng.jit(lambda x: ng.scan(lambda c, x: (c + x, c), 0, x))(xs)
    assert (total, total.dtype, rows.dtype) == (3.0, np.float32, np.float32)
    z = ng.jit(lambda x: ng.fori_loop(0, 3, lambda i, z: z * 1j + i, x))(1.0)
    assert (z, z.dtype) == (((1j) * 1j + 1) * 1j + 2, np.complex128)
    flags = ng.jit(lambda x: ng.scan(lambda c, x: (c ^ (x > 0), c), x[0] > 0, x))(XS[:, 0])
    plain = ng.scan(lambda c, x: (c ^ (x > 0), c), XS[0, 0] > 0, XS[:, 0])
    np.testing.assert_array_equal(flags[1], plain[1])


def test_a_step_that_needs_other_code_runs_between():
    def sorted_sums(x):
        return ng.scan(lambda h, _: (reversed_sums(h) / 2, h), x, length=3)

    np.testing.assert_allclose(
        ng.jit(sorted_sums)(np.ones(3))[1], [[1, 1, 1], [1.5, 1, 0.5], [1.5, 0.75, 0.25]]
    )
    slopes = ng.jit(ng.jacobian(lambda x: sorted_sums(x)[0]))(np.ones(3))
    np.testing.assert_allclose(slopes, np.linalg.matrix_power(np.tri(3).T / 2, 3))


def test_an_index_out_of_range_is_the_error_of_the_step():
    f = ng.jit(lambda k: ng.scan(lambda c, k: (c + TABLE[k, 0], None), 0.0, k)[0])
    np.testing.assert_allclose(f(np.array([0, 4, -5])), np.sum(TABLE.numpy()[[0, 4, 0], 0]))
    with pytest.raises(NumgradIndexError, match="out of range"):
        f(np.array([0, 5, 1]))


def test_what_nothing_reads_is_not_computed():
    def step(carry, x):
        a, b, c = carry
        return (a + x, b * a, c), (a, np.exp(b), c)

    def f(p):
        (a, _, _), (rows, _, _) = ng.scan(step, (p[0], p[1], p), p)
        return a, rows

    compiled = ng.jit(f)
    expected = f(P)
    np.testing.assert_allclose(compiled(P)[1], expected[1])
    nodes = [n for n in compiled.graph(P).nodes if n.name == "scan"]
    trimmed, inputs, outputs = (
        nodes[0].params["body"].trimmed([True, *[False] * 2, True, *[False] * 5])
    )
    assert (trimmed.carries, trimmed.xs, len(trimmed.graph.outputs)) == (1, 1, 2)
    assert (inputs, outputs) == ([0, 3], [0, 3])
    assert not trimmed.keeps


def test_the_loop_is_one_kernel(monkeypatch):
    made = []
    written = loop_program.LoopProgram._written
    monkeypatch.setattr(
        loop_program.LoopProgram, "_written", lambda self: made.append(written(self)) or made[-1]
    )
    ng.jit(ng.grad(small))(P)
    assert len(made) == 2
    assert all("while t < steps" in kernel.source for kernel in made)


@pytest.mark.slow
@pytest.mark.parametrize(
    "derive",
    [
        ng.hessian,
        lambda f: ng.jacrev(ng.jacfwd(f)),
        lambda f: lambda a: ng.vmap(ng.hessian(f))(np.stack([a, a + 1])),
    ],
    ids=["forward over reverse", "reverse over forward", "batch"],
)
def test_derivatives_of_steps_that_keep_factors(derive):
    """What an operation notes besides its result is read by the derived loops."""
    a = RNG.normal(size=(3, 3))

    def f(a):
        def step(c, _):
            return np.linalg.solve(a + c[:, None] * c + 5 * ng.eye(3), c + 1), None

        fixed = np.linalg.solve(a + 5 * ng.eye(3), ng.ones(3))  # the same in all steps
        return np.sum(ng.scan(step, ng.ones(3), length=3)[0] ** 2 * fixed)

    np.testing.assert_allclose(ng.jit(derive(f))(a), derive(f)(a), rtol=1e-9, atol=1e-12)


def test_a_step_reads_lengths_that_no_operand_has():
    def f(a):
        step = lambda c, _: (np.sin(c) * a.shape[0] + np.sum(ng.arange(a.shape[0])), None)  # noqa: E731
        return ng.scan(step, np.sum(a), None, length=3)[0]

    compiled, slope = ng.jit(f), ng.jit(ng.grad(f))
    for n in (3, 5):
        np.testing.assert_allclose(compiled(np.ones(n)), f(np.ones(n)), rtol=1e-12)
        np.testing.assert_allclose(slope(np.ones(n)), ng.grad(f)(np.ones(n)), rtol=1e-12)
    np.testing.assert_allclose(
        ng.hessian(compiled)(np.ones(3)), ng.hessian(f)(np.ones(3)), rtol=1e-10
    )


@pytest.mark.parametrize("loop", ["scan", "while_loop"])
def test_constants_in_a_step_are_constants_of_its_derivatives(loop):
    def f(x):
        product = lambda c: c * ng.stop_gradient(c) * ng.stop_gradient(x)  # noqa: E731
        if loop == "scan":
            return ng.scan(lambda c, _: (product(c), None), x, length=3)[0]
        return ng.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, product(c[1])), (0, x))[1]

    x = 1.1
    slope = ng.grad(f)(x)
    fast = ng.jit(f)
    for found in (ng.jit(ng.grad(f)), ng.grad(fast), ng.jit(ng.jacfwd(f)), ng.jacfwd(fast)):
        np.testing.assert_allclose(found(x), slope, rtol=1e-12)
    batch = ng.jit(ng.vmap(ng.grad(f)))(np.array([x, 0.5]))
    np.testing.assert_allclose(batch, [slope, ng.grad(f)(0.5)], rtol=1e-12)


WIDE = {
    "vector": lambda w: ng.scan(lambda h, x: (np.tanh(w @ h + x), h * h), ng.ones(12), LONG)[1],
    "twice": lambda w: ng.scan(
        lambda h, x: (np.tanh(h @ w + w.T @ x), None), ng.ones(12), LONG, reverse=True
    )[0],
    "rows": lambda w: ng.scan(
        lambda h, x: (np.tanh(h @ (w * w) + x), None), ng.ones((2, 12)), LONG
    )[0],
    "segments": lambda w: ng.scan(
        lambda h, x: (np.tanh(w @ h + x), None), ng.ones(12), LONG, save=4
    )[0],
    "complex": lambda w: (
        ng.scan(
            lambda h, x: (np.tanh(w.astype(complex) @ h * (1 + 0.1j) + x), None),
            ng.ones(12) * 1j,
            LONG,
        )[0].real
    ),
}
LONG = ng.asarray(RNG.normal(size=(9, 12)))


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", WIDE)
def test_gradients_of_matrices_are_products_after_the_loop(name):
    gradient = ng.grad(lambda w: np.sum(WIDE[name](w)))
    compiled = ng.jit(gradient)
    w, t = RNG.normal(size=(2, 12, 12)) / 4
    np.testing.assert_allclose(compiled(w), gradient(w), rtol=1e-10, atol=1e-12)
    loops = [n for n in compiled.graph(w).nodes if n.name == "scan" and n.params["reverse"]]
    carried = [
        v.shape for n in loops for v in n.params["body"].graph.inputs[: n.params["body"].carries]
    ]
    assert carried
    assert name == "segments" or (12, 12) not in carried
    found = ng.jit(lambda w: ng.jvp(gradient, (w,), (t,))[1])
    np.testing.assert_allclose(found(w), ng.jvp(gradient, (w,), (t,))[1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("reverse", [False, True])
def test_long_loops_are_many_calls_of_their_kernel(reverse, monkeypatch):
    monkeypatch.setattr(loop_program, "FIRST", 3)
    monkeypatch.setattr(loop_program, "longer", lambda steps, taken: steps + 1)

    def f(x):
        total, rows = ng.scan(lambda c, x: (np.sin(c) + x, c * x), 0.1, x, reverse=reverse)
        return total + np.sum(rows)

    x = RNG.normal(size=20)
    value, slope = ng.jit(ng.value_and_grad(f))(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(slope, ng.grad(f)(x), rtol=1e-12)


def test_control_c_ends_a_long_loop():
    f = ng.jit(lambda x: ng.fori_loop(0, 1 << 40, lambda i, c: np.sin(c) * x, x))
    timer = threading.Timer(0.7, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(1.0)
    timer.join()


@pytest.mark.parametrize("start", [np.float32(1), 1.0, 1, np.ones(2, np.float32), np.int32(3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scan_of_no_step_has_the_dtypes_of_a_compiled_one(start, dtype):
    def loop(xs):
        return ng.scan(lambda c, x: (c * 1.5 + x, c * 2), start, xs)

    for count in (0, 1):
        rows = np.zeros(count, dtype)
        for eager, compiled in zip(loop(rows), ng.jit(loop)(rows), strict=True):
            assert np.asarray(eager).dtype == np.asarray(compiled).dtype
            assert np.shape(eager) == np.shape(compiled)


def test_rows_of_second_derivatives_share_their_loops(monkeypatch):
    def f(p):
        return np.sum(ng.scan(lambda c, y: (np.sin(c) * p[0] + y * p[1], None), p[2:], XS[:, 0])[0])

    made = []

    class Counted(loop_program.LoopProgram):
        def __init__(self, *given):
            made.append(given)
            super().__init__(*given)

    monkeypatch.setattr("numgrad.compiler.loops.scan.LoopProgram", Counted)
    hessian, p = ng.hessian(f), np.linspace(0.1, 0.6, 6)
    np.testing.assert_allclose(ng.jit(hessian)(p), hessian(p), rtol=1e-10, atol=1e-12)
    assert 0 < len(made) <= 4


def _with_energies(x, length):
    """Steps that also add up what nothing reads in the end, one part of it in a branch."""

    def step(state, _):
        y, energy, best = state
        y = y + 0.1 * np.sin(y) * x
        energy = energy + np.sum(np.exp(-(y**2)))
        best, y = ng.cond(energy > best, lambda: (energy * 1.0, y * 0.9), lambda: (best, y * 1.1))
        return (y, energy, best), None

    return ng.scan(step, (np.ones(3), 0.0, 3.0), length=length)[0]


def test_gradients_carry_no_cotangents_that_stay_zero():
    def total(x):
        return np.sum(_with_energies(x, 5)[0])

    x, h = np.array([0.3, 0.5, 0.9]), 1e-5
    expected = [(total(x + h * e) - total(x - h * e)) / (2 * h) for e in np.eye(3)]
    fast = ng.jit(ng.grad(total))
    np.testing.assert_allclose(fast(x), expected, rtol=1e-8)
    back = [n.params["body"] for n in fast.graph(x).nodes if n.name == "scan"][-1]
    assert back.carries == 2, "more than the cotangent of y and the gradient of x"

    def with_best(x):
        y, _, best = _with_energies(x, 5)
        return np.sum(y) + best

    expected = [(with_best(x + h * e) - with_best(x - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(ng.jit(ng.grad(with_best))(x), expected, rtol=1e-7)


@pytest.mark.slow(cases=0)
def test_last_axes_of_few_elements_have_kernels_of_their_own():
    @ng.value_and_grad
    def f(x, times):
        def step(state, h):
            apart = state - state[:, None]
            pull = np.sum(apart / (np.sum(apart**2, axis=-1) + 1.0)[..., None] ** 1.5, axis=1)
            return state + h * pull, np.sum(state[:, -1])

        x, ends = ng.scan(step, x, times)
        return np.sum(x**2) + np.sum(ends**3)

    compiled = ng.jit(f)
    for shape in ((5, 3), (2, 2), (6, 7), (3, 1), (1, 5), (5, 3)):
        x, times = np.random.default_rng(0).normal(size=shape), np.full(4, 0.1)
        value, slope = compiled(x, times)
        wanted, expected = f(x, times)
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
        np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-12)
