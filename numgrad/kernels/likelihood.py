"""Kernels of the negative log-likelihood of class indices: logarithms are picked, not computed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.kernels.cross_entropy import FINISH, compile_loss

_PICK = (
    """

def kernel(x, target, weight, losses, result, outer, classes, inner, ignored, reduction):
    counted, bad = weight_of_targets(target, weight, classes, ignored)
    if bad >= 0:
        return bad
    for block in range(outer):
        for j in range(inner):
            k = block * inner + j
            t = target[k]
            if t == ignored:
                losses[k] = ZERO
            else:
                w = {type}(1) if weight.size == 0 else weight[t]
                losses[k] = -(x[(block * classes + t) * inner + j] * w)
"""
    + FINISH
)

_PICK_BACKWARD = """

def kernel(target, weight, g, result, out, outer, classes, inner, ignored, reduction):
    divisor = result[1] if reduction != 0 else {type}(1)
    for block in range(outer):
        for j in range(inner):
            k = block * inner + j
            t = target[k]
            if t != ignored:
                scale = (g[k] if reduction == 0 else g[0]) / divisor
                w = {type}(1) if weight.size == 0 else weight[t]
                out[(block * classes + t) * inner + j] = -(scale * w)
"""


@cache
def likelihood_kernel(dtype: np.dtype) -> Callable[..., Any]:
    """Compile the losses of logarithms of probabilities.

    Returns
    -------
    callable
        ``entry(x, target, weight, losses, result, outer, classes, inner, ignored, reduction)``.
    """
    return compile_loss("nll_loss", _PICK, dtype, "ATAAASSSSS")


@cache
def likelihood_backward_kernel(dtype: np.dtype) -> Callable[..., Any]:
    """Compile the gradient of ``likelihood_kernel``.

    Returns
    -------
    callable
        ``entry(target, weight, g, result, out, outer, classes, inner, ignored, reduction)``;
        ``out`` holds zeros.
    """
    return compile_loss("nll_loss_backward", _PICK_BACKWARD, dtype, "TAAAASSSSS")
