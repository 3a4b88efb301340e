"""``Tensor.flat``: the elements of a Tensor of any shape, in C order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.op import OPS
from numgrad.tensors.inplace import inplace


def repeated(values: Any, count: int) -> Any:
    """The first ``count`` elements of ``values``, begun again at the end, as NumPy does it."""
    flat = OPS["ravel"](values if isinstance(values, Tensor) else np.asarray(values))
    return OPS["take"](flat, OPS["iota"](length=count) % flat.size) if count else flat[:0]


class Flat:
    """What ``np.flatiter`` is of an ndarray: it is read, gone through, and written to.

    What is read is recorded; a write is one to the Tensor, of values that begin again at the end.

    Parameters
    ----------
    base
        The Tensor.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.flat[1:3]
    tensor([2., 3.])
    >>> x.flat[::2] = 0.0
    >>> x
    tensor([[0., 2.],
            [0., 4.]])
    """

    __slots__ = ("base",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, base: Tensor) -> None:
        self.base = base

    def copy(self) -> Tensor:
        """All elements, with memory of their own."""
        return OPS["copy"](self.base).reshape(-1)

    def __getitem__(self, key: Any) -> Tensor:
        return OPS["ravel"](self.base)[key].clone()

    def __setitem__(self, key: Any, value: Any) -> None:
        places = np.arange(self.base.size.__index__())[key]
        places = np.atleast_1d(places)
        inplace(OPS["put"], "flat", self.base, (places, repeated(value, places.size)), {})

    def __iter__(self) -> Iterator[Tensor]:
        return iter(OPS["ravel"](self.base))

    def __len__(self) -> int:
        return self.base.size

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.copy(), dtype)

    def __eq__(self, other: Any) -> Any:
        return self.copy() == (other.copy() if isinstance(other, Flat) else other)

    def __repr__(self) -> str:
        return f"<elements of a tensor of shape {tuple(self.base.shape)}>"
