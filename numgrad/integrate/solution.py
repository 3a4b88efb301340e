"""The solution of a differential equation by SciPy, as an operation with derivatives of any order.

Note [Derivatives of solutions]
-------------------------------
Forward mode solves the system together with its derivative along a direction, which is a solution
of a larger system: so it has derivatives itself (``along``). Reverse mode computes numbers, by the
adjoint equations or by sensitivities, along the solution that there is. A backward that is to be
differentiated is an operation of its own, ``PullSolution``. It is linear in the weights, and its
derivative along u is the gradient of ``sum(w * along(u))``, since second derivatives are symmetric:
reverse over forward, which never runs a stiff system backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numgrad.autograd.modes import enable_grad
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradValueError
from numgrad.implicit.solution import SolverFunction
from numgrad.integrate.system import OdeSystem, Slopes, slopes_jvp
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization, filled

STIFF = ("Radau", "BDF", "LSODA")
"""SciPy's methods that use a Jacobian."""

FEW = 256
"""Numbers of all sensitivities up to which they are computed by default, and not an adjoint."""


@dataclass(frozen=True)
class SolverSettings:
    """How SciPy is to solve."""

    method: Any = "RK45"
    rtol: Any = 1e-3
    atol: Any = 1e-6
    adjoint: str = "auto"
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.method if isinstance(self.method, str) else self.method.__name__

    @property
    def stiff(self) -> bool:
        """Whether the method uses a Jacobian."""
        return self.name in STIFF

    def linear(self, atol: Any) -> SolverSettings:
        """For the linear systems of gradients, which have tolerances of their own."""
        options = {"max_step": self.options["max_step"]} if "max_step" in self.options else {}
        return replace(self, rtol=np.min(self.rtol), atol=atol, options=options)

    def twice(self, n: int) -> SolverSettings:
        """For a system and its derivative along one direction."""
        options = {k: v for k, v in self.options.items() if k in ("max_step", "min_step")}
        rtol, atol = (
            x if np.ndim(x) == 0 else np.tile(np.broadcast_to(x, (n,)), 2)
            for x in (self.rtol, self.atol)
        )
        return replace(self, rtol=rtol, atol=atol, options=options)


def solved(
    settings: SolverSettings,
    fun: Any,
    span: tuple[float, float],
    y0: np.ndarray,
    times: Any = None,
    *,
    jac: Any = None,
    dense: bool = False,
    events: Any = None,
    slopes: Slopes | None = None,
) -> Any:
    """Call SciPy's ``solve_ivp``.

    Raises
    ------
    NumgradValueError
        If SciPy takes exception to an option.
    """
    from scipy.integrate import solve_ivp

    options = dict(settings.options)
    if settings.stiff and jac is not None and y0.dtype.kind == "f":
        options.setdefault("jac", jac)
    first = fun(span[0], y0)
    if not (np.all(np.isfinite(first)) and np.all(np.isfinite(y0))):
        # SciPy would search for a first step forever
        raise NumgradValueError(
            f"solve_ivp: what is to be integrated is not finite at the start, t = {span[0]:.6g}; "
            "look at what the function, or its derivative, gives there"
        )
    try:
        solution = solve_ivp(
            fun, span, y0, method=settings.method, t_eval=times, dense_output=dense,
            events=events, rtol=settings.rtol, atol=settings.atol, **options,
        )  # fmt: skip
    except ValueError as error:
        if slopes is not None and slopes.failure is error:
            raise
        raise NumgradValueError(f"solve_ivp: {settings.name}: {error}") from error
    if not len(solution.t):  # SciPy has lists there
        solution.t, solution.y = np.zeros(0), np.zeros((y0.size, 0), y0.dtype)
    return solution


@dataclass
class Run:
    """A solution that gradients are asked of."""

    slopes: Slopes
    settings: SolverSettings
    t0: float
    y0: np.ndarray
    result: Any
    sensitivities: dict[Any, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Length of the state."""
        return self.y0.size

    def at(self, times: np.ndarray) -> np.ndarray:
        """States at given times, a row each."""
        if not times.size:
            return np.zeros((0, self.n), self.y0.dtype)
        return self.result.sol(times).T

    def scales(self) -> np.ndarray:
        """How large each component of the state gets, 1 where it stays zero."""
        largest = np.max(np.abs(self.result.y), axis=1, initial=0.0)
        return np.where((largest > 0) & np.isfinite(largest), largest, 1.0)


def gradients(
    run: Run, times: np.ndarray, w: np.ndarray, wants_initial: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients by the initial state, and by all that is followed, of ``sum(w * y(times))``."""
    n, q = run.n, run.slopes.count
    initial = n if wants_initial else 0
    real = run.y0.dtype.kind == "f" and all(p.dtype.kind == "f" for p in run.slopes.like)
    how = run.settings.adjoint
    if how == "forward" and not real:
        raise NumgradValueError(
            'solve_ivp: adjoint="forward" is for real numbers, and there are complex ones here; '
            'choose adjoint="reverse"'
        )
    if how == "forward" or (how == "auto" and real and n * (q + initial) <= FEW):
        return _by_sensitivities(run, times, w, initial)
    return _by_adjoint(run, times, w)


def _steps(result: Any, what: str) -> Any:
    if result.status < 0:
        raise NumgradRuntimeError(
            f"solve_ivp: the equations of {what} could not be solved beyond t = "
            f"{result.t[-1]:.6g}: {result.message}; choose another method, or larger tolerances"
        )
    return result


def _by_adjoint(run: Run, times: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Backwards in time along ``y(t)`` of the solution, which stiff systems need.

    Unknowns are made comparable first: tolerances mean parts of what the state, a parameter, and
    the weights are.
    """
    slopes, n = run.slopes, run.n
    d, p = run.scales(), slopes.scales()
    largest = np.max(np.abs(w) * d, initial=0.0)
    kind = np.result_type(w, run.y0, *[t.dtype for t in slopes.like])
    if not largest:
        return np.zeros(n, kind), np.zeros(slopes.count, kind)
    s = np.concatenate([d, p])
    curve = run.result.sol

    def fun(t: float, b: np.ndarray) -> np.ndarray:
        return -s * slopes.pull(t, curve(t), b[:n] / d)

    def jac(t: float, b: np.ndarray) -> Any:
        left = -s[:, None] * slopes.matrices(t, curve(t)).T / d
        if run.settings.name == "LSODA" or not slopes.count:
            return np.concatenate([left, np.zeros((left.shape[0], slopes.count))], axis=1)
        from scipy.sparse import csc_array, hstack

        empty = csc_array((left.shape[0], slopes.count))
        return hstack([csc_array(left), empty], format="csc")

    rtol = float(np.min(run.settings.rtol))
    settings = run.settings.linear(float(np.clip(np.min(run.settings.atol / d), 1e-3 * rtol, rtol)))
    state = np.zeros(n + slopes.count, kind)
    order = np.argsort(times * _sign(run.t0, times), kind="stable")[::-1]
    for position, k in enumerate(order):
        state[:n] += w[k] * d / largest
        until = float(times[order[position + 1]]) if position + 1 < len(order) else run.t0
        if until != times[k]:
            solution = solved(
                settings, fun, (float(times[k]), until), state, jac=jac, slopes=slopes
            )
            state = _steps(solution, "the adjoint").y[:, -1]
    state = state / s * largest
    return state[:n], state[n:]


def _sign(t0: float, times: np.ndarray) -> float:
    return -1.0 if np.min(times, initial=t0) < t0 else 1.0


def _by_sensitivities(
    run: Run, times: np.ndarray, w: np.ndarray, initial: int
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients by all derivatives of the solution, which are kept for the next weights."""
    key = (initial, times.tobytes())
    if key not in run.sensitivities:
        run.sensitivities[key] = _sensitivities(run, times, initial)
    grads = np.einsum("kn,kqn->q", w, run.sensitivities[key])
    return (grads[:initial] if initial else np.zeros(run.n)), grads[initial:]


def _sensitivities(run: Run, times: np.ndarray, initial: int) -> np.ndarray:
    """Derivatives of ``y(times)``, of shape (times, directions, state)."""
    slopes, n = run.slopes, run.n
    d, p = run.scales(), slopes.scales()
    scale = np.concatenate([d[:initial], p])
    count = scale.size
    start = np.zeros((count, n))
    start[:initial] = np.diag(d)[:initial]
    if not (times.size and count):
        return np.zeros((times.size, count, n))
    curve = run.result.sol

    def fun(t: float, s: np.ndarray) -> np.ndarray:
        whole = slopes.matrices(t, curve(t))
        moved = s.reshape(count, n) @ whole[:, :n].T
        moved[initial:] += (whole[:, n:] * p).T
        return moved.ravel()

    def jac(t: float, s: np.ndarray) -> Any:
        block = slopes.matrix(t, curve(t))
        if run.settings.name == "LSODA" or count == 1:
            return np.kron(np.eye(count), block)
        from scipy.sparse import eye_array, kron

        return kron(eye_array(count), block, format="csc")

    settings = run.settings.linear(
        np.tile(np.maximum(np.broadcast_to(run.settings.atol, (n,)), 1e-3 * run.settings.rtol * d),
                count)
    )  # fmt: skip
    ordered, inverse = np.unique(times * _sign(run.t0, times), return_inverse=True)
    ordered = ordered * _sign(run.t0, times)
    if ordered[-1] == run.t0:
        columns = np.broadcast_to(start.ravel()[:, None], (start.size, ordered.size))
    else:
        whole = solved(
            settings, fun, (run.t0, ordered[-1]), start.ravel(), ordered, jac=jac, slopes=slopes
        )
        columns = _steps(whole, "the sensitivities").y
    return (columns.T.reshape(-1, count, n) / scale[:, None])[inverse.ravel()]


@dataclass(frozen=True)
class InitialValueProblem:
    """The problem that an operation solves; its inputs are t0, times, y0, parameters, and closures.

    Attributes
    ----------
    result
        SciPy's, if it was solved already.
    """

    system: OdeSystem
    settings: SolverSettings
    result: Any = None

    def run(self, inputs: Sequence[Tensor], followed: Sequence[bool]) -> Run:
        """Solve it."""
        t0, times, y0 = (x._array for x in inputs[:3])
        params = self.params(inputs)
        numbers = [k for k, p in enumerate(params) if p.dtype.kind in "fc" and followed[3 + k]]
        slopes = Slopes(self.system, params, numbers)
        result = self.result
        if result is None:
            until = times[np.argmax(np.abs(times - t0))] if times.size else t0
            plain = Slopes(self.system, params, ())
            result = solved(
                self.settings, plain.value, (float(t0), float(until)), y0, jac=plain.matrix,
                dense=True, slopes=plain,
            )  # fmt: skip
            if result.status < 0:
                raise NumgradRuntimeError(
                    "solve_ivp: the derivative of the solution could not be computed beyond t = "
                    f"{result.t[-1]:.6g}: {result.message}"
                )
        return Run(slopes, self.settings, float(t0), y0, result)

    def params(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The parameters among the inputs."""
        return list(inputs[3 : len(inputs) - len(self.system.closed_over)])


class SolveIvp(SolverFunction):
    """States at given times, of shape (times, state)."""

    @classmethod
    def run_forward(cls, ctx: Any, args: tuple, keywords: dict[str, Any]) -> Any:
        """Solve, or look up what was solved."""
        problem, *inputs = args
        ctx.problem = problem
        ctx.run = problem.run(inputs, ctx.needs_input_grad[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        return ctx.run.at(inputs[1]._array)

    @staticmethod
    def backward(ctx: Any, w: Any) -> Any:
        """Gradients of the inputs: Note [Derivatives of solutions]."""
        followed = tuple(ctx.needs_input_grad[1:])
        pull = PullSolution.apply(ctx.problem, ctx.run, followed, w, *ctx.saved_tensors)
        grads = iter(pull)
        return None, *(next(grads) if each else None for each in followed)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """The derivative along a direction."""
        return along(ctx.problem, ctx.saved_tensors, tangents)


class PullSolution(SolverFunction):
    """Gradients by those inputs that are followed."""

    @classmethod
    def run_forward(cls, ctx: Any, args: tuple, keywords: dict[str, Any]) -> Any:
        """Compute them as numbers."""
        problem, run, followed, w, *inputs = args
        ctx.problem, ctx.run, ctx.followed = problem, run, followed
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(w, *inputs)
        ctx.save_for_forward(w, *inputs)
        t0, times, y0 = (x._array for x in inputs[:3])
        weights = w._array
        by_y0, by_rest = gradients(run, times, weights, bool(followed[0] or followed[2]))
        products: list[Any] = []
        if followed[0]:
            products.append(-_product(by_y0, run.slopes.value(float(t0), y0)))
        if followed[1]:
            points = zip(weights, times, run.at(times), strict=True)
            by_times = [_product(each, run.slopes.value(float(t), y)) for each, t, y in points]
            products.append(np.array(by_times))
        if followed[2]:
            products.append(_fitted(by_y0, y0.shape, y0.dtype))
        start = 0
        for t in run.slopes.like:
            chunk = by_rest[start : start + t.size]
            products.append(_fitted(chunk, t.shape, t.dtype))
            start += t.size
        return tuple(products)

    @staticmethod
    def backward(ctx: Any, *u: Any) -> Any:
        """Reverse over forward: Note [Derivatives of solutions]."""
        w, *inputs = ctx.saved_tensors
        directions = iter(u)
        moves = [next(directions) if each else None for each in ctx.followed]
        moved, grads = _second(ctx.problem, w, inputs, moves, ctx.followed)
        return None, None, None, moved, *grads

    @staticmethod
    def jvp(ctx: Any, _p: Any, _r: Any, _f: Any, dw: Any, *moves: Any) -> Any:
        """The product with other weights, and the derivative along a direction."""
        w, *inputs = ctx.saved_tensors
        followed = [k for k, each in enumerate(ctx.followed) if each]
        _, second = _second(ctx.problem, w, inputs, list(moves), ctx.followed)
        if dw is None:
            return tuple(second[k] for k in followed)
        first = PullSolution.apply(ctx.problem, ctx.run, ctx.followed, dw, *inputs)
        return tuple(
            a if second[k] is None else a + second[k] for a, k in zip(first, followed, strict=True)
        )


def _product(w: np.ndarray, slope: np.ndarray) -> Any:
    """Product of a gradient and a direction: a real number."""
    return np.real(np.vdot(w, slope))


def _fitted(g: np.ndarray, shape: tuple, dtype: np.dtype) -> np.ndarray:
    g = g.reshape(shape)
    return (np.real(g) if dtype.kind != "c" else g).astype(dtype, copy=False)


def _second(
    problem: InitialValueProblem,
    w: Tensor,
    inputs: Sequence[Tensor],
    moves: Sequence[Tensor | None],
    followed: Sequence[bool],
) -> tuple[Tensor | None, list[Tensor | None]]:
    """Derivative of y along a direction, and the gradient of its product with ``w``."""
    if all(m is None for m in moves):
        return None, [None] * len(inputs)
    again = state.grad_enabled
    count = len(problem.system.closed_over)
    if again and count:
        raise NumgradNotImplementedError(
            "solve_ivp: third derivatives by what the function closes over; pass it in args"
        )
    known = len(inputs) - count
    operands = [
        OPS["positive"](x) if again and x.requires_grad else x.detach() for x in inputs[:known]
    ]
    fresh = [x for x, each in zip(operands, followed, strict=False) if each and not x.requires_grad]
    for x in fresh:
        x.requires_grad_()
    with enable_grad():
        moved = along(problem, [*operands, *inputs[known:]], moves)
    x = [
        t
        for t, each in zip((*operands, *problem.system.closed_over), followed, strict=True)
        if each
    ]
    grads = iter(Linearization([moved], x, create_graph=again).pull([w]))
    for leaf in fresh:
        leaf._requires_grad = False
    return moved, [next(grads) if each else None for each in followed]


def along(
    problem: InitialValueProblem, inputs: Sequence[Tensor], moves: Sequence[Tensor | None]
) -> Tensor:
    """The derivative of the states along a direction: the solution of a larger system."""
    system = problem.system
    t0, times, y0 = inputs[:3]
    params = problem.params(inputs)
    dt0, dtimes, dy0, *drest = moves
    n, count = y0.shape[0], len(params)
    weight = _weight(inputs[2:], moves[2:])
    start = filled(None if dy0 is None else dy0 * (1 / weight), y0.shape, y0.dtype)
    if dt0 is not None:
        start = start - system.rhs(t0, y0, *params) * (dt0 * (1 / weight))
    # whichever move, and the closures at last, as the rule has them
    directions = [(k, m * (1 / weight)) for k, m in enumerate(drest) if m is not None]

    def rhs(t: Any, z: Any, *both: Any) -> Tensor:
        steps: list[Any] = [None] * len(drest)
        for (k, _), m in zip(directions, both[count:], strict=True):
            steps[k] = m
        out, moved = slopes_jvp(system, t, z[:n], both[:count], [z[n:], *steps])
        return OPS["concat"]([out, moved])

    twice = InitialValueProblem(
        OdeSystem(rhs, system.closed_over, system.compiled), problem.settings.twice(n)
    )
    z = SolveIvp.apply(
        twice, t0, times, OPS["concat"]([y0, start]), *params, *(m for _, m in directions),
        *system.closed_over,
    )  # fmt: skip
    tangent = z[:, n:] * weight
    if dtimes is None:
        return tangent
    slopes = [
        system.rhs(times[k], z[k, :n], *params) * dtimes[k] for k in range(int(times.shape[0]))
    ]
    return tangent + OPS["stack"](slopes) if slopes else tangent


def _weight(inputs: Sequence[Tensor], moves: Sequence[Tensor | None]) -> float:
    """How much a direction changes its operands, relatively: tolerances mean a change of them."""
    largest = 0.0
    for x, m in zip(inputs, moves, strict=True):
        step = None if m is None else state.ground.numbers(m)
        values = None if m is None else state.ground.numbers(x)
        if step is not None and values is not None and step.size:
            size = np.abs(values)
            size = np.where(size > 0, size, np.max(size, initial=0.0) or 1.0)
            largest = max(largest, float(np.max(np.abs(step) / size)))
    return largest if 0 < largest < np.inf else 1.0
