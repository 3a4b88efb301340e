"""``ng.cond`` and ``ng.switch`` under ``ng.jit``, against the branch that eager code calls."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError

RNG = np.random.default_rng(0)
MATRIX = ng.asarray(RNG.normal(size=(3, 3)) / 3)
XS = ng.asarray(RNG.normal(size=6))
POINTS = RNG.normal(size=(4, 3)) + np.array([[1.0], [-1.0], [0.5], [-2.0]])


def logarithm(p):
    """A branch that has no value where the other one is taken."""
    return ng.cond(p[0] > 0, lambda q: np.log(q[0]) * q[1], lambda q: np.sqrt(-q[0]) + q[2], p)


def containers(p):
    """Nested results of several dtypes, and arrays read from outside by one branch or both."""
    matrix = np.sin(p) * MATRIX

    def one(a):
        return {"v": matrix @ a, "n": 1, "none": None}

    def other(a):
        return {"v": a * p[1], "n": 2.5, "none": None}

    out = ng.cond(np.sum(p) > 0, one, other, p * 2)
    return np.sum(out["v"] ** 2) * out["n"]


def switched(p):
    """One of four branches, the last of which chooses again."""
    branches = [
        lambda x: np.tanh(x),
        lambda x: x * x * p[1],
        lambda x: ng.cond(p[2] > 0, np.exp, lambda x: np.cos(x) * p[2], x / 2),
    ]
    return np.sum(ng.switch(np.round(p[0] + 1).astype(int), branches, p))


def in_steps(p):
    """Branches within the steps of a loop."""

    def step(c, x):
        c = ng.cond(c * x > 0, lambda c: np.sin(c) * p[0], lambda c: c + p[1] * x, c)
        return c, ng.switch((c > p[2]).astype(int), [lambda: c * c, lambda: p[0] / 2])

    c, rows = ng.scan(step, p[2], XS)
    return c + np.sum(rows * p[1])


def around_loops(p):
    """Loops within branches."""

    def roots(x):
        return ng.while_loop(lambda c: abs(c * c - x) > 1e-12, lambda c: 0.5 * (c + x / c), x)

    def sums(x):
        return ng.scan(lambda c, r: (np.sin(c) + r * x, None), x, XS)[0]

    return ng.cond(p[0] > 0, roots, sums, p[1] ** 2 + 0.1) * p[2]


PROGRAMS = [logarithm, containers, switched, in_steps, around_loops]
DERIVATIVES = {
    "gradient": ng.value_and_grad,
    "hessian": ng.hessian,
    "forward": ng.jacfwd,
    "forward over reverse": lambda f: ng.jacfwd(ng.grad(f)),
}


@pytest.mark.slow(cases=5)
@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives(f, name):
    found = DERIVATIVES[name](f)
    compiled = ng.jit(found)
    for p in POINTS:
        for a, b in zip(compiled(p), found(p), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_examples_choose_for_themselves(f):
    values = [f(p) for p in POINTS]
    np.testing.assert_allclose(ng.jit(ng.vmap(f))(POINTS), values, rtol=1e-11)
    slopes = [ng.grad(f)(p) for p in POINTS]
    np.testing.assert_allclose(ng.jit(ng.vmap(ng.grad(f)))(POINTS), slopes, rtol=1e-11)
    again = ng.vmap(ng.vmap(ng.grad(f)))(POINTS.reshape(2, 2, 3))
    np.testing.assert_allclose(again.reshape(4, 3), slopes, rtol=1e-11)


def test_transforms_of_a_compiled_function():
    compiled = ng.jit(logarithm)
    for p in POINTS[:2]:
        np.testing.assert_allclose(ng.hessian(compiled)(p), ng.hessian(logarithm)(p), rtol=1e-11)
        t = ng.tensor(p, requires_grad=True)
        compiled(t).backward()
        np.testing.assert_allclose(t.grad.numpy(), ng.grad(logarithm)(p), rtol=1e-12)


def test_only_the_branch_that_is_chosen_runs():
    seen = []

    @ng.primitive()
    def watched(x):
        seen.append(1)
        return x * 2

    watched.vjp(x=lambda g: g * 2)
    watched.shape(lambda x: x)
    f = ng.jit(lambda x: ng.cond(x[0] > 0, watched, lambda x: x, x))
    f(-np.ones(300))
    seen.clear()
    np.testing.assert_array_equal(f(-np.ones(300)), -np.ones(300))
    assert not seen
    np.testing.assert_array_equal(f(np.ones(300)), 2 * np.ones(300))
    assert seen


def test_indices_are_checked_in_the_branch_that_runs():
    table = ng.arange(4.0)
    f = ng.jit(lambda k: ng.cond(k < 4, lambda: table[k] * 2, lambda: 0.0))
    assert (f(2), f(9)) == (4.0, 0.0)
    rows = ng.jit(
        lambda ks: ng.scan(
            lambda c, k: (c + ng.cond(k < 4, lambda: table[k], lambda: 0.5), c), 0.0, ks
        )
    )
    np.testing.assert_array_equal(rows(np.array([3, 7, 1]))[1], [0.0, 3.0, 3.5])


def test_dtypes_are_those_that_hold_both():
    f = ng.jit(lambda x, y, z: ng.cond(x > 0, lambda: y, lambda: z))
    narrow, number = np.ones(2, np.float32), np.arange(2)
    for y, z, dtype in (
        (narrow, number, np.float64),
        (narrow, narrow, np.float32),
        (number, number * 1j, np.complex128),
        (number > 0, number, np.int64),
    ):
        for x in (1, -1):
            found = f(x, y, z)
            np.testing.assert_array_equal(found, y if x > 0 else z)
            assert found.dtype == dtype
    sign = ng.jit(lambda x, y: ng.cond(x > 0, lambda: 1, lambda: -0.5) * y)
    for x in (1, -1):
        assert sign(x, narrow).dtype == np.float32
    empty = ng.jit(lambda x: ng.cond(x.sum() > 0, lambda: x, lambda: x * 2))
    assert empty(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_lengths_are_those_of_the_call():
    f = ng.jit(
        lambda x: ng.cond(x[0] > 0, lambda: x * x.shape[0], lambda: x[::-1] + ng.arange(x.shape[0]))
    )
    for n in (1, 4, 2):
        x = np.linspace(1, 2, n)
        np.testing.assert_array_equal(f(x), x * n)
        np.testing.assert_array_equal(f(-x), -x[::-1] + np.arange(n))


ERRORS = {
    "shapes": (
        lambda x: ng.cond(x > 0, lambda: ng.ones(2), lambda: ng.ones(3)),
        r"\(2,\) and \(3,\)",
    ),
    "nesting": (lambda x: ng.cond(x > 0, lambda: (x,), lambda: x), "nested otherwise"),
    "kind": (lambda x: ng.cond(x > 0, lambda: "a", lambda: x), "holds a str"),
    "index": (lambda x: ng.switch(x, [np.sin, np.cos], x), "one integer"),
    "pred": (lambda x: ng.cond(ng.ones(2) * x > 0, np.sin, np.cos, x), "one truth value"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_the_line(name):
    f, message = ERRORS[name]
    with pytest.raises(NumgradError, match=message) as caught:
        ng.jit(f)(1.5)
    assert "test_branches.py" in str(caught.value)
