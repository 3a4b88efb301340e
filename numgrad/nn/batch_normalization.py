"""Normalization of channels over a batch.

Formulas compute the statistics again: Note [Statistics in formulas] in ``nn.layer_normalization``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradValueError
from numgrad.kernels.normalization import channel_map_kernel, channel_sums_kernel
from numgrad.nn.applied import checked
from numgrad.nn.layer_normalization import (
    Extents,
    _Affine,
    check_channels,
    computing_dtype,
    flat,
    launch,
    per_channel,
)
from numgrad.nn.module.members import Buffer
from numgrad.operations.shape import reshape
from numgrad.tensors.creation import asarray


def _channels(operation: str, x: Any) -> Extents:
    """How ``x`` of shape (examples, channels, ...) is seen."""
    if len(x.shape) < 2:
        raise NumgradValueError(
            f"{operation}: an operand of shape {tuple(x.shape)} has no axis of channels; give it "
            "shape (examples, channels, ...)"
        )
    return (x.shape[0], 1, x.shape[1], prod(x.shape[2:]))


def _column(x: Any, extents: Extents) -> Any:
    """A number for each channel, to compute with elements seen as ``extents``."""
    return reshape(x, (1, 1, extents[2], 1))


def _over_batch(x: Any, extents: Extents) -> Any:
    return np.sum(x, axis=(0, 3), keepdims=True)


def _scaled(
    x: np.ndarray, mean: np.ndarray, scale: np.ndarray, shift: np.ndarray, extents: Extents
) -> np.ndarray:
    """``(x - mean) * scale + shift`` with coefficients of the channels."""
    out = np.empty(x.shape, x.dtype)
    if out.size:
        arrays = (x.ravel(), mean, scale, shift, out.ravel())
        launch(channel_map_kernel, ("scale", x.dtype), extents, 1, *arrays)
    return out


def _gradient_sums(
    x: np.ndarray, g: np.ndarray, mean: np.ndarray, extents: Extents
) -> tuple[np.ndarray, np.ndarray]:
    """``g`` and ``g * (x - mean)`` summed in each channel."""
    sums = np.zeros((2, extents[2]), g.dtype)
    if g.size:
        kind = ("channel_gradients", g.dtype)
        launch(channel_sums_kernel, kind, extents, 2, x.ravel(), g.ravel(), mean, sums)
    return sums[0], sums[1]


@primitive(
    method=False,
    outputs=True,
    auxiliaries=("rstd",),
    samples=[
        (((3, 2, 4), (2,), (2,)), {}),
        (((4, 3), (3,), (3,)), {}),
    ],
    real=True,
    smooth=True,
    lowering="numgrad.nn.lowerings",
)
def batch_normalize(x, weight=None, bias=None, *, eps=1e-5):
    """Normalize each channel (axis 1) over the batch and everything after: result, mean, variance.

    The variance is the biased one, over the number of elements.

    Parameters
    ----------
    weight
        Factor for each channel; 1 by default.
    bias
        Summand for each channel; 0 by default.

    Returns
    -------
    tuple of Tensors
        The result, of the shape of ``x``; mean and variance of each channel.

    Examples
    --------
    >>> y, mean, variance = ng.ops["batch_normalize"](ng.tensor([[1.0, 0.0], [3.0, 4.0]]))
    >>> np.round(y, 4)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    >>> mean, variance
    (tensor([2., 2.]), tensor([1., 4.]))
    """
    operation = "batch_normalize"
    extents = _channels(operation, x)
    dtype = computing_dtype(operation, x, weight, bias)
    x = np.ascontiguousarray(x, dtype)
    width = extents[2]
    weight = per_channel(operation, "weight", weight, width, 1, dtype)
    bias = per_channel(operation, "bias", bias, width, 0, dtype)
    mean, variance = np.zeros((1, width), dtype), np.zeros((1, width), dtype)
    if x.size:
        count = dtype.type(x.size // width)
        launch(channel_sums_kernel, ("total", dtype), extents, 1, x.ravel(), mean)
        mean /= count
        kind = ("squares", dtype)
        launch(channel_sums_kernel, kind, extents, 1, x.ravel(), mean.ravel(), variance)
        variance /= count
    rstd = 1 / np.sqrt(variance[0] + dtype.type(eps))
    out = _scaled(x, mean[0], rstd * weight, bias, extents)
    return (out, mean[0], variance[0]), (rstd,)


@batch_normalize.shape
def _batch_result(x, weight, bias, *, eps):
    width = _channels("batch_normalize", x)[2]
    dtype = computing_dtype("batch_normalize", x, weight, bias)
    check_channels("batch_normalize", "weight", weight, width)
    check_channels("batch_normalize", "bias", bias, width)
    each = Meta((width,), dtype)
    return (Meta(x.shape, dtype), each, each), (each,)


def _centered(x: Any, extents: Extents) -> tuple[Any, int]:
    """Elements less the mean of their channel, seen as ``extents``, and how many a channel has."""
    x = reshape(x, extents)
    count = max(extents[0] * extents[3], 1)
    return x - _over_batch(x, extents) / count, count


def _batch_vjp_x(g, x, weight, y, meta_x, rstd, eps):
    extents = _channels("batch_normalize", meta_x)
    d, count = _centered(x, extents)
    rstd = 1 / np.sqrt(_over_batch(d * d, extents) / count + eps)
    n = reshape(g[0], extents)
    if weight is not None:
        n = n * _column(weight, extents)
    h = d * rstd
    whole, along = _over_batch(n, extents) / count, _over_batch(n * h, extents) / count
    gx = rstd * (n - whole - h * along)
    gx = gx + _column(g[1], extents) / count + d * (2 * _column(g[2], extents) / count)
    return reshape(gx, meta_x.shape)


def _batch_vjp_weight(g, x, y, meta_x, meta_weight, rstd, eps):
    extents = _channels("batch_normalize", meta_x)
    d, count = _centered(x, extents)
    rstd = 1 / np.sqrt(_over_batch(d * d, extents) / count + eps)
    return reshape(_over_batch(reshape(g[0], extents) * d * rstd, extents), meta_weight.shape)


def _batch_vjp_bias(g, meta_x, meta_bias):
    extents = _channels("batch_normalize", meta_x)
    return reshape(_over_batch(reshape(g[0], extents), extents), meta_bias.shape)


batch_normalize.vjp(x=_batch_vjp_x, weight=_batch_vjp_weight, bias=_batch_vjp_bias)


@batch_normalize.vjp_kernel
def _batch_backward(call, mask, g, x: Any = None, weight=None, y: Any = None, rstd: Any = None):
    meta = call.metas[0]
    extents = _channels("batch_normalize", meta)
    width = extents[2]
    g, g_mean, g_variance = g
    dtype = g.dtype
    g = np.ascontiguousarray(g)
    grads: list[Any] = [None, None, None]
    if x is None:  # the bias alone
        sums = np.zeros((1, width), dtype)
        if g.size:
            launch(channel_sums_kernel, ("total", dtype), extents, 1, g.ravel(), sums)
        grads[2] = sums[0].reshape(call.metas[2].shape)
        return grads
    x, mean = np.ascontiguousarray(x, dtype), y[1]
    whole, along = _gradient_sums(x, g, mean, extents)
    if mask & 1:
        count = dtype.type(max(g.size // max(width, 1), 1))
        scale = rstd * per_channel("batch_normalize", "weight", weight, width, 1, dtype)
        slope = (2 * g_variance - scale * rstd * rstd * along) / count
        shift = (g_mean - scale * whole) / count
        grads[0] = np.empty(meta.shape, dtype)
        if g.size:
            arrays = (x.ravel(), g.ravel(), mean, scale, slope, shift, grads[0].ravel())
            launch(channel_map_kernel, ("combine", dtype), extents, 2, *arrays)
    if mask & 2:
        grads[1] = (along * rstd).reshape(call.metas[1].shape)
    if mask & 4:
        grads[2] = whole.reshape(call.metas[2].shape).copy()
    return grads


@primitive(
    method=False,
    samples=[
        (((3, 2, 4), (2,), (2,), (2,), (2,)), {}),
        (((4, 3), (3,), (3,), (3,), (3,)), {"eps": 0.1}),
    ],
    domain=(0.2, 2.0),  # variances are positive
    real=True,
    smooth=True,
    lowering="numgrad.nn.lowerings",
)
def normalize_by(x, mean, variance, weight=None, bias=None, *, eps=1e-5):
    """``(x - mean) / sqrt(variance + eps) * weight + bias``, all by channels (axis 1).

    Parameters
    ----------
    mean
        Mean of each channel.
    variance
        Variance of each channel.
    weight
        Factor for each channel; 1 by default.
    bias
        Summand for each channel; 0 by default.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> x = ng.tensor([[1.0, 0.0], [3.0, 4.0]])
    >>> ng.ops["normalize_by"](x, [2.0, 2.0], [1.0, 4.0], eps=0.0)
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """
    operation = "normalize_by"
    extents = _channels(operation, x)
    dtype = computing_dtype(operation, x, mean, variance, weight, bias)
    width = extents[2]
    mean = per_channel(operation, "mean", mean, width, 0, dtype)
    variance = per_channel(operation, "variance", variance, width, 1, dtype)
    weight = per_channel(operation, "weight", weight, width, 1, dtype)
    bias = per_channel(operation, "bias", bias, width, 0, dtype)
    scale = weight / np.sqrt(variance + dtype.type(eps))
    return _scaled(np.ascontiguousarray(x, dtype), mean, scale, bias, extents)


@normalize_by.shape
def _by_result(x, mean, variance, weight, bias, *, eps):
    parameters = {"mean": mean, "variance": variance, "weight": weight, "bias": bias}
    dtype = computing_dtype("normalize_by", x, *parameters.values())
    for name, value in parameters.items():
        check_channels("normalize_by", name, value, _channels("normalize_by", x)[2])
    return Meta(x.shape, dtype)


def _by_scale(g, weight, variance, extents, eps):
    """``g * weight / sqrt(variance + eps)``, seen as ``extents``."""
    n = reshape(g, extents)
    if weight is not None:
        n = n * _column(weight, extents)
    return n / np.sqrt(_column(variance, extents) + eps)


def _by_vjp_x(g, variance, weight, meta_x, eps):
    extents = _channels("normalize_by", meta_x)
    return reshape(_by_scale(g, weight, variance, extents, eps), meta_x.shape)


def _by_vjp_mean(g, variance, weight, meta_x, meta_mean, eps):
    extents = _channels("normalize_by", meta_x)
    n = _by_scale(g, weight, variance, extents, eps)
    return reshape(-_over_batch(n, extents), meta_mean.shape)


def _by_vjp_variance(g, x, mean, variance, weight, meta_x, meta_variance, eps):
    extents = _channels("normalize_by", meta_x)
    n = _by_scale(g, weight, variance, extents, eps)
    d = reshape(x, extents) - _column(mean, extents)
    total = _over_batch(n * d, extents) / (_column(variance, extents) + eps)
    return reshape(-0.5 * total, meta_variance.shape)


def _by_vjp_weight(g, x, mean, variance, meta_x, meta_weight, eps):
    extents = _channels("normalize_by", meta_x)
    d = reshape(x, extents) - _column(mean, extents)
    total = _over_batch(reshape(g, extents) * d, extents)
    return reshape(total / np.sqrt(_column(variance, extents) + eps), meta_weight.shape)


def _by_vjp_bias(g, meta_x, meta_bias):
    extents = _channels("normalize_by", meta_x)
    return reshape(_over_batch(reshape(g, extents), extents), meta_bias.shape)


normalize_by.vjp(
    x=_by_vjp_x,
    mean=_by_vjp_mean,
    variance=_by_vjp_variance,
    weight=_by_vjp_weight,
    bias=_by_vjp_bias,
)


@normalize_by.vjp_kernel
def _by_backward(call, mask, g, x=None, mean: Any = None, variance=None, weight=None):
    extents = _channels("normalize_by", call.metas[0])
    width = extents[2]
    dtype = g.dtype
    g = np.ascontiguousarray(g)
    zeros = np.zeros(width, dtype)
    grads: list[Any] = [None] * 5
    scale = rstd = zeros
    if variance is not None:
        rstd = 1 / np.sqrt(flat(variance, dtype) + dtype.type(call.params["eps"]))
        scale = rstd * per_channel("normalize_by", "weight", weight, width, 1, dtype)
    if mask & 1:
        grads[0] = _scaled(g, zeros, scale, zeros, extents)
    if x is not None:
        moved = flat(mean, dtype)
        whole, along = _gradient_sums(np.ascontiguousarray(x, dtype), g, moved, extents)
    else:
        whole, along = np.zeros((1, width), dtype), zeros
        if mask & ~1 and g.size:
            launch(channel_sums_kernel, ("total", dtype), extents, 1, g.ravel(), whole)
        whole = whole[0]
    values = (None, -scale * whole, -0.5 * scale * rstd * rstd * along, along * rstd, whole)
    for k in range(1, 5):
        if mask >> k & 1:
            grads[k] = np.array(values[k]).reshape(call.metas[k].shape)
    return grads


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
    """Array to compute statistics with: NumPy is quicker for few numbers, if they are known."""
    numbers = state.ground.numbers(tensor)
    return tensor.detach() if numbers is None else numbers


def _check_running(shape: tuple[int, ...], *running: Tensor | None) -> None:
    for statistic in running:
        if statistic is not None and statistic.shape != shape[1:2]:
            raise NumgradValueError(
                f"batch_norm: running statistics of shape {statistic.shape} for an input of shape "
                f"{shape}; give one number for each of its {shape[1]} channels (axis 1)"
            )


# --------------------------------------------------------------------------- of a whole batch


class ChannelNorm(_Affine):
    """Base of layers that normalize channels and learn their statistics."""

    ranks: Sequence[int]
    expected: str
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    @checked
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters((num_features,), affine, affine and bias, device, dtype)
        if track_running_stats:
            dtype = np.float64 if dtype is None else dtype
            self.running_mean = Buffer(np.zeros(num_features, dtype))
            self.running_var = Buffer(np.ones(num_features, dtype))
            self.num_batches_tracked = Buffer(np.array(0, np.int64))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was learnt of the statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set weights to one, biases to zero, and forget what was learnt of the statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Normalize a batch; in training, update the running statistics."""
        input = asarray(input)
        self._check_input(input)
        learns = self.training and self.track_running_stats
        batches = self.num_batches_tracked if learns else None
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / (int(batches) + 1) if batches is not None else 0.0
        by_batch = self.training or self.running_mean is None
        running = self.running_mean, self.running_var
        if self.training and not learns:
            running = None, None
        out = self._normalize(input, *running, by_batch, momentum)
        if batches is not None:
            batches.add_(1)
        return out

    def _normalize(
        self, input: Tensor, mean: Any, variance: Any, by_batch: bool, momentum: float
    ) -> Tensor:
        """By running statistics, or by those of the batch, from which the running ones learn."""
        return batch_norm(
            input, mean, variance, self.weight, self.bias, by_batch, momentum, self.eps
        )

    def _check_input(self, input: Tensor) -> None:
        name, shape = type(self).__name__, input.shape
        if len(shape) not in self.ranks:
            raise NumgradValueError(
                f"{name}: an input of shape {shape} has {len(shape)} axes; expected {self.expected}"
            )
        if shape[1] != self.num_features:
            raise NumgradValueError(
                f"{name}: an input of shape {shape} has {shape[1]} channels (axis 1), the layer "
                f"was made for num_features={self.num_features}"
            )

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(ChannelNorm):
    """Normalize each channel by its statistics over a batch.

    Parameters
    ----------
    num_features
        Number of channels.
    eps
        Added to variances.
    momentum
        Weight of the newest statistics in the running ones; None is the mean of all batches.
    affine
        Whether there is a ``weight``, of shape (num_features,), at first 1.
    track_running_stats
        Whether there are the buffers ``running_mean``, ``running_var`` and
        ``num_batches_tracked``, by which inputs are normalized in evaluation mode. Without them,
        the statistics are always those of the batch.
    device
        None or ``"cpu"``.
    dtype
        Of parameters and buffers, by default float64.
    bias
        Whether ``affine`` means a ``bias`` too, at first 0.

    Notes
    -----
    Takes inputs of shape (examples, channels) or (examples, channels, length). The result is
    normalized by the biased variance, the running one is unbiased.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.BatchNorm1d(2)
    >>> layer
    BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    >>> y = layer(ng.tensor([[1.0, 2.0], [3.0, 6.0]]))
    >>> layer.running_mean
    tensor([0.2, 0.4])
    """

    ranks = (2, 3)
    expected = "(examples, channels) or (examples, channels, length)"


class BatchNorm2d(ChannelNorm):
    """Normalize each channel of images by its statistics over a batch.

    Takes inputs of shape (examples, channels, height, width); parameters are those of
    ``BatchNorm1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BatchNorm2d(3, affine=False)(ng.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    ranks = (4,)
    expected = "(examples, channels, height, width)"


class BatchNorm3d(ChannelNorm):
    """Normalize each channel of volumes by its statistics over a batch.

    Takes inputs of shape (examples, channels, depth, height, width); parameters are those of
    ``BatchNorm1d``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.BatchNorm3d(3)(ng.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    ranks = (5,)
    expected = "(examples, channels, depth, height, width)"
