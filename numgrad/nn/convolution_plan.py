"""Shapes, boxes and tables of convolutions: how the kernels of ``kernels.convolutions`` are called.

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

from functools import cached_property, lru_cache, partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen import threads
from numgrad.errors import NumgradValueError
from numgrad.kernels.convolutions import ALIASED, SIZES, convolution_kernel, panel_columns
from numgrad.kernels.products.blas import SPARE

Shape = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

_PLACES = 1024
"""Places of a box at most: their sums stay in cache."""
_TASKS = 8
"""Tasks up to which outputs or partial sums are shared out too."""
_PLACES_OF_CHUNK = 256
_SPLIT = 16
"""Channels from which on places that meet fewer elements pay as phases of their own."""
_PLANS = 512
"""Plans that are kept; the tables of one take up to 100 KB."""
_MULTIPLY_NS = 0.03
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


def _check(name: str, x: Shape, w: Shape, stride: Shape, dilation: Shape, groups: int) -> None:
    rank = len(w) - 2
    if rank not in (1, 2, 3) or len(x) != rank + 2:
        raise NumgradValueError(
            f"{name}: input of shape {x} and weight of shape {w} do not fit; the input needs axes "
            "(samples, channels, *positions) and the weight (outputs, channels / groups, *kernel), "
            "with one to three positions"
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


class _Phase(NamedTuple):
    """Places along an axis that meet the same elements of the kernel."""

    number: int
    start: int  # of the first one, in the result
    elements: np.ndarray  # of the kernel
    shifts: np.ndarray  # where these meet the first place


class _Axis(NamedTuple):
    length: int
    result: int
    kernel: int
    step: int  # from place to place
    stride: int  # the same, in the result
    phases: list[_Phase]


def _forward(n: int, out: int, kernel: int, stride: int, before: int, dilation: int) -> _Axis:
    elements = np.arange(kernel)
    return _Axis(
        n, out, kernel, stride, 1, [_Phase(out, 0, elements, elements * dilation - before)]
    )


def _backward(n: int, out: int, kernel: int, stride: int, before: int, dilation: int) -> _Axis:
    """Reading the gradient of the output: Note [Implicit products]."""
    phases = []
    for start in range(min(stride, n)):
        elements = np.arange(kernel)
        shifts = start + before - elements * dilation
        elements, shifts = (a[shifts % stride == 0] for a in (elements, shifts))
        phases.append(_Phase(-(-(n - start) // stride), start, elements, shifts // stride))
    return _Axis(out, n, kernel, 1, stride, phases)


class _Product:
    """Tables and sizes by which the kernels read one array, forward or backward."""

    def __init__(
        self, samples: int, groups: int, channels: int, outputs: int, axes: list[_Axis],
        dtype: np.dtype, backward: bool,
    ) -> None:  # fmt: skip
        axes = [_forward(1, 1, 1, 1, 0, 1)] * (3 - len(axes)) + axes
        if backward and channels >= _SPLIT and prod(a.result for a in axes) <= _PLACES:
            axes = [*map(_split, axes)]
        size, across = dtype.itemsize, panel_columns(dtype, outputs)
        length, result, kernel, step, stride = np.array([a[:5] for a in axes]).T
        area = prod(kernel.tolist())
        shifts = [np.concatenate([p.shifts for p in a.phases]) for a in axes]
        first, last = (np.array([f(each, initial=0) for each in shifts]) for f in (np.min, np.max))
        counts = [max(p.number for p in a.phases) for a in axes]
        block, *box = _boxes([samples, *counts])
        boxes = -(-np.array(counts) // box)
        steps = (np.array(box) - 1) * step
        frame = steps + last - first + 1
        if prod(frame.tolist()) * size % ALIASED == 0:
            frame[2] += 1
        run = 1 + int(steps @ _pitches(frame))
        # flat rows cost so many tiles of two outputs, each as much as 16 places in a panel
        tiles = -(-run * size // SPARE) * -(-outputs // 2)
        flat = outputs <= 4 and run * size > SPARE // 2 and tiles * 16 < prod(box)
        copied = (
            flat
            or min(first) < 0
            or ((boxes * box - 1) * step + last >= length).any()
            or (channels > 1 and prod(length.tolist()) * size % ALIASED == 0)
        )
        if not copied:
            frame, first = length, 0 * first
        sizes = {
            "samples": samples, "groups": groups, "channels": channels, "outputs": outputs,
            "kernel": area, "block": block, "copied": copied, "flat": flat,
            "most": block * (run if flat else prod(box)), "across": across, "backward": backward,
            "by_element": max(stride) > 1,
            "whole": all(len(a.phases) == a.stride == 1 for a in axes),
        }  # fmt: skip
        for name, values in (
            ("length", length), ("box", box), ("boxes", boxes), ("frame", frame), ("first", first),
            ("step", step), ("stride", stride), ("result", result),
        ):  # fmt: skip
            sizes |= {f"{name}{axis}": value for axis, value in enumerate(values)}
        tasks = -(-samples // block) * prod(boxes.tolist()) * groups
        chunks = min(tasks, _TASKS, 1 + samples * prod(result.tolist()) // _PLACES_OF_CHUNK)
        panels = -(-outputs // across)
        self.sums = (chunks, groups * panels * channels * area * across)
        self.tasks, self.sizes = [], []
        for count in (tasks, chunks):
            sizes |= {"chunks": chunks, "parts": min(panels, -(-_TASKS // count))}
            self.tasks.append(count * sizes["parts"])
            self.sizes.append(np.array([sizes[name] for name in SIZES], np.int64))
        steps = step * _pitches(frame)
        self._tabulate(axes, sizes, box, first, steps, kernel, panel=across * size, size=size)
        multiplications = sum(row[1] * prod(row[3:6]) for row in self.phases.tolist())
        self.work = _MULTIPLY_NS * samples * groups * outputs * multiplications

    def _tabulate(
        self, axes: list[_Axis], sizes: dict[str, int], box: list[int], first: np.ndarray,
        steps: np.ndarray, kernel: np.ndarray, *, panel: int, size: int,
    ) -> None:  # fmt: skip
        """Write the tables of taps, places and phases; distances in bytes."""
        channels, outputs, area = sizes["channels"], sizes["outputs"], sizes["kernel"]
        frame = [sizes[f"frame{axis}"] for axis in range(3)]
        channel, plane = np.arange(channels), prod(frame)
        flat, backward = sizes["flat"], sizes["backward"]
        by_element = sizes["by_element"] and not flat
        sample = np.arange(sizes["block"]) * channels * plane
        sample = sample if sizes["copied"] else sample * sizes["groups"]
        if flat:  # weights are read where they lie
            unit, distance, element = size, area * (outputs if backward else 1), 1
        else:
            unit, distance, element = panel, *((1, channels) if by_element else (area, 1))
        taps, places, phases = [], [], []
        for each in product(*(a.phases for a in axes)):
            seen, weights = [channel * plane], [channel * distance]
            for p, low, pitch, step in zip(
                each, first, _pitches(frame), _pitches(kernel), strict=True
            ):
                seen.append((p.shifts - low) * pitch)
                weights.append(p.elements * step * element)
            if by_element:  # channels run fastest
                seen, weights = [*seen[1:], seen[0]], [*weights[1:], weights[0]]
            numbers = [min(n, p.number) for n, p in zip(box, each, strict=True)]
            place = _sums(
                [sample, *(np.arange(n) * m for n, m in zip(numbers, steps, strict=True))]
            )
            pair = [_sums(seen) * size, _sums(weights) * unit]
            phases.append((
                sum(map(len, taps)), pair[0].size, sum(map(len, places)),
                *(p.number for p in each), *(p.start for p in each),
            ))  # fmt: skip
            taps.append(np.stack(pair[::-1] if flat else pair, 1))
            places.append(np.stack([place * size, np.arange(place.size) * panel], 1))
        if flat:
            row = area * (1 if backward else channels) * size
            places = [np.stack([np.arange(outputs) * row] * 2, 1)]
        self.taps, self.places = np.concatenate(taps), np.concatenate(places)
        self.phases = np.array(phases, np.int64)


def _pitches(lengths: Any) -> np.ndarray:
    """Distances of neighbours along three axes."""
    return np.array([lengths[1] * lengths[2], lengths[2], 1])


def _split(axis: _Axis) -> _Axis:
    """The axis with a phase for each place, if that leaves out half of the elements."""
    phases = [
        _Phase(1, phase.start + place * axis.stride, phase.elements[seen], at[seen])
        for phase in axis.phases
        for place in range(phase.number)
        for at in [phase.shifts + place * axis.step]
        for seen in [(at >= 0) & (at < axis.length)]
    ]
    before, after = (sum(p.number * p.shifts.size for p in x) for x in (axis.phases, phases))
    return axis._replace(phases=phases) if 2 * after <= before else axis


def _sums(parts: list[np.ndarray]) -> np.ndarray:
    """All sums of one number of each, the last ones running fastest."""
    total: Any = 0
    for part in np.ix_(*parts):
        total = total + part
    return total.ravel()


def _boxes(counts: list[int]) -> list[int]:
    """Lengths of boxes of places that follow each other: one axis is cut, later ones are whole."""
    box, inside = [1] * len(counts), 1
    for axis in reversed(range(len(counts))):
        n = counts[axis]
        most = max(_PLACES // inside, 1)
        box[axis] = -(-n // -(-n // most))
        inside *= box[axis]
        if box[axis] < n:
            break
    return box


class ConvolutionPlan:
    """Shapes and kernels of the convolutions of three arrays.

    Parts of complex numbers are channels of their own, side by side.
    """

    def __init__(
        self, x: Shape, w: Shape, dtype: np.dtype, stride: Shape, padding: Pairs, dilation: Shape,
        groups: int,
    ) -> None:  # fmt: skip
        self.x, self.w, self.dtype, self.groups = x, w, dtype, groups
        self.y = output_shape(x, w, stride, padding, dilation, groups)
        self.empty = not (prod(x) and prod(w) and prod(self.y))
        self.parts = None
        if dtype.kind == "c":
            shapes = (x[0], 2 * x[1], *x[2:]), (2 * w[0], 2 * w[1], *w[2:])
            part = np.dtype(f"f{dtype.itemsize // 2}")
            self.parts = plan(*shapes, part, stride, padding, dilation, groups)
        before = [pair[0] for pair in padding]
        self._axes = [*zip(x[2:], self.y[2:], w[2:], stride, before, dilation, strict=True)]

    def _product(self, backward: bool) -> _Product:
        direction = _backward if backward else _forward
        axes = [direction(*each) for each in self._axes]
        channels, outputs = self.w[1], self.w[0] // self.groups
        if backward:
            channels, outputs = outputs, channels
        return _Product(self.x[0], self.groups, channels, outputs, axes, self.dtype, backward)

    @cached_property
    def _forward(self) -> _Product:
        return self._product(False)

    @cached_property
    def _backward(self) -> _Product:
        return self._product(True)

    def _run(self, name: str, tasks: int, work: float, *arguments: np.ndarray) -> None:
        if tasks == 1:
            convolution_kernel(name, self.dtype, False, work > _NOGIL_NS)(*arguments)
            return
        kernel = partial(convolution_kernel, name, self.dtype)
        entry = threads.choose(
            partial(kernel, parallel=False, nogil=False),
            partial(kernel, parallel=True, nogil=True),
            work,
            released=partial(kernel, parallel=False, nogil=True),
        )
        entry(*arguments)

    def _flat(self, x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x, self.dtype).ravel()

    def _convolve(
        self, tables: _Product, x: np.ndarray, w: np.ndarray, b: np.ndarray | None, shape: Shape
    ) -> np.ndarray:
        y = np.empty(shape, self.dtype)
        self._run(
            "convolution", tables.tasks[0], tables.work, self._flat(x), self._flat(w),
            np.empty(0, self.dtype) if b is None else self._flat(b), y.ravel(), tables.places,
            tables.taps, tables.phases, tables.sizes[0],
        )  # fmt: skip
        return y

    def forward(self, x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> np.ndarray:
        """The output ``y``."""
        if self.empty:
            y = np.zeros(self.y, self.dtype)
            return y if b is None else y + b.reshape(-1, *(1,) * (len(self.y) - 2))
        if self.parts:
            b = None if b is None else _side_by_side(b, 0)
            return self._joined(self.parts.forward(_side_by_side(x, 1), _matrices(w), b), self.y)
        return self._convolve(self._forward, x, w, b, self.y)

    def input_gradient(self, g: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Gradient for ``x``; of complex weights the conjugate is expected."""
        if self.empty:
            return np.zeros(self.x, self.dtype)
        if self.parts:
            gx = self.parts.input_gradient(_side_by_side(g, 1), _matrices(w.conj()))
            return self._joined(gx, self.x)
        return self._convolve(self._backward, g, w, None, self.x)

    def weight_gradient(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Gradient for ``w``; of a complex input the conjugate is expected."""
        if self.empty:
            return np.zeros(self.w, self.dtype)
        if self.parts:
            gw = self.parts.weight_gradient(_side_by_side(x, 1), _side_by_side(g, 1))
            gw = gw.reshape(self.w[0], 2, self.w[1], 2, *self.w[2:])
            real, imag = gw[:, 0, :, 0] - gw[:, 1, :, 1], gw[:, 0, :, 1] + gw[:, 1, :, 0]
            return self._joined(np.stack([real, imag], 2), self.w)
        tables, gw = self._forward, np.empty(self.w, self.dtype)
        self._run(
            "convolution_weight", tables.tasks[1], tables.work, self._flat(x), self._flat(g),
            np.zeros(tables.sums, self.dtype), gw.ravel(), tables.places, tables.taps,
            tables.sizes[1],
        )  # fmt: skip
        return gw

    def _joined(self, parts: np.ndarray, shape: Shape) -> np.ndarray:
        """The complex numbers of parts that are side by side along axis 1."""
        parts = parts.reshape(*shape[:2], 2, *shape[2:])
        z: Any = np.empty(shape, self.dtype)
        z.real, z.imag = parts[:, :, 0], parts[:, :, 1]
        return z


def _side_by_side(z: Any, axis: int) -> np.ndarray:
    """Real and imaginary parts, side by side along an axis."""
    shape = z.shape[:axis], 2 * z.shape[axis], z.shape[axis + 1 :]
    return np.stack([z.real, z.imag], axis + 1).reshape(*shape[0], shape[1], *shape[2])


def _matrices(w: Any) -> np.ndarray:
    """Weights that multiply parts: a matrix of two rows and columns for each number."""
    rows = [np.stack([w.real, -w.imag], 2), np.stack([w.imag, w.real], 2)]
    return np.stack(rows, 1).reshape(2 * w.shape[0], 2 * w.shape[1], *w.shape[2:])


plan = lru_cache(_PLANS)(ConvolutionPlan)
