"""NumPy's and SciPy's ufuncs on Tensors: keywords, and methods: reduce, reduceat, outer, at, ...

Note [Keywords of ufuncs]
-------------------------
``dtype`` and ``casting`` choose the loop, so operands are converted to what NumPy's resolution of
dtypes says and the operation runs on these. ``out`` takes a Tensor where nothing requires grad, and
``where`` is taken with it only: elsewhere NumPy leaves the elements undefined. Other keywords must
have their defaults.

Note [Groups of ufuncs]
----------------------
``ufunc.at`` folds what is written to one element, in C order of the index, as NumPy does. Elements
are sorted by how often they are written to; a step of the fold is a call for all that have still
something to take, so that there are as many calls as the largest group has members, and every
value is read once. ``ufunc.reduce`` and ``ufunc.reduceat`` fold the elements of axes and of
segments: in pairs of pairs where the ufunc is associative, which takes few calls and rounds little,
else, as ``ufunc.accumulate`` does, one by one.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractLength, made
from numgrad.core.arguments import REQUIRED
from numgrad.core.axis import normalize_axes
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import checked
from numgrad.errors import NumgradIndexError, NumgradTypeError, NumgradValueError
from numgrad.operations.index import index_array, is_basic_part
from numgrad.operations.lazy_operations import declared
from numgrad.operations.scatter import multiply_at
from numgrad.operations.shape import as_operand
from numgrad.operations.shared_rules import numbers_of
from numgrad.operations.write import converted, index_parts, positions_of
from numgrad.tensors.inplace import positions_by_example
from numgrad.tensors.numpy_calls import (
    NOT_GIVEN,
    Translation,
    mask_of,
    requires_grad,
    store,
    ufunc_at,
)
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
"""Ufuncs whose ``reduce`` in NumPy reads what it writes, with AVX-512 (NumPy 2.4)."""
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
    operations = {}
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
                    operations[ufunc] = op
    return operations


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
        return ufunc_at(name, ufunc, op, updated, *inputs)
    functions = {"reduce": _REDUCTIONS, "accumulate": _ACCUMULATIONS}.get(method, {})
    if ufunc in functions and not (ufunc in _TRUTHS and "initial" in kwargs):
        return _method(f"{name}.{method}", functions[ufunc], inputs, kwargs)
    if method == "accumulate" and ufunc in _RUNNING:
        arguments = METHODS[method] | dict(zip(METHODS[method], inputs, strict=False)) | kwargs
        if arguments["dtype"] is None and arguments["out"] is None:
            return declared(_RUNNING[ufunc])(arguments["array"], axis=arguments["axis"])
    if op is None:
        return NotImplemented
    if method in METHODS and (
        ufunc in _MISFOLDED or requires_grad(inputs[0]) or not _has_numbers(inputs[0])
    ):
        name = f"{name}.{method}"
        fold = {"reduce": reduce, "accumulate": accumulate, "reduceat": reduceat}[method]
        return fold(name, ufunc, op, _recorded(name, inputs, kwargs))
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
    arguments = defaults | dict(zip(defaults, inputs, strict=False)) | kwargs
    for key in ("out", "where"):
        if arguments.get(key) is not defaults.get(key):
            raise NumgradTypeError(
                f"{name}: {key}= is not taken where the operation is recorded, compiled or batched"
            )
    return {key: value for key, value in arguments.items() if value is not NOT_GIVEN}


def _method(name: str, function: Callable[..., Any], inputs: tuple, kwargs: dict) -> Any:
    """A method of a ufunc, by the NumPy function that does the same."""
    defaults = METHODS[name.rpartition(".")[2]]
    arguments = defaults | dict(zip(defaults, inputs, strict=False)) | kwargs
    array = arguments.pop("array")
    if not np.ndim(array) and arguments["axis"] in (0, -1):  # which NumPy lets pass
        arguments["axis"] = None
    if isinstance(arguments["out"], tuple):
        (arguments["out"],) = arguments["out"]
    params = {k: v for k, v in arguments.items() if k == "axis" or v is not defaults[k]}
    return _translation(name, function)((array,), params)


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
        dtypes = ufunc.resolve_dtypes((*kinds, *outputs), **options)
    except TypeError as error:
        raise NumgradTypeError(f"{name}: {error}") from None
    converted = [
        OPS["astype"](as_operand(x), dtype=d, copy=False)
        for x, d in zip(operands, dtypes, strict=False)
    ]
    result = op(*converted)
    if result.dtype != dtypes[-1]:
        raise NumgradTypeError(
            f"{name}: dtype={dtype!r} of operands of dtypes {kinds} is not taken on Tensors; use "
            "astype"
        )
    return result


# ------------------------------------------------------------------------- methods that fold groups


_ASSOCIATIVE = {
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2,
    np.hypot, np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or,
    np.bitwise_xor, np.gcd, np.lcm,
}  # fmt: skip


def _is_known(entry: Any) -> bool:
    """Whether the numbers of a part of an index are known."""
    if isinstance(entry, list | tuple):
        return all(map(_is_known, entry))
    if isinstance(entry, slice):
        return all(map(_is_known, (entry.start, entry.stop, entry.step)))
    return not isinstance(entry, Tensor | AbstractLength) or state.ground.numbers(entry) is not None


def _known_part(entry: Any, shape: tuple[int, ...]) -> Any:
    basic = is_basic_part(entry) or isinstance(entry, slice)
    return entry if basic else index_array(entry, shape)


def _positions(name: str, x: Any, index: Any) -> Any:
    """Positions in C order of what an index selects: an array where its numbers are known."""
    shape = tuple(x.shape)
    by_example = positions_by_example(x, index)
    if by_example is not None:
        return by_example
    if _is_known(index):
        shape = tuple(map(int, shape))
        parts = index_parts(name, shape, index, _known_part)
        whole = np.broadcast_to(0, shape)
        checked(name, whole, itemgetter(parts), whole)
        return positions_of(shape, itemgetter(parts))
    parts = index_parts(name, shape, index)
    if any(isinstance(entry, Tensor) and entry.dtype == bool for entry in parts):
        raise NumgradTypeError(
            f"{name}: how many elements a mask takes is not known before its numbers are; use "
            "np.where"
        )
    return state.ground.positions(name, shape, parts)


def _rows(x: Any, indices: np.ndarray) -> Any:
    return OPS["take"](x, made(indices), axis=0)


def _one_by_one(
    name: str, op: Op, first: Any, items: tuple, starts: np.ndarray, counts: np.ndarray
) -> Any:
    """Each row of ``first`` folded with ``counts`` rows of the items, from ``starts`` on.

    ``counts`` must not increase. The dtype stays that of ``first``.
    """
    dtype, done, current = first.dtype, [], first
    for k in range(int(counts[0]) if counts.size else 0):
        left = int(np.count_nonzero(counts > k))
        if left < current.shape[0]:
            done.append(current[left:])
            current = current[:left]
        rows = [_rows(item, starts[:left] + k) for item in items]
        current = converted(name, op(current, *rows), dtype)
    return OPS["concat"](current, *reversed(done), axis=0) if done else current


def _in_pairs(op: Op, x: Any, counts: np.ndarray) -> Any:
    """Groups of ``counts`` neighbouring rows, none of them 0, folded to one row each."""
    while counts.max(initial=1) > 1:
        starts, halves = np.cumsum(counts) - counts, (counts + 1) // 2
        within = np.arange(halves.sum()) - np.repeat(np.cumsum(halves) - halves, halves)
        left = np.repeat(starts, halves) + 2 * within
        paired = 2 * within + 1 < np.repeat(counts, halves)
        both = left[paired]
        result = op(_rows(x, both), _rows(x, both + 1))
        if not paired.all():
            parts = [result, _rows(x, left[~paired])]
            order = np.argsort(np.argsort(~paired, kind="stable"), kind="stable")
            result = _rows(OPS["concat"](*parts), order)
        x, counts = result, halves
    return x


def updated(name: str, ufunc: np.ufunc, op: Op, target: Any, index: Any, *values: Any) -> Any:
    """``target`` as ``ufunc.at(target, index, *values)`` leaves it."""
    x = as_operand(target)
    positions = _positions(name, x, index)
    region = tuple(positions.shape)
    arrays = [OPS["broadcast_to"](as_operand(v), region) for v in values]
    places = made(positions) if isinstance(positions, np.ndarray) else positions
    if ufunc is np.multiply:
        return multiply_at(x, places, converted(name, arrays[0], x.dtype))
    if ufunc in (np.maximum, np.minimum) and x.dtype.kind != "c":
        from numgrad.operations.scatter_reduce import extreme_at  # few programs need it

        value = converted(name, arrays[0], x.dtype)
        return extreme_at(x, places, value, largest=ufunc is np.maximum, include_self=True)
    numbers = numbers_of(name, positions).ravel()
    unique, counts = np.unique(numbers, return_counts=True)
    starts = np.cumsum(counts) - counts
    members, most = np.argsort(numbers, kind="stable"), np.argsort(-counts, kind="stable")
    flat = OPS["reshape"](x, (-1,))
    items = tuple([_rows(OPS["reshape"](v, (-1,)), members) for v in arrays])
    first = _rows(flat, unique[most])
    result = _one_by_one(name, op, first, items, starts[most], counts[most])
    return OPS["put"](x, made(unique[most]), result)


def _operand(op: Op, arguments: dict[str, Any]) -> Any:
    """The array in the dtype that it is folded in."""
    x, dtype = as_operand(arguments["array"]), arguments["dtype"]
    if dtype is None and op.name in ("add", "multiply"):
        dtype = np.add.reduce(np.zeros(0, x.dtype)).dtype  # of short integers wider than they are
    if dtype is None:
        dtype = op.result_types([x.dtype] * 2)[1] if isinstance(op, Elementwise) else x.dtype
    return x if np.dtype(dtype) == x.dtype else OPS["astype"](x, dtype=dtype)


def reduce(name: str, ufunc: np.ufunc, op: Op, arguments: dict[str, Any]) -> Any:
    """``ufunc.reduce`` of what is recorded, traced or batched."""
    own = "initial" not in arguments
    if ufunc is np.logaddexp and own and arguments["dtype"] is None:
        return OPS["logsumexp"](
            arguments["array"], axis=arguments["axis"], keepdims=arguments["keepdims"]
        )
    x = _operand(op, arguments)
    shape = tuple(x.shape)
    axes = normalize_axes(name, arguments["axis"], len(shape))
    if len(axes) > 1 and ufunc not in _ASSOCIATIVE:
        raise NumgradValueError(
            f"{name}: axis={arguments['axis']!r} of an operand of shape {shape}; the order of "
            "operands matters, so give one axis"
        )
    count = prod([int(shape[axis]) for axis in axes])
    initial = ufunc.identity if own else arguments["initial"]
    if initial is None and not count:
        raise NumgradValueError(
            f"{name}: the reduced axes of an operand of shape {shape} have no elements, and there "
            "is no value for that; give initial="
        )
    x = OPS["moveaxis"](x, axes, tuple(range(len(axes))))
    x = OPS["reshape"](x, (count, *x.shape[len(axes) :]))
    if initial is not None and (count < 2 or not own):  # where it changes something
        first = OPS["astype"](as_operand(initial), dtype=x.dtype)
        first = OPS["broadcast_to"](first, (1, *x.shape[1:]))
        x, count = OPS["concat"](first, x, axis=0), count + 1
    if ufunc in _ASSOCIATIVE:
        result = _in_pairs(op, x, np.array([count]))[0]
    else:
        *_, result = _folded(name, op, x)
    if arguments["keepdims"]:
        result = OPS["expand_dims"](result, axis=axes)
    return result


def accumulate(name: str, ufunc: np.ufunc, op: Op, arguments: dict[str, Any]) -> Any:
    """``ufunc.accumulate`` of what is recorded, traced or batched."""
    x = _operand(op, arguments)
    axes = normalize_axes(name, arguments["axis"], len(x.shape))
    if len(axes) != 1:
        raise NumgradValueError(
            f"{name}: axis={arguments['axis']!r} of an operand of shape {tuple(x.shape)}; "
            "give one axis"
        )
    if not x.shape[axes[0]]:
        return x
    return OPS["stack"](*_folded(name, op, OPS["moveaxis"](x, axes[0], 0)), axis=axes[0])


def _folded(name: str, op: Op, x: Any) -> Iterator[Any]:
    """The first row of ``x``, that with the second, ..."""
    rows = OPS["unstack"](x, axis=0)
    return itertools.accumulate(rows, lambda a, b: converted(name, op(a, b), x.dtype))


def reduceat(name: str, ufunc: np.ufunc, op: Op, arguments: dict[str, Any]) -> Any:
    """``ufunc.reduceat`` of what is recorded, traced or batched."""
    x, indices = _operand(op, arguments), numbers_of(name, arguments["indices"])
    axis = arguments["axis"]
    if axis is None or isinstance(axis, tuple) or not len(x.shape):
        raise NumgradValueError(
            f"{name}: axis={axis!r} of an operand of shape {tuple(x.shape)}; give one axis"
        )
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise NumgradTypeError(
            f"{name}: indices of dtype {indices.dtype} and shape {indices.shape}; they must be "
            "integers along one axis"
        )
    (axis,) = normalize_axes(name, axis, len(x.shape))
    length, indices = int(x.shape[axis]), indices.astype(np.int64)
    outside = (indices < 0) | (indices >= length)
    if outside.any():
        raise NumgradIndexError(
            f"{name}: index {indices[outside][0]} is outside of axis {axis} of length {length}"
        )
    x = OPS["moveaxis"](x, axis, 0)
    # a segment goes up to the next index, or is one element if that is not behind it
    counts = np.maximum(np.append(indices[1:], length) - indices, 1)[: indices.size]
    if ufunc in _ASSOCIATIVE:
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        members = np.repeat(indices, counts) + within
        result = _in_pairs(op, _rows(x, members), counts)
    else:
        most = np.argsort(-counts, kind="stable")
        first = _rows(x, indices[most])
        result = _one_by_one(name, op, first, (x,), indices[most] + 1, counts[most] - 1)
        result = _rows(result, np.argsort(most))
    return OPS["moveaxis"](result, 0, axis)
