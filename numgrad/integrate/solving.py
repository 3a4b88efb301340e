"""SciPy solves: the system itself, its adjoint, its sensitivities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.integrate.system import Slopes

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
        """Of the method."""
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
    for place, k in enumerate(order):
        state[:n] += w[k] * d / largest
        until = float(times[order[place + 1]]) if place + 1 < len(order) else run.t0
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
    """By all derivatives of the solution, which are kept for the next weights."""
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
    ordered, places = np.unique(times * _sign(run.t0, times), return_inverse=True)
    ordered = ordered * _sign(run.t0, times)
    if ordered[-1] == run.t0:
        columns = np.broadcast_to(start.ravel()[:, None], (start.size, ordered.size))
    else:
        whole = solved(
            settings, fun, (run.t0, ordered[-1]), start.ravel(), ordered, jac=jac, slopes=slopes
        )
        columns = _steps(whole, "the sensitivities").y
    return (columns.T.reshape(-1, count, n) / scale[:, None])[places.ravel()]
