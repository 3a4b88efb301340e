"""``torch.Tensor``: an object around a Tensor of numgrad, with PyTorch's methods.

Note [Wrapper, subclass or flag]
--------------------------------
Methods of PyTorch and of NumPy have the same names and other meanings: ``x.size``, ``x.max(1)``,
``x.dtype``, ``a + b`` of an int and a float. numgrad's own code (formulas, layers, optimizers,
what composes operations) is written with NumPy's. So with a subclass of Tensor, or a flag on it,
each of these places would meet Tensors that answer otherwise: what a node saves is the operand
itself, and its formula calls ``x.dtype.kind``. A wrapper keeps the two apart: below this room all
Tensors are numgrad's; here each is in the slot ``_tensor`` of a wrapper, which has no state of its
own but attributes that users set. Tape, engine, hooks, transforms and compiler need no word for it.

It costs an object a result, made by the same machine code (Note [Wrapped Tensors] in
``codegen.cpython.recorded_calls``). ``perf/torch_face.py`` measures both forms. The chain of 40
operations on 100 elements takes, of the time through numgrad's own functions: recorded 1.06 by the
wrapper and 0.87 by a subclass, recorded and walked backwards 1.03 to 1.08 by the wrapper. (The
walk in machine code has no subclass in its table; in Python the subclass takes 1.67.)

Note [Identity]
---------------
``x.grad is x.grad``, and the variable at the end of a graph is the user's. So wrappers of leaves,
parameters and gradients are found again by ``same``, as long as they live; those of results,
which nobody else gives out, are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from numgrad.autograd.batching.selected import levels
from numgrad.autograd.variable import Parameter as BaseParameter, Tensor as Base
from numgrad.core.interpreter import state
from numgrad.core.tree import container_of, join, split
from numgrad.errors import (
    NumgradError,
    NumgradIndexError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.torch.dtypes import OF, dtype, get_default_dtype

_new = object.__new__


class Tensor:
    """An n-dimensional array that can record the operations applied to it, as PyTorch's does."""

    __slots__ = ("__dict__", "__weakref__", "_tensor")
    _tensor: Base
    __array_priority__ = 1000
    __hash__ = object.__hash__
    _applies = True
    """Operations of numgrad called with one give wrappers: ``bind`` of ``core.interpreter``."""

    def apply(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        """An operation of numgrad with wrappers among its operands."""
        given = {name: unwrap(value) for name, value in params.items()}
        return wrap(op(*[unwrap(a) for a in args], **given))


class Parameter(Tensor):
    """A Tensor that modules register and optimizers change."""

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        """Make one of a Tensor, whose memory is shared, or of data."""
        if data is None:
            data = Base(_empty())
        x = _new(cls)
        x._tensor = BaseParameter(unwrap(data), requires_grad)
        _known[id(x._tensor)] = x
        return x


def _empty() -> Any:
    return np.empty(0, get_default_dtype().numpy)


_known: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
"""Wrappers by ``id`` of their Tensors, which they keep alive: Note [Identity]."""
_references: dict[int, Any] = _known.data  # pyright: ignore


def wrapped(tensor: Base) -> Tensor:
    """A new wrapper of a Tensor."""
    x = _new(Tensor)
    x._tensor = tensor
    return x


def same(tensor: Any) -> Any:
    """The wrapper of a Tensor that users have already, or one that they get again from now on.

    Of tuples, lists and dictionaries, those with wrappers in them.
    """
    if not isinstance(tensor, Base):
        kind = type(tensor)
        if kind is tuple or kind is list:
            return kind(map(same, tensor))
        is_dict = isinstance(tensor, dict)
        return {same(key): same(value) for key, value in tensor.items()} if is_dict else tensor
    reference = _references.get(id(tensor))  # as ``_known.get``, in a third of the time
    x = None if reference is None else reference()
    if x is None or x._tensor is not tensor:
        x = _new(Parameter if isinstance(tensor, BaseParameter) else Tensor)
        x._tensor = tensor
        _known[id(tensor)] = x
    return x


def known(x: Tensor) -> Tensor:
    """Let ``same`` find a wrapper."""
    reference = _references.get(id(x._tensor))
    if reference is None or reference() is not x:
        _known[id(x._tensor)] = x
    return x


def wrap(value: Any) -> Any:
    """A value of numgrad as users see it: Tensors in wrappers, also in tuples, lists, dicts."""
    if isinstance(value, Base):
        return same(value) if isinstance(value, BaseParameter) else wrapped(value)
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(wrap, value))
    if kind is dict:
        return {key: wrap(each) for key, each in value.items()}
    if kind in _PLAIN:
        return value
    own = getattr(kind, "_wrap", None)  # of views of modules
    if own is not None:
        return own(value)
    return OF.get(value, value) if isinstance(value, np.dtype) else _through(wrap, value)


def unwrap(value: Any) -> Any:
    """A value of a user's as numgrad takes it: the reverse of ``wrap``, dtypes as NumPy's."""
    if isinstance(value, Tensor):
        return value._tensor
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(unwrap, value))
    if kind is dict:
        return {key: unwrap(each) for key, each in value.items()}
    if kind is dtype:
        return value.numpy
    if kind in _PLAIN:
        return value
    own = getattr(kind, "_unwrap", None)  # of nodes, modules
    return _through(unwrap, value) if own is None else own(value)


def listed(value: Any) -> Any:
    """As ``unwrap``, with other mappings as dictionaries, and other iterables as lists."""
    if isinstance(value, Mapping):
        return {unwrap(key): listed(each) for key, each in value.items()}
    single = isinstance(value, tuple | set | str) or hasattr(value, "__array__")
    if isinstance(value, Iterable) and not single:
        return list(map(listed, value))
    return unwrap(value)


_PLAIN = frozenset((int, float, bool, complex, str, type(None)))


def _through(function: Callable[[Any], Any], value: Any) -> Any:
    """A function of the parts of any other container; what it changes nothing in stays itself."""
    if container_of(type(value)) is None:
        return value
    kind, keys, parts = split(value)
    others = list(map(function, parts))
    return value if all(map(is_, parts, others)) else join(kind, keys, others)


def refuse_transformed(what: str) -> None:
    """Raise in a function that ``torch.func`` transforms, whose graph is the transform's."""
    if state.transforms or (state.interpreters and levels()):
        way = "leave what is differentiated to transforms, which can be nested"
        raise NumgradRuntimeError(f"{what}: not in a function that torch.func transforms; {way}")


class ArgumentError(NumgradValueError, NumgradRuntimeError):
    """An argument does not fit: PyTorch raises RuntimeError where numgrad raises ValueError."""


class OperandError(NumgradTypeError, NumgradRuntimeError):
    """A dtype does not fit: the same of TypeError."""


class PlaceError(NumgradIndexError, NumgradRuntimeError):
    """An index does not fit: the same of IndexError."""


_ERRORS = {
    NumgradValueError: ArgumentError,
    NumgradTypeError: OperandError,
    NumgradIndexError: PlaceError,
}
"""Errors about arguments, which PyTorch raises as RuntimeError, too."""


def as_runtime_error(error: Exception) -> None:
    """Let an error about arguments be one of PyTorch's class, too."""
    error.__class__ = _ERRORS.get(type(error), type(error))


def named(function: Any, name: str, doc: str | None = None) -> Any:
    """A function made for a name, with that name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def user_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a user's, as numgrad calls it: with wrappers, of whose results it gets Tensors.

    For hooks, closures, functions to transform.
    """

    def called(*args: Any, **params: Any) -> Any:
        return unwrap(function(*map(wrap, args), **{k: wrap(v) for k, v in params.items()}))

    return named(called, getattr(function, "__name__", "function"), function.__doc__)


def face_function(
    function: Callable[..., Any], given: Callable[[Any], Any] = unwrap
) -> Callable[..., Any]:
    """A function of numgrad's, as users call it: the reverse of ``user_function``."""

    def called(*args: Any, **params: Any) -> Any:
        try:
            return wrap(function(*map(given, args), **{k: given(v) for k, v in params.items()}))
        except NumgradError as error:
            as_runtime_error(error)
            raise

    vars(called)["__wrapped__"] = function
    return named(called, getattr(function, "__name__", "function"), function.__doc__)
