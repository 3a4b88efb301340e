"""Jacobians and Hessians of which a sparse pattern is known: Note [Compressed products]."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from numgrad.autograd.structured_jacobians import CutPart, parts_of
from numgrad.core.interpreter import state
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.argnums import Argnums
from numgrad.transforms.call import TransformedCall
from numgrad.transforms.colouring import (
    Colouring,
    as_pattern,
    by_columns,
    by_rows,
    check_shape,
    coordinates,
    symmetric,
)
from numgrad.transforms.linearization import Linearization, is_of_the_table

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

    def __init__(self, name: str, given: Any, *, symmetric: bool) -> None:
        self.name, self.symmetric = name, symmetric
        self.pattern: Any = as_pattern(name, given)
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
        for part in parts_of(values[0], tensors):
            known = entries.get(part.key)
            entries[part.key] = part.entries if known is None else known + part.entries
            parts[part.key] = part
        shapes = tuple([t._array.shape for t in tensors])
        key = (*entries, shapes)
        places = self._places.get(key)
        if places is None:
            places = self._places[key] = self._places_of(list(parts.values()), shapes)
        given = np.concatenate([*[e.ravel() for e in entries.values()], np.zeros(1, dtype)])
        return given.take(places)

    def _places_of(self, parts: Sequence[CutPart], shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
        """For each stored element which entry of the parts it is, the one after all for zero."""
        starts = np.cumsum([0, *map(prod, shapes)])
        rows, width = np.arange(self.pattern.shape[0]), self.pattern.shape[1]
        wanted = np.concatenate([
            rows * width + starts[part.number] + part.places(shapes[part.number]) for part in parts
        ])  # fmt: skip
        order = np.argsort(wanted)
        stored, columns = coordinates(self.pattern)
        stored = stored.astype(np.int64) * width + columns
        if (np.diff(wanted[order]) == 0).any() or not np.isin(wanted, stored).all():
            raise NumgradNotImplementedError("parts: they overlap, or are not in the pattern")
        near = np.searchsorted(wanted, stored, sorter=order)
        near = order[np.minimum(near, wanted.size - 1)]
        return np.where(wanted[near] == stored, near, wanted.size)

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
        Tensor(part.astype(t.dtype).reshape(len(vectors), *t.shape))
        for part, t in zip(parts, across, strict=True)
    ]


def _product(linear: Linearization, vectors: Sequence[Tensor], dtype: Any) -> np.ndarray:
    """The products of vectors with the map, in rows."""
    count = int(vectors[0].shape[0]) if vectors else 0
    sizes = [int(t.size) for t in linear.x]
    lines = np.zeros((count, sum(sizes)), dtype)
    row = 0
    for value in linear.pull_many(vectors) if count else ():
        column, height = 0, 1
        for part, size in zip(value, sizes, strict=True):
            if part is not None:
                height = len(part._array)
                lines[row : row + height, column : column + size] = part._array.reshape(height, -1)
            column += size
        row += height
    return lines
