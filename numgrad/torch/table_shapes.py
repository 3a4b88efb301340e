"""Rows of shapes, joins, parts and their writes: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from math import prod
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.forward_ad import ForwardInterpreter
from numgrad.autograd.history import follows_root
from numgrad.autograd.variable import Tensor as Base, root
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError
from numgrad.operations.region import Region
from numgrad.torch.array_functions import computed
from numgrad.torch.calls import axis_of, cast, check_equal, table
from numgrad.torch.dtypes import Size  # noqa: F401 (in the table)
from numgrad.torch.memory import at_least, contiguous, copied as copied
from numgrad.torch.table_products import alike  # noqa: F401 (in the table)


def _expand(x: Any, shape: Any) -> Any:
    new = len(shape) - x.ndim
    if new < 0:
        raise NumgradRuntimeError(
            f"expand: the number of sizes provided ({len(shape)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({x.ndim})"
        )
    result = ng.broadcast_to(
        x, tuple(x.shape[k - new] if n == -1 and k >= new else n for k, n in enumerate(shape))
    )
    for y in (result, *_tangents(result)):
        if type(y._array) is np.ndarray:  # NumPy's are read-only
            y._array.flags.writeable = x._array.flags.writeable
    return result


def _repeat(x: Any, reps: Any) -> Any:
    if len(reps) < x.ndim:
        raise NumgradRuntimeError(
            "repeat: Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    return ng.tile(x, tuple(reps))


def _repeat_interleave(x: Any, repeats: Any, dim: Any) -> Any:
    if repeats is None:
        return ng.repeat(ng.arange(x.shape[0]), x)
    return ng.repeat(x, getattr(repeats, "_array", repeats), dim)


def _flatten(x: Any, start: int, end: int) -> Any:
    if x.ndim == 0:
        return ng.reshape(x, (1,))
    start, end = axis_of("flatten", x, start), axis_of("flatten", x, end)
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


def _t(x: Any) -> Any:
    if x.ndim > 2:
        raise NumgradRuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D; use x.mT"
        )
    return ng.permute(x, tuple(range(x.ndim))[::-1])


def _split(x: Any, size: Any, dim: int) -> tuple:
    length = x.shape[dim]
    if isinstance(size, int):
        if size <= 0 < length:
            raise NumgradRuntimeError(
                f"split: split_size can only be 0 if dimension size is 0, but got {size}"
            )
        count = max(-(-length // size), 1) if size else 1
        sizes = [size] * (count - 1) + [length - size * (count - 1)]
    else:
        sizes = list(size)
        if sum(sizes) != length:
            raise NumgradRuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's "
                f"size at dimension {dim}), but got split_sizes={sizes}"
            )
    return tuple(ng.split(x, np.cumsum(sizes)[:-1].tolist(), dim))


def _chunk(x: Any, chunks: int, dim: int) -> tuple:
    if chunks < 1:
        raise NumgradRuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not x.shape[dim]:
        return tuple(ng.array_split(x, chunks, dim))
    return _split(x, max(-(-x.shape[dim] // chunks), 1), dim)


def _tensor_split(x: Any, parts: Any, dim: int) -> tuple:
    if hasattr(parts, "tolist"):
        parts = parts.tolist()
    if not x.ndim or (isinstance(parts, int) and parts < 1):
        raise NumgradRuntimeError(
            f"tensor_split: {parts} sections of a tensor with {x.ndim} dimensions; it needs at "
            "least one of each"
        )
    return tuple(ng.array_split(x, parts if isinstance(parts, int) else list(parts), dim))


def _even_split(name: str, x: Any, parts: Any, dim: int, least: int) -> tuple:
    at_least(name, x, least)
    if isinstance(parts, int) and (parts < 1 or x.shape[dim] % parts):
        raise NumgradRuntimeError(
            f"{name}: {parts} sections do not divide the length {x.shape[dim]} of dimension {dim}"
        )
    return _tensor_split(x, parts, dim)


def _narrow(x: Any, dim: int, start: Any, length: int) -> Any:
    start = int(start) + (x.shape[dim] if start < 0 else 0)
    if length < 0 or start + length > x.shape[dim]:
        raise NumgradRuntimeError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({x.shape[dim]})."
        )
    return x[(*[slice(None)] * dim, slice(start, start + length))]


def _select(x: Any, dim: int, index: int) -> Any:
    dim = axis_of("select", x, dim)
    return x[(*[slice(None)] * dim, index)]


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
    out = ng.take_along_axis(rows, places, axis)
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


def _take_along(x: Any, index: Any, dim: Any) -> Any:
    if dim is None:
        return ng.take_along_axis(ng.reshape(x, (-1,)), ng.reshape(index, (-1,)), 0)
    return ng.take_along_axis(x, index, dim)


def _masked_select(x: Any, mask: Any) -> Any:
    if mask.dtype.kind != "b":
        raise NumgradRuntimeError(f"masked_select: expected a mask of booleans, got {mask.dtype}")
    x, mask = ng.broadcast_arrays(x, mask)
    return x[mask]


def as_elements(x: Any, value: Any) -> Any:
    """A value in the dtype of where it is written; complex ones are not made real."""
    kind = (value if isinstance(value, Base) else np.asarray(value)).dtype.kind
    if kind == "c" and x.dtype.kind != "c":
        raise NumgradRuntimeError(f"a complex value cannot be written into {x.dtype} numbers")
    return cast(value, x.dtype) if isinstance(value, Base) else x.dtype.type(value)


def _masked_write(name: str, x: Any, mask: Any, value: Any) -> Any:
    if name == "masked_fill":
        if value is not None and getattr(value, "ndim", 0):
            raise NumgradRuntimeError(
                f"masked_fill only supports a 0-dimensional value, got {value.ndim} dimension(s)"
            )
        value = as_elements(x, value)
    shape = np.broadcast_shapes(x.shape, mask.shape)
    x, mask = ng.broadcast_to(x, shape), ng.broadcast_to(mask, shape)
    return OPS[name](x, mask, value)


def _as_strided(x: Any, size: Any, stride: Any, offset: Any) -> Any:
    """Elements at places in memory, which are counted from where the memory begins."""
    if not _is_plain(x):
        places, begin = positions(x, size, stride, offset)
        return _apart(ng.take(ng.reshape(x, (-1,)), places - begin))
    if min((*size, *stride, offset or 0), default=0) < 0 or len(size) != len(stride):
        raise NumgradRuntimeError(
            "as_strided: sizes, as many strides and the offset must not be negative, got "
            f"{list(size)}, {list(stride)}, {offset}"
        )
    owner = root(x)
    whole, item = Region(owner._array, x._array), x.itemsize
    begin = whole.offset if offset is None else whole.origin + int(offset) * item
    steps = [int(step) * item for step in stride]
    reach = [step * (n - 1) for step, n in zip(steps, size, strict=True)]
    low, high = (begin + sum(pick(0, r) for r in reach) for pick in (min, max))
    if 0 not in size and (low < 0 or high + item > whole.extent):
        raise NumgradRuntimeError(
            f"as_strided: size {list(size)}, stride {list(stride)} and storage_offset {offset} are "
            f"out of bounds of memory of {whole.extent // item} elements"
        )
    return _seen(x, tuple(size), x.dtype, tuple(steps), begin - whole.offset)


def _seen(x: Any, shape: Any, dtype: Any, strides: Any, offset: int = 0) -> Any:
    """The memory of a Tensor, read in another way from ``offset`` bytes after where it begins."""
    owner = root(x)
    if not follows_root(x) or len(_tangents(x)) != len(_tangents(owner)):
        owner = x
    where = Region(owner._array, x._array)
    where.part, where.strides, where.offset = Meta(shape, dtype), strides, where.offset + offset
    try:
        out = OPS["region"](owner, where=where)
    except (TypeError, ValueError) as error:
        raise NumgradRuntimeError(
            "as_strided: takes elements outside of a view whose history or tangent is not its "
            "base's (a Function returned it, or it was made under no_grad() or in forward mode); "
            "take a view of the base"
        ) from error
    pairs = [(out, owner), *zip(_tangents(out), _tangents(owner), strict=False)]
    if out.size and not all(np.may_share_memory(a._array, b._array) for a, b in pairs):
        out._array.flags.writeable = False  # the owner is not contiguous: writes are refused
    return out


def _tangents(x: Any) -> list[Any]:
    """Those of forward mode, from the outside in."""
    levels = [i for i in state.interpreters if isinstance(i, ForwardInterpreter)]
    return [t for i in levels if (t := i.tangent(x)) is not None]


def _is_plain(x: Any) -> bool:
    """Whether a Tensor has memory, and what is recorded of it or its tangents can be followed."""
    levels = state.interpreters
    followed = all(isinstance(i, ForwardInterpreter) and not i.several for i in levels)
    return followed and type(x._array) is np.ndarray


def _adjoint(x: Any) -> Any:
    if x.ndim == 1:
        raise NumgradRuntimeError("adjoint is only supported on matrices or batches of matrices")
    if not x.ndim:
        return conjugated(x)
    return conjugated(ng.swapaxes(x, -1, -2))


def conjugated(x: Any) -> Any:
    """The conjugate; one of complex numbers is no view, as PyTorch's is, so writes are refused."""
    if x.dtype.kind != "c":
        return x
    return _apart(ng.conjugate(x))


def _apart(out: Any) -> Any:
    """A copy where PyTorch has a view: writes, which the base would not see, are refused."""
    y = out
    while isinstance(y, Batched):
        y = y.value
    if type(y._array) is np.ndarray:
        y._array.flags.writeable = False
    return out


def _view_as_real(x: Any) -> Any:
    if x.dtype.kind != "c":
        raise NumgradRuntimeError("view_as_real is only supported for complex tensors")
    if not _is_plain(x):
        return _apart(ng.stack([ng.real(x), ng.imag(x)], axis=-1))
    d = x._array.real.dtype
    return _seen(x, (*x.shape, 2), d, (*x._array.strides, d.itemsize))


def positions(x: Any, size: Any, stride: Any, offset: Any) -> tuple[np.ndarray, int]:
    """Numbers of elements in memory, from its beginning, and where ``x`` begins."""
    begin = 0
    if not isinstance(x, Batched):
        begin = (address(x) - address(root(x))) // x.itemsize
    start = begin if offset is None else int(offset)
    places = np.full(tuple(size), start, np.int64)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        places += (np.arange(length) * step).reshape([-1] + [1] * (len(size) - axis - 1))
    return places, begin


def address(x: Any) -> int:
    """Where a Tensor has its first element."""
    return x._array.__array_interface__["data"][0]


def _strided_scatter(x: Any, src: Any, size: Any, stride: Any, offset: Any) -> Any:
    places, _ = positions(x, size, stride, offset)
    flat = OPS["put"](ng.reshape(x, (-1,)), places.ravel(), ng.reshape(src, (-1,)))
    return ng.reshape(flat, x.shape)


def _nonzero_static(x: Any, size: int, fill: int) -> Any:
    def places(numbers: np.ndarray) -> np.ndarray:
        rows = np.argwhere(numbers)[:size]
        return np.pad(rows, ((0, size - len(rows)), (0, 0)), constant_values=fill)

    return computed(places, x)


def _combinations(x: Any, r: int, replaced: bool) -> Any:
    choose = combinations_with_replacement if replaced else combinations
    if x.ndim != 1 or r < 0:
        raise NumgradRuntimeError(f"combinations: needs 1 dimension, not {x.ndim}, and r >= 0")
    if not r:
        return ng.zeros((0,), x.dtype)
    rows = np.array(list(choose(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    return ng.take(x, rows, 0)


def _unfold(x: Any, dim: int, size: int, step: int) -> Any:
    axis = axis_of("unfold", x, dim)
    if not _is_plain(x) or not x.ndim or not 0 <= size <= x.shape[axis] or step < 1:
        out = _apart(ng.unfold(_row(x), axis, size, step))
        return out if x.ndim else out[0]
    shape, strides = list(x.shape), list(x._array.strides)
    strides.append(strides[axis])
    strides[axis] *= step
    shape[axis] = (shape[axis] - size) // step + 1
    return _seen(x, (*shape, size), x.dtype, tuple(strides))


def _meshgrid(tensors: Any, indexing: Any) -> tuple:
    tensors = _listed(tensors)
    if not tensors or any(x.ndim > 1 for x in tensors) or indexing not in (None, "ij", "xy"):
        raise NumgradRuntimeError(
            "meshgrid: expects one Tensor at least, each with 0 or 1 dimensions, and indexing 'xy' "
            f"or 'ij'; got {[x.ndim for x in tensors]} dimensions and {indexing!r}"
        )
    check_equal("meshgrid", [x.dtype for x in tensors])
    swapped = indexing == "xy" and len(tensors) > 1
    tensors = [*tensors[1::-1], *tensors[2:]] if swapped else tensors
    shape = tuple([x.size for x in tensors])
    grids = []
    for k, x in enumerate(tensors):
        line = ng.reshape(x, [-1 if axis == k else 1 for axis in range(len(shape))])
        grids.append(ng.broadcast_to(line, shape))
    return tuple([*grids[1::-1], *grids[2:]] if swapped else grids)


def _sum_to(x: Any, shape: tuple) -> Any:
    new = x.ndim - len(shape)
    inner = tuple(new + k for k, n in enumerate(shape) if n == 1 != x.shape[new + k])
    if x.ndim and not new and not inner:
        return ng.reshape(x, shape)
    x = OPS["astype"](x, dtype=np.dtype(np.int64)) if x.dtype.kind in "biu" else x
    return ng.reshape(ng.sum(x, (*range(new), *inner)), shape)


def _listed(tensors: Any) -> Any:
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors


def _atleast(function: Any, tensors: Any) -> Any:
    given = _listed(tensors)
    if given is not tensors or len(tensors) > 1:
        return tuple(function(t) for t in given)
    return function(given[0])


def _flip(x: Any, axes: tuple[int, ...]) -> Any:
    return ng.copy(ng.flip(x, axes) if x.ndim else x)


def _cat(tensors: Any, dim: int) -> Any:
    if not tensors:
        raise NumgradRuntimeError("cat: there are no Tensors to join; give a list of at least one")
    kept = [t for t in tensors if t.shape != (0,)] or tensors[:1]
    return ng.cat(list(kept), axis=dim if kept[0].shape != (0,) else 0)


def _pairs(x: Any) -> Any:
    if x.shape[-1:] != (2,):
        raise NumgradRuntimeError("view_as_complex: the last axis must have the length 2")
    if not _is_plain(x):
        return _apart(OPS["from_parts"](x[..., 0], x[..., 1]))
    *strides, step = x._array.strides
    if x.dtype.kind != "f" or step != x.itemsize or any(n % (2 * step) for n in strides):
        raise NumgradRuntimeError(
            "view_as_complex: pairs of floating numbers must lie side by side; call contiguous()"
        )
    return _seen(x, x.shape[:-1], np.result_type(x.dtype, np.complex64), tuple(strides))


def _rot90(x: Any, k: int, dims: tuple[int, ...]) -> Any:
    if len(dims) != 2 or x.ndim < 2 or dims[0] % x.ndim == dims[1] % x.ndim:
        raise NumgradRuntimeError(
            f"rot90: expected total rotation dims == 2 that are different, and an operand of two "
            f"axes or more, but got dims {dims} and shape {list(x.shape)}"
        )
    if k % 2 == 0:
        return ng.copy(ng.flip(x, dims)) if k else ng.copy(x)
    return ng.swapaxes(ng.copy(ng.flip(x, dims[k % 3])), *dims)


def _roll(x: Any, shifts: Any, dims: Any) -> Any:
    if shifts == ():
        raise NumgradRuntimeError("roll: `shifts` required")
    several = [len(v) if isinstance(v, tuple | list) else 1 for v in (shifts, dims)]
    if dims is not None and dims != () and several[0] != several[1]:
        raise NumgradRuntimeError(
            f"roll: shifts and dimensions must align. shifts: {several[0]}, dims: {several[1]}"
        )
    if not dims and dims != 0:
        return ng.roll(x, shifts if isinstance(shifts, int) else shifts[0])
    return ng.roll(x, shifts, dims)


def _view(x: Any, shape: Any, dtype: Any) -> Any:
    one = shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape
    dtype = one if isinstance(one, np.dtype) else dtype
    if dtype is not None:
        return ng.asarray(x._array.view(dtype))
    out = ng.reshape(x, tuple(shape))
    if not contiguous(x) and x.size and address(out) != address(x):
        raise NumgradRuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return out


TABLE = """
[same 1 sizes=1]
reshape(input, shape): ng.reshape(input, tuple(shape))
permute(input, dims): ng.permute(input, tuple(dims))
tile(input, dims): ng.tile(input, tuple(dims))
flip(input, dims): _flip(input, tuple([axis_of("flip", input, d) for d in dims]))
[same 1 sizes=1 method]
view(input, shape, *, dtype=None): _view(input, shape, dtype)
expand(input, size, *, implicit=False): _expand(input, size)
repeat(input, repeats): _repeat(input, repeats)
[same 1]
broadcast_to(input, size): _expand(input, size)
repeat_interleave(input, repeats=None, dim=None, *, output_size=None): _repeat_interleave(
    input, repeats, dim)
flatten(input, start_dim=0, end_dim=-1): _flatten(input, start_dim, end_dim)
ravel(input): ng.reshape(input if contiguous(input) else ng.copy(input), (-1,))
adjoint(input): _adjoint(input)
movedim(input, source, destination): ng.moveaxis(input, source, destination)
hsplit(input, indices_or_sections): _even_split(
    "hsplit", input, indices_or_sections, 1 if input.ndim > 1 else 0, 1)
vsplit(input, indices_or_sections): _even_split("vsplit", input, indices_or_sections, 0, 2)
dsplit(input, indices_or_sections): _even_split("dsplit", input, indices_or_sections, 2, 3)
unbind(input, dim=0): tuple(ng.unbind(input, dim))
select(input, dim, index): _select(input, dim, index)
diagonal(input, offset=0, dim1=0, dim2=1): ng.diagonal(
    input, offset, axis_of("diagonal", input, dim1), axis_of("diagonal", input, dim2))
diag(input, diagonal=0): ng.copy(ng.diag(input, diagonal))
diag_embed(input, offset=0, dim1=-2, dim2=-1): ng.diag_embed(input, offset, dim1, dim2)
diagflat(input, offset=0): ng.diagflat(input, offset)
rot90(input, k=1, dims=(0, 1)): _rot90(input, k % 4, tuple(dims))
fliplr(input): ng.copy(ng.fliplr(at_least("fliplr", input, 2)))
flipud(input): ng.copy(ng.flipud(at_least("flipud", input, 1)))
roll(input, shifts, dims=None): _roll(input, shifts, dims)
masked_select(input, mask): _masked_select(input, mask)
take(input, index): ng.take(input, index)
take_along_dim(input, indices, dim=None): _take_along(input, indices, dim)
nonzero(input, *, as_tuple=False): (
    tuple(ng.nonzero(_row(input))) if as_tuple else ng.argwhere(input))
argwhere(input): ng.argwhere(input)
clone(input, *, memory_format=None): copied(input, memory_format)
conj(input): conjugated(input)
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
chunk(input, chunks, dim=0): _chunk(input, chunks, dim)
tensor_split(input, indices_or_sections, dim=0): _tensor_split(input, indices_or_sections, dim)
{unsafe_split=split_size unsafe_split_with_sizes=split_sizes}(input, @, dim=0): tuple(
    map(ng.copy, _split(input, @, dim)))
unsafe_chunk(input, chunks, dim=0): tuple(map(ng.copy, _chunk(input, chunks, dim)))
narrow(input, dim, start, length): _narrow(input, dim, start, length)
index_select(input, dim, index): ng.take(input, _row(index), dim)
[same 1 method]
unfold(input, dimension, size, step): _unfold(input, dimension, size, step)
expand_as(input, other): _expand(input, other.shape)
view_as(input, other): _view(input, other.shape, None)
reshape_as(input, other): ng.reshape(input, other.shape)
sum_to_size(input, *size): _sum_to(input, tuple(_listed(size)))
[same 1 inplace restrides]
unsqueeze(input, dim): ng.expand_dims(input, dim)
t(input): _t(input)
as_strided(input, size, stride, storage_offset=None): _as_strided(
    input, size, stride, storage_offset)
[same 1 inplace restrides axis]
squeeze(input, dim=None): _squeeze(input, dim)
transpose(input, dim0, dim1): ng.swapaxes(input, dim0, dim1)
[same 1 inplace]
{tril triu}(input, diagonal=0): ng.@(input, diagonal)
[first 0,2 inplace]
masked_fill(input, mask, value): _masked_write("masked_fill", input, mask, value)
[equal 0,2 inplace]
masked_scatter(input, mask, source): _masked_write("masked_scatter", input, mask, source)
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
cat(tensors, dim=0): _cat(tensors, dim)
stack(tensors, dim=0): ng.stack(list(tensors), axis=dim)
{hstack vstack dstack column_stack}(tensors): ng.@(list(tensors))
[same 0 function]
block_diag(*tensors): ng.linalg.block_diag(*alike(tensors))
{atleast_1d atleast_2d atleast_3d}(*tensors): _atleast(ng.@, tensors)
broadcast_shapes(*shapes): Size(np.broadcast_shapes(
    *[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))
broadcast_tensors(*tensors): tuple(ng.broadcast_arrays(*_listed(tensors)))
meshgrid(*tensors, indexing=None): _meshgrid(tensors, indexing)
cartesian_prod(*tensors): tensors[0] if len(tensors) == 1 else ng.stack(
    [ng.reshape(t, (-1,)) for t in _meshgrid(tensors, "ij")], axis=-1)
combinations(input, r=2, with_replacement=False): _combinations(input, r, with_replacement)
view_as_real(input): _view_as_real(input)
view_as_complex(input): _pairs(input)
[same 1 function]
unravel_index(indices, shape): computed(lambda places: np.unravel_index(
    places, shape if isinstance(shape, int) else tuple(shape)), indices)
fill(input, value): OPS["masked_fill"](input, np.ones(input.shape, bool), value)
constant_pad_nd(input, pad, value=0): ng.nn.functional.pad(input, pad, "constant", value)
[same 1]
nonzero_static(input, *, size, fill_value=-1): _nonzero_static(input, size, fill_value)
alias(input): input
copies alias diagonal as_strided permute transpose t squeeze unsqueeze unbind split_with_sizes
 narrow expand view unfold
[same 0]
aliases concat=cat concatenate=cat row_stack=vstack moveaxis=movedim swapaxes=transpose
 swapdims=transpose
"""

table("", globals(), TABLE)
