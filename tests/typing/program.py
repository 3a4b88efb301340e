"""A user's program as type checkers see it: mypy and pyright accept it, and what they infer holds.

It is not run; ``mypy`` and ``pyright`` without arguments read it. A line with ``type: ignore`` is
an error that both must find, since a comment that is not needed is an error as well.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import numgrad as ng
from numgrad.optimize.curve_fit import FittedCurve
from numgrad.optimize.results import OptimizeResult

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]
Array = np.ndarray[tuple[Any, ...], np.dtype[Any]]
a, t = np.ones(3), ng.ones(3)
weights = {"w": a, "b": t}

# --------------------------------------------------------------------------------- Tensors

assert_type(ng.tensor([1.0], requires_grad=True), ng.Tensor)
ng.tensor([1.0], requires_gard=True)  # type: ignore
ng.zeros(3, requires_gard=True)  # type: ignore
assert_type(t * np.ones(3) + 1.0, ng.Tensor)
assert_type(2.0 / -t @ t, ng.Tensor)
assert_type(t > 0, ng.Tensor)
assert_type(t[0].sum(axis=0, keepdims=True).reshape(1, 1).T, ng.Tensor)
assert_type(ng.exp(a) + ng.stack([t, t]), ng.Tensor)
assert_type(ng.split(t, 3), tuple[ng.Tensor, ...])
assert_type(t.shape, tuple[int, ...])
assert_type(t.grad, ng.Tensor | None)
assert_type(ng.ops["tanh"].asm(), str)
np.sum(np.exp(t) * np.sin(t)).backward()
np.mean((np.ones((2, 3)) @ t - 1.0) ** 2).backward()
assert_type([float(row) for row in t if row.requires_grad], list[float])
t.backwards()  # type: ignore


@ng.elementwise()
def bell(x):
    return np.exp(-(x * x))


bell.vjp(x=lambda g, x, y: -2 * g * x * y)

# ----------------------------------------------------------------------------- derivatives


def loss(x: ng.Tensor) -> ng.Tensor:
    return ng.sum(x * x)


def energy(x: NDArray[np.float64], k: float = 2.0) -> float:
    return float(np.sum(x**2)) * k


def plain(x, k=2):  # as most programs are
    return np.sum(x**2) * k


assert_type(ng.grad(loss)(t), ng.Tensor)
assert_type(ng.grad(loss)(a), Vector)
assert_type(ng.grad(plain)(a, k=3), Vector)
assert_type(ng.grad(plain)(2.0), np.float64)
assert_type(ng.grad(energy)({"a": a}), dict[str, Vector])
assert_type(ng.value_and_grad(loss)(t), tuple[ng.Tensor, ng.Tensor])
assert_type(ng.value_and_grad(loss)(a), tuple[np.floating[Any], Vector])
assert_type(ng.value_and_grad(energy)(a, 3.0), tuple[float, Vector])
assert_type(ng.value_and_grad(energy)(2.0), tuple[float, np.float64])
value, gradient = ng.value_and_grad(energy, argnums=(0, 1))(a, 2.0)
assert_type(ng.hessian(energy)(a), Array)
assert_type(ng.hessian(loss)(t), ng.Tensor)
assert_type(ng.jacobian(plain)(a), Array)
ng.grad(loss, argnum=1)  # type: ignore

# -------------------------------------------------------------------------------------- jit

assert_type(ng.jit(loss)(t), ng.Tensor)
assert_type(ng.jit(loss)(a), Array)
assert_type(ng.jit(energy)(a, k=3.0), float)
assert_type(ng.jit(parallel=False)(energy)(a), float)
assert_type(ng.jit(ng.value_and_grad(energy))(a), tuple[float, Vector])
assert_type(ng.jit(ng.grad(loss))(a), Vector)
assert_type(ng.jit(ng.hessian(loss), dynamic=False)(t), ng.Tensor)
assert_type(ng.jit(ng.grad(loss)).report().splitlines(), list[str])
assert_type(ng.vmap(loss)(a), Array)
assert_type(ng.vmap(ng.jit(loss))(t), ng.Tensor)
ng.jit(energy)(a, k="three")  # type: ignore
ng.jit(energy, dynamics=False)  # type: ignore
ng.jit(energy).reports()  # type: ignore


@ng.jit
@ng.value_and_grad
def step(x: ng.Tensor, rate: float) -> ng.Tensor:
    return ng.sum(ng.exp(-rate * x))


assert_type(step(a, 0.1), tuple[np.floating[Any], Vector])

# ----------------------------------------------------------------------------------- solvers

r = ng.minimize(plain, a, method="BFGS")
assert_type(r, OptimizeResult[Vector])
assert_type(r.x, Vector)
assert_type(r.success, bool)
assert_type(r.nfev, int)
assert_type(ng.minimize(plain, [1.0, 2.0]).x, NDArray[np.float64])
assert_type(ng.minimize(plain, {"a": a}).x, dict[str, Vector])
assert_type(ng.minimize(plain, 1.0).x, np.float64)
assert_type(ng.least_squares(plain, a).cost, float)
assert_type(ng.root(plain, t).x, ng.Tensor)
ng.minimize(plain, a, solver="BFGS")  # type: ignore
fit = ng.curve_fit(lambda x, a, b: a * np.exp(-b * x), a, a)
assert_type(fit, FittedCurve)
assert_type(fit.summary(), str)
assert_type(fit.confidence_band(a)[0], np.ndarray)

# ------------------------------------------------------------------- modules, distributions


class Net(ng.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = ng.nn.Linear(3, 2)

    def forward(self, x: ng.Tensor, scale: float = 1.0) -> ng.Tensor:
        return ng.tanh(self.layer(x)) * scale


assert_type(ng.nn.Linear(3, 2)(a), ng.Tensor)
assert_type(Net()(t, scale=2.0), ng.Tensor)
assert_type(ng.jit(Net())(a), Array)
Net()(t, scales=2.0)  # type: ignore
ng.nn.Linear(3, 2, baias=False)  # type: ignore
assert_type(ng.stats.norm.logpdf(t, loc=0.5), ng.Tensor)
assert_type(ng.stats.gamma.rvs(2.0, size=3), ng.Tensor)
ng.stats.norm.cdf(a, lok=0.5)  # type: ignore
ng.stats.gamma.mean()  # type: ignore
