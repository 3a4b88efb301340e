"""Branches as functions: ``cond`` and ``switch``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, flatten, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.argnums import check_function
from numgrad.transforms.divergent_batches import (
    branched,
    check_shapes,
    decided,
    leaf,
    numbered,
    refuse_nesting,
)


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """``true_fn(*operands)`` if ``pred``, else ``false_fn(*operands)``.

    Only one is called; inside ``vmap``, where examples differ, both, and each example gets what is
    its own, gradients too. Where the functions return different dtypes, the result has that of the
    one called, and in compiled functions and batches, which have one result for both, what they
    promote to.

    Parameters
    ----------
    pred
        One truth value.
    true_fn, false_fn
        Functions that return arrays of the same shapes, nested alike.
    *operands
        What they take: arrays, or nestings.

    Raises
    ------
    NumgradTypeError
        If ``pred`` is no single truth value, or a function is none.
    NumgradValueError
        If, for examples that differ, the functions return other shapes or nestings.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> root = lambda x: ng.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)
    >>> ng.vmap(ng.grad(root))(np.array([4.0, -1.0]))
    array([0.25, 0.  ])
    """
    check_function("cond", true_fn)
    check_function("cond", false_fn)
    choice = decided("cond", pred)
    if isinstance(choice, bool):
        return (true_fn if choice else false_fn)(*operands)
    if state.ground.deferred:
        return _compiled("cond", OPS["logical_not"](choice), [true_fn, false_fn], operands)
    return branched("cond", choice, true_fn, false_fn, operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; an index beyond the ends is that of the end.

    Parameters
    ----------
    index
        One integer.
    branches
        Functions that return arrays of the same shapes, nested alike.
    *operands
        What they take: arrays, or nestings.

    Raises
    ------
    NumgradTypeError
        If ``index`` is no integer, or a branch is no function.
    NumgradValueError
        If there is no branch; and as for ``cond``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.switch(1, [np.sin, np.cos, np.tan], 0.0)
    np.float64(1.0)
    """
    if not isinstance(branches, list | tuple):
        raise NumgradTypeError(
            f"switch: branches is a {type(branches).__name__}; give a list of functions"
        )
    if not branches:
        raise NumgradValueError("switch: there is no branch to choose; give one at least")
    for branch in branches:
        check_function("switch", branch)
    choice = numbered("switch", index)
    if isinstance(choice, int):
        return branches[min(max(choice, 0), len(branches) - 1)](*operands)
    if state.ground.deferred:
        return _compiled("switch", choice, branches, operands)
    return _among(choice, branches, 0, *operands)


def _among(index: Any, branches: Sequence[Callable[..., Any]], first: int, *operands: Any) -> Any:
    """The branch of each example, which is ``first`` or a later one."""
    if first == len(branches) - 1:
        return branches[first](*operands)
    here = decided("switch", OPS["less_equal"](index, first))
    rest = partial(_among, index, branches, first + 1)
    if isinstance(here, bool):
        return (branches[first] if here else rest)(*operands)
    return branched("switch", here, branches[first], rest, operands)


def _compiled(
    name: str, which: Tensor, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """As a part of the compiled function, of which one branch runs."""
    from numgrad.compiler.loops.branches import compiled_branches

    nesting: Nesting = None
    shapes: dict[int, Any] = {}

    def leaves_of(k: int) -> list[Any]:
        nonlocal nesting
        outputs: list[Any] = []
        result = branches[k](*operands)
        if not k:
            nesting = flatten(result, outputs)
        elif (where := align(nesting, result, outputs, "the result")) is not None:
            refuse_nesting(name, where)
        made = [None if x is None else leaf(name, "what a branch returns", x) for x in outputs]
        for place, x in enumerate(made):
            if x is not None:
                check_shapes(name, shapes.setdefault(place, x.shape), x.shape)
        return made

    number = OPS["astype"](which, np.int64)
    functions = [partial(leaves_of, k) for k in range(len(branches))]
    results = compiled_branches(name, number, functions)
    return unflatten(nesting, iter(results))
