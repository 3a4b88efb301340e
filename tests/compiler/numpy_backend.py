"""Graphs computed by NumPy alone: no kernel is compiled, and none of ours is trusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.compiler.graph.evaluate import with_lengths
from numgrad.compiler.graph.graph import CALL, CONSTANT, INPUT, SIZE, Graph, TracedNode, Value

ELEMENTWISE = (
    "add, subtract, multiply, divide, negative, positive, absolute, sign, square, sqrt, maximum, "
    "minimum, fmax, fmin, where, equal, not_equal, less, less_equal, greater, greater_equal, "
    "logical_and, logical_or, logical_xor, logical_not, bitwise_and, bitwise_or, isnan, isinf, "
    "isfinite, conjugate, exp, tanh, reciprocal"
)
REDUCTIONS = "sum, mean, prod, max, min, any, all, count_nonzero, var"
SAME = {name: getattr(np, name) for name in f"{ELEMENTWISE}, matmul, real, imag, copy".split(", ")}
"""NumPy's functions of the same name and arguments."""


def _complex(a: Any, b: Any) -> np.ndarray:
    out = np.empty(np.broadcast_shapes(np.shape(a), np.shape(b)), np.complex128)
    out.real, out.imag = a, b
    return out


def run(graph: Graph, *inputs: Any) -> list[np.ndarray]:
    """Outputs of a graph."""
    lengths = {}
    known: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for value, given in known.items():
        for n, actual in zip(value.shape, np.shape(given), strict=True):
            lengths[graph.sizes.number(n)] = actual

    def length(n: Any) -> int:
        return graph.sizes.evaluate(n, lengths)

    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node.op == INPUT:
                continue
            results = _compute(node, [known[v] for v in node.inputs], length)
            for value, result in zip(node.outputs, results, strict=True):
                assert np.shape(result) == tuple(length(n) for n in value.shape), node
                result = np.asarray(result)
                assert value.weak or result.dtype == value.dtype, (node, result.dtype)
                known[value] = result.item() if value.weak else np.ascontiguousarray(
                    result
                ).reshape(result.shape)  # fmt: skip
    return [np.asarray(known[v]) for v in graph.roots()]


def _compute(node: TracedNode, given: list[Any], length: Callable[[Any], int]) -> tuple[Any, ...]:
    params = {name: with_lengths(value, length) for name, value in node.params.items()}
    (out, *_) = node.outputs
    name = node.name
    if node.op == CONSTANT:
        return (params["value"] if out.weak else out.dtype.type(params["value"]),)
    if node.op == SIZE:
        return (params["size"],)
    if name in SAME:
        return (SAME[name](*given),)
    x = given[0] if given else None
    if name in REDUCTIONS.split(", "):
        if params.get("dtype") is None:
            params.pop("dtype", None)
        return (getattr(np, name)(x, **params),)
    if name == "getitem":
        return (x[_index(params["index"])],)
    if name == "getitem_backward":
        result = np.zeros(params["shape"], np.asarray(x).dtype)
        result[_index(params["index"])] = x
        return (result,)
    if name == "index_put":
        result = np.array(x)
        result[_index(params["index"])] = given[1]
        return (result,)
    if name in ("concat", "stack"):
        return (getattr(np, name)(given, axis=params["axis"]),)
    if name == "astype":
        return (np.asarray(x).astype(params["dtype"]),)
    if name == "from_parts":
        return (_complex(*given),)
    if name == "take":
        return (np.take(*given, **params),)
    if name == "index_put":
        result = np.array(x)
        result[_index(params["index"])] = given[1]
        return (result,)
    if name == "diagonal":
        return (np.diagonal(x, **params),)
    if name == "iota":
        return (np.arange(params["length"]),)
    if name == CALL:
        return tuple(node.params["function"](*map(np.asarray, given)))
    if name == "ruled":
        return tuple(given[params["count"] :])
    if name.startswith("written_"):
        return (given[1],)
    views = {"reshape": np.reshape, "permute_dims": np.transpose, "broadcast_to": np.broadcast_to}
    views["detached"] = views["unrecorded"] = np.asarray
    return (views[name](x, **params),)


def _index(index: tuple) -> tuple:
    return tuple(
        slice(p.start, None if p.step < 0 and p.stop < 0 else p.stop, p.step)
        if isinstance(p, slice)
        else p
        for p in index
    )
