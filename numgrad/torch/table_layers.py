"""Rows of layers that the topmost module has too: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.torch.calls import table

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _normalized(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """A Tensor with mean 0 and variance 1 along axes, the mean and what it is multiplied with."""
    mean = ng.mean(x, axes, keepdims=True)
    factor = 1 / ng.sqrt(ng.var(x, axes, keepdims=True) + eps)
    return (x - mean) * factor, mean, factor


def _scaled(x: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Any:
    x = x if weight is None else x * ng.reshape(weight, shape)
    return x if bias is None else x + ng.reshape(bias, shape)


def _layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Any, Any, Any]:
    axes = tuple(range(x.ndim - len(tuple(shape)), x.ndim))
    out, mean, factor = _normalized(x, axes, eps)
    return _scaled(out, weight, bias, tuple(shape)), mean.detach(), factor.detach()


def _group_norm(
    x: Any, weight: Any, bias: Any, rows: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Any, Any, Any]:
    split = ng.reshape(x, (rows, groups, -1))
    out, mean, factor = _normalized(split, (2,), eps)
    out = _scaled(ng.reshape(out, x.shape), weight, bias, (1, channels) + (1,) * (x.ndim - 2))
    return out, mean[..., 0], factor[..., 0]


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, Any, Any]:
    axes = (0, *range(2, x.ndim))
    out = ng.nn.functional.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    if not training:
        nothing = ng.zeros((0,), x.dtype)
        return out, nothing, nothing
    _, of_batch, factor = _normalized(x.detach(), axes, eps)
    return out, ng.reshape(of_batch, (-1,)), ng.reshape(factor, (-1,))


TABLE = """
[same 0 function values]
{conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d layer_norm group_norm
 rms_norm bilinear celu selu prelu rrelu pairwise_distance cosine_similarity pixel_shuffle
 pixel_unshuffle channel_shuffle pdist max_pool1d max_pool2d max_pool3d avg_pool1d
 adaptive_avg_pool1d adaptive_max_pool1d threshold hardshrink}(*args, **params): (
    ng.nn.functional.@(*args, **params))
{dropout alpha_dropout feature_alpha_dropout}(input, p, train): ng.nn.functional.@(input, p, train)
embedding(weight, indices, padding_idx=None, scale_grad_by_freq=False, sparse=False): (
    ng.nn.functional.embedding(indices, weight, padding_idx, scale_grad_by_freq=scale_grad_by_freq))
batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
    cudnn_enabled=False): ng.nn.functional.batch_norm(
    input, running_mean, running_var, weight, bias, training, momentum, eps)
native_layer_norm(input, normalized_shape, weight, bias, eps): _layer_norm(
    input, normalized_shape, weight, bias, eps)
native_group_norm(input, weight, bias, N, C, HxW, group, eps): _group_norm(
    input, weight, bias, N, C, HxW, group, eps)
native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): (
    _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps))
{grid_sampler grid_sampler_2d grid_sampler_3d}(
    input, grid, interpolation_mode, padding_mode, align_corners): ng.nn.functional.grid_sample(
    input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)
"""
table("", globals(), TABLE)
