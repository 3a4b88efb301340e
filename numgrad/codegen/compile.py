"""The only door to Numba: generated source in, native entry points out, kept on disk.

A kernel is one generated function. Its identity is the hash of everything that decides its machine
code, so an entry never goes stale; see Note [Kernel cache].

Note [Kernel cache]
-------------------
Each kernel has two files in the cache directory: ``<name>-<key>.py``, the source (for people and
tracebacks), and ``<name>-<key>.bin``, a digest followed by Numba's serialised compile result.
``key`` hashes the source, the signature, the options, the versions of Python, Numba, llvmlite and
NumPy, the CPU and its features, and the files of the kernel library that the source imports, with
what these import in turn (Numba's own cache does not notice a change there). Files appear by an
atomic rename, so concurrent processes see a whole file or none; a file whose digest does not match
is recompiled and replaced. Who may have written them: Note [Trusted files] in ``cache``. A process
that is about to compile a kernel holds its lock; another one that needs it waits, and then loads
it, so that processes that start with an empty cache share the work.

On a hit neither the generated source nor the kernel library is imported, and Numba's registries are
never filled (0.3 s): machine code is linked and its entry point called directly. The entry point
unboxes its arguments by position without a dispatcher's type look-up (0.12 us against 0.20 us for
three arrays), so callers must pass exactly the dtypes, ranks and layouts of the signature. A
contiguous array may be passed where the signature says ``A``.
"""

import pickle
import platform
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from numgrad.codegen import linker, memory, threads
from numgrad.codegen.device import kernel_dispatcher
from numgrad.codegen.interrupts import deferred
from numgrad.codegen.locks import KERNELS, give_way
from numgrad.errors import warn

_loaded: dict[str, "Kernel"] = {}


@dataclass(slots=True)
class Kernel:
    """A compiled generated function: call ``entry`` with arguments of exactly ``signature``."""

    name: str
    source: str
    signature: str
    parallel: bool
    nogil: bool
    functions: dict[str, Any]
    entry: Callable[..., Any]
    from_cache: bool
    compile_result: Any = field(repr=False)
    inspected: Any = field(default=None, repr=False)

    @property
    def address(self) -> int:
        """Where the function is that other machine code calls, by Numba's calling convention."""
        result = self.compile_result
        return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)

    def llvm(self) -> str:
        """LLVM IR after optimisation; what came from disk is compiled again."""
        return str(_library(self)._final_module)

    def asm(self) -> str:
        """Assembly for this CPU; what came from disk is compiled again."""
        return _library(self).get_asm_str()


def compile_kernel(
    name: str,
    source: str,
    signature: str,
    *,
    parallel: bool = False,
    nogil: bool = False,
    externals: Iterable[str] = (),
    functions: dict[str, Any] | None = None,
    keep: bool = True,
) -> Kernel:
    """Compile ``source``, or load it from the cache.

    Parameters
    ----------
    name
        What the kernel is called in files and tracebacks. ``source`` defines ``def kernel(...)``.
    signature
        A Numba signature in words, such as ``void(float64[::1], float64[::1])``.
    parallel, nogil
        Numba's options of these names.
    externals
        Native functions that ``source`` calls, as ``module:function``; they are made known to the
        linker before the machine code is loaded: Note [External functions] in ``linker``.
    functions
        Users' own compiled functions that ``source`` calls, by the names it uses. Nothing tells
        what they in turn depend on, so such kernels are compiled anew in each process.
    keep
        Whether the disk is used: to load the kernel from, and to keep it.
    """
    from hashlib import sha256  # with OpenSSL, 3 ms that importing numgrad does not need

    functions = functions or {}
    identities = sorted((name, id(function)) for name, function in functions.items())
    options = f"{parallel=} {nogil=} externals={sorted(externals)} {identities=} {keep=}"
    key = sha256("\0".join((name, source, signature, options)).encode()).hexdigest()[:32]
    found = _loaded.get(key)
    if found is not None:
        return found
    give_way()
    with KERNELS:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = _load_or_compile(
                name, source, signature, parallel, nogil, tuple(externals), functions, keep
            )
    return found


def _load_or_compile(
    name: str,
    source: str,
    signature: str,
    parallel: bool,
    nogil: bool,
    externals: tuple[str, ...],
    functions: dict[str, Any],
    keep: bool,
) -> Kernel:
    from hashlib import sha256

    from numgrad.codegen import cache
    from numgrad.codegen.sources import library_digest

    keep = keep and not functions
    memory.keep_freed_memory()
    if parallel:
        threads.prepare_pool()
    for symbol in externals:
        linker.link(symbol)
    with deferred():
        options = f"{parallel}{nogil}{externals}"
        text = "\0".join((_stamp(), library_digest(source), name, source, signature, options))
        key = sha256(text.encode()).hexdigest()[:24]
        stem = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}-{key}"  # not all systems have jit_<lambda>
        result = _load(stem) if keep else None
    make = partial(Kernel, name, source, signature, parallel, nogil, functions)
    if result is not None:
        return make(result.entry_point, True, result)
    with cache.by_one_process(stem) if keep else nullcontext(), deferred():
        result = _load(stem) if keep else None  # another process may just have saved it
        if result is not None:
            return make(result.entry_point, True, result)
        path = cache.write(f"{stem}.py", source.encode()) if keep or functions else None
        unique = f"{name}_{key}"
        dispatcher = kernel_dispatcher(
            source, str(path or stem), unique, parallel, nogil, functions
        )
        entry = dispatcher.compile(signature)
        (result,) = dispatcher.overloads.values()
        if keep:
            _save(stem, result)
        return make(entry, False, result)


def _library(kernel: Kernel) -> Any:
    """Numba's code library of a kernel; that of one from disk holds machine code only."""
    if not kernel.from_cache:
        return kernel.compile_result.library
    with KERNELS, deferred():
        if kernel.inspected is None:
            dispatcher = kernel_dispatcher(
                kernel.source,
                kernel.name,
                f"{kernel.name}_inspected",
                kernel.parallel,
                kernel.nogil,
                kernel.functions,
            )
            dispatcher.compile(kernel.signature)
            (result,) = dispatcher.overloads.values()
            kernel.inspected = result.library
        return kernel.inspected


def _load(stem: str) -> Any:
    """The compile result of an intact cache entry, else None."""
    from numgrad.codegen import cache

    payload = cache.load(f"{stem}.bin")
    if payload is None:
        return None
    from numba.core import compiler
    from numba.core.registry import cpu_target
    from numba.core.runtime.nrt import rtsys

    context = cpu_target.target_context
    rtsys.initialize(context)
    try:
        return compiler.CompileResult._rebuild(context, *pickle.loads(payload))
    except Exception as error:  # an intact file this installation cannot link: compile anew
        cache.discard(f"{stem}.bin")
        _warn(f"cached kernel {stem} could not be loaded ({error}); compiling it again")
    return None


def _save(stem: str, result: Any) -> None:
    """Keep a compile result; where Numba cannot write it, the kernel serves this process alone."""
    from numba.core.serialize import dumps

    from numgrad.codegen import cache

    if result.library.has_dynamic_globals:
        return  # holds an address of this process
    try:
        payload = dumps(result._reduce())
    except Exception as error:  # such as machine code lost by an exception in LLVM's callback
        _warn(f"kernel {stem} could not be kept ({error}); other processes compile it again")
        return
    cache.save(f"{stem}.bin", payload)


def _warn(message: str) -> None:
    warn(f"numgrad: {message}", RuntimeWarning)


_stamp_text: str | None = None


def _stamp() -> str:
    """What besides its source and the kernel library decides a kernel's machine code."""
    global _stamp_text
    if _stamp_text is None:
        import llvmlite
        import numba
        import numpy
        from llvmlite import binding
        from numba.core import config as numba_config

        config: Any = numba_config
        _stamp_text = " ".join(
            str(part)
            for part in (
                __name__,  # what is saved names modules of this package
                sys.version_info[:3],
                sys.abiflags if hasattr(sys, "abiflags") else "",
                platform.machine(),
                numba.__version__,
                llvmlite.__version__,
                numpy.__version__,
                config.CPU_NAME or binding.get_host_cpu_name(),
                config.CPU_FEATURES or binding.get_host_cpu_features().flatten(),
                config.OPT,
                config.BOUNDSCHECK,
            )
        )
    return _stamp_text
