"""Datasets that are arrays side by side: a batch of them is one index operation an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.masks import refuse_mask
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Columns:
    """Arrays with rows, and what makes a sample or a batch of one row or batch of each.

    ``rows`` are the numbers of a ``Subset``'s samples, None for all.
    """

    arrays: tuple[Any, ...]
    build: Callable[[list[Any]], Any]
    rows: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.rows is None else len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        row = index if self.rows is None else self.rows[index]
        return self.build([array[row] for array in self.arrays])

    def subset(self, rows: np.ndarray) -> Columns:
        """The columns with some of the samples."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def batch(self, indices: np.ndarray) -> Any:
        """What ``default_collate`` makes of the samples at ``indices``, without making them."""
        rows = indices if self.rows is None else self.rows[indices]
        return self.build([_take(array, rows) for array in self.arrays])


def _take(array: Any, rows: np.ndarray) -> Tensor:
    """A copy of some rows as a Tensor, recorded if the array requires grad."""
    if isinstance(array, Tensor):
        if array.requires_grad:
            return array[rows]
        array = array.numpy()
    return Tensor(np.take(array, rows, axis=0))


def columns_of(dataset: Any) -> Columns | None:
    """A dataset as columns; None if it is not made of arrays and must be asked for samples.

    Raises
    ------
    NumgradTypeError
        If an array has no rows or a dtype that Tensors do not have.
    NumgradValueError
        If arrays have different numbers of rows.
    """
    if hasattr(dataset, "to_numpy"):  # of pandas and its like: rows by position, not by label
        dataset = dataset.to_numpy()
    if hasattr(dataset, "columns"):
        return dataset.columns()
    if _is_array(dataset):
        return columns("a dataset", (dataset,), itemgetter(0))
    if isinstance(dataset, dict):
        if not all(map(_is_array, dataset.values())):
            raise NumgradTypeError(
                f"a dict with the keys {', '.join(map(repr, dataset))} is a dataset if all values "
                "are arrays or Tensors with rows"
            )
        return columns("a dataset", dataset.values(), partial(_as_dict, tuple(dataset)))
    if isinstance(dataset, tuple) and dataset and all(map(_is_array, dataset)):
        named = hasattr(dataset, "_fields")
        return columns("a dataset", dataset, type(dataset)._make if named else tuple)  # pyright: ignore
    return None


def columns(what: str, arrays: Iterable[Any], build: Callable[[list[Any]], Any]) -> Columns:
    """Columns of arrays that were checked to have as many rows each."""
    arrays = tuple(arrays)
    shapes = [array.shape for array in arrays]
    if not shapes or () in shapes:
        raise NumgradTypeError(f"{what} is made of arrays with rows, got the shapes {shapes}")
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise NumgradValueError(
            f"the arrays of {what} need the same number of rows, got the shapes {shapes}"
        )
    for array in arrays:
        refuse_mask(what, array)
        check_dtype(what, array.dtype)
    return Columns(arrays, build)


def samples_of(dataset: Any) -> Any:
    """What has sample ``k`` at index ``k`` and the number of samples as its length.

    Raises
    ------
    NumgradTypeError
        If ``dataset`` is none.
    """
    found = columns_of(dataset)
    if found is not None:
        return found
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return dataset
    raise NumgradTypeError(
        f"{type(dataset).__name__} is no dataset: it needs __getitem__ and __len__; collect what "
        "an iterator gives in a list"
    )


def _as_dict(keys: tuple, parts: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, parts, strict=True))


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)
