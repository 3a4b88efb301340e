"""A kernel is an operation: recorded, compiled, batched, in loops and threads."""

import math
import threading

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual

RNG = np.random.default_rng(11)
X, Y = RNG.normal(size=6), RNG.normal(size=6)
Q = np.array([3, 0, 3, 1, 5, 0])


def energy(x, q, a):
    s = 0.0
    for i in range(len(x)):
        d = x[i] - x[q[i]]
        if i != q[i]:
            s += a * math.exp(-d * d)
    return s


def step(u, k, dt):
    for i in range(1, len(u) - 1):
        u[i] += dt * k[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1])


def gradient(function, *arguments, written=()):
    weights = None
    return hyperdual.run(function, arguments, written, weights).gradients


@pytest.fixture(scope="module")
def kernel():
    return ng.kernel(energy)


@pytest.fixture(scope="module")
def stepper():
    return ng.kernel(step, writes="u")


def test_the_tape_goes_through_it(kernel):
    x, a = ng.tensor(X, requires_grad=True), ng.tensor(0.7, requires_grad=True)
    out = 2.0 * kernel(np.sin(x), Q, a * a)
    assert out.shape == ()
    out.backward()
    gx, _, ga = gradient(energy, np.sin(X), Q, 0.49)
    np.testing.assert_allclose(np.asarray(x.grad), 2 * gx * np.cos(X), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(a.grad), 2 * ga * 1.4, rtol=1e-12)


def test_nothing_is_recorded_without_need(kernel):
    assert (
        not kernel(X, Q, 0.7).requires_grad if hasattr(kernel(X, Q, 0.7), "requires_grad") else True
    )
    with ng.no_grad():
        assert not kernel(ng.tensor(X, requires_grad=True), Q, 0.7).requires_grad


def test_compiled_functions_have_the_same_values_and_gradients(kernel, stepper):
    def f(x, y, a):
        u = stepper(np.sin(x), y * y, 0.1)
        return kernel(u, Q, a) * 2.0 + np.sum(u)

    wanted = ng.value_and_grad(f, argnums=(0, 1, 2))(X, Y, 0.7)
    seen = ng.jit(ng.value_and_grad(f, argnums=(0, 1, 2)))(X, Y, 0.7)
    np.testing.assert_allclose(float(seen[0]), float(wanted[0]), rtol=1e-12)
    for s, w in zip(seen[1], wanted[1], strict=True):
        np.testing.assert_allclose(np.asarray(s), np.asarray(w), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axes", [(0, None, None), (None, None, 0), (0, None, 0), (1, None, None)])
def test_batches(kernel, axes):
    xs, scales = RNG.normal(size=(3, 6)), np.array([0.5, 0.7, 0.9])
    given = [
        xs if axes[0] == 0 else xs.T if axes[0] == 1 else X,
        Q,
        scales if axes[2] == 0 else 0.7,
    ]
    seen = ng.vmap(kernel, in_axes=axes)(*given)
    wanted = [
        energy(xs[k] if axes[0] is not None else X, Q, scales[k] if axes[2] == 0 else 0.7)
        for k in range(3)
    ]
    np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-12)
    grads = ng.vmap(ng.grad(lambda x, q, a: kernel(x, q, a), argnums=(0, 2)), in_axes=axes)(*given)
    for k in range(3):
        w = gradient(
            energy, xs[k] if axes[0] is not None else X, Q, scales[k] if axes[2] == 0 else 0.7
        )
        np.testing.assert_allclose(np.asarray(grads[0])[k], w[0], rtol=1e-11)
        np.testing.assert_allclose(np.asarray(grads[1])[k], w[2], rtol=1e-11)


def test_batches_of_written_arrays_and_of_indices(stepper, kernel):
    us = RNG.normal(size=(4, 6))
    seen = np.asarray(ng.vmap(lambda u: stepper(u, Y, 0.1))(us))
    for k, u in enumerate(us):
        wanted = u.copy()
        step(wanted, Y, 0.1)
        np.testing.assert_allclose(seen[k], wanted, rtol=1e-13)
    qs = RNG.integers(0, 6, (3, 6))
    seen = np.asarray(ng.vmap(lambda q: kernel(X, q, 0.7))(qs))
    np.testing.assert_allclose(seen, [energy(X, q, 0.7) for q in qs], rtol=1e-13)


def test_jacobians(stepper):
    def out_of_place(u):
        u = u.copy()
        step(u, Y, 0.1)
        return u

    h = 1e-6
    wanted = np.stack(
        [(out_of_place(X + h * e) - out_of_place(X - h * e)) / (2 * h) for e in np.eye(6)], axis=1
    )
    np.testing.assert_allclose(
        np.asarray(ng.jacobian(lambda u: stepper(u, Y, 0.1))(X)), wanted, atol=1e-8
    )


def test_second_derivatives(kernel):
    wanted = np.stack(
        [
            hyperdual.run(energy, [X, Q, 0.7], (), [1.0], [e, None, 0.0]).products[0]
            for e in np.eye(6)
        ]
    )
    f = lambda x: kernel(x, Q, 0.7)  # noqa: E731
    np.testing.assert_allclose(np.asarray(ng.hessian(f)(X)), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.asarray(ng.hvp(f)(X, Y)), wanted @ Y, rtol=1e-10, atol=1e-12)
    _, product = ng.jvp(ng.grad(f), (X,), (Y,))
    np.testing.assert_allclose(np.asarray(product), wanted @ Y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "second",
    [
        lambda f: ng.jit(ng.hessian(f)),
        lambda f: ng.jacfwd(ng.jacfwd(f)),
        lambda f: ng.jacrev(ng.jacrev(f)),
        lambda f: ng.jacrev(ng.jacfwd(f)),
    ],
    ids=["compiled", "forward twice", "reverse twice", "reverse over forward"],
)
def test_modes_of_second_derivatives(stepper, second):
    def f(u):
        return np.sum(stepper(u * u, np.sin(u), 0.1) ** 2)

    # Gauss and Seidel's order: the left neighbour is new
    def exact(u):
        v, k = u * u, np.sin(u)
        for i in range(1, 5):
            v = np.concatenate(
                [v[:i], [v[i] + 0.1 * k[i] * (v[i - 1] - 2.0 * v[i] + v[i + 1])], v[i + 1 :]]
            )
        return np.sum(v**2)

    np.testing.assert_allclose(
        np.asarray(second(f)(X)), np.asarray(ng.hessian(exact)(X)), rtol=1e-10, atol=1e-12
    )


def power(x, a):
    s = 0.0
    for i in range(len(x)):
        s += a * x[i] ** 5 * x[0]
    return s


def test_third_derivatives():
    kernel = ng.kernel(power)

    def plain(x):
        return 0.7 * np.sum(x**5) * x[0]

    def third(f):
        return ng.grad(lambda x: np.sum(ng.hvp(f)(x, Y) * np.arange(6.0)))

    wanted = np.asarray(third(plain)(X))
    f = lambda x: kernel(x, 0.7)  # noqa: E731
    np.testing.assert_allclose(np.asarray(third(f)(X)), wanted, rtol=1e-11)
    np.testing.assert_allclose(np.asarray(ng.jit(third(f))(X)), wanted, rtol=1e-11)
    cube = np.asarray(ng.jacfwd(ng.jacfwd(ng.jacfwd(f)))(X))
    np.testing.assert_allclose(np.einsum("ijk,i,j", cube, Y, np.arange(6.0)), wanted, rtol=1e-11)


def test_second_derivatives_inside_of_others(stepper):
    def loss(u):
        end, _ = ng.scan(lambda u, _: (stepper(u, Y, 0.1) ** 2, None), u, None, length=2)
        return np.sum(end)

    h = 1e-5
    for f in (loss, lambda u: ng.checkpoint(loss, u)):
        wanted = (np.asarray(ng.grad(f)(X + h * Y)) - np.asarray(ng.grad(f)(X - h * Y))) / (2 * h)
        product = lambda x, f=f: ng.hvp(f)(x, Y)  # noqa: E731
        for seen in (product(X), ng.jit(product)(X), ng.vmap(product)(X[None])[0]):
            np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-7, atol=1e-8)


def test_kernels_of_one_name_stay_apart_when_compiled():
    def scaled(c):
        def same(x):
            s = 0.0
            for i in range(len(x)):
                s += c * x[i]
            return s

        return ng.kernel(same)

    one, two = scaled(1.0), scaled(2.0)
    seen = ng.jit(lambda x: one(x) + two(x))(X)
    np.testing.assert_allclose(float(seen), 3.0 * np.sum(X), rtol=1e-13)


def test_a_backward_through_a_backward(kernel):
    x, a = ng.tensor(X, requires_grad=True), ng.tensor(0.7, requires_grad=True)
    gx, ga = ng.autograd.grad(kernel(x, Q, a), (x, a), create_graph=True)
    (np.sum(gx * Y) + 3.0 * ga).backward()
    truth = hyperdual.run(energy, [X, Q, 0.7], (), [1.0], [Y, None, 3.0])
    np.testing.assert_allclose(np.asarray(x.grad), truth.products[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.asarray(a.grad), truth.products[2], rtol=1e-10, atol=1e-12)


def test_the_step_of_a_scan(stepper):
    def last(u, k):
        return ng.scan(lambda u, _: (stepper(u, k, 0.1), None), u, None, length=5)[0]

    def plain(u, k):
        for _ in range(5):
            for i in range(1, len(u) - 1):
                u[i] += 0.1 * k[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1])

    truth = hyperdual.run(plain, [X, Y], [0], [np.arange(6.0)])
    for function in (last, ng.jit(last)):
        out, pullback = ng.vjp(function, X, Y)
        np.testing.assert_allclose(np.asarray(out), truth.outputs[0], rtol=1e-12)
        for seen, wanted in zip(pullback(np.arange(6.0)), truth.gradients, strict=True):
            np.testing.assert_allclose(np.asarray(seen), wanted, rtol=1e-10, atol=1e-12)


def test_recomputed_in_a_checkpoint(kernel):
    x = ng.tensor(X, requires_grad=True)
    ng.checkpoint(lambda x: kernel(np.sin(x), Q, 0.7), x).backward()
    wanted = gradient(energy, np.sin(X), Q, 0.7)[0] * np.cos(X)
    np.testing.assert_allclose(np.asarray(x.grad), wanted, rtol=1e-12)


def test_several_threads_at_once():
    kernel = ng.kernel(energy)
    wanted = gradient(energy, X, Q, 0.7)[0]
    errors = []

    def work():
        try:
            for _ in range(20):
                x = ng.tensor(X, requires_grad=True)
                kernel(x, Q, 0.7).backward()
                np.testing.assert_allclose(np.asarray(x.grad), wanted, rtol=1e-12)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert errors == []


def test_the_same_bits_again():
    kernel = ng.kernel(energy)
    x = RNG.normal(size=200)
    q = RNG.integers(0, 200, 200)
    grads = []
    for _ in range(3):
        t = ng.tensor(x, requires_grad=True)
        kernel(t, q, 0.7).backward()
        grads.append(np.asarray(t.grad).tobytes())
    assert len(set(grads)) == 1


def test_other_kernels_are_inlined():
    inner = ng.kernel(energy)

    def outer(x, q, a):
        s = 0.0
        for k in range(3):
            s = s * 0.5 + inner(x, q, a + 0.1 * k)
        return s

    def plain(x, q, a):
        s = 0.0
        for k in range(3):
            s = s * 0.5 + energy(x, q, a + 0.1 * k)
        return s

    x = ng.tensor(X, requires_grad=True)
    ng.kernel(outer)(x, Q, 0.7).backward()
    np.testing.assert_allclose(np.asarray(x.grad), gradient(plain, X, Q, 0.7)[0], rtol=1e-11)


def test_names_and_text_are_those_of_the_function(kernel):
    assert kernel.__name__ == "energy"
    assert kernel.__wrapped__ is energy or getattr(kernel, "__doc__", None) == energy.__doc__
    kernel(ng.tensor(X, requires_grad=True), Q, 0.7)
    for part in ("forward", "backward", "tangent"):
        assert "def " in kernel.source(part)
    assert str(kernel.report())


def test_arguments_by_name_and_defaults():
    def f(x, gain=2.0, power=3):
        s = 0.0
        for i in range(len(x)):
            s += gain * x[i] ** power
        return s

    k = ng.kernel(f)
    assert float(k(X)) == pytest.approx(f(X), rel=1e-13)
    assert float(k(X, power=2)) == pytest.approx(f(X, power=2), rel=1e-13)
    assert float(k(x=X, gain=0.5)) == pytest.approx(f(X, 0.5), rel=1e-13)


def filled(x, out, gain=2.0):
    for i in range(len(x)):
        out[i] = gain * x[i]


def test_calls_with_wrong_arguments():
    kernel = ng.kernel(filled, writes={"out": ng.like("x")})
    assert kernel.__wrapped__ is filled
    for message, args, keywords in (
        ("filled: no parameter is called 'scale'; it takes x, gain", (X,), {"scale": 1.0}),
        ("filled: 'x' is given by position and by name", (X,), {"x": X}),
        ("filled: input 'x' is missing", (), {"gain": 1.0}),
        ("filled: takes x, gain by position; got 3 positional arguments", (X, 1.0, X), {}),
    ):
        with pytest.raises(ng.NumgradTypeError, match=message):
            kernel(*args, **keywords)


def test_gradcheck(stepper):
    given = [ng.tensor(a, requires_grad=True) for a in (X, Y)]
    assert ng.testing.gradcheck(lambda u, k: stepper(u, k, 0.1), given)
