"""What operations that are no terms do to patterns: loops, convolutions, sparse products.

Note [Propagated patterns] in ``dependence`` says the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from scipy import sparse

from numgrad.codegen.nests.terms import Term
from numgrad.compiler.graph.evaluate import compute
from numgrad.compiler.graph.graph import Graph, TracedNode, Value
from numgrad.compiler.inspect.dependence import RULES, Dependence, Pattern, stacked
from numgrad.compiler.inspect.positions import lengths, places, places_in, shape_of
from numgrad.compiler.lower.expand import Expansion

_MOVES = ("concat", "stack", "roll", "copy")
"""Operations that may be no terms and do nothing but put elements elsewhere."""


def patterns(
    graph: Graph, given: dict[Value, Pattern], known: dict[Value, np.ndarray], columns: int
) -> list[Pattern]:
    """The patterns of the outputs of a graph whose lengths are all numbers.

    ``given`` are those of its inputs, ``known`` the numbers of inputs that depend on nothing.
    """
    return Dependence(Expansion(graph), graph, given, known, columns).outputs()


Rule = Callable[[Dependence, TracedNode, Sequence[Term], Sequence[Pattern]], list[Pattern]]


def _moved(
    self: Dependence, node: TracedNode, args: Sequence[Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """Elements that are put elsewhere: the operation says where, applied to their positions."""
    counts = [prod(lengths(a.shape)) for a in args]
    starts = np.concatenate([[0], np.cumsum(counts)])
    at = [places(a) + start for a, start in zip(args, starts, strict=False)]
    rows = [self._empty(n) if p is None else p for n, p in zip(counts, parts, strict=True)]
    (found,) = compute(node, at, lambda n: self.graph.sizes.evaluate(n, {}))
    return [stacked(rows)[np.asarray(found).ravel()]]


def _looped(
    self: Dependence, node: TracedNode, args: Sequence[Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """A loop: its step is gone through as often as it runs, or until nothing changes."""
    body, length = node.params["body"], self.graph.sizes.evaluate(node.params["length"], {})
    carry, xs, outside = body.parts(list(parts))
    numbers = body.parts([self.value(a) for a in args])
    inputs = body.parts(body.graph.inputs)
    fixed = {v: x for v, x in zip(inputs[2], numbers[2], strict=True) if x is not None}
    steps = range(length)[::-1] if node.params["reverse"] else range(length)
    expansion = Expansion(body.graph)
    collected: dict[int, list[Pattern]] = {}
    for step in steps:
        rows = [_row_of(x, step, length) for x in xs]
        here = {v: x[step] for v, x in zip(inputs[1], numbers[1], strict=True) if x is not None}
        given = dict(zip(body.graph.inputs, [*carry, *rows, *outside], strict=True))
        made = Dependence(expansion, body.graph, given, fixed | here, self.columns)
        found = made.outputs()
        carry = found[: body.carries]
        collected[step] = found[body.carries :]
    results = list(carry)
    for k, value in enumerate(node.outputs[body.carries :]):
        if value.dtype.kind not in "fc" or not length:
            results.append(None)
            continue
        count = prod(shape_of(self.graph, value)) // length
        pieces = [collected[step][k] for step in range(length)]
        pieces = [self._empty(count) if p is None else p for p in pieces]
        results.append(stacked(pieces))
    return results


def _row_of(part: Pattern, step: int, length: int) -> Pattern:
    if part is None:
        return None
    count = part.shape[0] // length
    return part[step * count : (step + 1) * count]


def _multiplied(
    self: Dependence, node: TracedNode, args: Sequence[Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """The product of a sparse matrix and a vector or matrix."""
    pattern, adjoint = node.params["pattern"], node.params["adjoint"]
    rows, columns = pattern.places(adjoint)
    count, inner = pattern.shape[::-1] if adjoint else pattern.shape
    width = prod(lengths(args[1].shape)[1:])
    wide = np.arange(width)
    at = (rows[:, None] * width + wide).ravel()
    found = None
    if parts[1] is not None:
        ones = np.ones(at.size, bool)
        source = (columns[:, None] * width + wide).ravel()
        found = sparse.csr_array((ones, (at, source)), shape=(count * width, inner * width))
        found = found @ parts[1]
    if parts[0] is not None:
        of_data = parts[0][np.repeat(np.arange(rows.size), width)]
        found = self._united([found, self._grouped(of_data, at, count * width)])
    return [found]


def _convolved(
    self: Dependence, node: TracedNode, args: Sequence[Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """A convolution: what lies under the window, along the axes that it moves along."""
    shapes = [lengths(a.shape) for a in args]
    (out,) = (shape_of(self.graph, v) for v in node.outputs)
    axes = node.params.get("axes", (0,))
    full = node.name == "convolve_whole" or node.params.get("mode") == "full"
    where = np.indices(out)
    found = []
    for own, other, part in zip(shapes, shapes[::-1], parts, strict=True):
        if part is None:
            continue
        rows, columns = [], []
        inside = all(other[a] <= own[a] for a in axes)
        window = [other[a] if full or inside else own[a] for a in axes]
        for offset in np.ndindex(*window):
            at = [w if own[a] > 1 or a in axes else 0 * w for a, w in enumerate(where)]
            for a, o in zip(axes, offset, strict=True):
                at[a] = at[a] - o if full else at[a] + o if inside else 0 * at[a] + o
            within = np.all([(i >= 0) & (i < n) for i, n in zip(at, own, strict=True)], axis=0)
            rows.append(places_in(out)[within])
            columns.append(np.ravel_multi_index([i[within] for i in at], own))
        at = np.concatenate(rows), np.concatenate(columns)
        moved = sparse.csr_array((np.ones(at[0].size, bool), at), shape=(prod(out), prod(own)))
        found.append(moved @ part)
    return [self._united(found)]


RULES.update(
    {
        **dict.fromkeys(("convolve_whole", "correlate_inside"), _convolved),
        **dict.fromkeys(_MOVES, _moved),
        "scan": _looped,
        "sparse_matmul": _multiplied,
    }
)
