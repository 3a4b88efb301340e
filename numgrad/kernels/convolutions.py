"""Kernels of convolutions, over up to three axes, and of their gradients.

Note [Implicit products]
------------------------
A convolution is a matrix product: a row for each place of the output, a column for each output
channel, and a sum over *taps*, one for each input channel and element of the kernel. The first
factor, the input as the kernel covers it, is not written down (*implicit GEMM*; Zhou et al., 2021,
arXiv:2110.03901): its element for a place and a tap lies in the input at an offset that is a sum of
one of the place and one of the tap, both of which stand in tables. ``table_tile`` holds a tile of
the result, some places of two vectors of outputs, in registers while it runs along the taps.
Strides, dilations and the number of axes are in the tables only.

A *task* computes a *box*: consecutive places of one sample, or of several small ones, in one group
of channels. Where the kernel reaches beyond the input, the part of it that the box sees is copied
into a frame of zeros first; also where channels lie a multiple of ``ALIASED`` bytes apart, which
would fall into the same few lines of a cache.

The gradient for the input is a convolution of the other gradient: along an axis with stride s,
inputs at places of the same remainder by s meet the same taps, and are a convolution of stride one
(*sub-pixel* decomposition; Shi et al., 2016, arXiv:1609.07009). These *phases* share the copy. For
the gradient of the weights rows are taps, and the sum is over places: the tables change their
roles. Partial sums, of a number that sizes alone decide, are added in order, so that results have
the same bits for any number of threads. No BLAS is called.

Weights are laid out in *panels* once: the outputs of two vectors side by side, a row for each tap.
Arrays are flat, sizes come as one array in the order of ``SIZES``.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.kernels.products.blas import SPARE
from numgrad.kernels.products.gemm import external, tile_shape

SIZES = (
    "samples", "groups", "channels", "outputs", "kernel",
    *(f"{name}{axis}" for name in ("length", "box", "boxes", "frame", "first", "step", "stride",
                                   "result") for axis in range(3)),
    "block", "copied", "flat", "most", "across", "parts", "chunks", "backward",
    "by_element", "whole",
)  # fmt: skip
"""Of one group: ``channels`` of what is read, ``outputs``. Along the axes: ``length`` of what is
read, places of a ``box``, number of ``boxes``, length of a ``frame``, where the ``first`` one
starts, ``step`` of places there, their ``stride`` in the ``result``. ``block``: samples of a box;
``copied``: whether frames are needed; ``flat``: whether rows of frames are convolved whole;
``most``: places of a box; ``across``: outputs in a row of a panel; ``parts``: of the panels,
``chunks``: of the boxes, what threads share; ``backward``: whether outputs are the second axis of
the weights; ``by_element``: whether rows of panels are in the order of elements of the kernel, of
which phases read some; ``whole``: whether the results of a box lie side by side."""

ALIASED = 512
"""Bytes whose multiples are a bad distance between channels."""

_PANELS = """
import numpy as np
from numba import {dtype}, int64, prange
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import add_any_order, select
from numgrad.kernels.products.blas import clear, gather, lay_out, table_gemm, turn


@device
def copy(source, step, target, stride, count, extra):
    if step == 1 and stride == 1:
        for k in range(count):
            target[k] = source[k] + extra
    else:
        for k in range(count):
            target[k * stride] = source[k * step] + extra


@outlined
def fill(x, start, frame, some, z0, z1, z2, sizes):
    # copy what a box sees of a group into a frame of zeros
    no_inline()
{sizes}
    clear(frame.ctypes.data, frame.size * {size})
    lo, hi = max(0, -z2), min(frame2, length2 - z2)
    if lo >= hi:
        return
    for s in range(some):
        for c in range(channels):
            plane = start + (s * groups * channels + c) * length0 * length1 * length2 + z2 + lo
            target = (s * channels + c) * frame0 * frame1 * frame2 + lo
            for i in range(max(0, -z0), min(frame0, length0 - z0)):
                for j in range(max(0, -z1), min(frame1, length1 - z1)):
                    at = target + (i * frame1 + j) * frame2
                    first = plane + ((z0 + i) * length1 + z1 + j) * length2
                    copy(x[first:], 1, frame[at:], 1, hi - lo, {dtype}(0))


@device
def corner(task, sizes):
    # group, first sample and first places of the box of a task
{sizes}
    group, rest = task % groups, task // groups
    o2, rest = rest % boxes2 * box2, rest // boxes2
    o1, rest = rest % boxes1 * box1, rest // boxes1
    o0, rest = rest % boxes0 * box0, rest // boxes0
    return group, rest * block, o0, o1, o2


@device
def room(sizes):
    # elements of the frames of a box
{sizes}
    return block * channels * frame0 * frame1 * frame2 + {spare} if copied else 0


@device
def see(x, group, s, o0, o1, o2, some, frame, sizes):
    # address of what a box sees
{sizes}
    z0, z1, z2 = o0 * step0, o1 * step1, o2 * step2
    start = (s * groups + group) * channels * length0 * length1 * length2
    if copied:
        fill(x, start, frame, some, z0 + first0, z1 + first1, z2 + first2, sizes)
        return frame.ctypes.data
    return x.ctypes.data + (start + (z0 * length1 + z1) * length2 + z2) * {size}
"""

_CONVOLVE = """
@outlined
def pack(w, packed, sizes):
    # panels of the weights
{sizes}
    panels, rows, line = -(-outputs // across), channels * kernel, across * {size}
    for index in range(groups * panels):
        group, panel = index // panels, index % panels
        columns, first = min(across, outputs - panel * across), panel * across
        target = packed.ctypes.data + index * rows * line
        if backward:
            for c in range(channels):
                start = ((group * channels + c) * outputs + first) * kernel * {size}
                there = target + c * (1 if by_element else kernel) * line
                lay_out(
                    {dtype}, w.ctypes.data + start, kernel * {size}, kernel, columns, there, across,
                    (channels if by_element else 1) * line,
                )
        else:
            start = (group * outputs + first) * rows * {size}
            source = w.ctypes.data + start
            lay_out({dtype}, source, rows * {size}, rows, columns, target, across, line)


@outlined
def convolve(x, w, packed, bias, out, places, taps, phases, sizes, index):
{sizes}
    part, task = index % parts, index // parts
    group, s, o0, o1, o2 = corner(task, sizes)
    some = min(block, samples - s)
    frame = np.empty(room(sizes), {dtype})
    seen = see(x, group, s, o0, o1, o2, some, frame, sizes)
    panels, rows = -(-outputs // across), channels * kernel
    wide = -(-most // {lanes}) * {lanes} + {spare}
    sums = np.empty(0 if flat else wide * across, {dtype})
    turned = np.empty(wide * min(outputs, across), {dtype})
    plane, line = result0 * result1 * result2, result1 * result2
    for phase in range(phases.shape[0]):
        n0 = min(box0, phases[phase, 3] - o0)
        n1 = min(box1, phases[phase, 4] - o1)
        n2 = min(box2, phases[phase, 5] - o2)
        if n0 <= 0 or n1 <= 0 or n2 <= 0:
            continue
        count, inside = phases[phase, 1], n0 * n1 * n2
        pairs = taps.ctypes.data + phases[phase, 0] * 16
        # distances of places in a row of results
        p0, p1, p2 = n1 * n2, n2, 1
        if flat:
            p0, p1, p2 = step0 * frame1 * frame2, step1 * frame2, step2
            inside = (n0 - 1) * p0 + (n1 - 1) * p1 + (n2 - 1) * p2 + 1
        elif whole:
            n0, n1, n2 = 1, 1, inside
        begin = (o0 * stride0 + phases[phase, 6]) * line
        begin += (o1 * stride1 + phases[phase, 7]) * result2 + o2 * stride2 + phases[phase, 8]
        for panel in range(panels * part // parts, panels * (part + 1) // parts):
            columns = min(across, outputs - panel * across)
            first = group * outputs + panel * across
            if flat:
                for n in range(some):
                    table_gemm(
                        {dtype}, columns, inside, count,
                        w.ctypes.data + group * outputs * rows * {size},
                        places.ctypes.data, pairs,
                        seen + n * channels * frame0 * frame1 * frame2 * {size},
                        turned.ctypes.data + n * inside * {size}, wide, 0,
                    )
            else:
                table_gemm(
                    {dtype}, some * inside, columns, count,
                    seen, places.ctypes.data + phases[phase, 2] * 16, pairs,
                    packed.ctypes.data + (group * panels + panel) * rows * across * {size},
                    sums.ctypes.data, across, 0,
                )
                for p in range(0, some * inside, {lanes}):
                    turn(
                        {dtype}, {width}, sums.ctypes.data + p * across * {size}, across * {size},
                        columns, turned.ctypes.data + p * {size}, wide * {size},
                    )
            for n in range(some):
                for k in range(columns):
                    start = ((s + n) * groups * outputs + first + k) * plane + begin
                    extra = bias[first + k] if bias.size else {dtype}(0)
                    for i in range(n0):
                        for j in range(n1):
                            done = turned[k * wide + n * inside + i * p0 + j * p1 :]
                            target = out[start + i * stride0 * line + j * stride1 * result2 :]
                            copy(done, p2, target, stride2, n2, extra)


def kernel(x, w, bias, out, places, taps, phases, sizes):
{sizes}
    panels, rows = -(-outputs // across), channels * kernel
    packed = np.empty(0 if flat else groups * panels * across * rows, {dtype})
    if not flat:
        pack(w, packed, sizes)
    boxes = -(-samples // block) * boxes0 * boxes1 * boxes2 * groups
    for index in {range}(boxes * parts):
        convolve(x, w, packed, bias, out, places, taps, phases, sizes, int64(index))
"""

_WEIGH = """
@outlined
def dot(x, g, inside):
    # products at places inside of rows
    no_inline()
    total = {dtype}(0)
    for k in range(g.size):
        total = add_any_order(total, select(inside[k] > 0, x[k] * g[k], {dtype}(0)))
    return total


@outlined
def weigh_flat(frame, g, start, sums, taps, some, n0, n1, n2, sizes):
    # the same, each sum along whole rows of a frame
{sizes}
    rows, area = channels * kernel, result0 * result1 * result2
    p0, p1 = step0 * frame1 * frame2, step1 * frame2
    run = (n0 - 1) * p0 + (n1 - 1) * p1 + (n2 - 1) * step2 + 1
    flat_g, inside = np.empty(run, {dtype}), np.empty(run, {dtype})
    clear(flat_g.ctypes.data, run * {size})
    clear(inside.ctypes.data, run * {size})
    for i in range(n0):
        for j in range(n1):
            mask = inside[i * p0 + j * p1 :]
            for q in range(n2):
                mask[q * step2] = 1
    for n in range(some):
        first = n * channels * frame0 * frame1 * frame2
        for o in range(outputs):
            at = start + (n * groups * outputs + o) * area
            for i in range(n0):
                for j in range(n1):
                    row = g[at + (i * result1 + j) * result2 :]
                    copy(row, 1, flat_g[i * p0 + j * p1 :], step2, n2, {dtype}(0))
            for l in range(rows):
                k = first + taps[l, 1] // {size}
                sums[l * across + o] += dot(frame[k : k + run], flat_g, inside)


@outlined
def weigh(x, g, sums, places, taps, sizes, task, part):
    # add the sums of one box
{sizes}
    group, s, o0, o1, o2 = corner(task, sizes)
    some = min(block, samples - s)
    frame = np.empty(room(sizes), {dtype})
    seen = see(x, group, s, o0, o1, o2, some, frame, sizes)
    panels, rows = -(-outputs // across), channels * kernel
    panel_of_g = np.empty(0 if flat else most * across, {dtype})
    area = result0 * result1 * result2
    n0, n1, n2 = min(box0, result0 - o0), min(box1, result1 - o1), min(box2, result2 - o2)
    inside, begin = n0 * n1 * n2, (o0 * result1 + o1) * result2 + o2
    if flat:
        start = (s * groups + group) * outputs * area + begin
        weigh_flat(
            frame, g, start, sums[group * rows * across :], taps, some, n0, n1, n2, sizes
        )
        return
    for panel in range(panels * part // parts, panels * (part + 1) // parts):
        columns, first = min(across, outputs - panel * across), panel * across
        for n in range(some):
            start = ((s + n) * groups * outputs + group * outputs + first) * area + begin
            lay_out(
                {dtype}, g.ctypes.data + start * {size}, area * {size}, inside, columns,
                panel_of_g.ctypes.data + n * inside * across * {size}, across, across * {size},
            )
        table_gemm(
            {dtype}, rows, columns, some * inside, seen, taps.ctypes.data, places.ctypes.data,
            panel_of_g.ctypes.data,
            sums.ctypes.data + (group * panels + panel) * rows * across * {size}, across, 1,
        )


def kernel(x, g, sums, out, places, taps, sizes):
{sizes}
    panels, rows = -(-outputs // across), channels * kernel
    boxes = -(-samples // block) * boxes0 * boxes1 * boxes2 * groups
    for index in {range}(chunks * parts):
        chunk, part = int64(index) // parts, int64(index) % parts
        for task in range(chunk * boxes // chunks, (chunk + 1) * boxes // chunks):
            weigh(x, g, sums[chunk], places, taps, sizes, task, part)
    for chunk in range(1, chunks):
        for k in range(sums.shape[1]):
            sums[0, k] += sums[chunk, k]
    line, left = across * {size}, rows % {lanes}
    for index in range(groups * panels):
        group, first = index // panels, index % panels * across
        columns, source = min(across, outputs - first), sums.ctypes.data + index * rows * line
        target = out.ctypes.data + (group * outputs + first) * rows * {size}
        for k in range(0, rows - left, {lanes}):
            turn(
                {dtype}, {width}, source + k * line, line, columns, target + k * {size},
                rows * {size},
            )
        source, target = source + (rows - left) * line, target + (rows - left) * {size}
        gather({dtype}, source, {size}, line, columns, left, target, rows * {size})
"""

_KERNELS = {
    "convolution": (
        _CONVOLVE, "{0}, {0}, {0}, {0}, int64[:,::1], int64[:,::1], int64[:,::1], int64[::1]",
    ),
    "convolution_weight": (_WEIGH, "{0}, {0}, {1}, {0}, int64[:,::1], int64[:,::1], int64[::1]"),
}  # fmt: skip


@cache
def convolution_kernel(
    name: str, dtype: np.dtype, parallel: bool, nogil: bool
) -> Callable[..., None]:
    """One of two kernels.

    ``convolution(x, w, bias, out, places, taps, phases, sizes)`` has a bias that may be empty;
    ``convolution_weight(x, g, sums, out, places, taps, sizes)`` a row of ``sums``, zeros, for each
    chunk. Tables are pairs of distances in bytes, in the first factor and in the second, which has
    none for places, or where rows are flat are the weights and what is read. A row of ``phases``
    has the first tap, their number and the first place, and along the axes numbers of places and
    where results start.
    """
    text, signature = _KERNELS[name]
    width, array, size = tile_shape()[1], type_name(dtype), dtype.itemsize
    source = (_PANELS + text).format(
        dtype=dtype.name,
        size=size,
        width=width,
        lanes=width // size,
        spare=SPARE // size,
        range="prange" if parallel else "range",
        sizes="\n".join(f"    {word} = sizes[{k}]" for k, word in enumerate(SIZES)),
    )
    kernel = compile_kernel(
        f"{name}_{short(dtype)}{'_p' * parallel}{'_n' * nogil}",
        source,
        f"void({signature.format(f'{array}[::1]', f'{array}[:,::1]')})",
        parallel=parallel,
        nogil=nogil,
        externals=[external(call, dtype.name) for call in ("table_gemm", "lay_out")],
    )
    return kernel.entry


def panel_columns(dtype: np.dtype, outputs: int) -> int:
    """Outputs in a row of a panel: those of one tile, or fewer where there are few."""
    width = tile_shape()[1]
    fitting = [n for n in (max(width // 2, 16), width) if outputs * dtype.itemsize <= n]
    return (fitting or [2 * width])[0] // dtype.itemsize
