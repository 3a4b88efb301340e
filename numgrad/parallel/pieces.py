"""Data cut into pieces along their first axis."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from numgrad.core.tree import flatten, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor

PIECES = 8
"""How many there are if nobody says: a number of its own, so that sums do not depend on workers."""


class Partition:
    """Arguments whose arrays are cut at the same rows; those of Dask where Dask has cut them.

    Attributes
    ----------
    bounds
        The row at which each piece begins, and the end.
    """

    def __init__(self, name: str, args: Sequence[Any], chunks: Any) -> None:
        self.leaves: list[Any] = []
        self.nesting = flatten(tuple(args), self.leaves)
        if not self.leaves:
            raise NumgradTypeError(f"{name}: there are no data to cut into pieces")
        self.leaves = [_array(name, leaf) for leaf in self.leaves]
        lengths = {leaf.shape[0] for leaf in self.leaves}
        if len(lengths) > 1:
            raise NumgradValueError(
                f"{name}: data have {', '.join(str(n) for n in sorted(lengths))} rows; all are cut "
                "along their first axis, which must be of one length (pass others by keyword)"
            )
        (rows,) = lengths
        cuts = {leaf.chunks[0] for leaf in self.leaves if is_dask_array(leaf)}
        if len(cuts) > 1:
            raise NumgradValueError(
                f"{name}: Dask arrays are cut into rows {' and '.join(map(str, cuts))}; rechunk "
                "them alike"
            )
        if cuts:
            if chunks is not None:
                raise NumgradValueError(f"{name}: a Dask array has chunks, leave chunks= out")
            sizes: Sequence[int] = next(iter(cuts))
        else:
            sizes = _sizes(name, rows, chunks)
        self.bounds = [0, *accumulate(sizes)]
        self.leaves = [_whole_rows(leaf) for leaf in self.leaves]

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.bounds[-1]

    @property
    def on_dask(self) -> bool:
        """Whether some of the data are Dask's."""
        return any(map(is_dask_array, self.leaves))

    def pieces(self) -> list[list[Any]]:
        """The leaves of each piece: views, or delayed blocks of Dask."""
        columns = []
        for leaf in self.leaves:
            if is_dask_array(leaf):
                columns.append(leaf.to_delayed().reshape(-1).tolist())
            else:
                columns.append([leaf[a:b] for a, b in pairwise(self.bounds)])
        return [list(row) for row in zip(*columns, strict=True)]

    def arguments(self, piece: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with the leaves of a piece."""
        return unflatten(self.nesting, iter(piece))

    def said(self, number: int) -> str:
        """A piece by its number and rows, for errors."""
        a, b = self.bounds[number : number + 2]
        return f"piece {number} (rows {a} to {b - 1})"


def is_dask_array(x: Any) -> bool:
    """Whether an argument is a Dask array; Dask is not loaded for this."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(x, module.Array)


def _whole_rows(x: Any) -> Any:
    """An array whose pieces are cut along the first axis only."""
    return x.rechunk({axis: -1 for axis in range(1, x.ndim)}) if is_dask_array(x) else x


def _array(name: str, x: Any) -> Any:
    if is_dask_array(x):
        if any(np.isnan(size) for size in x.chunks[0]):
            raise NumgradValueError(
                f"{name}: a Dask array has chunks of unknown length; call compute_chunk_sizes()"
            )
        array = x
    else:
        array = x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if array.ndim == 0 or array.dtype == object:
        raise NumgradTypeError(
            f"{name}: data are arrays that are cut along their first axis, got "
            f"{type(x).__name__} {x!r:.40}; pass what is not to be cut by keyword"
        )
    return array


def _sizes(name: str, rows: int, chunks: Any) -> list[int]:
    if rows == 0:
        raise NumgradValueError(f"{name}: data have no rows")
    if chunks is None or (isinstance(chunks, int | np.integer) and not isinstance(chunks, bool)):
        limit = PIECES if chunks is None else int(chunks)
        if limit < 1:
            raise NumgradValueError(f"{name}: chunks is a number from 1, got {chunks}")
        count = min(limit, rows)
        return [rows * (k + 1) // count - rows * k // count for k in range(count)]
    if not isinstance(chunks, list | tuple):
        raise NumgradTypeError(
            f"{name}: chunks is the number of pieces, or a list of their rows, got {chunks!r}"
        )
    if sum(chunks) != rows or min(chunks) < 1:
        raise NumgradValueError(
            f"{name}: chunks {list(chunks)} do not cut {rows} rows into pieces of at least one"
        )
    return list(chunks)
