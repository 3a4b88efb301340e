"""Minimizers of other libraries: iminuit, lmfit, NLopt and cyipopt."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint

from numgrad.core.op import OPS
from numgrad.ecosystem.vectors import check_objective, imported, values_at
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.optimize.constraints import bounds_of_elements, constraints_for_scipy
from numgrad.optimize.derivatives import Derivatives
from numgrad.optimize.objective import Objective, Values, assembled
from numgrad.optimize.watch import Watch
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import hessian, jacobian


def minuit(objective: Objective, *, errordef: float, bounds: Any = None) -> Any:
    """A ``Minuit`` of iminuit with exact gradients, names, and limits of parameters.

    Parameters
    ----------
    objective
        What ``ng.objective(cost, start)`` makes.
    errordef
        How much the cost is above its minimum at one standard deviation: 0.5 for a negative log
        likelihood, 1 for a sum of squares of residuals over their standard deviations.
    bounds
        As for ``ng.minimize``.

    Returns
    -------
    iminuit.Minuit
        At the start, with the numbers of its arrays by name: ``migrad()``, ``hesse()``,
        ``minos("a")``, ``fixed["a"] = True``. Its result nests by
        ``objective.unravel(np.array(m.values))``.

    Raises
    ------
    NumgradRuntimeError
        If iminuit is not installed.
    NumgradValueError
        If bounds do not fit.

    Notes
    -----
    A gradient for the costs that iminuit brings needs no adapter: with
    ``jac = ng.curve_jac(model)`` give ``LeastSquares`` of it ``grad=lambda x, *p: jac(x, *p).T``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> data = np.array([1.0, 2.0, 4.0])
    >>> def chi_square(p):
    ...     return np.sum((data - p["mean"]) ** 2)
    >>> cost = ng.objective(chi_square, {"mean": 0.0})
    >>> m = ng.ecosystem.minuit(cost, errordef=1)  # doctest: +SKIP
    >>> m.migrad().valid, m.values["mean"], m.errors["mean"]  # doctest: +SKIP
    (True, 2.333..., 0.577...)
    """
    name = "minuit"
    iminuit = imported(name, "iminuit")
    unknowns = check_objective(name, objective).unknowns
    limits = bounds_of_elements(name, unknowns, bounds)
    made = iminuit.Minuit(
        objective.fun, objective.x0, grad=objective.jac, name=unknowns.element_labels
    )
    made.errordef = errordef
    if limits is not None:
        made.limits = list(zip(limits.lb, limits.ub, strict=True))
    return made


# ------------------------------------------------------------------------------------------ lmfit


class _Values(dict):
    """Values of lmfit's parameters by name, in place of its ``Parameters``."""

    def valuesdict(self) -> dict[str, Any]:
        return self


def lmfit_jacobian(model: Any) -> Callable[..., np.ndarray]:
    """The exact Jacobian of residuals that lmfit takes as ``Dfun``.

    Parameters
    ----------
    model
        An ``lmfit.Model``, composite ones too, or a function ``residual(params, *args, **kws)`` for
        ``lmfit.minimize``, which reads values by ``params["a"]`` or ``params.valuesdict()``.
        Written with NumPy.

    Returns
    -------
    callable
        For ``model.fit(y, params, x=x, fit_kws={"Dfun": ...})``, and for ``lmfit.minimize(residual,
        params, args, Dfun=...)``, with methods leastsq and least_squares. It has a column for each
        parameter that varies; those tied by an expression are followed into it, so it is right
        where lmfit's own differences are.

    Raises
    ------
    NumgradRuntimeError
        If lmfit is not installed.
    NumgradTypeError
        If ``model`` cannot be called.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def decay(x, amplitude, rate):
    ...     return amplitude * np.exp(-rate * x)
    >>> x = np.linspace(0, 4, 30)
    >>> y = decay(x, 2.0, 0.7)
    >>> import lmfit  # doctest: +SKIP
    >>> model = lmfit.Model(decay)  # doctest: +SKIP
    >>> fit = model.fit(
    ...     y, amplitude=1.0, rate=1.0, x=x, fit_kws={"Dfun": ng.ecosystem.lmfit_jacobian(model)}
    ... )  # doctest: +SKIP
    >>> {name: round(p.value, 6) for name, p in fit.params.items()}  # doctest: +SKIP
    {'amplitude': 2.0, 'rate': 0.7}
    """
    name = "lmfit_jacobian"
    lmfit = imported(name, "lmfit")
    if not callable(model) and not isinstance(model, lmfit.Model):
        raise NumgradTypeError(
            f"{name}: takes an lmfit.Model or a function residual(params, ...), got a "
            f"{type(model).__name__}"
        )
    of_model = isinstance(model, lmfit.Model)
    signs: list[float] = []

    def sign(params: Any, data: Any, keywords: dict[str, Any]) -> float:
        """Of residuals in the model's prediction: versions of lmfit differ."""
        if not signs:
            data, step = np.asarray(data), 1.0 + np.abs(data)
            before, after = (
                lmfit.Model._residual(model, params, d, None, **keywords)
                for d in (data, data + step)
            )
            signs.append(-float(np.sign(np.real(np.sum(after - before)))))
        return signs[0]

    def residuals(params: Any, values: _Values, *args: Any, **keywords: Any) -> Any:
        if not of_model:
            return _real(model(values, *args, **keywords))
        data, weights = args
        predicted = _prediction(lmfit, model, values, keywords)
        if weights is not None:
            predicted = predicted * weights
        return _real(sign(params, data, keywords) * predicted)

    def dfun(params: Any, *args: Any, **keywords: Any) -> np.ndarray:
        varied = [key for key, p in params.items() if p.vary and not p.expr]
        start = np.array([params[key].value for key in varied])

        def of_vector(x: Any) -> Any:
            values = _with_expressions(params, dict(zip(varied, x, strict=True)))
            return residuals(params, values, *args, **keywords)

        return jacobian(of_vector)(start)

    return dfun


def _real(values: Any) -> Any:
    """Residuals as one vector of reals, complex ones as pairs, which is how lmfit sees them."""
    flat = OPS["reshape"](values if isinstance(values, Tensor) else np.asarray(values), (-1,))
    if flat.dtype.kind != "c":
        return flat
    return OPS["reshape"](OPS["stack"]([OPS["real"](flat), OPS["imag"](flat)], 1), (-1,))


def _prediction(lmfit: Any, model: Any, values: _Values, keywords: dict[str, Any]) -> Any:
    """What a model predicts; its own ``eval`` makes arrays of everything."""
    if isinstance(model, lmfit.model.CompositeModel):
        parts = [_prediction(lmfit, m, values, keywords) for m in (model.left, model.right)]
        return model.op(*parts)
    known = SimpleNamespace
    params = {key: known(value=value) for key, value in values.items()}
    return model.func(**model.make_funcargs(params, keywords))


def _with_expressions(params: Any, varied: dict[str, Any]) -> _Values:
    """The values of all parameters, those of expressions computed of Tensors."""
    values = _Values({key: p.value for key, p in params.items() if not p.expr} | varied)
    tied = {key: p.expr for key, p in params.items() if p.expr}
    if not tied:
        return values
    symbols = params._asteval.symtable
    before = {key: symbols[key] for key in params if key in symbols}
    try:
        symbols.update(values)
        while tied:
            for key, text in list(tied.items()):
                names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
                if not names & tied.keys():
                    values[key] = symbols[key] = params._asteval(text, raise_errors=True)
                    del tied[key]
    finally:
        symbols.update(before)
    return _Values({key: values[key] for key in params})


# ------------------------------------------------------------------------------------- constraints


def _matrix(constraint: Any) -> sparse.csr_array:
    a = constraint.A
    return sparse.csr_array(a if sparse.issparse(a) else np.atleast_2d(a))


class _Constraints:
    """Constraints of a problem as one vector of values between ``low`` and ``high``."""

    def __init__(self, name: str, objective: Objective, constraints: Any) -> None:
        self.objective, jit = objective, objective.derivatives.compiled

        def values(function: Callable[..., Any], args: Any) -> Values:
            return Values(
                f"{name} (a constraint)", function, objective.unknowns, args, jit, Watch(name)
            )

        several: Any = constraints_for_scipy(name, "trust-constr", constraints, values)
        self.parts = [c if isinstance(c, LinearConstraint) else c.fun.__self__ for c in several]
        sizes = [len(np.ravel(self._value(p, objective.x0))) for p in self.parts]
        ends = [
            [np.broadcast_to(np.ravel(end), (size,)) for end in (c.lb, c.ub)]
            for c, size in zip(several, sizes, strict=True)
        ]
        self.low, self.high = (
            np.concatenate([pair[k] for pair in ends], dtype=np.float64) if ends else np.zeros(0)
            for k in (0, 1)
        )
        self.splits = np.cumsum(sizes)[:-1]

    @staticmethod
    def _value(part: Any, x: np.ndarray) -> np.ndarray:
        return part.A @ x if isinstance(part, LinearConstraint) else part.fun(x)

    def fun(self, x: np.ndarray) -> np.ndarray:
        """All values."""
        return np.concatenate([np.zeros(0), *(np.ravel(self._value(p, x)) for p in self.parts)])

    def jac(self, x: np.ndarray) -> np.ndarray:
        """A row for each value."""
        rows = [
            _matrix(p).toarray() if isinstance(p, LinearConstraint) else p.jac(x)
            for p in self.parts
        ]
        return np.concatenate([np.zeros((0, x.size)), *rows])

    def sparse(self, x: np.ndarray) -> Any:
        """The same, of elements that may differ from zero."""
        rows = [_matrix(p) if isinstance(p, LinearConstraint) else p.sparse(x) for p in self.parts]
        return sparse.vstack(rows, format="csr") if rows else sparse.csr_array((0, x.size))

    def lagrangian(self) -> tuple[Callable[..., Any], list[Values]]:
        """The Lagrangian of ``(arrays, factor, multipliers)``, and its curved constraints."""
        curved = [p for p in self.parts if isinstance(p, Values)]
        objective = self.objective

        def lagrangian(arrays: Sequence[Any], factor: Any, multipliers: Sequence[Any]) -> Any:
            total = factor * objective.derivatives.plain(arrays, *objective.args)
            for part, weights in zip(curved, multipliers, strict=True):
                total = total + OPS["sum"](weights * part.derivatives.plain(arrays, *part.args))
            return total

        return lagrangian, curved


def nlopt_problem(
    objective: Objective,
    algorithm: str = "LD_SLSQP",
    constraints: Any = (),
    bounds: Any = None,
    *,
    tol: float = 1e-8,
) -> Any:
    """An ``nlopt.opt`` that minimizes an objective, with exact gradients of all functions.

    Parameters
    ----------
    objective
        What ``ng.objective(f, start)`` makes.
    algorithm
        The name of an algorithm of NLopt, such as ``"LD_LBFGS"``, ``"LD_MMA"``, ``"LD_SLSQP"``;
        those that begin with ``LN_`` and ``GN_`` take no gradients, and none are computed.
    constraints, bounds
        As for ``ng.minimize``.
    tol
        By how much constraints may be violated.

    Returns
    -------
    nlopt.opt
        ``set_xtol_rel(1e-8)`` and the like say when it ends; ``objective.unravel(
        opt.optimize(objective.x0))`` is the solution.

    Raises
    ------
    NumgradRuntimeError
        If NLopt is not installed.
    NumgradValueError
        If it has no such algorithm, or constraints or bounds do not fit.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> cost = ng.objective(lambda p: np.sum((p["x"] - 3.0) ** 2), {"x": np.zeros(2)})
    >>> disk = ng.constraint(lambda p: np.sum(p["x"] ** 2), ub=2.0, lb=-np.inf)
    >>> opt = ng.ecosystem.nlopt_problem(cost, "LD_SLSQP", disk)  # doctest: +SKIP
    >>> opt.set_xtol_rel(1e-10)  # doctest: +SKIP
    >>> cost.unravel(opt.optimize(cost.x0))["x"].round(6)  # doctest: +SKIP
    array([1., 1.])
    """
    name = "nlopt_problem"
    nlopt = imported(name, "nlopt")
    unknowns = check_objective(name, objective).unknowns
    number = getattr(nlopt, algorithm, None)
    if not isinstance(number, int):
        raise NumgradValueError(
            f"{name}: NLopt has no algorithm {algorithm!r}; give a name such as 'LD_SLSQP'"
        )
    together = _Constraints(name, objective, constraints)
    opt, limits = nlopt.opt(number, objective.x0.size), bounds_of_elements(name, unknowns, bounds)
    if limits is not None:
        opt.set_lower_bounds(np.broadcast_to(limits.lb, objective.x0.shape))
        opt.set_upper_bounds(np.broadcast_to(limits.ub, objective.x0.shape))

    value = objective.fun if algorithm[1:2] == "D" else values_at(objective)

    def cost(x: np.ndarray, grad: np.ndarray) -> float:
        if grad.size:
            grad[:] = objective.jac(x)
        return value(x)

    def vector(rows: np.ndarray, sign: float, ends: np.ndarray) -> Callable[..., None]:
        def values(result: np.ndarray, x: np.ndarray, grad: np.ndarray) -> None:
            result[:] = sign * (together.fun(x)[rows] - ends[rows])
            if grad.size:
                grad[:] = sign * together.jac(x)[rows]

        return values

    opt.set_min_objective(cost)
    equal = together.low == together.high
    sides = [
        (opt.add_equality_mconstraint, equal, 1.0, together.low),
        (opt.add_inequality_mconstraint, ~equal & np.isfinite(together.low), -1.0, together.low),
        (opt.add_inequality_mconstraint, ~equal & np.isfinite(together.high), 1.0, together.high),
    ]
    for add, chosen, sign, ends in sides:
        rows = np.flatnonzero(chosen)
        if rows.size:
            add(vector(rows, sign, ends), np.full(rows.size, tol))
    return opt


# ------------------------------------------------------------------------------------------ Ipopt


class IpoptFunctions:
    """The functions of a problem under the names by which cyipopt calls them."""

    def __init__(self, objective: Objective, constraints: _Constraints, is_sparse: bool) -> None:
        self._of, self._constraints, self._sparse = objective, constraints, is_sparse
        lagrangian, curved = constraints.lagrangian()
        self._curved = [isinstance(p, Values) for p in constraints.parts]
        arrays = objective.unknowns.arrays(objective.x0)
        multipliers = [np.ones(p.size or 0) for p in curved]
        size = objective.x0.size
        if is_sparse:
            from numgrad.compiler.inspect.sparsity import sparsity

            rows = constraints.sparse(objective.x0).tocoo()
            self._rows = rows.row, rows.col
            pattern = sparsity(lagrangian, arrays, 1.0, multipliers, order=2).tocoo()
            self._hessian = hessian(lagrangian, sparsity=pattern)
        else:
            rows, columns = np.indices((constraints.low.size, size)).reshape(2, -1)
            self._rows = rows, columns
            pattern = sparse.coo_array(np.ones((size, size), bool))
            self._hessian = Derivatives(lagrangian, objective.derivatives.compiled).hessian
        lower = pattern.row >= pattern.col
        self._lower = pattern.row[lower], pattern.col[lower]

    def objective(self, x: np.ndarray) -> float:
        """The value."""
        return self._of.fun(x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Its gradient."""
        return self._of.jac(x)

    def constraints(self, x: np.ndarray) -> np.ndarray:
        """The values that are constrained."""
        return self._constraints.fun(x)

    def jacobianstructure(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the elements of the Jacobian that may differ from zero."""
        return self._rows

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """These elements."""
        if self._sparse:
            return _elements(self._constraints.sparse(x), self._rows)
        return self._constraints.jac(x).ravel()

    def hessianstructure(self) -> tuple[np.ndarray, np.ndarray]:
        """The same of the lower triangle of the Hessian of the Lagrangian."""
        return self._lower

    def hessian(self, x: np.ndarray, lagrange: np.ndarray, obj_factor: float) -> np.ndarray:
        """These elements."""
        parts = np.split(np.asarray(lagrange, np.float64), self._constraints.splits)
        multipliers = [part for part, curved in zip(parts, self._curved, strict=False) if curved]
        arrays = self._of.unknowns.arrays(np.array(x, np.float64))
        result = self._hessian(arrays, float(obj_factor), multipliers)
        if self._sparse:
            return _elements(result, self._lower)
        return assembled(self._of.unknowns, result)[self._lower]


def _elements(matrix: Any, places: Any) -> np.ndarray:
    """Elements of a sparse matrix, zeros where it has none."""
    if not len(places[0]):
        return np.zeros(0)
    return np.asarray(sparse.csr_matrix(matrix)[places], np.float64).ravel()


def ipopt_problem(
    objective: Objective, constraints: Any = (), bounds: Any = None, *, sparse: bool = True
) -> Any:
    """A ``cyipopt.Problem`` with exact first and second derivatives, as sparse as they are.

    Parameters
    ----------
    objective
        What ``ng.objective(f, start)`` makes, of real numbers.
    constraints, bounds
        As for ``ng.minimize``.
    sparse
        Find which elements of the Jacobian of the constraints, and of the Hessian of the
        Lagrangian, may differ from zero (``ng.func.sparsity``), and compute only these. The
        functions are traced for that, so without an ``if`` on a value; False takes all elements.

    Returns
    -------
    cyipopt.Problem
        ``x, info = problem.solve(objective.x0)``; ``objective.unravel(x)`` is the solution.

    Raises
    ------
    NumgradRuntimeError
        If cyipopt is not installed.
    NumgradTypeError
        If the start is complex.
    NumgradValueError
        If constraints or bounds do not fit.
    NumgradTraceError
        If functions look at values, and ``sparse`` is not False.

    Notes
    -----
    For few unknowns without a structure ``cyipopt.minimize_ipopt(objective.fun, objective.x0,
    jac=objective.jac, hess=objective.hess)`` needs no adapter.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> cost = ng.objective(lambda p: np.sum((p["x"] - 3.0) ** 2), {"x": np.zeros(2)})
    >>> disk = ng.constraint(lambda p: np.sum(p["x"] ** 2), ub=2.0, lb=-np.inf)
    >>> problem = ng.ecosystem.ipopt_problem(cost, disk)  # doctest: +SKIP
    >>> problem.add_option("print_level", 0)  # doctest: +SKIP
    >>> x, info = problem.solve(cost.x0)  # doctest: +SKIP
    >>> cost.unravel(x)["x"].round(6)  # doctest: +SKIP
    array([1., 1.])
    """
    name = "ipopt_problem"
    cyipopt = imported(name, "cyipopt")
    functions, low, high = ipopt_functions(name, objective, constraints, sparse)
    limits = bounds_of_elements(name, objective.unknowns, bounds)
    shape = objective.x0.shape
    return cyipopt.Problem(
        n=objective.x0.size,
        m=low.size,
        problem_obj=functions,
        lb=np.full(shape, -np.inf) if limits is None else np.broadcast_to(limits.lb, shape),
        ub=np.full(shape, np.inf) if limits is None else np.broadcast_to(limits.ub, shape),
        cl=low,
        cu=high,
    )


def ipopt_functions(
    name: str, objective: Objective, constraints: Any, is_sparse: bool
) -> tuple[IpoptFunctions, np.ndarray, np.ndarray]:
    """The functions of a problem, and the ends of its constraints."""
    if check_objective(name, objective).unknowns.packing.is_complex:
        raise NumgradTypeError(f"{name}: takes real unknowns, the start has complex ones")
    together = _Constraints(name, objective, constraints)
    return IpoptFunctions(objective, together, is_sparse), together.low, together.high
