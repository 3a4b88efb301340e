"""Steps of RNN, GRU and LSTM through time as operations.

The operations take ``a``, what the gates get from the inputs at each time, of shape (time, batch,
gates * hidden); the first state ``h``, (batch, hidden); the recurrent weight, (gates * hidden,
hidden), and its bias. ``reverse`` lets time run backwards. Of one time, ``h`` and the weight may
have another last axis, as they do where an LSTM's states are projected.

Note [Formulas through time]
----------------------------
The gradient formulas go forward and back through time with operations on single times. They compute
the gates again from the inputs, since a second derivative must see that they depend on them; those
that the forward kept are named for the backward kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.recurrent import BLOCK, GATES, recurrent_backward_kernel, recurrent_kernel
from numgrad.operations.arrangement import matrix_transpose
from numgrad.operations.error_gamma_logistic import sigmoid
from numgrad.operations.index import getitem
from numgrad.operations.join import concat, stack
from numgrad.operations.matmul import matmul

_GATE_NS = 4.0  # activation of one gate of one unit


_MULTIPLY_NS = 0.03  # one multiplication and addition


_NOGIL_NS = 100_000.0  # from which time on other Python threads run beside a kernel


@cache
def _entry(maker: Any, kind: str, dtype: np.dtype, parallel: bool, nogil: bool) -> Any:
    return maker(kind, dtype, parallel, nogil).entry


def _launch(maker: Any, kind: str, states: np.ndarray, *arguments: Any) -> None:
    steps, rows, hidden = states.shape
    work = steps * rows * hidden * GATES[kind][0] * (_GATE_NS + hidden * _MULTIPLY_NS)
    entry = threads.choose(
        partial(_entry, maker, kind, states.dtype, False, work > _NOGIL_NS),
        partial(_entry, maker, kind, states.dtype, True, True),
        work if rows > BLOCK else 0.0,
    )
    entry(*arguments)


def _states(kind: str, a: Any, h: Any, weight: Any, bias: Any, *cell: Any) -> tuple[Meta, Meta]:
    """Check the operands; shapes and dtypes of the states of all times, and of the gates saved."""
    name, gates = f"{kind.split('_')[0]}_sequence", GATES[kind][0]
    operands = [x for x in (a, h, weight, bias, *cell) if x is not None]
    dtype = np.result_type(np.float32, *(x.dtype for x in operands))
    check_dtype(name, dtype)
    if dtype.kind == "c":
        raise NumgradTypeError(f"{name}: complex operands have no gates; pass real ones")
    if not _fit(kind, a, h, weight, bias, *cell):
        shapes = ", ".join(str(x.shape) for x in operands)
        raise NumgradValueError(
            f"{name}: operands of shapes {shapes} do not fit; expected (time, batch, {gates} * "
            f"hidden) with at least one time, states (batch, hidden), a weight ({gates} * "
            f"hidden, hidden) and a bias ({gates} * hidden,)"
        )
    (steps, rows, _), hidden = a.shape, weight.shape[0] // gates
    width = GATES[kind][1] * hidden
    return Meta((steps, rows, hidden), dtype), Meta((steps, rows, width), dtype)


def _fit(kind: str, a: Any, h: Any, weight: Any, bias: Any, *cell: Any) -> bool:
    """Whether operands have the ranks and lengths of one another."""
    if [x.ndim for x in (a, h, weight)] != [3, 2, 2]:
        return False
    gates = GATES[kind][0]
    (steps, rows, _), hidden = a.shape, weight.shape[0] // gates
    return bool(
        steps > 0
        and a.shape[2] == gates * hidden == weight.shape[0]
        and h.shape == (rows, weight.shape[1])
        and (weight.shape[1] == hidden or (steps == 1 and kind != "gru"))
        and (bias is None or bias.shape == (gates * hidden,))
        and all(c.shape == (rows, hidden) for c in cell)
    )


class _Layer:
    """Checked operands of one layer as its kernels take them."""

    def __init__(self, kind: str, a: Any, h: Any, weight: Any, bias: Any, *cell: Any) -> None:
        states, gates = _states(kind, a, h, weight, bias, *cell)
        dtype = states.dtype
        self.kind, self.dtype = kind, dtype
        self.a, self.h, self.weight, *self.cell = (
            np.ascontiguousarray(x, dtype) for x in (a, h, weight, *cell)
        )
        width = weight.shape[0]
        self.bias = np.zeros(width, dtype) if bias is None else np.ascontiguousarray(bias, dtype)
        self.states, self.gates = (np.empty(meta.shape, dtype) for meta in (states, gates))

    def forward(self, *more: Any) -> None:
        if self.states.size:
            arrays = (self.a, self.h, self.weight, self.bias, self.states)
            _launch(recurrent_kernel, self.kind, self.states, *arrays, *more)


def _backward(
    kind: str,
    call: Any,
    mask: int,
    g: np.ndarray,
    ga: np.ndarray,
    hs: Any,
    h: Any,
    weight: Any,
    *more: Any,
    gb: np.ndarray | None = None,
) -> list[Any]:
    """Gradients of ``a, h, weight, bias``."""
    dtype, (steps, rows, _) = g.dtype, ga.shape
    gh = np.zeros(h.shape, dtype)
    weight = np.ascontiguousarray(weight, dtype)
    if ga.size:
        arrays = (np.ascontiguousarray(g), weight, hs, ga, gh)
        _launch(recurrent_backward_kernel, kind, hs, *arrays, *more)
    if gb is None:
        gb = ga
    width = gb.shape[2]
    grads: list[Any] = [ga, gh, None, None]
    if mask & 4:
        first = steps - 1 if call.params["reverse"] else 0
        gw = matmul(gb[first].T, h)
        if steps > 1:
            later, earlier = (gb[:-1], hs[1:]) if first else (gb[1:], hs[:-1])
            count = (steps - 1) * rows
            earlier = earlier.reshape(count, h.shape[1])
            gw += matmul(later.reshape(count, width).T, earlier)
        grads[2] = gw
    if mask & 8:
        grads[3] = np.sum(gb, axis=(0, 1))
    return [x if mask >> k & 1 else None for k, x in enumerate(grads)]


# ------------------------------------------------------------------------ formulas through time


def _gates(pre: Any, count: int) -> list[Any]:
    """The gates, which lie side by side."""
    size = pre.shape[-1] // count
    return [getitem(pre, (..., slice(k * size, (k + 1) * size))) for k in range(count)]


def _order(a: Any, reverse: bool) -> Sequence[int]:
    steps = range(a.shape[0])
    return steps[::-1] if reverse else steps


def _recurrent(h: Any, weight: Any, bias: Any) -> Any:
    b = matmul(h, matrix_transpose(weight))
    return b if bias is None else b + bias


def _collected(order: Sequence[int], ga: dict, gb: dict, before: dict, gh: Any, weight: Any) -> Any:
    """Gradients of ``a, h, weight, bias`` from those of all times."""
    gw, gbias = None, None
    for t in order:
        here, summed = matmul(matrix_transpose(gb[t]), before[t]), np.sum(gb[t], axis=0)
        gw = here if gw is None else gw + here
        gbias = summed if gbias is None else gbias + summed
    return stack([ga[t] for t in sorted(order)]), gh, gw, gbias


# ----------------------------------------------------------------------------------------- RNN

_SAMPLES = [{}, {"reverse": True}]


@primitive(
    method=False,
    internal=True,
    samples=[
        (((3, 2, 4), (2, 4), (4, 4), (4,)), {"nonlinearity": name, "reverse": name == "tanh"})
        for name in ("tanh", "relu")
    ],
    real_only=True,
)
def rnn_sequence(a, h, weight, bias=None, *, nonlinearity="tanh", reverse=False):
    """States ``h' = tanh(a + h @ weight.T + bias)`` at all times, or ``relu`` of that."""
    layer = _Layer(_rnn_kind(nonlinearity), a, h, weight, bias)
    layer.forward(reverse)
    return layer.states


def _rnn_kind(nonlinearity: str) -> str:
    kind = f"rnn_{nonlinearity}"
    if kind not in GATES:
        raise NumgradValueError(
            f"rnn_sequence: there is no nonlinearity {nonlinearity!r}; choose 'tanh' or 'relu'"
        )
    return kind


@rnn_sequence.shape
def _rnn_result(a, h, weight, bias, *, nonlinearity, reverse):
    return _states(_rnn_kind(nonlinearity), a, h, weight, bias)[0]


def _rnn_history(g, a, h, weight, bias, nonlinearity, reverse):
    order = _order(a, reverse)
    states, before, factors, ga = {}, {}, {}, {}
    for t in order:
        before[t] = h
        pre = getitem(a, t) + _recurrent(h, weight, bias)
        h = np.tanh(pre) if nonlinearity == "tanh" else np.where(pre <= 0, 0, pre)
        states[t] = h
        factors[t] = 1 - h * h if nonlinearity == "tanh" else np.where(pre > 0, 1, 0)
    gh = 0
    for t in order[::-1]:
        ga[t] = (getitem(g, t) + gh) * factors[t]
        gh = matmul(ga[t], weight)
    return _collected(order, ga, ga, before, gh, weight)


def _rnn_vjp(k: int) -> Any:
    def formula(g, a, h, weight, bias, y, nonlinearity, reverse):
        return _rnn_history(g, a, h, weight, bias, nonlinearity, reverse)[k]

    return formula


rnn_sequence.vjp(**{name: _rnn_vjp(k) for k, name in enumerate(rnn_sequence.inputs)})


@rnn_sequence.vjp_kernel
def _rnn_backward(call, mask, g, a, h, weight, bias, y):
    kind = f"rnn_{call.params['nonlinearity']}"
    h = np.ascontiguousarray(h, g.dtype)
    ga = np.empty(g.shape, g.dtype)
    return _backward(kind, call, mask, g, ga, y, h, weight, call.params["reverse"])


rnn_sequence.kink(
    a=([[[0.0, 2.0]]], [[[0, 1]]]),
    h=([[0.0, 0.0]], [[0, 1]]),
    weight=([[1.0, 0.0], [0.0, 1.0]], [[0, 0], [0, 0]]),
    params={"nonlinearity": "relu"},
)


# ----------------------------------------------------------------------------------------- GRU


@primitive(
    method=False,
    internal=True,
    auxiliaries=("gates",),
    samples=[(((3, 2, 6), (2, 2), (6, 2), (6,)), params) for params in _SAMPLES],
    real_only=True,
    smooth=True,
)
def gru_sequence(a, h, weight, bias=None, *, reverse=False):
    """States of gated recurrent units at all times.

    With ``b = h @ weight.T + bias`` and three gates in ``a`` and ``b``: ``r = sigmoid(a0 + b0)``,
    ``z = sigmoid(a1 + b1)``, ``n = tanh(a2 + r * b2)``, ``h' = (1 - z) * n + z * h``.
    """
    layer = _Layer("gru", a, h, weight, bias)
    layer.forward(layer.gates, reverse)
    return layer.states, (layer.gates,)


@gru_sequence.shape
def _gru_result(a, h, weight, bias, *, reverse):
    states, gates = _states("gru", a, h, weight, bias)
    return states, (gates,)


def _gru_history(g, a, h, weight, bias, reverse):
    order = _order(a, reverse)
    before, gates, ga, gb = {}, {}, {}, {}
    for t in order:
        before[t] = h
        (a0, a1, a2), (b0, b1, b2) = (
            _gates(getitem(a, t), 3),
            _gates(_recurrent(h, weight, bias), 3),
        )
        r, z = sigmoid(a0 + b0), sigmoid(a1 + b1)
        n = np.tanh(a2 + r * b2)
        gates[t] = r, z, n, b2
        h = (1 - z) * n + z * h
    gh = 0
    for t in order[::-1]:
        r, z, n, b2 = gates[t]
        gh = getitem(g, t) + gh
        g_new = gh * (1 - z) * (1 - n * n)
        g_reset = g_new * b2 * r * (1 - r)
        g_update = gh * (before[t] - n) * z * (1 - z)
        ga[t] = concat(g_reset, g_update, g_new, axis=-1)
        gb[t] = concat(g_reset, g_update, g_new * r, axis=-1)
        gh = gh * z + matmul(gb[t], weight)
    return _collected(order, ga, gb, before, gh, weight)


def _gru_vjp(k: int) -> Any:
    def formula(g, a, h, weight, bias, y, gates, reverse):
        return _gru_history(g, a, h, weight, bias, reverse)[k]

    return formula


gru_sequence.vjp(**{name: _gru_vjp(k) for k, name in enumerate(gru_sequence.inputs)})


@gru_sequence.vjp_kernel
def _gru_backward(call, mask, g, a, h, weight, bias, y, gates):
    h = np.ascontiguousarray(h, g.dtype)
    ga, gb = np.empty(a.shape, g.dtype), np.empty(a.shape, g.dtype)
    more = (gates, h, gb, call.params["reverse"])
    return _backward("gru", call, mask, g, ga, y, h, weight, *more, gb=gb)


# ---------------------------------------------------------------------------------------- LSTM


@primitive(
    method=False,
    internal=True,
    outputs=True,
    auxiliaries=("gates", "cells"),
    samples=[
        *[(((3, 2, 8), (2, 2), (8, 2), (8,), (2, 2)), params) for params in _SAMPLES],
        (((1, 2, 8), (2, 3), (8, 3), (8,), (2, 2)), {}),
    ],
    real_only=True,
    smooth=True,
)
def lstm_sequence(a, h, weight, bias, c, *, reverse=False):
    """States of long short-term memory cells at all times, and the last cell state.

    With four gates ``i, f, g, o`` in ``a + h @ weight.T + bias``:
    ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h' = sigmoid(o) * tanh(c')``.
    """
    layer = _Layer("lstm", a, h, weight, bias, c)
    cells = np.empty(layer.states.shape, layer.dtype)
    layer.forward(layer.gates, layer.cell[0], cells, reverse)
    return (layer.states, cells[0 if reverse else -1].copy()), (layer.gates, cells)


@lstm_sequence.shape
def _lstm_result(a, h, weight, bias, c, *, reverse):
    states, gates = _states("lstm", a, h, weight, bias, c)
    return (states, Meta(states.shape[1:], states.dtype)), (gates, states)


def _lstm_history(g, a, h, weight, bias, c, reverse):
    order = _order(a, reverse)
    before, gates, ga = {}, {}, {}
    for t in order:
        before[t] = h
        i, f, u, o = _gates(getitem(a, t) + _recurrent(h, weight, bias), 4)
        i, f, u, o = sigmoid(i), sigmoid(f), np.tanh(u), sigmoid(o)
        new = f * c + i * u
        bent = np.tanh(new)
        gates[t] = i, f, u, o, c, bent
        c, h = new, o * bent
    gh, gc = 0, g[1]
    for t in order[::-1]:
        i, f, u, o, c, bent = gates[t]
        gh = getitem(g[0], t) + gh
        gc = gc + gh * o * (1 - bent * bent)
        ga[t] = concat(
            gc * u * i * (1 - i),
            gc * c * f * (1 - f),
            gc * i * (1 - u * u),
            gh * bent * o * (1 - o),
            axis=-1,
        )
        gh = matmul(ga[t], weight)
        gc = gc * f
    return *_collected(order, ga, ga, before, gh, weight), gc


def _lstm_vjp(k: int) -> Any:
    def formula(g, a, h, weight, bias, c, y, gates, cells, reverse):
        return _lstm_history(g, a, h, weight, bias, c, reverse)[k]

    return formula


lstm_sequence.vjp(**{name: _lstm_vjp(k) for k, name in enumerate(lstm_sequence.inputs)})


@lstm_sequence.vjp_kernel
def _lstm_backward(call, mask, g, a, h, weight, bias, c, y, gates, cells):
    g, g_cell = g
    h = np.ascontiguousarray(h, g.dtype)
    ga, gc = np.empty(a.shape, g.dtype), np.array(g_cell, order="C")
    more = (gates, np.ascontiguousarray(c, g.dtype), cells, gc, call.params["reverse"])
    grads = _backward("lstm", call, mask, g, ga, y[0], h, weight, *more)
    return [*grads, gc if mask & 16 else None]


# --------------------------------------------------------------------------------- of batches


@rnn_sequence.batch
@gru_sequence.batch
@lstm_sequence.batch
def _sequences_of_batch(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Rows of all examples side by side, where weights are the same for all."""
    a, h, *weights = operands
    cell = weights[2:]
    if any(o.batched for o in weights[:2]) or a.ndim != 3 or h.ndim != 2:
        return NotImplemented
    steps, rows, width = a.shape
    beside = apply("moveaxis", a.repeated(size), source=0, destination=1)
    beside = apply("reshape", beside, shape=(steps, size * rows, width))
    states = [
        apply("reshape", o.repeated(size), shape=(size * o.shape[0], *o.shape[1:]))
        for o in (h, *cell)
    ]
    given = (beside, states[0], *[o.value for o in weights[:2]], *states[1:])
    out = bind(op, given, params)
    first = out[0] if cell else out
    first = apply("reshape", first, shape=(steps, size, rows, -1))
    first = apply("moveaxis", first, source=1, destination=0)
    return (first, apply("reshape", out[1], shape=(size, rows, -1))) if cell else first
