"""Jacobians and Hessians of which a sparse pattern is known.

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

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import _numdiff

from numgrad.autograd.structured_jacobians import CutPart, parts_of
from numgrad.core.interpreter import state
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import Argnums, TransformedCall
from numgrad.transforms.linearization import Linearization, is_of_the_table

Pattern: TypeAlias = Any
"""A boolean ``scipy.sparse.csr_array``."""


@dataclass(frozen=True)
class Colouring:
    """Products that give a matrix, and the places of its elements in them.

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


def as_pattern(name: str, mask: Any) -> Pattern:
    """The pattern that a caller gives, with its elements in order."""
    if not sparse.issparse(mask):
        array = np.asarray(mask)
        if array.ndim != 2 or array.dtype.kind not in "biufc":
            raise NumgradTypeError(
                f"{name}: sparsity is a {type(mask).__name__} of dtype {array.dtype} and shape "
                f"{array.shape}; give a sparse or dense matrix that is not zero where the "
                "derivative may be, as ng.func.sparsity finds it"
            )
        mask = array != 0
    elif mask.ndim != 2:
        raise NumgradTypeError(f"{name}: sparsity has {mask.ndim} axes; a pattern is a matrix")
    coo = sparse.coo_array(mask)
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
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    alone = counts[inverse] == 1  # in its row the only element of that colour
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
    centres: list[dict[int, int]] = [{} for _ in range(n)]
    first: list[dict[int, int]] = [{} for _ in range(n)]
    hubs: list[set[int]] = [set() for _ in range(n)]
    for v in np.argsort(-np.diff(starts), kind="stable").tolist():
        own = centres[v]
        forbidden = set(own)
        for w in neighbours[v]:
            if colour[w] >= 0:
                # v would be in the middle of a path of two colours, or at its end
                forbidden |= centres[w].keys() if own[colour[w]] > 1 else hubs[w]
        c = 0
        while c in forbidden:
            c += 1
        colour[v] = c
        for w in neighbours[v]:
            count = centres[w][c] = centres[w].get(c, 0) + 1
            if count == 1:
                first[w][c] = v
            elif colour[w] >= 0:
                hubs[v].add(colour[w])
                hubs[first[w][c]].add(colour[w])
            if own.get(colour[w], 0) > 1:
                hubs[w].add(c)
    return np.array(colour, np.int64)


_COLUMNS_COST = 4
"""Cost of the transposed map at once, in products."""


def jacobian(argnums: Argnums, has_aux: bool, sparsity: Any) -> Callable[..., Any]:
    """``ng.jacobian`` with a pattern."""
    compressed = _Compressed(argnums.name, sparsity, symmetric=False)

    @functools.wraps(argnums.function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall(argnums, args, kwargs) as call:
            matrix = compressed.matrix(call, call.outputs(has_aux))
        return (matrix, call.kinds(call.aux)) if has_aux else matrix

    return differentiated


def hessian(argnums: Argnums, has_aux: bool, sparsity: Any) -> Callable[..., Any]:
    """``ng.hessian`` with a pattern."""
    compressed = _Compressed(argnums.name, sparsity, symmetric=True)

    @functools.wraps(argnums.function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with TransformedCall(argnums, args, kwargs) as call:
            gradients = call.gradients(call.value(has_aux), create_graph=True)
            matrix = compressed.matrix(call, gradients)
        return (matrix, call.kinds(call.aux)) if has_aux else matrix

    return differentiated


class _Compressed:
    """A pattern with its colours, which are found once."""

    def __init__(self, name: str, pattern: Any, *, symmetric: bool) -> None:
        self.name, self.symmetric = name, symmetric
        self.pattern: Any = as_pattern(name, pattern)
        if symmetric and (
            self.pattern.shape[0] != self.pattern.shape[1] or (self.pattern != self.pattern.T).nnz
        ):
            raise NumgradValueError(
                f"{name}: sparsity of shape {self.pattern.shape} is not symmetric, as a Hessian is;"
                " give pattern + pattern.T"
            )
        self.checked = False
        self._vectors: dict[Any, list[Tensor]] = {}
        self._places: dict[Any, np.ndarray] = {}

    @functools.cached_property
    def rows(self) -> Colouring:
        """Colours of rows."""
        return symmetric(self.pattern) if self.symmetric else by_rows(self.pattern)

    @functools.cached_property
    def columns(self) -> Colouring:
        """Colours of columns."""
        return by_columns(self.pattern)

    def matrix(self, call: TransformedCall, values: Sequence[Tensor]) -> sparse.csr_array:
        """The derivative of values by what is differentiated."""
        if call.outside or state.interpreters or state.ground.deferred:
            raise NumgradRuntimeError(
                f"{self.name}: with sparsity the result is a scipy.sparse array of numbers, which "
                "cannot be differentiated, compiled or mapped any further; leave sparsity out, or "
                "call it outside of other transforms (for Tensors that require grad under "
                "ng.no_grad())"
            )
        shape = (sum(int(v.size) for v in values), sum(int(t.size) for t in call.tensors))
        check_shape(self.name, self.pattern, shape)
        dtype = np.result_type(*[t.dtype for t in call.tensors])
        linear = call.linear(values)
        try:
            data = self._by_parts(values, call.tensors, dtype)
        except NumgradNotImplementedError:  # something else than a stencil
            data = self._by_products(linear, values, call, dtype)
        result = sparse.csr_array(shape, dtype=dtype)  # set, not given: it would be checked anew
        result.data = data
        result.indices, result.indptr = self.pattern.indices.copy(), self.pattern.indptr.copy()
        if not self.checked:
            self._check(result, linear, call.argnums.holomorphic)
            self.checked = True
        return result

    def _by_products(
        self, linear: Linearization, values: Sequence[Tensor], call: TransformedCall, dtype: Any
    ) -> np.ndarray:
        """The stored elements by products with vectors, one for each colour."""
        if self._prefers_columns(values, call):
            colouring, mapped = self.columns, linear.transposed
        else:
            colouring, mapped = self.rows, linear
        lines = _product(mapped, self._seeds(colouring, mapped.y), dtype)
        if call.argnums.holomorphic:
            lines = np.conj(lines)
        return lines.ravel().take(colouring.place)

    def _by_parts(
        self, values: Sequence[Tensor], tensors: Sequence[Tensor], dtype: Any
    ) -> np.ndarray:
        """The stored elements of a stencil: Note [Entries by part]."""
        kinds = {t._array.dtype for t in (*values, *tensors)}
        if len(values) != 1 or len(kinds) != 1 or dtype.kind != "f":
            raise NumgradNotImplementedError("parts: of one real result only")
        if not (values[0].requires_grad and values[0].size):
            raise NumgradNotImplementedError("parts: no dependence")
        entries: dict[Any, np.ndarray] = {}
        parts = {}
        for cut in parts_of(values[0], tensors):
            known = entries.get(cut.key)
            entries[cut.key] = cut.entries if known is None else known + cut.entries
            parts[cut.key] = cut
        shapes = tuple([t._array.shape for t in tensors])
        key = (*entries, shapes)
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = self._places_of(list(parts.values()), shapes)
        elements = np.concatenate([*[e.ravel() for e in entries.values()], np.zeros(1, dtype)])
        return elements.take(places)

    def _places_of(self, parts: Sequence[CutPart], shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
        """For each stored element which entry of the parts it is, the one after all for zero."""
        starts = np.cumsum([0, *map(prod, shapes)])
        rows, width = np.arange(self.pattern.shape[0]), self.pattern.shape[1]
        entries = np.concatenate([
            rows * width + starts[cut.number] + cut.places(shapes[cut.number]) for cut in parts
        ])  # fmt: skip
        order = np.argsort(entries)
        stored, columns = coordinates(self.pattern)
        stored = stored.astype(np.int64) * width + columns
        if (np.diff(entries[order]) == 0).any() or not np.isin(entries, stored).all():
            raise NumgradNotImplementedError("parts: they overlap, or are not in the pattern")
        near = np.searchsorted(entries, stored, sorter=order)
        near = order[np.minimum(near, entries.size - 1)]
        return np.where(entries[near] == stored, near, entries.size)

    def _seeds(self, colouring: Colouring, across: Sequence[Any]) -> list[Tensor]:
        """The vectors that give the matrix, which are the same at each call."""
        key = (colouring is self.rows, *[(t.shape, t.dtype) for t in across])
        cached = self._vectors.get(key)
        if cached is None:
            cached = self._vectors[key] = _split(colouring.seeds(), across)
        return cached

    def _prefers_columns(self, values: Sequence[Tensor], call: TransformedCall) -> bool:
        """Whether columns cost less and are as safe, as for dense Jacobians."""
        if self.symmetric or not values or not call.tensors or call.argnums.holomorphic:
            return False
        if self.rows.count <= _COLUMNS_COST or not is_of_the_table(values):
            return False
        if not all(t.dtype.kind == "f" for t in (*values, *call.tensors)):
            return False
        return self.columns.count + _COLUMNS_COST < self.rows.count

    def _check(self, value: Any, linear: Linearization, conjugated: bool) -> None:
        """Compare with a product with a random vector."""
        count = value.shape[0]
        weights = np.random.default_rng(count).uniform(0.5, 1.5, count)
        product = _product(linear, _split(weights[None], linear.y), value.dtype)[0]
        product = np.conj(product) if conjugated else product
        rows, columns = coordinates(value)
        size = np.zeros(value.shape[1])
        np.add.at(size, columns, np.abs(weights[rows] * value.data))
        error = np.abs(product - value.T @ weights)
        scale = np.abs(product) + size
        if not (scale.size and np.isfinite(scale).all()):
            return
        wrong = error > np.sqrt(np.finfo(value.dtype).eps) * np.maximum(scale, scale.max() * 1e-6)
        if wrong.any():
            raise NumgradValueError(
                f"{self.name}: sparsity misses elements that are not zero, in column "
                f"{int(np.argmax(wrong))} for one; find the pattern with ng.func.sparsity, which "
                "misses none"
            )


def _split(vectors: np.ndarray, across: Sequence[Any]) -> list[Tensor]:
    """Vectors, one in each row, in the shapes of what they multiply."""
    ends = np.cumsum([int(t.size) for t in across])
    parts = np.split(vectors, ends[:-1], axis=1) if across else []
    return [
        Tensor(piece.astype(t.dtype).reshape(len(vectors), *t.shape))
        for piece, t in zip(parts, across, strict=True)
    ]


def _product(linear: Linearization, vectors: Sequence[Tensor], dtype: Any) -> np.ndarray:
    """The products of vectors with the map, in rows."""
    count = int(vectors[0].shape[0]) if vectors else 0
    sizes = [int(t.size) for t in linear.x]
    lines = np.zeros((count, sum(sizes)), dtype)
    row = 0
    for value in linear.pull_many(vectors) if count else ():
        column, height = 0, 1
        for piece, size in zip(value, sizes, strict=True):
            if piece is not None:
                height = len(piece._array)
                lines[row : row + height, column : column + size] = piece._array.reshape(height, -1)
            column += size
        row += height
    return lines
