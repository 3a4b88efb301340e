"""Normalization: of groups of channels within an example, and of channels over a batch.

Note [Statistics in formulas]
-----------------------------
The backward kernels take the statistics that the forward computed: formulas name them, so that the
tape keeps them. The formulas themselves compute the statistics anew, from ``x``: a second
derivative must see that they depend on it.
"""

from __future__ import annotations

from functools import cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels import threads
from numgrad.kernels.expr import check_dtype
from numgrad.kernels.normalization import (
    channel_map_kernel,
    channel_sums_kernel,
    rows_backward_kernel,
    rows_kernel,
)
from numgrad.op import composite, primitive
from numgrad.ops.shape import as_operand, reshape

Extents = tuple[int, int, int, int]

_ELEMENT_NS = 0.5  # one pass over an element


@cache
def _entry(maker: Any, options: tuple, columns: bool, parallel: bool) -> Any:
    return maker(*options, columns, parallel).entry


def _launch(maker: Any, options: tuple, extents: Extents, passes: int, *arguments: Any) -> None:
    """Call a kernel; matrices are given as they are, other arrays raveled."""
    size = prod(extents)
    columns = extents[3] == 1
    entry = threads.choose(
        partial(_entry, maker, options, columns, False),
        partial(_entry, maker, options, columns, True),
        size * passes * _ELEMENT_NS,
    )
    entry(*arguments, *extents)


def _computing_dtype(operation: str, *operands: np.ndarray | None) -> np.dtype:
    """The real floating dtype in which operands are computed with."""
    dtype = np.result_type(np.float32, *(a.dtype for a in operands if a is not None))
    check_dtype(operation, dtype)
    if dtype.kind == "c":
        raise NumgradTypeError(
            f"{operation}: complex operands have no order of magnitude to divide by; normalize "
            "their real and imaginary parts"
        )
    return dtype


def _flat(a: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(a, dtype).ravel()


def _per_channel(
    operation: str, name: str, a: np.ndarray | None, width: int, fill: float, dtype: np.dtype
) -> np.ndarray:
    """A weight or bias as the kernels take it: one number for each channel."""
    if a is None:
        return np.full(width, fill, dtype)
    if a.size != width:
        raise NumgradValueError(
            f"{operation}: {name} of shape {a.shape} has {a.size} elements, there are {width} "
            "channels; give one for each"
        )
    return _flat(a, dtype)


# --------------------------------------------------------------------- within each example


@primitive(
    internal=True,
    method=False,
    auxiliaries=("mean", "rstd"),
    samples=[
        (((2, 3, 4), (3, 4), (3, 4)), {"extents": (2, 1, 12, 1)}),
        (((2, 4, 3), (4,), (4,)), {"extents": (2, 2, 2, 3)}),
        (((2, 4, 3), (4,)), {"extents": (2, 2, 2, 3), "centered": False}),
        (((3, 4), (4,), (4,)), {"extents": (3, 2, 2, 1)}),
        (((3, 4), (4,)), {"extents": (3, 1, 4, 1), "centered": False, "eps": 0.1}),
    ],
    errors=[
        (((2, 3), (4,), (3,)), {"extents": (2, 1, 3, 1)}, "NumgradValueError"),
        (((2, 3), (3,), (3,)), {"extents": (2, 1, 3, 1), "centered": False}, "NumgradTypeError"),
    ],
)
def normalize_groups(x, weight=None, bias=None, *, extents, eps=1e-5, centered=True):
    """``(x - mean) / sqrt(var + eps)`` of each group of channels, then ``* weight + bias``.

    ``extents`` says how the elements of ``x`` are seen: Note [Extents of normalization] in
    ``kernels.normalization``. If not ``centered``, ``x / sqrt(mean(x**2) + eps)``, without bias.
    """
    operation = "normalize_groups"
    if bias is not None and not centered:
        raise NumgradTypeError(f"{operation}: takes a bias only with centered=True; add it after")
    dtype = _computing_dtype(operation, x, weight, bias)
    outer, groups, channels, _ = extents
    width, rows = groups * channels, outer * groups
    weight = _per_channel(operation, "weight", weight, width, 1, dtype)
    bias = _per_channel(operation, "bias", bias, width, 0, dtype)
    out, mean, rstd = np.empty(x.shape, dtype), np.empty(rows, dtype), np.empty(rows, dtype)
    if out.size:
        arrays = [_flat(x, dtype), weight, bias, out.ravel(), mean, rstd]
        if not centered:
            arrays = [arrays[0], weight, out.ravel(), rstd]
        _launch(rows_kernel, (dtype, centered), extents, 3, *arrays, eps)
    return out, (mean, rstd)


def _standardized(x: Any, extents: Extents, eps: float, centered: bool) -> tuple[Any, Any]:
    """What a weight multiplies, seen as ``extents``, and the reciprocal standard deviations."""
    x = reshape(x, extents)
    if centered:
        x = x - np.mean(x, axis=(2, 3), keepdims=True)
    rstd = 1 / np.sqrt(np.mean(x * x, axis=(2, 3), keepdims=True) + eps)
    return x * rstd, rstd


def _groups_vjp_x(g, x, weight, meta_x, mean, rstd, extents, eps, centered):
    h, rstd = _standardized(x, extents, eps, centered)
    n = reshape(g, extents)
    if weight is not None:
        n = n * reshape(weight, (1, *extents[1:3], 1))
    along = np.mean(n * h, axis=(2, 3), keepdims=True)
    whole = np.mean(n, axis=(2, 3), keepdims=True) if centered else 0
    return reshape(rstd * (n - whole - h * along), meta_x.shape)


def _groups_vjp_weight(g, x, meta_weight, mean, rstd, extents, eps, centered):
    h, _ = _standardized(x, extents, eps, centered)
    return reshape(np.sum(reshape(g, extents) * h, axis=(0, 3)), meta_weight.shape)


def _groups_vjp_bias(g, meta_bias, extents):
    return reshape(np.sum(reshape(g, extents), axis=(0, 3)), meta_bias.shape)


normalize_groups.vjp(x=_groups_vjp_x, weight=_groups_vjp_weight, bias=_groups_vjp_bias)


@normalize_groups.vjp_kernel
def _groups_backward(call, mask, g, x=None, weight=None, mean=None, rstd=None):
    extents, centered = call.params["extents"], call.params["centered"]
    _, groups, channels, _ = extents
    width = groups * channels
    dtype = g.dtype
    g = _flat(g, dtype)
    found: list[Any] = [None, None, None]
    statistics = [mean, rstd] if centered else [rstd]
    if x is not None:
        x = _flat(x, dtype)
    if mask & 1:
        found[0] = np.zeros(call.metas[0].shape, dtype)
        weight = _per_channel("normalize_groups", "weight", weight, width, 1, dtype)
        if g.size:
            arrays = [g, x, weight, *statistics, found[0].ravel()]
            _launch(rows_backward_kernel, (dtype, centered), extents, 3, *arrays)
    if mask & 2:
        kind = "row_gradients" if centered else "rms_gradients"
        sums = np.zeros((2 if centered else 1, width), dtype)
        if g.size:
            _launch(channel_sums_kernel, (kind, dtype), extents, 2, x, g, *statistics, sums)
        found[1] = sums[-1].reshape(call.metas[1].shape)
        if mask & 4:
            found[2] = sums[0].reshape(call.metas[2].shape).copy()
    elif mask & 4:
        sums = np.zeros((1, width), dtype)
        if g.size:
            _launch(channel_sums_kernel, ("total", dtype), extents, 1, g, sums)
        found[2] = sums[0].reshape(call.metas[2].shape)
    return found


def _trailing(operation: str, x: Any, normalized_shape: Any, parameters: dict) -> Extents:
    """How ``x`` is seen for a normalization over its last axes."""
    shape = (
        (int(normalized_shape),)
        if isinstance(normalized_shape, int | np.integer)
        else tuple(int(n) for n in normalized_shape)
    )
    lead = len(x.shape) - len(shape)
    if not shape or lead < 0 or tuple(x.shape[lead:]) != shape:
        raise NumgradValueError(
            f"{operation}: an operand of shape {tuple(x.shape)} does not end in normalized_shape "
            f"{shape}; give the lengths of its last axes"
        )
    for name, value in parameters.items():
        if value is not None and tuple(np.shape(value)) != shape:
            raise NumgradValueError(
                f"{operation}: {name} has shape {tuple(np.shape(value))}, expected "
                f"normalized_shape {shape}"
            )
    return (prod(x.shape[:lead]), 1, prod(shape), 1)


@composite(method=False)
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalize over the last axes: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    ``normalized_shape`` gives the lengths of these axes; ``weight`` and ``bias`` have that shape.
    """
    x = as_operand(x)
    extents = _trailing("layer_norm", x, normalized_shape, {"weight": weight, "bias": bias})
    return normalize_groups(x, weight, bias, extents=extents, eps=eps)


@composite(method=False)
def rms_norm(x, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last axes: ``x / sqrt(mean(x**2) + eps) * weight``.

    ``eps=None`` is the machine epsilon of the operand's dtype.
    """
    x = as_operand(x)
    extents = _trailing("rms_norm", x, normalized_shape, {"weight": weight})
    if eps is None:
        eps = float(np.finfo(np.result_type(x.dtype, np.float32)).eps)
    return normalize_groups(x, weight, None, extents=extents, eps=eps, centered=False)


@composite(method=False)
def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalize each of ``num_groups`` groups of channels (axis 1) of each example (axis 0)."""
    x = as_operand(x)
    if len(x.shape) < 2:
        raise NumgradValueError(
            f"group_norm: an operand of shape {tuple(x.shape)} has no axis of channels; give it "
            "shape (examples, channels, ...)"
        )
    outer, width, *inner = x.shape
    if num_groups < 1 or width % num_groups:
        raise NumgradValueError(
            f"group_norm: {width} channels (axis 1 of shape {tuple(x.shape)}) cannot be split "
            f"into {num_groups} equal groups"
        )
    extents = (outer, num_groups, width // num_groups, prod(inner))
    return normalize_groups(x, weight, bias, extents=extents, eps=eps)


# ------------------------------------------------------------------------ over a whole batch


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
        _launch(channel_map_kernel, ("scale", x.dtype), extents, 1, *arrays)
    return out


def _gradient_sums(
    x: np.ndarray, g: np.ndarray, mean: np.ndarray, extents: Extents
) -> tuple[np.ndarray, np.ndarray]:
    """``g`` and ``g * (x - mean)`` summed in each channel."""
    sums = np.zeros((2, extents[2]), g.dtype)
    if g.size:
        kind = ("channel_gradients", g.dtype)
        _launch(channel_sums_kernel, kind, extents, 2, x.ravel(), g.ravel(), mean, sums)
    return sums[0], sums[1]


@primitive(
    method=False,
    outputs=True,
    auxiliaries=("rstd",),
    samples=[
        (((3, 2, 4), (2,), (2,)), {}),
        (((4, 3), (3,), (3,)), {}),
    ],
    errors=[(((3, 2), (3,), (2,)), {}, "NumgradValueError"), (((3,),), {}, "NumgradValueError")],
)
def batch_normalize(x, weight=None, bias=None, *, eps=1e-5):
    """Normalize each channel (axis 1) over the batch and everything after: result, mean, variance.

    The variance is the biased one, over the number of elements.
    """
    operation = "batch_normalize"
    extents = _channels(operation, x)
    dtype = _computing_dtype(operation, x, weight, bias)
    x = np.ascontiguousarray(x, dtype)
    width = extents[2]
    weight = _per_channel(operation, "weight", weight, width, 1, dtype)
    bias = _per_channel(operation, "bias", bias, width, 0, dtype)
    mean, variance = np.zeros((1, width), dtype), np.zeros((1, width), dtype)
    if x.size:
        count = dtype.type(x.size // width)
        _launch(channel_sums_kernel, ("total", dtype), extents, 1, x.ravel(), mean)
        mean /= count
        kind = ("squares", dtype)
        _launch(channel_sums_kernel, kind, extents, 1, x.ravel(), mean.ravel(), variance)
        variance /= count
    rstd = 1 / np.sqrt(variance[0] + dtype.type(eps))
    out = _scaled(x, mean[0], rstd * weight, bias, extents)
    return (out, mean[0], variance[0]), (rstd,)


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
def _batch_backward(call, mask, g, x=None, weight=None, y=None, rstd=None):
    meta = call.metas[0]
    extents = _channels("batch_normalize", meta)
    width = extents[2]
    g, g_mean, g_variance = g
    dtype = g.dtype
    g = np.ascontiguousarray(g)
    found: list[Any] = [None, None, None]
    if x is None:  # the bias alone
        sums = np.zeros((1, width), dtype)
        if g.size:
            _launch(channel_sums_kernel, ("total", dtype), extents, 1, g.ravel(), sums)
        found[2] = sums[0].reshape(call.metas[2].shape)
        return found
    x, mean = np.ascontiguousarray(x, dtype), y[1]
    whole, along = _gradient_sums(x, g, mean, extents)
    if mask & 1:
        count = dtype.type(max(g.size // max(width, 1), 1))
        scale = rstd * _per_channel("batch_normalize", "weight", weight, width, 1, dtype)
        slope = (2 * g_variance - scale * rstd * rstd * along) / count
        shift = (g_mean - scale * whole) / count
        found[0] = np.empty(meta.shape, dtype)
        if g.size:
            arrays = (x.ravel(), g.ravel(), mean, scale, slope, shift, found[0].ravel())
            _launch(channel_map_kernel, ("combine", dtype), extents, 2, *arrays)
    if mask & 2:
        found[1] = (along * rstd).reshape(call.metas[1].shape)
    if mask & 4:
        found[2] = whole.reshape(call.metas[2].shape).copy()
    return found


@primitive(
    method=False,
    samples=[
        (((3, 2, 4), (2,), (2,), (2,), (2,)), {}),
        (((4, 3), (3,), (3,), (3,), (3,)), {"eps": 0.1}),
    ],
    domain=(0.2, 2.0),  # variances are positive
    errors=[(((3, 2), (3,), (3,), (2,), (2,)), {}, "NumgradValueError")],
)
def normalize_by(x, mean, variance, weight=None, bias=None, *, eps=1e-5):
    """``(x - mean) / sqrt(variance + eps) * weight + bias``, all by channels (axis 1)."""
    operation = "normalize_by"
    extents = _channels(operation, x)
    dtype = _computing_dtype(operation, x, mean, variance, weight, bias)
    width = extents[2]
    mean = _per_channel(operation, "mean", mean, width, 0, dtype)
    variance = _per_channel(operation, "variance", variance, width, 1, dtype)
    weight = _per_channel(operation, "weight", weight, width, 1, dtype)
    bias = _per_channel(operation, "bias", bias, width, 0, dtype)
    scale = weight / np.sqrt(variance + dtype.type(eps))
    return _scaled(np.ascontiguousarray(x, dtype), mean, scale, bias, extents)


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
def _by_backward(call, mask, g, x=None, mean=None, variance=None, weight=None):
    extents = _channels("normalize_by", call.metas[0])
    width = extents[2]
    dtype = g.dtype
    g = np.ascontiguousarray(g)
    zeros = np.zeros(width, dtype)
    found: list[Any] = [None] * 5
    scale = rstd = zeros
    if variance is not None:
        rstd = 1 / np.sqrt(_flat(variance, dtype) + dtype.type(call.params["eps"]))
        scale = rstd * _per_channel("normalize_by", "weight", weight, width, 1, dtype)
    if mask & 1:
        found[0] = _scaled(g, zeros, scale, zeros, extents)
    if x is not None:
        moved = _flat(mean, dtype)
        whole, along = _gradient_sums(np.ascontiguousarray(x, dtype), g, moved, extents)
    else:
        whole, along = np.zeros((1, width), dtype), zeros
        if mask & ~1 and g.size:
            _launch(channel_sums_kernel, ("total", dtype), extents, 1, g.ravel(), whole)
        whole = whole[0]
    values = (None, -scale * whole, -0.5 * scale * rstd * rstd * along, along * rstd, whole)
    for k in range(1, 5):
        if mask >> k & 1:
            found[k] = np.array(values[k]).reshape(call.metas[k].shape)
    return found
