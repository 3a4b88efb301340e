"""Losses of distributions: divergence, likelihoods of counts and of normal variables."""

from __future__ import annotations

import math
from typing import Any

from numgrad.errors import NumgradValueError, warn
from numgrad.nn.loss import operation as ops
from numgrad.nn.loss.functional import REDUCTIONS, check_reduction, reduced
from numgrad.operations.shape import expand_dims
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


def kl_div(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of the distribution of the input from that of the target.

    Parameters
    ----------
    input
        Logarithms of probabilities.
    target
        Probabilities, or their logarithms with ``log_target``.
    reduction
        ``"batchmean"`` divides the sum by the length of the first axis, which is the divergence;
        ``"mean"``, the default as in PyTorch, divides by the number of elements, with a warning.
        ``"sum"`` or ``"none"`` else.
    log_target
        Whether the target holds logarithms.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> log_p = ng.tensor(np.log([[0.5, 0.5]]))
    >>> round(ng.nn.functional.kl_div(log_p, [[1.0, 0.0]], reduction="batchmean").item(), 9)
    0.693147181
    """
    check_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    input, target = asarray(input), asarray(target)
    if reduction == "mean":
        warn(
            "kl_div: reduction='mean' divides by the number of elements, which is no divergence; "
            "'batchmean' divides by the number of distributions",
            UserWarning,
        )
    op = ops.log_divergence_error if log_target else ops.divergence_error
    losses = op(input, target)
    if reduction != "batchmean":
        return reduced(losses, reduction)
    return losses.sum() / input.shape[0] if input.ndim else losses.sum()


def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    *,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of counts that have a Poisson distribution.

    Parameters
    ----------
    input
        Rates, or their logarithms with ``log_input``.
    target
        Counts.
    log_input
        Whether the input holds logarithms.
    full
        Add Stirling's approximation of ``log(target!)`` where the target is above 1.
    eps
        Added to rates before their logarithm is taken.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.poisson_nll_loss(ng.tensor([0.0, 0.0]), ng.tensor([1.0, 3.0])).item()
    1.0
    """
    check_reduction("poisson_nll_loss", reduction)
    if log_input:
        losses = ops.poisson_log_error(input, target)
    else:
        losses = ops.poisson_error(input, target, float(eps))
    if full:
        losses = losses + ops.stirling(target)
    return reduced(losses, reduction)


def gaussian_nll_loss(
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of normal variables with mean ``input`` and variance ``var``.

    Parameters
    ----------
    input, target
        Means and what was observed.
    var
        Variances: a number, or an array in the shape of the input, which may lack the last axis or
        have length 1 along some.
    full
        Add the constant ``log(2 * pi) / 2``.
    eps
        Smallest variance; a smaller one counts as that, and gets the gradient there.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Raises
    ------
    NumgradValueError
        If a variance is negative, ``eps`` is not positive, or shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.gaussian_nll_loss(ng.zeros(2), ng.tensor([0.0, 2.0]), ng.ones(2)).item()
    1.0
    """
    name = "gaussian_nll_loss"
    check_reduction(name, reduction)
    if not eps > 0:
        raise NumgradValueError(f"{name}: eps must be positive, got {eps}")
    input, var = asarray(input), asarray(var)
    shape = tuple(input.shape)
    if var.ndim and tuple(var.shape) != shape:
        if tuple(var.shape) == shape[:-1]:
            var = expand_dims(var, -1)
        elif var.ndim != len(shape) or any(
            n not in (1, m) for n, m in zip(var.shape, shape, strict=True)
        ):
            raise NumgradValueError(
                f"{name}: input of shape {shape} and variances of shape {tuple(var.shape)} do not "
                "fit; their shape is that of the input, without the last axis or with length 1 "
                "along some"
            )
    ops.require_between(
        var, low=0.0, high=math.inf, problem=f"{name}: variances must not be negative"
    )
    losses = ops.gaussian_error(input, target, var, float(eps))
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
