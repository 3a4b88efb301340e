"""The same elements in another order: axes exchanged, reversed, rolled."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.core.batching import BatchOperand, apply, with_parameters
from numgrad.core.declare import Op, composite, normalize_axes, primitive, view
from numgrad.errors import NumgradValueError
from numgrad.operations.shape import spread
from numgrad.operations.shared_rules import along_axis, integers, of_matrices


@spread(
    ref=np.permute_dims if hasattr(np, "permute_dims") else np.transpose,
    linear=True,
    aliases=("transpose", "permute"),
    samples=[(((2, 3, 4),), {}), (((2, 3, 4),), {"axes": (2, 0, 1)})],
)
def permute_dims(x, *, axes=None):
    """The axes in another order; without ``axes`` reversed.

    Parameters
    ----------
    axes : sequence of ints
        The axes of the operand in their new order; by default reversed.

    Examples
    --------
    >>> ng.permute_dims(ng.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return x.transpose(axes)


def _inverse(axes: Any) -> Any:
    if axes is None:
        return None
    axes = axes if isinstance(axes, tuple | list) else (axes,)
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


permute_dims.vjp(x=lambda g, axes: permute_dims(g, _inverse(axes)))


@permute_dims.batch
@with_parameters
def _other_order(x: BatchOperand, size: int, axes: Any) -> dict[str, Any]:
    order = range(x.ndim)[::-1] if axes is None else integers(axes)
    return {"axes": (0, *x.axes(order))}


@view(ref=np.swapaxes, linear=True, samples=[(((2, 3, 4),), {"axis1": 0, "axis2": -1})])
def swapaxes(x, *, axis1, axis2):
    """Two axes exchanged.

    Examples
    --------
    >>> ng.swapaxes(ng.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return np.swapaxes(x, axis1, axis2)


swapaxes.vjp(x=lambda g, axis1, axis2: swapaxes(g, axis1, axis2))
swapaxes.batch(
    with_parameters(lambda x, size, axis1, axis2: {"axis1": x.axes(axis1), "axis2": x.axes(axis2)})
)


@view(ref=np.moveaxis, linear=True, samples=[(((2, 3, 4),), {"source": 0, "destination": 2})])
def moveaxis(x, *, source, destination):
    """Axes moved to other positions, the rest kept in order.

    Parameters
    ----------
    source : int or sequence of ints
        Where the axes are.
    destination : int or sequence of ints
        Where they go.

    Examples
    --------
    >>> ng.moveaxis(ng.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return np.moveaxis(x, source, destination)


moveaxis.vjp(x=lambda g, source, destination: moveaxis(g, destination, source))
moveaxis.batch(
    with_parameters(
        lambda x, size, source, destination: {
            "source": x.axes(source),
            "destination": x.axes(destination),
        }
    )
)


@view(ref="numpy.matrix_transpose", linear=True, samples=[(((2, 3, 4),), {})])
def matrix_transpose(x):
    """The last two axes exchanged.

    Examples
    --------
    >>> ng.matrix_transpose(ng.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    if x.ndim < 2:
        raise NumgradValueError(
            f"matrix_transpose: needs at least two axes, got shape {x.shape}; use reshape(x, "
            "(-1, 1)) to make a column"
        )
    return x.swapaxes(-1, -2)


matrix_transpose.vjp(x=lambda g: matrix_transpose(g))
matrix_transpose.batch(of_matrices)


@view(ref=np.flip, linear=True, samples=[(((2, 3),), {}), (((2, 3),), {"axis": 1})])
def flip(x, *, axis=None):
    """Elements in reverse order along axes, by default along all.

    Parameters
    ----------
    axis : int or tuple of ints
        Axes along which to reverse; by default all.

    Examples
    --------
    >>> ng.flip(ng.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([[3., 4.],
            [1., 2.]])
    """
    return np.flip(x, axis if not isinstance(axis, list) else tuple(axis))


flip.vjp(x=lambda g, axis: flip(g, axis=axis))
flip.batch(with_parameters(lambda x, size, axis: {"axis": x.axes(axis)}))


@composite(ref=np.fliplr, smooth=True)
def fliplr(x):
    """Elements in reverse order along the second axis.

    Returns
    -------
    Tensor
        A view of ``x``, of its shape.

    Examples
    --------
    >>> ng.fliplr(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 1.],
            [4., 3.]])
    """
    return flip(x, axis=1)


@composite(ref=np.flipud, smooth=True)
def flipud(x):
    """Elements in reverse order along the first axis.

    Returns
    -------
    Tensor
        A view of ``x``, of its shape.

    Examples
    --------
    >>> ng.flipud(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    return flip(x, axis=0)


@composite(ref=np.rot90, smooth=True)
def rot90(x, k=1, axes=(0, 1)):
    """Rotated by 90 degrees ``k`` times, from the first towards the second of ``axes``.

    Parameters
    ----------
    k : int
        Number of turns.
    axes : pair of ints
        The plane, from its first axis towards its second.

    Returns
    -------
    Tensor
        A view of ``x``.

    Examples
    --------
    >>> ng.rot90(ng.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [1., 3.]])
    """
    first, second = axes
    k %= 4
    if k == 0:
        return flip(x, axis=())
    if k == 2:
        return flip(x, axis=(first, second))
    if k == 1:
        return swapaxes(flip(x, axis=second), first, second)
    return flip(swapaxes(x, first, second), axis=second)


def _opposite(shift: Any) -> Any:
    return tuple(-s for s in shift) if isinstance(shift, tuple | list) else -shift


@primitive(
    ref=np.roll,
    linear=True,
    samples=[(((3, 4),), {"shift": 2}), (((3, 4),), {"shift": (1, -1), "axis": (0, 1)})],
)
def roll(x, *, shift, axis=None):
    """Elements moved along axes, those beyond the end coming back at the start.

    Parameters
    ----------
    shift : int or tuple of ints
        Number of places, for all axes or for each.
    axis : int or tuple of ints
        Axes along which to move; without one, all elements in C order.

    Returns
    -------
    Tensor
        Of the shape and dtype of ``x``.

    Examples
    --------
    >>> ng.roll(ng.tensor([1.0, 2.0, 3.0]), 1)
    tensor([3., 1., 2.])
    """
    return np.roll(x, shift, axis)


@roll.shape
def _roll_result(x, *, shift, axis):
    if axis is not None:
        for a in axis if isinstance(axis, tuple | list) else (axis,):
            normalize_axes("roll", a, x.ndim)
    return x


roll.vjp(x=lambda g, shift, axis: roll(g, _opposite(shift), axis))


@roll.batch
def _batched_roll(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    out = along_axis(op, operands, params, size)
    return apply("reshape", out, shape=operands[0].value.shape) if params["axis"] is None else out
