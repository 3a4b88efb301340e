"""Kernels of recurrent layers: a layer's whole way through time, and back.

Note [Recurrent kernels]
------------------------
What a layer's inputs contribute to its gates, ``a``, is one product for all times, computed before.
Left for each time is the product of the state before with the recurrent weight, and the cell: a few
loops over the rows of the batch, short ones with few arrays, so that compilers can prove them free
of overlaps and vectorise them. The weight is laid out in panels once for all times (Note [Implicit
products] in ``convolutions``), but for a batch of one or two, which is read faster where it lies.
Rows go through time by themselves: threads share blocks of them, and results have the same bits for
any number of threads. A cell keeps its activated gates in ``gates``; a backward reads them, so that
nothing is computed twice but ``tanh`` of an LSTM's cell state.

Gates are in the order of PyTorch: input, forget, cell, output (LSTM); reset, update, new (GRU). A
GRU keeps the recurrent part of its new gate as a fourth one.
"""

from functools import cache

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.kernels.products.gemm import external, tile_shape

GATES = {"rnn_tanh": (1, 0), "rnn_relu": (1, 0), "gru": (3, 4), "lstm": (4, 4)}
"""Gates in the weights, and gates that are kept, by kind of cell."""

BLOCK = 16
"""Rows that a thread takes at a time."""

_HEADER = """
import numpy as np
from numba import {type}, int64, prange
from numgrad.codegen.intrinsics import select
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.device import outlined
from numgrad.kernels.products.blas import gemm, lay_out, table_gemm
from numgrad.kernels.vmath.exponential import sigmoid_{f} as sigmoid
from numgrad.kernels.vmath.hyperbolic import tanh_{f} as tanh

ZERO, ONE = {type}(0), {type}(1)

@outlined
def pack(weight, transposed, packed, terms):
    # panels of the weight, or of its transpose, and where the terms of a sum lie
    no_inline()
    n = weight.shape[0] if transposed else weight.shape[1]
    k = weight.shape[1] if transposed else weight.shape[0]
    for l in range(k):
        terms[2 * l], terms[2 * l + 1] = l * {size}, l * {wide} * {size}
    for left in range(0, n, {wide}):
        columns = min({wide}, n - left)
        if transposed:
            lay_out(
                {type}, weight.ctypes.data + left * k * {size}, k * {size}, k, columns,
                packed.ctypes.data + left * k * {size}, {wide}, {wide} * {size},
            )
        else:
            for l in range(k):
                row, target = weight[l, left:], packed[left * k + l * {wide} :]
                for j in range(columns):
                    target[j] = row[j]


@outlined
def multiply(x, first, weight, transposed, packed, terms, places, out):
    # rows of x, from the first one on, with the weight or its transpose
    no_inline()
    n = weight.shape[0] if transposed else weight.shape[1]
    k = weight.shape[1] if transposed else weight.shape[0]
    address, rows, pitch = x.ctypes.data + first * k * {size}, out.shape[0], out.shape[1]
    if x.shape[0] <= 2:
        gemm(
            {type}, 0, transposed, rows, n, k, address, k, weight.ctypes.data, weight.shape[1],
            out.ctypes.data, pitch, 0, 1,
        )
        return
    for row in range(rows):
        places[2 * row] = row * k * {size}
    for left in range(0, n, {wide}):
        table_gemm(
            {type}, rows, min({wide}, n - left), k, address, places.ctypes.data,
            terms.ctypes.data, packed.ctypes.data + left * k * {size},
            out.ctypes.data + left * {size}, pitch, 0,
        )


@outlined
def squash(x):
    for k in range(x.shape[0]):
        x[k] = sigmoid(x[k])

@outlined
def bend(x):
    for k in range(x.shape[0]):
        x[k] = tanh(x[k])
"""

# ------------------------------------------------------------------------------------- cells

_RNN = """
@outlined
def forward(a, b, bias, h_out):
    for k in range(h_out.shape[0]):
        h_out[k] = a[k] + (b[k] + bias[k])
    {activate}

@outlined
def backward(g, gh, h_out, ga):
    for k in range(ga.shape[0]):
        ga[k] = {derivative}
"""

_RNN_TANH = _RNN.format(
    activate="bend(h_out)", derivative="(g[k] + gh[k]) * (ONE - h_out[k] * h_out[k])"
)
_RNN_RELU = _RNN.format(
    activate="for k in range(h_out.shape[0]):\n"
    "        h_out[k] = select(h_out[k] <= ZERO, ZERO, h_out[k])",
    derivative="select(h_out[k] > ZERO, g[k] + gh[k], ZERO)",
)

_GRU = """
@outlined
def forward(a, b, bias, h, h_out, gates):
    n = h_out.shape[0]
    for k in range(2 * n):
        gates[k] = a[k] + (b[k] + bias[k])
    squash(gates[: 2 * n])
    reset, update, new, part = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    a_new, b_new, bias_new = a[2 * n :], b[2 * n :], bias[2 * n :]
    for k in range(n):
        part[k] = b_new[k] + bias_new[k]
    for k in range(n):
        new[k] = a_new[k] + reset[k] * part[k]
    bend(new)
    for k in range(n):
        h_out[k] = (ONE - update[k]) * new[k] + update[k] * h[k]

@outlined
def backward(g, gh, gates, h, ga, gb):
    n = h.shape[0]
    reset, update, new, part = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    ga_reset, ga_update, ga_new = ga[:n], ga[n : 2 * n], ga[2 * n :]
    gb_new = gb[2 * n :]
    for k in range(n):
        gh[k] += g[k]
    for k in range(n):
        ga_update[k] = gh[k] * (h[k] - new[k]) * (update[k] * (ONE - update[k]))
    for k in range(n):
        ga_new[k] = gh[k] * (ONE - update[k]) * (ONE - new[k] * new[k])
    for k in range(n):
        gb_new[k] = ga_new[k] * reset[k]
    for k in range(n):
        ga_reset[k] = ga_new[k] * part[k] * (reset[k] * (ONE - reset[k]))
    for k in range(2 * n):
        gb[k] = ga[k]
    for k in range(n):
        gh[k] *= update[k]
"""

_LSTM = """
@outlined
def forward(a, b, bias, c, h_out, c_out, gates):
    n = h_out.shape[0]
    for k in range(4 * n):
        gates[k] = a[k] + (b[k] + bias[k])
    squash(gates[: 2 * n])
    bend(gates[2 * n : 3 * n])
    squash(gates[3 * n :])
    enter, forget, cell, leave = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    for k in range(n):
        c_out[k] = forget[k] * c[k] + enter[k] * cell[k]
    for k in range(n):
        h_out[k] = leave[k] * tanh(c_out[k])

@outlined
def backward(g, gh, gc, gates, c, c_out, ga):
    n = c.shape[0]
    enter, forget, cell, leave = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
    ga_enter, ga_forget, ga_cell, ga_leave = ga[:n], ga[n : 2 * n], ga[2 * n : 3 * n], ga[3 * n :]
    bent, total = ga_enter, ga_forget
    for k in range(n):
        bent[k] = tanh(c_out[k])
    for k in range(n):
        total[k] = g[k] + gh[k]
    for k in range(n):
        gc[k] += total[k] * leave[k] * (ONE - bent[k] * bent[k])
    for k in range(n):
        ga_leave[k] = total[k] * bent[k] * (leave[k] * (ONE - leave[k]))
    for k in range(n):
        ga_enter[k] = gc[k] * cell[k] * (enter[k] * (ONE - enter[k]))
    for k in range(n):
        ga_forget[k] = gc[k] * c[k] * (forget[k] * (ONE - forget[k]))
    for k in range(n):
        ga_cell[k] = gc[k] * enter[k] * (ONE - cell[k] * cell[k])
    for k in range(n):
        gc[k] *= forget[k]
"""

_CELLS = {"rnn_tanh": _RNN_TANH, "rnn_relu": _RNN_RELU, "gru": _GRU, "lstm": _LSTM}

# -------------------------------------------------------------------------------- through time

# rows of the batch go their way by themselves: threads share blocks of them
_START = """    hidden = hs.shape[2]
    pitch = -(-max(n, hidden) // {wide}) * {wide}
    packed, terms = np.empty(pitch * k if rows > 2 else 0, np.{type}), np.empty(2 * k, np.int64)
    if rows > 2:
        pack(weight, {transposed}, packed, terms)
    for index in {range}(-(-rows // {block})):
        first = int64(index) * {block}
        count = min({block}, rows - first)
        product, places = np.empty((count, pitch), np.{type}), np.empty(2 * count, np.int64)
"""

_FORWARD = """
def kernel({arguments}, reverse):
    steps, rows, n = a.shape
    k = weight.shape[1]
{start}        for step in range(steps):
            t = steps - 1 - step if reverse else step
            before = (t + 1 if reverse else t - 1) if step > 0 else t
            h_before = hs[before] if step > 0 else h
            {c_before}
            multiply(h_before, first, weight, 1, packed, terms, places, product)
            for r in range(count):
                row, b = first + r, product[r, :n]
                forward({call})
"""

_BACKWARD = """
def kernel({arguments}, reverse):
    steps, rows, k = ga.shape
    n = weight.shape[1]
{start}        carried = {carried}
        for r in range(count):
            for l in range(hidden):
                carried[r, l] = ZERO
        for back in range(steps):
            step = steps - 1 - back
            t = steps - 1 - step if reverse else step
            before = (t + 1 if reverse else t - 1) if step > 0 else t
            {before}
            for r in range(count):
                row, carry = first + r, carried[r]
                backward({call})
            multiply({ga}[t], first, weight, 0, packed, terms, places, product)
            {recur}
        for r in range(count):
            for l in range(n):
                gh[first + r, l] = carried[r, l]
"""

_FORWARD_CALLS = {
    "rnn": "a[t, row], b, bias, hs[t, row]",
    "gru": "a[t, row], b, bias, h_before[row], hs[t, row], gates[t, row]",
    "lstm": "a[t, row], b, bias, c_before[row], hs[t, row], cs[t, row], gates[t, row]",
}
_BACKWARD_CALLS = {
    "rnn": "g[t, row], carry, hs[t, row], ga[t, row]",
    "gru": "g[t, row], carry, gates[t, row], h_before[row], ga[t, row], gb[t, row]",
    "lstm": "g[t, row], carry, gc[row], gates[t, row], c_before[row], cs[t, row], ga[t, row]",
}
_H_BEFORE = "h_before = hs[before] if step > 0 else h"
_C_BEFORE = "c_before = cs[before] if step > 0 else c"
_RECUR_GRU = """for r in range(count):
                for l in range(n):
                    carried[r, l] += product[r, l]"""


def _compile(
    name: str, kind: str, text: str, dtype: np.dtype, arrays: dict[str, int],
    parallel: bool, nogil: bool,
) -> Kernel:  # fmt: skip
    type_text = type_name(dtype)
    shapes = {1: "[::1]", 2: "[:,::1]", 3: "[:,:,::1]"}
    signature = ", ".join(type_text + shapes[ndim] for ndim in arrays.values())
    wide = 2 * tile_shape()[1] // dtype.itemsize
    words = {"type": type_text, "size": dtype.itemsize, "wide": wide}
    header = _HEADER.format(f=f"f{8 * dtype.itemsize}", **words)
    words = {
        "start": _START, "range": "prange" if parallel else "range",
        "block": BLOCK if parallel else "max(rows, 1)", "arguments": ", ".join(arrays),
        "transposed": int(name == "forward"), **words,
    }  # fmt: skip
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", str(value))
    return compile_kernel(
        f"{kind}_{name}_{short(dtype)}{'_p' if parallel else '_n' if nogil else ''}",
        header + _CELLS[kind] + text,
        f"void({signature}, boolean)",
        parallel=parallel,
        nogil=nogil,
        externals=[external(call, dtype.name) for call in ("gemm", "table_gemm", "lay_out")],
    )


@cache
def recurrent_kernel(kind: str, dtype: np.dtype, parallel: bool, nogil: bool) -> Kernel:
    """Compile a layer's way through time: Note [Recurrent kernels].

    Parameters
    ----------
    kind
        A key of ``GATES``.
    dtype
        Of all arrays, float32 or float64.
    parallel
        Whether to share the rows of the batch among threads.
    nogil
        Whether other Python threads run meanwhile.

    Returns
    -------
    Kernel
        ``entry(a, h, weight, bias, hs, ...)`` with what the gates get from the inputs, (time,
        batch, gates * hidden), the first state, (batch, hidden), the recurrent weight, (gates *
        hidden, hidden), its bias, and the states to compute, (time, batch, hidden); then for
        ``"gru"`` ``gates``, (time, batch, 4 * hidden); for ``"lstm"`` ``gates``, the first cell
        state ``c`` and those to compute, ``cs``; at last ``reverse``, whether time runs backwards.
        With one time ``h`` and ``weight`` may have another last axis.
    """
    arrays = {"a": 3, "h": 2, "weight": 2, "bias": 1, "hs": 3}
    if GATES[kind][1]:
        arrays["gates"] = 3
    if kind == "lstm":
        arrays |= {"c": 2, "cs": 3}
    text = _FORWARD.replace("{c_before}", _C_BEFORE if kind == "lstm" else "pass")
    text = text.replace("{call}", _FORWARD_CALLS[kind.split("_")[0]])
    return _compile("forward", kind, text, dtype, arrays, parallel, nogil)


@cache
def recurrent_backward_kernel(kind: str, dtype: np.dtype, parallel: bool, nogil: bool) -> Kernel:
    """Compile the way back through time.

    Returns
    -------
    Kernel
        ``entry(g, weight, hs, ga, gh, ...)`` with the gradient of ``hs``, the gradient of ``a`` to
        compute, and that of ``h``; then for ``"gru"`` ``gates``, ``h`` and ``gb``,
        the gradient of the recurrent part of the gates, which for others is ``ga``; for ``"lstm"``
        ``gates``, ``c``, ``cs`` and ``gc``: the gradient of the last cell state on entry, of the
        first on return; at last ``reverse``.
    """
    arrays = {"g": 3, "weight": 2, "hs": 3, "ga": 3, "gh": 2}
    before, recur = "pass", "pass"
    if kind == "gru":
        arrays |= {"gates": 3, "h": 2, "gb": 3}
        before, recur = _H_BEFORE, _RECUR_GRU
    elif kind == "lstm":
        arrays |= {"gates": 3, "c": 2, "cs": 3, "gc": 2}
        before = _C_BEFORE
    text = _BACKWARD.replace("{before}", before).replace("{ga}", "gb" if kind == "gru" else "ga")
    carried = "np.empty((count, pitch), np.{type})" if kind == "gru" else "product"
    text = text.replace("{carried}", carried)
    text = text.replace("{recur}", recur).replace("{call}", _BACKWARD_CALLS[kind.split("_")[0]])
    return _compile("backward", kind, text, dtype, arrays, parallel, nogil)
