"""Why a compiled function did not suit a call, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.call_layout import CallLayout, Input
from numgrad.compiler.call.signature import (
    ARRAY,
    NUMBER,
    SCALAR,
    STATIC,
    TENSOR,
    Arguments,
    Leaf,
    same,
)
from numgrad.compiler.call.source import CONTENT, IDENTITY, VALUE, Source

_MODES = {1: "no_grad", 2: "recording", 3: "inference mode"}


def difference(layout: CallLayout, old: tuple, arguments: Arguments, new: tuple) -> str:
    """How a call differs from those that a specialisation was made for."""
    if old[-1] != new[-1]:
        return f"the mode was {_MODES[old[-1]]}, now {_MODES[new[-1]]}"
    if old[0] != new[0]:
        return "the arguments were nested differently, or others were left to their defaults"
    for leaf, before, now in zip(arguments.leaves, old[1], new[1], strict=True):
        text = _of_leaf(leaf, before, now)
        if text:
            return text
    for source in layout.guards:
        text = _of_guard(source)
        if text:
            return text
    return _of_captured(layout) or _of_sizes(layout, arguments) or "the surroundings changed"


def _of_leaf(leaf: Leaf, before: tuple, now: tuple) -> str | None:
    if before[0] != now[0] or (now[0] in (NUMBER, STATIC) and before[1] is not now[1]):
        return f"argument {leaf.path} was {_kind(before)}, now {_kind(now)}"
    if now[0] == STATIC:
        if same(before[2], now[2]):
            return None
        return f"the static argument {leaf.path} was {before[2]!r}, now {now[2]!r}"
    if now[0] not in (ARRAY, TENSOR, SCALAR):
        return None
    if before[1] != now[1]:
        return f"the dtype of {leaf.path} was {before[1]}, now {now[1]}"
    if before[2] != now[2]:
        return f"the shape of {leaf.path} was of the form {_shape(before[2])}, now {_shape(now[2])}"
    if before[3] != now[3]:
        return f"requires_grad of {leaf.path} was {before[3]}, now {now[3]}"
    return None


def _kind(key: tuple) -> str:
    return {ARRAY: "an ndarray", TENSOR: "a Tensor"}.get(key[0], f"a {key[0]}") + (
        f" ({key[1].__name__})" if key[0] in (NUMBER, STATIC) else ""
    )


def _shape(pattern: tuple) -> str:
    inside = ", ".join("n" if n < 0 else str(n) for n in pattern)
    return f"({inside}{',' if len(pattern) == 1 else ''})"


def _of_guard(source: Source) -> str | None:
    try:
        value = source.read()
    except Exception:
        return f"{source.name} is gone"
    if source.treatment == VALUE and not same(value, source.value):
        return f"{source.name} was {source.value!r}, now {value!r}"
    if source.treatment == IDENTITY and value is not source.value:
        return f"{source.name} is another object"
    if source.treatment == CONTENT and not source.value(value):
        return f"the array {source.name}, which plain NumPy may have read, has changed"
    return None


def _of_captured(layout: CallLayout) -> str | None:
    for entry in layout.inputs:
        if entry.leaf is None and entry.source is not None:
            try:
                value = entry.source.read()
            except Exception:
                return f"{entry.source.name} is gone"
            if entry.is_number:
                if type(value) is not type(entry.owner):
                    old, new = type(entry.owner).__name__, type(value).__name__
                    return f"{entry.source.name} was of type {old}, now of type {new}"
                continue
            if not isinstance(value, (Tensor, np.ndarray)):
                return f"{entry.source.name} was an array, now of type {type(value).__name__}"
            if not _suits(entry, value):
                return f"the array {entry.source.name} has another shape, dtype or requires_grad"
    return None


def _suits(entry: Input, item: Any) -> bool:
    value = entry.value
    if isinstance(item, Tensor) != isinstance(entry.owner, Tensor):
        return False
    if entry.tensor and item._requires_grad != entry.owner._requires_grad:
        return False
    return item.dtype == value.dtype and item.shape == entry.owner.shape


def _of_sizes(layout: CallLayout, arguments: Arguments) -> str | None:
    """The first relation between lengths that does not hold."""
    sizes = layout.sizes
    lengths: dict[int, tuple[str, int]] = {}
    leaves = {leaf.path: leaf for leaf in arguments.leaves}
    for entry in layout.inputs:
        leaf = entry.leaf and leaves.get(entry.leaf.path)
        owner = entry.owner if leaf is None else leaf.array
        for k, (expected, n) in enumerate(
            zip(entry.value.shape, getattr(owner, "shape", ()), strict=True)
        ):
            expected = sizes.resolve(expected)
            axis = sizes.number(expected)
            text = f"{entry.name}.shape[{k}]"
            if axis is not None and axis not in lengths:
                lengths[axis] = (text, n)
                continue
            known = {a: m for a, (_, m) in lengths.items()}
            if sizes.axes([expected]) <= known.keys() and sizes.evaluate(expected, known) != n:
                wanted = sizes.text(expected, lambda a: lengths[a][0])
                return f"{text} was {wanted}, now {n}"
    values = {axis: n for axis, (_, n) in lengths.items()}
    for guard in sizes.relations():
        if not eval(guard.text(lambda a: str(values[a]))):
            return f"it was made for {guard.text(lambda a: lengths[a][0])}"
    return None
