"""Values of steps that loops save for their gradients, against complex steps of NumPy's numbers."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler.loops.scan import scan
from numgrad.compiler.passes import optimize

N, T = 9, 5
RNG = np.random.default_rng(0)
W, XS = RNG.normal(size=(N, N)) / 3, RNG.normal(size=(T, N))
P = np.array([0.7, -0.4, 1.1])


def numpy_scan(step, carry, xs, reverse=False):
    rows = []
    for x in xs[::-1] if reverse else xs:
        carry, row = step(carry, x)
        rows.append(row)
    return carry, np.stack(rows[::-1] if reverse else rows)


NUMPY = SimpleNamespace(scan=numpy_scan)


def activated(library, p):
    """The gradient needs what an activation gives, not the product."""
    h, rows = library.scan(lambda h, x: (np.tanh((W * p[0]) @ h + p[1] * x), h), XS[0] * p[2], XS)
    return np.sum(h * np.arange(N)) + np.sum(rows**3)


def gated(library, p):
    """Two products meet in one sum; one of them is used a second time."""

    def step(h, x):
        a, b = (W * p[0]) @ h, (W.T * p[1]) @ (h * x)
        gate = 1.0 / (1.0 + np.exp(-(a + b)))
        return gate * h + p[2] * a * x, np.sum(gate * x)

    h, rows = library.scan(step, XS[1] + p[0], XS, reverse=True)
    return np.sum(h**2) + np.sum(np.sin(rows))


def summed(library, p):
    """A long sum by which all elements are divided."""

    def step(h, x):
        e = np.exp(h * p[0] + x)
        return e / np.sum(e), np.sum(h * h * p[1])

    h, rows = library.scan(step, XS[2] * p[2], XS)
    return np.sum(h * np.arange(N)) + np.sum(rows)


def followed(library, p):
    """What follows in the chain of one product waits for another, which is used elsewhere too."""

    def step(h, x):
        a, b = (W * p[0]) @ h, (W * p[1]) @ x
        return np.sin(a) * np.cos(a) + p[2] * np.tanh(a * b) * b, np.sum(b * h)

    h, rows = library.scan(step, XS[3] * p[1], XS)
    return np.sum(h**2) + np.sum(rows**2)


def unused(library, p):
    """A product of which nothing has a gradient."""

    def step(h, x):
        return p[0] * h * np.sign(W @ x), h

    h, rows = library.scan(step, XS[4] * p[1], XS)
    return np.sum(h * p[2]) + np.sum(rows**2)


PROGRAMS = [activated, gated, summed, followed, unused]


def slopes(f, p):
    """The gradient of a function of NumPy by complex steps."""
    return np.array([f(NUMPY, p + 1e-30j * e).imag / 1e-30 for e in np.eye(len(p))])


@pytest.mark.parametrize("f", [pytest.param(f, id=f.__name__) for f in PROGRAMS])
def test_gradients(f):
    value, gradient = ng.jit(ng.value_and_grad(lambda p: f(ng, p)))(P)
    np.testing.assert_allclose(value, f(NUMPY, P), rtol=1e-12)
    np.testing.assert_allclose(gradient, slopes(f, P), rtol=1e-10)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("derive", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("f", [activated, gated])
def test_second_derivatives(f, derive):
    h = 1e-5
    expected = [(slopes(f, P + h * e) - slopes(f, P - h * e)) / (2 * h) for e in np.eye(len(P))]
    hessian = ng.jit(getattr(ng, derive)(ng.grad(lambda p: f(ng, p))))(P)
    np.testing.assert_allclose(hessian, expected, rtol=1e-7, atol=1e-7)


def test_gradients_of_a_batch_and_batches_of_gradients():
    batch = P + RNG.normal(size=(2, len(P))) / 10
    expected = [slopes(gated, p) for p in batch]
    each = ng.jit(ng.vmap(ng.grad(lambda p: gated(ng, p))))(batch)
    np.testing.assert_allclose(each, expected, rtol=1e-10)
    together = ng.jit(ng.grad(lambda ps: np.sum(ng.vmap(lambda p: gated(ng, p))(ps))))(batch)
    np.testing.assert_allclose(together, expected, rtol=1e-10)


def test_gradients_of_loops_without_a_known_length():
    def f(p):
        def step(state):
            k, h = state
            return k + 1, np.tanh((W * p[0]) @ h + p[1] * h)

        _, h = ng.while_loop(lambda state: state[0] < 4, step, (0, ng.asarray(XS[0]) * p[2]))
        return np.sum(h**2)

    def g(p):
        h = XS[0] * p[2]
        for _ in range(4):
            h = np.tanh((W * p[0]) @ h + p[1] * h)
        return np.sum(h**2)

    np.testing.assert_allclose(ng.jit(ng.grad(f))(P), slopes(lambda _, p: g(p), P), rtol=1e-10)


def bodies(f, save=None):
    """The steps of the loops of a gradient: forwards, backwards."""
    library = SimpleNamespace(scan=partial(ng.scan, save=save))
    graph = ng.jit(ng.grad(lambda p: f(library, p))).graph(P)
    optimize(graph)
    return [node.params["body"].graph for node in graph.nodes if node.op is scan]


def products(graph):
    """Matrix products in a graph."""
    return sum(node.name == "matmul" for node in graph.nodes)


@pytest.mark.parametrize(
    ("f", "forwards", "backwards"),
    [(activated, 1, 1), (gated, 2, 2), (followed, 2, 1), (unused, 1, 0)],
)
def test_gradients_take_products_from_memory(f, forwards, backwards):
    """Each product is computed once forwards; backwards there are those of cotangents."""
    assert list(map(products, bodies(f))) == [forwards, backwards]


@pytest.mark.parametrize(("save", "recomputed"), [("carries", 2), ("all", 0), (None, 0), (1, 2)])
def test_what_is_saved_is_what_was_asked_for(save, recomputed):
    forwards, backwards = bodies(gated, save)
    assert [products(forwards), products(backwards)] == [2, 2 + recomputed]


def test_what_is_saved_is_no_larger_than_some_carries():
    def wide(library, p):
        def step(h, x):
            return h * p[0], np.sum(np.tanh(WIDE @ (x * h)))

        return np.sum(library.scan(step, XS[0], XS)[1])

    recomputed = []
    for factor in (2, 8, 9):
        WIDE = RNG.normal(size=(N * factor, N))
        recomputed.append(products(bodies(wide)[1]) - 1)
        assert products(bodies(wide, "all")[1]) == 1
    assert recomputed == [0, 0, 1]
