"""NumPy's functions that write into an array, on Tensors: they become in-place operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.node import mark_written
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.inplace import assign, check_target, inplace
from numgrad.op.base import OPS, Op, state
from numgrad.tensor import Tensor


def _array(value: Any) -> np.ndarray:
    return value._array if isinstance(value, Tensor) else np.asarray(value)


def _target(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    raise NumgradTypeError(
        f"np.{name}: a Tensor cannot be written into an ndarray; use ng.asarray on the target, or "
        "detach().numpy() on the values"
    )


def _repeated(values: Any, count: int) -> Any:
    """The first ``count`` elements of ``values``, begun again at the end, as NumPy does it."""
    flat = OPS["ravel"](values if isinstance(values, Tensor) else np.asarray(values))
    return flat[np.arange(count) % flat.size] if count else flat[:0]


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """``np.copyto``."""
    dst = _target("copyto", dst)
    dtype = src.dtype if hasattr(src, "dtype") else np.result_type(src)
    if not np.can_cast(dtype, dst.dtype, casting):
        raise NumgradTypeError(
            f"np.copyto: dtype {_array(src).dtype} does not go into {dst.dtype} with "
            f"casting={casting!r}"
        )
    assign("np.copyto", dst, src if where is True else OPS["where"](where, src, dst))


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """``np.put``."""
    a, indices = _target("put", a), _array(ind)
    if mode == "wrap":
        indices = indices % a.size
    elif mode == "clip":
        indices = np.clip(indices, 0, a.size - 1)
    inplace(OPS["put"], "np.put", a, (indices, _repeated(v, indices.size)), {})


def place(arr: Any, mask: Any, vals: Any) -> None:
    """``np.place``."""
    arr, (positions,) = _target("place", arr), _array(mask).ravel().nonzero()
    inplace(OPS["put"], "np.place", arr, (positions, _repeated(vals, positions.size)), {})


def putmask(a: Any, mask: Any, values: Any) -> None:
    """``np.putmask``."""
    a, (positions,) = _target("putmask", a), _array(mask).ravel().nonzero()
    values = _repeated(values, a.size)[positions]
    inplace(OPS["put"], "np.putmask", a, (positions, values), {})


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """``np.put_along_axis``."""
    arr, indices = _target("put_along_axis", arr), _array(indices)
    if axis is None:
        put(arr, indices, values)
        return
    positions = np.take_along_axis(np.arange(arr.size).reshape(arr.shape), indices, axis)
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


def ufunc_at(name: str, ufunc: np.ufunc, target: Any, index: Any, *values: Any) -> None:
    """``ufunc.at``: sums and differences are differentiable, others write to plain Tensors."""
    target = _target(f"{name}.at", target)
    if ufunc in (np.add, np.subtract):
        (value,) = values if ufunc is np.add else (OPS["negative"](values[0]),)
        params = {"index": index, "accumulate": True}
        inplace(OPS["index_put"], f"{name}.at", target, (value,), params)
        return
    check_target(f"{name}.at", target)
    refuse_recorded(f"{name}.at", target, *values)
    ufunc.at(target._array, index, *map(_array, values))
    mark_written(target)


def store(name: str, op: Op, out: Any, inputs: tuple, params: dict[str, Any]) -> Tensor:
    """``op(*inputs, out=out)`` with a Tensor among them, for what nothing is recorded of."""
    out = out[0] if isinstance(out, tuple) else out
    refuse_recorded(f"{name} with out=", out, *inputs)
    return assign(f"{name} with out=", _target(name, out), op(*inputs, **params))


def refuse_recorded(name: str, *values: Any) -> None:
    """Raise if a gradient would be lost."""
    if state.grad_enabled and any(isinstance(v, Tensor) and v.requires_grad for v in values):
        raise NumgradRuntimeError(
            f"{name}: an argument requires grad, and this writes without recording; use the result "
            "of the function, or no_grad()"
        )
