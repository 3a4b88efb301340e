"""Tangents of results: what each family of operations does to the tangents of its operands.

Note [Forward mode from gradient formulas]
------------------------------------------
A gradient formula is the map ``V``: cotangent of the output -> cotangent of an operand, linear over
the real numbers. Forward mode needs its transpose ``J``, with ``<g, J t> = <V(g), t>`` for the real
inner product ``<a, b> = Re(sum(conj(a) b))``.

- Linear operations are applied to the tangents, bilinear ones to one tangent at a time.
- Elementwise over the real numbers ``V`` is a factor, its own transpose: ``J t = V(t)``.
- Elementwise over the complex numbers ``J t = Re(conj(V(1)) t) + i Re(conj(V(i)) t)``: choose ``g``
  as 1 and i in the definition. The second term is left out where the output is real.
- A reduction does the same to each element and adds up, since each enters one output only.
- Anything else: ``V(u)`` is recorded for a dummy ``u``, and a backward from it with the cotangent
  ``t`` is ``J t``, the transpose of the transpose.

Everything is computed by operations on Tensors, so tangents can be differentiated themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.engine.backward import inner_grad
from numgrad.autograd.node import conform_tensor
from numgrad.autograd.variable import Tensor, constant
from numgrad.core.abstract import filled, zeros
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import Elementwise
from numgrad.core.formula import Meta
from numgrad.core.interpreter import ThreadSettings, bind, state
from numgrad.core.op import OPS, Op
from numgrad.core.plan import Call
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError

PREFIX = "t_"
"""Prefix of the name of an input's tangent in a declared formula."""


def reads_call(op: Op) -> bool:
    """Whether the rule of ``op`` reads the record of its call."""
    if op.jvp_formula is not None:
        return any(name in op.auxiliaries for name in _names(op.jvp_formula))
    if op.linear or op.bilinear or isinstance(op, Elementwise):
        return False
    return not isinstance(op, AxisOp) or op.keeps_shape


def takes_tangent(op: Op, k: int) -> bool:
    """Whether ``op`` is differentiated with respect to operand ``k``."""
    return op.jvp_formula is not None or _input(op, k) in op.formulas


def pushforward(
    op: Op,
    args: Sequence[Any],
    params: dict[str, Any],
    tangents: Sequence[Tensor | None],
    out: Any,
    call: Call | None,
) -> Any:
    """Tangent of ``out``, a tuple of them for several outputs; None is zero.

    ``tangents`` holds one for each operand, at least one of them not None; ``call`` is the record
    of the call where ``reads_call`` asks for it.
    """
    if op.jvp_formula is not None:
        out_tangents = _declared(op, args, params, tangents, out, call)
    elif op.linear:
        out_tangents = _linear(op, args, params, tangents)
    elif op.bilinear:
        out_tangents = _bilinear(op, args, params, tangents)
    elif isinstance(op, Elementwise):
        out_tangents = _elementwise(op, args, tangents, out)
    elif isinstance(op, AxisOp) and not op.keeps_shape:
        out_tangents = _reduction(op, args[0], params, tangents[0], out)
    else:
        out_tangents = _transposed(op, args, tangents, out, call)
    if not isinstance(out, tuple):
        return _fitted(out_tangents, out, tangents)
    if out_tangents is None:
        out_tangents = (None,) * len(out)
    return tuple(_fitted(t, y, tangents) for t, y in zip(out_tangents, out, strict=True))


# --------------------------------------------------------------------------------------- rules


def _linear(
    op: Op, args: Sequence[Any], params: dict[str, Any], tangents: Sequence[Tensor | None]
) -> Any:
    operands = []
    for k, (a, t) in enumerate(zip(args, tangents, strict=True)):
        if t is None and _input(op, k) in op.formulas:
            t = 0 if isinstance(op, Elementwise) else _zeros(a)
        operands.append(a if t is None else t)
    return bind(op, tuple(operands), params)


def _bilinear(
    op: Op, args: Sequence[Any], params: dict[str, Any], tangents: Sequence[Tensor | None]
) -> Any:
    terms = [
        bind(op, (*args[:k], t, *args[k + 1 :]), params)
        for k, t in enumerate(tangents)
        if t is not None
    ]
    return _sum(terms)


def _elementwise(
    op: Op, args: Sequence[Any], tangents: Sequence[Tensor | None], out: Tensor
) -> Tensor | None:
    values = _values(op, args, out)
    call = Call(op, tuple(map(_meta, args)), {})
    terms = []
    for k, t in enumerate(tangents):
        if t is None:
            continue
        if out.dtype.kind != "c" and t.dtype.kind != "c":
            terms.append(_moving(call.gradient(k, t, values)))
        else:
            terms.append(_from_parts(lambda g, k=k: call.gradient(k, g, values), t, (), out.dtype))
    return _sum(terms)


def _reduction(
    op: AxisOp, x: Tensor, params: dict[str, Any], t: Tensor | None, out: Tensor
) -> Tensor | None:
    assert t is not None  # its one operand
    call = state.ground.plan(op, x, params)
    values = {"x": x, "y": out}
    product = _from_parts(
        lambda g: call.gradient(0, g, values), t, call.results[0].shape, out.dtype
    )
    if product is None:
        return None
    options = {"axis": call.axes, "keepdims": bool(params.get("keepdims"))}
    return bind(OPS["sum"], (product,), options)


def _from_parts(
    gradient: Callable[[Tensor], Any], t: Tensor, shape: tuple[int, ...], dtype: np.dtype
) -> Tensor | None:
    """``J t`` from the gradients for cotangents 1 and i of the given shape and dtype."""
    parts: list[Any] = []
    for unit in (1, 1j) if dtype.kind == "c" else (1,):
        factor = _moving(gradient(Tensor(filled(shape, unit, dtype))))
        if factor is None:
            parts.append(None)
        elif t.dtype.kind == "c" or factor.dtype.kind == "c":
            parts.append(np.real(np.conj(factor) * t))
        else:
            parts.append(factor * t)
    if len(parts) == 1 or parts == [None, None]:
        return parts[0]
    real, imaginary = (0.0 if component is None else component for component in parts)
    return bind(OPS["from_parts"], (real, imaginary), {})


def _transposed(
    op: Op, args: Sequence[Any], tangents: Sequence[Tensor | None], out: Any, call: Call | None
) -> Any:
    if call is None:
        raise NumgradNotImplementedError(
            f"{op.name}: forward mode needs the record of the call, which the active interpreter "
            "does not give; declare a formula with .jvp()"
        )
    outs = out if isinstance(out, tuple) else (out,)
    values = _values(op, args, out) | dict(zip(op.auxiliaries, map(_value, call.aux), strict=False))
    used = [x for x in (*args, *tangents) if isinstance(x, Tensor)]
    # levels below see tangents of Tensors only, and a graph is kept if it can be asked for
    keep = bool(state.interpreters) or (state.grad_enabled and any(x.requires_grad for x in used))
    dummies = tuple(
        Tensor(zeros(y.shape, y.dtype), requires_grad=y.dtype.kind in "fc") for y in outs
    )
    vjps, cotangents = [], []
    with ThreadSettings(**RECORDING):
        for k, t in enumerate(tangents):
            if t is None:
                continue
            value = call.gradient(k, dummies if isinstance(out, tuple) else dummies[0], values)
            if isinstance(value, Tensor) and value.requires_grad:
                vjps.append(conform_tensor(value, call.metas[k]))
                cotangents.append(t)
    if not vjps:
        return None
    inputs = [u for u in dummies if u.requires_grad]
    transposed = iter(inner_grad(vjps, inputs, cotangents, create_graph=keep, allow_unused=True))
    result = tuple(next(transposed) if u.requires_grad else None for u in dummies)
    return result if isinstance(out, tuple) else result[0]


RECORDING = {"grad_enabled": True, "inference": False, "saved_hooks": (), "anomaly": False}
"""State of the thread in which an operation is recorded unseen by the user."""


def _declared(
    op: Op,
    args: Sequence[Any],
    params: dict[str, Any],
    tangents: Sequence[Tensor | None],
    out: Any,
    call: Call | None,
) -> Any:
    formula: Any = op.jvp_formula
    values = _values(op, args, out)
    if op.materializes_tangents:
        pairs = zip(args, tangents, strict=True)
        tangents = [_zeros(a) if t is None and a is not None else t for a, t in pairs]
    of_inputs = (
        {"inputs": tuple(tangents)}
        if op.inputs == ("inputs",)
        else dict(zip(op.inputs, tangents, strict=True))
    )
    operands: dict[str, Any] = {}
    for name in _names(formula):
        if name.startswith(PREFIX) and name[len(PREFIX) :] in of_inputs:
            operands[name] = of_inputs[name[len(PREFIX) :]]
        elif name in values:
            operands[name] = values[name]
        elif name in params:
            operands[name] = params[name]
        elif call is not None and name in op.auxiliaries:
            operands[name] = _value(call.aux[op.auxiliaries.index(name)])
        else:
            raise NumgradTypeError(
                f"{op.name}: the forward-mode formula names {name!r}, which is neither y, an input "
                f"({', '.join(op.inputs)}), {PREFIX}<input>, nor a parameter"
            )
    return formula(**operands)


# ------------------------------------------------------------------------------------ operands


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _input(op: Op, k: int) -> str:
    return "inputs" if op.inputs == ("inputs",) else op.inputs[k]


def _value(a: Any) -> Any:
    """An operand as gradient formulas take it: a Tensor or a Python number."""
    if a is None or isinstance(a, Tensor) or type(a) in (bool, int, float, complex):
        return a
    return constant(a)


def _values(op: Op, args: Sequence[Any], out: Any) -> dict[str, Any]:
    values = [_value(a) for a in args]
    if op.inputs == ("inputs",):
        return {"inputs": tuple(values), "y": out}
    return {**dict(zip(op.inputs, values, strict=True)), "y": out}


def _meta(a: Any) -> Meta:
    a = a if hasattr(a, "shape") else np.asarray(a)
    return Meta(a.shape, a.dtype)


def _zeros(a: Any) -> Tensor:
    meta = _meta(a)
    return Tensor(zeros(meta.shape, meta.dtype))


# ------------------------------------------------------------------------------------- results


def _moving(value: Any) -> Tensor | None:
    """The result of a gradient formula; one that does not depend on ``g`` gives a number, zero."""
    return value if isinstance(value, Tensor) else None


def _sum(terms: Sequence[Tensor | None]) -> Tensor | None:
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def _fitted(t: Any, out: Tensor, tangents: Sequence[Tensor | None]) -> Tensor | None:
    """A tangent with shape and dtype of ``out``, in memory of its own unless ``out`` is a view."""
    if t is None or out.dtype.kind not in "fc":
        return None
    if not isinstance(t, Tensor):
        t = constant(t)
    if t.dtype != out.dtype:
        t = bind(OPS["astype"], (t, out.dtype), {})
    if t.shape != out.shape:
        t = bind(OPS["broadcast_to"], (t, out.shape), {})
    if isinstance(out._memory, Tensor):
        return t
    shared = isinstance(t._memory, Tensor) or any(t is other for other in tangents)
    return bind(OPS["copy"], (t,), {}) if shared else t
