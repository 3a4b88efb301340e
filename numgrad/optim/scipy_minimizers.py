"""SciPy's minimizers over Tensors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.utils.tensors import Tensors, listed
from numgrad.optim.objective import ClosureConstraint, ClosureObjective, Point
from numgrad.optimize.bounds import bound
from numgrad.optimize.packing import Packing
from numgrad.tensors.tensor import Tensor

WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
HESSIAN_PRODUCTS = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
HESSIAN_MATRIX = frozenset({"dogleg", "trust-exact"})


def minimize(
    params: Tensors,
    closure: Callable[[], Any],
    method: str | Callable[..., Any] | None = None,
    *,
    bounds: Sequence[Any] | None = None,
    constraints: Any = (),
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
    callback: Callable[[Any], Any] | None = None,
    hess: Any = None,
) -> Any:
    """Minimize what ``closure`` returns over the values of Tensors, by ``scipy.optimize.minimize``.

    The parameters are packed into one vector of float64, complex ones as pairs of reals. SciPy gets
    value and gradient together, and exact second derivatives where a method takes them. The
    parameters are left at the point found.

    Parameters
    ----------
    params
        A Tensor or several, such as ``module.parameters()``: leaves, floating or complex, that
        require grad (for a method without gradients they need not).
    closure
        Computes the loss from the parameters and returns it, a Tensor with one real element. It
        takes no argument and runs with gradients enabled. It may call ``backward`` on the loss
        itself, as closures for ``Optimizer.step`` do: then the gradients it leaves in ``.grad`` are
        taken (which is empty when it is called), and methods of second order are not possible.
    method
        A method of ``scipy.optimize.minimize``. By default SLSQP with constraints, L-BFGS-B with
        bounds, BFGS otherwise. Nelder-Mead, Powell, COBYLA and COBYQA take no gradients, and none
        are computed; Newton-CG, trust-ncg, trust-krylov and trust-constr get products with the
        Hessian, dogleg and trust-exact the matrix.
    bounds
        For each parameter None or a pair ``(low, high)``; each of the two is None, a number, or an
        array that broadcasts to the parameter's shape.
    constraints
        A constraint or several. As a dictionary: ``{"type": "eq", "fun": f}`` for values that are
        to be 0, ``"ineq"`` for values not below 0. ``scipy.optimize.NonlinearConstraint(f, low,
        high)``. Here ``f``, like the closure, takes no argument and returns a Tensor computed from
        the parameters; it is differentiated by numgrad. A ``LinearConstraint`` is one on the packed
        vector.
    tol, options
        As in SciPy.
    callback
        Called after each iteration with an ``OptimizeResult`` that has at least ``x``, a list of
        Tensors, and ``fun``; the parameters have these values meanwhile. It may raise
        ``StopIteration`` to end the search there (not with TNC).
    hess
        ``"product"`` or ``"matrix"`` to choose how second derivatives are given where the method
        takes both; for trust-constr also what SciPy takes, such as ``scipy.optimize.BFGS()``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        As SciPy made it, but ``x`` is a list of Tensors, copies with the shapes and dtypes of the
        parameters. What belongs to all of them together, such as ``jac`` and ``hess_inv``, is about
        the packed vector.

    Raises
    ------
    NumgradTypeError
        If a parameter is no floating or complex Tensor, or the loss is not real.
    NumgradValueError
        If there are no parameters, one is given twice, is not a leaf, does not require grad where
        a gradient is needed; if bounds or constraints do not fit, or the loss is not one number.
    NumgradRuntimeError
        If the loss does not depend on the parameters, or the closure called ``backward`` and the
        method needs second derivatives.

    Notes
    -----
    After an exception, also one raised by the closure, parameters are what they were before the
    call. ``.grad`` of the parameters is never changed. Parameters of float32 are rounded at each
    evaluation: differences of the loss below its seventh digit are noise, so choose ``tol`` not
    below 1e-4 or so.

    Examples
    --------
    >>> import numgrad as ng
    >>> x, y = ng.tensor(-1.2, requires_grad=True), ng.tensor(1.0, requires_grad=True)
    >>> result = ng.optim.minimize([x, y], lambda: (1 - x) ** 2 + 100 * (y - x**2) ** 2)
    >>> result.success
    True
    >>> print(f"{x.item():.4f} {y.item():.4f}")
    1.0000 1.0000
    """
    kind = method.lower() if isinstance(method, str) else method
    tensors = _checked(params, needs_grad=kind not in WITHOUT_GRADIENT)
    optimize = importlib.import_module("scipy.optimize")  # not before it is needed: 0.2 s
    point = Point(tensors)
    objective = ClosureObjective(point, closure)
    with_gradient = kind not in WITHOUT_GRADIENT
    arguments: dict[str, Any] = {
        "method": method,
        "tol": tol,
        "options": None if options is None else dict(options),
        "bounds": None if bounds is None else optimize.Bounds(*_bounds(point.packing, bounds)),
        "constraints": _constraints(optimize, kind, point, constraints),
        "jac": True if with_gradient else None,
        **_second_order(kind, hess, objective),
    }
    if callback is not None:
        arguments["callback"] = _progress(optimize, kind, objective, callback)
    before = [t.detach().numpy().copy() for t in tensors]
    grads = [t.grad for t in tensors]
    try:
        function = objective.value_and_gradient if with_gradient else objective.value
        result = optimize.minimize(function, point.x.copy(), **arguments)
        if not np.isfinite(result.fun) and objective.best is not None:
            result.fun, result.x = objective.best
            result.success = False
        point.move(result.x)
        result.x = _copies(point)
    except BaseException:
        point.packing.store(before)
        raise
    finally:
        for tensor, grad in zip(tensors, grads, strict=True):
            tensor.grad = grad
    return result


def _checked(params: Tensors, needs_grad: bool) -> list[Tensor]:
    tensors = listed("minimize", params)
    if not sum(tensor.size for tensor in tensors):
        raise NumgradValueError("minimize: there is nothing to minimize over; give parameters")
    if len({id(tensor) for tensor in tensors}) != len(tensors):
        raise NumgradValueError("minimize: a parameter is given twice; give each once")
    for k, tensor in enumerate(tensors):
        if tensor.dtype.kind not in "fc":
            raise NumgradTypeError(
                f"minimize: parameter {k} has dtype {tensor.dtype}; parameters are floating or "
                "complex"
            )
        if not tensor.is_leaf:
            raise NumgradValueError(
                f"minimize: parameter {k}, of shape {tensor.shape}, is the result of an operation; "
                "give the leaves it was computed from, or detach() it"
            )
        if needs_grad and not tensor.requires_grad:
            raise NumgradValueError(
                f"minimize: parameter {k}, of shape {tensor.shape}, does not require grad; call "
                "requires_grad_() on it, or leave it out to keep its values"
            )
    return tensors


def _copies(point: Point) -> list[Tensor]:
    return [Tensor(array) for array in point.packing.unpack(point.x)]


# ---------------------------------------------------------------------------------------- bounds


def _bounds(packing: Packing, bounds: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the packed vector."""
    if len(bounds) != len(packing.tensors):
        raise NumgradValueError(
            f"minimize: got bounds for {len(bounds)} parameters, there are "
            f"{len(packing.tensors)}; give None or a pair (low, high) for each"
        )
    low, high = np.full(packing.size, -np.inf), np.full(packing.size, np.inf)
    for k, pair in enumerate(bounds):
        if pair is None:
            continue
        if packing.dtypes[k].kind == "c":
            raise NumgradTypeError(
                f"minimize: parameter {k} is complex, and complex numbers have no bounds; give None"
            )
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise NumgradValueError(
                f"minimize: the bounds of parameter {k} are None or a pair (low, high), got "
                f"{pair!r}"
            )
        place = packing.slices[k]
        low[place] = bound("minimize", packing, f"parameter {k}", k, pair[0], -np.inf)
        high[place] = bound("minimize", packing, f"parameter {k}", k, pair[1], np.inf)
        if not (low[place] <= high[place]).all():
            raise NumgradValueError(
                f"minimize: the bounds of parameter {k} leave no value, {pair!r}"
            )
    return low, high


# ----------------------------------------------------------------------------------- constraints


def _constraints(optimize: Any, kind: Any, point: Point, constraints: Any) -> Any:
    """The constraints with functions of the packed vector."""
    single = isinstance(constraints, Mapping) or not isinstance(constraints, Iterable)
    several: Iterable[Any] = [constraints] if single else constraints
    found = []
    for k, given in enumerate(several):
        if isinstance(given, optimize.LinearConstraint):
            found.append(given)
            continue
        if isinstance(given, optimize.NonlinearConstraint):
            closure, low, high, hess = given.fun, given.lb, given.ub, given.hess
            others: dict[str, Any] = {"keep_feasible": given.keep_feasible}
        elif (
            isinstance(given, Mapping)
            and given.keys() == {"type", "fun"}
            and given["type"] in ("eq", "ineq")
        ):
            closure, low, high = given["fun"], 0.0, 0.0 if given["type"] == "eq" else np.inf
            hess, others = None, {}
        else:
            raise NumgradValueError(
                f"minimize: constraint {k} is {given!r}; give a dictionary with 'type' ('eq' or "
                "'ineq') and 'fun', or a NonlinearConstraint or LinearConstraint of scipy.optimize"
            )
        constraint = ClosureConstraint(point, closure)
        if kind not in WITHOUT_GRADIENT:
            others["jac"] = constraint.jacobian
        if kind == "trust-constr":
            exact = hess is None or type(hess) is optimize.BFGS  # SciPy's default
            others["hess"] = constraint.hessian if exact else hess
        found.append(optimize.NonlinearConstraint(constraint.values, low, high, **others))
    return found or ()


# -------------------------------------------------------------------------- derivatives, progress


def _second_order(kind: Any, hess: Any, objective: ClosureObjective) -> dict[str, Any]:
    """What SciPy is given of second derivatives."""
    if hess is None:
        if kind in HESSIAN_PRODUCTS:
            hess = "product"
        elif kind in HESSIAN_MATRIX:
            hess = "matrix"
    if hess is None:
        return {}
    if isinstance(hess, str) and hess in ("product", "matrix"):
        if hess == "product":
            return {"hessp": objective.hessian_product}
        return {"hess": objective.hessian}
    return {"hess": hess}


def _progress(
    optimize: Any, kind: Any, objective: ClosureObjective, callback: Callable[[Any], Any]
) -> Callable[..., Any]:
    """The callback as SciPy calls it, by a keyword of that name or with the vector."""
    point = objective.point

    def progress(intermediate_result: Any) -> Any:
        shown = optimize.OptimizeResult()
        if isinstance(intermediate_result, optimize.OptimizeResult):
            shown.update(intermediate_result)
        else:
            shown.update(x=intermediate_result)
        point.move(shown.x)
        shown.x = _copies(point)
        if "fun" not in shown:
            shown.fun = objective.value(point.x)
        return callback(shown)

    # For TNC SciPy may print a callback with that keyword.
    return (lambda x: progress(x)) if kind == "tnc" else progress
