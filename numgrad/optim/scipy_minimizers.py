"""SciPy's minimizers over Tensors: a wrapper of ``ng.minimize``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.utils.conversion import Tensors, listed
from numgrad.tensors.tensor import Tensor


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
    """Minimize what ``captures`` returns over the values of Tensors, as ``ng.minimize`` does.

    That one takes a function of arrays; here the unknowns are parameters, say of a module, which
    the closure reads, and which are left at the point found. They are packed into one vector of
    float64, complex ones as pairs of reals. SciPy gets exact derivatives, value and gradient by one
    evaluation, and second ones where a method takes them.

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
        array that broadcasts to the parameter's shape. Or ``scipy.optimize.Bounds`` of the vector.
    constraints
        A constraint or several. As a dictionary: ``{"type": "eq", "fun": f}`` for values that are
        to be 0, ``"ineq"`` for values not below 0. ``scipy.optimize.NonlinearConstraint(f, low,
        high)``. Here ``f``, like the closure, takes no argument and returns a Tensor computed from
        the parameters; it is differentiated by numgrad. A ``LinearConstraint`` is one on the packed
        vector.
    tol, options
        As in ``ng.minimize``.
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
        a gradient is needed; if bounds or constraints do not fit, or the loss is not one number,
        or is not finite at the start.
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
    # SciPy takes 0.2 s to import
    bridge = import_module("numgrad.optimize.minimize")
    closures = import_module("numgrad.optim.closures")
    kind = method.lower() if isinstance(method, str) else method
    tensors = _checked(params, needs_grad=kind not in bridge.WITHOUT_GRADIENT)
    before = [t.detach().numpy().copy() for t in tensors]
    grads = [t.grad for t in tensors]
    parameters = closures.ParametersAsUnknowns("minimize", tensors)
    objective = closures.ClosureObjective(parameters, closure, bridge.Watch("minimize"))
    limits = None if bounds is None else _bounds(parameters.packing, bounds)
    constraint = partial(closures.ClosureConstraint, parameters)

    def shown(result: Any) -> Any:
        parameters.at(parameters.vector("minimize", result.x))
        return callback(result) if callback is not None else None

    told = None if callback is None else shown
    try:
        result = bridge.search(
            objective, method, limits, constraints, constraint, tol, options, told, hess
        )
        parameters.at(result.x)
        result.x = parameters.shown(result.x)
    except BaseException:
        parameters.store(before)
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


def _bounds(packing: Any, bounds: Any) -> Any:
    """Bounds of the packed vector."""
    from scipy.optimize import Bounds

    from numgrad.optimize.constraints import fill_bounds

    if isinstance(bounds, Bounds):
        return bounds
    if len(bounds) != len(packing.shapes):
        raise NumgradValueError(
            f"minimize: got bounds for {len(bounds)} parameters, there are {len(packing.shapes)}; "
            "give None or a pair (low, high) for each"
        )
    low, high = np.full(packing.size, -np.inf), np.full(packing.size, np.inf)
    for k, pair in enumerate(bounds):
        if pair is not None:
            fill_bounds("minimize", packing, f"parameter {k}", k, pair, low, high)
    return Bounds(low, high)  # pyright: ignore
