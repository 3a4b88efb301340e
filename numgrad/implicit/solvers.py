"""Numbers that solve an equation: SciPy's solvers, or one of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.tree import leaves, map_leaves
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.implicit.unknowns import Residual, UnknownParts
from numgrad.tensors.tensor import Tensor

_POLISHED = 500
"""UnknownParts up to which steps of Newton's method improve what a solver found."""

_WITH_JACOBIAN = ("hybr", "lm")
_FEW = 1000
"""UnknownParts up to which minima are found with the whole Hessian."""


def own_solver(
    unknowns: UnknownParts, solver: Callable, function: Callable, start: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """What a solver of the caller's returns for ``(function, x0)``."""

    def seen(z: Any, *rest: Any) -> Any:
        if any(isinstance(leaf, Tensor) for leaf in leaves(z)):
            return function(z, *rest)
        with no_grad():
            return _numbers(function(z, *rest))

    found = solver(seen, unknowns.nested([a if a.ndim else a[()] for a in start]))
    if hasattr(found, "x") and hasattr(found, "success"):  # as SciPy says it
        if not found.success:
            raise failed(unknowns.name, getattr(found, "message", "no message"), found.x)
        found = found.x
    return unknowns.checked(found, "the solver")


def _numbers(value: Any) -> Any:
    """A nesting of Tensors as arrays."""
    return map_leaves(_as_array, value)


def _as_array(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    array = value._array
    return array if array.ndim else array[()]


def failed(name: str, message: Any, at: Any) -> NumgradRuntimeError:
    """The error for a solver that gave up."""
    with np.printoptions(threshold=10, precision=6):
        shown = str(np.asarray(at)) if np.ndim(at) <= 1 else f"an array of shape {np.shape(at)}"
    return NumgradRuntimeError(
        f"{name}: the solver stopped without a solution: {str(message).strip()}; it reached "
        f"{shown}. Start closer, or choose another solver"
    )


@contextmanager
def _known_method(name: str, method: str) -> Iterator[None]:
    """Call a solver of SciPy's, which refuses methods that it does not know."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ValueError as error:
        if not str(error).startswith("Unknown solver"):
            raise
        raise NumgradValueError(
            f"{name}: SciPy has no method {method!r} for this; the documentation of "
            "scipy.optimize lists them"
        ) from error


def check_solved(unknowns: UnknownParts, residual: Residual, start: Any, found: Any) -> None:
    """Raise if what a solver of the caller's returned is far from a solution."""
    before, after = (
        float(np.linalg.norm(unknowns.value(residual, unknowns.vector(z)))) for z in (start, found)
    )
    if not after <= 1e-3 * (1 + before):
        raise failed(
            unknowns.name,
            f"what has to be zero has norm {after:.3g} (at the start {before:.3g})",
            unknowns.vector(found),
        )


def scipy_root(
    unknowns: UnknownParts, residual: Residual, start: np.ndarray, method: str, tol: float | None
) -> np.ndarray:
    """A root by ``scipy.optimize.root``, with the exact Jacobian where the method takes one."""
    optimize: Any = import_module("scipy.optimize")
    jacobian = (lambda v: unknowns.jacobian(residual, v)) if method in _WITH_JACOBIAN else None
    with _known_method(unknowns.name, method):
        found = optimize.root(
            lambda v: unknowns.value(residual, v), start, jac=jacobian, method=method, tol=tol
        )
    v = np.asarray(found.x, np.float64).reshape(start.shape)
    return accepted(unknowns, residual, start, v, found)


def scipy_minimum(
    unknowns: UnknownParts,
    objective: Callable[[Sequence[Tensor]], Tensor],
    gradient: Residual,
    start: np.ndarray,
    method: str | None,
    tol: float | None,
) -> np.ndarray:
    """A minimum by ``scipy.optimize.minimize``, with exact derivatives."""
    optimize: Any = import_module("scipy.optimize")
    method = method or ("trust-exact" if start.size <= _FEW else "L-BFGS-B")
    wanted = method.lower()

    def value(v: np.ndarray) -> float:
        with no_grad():
            return float(objective([Tensor(a) for a in unknowns.arrays(v)])._array)

    given: dict[str, Any] = {}
    if wanted not in ("nelder-mead", "powell", "cobyla", "cobyqa"):
        given["jac"] = lambda v: unknowns.value(gradient, v)
    if wanted in ("newton-cg", "dogleg", "trust-exact", "trust-krylov", "trust-ncg"):
        given["hess"] = lambda v: unknowns.jacobian(gradient, v)
    with _known_method(unknowns.name, method):
        found = optimize.minimize(
            value, start, method=method, tol=1e-8 if tol is None else tol, **given
        )
    v = np.asarray(found.x, np.float64)
    return accepted(unknowns, gradient, start, v, found)


def accepted(
    unknowns: UnknownParts, residual: Residual, start: np.ndarray, v: np.ndarray, found: Any
) -> np.ndarray:
    """What a solver found, improved by Newton's method, if it is a solution."""
    r = unknowns.value(residual, v)
    for _ in range(3 if v.size <= _POLISHED and np.isfinite(r).all() else 0):
        if not r.any():
            break
        try:
            step = np.linalg.solve(unknowns.jacobian(residual, v), r)
        except np.linalg.LinAlgError:
            break
        moved = unknowns.value(residual, v - step)
        if not np.linalg.norm(moved) < np.linalg.norm(r):
            break
        v, r = v - step, moved
    eps = max(np.finfo(dtype).eps for dtype in unknowns.dtypes)
    scale = 1 + np.linalg.norm(unknowns.value(residual, start))
    if not found.success and not np.linalg.norm(r) <= np.sqrt(eps) * scale:
        raise failed(unknowns.name, found.message, v)
    return v


def iterated(
    unknowns: UnknownParts,
    function: Residual,
    start: Sequence[np.ndarray],
    tol: float | None,
    most: int = 10_000,
) -> list[np.ndarray]:
    """A fixed point, by applying the function until it changes nothing any more."""
    z = list(start)
    eps = max(np.finfo(dtype).eps for dtype in unknowns.dtypes)
    least_change = 4 * eps if tol is None else tol
    change, least, since = np.inf, np.inf, 0
    for _ in range(most):
        with no_grad(), np.errstate(all="ignore"):
            after = [y._array for y in function([Tensor(a) for a in z])]
        size = max(np.max(np.abs(a), initial=0.0) for a in after)
        change = max(
            np.max(np.abs(np.asarray(a) - b), initial=0.0) for a, b in zip(after, z, strict=True)
        )
        z = [np.asarray(a, dtype) for a, dtype in zip(after, unknowns.dtypes, strict=True)]
        if not np.isfinite(change):
            break
        if change <= least_change * (1 + size):
            return z
        since = 0 if change < least else since + 1
        least = min(least, change)
        if since > 20 and change <= 1e3 * least_change * (
            1 + size
        ):  # rounding goes round in circles
            return z
    raise failed(
        unknowns.name,
        f"applied over and over, the function still changes its argument by {change:.3g}, so it is "
        "no contraction near the start",
        unknowns.vector(z),
    )
