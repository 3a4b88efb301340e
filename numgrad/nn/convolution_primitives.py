"""Convolutions over one or two axes, and the two operations that are their gradients.

Note [Three products]
---------------------
A convolution pairs input, weights and output in one trilinear form

    T(x, w, y) = sum of x[n, c, o * stride + k * dilation - before] w[m, c, k] y[n, m, o].

Leaving one of the three out gives an operation on the other two: ``convolution`` (the output),
``convolution_input`` (transposed convolution) and ``convolution_weight``. The gradients of each are
the two others, so derivatives of any order need nothing else. None of them conjugates; the formulas
do. Shapes and sizes: Note [Sizes of a convolution].

Note [Sizes of a convolution]
-----------------------------
Input ``x`` of shape ``(N, C, *in)``, weights ``w`` of shape ``(O, C / groups, *kernel)`` and output
``y`` of shape ``(N, O, *out)`` belong together if, along each axis,

    out = (in + before + after - dilation * (kernel - 1) - 1) // stride + 1.

Padding ``(before, after)`` may differ at both ends, and ``after`` may be negative: the input then
ends early. So every transposed convolution is the gradient of some convolution, whatever its output
padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.core.plan import MAX_PLANS
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.kernels import windows as conv
from numgrad.operations.matmul import conjugated
from numgrad.operations.reduce import sum

Shape = tuple[int, ...]


Pairs = tuple[tuple[int, int], ...]


_RUN = 64
"""Elements side by side that a copy should have at least."""


_BLOCK = 32
"""Samples side by side at most."""


_PRODUCT = 500_000
"""Multiplications up to which OpenBLAS keeps a product on one thread."""


_CACHED = 256 * 1024
"""Bytes of columns that stay in cache where each thread has its own."""


_CACHED_BY_ALL = 1024 * 1024
"""Bytes of columns of a product that BLAS shares out; larger ones need fewer packings."""


_CHUNKS = 16
"""Partial sums of the gradient of the weights at most."""


_MULTIPLY_NS = 0.03


_COPY_NS = 0.3


_NOGIL_NS = 100_000.0


def output_shape(
    x: Shape, w: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Shape:
    """Shape of the output ``y``: Note [Sizes of a convolution]."""
    name = f"conv{len(w) - 2}d"
    _check(name, x, w, stride, dilation, groups)
    out = []
    for n, k, s, (before, after), d in zip(x[2:], w[2:], stride, padding, dilation, strict=True):
        places = n + before + after - d * (k - 1) - 1
        if places < 0:
            raise NumgradValueError(
                f"{name}: a kernel of shape {w[2:]} with dilation {dilation} is larger than the "
                f"input of shape {x[2:]} with padding {padding}; use a smaller kernel, less "
                "dilation or more padding"
            )
        out.append(places // s + 1)
    return (x[0], w[0], *out)


class ConvolutionPlan:
    """Shapes, strips and kernels of the convolutions of three arrays."""

    def __init__(
        self,
        x: Shape,
        w: Shape,
        dtype: np.dtype,
        stride: Shape,
        padding: Pairs,
        dilation: Shape,
        groups: int,
    ) -> None:
        self.x, self.w, self.dtype = x, w, dtype
        self.y = output_shape(x, w, stride, padding, dilation, groups)
        self.empty = not (prod(x) and prod(w) and prod(self.y))
        if not self.empty:
            self._arrange(stride, padding, dilation, groups)

    def _arrange(self, stride: Shape, padding: Pairs, dilation: Shape, groups: int) -> None:
        """Choose blocks and strips: Note [Convolution through products]."""
        samples, outputs = self.y[:2]
        rows, places = (1, *self.y[2:])[-2:]
        covered = prod(self.w[1:])
        weights = outputs // groups * covered
        block = 1
        while block < min(samples, _BLOCK) and block * places < _RUN:
            block *= 2
        while block > 1 and weights * block * places > _PRODUCT:
            block //= 2
        block = min(block, samples)
        self.shared = weights * min(_RUN, samples * rows * places) <= _PRODUCT
        bytes_of_place = covered * block * self.dtype.itemsize
        if self.shared:
            most = min(_PRODUCT // (weights * block), _CACHED // bytes_of_place)
        elif covered == self.w[1] and rows * places == prod(self.x[2:]):
            most = rows * places  # the columns are the input
        else:
            most = _CACHED_BY_ALL // bytes_of_place
        segment = _even(places, max(most, 1))
        strip = _even(rows, max(most // places, 1))
        tasks = -(-samples // block) * groups
        two = len(self.w) == 4
        ones, zeros = (1,) * (not two), (0,) * (not two)
        sizes = (
            samples, self.x[1], *ones, *self.x[2:], outputs, *ones, *self.w[2:], *ones, *stride,
            *zeros, *(before for before, _ in padding), *ones, *dilation, groups, rows, places,
            block, strip,
        )  # fmt: skip
        self.chunks = (tasks, tasks, min(tasks, _CHUNKS) if self.shared else 1)
        self.sizes = [np.array([*sizes, count, segment], np.int64) for count in self.chunks]
        per_place = _MULTIPLY_NS * weights / covered + _COPY_NS
        self.work = samples * rows * places * groups * covered * per_place

    def _entry(self, kernel: Callable[..., Any]) -> Callable[..., None]:
        if self.shared:
            return threads.choose(
                partial(kernel, parallel=False, nogil=False),
                partial(kernel, parallel=True, nogil=True),
                self.work if self.chunks[0] > 1 else 0.0,
                released=partial(kernel, parallel=False, nogil=True),
            )
        return kernel(parallel=False, nogil=self.work > _NOGIL_NS)

    def _flat(self, x: np.ndarray) -> np.ndarray:
        plain = x.flags.c_contiguous and x.dtype == self.dtype
        return (x if plain else np.ascontiguousarray(x, self.dtype)).ravel()

    def forward(self, x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> np.ndarray:
        """The output ``y``."""
        y = np.empty(self.y, self.dtype)
        if self.empty:
            y[...] = 0 if b is None else b.reshape(-1, *(1,) * (len(self.y) - 2))
            return y
        bias = np.zeros(self.w[0], self.dtype) if b is None else self._flat(b)
        entry = self._entry(partial(conv.convolution_kernel, self.dtype))
        entry(self._flat(x), self._flat(w), bias, y.ravel(), self.sizes[0])
        return y

    def gradients(
        self, mask: int, g: np.ndarray, x: np.ndarray | None, w: np.ndarray | None
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Gradients of input (1 in the mask, needs ``w``) and weights (2, needs ``x``).

        Of complex operands the conjugates are expected.
        """
        if self.empty:
            gx, gw = (np.zeros(shape, self.dtype) for shape in (self.x, self.w))
            return (gx if mask & 1 else None), (gw if mask & 2 else None)
        nothing = np.empty(0, self.dtype)
        which = 2 if mask & 2 else 1
        gx = np.empty(self.x, self.dtype) if mask & 1 else None
        gw = np.zeros((self.chunks[which] if mask & 2 else 0, prod(self.w)), self.dtype)
        entry = self._entry(partial(conv.convolution_gradient_kernel, self.dtype))
        entry(
            mask,
            self._flat(g),
            nothing if x is None else self._flat(x),
            nothing if w is None else self._flat(w),
            nothing if gx is None else gx.ravel(),
            gw,
            self.sizes[which],
        )
        if not mask & 2:
            return gx, None
        return gx, (gw if len(gw) == 1 else gw[0].copy()).reshape(self.w)


plan = lru_cache(MAX_PLANS)(ConvolutionPlan)


def _even(length: int, most: int) -> int:
    """The length of parts of about equal length, at most ``most``."""
    return -(-length // -(-length // most))


def floating(name: str, *operands: np.ndarray | Meta | None) -> np.dtype:
    """The dtype that operands, not all of them integers, have together."""
    dtype = np.result_type(*[a.dtype for a in operands if a is not None])
    check_dtype(name, dtype)
    if dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: needs a floating dtype, got {dtype}; convert the operands with astype"
        )
    return dtype


def _check(name: str, x: Shape, w: Shape, stride: Shape, dilation: Shape, groups: int) -> None:
    rank = len(w) - 2
    if rank not in (1, 2) or len(x) != rank + 2:
        raise NumgradValueError(
            f"{name}: input of shape {x} and weight of shape {w} do not fit; the input needs axes "
            "(samples, channels, *positions) and the weight (outputs, channels / groups, *kernel), "
            "with one or two positions"
        )
    if not len(stride) == len(dilation) == rank or min(*stride, *dilation) < 1:
        raise NumgradValueError(
            f"{name}: stride and dilation must be at least 1 along each of {rank} axes, got "
            f"{stride} and {dilation}"
        )
    if groups < 1 or w[0] % groups or x[1] != w[1] * groups:
        raise NumgradValueError(
            f"{name}: {x[1]} channels of an input of shape {x} and a weight of shape {w} do not "
            f"fit for groups={groups}; the weight needs a shape (outputs, channels / groups, "
            "*kernel), outputs divisible by groups"
        )
    if min(w[2:]) < 1:
        raise NumgradValueError(f"{name}: the kernel of a weight of shape {w} is empty")


_GEOMETRIES = (
    # input, weights, output; parameters
    ((2, 2, 5), (3, 2, 3), (2, 3, 3), {"stride": (2,), "padding": ((1, 1),)}),
    ((2, 4, 4, 3), (2, 2, 2, 2), (2, 2, 4, 1), {"groups": 2, "dilation": (1, 2),
                                               "padding": ((0, 1), (0, 0))}),
    ((1, 2, 3, 4), (2, 2, 1, 1), (1, 2, 3, 4), {}),
    ((3, 1, 4, 5), (2, 1, 3, 2), (3, 2, 2, 2), {"stride": (1, 2), "padding": ((0, 0), (0, -1))}),
)  # fmt: skip


def _whole(options: dict, rank: int) -> dict:
    """All parameters of a geometry."""
    return {
        "stride": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "dilation": (1,) * rank,
        "groups": 1,
    } | options


def _samples(first: int, second: int, third: int | None, bias: bool) -> list:
    """Samples of an operation on two of input, weights and output; the third's sizes are given."""
    samples = []
    for *shapes, params in _GEOMETRIES:
        params = _whole(params, len(shapes[0]) - 2)
        operands = (shapes[first], shapes[second])
        if bias:
            operands = (*operands, shapes[1][:1])
        if third is not None:
            params["shape"] = shapes[third][2:]
        samples.append((operands, params))
    return samples


@primitive(internal=True, method=False, samples=_samples(0, 1, None, True), smooth=True)
def convolution(x, w, b, *, stride, padding, dilation, groups):
    """Correlation of samples with kernels, plus a bias unless that is None."""
    dtype = floating(f"conv{w.ndim - 2}d", x, w, b)
    geometry = plan(x.shape, w.shape, dtype, stride, padding, dilation, groups)
    _check_bias(w, b)
    return geometry.forward(x, w, b)


def _check_bias(w: Any, b: Any) -> None:
    if b is not None and (b.ndim != 1 or b.shape != w.shape[:1]):
        raise NumgradValueError(
            f"conv{w.ndim - 2}d: a bias of shape {b.shape} does not fit a weight of shape "
            f"{w.shape}; it needs a number for each of the {w.shape[0]} outputs"
        )


@convolution.shape
def _convolution_result(x, w, b, **geometry):
    dtype = floating(f"conv{w.ndim - 2}d", x, w, b)
    _check_bias(w, b)
    return Meta(output_shape(x.shape, w.shape, **geometry), dtype)


@primitive(
    internal=True, method=False, samples=_samples(2, 1, 0, False), bilinear=True, smooth=True
)
def convolution_input(out, w, *, shape, stride, padding, dilation, groups):
    """Transposed convolution: what ``convolution`` maps back to an input with axes ``shape``."""
    dtype = floating(f"conv_transpose{w.ndim - 2}d", out, w)
    x = (out.shape[0], w.shape[1] * groups, *shape)
    geometry = plan(x, w.shape, dtype, stride, padding, dilation, groups)
    _same_output(out, geometry.y)
    gx = geometry.gradients(1, out, None, w)[0]
    assert gx is not None
    return gx


@primitive(
    internal=True, method=False, samples=_samples(0, 2, 1, False), bilinear=True, smooth=True
)
def convolution_weight(x, out, *, shape, stride, padding, dilation, groups):
    """Correlation of inputs with outputs, at the places of a kernel with axes ``shape``."""
    dtype = floating("convolution_weight", x, out)
    w = (out.shape[1], x.shape[1] // groups, *shape)
    geometry = plan(x.shape, w, dtype, stride, padding, dilation, groups)
    _same_output(out, geometry.y)
    gw = geometry.gradients(2, out, x, None)[1]
    assert gw is not None
    return gw


@convolution_input.shape
def _input_result(out, w, *, shape, groups, **geometry):
    dtype = floating(f"conv_transpose{w.ndim - 2}d", out, w)
    x = (out.shape[0], w.shape[1] * groups, *shape)
    _same_output(out, output_shape(x, w.shape, groups=groups, **geometry))
    return Meta(x, dtype)


@convolution_weight.shape
def _weight_result(x, out, *, shape, groups, **geometry):
    dtype = floating("convolution_weight", x, out)
    w = (out.shape[1], x.shape[1] // groups, *shape)
    _same_output(out, output_shape(x.shape, w, groups=groups, **geometry))
    return Meta(w, dtype)


def _same_output(out: Any, shape: tuple[int, ...]) -> None:
    if out.ndim != len(shape) or out.shape != shape:
        raise NumgradValueError(
            f"convolution: an output of shape {out.shape} does not belong to input and weight, "
            f"whose output has shape {shape}"
        )


# ---------------------------------------------------------------------------------- gradients


convolution.vjp(
    x=lambda g, w, meta_x, stride, padding, dilation, groups: convolution_input(
        g, conjugated(w), shape=meta_x.shape[2:], stride=stride, padding=padding, dilation=dilation,
        groups=groups,
    ),
    w=lambda g, x, meta_w, stride, padding, dilation, groups: convolution_weight(
        conjugated(x), g, shape=meta_w.shape[2:], stride=stride, padding=padding, dilation=dilation,
        groups=groups,
    ),
    b=lambda g: sum(g, axis=(0, *range(2, g.ndim))),
)  # fmt: skip


convolution_input.vjp(
    out=lambda g, w, stride, padding, dilation, groups: convolution(
        g, conjugated(w), None, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
    w=lambda g, out, meta_w, stride, padding, dilation, groups: convolution_weight(
        g, conjugated(out), shape=meta_w.shape[2:], stride=stride, padding=padding,
        dilation=dilation, groups=groups,
    ),
)  # fmt: skip


convolution_weight.vjp(
    x=lambda g, out, meta_x, stride, padding, dilation, groups: convolution_input(
        conjugated(out), g, shape=meta_x.shape[2:], stride=stride, padding=padding,
        dilation=dilation, groups=groups,
    ),
    out=lambda g, x, stride, padding, dilation, groups: convolution(
        conjugated(x), g, None, stride=stride, padding=padding, dilation=dilation, groups=groups
    ),
)  # fmt: skip


@convolution.vjp_kernel
def _convolution_backward(call, mask, g, x=None, w=None):
    """Columns of the input and rearranged ``g`` serve both gradients."""
    gx = gw = None
    if mask & 3:
        metas, p = call.metas, call.params
        geometry = plan(
            metas[0].shape, metas[1].shape, call.results[0].dtype, p["stride"], p["padding"],
            p["dilation"], p["groups"],
        )  # fmt: skip
        gx, gw = geometry.gradients(
            mask & 3, g, None if x is None else conjugated(x), None if w is None else conjugated(w)
        )
    gb = np.asarray(sum(g, axis=(0, *range(2, g.ndim)))) if mask & 4 else None
    return [gx, gw, gb]


def _tangent(t_x, t_w, t_b, x, w, **geometry):
    return convolution(t_x, w, t_b, **geometry) + convolution(x, t_w, None, **geometry)


convolution.jvp(
    lambda t_x, t_w, t_b, x, w, stride, padding, dilation, groups: _tangent(
        t_x, t_w, t_b, x, w, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
)


@convolution.batch
@convolution_input.batch
@convolution_weight.batch
def _convolution(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Examples are more samples; where weights differ, they are groups of channels instead."""
    first, second, *bias = operands
    if not size:
        return NotImplemented
    if op.name != "convolution_weight" and not any([o.batched for o in operands[1:]]):
        samples = first.shape[0]
        merged = apply("reshape", first.value, shape=(size * samples, *first.shape[1:]))
        out = bind(op, (merged, *[o.value for o in operands[1:]]), params)
        return apply("reshape", out, shape=(size, samples, *out.shape[1:]))
    first = _side_by_side(first, size)
    if op.name == "convolution_weight":
        others = [_side_by_side(second, size)]
    else:
        others = [None if o.value is None else _one_after_another(o, size) for o in (second, *bias)]
    out = bind(op, (first, *others), {**params, "groups": size * params["groups"]})
    axis = 0 if op.name == "convolution_weight" else 1
    shape = (*out.shape[:axis], size, out.shape[axis] // size, *out.shape[axis + 1 :])
    return apply("moveaxis", apply("reshape", out, shape=shape), source=axis, destination=0)


def _side_by_side(x: BatchOperand, size: int) -> Any:
    """The channels of all examples along axis 1, after the samples."""
    samples, channels, *rest = x.shape
    moved = apply("moveaxis", x.repeated(size), source=0, destination=1)
    return apply("reshape", moved, shape=(samples, size * channels, *rest))


def _one_after_another(x: BatchOperand, size: int) -> Any:
    """The outputs of all examples along axis 0."""
    outputs, *rest = x.shape
    return apply("reshape", x.repeated(size), shape=(size * outputs, *rest))
