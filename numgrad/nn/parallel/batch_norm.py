"""``SyncBatchNorm``: batches that are shared among ranks, normalized as one."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.function import Function
from numgrad.core.interpreter import state
from numgrad.distributed.collectives import all_reduce
from numgrad.distributed.group import Group, group_of, is_initialized
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.batch_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    ChannelNorm,
    learn,
    normalize_by,
)
from numgrad.nn.module.module import Module
from numgrad.operations.shape import reshape
from numgrad.tensors.creation import tensor
from numgrad.tensors.tensor import Tensor

_NAME = "SyncBatchNorm"


class RankSum(Function):
    """The sum of a tensor over ranks, whose gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Any, group: Any) -> Any:
        """Sum by a message."""
        ctx.group = group
        total = np.array(x.detach().numpy())
        all_reduce(total, group=group)
        return tensor(total)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Sum gradients by a message, differentiably."""
        return RankSum.apply(gradients[0], ctx.group), None


class SyncBatchNorm(ChannelNorm):
    """Normalize each channel by its statistics over the batches of all ranks together.

    In evaluation, in a group of one and before ``ng.distributed.init_process_group`` it does what
    ``BatchNorm1d`` to ``BatchNorm3d`` do. The gradient of an input is that of the sum of the losses
    of all ranks; those of ``weight`` and ``bias`` are of this rank's, for
    ``DistributedDataParallel`` to average. All ranks call forward and backward.

    Parameters
    ----------
    num_features
        Number of channels.
    eps
        Added to variances.
    momentum
        Weight of the newest statistics in the running ones; None is the mean of all batches.
    affine
        Whether there are a ``weight``, at first 1, and a ``bias``, at first 0.
    track_running_stats
        Whether there are running statistics, by which inputs are normalized in evaluation mode.
    process_group
        The ranks; by default all.
    device
        None or ``"cpu"``.
    dtype
        Of parameters and buffers, by default float64.

    Raises
    ------
    NumgradValueError
        If an input has another number of channels, or none; on all ranks, if all of them together
        have one value for each channel.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.SyncBatchNorm(2, eps=0.0)
    >>> layer(ng.tensor([[1.0, 2.0], [3.0, 6.0]])).detach()
    tensor([[-1., -1.],
            [ 1.,  1.]])
    >>> model = ng.nn.Sequential(ng.nn.BatchNorm2d(3))
    >>> type(ng.nn.SyncBatchNorm.convert_sync_batchnorm(model)[0]).__name__
    'SyncBatchNorm'
    """

    ranks = range(2, 65)
    expected = "(examples, channels, ...)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Group = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _normalize(
        self, input: Tensor, mean: Any, variance: Any, by_batch: bool, momentum: float
    ) -> Tensor:
        alone = not (by_batch and self.training and is_initialized())
        if alone or group_of(_NAME, self.process_group).size == 1:
            return super()._normalize(input, mean, variance, by_batch, momentum)
        state.ground.once(
            f"{_NAME}: ranks send messages, which ng.jit does not compile; compile the layers "
            "around it, or call eval() first"
        )
        axes = (0, *range(2, input.ndim))
        here = prod(input.shape[:1] + input.shape[2:])
        sums = np.append(np.sum(input, axis=axes), np.array([here], input.dtype))
        sums = RankSum.apply(sums, self.process_group)
        count = round(float(sums[-1].detach()))
        if count == 1:
            raise NumgradValueError(
                f"{_NAME}: all ranks together have one value for each channel, of which there is "
                "no variance; train with more examples, or call eval() first"
            )
        if not count:
            return super()._normalize(input, mean, variance, by_batch, momentum)
        of_all = sums[:-1] / count
        column = (1, -1) + (1,) * (input.ndim - 2)
        squares = np.sum((input - reshape(of_all, column)) ** 2, axis=axes)
        variance_of_all = RankSum.apply(squares, self.process_group) / count
        out = normalize_by(input, of_all, variance_of_all, self.weight, self.bias, eps=self.eps)
        learn(mean, variance, of_all, variance_of_all, count, momentum)
        return out

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Group = None) -> Module:
        """A model whose batch normalizations are made of this kind; others stay as they are.

        Parameters
        ----------
        module
            The model; what it consists of is replaced in place.
        process_group
            The ranks of the new layers; by default all.

        Returns
        -------
        Module
            ``module``, or a new layer if it is a batch normalization itself. Parameters and
            buffers are the same objects.

        Raises
        ------
        NumgradTypeError
            If ``module`` is no Module.
        """
        if not isinstance(module, Module):
            raise NumgradTypeError(
                f"{_NAME}.convert_sync_batchnorm: takes a Module, got {type(module).__name__}"
            )
        converted = module
        if isinstance(module, BatchNorm1d | BatchNorm2d | BatchNorm3d):
            options = module.num_features, module.eps, module.momentum, False, False
            converted = cls(*options, process_group)
            converted.affine, converted.track_running_stats = (
                module.affine,
                module.track_running_stats,
            )
            for name, parameter in module.named_parameters(recurse=False):
                converted.register_parameter(name, parameter)
            for name, buffer in module.named_buffers(recurse=False):
                converted.register_buffer(name, buffer)
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
