"""Arrays without numbers, which stand for what a compiled function will compute.

Note [Tracing]
--------------
``ng.jit`` runs a function once on Tensors whose ``_array`` is an ``AbstractArray``: shape and dtype
are known, the numbers are not. Code that makes arrays itself (the ones a backward begins with,
zeros for a gradient that did not arrive) asks ``state.ground`` for them, by ``zeros`` and ``ones``.
Whatever needs numbers ends in ``refuse``.
"""

from math import prod
from typing import Any, NoReturn

import numpy as np

from numgrad.core.interpreter import state


class AbstractLength:
    """The length of an axis that is known only when a compiled function is called."""

    __slots__ = ()

    def as_number(self) -> Any:
        """The length as a number to compute with."""
        raise NotImplementedError

    @property
    def hint(self) -> int:
        """The length in the call that is traced, on which nothing but speed may depend."""
        raise NotImplementedError


class AbstractArray:
    """Shape and dtype of an array whose elements are not known yet: Note [Tracing].

    No subclass of ndarray: NumPy would read memory that means nothing.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[Any, ...]:
        """Lengths of the axes, integers and ``AbstractLength``."""
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the elements."""
        raise NotImplementedError

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise: ``what`` needs numbers."""
        raise NotImplementedError

    def outside(self, what: str, remedy: str = "") -> np.ndarray:
        """The numbers of an array around what is run, if it is one; else raise as ``refuse``."""
        self.refuse(what, remedy)

    def check_writable(self, name: str) -> None:
        """Raise if a write has no meaning or is not allowed."""
        raise NotImplementedError

    @property
    def immutable(self) -> bool:
        """Whether it stands for a number, of which ``x += y`` makes another."""
        return False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def flags(self) -> NoReturn:
        self.refuse("computing with numbers (in a function that is called back)", CALLED_BACK)

    @property
    def strides(self) -> NoReturn:
        self.refuse("strides", "where elements lie is settled when the function is compiled")

    def item(self, *args: Any) -> NoReturn:
        self.refuse("item()", NUMBER)

    def tobytes(self, order: Any = "C") -> NoReturn:
        self.refuse("tobytes()", NDARRAY)

    def tolist(self) -> NoReturn:
        self.refuse("tolist()", NUMBER)

    def __bool__(self) -> NoReturn:
        self.refuse("bool()", BRANCH)

    def __float__(self) -> NoReturn:
        self.refuse("float()", NUMBER)

    def __int__(self) -> NoReturn:
        self.refuse("int()", f"{COUNT}, or compute with the array itself")

    def __complex__(self) -> NoReturn:
        self.refuse("complex()", NUMBER)

    def __getitem__(self, index: Any) -> NoReturn:
        self.refuse("an element", NUMBER)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self.refuse("conversion to an ndarray", NDARRAY)

    def __array_ufunc__(self, ufunc: np.ufunc, *args: Any, **params: Any) -> NoReturn:
        self.refuse(f"np.{ufunc.__name__}", NDARRAY)

    def __array_function__(self, func: Any, *args: Any, **params: Any) -> NoReturn:
        self.refuse(f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1), NDARRAY)


NUMBER = (
    "compute with the array itself (ng.zeros makes one that it can be stored in), return it and "
    "look at it outside, or pass the argument that it comes from as a static one (static_argnums)"
)
COUNT = (
    "a loop of that many steps is ng.fori_loop; for table[k] of an ndarray write ng.take(table, k, "
    "axis=0); or pass the argument that it comes from as a static one (static_argnums)"
)
PRINT = (
    "it would print once, while the loop or branch is compiled; return the array, so that it is "
    "there for each step, or call the function without ng.jit (repr() describes what is traced)"
)

SHAPE = (
    "the result's shape depends on it: pass the argument that it comes from as a static one "
    "(static_argnums), or take it from the shape of an array"
)
BRANCH = (
    "use np.where(condition, a, b), ng.cond in place of if, ng.while_loop in place of while, or "
    "pass the argument it comes from as a static one (static_argnums); of np.arange with the "
    "length of an axis, write ng.arange"
)
NDARRAY = (
    "NumPy does not ask us about lists: np.stack or ng.asarray makes an array of several, as in "
    "np.sum(np.stack([a, b])); else use a numgrad function in place of the NumPy one (ng.ops lists "
    "them; ng.zeros makes an array that can be filled; for table[k] of an ndarray write "
    "ng.take(table, k, axis=0)), compute this outside of the function, or pass a number on which a "
    "shape depends as a static argument (static_argnums)"
)
CALLED_BACK = (
    "it closes over an array that has no numbers yet: give it that as an argument, a solver's in "
    "args"
)
"""Remedies where a number, a branch or an ndarray was asked for."""


def refuse_abstract(what: str, *values: Any) -> None:
    """Raise if an integer that has to be known is a Tensor without numbers.

    Parameters
    ----------
    what
        The operation and what it needs, such as ``"reshape: a length"``.
    *values
        Arguments, and tuples and lists of such.
    """
    for value in values:
        if isinstance(value, tuple | list):
            refuse_abstract(what, *value)
        elif isinstance(array := getattr(value, "_array", None), AbstractArray):
            array.refuse(what, SHAPE)


def broadcast_lengths(*shapes: tuple[Any, ...]) -> tuple[Any, ...]:
    """``np.broadcast_shapes`` for lengths of any kind; ``ValueError`` if they do not suit."""
    if len(shapes) == 2:
        a, b = shapes
        if a is b or not b:
            return tuple(a)
        if not a:
            return tuple(b)
    rank = max(map(len, shapes), default=0)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for axis, n in enumerate(shape, rank - len(shape)):
            known = result[axis]
            if _is_one(n) or known is n:
                continue
            if _is_one(known):
                result[axis] = n
            elif known != n:
                if known == 1:  # a symbol that happens to be 1
                    result[axis] = n
                elif n != 1:
                    raise ValueError(f"shapes {shapes} do not broadcast")
    return tuple(result)


def _is_one(n: Any) -> bool:
    return type(n) is int and n == 1


ARRAYS: Any = (np.ndarray, AbstractArray)
"""The array that a Tensor holds."""


def filled(shape: tuple[Any, ...], number: Any, dtype: Any) -> Any:
    """An array with one number everywhere."""
    return state.ground.filled(shape, number, dtype)


def made(array: np.ndarray) -> Any:
    """An array of numbers that an operation made itself, which a trace takes as they are."""
    return state.ground.made(array)


def zeros(shape: tuple[Any, ...], dtype: Any) -> Any:
    """An array of zeros."""
    return state.ground.zeros(shape, dtype)


def ones(shape: tuple[Any, ...], dtype: Any) -> Any:
    """An array of ones."""
    return state.ground.ones(shape, dtype)
