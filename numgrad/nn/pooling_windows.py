"""Pooling: one number for each of many windows over the last one or two axes.

Along each axis windows slide, or divide it into parts. All axes before them are stacks of images.

Note [Pooling in two steps]
---------------------------
A mean of a box is that of the means of its slices, and so is a largest element of largest elements.
The divisor of a mean is a product of one factor for each axis. Of equal elements the first slice
comes first, and in it the first place: the order of the flattened volume. In the second step the
other two axes are one, along which windows are ``EACH`` element.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

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

_ELEMENT_NS = 1.5
_INT64 = np.dtype(np.int64)


class Sliding(NamedTuple):
    """Windows of one length at regular distances along an axis.

    ``padded`` says whether the padding counts as elements of a mean; ``divisor`` is what sums are
    divided by instead of their number.
    """

    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    ceil_mode: bool = False
    padded: bool = True
    divisor: int | None = None

    def count_along(self, name: str, lengths: tuple[int, ...], axis: int) -> int:
        """Number of windows; with ``ceil_mode`` also one that begins but does not end."""
        n, k, s, p, d = lengths[axis], self.kernel, self.stride, self.padding, self.dilation
        free = n + 2 * p - d * (k - 1) - 1
        count = (free + (s - 1 if self.ceil_mode else 0)) // s + 1
        if self.ceil_mode and (count - 1) * s >= n + p:  # it would begin behind the input
            count -= 1
        if count < 1 or n < 1:
            raise NumgradValueError(
                f"{name}: a window of {k} elements {d} apart does not fit into axis {axis} of "
                f"{lengths} with padding {p}; use a smaller window or more padding"
            )
        return count

    def bounds(self, table: np.ndarray, n: int) -> None:
        """Write first places, numbers of elements, and divisors."""
        k, s, p, d = self.kernel, self.stride, self.padding, self.dilation
        starts = np.arange(len(table)) * s - p
        first, elements, divisors = table.T
        first[:] = starts if d == 1 else np.where(starts < 0, starts % d, starts)
        np.maximum(first, 0, out=first)
        elements[:] = (np.minimum(starts + ((k - 1) * d + 1), n) - first + (d - 1)) // d
        if self.divisor is not None:
            divisors[:] = self.divisor
        else:
            divisors[:] = np.minimum(n + p - starts, k) if self.padded else elements


class Parts(NamedTuple):
    """Windows that divide an axis into parts of equal length, as nearly as can be."""

    number: int | None

    def count_along(self, name: str, lengths: tuple[int, ...], axis: int) -> int:
        """Number of windows: that of the elements for None."""
        return lengths[axis] if self.number is None else self.number

    def bounds(self, table: np.ndarray, n: int) -> None:
        """Write first places, numbers of elements, and the same as divisors."""
        edges, m = np.arange(len(table) + 1) * n, len(table)
        table[:, 0] = edges[:-1] // max(m, 1)
        table[:, 1] = -(-edges[1:] // max(m, 1)) - table[:, 0]
        table[:, 2] = table[:, 1]


Axis = tuple[Any, ...]
"""Windows along an axis as parameters of operations are: the fields of one of both."""
EACH = tuple(Sliding(1))
"""Each element by itself."""


def _along(axis: Axis) -> Sliding | Parts:
    return Parts(*axis) if len(axis) == 1 else Sliding(*axis)


def _launch(step: str, dtype: np.dtype, images: int, work: int, *arguments: Any) -> None:
    entry = threads.choose(
        partial(pooling_kernel, step, dtype, False),
        partial(pooling_kernel, step, dtype, True),
        images * work * _ELEMENT_NS if images > 1 else 0.0,
    )
    entry(*arguments, images)


def _flat(x: np.ndarray) -> np.ndarray:
    return (x if x.flags.c_contiguous else np.ascontiguousarray(x)).ravel()


def counts(name: str, lengths: tuple[int, ...], windows: tuple[Axis, ...]) -> tuple[int, ...]:
    """Numbers of windows along the axes, of these lengths."""
    return tuple(_along(w).count_along(name, lengths, axis) for axis, w in enumerate(windows))


class _Plan(NamedTuple):
    """Windows of images of one shape."""

    shape: tuple[int, ...]
    rows: np.ndarray
    """First place, number of elements, divisor of each window; likewise of columns."""
    columns: np.ndarray
    steps: np.ndarray
    """Distances of neighbours in a window."""
    elements: int
    """In all windows."""


def _new_plan(name: str, lengths: tuple[int, ...], windows: tuple[Axis, ...]) -> _Plan:
    shape = counts(name, lengths, windows)
    tables = [np.array([[0, 1, 1]])]
    for axis, (n, m, along) in enumerate(zip(lengths, shape, windows, strict=True)):
        table = np.empty((m, 3), np.int64)
        _along(along).bounds(table, n)
        if m and table[:, 1].min() < 1:
            raise NumgradValueError(
                f"{name}: a window lies outside of axis {axis} of {lengths}, {_along(along)}; "
                "use less padding or dilation"
            )
        tables.append(table)
    rows, columns = tables[-2:]
    steps = np.array((1, *(getattr(_along(w), "dilation", 1) for w in windows))[-2:])
    return _Plan(shape, rows, columns, steps, int(rows[:, 1].sum() * columns[:, 1].sum()))


_kept_plan = lru_cache(256)(_new_plan)


def _plan(name: str, lengths: tuple[int, ...], windows: tuple[Axis, ...]) -> _Plan:
    """The windows, kept unless they are many."""
    return (_kept_plan if max(lengths) < 10_000 else _new_plan)(name, lengths, windows)


# ------------------------------------------------------------------------------------ largest


def _no_order(name: str, dtype: np.dtype) -> NumgradTypeError:
    return NumgradTypeError(f"{name}: elements of dtype {dtype} have no order; use real numbers")


def _name(kind: str, windows: tuple[Axis, ...]) -> str:
    return f"{'adaptive_' * (len(windows[0]) == 1)}{kind}_pool{len(windows)}d"


def _search(x: np.ndarray, windows: tuple[Axis, ...]) -> tuple[np.ndarray, np.ndarray]:
    rank, name = len(windows), _name("max", windows)
    check_dtype("max_pool", x.dtype)
    if x.dtype.kind not in "iuf":
        raise _no_order(name, x.dtype)
    lead, lengths = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
    plan = _plan(name, lengths, windows)
    y = np.empty((*lead, *plan.shape), x.dtype)
    indices = np.empty(y.shape, np.int64)
    _launch(
        "largest", x.dtype, prod(lead), plan.elements, _flat(x), y.ravel(), indices.ravel(),
        plan.rows, plan.columns, plan.steps, lengths[-1], prod(lengths),
    )  # fmt: skip
    return y, indices


_POOLS = [
    (((2, 2, 5),), {"windows": ((2, 2, 0, 1, True),)}),
    (((3, 5, 4),), {"windows": ((3, 2, 1, 1), (2, 1, 0, 2))}),
    (((2, 5, 3),), {"windows": ((3,), (None,))}),
]


@primitive(internal=True, method=False, auxiliaries=("indices",), samples=_POOLS, real_only=True)
def max_pool(x, *, windows):
    """Largest element of each window; of equal ones the first gets the gradient."""
    y, indices = _search(x, windows)
    return y, (indices,)


@primitive(internal=True, method=False, differentiable=False, samples=_POOLS)
def max_pool_indices(x, *, windows):
    """Place, in the flattened image, of the largest element of each window."""
    return _search(x, windows)[1]


def _pool_result(x: Meta, windows: tuple[Axis, ...], kind: str = "max") -> Meta:
    name, rank = _name(kind, windows), len(windows)
    if kind == "max" and x.dtype.kind not in "iuf":
        raise _no_order(name, x.dtype)
    if kind == "avg" and x.dtype.kind not in "fc":
        raise _not_floating(name, x.dtype)
    lead = x.shape[: len(x.shape) - rank]
    return Meta((*lead, *counts(name, tuple(x.shape[len(lead) :]), windows)), x.dtype)


@max_pool.shape
def _max_pool_result(x, *, windows):
    result = _pool_result(x, windows)
    return result, (Meta(result.shape, _INT64),)


max_pool_indices.shape(lambda x, *, windows: Meta(_pool_result(x, windows).shape, _INT64))


def _flattened(x: Any, rank: int) -> Any:
    """``x`` with the axes of each image merged into one."""
    shape = tuple(x.shape)
    lead = shape[: len(shape) - rank]
    return reshape(x, (*lead, prod(shape[len(lead) :])))


def _max_pool_vjp(g, indices, meta_x, windows):
    rank = len(windows)
    lead = meta_x.shape[: len(meta_x.shape) - rank]
    shape = (*lead, prod(meta_x.shape[len(lead) :]))
    back = gather_along_backward(
        _flattened(g, rank), _flattened(indices, rank), shape=shape, axis=len(lead)
    )
    return reshape(back, meta_x.shape)


def _max_pool_tangent(t_x, y, indices, windows):
    rank = len(windows)
    tangents = gather_along(_flattened(t_x, rank), _flattened(indices, rank), axis=-1)
    return reshape(tangents, y.shape)


max_pool.vjp(x=_max_pool_vjp).jvp(_max_pool_tangent)


@max_pool.vjp_kernel
def _max_pool_backward(call, mask, g, indices):
    shape = call.metas[0].shape
    rank = len(call.params["windows"])
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
    params={"windows": ((2, 2),)},
)


# ------------------------------------------------------------------------------------ average


def _run(
    step: str, x: np.ndarray, windows: tuple[Axis, ...], lengths: tuple[int, ...]
) -> np.ndarray:
    """The step for images whose axes have these lengths, before or after it."""
    check_dtype(step, x.dtype)
    lead = x.shape[: x.ndim - len(windows)]
    plan, area = _plan(_name("avg", windows), lengths, windows), prod(lengths)
    out = np.empty((*lead, *(plan.shape if step == "average" else lengths)), x.dtype)
    _launch(
        step, x.dtype, prod(lead), area + plan.elements, _flat(x), out.ravel(), plan.rows,
        plan.columns, lengths[-1], area,
    )  # fmt: skip
    return out


_AVERAGES = ((3, 1, 1, 1, False, False), (2, 2, 0, 1, True, False))


@primitive(
    internal=True,
    method=False,
    linear=True,
    samples=[
        (((2, 4, 3),), {"windows": _AVERAGES}),
        (((2, 3, 4),), {"windows": ((2, 1, 0, 1, False, True, 3),)}),
        (((2, 3, 4),), {"windows": ((2,), (None,))}),
    ],
)
def average_windows(x, *, windows):
    """Sum of each window over its divisor; ``windows`` has an ``Axis`` for each last axis."""
    name = _name("avg", windows)
    if x.dtype.kind not in "fc":
        raise _not_floating(name, x.dtype)
    return _run("average", x, windows, x.shape[x.ndim - len(windows) :])


@primitive(
    internal=True,
    method=False,
    linear=True,
    samples=[
        (((2, 4, 2),), {"windows": _AVERAGES, "shape": (4, 3)}),
        (((2, 3),), {"windows": ((3,),), "shape": (4,)}),
    ],
)
def spread_windows(x, *, windows, shape):
    """An element for each window, over its divisor, added to all places in it."""
    return _run("spread", x, windows, shape)


average_windows.shape(lambda x, *, windows: _pool_result(x, windows, "avg"))


def _not_floating(name: str, dtype: np.dtype) -> NumgradTypeError:
    return NumgradTypeError(f"{name}: needs a floating dtype, got {dtype}; convert it with astype")


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


def sliding_average(
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    padded: bool,
    divisor: int | None,
) -> tuple[Axis, ...]:
    """Windows of an average, whose divisors are their number of elements unless one is given."""
    return tuple(
        (k, s, p, 1, ceil_mode, padded, divisor if axis == 0 or divisor is None else 1)
        for axis, (k, s, p) in enumerate(zip(kernel, stride, padding, strict=True))
    )


def check_divisor(operation: str, divisor: Any) -> None:
    """Raise unless ``divisor`` is an integer to divide by, or None."""
    if divisor is not None and as_index(operation, divisor, "divisor_override") == 0:
        raise NumgradValueError(f"{operation}: divisor_override must not be 0")


def parts(
    operation: str, output_size: Any, rank: int, lead: tuple[int, ...] = ()
) -> tuple[Axis, ...]:
    """The parts that axes are divided into; None is as many as there are elements."""
    several = isinstance(output_size, tuple | list) or getattr(output_size, "ndim", 0) == 1
    numbers = tuple(output_size) if several else (output_size,) * rank
    checked = along_axes(
        operation, "output_size", tuple(0 if m is None else m for m in numbers), rank, 0
    )
    if prod((*lead, *checked)) >= 2**60:
        raise NumgradValueError(
            f"{operation}: an output_size of {output_size} is more than memory can have"
        )
    numbers = numbers if len(numbers) == rank else numbers * rank
    return tuple((None if m is None else n,) for m, n in zip(numbers, checked, strict=True))


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
        parts(type(self).__name__, options["output_size"], self.rank)
