"""SciPy's solvers with exact derivatives, against what else they are given, and what these cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Statement
from scipy import optimize

OPTIONS = {"maxfun": 100_000, "maxiter": 10_000}


def rosenbrock(np: Any) -> Callable:
    """Rosenbrock's function, for numgrad and what has NumPy's notation."""

    def f(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return f


def minimized(ng: Any, n: int, jit: bool) -> Statement:
    """A whole minimization by L-BFGS-B."""
    f, start = rosenbrock(np), np.tile([-1.2, 1.0], n // 2)

    def minimize() -> Any:
        return ng.minimize(f, start, method="L-BFGS-B", options=OPTIONS, jit=jit)

    return Statement("minimize()", {"minimize": minimize})


def minimized_with(value_and_grad: Callable, n: int) -> Statement:
    """The same by SciPy with a value and a gradient from elsewhere."""
    start = np.tile([-1.2, 1.0], n // 2)

    def minimize() -> Any:
        return optimize.minimize(
            value_and_grad, start, jac=True, method="L-BFGS-B", options=OPTIONS
        )

    return Statement("minimize()", {"minimize": minimize})


def fitted(problem: str, start: int, how: str) -> Statement:
    """A fit of NIST's: compiled, by SciPy with differences, or the demo's, or SciPy's like it."""
    import numgrad as ng
    from numgrad.cli import nist

    stated = nist.load(problem)
    b0 = stated.starts[start - 1]
    names = ", ".join(f"b{k}" for k in range(b0.size))
    model = eval(f"lambda x, {names}: model(({names}), x)", {"model": stated.model})
    fits = {
        "compiled": lambda: ng.curve_fit(model, stated.x, stated.y, b0, jit=True),
        "differences": lambda: optimize.curve_fit(model, stated.x, stated.y, b0),
        "demo": lambda: ng.least_squares(stated.residual, b0),
        "3-point": lambda: optimize.least_squares(
            stated.residual, b0, jac="3-point", method="lm", x_scale="jac",
            ftol=1e-15, xtol=1e-15, gtol=1e-15, max_nfev=5000,
        ),
    }  # fmt: skip
    return Statement("fit()", {"fit": fits[how]})
