"""Layers that normalize each channel of each example, or by neighbouring channels."""

from __future__ import annotations

from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.core.options import option
from numgrad.errors import NumgradValueError, warn
from numgrad.nn.applied import Applied, applies
from numgrad.nn.normalization import functional as F
from numgrad.nn.normalization.module import ChannelNorm
from numgrad.tensors.creation import asarray


class _InstanceNorm(ChannelNorm):
    """What these layers have in common."""

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
        out = F.instance_norm(
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


@applies(F.local_response_norm)
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
