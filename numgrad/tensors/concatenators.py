"""``ng.r_`` and ``ng.c_``: what stands in brackets, one after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.tensors.creation import arange
from numgrad.tensors.ranges import linspace
from numgrad.tensors.tensor import Tensor


class Concatenator:
    """What stands in brackets joined along an axis: arrays, numbers and slices for ranges.

    A slice ``a:b:s`` is a range, ``a:b:nj`` has ``n`` numbers including ``b``. A text in front
    gives the axis, the least number of axes, and the place of the axes there are, as in NumPy.

    Attributes
    ----------
    axis
        Axis to join along.
    rank
        Least number of axes of what is joined.
    place
        Axis that an operand's first axis becomes where axes are added; -1 adds them in front.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.r_[ng.tensor([1.0, 2.0]), 0.0, 5:7]
    tensor([1., 2., 0., 5., 6.])
    >>> ng.c_[ng.tensor([1.0, 2.0]), ng.tensor([3.0, 4.0])]
    tensor([[1., 3.],
            [2., 4.]])
    """

    __slots__ = ("axis", "name", "place", "rank")

    def __init__(self, name: str, axis: int, rank: int, place: int) -> None:
        self.name, self.axis, self.rank, self.place = name, axis, rank, place

    def __repr__(self) -> str:
        return f"<numgrad.{self.name}>"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, items: Any) -> Tensor:
        items = items if isinstance(items, tuple) else (items,)
        axis, rank, place = self.axis, self.rank, self.place
        if items and isinstance(items[0], str):
            axis, rank, place = self._directive(items[0])
            items = items[1:]
        if not items:
            raise NumgradValueError(f"{self.name}: there is nothing in the brackets to join")
        parts, kinds = [], []
        for item in items:
            if isinstance(item, str):
                raise NumgradTypeError(f"{self.name}: a text may stand first only, got {item!r}")
            part = _range(item) if isinstance(item, slice) else as_operand(item)
            kinds.append(item if type(item) in (int, float, complex) else part.dtype)
            parts.append(_with_axes(part, rank, place))
        dtype = np.result_type(*kinds)
        parts = [OPS["astype"](part, dtype=dtype, copy=False) for part in parts]
        return OPS["concat"](parts, axis=axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        found = [self.axis, self.rank, self.place]
        try:
            numbers = [int(part) for part in text.split(",")]
            found[: len(numbers)] = numbers
            axis, rank, place = found
        except ValueError:
            raise NumgradValueError(
                f"{self.name}: the text {text!r} is not understood; it has up to three integers "
                "as in '0,2,1', and matrices ('r', 'c') are not made"
            ) from None
        return axis, rank, place


def _range(part: slice) -> Any:
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(start, part.stop, int(abs(step)))
    if part.stop is None:
        raise NumgradTypeError("a range needs an end: write start:stop or start:stop:step")
    if any(isinstance(end, Tensor) for end in (start, part.stop, step)):
        raise NumgradTypeError("the ends of a range start:stop:step are numbers, not Tensors")
    return arange(start, part.stop, step)


def _with_axes(x: Any, rank: int, place: int) -> Any:
    """``x`` with axes of length 1 added, so that its own come to lie at ``place``."""
    own = len(x.shape)
    added = rank - own
    if added <= 0:
        return x
    first = place % rank if place >= 0 else place + added + 1
    first = min(max(first, 0), added) if own else 0
    return OPS["reshape"](x, (1,) * first + tuple(x.shape) + (1,) * (added - first))


r_ = Concatenator("r_", 0, 1, -1)
c_ = Concatenator("c_", -1, 2, 0)
