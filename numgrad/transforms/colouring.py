"""Colours for the rows or columns of a sparse matrix that can be computed together.

Note [Compressed products]
--------------------------
Rows of a Jacobian that have no column in common can be read off the one product of a vector that is
1 at all of them; such rows get one colour, and a product is needed for each colour [1]_. For
columns likewise. A symmetric matrix allows more: ``H[i, j]`` may be read from row ``i`` or row
``j``. It is enough that neighbours differ and that no path of four has but two colours, a *star
colouring* [2]_.

.. [1] A. Curtis, M. Powell, J. Reid, On the estimation of sparse Jacobian matrices, 1974.
.. [2] A. Gebremedhin, F. Manne, A. Pothen, What color is your Jacobian?, SIAM Review 47, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import _numdiff

from numgrad.errors import NumgradTypeError, NumgradValueError

Pattern: TypeAlias = Any
"""A boolean ``scipy.sparse.csr_array``."""


@dataclass(frozen=True)
class Colouring:
    """Which products give a matrix, and where in them its elements are.

    Attributes
    ----------
    groups
        The colour of each row, or column, that is computed.
    count
        How many colours there are.
    place
        For each element of the pattern, in order, where it is in the products laid end to end.
    """

    groups: np.ndarray
    count: int
    place: np.ndarray

    def seeds(self) -> np.ndarray:
        """The vectors of the products, one in each row."""
        return (self.groups == np.arange(self.count)[:, None]).astype(np.float64)


def as_pattern(name: str, given: Any) -> Pattern:
    """The pattern that a caller gives, with its elements in order."""
    if not sparse.issparse(given):
        array = np.asarray(given)
        if array.ndim != 2 or array.dtype.kind not in "biufc":
            raise NumgradTypeError(
                f"{name}: sparsity is a {type(given).__name__} of dtype {array.dtype} and shape "
                f"{array.shape}; give a sparse or dense matrix that is not zero where the "
                "derivative may be, as ng.func.sparsity finds it"
            )
        given = array != 0
    elif given.ndim != 2:
        raise NumgradTypeError(f"{name}: sparsity has {given.ndim} axes; a pattern is a matrix")
    coo = sparse.coo_array(given)
    ones = np.ones(coo.nnz, bool)
    pattern = sparse.csr_array((ones, (coo.row, coo.col)), shape=coo.shape)
    pattern.sum_duplicates()
    return pattern


def check_shape(name: str, pattern: Pattern, shape: tuple[int, int]) -> None:
    """Raise unless a pattern has the shape of the matrix."""
    if pattern.shape != shape:
        raise NumgradValueError(
            f"{name}: sparsity has shape {pattern.shape}, the matrix {shape}: a row for each "
            "element of the result and a column for each of the arguments; ng.func.sparsity finds "
            "the pattern for arguments of such shapes"
        )


def coordinates(pattern: Pattern) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of each element."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return rows, pattern.indices


def by_rows(pattern: Pattern) -> Colouring:
    """Colours of rows, that is of the columns of the transposed matrix."""
    groups = _groups(pattern.T)
    rows, columns = coordinates(pattern)
    return Colouring(groups, _count(groups), groups[rows] * pattern.shape[1] + columns)


def by_columns(pattern: Pattern) -> Colouring:
    """Colours of columns."""
    groups = _groups(pattern)
    rows, columns = coordinates(pattern)
    return Colouring(groups, _count(groups), groups[columns] * pattern.shape[0] + rows)


def symmetric(pattern: Pattern) -> Colouring:
    """Colours of the rows of a symmetric matrix; the fewer of two ways."""
    plain = by_rows(pattern)
    groups = star_groups(pattern)
    count = _count(groups)
    if count >= plain.count:
        return plain
    rows, columns = coordinates(pattern)
    keys = rows.astype(np.int64) * count + groups[columns]
    _, inverse, seen = np.unique(keys, return_inverse=True, return_counts=True)
    alone = seen[inverse] == 1  # in its row the only element of that colour
    line = np.where(alone, groups[columns], groups[rows])
    return Colouring(groups, count, line * len(groups) + np.where(alone, rows, columns))


def _groups(matrix: Any) -> np.ndarray:
    """Colours of columns: the fewest of SciPy's in two orders, and of columns taken in turn."""
    matrix = sparse.csc_array(matrix)
    columns = np.arange(matrix.shape[1])
    if not columns.size:
        return np.zeros(0, np.int64)
    group: Any = _numdiff.group_columns
    by_size = np.argsort(-np.diff(matrix.indptr), kind="stable")
    results = [np.asarray(group(matrix, order)) for order in (columns, by_size)]
    best = min(results, key=_count).astype(np.int64)
    rows, owner = coordinates(sparse.csr_array(matrix))
    for count in range(max(np.bincount(rows), default=1), min(_count(best), _FEW)):
        # a stencil on a grid often does with columns counted through, better than greedily
        met = np.bincount(rows * count + owner % count)
        if met.max(initial=0) <= 1:
            return columns % count
    return best


_FEW = 64
"""Colours up to which counting through is tried."""


def _count(groups: np.ndarray) -> int:
    return int(groups.max()) + 1 if groups.size else 0


def star_groups(pattern: Pattern) -> np.ndarray:
    """A star colouring of the graph of a symmetric pattern, greedily, by falling degree.

    ``seen[w][c]`` counts the neighbours of ``w`` with colour ``c``, ``first[w][c]`` is one of them,
    and ``hubs[w]`` are the colours of neighbours that have a further neighbour of the colour of
    ``w``. With these a vertex is coloured in time proportional to its neighbours and their colours.
    """
    n = pattern.shape[0]
    rows, columns = coordinates(pattern)
    off = rows != columns
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[off], minlength=n))])
    ends = columns[off].tolist()
    neighbours = [ends[a:b] for a, b in pairwise(starts)]
    colour = [-1] * n
    seen: list[dict[int, int]] = [{} for _ in range(n)]
    first: list[dict[int, int]] = [{} for _ in range(n)]
    hubs: list[set[int]] = [set() for _ in range(n)]
    for v in np.argsort(-np.diff(starts), kind="stable").tolist():
        own = seen[v]
        forbidden = set(own)
        for w in neighbours[v]:
            if colour[w] >= 0:
                # v would be in the middle of a path of two colours, or at its end
                forbidden |= seen[w].keys() if own[colour[w]] > 1 else hubs[w]
        c = 0
        while c in forbidden:
            c += 1
        colour[v] = c
        for w in neighbours[v]:
            count = seen[w][c] = seen[w].get(c, 0) + 1
            if count == 1:
                first[w][c] = v
            elif colour[w] >= 0:
                hubs[v].add(colour[w])
                hubs[first[w][c]].add(colour[w])
            if own.get(colour[w], 0) > 1:
                hubs[w].add(c)
    return np.array(colour, np.int64)
