"""Shapes and dtypes of what primitives compute, from those of their operands.

An operation says by ``Op.shape`` how they follow. Where it does not, it runs once on ones, and the
lengths of its operands become part of what the kernel is made for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.compiler.graph.shapes import hinted, specialised
from numgrad.core.formula import Meta
from numgrad.core.interpreter import eagerly, raw
from numgrad.core.op import Op
from numgrad.errors import NumgradError


def primitive_results(
    op: Op, metas: Sequence[Meta | None], params: dict[str, Any]
) -> tuple[tuple[Meta, ...], tuple[Meta, ...]]:
    """What the outputs and the auxiliaries of a call are."""
    if op.shape_rule is None:
        found = _by_running(op, metas, params)
    else:
        try:
            found = op.shape_rule(*metas, **params)
        except NumgradError:
            # the same again, so that the message names the lengths of the call
            op.shape_rule(*[m and Meta(hinted(m.shape), m.dtype) for m in metas], **_plain(params))
            raise
    aux: Any = ()
    if op.auxiliaries:
        found, aux = found
    outs = tuple(found) if getattr(op, "outputs", False) else (found,)
    return outs, tuple(aux)


def _by_running(op: Op, metas: Sequence[Meta | None], params: dict[str, Any]) -> Any:
    """What the operation gives for ones in place of its operands."""
    arrays = [None if m is None else np.ones(specialised(m.shape), m.dtype) for m in metas]
    with eagerly(raw, grad_enabled=False):
        out, call = op.run(arrays, _plain(params))
    outs = tuple(Meta(o.shape, o.dtype) for o in (out if type(out) is tuple else (out,)))
    found: Any = outs if type(out) is tuple else outs[0]
    return (found, tuple(Meta(a.shape, a.dtype) for a in call.aux)) if op.auxiliaries else found


def _plain(value: Any) -> Any:
    """Parameters with numbers in place of sizes."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, slice):
        return slice(*map(_plain, (value.start, value.stop, value.step)))
    return value.__index__() if hasattr(value, "terms") else value
