"""Pooling: one number for each of many windows that slide over the last axes.

Windows cover the last one or two axes; all axes before them are stacks of images.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import unchanged
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels.windows import pooling_kernel
from numgrad.nn.applied import Applied, along_axes
from numgrad.operations.shape import as_index, as_operand, reshape
from numgrad.operations.take import gather_along, gather_along_backward

Axis = tuple[tuple[int, int, int], ...]
"""The windows along an axis: start, stop, divisor."""


_ELEMENT_NS = 1.5


_INT64 = np.dtype(np.int64)


def _launch(step: str, dtype: np.dtype, images: int, work: int, *arguments: Any) -> None:
    entry = threads.choose(
        partial(pooling_kernel, step, dtype, False),
        partial(pooling_kernel, step, dtype, True),
        images * work * _ELEMENT_NS if images > 1 else 0.0,
    )
    entry(*arguments, images)


def _flat(x: np.ndarray) -> np.ndarray:
    return (x if x.flags.c_contiguous else np.ascontiguousarray(x)).ravel()


# ------------------------------------------------------------------------------------ largest


@lru_cache(256)
def _windows(
    name: str,
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows along rows and columns, (first place, number of elements), and their steps."""
    tables = []
    for axis, (n, k, s, p, d) in enumerate(
        zip(lengths, kernel, stride, padding, dilation, strict=True)
    ):
        count = output_length(name, lengths, axis, k, s, p, d, ceil_mode)
        starts = np.arange(count) * s - p
        first = np.where(starts < 0, starts % d, starts)
        counts = (np.minimum(starts + (k - 1) * d + 1, n) - first + d - 1) // d
        if counts.min() < 1:
            raise NumgradValueError(
                f"{name}: a window of {k} elements {d} apart lies outside of axis {axis} of "
                f"{lengths}; use less padding or dilation"
            )
        tables.append(np.stack([first, counts], axis=1))
    rows, columns = (np.array([[0, 1]]), *tables)[-2:]
    return rows, columns, np.array((1, *dilation)[-2:])


def output_length(
    name: str, lengths: tuple[int, ...], axis: int, k: int, s: int, p: int, d: int, ceil_mode: bool
) -> int:
    """Number of windows along an axis; with ``ceil_mode`` also one that begins but does not end."""
    n = lengths[axis]
    free = n + 2 * p - d * (k - 1) - 1
    count = (free + (s - 1 if ceil_mode else 0)) // s + 1
    if ceil_mode and (count - 1) * s >= n + p:  # it would begin behind the input
        count -= 1
    if count < 1 or n < 1:
        raise NumgradValueError(
            f"{name}: a window of {k} elements {d} apart does not fit into axis {axis} of "
            f"{lengths} with padding {p}; use a smaller window or more padding"
        )
    return count


def _no_order(rank: int, dtype: np.dtype) -> NumgradTypeError:
    return NumgradTypeError(
        f"max_pool{rank}d: elements of dtype {dtype} have no order; use real numbers"
    )


def _search(x: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    rank = len(options["kernel"])
    check_dtype("max_pool", x.dtype)
    if x.dtype.kind not in "iuf":
        raise _no_order(rank, x.dtype)
    lead, lengths = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    rows, columns, steps = _windows(f"max_pool{rank}d", lengths, **options)
    y = np.empty((*lead, *(len(rows), len(columns))[-rank:]), x.dtype)
    indices = np.empty(y.shape, np.int64)
    work = len(rows) * len(columns) * prod(options["kernel"])
    _launch(
        "largest", x.dtype, prod(lead), work, _flat(x), y.ravel(), indices.ravel(), rows, columns,
        steps, lengths[-1], prod(lengths),
    )  # fmt: skip
    return y, indices


_POOLS = [
    (((2, 2, 5),), {"kernel": (2,), "stride": (2,), "padding": (0,), "dilation": (1,),
                    "ceil_mode": True}),
    (((3, 5, 4),), {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2),
                    "ceil_mode": False}),
]  # fmt: skip


@primitive(internal=True, method=False, auxiliaries=("indices",), samples=_POOLS, real_only=True)
def max_pool(x, *, kernel, stride, padding, dilation, ceil_mode):
    """Largest element of each window; of equal ones the first gets the gradient."""
    y, indices = _search(
        x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )
    return y, (indices,)


@primitive(internal=True, method=False, differentiable=False, samples=_POOLS)
def max_pool_indices(x, *, kernel, stride, padding, dilation, ceil_mode):
    """Place, in the flattened image, of the largest element of each window."""
    return _search(
        x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )[1]


def _pool_result(x: Meta, *, ceil_mode: bool, **options: Any) -> Meta:
    rank = len(options["kernel"])
    if x.dtype.kind not in "iuf":
        raise _no_order(rank, x.dtype)
    lengths = x.shape[x.ndim - rank :]
    windows = [options[name] for name in ("kernel", "stride", "padding", "dilation")]
    after = [
        output_length(f"max_pool{rank}d", lengths, axis, k, s, p, d, ceil_mode)
        for axis, (k, s, p, d) in enumerate(zip(*windows, strict=True))
    ]
    return Meta((*x.shape[: x.ndim - rank], *after), x.dtype)


@max_pool.shape
def _max_pool_result(x, *, kernel, stride, padding, dilation, ceil_mode):
    result = _pool_result(
        x, kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )
    return result, (Meta(result.shape, _INT64),)


max_pool_indices.shape(lambda x, **options: Meta(_pool_result(x, **options).shape, _INT64))


def _flattened(x: Any, rank: int) -> Any:
    """``x`` with the axes of each image merged into one."""
    shape = tuple(x.shape)
    lead = shape[: len(shape) - rank]
    return reshape(x, (*lead, prod(shape[len(lead) :])))


def _max_pool_vjp(g, indices, meta_x, kernel):
    rank = len(kernel)
    lead = meta_x.shape[: len(meta_x.shape) - rank]
    shape = (*lead, prod(meta_x.shape[len(lead) :]))
    back = gather_along_backward(
        _flattened(g, rank), _flattened(indices, rank), shape=shape, axis=len(lead)
    )
    return reshape(back, meta_x.shape)


def _max_pool_tangent(t_x, y, indices, kernel):
    rank = len(kernel)
    tangents = gather_along(_flattened(t_x, rank), _flattened(indices, rank), axis=-1)
    return reshape(tangents, y.shape)


max_pool.vjp(x=_max_pool_vjp).jvp(_max_pool_tangent)


@max_pool.vjp_kernel
def _max_pool_backward(call, mask, g, indices):
    shape = call.metas[0].shape
    rank = len(call.params["kernel"])
    images, area = prod(shape[:-rank]), prod(shape[-rank:])
    gx = np.empty(shape, g.dtype)
    outputs = prod(g.shape[-rank:])
    _launch(
        "put_back", g.dtype, images, area + outputs, _flat(g), _flat(indices), gx.ravel(), area,
        outputs,
    )  # fmt: skip
    return [gx]


max_pool.kink(
    x=([[1.0, 1.0, np.nan, 3.0, 2.0, np.nan]], [[1, 0, 1, 0, 0, 1]]),
    params={"kernel": (2,), "stride": (2,), "padding": (0,), "dilation": (1,), "ceil_mode": False},
)


# ------------------------------------------------------------------------------------ average


@lru_cache(256)
def _as_arrays(windows: tuple[Axis, ...]) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = (((0, 1, 1),), *windows)[-2:]
    return np.array(rows, np.int64).reshape(-1, 3), np.array(columns, np.int64).reshape(-1, 3)


def _run(step: str, x: np.ndarray, shape: tuple[int, ...], windows: tuple[Axis, ...]) -> np.ndarray:
    """The step for images whose axes have lengths ``shape``, before or after it."""
    check_dtype(step, x.dtype)
    rank = len(windows)
    lead = x.shape[: x.ndim - rank]
    after = tuple(map(len, windows)) if step == "average" else shape
    out = np.empty((*lead, *after), x.dtype)
    area = prod(shape)
    if not area:
        out[...] = 0
        return out
    rows, columns = _as_arrays(windows)
    covered = prod(sum(stop - start for start, stop, _ in axis) for axis in windows)
    _launch(
        step, x.dtype, prod(lead), area + covered, _flat(x), out.ravel(), rows, columns, shape[-1],
        area,
    )  # fmt: skip
    return out


_AVERAGES = (((0, 2, 2), (1, 4, 3), (3, 4, 2)), ((0, 1, 2), (2, 3, 1)))


@primitive(
    internal=True,
    method=False,
    linear=True,
    samples=[(((2, 4, 3),), {"windows": _AVERAGES}), (((2, 3, 4),), {"windows": _AVERAGES[:1]})],
)
def average_windows(x, *, windows):
    """Sum of each window over its divisor; ``windows`` has an ``Axis`` for each last axis."""
    if x.dtype.kind not in "fc":
        raise _not_floating(len(windows), x.dtype)
    return _run("average", x, x.shape[x.ndim - len(windows) :], windows)


@primitive(
    internal=True,
    method=False,
    linear=True,
    samples=[
        (((2, 3, 2),), {"windows": _AVERAGES, "shape": (4, 3)}),
        (((2, 3),), {"windows": _AVERAGES[:1], "shape": (4,)}),
    ],
)
def spread_windows(x, *, windows, shape):
    """An element for each window, over its divisor, added to all places in it."""
    return _run("spread", x, shape, windows)


@average_windows.shape
def _average_result(x, *, windows):
    if x.dtype.kind not in "fc":
        raise _not_floating(len(windows), x.dtype)
    return Meta((*x.shape[: x.ndim - len(windows)], *map(len, windows)), x.dtype)


def _not_floating(rank: int, dtype: np.dtype) -> NumgradTypeError:
    return NumgradTypeError(
        f"avg_pool{rank}d: needs a floating dtype, got {dtype}; convert it with astype"
    )


spread_windows.shape(
    lambda x, *, windows, shape: Meta((*x.shape[: x.ndim - len(windows)], *shape), x.dtype)
)


average_windows.vjp(
    x=lambda g, meta_x, windows: spread_windows(
        g, windows=windows, shape=tuple(meta_x.shape[len(meta_x.shape) - len(windows) :])
    )
)


spread_windows.vjp(x=lambda g, windows: average_windows(g, windows=windows))


for _op in (average_windows, max_pool, max_pool_indices, spread_windows):
    _op.batch(unchanged)


def as_image(operation: str, rank: int, x: Any) -> Any:
    """``x`` as an operand, with channels and ``rank`` axes of positions."""
    x = as_operand(x)
    if len(x.shape) not in (rank + 1, rank + 2):
        raise NumgradValueError(
            f"{operation}: needs an input with {rank + 2} axes (samples, channels, positions), or "
            f"{rank + 1} for one sample; got shape {tuple(x.shape)}"
        )
    return x


def windows_along(
    operation: str, rank: int, kernel_size: Any, stride: Any, padding: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, stride and padding along each axis."""
    kernel = along_axes(operation, "kernel_size", kernel_size, rank, 1)
    strides = kernel if stride is None else along_axes(operation, "stride", stride, rank, 1)
    return kernel, strides, along_axes(operation, "padding", padding, rank, 0)


def spans(kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """How far a window reaches along each axis."""
    return tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))


def check_padding(operation: str, padding: tuple[int, ...], reach: tuple[int, ...]) -> None:
    """Raise unless each window, half of it outside at most, has an element of the input."""
    if any(2 * p > r for p, r in zip(padding, reach, strict=True)):
        raise NumgradValueError(
            f"{operation}: padding {padding} is more than half of what a window spans, {reach}; "
            "use less padding or a larger window"
        )


@lru_cache(1024)
def windows_of_average(
    name: str,
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> tuple[Axis, ...]:
    """Windows of an average, whose divisors are their number of elements unless one is given."""
    windows = []
    for axis, (n, k, s, p) in enumerate(zip(lengths, kernel, stride, padding, strict=True)):
        count = output_length(name, lengths, axis, k, s, p, 1, ceil_mode)
        along = []
        for start in range(-p, -p + count * s, s):
            lo, hi = max(start, 0), min(start + k, n)
            size = min(start + k, n + p) - start if count_include_pad else hi - lo
            if divisor is not None:
                size = divisor if axis == 0 else 1
            along.append((lo, max(lo, hi), size))
        windows.append(tuple(along))
    return tuple(windows)


def check_divisor(operation: str, divisor: Any) -> None:
    """Raise unless ``divisor`` is an integer to divide by, or None."""
    if divisor is not None and as_index(operation, divisor, "divisor_override") == 0:
        raise NumgradValueError(f"{operation}: divisor_override must not be 0")


@lru_cache(1024)
def divided(lengths: tuple[int, ...], output: tuple[int, ...]) -> tuple[Axis, ...]:
    """Windows that divide each axis into parts of equal length, as nearly as can be."""
    return tuple(
        tuple(
            (k * n // m, -(-(k + 1) * n // m), -(-(k + 1) * n // m) - k * n // m) for k in range(m)
        )
        for n, m in zip(lengths, output, strict=True)
    )


def parts(operation: str, output_size: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Into how many parts axes of these lengths are divided; None keeps the length."""
    rank = len(lengths)
    several = isinstance(output_size, tuple | list) or getattr(output_size, "ndim", 0) == 1
    counts = tuple(output_size) if several else (output_size,) * rank
    if len(counts) == rank:
        counts = tuple(n if m is None else m for m, n in zip(counts, lengths, strict=True))
    return along_axes(operation, "output_size", counts, rank, 0)


_LEAST = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


class _Pool(Applied):
    """Base of layers with windows."""

    shown = ("kernel_size", "stride", "padding")
    rank = 2

    def _check_options(self, options: dict[str, Any]) -> None:
        if options["stride"] is None:
            options["stride"] = options["kernel_size"]
        name = type(self).__name__
        sizes = {
            key: along_axes(name, key, options.get(key, 1), self.rank, least)
            for key, least in _LEAST.items()
        }
        reach = spans(sizes["kernel_size"], sizes["dilation"])
        check_padding(name, sizes["padding"], reach)
        check_divisor(name, options.get("divisor_override"))


class AdaptivePool(Applied):
    """Base of layers that divide axes into parts."""

    rank = 2

    def _check_options(self, options: dict[str, Any]) -> None:
        parts(type(self).__name__, options["output_size"], (1,) * self.rank)
