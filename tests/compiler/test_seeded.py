"""Generators that a compiled function makes itself: each call and step begins anew."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradTraceError, NumgradTypeError

X = np.array([0.5, 2.0])
R = ng.random


def before_a_loop(x):
    rng = R.default_rng(5)
    y = ng.scan(lambda c, _: (c + rng.normal(size=2), None), x, length=3)[0]
    return y + rng.uniform(size=2)


def before_a_while(x):
    rng = R.default_rng(5)
    y = ng.while_loop(lambda c: c[0] < 5, lambda c: c + np.abs(rng.normal(size=2) * c[0]), x)
    return y + rng.uniform(size=2)


def copied(x):
    rng = R.default_rng(1)
    first = rng.normal(size=2)
    other = copy.deepcopy(rng)
    return x * first + other.gamma(2.0, size=2) + rng.normal(size=2)


def dropped(x):
    R.manual_seed(0)
    return ng.nn.functional.dropout(x * 1.0, 0.5, True)


def dropped_in_steps(x):
    def step(c, _):
        R.manual_seed(1)
        return c + ng.nn.functional.dropout(ng.ones(2), 0.5, True), None

    return ng.scan(step, x, length=3)[0]


SEEDED = {
    "call": lambda x: x * R.default_rng(3).normal(size=2),
    "state": lambda x: ng.stats.norm.rvs(x, random_state=3),
    "gradient": ng.grad(lambda x: np.sum(R.default_rng(1).normal(x, x) ** 2)),
    "map": lambda x: ng.map(lambda v: v + R.default_rng(0).normal(), x),
    "fori": lambda x: ng.fori_loop(0, 3, lambda i, c: c + R.default_rng(2).normal(c), x),
    "cond": lambda x: ng.cond(x[0] > 0, lambda: x * R.default_rng(2).normal(), lambda: x),
    "batch": ng.vmap(lambda v: v + R.default_rng(1).normal()),
    "permuted": lambda x: R.default_rng(0).permuted(ng.concatenate([x, 2 * x, 3 * x])),
    "choice": lambda x: x * R.default_rng(0).choice(5),
    "vector": lambda x: R.default_rng(0).multivariate_normal(x, np.eye(2)),
    **{f.__name__: f for f in (before_a_loop, before_a_while, copied, dropped, dropped_in_steps)},
}


@pytest.mark.parametrize("name", SEEDED)
def test_each_call_begins_anew(name):
    f = SEEDED[name]
    fast, expected = ng.jit(f), np.asarray(f(X))
    for _ in range(3):
        np.testing.assert_allclose(fast(X), expected, rtol=1e-14)


def test_numbers_are_numpys():
    fast = ng.jit(SEEDED["call"])
    expected = X * np.random.default_rng(3).normal(size=2)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: fast(X), range(40)):
            np.testing.assert_array_equal(found, expected)


def test_copy_of_one_outside():
    def run(f):
        rng = R.default_rng(7)

        def drawn(x):
            other = copy.deepcopy(rng)
            return x * other.normal(size=2) + rng.normal(size=2)

        fast = f(drawn)
        return [np.asarray(fast(X)) for _ in range(3)]

    np.testing.assert_array_equal(run(ng.jit), run(lambda f: f))


def test_one_that_is_kept_goes_on():
    kept = {}

    def drawn(x):
        if "rng" not in kept:
            kept["rng"] = R.default_rng(0)
        return x * kept["rng"].normal(size=2)

    fast, expected = ng.jit(drawn), np.random.default_rng(0)
    for _ in range(3):
        np.testing.assert_array_equal(fast(X), X * expected.normal(size=2))


def test_seeding_leaves_the_global_generator_as_eager_code():
    ng.jit(dropped)(X)
    found = np.random.random()
    dropped(X)
    assert found == np.random.random()


def test_shuffle_in_place_is_refused():
    rng, places = R.default_rng(0), np.arange(6.0)

    def shuffled(x):
        rng.shuffle(places)
        return x * places

    with pytest.raises(NumgradTraceError, match=r"random.shuffle: .* rng.permutation"):
        ng.jit(shuffled)(np.ones(6))
    np.testing.assert_array_equal(places, np.arange(6.0))


def test_generators_of_numpy():
    mine = R.default_rng(0)
    assert R.default_rng(mine) is mine
    numpys = np.random.default_rng(2)
    assert R.default_rng(numpys).generator is numpys
    expected = np.random.Generator(np.random.PCG64(5)).random(2)
    np.testing.assert_array_equal(R.Generator(np.random.PCG64(5)).random(2), expected)
    np.testing.assert_array_equal(R.default_rng(np.random.PCG64(5)).random(2), expected)
    with pytest.raises(NumgradTypeError, match=r"random\.Generator: the generator is one of"):
        R.Generator(5)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.PCG64])
def test_numpys_generator_made_inside(make):
    with pytest.raises(NumgradTraceError, match="was made while the function is traced"):
        ng.jit(lambda x: x * R.Generator(make(3)).normal())(X)
    outside = make(3)
    fast, expected = ng.jit(lambda x: x * R.Generator(outside).normal()), np.random.default_rng(3)
    for _ in range(2):
        np.testing.assert_array_equal(fast(X), X * expected.normal())


def test_seed_that_is_traced():
    with pytest.raises(NumgradTraceError, match=r"the seed is an array .*\(static_argnums"):
        ng.jit(lambda seed: R.default_rng(seed).normal())(3)
    with pytest.raises(NumgradTypeError, match=r"the seed is an array .* batched"):
        ng.vmap(lambda seed: R.default_rng(seed).normal())(np.arange(3))
    fast = ng.jit(lambda seed: R.default_rng(seed).normal(), static_argnums=0)
    assert fast(3) == np.random.default_rng(3).normal()
    assert R.default_rng(ng.tensor(3)).normal() == np.random.default_rng(3).normal()


@pytest.mark.parametrize("transform", [lambda f: f, ng.jit], ids=["eager", "compiled"])
def test_jacobians_draw_once(transform):
    for name in ("jacfwd", "jacrev", "jacobian"):
        rng, expected = R.default_rng(0), np.random.default_rng(0)

        def f(x, y, rng=rng):
            walk = ng.scan(lambda c, _: (c + rng.normal(), None), 0.0, length=3)[0]
            return x * rng.normal(size=2) + y * walk

        found = transform(getattr(ng, name)(f, (0, 1)))(X, X)
        walk = expected.normal(size=3).sum()
        np.testing.assert_allclose(found[1], walk * np.eye(2))
        np.testing.assert_allclose(found[0], np.diag(expected.normal(size=2)))
        assert rng.normal() == expected.normal()


def test_jacfwd_finds_generators_of_objects():
    class Model:
        def __init__(self):
            self.rng = R.default_rng(0)

    model, expected = Model(), np.random.default_rng(0)
    for _ in range(2):
        found = ng.jacfwd(lambda x: x * model.rng.normal(size=2))(X)
        np.testing.assert_array_equal(np.diag(found), expected.normal(size=2))
    rng, expected = R.default_rng(0), np.random.default_rng(0)
    jacobian = ng.autograd.functional.jacobian
    found = jacobian(
        lambda x: x * rng.normal(size=2), ng.ones(2), vectorize=True, strategy="forward-mode"
    )
    np.testing.assert_array_equal(np.diag(found), expected.normal(size=2))
    assert rng.normal() == expected.normal()


def test_jacfwd_in_a_step_and_around_own_generators():
    outside, expected = R.default_rng(0), np.random.default_rng(0)

    def f(x):
        inside = R.default_rng(4)
        first = inside.normal(size=2)
        grown = ng.while_loop(lambda c: c[0] < 9, lambda c: c * (1.5 + inside.uniform()), x)
        return x * outside.normal(size=2) * first + grown

    def step(c, _):
        return c + np.diagonal(ng.jacfwd(f)(X)), None

    def seen(size):
        inside = np.random.default_rng(4)
        first, grown = inside.normal(size=2), X.copy()
        while grown[0] < 9:
            grown = grown * (1.5 + inside.uniform())
        return expected.normal(size=size) * first + grown / X

    np.testing.assert_allclose(np.diag(ng.jit(ng.jacfwd(f))(X)), seen(2))
    found = ng.jit(lambda x: ng.scan(step, x, length=2)[0])(X)
    np.testing.assert_allclose(found, X + seen(2) + seen(2))
    assert outside.normal() == expected.normal()


def test_without_a_seed_each_call_has_other_numbers():
    fast = ng.jit(lambda x: x * R.default_rng().normal(size=2))
    assert not np.array_equal(fast(X), fast(X))
    steps = ng.jit(lambda x: ng.map(lambda v: v * R.default_rng().normal(), x))(np.ones(3))
    assert len(set(steps.tolist())) == 3
