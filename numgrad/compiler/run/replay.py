"""A graph as a function of Tensors: its operations are called again, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor, constant
from numgrad.compiler.graph.evaluate import operands, parameters
from numgrad.compiler.graph.graph import CONSTANT, INPUT, SIZE, Graph, TracedNode, Value
from numgrad.compiler.trace.calls import primitive_results
from numgrad.compiler.trace.generators import draw_from, fixed_operands
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, bind_recorded
from numgrad.core.op import Op
from numgrad.errors import NumgradNotImplementedError


def replay(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs of a graph, computed with operations on Tensors that may be recorded or traced.

    What an operation notes besides its results is a constant to whoever reads it, as in the first
    run: gradient formulas are written so (what follows the operands they get from the operands).
    """
    sizes = graph.sizes
    # an axis that no input has keeps its symbol: a step reads lengths of what is around it
    lengths: dict[int, Any] = {k: sizes.of_axis(k) for k in range(len(sizes.hints))}
    for value, array in zip(graph.inputs, inputs, strict=True):
        for expected, n in zip(value.shape, getattr(array, "shape", ()), strict=True):
            axis = sizes.number(sizes.resolve(expected))
            if axis is not None:
                lengths[axis] = n

    def length(n: Any) -> Any:
        return sizes.evaluate(n, lengths)

    known: dict[Value, Any] = dict(zip(graph.inputs, inputs, strict=True))
    read = {v for node in graph.nodes for v in node.inputs}.union(graph.outputs)
    for node in graph.nodes:
        if node.op != INPUT:
            results = _compute(node, known, length, read)
            known.update(zip(node.outputs, results, strict=False))
    return tuple([known[value] for value in graph.outputs])


def _compute(
    node: TracedNode, known: dict[Value, Any], length: Any, read: set[Value]
) -> tuple[Any, ...]:
    """Results of a node, and what its operation notes besides if that is read."""
    value = node.outputs[0]
    if node.op == CONSTANT:
        number = node.params["value"]
        return (number if value.weak or number is None else np.asarray(number, value.dtype),)
    if node.op == SIZE:
        return (length(node.params["size"]),)
    if not isinstance(node.op, Op):
        raise NumgradNotImplementedError(
            f"jit: {node.line or 'a call of a Python function'}: a compiled function that calls "
            "Python code cannot be differentiated twice; run it eagerly (ng.config.jit = False)"
        )
    inputs = operands(node, [known[v] for v in node.inputs])
    params = parameters(node, length)
    if node.op is draw_from:
        inputs = fixed_operands(params["draws"], inputs)
    aside = node.outputs[len(node.outputs) - len(node.op.auxiliaries) :]
    noted: Any = ()
    if read.isdisjoint(aside):
        out = node.op(*inputs, **params)
    else:
        out, call = bind_recorded(node.op, tuple(inputs), params)
        # there is no record of a batch, nor of what has no gradient
        noted = _auxiliaries(node.op, inputs, params) if call is None else map(constant, call.aux)
    results = *(out if isinstance(out, tuple) else (out,)), *noted
    return tuple(
        r.item() if v.weak and isinstance(r, Tensor) and isinstance(r._array, np.ndarray) else r
        for v, r in zip(node.outputs, results, strict=False)
    )


def _auxiliaries(op: Op, inputs: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
    absent = tuple([k for k, a in enumerate(inputs) if a is None])
    present = tuple([a for a in inputs if a is not None])
    settings = tuple(params.items())
    return bind(notes, present, {"op": op, "settings": settings, "without": absent, "batches": ()})


# ------------------------------------------------------------------------------------------- notes


@primitive(internal=True, method=False, outputs=True, differentiable=False)
def notes(*inputs, op, settings, without, batches):
    """The auxiliaries of ``op`` for operands of which those at ``without`` are left out.

    ``batches`` says, outermost first, how many examples there are and which operands have an axis
    of them in front: how an operation lays out its auxiliaries is known for one example only.
    """
    if not batches:
        return tuple(op.run(_without(inputs, without), dict(settings))[1].aux)
    (size, batched), rest = batches[0], batches[1:]
    if not size:
        metas = [Meta(x.shape, x.dtype) for x in inputs]
        results = _results(*metas, op=op, settings=settings, without=without, batches=batches)
        return tuple([np.zeros(m.shape, m.dtype) for m in results])
    examples = [
        notes.function(
            *[np.asarray(x[k]) if b else x for x, b in zip(inputs, batched, strict=True)],
            op=op, settings=settings, without=without, batches=rest,
        )
        for k in range(size)
    ]  # fmt: skip
    return tuple(map(np.stack, zip(*examples, strict=True)))


def _without(inputs: Sequence[Any], without: tuple[int, ...]) -> list[Any]:
    results = list(inputs)
    for position in without:
        results.insert(position, None)
    return results


@notes.shape
def _results(*inputs, op, settings, without, batches):
    if not batches:
        return primitive_results(op, _without(inputs, without), dict(settings))[1]
    size, batched = batches[0]
    one = [Meta(m.shape[1:], m.dtype) if b else m for m, b in zip(inputs, batched, strict=True)]
    results = _results(*one, op=op, settings=settings, without=without, batches=batches[1:])
    return tuple([Meta((size, *m.shape), m.dtype) for m in results])


@notes.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    here = (size, tuple([o.batched for o in operands]))
    values = tuple([o.value for o in operands])
    return bind(op, values, {**params, "batches": (here, *params["batches"])})
