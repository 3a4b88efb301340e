"""Rows of layers that the topmost module has too: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numgrad as ng
from numgrad.torch.calls import table

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def _moments(x: Any, axes: Any, eps: float) -> tuple[Any, Any]:
    """The mean along axes and the reciprocal of the standard deviation, which normalize."""
    axes = tuple(axes)
    return ng.mean(x, axes, keepdims=True), 1 / ng.sqrt(ng.var(x, axes, keepdims=True) + eps)


def _of_batch(x: Any, training: bool, eps: float) -> tuple[Any, ...]:
    if not training:
        return ng.zeros((0,), x.dtype), ng.zeros((0,), x.dtype)
    return tuple([ng.reshape(y, (-1,)) for y in _moments(x, (0, *range(2, x.ndim)), eps)])


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
native_layer_norm(input, normalized_shape, weight, bias, eps): (
    ng.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps),
    *_moments(input.detach(), range(input.ndim - len(normalized_shape), input.ndim), eps))
native_group_norm(input, weight, bias, N, C, HxW, group, eps): (
    ng.nn.functional.group_norm(input, group, weight, bias, eps),
    *[y[..., 0] for y in _moments(ng.reshape(input, (N, group, -1)), (2,), eps)])
native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): (
    ng.nn.functional.batch_norm(
    input, running_mean, running_var, weight, bias, training, momentum, eps),
    *_of_batch(input.detach(), training, eps))
{grid_sampler grid_sampler_2d grid_sampler_3d}(
    input, grid, interpolation_mode, padding_mode, align_corners): ng.nn.functional.grid_sample(
    input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)
"""
table("", globals(), TABLE)
