"""Losses of class indices as terms of a compiled function."""

from __future__ import annotations

import numpy as np

from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64
from numgrad.codegen.nests.polynomial import Terms as Length
from numgrad.codegen.nests.polynomial import value_of
from numgrad.codegen.nests.terms import Term, Terms, count
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lookup import gather, require, where
from numgrad.compiler.lower.lowering import Arithmetic, column, lowering, operands


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
    kept = [terms.insert(of.of(x), (0,)) for x in (loss, divisor)]
    return loss, terms.choose("join", kept, 0, (terms.length(2),))


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
    apart = of("subtract", x, shift)
    sums = terms.reduce("sum", of("exp", apart), (axis,))
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
            apart = of("multiply", apart, column(terms, of.of(weight), len(x.shape), axis))
        distances = terms.reduce("sum", apart, (axis,))
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
    found = where(terms, chosen, sharp, others)
    zero = terms.constant(0, INT64)
    low = terms.map("greater_equal", (target, zero), BOOL)
    inside = terms.map("less", (target, terms.size(shape[axis], INT64)), BOOL)
    inside = terms.map("logical_and", (low, inside), BOOL)
    weights, whole = of.of(1.0), of.length(shape[axis])
    if weight is not None:
        weight = of.of(weight)
        found = of("multiply", found, column(terms, weight, len(shape), axis))
        weights = _picked(terms, weight, where(terms, inside, target, zero))
        whole = terms.reduce("sum", weight, (0,))
    total = where(terms, inside, of("multiply", weights, 1.0 - smoothing), of.of(0.0))
    if smoothing:
        total = of("add", total, of("multiply", even, whole))
    found = terms.broadcast(found, shape)
    if value_of(shape[axis]) != 0:
        terms.sums[found, (axis,)] = where(terms, valid, total, of.of(0.0))
    return found


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
