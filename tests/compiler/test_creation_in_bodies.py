"""Arrays made like others inside of compiled loops and branches, also for batches."""

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating

CONSTANT = np.arange(6.0).reshape(2, 3)
TENSOR = ng.asarray(CONSTANT)
NUMBERS = np.arange(3.0)

LIKE = {
    "zeros_like": lambda a: np.zeros_like(a),
    "ones_like": lambda a: np.ones_like(a),
    "full_like": lambda a: np.full_like(a, 2.0),
    "of a dtype": lambda a: np.zeros_like(a, dtype=np.float32),
    "of a shape": lambda a: np.ones_like(a, shape=(3,)),
    "ng.zeros_like": lambda a: ng.zeros_like(a),
    "ng.full_like": lambda a: ng.full_like(a, 3.0),
    "ng.zeros": lambda a: ng.zeros(a.shape),
    "ng.ones": lambda a: ng.ones(np.shape(a)),
    "ng.full": lambda a: ng.full(a.shape, 3.0),
    "ng.eye": lambda a: ng.eye(len(a)),
    "ng.arange": lambda a: ng.arange(a.shape[0]),
    "copy": lambda a: np.copy(a),
    "broadcast_to": lambda a: np.broadcast_to(2.0, a.shape),
    "filled": lambda a: _filled(a),
}
OF = {
    "argument": lambda x, y: x,
    "other argument": lambda x, y: y,
    "part": lambda x, y: x[1:],
    "constant": lambda x, y: CONSTANT,
    "tensor": lambda x, y: TENSOR,
}
BODIES = {
    "scan": lambda make, s: ng.scan(
        lambda c, k: (np.sum(np.sin(make() * c)) * 0.1, make() + c), s, NUMBERS
    )[1],
    "cond": lambda make, s: ng.cond(
        s > 1, lambda s: np.sum(make() * s), lambda s: np.sum(np.sin(make()) * s), s
    ),
    "switch": lambda make, s: ng.switch(1, [lambda s: s, lambda s: np.sum(make() * s)], s),
    "fori": lambda make, s: ng.fori_loop(0, 3, lambda k, c: c + np.sum(make()) * c * 0.1, s),
    "while": lambda make, s: ng.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + np.sum(make()) * c[1] * 0.1), (0, s)
    )[1],
    "map": lambda make, s: ng.map(lambda t: np.sum(make() * t * s), NUMBERS),
    "cond in scan": lambda make, s: ng.scan(
        lambda c, k: (
            ng.cond(c > 0.9731, lambda c: np.sum(make() * c), lambda c: np.sum(make() + c), c)
            * 0.1,
            None,
        ),
        s,
        NUMBERS,
    )[0],
}
DERIVED = {
    "numbers": lambda f: lambda x, y, s: ng.vmap(lambda s: f(x, y[0], s))(s),
    "rows and numbers": lambda f: lambda x, y, s: ng.vmap(lambda y, s: f(x, y, s))(y, s),
    "rows": lambda f: lambda x, y, s: ng.vmap(lambda y: f(y, y, s[0]))(y),
    "gradient": lambda f: lambda x, y, s: ng.grad(lambda s: f(x, y[0], s))(s[1]),
    "gradients": lambda f: lambda x, y, s: ng.vmap(ng.grad(lambda s, y: f(x, y, s)))(s, y),
}


def _filled(a):
    made = np.zeros_like(a)
    made[0] = 2.0
    return made


def check(body, like, of, derived):
    def f(x, y, s):
        return np.sum(BODIES[body](lambda: LIKE[like](OF[of](x, y)), s))

    def by_hand(x, y, s):
        """For each example on its own, by eager code; gradients by differences."""
        call = {
            "numbers": lambda k: f(x, y[0], s[k]),
            "rows and numbers": lambda k: f(x, y[k], s[k]),
            "rows": lambda k: f(y[k], y[k], s[0]),
        }
        if derived in call:
            return [call[derived](k) for k in range(3)]
        pairs = [(y[0], s[1])] if derived == "gradient" else list(zip(y, s, strict=True))
        found = [(f(x, a, b + 1e-6) - f(x, a, b - 1e-6)) / 2e-6 for a, b in pairs]
        return found[0] if derived == "gradient" else found

    whole = DERIVED[derived](f)
    fast = ng.jit(whole)
    for n in (4, 5):
        x, y = np.linspace(0.5, 1.5, n), np.linspace(0.1, 2.0, 3 * n).reshape(3, n)
        given = x, y, np.array([0.5, 1.5, 2.5])
        np.testing.assert_allclose(fast(*given), by_hand(*given), rtol=1e-6, atol=1e-6)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("like", LIKE)
@pytest.mark.parametrize("body", BODIES)
def test_creation(body, like, of, derived):
    with emulating():
        check(body, like, of, derived)


@pytest.mark.parametrize("number", range(len(LIKE)))
def test_each_once(number):
    lists = [list(found) for found in (BODIES, LIKE, OF, DERIVED)]
    derived = list(DERIVED)[(number + number // 5) % 5]
    with emulating():
        check(*(found[number % len(found)] for found in lists[:3]), derived)
