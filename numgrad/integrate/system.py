"""The right-hand side of a system of differential equations, and its derivatives as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.core.interpreter import eagerly, state
from numgrad.core.op import OPS
from numgrad.errors import NumgradNotImplementedError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import jacobian
from numgrad.transforms.linearization import Linearization, filled
from numgrad.transforms.products import vjp


class OdeSystem:
    """``dy/dt = rhs(t, y, *params)``, where all but ``t`` are Tensors and ``y`` is a vector.

    Note [Closures of a system]
    ---------------------------
    A gradient also flows to what the right-hand side closes over: Note [Closures]. Each evaluation,
    also in a backward, leads there. A rule has these places as inputs that nobody reads, which only
    says where gradients go.

    Attributes
    ----------
    captured
        Tensors with the place in the graph of what is closed over; their numbers mean nothing.
    compiled
        Whether ``ng.jit`` compiles what is evaluated.
    """

    def __init__(
        self, rhs: Callable[..., Tensor], captured: Sequence[Tensor] = (), compiled: bool = False
    ) -> None:
        self.rhs, self.captured, self.compiled = rhs, tuple(captured), compiled
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
        self.like = [*(self.params[k] for k in followed), *system.captured]
        self.count = sum(int(p.size) for p in self.like)
        self.evaluations = 0
        self.failure: BaseException | None = None

    def scales(self) -> np.ndarray:
        """How large each number is that is differentiated by, 1 where it is not known."""
        known = [np.abs(self.params[k]._array).ravel() for k in self.followed]
        known += [np.ones(t.size) for t in self.system.captured]
        whole = np.concatenate([np.ones(0), *known])
        return np.where((whole > 0) & np.isfinite(whole), whole, 1.0)

    def _guarded(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except BaseException as error:  # the user's: no business of the solver's
            self.failure = error
            raise

    def value(self, t: float, y: np.ndarray) -> np.ndarray:
        """The right-hand side."""
        return self._guarded(lambda: self._value(t, y))

    def _value(self, t: float, y: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        with eagerly(grad_enabled=False):
            if self.system.compiled:
                fast = self.system.made("value", lambda: self.system.rhs)
                return np.asarray(fast(np.float64(t), y, *self.params))
            return self.system.rhs(t, Tensor(y), *self.params)._array

    def _recorded(self, t: float, y: np.ndarray) -> tuple[Tensor, list[Tensor]]:
        """The right-hand side on the tape, and what it may be differentiated by."""
        own = Tensor(np.array(y), True)
        params = list(self.params)
        for k in self.followed:
            params[k] = Tensor(params[k]._array, True)
        out = self.system.rhs(t, own, *params)
        return out, [own, *(params[k] for k in self.followed), *self.system.captured]

    def pull(self, t: float, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        """``a J``, and after it the same of all that is followed."""
        return self._guarded(lambda: self._pull(t, y, a))

    def _pull(self, t: float, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        system = self.system
        if system.compiled:
            fast = system.made(("pull", self.followed), lambda: _puller(system.rhs, self.followed))
            with eagerly():
                return _numbers(fast(np.float64(t), y, a, *self.params))
        with eagerly(grad_enabled=True):
            out, x = self._recorded(t, y)
            found = Linearization([out], x).pull(
                [Tensor(a.astype(out.dtype, copy=False))], last=not system.captured
            )
        return np.concatenate(
            [
                np.zeros(t.size, t.dtype) if g is None else g._array.ravel()
                for g, t in zip(found, x, strict=True)
            ]
        )

    def matrices(self, t: float, y: np.ndarray) -> np.ndarray:
        """The Jacobian by ``y``, and to the right of it that by all that is followed."""
        return self._guarded(lambda: self._matrices(t, y, None))

    def matrix(self, t: float, y: np.ndarray) -> np.ndarray:
        """The Jacobian by ``y`` alone."""
        return self._guarded(lambda: self._matrices(t, y, 1))

    def _matrices(self, t: float, y: np.ndarray, count: int | None) -> np.ndarray:
        system = self.system
        if system.compiled:
            fast = system.made(("rows", self.followed), lambda: _rows(system.rhs, self.followed))
            with eagerly():
                return _numbers(fast(np.float64(t), y, *self.params))[:, : count and y.size]
        with eagerly(grad_enabled=True):
            out, x = self._recorded(t, y)
            x = x[:count]
            found = Linearization([out], x).rows(0)
        n = y.size
        return np.concatenate(
            [
                np.zeros((n, t.size)) if g is None else g._array.reshape(n, -1)
                for g, t in zip(found, x, strict=True)
            ],
            axis=1,
        )


def _with(params: Sequence[Any], followed: Sequence[int], given: Sequence[Any]) -> list[Any]:
    whole = list(params)
    for k, p in zip(followed, given, strict=True):
        whole[k] = p
    return whole


def _numbers(found: Any) -> np.ndarray:
    """What a compiled function returned, without its history: captured tensors may give it one."""
    return np.asarray(found.detach() if isinstance(found, Tensor) else found)


def _puller(rhs: Callable[..., Tensor], followed: tuple[int, ...]) -> Callable[..., Tensor]:
    def pulled(t: Any, y: Any, a: Any, *params: Any) -> Tensor:
        _, product = vjp(
            lambda y, *given: rhs(t, y, *_with(params, followed, given)),
            y, *[params[k] for k in followed],
        )  # fmt: skip
        found = product(a)
        return OPS["concat"]([g.reshape(-1) for g in (found if followed else (found,))])

    return pulled


def _rows(rhs: Callable[..., Tensor], followed: tuple[int, ...]) -> Callable[..., Tensor]:
    def rows(t: Any, y: Any, *params: Any) -> Tensor:
        found = jacobian(
            lambda y, *given: rhs(t, y, *_with(params, followed, given)),
            tuple(range(1 + len(followed))),
        )(y, *[params[k] for k in followed])
        return OPS["concat"]([g.reshape(y.size, -1) for g in found], axis=1)

    return rows


def pushed(
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
        except NumgradNotImplementedError:  # what has a rule of reverse mode only
            pass
    own = [OPS["positive"](x) if x.requires_grad else x.detach() for x in (y, *params)]
    for x, m in zip(own, moves, strict=False):
        if m is not None and not x.requires_grad:
            x.requires_grad_()
    out = system.rhs(t, *own)
    moving = [(x, m) for x, m in zip((*own, *system.captured), moves, strict=True) if m is not None]
    linear = Linearization([out], [x for x, _ in moving], create_graph=state.grad_enabled)
    (found,) = linear.push([m for _, m in moving])
    linear.freeze()
    return out, filled(found, y.shape, y.dtype)
