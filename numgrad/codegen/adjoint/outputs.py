"""Outputs of kernels beside what they return: arrays that they overwrite, arrays that they make."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.dtypes import KERNEL_DTYPES
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTypeError, NumgradValueError


class OutputLike(NamedTuple):
    """An array that a kernel makes for its output; ``ng.like`` declares one.

    Attributes
    ----------
    argument
        The parameter whose shape and dtype it has.
    shape, dtype
        Those that it has instead; lengths are integers or expressions of the parameters.
    """

    argument: str
    shape: tuple[int | str, ...] | None = None
    dtype: np.dtype | None = None


def like(argument: str, *, shape: Any = None, dtype: Any = None) -> OutputLike:
    """Declare an array that a kernel writes and callers need not pass.

    Parameters
    ----------
    argument
        The parameter of the kernel whose shape and dtype the array has.
    shape
        Its shape, if another one: lengths as integers, or as text of an expression of the
        parameters, ``("len(x)", "2 * k", 3)``.
    dtype
        Its dtype, if another one.

    Returns
    -------
    The declaration, for ``writes`` of ``ng.kernel``. The array starts with zeros.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If a name, length or dtype is none.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.kernel(writes={"out": ng.like("x")})
    ... def differences(x, out):
    ...     for i in range(1, len(x)):
    ...         out[i] = x[i] - x[i - 1]
    >>> differences(np.array([1.0, 4.0, 9.0]))
    tensor([0., 3., 5.])
    """
    if not isinstance(argument, str):
        raise NumgradTypeError(
            f"like: {argument!r} is no name; name the parameter, as like('x') does"
        )
    lengths: tuple[int | str, ...] | None = None
    if shape is not None:
        given = shape if isinstance(shape, tuple | list) else (shape,)
        lengths = tuple([_length(n) for n in given])
        if not lengths:
            raise NumgradValueError(
                "like: a shape without axes; return the number, or give it the shape 1"
            )
    return OutputLike(argument, lengths, None if dtype is None else _dtype(dtype))


def _length(value: Any) -> int | str:
    if isinstance(value, str):
        try:
            ast.parse(value.strip(), mode="eval")
        except SyntaxError as error:
            raise NumgradValueError(
                f"like: the length {value!r} is no expression; write it as in the kernel"
            ) from error
        return value.strip()
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise NumgradTypeError(f"like: the length {value!r} is neither an integer nor a text")
    if value < 0:
        raise NumgradValueError(f"like: the length {value} is negative")
    return int(value)


def _dtype(value: Any) -> np.dtype:
    try:
        dtype = np.dtype(value)
    except TypeError as error:
        raise NumgradTypeError(f"like: {value!r} is no dtype") from error
    if dtype not in KERNEL_DTYPES or dtype == np.uint64:
        raise NumgradTypeError(
            f"like: kernels have no arrays of {dtype}; use floats, complex numbers, int64, bool"
        )
    return dtype


@dataclass(frozen=True)
class WrittenParameters:
    """The parameters that a kernel writes.

    Attributes
    ----------
    names
        All of them, in the order of the outputs.
    made
        Those that callers do not pass.
    """

    names: tuple[str, ...] = ()
    made: Mapping[str, OutputLike] = field(default_factory=dict)

    @property
    def expressions(self) -> tuple[str, ...]:
        """The lengths that are declared as texts."""
        lengths = [n for d in self.made.values() for n in d.shape or ()]
        return tuple([n for n in lengths if isinstance(n, str)])

    @staticmethod
    def declared(kernel: str, writes: Any, parameters: Sequence[str]) -> WrittenParameters:
        """Read the option ``writes`` of a kernel with these parameters.

        Raises
        ------
        NumgradTypeError, NumgradValueError
            If it names what is no parameter, or makes an array like one that does not exist.
        """
        made: dict[str, OutputLike] = {}
        if isinstance(writes, Mapping):
            names = tuple(writes)
            for name, declaration in writes.items():
                if isinstance(declaration, OutputLike):
                    made[name] = declaration
                elif declaration is not None:
                    raise NumgradTypeError(
                        f"{kernel}: writes[{name!r}] is {declaration!r}; give ng.like('x') for an "
                        "array that is made like the argument x, None for one that is passed"
                    )
        else:
            if not isinstance(writes, Iterable) or isinstance(writes, bytes):
                raise NumgradTypeError(
                    f"{kernel}: writes is {writes!r}; name the arrays that it overwrites, as in "
                    "writes='x' or writes=('x', 'y')"
                )
            names = (writes,) if isinstance(writes, str) else tuple(dict.fromkeys(writes))
        passed = [name for name in parameters if name not in made]
        listed = ", ".join(parameters)
        for name in names:
            if name not in parameters:
                raise NumgradValueError(
                    f"{kernel}: writes names {name}, which is no parameter; it has {listed}"
                )
        for name, declaration in made.items():
            if declaration.argument not in passed:
                raise NumgradValueError(
                    f"{kernel}: {name} is made like {declaration.argument}, which is no parameter "
                    f"that is passed; those are {', '.join(passed)}"
                )
        return WrittenParameters(names, made)
