"""Functions that other processes evaluate.

Note [Once a worker]
--------------------
A function travels as bytes with a key of its own. A worker that meets the key first unpickles it,
differentiates it, and compiles it if that is wanted; it keeps the result by the key, so later calls
only look it up. Functions are pickled by ``pickle``, which sends the name of what a module has;
those that have no name that others find, such as lambdas, by ``cloudpickle`` where that is
installed, as it is with Dask.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import numpy as np

from numgrad.codegen.locks import FUNCTIONS
from numgrad.compiler.api import jit as compiled
from numgrad.core.tree import flatten, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.derivatives import value_and_grad

KEPT = 64
"""Functions that a worker keeps."""

_functions: OrderedDict[str, Callable[..., Any]] = OrderedDict()


class Remote:
    """A function of pieces of data, evaluated wherever this is unpickled: Note [Once a worker]."""

    def __init__(self, name: str, function: Callable[..., Any], make: Callable[..., Any]) -> None:
        self.name, self.key, self.make = name, uuid4().hex, make
        self._function: Callable[..., Any] | None = function
        self._bytes: dict[bool, bytes] = {}
        self.by_value = False

    def __getstate__(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "key": self.key,
            "make": self.make,
            "data": self.pickled(self.by_value),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.name, self.key, self.make = state["name"], state["key"], state["make"]
        self._function, self._bytes, self.by_value = None, {False: state["data"]}, False

    def pickled(self, by_value: bool) -> bytes:
        """The function as bytes; ``by_value`` sends functions of ``__main__`` by what they are.

        Raises
        ------
        NumgradTypeError
            If it cannot be pickled.
        """
        if by_value not in self._bytes:
            self._bytes[by_value] = _pickled(self.name, self._function, by_value)
        return self._bytes[by_value]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, as ``make`` made it ready, with one piece."""
        with FUNCTIONS:
            built = _functions.get(self.key)
            if built is None:
                function = self._function
                if function is None:
                    function = pickle.loads(self._bytes[False])
                built = _functions[self.key] = self.make(function)
                while len(_functions) > KEPT:
                    _functions.popitem(last=False)
            _functions.move_to_end(self.key)
        return built(*args, **kwargs)


def _pickled(name: str, function: Any, by_value: bool) -> bytes:
    has_cloudpickle = find_spec("cloudpickle") is not None
    try:
        if by_value and has_cloudpickle:
            return import_module("cloudpickle").dumps(function)
        return pickle.dumps(function)
    except Exception as error:
        if has_cloudpickle and not by_value:
            return _pickled(name, function, True)
        raise NumgradTypeError(
            f"{name}: the function {function!r} cannot be sent to another process ({error}); "
            "define it in a module, install cloudpickle, or use a ThreadPoolExecutor"
        ) from error


class Gradients:
    """Function in a worker that returns value and gradients of one piece of the data."""

    def __init__(self, argnums: tuple[int, ...], jit: bool) -> None:
        self.argnums, self.jit = argnums, jit

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of one piece that returns the value and the list of gradients."""
        both = value_and_grad(function, self.argnums)
        if self.jit:
            both = compiled(both)

        def evaluate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
            value, gradients = both(*args, **kwargs)
            leaves: list[Any] = []
            flatten(gradients, leaves)
            return as_array(value), [as_array(g) for g in leaves]

        return evaluate


class EachRow:
    """Function in a worker that returns its results for the rows of one piece."""

    def __init__(self, jit: bool) -> None:
        self.jit = jit

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of one piece that returns the stacked results and their structure."""
        each = compiled(function) if self.jit else function

        def evaluate(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any]:
            leaves: list[Any] = []
            structure = flatten(args, leaves)
            results = []
            for row in range(len(leaves[0])):
                result = each(*unflatten(structure, iter([leaf[row] for leaf in leaves])), **kwargs)
                values: list[Any] = []
                shape = flatten(result, values)
                results.append((shape, [_result(x) for x in values]))
            first = results[0][0]
            if any(shape != first for shape, _ in results):
                raise NumgradValueError("map: the function returns different structures for rows")
            return [stacked(column) for column in zip(*(r for _, r in results), strict=True)], first

        return evaluate


def _result(x: Any) -> np.ndarray:
    array = as_array(x)
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"map: the function returns arrays and numbers, got {type(x).__name__} {x!r:.40}"
        )
    return array


def as_array(x: Any) -> np.ndarray:
    """A number, array or Tensor as an ndarray."""
    return x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)


def stacked(arrays: Any) -> np.ndarray:
    """Results of rows as one array.

    Raises
    ------
    NumgradValueError
        If their shapes differ.
    """
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        raise NumgradValueError(
            f"map: the function returns shapes {' and '.join(map(str, sorted(shapes)))} for "
            "different rows; they must be equal"
        )
    return np.stack(arrays)
