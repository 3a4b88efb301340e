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
from numgrad.codegen.array_formulas import array_formula
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradValueError
from numgrad.nn.applied import checked
from numgrad.nn.layer_normalization import (
    _Affine,
    check_channels,
    computing_dtype,
    gradients_by_kernel,
)
from numgrad.nn.module.members import Buffer
from numgrad.operations.shape import reshape
from numgrad.tensors.creation import asarray

Extents = tuple[int, int, int]
"""Elements as (examples, channels, rest)."""
_BATCH = (0, 2)
"""The axes over which a channel is normalized."""


def _channels(operation: str, x: Any) -> Extents:
    """How ``x`` of shape (examples, channels, ...) is seen."""
    if len(x.shape) < 2:
        raise NumgradValueError(
            f"{operation}: an operand of shape {tuple(x.shape)} has no axis of channels; give it "
            "shape (examples, channels, ...)"
        )
    return (x.shape[0], x.shape[1], prod(x.shape[2:]))


def _column(x: Any) -> Any:
    """A number for each channel, to compute with elements seen as ``Extents``."""
    return None if x is None else reshape(x, (1, prod(x.shape), 1))


def _affine(x, scale, weight, bias):
    """``x * scale * weight + bias``, with what there is of these."""
    y = x * (scale if weight is None else scale * weight)
    return y if bias is None else y + bias


def _batch_statistics(x, eps):
    """Elements less the mean of their channel; its mean, variance, ``1 / sqrt(variance + eps)``."""
    mean = np.mean(x, axis=_BATCH, keepdims=True)
    d = x - mean
    variance = np.mean(d * d, axis=_BATCH, keepdims=True)
    return d, mean, variance, 1 / np.sqrt(variance + eps)


@array_formula("nci", "x:nci weight:c bias:c eps -> y:nci mean:c variance:c rstd:c", units="i")
def standardized_channels(x, weight, bias, eps):
    """Channels less their means and times their ``rstd``, then ``* weight + bias``."""
    d, mean, variance, rstd = _batch_statistics(x, eps)
    return _affine(d, rstd, weight, bias), mean, variance, rstd


@array_formula(
    "nci",
    "g:nci x:nci weight:c mean:c rstd:c g_mean:c g_variance:c n -> x:nci weight:c bias:c",
    units="i",
)
def channel_gradients(g, x: Any, weight, mean, rstd, g_mean, g_variance, n, *, mask):
    """The gradients in ``mask`` for ``n`` elements a channel and those of its statistics."""
    total = np.sum(g, axis=_BATCH, keepdims=True) if mask & 5 else None
    if mask == 4:
        return None, None, total
    d = x - mean
    moment = np.sum(g * d, axis=_BATCH, keepdims=True)
    gx = None
    if mask & 1:
        scale = rstd if weight is None else rstd * weight
        slope = (2 * g_variance - scale * rstd * rstd * moment) / n
        gx = g * scale + d * slope + (g_mean - scale * total) / n
    return gx, moment * rstd if mask & 2 else None, total if mask & 4 else None


@primitive(
    method=False,
    outputs=True,
    auxiliaries=("center", "rstd"),
    samples=[(((3, 2, 4), (2,), (2,)), {}), (((4, 3), (3,), (3,)), {})],
    real_only=True,
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
    check_channels(operation, "weight", weight, extents[1])
    check_channels(operation, "bias", bias, extents[1])
    if not x.size:
        zeros = np.zeros(extents[1], dtype)
        rstd = 1 / np.sqrt(zeros + dtype.type(eps))
        return (np.empty(x.shape, dtype), zeros, zeros.copy()), (zeros, rstd)
    shapes = (x.shape, *[extents[1:2]] * 3)
    *results, rstd = standardized_channels(dtype, extents, shapes, x, weight, bias, eps)
    return tuple(results), (results[1], rstd)  # not the result, which may be written to


@batch_normalize.shape
def _batch_result(x, weight, bias, *, eps):
    width = _channels("batch_normalize", x)[1]
    dtype = computing_dtype("batch_normalize", x, weight, bias)
    check_channels("batch_normalize", "weight", weight, width)
    check_channels("batch_normalize", "bias", bias, width)
    each = Meta((width,), dtype)
    return (Meta(x.shape, dtype), each, each), (each, each)


def _batch_vjp(g, x, weight, meta_x, eps, mask):
    """The gradients in ``mask``."""
    extents = _channels("batch_normalize", meta_x)
    mean = rstd = None
    n = max(extents[0] * extents[2], 1)
    if x is not None:
        x = reshape(x, extents)
        mean = rstd = 0.0  # of no elements
        if x.size:
            _, mean, _, rstd = _batch_statistics(x, eps)
    g = reshape(g[0], extents), _column(g[1]), _column(g[2])
    return channel_gradients.function(
        g[0], x, _column(weight), mean, rstd, *g[1:], n, mask=mask
    )  # fmt: skip


def _batch_vjp_x(g, x, weight, meta_x, center, rstd, eps):
    return reshape(_batch_vjp(g, x, weight, meta_x, eps, 1)[0], meta_x.shape)


def _batch_vjp_weight(g, x, meta_x, meta_weight, center, rstd, eps):
    return reshape(_batch_vjp(g, x, None, meta_x, eps, 2)[1], meta_weight.shape)


def _batch_vjp_bias(g, meta_x, meta_bias):
    return reshape(_batch_vjp(g, None, None, meta_x, 0, 4)[2], meta_bias.shape)


batch_normalize.vjp(x=_batch_vjp_x, weight=_batch_vjp_weight, bias=_batch_vjp_bias)


@batch_normalize.vjp_kernel
def _batch_backward(call, mask, g, x=None, weight=None, center=None, rstd=None):
    extents = _channels("batch_normalize", call.metas[0])
    n = extents[0] * extents[2]
    return gradients_by_kernel(
        channel_gradients, call, mask, extents, g[0], x, weight, center, rstd, *g[1:], n
    )


@array_formula("nci", "x:nci mean:c variance:c weight:c bias:c eps -> y:nci", units="i")
def normalized_by(x, mean, variance, weight, bias, eps):
    """``(x - mean) / sqrt(variance + eps) * weight + bias``."""
    return (_affine(x - mean, 1 / np.sqrt(variance + eps), weight, bias),)


@array_formula(
    "nci",
    "g:nci x:nci mean:c variance:c weight:c eps -> x:nci mean:c variance:c weight:c bias:c",
    units="i",
)
def gradients_by(g, x, mean, variance, weight, eps, *, mask):
    """The gradients in ``mask`` of ``normalized_by``."""
    total: Any = np.sum(g, axis=_BATCH, keepdims=True) if mask & 18 else None
    if mask == 16:
        return None, None, None, None, total
    rstd = 1 / np.sqrt(variance + eps)
    scale = rstd if weight is None else rstd * weight
    moment: Any = np.sum(g * (x - mean), axis=_BATCH, keepdims=True) if mask & 12 else None
    return (
        g * scale if mask & 1 else None,
        -(scale * total) if mask & 2 else None,
        -0.5 * moment * scale * rstd * rstd if mask & 4 else None,
        moment * rstd if mask & 8 else None,
        total if mask & 16 else None,
    )


@primitive(
    method=False,
    samples=[
        (((3, 2, 4), (2,), (2,), (2,), (2,)), {}),
        (((4, 3), (3,), (3,), (3,), (3,)), {"eps": 0.1}),
    ],
    domain=(0.2, 2.0),  # variances are positive
    real_only=True,
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
    for name, a in (("mean", mean), ("variance", variance), ("weight", weight), ("bias", bias)):
        check_channels(operation, name, a, extents[1])
    if not x.size:
        return np.empty(x.shape, dtype)
    return normalized_by(dtype, extents, [x.shape], x, mean, variance, weight, bias, eps)[0]


@normalize_by.shape
def _by_result(x, mean, variance, weight, bias, *, eps):
    parameters = {"mean": mean, "variance": variance, "weight": weight, "bias": bias}
    dtype = computing_dtype("normalize_by", x, *parameters.values())
    for name, value in parameters.items():
        check_channels("normalize_by", name, value, _channels("normalize_by", x)[1])
    return Meta(x.shape, dtype)


def _by_vjp(g, x, mean, variance, weight, meta_x, eps, mask):
    """The gradients in ``mask``."""
    extents = _channels("normalize_by", meta_x)
    x = None if x is None else reshape(x, extents)
    columns = map(_column, (mean, variance, weight))
    return gradients_by.function(reshape(g, extents), x, *columns, eps, mask=mask)


def _by_vjp_x(g, variance, weight, meta_x, eps):
    return reshape(_by_vjp(g, None, None, variance, weight, meta_x, eps, 1)[0], meta_x.shape)


def _by_vjp_mean(g, variance, weight, meta_x, meta_mean, eps):
    return reshape(_by_vjp(g, None, None, variance, weight, meta_x, eps, 2)[1], meta_mean.shape)


def _by_vjp_variance(g, x, mean, variance, weight, meta_x, meta_variance, eps):
    return reshape(_by_vjp(g, x, mean, variance, weight, meta_x, eps, 4)[2], meta_variance.shape)


def _by_vjp_weight(g, x, mean, variance, meta_x, meta_weight, eps):
    return reshape(_by_vjp(g, x, mean, variance, None, meta_x, eps, 8)[3], meta_weight.shape)


def _by_vjp_bias(g, meta_x, meta_bias):
    return reshape(_by_vjp(g, None, None, None, None, meta_x, 0, 16)[4], meta_bias.shape)


normalize_by.vjp(
    x=_by_vjp_x,
    mean=_by_vjp_mean,
    variance=_by_vjp_variance,
    weight=_by_vjp_weight,
    bias=_by_vjp_bias,
)


@normalize_by.vjp_kernel
def _by_backward(call, mask, g, x=None, mean=None, variance=None, weight=None):
    extents = _channels("normalize_by", call.metas[0])
    eps = call.params["eps"]
    return gradients_by_kernel(gradients_by, call, mask, extents, g, x, mean, variance, weight, eps)


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
    _version = 2
    _since_version_2 = ("num_batches_tracked",)

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
        """Normalize by running statistics, or by the batch's, from which the running ones learn."""
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
