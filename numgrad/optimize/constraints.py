"""Constraints: functions of the unknowns that stay between bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import BFGS, LinearConstraint, NonlinearConstraint

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor

WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})


@dataclass(frozen=True)
class Constraint:
    """``low <= function(x) <= high``; made by ``ng.constraint``."""

    function: Callable[..., Any]
    low: Any = 0.0
    high: Any = np.inf
    keep_feasible: Any = False
    hess: Any = None
    args: Any = ()


def constraint(
    g: Callable[..., Any], lb: Any = 0.0, ub: Any = np.inf, *, keep_feasible: bool = False
) -> Constraint:
    """A constraint for ``ng.minimize``: ``lb <= g(x) <= ub``, with exact derivatives.

    Parameters
    ----------
    g
        ``g(x)`` takes what the objective takes, and returns real numbers: an array or several.
    lb, ub
        Numbers, or arrays with one for each that ``g`` returns. Equal ones make an equation; one
        that is infinite is none.
    keep_feasible
        Keep to it in between too, where the method can (trust-constr).

    Returns
    -------
    Constraint
        For ``constraints=``, alone or in a list.

    Raises
    ------
    NumgradTypeError
        If ``g`` cannot be called.
    NumgradValueError
        If the bounds leave no value.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> simplex = [ng.constraint(np.sum, 1, 1), ng.constraint(lambda x: x, 0)]
    >>> found = ng.minimize(lambda x: np.sum((x - [2, 1]) ** 2), [0.5, 0.5], constraints=simplex)
    >>> bool(np.allclose(found.x, [1, 0], atol=1e-6))
    True
    """
    if not callable(g):
        raise NumgradTypeError(
            f"constraint: takes a function of the unknowns, got a {type(g).__name__}"
        )
    low, high = (
        np.asarray(end.detach().numpy() if isinstance(end, Tensor) else end, np.float64)
        for end in (lb, ub)
    )
    if not np.all(low <= high):
        raise NumgradValueError(f"constraint: no value is between the bounds {lb!r} and {ub!r}")
    return Constraint(g, low[()], high[()], keep_feasible)


def constraints_for_scipy(
    name: str, kind: Any, constraints: Any, made: Callable[[Callable[..., Any], Any], Any]
) -> Any:
    """Constraints with functions of the vector; ``made`` gives ``Values`` of one."""
    single = isinstance(constraints, Mapping | Constraint) or not isinstance(constraints, Iterable)
    several: Any = [constraints] if single else constraints
    found = []
    for k, given in enumerate(several):
        if isinstance(given, LinearConstraint):
            found.append(_one_sided(given) if kind == "cobyla" else given)
            continue
        wanted = _constraint(name, k, given)
        values = made(wanted.function, wanted.args)
        low, high = _limits(name, k, wanted, values.fun(values.unknowns.x0).size)
        others: dict[str, Any] = {"keep_feasible": wanted.keep_feasible}
        if kind not in WITHOUT_GRADIENT:
            others["jac"] = values.jac
        if kind == "trust-constr":
            exact = wanted.hess is None or type(wanted.hess) is BFGS  # SciPy's default
            others["hess"] = values.hess if exact else wanted.hess
        limited = NonlinearConstraint(values.fun, low, high, **others)
        found.append(_one_sided(limited) if kind == "cobyla" else limited)
    return found or ()


def _one_sided(given: Any) -> NonlinearConstraint:
    """The same without equations, which COBYLA does not take before SciPy 1.16."""

    def above(x: np.ndarray) -> np.ndarray:
        values = np.ravel(given.A @ x if isinstance(given, LinearConstraint) else given.fun(x))
        low, high = (np.broadcast_to(end, values.shape) for end in (given.lb, given.ub))
        from_low, from_high = np.isfinite(low), np.isfinite(high)
        return np.concatenate([(values - low)[from_low], (high - values)[from_high]])

    return NonlinearConstraint(above, 0.0, np.inf, keep_feasible=given.keep_feasible)


def _constraint(name: str, k: int, given: Any) -> Constraint:
    if isinstance(given, Constraint):
        return given
    if isinstance(given, NonlinearConstraint):
        return Constraint(given.fun, given.lb, given.ub, given.keep_feasible, given.hess)
    if (
        isinstance(given, Mapping)
        and {"type", "fun"} <= given.keys() <= {"type", "fun", "args", "jac"}
        and str(given["type"]).lower() in ("eq", "ineq")
    ):
        high = 0.0 if given["type"].lower() == "eq" else np.inf
        return Constraint(given["fun"], 0.0, high, args=given.get("args", ()))
    raise NumgradValueError(
        f"{name}: constraint {k} is {given!r}; give ng.constraint(g, low, high), a dictionary with "
        "'type' ('eq' or 'ineq'), 'fun' and perhaps 'args', or a NonlinearConstraint "
        "or LinearConstraint of scipy.optimize"
    )


def _limits(name: str, k: int, wanted: Constraint, count: int) -> list[Any]:
    """The ends for each of the values of a constraint."""
    ends = [np.asarray(end, np.float64) for end in (wanted.low, wanted.high)]
    for end in ends:
        if end.size not in (1, count):
            raise NumgradValueError(
                f"{name}: constraint {k} has bounds of shape {end.shape}, and its function returns "
                f"{count} numbers; give one number, or one for each"
            )
    return [end.ravel() if end.size == count else end.ravel()[0] for end in ends]
