"""A call of an operation in a trace: its node in canonical form, and its record for the tape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype, resolve
from numgrad.compiler.graph.graph import SIZE, Shape, Value
from numgrad.compiler.graph.sizes import Size, broadcast, hinted, specialised
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.builder import GraphBuilder
from numgrad.compiler.trace.views import VIEWS, canonical_index, to_shape
from numgrad.core.axis import AxisCall, AxisOp, normalize_axes
from numgrad.core.elementwise import Elementwise
from numgrad.core.formula import KnownInteger, Meta
from numgrad.core.interpreter import eagerly, raw
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.core.primitive import Primitive, View
from numgrad.errors import NumgradError, NumgradTypeError, NumgradValueError

_IDENTITIES = ("conjugate", "positive")
"""Operations that give real numbers back."""


_EXACT = 2**53
"""Integers beyond this are floating numbers in a graph, as they are beside such."""
REGIONS = ("copy_slices", "region_backward")
"""Operations on the place of a view in its root."""
INDEXED = ("getitem_backward", "index_put")
"""Operations that write at a basic index."""


class _Traced:
    """State of the calls in a trace; gradients belong to the line of the call itself."""

    __slots__ = ()

    tracer: GraphBuilder
    line: str | None
    outs: tuple[Meta, ...]

    @property
    def results(self) -> tuple[Meta, ...]:
        return self.outs

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        before, self.tracer.line = self.tracer.line, self.line
        try:
            return super().gradients(mask, g, values)  # pyright: ignore
        finally:
            self.tracer.line = before

    def differentiable(self, k: int) -> bool:
        for meta in self.outs:
            if meta.dtype.kind in "fc":
                return super().differentiable(k)  # pyright: ignore
        return False

    def saves(self, mask: int) -> tuple[str, ...]:
        op, metas = self.op, self.metas  # pyright: ignore
        key = (op, mask, len(metas))
        if op.complex_formulas:  # which name others
            key = (op, mask, tuple([m.dtype for m in metas]))
        cached = self.tracer.saved.get(key)
        if cached is None:
            cached = self.tracer.saved[key] = super().saves(mask)  # pyright: ignore
        return cached


class TracedCall(_Traced, Call):
    """The record of a call whose formulas need nothing but its parameters."""

    __slots__ = ("line", "nout", "out_metas", "outs", "tracer")

    def __init__(
        self,
        tracer: GraphBuilder,
        op: Op,
        metas: tuple[Meta, ...],
        params: dict[str, Any],
        outs: Sequence[Value],
        aux: tuple = (),
        *,
        many: bool = False,
    ) -> None:
        super().__init__(op, metas, params, aux)
        self.tracer = tracer
        self.line = outs[0].node.line if outs else None
        self.outs = tuple([Meta(o.shape, o.dtype) for o in outs])
        self.nout = len(outs)
        self.out_metas = self.outs if many else ()

    @property
    def ruled(self) -> bool:
        """Whether its gradients, or those of a step of it, are made by code of the user's."""
        return self.op.name == "ruled" or _has_rules(self.params)


def _has_rules(params: dict[str, Any]) -> bool:
    inner = [
        branch for branch in (params.get("body"), *params.get("parts", ())) if branch is not None
    ]
    nodes = [node for branch in inner for node in branch.graph.nodes]
    return any(node.name == "ruled" or _has_rules(node.params) for node in nodes)


class TracedAxisCall(_Traced, AxisCall):
    """The record of a call of an operation along axes."""

    __slots__ = ("line", "outs", "tracer")


def record_call(
    tracer: GraphBuilder, op: Op, arrays: list[Any], params: dict[str, Any]
) -> tuple[Any, Call]:
    """Append the node of a call; returns what it computes and the record for the tape."""
    if isinstance(op, Elementwise):
        return _elementwise(tracer, op, arrays)
    if isinstance(op, AxisOp):
        return _axis(tracer, op, arrays, params)
    if isinstance(op, View):
        return _view(tracer, op, arrays, params)
    return _primitive(tracer, op, arrays, params)


def _array(tracer: GraphBuilder, value: Value) -> TracedArray:
    return TracedArray(tracer, value)


def _value(tracer: GraphBuilder, a: Any) -> Value:
    """An operand as a value; Python numbers promote like such."""
    return tracer.constant(a) if type(a) in (int, float, complex) else a.value


def _strong(tracer: GraphBuilder, a: Any) -> Value:
    return tracer.strong(_value(tracer, a))


@cache
def _types(op: Elementwise, operands: tuple[tuple[np.dtype, Any], ...]) -> tuple[Any, np.dtype]:
    """Dtypes that operands are converted to, and of the result; ``operand`` of ``Value`` is one."""
    for dtype, _ in operands:
        check_dtype(op.name, dtype)
    loop, dtype = op.result_types([operand for _, operand in operands])
    check_dtype(op.name, dtype)
    return loop, dtype


_INT64 = np.dtype(np.int64)


def _fitting(tracer: GraphBuilder, op: Elementwise, arrays: list[Any]) -> list[Any]:
    """Operands of which no length is cut off by an integer dtype that does not hold it.

    What is compared is so as 64-bit integers. A length that is computed with, or that unsigned ones
    of 64 bits meet, is fixed, and is then as a number in the code.
    """
    known = int, float, complex
    if all(type(a) in known or not a.value.weak or a.value.constant is not None for a in arrays):
        return arrays
    values = [_value(tracer, a) for a in arrays]
    loop, dtype = _types(op, tuple([(v.dtype, v.operand) for v in values]))
    limits = [d for v, d in zip(values, loop, strict=True) if v.weak and v.constant is None]
    if all(d.kind not in "iu" or d == _INT64 for d in limits):
        return arrays
    if dtype.kind == "b" and all(d.itemsize < 8 for d in limits):
        return [_array(tracer, tracer.strong(v, _INT64)) for v in values]
    sizes = tracer.graph.sizes
    return [
        sizes.specialise(v.node.params["size"]) if v.node.op == SIZE else a
        for v, a in zip(values, arrays, strict=True)
    ]


def _within(tracer: GraphBuilder, op: Elementwise, arrays: list[Any]) -> list[Any]:
    """Operands without Python integers that the dtypes of the others do not hold."""
    numbers: list[Any] = []
    kinds: list[tuple[np.dtype, Any]] = []
    for a in arrays:
        if type(a) in (int, float, complex):
            numbers.append(a)
            kinds.append((np.dtype(type(a)), type(a)))
        else:
            numbers.append(a.value.constant if a.value.weak else None)
            kinds.append((a.value.dtype, a.value.operand))
    if int not in map(type, numbers):
        return arrays
    loop = _types(op, tuple(kinds))[0]
    within = op.within(
        [
            float(n) if type(n) is int and d.kind in "fc" and abs(n) > _EXACT else n
            for n, d in zip(numbers, loop, strict=True)
        ],
        loop,
    )
    results = [a if new is n else new for a, n, new in zip(arrays, numbers, within, strict=True)]
    return [  # beyond int64
        _array(tracer, tracer.constant(a, d)) if type(a) is int and d == np.uint64 else a
        for a, d in zip(results, loop, strict=True)
    ]


def _elementwise(tracer: GraphBuilder, op: Elementwise, arrays: list[Any]) -> tuple[Any, Call]:
    values = [_value(tracer, a) for a in _within(tracer, op, _fitting(tracer, op, arrays))]
    loop, dtype = _types(op, tuple([(v.dtype, v.operand) for v in values]))
    if op.check is not None and not all(d.kind in "fc" for d in loop):
        op.check([np.ones((), v.dtype) if v.constant is None else v.constant for v in values])
    shape = broadcast(op.name, [tracer.resolved(v.shape) for v in values])
    # arithmetic of Python numbers gives Python numbers, functions of them do not
    weak = all(v.weak for v in values) and op.dunder is not None and dtype.kind != "b"
    metas = tuple([Meta(v.shape, v.dtype) for v in values])
    if tracer.inner and not weak:  # in what is derived from a body such numbers may be arrays
        values = [
            tracer.strong(v, d) if v.weak and v.constant is None else v
            for v, d in zip(values, loop, strict=True)
        ]
    if op.name in _IDENTITIES and values[0].dtype.kind != "c" and values[0].dtype == dtype:
        outs: tuple[Value, ...] = (values[0],)
    else:
        outs = tracer.add(op, values, {}, [(shape, dtype)], weak=weak)
    return _array(tracer, outs[0]), TracedCall(tracer, op, metas, {}, outs)


def _axis(
    tracer: GraphBuilder, op: AxisOp, arrays: list[Any], params: dict[str, Any]
) -> tuple[Any, Call]:
    x = _strong(tracer, arrays[0])
    check_dtype(op.name, x.dtype)
    axis = params.get("axis")
    axes = normalize_axes(op.name, tuple(axis) if isinstance(axis, list) else axis, x.ndim)
    params = params | {"axis": axes}
    plan = op.plan(np.empty((1,) * x.ndim, x.dtype), params)
    params = dict(plan.params)
    lengths = tracer.resolved(x.shape)
    count = prod([lengths[a] for a in axes])
    rest = tuple(1 if a in axes else n for a, n in enumerate(lengths))
    shape: Shape = tuple(n for a, n in enumerate(lengths) if a not in axes)
    if op.keeps_shape:
        shape = lengths
    elif params.get("keepdims"):
        shape = rest
    if not op.empty and not isinstance(count, Size) and count == 0 and prod(hinted(shape)):
        raise NumgradValueError(
            f"{op.name}: the reduced axes of an operand of shape {hinted(lengths)} have no "
            "elements, and there is no value for that"
        )
    outs = tracer.add(op, (x,), params, [(shape, plan.dtype)])
    call = TracedAxisCall(op, (Meta(lengths, x.dtype),), params)
    call.axes, call.kept = axes, rest
    call.count = count if isinstance(count, Size) else float(count)
    call.tracer, call.line = tracer, outs[0].node.line
    call.outs = (Meta(shape, plan.dtype),)
    return _array(tracer, outs[0]), call


def _view(
    tracer: GraphBuilder, op: View, arrays: list[Any], params: dict[str, Any]
) -> tuple[Any, Call]:
    values = [_strong(tracer, a) for a in arrays]
    check_dtype(op.name, values[0].dtype)
    if op.name == "region":
        result = params["where"].find(tracer, values[0])
    elif op.name in VIEWS:
        result = VIEWS[op.name](tracer, *values, **params)
    else:
        raise NumgradTypeError(f"{op.name}: cannot be traced")
    metas = tuple([Meta(tracer.resolved(v.shape), v.dtype) for v in values])
    many = type(result) is tuple
    outs = result if many else (result,)
    source = arrays[0]
    looks = isinstance(source, TracedArray) and (op.name != "astype" or not params["copy"])
    traced = tuple([source.view(o) if looks else _array(tracer, o) for o in outs])
    call = TracedCall(tracer, op, metas, params, outs, many=many)
    return traced if many else traced[0], call


def _region(
    tracer: GraphBuilder, op: Op, values: list[Any], metas: list[Any], params: dict[str, Any]
) -> tuple[Any, Call]:
    """The value that is written somewhere, or its gradient."""
    where = params["where"]
    if op.name == "copy_slices":
        out = where.replace(tracer, *values)
    else:
        out = where.scatter(tracer, values[0])
    return _array(tracer, out), TracedCall(tracer, op, tuple(metas), params, (out,))


def _index(
    tracer: GraphBuilder, name: str, values: list[Any], metas: list[Any], params: dict[str, Any]
) -> dict[str, Any]:
    """A canonical index, and what is written there with an axis for each of its slices."""
    shape = params["shape"] if name == "getitem_backward" else metas[0].shape
    index = params["index"] if type(params["index"]) is tuple else (params["index"],)
    parts, out, rest = canonical_index(name, shape, index)
    written = values[-1]
    if len(out) != len(rest) and written.shape:
        full = VIEWS["broadcast_to"](tracer, written, shape=tuple(out))
        values[-1] = to_shape(tracer, full, rest)
    return params | {"index": parts}


def _meta(tracer: GraphBuilder, value: Value) -> Meta:
    """What is known of an operand: shape and dtype, of an integer its value if it has one."""
    if value.dtype.kind in "iu" and not value.shape:
        source = value
        while source.node.name == "astype" and source.node.inputs[0].dtype.kind in "iu":
            source = source.node.inputs[0]
        known = source.node.params["size"] if source.node.op == SIZE else source.constant
        if known is not None:
            return KnownInteger((), value.dtype, known if source.node.op == SIZE else int(known))
    return Meta(tracer.resolved(value.shape), value.dtype)


def _primitive(
    tracer: GraphBuilder, op: Op, arrays: list[Any], params: dict[str, Any]
) -> tuple[Any, Call]:
    rule = getattr(op, "types", None)
    if rule is None:
        operands = [None if a is None else _strong(tracer, a) for a in arrays]
    else:
        values = [_value(tracer, a) for a in arrays]
        loop, _ = resolve(rule, [v.operand for v in values])
        operands = [
            tracer.strong(v, d if v.weak else None) for v, d in zip(values, loop, strict=True)
        ]
    for value in operands:
        if value is not None:
            check_dtype(op.name, value.dtype)
    metas = [None if v is None else _meta(tracer, v) for v in operands]
    if op.name in REGIONS:
        return _region(tracer, op, operands, metas, params)
    for name, given_for in params.items():
        if isinstance(array := getattr(given_for, "_array", None), TracedArray):
            array.refuse(
                f"{op.name}: {name}",
                "pass the argument that it comes from as a static one (static_argnums)",
            )
    outs, aux = primitive_results(op, metas, params)
    # the record keeps the index as written: its gradient has the shape that index gives
    node_params = _index(tracer, op.name, operands, metas, params) if op.name in INDEXED else params
    absent = tuple([k for k, v in enumerate(operands) if v is None])
    if absent:
        node_params = node_params | {"absent": absent}
    present = [v for v in operands if v is not None]
    made = tracer.add(op, present, node_params, [(m.shape, m.dtype) for m in (*outs, *aux)])
    many = isinstance(op, Primitive) and op.outputs
    none = Meta((), np.dtype(np.int64))
    call = TracedCall(
        tracer,
        op,
        tuple([none if m is None else m for m in metas]),
        params,
        made[: len(outs)],
        tuple([_array(tracer, v) for v in made[len(outs) :]]),
        many=many,
    )
    traced = tuple([_array(tracer, v) for v in made[: len(outs)]])
    return traced if many else traced[0], call


# ------------------------------------------------------------------------------------------- infer


def primitive_results(
    op: Op, metas: Sequence[Meta | None], params: dict[str, Any]
) -> tuple[tuple[Meta, ...], tuple[Meta, ...]]:
    """Shapes and dtypes of the outputs and the auxiliaries of a call."""
    if op.shape_rule is None:
        results = _by_running(op, metas, params)
    else:
        try:
            results = op.shape_rule(*metas, **params)
        except NumgradError:
            # the same again, so that the message names the lengths of the call
            op.shape_rule(*[m and Meta(hinted(m.shape), m.dtype) for m in metas], **_plain(params))
            raise
    aux: Any = ()
    if op.auxiliaries:
        results, aux = results
    outs = tuple(results) if getattr(op, "outputs", False) else (results,)
    return outs, tuple(aux)


def _by_running(op: Op, metas: Sequence[Meta | None], params: dict[str, Any]) -> Any:
    """Results of the operation for ones in place of its operands."""
    arrays = [None if m is None else np.ones(specialised(m.shape), m.dtype) for m in metas]
    with eagerly(raw, grad_enabled=False):
        out, call = op.run(arrays, _plain(params))
    outs = tuple(Meta(o.shape, o.dtype) for o in (out if type(out) is tuple else (out,)))
    value: Any = outs if type(out) is tuple else outs[0]
    return (value, tuple(Meta(a.shape, a.dtype) for a in call.aux)) if op.auxiliaries else value


def _plain(value: Any) -> Any:
    """Parameters with numbers in place of sizes."""
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, slice):
        return slice(*map(_plain, (value.start, value.stop, value.step)))
    return value.__index__() if hasattr(value, "terms") else value
