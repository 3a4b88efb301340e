"""NumPy's functions on Tensors: they differentiate, or never lose a gradient silently.

Note [Functions without an operation]
-------------------------------------
On Tensors that require grad they raise, naming the function. On plain Tensors NumPy computes on the
arrays and its own result is returned. ``np.asarray`` inside other libraries is caught by
``Tensor.__array__``, which refuses where a gradient would be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.forward_ad import has_tangent
from numgrad.creation import empty_like, full_like, ones_like, zeros_like
from numgrad.errors import NumgradTypeError
from numgrad.numpy_writes import WRITES, store, ufunc_at
from numgrad.op.base import OPS, Op, state
from numgrad.tensor import Tensor

_by_function: dict[Any, Any] = {}
_table_size = 0

_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min",
               "logical_and": "all", "logical_or": "any"}  # fmt: skip
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_PLAIN = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
    np.zeros_like: zeros_like,
    np.ones_like: ones_like,
    np.empty_like: empty_like,
    np.full_like: full_like,
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.result_type: lambda *xs: np.result_type(*(_plain(x) for x in xs)),
    np.array_repr: lambda x, *a, **k: repr(x),
    np.array_str: lambda x, *a, **k: str(x),
    np.copy: lambda x, *a, **k: x.clone(),
}


def _function_table() -> dict[Any, Any]:
    """NumPy and SciPy functions -> operations; remade when the table has grown."""
    global _table_size
    if _table_size != len(OPS):
        for op in OPS.values():
            if callable(op.ref):
                _by_function.setdefault(op.ref, op)
            for name in op.names:
                for home in (np, np.linalg):
                    function = getattr(home, name, None)
                    if callable(function) and not isinstance(function, type):
                        _by_function.setdefault(function, op)
            if isinstance(op.ref, str):
                _by_function.setdefault(op.ref.rsplit(".", 1)[-1], op)
        _table_size = len(OPS)
    return _by_function


def _plain(value: Any) -> Any:
    """``value`` with every Tensor in it replaced by its array."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _requires_grad(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad or has_tangent(value)
    if isinstance(value, list | tuple):
        return any(map(_requires_grad, value))
    return isinstance(value, dict) and any(map(_requires_grad, value.values()))


def _refuse(name: str, *values: Any) -> None:
    if (state.grad_enabled or state.interpreters) and any(map(_requires_grad, values)):
        raise NumgradTypeError(
            f"{name}: has no gradient here and an argument requires grad; use operations that have "
            "one (ng.ops lists them), or detach() the argument to do without"
        )


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's call of a ufunc with a Tensor among its arguments."""
    if method == "__call__" and not kwargs:  # by far the most frequent
        op = _by_function.get(ufunc)
        if op is not None:
            return op(*inputs)
    op = _function_table().get(ufunc) or (
        # SciPy's ufuncs are known by name, so that nothing imports SciPy early
        _function_table().get(ufunc.__name__)
        if "scipy" in (ufunc.__doc__ or "") + _home(ufunc)
        else None
    )
    if method == "at":
        return ufunc_at(_name(ufunc), ufunc, *inputs)
    if kwargs.get("out") is not None:
        out = kwargs.pop("out")
        if method == "__call__" and op is not None and _is_tensor(out):
            return store(_name(ufunc), op, out, inputs, kwargs)
        _refuse_out(_name(ufunc), out, inputs)
        kwargs["out"] = out
    if method == "__call__" and op is not None and not kwargs:
        return op(*inputs)
    if method == "reduce" and ufunc.__name__ in _REDUCTIONS:
        kwargs = {k: v for k, v in kwargs.items() if v is not None and v is not np._NoValue}
        kwargs.setdefault("axis", 0)
        return OPS[_REDUCTIONS[ufunc.__name__]](*inputs, **kwargs)
    if method == "accumulate" and ufunc.__name__ in _ACCUMULATIONS:
        return OPS[_ACCUMULATIONS[ufunc.__name__]](*inputs, **{"axis": 0, **kwargs})
    if method == "outer" and op is not None and len(inputs) == 2:
        a, b = (x if isinstance(x, Tensor) else np.asarray(x) for x in inputs)
        return op(a[(..., *(None,) * b.ndim)], b)
    name = _name(ufunc) + ("" if method == "__call__" else f".{method}")
    if op is not None and method == "__call__":
        raise NumgradTypeError(f"{name}: keywords {', '.join(kwargs)} are not taken on Tensors")
    _refuse(name, inputs)
    return getattr(ufunc, method)(*map(_plain, inputs), **_plain(kwargs))


def _name(function: Any) -> str:
    """A function as the user wrote it: ``np.linalg.inv``, ``scipy.special.jv``."""
    if isinstance(function, np.ufunc) and _home(function):
        return f"scipy.special.{function.__name__}"
    home = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
    return f"{home}.{function.__name__}"


def _home(ufunc: np.ufunc) -> str:
    """``scipy`` for ufuncs that are not NumPy's."""
    return "" if getattr(np, ufunc.__name__, None) is ufunc else "scipy"


def _is_tensor(out: Any) -> bool:
    return isinstance(out[0] if isinstance(out, tuple) and len(out) == 1 else out, Tensor)


def _refuse_out(name: str, out: Any, inputs: tuple) -> None:
    if _is_tensor(out):
        raise NumgradTypeError(f"{name}: out= cannot be a Tensor here; assign the result instead")
    _refuse(f"{name} with out=", inputs)


def _array_function(
    self: Tensor, func: Callable[..., Any], types: Any, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """NumPy's call of a function with a Tensor among its arguments."""
    if func in _PLAIN:
        return _PLAIN[func](*args, **kwargs)
    if func in WRITES:
        return WRITES[func](*args, **kwargs)
    op = _function_table().get(func)
    if isinstance(op, Op) and not (func is np.where and len(args) == 1):
        kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
        out = kwargs.pop("out", None)
        if out is not None:
            if _is_tensor(out):
                return store(_name(func), op, out, args, kwargs)
            _refuse_out(_name(func), out, args)
        return op(*args, **kwargs)
    _refuse(_name(func), args, kwargs)
    return func(*_plain(args), **_plain(kwargs))


Tensor.__array_ufunc__ = _array_ufunc
Tensor.__array_function__ = _array_function
