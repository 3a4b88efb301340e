"""Layers that change the shape of their argument and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.core.axis import one_axis
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.operations.shape import reshape


class Flatten(Module):
    """Merges successive axes into one.

    Parameters
    ----------
    start_dim, end_dim
        The first and the last of them.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Flatten()(ng.ones((5, 2, 3))).shape
    (5, 6)
    """

    @checked
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Tensor:
        """Reshape the argument.

        Raises
        ------
        NumgradIndexError
            If it has no such axes.
        NumgradValueError
            If the last axis comes before the first.
        """
        shape = input.shape
        ndim = max(len(shape), 1)
        first = one_axis("Flatten", self.start_dim, ndim)
        last = one_axis("Flatten", self.end_dim, ndim)
        if first > last:
            raise NumgradValueError(
                f"Flatten: axis {self.start_dim} comes after axis {self.end_dim} in shape {shape}"
            )
        length = prod(shape[first : last + 1])
        return reshape(input, (*shape[:first], length, *shape[last + 1 :]))

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one axis into several.

    Parameters
    ----------
    dim
        The axis.
    unflattened_size
        The lengths of the new axes; one of them may be -1, what is left.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Unflatten(1, (2, -1))(ng.ones((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise NumgradTypeError(
                f"Unflatten: the axis is an integer, got {type(dim).__name__}: axes have no names"
            )
        try:
            sizes = tuple(map(index, unflattened_size))
        except TypeError:
            raise NumgradTypeError(
                f"Unflatten: lengths are integers, got {unflattened_size!r}"
            ) from None
        self.dim = index(dim)
        self.unflattened_size = sizes

    def forward(self, input: Any) -> Tensor:
        """Reshape the argument.

        Raises
        ------
        NumgradIndexError
            If it has no such axis.
        NumgradValueError
            If the lengths do not multiply to that of the axis.
        """
        shape = input.shape
        axis = one_axis("Unflatten", self.dim, len(shape))
        sizes = list(self.unflattened_size)
        known = prod(n for n in sizes if n != -1)
        if sizes.count(-1) == 1 and known and shape[axis] % known == 0:
            sizes[sizes.index(-1)] = shape[axis] // known
        if not sizes or -1 in sizes or prod(sizes) != shape[axis]:
            raise NumgradValueError(
                f"Unflatten: an axis of length {shape[axis]} cannot become {self.unflattened_size}"
            )
        return reshape(input, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
