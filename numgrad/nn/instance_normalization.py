"""Normalization of each example: of its channels, by neighbouring channels, by a norm."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor
from numgrad.core.options import option
from numgrad.errors import NumgradValueError, warn
from numgrad.nn.applied import Applied, applies
from numgrad.nn.batch_normalization import ChannelNorm, _check_running, normalize_by
from numgrad.nn.layer_normalization import _group_norm
from numgrad.nn.padding import pad
from numgrad.operations.shape import as_index, broadcast_to
from numgrad.tensors.creation import asarray


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


class _InstanceNorm(ChannelNorm):
    """Base of layers that normalize each channel of each example."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Any) -> Tensor:
        """Normalize each example; in training, update running statistics where there are any."""
        input = asarray(input)
        name, shape = type(self).__name__, input.shape
        if len(shape) not in self.ranks:
            raise NumgradValueError(
                f"{name}: an input of shape {shape} has {len(shape)} axes; expected {self.expected}"
            )
        single = len(shape) == self.ranks[0]
        channels = shape[0 if single else 1]
        if channels != self.num_features:
            problem = (
                f"{name}: an input of shape {shape} has {channels} channels, the layer was made "
                f"for num_features={self.num_features}"
            )
            if self.affine or self.track_running_stats:
                raise NumgradValueError(problem)
            warn(problem, UserWarning)
        out = instance_norm(
            input[None] if single else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out[0] if single else out


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sequence by its own statistics.

    Parameters
    ----------
    num_features
        Number of channels.
    eps
        Added to variances.
    momentum
        Weight of the newest statistics in the running ones.
    affine
        Whether there is a ``weight``, of shape (num_features,), at first 1.
    track_running_stats
        Whether there are the buffers ``running_mean`` and ``running_var``, by which inputs are
        normalized in evaluation mode.
    device
        None or ``"cpu"``.
    dtype
        Of parameters and buffers, by default float64.
    bias
        Whether ``affine`` means a ``bias`` too, at first 0.

    Notes
    -----
    Takes inputs of shape (examples, channels, length) or (channels, length).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.InstanceNorm1d(2, eps=0.0)(ng.tensor([[1.0, 3.0], [0.0, 8.0]]))
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """

    ranks = (2, 3)
    expected = "(examples, channels, length) or (channels, length)"


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each image by its own statistics: as ``InstanceNorm1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.InstanceNorm2d(3, affine=True)(ng.ones((2, 3, 4, 5))).shape
    (2, 3, 4, 5)
    """

    ranks = (3, 4)
    expected = "(examples, channels, height, width), or without examples"


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each volume by its own statistics: as ``InstanceNorm1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.InstanceNorm3d(3)(ng.ones((2, 3, 4, 5, 6))).shape
    (2, 3, 4, 5, 6)
    """

    ranks = (4, 5)
    expected = "(examples, channels, depth, height, width), or without examples"


@applies(local_response_norm)
class LocalResponseNorm(Applied):
    """Divide by what squares of neighbouring channels say.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.LocalResponseNorm(2)(ng.ones((2, 5, 4))).shape
    (2, 5, 4)
    """

    size: int = option(above=0)
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
