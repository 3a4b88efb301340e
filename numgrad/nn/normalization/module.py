"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn import init
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.module.parameter import Buffer, empty_parameter
from numgrad.nn.normalization import functional as F
from numgrad.tensors.creation import asarray


class _Affine(Module):
    """A normalization that is followed by a weight and a bias, where it has them."""

    weight: Any
    bias: Any

    def _make_parameters(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, empty_parameter(shape, dtype, device) if wanted else None)

    def reset_parameters(self) -> None:
        """Set weights to one and biases to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


# --------------------------------------------------------------------------- of a whole batch


class ChannelNorm(_Affine):
    """What the layers that normalize channels, and learn their statistics, have in common."""

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
        return F.batch_norm(
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


# --------------------------------------------------------------------------- of each example


def _lengths(layer: str, normalized_shape: Any) -> tuple[int, ...]:
    """``normalized_shape`` as a tuple."""
    try:
        given = normalized_shape
        lengths = [n.__index__() for n in ((given,) if hasattr(given, "__index__") else given)]
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{layer}: normalized_shape is an integer or several, got {normalized_shape!r}"
        ) from None
    if lengths and min(lengths) < 0:
        raise NumgradValueError(
            f"{layer}: normalized_shape is {normalized_shape!r}; lengths must be at least 0"
        )
    return tuple(lengths)


class LayerNorm(_Affine):
    """Normalize each example over its last axes.

    Parameters
    ----------
    normalized_shape
        Lengths of these axes, or of one.
    eps
        Added to variances.
    elementwise_affine
        Whether there is a ``weight``, of that shape, at first 1.
    bias
        Whether there is a ``bias`` too, at first 0.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LayerNorm(4)
    >>> layer
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    >>> layer(ng.ones((3, 4))).shape
    (3, 4)
    """

    @checked
    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _lengths("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = elementwise_affine
        self._make_parameters(self.normalized_shape, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Divide each example by its root mean square over its last axes.

    Parameters
    ----------
    normalized_shape
        Lengths of these axes, or of one.
    eps
        Added to the mean square; None is the machine epsilon of the input's dtype.
    elementwise_affine
        Whether there is a ``weight``, of that shape, at first 1.
    device
        None or ``"cpu"``.
    dtype
        Of the weight, by default float64.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.RMSNorm(2, eps=0.0)
    >>> layer
    RMSNorm((2,), eps=0.0, elementwise_affine=True)
    >>> layer(ng.tensor([1.0, 7.0])).detach()
    tensor([0.2, 1.4])
    """

    bias = None

    @checked
    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _lengths("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight",
            empty_parameter(self.normalized_shape, dtype, device) if elementwise_affine else None,
        )
        self.reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Normalize groups of channels of each example.

    Parameters
    ----------
    num_groups
        Into how many equal groups the channels are split.
    num_channels
        Number of channels, axis 1 of the input.
    eps
        Added to variances.
    affine
        Whether there is a ``weight``, of shape (num_channels,), at first 1.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.
    bias
        Whether ``affine`` means a ``bias`` too, at first 0.

    Raises
    ------
    NumgradValueError
        If the channels cannot be split so.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.GroupNorm(2, 4)
    >>> layer
    GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)
    >>> layer(ng.ones((3, 4, 5))).shape
    (3, 4, 5)
    """

    @checked
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise NumgradValueError(
                f"GroupNorm: num_channels={num_channels} cannot be split into "
                f"num_groups={num_groups} equal groups"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
