"""Functions that ``ng.export`` wrote, loaded: ``ng.load_native``."""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import Any

from numgrad.codegen import c_library
from numgrad.compiler.native.callbacks import low_level_function
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError


class LoadedFunction(c_library.ExportedFunction):
    """A function of an exported library; what loads and calls it needs NumPy alone."""

    type_error, value_error = NumgradTypeError, NumgradValueError
    run_time_error = NumgradRuntimeError

    def __reduce__(self) -> Any:
        raise NumgradTypeError(
            f"{self.name}: a native function is machine code of this process; load the file again "
            "where it is needed"
        )

    @cached_property
    def njit(self) -> Any:
        """The function for Numba's compiled code, as ``ng.jit(f).native(...).njit``."""
        return self._for_numba(into=False)

    @cached_property
    def njit_into(self) -> Any:
        """The same, with the arrays to write results to as further arguments."""
        return self._for_numba(into=True)

    def _for_numba(self, into: bool) -> Any:
        from numgrad.codegen.numba_entry import numba_function

        leaves = _leaves(self.about["results"])
        constants = [(x != "*", None if x == "*" else x["value"]) for x in leaves]
        return numba_function(self, constants, into=into)

    def low_level_callable(self, signature: str, *rest: Any) -> Any:
        """The function as a ``scipy.LowLevelCallable``, as ``ng.jit(f).native(...)`` makes it.

        Its signature has a ``void *``, which SciPy passes the values of ``rest`` by.
        """
        return low_level_function(self, signature, rest, self._adapter)

    def _adapter(self, form: str) -> int:
        return self.owner.address(f"{self.name}_{form}")


def _leaves(nesting: Any) -> list[Any]:
    if nesting == "*" or "value" in nesting:
        return [nesting]
    return [leaf for item in nesting["items"] for leaf in _leaves(item)]


def load_native(path: str | os.PathLike[str]) -> Any:
    """Load what ``ng.export`` wrote, by NumPy alone: nothing is compiled or traced.

    Parameters
    ----------
    path
        That given to ``export``; beside ``<path>.json`` lies the library that it names.

    Returns
    -------
    LoadedFunction or dict
        The function, or functions by their names if a dictionary was exported: each with
        ``.address``, ``.declaration``, ``.ctypes``, ``.cffi``, ``.njit`` where Numba is
        installed; results of calls are nested as those of the compiled function, with
        dictionaries in place of dataclasses and named tuples.

    Raises
    ------
    NumgradValueError
        If the file is of another version, or describes no library.
    OSError
        If there is none, or this system does not load it.

    Examples
    --------
    >>> import tempfile, numpy as np, numgrad as ng
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = ng.export(ng.jit(lambda x: np.sum(x * x)), f"{folder}/model", np.zeros(3))
    ...     norm = ng.load_native(f"{folder}/model")
    >>> norm(np.array([3.0, 4.0]))
    np.float64(25.0)
    """
    path = os.path.abspath(os.fspath(path))
    path = path if path.endswith(".json") else path + ".json"
    with open(path, encoding="utf-8") as file:
        about = json.load(file)
    if about.get("format") != c_library.FORMAT:
        raise NumgradValueError(
            f"load_native: {path} has format {about.get('format')}, this reads "
            f"{c_library.FORMAT}; export it again"
        )
    functions = c_library.loaded(about, os.path.dirname(path), LoadedFunction)
    return functions if about["several"] else next(iter(functions.values()))
