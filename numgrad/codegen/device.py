"""Functions and instructions of the kernel library, and how these and kernels reach Numba.

A function of the library is an object that holds its Python source, an instruction one that has a
name. Importing the library compiles nothing and imports no compiler: Numba is asked for its form of
an object where a function that it compiles names the object.
"""

import importlib
import re
import warnings
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

from numgrad.errors import NumgradNotImplementedError

# Numba gives each function an entry point for Python and one for C; these are optimised again in
# every kernel that links the function. Only kernels are called from Python, nothing from C.
_WITHOUT_WRAPPERS: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class LibraryFunction:
    """Function that compiled functions call; Python cannot."""

    def __call__(self, *given: Any) -> Any:
        raise NotImplementedError(f"{self!r} is for compiled functions to call")

    @cached_property
    def _numba_type_(self) -> Any:
        """The type that Numba gives the object in a function that names it."""
        return self.numba_type()

    def numba_type(self) -> Any:
        """Define the function for Numba."""
        raise NotImplementedError


class DeviceFunction(LibraryFunction):
    """A function of the kernel library, for compilers to read.

    Attributes
    ----------
    py_func
        The Python function.
    inline
        Whether it is inlined into the kernels that call it.
    contract
        Whether a product and a sum in it may become one instruction.
    for_numba
        The Python function that Numba compiles in its place, if it has instructions of which Numba
        has no form: Note [Two compilers] in ``compile``.
    without_fma
        The function that stands for it on a CPU without FMA, if not the same.
    """

    __name__: str
    __qualname__: str

    def __init__(self, function: Callable, *, inline: bool = False, contract: bool = False) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.inline = inline
        self.contract = contract
        self.for_numba = function
        self.without_fma: DeviceFunction = self

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's form of the function."""
        import numba

        options: Any = dict(_WITHOUT_WRAPPERS)
        if self.inline:
            options["forceinline"] = True
        if self.contract:
            options["fastmath"] = {"contract"}
        return numba.njit(self.for_numba, error_model="numpy", **options)

    def numba_type(self) -> Any:
        return self.dispatcher._numba_type_

    def __repr__(self) -> str:
        return f"<device function {self.__module__}.{self.__qualname__}>"


def device(function: Callable) -> DeviceFunction:
    """Compile a scalar function of the kernel library, inlined into the kernels that call it."""
    return DeviceFunction(function, inline=True)


def outlined(function: Callable) -> DeviceFunction:
    """Compile a function of the kernel library that kernels call without inlining it."""
    return DeviceFunction(function)


def contracted(function: Callable) -> DeviceFunction:
    """The same, where a product and a sum may become one instruction."""
    return DeviceFunction(function, contract=True)


class Instruction(LibraryFunction):
    """Operation that a compiler writes where a function calls it: a few machine instructions.

    It is known by its module and name. The native compiler's definition, which writes the code, is
    in its own table or the function of that name in the module ``<module>_native``. Numba has
    definitions, in ``intrinsics_numba``, of those only that stand in a kernel beside calls of
    functions that users compiled.

    Attributes
    ----------
    literal
        Whether arguments that are numbers in the source are given to the definition as such.
    external
        Of one that calls a kernel: the linker's name of that, by its own and that of a dtype.
    allocates
        Whether that kernel fails where there is no memory left.
    """

    __name__: str
    external: Callable[[str, str], str] | None = None
    allocates = False

    def __init__(self, stub: Callable, literal: bool = False) -> None:
        update_wrapper(self, stub)
        self.literal = literal

    def numba_type(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        definitions = importlib.import_module("numgrad.codegen.intrinsics_numba")
        if self.external is not None:
            definition = definitions.kernel_call(self.external, self.__name__)
        else:
            definition = getattr(definitions, self.__name__, None)
        if definition is None:
            raise NumgradNotImplementedError(
                f"{self.__name__}: Numba has no form of this instruction of {self.__module__}; "
                "only kernels that call no function compiled by Numba may use it"
            )
        defined: Any = intrinsic(prefer_literal=self.literal)
        typing: Any = cpu_target.typing_context
        self._defined = defined(definition)  # Numba holds it weakly
        typing.refresh()
        return typing.resolve_value_type(self._defined)

    def __repr__(self) -> str:
        return f"<instruction {self.__module__}.{self.__name__}>"


def instruction(stub: Callable) -> Instruction:
    """The instruction whose name, parameters and description those of ``stub`` are."""
    return Instruction(stub)


def literal_instruction(stub: Callable) -> Instruction:
    """The same, where the definition reads numbers in the source."""
    return Instruction(stub, literal=True)


class ExternalFunction(LibraryFunction):
    """A native function that kernels call by the linker's name: Note [External functions].

    Attributes
    ----------
    symbol
        The linker's name.
    signature
        Its types in words, such as ``float64(float64, int32)``.
    """

    def __init__(self, symbol: str, signature: str) -> None:
        self.symbol = symbol
        self.signature = signature

    def numba_type(self) -> Any:
        from numba import types
        from numba.core.sigutils import normalize_signature

        arguments, result = normalize_signature(self.signature)
        typed: Any = result
        if isinstance(typed, types.Complex):
            return self._numba_type_of_complex(typed(*arguments))
        return types.ExternalFunction(self.symbol, typed(*arguments))

    def _numba_type_of_complex(self, signature: Any) -> Any:
        """Numba itself passes no complex number to C: here its parts, and the result as a pair."""
        from llvmlite import ir
        from numba.core import cgutils, types
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            parts = []
            for kind, value in zip(signature.args, values, strict=True):
                if isinstance(kind, types.Complex):
                    parts += [builder.extract_value(value, k) for k in (0, 1)]
                else:
                    parts.append(value)
            result = context.get_value_type(signature.return_type)
            kind = ir.FunctionType(result, [component.type for component in parts])
            function = cgutils.get_or_insert_function(builder.module, kind, self.symbol)
            return builder.call(function, parts)

        typed = signature, write
        forms: Any = {  # parameters are counted by name
            2: lambda typing, a, b: typed,
            3: lambda typing, a, b, c: typed,
            4: lambda typing, a, b, c, d: typed,
            5: lambda typing, a, b, c, d, e: typed,
        }
        typing: Any = cpu_target.typing_context
        defined: Any = intrinsic
        self._defined = defined(forms[len(signature.args)])  # Numba holds it weakly
        typing.refresh()
        return typing.resolve_value_type(self._defined)

    def __repr__(self) -> str:
        return f"<external function {self.symbol}>"


def kernel_dispatcher(
    source: str, path: str, unique: str, parallel: bool, nogil: bool, functions: dict[str, Any]
) -> Any:
    """Numba's dispatcher for the function ``kernel`` of ``source``.

    The function is renamed to ``unique``: Numba derives linker symbols from the name, and symbols
    of kernels that different processes compiled must not collide when a third one loads them.
    """
    import numba

    # Environments are restored by importing the module of this name.
    namespace: dict[str, Any] = {"__name__": __name__, **functions}
    suffix = unique.rsplit("_", 1)[1]
    for name in re.findall(r"^def (\w+)\(", source, re.MULTILINE):
        if name != "kernel":  # its helpers need names of their own for the same reason
            source = re.sub(rf"\b{name}\b", f"{name}_{suffix}", source)
    exec(compile(source, path, "exec"), namespace)
    function = namespace["kernel"]
    function.__name__ = function.__qualname__ = unique
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)
        njit: Any = numba.njit
        return njit(
            function, error_model="numpy", parallel=parallel, nogil=nogil, no_cfunc_wrapper=True
        )
