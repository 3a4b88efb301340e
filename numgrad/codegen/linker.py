"""Native functions that kernels call, made known to the linker by name.

Note [External functions]
-------------------------
Addresses change with every process, so machine code on disk refers to native functions by symbols.
``module:function`` is either a C function that a Cython module exports (SciPy's BLAS and special
functions), or a kernel that others call: its module has a function ``native_source`` that
gives what is compiled.

Cython writes a function of several types out for each, under names such as ``__pyx_fuse_0stdtr``.
The numbers in them follow a list of types that changes with SciPy's version, and a function of one
type has none. So a special function is asked for by the types of its arguments,
``module:stdtr(float64, float64)``, and found by those that Cython notes beside each address.

Note [Complex numbers by reference]
-----------------------------------
Kernels pass a complex number to C as its two parts and get one back as a pair, which is how C
compilers do it for most systems. Those for Windows on x86-64 pass addresses, that of the result
first. There the linker's symbol is the address of a few instructions that convert one into the
other; types of arguments are read from the declaration that Cython keeps with each function.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import re
import sys
from itertools import product
from typing import Any

from numgrad.codegen.cpython import c_api
from numgrad.codegen.locks import deferred
from numgrad.errors import NumgradNotImplementedError

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
            address = _exported(_extension(module_name), function)
    else:
        address = native_source(external).compile().address
    binding.add_symbol(external_symbol(external), address)
    _linked.add(external)


def native_source(external: str) -> Any:
    """Arguments of ``compile_kernel`` for a kernel of ours that others call."""
    module_name, function = external.split(":")
    return importlib.import_module(module_name).native_source(function)


_COMPLEX = "__pyx_t_double_complex"
_C_TYPES = {
    "float64": ("double",),
    "int64": ("Py_ssize_t", "long", "int"),
    "complex128": (_COMPLEX,),
}
"""Types as we call them -> as Cython does, the best one first."""
_FORM = re.compile(r"(?:__pyx_fuse_\d+(?:_\d+)*)?(\w+)")
_BESIDE_ARGUMENTS = ("int __pyx_skip_dispatch", "struct ")


def special_function(name: str, *types: str) -> str:
    """The form of one of SciPy's special functions that takes arguments of these types."""
    return f"scipy.special.cython_special:{name}({', '.join(types)})"


def _exported(module: Any, function: str) -> int:
    """The address of what a module exports: by its name, or by that and the types it takes."""
    exports = module.__pyx_capi__
    name, _, types = function.rstrip(")").partition("(")
    if not types:
        if name in exports:
            return _address(exports[name])
    else:
        forms = [exports[k] for k in exports if _FORM.fullmatch(k)[1] == name]  # pyright: ignore
        by_types = {_c_types(c_api.capsule_name(form)): form for form in forms}
        for wanted in product(*[_C_TYPES[t] for t in types.split(", ")]):
            if wanted in by_types:
                return _address(by_types[wanted])
    import scipy

    raise NumgradNotImplementedError(
        f"{name}: SciPy {scipy.__version__}, which is installed, has no compiled form of it that "
        f"takes {types or 'what we give'} in {module.__name__}, which kernels call; versions 1.15 "
        "to 1.18 have: python -m pip install 'scipy>=1.15,<1.19'"
    )


def _c_types(declaration: str) -> tuple[str, ...]:
    """The types of the arguments in a declaration such as ``double (double, int __pyx_...)``."""
    given = declaration.partition("(")[2].rstrip(")").split(", ")
    return tuple([t for t in given if not t.startswith(_BESIDE_ARGUMENTS)])


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


def _address(capsule: Any) -> int:
    """The address of a C function as kernels call it; Cython's name of it is its declaration."""
    declaration = c_api.capsule_name(capsule)
    address = c_api.capsule_pointer(capsule, declaration)
    if _COMPLEX in declaration and passes_by_reference():
        return by_reference(declaration, address)
    return address


def passes_by_reference() -> bool:
    """Whether C passes complex numbers so: Note [Complex numbers by reference]."""
    from llvmlite import binding

    triple = binding.get_process_triple()
    return "windows" in triple and triple.startswith("x86_64")


def by_reference(declaration: str, address: int) -> int:
    """The address of a function of parts that calls one: Note [Complex numbers by reference]."""
    from numgrad.codegen.native import machine

    result, _, given = declaration.partition("(")
    parameters, before, operands = [], [], []
    for k, argument in enumerate(given.rstrip(" )").split(",")):
        if argument.split()[0] != _COMPLEX:
            kind = {"double": "double", "int": "i32"}.get(argument.split()[0], "i64")
            parameters.append(f"{kind} %x{k}")
            operands.append(f"{kind} %x{k}")
            continue
        parameters += [f"double %x{k}", f"double %y{k}"]
        operands.append(f"ptr %p{k}")
        before += [
            f"%p{k} = alloca {_PAIR}",
            f"%q{k} = getelementptr {_PAIR}, ptr %p{k}, i32 0, i32 1",
            f"store double %x{k}, ptr %p{k}",
            f"store double %y{k}, ptr %q{k}",
        ]
    called = f"inttoptr (i64 {address} to ptr)"
    if result.strip() == _COMPLEX:
        kind, operands = _PAIR, [f"ptr sret({_PAIR}) %result", *operands]
        before.append(f"%result = alloca {_PAIR}")
        call = f"call void {called}({', '.join(operands)})\n  %value = load {_PAIR}, ptr %result"
    else:
        kind = result.strip()
        call = f"%value = call {kind} {called}({', '.join(operands)})"
    lines = [*before, call, f"ret {kind} %value"]
    text = f"define {kind} @body({', '.join(parameters)}) {{\n  " + "\n  ".join(lines) + "\n}\n"
    return machine.load(machine.compile_ir(text, f"reference_{address:x}"))["body"]


_PAIR = "{ double, double }"
