"""``ng.root``: SciPy's solvers of equations with exact Jacobians."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import optimize

from numgrad.errors import NumgradValueError
from numgrad.optimize.objective import Values, shown_to, sum_of_squares
from numgrad.optimize.results import OptimizeResult, X, refuses
from numgrad.optimize.unknowns import Unknowns
from numgrad.optimize.watch import Watch

JACOBIAN = ("hybr", "lm")
ESTIMATES = (
    "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "krylov",
    "df-sane",
)  # fmt: skip


@refuses(jac="Jacobians are exact, of f alone; leave it out", fun="the function comes first, as f")
def root(
    f: Callable[..., Any],
    x0: X,
    args: Any = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    jit: bool = False,
    progress: bool = False,
    on_interrupt: str = "raise",
) -> OptimizeResult[X]:
    """Solve ``f(x) = 0`` by ``scipy.optimize.root``, with exact Jacobians.

    Parameters
    ----------
    f
        ``f(x, *args)`` returns real numbers, as many as there are unknowns: an array or several.
        ``x`` is nested and shaped as the start, with Tensors in it.
    x0
        The start: an array, or a nesting of arrays (``ng.tree``). A list or tuple of numbers is an
        array, as in SciPy.
    args
        Further arguments of ``f``, a tuple.
    method
        Any of ``scipy.optimize.root``: ``"hybr"`` and ``"lm"`` are given the Jacobian; the others
        estimate it from values, for very many unknowns. ``"lm"`` also takes more equations than
        unknowns.
    tol, options
        As in SciPy.
    callback
        Called with ``x``, nested as the start, and the values; not by ``"hybr"`` and ``"lm"``.
    jit
        Compile what is evaluated, once for each function.
    progress, on_interrupt
        As for ``ng.minimize``.

    Returns
    -------
    OptimizeResult
        ``scipy.optimize.OptimizeResult`` as SciPy made it, but ``x`` is nested, shaped and of the
        dtypes of the start. A solver that finds nothing says so in ``success`` and ``message``, and
        ``x`` is where it got to.

    Raises
    ------
    NumgradTypeError
        If the start has something besides numbers in it, or ``f`` does not return real numbers.
    NumgradValueError
        If there are not as many values as unknowns, they are not finite at the start, or there is
        no such method.
    NumgradRuntimeError
        If the solver fails with an error.

    Notes
    -----
    Where ``f`` has parameters and the solution is to be differentiated by them, see
    ``ng.implicit``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def equations(p):
    ...     return p["x"] + p["y"] - 3, p["x"] ** 2 + p["y"] ** 2 - 5
    >>> result = ng.root(equations, {"x": 0.0, "y": 4.0})
    >>> result.success, f"{result.x['x']:.6f}", f"{result.x['y']:.6f}"
    (True, '1.000000', '2.000000')
    """
    name = "root"
    if method not in (*JACOBIAN, *ESTIMATES):
        choices = ", ".join((*JACOBIAN, *ESTIMATES))
        raise NumgradValueError(f"{name}: there is no method {method!r}; choose one of {choices}")
    watch = Watch(name, progress, on_interrupt)
    unknowns = Unknowns(name, x0)
    values = Values(name, f, unknowns, args, jit, watch, judge=sum_of_squares)
    count = values.fun(unknowns.x0).size
    if count != unknowns.x0.size and (method != "lm" or count < unknowns.x0.size):
        raise NumgradValueError(
            f"{name}: the function returned {count} values for {unknowns.x0.size} unknowns; return "
            "as many, or let ng.least_squares find what fits best"
        )
    arguments: dict[str, Any] = {"jac": values.jac} if method in JACOBIAN else {}
    if callback is not None:
        if method in JACOBIAN:
            raise NumgradValueError(
                f"{name}: {method!r} calls nothing between its evaluations; leave the callback out"
            )
        arguments["callback"] = shown_to(callback, values)

    def solver() -> Any:
        return optimize.root(
            values.fun, unknowns.x0.copy(), method=method, tol=tol,
            options=None if options is None else dict(options), **arguments,
        )  # fmt: skip

    def interrupted(value: float, x: np.ndarray) -> Any:
        return watch.interrupted(x, fun=values.fun(x))

    result = watch.run(solver, interrupted)
    return OptimizeResult(result, x=unknowns.shown(result.x))
