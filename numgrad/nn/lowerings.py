"""Operations of layers as terms of a compiled function, imported when the compiler meets one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.array_formulas import ArrayFormula
from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64
from numgrad.codegen.nests.arrays import Axes, formula_terms
from numgrad.codegen.nests.polynomial import Length, value_of
from numgrad.codegen.nests.terms import Term, Terms, count
from numgrad.codegen.symbols import real_dtype
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lookup import gather, positions, require, scatter, spread, where
from numgrad.compiler.lower.lowering import Arithmetic, column, lowering, operands, shape_of
from numgrad.compiler.lower.matrices import multiplied, swapped
from numgrad.nn.batch_normalization import normalized_by, standardized_channels
from numgrad.nn.dropout import drop_limit, dropped
from numgrad.nn.layer_normalization import standardized_rows


@lowering("linear")
def _linear(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    """``x @ weight.T + bias``."""
    x, weight = args[:2]
    product = multiplied(terms, node, x, swapped(terms, weight))
    if product is None or len(args) == 2:
        return product
    dtype = node.outputs[0].dtype
    return terms.map("add", (product, terms.cast(args[2], dtype)), dtype)


@lowering("dropout")
def _dropout(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    """Note [Random numbers by position] in ``dropout``."""
    x, seed = args
    p, group = node.params["p"], node.params["group"]
    if not isinstance(p, int | float):
        return None
    bits, number = Arithmetic(terms, np.dtype(np.uint64)), Arithmetic(terms, real_dtype(x.dtype))
    least, scale = drop_limit(p)
    place = bits.of(terms.iota(x.shape, divisor=terms.length(group)))
    rest = bits.of(seed), bits.of(least), number.of(scale), place

    def of_part(part: Term) -> Term:
        return _read(dropped, terms, [part, *rest], x.shape, ())[0]

    if x.dtype.kind != "c":
        return of_part(x)
    parts = [of_part(terms.map(part, (x,), number.dtype)) for part in ("real", "imag")]
    return terms.map("from_parts", parts, x.dtype)


@lowering("embedding")
def _embedding(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    weight, indices = args
    place = positions(terms, indices, weight.shape[0], wrap=False)
    if place is None:
        return None
    shape = shape_of(terms, node)
    return gather(terms, weight, spread(terms, place, 0, shape), 0, len(indices.shape), shape)


@lowering("embedding_backward")
def _embedding_backward(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices = args
    params, shape = node.params, shape_of(terms, node)
    place = positions(terms, indices, shape[0], wrap=False)
    if params["scaled"] or place is None:
        return None
    place = spread(terms, place, 0, x.shape)
    if params["padding_idx"] is not None:
        row = terms.constant(int(params["padding_idx"]), INT64)
        if params["padding_idx"] < 0:
            row = terms.map("add", (row, terms.size(shape[0], INT64)), INT64)
        padding = terms.map("equal", (place, row), BOOL)
        x = where(terms, padding, terms.constant(x.dtype.type(0).item(), x.dtype), x)
    return scatter(terms, x, place, 0, len(indices.shape), shape)


def _read(
    formula: ArrayFormula,
    terms: Terms,
    operands: Sequence[Term | None],
    shape: tuple[Length, ...],
    places: Axes,
    **options: Any,
) -> list[Any]:
    """A formula whose axes are some of a shape's."""
    return formula_terms(terms, formula.function, operands, options, shape, places)


@lowering("batch_normalize")
def _batch_normalize(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    x, *parameters = operands(node, args, 3)
    assert x is not None
    if value_of(count(x.shape)) == 0:
        return None
    of, rank = Arithmetic(terms, node.outputs[0].dtype), len(x.shape)
    given = [of.of(x), *_columns(of, parameters, rank), of.of(float(node.params["eps"]))]
    places = ((0,), (1,), tuple(range(2, rank)))
    y, *each = _read(standardized_channels, terms, given, x.shape, places)
    mean, variance, rstd = (terms.drop(value, (0, *places[2])) for value in each)
    return [y, mean, variance, mean, rstd]


def _columns(of: Arithmetic, parameters: Sequence[Term | None], rank: int) -> list[Term | None]:
    """Numbers for each channel beside something with ``rank`` axes."""
    return [None if a is None else column(of.terms, of.of(a), rank, 1) for a in parameters]


@lowering("normalize_by")
def _normalize_by(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, *parameters = operands(node, args, 5)
    assert x is not None
    of, rank = Arithmetic(terms, node.outputs[0].dtype), len(x.shape)
    if any(a is not None and a.shape != (x.shape[1],) for a in parameters):
        return None
    given = [of.of(x), *_columns(of, parameters, rank), of.of(float(node.params["eps"]))]
    places = ((0,), (1,), tuple(range(2, rank)))
    return _read(normalized_by, terms, given, x.shape, places)[0]


@lowering("normalize_groups")
def _normalize_groups(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    x, *parameters = operands(node, args, 3)
    assert x is not None
    params = node.params
    extents = tuple(map(terms.length, params["extents"]))
    if value_of(count(extents)) == 0:
        return None
    of = Arithmetic(terms, node.outputs[0].dtype)
    split = _split(x.shape, extents)
    if split is None:
        shape, places = extents, ((0,), (1,), (2,), (3,))
        channels = tuple([terms.length(1), *extents[1:3], terms.length(1)])
    else:
        shape, rank = x.shape, len(x.shape)
        places, channels = (range(split), (), range(split, rank), ()), shape[split:]
    given = [None if a is None else terms.reshape(of.of(a), channels) for a in parameters]
    eps = of.of(float(params["eps"]))
    operands_ = [terms.reshape(of.of(x), shape), *given, eps]
    y, mean, rstd = _read(
        standardized_rows, terms, operands_, shape, places, centered=params["centered"]
    )
    rows = terms.shape(node.outputs[1].shape)
    statistics = [terms.reshape(a, rows) for a in (rstd if mean is None else mean, rstd)]
    return [terms.reshape(y, x.shape), *statistics]


def _split(shape: tuple[Length, ...], extents: tuple[Length, ...]) -> int | None:
    """The axis from which on all are normalized together, if there is one."""
    outer, groups, channels, inner = extents
    if value_of(groups) != 1 or value_of(inner) != 1:
        return None
    for k in range(len(shape)):
        if count(shape[:k]) == outer and count(shape[k:]) == channels:
            return k
    return None


def _class_axis(rank: int) -> int:
    return 0 if rank == 1 else 1


def _labels(terms: Terms, target: Term, classes: Length, ignored: int) -> tuple[Term, Term]:
    """Class indices that are in range, and which of them count."""
    target = terms.cast(target, INT64)
    zero = terms.constant(0, INT64)
    valid = terms.map("not_equal", (target, terms.constant(ignored, INT64)), BOOL)
    low = terms.map("greater_equal", (target, zero), BOOL)
    high = terms.map("less", (target, terms.size(classes, INT64)), BOOL)
    inside = terms.map("logical_and", (low, high), BOOL)
    out = terms.map("logical_not", (valid,), BOOL)
    require(terms, terms.map("logical_or", (out, inside), BOOL))
    return where(terms, inside, target, zero), valid


def _reduced(
    terms: Terms, losses: Term, weights: Term, valid: Term, reduction: str
) -> tuple[Term, Term]:
    """The loss, and the numbers that eager code keeps: the loss and its divisor."""
    dtype = losses.dtype
    of = Arithmetic(terms, dtype)
    wide = Arithmetic(terms, FLOAT64)
    if reduction == "none":
        return losses, terms.broadcast(of.of(0.0), (terms.length(2),))
    every = tuple(range(len(losses.shape)))

    def total(x: Term) -> Term:
        x = wide.of(x)
        return terms.reduce("sum", x, every) if every else x

    divisor = wide.of(1.0)
    if reduction == "mean":
        divisor = total(where(terms, valid, terms.broadcast(weights, valid.shape), of.of(0.0)))
    loss = of.of(wide("divide", total(losses), divisor))
    results = [terms.insert(of.of(x), (0,)) for x in (loss, divisor)]
    return loss, terms.choose("join", results, 0, (terms.length(2),))


@lowering("cross_entropy")
def _cross_entropy(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    x, target, weight = operands(node, args, 3)
    params = node.params
    assert x is not None
    assert target is not None
    if target.dtype.kind not in "iu" or value_of(count(x.shape)) == 0:
        return None
    axis = _class_axis(len(x.shape))
    classes, of = x.shape[axis], Arithmetic(terms, x.dtype)
    place, valid = _labels(terms, target, classes, params["ignore_index"])
    smoothing = float(params["label_smoothing"])
    shift = of.reduce("max", x, (axis,))
    shifted = of("subtract", x, shift)
    sums = terms.reduce("sum", of("exp", shifted), (axis,))
    logarithm = of("log", sums)
    weights = of.of(1.0) if weight is None else _picked(terms, of.of(weight), place)
    largest = terms.drop(shift, (axis,))
    chosen = of("subtract", gather(terms, x, place, axis, 0, place.shape), largest)
    loss = of(
        "multiply", of("multiply", 1.0 - smoothing, weights), of("subtract", logarithm, chosen)
    )
    if smoothing > 0:
        even = of("divide", smoothing, of.length(classes))
        whole = of.length(classes) if weight is None else terms.reduce("sum", of.of(weight), (0,))
        if weight is not None:
            shifted = of("multiply", shifted, column(terms, of.of(weight), len(x.shape), axis))
        distances = terms.reduce("sum", shifted, (axis,))
        rest = of("subtract", of("multiply", whole, logarithm), distances)
        loss = of("add", loss, of("multiply", even, rest))
    loss = where(terms, valid, loss, of.of(0.0))
    out, result = _reduced(terms, loss, weights, valid, params["reduction"])
    flat = [terms.insert(terms.reshape(a, (count(a.shape),)), (0,)) for a in (largest, sums)]
    rows = terms.choose("join", flat, 0, (terms.length(2), count(target.shape)))
    return [out, rows, result]


@lowering("nll_loss")
def _nll_loss(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    x, target, weight = operands(node, args, 3)
    assert x is not None
    assert target is not None
    if target.dtype.kind not in "iu" or value_of(count(x.shape)) == 0:
        return None
    axis = _class_axis(len(x.shape))
    of = Arithmetic(terms, x.dtype)
    place, valid = _labels(terms, target, x.shape[axis], node.params["ignore_index"])
    weights = of.of(1.0) if weight is None else _picked(terms, of.of(weight), place)
    chosen = gather(terms, x, place, axis, 0, place.shape)
    loss = where(terms, valid, of("negative", of("multiply", chosen, weights)), of.of(0.0))
    return list(_reduced(terms, loss, weights, valid, node.params["reduction"]))


def _picked(terms: Terms, weight: Term, place: Term) -> Term:
    """The weights of classes."""
    return gather(terms, weight, place, 0, len(place.shape), place.shape)


@lowering("class_distribution")
def _class_distribution(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    target, weight = operands(node, args, 2)
    assert target is not None
    out, params = node.outputs[0], node.params
    shape = terms.shape(out.shape)
    axis = _class_axis(len(shape))
    of = Arithmetic(terms, out.dtype)
    smoothing = float(params["label_smoothing"])
    target = terms.cast(target, INT64)
    valid = terms.map("not_equal", (target, terms.constant(params["ignore_index"], INT64)), BOOL)
    of_rows = terms.map("equal", (terms.insert(target, (axis,)), terms.iota(shape, axis)), BOOL)
    chosen = terms.map("logical_and", (of_rows, terms.insert(valid, (axis,))), BOOL)
    even, others, sharp = of.of(0.0), of.of(0.0), of.of(1.0)
    if smoothing:
        even = of("divide", smoothing, of.length(shape[axis]))
        others = where(terms, terms.insert(valid, (axis,)), even, others)
        sharp = of("add", even, 1.0 - smoothing)
    distribution = where(terms, chosen, sharp, others)
    zero = terms.constant(0, INT64)
    low = terms.map("greater_equal", (target, zero), BOOL)
    inside = terms.map("less", (target, terms.size(shape[axis], INT64)), BOOL)
    inside = terms.map("logical_and", (low, inside), BOOL)
    weights, whole = of.of(1.0), of.length(shape[axis])
    if weight is not None:
        weight = of.of(weight)
        distribution = of("multiply", distribution, column(terms, weight, len(shape), axis))
        weights = _picked(terms, weight, where(terms, inside, target, zero))
        whole = terms.reduce("sum", weight, (0,))
    total = where(terms, inside, of("multiply", weights, 1.0 - smoothing), of.of(0.0))
    if smoothing:
        total = of("add", total, of("multiply", even, whole))
    distribution = terms.broadcast(distribution, shape)
    if value_of(shape[axis]) != 0:
        terms.sums[distribution, (axis,)] = where(terms, valid, total, of.of(0.0))
    return distribution


@lowering("require_between")
def _require_between(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    (x,) = args
    low, high = (
        terms.constant(np.asarray(node.params[k]).astype(x.dtype).item(), x.dtype)
        for k in ("low", "high")
    )
    above = terms.map("greater_equal", (x, low), BOOL)
    require(
        terms, terms.map("logical_and", (above, terms.map("less_equal", (x, high), BOOL)), BOOL)
    )
    return terms.constant(True, BOOL)
