"""ADBench's language model of two layers of cells: mean loss of a text, and its gradient.

A row of ``gates`` is a letter's numbers for the four gates: keep, take, give, news. What a step
computes is kept for the way back, rows of letters.
"""

import numpy as np
from numba import njit

from handwritten import INNER, SUMS
from numgrad.codegen.accumulation import no_inline
from numgrad.kernels.vmath.exponential import exp_f64, sigmoid_f64
from numgrad.kernels.vmath.hyperbolic import tanh_f64


@njit(**INNER)
def layer_forward(x, h, c, wf, bf, wi, bi, wo, bo, wc, bc, keep, take, give, news, cell, tops, out):
    """One layer in one step."""
    no_inline()
    for k in range(x.size):
        f = sigmoid_f64(wf[k] * x[k] + bf[k])
        i = sigmoid_f64(wi[k] * h[k] + bi[k])
        o = sigmoid_f64(wo[k] * x[k] + bo[k])
        n = tanh_f64(wc[k] * h[k] + bc[k])
        m = f * c[k] + i * n
        t = tanh_f64(m)
        keep[k], take[k], give[k], news[k] = f, i, o, n
        cell[k], tops[k], out[k] = m, t, o * t


@njit(**INNER, fastmath=SUMS)
def layer_back(x, h, c, wf, wi, wo, wc, keep, take, give, news, tops, gh, gc, gx,
               gwf, gbf, gwi, gbi, gwo, gbo, gwc, gbc):  # fmt: skip
    """``gh`` and ``gc``, cotangents of what the step made, become those of what it began with."""
    no_inline()
    for k in range(x.size):
        f, i, o, n, t = keep[k], take[k], give[k], news[k], tops[k]
        m = gc[k] + gh[k] * o * (1.0 - t * t)
        zo = gh[k] * t * o * (1.0 - o)
        zf = m * c[k] * f * (1.0 - f)
        zi = m * n * i * (1.0 - i)
        zc = m * i * (1.0 - n * n)
        gwf[k] += zf * x[k]
        gbf[k] += zf
        gwi[k] += zi * h[k]
        gbi[k] += zi
        gwo[k] += zo * x[k]
        gbo[k] += zo
        gwc[k] += zc * h[k]
        gbc[k] += zc
        gx[k] = zf * wf[k] + zo * wo[k]
        gh[k] = zi * wi[k] + zc * wc[k]
        gc[k] = m * f


@njit(**INNER, fastmath=SUMS)
def scored(x, scale, shift, after, share):
    """The loss of a letter; ``share`` becomes the derivatives in the scores."""
    no_inline()
    mass, hits, along = 2.0, 0.0, 0.0
    for k in range(x.size):
        score = x[k] * scale[k] + shift[k]
        e = exp_f64(score)
        share[k] = e
        mass += e
        hits += after[k]
        along += after[k] * score
    for k in range(x.size):
        share[k] = hits * share[k] / mass - after[k]
    return hits * np.log(mass) - along


@njit(**INNER)
def scored_back(x, scale, share, factor, gh, gscale, gshift):
    """Adds to the gradients of the scores' numbers and to the cotangent of the hidden state."""
    no_inline()
    for k in range(x.size):
        g = factor * share[k]
        gscale[k] += g * x[k]
        gshift[k] += g
        gh[k] += g * scale[k]


@njit(**INNER)
def product(a, b, out):
    """``out = a * b``."""
    no_inline()
    for k in range(a.size):
        out[k] = a[k] * b[k]


@njit(**INNER)
def add_product(a, b, out):
    """``out += a * b``."""
    no_inline()
    for k in range(a.size):
        out[k] += a[k] * b[k]


@njit(**INNER)
def add(a, out):
    """``out += a``."""
    no_inline()
    for k in range(a.size):
        out[k] += a[k]


@njit(error_model="numpy")
def serial(gates, ends, memory, text):
    """Value and gradients in ``gates`` and ``ends``."""
    steps, n = text.shape[0] - 1, text.shape[1]
    first, share = np.empty((steps, n)), np.empty((steps, n))
    hidden, cells = np.empty((2, steps + 1, n)), np.empty((2, steps + 1, n))
    keep, take, give = (
        np.empty((2, steps, n)),
        np.empty((2, steps, n)),
        np.empty((2, steps, n)),
    )
    news, tops = np.empty((2, steps, n)), np.empty((2, steps, n))
    hidden[:, 0], cells[:, 0] = memory[:, 0], memory[:, 1]
    loss = 0.0
    for t in range(steps):
        x = first[t]
        product(text[t], ends[0], x)
        for j in range(2):
            w = gates[j]
            layer_forward(
                x, hidden[j, t], cells[j, t],
                w[0, 0], w[0, 1], w[1, 0], w[1, 1], w[2, 0], w[2, 1], w[3, 0], w[3, 1],
                keep[j, t], take[j, t], give[j, t], news[j, t],
                cells[j, t + 1], tops[j, t], hidden[j, t + 1],
            )  # fmt: skip
            x = hidden[j, t + 1]
        loss += scored(x, ends[1], ends[2], text[t + 1], share[t])
    ggates, gends = np.zeros(gates.shape), np.zeros(ends.shape)
    gh, gc, gx = np.zeros((2, n)), np.zeros((2, n)), np.empty(n)
    factor = 1.0 / (steps * n)
    for t in range(steps - 1, -1, -1):
        scored_back(hidden[1, t + 1], ends[1], share[t], factor, gh[1], gends[1], gends[2])
        for j in (1, 0):
            w, g = gates[j], ggates[j]
            x = hidden[0, t + 1] if j else first[t]
            layer_back(
                x, hidden[j, t], cells[j, t], w[0, 0], w[1, 0], w[2, 0], w[3, 0],
                keep[j, t], take[j, t], give[j, t], news[j, t], tops[j, t], gh[j], gc[j], gx,
                g[0, 0], g[0, 1], g[1, 0], g[1, 1], g[2, 0], g[2, 1], g[3, 0], g[3, 1],
            )  # fmt: skip
            if j:
                add(gx, gh[0])
        add_product(gx, text[t], gends[0])
    return loss * factor, (ggates, gends)
