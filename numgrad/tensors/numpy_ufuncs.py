"""NumPy's and SciPy's ufuncs on Tensors: keywords, and methods: reduce, reduceat, outer, at, ...

Note [Keywords of ufuncs]
-------------------------
``dtype`` and ``casting`` choose the loop, so operands are converted to what NumPy's resolution of
dtypes says and the operation runs on these. ``out`` takes a Tensor where nothing requires grad, and
``where`` is taken with it only: elsewhere NumPy leaves the elements undefined. Other keywords must
have their defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.core.arguments import REQUIRED
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradTypeError
from numgrad.operations.lazy_operations import declared
from numgrad.operations.shape import as_operand
from numgrad.tensors.numpy_calls import NOT_GIVEN, Translation, mask_of
from numgrad.tensors.numpy_writes import requires_grad, store, ufunc_at
from numgrad.tensors.tensor import Tensor

_REDUCTIONS = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
_TRUTHS = np.logical_and, np.logical_or
_MISFOLDED = np.power, np.arctan2
"""Of which NumPy's ``reduce`` reads what it writes, with AVX-512 (NumPy 2.4)."""
_ACCUMULATIONS = {np.add: np.cumsum, np.multiply: np.cumprod}
_RUNNING = {np.maximum: "cummax", np.minimum: "cummin", np.logaddexp: "logcumsumexp"}
METHODS: dict[str, dict[str, Any]] = {
    "reduce": {"array": REQUIRED, "axis": 0, "dtype": None, "out": None, "keepdims": False,
               "initial": NOT_GIVEN, "where": True},
    "accumulate": {"array": REQUIRED, "axis": 0, "dtype": None, "out": None},
    "reduceat": {"array": REQUIRED, "indices": REQUIRED, "axis": 0, "dtype": None, "out": None},
}  # fmt: skip
"""Parameters of methods of ufuncs, which have no signature to read."""
_DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "subok": True, "dtype": None,
             "signature": None, "axes": None, "axis": None, "keepdims": False}  # fmt: skip
_SCIPY = {"round": "rint", "riemann_zeta": "riemann_zeta"}
"""Ufuncs of ``scipy.special`` whose operation has another name."""


def scipy_ufuncs() -> dict[Any, Op]:
    """Ufuncs of ``scipy.special`` -> operations, if SciPy was imported: we do not."""
    special = sys.modules.get("scipy.special")
    hidden = sys.modules.get("scipy.special._ufuncs")
    found = {}
    for op in list(OPS.values()) if special is not None else ():
        home, _, name = op.ref.rpartition(".") if isinstance(op.ref, str) else ("", "", "")
        names = [name] if home == "scipy.special" else []
        if isinstance(op, Elementwise):
            names += op.names
        names += [theirs for theirs, ours in _SCIPY.items() if ours == op.name]
        for name in names:
            # lambertw is a function of SciPy's that calls the ufunc _lambertw
            for ufunc in (getattr(special, name, None), getattr(hidden, f"_{name}", None)):
                if isinstance(ufunc, np.ufunc) and ufunc.nin == len((*op.inputs, *op.params)):
                    found[ufunc] = op
    return found


def title(function: Any) -> str:
    """A function as the user wrote it: ``np.linalg.inv``, ``scipy.special.jv``."""
    name = function.__name__
    if isinstance(function, np.ufunc) and getattr(np, name, None) is not function:
        special = sys.modules.get("scipy.special")
        if getattr(special, name, None) is function or hasattr(special, name.lstrip("_")):
            return f"scipy.special.{name}"
        return f"the ufunc {name}"
    home = (getattr(function, "__module__", None) or "numpy").replace("numpy", "np", 1)
    return f"{home}.{name}"


def call(ufunc: np.ufunc, method: str, op: Op | None, inputs: tuple, kwargs: dict) -> Any:
    """The result of a method of a ufunc; NotImplemented if no operation gives it."""
    name = title(ufunc)
    if method == "at":
        return ufunc_at(name, ufunc, op, *inputs)
    functions = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {})
    if ufunc in functions and not (ufunc in _TRUTHS and "initial" in kwargs):
        return _method(f"{name}.{method}", functions[ufunc], inputs, kwargs)
    if method == "accumulate" and ufunc in _RUNNING:
        given = METHODS[method] | dict(zip(METHODS[method], inputs, strict=False)) | kwargs
        if given["dtype"] is None and given["out"] is None:
            return declared(_RUNNING[ufunc])(given["array"], axis=given["axis"])
    if op is None:
        return NotImplemented
    if method in METHODS and (
        ufunc in _MISFOLDED or requires_grad(inputs[0]) or not _has_numbers(inputs[0])
    ):
        from numgrad.tensors import ufunc_groups  # few programs need it

        name = f"{name}.{method}"
        return getattr(ufunc_groups, method)(name, ufunc, op, _recorded(name, inputs, kwargs))
    if method == "outer" and len(inputs) == 2:
        a, b = map(as_operand, inputs)
        a = OPS["reshape"](a, (*a.shape, *(1,) * len(b.shape)))
        return _elementwise(f"{name}.outer", ufunc, op, (a, b), kwargs)
    if method == "__call__":
        return _elementwise(name, ufunc, op, inputs, kwargs)
    return NotImplemented


def _has_numbers(x: Any) -> bool:
    """Whether NumPy can compute with an operand: it is no part of a trace or of a batch."""
    return isinstance(as_operand(x)._array, np.ndarray)


def _recorded(name: str, inputs: tuple, kwargs: dict) -> dict[str, Any]:
    """Arguments of a method of a ufunc whose result is recorded, compiled or batched."""
    defaults = METHODS[name.rpartition(".")[2]]
    given = defaults | dict(zip(defaults, inputs, strict=False)) | kwargs
    for key in ("out", "where"):
        if given.get(key) is not defaults.get(key):
            raise NumgradTypeError(
                f"{name}: {key}= is not taken where the operation is recorded, compiled or batched"
            )
    return {key: value for key, value in given.items() if value is not NOT_GIVEN}


def _method(name: str, function: Callable[..., Any], inputs: tuple, kwargs: dict) -> Any:
    """A method of a ufunc, by the NumPy function that does the same."""
    defaults = METHODS[name.rpartition(".")[2]]
    given = defaults | dict(zip(defaults, inputs, strict=False)) | kwargs
    array = given.pop("array")
    if not np.ndim(array) and given["axis"] in (0, -1):  # which NumPy lets pass
        given["axis"] = None
    if isinstance(given["out"], tuple):
        (given["out"],) = given["out"]
    kept = {k: v for k, v in given.items() if k == "axis" or v is not defaults[k]}
    return _translation(name, function)((array,), kept)


@cache
def _translation(name: str, function: Callable[..., Any]) -> Translation:
    return Translation(name, function, OPS[function.__name__])


def _elementwise(name: str, ufunc: np.ufunc, op: Op, inputs: tuple, kwargs: dict) -> Any:
    kwargs = dict(kwargs)
    out, where = kwargs.pop("out", None), kwargs.pop("where", True)
    if isinstance(out, tuple):
        (out,) = out
    if out is not None and not isinstance(out, Tensor):
        return NotImplemented
    casting, dtype = kwargs.pop("casting", "same_kind"), kwargs.pop("dtype", None)
    kwargs.pop("subok", None)
    if kwargs.get("order") in ("K", "C"):
        del kwargs["order"]
    if ufunc.signature is not None:  # matmul and vecdot
        own = {key: kwargs.pop(key) for key in list(kwargs) if key in op.inputs}
    else:
        own = {}
    kwargs = {k: v for k, v in kwargs.items() if v is not _DEFAULTS.get(k, NOT_GIVEN)}
    if kwargs:
        raise NumgradTypeError(f"{name}: keywords {', '.join(kwargs)} are not taken on Tensors")
    if where is not True:
        if out is None:
            raise NumgradTypeError(
                f"{name}: where= leaves elements undefined and is not taken on Tensors; use "
                "np.where"
            )
        where = mask_of(name, where, out.shape)
    compute = partial(op, *inputs, **own)
    if dtype is not None or casting != "same_kind":
        compute = partial(_in_dtype, name, ufunc, op, inputs, dtype, casting)
    return compute() if out is None else store(name, out, inputs, compute, where=where)


def _in_dtype(
    name: str, ufunc: np.ufunc, op: Op, inputs: tuple, dtype: Any, casting: str
) -> Tensor:
    """The operation on operands converted to the dtypes of NumPy's loop for ``dtype``."""
    if not isinstance(op, Elementwise):
        raise NumgradTypeError(
            f"{name}: keywords dtype and casting are not taken on Tensors; use astype"
        )
    operands = [x if type(x) in (int, float, complex) else as_operand(x) for x in inputs]
    kinds = [type(x) if isinstance(x, int | float | complex) else x.dtype for x in operands]
    outputs = (None,) * ufunc.nout
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
    try:
        found = ufunc.resolve_dtypes((*kinds, *outputs), **options)
    except TypeError as error:
        raise NumgradTypeError(f"{name}: {error}") from None
    converted = [
        OPS["astype"](as_operand(x), dtype=d, copy=False)
        for x, d in zip(operands, found, strict=False)
    ]
    result = op(*converted)
    if result.dtype != found[-1]:
        raise NumgradTypeError(
            f"{name}: dtype={dtype!r} of operands of dtypes {kinds} is not taken on Tensors; use "
            "astype"
        )
    return result
