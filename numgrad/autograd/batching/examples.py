"""Examples of batches as the tape knows them, and arrays that differ by example.

The tape lies below all batches: what it has of an example is the whole batch. So gradients and
tangents of examples are asked for there, and come back as examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.autograd.variable import Tensor
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.interpreter import above_ground, state
from numgrad.core.op import OPS
from numgrad.errors import NumgradIndexError


def levels() -> list[BatchingInterpreter]:
    """The levels of examples that code in this thread is in, the outermost first."""
    stack = state.interpreters[above_ground() :]
    return [each for each in stack if isinstance(each, BatchingInterpreter) and each.examples]


def levels_of(x: Tensor) -> list[BatchingInterpreter]:
    """The levels here of which ``x`` is an example, the outermost first.

    In the step of a loop those around it are no matter of the step: its rule takes them.
    """
    own: list[BatchingInterpreter] = []
    here = levels() if isinstance(x, Batched) else ()
    while isinstance(x, Batched) and x.level in here:
        own.append(x.level)
        x = x.value
    return own[::-1]


def beneath(x: Tensor) -> Tensor:
    """The Tensor of all examples of ``x`` that the tape knows; axes of levels are in front."""
    here = levels() if isinstance(x, Batched) else ()
    while isinstance(x, Batched) and x.level in here:
        x = x.value
    return x


def spread(x: Tensor, over: Sequence[BatchingInterpreter]) -> Tensor:
    """``x`` as an example of each of these levels, the outermost first; repeated where it is none.

    Gradients by the result are gradients by example.
    """
    if set(over) <= set(levels_of(x)):
        return x
    *outer, level = over
    with level._below():
        value = (
            x.value
            if isinstance(x, Batched) and level.owns(x)
            else BatchOperand(x, False).repeated(level.size)
        )
        return Batched(spread(value, outer), level)


def lowered(x: Tensor, below: Sequence[BatchingInterpreter]) -> Tensor:
    """``x`` with the axes of these levels, the outermost, as the tape has it."""
    if not below:
        return x
    if _is_inside(x, below):
        with x.level._below():
            value = lowered(x.value, below)
            return Batched(apply("moveaxis", value, source=len(below), destination=0), x.level)
    return beneath(spread(x, below))


def raised(x: Tensor, above: Sequence[BatchingInterpreter]) -> Tensor:
    """``x``, which has the axes of these levels in front, as an example of each of them."""
    if _is_inside(x, above):
        with x.level._below():
            value = apply("moveaxis", x.value, source=0, destination=len(above))
            return Batched(raised(value, above), x.level)
    for level in above:
        x = Batched(x, level)
    return x


def _is_inside(x: Tensor, levels: Sequence[BatchingInterpreter]) -> TypeGuard[Batched]:
    """Whether ``x`` is an example of a level entered inside of these."""
    if not isinstance(x, Batched) or not levels:
        return False
    stack = state.interpreters
    return stack.index(x.level) > stack.index(levels[-1])


def example_index(part: Any) -> Any:
    """A part of an index that is different for each example, as an array; None for any other."""
    if isinstance(part, list | tuple) and any(isinstance(p, Batched) for p in part):
        part = OPS["stack"](part)
    if not isinstance(part, Batched):
        return None
    if part.dtype.kind not in "iub":
        raise NumgradIndexError(
            f"getitem: an index of dtype {part.dtype} that differs by example; indices are "
            "integers and masks"
        )
    return part


def as_examples(made: Tensor, like: Any) -> Tensor:
    """A new array as memory of its own for each example that ``like`` stands for.

    What is made inside of a trace, such as that of a step, is one array to the levels around it.
    """
    if not isinstance(like, Batched) or like.level not in state.interpreters[above_ground() :]:
        return made
    level = like.level
    with level._below():
        value = apply("copy", BatchOperand(made, False).repeated(level.size))
        return Batched(as_examples(value, like.value), level)
