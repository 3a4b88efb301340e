"""Normalization by statistics of a batch, of groups of channels, of the last axes, or by a norm."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor
from numgrad.core.interpreter import state
from numgrad.errors import NumgradValueError
from numgrad.nn.normalization.batch_operation import batch_normalize, normalize_by
from numgrad.nn.normalization.operation import group_norm as _group_norm
from numgrad.nn.normalization.operation import layer_norm as _layer_norm
from numgrad.nn.normalization.operation import rms_norm as _rms_norm
from numgrad.operations.shape import broadcast_to
from numgrad.tensors.creation import asarray


def batch_norm(
    input: Any,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel.

    Parameters
    ----------
    input
        Of shape (examples, channels, ...).
    running_mean, running_var
        Of shape (channels,). In training they are written to, after the result is known:
        ``(1 - momentum) * running + momentum * statistic``, with the unbiased variance; they may be
        None then. Otherwise they are what is normalized by.
    weight, bias
        Of shape (channels,), or None.
    training
        Normalize by mean and (biased) variance of the input.
    momentum
        Weight of the newest statistics.
    eps
        Added to variances.

    Returns
    -------
    Tensor
        Of the shape of the input.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, if a channel has but one element in training, or if the running
        statistics are missing outside of it.

    References
    ----------
    S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing
    internal covariate shift", ICML 2015.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> ng.nn.functional.batch_norm(x, None, None, training=True, eps=0.0)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """
    input = asarray(input)
    if not training:
        if running_mean is None or running_var is None:
            raise NumgradValueError(
                "batch_norm: outside of training running_mean and running_var are needed; pass "
                "them, or training=True to normalize by the batch"
            )
        return normalize_by(input, running_mean, running_var, weight, bias, eps=eps)
    shape = input.shape
    count = prod(shape[:1] + shape[2:])
    if len(shape) > 1 and count == 1:
        raise NumgradValueError(
            f"batch_norm: an input of shape {shape} has one value for each channel, of which there "
            "is no variance; train with more examples, or call eval() first"
        )
    _check_running(shape, running_mean, running_var)
    out, mean, variance = batch_normalize(input, weight, bias, eps=eps)
    if not count:
        return out
    unbiased = count / (count - 1)
    for running, new, factor in ((running_mean, mean, 1), (running_var, variance, unbiased)):
        if running is not None:
            with no_grad():
                newest = momentum * factor * _numbers(new)
                running.copy_((1 - momentum) * _numbers(running) + newest)
    return out


def _numbers(tensor: Tensor) -> Any:
    """What statistics are computed with: NumPy is quicker for few numbers, if they are known."""
    found = state.ground.numbers(tensor)
    return tensor.detach() if found is None else found


def _check_running(shape: tuple[int, ...], *running: Tensor | None) -> None:
    for statistic in running:
        if statistic is not None and statistic.shape != shape[1:2]:
            raise NumgradValueError(
                f"batch_norm: running statistics of shape {statistic.shape} for an input of shape "
                f"{shape}; give one number for each of its {shape[1]} channels (axis 1)"
            )


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes.

    Parameters
    ----------
    input
        An array whose last axes have the lengths ``normalized_shape``.
    normalized_shape
        An integer or several.
    weight, bias
        Of that shape, or None.
    eps
        Added to the (biased) variance.

    Raises
    ------
    NumgradValueError
        If shapes do not fit.

    References
    ----------
    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", arXiv:1607.06450 (2016).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.layer_norm(ng.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """``input / sqrt(mean(input**2) + eps) * weight`` over the last axes.

    Parameters
    ----------
    input
        An array whose last axes have the lengths ``normalized_shape``.
    normalized_shape
        An integer or several.
    weight
        Of that shape, or None.
    eps
        Added to the mean square; None is the machine epsilon of the input's dtype.

    Raises
    ------
    NumgradValueError
        If shapes do not fit.

    References
    ----------
    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.rms_norm(ng.tensor([1.0, 7.0]), (2,), eps=0.0)
    tensor([0.2, 1.4])
    """
    return _rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Each group of channels of each example, normalized, ``* weight + bias``.

    Parameters
    ----------
    input
        Of shape (examples, channels, ...).
    num_groups
        Into how many equal groups the channels are split.
    weight, bias
        Of shape (channels,), or None.
    eps
        Added to the (biased) variance.

    Raises
    ------
    NumgradValueError
        If the channels cannot be split so, or shapes do not fit.

    References
    ----------
    Y. Wu, K. He, "Group normalization", ECCV 2018.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.group_norm(ng.tensor([[1.0, 3.0, 0.0, 8.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    return _group_norm(input, num_groups, weight, bias, eps)


def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: None = None
) -> Tensor:
    """Vectors along ``dim`` divided by their ``p``-norm, or by ``eps`` where that is larger.

    Parameters
    ----------
    input
        Floating or complex array.
    p
        Order of the norm.
    dim
        Axis of the vectors, or several.
    eps
        Smallest divisor.
    out
        Must be None.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.normalize(ng.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6, 0.8],
            [0. , 0. ]])
    """
    if out is not None:
        raise NumgradValueError("normalize: out is not supported; assign the result")
    input = asarray(input)
    norm = np.linalg.vector_norm(input, axis=dim, keepdims=True, ord=p)
    return input / broadcast_to(np.maximum(norm, eps), input.shape)
