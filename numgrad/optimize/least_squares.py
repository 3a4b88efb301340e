"""``ng.least_squares``: sums of squares, with the exact Jacobian, and what data leave open."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

from numgrad.errors import NumgradValueError
from numgrad.optimize.constraints import ends_of_arrays
from numgrad.optimize.objective import Values, sum_of_squares
from numgrad.optimize.parameter_space import free_unknowns
from numgrad.optimize.profile import ProfiledEstimates
from numgrad.optimize.results import OptimizeResult, X, refuses
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch

TOLERANCE = 1e-15
"""Cost and parameters are flat to second order at a minimum, so the last digits need tolerances
near machine precision: with SciPy's 1e-8 NIST's ENSO gets 3 digits."""

MOST_EVALUATIONS = 5000
"""NIST's MGH09 needs some 500 from its far start, every other fit under 100."""

METHODS = ("lm", "trf", "dogbox")

STATUS: dict[Any, int] = {1: 2, 2: 3, 3: 4, 4: 1, 5: 0, 6: 2, 7: 3, 8: 1}
"""Status of ``least_squares`` for MINPACK's; 6 to 8 say that nothing finer is possible."""

MESSAGES = {
    0: "The maximum number of function evaluations is exceeded.",
    1: "`gtol` termination condition is satisfied.",
    2: "`ftol` termination condition is satisfied.",
    3: "`xtol` termination condition is satisfied.",
    4: "Both `ftol` and `xtol` termination conditions are satisfied.",
}
LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
JACOBIANS = ("dense", "sparse", "operator")


@refuses(
    jac="Jacobians are exact, of the residuals alone", fun="the function comes first, as residuals",
    jac_sparsity="jacobian='sparse' finds it", kwargs="functools.partial gives residuals keywords",
)  # fmt: skip
def least_squares(
    residuals: Callable[..., Any],
    x0: X,
    args: Any = (),
    *,
    method: str | None = None,
    bounds: Any = None,
    fixed: Any = None,
    tie: Mapping[Any, Any] | None = None,
    loss: str | Callable[..., Any] = "linear",
    f_scale: float = 1.0,
    jacobian: str = "dense",
    x_scale: Any = None,
    ftol: float | None = None,
    xtol: float | None = None,
    gtol: float | None = None,
    max_nfev: int | None = None,
    callback: Callable[[Any], Any] | None = None,
    jit: bool = False,
    progress: bool = False,
    on_interrupt: str = "raise",
) -> OptimizeResult[X]:
    """Minimize a sum of squares by ``scipy.optimize.least_squares``, with exact Jacobians.

    Parameters
    ----------
    residuals
        ``residuals(x, *args)`` returns what is to become small: real numbers, an array of any shape
        or several. ``x`` is nested and shaped as the start, with Tensors in it.
    x0
        The start: an array, or a nesting of arrays (``ng.tree``). A list or tuple of numbers is an
        array, as in SciPy.
    args
        Further arguments of ``residuals``, a tuple.
    method
        ``"lm"``, Levenberg-Marquardt by MINPACK, ``"trf"`` or ``"dogbox"``. By default ``"lm"``;
        ``"trf"`` with bounds, a loss, a Jacobian that is not dense, a callback, or fewer residuals
        than unknowns.
    bounds
        A pair ``(low, high)``, each None, a number, or one for each number of the start; for a
        nesting one like it with such a pair, or None, in place of each array; pairs by name; or
        ``scipy.optimize.Bounds``. The start lies within them.
    fixed, tie
        Parameters that are not varied, or follow others, by name: as for ``ng.minimize``.
    loss, f_scale, x_scale, callback
        As in SciPy; ``x_scale`` is by default ``"jac"``, that of the Jacobian's columns, and 1 with
        an operator. ``x`` of a callback's result is nested as the start.
    jacobian
        ``"dense"``; ``"sparse"``, a ``scipy.sparse`` array of the elements that may differ from
        zero, which ``ng.func.sparsity`` finds (so no ``if`` on a value, and real unknowns); or
        ``"operator"``, products with the Jacobian only. The last two are for very many unknowns.
    ftol, xtol, gtol
        By default 1e-15, some machine precisions of float32 for a start of float32: fits end where
        nothing is left to gain.
    max_nfev
        The most evaluations, by default 5,000.
    jit
        Compile what is evaluated, once for each function.
    progress, on_interrupt
        As for ``ng.minimize``.

    Returns
    -------
    OptimizeResult
        ``scipy.optimize.OptimizeResult`` as SciPy made it, but ``x`` is nested, shaped and of the
        dtypes of the start. With a dense Jacobian there are ``covariance``, of the vector of all
        numbers in ``x``, with the variance of the residuals estimated from what is left, and
        ``standard_errors``, nested as ``x``: zero for what is fixed, by the delta method for what
        is tied. ``jac`` and ``grad`` are by the free ones. ``estimates`` (``Estimates``) has
        profile intervals, contours, correlations, AIC and BIC, and prints as a report.

    Raises
    ------
    NumgradTypeError
        If the start has something besides numbers in it, or residuals are no real numbers.
    NumgradValueError
        If residuals are not finite at the start, their number changes, or an option is wrong.
    NumgradRuntimeError
        If the solver fails with an error.

    Notes
    -----
    The solution is an array of numbers: it has no gradient by what ``residuals`` closes over, and
    counts as constant inside of ``ng.grad``. Where that is wanted, see ``ng.implicit``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = np.linspace(0, 4, 30)
    >>> y = 2 * np.exp(-0.7 * x) + 0.01 * np.cos(40 * x)
    >>> def residuals(p):
    ...     return p["amplitude"] * np.exp(-p["rate"] * x) - y
    >>> fit = ng.least_squares(residuals, {"amplitude": 1.0, "rate": 1.0})
    >>> {name: f"{fit.x[name]:.2f} +- {fit.standard_errors[name]:.2f}" for name in fit.x}
    {'amplitude': '2.00 +- 0.00', 'rate': '0.70 +- 0.00'}
    """
    name = "least_squares"
    watch = Watch(name, progress, on_interrupt)
    unknowns = free_unknowns(name, Unknowns(name, x0), fixed, tie)
    values = Values(name, residuals, unknowns, args, jit, watch, judge=sum_of_squares)
    options = {"ftol": ftol, "xtol": xtol, "gtol": gtol, "max_nfev": max_nfev}
    options |= {"loss": loss, "f_scale": f_scale, "x_scale": x_scale, "method": method}
    result = solved(values, bounds=bounds, jacobian=jacobian, callback=callback, **options)
    if jacobian == "dense" and "jac" in result and result.jac.shape[0] > result.jac.shape[1]:
        solve = partial(_solve, residuals, args, jit, options | {"bounds": bounds})
        title = getattr(residuals, "__name__", type(residuals).__name__)
        estimates = ProfiledEstimates(title, unknowns, result, solve, bounds)
        result.covariance = estimates.covariance
        result.standard_errors = estimates.standard_errors
        result.estimates = estimates
    return OptimizeResult(result, x=unknowns.shown(result.x))


def _solve(
    residuals: Callable[..., Any],
    args: Any,
    jit: bool,
    options: dict[str, Any],
    unknowns: Unknowns,
    **others: Any,
) -> Any:
    """Solve the same problem for other unknowns."""
    name = "least_squares"
    values = Values(name, residuals, unknowns, args, jit, Watch(name), sum_of_squares)
    return solved(values, **options | others)


def solved(
    values: Values,
    *,
    method: str | None = None,
    bounds: Any = None,
    jacobian: str = "dense",
    **options: Any,
) -> Any:
    """Run the solver of SciPy, ``x`` as a vector."""
    unknowns, watch = values.unknowns, values.watch
    name = watch.name
    for what, option, known in (
        ("method", method, (None, *METHODS)),
        ("jacobian", jacobian, JACOBIANS),
        ("loss", options["loss"], LOSSES),
    ):
        if option not in known and not (what == "loss" and callable(option)):
            choices = ", ".join(repr(k) for k in known if k is not None)
            raise NumgradValueError(
                f"{name}: there is no {what} {option!r}; choose one of {choices}"
            )
    f_scale = options["f_scale"]
    if not isinstance(f_scale, int | float | np.number) or not 0 < f_scale < np.inf:
        raise NumgradValueError(
            f"{name}: f_scale is the size of residuals from which the loss grows less than their "
            f"square, a positive number, got {f_scale!r}"
        )
    ends = ends_of_arrays(name, unknowns, bounds)
    count = values.fun(unknowns.x0).size
    if not count:
        raise NumgradValueError(f"{name}: the function returned no residuals; return one at least")
    callback = options.pop("callback", None)
    plain = ends is None and options.get("loss") == "linear" and jacobian == "dense"
    plain = plain and callback is None  # MINPACK calls nothing between its evaluations
    if method is None:
        method = "lm" if plain and count >= unknowns.x0.size else "trf"
    elif method == "lm" and not (plain and count >= unknowns.x0.size):
        raise NumgradValueError(
            f"{name}: 'lm' takes no bounds, loss, callback, sparse Jacobian or operator, and at "
            f"least as many residuals as unknowns (here {count} and {unknowns.x0.size}); choose "
            "'trf'"
        )
    finest = max(float(np.finfo(dtype).eps) for dtype in unknowns.packing.real_dtypes)
    for tolerance in ("ftol", "xtol", "gtol"):
        if options.get(tolerance) is None:
            options[tolerance] = max(TOLERANCE, 4 * finest if finest > 1e-10 else 0)
    if options.get("x_scale") is None:
        options["x_scale"] = 1.0 if jacobian == "operator" else "jac"
    elif np.shape(options["x_scale"]) == unknowns.whole.x0.shape:
        options["x_scale"] = np.asarray(options["x_scale"])[unknowns.slots]
    if options.get("max_nfev") is None:
        options["max_nfev"] = MOST_EVALUATIONS
    if callback is not None:
        options["callback"] = _callback(values, callback)
    whole = jacobian == "dense" or unknowns.x0.size == 1  # SciPy's plane of two steps needs two
    if not whole:
        options["tr_solver"] = "lsmr"
    if jacobian == "sparse" and unknowns.packing.is_complex:
        raise NumgradValueError(
            f"{name}: a sparse Jacobian is one by real unknowns, and the start is complex; solve "
            "for real and imaginary parts, or choose jacobian='operator'"
        )
    if ends is not None:
        options["bounds"] = ends

    def solver() -> Any:
        if method == "lm" and isinstance(options["x_scale"], str):
            return _by_minpack(values, options)
        others: Any = values.sparse if jacobian == "sparse" else values.operator
        derive: Any = values.jac if whole else others
        return optimize.least_squares(
            values.fun, unknowns.x0.copy(), jac=derive, method=method, **options
        )

    def interrupted(value: float, x: np.ndarray) -> Any:
        return watch.interrupted(x, cost=value / 2)

    return watch.run(solver, interrupted)


def _by_minpack(values: Values, options: dict[str, Any]) -> Any:
    """Levenberg-Marquardt as ``least_squares`` calls it, without the third of the time it takes."""
    output: Any = optimize.leastsq(
        values.fun, values.unknowns.x0.copy(), Dfun=values.jac, full_output=True,
        maxfev=options["max_nfev"], **{key: options[key] for key in ("ftol", "xtol", "gtol")},
    )  # fmt: skip
    x, _, info, _, code = output
    fun, jac, status = values.fun(x), values.jac(x), STATUS[code]
    grad = jac.T @ fun
    return optimize.OptimizeResult(
        x=x, cost=0.5 * sum_of_squares(fun), fun=fun, jac=jac, grad=grad,
        optimality=float(np.max(np.abs(grad))), active_mask=np.zeros(x.size, int),
        nfev=info["nfev"], njev=info["njev"], status=status, success=status > 0,
        message=MESSAGES[status],
    )  # fmt: skip


def _callback(values: Values, callback: Callable[[Any], Any]) -> Callable[..., Any]:
    def progress(intermediate_result: Any) -> Any:
        shown = optimize.OptimizeResult(intermediate_result)
        shown.x = values.unknowns.shown(shown.x)
        return values.watch.call(callback, shown)

    return progress
