"""Calls of NumPy's functions as calls of operations: parameter by parameter, none is left out.

Note [NumPy's parameters]
-------------------------
A parameter that the operation has under the same name is passed on. One that only NumPy has is
either translated by the function named in ``_TRANSLATED``, or must have its default: anything else
raises, naming it. Signatures are NumPy's own, read when a function is first called with more than
arrays and parameters of the same name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.versions import mark_written
from numgrad.core.abstract import AbstractArray, made
from numgrad.core.arguments import signature_of
from numgrad.core.interpreter import state
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.extend import with_elements
from numgrad.operations.reduce import deviation
from numgrad.operations.shape import as_operand
from numgrad.operations.write import check_cast
from numgrad.tensors.hints import library_call
from numgrad.tensors.indexing import repeated
from numgrad.tensors.inplace import (
    assign,
    check_target,
    inplace,
    positions_by_example,
    tensors_of_index,
)
from numgrad.tensors.tensor import Tensor

# ----------------------------------------------------------------------------- functions that write


def requires_grad(value: Any) -> bool:
    """Whether a gradient or tangent goes through ``value``, or something in it."""
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
    call = library_call()  # NumPy's own, as in np.full_like
    if call is not None and call[1]:
        raise NumgradTypeError(
            f"{call[0]}: a Tensor cannot be written into the ndarray that it makes; {call[1]}"
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
    if isinstance(x, list | tuple) and any(isinstance(item, Tensor) for item in x):
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
    mask = np.zeros(a.shape, bool)
    np.fill_diagonal(mask, True, wrap)
    place(a, mask, val)


WRITES = {
    np.copyto: copyto,
    np.put: put,
    np.place: place,
    np.putmask: putmask,
    np.put_along_axis: put_along_axis,
    np.fill_diagonal: fill_diagonal,
}


def ufunc_at(
    name: str,
    ufunc: np.ufunc,
    op: Op | None,
    fold: Callable[..., Any],
    target: Any,
    index: Any,
    *values: Any,
) -> None:
    """``ufunc.at`` into a Tensor, by operations where something is recorded or not known yet.

    ``fold`` makes the new values of elements of what is written to each.
    """
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
    operands = (target, *values)
    known = all(map(_is_known, (*operands, *tensors_of_index(index))))
    if op is not None and (not known or any(map(requires_grad, operands))):
        call: Any = partial(fold, f"{name}.at", ufunc, op)
        inplace(call, f"{name}.at", target, (index, *values), {})
        return
    check_target(f"{name}.at", target)
    refuse_recorded(f"{name}.at", *operands)
    ufunc.at(target._array, _plain_index(index), *map(_array, values))
    mark_written(target)


def _without_masks(index: Any) -> Any:
    """An index with places instead of masks whose numbers are known."""
    parts: list[Any] = []
    for entry in index if type(index) is tuple else (index,):
        known = isinstance(entry, np.ndarray) and entry.dtype == bool and entry.ndim
        parts += [made(k) for k in np.nonzero(entry)] if known else [entry]
    return tuple(parts)


def _plain_index(index: Any) -> Any:
    """An index with arrays in place of Tensors."""
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


NOT_GIVEN = np._NoValue  # pyright: ignore
_HARMLESS = {"subok": (True, False), "device": (None, "cpu")}  # results are Tensors on a CPU
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ANY_PLACE = (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL)
_KEYWORDS = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_RENAMED = {
    np.clip: {"a_min": "min", "a_max": "max", "min": "min", "max": "max"},
    np.where: {"y": "y_"},
}


class Translation:
    """A NumPy function and the operation that computes it on Tensors.

    Attributes
    ----------
    names
        Parameters of NumPy's that are passed on, with the names they have here.
    direct
        How many positional arguments are passed on as they are.
    same
        Keywords that are passed on as they are.
    """

    __slots__ = (
        "arity", "direct", "names", "op", "ours", "same", "signature", "special", "taken", "title",
    )  # fmt: skip

    def __init__(self, title: str, function: Callable[..., Any], op: Op) -> None:
        self.title, self.op = title, op
        self.signature = signature_of(function)
        self.special = _TRANSLATED.get(function) or _TRANSLATED.get(op.name)
        self.taken = _keywords(self.special) if self.special is not None else frozenset()
        theirs = list(self.signature.parameters.values())
        known = self.signature.parameters.keys()
        self.ours = [n for n in inspect.signature(op.function).parameters if n not in op.implied]
        renamed = _RENAMED.get(function, {})
        self.names: dict[str, str] = dict(renamed)
        for position, p in enumerate(theirs):
            if p.name in self.taken or p.name == "out" or p.name in renamed:
                continue
            if p.name in self.ours:
                self.names[p.name] = p.name
            elif p.kind in _ANY_PLACE and p.default is p.empty and self.ours[position] not in known:
                self.names[p.name] = self.ours[position]  # an array of another name
        self.same = frozenset(
            p.name for p in theirs
            if p.kind in _KEYWORDS and self.names.get(p.name) == p.name
        )  # fmt: skip
        self.direct = 0
        for p, ours in zip(theirs, self.ours, strict=False):
            if p.kind is inspect.Parameter.VAR_POSITIONAL:
                self.direct = 1 << 30
            if p.kind not in _POSITIONAL or self.names.get(p.name) != ours:
                break
            if p.default is NOT_GIVEN and p.name not in renamed:
                break
            self.direct += 1
        self.arity = len(op.inputs)
        if self.special is not None:
            self.arity = self.special.__code__.co_argcount - 1 or 1
        if self.special in _ALWAYS:
            self.direct, self.same = -1, frozenset()

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result, or NotImplemented if it goes into an ndarray."""
        if len(args) <= self.direct and kwargs.keys() <= self.same:
            return self.op(*args, **kwargs)
        try:
            arguments = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise NumgradTypeError(f"{self.title}: {error}") from None
        out = arguments.pop("out", None)
        operands, params = self._arguments(arguments)
        compute = self.op
        if self.special is not None and (self.special in _ALWAYS or self.taken & params.keys()):
            compute = partial(self.special, self.op)
        if out is None:
            return compute(*operands, **params)
        if not isinstance(out, Tensor):
            return NotImplemented
        return store(self.title, out, (args, kwargs), partial(compute, *operands, **params))

    def _arguments(self, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional arguments and keywords of the operation or of the translation."""
        operands: list[Any] = []
        params: dict[str, Any] = {}
        for name, value in arguments.items():
            parameter, ours = self.signature.parameters[name], self.names.get(name)
            if value is NOT_GIVEN:
                continue
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                operands.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                params.update(value)
            elif ours is not None and self.ours.index(ours) == len(operands) < self.arity:
                operands.append(value)
            elif ours is not None or name in self.taken:
                ours = ours or name
                if ours in params or ours in self.ours[: len(operands)]:
                    raise NumgradValueError(f"{self.title}: {name} and {ours} are the same; "
                                            "give one")  # fmt: skip
                params[ours] = value
            elif value not in _HARMLESS.get(name, ()) and not _is_default(value, parameter.default):
                raise NumgradTypeError(
                    f"{self.title}: the parameter {name!r} ({value!r}) is not taken on Tensors"
                    f"{_REMEDIES.get(name, '')}"
                )
        return operands, params


def _keywords(function: Callable[..., Any]) -> frozenset[str]:
    """Parameters that a translation takes beyond those of the operation."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (
        isinstance(value, bool | int | str) and type(value) is type(default) and value == default
    )


_REMEDIES = {
    "order": "; results are in C order, so leave it out",
    "where": "; use np.where on the operand",
}


# ---------------------------------------------------------------------------------- translations


def mask_of(title: str, where: Any, shape: tuple[int, ...]) -> Any:
    """A mask for an operand of ``shape``, broadcast to it."""
    mask = as_operand(where)
    if mask.dtype != np.bool_:
        raise NumgradTypeError(
            f"{title}: where= has dtype {mask.dtype} and must be boolean; compare, as in mask != 0"
        )
    if len(mask.shape) > len(shape):
        raise NumgradValueError(
            f"{title}: where= of shape {tuple(mask.shape)} has more axes than the operand, of "
            f"shape {tuple(shape)}"
        )
    return OPS["broadcast_to"](mask, tuple(shape))


_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True}
_JOINS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _reduction(op: Op, x: Any, *, where: Any = True, initial: Any = None, **params: Any) -> Any:
    x = as_operand(x)
    if initial is not None:
        if np.ndim(initial) or getattr(initial, "_requires_grad", False):
            raise NumgradTypeError(f"{op.name}: initial must be a number, got {initial!r}")
        if op.name in ("max", "min"):
            initial = np.asarray(initial).astype(x.dtype)
    if where is not True:
        neutral = _NEUTRAL.get(op.name, initial)
        if neutral is None:
            raise NumgradValueError(
                f"{op.name}: with where= there may be nothing to reduce; give initial="
            )
        x = OPS["where"](mask_of(op.name, where, x.shape), x, neutral)
    if initial is not None and op.name in ("max", "min"):
        x = with_elements(op.name, x, params.get("axis"), initial)
    out = op(x, **params)
    if initial is None:
        return out
    return OPS[_JOINS[op.name]](out, np.asarray(initial).astype(out.dtype))


def _mean(op: Op, x: Any, *, where: Any = True, **params: Any) -> Any:
    x = as_operand(x)
    if where is True:
        return op(x, **params)
    mask = mask_of(op.name, where, x.shape)
    dtype = params.pop("dtype", None)
    if dtype is None and x.dtype.kind not in "fc":
        dtype = np.float64
    total = OPS["sum"](OPS["where"](mask, x, x.dtype.type(0)), dtype=dtype, **params)
    return total / OPS["astype"](OPS["count_nonzero"](mask, **params), dtype=total.real.dtype)


def _variance(
    op: Op, x: Any, *, correction: Any = None, where: Any = True, mean: Any = None, **params: Any
) -> Any:
    if correction is not None:
        if params.get("ddof", 0) != 0:
            raise NumgradValueError(
                f"{op.name}: ddof and correction are two names of one thing; give one"
            )
        params["ddof"] = correction
    if where is True and mean is None:
        return op(x, **params)
    ddof, dtype = params.pop("ddof", 0), params.pop("dtype", None)
    x = as_operand(x)
    if dtype is not None or x.dtype.kind not in "fc":
        x = OPS["astype"](x, dtype=dtype or np.float64)
    if mean is None:
        mean = _mean(OPS["mean"], x, where=where, **params | {"keepdims": True})
    distances = OPS["absolute"](x - mean) if x.dtype.kind == "c" else x - mean
    mask = mask_of(op.name, where, x.shape)
    total = OPS["sum"](OPS["where"](mask, OPS["square"](distances), 0), dtype=dtype, **params)
    count = OPS["maximum"](OPS["count_nonzero"](mask, **params) - ddof, 0)
    out = total / OPS["astype"](count, dtype=total.dtype)
    return deviation(out) if op.name == "std" else out


def _clip(
    op: Op, x: Any, *, dtype: Any = None, casting: str = "same_kind", **params: Any
) -> Any:  # fmt: skip
    bounds = {k: v for k, v in params.items() if v is not None}
    inputs = [x, *bounds.values()]
    kinds = [v if type(v) in (int, float, complex) else as_operand(v).dtype for v in inputs]
    target = np.dtype(dtype or np.result_type(*kinds))
    for v, kind in zip(inputs, kinds, strict=True):
        if type(v) not in (int, float, complex) and not np.can_cast(kind, target, casting):  # pyright: ignore
            raise NumgradTypeError(
                f"clip: dtype {kind} does not go into {target} with casting={casting!r}"
            )
    x, *ends = [OPS["astype"](as_operand(v), dtype=target, copy=False) for v in inputs]
    return op(x, **dict(zip(bounds, ends, strict=True)))


def _nan_to_num(op: Op, x: Any, *, copy: bool = True, **params: Any) -> Any:
    if copy:
        return op(x, **params)
    return x.nan_to_num_(**params)  # pyright: ignore


def _reshape(op: Op, x: Any, *, copy: bool | None = None, **params: Any) -> Any:
    if copy is not None:
        if copy:
            return op(OPS["copy"](x), **params)
        shape, order = params["shape"], params.get("order", "C")
        np.reshape(getattr(x, "_array", x), shape, order=order, copy=False)  # raises if it would
    return op(x, **params)


def _joined(op: Op, *arrays: Any, dtype: Any = None, casting: str = "same_kind", **params: Any
            ) -> Any:  # fmt: skip
    parts = list(arrays[0]) if len(arrays) == 1 else list(arrays)
    parts = [as_operand(a) for a in parts]
    kind = np.result_type(*[a.dtype for a in parts]) if dtype is None else np.dtype(dtype)
    for a in parts:
        if not np.can_cast(a.dtype, kind, casting):  # pyright: ignore
            raise NumgradTypeError(
                f"{op.name}: dtype {a.dtype} does not go into {kind} with casting={casting!r}"
            )
    return op([OPS["astype"](a, dtype=kind, copy=False) for a in parts], **params)


def _take(op: Op, x: Any, indices: Any, *, mode: str = "raise", **params: Any) -> Any:
    if mode not in ("raise", "wrap", "clip"):
        raise NumgradValueError(f"take: mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    x, indices = as_operand(x), as_operand(indices)
    axis = params.get("axis")
    count = x.size if axis is None else x.shape[axis]
    if mode != "raise" and indices.dtype.kind in "iu":
        indices = OPS["astype"](indices, np.int64)  # which holds the length
    if mode == "wrap":
        indices = OPS["remainder"](indices, count)
    elif mode == "clip":
        indices = OPS["clip"](indices, 0, count - 1)
    return op(x, indices, **params)


def _angle(op: Op, x: Any, *, deg: bool = False) -> Any:
    return OPS["rad2deg"](op(x)) if deg else op(x)


def _pad(op: Op, x: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if callable(mode):
        options = {"options": options}
    return op(x, pad_width, mode, **options)


_ALWAYS = (_pad,)
"""Translations that are needed whatever the arguments are."""

_TRANSLATED: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all"), _reduction),
    **dict.fromkeys(("concat", "stack", "hstack", "vstack"), _joined),
    **dict.fromkeys(("var", "std"), _variance),
    "clip": _clip,
    "mean": _mean,
    "nan_to_num": _nan_to_num,
    "reshape": _reshape,
    "take": _take,
    "angle": _angle,
    np.pad: _pad,
}
"""Translations of calls by NumPy function or name of an operation."""
