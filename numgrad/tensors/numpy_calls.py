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

from numgrad.core.arguments import signature_of
from numgrad.core.op import OPS, Op
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.extend import with_elements
from numgrad.operations.reduce import deviation
from numgrad.operations.shape import as_operand
from numgrad.tensors.numpy_writes import store
from numgrad.tensors.tensor import Tensor

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
        "arity",
        "direct",
        "names",
        "op",
        "ours",
        "same",
        "signature",
        "special",
        "taken",
        "title",
    )

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
        for place, p in enumerate(theirs):
            if p.name in self.taken or p.name == "out" or p.name in renamed:
                continue
            if p.name in self.ours:
                self.names[p.name] = p.name
            elif p.kind in _ANY_PLACE and p.default is p.empty and self.ours[place] not in known:
                self.names[p.name] = self.ours[place]  # an array of another name
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
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise NumgradTypeError(f"{self.title}: {error}") from None
        out = given.pop("out", None)
        operands, params = self._arguments(given)
        compute = self.op
        if self.special is not None and (self.special in _ALWAYS or self.taken & params.keys()):
            compute = partial(self.special, self.op)
        if out is None:
            return compute(*operands, **params)
        if not isinstance(out, Tensor):
            return NotImplemented
        return store(self.title, out, (args, kwargs), partial(compute, *operands, **params))

    def _arguments(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional arguments and keywords of the operation or of the translation."""
        operands: list[Any] = []
        params: dict[str, Any] = {}
        for name, value in given.items():
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
    given = [x, *bounds.values()]
    kinds = [v if type(v) in (int, float, complex) else as_operand(v).dtype for v in given]
    wanted = np.dtype(dtype or np.result_type(*kinds))
    for v, kind in zip(given, kinds, strict=True):
        if type(v) not in (int, float, complex) and not np.can_cast(kind, wanted, casting):  # pyright: ignore
            raise NumgradTypeError(
                f"clip: dtype {kind} does not go into {wanted} with casting={casting!r}"
            )
    x, *ends = [OPS["astype"](as_operand(v), dtype=wanted, copy=False) for v in given]
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
    found = list(arrays[0]) if len(arrays) == 1 else list(arrays)
    found = [as_operand(a) for a in found]
    wanted = np.result_type(*[a.dtype for a in found]) if dtype is None else np.dtype(dtype)
    for a in found:
        if not np.can_cast(a.dtype, wanted, casting):  # pyright: ignore
            raise NumgradTypeError(
                f"{op.name}: dtype {a.dtype} does not go into {wanted} with casting={casting!r}"
            )
    return op([OPS["astype"](a, dtype=wanted, copy=False) for a in found], **params)


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
"""By NumPy function or name of an operation."""
