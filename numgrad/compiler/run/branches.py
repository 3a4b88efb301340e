"""``cond`` and ``switch`` in compiled functions, where what decides is known when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.run.inner import joined, run_inner
from numgrad.compiler.run.inner_program import InnerPart
from numgrad.compiler.run.loop import draws_before
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.body import TracedBody, trace_body
from numgrad.compiler.trace.cut import extract
from numgrad.core.draws import of_branches
from numgrad.core.formula import Meta
from numgrad.core.interpreter import drawn_together
from numgrad.core.op import OPS

INT = np.dtype(np.int64)


def compiled_branches(
    name: str, which: Tensor, functions: Sequence[Callable[[], list[Tensor | None]]]
) -> list[Tensor | None]:
    """What the chosen one of ``functions`` returns, which all return lists of the same shapes.

    Each place has the dtype that holds what all of them return there; where one returns None,
    there is nothing.
    """
    absent: set[int] = set()
    traced = []
    for function in functions:
        kept: list[Tensor | None] = []

        def results(_: Any, function: Any = function, kept: list = kept) -> list[Any]:
            kept += function()
            return [x for x in kept if x is not None]

        body = trace_body(results, [Meta((), INT)], what=name, draws=True)
        outputs = iter(zip(body.graph.outputs, body.weak, strict=True))
        traced.append((body, [None if x is None else next(outputs) for x in kept]))
        absent.update(k for k, x in enumerate(kept) if x is None)
    count = len(traced[0][1])
    places = [k for k in range(count) if k not in absent]
    columns = [[found[k] for _, found in traced] for k in places]
    dtypes = [_joined_dtype([(v.dtype, w) for v, w in column]) for column in columns]  # pyright: ignore
    for body, found in traced:
        values = [found[k][0] for k in places]  # pyright: ignore
        body.graph.outputs = [
            _converted(body.graph, v, d) for v, d in zip(values, dtypes, strict=True)
        ]
    bodies = [body for body, _ in traced]
    numbers: list[Any] = []
    if any(body.draws for body in bodies):
        numbers = drawn_together(of_branches([draws_before(body) for body in bodies], which))
    outsides = [body.outside for body in bodies]
    parts, besides = joined(list(zip(_given_all(bodies), outsides, strict=True)))
    made = iter(run_inner(parts, (which, *numbers, *besides)) if places else ())
    out: list[Tensor | None] = [None if k in absent else next(made) for k in range(count)]
    for k, column in zip(places, columns, strict=True):
        array = getattr(out[k], "_array", None)
        if all(w for _, w in column) and isinstance(array, TracedArray):  # pyright: ignore
            array.value.weak = array.value.dtype.kind != "b"
    return out


def _given_all(bodies: Sequence[TracedBody]) -> list[InnerPart]:
    """Branches that are all given the number, and the random numbers that any of them draws."""
    drawn = [body.graph.inputs[1 : len(body.graph.inputs) - len(body.outside)] for body in bodies]
    every = [v for values in drawn for v in values]
    if not every:
        return [InnerPart(body.graph) for body in bodies]
    found = []
    for body in bodies:
        number, *rest = body.graph.inputs
        read = rest[len(rest) - len(body.outside) :]
        found.append(InnerPart(extract(body.graph, [number, *every, *read], body.graph.outputs)))
    return found


def _joined_dtype(kinds: Sequence[tuple[np.dtype, bool]]) -> np.dtype:
    """The dtype that holds arrays of these; what is weak is a Python number."""
    return np.result_type(*(d.type(0).item() if weak else d for d, weak in kinds))


def _converted(graph: Any, value: Value, dtype: np.dtype) -> Value:
    if value.dtype == dtype:
        return value
    params = {"dtype": dtype, "copy": True}
    return graph.add(OPS["astype"], (value,), params, [(value.shape, dtype)])[0]
