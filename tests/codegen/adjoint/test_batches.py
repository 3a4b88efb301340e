"""``vmap`` of kernels: the batch is a loop of the kernel, and results are those of each example."""

import math

import numpy as np
import pytest
from numba import prange

import numgrad as ng
from numgrad.codegen.adjoint import parallel
from tests.codegen.adjoint.judge import tuple_of
from tests.codegen.adjoint.programs import covering
from tests.codegen.adjoint.test_drawn_programs import constructs_of_small, truth_of
from tests.codegen.adjoint.writer import Writer

RNG = np.random.default_rng(8)
X, W, A = RNG.normal(size=(6, 5)), RNG.normal(size=5), RNG.normal(size=6)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Have batches of few examples cut into chunks."""
    monkeypatch.setattr(parallel, "CHUNK", 60)
    monkeypatch.setattr(parallel, "COPY", 0)


def wave(x, w, a):
    s = 0.0
    out = np.empty(len(x))
    t = a
    for i in range(len(x)):
        t = math.sin(t * w[i]) + x[i]
        out[i] = t * a
        s += t * t
    return s, out


WAVE = ng.kernel(wave)


def close(seen, wanted, rtol=1e-12):
    for a, b in zip(tuple_of(seen), tuple_of(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-12)


def by_example(function, axes, *operands):
    """The results of a function for one example after the other, stacked."""
    size = next(len(x) for x, axis in zip(operands, axes, strict=True) if axis == 0)
    rows = [
        tuple_of(function(*[x if n is None else x[k] for x, n in zip(operands, axes, strict=True)]))
        for k in range(size)
    ]
    return tuple(np.stack([np.asarray(x) for x in column]) for column in zip(*rows, strict=True))


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("axes", [(0, None, 0), (None, 0, None), (0, 0, 0), (None, None, 0)])
def test_values_and_derivatives_of_each_example(axes):
    kernel = WAVE
    given = (X if axes[0] == 0 else X[0], np.stack([W] * 6) if axes[1] == 0 else W,
             A if axes[2] == 0 else 0.7)  # fmt: skip
    close(ng.vmap(kernel, in_axes=axes)(*given), by_example(wave, axes, *given))

    def loss(x, w, a):
        s, out = kernel(x, w, a)
        return s + (out * out).sum()

    for derivative in (ng.grad(loss, (0, 1, 2)), ng.jacobian(loss, 0), ng.hessian(loss)):
        close(ng.vmap(derivative, in_axes=axes)(*given), by_example(derivative, axes, *given), 1e-9)

    def total(x, w, a):
        return ng.vmap(loss, in_axes=axes)(x, w, a).sum()

    def sum_of(x, w, a):
        rows = [
            loss(*[v if n is None else v[k] for v, n in zip((x, w, a), axes, strict=True)])
            for k in range(6)
        ]
        return sum(rows[1:], rows[0])

    given = tuple(map(ng.tensor, given))
    close(ng.grad(total, (0, 1, 2))(*given), ng.grad(sum_of, (0, 1, 2))(*given), 1e-9)
    tangents = tuple(ng.ones_like(x) for x in given)
    close(ng.jvp(total, given, tangents), ng.jvp(sum_of, given, tangents), 1e-9)


def test_the_batch_is_one_call_and_parallel():
    kernel = ng.kernel(wave)
    batch = ng.vmap(kernel, in_axes=(0, None, 0))
    batch(X, W, A)
    report = kernel.batched((True, False, True)).report()
    assert [loop.obstacle for loop in report.parallel] == [""] * 4
    assert "example" not in kernel.source("forward", X[0], W, 0.3)  # which is as it was
    close(kernel(X[0], W, 0.3), wave(X[0], W, 0.3))


def test_arrays_that_are_written():
    def step(u, out, n):
        for i in prange(1, len(u) - 1):
            out[i] += u[i - 1] + u[i + 1] - n * u[i]
            u[i] = out[i]
        return out[0]

    kernel = ng.kernel(step, writes=("u", "out"))
    seen = ng.vmap(kernel, in_axes=(0, None, None))(X, W, 2)
    wanted = [[], [], []]
    for row in X:
        u, out = row.copy(), W.copy()
        wanted[0].append(step(u, out, 2))
        wanted[1].append(u)
        wanted[2].append(out)
    close(seen, tuple(map(np.stack, wanted)))


def test_lengths_integers_and_no_example():
    def f(x, n):
        out = np.zeros(2 * n + len(x))
        for i in range(n):
            out[i] = x[i % len(x)] * i
        return out

    kernel = ng.kernel(f)
    close(ng.vmap(kernel, in_axes=(0, None))(X, 4), by_example(f, (0, None), X, 4))
    assert ng.vmap(kernel, in_axes=(0, None))(X[:0], 4).shape == (0, 13)
    counts = np.array([3, 3])  # a length that differs by example is computed by example
    close(ng.vmap(kernel)(X[:2], counts), by_example(f, (0, 0), X[:2], counts))


def test_batches_in_batches_and_compiled():
    kernel = ng.kernel(wave)
    both = ng.vmap(ng.vmap(kernel, in_axes=(None, None, 0)), in_axes=(0, None, None))
    inner = by_example(lambda x: by_example(wave, (None, None, 0), x, W, A), (0,), X)
    close(both(X, W, A), inner)
    fast = ng.jit(lambda x, a: ng.vmap(kernel, in_axes=(0, None, 0))(x, W, a)[0].sum())
    close(fast(ng.tensor(X), ng.tensor(A)), by_example(wave, (0, None, 0), X, W, A)[0].sum())


def test_arrays_of_four_axes():
    def f(x):
        s = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[3]):
                s += x[i, 0, 1, j] ** 2
        return s

    x = RNG.normal(size=(4, 2, 1, 2, 3))
    kernel = ng.kernel(f)
    close(ng.vmap(kernel)(x), by_example(f, (0,), x))
    close(ng.vmap(ng.grad(kernel))(x), by_example(ng.grad(kernel), (0,), x))


@pytest.mark.slow(cases=5)
@pytest.mark.parametrize("seed", covering(range(40, 52), constructs_of_small))
def test_drawn_programs(seed):
    program = Writer(seed, True).write()
    drawn = truth_of(program)
    if drawn is None:
        pytest.skip("near a tie")
    function, arguments, *_ = drawn
    kernel = ng.kernel(function, writes=program.writes)
    places = [k for k, a in enumerate(arguments) if np.asarray(a).dtype.kind in "fc"]
    axes = tuple(0 if k in places else None for k in range(len(arguments)))
    rows = [1.0, 1.001, 0.999]
    given = [
        np.stack([np.asarray(a) * np.asarray(r, np.asarray(a).dtype) for r in rows])
        if k in places
        else a
        for k, a in enumerate(arguments)
    ]
    tolerance = 1e-4 if program.single else 1e-10
    close(ng.vmap(kernel, in_axes=axes)(*given), by_example(kernel, axes, *given), tolerance)

    def loss(*operands):
        outputs = [o for o in tuple_of(kernel(*operands)) if o.dtype.kind == "f"]
        return sum([(o * o).sum() for o in outputs], ng.tensor(0.0))

    if program.single or any(np.asarray(arguments[k]).dtype.kind == "c" for k in places):
        return
    gradient = ng.grad(loss, tuple(places))
    seen = ng.vmap(gradient, in_axes=axes)(*given)
    close(seen, by_example(gradient, axes, *given), 1e-8)
