"""Random numbers in steps of compiled loops and in branches: the draws of eager code."""

import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError

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


def in_while(rng, x):
    """The number of steps follows from what is drawn; the global generator is drawn from, too."""

    def body(s):
        wide = ng.nn.functional.dropout(s[1], 0.3)
        return s[0] + 1, s[1] + x * rng.uniform(0.1, 1.0, 2) + 0.01 * rng.normal(wide) ** 2

    return ng.while_loop(lambda s: np.sum(s[1]) + rng.uniform() < 6, body, (0, x))


def of_the_step(rng, x, **options):
    """Parameters, and branches that draw, follow from what steps compute."""

    def step(c, r):
        drawn = rng.normal(c, 0.1 + r) + rng.poisson(np.exp(c).detach())
        part = ng.cond(c[0] > 0.4, lambda c: c - rng.normal(), lambda c: c + rng.choice(5), c)
        return np.sin(drawn * x) + 0.3 * part, (drawn, rng.permutation(3))

    return ng.scan(step, x, ROWS, **options)


def whiles_in_steps(rng, x):
    def step(c, r):
        inner = (np.float64(0.0), c)
        z = ng.while_loop(
            lambda s: s[0] < 2, lambda s: (s[0] + abs(rng.normal()) * r, s[1] * 1.1 + x), inner
        )
        return 0.1 * z[1], z[0]

    return ng.scan(step, x, ROWS + 1.0)


def chosen_by_step(rng, x):
    branches = [
        lambda c: c * rng.normal(c),
        lambda c: ng.cond(c[1] > 1, lambda c: c + rng.exponential(1 + c**2), np.sin, c),
        lambda c: c * 2,
    ]
    return ng.scan(lambda c, k: (ng.switch(k, branches, c), rng.integers(9)), x, WHICH)


def until_known(rng, x):
    return ng.fori_loop(0, (10 * x[0]).astype(int), lambda i, c: c + x * rng.normal(), x)


def in_branches(rng, x):
    """Loops in branches, and parameters that are drawn themselves."""
    branches = [
        lambda c, x: ng.while_loop(lambda c: c < 0.7, lambda c: c + x * rng.uniform(0.5, 1.0), c),
        lambda c, x: c * x,
        lambda c, x: 0.1 * c + rng.normal(rng.poisson(3)) * x,
    ]

    def step(c, k):
        return ng.switch((3 * c).astype(int) + k, branches, c, x[0]), c

    return ng.scan(step, x[0], ng.arange(4) % 2)


WHICH = ng.arange(5) % 3
CARRIED = {
    "while": in_while,
    "step": of_the_step,
    "reverse": lambda rng, x: of_the_step(rng, x, reverse=True, save="all"),
    "sqrt": lambda rng, x: of_the_step(rng, x, save="sqrt"),
    "nested": whiles_in_steps,
    "switch": chosen_by_step,
    "branches": in_branches,
    "fori": until_known,
}


def total(f, rng):
    def value(x):
        return sum(np.sum(a) for a in ng.tree.leaves(f(rng, x)) if a.dtype.kind == "f")

    return value


DERIVED = {
    "values": lambda f: f,
    "gradient": lambda f: lambda rng, x: ng.grad(total(f, rng))(x),
    "tangents": lambda f: lambda rng, x: ng.jacfwd(total(f, rng))(x),
    "hessian": lambda f: lambda rng, x: ng.hessian(total(f, rng))(x),
    "lanes": lambda f: lambda rng, x: ng.vmap(lambda y: f(rng, x * y))(BATCH),
    "each": lambda f: lambda rng, x: ng.vmap(lambda y: ng.grad(total(f, rng))(x * y))(BATCH),
}


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("name", CARRIED)
def test_states_of_generators_are_carried(name, derived):
    """Eager code draws the same, and leaves its generators in the same states."""
    f = DERIVED[derived](CARRIED[name])
    found = []
    for jit in (ng.jit, lambda f: f):
        rng = ng.random.default_rng(5)
        ng.random.manual_seed(3)
        call = jit(lambda x, rng=rng: f(rng, x))
        leaves = [ng.tree.leaves(call(X)) for _ in range(2)]
        found.append([*leaves[0], *leaves[1], rng.random(), np.random.random()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM"])
def test_states_of_all_kinds_of_generators(kind):
    ours, theirs = (ng.random.default_rng(getattr(np.random, kind)(3)) for _ in range(2))

    def walk(rng, n):
        def body(c):
            return c + rng.random(dtype=np.float32) + rng.integers(9, dtype=np.int32)

        return ng.while_loop(lambda c: c < n, body, 0.0)

    compiled = ng.jit(lambda n: walk(ours, n))
    for n in (9.0, 0.0, 20.0):
        assert compiled(n) == walk(theirs, n)
    assert ours.random() == theirs.random()
    ours.random(dtype=np.float32), theirs.random(dtype=np.float32)  # half a word is left
    assert compiled(30.0) == walk(theirs, 30.0)


def test_a_carry_of_another_dtype_draws_no_more_numbers():
    def walk(rng, n):
        first = ng.scan(lambda c, _: (c + rng.normal(), c), 0, length=3)
        small = ng.while_loop(lambda c: c[0] < n, lambda c: c + rng.random(2), ng.zeros(2, "f4"))
        return (*first, small, ng.fori_loop(0, 3, lambda i, c: c * rng.choice(5) + i, 1j))

    ours, theirs = (ng.random.default_rng(3) for _ in range(2))
    for a, b in zip(ng.jit(lambda n: walk(ours, n))(4.0), walk(theirs, 4.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert ours.random() == theirs.random()
    numbers = np.random.default_rng(3).normal(size=3)
    np.testing.assert_allclose(walk(ng.random.default_rng(3), 0.0)[0], numbers.sum(), rtol=1e-12)


def test_numbers_without_gradients_refuse_parameters_that_a_step_computes():
    rng = ng.random.default_rng(0)
    for loop in (
        lambda x: ng.scan(lambda c, _: (c * rng.poisson(c), None), x, length=2)[0],
        lambda x: ng.scan(lambda c, _: (c * rng.poisson(x), None), x, length=2)[0],
        lambda x: ng.while_loop(lambda c: c < 3, lambda c: c * rng.poisson(c) + 1, x),
    ):
        for derive in (ng.grad, ng.jacfwd):
            with pytest.raises(NumgradError, match="to be differentiated"):
                ng.jit(derive(loop))(1.0)


def test_a_loop_that_fails_leaves_its_generator():
    rng = ng.random.default_rng(0)
    f = ng.jit(lambda x: ng.while_loop(lambda c: c < 9, lambda c: c + 1 + rng.poisson(5 - c), x))
    with pytest.raises(ValueError, match="lam < 0"):
        f(4.5)
    assert rng.random() == ng.random.default_rng(0).random()


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


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_in_bodies_are_none_for_derivatives_only(name):
    for derive in DERIVATIVES:
        found = derive(CONSTANTS[name])
        np.testing.assert_allclose(ng.jit(found)(0.7), found(0.7), rtol=1e-10, atol=1e-12)


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


LATE = """
import sys, warnings
import numpy as np, numgrad as ng

def looks(x):
    return x + isinstance(x, np.random.Generator)

def draws(x):  # as many words as the state has, after which it is where it was
    return x * np.random.random_sample(312)[-1]

imported = "numpy.random" in sys.modules
ng.jit(lambda x: 2 * x)(np.ones(2))
assert ("numpy.random" in sys.modules) == imported
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    ng.jit(globals()[sys.argv[1]])(np.ones(2))
print(*[w.message for w in found])
"""


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", ["draws", "looks"])
def test_a_function_that_imports_numpys_generators_is_warned_of_if_it_draws(name):
    done = subprocess.run(
        [sys.executable, "-c", LATE, name], capture_output=True, text=True, check=True
    )
    assert ("drew random numbers from np.random while" in done.stdout) == (name == "draws")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("normal", (0.0, -1.0)),
        ("uniform", (1.0, 0.0)),
        ("gamma", (2.0, -1.0)),
        ("weibull", (-1.0,)),
        ("beta", (-1.0, 1.0)),
        ("poisson", (-1.0,)),
        ("binomial", (5, 1.5)),
        ("integers", (5, 2)),
    ],
)
def test_parameters_that_no_distribution_has(name, given):
    rng = ng.random.default_rng(0)

    def draw(*given):
        return getattr(rng, name)(*given, size=3)

    def loss(*given):
        return np.sum(draw(*given))

    calls = [draw, ng.jit(draw)]
    if name in ("normal", "uniform", "gamma", "weibull", "beta"):
        calls += [ng.jit(ng.grad(loss)), ng.grad(ng.jit(loss))]
    for call in calls:
        with pytest.raises(ng.NumgradValueError, match=f"random.{name}: "):
            call(*given)


def test_a_negative_scale_in_a_step_is_no_mirrored_distribution():
    rng = ng.random.default_rng(0)

    def total(scale):
        return ng.scan(lambda c, _: (c + rng.normal(0.0, scale), c), 0.0, length=2)[0]

    slope = ng.jit(ng.value_and_grad(total))
    assert np.isnan(slope(-1.0)).all()
    assert np.isfinite(slope(1.0)).all()


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", ["gamma", "beta", "standard_t"])
def test_hessians_of_drawn_numbers_in_steps(name):
    def f(a):
        rng = ng.random.default_rng(0)
        given = (a, 2 * a) if name == "beta" else (a,)
        step = lambda c, _: (np.sin(c) * getattr(rng, name)(*given), None)  # noqa: E731
        return ng.scan(step, 1.0, length=2)[0]

    np.testing.assert_allclose(ng.jit(ng.hessian(f))(2.0), ng.hessian(f)(2.0), rtol=1e-9)


def test_what_has_no_derivative_is_refused_where_a_step_needs_it():
    def step(c, _):
        return ng.special.pdtr(c + 2, 2.0), None

    f = ng.jit(ng.grad(lambda c: ng.scan(step, c, length=2)[0]))
    with pytest.raises(
        ng.NumgradNotImplementedError, match="has no derivative with respect to 'k'"
    ):
        f(1.0)


class PlainLock(np.random.PCG64):
    """A generator as it is before NumPy 2.4: its lock cannot be taken twice."""

    def __init__(self, seed):
        super().__init__(seed)
        self.plain = threading.Lock()

    lock = property(lambda self: self.plain)


def test_generators_whose_lock_cannot_be_taken_twice():
    def walk(rng, x):
        return ng.while_loop(lambda c: c < 3, lambda c: c + x * rng.uniform(0.5, 1.0), 0.0)

    rng, plain = (ng.random.default_rng(kind(3)) for kind in (np.random.PCG64, PlainLock))
    expected = [walk(rng, 0.25), walk(rng, 0.25), rng.random()]
    f = ng.jit(lambda x: walk(plain, x))
    np.testing.assert_array_equal([f(0.25), f(0.25), plain.random()], expected)
