"""NumPy's functions on Tensors: they differentiate, or never lose a gradient silently.

Note [Functions without an operation]
-------------------------------------
NumPy computes on the arrays and its own result is returned. If an argument requires grad, that is
so only for results that have no derivative by their nature: integers, booleans, dtypes, text.
Others raise, naming the function. ``np.asarray`` inside other libraries is caught by
``Tensor.__array__``, which refuses where a gradient would be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from numgrad.core.arguments import signature_of
from numgrad.core.axis import normalize_axes
from numgrad.core.interpreter import state
from numgrad.core.op import FOUND, OPS, Op
from numgrad.errors import NumgradTypeError
from numgrad.operations.lazy_operations import declare_for, of_namespace
from numgrad.tensors import creation
from numgrad.tensors.hints import in_solver
from numgrad.tensors.labels import defers
from numgrad.tensors.numpy_calls import NOT_GIVEN, WRITES, Translation, requires_grad
from numgrad.tensors.numpy_ufuncs import METHODS, call, scipy_ufuncs, title
from numgrad.tensors.tensor import Tensor

_by_function: dict[Any, Op] = {}
_translations: dict[Any, Translation] = {}
_known: tuple[int, bool] = (0, False)
_ORDINARY = frozenset((Tensor, np.ndarray, float, int, np.float64))
"""Kinds of operands of ufuncs that have no labels."""
FOUND.extend((_by_function, _translations))


def _function_table() -> dict[Any, Op]:
    """NumPy and SciPy functions -> operations; remade when there are more of either."""
    global _known
    known = (len(OPS), "scipy.special" in sys.modules)
    if _known != known or not _by_function:
        for op in list(OPS.values()):  # layers may be loaded meanwhile, by another thread
            if callable(op.ref):
                _by_function.setdefault(op.ref, op)
            for name in op.names:
                # where both have a name, np.linalg's means the last two axes
                for home in (np, np.linalg):
                    function = getattr(home, name, None)
                    if home is np.linalg and hasattr(np, name):
                        continue
                    if callable(function) and not isinstance(function, type):
                        _by_function.setdefault(function, op)
        for function, op in scipy_ufuncs().items():
            _by_function.setdefault(function, op)
        _known = known
    return _by_function


def _operation(function: Any) -> Op | None:
    """The function that computes one of NumPy's or SciPy's on Tensors."""
    op = _function_table().get(function)
    if op is None and declare_for(function):
        op = _function_table().get(function)
    if op is None:
        op = of_namespace(function)
    return op


# ---------------------------------------------------------------------- without an operation


def _plain(value: Any) -> Any:
    """``value`` with every Tensor in it replaced by its array."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _is_discrete(result: Any) -> bool:
    """Whether a result has no derivative by its nature."""
    if isinstance(result, list | tuple):
        return bool(result) and all(map(_is_discrete, result))
    if isinstance(result, np.ndarray | np.generic):
        return result.dtype.kind in "biuSUmM"
    return isinstance(result, bool | int | str | np.dtype | type)


_UNSEEN = (np.save, np.savez, np.savez_compressed, np.savetxt)
"""Functions that return nothing, and so are refused before they do something."""


def _without_operation(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Note [Functions without an operation]."""
    _check_not_written(name, function, args, kwargs)
    differentiates = (state.grad_enabled or state.interpreters) and requires_grad((args, kwargs))
    if not differentiates or (function not in _UNSEEN and kwargs.get("out") is None):
        result = function(*_plain(args), **_plain(kwargs))
        if not differentiates or _is_discrete(result):
            return result
    if kwargs.get("out") is not None:
        raise NumgradTypeError(
            f"{name}: an argument requires grad, and out= is an ndarray, which carries no gradient "
            "(of a += t it is a); make it by ng.zeros or ng.tensor, leave out= away, write "
            "a = a + t, or detach() the argument"
        )
    hint = import_module("numgrad.tensors.hints").hint  # for errors only
    home, _, own = name.replace("np.", "numpy.", 1).rpartition(".")
    raise NumgradTypeError(
        f"{name}: has no gradient here and an argument requires grad; {hint(home, own)}; or "
        "detach() the argument to do without"
    )


def _check_not_written(name: str, function: Any, args: Any, kwargs: Any) -> None:
    """Raise if a Tensor would be written to by NumPy, past its version."""
    out = kwargs.get("out")
    if any(isinstance(o, Tensor) for o in (out if isinstance(out, tuple) else (out,))):
        raise NumgradTypeError(f"{name}: out= cannot be a Tensor here; assign the result instead")
    if kwargs.get("overwrite_input"):
        raise NumgradTypeError(f"{name}: overwrite_input= is not taken on Tensors; leave it out")


# ----------------------------------------------------------------------------------- dispatch


def _array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's call of a ufunc with a Tensor among its arguments."""
    for x in inputs:
        if type(x) not in _ORDINARY and defers(x):
            return NotImplemented  # Note [Labels] in ``labels``
    if ufunc is np.isnan and in_solver():
        self._refuse_conversion()
    if method == "__call__" and not kwargs:  # by far the most frequent
        op = _by_function.get(ufunc)
        if op is not None:
            return op(*inputs)
    result = call(ufunc, method, _operation(ufunc), inputs, kwargs)
    if result is not NotImplemented:
        return result
    name = title(ufunc) + ("" if method == "__call__" else f".{method}")
    outcome = _without_operation(name, getattr(ufunc, method), inputs, kwargs)
    if method in METHODS and kwargs.get("out") is None and _operation(ufunc) is not None:
        return Tensor(np.asarray(outcome))  # as where it is recorded
    return outcome


def _array_function(
    self: Tensor, func: Callable[..., Any], types: Any, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """NumPy's call of a function with a Tensor among its arguments."""
    if func is np.atleast_1d and in_solver():
        self._refuse_conversion()
    translation = _translations.get(func)
    if translation is None:
        if func in _PLAIN:
            return _PLAIN[func](*args, **kwargs)
        if func in WRITES:
            return WRITES[func](*args, **kwargs)
        op = _operation(func)
        if op is None:
            return _without_operation(title(func), func, args, kwargs)
        translation = _translations[func] = Translation(title(func), func, op)
    if func is np.where and len(args) == 1:
        return _without_operation("np.where", func, args, kwargs)
    if kwargs:
        kwargs = {k: v for k, v in kwargs.items() if v is not NOT_GIVEN}
    if kwargs or len(args) > translation.direct:
        result = translation(args, kwargs)
    else:
        result = translation.op(*args)
    if result is NotImplemented:
        return _without_operation(title(func), func, args, kwargs)
    return result


# ----------------------------------------------------------------- what is not an operation


def _size(a: Any, axis: Any = None) -> int:
    return prod([a.shape[k] for k in normalize_axes("size", axis, a.ndim)])


def _like(function: Callable[..., Any], create: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``np.zeros_like`` and its kin, by ours."""
    accepted = {"order": ("K", "C"), "subok": (True, False), "device": (None, "cpu")}

    def like(*args: Any, **kwargs: Any) -> Tensor:
        arguments = dict(signature_of(function).bind(*args, **kwargs).arguments)
        for name, values in accepted.items():
            value = arguments.pop(name, values[0])
            if value not in values:
                raise NumgradTypeError(
                    f"np.{create.__name__}: {name}={value!r} is not taken on Tensors; use "
                    f"ng.{create.__name__.removesuffix('_like')}(shape, dtype=...)"
                )
        shape = arguments.pop("shape", None)
        if shape is not None:
            x = next(iter(arguments.values()))
            arguments[next(iter(arguments))] = np.broadcast_to(np.empty((), x.dtype), shape)
        return create(*arguments.values())  # in the order of the signature, which is ours

    return like


def _copy(a: Any, order: str = "K", subok: bool = False) -> Tensor:
    if order not in ("K", "C", "A"):
        raise NumgradTypeError(
            f"np.copy: order={order!r} is not taken on Tensors; copies are in C order"
        )
    return a.clone()


def _text(function: Callable[..., str]) -> Callable[..., str]:
    return lambda *args, **options: (
        repr(args[0])
        if len(args) == 1 and not options
        else function(*_plain(args), **_plain(options))
    )


def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    return creation.linspace(start, stop, num, endpoint, dtype, retstep=retstep, axis=axis)


def _imported(name: str) -> Callable[..., Any]:
    """A function of a module that is imported when it is first called."""
    return lambda *args, **kwargs: getattr(import_module("numgrad.tensors.applying"), name)(
        *args, **kwargs
    )


_PLAIN: dict[Any, Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: _size,
    np.zeros_like: _like(np.zeros_like, creation.zeros_like),
    np.ones_like: _like(np.ones_like, creation.ones_like),
    np.empty_like: _like(np.empty_like, creation.empty_like),
    np.full_like: _like(np.full_like, creation.full_like),
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.result_type: lambda *xs: np.result_type(
        *[x.dtype if isinstance(x, Tensor) else x for x in xs]
    ),
    np.array_repr: _text(np.array_repr),
    np.array_str: _text(np.array_str),
    np.copy: _copy,
    np.linspace: _linspace,
    np.logspace: creation.logspace,
    np.geomspace: creation.geomspace,
    np.apply_along_axis: _imported("apply_along_axis"),
    np.apply_over_axes: _imported("apply_over_axes"),
    np.piecewise: _imported("piecewise"),
}
"""Questions about shapes and dtypes, which a trace answers too, and creation."""


Tensor.__array_ufunc__ = _array_ufunc
Tensor.__array_function__ = _array_function
