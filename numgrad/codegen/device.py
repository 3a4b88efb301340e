"""How kernels, and the functions of the kernel library that they call, are given to Numba."""

import re
import warnings
from collections.abc import Callable
from typing import Any

# Numba gives each function an entry point for Python and one for C; these are optimised again in
# every kernel that links the function. Only kernels are called from Python, nothing from C.
_WITHOUT_WRAPPERS: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def device(function: Callable) -> Callable:
    """Compile a scalar function of the kernel library, inlined into the kernels that call it."""
    import numba

    return numba.njit(function, forceinline=True, error_model="numpy", **_WITHOUT_WRAPPERS)


def outlined(function: Callable) -> Callable:
    """Compile a function of the kernel library that kernels call without inlining it."""
    import numba

    return numba.njit(function, error_model="numpy", **_WITHOUT_WRAPPERS)


def contracted(function: Callable) -> Callable:
    """The same, where a product and a sum may become one instruction."""
    import numba

    return numba.njit(function, error_model="numpy", fastmath={"contract"}, **_WITHOUT_WRAPPERS)


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
            function,
            error_model="numpy",
            parallel=parallel,
            nogil=nogil,
            no_cfunc_wrapper=True,
        )
