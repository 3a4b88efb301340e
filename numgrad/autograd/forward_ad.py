"""Forward mode: values that carry the tangent of a direction along.

Note [Dual levels]
------------------
Entering a level pushes a ``ForwardInterpreter``, so that code outside pays nothing. It lets what is
below compute the result, reverse mode included, and then the tangent of the result, which is kept
beside it in ``Extra.tangents`` under the level's interpreter. Since tangents are computed below the
level too, they have a graph and tangents of the outer levels: reverse over forward, forward over
reverse and nested levels need nothing more. No tangent at all stands for zero. Inside ``vmap`` a
level is put below those of examples, where the tape is: duals there are whole batches.

Some formulas read the record of the call, which the tape alone makes, on bare arrays. It is asked
for by ``bind_recorded``, level by level: one that were passed over would lose what it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from numgrad.autograd.batching.batch import below_examples
from numgrad.autograd.batching.selected import (
    as_examples,
    beneath,
    levels_of,
    lowered,
    raised,
    spread,
)
from numgrad.autograd.forward_rules import pushforward, reads_call, takes_tangent
from numgrad.autograd.node import Node
from numgrad.autograd.variable import Extra, Tensor, extra, root
from numgrad.autograd.versions import shared_version
from numgrad.core.abstract import zeros
from numgrad.core.arguments import complete
from numgrad.core.interpreter import Interpreter, ThreadSettings, bind, bind_recorded, state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import Call
from numgrad.core.primitive import Composite
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.shape import holds_tensors, stacked

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
    "unpack_dual",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, None for zero, from ``unpack_dual``."""

    primal: Tensor
    tangent: Tensor | None


class ForwardInterpreter(Interpreter):
    """One dual level: what operations mean inside it."""

    several = False
    """Whether a Tensor has several tangents here: see ``autograd.structured_jacobians``."""

    def __init__(self) -> None:
        self._below = state.interpreters[: below_examples()]
        self._holders: WeakSet[Extra] = WeakSet()
        # A node saves its own result as a bare array, and hooks pack whatever it saves. What a
        # recorded backward makes of that has its place in the graph, by which its tangent is
        # found: {node: {slot: tangent}}.
        self._places: WeakKeyDictionary[Node, dict[int, Tensor]] = WeakKeyDictionary()

    def below(self) -> ThreadSettings:
        """Make calls inside without this level."""
        return ThreadSettings(interpreters=self._below)

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if isinstance(op, Composite):
            return op.expanded(args, params)
        return self._apply(op, args, params, False)[0]

    def recorded(self, op: Op, args: tuple, params: dict[str, Any]) -> tuple[Any, Call | None]:
        return self._apply(op, args, params, True)

    def _apply(
        self, op: Op, args: tuple, params: dict[str, Any], wants_call: bool
    ) -> tuple[Any, Call | None]:
        """The result, with its tangent, and the record of the call where it is wanted."""
        args, params = complete(op, args, params)
        args = tuple([gathered(a) for a in args])
        tangents = [
            self.tangent(a) if isinstance(a, Tensor) and takes_tangent(op, k) else None
            for k, a in enumerate(args)
        ]
        active = op.differentiable and any(t is not None for t in tangents)
        with self.below():
            if wants_call or (active and reads_call(op)):
                out, call = bind_recorded(op, args, params)
            else:
                out, call = bind(op, args, params), None
            if active and any(y.dtype.kind in "fc" for y in _outputs(out)):
                tangent = pushforward(op, args, params, tangents, out, call)
                for y, t in zip(_outputs(out), _outputs(tangent), strict=True):
                    if t is not None:
                        self.set_tangent(y, t)
        return out, call

    # ------------------------------------------------------------------------------- tangents

    def tangent(self, tensor: Tensor) -> Tensor | None:
        """The tangent of ``tensor`` at this level; None is zero."""
        tangent = self._own_tangent(tensor)
        owner = root(tensor)
        if tangent is not None or owner is tensor:
            return tangent
        # a view made before something with a tangent was written to its root
        of_owner = self._own_tangent(owner)
        if of_owner is None:
            return None
        with self.below():
            where = state.ground.region(owner, tensor)
            tangent = bind(OPS["region"], (of_owner,), {"where": where})
        if isinstance(tangent._memory, Tensor):  # else a copy, which does not follow the root
            self.set_tangent(tensor, tangent)
        return tangent

    def _own_tangent(self, tensor: Tensor) -> Tensor | None:
        side = tensor._extra
        if side is not None and side.tangents is not None and self in side.tangents:
            return side.tangents[self]
        node = tensor._grad_fn
        if node is not None and node in self._places:
            return self._places[node].get(tensor._slot)
        return None

    def set_tangent(self, tensor: Tensor, tangent: Tensor) -> None:
        """Give ``tensor`` a tangent of its shape and dtype."""
        side = extra(tensor)
        if side.tangents is None:
            side.tangents = {}
        side.tangents[self] = tangent
        self._holders.add(side)
        node = tensor._grad_fn
        if node is not None:
            self._places.setdefault(node, {})[tensor._slot] = tangent

    def duplicate(self, original: Tensor, twin: Tensor) -> None:
        """Give ``twin``, a copy of ``original``, a copy of its tangent.

        What an in-place operation computes from such a copy is not overwritten by ``assign``.
        """
        tangent = self.tangent(original)
        if tangent is not None:
            with self.below():
                self.set_tangent(twin, bind(OPS["copy"], (tangent,), {}))

    def assign(self, target: Tensor, result: Any) -> None:
        """Give ``target``, into which ``result`` was written, the tangent of that.

        A tangent that ``target`` has is written to, so that views of it change with it. Where it
        has none, its root gets one.
        """
        self.write(target, self.tangent(result) if isinstance(result, Tensor) else None)

    def write(self, target: Tensor, new: Tensor | None) -> None:
        """Let the tangent of ``target``, which was written to, be another one; None is zero."""
        if target.dtype.kind not in "fc":
            return
        owner = root(target)
        if self.tangent(target) is None:
            if new is None:
                return
            with self.below():
                own = as_examples(Tensor(zeros(owner.shape, owner.dtype)), new)
            self.set_tangent(owner, own)
        source = Tensor(zeros((), target.dtype)) if new is None else new
        present: Any = self.tangent(target)
        with self.below():
            if self._own_tangent(target) is not None:
                present[...] = source
            else:
                where = state.ground.region(owner, target)
                whole = bind(
                    OPS["copy_slices"], (self._own_tangent(owner), source), {"where": where}
                )
                self.set_tangent(owner, whole)

    def close(self) -> None:
        """Drop every tangent of this level."""
        for side in list(self._holders):
            side.tangents.pop(self, None)
        self._places.clear()


def _outputs(out: Any) -> tuple:
    return out if isinstance(out, tuple) else (out,)


def gathered(a: Any) -> Any:
    """A list with Tensors in it as one Tensor, so that their tangents are seen."""
    if isinstance(a, list | tuple) and holds_tensors(a):
        return stacked(a)
    return a


# -------------------------------------------------------------------------------------- levels


def _levels() -> list[ForwardInterpreter]:
    """The levels of this thread, from the outside in."""
    return [each for each in state.interpreters if isinstance(each, ForwardInterpreter)]


def has_tangent(tensor: Tensor) -> bool:
    """Whether a tensor has a tangent at a level of this thread, which an array cannot carry."""
    return any(level.tangent(beneath(tensor)) is not None for level in _levels())


def share_tangents(original: Tensor, twin: Tensor) -> None:
    """Give ``twin``, over the memory of ``original``, the same tangents."""
    for level in _levels():
        tangent = level.tangent(original)
        if tangent is not None:
            level.set_tangent(twin, tangent)


def _level(name: str, level: int | None) -> ForwardInterpreter:
    levels = _levels()
    if not levels:
        raise NumgradRuntimeError(
            f"{name}: no dual level is active in this thread; use it inside "
            "'with forward_ad.dual_level():'"
        )
    if level is None:
        return levels[-1]
    if not 0 <= level < len(levels):
        raise NumgradRuntimeError(
            f"{name}: level {level} is not active; the levels of this thread are 0 to "
            f"{len(levels) - 1}"
        )
    return levels[level]


def enter_dual_level() -> int:
    """Enter a dual level and return its number; ``dual_level`` does this for a block.

    Examples
    --------
    >>> import numgrad as ng
    >>> level = ng.autograd.forward_ad.enter_dual_level()
    >>> level
    0
    >>> ng.autograd.forward_ad.exit_dual_level(level=level)
    """
    stack, position = state.interpreters, below_examples()
    state.set(interpreters=(*stack[:position], ForwardInterpreter(), *stack[position:]))
    return len(_levels()) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the innermost dual level: its duals lose their tangents.

    Parameters
    ----------
    level
        The number that ``enter_dual_level`` returned; a level that is not the innermost is an
        error.

    Raises
    ------
    NumgradRuntimeError
        If no level is active, or another one is the innermost.
    """
    innermost = _level("exit_dual_level", None)
    if _level("exit_dual_level", level) is not innermost:
        raise NumgradRuntimeError(
            f"exit_dual_level: level {level} is not the innermost, which is "
            f"{len(_levels()) - 1}; leave that first"
        )
    stack, position = state.interpreters, below_examples()
    if stack[position - 1] is not innermost:
        raise NumgradRuntimeError(
            "exit_dual_level: something entered inside the level is still active; leave that first"
        )
    state.set(interpreters=(*stack[: position - 1], *stack[position:]))
    innermost.close()


class dual_level(ContextDecorator):
    """A block in which duals carry tangents; a context manager and a decorator.

    Levels may be nested: a tangent of an inner level can have a tangent of an outer one, which is a
    second derivative. Each thread has its own.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> fw = ng.autograd.forward_ad
    >>> with fw.dual_level():
    ...     x = fw.make_dual(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 0.0]))
    ...     fw.unpack_dual(x * x).tangent
    tensor([2., 0.])
    """

    def __enter__(self) -> int:
        state.enter(self, len(_levels()))
        try:
            return enter_dual_level()
        except BaseException:  # such as a signal handler's
            if len(_levels()) > state.leave(self):
                exit_dual_level()
            raise

    def __exit__(self, *exception: object) -> None:
        level = state.leave(self)
        if level is None:  # entered by another thread
            return
        while len(_levels()) - 1 > level:  # entered inside, and an exception passed their exit
            exit_dual_level()
        exit_dual_level(level=level)


def make_dual(primal: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """``primal`` with a tangent: a view of it, through which gradients flow as well.

    Parameters
    ----------
    primal
        A Tensor (or array) of a floating or complex dtype.
    tangent
        A Tensor or array of the same shape, real or complex as the primal is; a Tensor of its dtype
        is kept as the object it is.
    level
        The innermost level, which is the default.

    Raises
    ------
    NumgradRuntimeError
        If no level is active, shapes differ, the dtypes do not suit, or either has a tangent at
        this level already.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> fw = ng.autograd.forward_ad
    >>> with fw.dual_level():
    ...     fw.unpack_dual(np.sin(fw.make_dual(ng.tensor(0.0), ng.tensor(3.0))))
    UnpackedDualTensor(primal=tensor(0.), tangent=tensor(3.))
    """
    active = _level("make_dual", level)
    if active is not _levels()[-1]:
        raise NumgradRuntimeError(
            f"make_dual: level {level} is not the innermost; make the dual before entering "
            "another level"
        )
    primal, tangent = _tensor("make_dual", primal), _tensor("make_dual", tangent)
    over = sorted({*levels_of(primal), *levels_of(tangent)}, key=state.interpreters.index)
    if over and primal.shape == tangent.shape:  # else the error is that of one example
        primal = beneath(spread(primal, over))
        return raised(make_dual(primal, lowered(tangent, over), level=level), over)
    for what, x in (("primal", primal), ("tangent", tangent)):
        if x.dtype.kind not in "fc":
            raise NumgradValueError(
                f"make_dual: the {what} is {x.dtype}, which has no derivatives; convert it to a "
                "floating or complex dtype"
            )
        if active.tangent(x) is not None:
            raise NumgradRuntimeError(
                f"make_dual: the {what} has a tangent at this level already; take it apart with "
                "unpack_dual, or enter another level"
            )
    if primal.shape != tangent.shape:
        raise NumgradRuntimeError(
            f"make_dual: the tangent has shape {tangent.shape}, the primal {primal.shape}; they "
            "must be equal"
        )
    if (primal.dtype.kind == "c") != (tangent.dtype.kind == "c"):
        raise NumgradRuntimeError(
            f"make_dual: the tangent is {tangent.dtype}, the primal {primal.dtype}; both must be "
            "real or both complex"
        )
    with active.below():
        if tangent.dtype != primal.dtype:
            tangent = bind(OPS["astype"], (tangent, primal.dtype), {})
        dual = bind(OPS["reshape"], (primal, primal.shape), {})
    active.set_tangent(dual, tangent)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A dual as its primal, over the same memory, and its tangent at a level.

    Parameters
    ----------
    tensor
        Any Tensor; one without a tangent gives None for it, as any does outside of all levels.
    level
        By default the innermost.

    Raises
    ------
    NumgradRuntimeError
        If the level is not active, or the tensor has a tangent at a level inside it: take it apart
        at that one first.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.forward_ad.unpack_dual(ng.tensor(2.0))
    UnpackedDualTensor(primal=tensor(2.), tangent=None)
    """
    tensor = _tensor("unpack_dual", tensor)
    if over := levels_of(tensor):
        primal, tangent = unpack_dual(beneath(tensor), level=level)
        moved = None if tangent is None else raised(tangent, over)
        return UnpackedDualTensor(raised(primal, over), moved)
    levels = _levels()
    if not levels and level is None:
        return UnpackedDualTensor(tensor, None)
    active = _level("unpack_dual", level)
    if any(inner.tangent(tensor) is not None for inner in levels[levels.index(active) + 1 :]):
        raise NumgradRuntimeError(
            f"unpack_dual: the tensor has a tangent at a level inside level {level}; take it apart "
            "there first"
        )
    with active.below():
        primal = bind(OPS["reshape"], (tensor, tensor.shape), {})
    # a view would have the tangent of its root
    primal._memory = shared_version(tensor)
    return UnpackedDualTensor(primal, active.tangent(tensor))


def _tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise NumgradTypeError(f"{name}: cannot make an array: {error}") from None
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(f"{name}: a {type(value).__name__} is neither Tensor nor array")
    return Tensor(array)


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """``function(*primals)`` and the derivative of its result along ``tangents``.

    A tangent of None makes its primal a constant. Results are a Tensor or a tuple of them; the
    derivative of one that does not depend on the primals is zero.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.autograd.forward_ad.jvp(np.sin, [ng.tensor(0.0)], [ng.tensor(1.0)])
    (tensor(0.), tensor(1.))
    """
    with dual_level():
        duals = [
            p if t is None else make_dual(p, t) for p, t in zip(primals, tangents, strict=True)
        ]
        result = function(*duals)
        unpacked = [unpack_dual(y) for y in _outputs(result)]
    values = tuple(each.primal for each in unpacked)
    out_tangents = tuple(
        Tensor(zeros(each.primal.shape, each.primal.dtype))
        if each.tangent is None
        else each.tangent
        for each in unpacked
    )
    return (values, out_tangents) if isinstance(result, tuple) else (values[0], out_tangents[0])
