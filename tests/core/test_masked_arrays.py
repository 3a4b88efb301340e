"""Masked arrays are refused wherever an array is taken, as their masks would be lost."""

import numpy as np
import pytest

import numgrad as ng
from numgrad import stats

M = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])
X = np.array([1.0, 2.0, 3.0])
RNG = ng.random.default_rng(0)


def leaf():
    return ng.tensor(X, requires_grad=True)


def doubled(x):
    return x * 2.0


TAKERS = {
    "tensor": lambda: ng.tensor(M),
    "tensor of rows": lambda: ng.tensor([M, M]),
    "asarray": lambda: ng.asarray([M]),
    "full": lambda: ng.full(3, M),
    "full_like": lambda: ng.full_like(leaf(), M),
    "linspace": lambda: ng.linspace(M, 2.0, 3),
    "Parameter": lambda: ng.nn.Parameter(M),
    "histogram": lambda: ng.histogram(M),
    "logpdf": lambda: stats.norm.logpdf(M),
    "loc": lambda: stats.norm.logpdf(X, M),
    "index": lambda: leaf()[M > 1],
    "index of a write": lambda: ng.tensor(X).__setitem__(M > 1, 0.0),
    "backward": lambda: doubled(leaf()).backward(M),
    "grad": lambda: ng.grad(np.sum)(M),
    "jvp": lambda: ng.jvp(doubled, (X,), (M,)),
    "vjp": lambda: ng.vjp(doubled, X)[1](M),
    "hvp": lambda: ng.hvp(lambda x: np.sum(x**3))(X, M),
    "vmap": lambda: ng.vmap(doubled)(M),
    "jit": lambda: ng.jit(doubled)(M),
    "scan": lambda: ng.scan(lambda c, x: (c + x, x), ng.tensor(0.0), M),
    "carry": lambda: ng.scan(lambda c, x: (c + x, x), M, X),
    "fori_loop": lambda: ng.fori_loop(0, 2, lambda i, c: c * 2, M),
    "while_loop": lambda: ng.while_loop(lambda c: c[0] < 1, doubled, M),
    "map": lambda: ng.map(doubled, M),
    "odeint": lambda: ng.odeint(lambda y, t: -y, M, np.array([0.0, 1.0])),
    "times": lambda: ng.odeint(lambda y, t: -y, X, M),
    "solve_ivp": lambda: ng.solve_ivp(lambda t, y: -y, (0, 1), M),
    "quad": lambda: ng.quad(lambda x, a: np.sum(a) * x, 0, 1, args=(M,)),
    "ravel": lambda: ng.tree.ravel({"a": M}),
    "normal": lambda: RNG.normal(M),
    "scale": lambda: RNG.normal(0.0, M),
    "choice": lambda: RNG.choice(M, 2),
    "permutation": lambda: RNG.permutation(M),
    "shuffle": lambda: RNG.shuffle(M),
    "DataLoader": lambda: next(iter(ng.data.DataLoader(M, batch_size=2))),
    "default_collate": lambda: ng.data.default_collate([M, M]),
}


@pytest.mark.parametrize("name", TAKERS)
def test_masked_arrays_are_refused(name):
    with pytest.raises(TypeError, match=r"a masked array .*\.filled"):
        TAKERS[name]()
