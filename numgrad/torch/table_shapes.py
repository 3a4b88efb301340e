"""Rows of shapes, joins, parts and their writes: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from itertools import (
    combinations as combinations,
    combinations_with_replacement as combinations_with_replacement,
)
from math import prod
from operator import getitem as getitem
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.variable import Tensor as Base, root
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError
from numgrad.tensors.strided import (
    as_strided,
    has_memory,
    places_in_memory,
    read_only,
    tangents,
)  # fmt: skip
from numgrad.torch.array_functions import computed as computed
from numgrad.torch.calls import axis_of, cast, of_each as of_each, table
from numgrad.torch.dtypes import Size as Size, sizes as sizes
from numgrad.torch.memory import contiguous, copied as copied


def _expand(x: Any, shape: Any) -> Any:
    new = len(shape) - x.ndim
    lengths = [x.shape[k - new] if n == -1 and k >= new else n for k, n in enumerate(shape)]
    result = ng.broadcast_to(x, tuple(lengths))
    for y in (result, *tangents(result)):
        if type(y._array) is np.ndarray:  # NumPy's are read-only
            y._array.flags.writeable = x._array.flags.writeable
    return result


def _flatten(x: Any, start: int, end: int) -> Any:
    x, start, end = _row(x), axis_of("flatten", x, start), axis_of("flatten", x, end)
    if start > end:
        raise NumgradRuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return ng.reshape(x, (*x.shape[:start], prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


def _unflatten(x: Any, axis: int, sizes: Any) -> Any:
    rest = x.shape[axis] // -prod(sizes) if -1 in sizes else -1
    sizes = [rest if n == -1 else n for n in sizes]
    return ng.reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def _squeeze(x: Any, dim: Any) -> Any:
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    return ng.squeeze(x, tuple([d for d in dims if x.shape[d] == 1]))


def _split(x: Any, sizes: Any, dim: int) -> tuple:
    length = x.shape[dim]
    if isinstance(sizes, int):  # which is not 0, unless there is nothing to split
        sizes = [min(sizes, length - at) for at in range(0, length, sizes or not length)] or [0]
    if sum(sizes) != length:
        raise NumgradRuntimeError(f"split: {[*sizes]} elements of dimension {dim}, not {length}")
    return tuple(ng.split(x, np.cumsum(sizes)[:-1].tolist(), dim))


def _narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    start = int(start) + (x.shape[dim] if start < 0 else 0)
    if not 0 <= length <= x.shape[dim] - start:
        raise NumgradRuntimeError(f"narrow: {length} elements from {start} on of {x.shape[dim]}")
    return x[(*[slice(None)] * dim, slice(start, start + length))]


def copies(parts: tuple) -> tuple:
    """Copies of Tensors."""
    return tuple(map(ng.copy, parts))


def _row(x: Any) -> Any:
    """A Tensor that has axes."""
    return x if x.ndim else ng.reshape(x, (1,))


def _gather(x: Any, dim: int, index: Any) -> Any:
    rows, places = _row(x), _row(index)
    axis = axis_of("gather", x, dim)
    if not index.size:
        return ng.reshape(ng.reshape(x, (-1,))[:0], index.shape)
    part = tuple([slice(None if a == axis else n) for a, n in enumerate(places.shape)])
    if any(at.stop not in (None, n) for at, n in zip(part, rows.shape, strict=False)):
        rows = rows[part]
    out = OPS["gather_along"](rows, places, axis=axis)
    return out if index.ndim else ng.reshape(out, ())


def _scatter(x: Any, axis: int, index: Any, src: Any, reduce: Any, whole: bool = True) -> Any:
    index = _row(index)
    src = as_elements(x, src)
    src = _row(src) if isinstance(src, Base) else ng.full(index.shape, src, x.dtype)
    if not index.size:
        return ng.copy(x)
    src = src[tuple(slice(n) for n in index.shape)]
    if reduce is None:
        return OPS["scatter"](x, index, src, axis=axis)
    if reduce in ("add", "sum") and whole:
        return OPS["scatter_add"](x, index, src, axis=axis)
    how = {"multiply": "prod", "add": "sum"}.get(reduce, reduce)
    return ng.scatter_reduce(x, index, src, axis=axis, reduce=how, include_self=whole)


def _index_write(name: str, x: Any, axis: int, index: Any, value: Any, *more: Any) -> Any:
    if name == "index_fill":
        value = as_elements(x, value)
    elif value.ndim == 0:
        value = ng.reshape(value, (1,) * x.ndim)
    if more and x.dtype.kind in "ub":  # a factor, whose sign they lack
        value, more = value * cast(more[0], x.dtype), ()
    return OPS[name](x, _row(index), value, axis, *more)


def _index_reduce(x: Any, axis: int, index: Any, source: Any, reduce: str, whole: bool) -> Any:
    source, shape = _row(source), [-1 if a == axis else 1 for a in range(x.ndim)]
    full = ng.broadcast_to(ng.reshape(index, shape), source.shape)
    return ng.scatter_reduce(x, full, source, axis=axis, reduce=reduce, include_self=whole)


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    from numgrad.torch.indexing import as_index

    return OPS["index_put"](x, values, index=as_index(x, tuple(indices)), accumulate=accumulate)


def as_elements(x: Any, value: Any) -> Any:
    """A value in the dtype of where it is written; complex ones are not made real."""
    kind = (value if isinstance(value, Base) else np.asarray(value)).dtype.kind
    if kind == "c" and x.dtype.kind != "c":
        raise NumgradRuntimeError(f"a complex value cannot be written into {x.dtype} numbers")
    return cast(value, x.dtype) if isinstance(value, Base) else x.dtype.type(value)


def _as_strided(x: Any, size: Any, stride: Any, offset: Any) -> Any:
    """Elements at places in memory, which are counted from where the memory begins."""
    item = x.dtype.itemsize
    if min((*stride, offset or 0), default=0) < 0:
        raise NumgradRuntimeError(f"as_strided: negative stride or offset: {stride}, {offset}")
    begin = 0 if offset is None else int(offset) * item - _offset(x)
    return as_strided(x, size, [step * item for step in stride], begin)


def conjugated(x: Any) -> Any:
    """The conjugate; one of complex numbers is no view, as PyTorch's is, so writes are refused."""
    return read_only(ng.conjugate(x)) if x.dtype.kind == "c" else x


def _view_as_real(x: Any) -> Any:
    if not has_memory(x):
        return read_only(ng.stack([ng.real(x), ng.imag(x)], axis=-1))
    d = x._array.real.dtype
    return as_strided(x, (*x.shape, 2), (*x._array.strides, d.itemsize), dtype=d)


def _offset(x: Any) -> int:
    """Where a Tensor begins in its memory, in bytes."""
    addresses = (y._array.__array_interface__["data"][0] for y in (x, root(x)) if has_memory(x))
    return next(addresses, 0) - next(addresses, 0)


def _strided_scatter(x: Any, src: Any, size: Any, stride: Any, offset: Any) -> Any:
    begin = _offset(x) // x.dtype.itemsize if offset is None else int(offset)
    places = places_in_memory(tuple(size), tuple(stride), begin)
    flat = OPS["put"](ng.reshape(x, (-1,)), places.ravel(), ng.reshape(src, (-1,)))
    return ng.reshape(flat, x.shape)


def _unfold(x: Any, dim: int, size: int, step: int) -> Any:
    rows, axis = _row(x), axis_of("unfold", x, dim)
    if not has_memory(x) or not 0 <= size <= rows.shape[axis] or step < 1:
        out = read_only(ng.unfold(rows, axis, size, step))
    else:
        shape, strides = [*rows.shape, size], [*rows._array.strides, rows._array.strides[axis]]
        shape[axis], strides[axis] = (shape[axis] - size) // step + 1, strides[axis] * step
        out = as_strided(rows, shape, strides)
    return out if x.ndim else out[0]


def _sum_to(x: Any, shape: tuple) -> Any:
    new = x.ndim - len(shape)
    inner = tuple(new + k for k, n in enumerate(shape) if n == 1 != x.shape[new + k])
    if x.ndim and not new and not inner:
        return ng.reshape(x, shape)
    x = OPS["astype"](x, dtype=np.dtype(np.int64)) if x.dtype.kind in "biu" else x
    return ng.reshape(ng.sum(x, (*range(new), *inner)), shape)


def _cat(tensors: Any, dim: int) -> Any:
    kept = [t for t in tensors if t.shape != (0,)]  # of any rank
    return ng.cat(kept or list(tensors[:1]), axis=dim if kept else 0)


def _pairs(x: Any) -> Any:
    if not has_memory(x):
        return read_only(OPS["from_parts"](x[..., 0], x[..., 1]))
    *strides, step = x._array.strides
    if x.dtype.kind != "f" or step != x.itemsize or any(n % (2 * step) for n in strides):
        raise NumgradRuntimeError("view_as_complex: pairs must lie side by side; call contiguous()")
    d = np.result_type(x.dtype, np.complex64)
    return as_strided(x, x.shape[:-1], strides, dtype=d)


def _rot90(x: Any, k: int, dims: tuple[int, ...]) -> Any:
    if k % 2 == 0:
        return ng.copy(ng.flip(x, dims) if k else x)
    return ng.swapaxes(ng.copy(ng.flip(x, dims[k % 3])), *dims)


def _view(x: Any, shape: Any, dtype: Any) -> Any:
    one = shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape
    dtype = one if isinstance(one, np.dtype) else dtype
    if dtype is not None:
        return ng.asarray(x._array.view(dtype))
    out = ng.reshape(x, tuple(shape))
    if not contiguous(x) and x.size and not np.may_share_memory(out._array, x._array):
        raise NumgradRuntimeError(f"view: no view of strides {x.strides} has {shape}; use reshape")
    return out


TABLE = """
[same 1 sizes=1]
reshape(input, shape): ng.reshape(input, tuple(shape))
permute(input, dims): ng.permute(input, tuple(dims))
tile(input, dims): ng.tile(input, tuple(dims))
[same 1 sizes=1 axis]
flip(input, dims): ng.copy(ng.flip(input, tuple(dims)))
[same 1 sizes=1 method]
view(input, shape, *, dtype=None): _view(input, shape, dtype)
expand(input, size, *, implicit=False): _expand(input, size)
repeat(input, repeats) if len(repeats) >= input.ndim: ng.tile(input, tuple(repeats))
[same 1]
broadcast_to(input, size): _expand(input, size)
repeat_interleave(input, repeats=None, dim=None, *, output_size=None): (
    ng.repeat(ng.arange(len(input)), input) if repeats is None else ng.repeat(input, repeats, dim))
flatten(input, start_dim=0, end_dim=-1): _flatten(input, start_dim, end_dim)
ravel(input): ng.reshape(input if contiguous(input) else ng.copy(input), (-1,))
adjoint(input) if input.ndim != 1: conjugated(ng.swapaxes(input, -1, -2) if input.ndim else input)
movedim(input, source, destination): ng.moveaxis(input, source, destination)
{hsplit=1 vsplit=2 dsplit=3}(input, indices_or_sections) if input.ndim >= @: (
    ng.hsplit, ng.vsplit, ng.dsplit)[@ - 1](input, indices_or_sections)
unbind(input, dim=0): tuple(ng.unbind(input, dim))
select(input, dim, index): input[(*[slice(None)] * axis_of("select", input, dim), index)]
diagonal(input, offset=0, dim1=0, dim2=1): ng.diagonal(
    input, offset, axis_of("diagonal", input, dim1), axis_of("diagonal", input, dim2))
diag(input, diagonal=0): ng.copy(ng.diag(input, diagonal))
diag_embed(input, offset=0, dim1=-2, dim2=-1): ng.diag_embed(input, offset, dim1, dim2)
diagflat(input, offset=0): ng.diagflat(input, offset)
rot90(input, k=1, dims=(0, 1)) if (
    len(dims) == 2 <= input.ndim and dims[0] % input.ndim != dims[1] % input.ndim): _rot90(
    input, k % 4, tuple(dims))
{fliplr=2 flipud=1}(input) if input.ndim >= @: ng.copy(ng.flip(input, @ - 1))
roll(input, shifts, dims=()) if np.size(shifts) == (np.size(dims) or 1): ng.roll(
    input, shifts, None if dims == () else dims)
masked_select(input, mask) if mask.dtype == bool: getitem(*ng.broadcast_arrays(input, mask))
take(input, index): ng.take(input, index)
take_along_dim(input, indices, dim=None): (
    ng.take_along_axis(ng.reshape(input, (-1,)), ng.reshape(indices, (-1,)), 0) if dim is None else
    ng.take_along_axis(input, indices, dim))
nonzero(input, *, as_tuple=False): (
    tuple(ng.nonzero(_row(input))) if as_tuple else ng.argwhere(input))
argwhere(input): ng.argwhere(input)
clone(input, *, memory_format=None): copied(input, memory_format)
conj(input): conjugated(input)
[same 1 method property]
T(input): ng.permute(input, None)
mT(input) if input.ndim >= 2: ng.swapaxes(input, -1, -2)
H(input) if input.ndim in (0, 2): conjugated(ng.permute(input, None))
mH(input) if input.ndim != 1: conjugated(ng.swapaxes(input, -1, -2) if input.ndim else input)
[same 1 indices]
gather(input, dim, index, *, sparse_grad=False): _gather(input, dim, index)
[first 2 indices]
as_strided_scatter(input, src, size, stride, storage_offset=None): _strided_scatter(
    input, src, size, stride, storage_offset)
select_scatter(input, src, dim, index): ng.select_scatter(input, src, axis=dim, index=index)
slice_scatter(input, src, dim=0, start=None, end=None, step=1): ng.slice_scatter(
    input, src, axis=dim, start=start, end=end, step=step)
diagonal_scatter(input, src, offset=0, dim1=0, dim2=1): ng.diagonal_scatter(
    input, src, offset=offset, axis1=dim1, axis2=dim2)
[same 1 axis]
unflatten(input, dim, sizes): _unflatten(input, dim, tuple(sizes))
{split=split_size_or_sections split_with_sizes=split_sizes}(input, @, dim=0): _split(input, @, dim)
{chunk=tuple unsafe_chunk=copies}(input, chunks, dim=0) if chunks > 0: @(_split(
    input, -(-input.shape[dim] // chunks) or [0] * chunks, dim))
tensor_split(input, indices_or_sections, dim=0): tuple(
    ng.array_split(input, np.asarray(indices_or_sections).tolist(), dim))
{unsafe_split=split_size unsafe_split_with_sizes=split_sizes}(input, @, dim=0): copies(
    _split(input, @, dim))
narrow(input, dim, start, length): _narrow(input, dim, start, length)
index_select(input, dim, index): ng.take(input, _row(index), dim)
[same 1 method]
unfold(input, dimension, size, step): _unfold(input, dimension, size, step)
sum_to_size(input, *size): _sum_to(input, sizes(size))
[same 1 inplace restrides]
unsqueeze(input, dim): ng.expand_dims(input, dim)
t(input) if input.ndim <= 2: ng.permute(input, None)
as_strided(input, size, stride, storage_offset=None): _as_strided(
    input, size, stride, storage_offset)
[same 1 inplace restrides axis]
squeeze(input, dim=None): _squeeze(input, dim)
transpose(input, dim0, dim1): ng.swapaxes(input, dim0, dim1)
[same 1 inplace]
{tril triu}(input, diagonal=0): ng.@(input, diagonal)
[first 0,2 inplace]
masked_fill(input, mask, value) if not np.ndim(value): OPS["masked_fill"](
    *ng.broadcast_arrays(input, mask), as_elements(input, value))
[equal 0,2 inplace]
masked_scatter(input, mask, source): OPS["masked_scatter"](
    *ng.broadcast_arrays(input, mask), source)
index_put(input, indices, values, accumulate=False): _index_put(input, indices, values, accumulate)
put(input, index, source, accumulate=False): OPS["put"](input, index, source, accumulate)
[equal 0,3 inplace axis indices]
scatter(input, dim, index, src=None, *, value=None, reduce=None): _scatter(
    input, dim, index, value if src is None else src, reduce)
scatter_add(input, dim, index, src): _scatter(input, dim, index, src, "add")
scatter_reduce(input, dim, index, src, reduce, *, include_self=True): _scatter(
    input, dim, index, src, reduce, include_self)
index_add(input, dim, index, source, *, alpha=1): _index_write(
    "index_add", input, dim, index, source, alpha)
index_copy(input, dim, index, source): _index_write("index_copy", input, dim, index, source)
index_reduce(input, dim, index, source, reduce, *, include_self=True): _index_reduce(
    input, dim, index, source, reduce, include_self)
[first 0,3 inplace axis]
index_fill(input, dim, index, value): _index_write("index_fill", input, dim, index, value)
[number 2 function]
isin(elements, test_elements, *, assume_unique=False, invert=False): ng.isin(
    elements, test_elements, assume_unique, invert)
[number 1 function]
cat(tensors, dim=0) if tensors: _cat(tensors, dim)
stack(tensors, dim=0): ng.stack(list(tensors), axis=dim)
{hstack vstack dstack column_stack}(tensors): ng.@(list(tensors))
[number 1 sizes=0 function]
block_diag(tensors): ng.linalg.block_diag(*tensors)
[same 1 sizes=0 function]
broadcast_tensors(tensors): tuple(ng.broadcast_arrays(*tensors))
[equal 1 sizes=0 function]
meshgrid(tensors, *, indexing="ij") if max([x.ndim for x in tensors]) < 2: tuple(
    ng.meshgrid(*tensors, copy=False, indexing="ij" if indexing is None else indexing))
cartesian_prod(tensors): tensors[0] if len(tensors) == 1 else ng.stack(
    [ng.reshape(t, (-1,)) for t in ng.meshgrid(*tensors, indexing="ij")], axis=-1)
[same 0 function]
{atleast_1d atleast_2d atleast_3d}(*tensors): of_each(
    ng.@, tensors[0] if len(tensors) == 1 else tensors)
broadcast_shapes(*shapes): Size(np.broadcast_shapes(
    *[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))
combinations(input, r=2, with_replacement=False) if input.ndim == 1 and r >= 0: ng.take(
    input, np.array([*(combinations_with_replacement if with_replacement else combinations)(
    range(len(input)), r)], np.int64).reshape(-1, r), 0) if r else input[:0]
view_as_real(input) if input.dtype.kind == "c": _view_as_real(input)
view_as_complex(input) if input.shape[-1:] == (2,): _pairs(input)
[same 1 function]
unravel_index(indices, shape): computed(lambda places: np.unravel_index(
    places, shape if isinstance(shape, int) else tuple(shape)), indices)
fill(input, value): OPS["masked_fill"](input, np.ones(input.shape, bool), value)
constant_pad_nd(input, pad, value=0): ng.nn.functional.pad(input, pad, "constant", value)
[same 1]
nonzero_static(input, *, size, fill_value=-1): computed(lambda a: np.concatenate(
    [np.argwhere(a), np.full((size, a.ndim), fill_value)])[:size], input)
alias(input): input
copies alias diagonal as_strided permute transpose t squeeze unsqueeze unbind split_with_sizes
 narrow expand view unfold
[same 0]
aliases concat=cat concatenate=cat row_stack=vstack moveaxis=movedim swapaxes=transpose
 swapdims=transpose
"""

table("", globals(), TABLE)
