"""Native functions that kernels call, made known to the linker by name.

Note [External functions]
-------------------------
Addresses change with every process, so machine code on disk refers to native functions by symbols.
``module:function`` is either a C function that a Cython module exports (SciPy's BLAS and special
functions), or a kernel that others call: its module has a function ``address`` that
compiles or loads it.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from typing import Any

from numgrad.codegen.interrupts import deferred

_linked: set[str] = set()


def external_symbol(external: str) -> str:
    """The linker's name for the function ``module:function``."""
    return "numgrad_" + re.sub(r"\W", "_", external)


def link(external: str) -> None:
    """Make ``module:function`` known to the linker."""
    if external in _linked:
        return
    from llvmlite import binding

    module_name, function = external.split(":")
    if module_name.startswith("scipy."):
        with deferred():
            address = _pointer(_extension(module_name).__pyx_capi__[function])
    else:
        address = importlib.import_module(module_name).address(function)
    binding.add_symbol(external_symbol(external), address)
    _linked.add(external)


def _extension(name: str) -> Any:
    """A compiled module of SciPy.

    ``scipy.linalg`` as a whole takes 0.2 s to import, and BLAS needs none of it: that module is
    loaded alone, and not left for others to find, who expect it inside its package.
    """
    package = name.rpartition(".")[0]
    if package != "scipy.linalg" or package in sys.modules:
        return importlib.import_module(name)
    import scipy

    directory = os.path.join(scipy.__path__[0], "linalg")
    spec = importlib.machinery.PathFinder.find_spec(name, [directory])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if sys.modules.get(name) is module:  # Cython puts it there
        del sys.modules[name]
    return module


def _pointer(capsule: Any) -> int:
    import ctypes

    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get_pointer(capsule, get_name(capsule))
