"""Bounds of unknowns, and constraints on functions of them, in any containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import BFGS, Bounds, LinearConstraint, NonlinearConstraint

from numgrad.core.tree import container_of, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optimize.unknowns import Packing, Unknowns
from numgrad.tensors.tensor import Tensor

Ends = tuple[np.ndarray, np.ndarray]
FORMS = "give None, a pair (low, high), or scipy.optimize.Bounds"


def bounds_of_elements(name: str, unknowns: Unknowns, bounds: Any) -> Bounds | None:
    """Bounds for ``minimize``.

    For an array a pair for each number, as in SciPy; for a nesting a nesting like it, with a pair
    or None for each array; for either pairs by name.
    """
    whole = unknowns.whole
    if bounds is None:
        return None
    if whole.is_array and not isinstance(bounds, Bounds | Mapping):
        pairs = list(bounds)
        if len(pairs) != whole.x0.size:
            raise NumgradValueError(
                f"{name}: got {len(pairs)} bounds for {whole.x0.size} unknowns; give a pair "
                "(low, high) for each, or scipy.optimize.Bounds(low, high)"
            )
        ends = [_pair(name, whole.element(k), pair) for k, pair in enumerate(pairs)]
        low = [-np.inf if end[0] is None else end[0] for end in ends]
        high = [np.inf if end[1] is None else end[1] for end in ends]
        return _checked(name, unknowns, low, high)
    nested = not isinstance(bounds, Bounds | Mapping)
    return _checked(name, unknowns, *_low_and_high(name, whole, bounds, nested))


def ends_of_arrays(name: str, unknowns: Unknowns, bounds: Any) -> Ends | None:
    """Bounds for ``least_squares``: a pair of lower and upper ones, each a number or like x0."""
    if bounds is None:
        return None
    limits = _checked(name, unknowns, *_low_and_high(name, unknowns.whole, bounds))
    if (limits.lb == limits.ub).any():
        k = int(np.argmax(limits.lb == limits.ub))
        raise NumgradValueError(
            f"{name}: both bounds of {unknowns.element(k)} are {limits.lb[k]}; fix it, as by "
            f"fixed={{{unknowns.element_labels[k]!r}: {limits.lb[k]}}}"
        )
    if not (np.isfinite(limits.lb).any() or np.isfinite(limits.ub).any()):
        return None
    return np.asarray(limits.lb), np.asarray(limits.ub)


def put_inside(name: str, whole: Unknowns, bounds: Any, places: list[int]) -> None:
    """Move starts that nobody chose into the bounds, where they are outside.

    To the middle, or by one inwards where one end is open, as SciPy's ``curve_fit`` does.
    """
    lows, highs = _ends(name, whole, *_low_and_high(name, whole, bounds))
    low, high = lows[places], highs[places]
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2
    inwards = np.where(np.isfinite(low), low + 1, high - 1)
    inwards = np.where(np.isfinite(low) & np.isfinite(high), middle, inwards)
    start = whole.x0[places]
    whole.x0[places] = np.where((low <= start) & (start <= high), start, inwards)


def _low_and_high(name: str, whole: Unknowns, bounds: Any, nested: bool = False) -> tuple[Any, Any]:
    """Lower and upper ends, each a number, None or for each; of a tuple a pair, if not nested."""
    if isinstance(bounds, Bounds):
        return bounds.lb, bounds.ub
    if _by_name(whole, bounds):
        return _named(name, whole, bounds)
    if not whole.is_array and (nested or type(bounds) is not tuple):
        return _nested(name, whole, bounds)
    if isinstance(bounds, list) and all(isinstance(pair, tuple) for pair in bounds):
        raise NumgradValueError(
            f"{name}: bounds is a list of pairs, as for ng.minimize; give a pair of all lower "
            "and all upper bounds, ([0, 1], [3, 5]), or pairs by name, {'a': (0, 3)}"
        )
    return _pair(name, "x0", bounds)


def _by_name(whole: Unknowns, bounds: Any) -> bool:
    """Whether bounds are given by names of parameters, which a nesting like the start is not."""
    if not isinstance(bounds, Mapping):
        return False
    if whole.is_array or whole.nesting is None:
        return True
    kind, keys, _ = whole.nesting
    if kind is dict:
        return not set(bounds) <= set(keys)
    return all(label in whole.places for label in bounds)


def _named(name: str, whole: Unknowns, bounds: Mapping[Any, Any]) -> Ends:
    low, high = np.full(whole.x0.size, -np.inf), np.full(whole.x0.size, np.inf)
    for label, pair in bounds.items():
        elements = whole.placed(name, label)
        if whole.packing.is_complex:
            raise NumgradTypeError(
                f"{name}: some parameters are complex, and complex numbers have no bounds; give "
                "bounds nested as the start"
            )
        ends = _pair(name, str(label), pair)
        for end, value in ((low, ends[0]), (high, ends[1])):
            if value is not None:
                end[elements] = np.broadcast_to(value, len(elements))
    return low, high


def _nested(name: str, whole: Unknowns, bounds: Any) -> Ends:
    pairs: dict[int, Any] = {}
    numbered = unflatten(whole.nesting, iter(range(len(whole.names))))
    _match(name, numbered, bounds, pairs, "bounds")
    packing = whole.packing
    low, high = np.full(packing.size, -np.inf), np.full(packing.size, np.inf)
    for k, pair in pairs.items():
        fill_bounds(name, packing, whole.names[k], k, pair, low, high)
    return low, high


def _match(name: str, like: Any, bounds: Any, matches: dict[int, Any], where: str) -> None:
    """The bounds of each array, by its number in ``like``; None, or a missing key, is no bound."""
    if bounds is None:
        return
    container = container_of(type(like))
    if container is None:
        matches[like] = bounds
        return
    keys, children = container.split(like)
    if isinstance(like, dict) and isinstance(bounds, dict) and set(bounds) <= set(like):
        bound_parts: Any = [bounds.get(key) for key in keys]
    elif not isinstance(like, dict) and container_of(type(bounds)) is not None:
        bound_parts = container_of(type(bounds)).split(bounds)[1]  # pyright: ignore
    else:
        bound_parts = ()
    if len(bound_parts) != len(children):
        raise NumgradValueError(
            f"{name}: {where} is {bounds!r}; nest bounds as x0, with None or a pair (low, high) in "
            "place of each array"
        )
    for k, (child, bound) in enumerate(zip(children, bound_parts, strict=True)):
        _match(name, child, bound, matches, where + container.path(keys, k))


def fill_bounds(
    name: str, packing: Packing, called: str, k: int, pair: Any, low: np.ndarray, high: np.ndarray
) -> None:
    """Write the bounds of one array into those of the vector."""
    if packing.dtypes[k].kind == "c":
        raise NumgradTypeError(
            f"{name}: {called} is complex, and complex numbers have no bounds; give None"
        )
    pair = _pair(name, called, pair)
    elements = packing.slices[k]
    low[elements] = bound(name, packing, called, k, pair[0], -np.inf)
    high[elements] = bound(name, packing, called, k, pair[1], np.inf)
    if not (low[elements] <= high[elements]).all():
        raise NumgradValueError(f"{name}: the bounds of {called} leave no value, {pair!r}")


def _pair(name: str, called: str, pair: Any) -> Any:
    if pair is None:
        return None, None
    if not hasattr(pair, "__len__") or len(pair) != 2:
        raise NumgradValueError(f"{name}: the bounds of {called} are {pair!r}; {FORMS}")
    return pair


def bound(
    name: str, packing: Packing, called: str, k: int, value: Any, missing: float
) -> np.ndarray:
    """One bound of an array, flat."""
    if value is None:
        value = missing
    array = np.asarray(value.detach() if isinstance(value, Tensor) else value, dtype=np.float64)
    try:
        array = np.broadcast_to(array, packing.shapes[k]).reshape(-1)
    except ValueError:
        raise NumgradValueError(
            f"{name}: a bound of shape {array.shape} does not broadcast to the shape "
            f"{packing.shapes[k]} of {called}"
        ) from None
    # Rounding to the dtype of the parameter must not lead outside: take the nearest number of that
    # dtype inside.
    with np.errstate(over="ignore"):
        rounded = array.astype(packing.dtypes[k])
    outside = rounded > array if missing > 0 else rounded < array
    inwards = rounded.dtype.type(-missing)
    return np.where(outside, np.nextafter(rounded, inwards), rounded)


def _checked(name: str, free: Unknowns, low: Any, high: Any) -> Bounds:
    """Bounds of the vector of the free numbers, if the start of all lies within them."""
    unknowns = free.whole
    lows, highs = _ends(name, unknowns, low, high)
    limits = free.restricted(name, lows, highs)
    inside = (lows <= unknowns.x0) & (unknowns.x0 <= highs)
    if not inside.all():
        k = int(np.argmin(inside))
        raise NumgradValueError(
            f"{name}: {unknowns.element(k)} is {unknowns.x0[k]} at the start, outside of its "
            f"bounds ({lows[k]}, {highs[k]}); start inside of them"
        )
    return Bounds(*limits)  # pyright: ignore


def _ends(name: str, unknowns: Unknowns, low: Any, high: Any) -> Ends:
    """Bounds of the vector of all numbers."""
    packing = unknowns.packing
    ends = []
    for value, missing in ((low, -np.inf), (high, np.inf)):
        array = np.asarray(missing if value is None else value, np.float64)
        if array.size not in (1, packing.size) and unknowns.is_array:
            array = bound(name, packing, unknowns.names[0], 0, array, missing)
        if array.size not in (1, packing.size):
            raise NumgradValueError(
                f"{name}: a bound of shape {array.shape} for {packing.size} unknowns; give a "
                "number, or one for each"
            )
        ends.append(np.broadcast_to(array.reshape(-1), (packing.size,)).copy())
    lows, highs = ends
    if not (lows <= highs).all():
        k = int(np.argmin(lows <= highs))
        raise NumgradValueError(
            f"{name}: the bounds of {unknowns.element(k)} leave no value, ({lows[k]}, {highs[k]})"
        )
    return lows, highs


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
    >>> result = ng.minimize(lambda x: np.sum((x - [2, 1]) ** 2), [0.5, 0.5], constraints=simplex)
    >>> bool(np.allclose(result.x, [1, 0], atol=1e-6))
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
    result = []
    for k, constraint in enumerate(_several(constraints)):
        if isinstance(constraint, LinearConstraint):
            result.append(_one_sided(constraint) if kind == "cobyla" else constraint)
            continue
        described = _constraint(name, k, constraint)
        values = made(described.function, described.args)
        low, high = _limits(name, k, described, values.fun(values.unknowns.x0).size)
        others: dict[str, Any] = {"keep_feasible": described.keep_feasible}
        if kind not in WITHOUT_GRADIENT:
            others["jac"] = values.jac
        if kind == "trust-constr":
            exact = described.hess is None or type(described.hess) is BFGS  # SciPy's default
            others["hess"] = values.hess if exact else described.hess
        limited = NonlinearConstraint(values.fun, low, high, **others)
        result.append(_one_sided(limited) if kind == "cobyla" else limited)
    return result or ()


def has_linear(constraints: Any) -> bool:
    """Whether some are about the vector rather than functions."""
    return any(isinstance(each, LinearConstraint) for each in _several(constraints))


def _several(constraints: Any) -> Any:
    single = isinstance(constraints, Mapping | Constraint) or not isinstance(constraints, Iterable)
    return [constraints] if single else constraints


def _one_sided(constraint: Any) -> NonlinearConstraint:
    """The same without equations, which COBYLA does not take before SciPy 1.16."""

    def above(x: np.ndarray) -> np.ndarray:
        values = np.ravel(
            constraint.A @ x if isinstance(constraint, LinearConstraint) else constraint.fun(x)
        )
        low, high = (np.broadcast_to(end, values.shape) for end in (constraint.lb, constraint.ub))
        from_low, from_high = np.isfinite(low), np.isfinite(high)
        return np.concatenate([(values - low)[from_low], (high - values)[from_high]])

    return NonlinearConstraint(above, 0.0, np.inf, keep_feasible=constraint.keep_feasible)


def _constraint(name: str, k: int, constraint: Any) -> Constraint:
    if isinstance(constraint, Constraint):
        return constraint
    if isinstance(constraint, NonlinearConstraint):
        return Constraint(
            constraint.fun, constraint.lb, constraint.ub, constraint.keep_feasible, constraint.hess
        )
    if (
        isinstance(constraint, Mapping)
        and {"type", "fun"} <= constraint.keys() <= {"type", "fun", "args", "jac"}
        and str(constraint["type"]).lower() in ("eq", "ineq")
    ):
        high = 0.0 if constraint["type"].lower() == "eq" else np.inf
        return Constraint(constraint["fun"], 0.0, high, args=constraint.get("args", ()))
    raise NumgradValueError(
        f"{name}: constraint {k} is {constraint!r}; give ng.constraint(g, low, high), a dictionary "
        "with 'type' ('eq' or 'ineq'), 'fun' and perhaps 'args', or a NonlinearConstraint "
        "or LinearConstraint of scipy.optimize"
    )


def _limits(name: str, k: int, constraint: Constraint, count: int) -> list[Any]:
    """The ends for each of the values of a constraint."""
    ends = [np.asarray(end, np.float64) for end in (constraint.low, constraint.high)]
    for end in ends:
        if end.size not in (1, count):
            raise NumgradValueError(
                f"{name}: constraint {k} has bounds of shape {end.shape}, and its function returns "
                f"{count} numbers; give one number, or one for each"
            )
    return [end.ravel() if end.size == count else end.ravel()[0] for end in ends]
