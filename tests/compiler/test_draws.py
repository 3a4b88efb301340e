"""Random numbers in steps of compiled loops and in branches: the draws of eager code."""

import random

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError, NumgradTraceError

X = np.array([0.3, 0.7])
ROWS = ng.arange(5.0)
BATCH = np.stack([X, 2 * X, 3 * X])


def diffused(rng, x, save=None, reverse=False):
    def step(c, r):
        noise = rng.normal(c * r, 0.1 + x**2) + rng.uniform() * rng.random(dtype=np.float32)
        return np.sin(c) * x + noise, (rng.integers(0, 9), rng.permutation(3))

    return ng.scan(step, x, ROWS, save=save, reverse=reverse)


def in_loops(rng, x):
    def inner(c, z):
        return np.cos(c) + rng.normal() * z, None

    return ng.scan(lambda c, y: (ng.scan(inner, c, ROWS)[0] * rng.uniform(), c), x, length=3)


def of_parameters(rng, x):
    """Parameters that the step computes of what lies outside."""

    def step(c, _):
        drawn = rng.gamma(np.exp(x), c**2) + rng.exponential(c**2) + rng.beta(x, 2 * x)
        return np.tanh(drawn) + np.log1p(rng.lognormal(c, x)), drawn

    return ng.scan(step, x, length=3)


def chosen(rng, x):
    first = ng.cond(
        x[0] > x[1], lambda: rng.normal(size=2), lambda: rng.uniform(x, 9.0) * rng.normal()
    )
    second = ng.cond(x[0] < x[1], lambda: in_loops(rng, x)[0], lambda: x * rng.normal())
    return first, second, rng.normal()


def batch(rng, x):
    return ng.vmap(lambda x: diffused(rng, x)[0] * chosen(rng, x)[0])(BATCH)


def batch_that_parts(rng, x):
    return ng.vmap(lambda a: ng.cond(a > 0.5, lambda: rng.normal() * a, lambda: rng.uniform()))(x)


def gradient(f):
    return lambda rng, x: ng.grad(lambda x: sum(map(np.sum, ng.tree.leaves(f(rng, x)))))(x)


def second(f):
    def total(rng, x):
        return ng.jacfwd(lambda x: gradient(f)(rng, x))(x)

    return total


PROGRAMS = {
    "loop": diffused,
    "reverse": lambda rng, x: diffused(rng, x, reverse=True),
    "segments": lambda rng, x: diffused(rng, x, save="sqrt"),
    "every third": gradient(lambda rng, x: diffused(rng, x, save=3)[0]),
    "gradient": gradient(lambda rng, x: diffused(rng, x)[0]),
    "in loops": in_loops,
    "gradient in loops": gradient(lambda rng, x: in_loops(rng, x)[0]),
    "parameters": of_parameters,
    "gradient by parameters": gradient(of_parameters),
    "second": second(lambda rng, x: of_parameters(rng, x)[0]),
    "branches": chosen,
    "gradient of branches": gradient(chosen),
    "batch": batch,
    "batch that parts": batch_that_parts,
}


@pytest.mark.slow(cases=7)
@pytest.mark.parametrize("name", PROGRAMS)
def test_draws_are_those_of_eager_code(name):
    f = PROGRAMS[name]
    ours, theirs = (ng.random.default_rng(5) for _ in range(2))
    compiled = ng.jit(lambda x: f(ours, x))
    for _ in range(2):
        leaves = [ng.tree.leaves(found) for found in (compiled(X), f(theirs, X))]
        for a, b in zip(*leaves, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    assert ours.random() == theirs.random()


def test_numbers_of_the_global_generator():
    def f(x):
        step = lambda c, _: (ng.nn.functional.dropout(c, 0.3) * 1.1, None)  # noqa: E731
        return np.sum(ng.scan(step, x, length=4)[0] * ng.arange(20.0))

    both = ng.value_and_grad(f)
    found = []
    for call in (both, ng.jit(both)):
        ng.random.manual_seed(3)
        found.append(call(np.ones(20)))
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)
    assert found[0][0] > 0


def test_lengths_are_those_of_the_call():
    ours, theirs = (ng.random.default_rng(5) for _ in range(2))
    compiled = ng.jit(lambda x: ng.scan(lambda c, v: (c + ours.normal() * v, None), 0.0, x)[0])
    for n in (3, 5, 0, 1):
        np.testing.assert_allclose(compiled(np.ones(n)), theirs.normal(size=n).sum(), rtol=1e-12)


def test_what_cannot_be_drawn_before_is_refused_with_the_line():
    rng = ng.random.default_rng(0)
    f = ng.jit(lambda x: ng.scan(lambda c, _: (c + rng.poisson(c), None), x, length=4)[0])
    with pytest.raises(NumgradTraceError, match=r"test_draws\.py.*depends on what the step"):
        f(X)
    f = ng.jit(lambda x: ng.while_loop(lambda c: c < 3, lambda c: c + rng.normal(), x))
    with pytest.raises(NumgradTraceError, match=r"test_draws\.py.*draws random"):
        f(1.0)
    f = ng.jit(ng.grad(lambda x: ng.scan(lambda c, _: (c * rng.poisson(x), None), x, length=2)[0]))
    with pytest.raises(NumgradError, match="to be differentiated"):
        f(1.0)


def muted(x):
    with ng.no_grad():
        return np.sin(x) * x


CONSTANTS = {
    "detach": lambda x: ng.scan(
        lambda c, _: (c * x.detach() + np.sin(c.detach()) * x, None), x, length=3
    )[0],
    "no_grad": lambda x: ng.scan(lambda c, _: (c * muted(x) + muted(c) * x, None), x, length=3)[0],
    "branch": lambda x: ng.cond(x > 0, lambda: x * x.detach() * muted(x), lambda: x),
    "within": lambda x: ng.scan(
        lambda c, _: (c * ng.grad(lambda y: ng.stop_gradient(y) * y * y)(x), None), x, length=3
    )[0],
    "while": lambda x: ng.while_loop(
        lambda c: c < 3, lambda c: c + x * ng.stop_gradient(c) + 0.1 * muted(c), x
    ),
    "batch": lambda x: np.sum(
        ng.vmap(
            lambda y: ng.scan(
                lambda c, _: (c * x + np.sin(c.detach()) * y + muted(c), None), x, length=3
            )[0]
        )(ROWS)
    ),
}
DERIVATIVES = [ng.grad, ng.jacfwd, ng.hessian, lambda f: ng.jacfwd(ng.grad(f))]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_in_bodies_are_none_for_derivatives_only(name):
    for derive in DERIVATIVES:
        found = derive(CONSTANTS[name])
        np.testing.assert_allclose(ng.jit(found)(0.7), found(0.7), rtol=1e-10, atol=1e-12)


def test_a_branch_that_draws_inside_a_loop_is_refused_and_drawn_before_it_works():
    def inside(c, rng):
        return ng.cond(c > 0, lambda c: c - rng.normal(), lambda c: c + 1, c)

    def before(c, rng):
        drawn = rng.normal()
        return ng.cond(c > 0, lambda c: c - drawn, lambda c: c + 1, c)

    def walk(step):
        rng = ng.random.default_rng(0)
        return ng.scan(lambda c, _: (step(c, rng), None), 1.0, length=4)[0]

    with pytest.raises(NumgradTraceError, match=r"test_draws\.py.*before the branch"):
        ng.jit(walk, static_argnums=0)(inside)
    assert ng.jit(walk, static_argnums=0)(before) == walk(before)


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda: RNG.standard_normal(), "RNG"),
        (lambda: np.random.random_sample(), r"np\.random"),
        (lambda: random.random(), "random"),
    ],
)
def test_numbers_that_are_drawn_while_a_function_is_traced_are_warned_of(draw, name):
    def loop(x):
        return ng.scan(lambda c, _: (c + draw(), None), x, length=2)[0]

    for f in (lambda x: x * draw(), loop):
        with pytest.warns(UserWarning, match=f"drew random numbers from {name} while") as found:
            ng.jit(f)(np.ones(2))
        assert found[0].filename == __file__
