"""Where the elements of views and joined arrays come from: terms, applied to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.nests.polynomial import value_of
from numgrad.codegen.nests.terms import Term
from numgrad.compiler.graph.graph import Graph, Value


def lengths(shape: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a term as numbers."""
    return tuple([value_of(n) or 0 for n in shape])


def shape_of(graph: Graph, value: Value) -> tuple[int, ...]:
    """The shape of a value as numbers."""
    return tuple([graph.sizes.evaluate(n, {}) for n in value.shape])


def places(term: Term) -> np.ndarray:
    """The positions of the elements of a term, in its shape."""
    return places_in(lengths(term.shape))


def places_in(shape: tuple[int, ...]) -> np.ndarray:
    """The positions of the elements of an array, in its shape."""
    return np.arange(prod(shape)).reshape(shape)


def flat(index: Sequence[np.ndarray], shape: tuple[int, ...], like: tuple[int, ...]) -> np.ndarray:
    """Positions in an array of that shape."""
    if not shape:
        return np.zeros(like, np.int64)
    full = [np.broadcast_to(i, like) for i in index]
    return np.ravel_multi_index(full, shape) if prod(like) else np.zeros(like, np.int64)


def viewed(term: Term, x: np.ndarray) -> np.ndarray:
    """What a view of an array is."""
    kind, detail = term.detail
    shape = lengths(term.shape)
    if kind == "broadcast":
        return np.broadcast_to(x, shape)
    if kind == "permute":
        return x.transpose(detail)
    if kind == "getitem":
        rest = iter(shape)
        return x[tuple([_basic(part, rest) for part in detail])]
    if kind == "diagonal":
        return np.diagonal(x, *detail)
    return x.reshape(shape)


def _basic(part: tuple, rest: Any) -> Any:
    """A position or slice, of which the detail of a view has start and step."""
    start = value_of(part[0]) or 0
    if len(part) == 1:
        return start
    step = part[1] if isinstance(part[1], int) else value_of(part[1])
    return _slice(start, step, next(rest))


def _slice(start: int, step: Any, count: int) -> slice:
    if not count:
        return slice(0, 0)
    stop = start + step * (count - 1) + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step)


def chosen(term: Term, args: Sequence[np.ndarray]) -> np.ndarray:
    """What is put together of several arrays: ``codegen.nests.indices``."""
    kind, detail = term.detail
    shape = lengths(term.shape)
    if kind == "join":
        return np.concatenate(args, axis=detail)
    x, other = args
    if kind == "triangle":
        offset, lower = detail
        k = value_of(offset) or 0
        row, column = np.ogrid[: shape[-2], : shape[-1]]
        chosen = row + k >= column if lower else row + k <= column
        return np.where(chosen, np.broadcast_to(x, shape), other)
    out = np.array(np.broadcast_to(other, shape))
    if kind == "diagonal":
        on = np.diagonal(out, *detail)
        on.flags.writeable = True
        on[...] = x
        return out
    index = [
        value_of(part[0]) or 0
        if len(part) == 1
        else _slice(value_of(part[0]) or 0, part[1], value_of(part[2]) or 0)
        for part in detail
    ]
    out[tuple(index)] = x
    return out
