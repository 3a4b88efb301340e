"""Signatures of functions, those of NumPy's that are written in C included.

``inspect.signature`` knows NumPy's C functions from NumPy 2.4 on. Here they have the signatures of
the newest NumPy under all versions, from a table that a test compares with what is installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

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
