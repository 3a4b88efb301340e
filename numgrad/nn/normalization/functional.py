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
from numgrad.nn.padding import pad
from numgrad.operations.shape import as_index, broadcast_to
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
    learn(running_mean, running_var, mean, variance, count, momentum)
    return out


def learn(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    count: float,
    momentum: float,
) -> None:
    """Take the statistics of ``count`` elements, with the biased variance, into running ones."""
    unbiased = count / (count - 1)
    for running, new, factor in ((running_mean, mean, 1), (running_var, variance, unbiased)):
        if running is not None:
            with no_grad():
                newest = momentum * factor * _numbers(new)
                running.copy_((1 - momentum) * _numbers(running) + newest)


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


def instance_norm(
    input: Any,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each example, normalized, ``* weight + bias``.

    Parameters
    ----------
    input
        Of shape (examples, channels, ...), at least three axes.
    running_mean, running_var
        Of shape (channels,), or None. With ``use_input_stats`` they are written to, with the means
        of the examples' statistics; otherwise they are what is normalized by.
    weight, bias
        Of shape (channels,), or None.
    use_input_stats
        Normalize by mean and (biased) variance of each channel of the input.
    momentum
        Weight of the newest statistics.
    eps
        Added to variances.

    Raises
    ------
    NumgradValueError
        If shapes do not fit, a channel has but one element, or running statistics are missing.

    References
    ----------
    D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization", arXiv:1607.08022 (2016).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.instance_norm(ng.tensor([[[1.0, 3.0], [0.0, 8.0]]]), eps=0.0)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    input = asarray(input)
    shape = input.shape
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise NumgradValueError(
                "instance_norm: without use_input_stats running_mean and running_var are needed"
            )
        return normalize_by(input, running_mean, running_var, weight, bias, eps=eps)
    count = prod(shape[2:])
    if len(shape) < 3 or count == 1:
        raise NumgradValueError(
            f"instance_norm: an input of shape {shape} needs shape (examples, channels, ...), with "
            "more than one element in a channel"
        )
    _check_running(shape, running_mean, running_var)
    if running_mean is not None or running_var is not None:
        values, axes = input.detach(), tuple(range(2, len(shape)))
        new = {
            "mean": np.mean(values, axis=axes).mean(axis=0),
            "var": np.var(values, axis=axes, ddof=1).mean(axis=0),
        }
        with no_grad():
            for running, newest in ((running_mean, new["mean"]), (running_var, new["var"])):
                if running is not None:
                    running.copy_((1 - momentum) * running + momentum * newest)
    return _group_norm(input, shape[1], weight, bias, eps)


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``x / (k + alpha * mean of squares of neighbouring channels) ** beta``.

    Parameters
    ----------
    input
        Of shape (examples, channels, ...), at least three axes.
    size
        Number of neighbouring channels, this one in their middle; what is missing at the ends
        counts as 0.
    alpha, beta, k
        Numbers of the formula.

    Raises
    ------
    NumgradValueError
        If the input has fewer axes, or ``size`` is not positive.

    References
    ----------
    A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with deep convolutional neural
    networks", NeurIPS 2012.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[[1.0], [2.0], [3.0]]])
    >>> ng.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=1.0)[0, :, 0]
    tensor([0.5       , 0.33333333, 0.21428571])
    """
    name = "local_response_norm"
    input = asarray(input)
    size = as_index(name, size, "size")
    if input.ndim < 3 or size < 1:
        raise NumgradValueError(
            f"{name}: needs an input (examples, channels, ...) and a positive size; got shape "
            f"{tuple(input.shape)} and size {size}"
        )
    channels = input.shape[1]
    widths = (0, 0) * (input.ndim - 2) + (size // 2, (size - 1) // 2)
    squares = pad(input * input, widths)
    total = squares[:, :channels]
    for start in range(1, size):
        total = total + squares[:, start : start + channels]
    return input / (total * (alpha / size) + k) ** beta


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
