"""Functions applied to parts of an array: along an axis, over axes, where conditions hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.batching.selected import Selected, selected
from numgrad.core.axis import one_axis
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradValueError
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.creation import asarray, zeros_like
from numgrad.tensors.tensor import Tensor


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """The results of a function of vectors, called with each vector along an axis.

    Parameters
    ----------
    func1d
        Function of a Tensor of one axis and the further arguments; its results have one shape.
    axis
        Axis along which the vectors lie.
    arr
        Array.
    *args, **kwargs
        Further arguments of the function.

    Returns
    -------
    Tensor
        Of the shape of ``arr`` with the axis replaced by those of the results.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.apply_along_axis(lambda v: v * np.sum(v), 1, [[1.0, 2.0], [3.0, 4.0]])
    tensor([[ 3.,  6.],
            [21., 28.]])
    """
    x = asarray(arr)
    axis = one_axis("apply_along_axis", as_index("apply_along_axis", axis), x.ndim)
    moved = OPS["moveaxis"](x, axis, -1)
    around = tuple(moved.shape[:-1])
    if 0 in around:
        raise NumgradValueError(
            f"apply_along_axis: an array of shape {tuple(x.shape)} has no vectors along axis "
            f"{axis} that say what the function returns"
        )
    results = [as_operand(func1d(moved[k], *args, **kwargs)) for k in np.ndindex(around)]
    shapes = {tuple(result.shape) for result in results}
    if len(shapes) > 1:
        raise NumgradValueError(
            f"apply_along_axis: the function returned shapes {sorted(shapes)}; they must be equal"
        )
    (shape,) = shapes
    out = OPS["reshape"](OPS["stack"](results), (*around, *shape))
    own = range(len(around), len(around) + len(shape))
    return OPS["moveaxis"](out, tuple(own), tuple(range(axis, axis + len(shape))))


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tensor:
    """The result of ``func(a, axis)`` for one axis after another, which keep their places.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.apply_over_axes(np.sum, ng.ones((2, 3, 4)), (0, 2))
    tensor([[[8.],
             [8.],
             [8.]]])
    """
    x = asarray(a)
    rank = x.ndim
    axes = (axes,) if np.ndim(axes) == 0 else tuple(np.asarray(axes).tolist())
    for axis in axes:
        axis = axis + rank if axis < 0 else axis
        result = as_operand(func(x, axis))
        if len(result.shape) == rank - 1:
            result = OPS["expand_dims"](result, axis)
        if len(result.shape) != rank:
            raise NumgradValueError(
                f"apply_over_axes: the function made shape {tuple(result.shape)} of "
                f"{tuple(x.shape)}; it may keep the number of axes or take one away"
            )
        x = result
    return asarray(x)


def _rank(condition: Any) -> int:
    return len(as_operand(condition).shape)


def _with_values(out: Any, x: Tensor, condition: Any, function: Callable[..., Any]) -> Any:
    """``out`` with what a function gives for elements of ``x`` where a condition holds.

    Where the numbers of the condition are not known, a ``Selected`` stands for these elements: Note
    [Selected elements] in ``autograd.batching.selected``.
    """
    row = OPS["reshape"](x, (-1,))
    mask = OPS["reshape"](OPS["broadcast_to"](condition, x.shape), (-1,))
    into = OPS["reshape"](out, (-1,))
    if state.ground.numbers(mask) is None:
        values = function(selected(row, mask))
        if not isinstance(values, Selected):  # the same for all of them
            return OPS["where"](condition, OPS["astype"](as_operand(values), dtype=x.dtype), out)
        result = OPS["astype"](values, dtype=x.dtype, copy=False).placed(into, mask)
    else:
        numbers = row[mask]
        if not numbers.size:
            return out
        values = OPS["astype"](as_operand(function(numbers)), dtype=x.dtype, copy=False)
        result = OPS["index_put"](into, values, index=mask)
    return OPS["reshape"](result, x.shape)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """A function given by others where conditions hold, of which the last that does counts.

    Each function is called with the elements where its condition holds, so that none meets an
    operand outside of where it is defined.

    Parameters
    ----------
    x
        Array.
    condlist
        Booleans of the shape of ``x``, one array or several.
    funclist
        For each condition a number or a function of a vector and the further arguments; one more is
        for where no condition holds, which else is 0.
    *args, **kw
        Further arguments of the functions.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Raises
    ------
    NumgradError
        If a function needs the number of its elements, or mixes them, where the conditions have no
        numbers: in ``ng.jit`` and ``ng.vmap``. There it is called once, also where none holds.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor([-4.0, 4.0], requires_grad=True)
    >>> y = ng.piecewise(x, [x < 0, x >= 0], [lambda v: -v, np.sqrt])
    >>> y.sum().backward()
    >>> x.grad
    tensor([-1.  ,  0.25])
    """
    x = asarray(x)
    whole = hasattr(condlist, "shape") or not isinstance(condlist, list | tuple)
    rank = _rank(condlist) if whole else 1 + _rank(condlist[0])
    single = rank == 0 or (x.ndim > 0 and rank == 1)
    conditions = [as_operand(c) for c in ([condlist] if single else condlist)]
    conditions = [OPS["astype"](c, dtype=bool, copy=False) for c in conditions]
    count = len(conditions)
    if len(funclist) not in (count, count + 1):
        raise NumgradValueError(
            f"piecewise: {count} conditions and {len(funclist)} functions; give {count} or, with "
            f"one for the rest, {count + 1}"
        )
    if len(funclist) == count + 1:
        rest = conditions[0]
        for condition in conditions[1:]:
            rest = OPS["logical_or"](rest, condition)
        conditions.append(OPS["logical_not"](rest))
    out: Any = zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if callable(function):
            out = _with_values(out, x, condition, lambda v, f=function: f(v, *args, **kw))
        else:
            value = OPS["astype"](as_operand(function), dtype=x.dtype)
            out = OPS["where"](condition, value, out)
    return out
