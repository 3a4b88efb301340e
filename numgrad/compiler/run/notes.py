"""What an operation notes besides its results, as the results of an operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.compiler.trace.infer import primitive_results
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op


@primitive(internal=True, method=False, outputs=True, differentiable=False)
def notes(*inputs, op, settings, without, batches):
    """The auxiliaries of ``op`` for operands of which those at ``without`` are left out.

    ``batches`` says, outermost first, how many examples there are and which operands have an axis
    of them in front: how an operation lays out its auxiliaries is known for one example only.
    """
    if not batches:
        return tuple(op.run(_given(inputs, without), dict(settings))[1].aux)
    (size, batched), rest = batches[0], batches[1:]
    if not size:
        metas = [Meta(x.shape, x.dtype) for x in inputs]
        found = _results(*metas, op=op, settings=settings, without=without, batches=batches)
        return tuple([np.zeros(m.shape, m.dtype) for m in found])
    examples = [
        notes.function(
            *[np.asarray(x[k]) if b else x for x, b in zip(inputs, batched, strict=True)],
            op=op, settings=settings, without=without, batches=rest,
        )
        for k in range(size)
    ]  # fmt: skip
    return tuple(map(np.stack, zip(*examples, strict=True)))


def _given(inputs: Sequence[Any], without: tuple[int, ...]) -> list[Any]:
    found = list(inputs)
    for place in without:
        found.insert(place, None)
    return found


@notes.shape
def _results(*inputs, op, settings, without, batches):
    if not batches:
        return primitive_results(op, _given(inputs, without), dict(settings))[1]
    size, batched = batches[0]
    one = [Meta(m.shape[1:], m.dtype) if b else m for m, b in zip(inputs, batched, strict=True)]
    found = _results(*one, op=op, settings=settings, without=without, batches=batches[1:])
    return tuple([Meta((size, *m.shape), m.dtype) for m in found])


@notes.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    here = (size, tuple([o.batched for o in operands]))
    given = tuple([o.value for o in operands])
    return bind(op, given, {**params, "batches": (here, *params["batches"])})
