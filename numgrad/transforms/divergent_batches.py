"""Decisions that differ by example.

Note [Examples that part ways]
------------------------------
Inside ``vmap`` code is run once for all examples. Where some go on and others do not, it is run for
all, and each example takes what is its own. An example that would not have got there computes with
the numbers of one that does, as constants, also of what it reads from outside (Note [Read in a
branch] in ``autograd.batching.batch``): its own might be where the code has no value, and a NaN
that nobody takes would still be one in the gradient. Compilers call this predication, or masked
execution where lanes of a vector diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from numgrad.autograd.batching.batch import Batched, read_in_branch
from numgrad.autograd.batching.examples import beneath, levels_of, spread
from numgrad.core.abstract import AbstractLength
from numgrad.core.foreign import refuse_mask
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import align, flatten, map_leaves, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.tensors.tensor import Tensor


def decided(name: str, value: Any) -> Any:
    """A truth value as a bool, or as it is, if examples differ or it is not known yet.

    Raises
    ------
    NumgradTypeError
        If it is none, or not a single one.
    """
    _check_truth(name, value)
    value = read_in_branch(value)
    flags = _numbers(value)
    if flags is None:
        return truth(name, value)
    if not flags.size:  # a batch of no example
        return False
    return bool(flags.flat[0]) if np.all(flags == flags.flat[0]) else value


def truth(name: str, value: Any) -> Any:
    """A truth value as an array of a trace; raises as ``decided`` does."""
    _check_truth(name, value)
    return OPS["astype"](as_operand(value), np.bool)


def _check_truth(name: str, value: Any) -> None:
    shape = np.shape(value) if not isinstance(value, Tensor) else value.shape
    if tuple(shape) != ():
        raise NumgradTypeError(
            f"{name}: the condition is a {type(value).__name__} of shape {tuple(shape)}; it is one "
            "truth value: np.all or np.any make one of several"
        )
    known = isinstance(value, Tensor | AbstractLength)
    if not known and np.asarray(value).dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: the condition is a {type(value).__name__}; it is one truth value, as a bool "
            "or a number"
        )


def numbered(name: str, value: Any) -> Any:
    """An integer as an int, or as it is, if examples differ or it is not known yet."""
    array = value if isinstance(value, Tensor) else np.asarray(value)
    if tuple(array.shape) != () or array.dtype.kind not in "iub":
        raise NumgradTypeError(
            f"{name}: the index is one integer, got dtype {array.dtype} and shape "
            f"{tuple(array.shape)}"
        )
    value = read_in_branch(value)
    numbers = _numbers(value)
    if numbers is None:
        return value
    if not numbers.size:
        return 0
    return int(numbers.flat[0]) if np.all(numbers == numbers.flat[0]) else value


def _numbers(value: Any) -> np.ndarray | None:
    """A number, or those of all examples; None if they are not known before a compiled call."""
    numbers = state.ground.numbers(beneath(value)) if isinstance(value, Tensor) else value
    return None if numbers is None else np.asarray(numbers)


@contextmanager
def only_for(on: Any, tree: Any) -> Iterator[Any]:
    """Inside is what only those examples do that are ``on``; gives a nesting to do it with.

    The others have the numbers of one of those in it, and in what the code reads besides.
    """
    over = levels_of(on)
    flags = np.asarray(state.ground.numbers(beneath(on))).astype(bool)
    index = tuple(int(k) for k in np.unravel_index(int(np.argmax(flags)), flags.shape))

    def of_running(leaf: Any) -> Any:
        leaf = read_in_branch(leaf)  # of a branch around this one
        if set(over).isdisjoint(levels_of(leaf)):
            return leaf
        one = beneath(spread(leaf, over))[index].detach()
        return np.where(on, leaf, one)

    if not flags.any():
        yield tree
        return
    with over[-1].only_for(of_running):
        yield map_leaves(lambda x: of_running(x) if isinstance(x, Batched) else x, tree)


def select(name: str, on: Any, a: Any, b: Any) -> Any:
    """A nesting whose leaves are those of ``a`` where ``on``, else of ``b``."""
    of_a: list[Any] = []
    of_b: list[Any] = []
    nesting = flatten(a, of_a)
    where = align(nesting, b, of_b, "the result")
    if where is not None:
        refuse_nesting(name, where)
    return unflatten(nesting, (_of_two(name, on, x, y) for x, y in zip(of_a, of_b, strict=True)))


def refuse_nesting(name: str, where: str) -> NoReturn:
    """Raise for branches that return other nestings."""
    raise NumgradValueError(
        f"{name}: {where} is nested otherwise in another branch; all return the same nesting"
    )


def check_shapes(name: str, a: Sequence[Any], b: Sequence[Any]) -> None:
    """Raise where two branches return other shapes in one place."""
    if tuple(a) != tuple(b):
        raise NumgradValueError(
            f"{name}: branches return shapes {tuple(a)} and {tuple(b)} in one place; all return "
            "the same shapes"
        )


def leaf(name: str, what: str, x: Any) -> Tensor:
    """A leaf of a nesting as a Tensor.

    Raises
    ------
    NumgradTypeError
        If it is neither an array nor a number.
    """
    if isinstance(x, Tensor):
        return x
    refuse_mask(name, x)
    if not isinstance(x, AbstractLength) and np.asarray(x).dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: {what} holds a {type(x).__name__}; it holds arrays and numbers"
        )
    return Tensor(state.ground.lift(x))


def _of_two(name: str, on: Any, x: Any, y: Any) -> Any:
    if x is None or y is None:
        return None
    check_shapes(name, *(a.shape if isinstance(a, Tensor) else np.shape(a) for a in (x, y)))
    return np.where(on, x, y)


def advanced(name: str, on: Any, body: Callable[[Any], Any], carry: Any) -> Any:
    """``body(carry)`` for those examples that are ``on``; the others stay as they are."""
    if on is True:
        return body(carry)
    with only_for(on, carry) as own:
        made = body(own)
    return select(name, on, made, carry)


def branched(
    name: str,
    on: Any,
    first: Callable[..., Any],
    second: Callable[..., Any],
    operands: Sequence[Any],
) -> Any:
    """``first(*operands)`` for those examples that are ``on``, ``second`` for the others."""
    off = OPS["logical_not"](on)
    with only_for(on, tuple(operands)) as own:
        a = first(*own)
    with only_for(off, tuple(operands)) as own:
        b = second(*own)
    return select(name, on, a, b)
