"""NumPy's functions that write into an array, on Tensors: they become in-place operations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.versions import mark_written
from numgrad.core.abstract import AbstractArray, made
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.write import check_cast
from numgrad.tensors.flat import repeated
from numgrad.tensors.inplace import (
    assign,
    check_target,
    inplace,
    positions_by_example,
    tensors_of_index,
)
from numgrad.tensors.library_calls import library_call
from numgrad.tensors.tensor import Tensor


def requires_grad(value: Any) -> bool:
    """Whether a gradient or tangent is followed through ``value``, or something in it."""
    if isinstance(value, Tensor):
        return value.requires_grad or has_tangent(value)
    if isinstance(value, list | tuple):
        return any(map(requires_grad, value))
    return isinstance(value, dict) and any(map(requires_grad, value.values()))


def _array(value: Any) -> np.ndarray:
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def _target(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    found = library_call()  # NumPy's own, as in np.full_like
    if found is not None and found[1]:
        raise NumgradTypeError(
            f"{found[0]}: a Tensor cannot be written into the ndarray that it makes; {found[1]}"
        )
    raise NumgradTypeError(
        f"np.{name}: a Tensor cannot be written into an ndarray; use ng.asarray on the target, or "
        "detach().numpy() on the values"
    )


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """``np.copyto``."""
    dst = _target("copyto", dst)
    dtype = src.dtype if hasattr(src, "dtype") else np.result_type(src)
    if not np.can_cast(dtype, dst.dtype, casting):
        raise NumgradTypeError(
            f"np.copyto: dtype {_array(src).dtype} does not go into {dst.dtype} with "
            f"casting={casting!r}"
        )
    if where is not True:
        if _array(where).dtype != np.bool_:
            raise NumgradTypeError(
                f"np.copyto: where= has dtype {_array(where).dtype} and must be boolean; compare, "
                "as in mask != 0"
            )
        src = OPS["astype"](OPS["where"](where, src, dst), dtype=dst.dtype)
    assign("np.copyto", dst, src)


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """``np.put``."""
    a, indices = _target("put", a), _operand(ind)
    if mode == "wrap":
        indices = indices % a.size
    elif mode == "clip":
        indices = OPS["minimum"](OPS["maximum"](indices, 0), a.size - 1)
    elif mode != "raise":
        raise NumgradValueError(f"np.put: mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    inplace(OPS["put"], "np.put", a, (indices, repeated(v, indices.size)), {})


def place(arr: Any, mask: Any, vals: Any) -> None:
    """``np.place``."""
    arr = _target("place", arr)
    if not _is_known(mask):
        flags = _flags("place", arr, mask)
        vals = OPS["ravel"](_operand(vals))
        order = OPS["cumsum"](OPS["astype"](OPS["ravel"](flags), dtype=np.int64)) - 1
        _choose("place", arr, flags, OPS["take"](vals, order % vals.size))
        return
    (positions,) = _array(mask).ravel().nonzero()
    inplace(OPS["put"], "np.place", arr, (positions, repeated(vals, positions.size)), {})


def putmask(a: Any, mask: Any, values: Any) -> None:
    """``np.putmask``."""
    a = _target("putmask", a)
    values = repeated(values, a.size)
    if not _is_known(mask):
        _choose("putmask", a, _flags("putmask", a, mask), values)
        return
    (positions,) = _array(mask).ravel().nonzero()
    inplace(OPS["put"], "np.putmask", a, (positions, values[positions]), {})


def _is_known(x: Any) -> bool:
    """Whether the numbers of an operand are there: those of a trace or of examples are not."""
    if isinstance(x, Batched):
        return False
    return not (isinstance(x, Tensor) and isinstance(x._array, AbstractArray))


def _operand(x: Any) -> Any:
    if isinstance(x, list | tuple) and any(isinstance(part, Tensor) for part in x):
        return OPS["stack"](x)
    return x if isinstance(x, Tensor) else np.asarray(x)


def _flags(name: str, target: Tensor, mask: Any) -> Any:
    """A mask as flags of the elements of the target."""
    if mask.size != target.size:
        raise NumgradValueError(
            f"np.{name}: the mask has shape {tuple(mask.shape)} and the array "
            f"{tuple(target.shape)}; they must have as many elements"
        )
    return OPS["reshape"](OPS["astype"](mask, dtype=np.bool_), target.shape)


def _choose(name: str, target: Tensor, flags: Any, values: Any) -> None:
    """Write values, one for each element of the target, where there are flags."""
    assign(f"np.{name}", target, OPS["where"](flags, OPS["reshape"](values, target.shape), target))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """``np.put_along_axis``."""
    arr, indices = _target("put_along_axis", arr), _operand(indices)
    if axis is None:
        put(arr, indices, OPS["broadcast_to"](values, indices.shape))
        return
    places = OPS["reshape"](OPS["iota"](length=arr.size), arr.shape)
    positions = OPS["take_along_axis"](places, indices, axis=axis)
    values = OPS["broadcast_to"](values, positions.shape)
    inplace(OPS["put"], "np.put_along_axis", arr, (positions, values), {})


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """``np.fill_diagonal``."""
    a = _target("fill_diagonal", a)
    chosen = np.zeros(a.shape, bool)
    np.fill_diagonal(chosen, True, wrap)
    place(a, chosen, val)


WRITES = {
    np.copyto: copyto,
    np.put: put,
    np.place: place,
    np.putmask: putmask,
    np.put_along_axis: put_along_axis,
    np.fill_diagonal: fill_diagonal,
}


def ufunc_at(
    name: str, ufunc: np.ufunc, op: Op | None, target: Any, index: Any, *values: Any
) -> None:
    """``ufunc.at`` into a Tensor, by operations where something is recorded or not known yet."""
    target = _target(f"{name}.at", target)
    if ufunc in (np.add, np.subtract):
        (value,) = values if ufunc is np.add else (OPS["negative"](values[0]),)
        places = positions_by_example(target, index)
        if places is not None:
            value = OPS["broadcast_to"](value, places.shape)
            inplace(OPS["put"], f"{name}.at", target, (places, value), {"accumulate": True})
            return
        if state.ground.deferred:
            index = _without_masks(index)
        params = {"index": index, "accumulate": True}
        inplace(OPS["index_put"], f"{name}.at", target, (value,), params)
        return
    given = (target, *values)
    known = all(map(_is_known, (*given, *tensors_of_index(index))))
    if op is not None and (not known or any(map(requires_grad, given))):
        from numgrad.tensors.ufunc_groups import updated  # few programs need it

        call: Any = partial(updated, f"{name}.at", ufunc, op)
        inplace(call, f"{name}.at", target, (index, *values), {})
        return
    check_target(f"{name}.at", target)
    refuse_recorded(f"{name}.at", *given)
    ufunc.at(target._array, _plain_index(index), *map(_array, values))
    mark_written(target)


def _without_masks(index: Any) -> Any:
    """What stands in brackets with places instead of masks whose numbers are known."""
    parts: list[Any] = []
    for part in index if type(index) is tuple else (index,):
        known = isinstance(part, np.ndarray) and part.dtype == bool and part.ndim
        parts += [made(k) for k in np.nonzero(part)] if known else [part]
    return tuple(parts)


def _plain_index(index: Any) -> Any:
    """What stands in brackets with arrays in place of Tensors."""
    if type(index) is tuple:
        return tuple(map(_plain_index, index))
    return index._array if isinstance(index, Tensor) else index


def store(
    name: str, out: Tensor, inputs: Any, compute: Callable[[], Tensor], *, where: Any = True
) -> Tensor:
    """``compute()`` written to ``out=``, for what nothing is recorded of.

    With ``where``, a mask, elements of ``out`` stay where it is false.
    """
    name = f"{name} with out="
    refuse_recorded(name, out, inputs)
    value = compute()
    check_cast(name, value, out.dtype)
    if where is True and value.shape != out.shape:
        raise NumgradValueError(
            f"{name}: the result has shape {tuple(value.shape)} and out= {tuple(out.shape)}; they "
            "must be equal"
        )
    return assign(name, out, value if where is True else OPS["where"](where, value, out))


def refuse_recorded(name: str, *values: Any) -> None:
    """Raise if a gradient would be lost."""
    if state.grad_enabled and any(map(requires_grad, values)):
        raise NumgradRuntimeError(
            f"{name}: an argument requires grad, and this writes without recording; use the result "
            "of the function, or no_grad()"
        )
