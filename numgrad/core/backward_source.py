"""The functions that allocate gradients and call a compiled backward, written as source.

Nothing is left to decide in them: they are the inner loop of the engine. They are called with ``g``
and what was saved. With ``accumulate`` they take a list of buffers too, and give None for a
gradient that they added to the buffer there.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.cpython import records
from numgrad.codegen.loops import LoopOperand, strided_view
from numgrad.codegen.memory import allocator
from numgrad.errors import generated


def elementwise_backward(
    plan: Any,
    mask: int,
    saved: tuple[str, ...],
    operands: dict[str, LoopOperand],
    outputs: dict[int, LoopOperand],
    aliased: Sequence[int],
    entry: Any,
    accumulate: bool,
    over_g: bool,
) -> Callable[..., Any]:
    """The backward of an elementwise operation; gradients that are ``aliased`` are ``g`` itself.

    With ``over_g`` there is one gradient, which is written over ``g``.
    """
    names: dict[str, Any] = {
        "entry": entry,
        "zeros": np.zeros,
        "compact": np.ascontiguousarray,
        "view": strided_view,
        "layout": plan.layout,
        "dims": plan.layout.dims,
    }
    parameters = ("g", *saved, *(("buffers",) if accumulate else ()))
    lines = [f"def backward({', '.join(parameters)}):"]
    if accumulate:
        lines.append("    flags = 0")
    if outputs:
        lines.append("    if not g.flags.c_contiguous: g = compact(g)")
    arguments = []
    for name in ("g", *saved):
        operand = operands[name]
        if not operand.mask:
            arguments.append(name)
        elif operand.strided:
            names[f"mask_{name}"] = operand.mask
            arguments.append(f"view({name}, layout, mask_{name})")
        else:
            arguments.append(name if plan.flat else f"{name}.ravel()")
    owned = 0
    dims = plan.layout.dims
    if len(dims) == 1 and all(o.full for o in outputs.values()):
        dims = ()
    for position, k in enumerate(outputs):
        shape = plan.metas[k].shape
        names[f"shape{k}"] = shape[0] if len(shape) == 1 else shape
        names[f"dtype{k}"] = plan.metas[k].dtype
        make = f"empty{k}" if entry is not None else "zeros"
        names[f"empty{k}"] = allocator(plan.metas[k].shape, plan.metas[k].dtype)
        if accumulate:
            lines.append(f"    g{k} = buffers[{k}]")
            lines.append(f"    if g{k} is None: g{k} = {make}(shape{k}, dtype{k})")
            lines.append(f"    else: flags |= {1 << position}")
        elif over_g:
            lines.append(f"    g{k} = g")
        else:
            lines.append(f"    g{k} = {make}(shape{k}, dtype{k})")
        arguments.append(f"g{k}" if plan.flat else f"g{k}.ravel()")
        owned |= 1 << k
    if dims:
        arguments.append("*dims")
    if accumulate:
        arguments.append("flags")
    if entry is not None:
        lines.append(f"    entry({', '.join(arguments)})")
    results = []
    for k in range(len(plan.metas)):
        if k in aliased:
            results.append("g")
        else:
            fresh = f"g{k} if buffers[{k}] is None else None" if accumulate else f"g{k}"
            results.append(fresh if k in outputs else "None")
    lines.append(f"    return ({', '.join(results)},), {owned}")
    read = [operands[name] for name in ("g", *saved)]
    if not (accumulate or over_g or plan.large or any(o.strided for o in read)):
        plan.steps[mask] = _elementwise_step(plan, saved, operands, outputs, aliased, entry, dims)
    return _compile(plan, lines, names)


def _elementwise_step(
    plan: Any,
    saved: tuple[str, ...],
    operands: dict[str, LoopOperand],
    outputs: dict[int, LoopOperand],
    aliased: Sequence[int],
    entry: Any,
    dims: tuple[int, ...],
) -> records.Words | None:
    """The same for machine code: Note [Launches] in ``codegen.cpython.records``."""
    if outputs and entry is None:
        return None
    shapes = {name: m.shape for name, m in zip(plan.op.inputs, plan.metas, strict=True)}
    shapes |= dict.fromkeys(("g", "y"), plan.shape)
    inputs = {
        name: (shapes[name] if operands[name].mask else None, operands[name].dtype)
        for name in ("g", *saved)
    }
    results = [
        "g" if k in aliased else (m.shape, m.dtype) if k in outputs else None
        for k, m in enumerate(plan.metas)
    ]
    sizes = [*inputs, *((k,) for k in outputs), *dims]
    return records.step(entry, inputs, results, sizes)


def axis_backward(plan: Any, mask: int, entry: Any, accumulate: bool) -> Callable[..., Any]:
    """The backward of an operation along axes."""
    meta, order = plan.metas[0], plan.order
    shape = meta.shape if order is None else tuple(meta.shape[a] for a in order)
    scope = {
        "empty": allocator(shape, meta.dtype),
        "shape": shape[0] if len(shape) == 1 else shape,
        "dtype": meta.dtype,
        "entry": entry,
        "sizes": plan.sizes,
        "count": plan.count,
        "compact": np.ascontiguousarray,
        "order": order,
        "inverse": plan.inverse,
    }
    saves, read = plan.saves(mask), plan.names("backward", mask)
    parameters = ("g", *saves, *(("buffers",) if accumulate else ()))
    lines = [f"def backward({', '.join(parameters)}):"]
    lines.append("    out = buffers[0]" if accumulate else "    out = empty(shape, dtype)")
    arguments = []
    for name in read:
        if name == "n":
            arguments.append("count")
            continue
        full = name == "x" or plan.op.keeps_shape
        if full and order is not None:
            lines.append(f"    {name} = {name}.transpose(order)")
        lines.append(f"    if not {name}.flags.c_contiguous: {name} = compact({name})")
        arguments.append(f"{name}.ravel()")
    if prod(shape):
        lines.append(f"    entry({', '.join(arguments)}, out.ravel(), *sizes)")
    result = "None" if accumulate else "out" if order is None else "out.transpose(inverse)"
    lines.append(f"    return ({result},), 1")
    if prod(shape) and order is None and not accumulate and not plan.large:
        metas = {"x": (meta.shape, meta.dtype)} | dict.fromkeys("gy", (plan.shape, plan.dtype))
        inputs = {name: metas[name] for name in ("g", *saves)}
        sizes = [*(plan.count if name == "n" else name for name in read), (0,), *plan.sizes]
        plan.steps[mask] = records.step(entry, inputs, [metas["x"]], sizes)
    return _compile(plan, lines, scope)


def _compile(plan: Any, lines: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile("\n".join(lines), generated(f"backward of {plan.op.name}"), "exec"), scope)
    return scope["backward"]
