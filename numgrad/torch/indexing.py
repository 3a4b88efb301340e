"""Indices as PyTorch has them, for reading and for writing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor as Base
from numgrad.core.op import OPS
from numgrad.errors import (
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.torch.wrapping import Tensor, wrapped


def _entry(entry: Any) -> Any:
    kind = type(entry)
    if kind is int or entry is None or entry is Ellipsis or kind is bool:
        return entry
    if kind is slice:
        if entry.step is not None and entry.step <= 0:
            raise NumgradValueError("step must be greater than zero; use flip")
        return slice(_bound(entry.start), _bound(entry.stop), _bound(entry.step))
    entry = entry._tensor if isinstance(entry, Tensor) else entry
    if isinstance(entry, Base):
        if entry.dtype.kind not in "biu":
            raise NumgradIndexError(f"a Tensor of {entry.dtype} is no index; use integers or bool")
        if entry.dtype != np.uint8:
            return entry
        text = "indexing with dtype torch.uint8 is deprecated; use torch.bool"
        warnings.warn(text, UserWarning, stacklevel=5)
        return OPS["astype"](entry, dtype=np.dtype(bool))
    if isinstance(entry, list | tuple | range):
        parts = [_entry(part) for part in entry]
        array = np.array([np.asarray(p._array) if isinstance(p, Base) else p for p in parts])
        return array if array.size else array.astype(np.int64)
    return entry


def _bound(value: Any) -> Any:
    return int(value) if isinstance(value, Tensor | Base) else value  # pyright: ignore


_SEVERAL = (slice, Tensor, list, tuple, type(None), type(...))


def as_index(x: Any, index: Any) -> tuple:
    """An index as numgrad takes it, a tuple."""
    if isinstance(index, list) and any(isinstance(p, _SEVERAL) for p in index):
        index = tuple(index)  # a list of indices of several axes, as PyTorch takes it
    entries = index if isinstance(index, tuple) else (index,)
    return tuple([_entry(entry) for entry in entries])


def _axes(entry: Any) -> int:
    """Number of axes that an entry is an index of."""
    if isinstance(entry, Base | np.ndarray) and entry.dtype == bool:
        return entry.ndim
    return int(entry is not None and entry is not Ellipsis and type(entry) is not bool)


def selected(x: Any, entries: tuple) -> tuple[Any, tuple]:
    """A Tensor without the axes at which integers stand, and the index of those that remain.

    Beside Tensors, lists and masks NumPy broadcasts integers with these, which moves axes to the
    front; PyTorch selects at integers first. An ellipsis of no axes parts arrays in NumPy alone.
    """
    arrays = [e for e in entries if isinstance(e, Base | np.ndarray)]
    if not any(e.ndim for e in arrays):
        return x, entries
    if sum(map(_axes, entries)) == x.ndim:
        entries = tuple([e for e in entries if e is not Ellipsis])
    whole = [isinstance(e, Base) and not e.ndim and e.dtype.kind in "iu" for e in entries]
    entries = tuple([int(e) if at else e for e, at in zip(entries, whole, strict=True)])  # pyright: ignore
    places = [type(e) is int for e in entries]
    if not any(places):
        return x, entries
    first: list[Any] = []
    for e in entries:
        if type(e) is int or e is Ellipsis:
            first.append(e)
        else:
            first += [slice(None)] * _axes(e)
    return x[tuple(first)], tuple([e for e, at in zip(entries, places, strict=True) if not at])


def getitem(self: Tensor, index: Any) -> Tensor:
    """Part of a Tensor: integers, slices, ``...``, None, masks and Tensors of integers."""
    kind = type(index)
    if kind is int:
        if not self._tensor.ndim:
            raise NumgradIndexError("a 0-dim tensor has no elements by index; use tensor.item()")
        return wrapped(self._tensor[index])  # pyright: ignore
    x, entries = selected(self._tensor, as_index(self._tensor, index))
    return wrapped(x[entries])  # pyright: ignore


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Write to a part of a Tensor; the value is cast to its dtype."""
    target = self._tensor
    value = value._tensor if isinstance(value, Tensor) else value
    if isinstance(value, str):
        raise NumgradTypeError("a str cannot be written into a Tensor")
    if not isinstance(value, Base | np.ndarray):
        value = np.asarray(value).astype(target.dtype)
    elif value.dtype != target.dtype:
        value = OPS["astype"](value, dtype=target.dtype)
    target, entries = selected(target, as_index(target, index))
    try:
        target[entries] = value
    except NumgradValueError as error:  # shapes
        raise NumgradRuntimeError(str(error)) from error
