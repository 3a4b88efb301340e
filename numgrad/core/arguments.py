"""Signatures of functions, NumPy's C functions included, and arguments completed by them.

``inspect.signature`` knows NumPy's C functions from NumPy 2.4 on. Here they have the signatures of
the newest NumPy under all versions, from a table that a test compares with what is installed.
"""

import inspect
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError

# ``NUMGRAD_UPDATE_GOLDEN=1 python -m pytest tests/core/test_numpy_signatures.py`` writes them anew.
SIGNATURES = """\
arange(start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None)
array(object, dtype=None, *, copy=True, order='K', subok=False, ndmin=0, ndmax=0, like=None)
asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None)
asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None)
ascontiguousarray(a, dtype=None, *, like=None)
asfortranarray(a, dtype=None, *, like=None)
bincount(x, /, weights=None, minlength=0)
can_cast(from_, to, casting='safe')
concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting='same_kind')
copyto(dst, src, casting='same_kind', where=True)
dot(a, b, out=None)
empty(shape, dtype=None, order='C', *, device=None, like=None)
empty_like(prototype, /, dtype=None, order='K', subok=True, shape=None, *, device=None)
from_dlpack(x, /, *, device=None, copy=None)
frombuffer(buffer, dtype=None, count=-1, offset=0, *, like=None)
fromfile(file, dtype=None, count=-1, sep='', offset=0, *, like=None)
fromiter(iter, dtype, count=-1, *, like=None)
fromstring(string, dtype=None, count=-1, *, sep, like=None)
inner(a, b, /)
lexsort(keys, axis=-1)
may_share_memory(a, b, /, max_work=0)
min_scalar_type(a, /)
packbits(a, /, axis=None, bitorder='big')
promote_types(type1, type2, /)
putmask(a, /, mask, values)
ravel_multi_index(multi_index, dims, mode='raise', order='C')
result_type(*arrays_and_dtypes)
shares_memory(a, b, /, max_work=-1)
unpackbits(a, /, axis=None, count=None, bitorder='big')
unravel_index(indices, shape, order='C')
vdot(a, b, /)
where(condition, x=None, y=None, /)
zeros(shape, dtype=None, order='C', *, device=None, like=None)
"""
_OPTIONS = "where=True, casting='same_kind', order='K', dtype=None, subok=True, signature=None"
_OF_CORES = "axes=None, axis=None, keepdims=False, " + _OPTIONS.partition(", ")[2]


def signature_of(function: Callable[..., Any], *, follow_wrapped: bool = True) -> inspect.Signature:
    """The signature of a function, as ``inspect.signature`` has it where that knows one.

    Raises
    ------
    ValueError, TypeError
        If there is none, as of some functions written in C.
    """
    if isinstance(function, np.ufunc):
        return _of_text(_of_ufunc(function))
    if getattr(function, "__module__", None) == "numpy":
        text = _table().get(getattr(function, "__name__", ""))
        if text is not None:
            return _of_text(text)
    return inspect.signature(function, follow_wrapped=follow_wrapped)


@cache
def _table() -> dict[str, str]:
    """Names of NumPy's C functions -> their parameters."""
    lines = [line.partition("(") for line in SIGNATURES.splitlines()]
    return {name: f"({rest}" for name, _, rest in lines}


def _of_ufunc(function: np.ufunc) -> str:
    inputs = [f"x{k}" for k in range(1, function.nin + 1)] if function.nin > 1 else ["x"]
    out = None if function.nout == 1 else (None,) * function.nout
    options = _OPTIONS if function.signature is None else _OF_CORES
    return f"({', '.join(inputs)}, /, out={out}, *, {options})"


@cache
def _of_text(text: str) -> inspect.Signature:
    return inspect.signature(eval(f"lambda {text[1:-1]}: None"))


REQUIRED: Any = object()
"""Default of a parameter that has none."""


_OF_UFUNCS = {"out", "where", "dtype", "casting", "order", "subok"}


_of_thread = threading.local()
"""``asked``: the operations whose NumPy functions are being called."""


class UnknownParameter(NumgradTypeError):
    """A call of an operation with a parameter that it has not.

    The NumPy function that it stands for may have it, ``where=`` of a sum for instance: called with
    a Tensor that says how the parameter is computed with operations.
    """

    def __init__(self, op: Any, message: str) -> None:
        super().__init__(message)
        self.op = op

    def as_numpy(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        """The result of NumPy's function if it has the parameter; else raise."""
        function = op.ref
        pending = _of_thread.__dict__.setdefault("asked", [])
        if self.op is not op or not callable(function) or op in pending:
            raise self
        theirs = {} if isinstance(function, np.ufunc) else signature_of(function).parameters
        known = set(theirs)
        if not theirs or any(p.kind is p.VAR_KEYWORD for p in theirs.values()):
            known |= _OF_UFUNCS
        unknown = params.keys() - {*op.params, *op.inputs, *op.spellings.values()}
        of_tensors = any(hasattr(a, "grad_fn") for a in args)
        if not (of_tensors and unknown and unknown <= known):
            raise self
        if theirs and next(iter(theirs)) in ("arrays", "tup"):
            args = (list(args),)
        elif not hasattr(args[0], "grad_fn"):  # NumPy asks the first operand
            raise self
        pending.append(op)
        try:
            return function(*args, **params)
        except TypeError as error:
            if isinstance(error, NumgradTypeError):
                raise
            raise self from error
        finally:
            pending.pop()


def complete(op: Any, args: tuple, params: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Inputs in positional order and all parameters, from how a caller wrote them.

    Parameters may be given by position after the inputs, as in ``np.sum(x, 0)``.
    """
    if params and not op.stand_ins.keys().isdisjoint(params):
        params = translated(op, params)
    if op.inputs == ("inputs",):
        if len(args) == 1 and isinstance(args[0], list | tuple):
            args = tuple(args[0])
    else:
        count = len(op.inputs)
        if len(args) > count:
            extra = args[count:]
            names = op.positional
            if len(extra) > len(names):
                accepted = (
                    f"{count} inputs and parameters {', '.join(names)}" if names else _names(op)
                )
                raise NumgradTypeError(
                    f"{op.__name__}: takes {accepted} by position; got {len(args)} positional "
                    "arguments" + (f"; give {', '.join(op.params)} by name" if op.params else "")
                )
            params = {**dict(zip(names, extra, strict=False)), **params}
            args = args[:count]
        elif len(args) < count:
            missing = op.inputs[len(args) :]
            positional = []
            for position, name in enumerate(missing, start=len(args)):
                if name not in params:
                    name = op.spellings.get(name, name)
                if name in params:
                    params = dict(params)
                    positional.append(params.pop(name))
                elif position >= count - len(op.defaults):
                    positional.append(op.defaults[position - count])
                else:
                    raise NumgradTypeError(f"{op.__name__}: input {name!r} is missing")
            args = (*args, *positional)
    if params:
        if not params.keys() <= op.params.keys():
            params = _as_ours(op, params)
        params = {**op.params, **params}
    else:
        params = dict(op.params)
    for name, value in params.items():
        if value is REQUIRED:
            raise NumgradTypeError(f"{op.__name__}: parameter {name!r} is missing")
    return args, params


def _as_ours(op: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters by the names they have here, of which some are given by NumPy's."""
    ours = {theirs: name for name, theirs in op.spellings.items()}
    renamed = {ours.get(name, name): value for name, value in params.items()}
    for name in renamed:
        if name not in op.params or len(renamed) < len(params):
            unknown = next(n for n in params if n not in op.params)
            has = f"it has {', '.join(op.params)}" if op.params else f"it takes {_names(op)}"
            problem = f"no parameter is called {unknown!r}"
            if unknown in op.inputs:
                problem = f"{unknown!r} is given by position and by name"
            raise UnknownParameter(op, f"{op.__name__}: {problem}; {has}")
    return renamed


def _names(op: Any) -> str:
    return ", ".join([*op.inputs, *op.params])


def translated(op: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters with what stands for those that only another library's function has."""
    translation = {name: value for name, value in params.items() if name not in op.stand_ins}
    for name in params.keys() & op.stand_ins.keys():
        for ours, value in op.stand_ins[name](params[name]).items():
            if ours in translation:
                raise NumgradTypeError(f"{op.name}: {ours!r} and {name!r} mean the same; give one")
            translation[ours] = value
    return translation
