"""Views in a trace: canonical ones, and the memory that they show and write to.

What is left in a graph is ``reshape(shape)``, ``permute_dims(axes)``, ``broadcast_to(shape)``,
``getitem(index)`` with one integer or slice for each axis, ``astype(dtype, copy=True)``, ``real``,
``imag`` and ``diagonal(offset, axis1, axis2)``. Slices have explicit bounds whose distance is a
multiple of the step, so the length is ``(stop - start) / step``.

Note [Memory of a trace]
------------------------
Values of a graph never change. A ``TracedArray`` that is no view holds the value that is its memory
now; a write replaces that. A view holds the canonical operations, its *steps*, by which it is made
of what it looks at, and makes its value again after a write to the family. A write to a view puts
what is written into the place of the base: the steps are undone one after the other. So code that
fills an array piece by piece becomes a chain of ``index_put``. Compilers know this as
functionalization, or as the static single assignment form of arrays.

What is written where nothing is recorded is a change of numbers alone: the gradient of what is in
memory then goes to what was there before. ``written_detached`` and ``written_unrecorded`` say so in
the graph, the latter with the new tangent.

As in NumPy a reshape gives a view only where elements side by side stay so; else it is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.compiler.graph.graph import Length, Shape, TracedNode, Value
from numgrad.compiler.graph.sizes import Size, hinted, same
from numgrad.compiler.trace.builder import GraphBuilder
from numgrad.core.abstract import AbstractArray
from numgrad.core.axis import normalize_axes, one_axis
from numgrad.core.formula import Meta
from numgrad.core.op import OPS
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradIndexError, NumgradTraceError, NumgradValueError
from numgrad.operations.shape import as_index


def _add(tracer: GraphBuilder, name: str, x: Value, params: dict[str, Any], shape: Any) -> Value:
    return tracer.add(OPS[name], (x,), params, [(tuple(shape), x.dtype)])[0]


# ------------------------------------------------------------------------------------- shapes


def as_shape(operation: str, shape: Any) -> list[Any]:
    """A shape as a list of integers and sizes."""
    lengths = shape.tolist() if isinstance(shape, np.ndarray) else shape
    lengths = lengths if isinstance(lengths, tuple | list) else (lengths,)
    lengths = lengths if isinstance(lengths, tuple | list) else (lengths,)
    return [
        n if type(n) is int or isinstance(n, Size) else as_index(operation, n, "a length")
        for n in lengths
    ]


def to_shape(tracer: GraphBuilder, x: Value, shape: Sequence[Length]) -> Value:
    """The elements in a shape that is known to fit."""
    shape = tracer.resolved(tuple(shape))
    if tracer.same_shape(x.shape, shape):
        return x
    if x in tracer.units and all(type(n) is int for n in shape):
        return tracer.unit_value(shape, tracer.units[x], x.dtype)  # pyright: ignore
    return _add(tracer, "reshape", x, {"shape": shape}, shape)


def _reshape(tracer: GraphBuilder, x: Value, *, shape: Any, order: str = "C") -> Value:
    if order not in ("C", "A", "F"):
        raise NumgradValueError(f"reshape: order is 'C', 'F' or 'A', got {order!r}")
    target = as_shape("reshape", shape)
    lengths = tracer.resolved(x.shape)
    total = prod(lengths)
    unknown = [k for k, n in enumerate(target) if type(n) is int and n == -1]
    known = prod(n for k, n in enumerate(target) if k not in unknown)
    fits = total == known if not unknown else known != 0 and total % known == 0
    if len(unknown) == 1 and fits:
        target[unknown[0]] = total // known
    if len(unknown) > 1 or not fits:
        raise NumgradValueError(
            f"reshape: an array of shape {hinted(lengths)} cannot take shape "
            f"{hinted(tuple(target))}: the number of elements differs"
        )
    if order != "F":
        return to_shape(tracer, x, target)
    # a shape of the same total, so the elements may be counted from the other end
    x = to_shape(tracer, to_axes(tracer, x, tuple(reversed(range(x.ndim)))), target[::-1])
    return to_axes(tracer, x, tuple(reversed(range(x.ndim))))


def _ravel(tracer: GraphBuilder, x: Value, *, order: str = "C") -> Value:
    return _reshape(tracer, x, shape=(prod(tracer.resolved(x.shape)),), order=order)


def _expand_dims(tracer: GraphBuilder, x: Value, *, axis: Any) -> Value:
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    places = normalize_axes("expand_dims", axes, x.ndim + len(axes))
    rest = iter(x.shape)
    rank = x.ndim + len(axes)
    return to_shape(tracer, x, [1 if k in places else next(rest) for k in range(rank)])


def _squeeze(tracer: GraphBuilder, x: Value, *, axis: Any = None) -> Value:
    lengths = tracer.resolved(x.shape)
    if axis is None:
        axes = tuple([k for k, n in enumerate(lengths) if n == 1])
    else:
        axes = normalize_axes("squeeze", tuple(axis) if isinstance(axis, list) else axis, x.ndim)
    for k in axes:
        if lengths[k] != 1:
            raise NumgradValueError(
                f"squeeze: axis {k} of an operand of shape {hinted(lengths)} has not length 1"
            )
    return to_shape(tracer, x, [n for k, n in enumerate(lengths) if k not in axes])


def _broadcast_to(tracer: GraphBuilder, x: Value, *, shape: Any) -> Value:
    target = tracer.resolved(tuple(as_shape("broadcast_to", shape)))
    lead = len(target) - x.ndim
    lengths = tracer.resolved(x.shape)
    if lead < 0 or not all(
        same(n, m) or n == m or n == 1 for n, m in zip(lengths, target[lead:], strict=True)
    ):
        raise NumgradValueError(
            f"broadcast_to: an operand of shape {hinted(lengths)} does not broadcast to "
            f"{hinted(target)}"
        )
    if tracer.same_shape(lengths, target):  # comparing them may have made them equal
        return x
    return _add(tracer, "broadcast_to", x, {"shape": target}, target)


# ------------------------------------------------------------------------------- order of axes


def to_axes(tracer: GraphBuilder, x: Value, axes: tuple[int, ...]) -> Value:
    """The axes in another order."""
    if axes == tuple(range(x.ndim)):
        return x
    return _add(tracer, "permute_dims", x, {"axes": axes}, [x.shape[a] for a in axes])


def _permute_dims(tracer: GraphBuilder, x: Value, *, axes: Any = None) -> Value:
    if axes is None:
        return to_axes(tracer, x, tuple(reversed(range(x.ndim))))
    order = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
    if len(order) != x.ndim:
        raise NumgradValueError(
            f"permute_dims: {len(order)} axes for an operand of shape {hinted(x.shape)}"
        )
    normalize_axes("permute_dims", order, x.ndim)
    return to_axes(tracer, x, tuple([int(a) % x.ndim for a in order]))


def _swapaxes(tracer: GraphBuilder, x: Value, *, axis1: Any, axis2: Any) -> Value:
    a = one_axis("swapaxes", axis1, x.ndim)
    b = one_axis("swapaxes", axis2, x.ndim)
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return to_axes(tracer, x, tuple(order))


def _moveaxis(tracer: GraphBuilder, x: Value, *, source: Any, destination: Any) -> Value:
    def several(axes: Any) -> list[int]:
        listed = tuple(axes) if isinstance(axes, tuple | list) else (axes,)
        normalize_axes("moveaxis", listed, x.ndim)
        return [int(a) % x.ndim for a in listed]

    sources, destinations = several(source), several(destination)
    if len(sources) != len(destinations):
        raise NumgradValueError("moveaxis: source and destination name as many axes each")
    order = [k for k in range(x.ndim) if k not in sources]
    for to, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, axis)
    return to_axes(tracer, x, tuple(order))


def _matrix_transpose(tracer: GraphBuilder, x: Value) -> Value:
    if x.ndim < 2:
        raise NumgradValueError(
            f"matrix_transpose: needs at least two axes, got shape {hinted(x.shape)}; use "
            "reshape(x, (-1, 1)) to make a column"
        )
    return _swapaxes(tracer, x, axis1=-1, axis2=-2)


# ---------------------------------------------------------------------------------- index


def canonical_index(
    operation: str, shape: Shape, index: tuple
) -> tuple[tuple, list[Any], list[Any]]:
    """A basic index with one part for each axis, and the shape it gives, with and without None."""
    used = sum(1 for p in index if p is not None and p is not Ellipsis)
    if sum(1 for p in index if p is Ellipsis) > 1:
        raise NumgradIndexError(f"{operation}: an index can have one Ellipsis (...) only")
    if used > len(shape):
        raise NumgradIndexError(
            f"{operation}: {used} indices for an operand of shape {hinted(shape)}, which has "
            f"{len(shape)} axes"
        )
    fill = (slice(None),) * (len(shape) - used)
    if Ellipsis in [p for p in index if p is None or p is Ellipsis]:
        at = next(k for k, p in enumerate(index) if p is Ellipsis)
        index = (*index[:at], *fill, *index[at + 1 :])
    else:
        index = (*index, *fill)
    parts: list[Any] = []
    out: list[Any] = []
    rest: list[Any] = []
    axis = 0
    for entry in index:
        if entry is None:
            out.append(1)
            continue
        n = shape[axis]
        if isinstance(entry, slice):
            cut, length = _slice(entry, n)
            parts.append(cut)
            out.append(length)
            rest.append(length)
        else:
            parts.append(_position(operation, entry, n, axis, shape))
        axis += 1
    return tuple(parts), out, rest


def _position(operation: str, entry: Any, n: Length, axis: int, shape: Shape) -> Any:
    position = entry + n if entry < 0 else entry
    if position < 0 or not position < n:
        raise NumgradIndexError(
            f"{operation}: an array of shape {hinted(shape)} has no index {entry!r} along axis "
            f"{axis}"
        )
    return position


_BOUND = (
    "how much it selects depends on them; pass the argument that it comes from as a static one "
    "(static_argnums), or use np.where on positions"
)


def _slice(entry: slice, n: Length) -> tuple[slice, Length]:
    """A slice with explicit bounds that its step divides, and its length."""
    step = 1 if entry.step is None else entry.step.__index__()
    if step == 0:
        raise NumgradValueError("getitem: slice step cannot be zero")
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def bound(value: Any, default: Length) -> Length:
        if value is None:
            return default
        if not isinstance(value, Size):
            array = getattr(value, "_array", None)
            if isinstance(array, AbstractArray):
                array.refuse("a bound of a slice", _BOUND)
            value = as_index("getitem", value, "a bound of a slice")
        if value < 0:
            value = value + n
            return low if value < low else value
        return high if value > high else value

    start = bound(entry.start, low if step > 0 else high)
    stop = bound(entry.stop, high if step > 0 else low)
    distance = stop - start if step > 0 else start - stop
    if isinstance(distance, int) and distance <= 0:
        return slice(start, start, step), 0
    if not (same(start, low) and same(stop, high)) and distance <= 0:
        return slice(start, start, step), 0
    length = distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)
    return slice(start, start + length * step, step), length


def take_parts(tracer: GraphBuilder, x: Value, parts: tuple, shape: Sequence[Length]) -> Value:
    """The elements at a canonical index."""
    full = all(
        isinstance(p, slice) and p.step == 1 and same(p.start, 0) and same(p.stop, n)
        for p, n in zip(parts, tracer.resolved(x.shape), strict=True)
    )
    if not full and x in tracer.units:
        return _part_of_unit(tracer, x, parts)
    return x if full else _add(tracer, "getitem", x, {"index": parts}, shape)


def _part_of_unit(tracer: GraphBuilder, x: Value, parts: tuple) -> Value:
    """A view of zeros with a 1 somewhere: again that, or zeros alone."""
    numbers = np.arange(prod(x.shape)).reshape(x.shape)  # pyright: ignore
    for axis, entry in reversed(list(enumerate(parts))):
        cut = isinstance(entry, slice)
        positions = np.arange(entry.start, entry.stop, entry.step) if cut else entry.__index__()
        numbers = np.take(numbers, positions, axis)
    (result,) = np.nonzero(numbers.reshape(-1) == tracer.units[x])
    if result.size:
        return tracer.unit_value(numbers.shape, int(result[0]), x.dtype)
    return tracer.zero_value(numbers.shape, x.dtype)


def _getitem(tracer: GraphBuilder, x: Value, *, index: Any) -> Value:
    index = index if type(index) is tuple else (index,)
    parts, out, rest = canonical_index("getitem", tracer.resolved(x.shape), index)
    return to_shape(tracer, take_parts(tracer, x, parts, rest), out)


def _flip(tracer: GraphBuilder, x: Value, *, axis: Any = None) -> Value:
    axes = normalize_axes("flip", tuple(axis) if isinstance(axis, list) else axis, x.ndim)
    reverse = slice(None, None, -1)
    index = tuple([reverse if k in axes else slice(None) for k in range(x.ndim)])
    return _getitem(tracer, x, index=index)


def _split_at(tracer: GraphBuilder, x: Value, *, cuts: Any, axis: int = 0) -> tuple[Value, ...]:
    lead = (slice(None),) * axis
    parts = [(*lead, slice(a, b)) for a, b in pairwise(cuts)]
    return tuple([_getitem(tracer, x, index=entry) for entry in parts])


def _unstack(tracer: GraphBuilder, x: Value, *, axis: Any = 0) -> tuple[Value, ...]:
    axis = one_axis("unstack", axis, x.ndim)
    lead = (slice(None),) * axis
    count = range(tracer.resolved(x.shape)[axis])  # pyright: ignore[reportArgumentType]
    return tuple([_getitem(tracer, x, index=(*lead, k)) for k in count])


def _diagonal(
    tracer: GraphBuilder, x: Value, *, offset: Any = 0, axis1: Any = 0, axis2: Any = 1
) -> Value:
    if x.ndim < 2:
        raise NumgradValueError(f"diagonal: needs at least two axes, got shape {hinted(x.shape)}")
    (a,), (b,) = (normalize_axes("diagonal", k, x.ndim) for k in (axis1, axis2))
    if a == b:
        raise NumgradValueError("diagonal: axis1 and axis2 are the same axis")
    offset = as_index("diagonal", offset, "offset")
    lengths = tracer.resolved(x.shape)
    rows = lengths[a] + min(offset, 0)
    columns = lengths[b] - max(offset, 0)
    shortest = rows if same(rows, columns) or rows <= columns else columns
    shortest = 0 if shortest < 0 else shortest
    shape = [n for k, n in enumerate(lengths) if k not in (a, b)] + [shortest]
    return _add(tracer, "diagonal", x, {"offset": offset, "axis1": a, "axis2": b}, shape)


# ------------------------------------------------------------------------------------- dtypes


def _astype(tracer: GraphBuilder, x: Value, *, dtype: Any, copy: bool = True) -> Value:
    dtype = np.dtype(dtype)
    check_dtype("astype", dtype)
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = _real(tracer, x)
    return tracer.strong(x, dtype)


def _part(tracer: GraphBuilder, name: str, x: Value) -> Value:
    dtype = np.dtype(np.float32 if x.dtype == np.complex64 else np.float64)
    return tracer.add(OPS[name], (x,), {}, [(x.shape, dtype)])[0]


def _real(tracer: GraphBuilder, x: Value) -> Value:
    return x if x.dtype.kind != "c" else _part(tracer, "real", x)


def _imag(tracer: GraphBuilder, x: Value) -> Value:
    if x.dtype.kind != "c":
        return tracer.filled_value(tracer.resolved(x.shape), 0, x.dtype)
    return _part(tracer, "imag", x)


VIEWS: dict[str, Callable[..., Any]] = {
    "reshape": _reshape, "ravel": _ravel, "expand_dims": _expand_dims, "squeeze": _squeeze,
    "broadcast_to": _broadcast_to, "permute_dims": _permute_dims, "swapaxes": _swapaxes,
    "moveaxis": _moveaxis, "matrix_transpose": _matrix_transpose, "getitem": _getitem,
    "flip": _flip, "split_at": _split_at, "unstack": _unstack, "diagonal": _diagonal,
    "astype": _astype, "real": _real, "imag": _imag,
}  # fmt: skip
"""How each view of the table is written with canonical ones."""


# ------------------------------------------------------------------------------------------ memory


@dataclass(frozen=True)
class Step:
    """A canonical view of something of shape ``before``."""

    name: str
    params: dict[str, Any]
    before: Shape
    shape: Shape

    def apply(self, tracer: GraphBuilder, x: Value) -> Value:
        """The view of ``x``."""
        if self.name in ("real", "imag"):
            return VIEWS[self.name](tracer, x)
        return tracer.add(OPS[self.name], (x,), self.params, [(self.shape, x.dtype)])[0]

    def put(self, tracer: GraphBuilder, x: Value, new: Value) -> Value:
        """``x`` whose viewed part is replaced by ``new``."""
        if self.name in CONSTANTS:
            return written(tracer, self.name, x, new)
        if self.name == "reshape":
            return to_shape(tracer, new, self.before)
        if self.name == "permute_dims":
            return to_axes(tracer, new, self._inverse())
        if self.name == "getitem":
            params = {"index": self.params["index"], "accumulate": False}
            return tracer.add(OPS["index_put"], (x, new), params, [(x.shape, x.dtype)])[0]
        if self.name in ("real", "imag"):
            parts = [VIEWS["real"](tracer, x), VIEWS["imag"](tracer, x)]
            parts[self.name == "imag"] = new
            return tracer.add(OPS["from_parts"], parts, {}, [(x.shape, x.dtype)])[0]
        if self.name == "diagonal":
            shown = tracer.filled_value(self.shape, 1, bool)
            mask = self._on_diagonal(tracer, shown)
            values = self._on_diagonal(tracer, new)
            return tracer.add(OPS["where"], (mask, values, x), {}, [(x.shape, x.dtype)])[0]
        raise NumgradTraceError(f"{self.name}: a write through it has no meaning")

    def transpose(self, tracer: GraphBuilder, g: Value) -> Value:
        """Zeros of the shape ``before`` with ``g`` added where it is seen."""
        meta = [(self.before, g.dtype)]
        if self.name in CONSTANTS:
            return tracer.filled_value(self.before, 0, g.dtype)
        if self.name == "getitem":
            params = {"shape": self.before, "index": self.params["index"]}
            return tracer.add(OPS["getitem_backward"], (g,), params, meta)[0]
        if self.name == "diagonal":
            return self._on_diagonal(tracer, g)
        if self.name == "broadcast_to":
            return _summed(tracer, g, self.before)
        if self.name in ("real", "imag"):
            zero = tracer.filled_value(self.before, 0, g.dtype)
            parts = (g, zero) if self.name == "real" else (zero, g)
            dtype = np.result_type(g.dtype, np.complex64)
            return tracer.add(OPS["from_parts"], parts, {}, [(self.before, dtype)])[0]
        return self.put(tracer, g, g)

    def _inverse(self) -> tuple[int, ...]:
        return tuple(int(k) for k in np.argsort(self.params["axes"]))

    def _on_diagonal(self, tracer: GraphBuilder, new: Value) -> Value:
        params = {"shape": self.before, **self.params}
        meta = [(self.before, new.dtype)]
        return tracer.add(OPS["diagonal_backward"], (new,), params, meta)[0]


def put_at(tracer: GraphBuilder, steps: Sequence[Step], x: Value, new: Value) -> Value:
    """``x`` whose part that all steps view is replaced by ``new``."""
    chain = [x]
    for step in steps[:-1]:
        chain.append(step.apply(tracer, chain[-1]))
    for step, before in zip(reversed(steps), reversed(chain), strict=False):
        new = step.put(tracer, before, new)
    return new


def written(tracer: GraphBuilder, constant: str, old: Value, new: Value) -> Value:
    """The value of memory where ``new`` is written, which requires grad no more than told."""
    if old.dtype.kind not in "fc":
        return new
    return tracer.add(OPS[f"written_{constant}"], (old, new), {}, [(old.shape, old.dtype)])[0]


def _summed(tracer: GraphBuilder, value: Value, shape: Shape) -> Value:
    """The sum over the axes along which ``shape`` was broadcast to that of the value."""
    lengths, lead = tracer.resolved(value.shape), value.ndim - len(shape)
    ones = [lead + k for k, n in enumerate(shape) if n == 1 and lengths[lead + k] != 1]
    axes = (*range(lead), *ones)
    if axes:
        params = {"axis": axes, "dtype": None, "keepdims": False}
        rest = tuple([n for k, n in enumerate(lengths) if k not in axes])
        (value,) = tracer.add(OPS["sum"], (value,), params, [(rest, value.dtype)])
    return to_shape(tracer, value, shape)


def steps_between(whole: Value, viewed: Value) -> tuple[Step, ...] | None:
    """The canonical views by which ``viewed`` is made of ``whole``; None if it is not."""
    results: list[Step] = []
    while viewed is not whole:
        node: TracedNode = viewed.node
        if isinstance(node.op, str) or not (node.op.name in _STEPS and node.inputs):
            return None
        results.append(Step(node.op.name, node.params, node.inputs[0].shape, viewed.shape))
        viewed = node.inputs[0]
    return tuple(reversed(results))


CONSTANTS = ("detached", "unrecorded")
"""Views that say only what derivatives do not follow."""

_STEPS = {
    "reshape", "permute_dims", "getitem", "real", "imag", "diagonal", "broadcast_to", *CONSTANTS,
}  # fmt: skip


def shares_memory(contiguous: bool, steps: tuple[Step, ...]) -> tuple[bool, bool]:
    """Whether NumPy would give a view for steps from an array, and whether that is contiguous."""
    for step in steps:
        if step.name == "reshape":
            if not contiguous and not _only_ones(step.before, step.shape):
                return False, True
        elif step.name == "getitem":
            contiguous = contiguous and _leading(step)
        elif step.name not in CONSTANTS:
            contiguous = False
    return True, contiguous


def _only_ones(a: Shape, b: Shape) -> bool:
    """Whether shapes differ by axes of length 1 only."""
    lengths = [[n for n in shape if not (type(n) is int and n == 1)] for shape in (a, b)]
    return lengths[0] == lengths[1]


def _leading(step: Step) -> bool:
    """Whether an index takes elements that lie side by side."""
    sliced = False
    for entry, n in zip(step.params["index"], step.before, strict=True):
        if not isinstance(entry, slice):
            if sliced:
                return False
        elif entry.step != 1 or (sliced and not (entry.start == 0 and entry.stop == n)):
            return False
        else:
            sliced = True
    return True


@dataclass(frozen=True)
class TracedRegion:
    """The place of a view in its root, for the tape: the ``Region`` of a trace."""

    whole: Meta
    part: Meta
    steps: tuple[Step, ...]

    def find(self, tracer: GraphBuilder, x: Value) -> Value:
        """The elements at the place."""
        for step in self.steps:
            x = step.apply(tracer, x)
        return x

    def replace(self, tracer: GraphBuilder, x: Value, source: Value) -> Value:
        """``x`` with other elements at the place."""
        new = fitted(tracer, source, self.part.shape, x.dtype if not self.steps else None)
        kind = self.part.dtype.kind
        if new.dtype != self.part.dtype and (new.dtype.kind == "c") == (kind == "c"):
            new = tracer.strong(new, self.part.dtype)
        return put_at(tracer, self.steps, x, new)

    def scatter(self, tracer: GraphBuilder, source: Value) -> Value:
        """Zeros like the whole, with ``source`` added at the place."""
        for step in reversed(self.steps):
            source = step.transpose(tracer, source)
        return source


def fitted(tracer: GraphBuilder, value: Value, shape: Shape, dtype: Any) -> Value:
    """A value as it is stored: broadcast and converted."""
    if dtype is not None and value.dtype != np.dtype(dtype) and value.dtype.kind == "c":
        value = VIEWS["real"](tracer, value) if np.dtype(dtype).kind != "c" else value
    value = tracer.strong(value, dtype)
    return VIEWS["broadcast_to"](tracer, value, shape=shape)
