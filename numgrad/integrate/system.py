"""A system of differential equations on the leaves of its state and arguments, and derivatives."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.core.abstract import AbstractLength
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import eagerly, state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, flatten, leaves, paths, unflatten
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError, NumgradValueError
from numgrad.implicit.solution import Gate, Gated
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import check_function
from numgrad.transforms.derivatives import jacobian
from numgrad.transforms.linearization import Linearization, filled
from numgrad.transforms.products import vjp


def _numeric(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray | np.generic | float | complex)


def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0
    return isinstance(x, int | float | complex | np.generic | np.ndarray) and np.ndim(x) == 0


def _lifted(name: str, what: str, x: Any) -> Tensor:
    """A leaf as a Tensor; ``what`` says where it comes from, as in "y0 is"."""
    if isinstance(x, Tensor):
        return x
    refuse_mask(name, x)
    if not isinstance(x, AbstractLength) and np.asarray(x).dtype.kind not in "biufc":
        raise NumgradTypeError(f"{name}: {what} a {type(x).__name__}; give arrays or numbers")
    return Tensor(state.ground.lift(x))


def state_leaves(name: str, y0: Any) -> tuple[Nesting, list[Tensor]]:
    """The nesting of a first state, and its leaves; a list of numbers is a vector."""
    if type(y0) in (list, tuple) and y0 and all(map(_is_number, y0)):
        y0 = OPS["stack"]([_lifted(name, "y0 holds", x) for x in y0])
    leaves: list[Any] = []
    nesting = flatten(y0, leaves)
    where = paths(nesting, "y0")
    return nesting, [_lifted(name, f"{path} is", x) for path, x in zip(where, leaves, strict=True)]


def derivative_leaves(
    name: str, out: Any, nesting: Nesting, shapes: Sequence[tuple], dtypes: Sequence[np.dtype]
) -> list[Tensor]:
    """What a right-hand side returned, as leaves that belong to those of the state."""
    if nesting is None and isinstance(out, list | tuple) and out:
        out = OPS["stack"]([_lifted(name, "the function returned", x) for x in out])
    leaves: list[Any] = []
    where = align(nesting, out, leaves, "y")
    if where is not None:
        raise NumgradValueError(
            f"{name}: the function returned a {type(out).__name__} that is at {where} nested "
            "otherwise than y0; return the derivative of each part, nested as y0"
        )
    slopes = []
    for k, (leaf, shape, dtype) in enumerate(zip(leaves, shapes, dtypes, strict=True)):
        slope = _lifted(name, "the function returned", leaf)
        if tuple(slope.shape) != tuple(shape):
            raise NumgradValueError(
                f"{name}: the function returned shape {tuple(slope.shape)} for "
                f"{list(paths(nesting, 'y'))[k]} of shape {tuple(shape)}; return the derivative of "
                "each element"
            )
        if slope.dtype.kind == "c" and dtype.kind != "c":
            raise NumgradTypeError(
                f"{name}: the function returned dtype {slope.dtype} for "
                f"{list(paths(nesting, 'y'))[k]}, which is real; give a complex y0, such as "
                "y0.astype(complex)"
            )
        slopes.append(slope if slope.dtype == dtype else OPS["astype"](slope, dtype))
    return slopes


class RightSideArguments:
    """The arguments of the right-hand side: arrays among them, and what is none."""

    def __init__(self, args: tuple) -> None:
        leaves: list[Any] = []
        self.nesting = flatten(args, leaves)
        for leaf in leaves:
            refuse_mask("solve_ivp", leaf)
            if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "biufc":
                raise NumgradTypeError(
                    f"solve_ivp: args has an array of dtype {leaf.dtype} in it; give numbers"
                )
        self.others = tuple(None if _numeric(leaf) else (leaf,) for leaf in leaves)
        self.tensors = [
            leaf if isinstance(leaf, Tensor) else Tensor(np.array(leaf))
            for leaf in leaves
            if _numeric(leaf)
        ]

    def given(self, tensors: Sequence[Any]) -> tuple:
        """The arguments with other arrays."""
        return arranged(self.nesting, self.others, tensors)


def arranged(nesting: Nesting, others: tuple, tensors: Sequence[Any]) -> tuple:
    """Arguments of a right side: arrays apart from others, which have None where arrays are."""
    remaining = iter(tensors)
    return unflatten(nesting, (next(remaining) if o is None else o[0] for o in others))


class Layout:
    """How a state is made of a vector."""

    def __init__(self, y0: Any) -> None:
        self.nesting, tensors = state_leaves("solve_ivp", y0)
        if not sum(t.size for t in tensors):
            raise NumgradValueError("solve_ivp: y0 has no array in it; give a state")
        kind = np.result_type(np.float64, *[t.dtype for t in tensors])
        self.shapes = tuple(tuple(t.shape) for t in tensors)
        self.real = tuple(t.dtype.kind != "c" for t in tensors)
        flat = [OPS["astype"](t, kind) if t.dtype != kind else t for t in tensors]
        flat = [t if t.ndim == 1 else OPS["reshape"](t, (t.size,)) for t in flat]
        self.vector: Tensor = flat[0] if len(flat) == 1 else OPS["concat"](flat)
        self.key = self.nesting, self.shapes, self.real

    def states(self, y: Tensor, ndim: int = 1) -> Any:
        """Vectors of all times, of shape (times, state), as states with times at last."""
        if ndim == 0:
            return unravelled(y[0], *self.key)
        return unravelled(y, *self.key, batch=True)

    def recorded_states(self, y: np.ndarray) -> Any:
        """States that SciPy has recorded at events, with times in front, as SciPy has them."""
        if self.nesting is None and len(self.shapes[0]) == 1:
            return y
        if not y.size:
            return y
        whole = unravelled(Tensor(y), *self.key, batch=True, front=True)
        return unflatten(self.nesting, (leaf._array for leaf in leaves(whole)))

    def events(self, events: Any, arguments: RightSideArguments) -> Any:
        """Events of a state as those of a vector."""
        if events is None:
            return None
        several = isinstance(events, list | tuple)
        functions = tuple(events) if several else (events,)
        for event in functions:
            check_function("solve_ivp: events", event)
        numbers = arguments.given([t._array for t in arguments.tensors if t is not None])

        def wrapped(event: Callable[..., Any]) -> Callable[..., Any]:
            def of_vector(t: float, y: np.ndarray) -> float:
                value = event(t, unravelled(Tensor(y), *self.key), *numbers)
                return float(value)

            for name in ("terminal", "direction"):
                if hasattr(event, name):
                    setattr(of_vector, name, getattr(event, name))
            return of_vector

        return [wrapped(event) for event in functions]


def unravelled(
    y: Any, nesting: Nesting, shapes: tuple, real: tuple, batch: bool = False, front: bool = False
) -> Any:
    """A state of a vector; with ``batch`` several, along the last axis or in front."""
    if nesting is None and len(shapes[0]) == 1:
        return OPS["swapaxes"](y, 0, 1) if batch and not front else y
    chunks, start = [], 0
    for shape, is_real in zip(shapes, real, strict=True):
        stop = start + prod(shape)
        chunk = y[..., start:stop]
        if is_real and chunk.dtype.kind == "c":
            chunk = OPS["real"](chunk)
        lead = (chunk.shape[0],) if batch else ()
        chunk = OPS["reshape"](chunk, (*lead, *shape))
        chunks.append(OPS["moveaxis"](chunk, 0, -1) if batch and not front else chunk)
        start = stop
    return unflatten(nesting, iter(chunks))


def ravelled(out: Any, nesting: Nesting, shapes: tuple, kind: np.dtype) -> Tensor:
    """Result of the right-hand side, as a vector."""
    leaves = derivative_leaves("solve_ivp", out, nesting, shapes, [kind] * len(shapes))
    flat = [t if t.ndim == 1 else OPS["reshape"](t, (t.size,)) for t in leaves]
    return flat[0] if len(flat) == 1 else OPS["concat"](flat)


class OdeSystem:
    """``dy/dt = rhs(t, y, *params)``, where all but ``t`` are Tensors and ``y`` is a vector.

    Note [Closures of a system]
    ---------------------------
    A gradient also flows to what the right-hand side closes over: Note [Closures]. Each evaluation,
    also in a backward, leads there. A rule has these places as inputs that nobody reads, which only
    says where gradients go.

    Attributes
    ----------
    closed_over
        Tensors with the place in the graph of what is closed over; their numbers mean nothing.
    compiled
        Whether ``ng.jit`` compiles what is evaluated.
    """

    def __init__(
        self, rhs: Callable[..., Tensor], closed_over: Sequence[Tensor] = (), compiled: bool = False
    ) -> None:
        self.rhs, self.closed_over, self.compiled = rhs, tuple(closed_over), compiled
        self._made: dict[Any, Callable[..., Any]] = {}

    def made(self, key: Any, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """A compiled function, which is made once."""
        if key not in self._made:
            from numgrad.compiler.api import jit

            self._made[key] = jit(make())
        return self._made[key]


class Slopes:
    """A system at given parameters: numbers in, numbers out.

    Parameters
    ----------
    followed
        Which parameters are differentiated; ``count`` is how many numbers these have, together
        with what is closed over.
    """

    def __init__(self, system: OdeSystem, params: Sequence[Any], followed: Sequence[int]) -> None:
        self.system, self.followed = system, tuple(followed)
        self.params = [p.detach() if isinstance(p, Tensor) else p for p in params]
        self.like = [*(self.params[k] for k in followed), *system.closed_over]
        self.count = sum(int(p.size) for p in self.like)
        self.failure: BaseException | None = None

    def scales(self) -> np.ndarray:
        """How large each number is that is differentiated by, 1 where it is not known."""
        known = [np.abs(self.params[k]._array).ravel() for k in self.followed]
        known += [np.ones(t.size) for t in self.system.closed_over]
        whole = np.concatenate([np.ones(0), *known])
        return np.where((whole > 0) & np.isfinite(whole), whole, 1.0)

    @contextmanager
    def _watched(self, **modes: Any) -> Iterator[None]:
        """Call the user's function, whose errors are no business of the solver's."""
        try:
            with eagerly(**modes):
                yield
        except BaseException as error:
            self.failure = error
            raise

    def value(self, t: float, y: np.ndarray) -> np.ndarray:
        """The right-hand side."""
        with self._watched(grad_enabled=False):
            if self.system.compiled:
                fast = self.system.made("value", lambda: self.system.rhs)
                return np.asarray(fast(np.float64(t), y, *self.params))
            return self.system.rhs(t, Tensor(y), *self.params)._array

    def _recorded(self, t: float, y: np.ndarray) -> tuple[Tensor, list[Tensor]]:
        """The right-hand side on the tape, and what it may be differentiated by."""
        state_tensor = Tensor(np.array(y), True)
        params = list(self.params)
        for k in self.followed:
            params[k] = Tensor(params[k]._array, True)
        out = self.system.rhs(t, state_tensor, *params)
        return out, [state_tensor, *(params[k] for k in self.followed), *self.system.closed_over]

    def pull(self, t: float, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """``a J``, and after it the same of all that is followed."""
        system = self.system
        if system.compiled:
            fast = system.made(("pull", self.followed), self._compiled_pull)
            with self._watched():
                return _numbers(fast(np.float64(t), y, a, *self.params))
        with self._watched(grad_enabled=True):
            out, x = self._recorded(t, y)
            grads = Linearization([out], x).pull(
                [Tensor(a.astype(out.dtype, copy=False))], last=not system.closed_over
            )
        return np.concatenate(
            [
                np.zeros(t.size, t.dtype) if g is None else g._array.ravel()
                for g, t in zip(grads, x, strict=True)
            ]
        )

    def _compiled_pull(self) -> Callable[..., Tensor]:
        rhs, followed = self.system.rhs, self.followed

        def pull(t: Any, y: Any, a: Any, *params: Any) -> Tensor:
            def function(y: Any, *leaves: Any) -> Tensor:
                own = dict(zip(followed, leaves, strict=True))
                return rhs(t, y, *(own.get(k, p) for k, p in enumerate(params)))

            grads = vjp(function, y, *[params[k] for k in followed])[1](a)
            return OPS["concat"]([g.reshape(-1) for g in (grads if followed else (grads,))])

        return pull

    def matrices(self, t: float, y: np.ndarray, count: int | None = None) -> np.ndarray:
        """The Jacobian by ``y``, and to the right of it that by all that is followed."""
        system = self.system
        if system.compiled:
            fast = system.made(("rows", self.followed), self._compiled_rows)
            with self._watched():
                return _numbers(fast(np.float64(t), y, *self.params))[:, : count and y.size]
        with self._watched(grad_enabled=True):
            out, x = self._recorded(t, y)
            x = x[:count]
            blocks = Linearization([out], x).rows(0)
        n = y.size
        return np.concatenate(
            [
                np.zeros((n, t.size)) if g is None else g._array.reshape(n, -1)
                for g, t in zip(blocks, x, strict=True)
            ],
            axis=1,
        )

    def _compiled_rows(self) -> Callable[..., Tensor]:
        derived = jacobian(self.system.rhs, (1, *(2 + k for k in self.followed)))

        def rows(t: Any, y: Any, *params: Any) -> Tensor:
            blocks = derived(t, y, *params)
            return OPS["concat"]([g.reshape(y.size, -1) for g in blocks], axis=1)

        return rows

    def matrix(self, t: float, y: np.ndarray) -> np.ndarray:
        """The Jacobian by ``y`` alone."""
        return self.matrices(t, y, 1)


def _numbers(value: Any) -> np.ndarray:
    """Numbers of a compiled function's result, without its history (by captured tensors)."""
    return np.asarray(value.detach() if isinstance(value, Tensor) else value)


def slopes_jvp(
    system: OdeSystem, t: Any, y: Tensor, params: Sequence[Any], moves: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """The right-hand side, and its derivative along ``moves`` of y, parameters and closures."""
    count = len(params)
    if not any(m is not None for m in moves[1 + count :]):
        try:
            with dual_level():
                duals = [
                    x if m is None else make_dual(x, m)
                    for x, m in zip((y, *params), moves, strict=False)
                ]
                out = unpack_dual(system.rhs(t, *duals))
            return out.primal, filled(out.tangent, y.shape, y.dtype)
        except NumgradNotImplementedError:  # a rule of reverse mode only
            pass
    create_graph, gate = state.grad_enabled, Gate()
    with enable_grad():  # the derivative by closures is found on the tape, whoever asks for it
        operands = [
            OPS["positive"](x) if create_graph and x.requires_grad else x.detach()
            for x in (y, *params)
        ]
        for x, m in zip(operands, moves, strict=False):
            if m is not None and not x.requires_grad:
                x.requires_grad_()
        # operands may depend on what is closed over
        held = [Gated.apply(gate, x) if x.requires_grad else x for x in operands]
        out = system.rhs(t, *held)
        moving = [
            (x, m)
            for x, m in zip((*held, *system.closed_over), moves, strict=True)
            if m is not None
        ]
        linear = Linearization([out], [x for x, _ in moving], create_graph)
        (tangent,) = linear.push([m for _, m in moving])
    gate.is_open = True
    linear.freeze()
    tangent = filled(tangent, y.shape, y.dtype)
    return (out, tangent) if create_graph else (out.detach(), tangent.detach())


Leaves = list[Any]


def as_number(what: str, x: Any) -> Any:
    """An option that is a positive number, or None; one that is an array is constant."""
    if x is None:
        return None
    if isinstance(x, Tensor):
        return x.detach()
    if not isinstance(x, int | float | np.number | np.ndarray) or not np.all(np.asarray(x) > 0):
        raise NumgradValueError(f"odeint: {what} is {x!r}; it is a positive number")
    return float(x)


def _tolerance(what: str, x: Any) -> Any:
    """A tolerance of one leaf, a constant."""
    if isinstance(x, Tensor):
        return x.detach()
    array = np.asarray(x)
    if (
        array.dtype.kind not in "iuf"
        or not np.all(array >= 0)
        or (what == "atol" and not np.all(array))
    ):
        raise NumgradValueError(
            f"odeint: {what} is {x!r}; rtol is not negative, and atol is positive"
        )
    return array if array.ndim else float(array)


def beside(x: Any, state: Any, real: np.dtype) -> Any:
    """A number, or one for each time, to multiply states by."""
    if not isinstance(x, Tensor):
        return x
    x = x if x.dtype == real else OPS["astype"](x, real)
    return OPS["reshape"](x, (*x.shape, *(1,) * (state.ndim - 1))) if x.ndim else x


class Motion:
    """``dy/dt = f(y, t, *args)``, where ``y`` is a list of the leaves of a state.

    Attributes
    ----------
    start
        The first state.
    """

    def __init__(self, f: Callable[..., Any], y0: Any, args: tuple) -> None:
        self.f, self.args = f, args
        self.as_tensors = any(isinstance(x, Tensor) for x in leaves((y0, args)))
        self.nesting, initial = state_leaves("odeint", y0)
        if not initial:
            raise NumgradValueError("odeint: y0 has no array in it; give a state")
        self.start = [y if y.dtype.kind in "fc" else OPS["astype"](y, np.float64) for y in initial]
        self.kinds = [y.dtype for y in self.start]
        self.reals = [np.finfo(kind).dtype for kind in self.kinds]

    def tolerance(self, what: str, value: Any) -> Leaves:
        """A tolerance for each leaf."""
        if value is None:
            return [float(np.sqrt(np.finfo(kind).eps)) for kind in self.reals]
        if self.nesting is not None and not isinstance(value, int | float | np.number | Tensor):
            leaves: list[Any] = []
            where = align(self.nesting, value, leaves, what)
            if where is not None:
                raise NumgradValueError(
                    f"odeint: {where} is nested otherwise than y0; give a number, or one for "
                    "each array of y0"
                )
        else:
            leaves = [value] * len(self.start)
        return [_tolerance(what, x) for x in leaves]

    def slopes(self, y: Sequence[Tensor], t: Any) -> Leaves:
        """The right-hand side, in the dtypes of the state."""
        out = self.f(unflatten(self.nesting, iter(y)), t, *self.args)
        return derivative_leaves("odeint", out, self.nesting, [x.shape for x in y], self.kinds)

    def scaled(self, h: Any, weights: Sequence[Any], slopes: Sequence[Leaves]) -> Leaves:
        """``h`` times a weighted sum of slopes, for each leaf.

        ``h`` and the weights are numbers, or vectors that go along the first axis of slopes.
        """
        terms = [(w, k) for w, k in zip(weights, slopes, strict=True) if isinstance(w, Tensor) or w]
        sums = []
        for leaf, real in enumerate(self.reals):
            total = None
            for w, k in terms:
                term = beside(w, k[leaf], real) * k[leaf]
                total = term if total is None else total + term
            sums.append(beside(h, slopes[0][leaf], real) * total)
        return sums

    def moved(self, y: Leaves, h: Any, weights: Sequence[Any], slopes: Sequence[Leaves]) -> Leaves:
        """``y`` plus ``h`` times a weighted sum of slopes."""
        return [a + b for a, b in zip(y, self.scaled(h, weights, slopes), strict=True)]

    def result(self, rows: Leaves, t: Any) -> Any:
        """States as the caller gets them: ndarrays where nobody asked for Tensors."""
        tensors = self.as_tensors or isinstance(t, Tensor) or state.ground.deferred
        tensors = tensors or bool(state.transforms or state.interpreters)
        if not tensors and not any(y.requires_grad for y in rows):
            rows = [y._array for y in rows]
        return unflatten(self.nesting, iter(rows))
