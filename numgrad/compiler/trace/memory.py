"""Memory in a trace: what a view shows of an array, and what a write through it changes.

Note [Memory of a trace]
------------------------
Values of a graph never change. A ``TracedArray`` that is no view holds the value that is its memory
now; a write replaces that. A view holds the canonical operations, its *steps*, by which it is made
of what it looks at, and makes its value anew after a write to the family. A write to a view puts
what is written into the place of the base: the steps are undone one after the other. So code that
fills an array piece by piece becomes a chain of ``index_put``.

What is written where nothing is recorded is a change of numbers alone: the gradient of what is in
memory then goes to what was there before. ``written_detached`` and ``written_unrecorded`` say so in
the graph, the latter with the new tangent.

As in NumPy a reshape gives a view only where elements side by side stay so; else it is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import Shape, TracedNode, Value
from numgrad.compiler.trace.builder import GraphBuilder
from numgrad.compiler.trace.views import VIEWS, to_axes, to_shape
from numgrad.core.formula import Meta
from numgrad.core.op import OPS
from numgrad.errors import NumgradTraceError


@dataclass(frozen=True)
class Step:
    """A canonical view of something of shape ``before``."""

    name: str
    params: dict[str, Any]
    before: Shape
    shape: Shape

    def apply(self, tracer: GraphBuilder, x: Value) -> Value:
        """What is seen of ``x``."""
        if self.name in ("real", "imag"):
            return VIEWS[self.name](tracer, x)
        return tracer.add(OPS[self.name], (x,), self.params, [(self.shape, x.dtype)])[0]

    def put(self, tracer: GraphBuilder, x: Value, part: Value) -> Value:
        """``x`` whose viewed part is replaced by ``part``."""
        if self.name in CONSTANTS:
            return written(tracer, self.name, x, part)
        if self.name == "reshape":
            return to_shape(tracer, part, self.before)
        if self.name == "permute_dims":
            return to_axes(tracer, part, self._inverse())
        if self.name == "getitem":
            params = {"index": self.params["index"], "accumulate": False}
            return tracer.add(OPS["index_put"], (x, part), params, [(x.shape, x.dtype)])[0]
        if self.name in ("real", "imag"):
            parts = [VIEWS["real"](tracer, x), VIEWS["imag"](tracer, x)]
            parts[self.name == "imag"] = part
            return tracer.add(OPS["from_parts"], parts, {}, [(x.shape, x.dtype)])[0]
        if self.name == "diagonal":
            shown = tracer.filled_value(self.shape, 1, bool)
            chosen = self._on_diagonal(tracer, shown)
            spread = self._on_diagonal(tracer, part)
            return tracer.add(OPS["where"], (chosen, spread, x), {}, [(x.shape, x.dtype)])[0]
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

    def _on_diagonal(self, tracer: GraphBuilder, part: Value) -> Value:
        params = {"shape": self.before, **self.params}
        meta = [(self.before, part.dtype)]
        return tracer.add(OPS["diagonal_backward"], (part,), params, meta)[0]


def written(tracer: GraphBuilder, constant: str, old: Value, new: Value) -> Value:
    """What is in memory where ``new`` is written, and derivatives follow it no more than told."""
    if old.dtype.kind not in "fc":
        return new
    return tracer.add(OPS[f"written_{constant}"], (old, new), {}, [(old.shape, old.dtype)])[0]


def _summed(tracer: GraphBuilder, value: Value, shape: Shape) -> Value:
    """The sum over the axes along which ``shape`` was broadcast to that of the value."""
    lengths, lead = tracer.resolved(value.shape), value.ndim - len(shape)
    axes = (
        *range(lead),
        *[lead + k for k, n in enumerate(shape) if n == 1 and lengths[lead + k] != 1],
    )
    if axes:
        params = {"axis": axes, "dtype": None, "keepdims": False}
        kept = tuple([n for k, n in enumerate(lengths) if k not in axes])
        (value,) = tracer.add(OPS["sum"], (value,), params, [(kept, value.dtype)])
    return to_shape(tracer, value, shape)


def steps_between(whole: Value, part: Value) -> tuple[Step, ...] | None:
    """The canonical views by which ``part`` is made of ``whole``; None if it is not."""
    found: list[Step] = []
    while part is not whole:
        node: TracedNode = part.node
        if isinstance(node.op, str) or not (node.op.name in _STEPS and node.inputs):
            return None
        found.append(Step(node.op.name, node.params, node.inputs[0].shape, part.shape))
        part = node.inputs[0]
    return tuple(reversed(found))


CONSTANTS = ("detached", "unrecorded")
"""Views that say only what derivatives do not follow."""

_STEPS = (
    "reshape",
    "permute_dims",
    "getitem",
    "real",
    "imag",
    "diagonal",
    "broadcast_to",
    *CONSTANTS,
)


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
    kept = [[n for n in shape if not (type(n) is int and n == 1)] for shape in (a, b)]
    return kept[0] == kept[1]


def _leading(step: Step) -> bool:
    """Whether an index takes elements that lie side by side."""
    sliced = False
    for part, n in zip(step.params["index"], step.before, strict=True):
        if not isinstance(part, slice):
            if sliced:
                return False
        elif sliced:
            if not (part.step == 1 and part.start == 0 and part.stop == n):
                return False
        else:
            if part.step != 1:
                return False
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
        seen = [x]
        for step in self.steps[:-1]:
            seen.append(step.apply(tracer, seen[-1]))
        part = fitted(tracer, source, self.part.shape, x.dtype if not self.steps else None)
        kind = self.part.dtype.kind
        if part.dtype != self.part.dtype and (part.dtype.kind == "c") == (kind == "c"):
            part = tracer.strong(part, self.part.dtype)
        for step, before in zip(reversed(self.steps), reversed(seen), strict=False):
            part = step.put(tracer, before, part)
        return part

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
