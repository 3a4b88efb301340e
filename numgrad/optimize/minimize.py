"""``ng.minimize``: SciPy's minimizers with exact derivatives of functions of any containers."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import optimize

from numgrad.errors import NumgradValueError
from numgrad.optimize.constraints import (
    WITHOUT_GRADIENT,
    bounds_of_elements,
    constraints_for_scipy,
    has_linear,
)
from numgrad.optimize.objective import Objective, Values, made
from numgrad.optimize.parameter_space import free_unknowns
from numgrad.optimize.results import OptimizeResult, X, refuses
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch

HESSIAN_PRODUCTS = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
HESSIAN_MATRIX = frozenset({"dogleg", "trust-exact"})
TRUST_REGIONS = HESSIAN_MATRIX | {"trust-ncg", "trust-krylov"}
FINER = {"newton-cg": {"xtol": 1e-8}} | {kind: {"gtol": 1e-8} for kind in TRUST_REGIONS}
SCIPYS_GTOL = 1e-4
"""Exact second derivatives are good for more digits than SciPy's defaults ask for. With these 3 of
NIST's 14 problems get fewer than 4 by trust-exact, with ours 1; and Newton-CG, whose steps may add
up to 1e-5 for each unknown, stops 0.4 from the minimum of Rosenbrock's function of 10,000."""
CONSTRAINED = frozenset({"cobyla", "cobyqa", "slsqp", "trust-constr"})
BOUNDED = CONSTRAINED | {"nelder-mead", "powell", "l-bfgs-b", "tnc"}
METHODS = (
    "Nelder-Mead", "Powell", "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "COBYLA", "COBYQA",
    "SLSQP", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov",
)  # fmt: skip


@refuses(
    jac="gradients are exact, of f alone; leave it out", hessp="second derivatives are exact",
    fun="the function comes first, as f",
)  # fmt: skip
def minimize(
    f: Callable[..., Any],
    x0: X,
    args: Any = (),
    method: str | Callable[..., Any] | None = None,
    *,
    bounds: Any = None,
    fixed: Any = None,
    tie: Mapping[Any, Any] | None = None,
    constraints: Any = (),
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
    callback: Callable[[Any], Any] | None = None,
    hess: Any = None,
    jit: bool = False,
    progress: bool = False,
    on_interrupt: str = "raise",
) -> OptimizeResult[X]:
    """Minimize a function of arrays by ``scipy.optimize.minimize``, with exact derivatives.

    Parameters
    ----------
    f
        ``f(x, *args)`` returns one real number; ``x`` is nested and shaped as the start, with
        Tensors in it.
    x0
        The start: an array, or a nesting of arrays (``ng.tree``), of float32, float64 or complex
        numbers; integers become float64. A list or tuple of numbers is an array, as in SciPy.
    args
        Further arguments of ``f``, a tuple.
    method
        Any of ``scipy.optimize.minimize``, or a function like those. By default SLSQP with
        constraints, L-BFGS-B with bounds, BFGS otherwise. Nelder-Mead, Powell, COBYLA and COBYQA
        take no gradients, and none are computed; Newton-CG, trust-ncg, trust-krylov and
        trust-constr get products with the Hessian, dogleg and trust-exact the matrix.
    bounds
        For an array a pair ``(low, high)`` for each number, None for an end that is open; for a
        nesting one like it, with a pair (or None) in place of each array, whose ends broadcast to
        it; pairs by name, as for ``fixed``; or ``scipy.optimize.Bounds``. The start lies within
        them.
    fixed
        Values of parameters that are not solved for, by name, or a list of names to keep at their
        start. Names are keys, fields and indices as one writes them, ``"a"``, ``"peak.at"``,
        ``"rates[0]"``; of one array ``"x[0]"``, or its index.
    tie
        What others are by name: an expression of parameters, numbers, arithmetic and elementwise
        functions, ``{"c": "2 * sqrt(a)"}``, or a function, ``{"c": lambda a: 2 * a}``, whose
        parameters have their names. Derivatives go through it.
    constraints
        What ``ng.constraint`` makes, or SciPy's dictionaries and ``NonlinearConstraint`` with
        functions of ``x``; one or several. A ``LinearConstraint`` is one on the vector.
    tol, options
        As in SciPy. Without either, the trust regions dogleg, trust-ncg, trust-exact and
        trust-krylov go on until the gradient is below 1e-8, Newton-CG until steps are below 1e-8;
        where rounding ends them before, with a gradient below 1e-4, they have succeeded.
    callback
        Called after each iteration with an ``OptimizeResult`` that has ``x``, nested as the start,
        and ``fun``. It may raise ``StopIteration`` to end there (not with TNC).
    hess
        ``"product"`` or ``"matrix"`` to choose how second derivatives are given where a method
        takes both; for trust-constr also what SciPy takes, such as ``scipy.optimize.BFGS()``.
    jit
        Compile what is evaluated, once for each function: the next call finds it compiled.
    progress
        Show evaluations and the best value: on stderr, in a notebook on stdout.
    on_interrupt
        ``"return"`` gives the best point so far, with ``success`` False, when Ctrl-C is pressed.

    Returns
    -------
    OptimizeResult
        ``scipy.optimize.OptimizeResult`` as SciPy made it, but ``x`` is nested, shaped and of the
        dtypes of the start: arrays for arrays, Tensors for Tensors. What belongs to all numbers
        together, such as ``jac`` and ``hess_inv``, is about the vector of free ones, of float64,
        complex ones as pairs of reals. A solver that finds nothing says so in ``success`` and
        ``message``, and ``x`` is where it got to.

    Raises
    ------
    NumgradTypeError
        If the start has something besides numbers in it, or ``f`` does not return real numbers.
    NumgradValueError
        If ``f`` returns more than one number, is not finite at the start, there is no such method,
        or bounds or constraints do not fit.
    NumgradRuntimeError
        If the result does not depend on ``x``, or the solver fails with an error.

    Notes
    -----
    Value and gradient cost one evaluation of ``f`` a point, also where SciPy asks for them one by
    one. Numbers of float32 are rounded at each evaluation: differences of ``f`` below its seventh
    digit are noise, so choose ``tol`` not below 1e-4 or so.

    The solution is an array of numbers: it has no gradient by what ``f`` closes over, and counts as
    constant inside of ``ng.grad``. Where that is wanted, see ``ng.implicit.argmin``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def distance(p):
    ...     return np.sum((p["a"] - [1, 2]) ** 2) + (p["b"] - 3) ** 4
    >>> result = ng.minimize(distance, {"a": np.zeros(2), "b": 2.0}, method="trust-exact")
    >>> result.success, bool(np.allclose(result.x["a"], [1, 2])), f"{result.x['b']:.1f}"
    (True, True, '3.0')
    """
    if isinstance(method, str) and method.lower() not in map(str.lower, METHODS):
        raise NumgradValueError(
            f"minimize: there is no method {method!r}; choose one of {', '.join(METHODS)}"
        )
    for what, value, accepting in (
        ("bounds", bounds, BOUNDED), ("constraints", constraints or None, CONSTRAINED),
    ):  # fmt: skip
        if isinstance(method, str) and value is not None and method.lower() not in accepting:
            raise NumgradValueError(
                f"minimize: {method} takes no {what}; choose one of "
                + ", ".join(m for m in METHODS if m.lower() in accepting)
            )
    watch = Watch("minimize", progress, on_interrupt)
    unknowns = free_unknowns("minimize", Unknowns("minimize", x0), fixed, tie)
    if unknowns is not unknowns.whole and has_linear(constraints):
        raise NumgradValueError(
            "minimize: a LinearConstraint is about the vector of all numbers, of which some are "
            "fixed or tied; give ng.constraint(lambda x: ..., low, high)"
        )
    objective = made("minimize", f, unknowns, args, jit, watch)
    limits = bounds_of_elements("minimize", unknowns, bounds)

    def values(function: Callable[..., Any], args: Any) -> Values:
        return Values("minimize (a constraint)", function, unknowns, args, jit, Watch("minimize"))

    result = search(objective, method, limits, constraints, values, tol, options, callback, hess)
    return OptimizeResult(result, x=unknowns.shown(result.x))


def search(
    objective: Objective,
    method: Any,
    bounds: Any,
    constraints: Any,
    values: Callable[[Callable[..., Any], Any], Any],
    tol: float | None,
    options: Mapping[str, Any] | None,
    callback: Callable[[Any], Any] | None,
    hess: Any,
) -> Any:
    """Run the solver of SciPy, ``x`` as a vector."""
    kind = method.lower() if isinstance(method, str) else method
    watch = objective.watch
    objective.gradients = kind not in WITHOUT_GRADIENT
    second = _second_order(kind, hess, objective)
    objective.second_order = any(getattr(f, "__self__", None) is objective for f in second.values())
    options = {} if options is None else dict(options)
    default = FINER.get(kind, {}) if tol is None else {}
    finer = bool(default) and not default.keys() & options.keys()
    if finer:
        options |= default
    arguments: dict[str, Any] = {
        "method": method,
        "tol": tol,
        "options": options,
        "bounds": bounds,
        "constraints": constraints_for_scipy(watch.name, kind, constraints, values),
        "jac": objective.jac if objective.gradients else None,
        **second,
    }
    if callback is not None:
        arguments["callback"] = _progress(kind, objective, callback)

    def interrupted(value: float, x: np.ndarray) -> Any:
        return watch.interrupted(x, fun=value)

    result = watch.run(
        lambda: optimize.minimize(objective.fun, objective.x0.copy(), **arguments), interrupted
    )
    if not np.isfinite(result.fun) and watch.best is not None:
        result.fun, result.x = watch.best
        result.success = False
    if finer and not result.success and np.linalg.norm(result.get("jac", np.inf)) < SCIPYS_GTOL:
        result.success = True
    return result


def _second_order(kind: Any, hess: Any, objective: Objective) -> dict[str, Any]:
    """Arguments for SciPy's solver with second derivatives."""
    if hess is None:
        if kind in HESSIAN_PRODUCTS:
            hess = "product"
        elif kind in HESSIAN_MATRIX:
            hess = "matrix"
    if hess is None:
        return {}
    if isinstance(hess, str) and hess in ("product", "matrix"):
        return {"hessp": objective.hessp} if hess == "product" else {"hess": objective.hess}
    if isinstance(hess, str) and hess not in ("2-point", "3-point", "cs"):
        raise NumgradValueError(
            f"minimize: there is no hess {hess!r}; choose 'product', 'matrix', or for trust-constr "
            "also '2-point', '3-point' or 'cs'"
        )
    return {"hess": hess}


def _progress(kind: Any, objective: Objective, callback: Callable[[Any], Any]) -> Callable:
    """The callback as SciPy calls it, by a keyword of that name or with the vector."""

    def progress(intermediate_result: Any) -> Any:
        shown = optimize.OptimizeResult()
        if isinstance(intermediate_result, optimize.OptimizeResult):
            shown.update(intermediate_result)
        else:
            shown.update(x=intermediate_result)
        if "fun" not in shown:
            shown.fun = objective.fun(np.array(shown.x))
        shown.x = objective.unknowns.shown(np.array(shown.x))
        return objective.watch.call(callback, shown)

    # For TNC SciPy may print a callback with that keyword.
    return (lambda x: progress(x)) if kind == "tnc" else progress
