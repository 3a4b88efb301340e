"""The only door to compilers: generated source in, native entry points out, kept on disk.

A kernel is one generated function. Its identity is the hash of everything that decides its machine
code, so an entry never goes stale; see Note [Kernel cache].

Note [Two compilers]
--------------------
Text goes straight to LLVM (``native``), in a tenth of a second and without Numba; all of ours does,
which ``tests/conftest.py`` watches. What calls users' own compiled functions, and what a formula of
theirs has that is not in the language, Numba compiles: ``Kernel.numba_reason`` says
why. Results have the same bits.

Note [Kernel cache]
-------------------
Each kernel has two files in the cache directory: ``<name>-<key>.py``, the source (for people and
tracebacks), and ``<name>-<key>.bin``, a digest of the file's name and of what follows: an object
file, or Numba's serialised compile result. ``key`` hashes the source, the signature, the options,
the versions of Python, NumPy and the compilers, the CPU and its features, and the files of the
kernel library that the source imports, with what these import in turn (Numba's own cache does not
notice a change there). Files appear by an atomic rename, so concurrent processes see a whole file
or none; a file whose digest does not match, as where contents were mixed up, is recompiled and
replaced. Who may have written them: Note [Trusted files] in ``cache``. A process that is about to
compile a kernel holds its lock; another one that needs it waits, and then loads it, so that
processes that start with an empty cache share the work. Entries for C (``c_entry``) and objects
that ``ng.export`` writes are kept in the same way, without a source.

On a hit neither the generated source nor the kernel library is imported: machine code is linked and
its entry point called directly. The entry point takes its arguments apart by position without a
type look-up, so callers must pass exactly the dtypes, ranks and layouts of the signature. A
contiguous array may be passed where the signature says ``A``.

Note [Lifetime of machine code]
-------------------------------
Kernels of operations live as long as the process, in one engine of LLVM: other machine code knows
their addresses. A kernel of a compiled function (``lasting=False``) has an engine of its own, which
its ``entry`` owns, and nothing else knows an address in it; programs with the same text share the
kernel. So reference counts say when the memory can be given back: whoever is about to call the
entry (a program, a backward on the tape, another thread's frame) holds on to it, and a call does
until it returns. At the end of the process nothing is given back. Numba gives nothing back at all,
so what it compiled is lasting.

An engine takes 0.06 ms to make and load, less than the common one takes to load (0.10 ms), and
40 KB beside the code, against 8 KB: too much for the hundreds of kernels that stay.
"""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from dataclasses import field
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from numgrad.codegen import linker, memory, threads
from numgrad.codegen.device import kernel_dispatcher
from numgrad.codegen.locks import KERNELS, deferred, give_way
from numgrad.codegen.native.ir import Unsupported
from numgrad.dataclass import dataclass
from numgrad.errors import warn
from numgrad.libraries import uncollected


class HostedCode:
    """A kernel's code as Numba keeps it."""

    def __init__(self, kernel: Any, result: Any, from_cache: bool) -> None:
        self.kernel, self.result, self.from_cache = kernel, result, from_cache
        self.inspected: Any = None

    @property
    def address(self) -> int:
        """Where the function is that other machine code calls, by Numba's calling convention."""
        return self.result.library.get_pointer_to_function(self.result.fndesc.llvm_func_name)

    def llvm(self) -> str:
        """LLVM IR after optimisation; what came from disk is compiled again."""
        return str(self._library()._final_module)

    def asm(self) -> str:
        """Assembly for this CPU; what came from disk is compiled again."""
        return self._library().get_asm_str()

    def _library(self) -> Any:
        """Numba's code library of a kernel; that of one from disk holds machine code only."""
        if not self.from_cache:
            return self.result.library
        from numgrad.codegen.locks import KERNELS

        with KERNELS, deferred():
            if self.inspected is None:
                self.inspected = compile_hosted(self.kernel, "inspected", self.kernel.name).library
            return self.inspected


def compile_hosted(kernel: Any, key: str, path: str) -> Any:
    """Numba's compile result of a kernel."""
    dispatcher = kernel_dispatcher(
        kernel.source, path, f"{kernel.name}_{key}", kernel.parallel, kernel.nogil, kernel.functions
    )
    dispatcher.compile(kernel.signature)
    (result,) = dispatcher.overloads.values()
    return result


def load_hosted(stem: str, parallel: bool) -> Any:
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
    if parallel:  # what its loops call
        from numba.np.ufunc import parallel as pool

        pool._launch_threads()
    try:
        return compiler.CompileResult._rebuild(context, *pickle.loads(payload))
    except Exception as error:  # an intact file this installation cannot link: compile anew
        cache.discard(f"{stem}.bin")
        tell(f"cached kernel {stem} could not be loaded ({error}); compiling it again")
    return None


def save_hosted(stem: str, result: Any) -> None:
    """Keep a compile result; where Numba cannot write it, the kernel serves this process alone."""
    from numba.core.serialize import dumps

    from numgrad.codegen import cache

    if result.library.has_dynamic_globals:
        return  # holds an address of this process
    try:
        payload = dumps(result._reduce())
    except Exception as error:  # such as machine code lost by an exception in LLVM's callback
        tell(f"kernel {stem} could not be kept ({error}); other processes compile it again")
        return
    cache.save(f"{stem}.bin", payload)


def tell(message: str) -> None:
    """Warn of something that costs time and changes nothing."""
    warn(f"numgrad: {message}", RuntimeWarning)


_stamp_text: str | None = None


def hosted_stamp() -> str:
    """Identify all that decides Numba's machine code besides a source and the kernel library."""
    global _stamp_text
    if _stamp_text is None:
        import numba
        from numba.core import config as numba_config

        from numgrad.codegen.native import machine

        config: Any = numba_config
        parts = (
            __name__,  # what is saved names modules of this package
            machine.stamp(),
            sys.version_info[:3],
            numba.__version__,
            config.CPU_NAME or "",
            config.CPU_FEATURES or "",
            config.OPT,
            config.BOUNDSCHECK,
        )
        _stamp_text = " ".join(str(item) for item in parts)
    return _stamp_text


class KernelSource(NamedTuple):
    """Arguments of ``compile_kernel``."""

    name: str
    source: str
    signature: str
    externals: Collection[str] = ()
    functions: dict[str, Any] | None = None
    parallel: bool = False

    def compile(self, *, parallel: bool | None = None, nogil: bool = False) -> Kernel:
        """Compile it, or load what was compiled."""
        return compile_kernel(
            self.name, self.source, self.signature,
            externals=self.externals, functions=self.functions, nogil=nogil,
            parallel=self.parallel if parallel is None else parallel,
        )  # fmt: skip


_Loaded = TypeVar("_Loaded")
_loaded: dict[str, Kernel] = {}
_passing: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
"""Kernels that are given up with their last user: Note [Lifetime of machine code]."""


@dataclass(slots=True, weakref_slot=True)
class Kernel:
    """A compiled generated function: call ``entry`` with arguments of exactly ``signature``.

    Attributes
    ----------
    numba_reason
        Why Numba compiled it; empty if it went straight to LLVM.
    code
        What was compiled: where it is, LLVM's language, assembly.
    """

    name: str
    source: str
    signature: str
    parallel: bool
    nogil: bool
    functions: dict[str, Any]
    lasting: bool = True
    numba_reason: str = ""
    from_cache: bool = False
    entry: Callable[..., Any] = field(init=False)
    code: Any = field(init=False, repr=False)

    @property
    def address(self) -> int:
        """Where the function is that other machine code calls, by Numba's calling convention."""
        return self.code.address

    def llvm(self) -> str:
        """LLVM IR after optimisation; what came from disk is compiled again."""
        return self.code.llvm()

    def asm(self) -> str:
        """Assembly for this CPU; what came from disk is compiled again."""
        return self.code.asm()


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
    lasting: bool = True,
    hosted: bool = True,
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
    lasting
        Whether machine code stays, or goes with the last one who holds on to the kernel's entry.
    hosted
        Whether Numba compiles what is not in the language of ``native``; else ``Unsupported``.
    """
    from hashlib import sha256  # with OpenSSL, 3 ms that importing numgrad does not need

    functions = functions or {}
    identities = sorted((name, id(function)) for name, function in functions.items())
    options = f"{parallel=} {nogil=} externals={sorted(externals)} {identities=} {keep=} {lasting=}"
    key = sha256("\0".join((name, source, signature, options)).encode()).hexdigest()[:32]
    loaded = _loaded.get(key) or _passing.get(key)
    if loaded is not None:
        return loaded
    give_way()
    with KERNELS:
        loaded = _loaded.get(key) or _passing.get(key)
        if loaded is None:
            kernel = Kernel(name, source, signature, parallel, nogil, functions, lasting)
            _prepare(kernel, externals)
            loaded = _load_or_compile(kernel, tuple(externals), keep and not functions, hosted)
            (_loaded if lasting or loaded.numba_reason else _passing)[key] = loaded
    return loaded


def has_loaded() -> bool:
    """Whether a kernel has been compiled or loaded in this process."""
    return bool(_loaded or _passing)


def _prepare(kernel: Kernel, externals: Iterable[str]) -> None:
    """Make ready what a kernel needs around it."""
    memory.keep_freed_memory()
    if kernel.parallel:
        threads.prepare_pool()
    for symbol in externals:
        linker.link(symbol)


def _load_or_compile(
    kernel: Kernel, externals: tuple[str, ...], keep: bool, hosted: bool
) -> Kernel:
    if not kernel.numba_reason:
        try:
            return _native(kernel, externals, keep)
        except Unsupported as reason:
            if not hosted:
                raise
            kernel.numba_reason = str(reason)
    return _hosted(kernel, externals, keep)


_LONGEST_NAME = 80
"""Characters of a kernel's name in those of its files; Windows has 260 for a whole path."""


def _stem(kernel: Kernel, externals: tuple[str, ...], *stamps: str) -> str:
    """The name of a kernel's files: Note [Kernel cache]."""
    from hashlib import sha256

    from numgrad.codegen.cache import library_digest

    options = f"{kernel.parallel}{kernel.nogil}{externals}"
    with deferred():
        digest = library_digest(kernel.source)
    text = "\0".join((*stamps, digest, kernel.name, kernel.source, kernel.signature, options))
    key = sha256(text.encode()).hexdigest()[:24]
    # not all systems have jit_<lambda>, and names of files are limited
    name = re.sub(r"[^A-Za-z0-9_]", "_", kernel.name)[:_LONGEST_NAME]
    return f"{name}-{key}"


def _native(kernel: Kernel, externals: tuple[str, ...], keep: bool) -> Kernel:
    """Load a kernel's object, or compile its text straight to one."""
    with uncollected():  # with it comes llvmlite
        from numgrad.codegen.native.kernel import NativeCode, native_stamp

    code = NativeCode(kernel)
    stem = _stem(kernel, externals, native_stamp())
    kernel.entry, kernel.from_cache = load_or_compile(
        stem, code.load, lambda: _compiled(code, stem, keep), keep, kernel.source
    )
    kernel.code = code
    return kernel


def load_or_compile(
    stem: str,
    load: Callable[[bytes], _Loaded],
    compile: Callable[[], bytes],
    keep: bool = True,
    source: str = "",
) -> tuple[_Loaded, bool]:
    """Load what is kept of machine code, or compile and keep it: Note [Kernel cache].

    Returns what ``load`` does, and whether the code came from disk; ``source`` is kept beside it.
    """
    from numgrad.codegen import cache

    def kept() -> tuple[_Loaded, bool] | None:
        payload = cache.load(f"{stem}.bin") if keep else None
        if payload is None:
            return None
        try:
            return load(payload), True
        except Exception as error:  # an intact file this installation cannot link
            cache.discard(f"{stem}.bin")
            tell(f"cached kernel {stem} could not be loaded ({error}); compiling it again")
            return None

    with deferred():
        loaded = kept()
    if loaded is None:
        with cache.by_one_process(stem) if keep else nullcontext(), deferred():
            loaded = kept()  # another process may just have saved it
            if loaded is None:
                payload = compile()
                if keep:
                    if source:
                        cache.write(f"{stem}.py", source.encode())
                    cache.save(f"{stem}.bin", payload)
                loaded = load(payload), False
    return loaded


def _compiled(code: Any, stem: str, keep: bool) -> bytes:
    """A kernel's object; that it cannot be made is kept too, so that no process tries again."""
    from numgrad.codegen import cache

    refused = f"{stem}.common"
    reason = cache.load(refused) if keep else None
    if reason is not None:
        raise Unsupported(reason.decode())
    try:
        return code.compile(stem)
    except Unsupported as error:
        if keep:
            cache.save(refused, str(error).encode())
        raise


def _hosted(kernel: Kernel, externals: tuple[str, ...], keep: bool) -> Kernel:
    """Load what Numba compiled, or have it compile a kernel's text."""
    from numgrad.codegen import cache

    with deferred():
        stem = _stem(kernel, externals, hosted_stamp())
        result = load_hosted(stem, kernel.parallel) if keep else None
    from_cache = result is not None
    if result is None:
        with cache.by_one_process(stem) if keep else nullcontext(), deferred():
            result = (
                load_hosted(stem, kernel.parallel) if keep else None
            )  # another process may just have saved it
            from_cache = result is not None
            if result is None:
                source = kernel.source.encode()
                path = cache.write(f"{stem}.py", source) if keep or kernel.functions else None
                result = compile_hosted(kernel, stem.rpartition("-")[2], str(path or stem))
                if keep:
                    save_hosted(stem, result)
    kernel.entry, kernel.from_cache = result.entry_point, from_cache
    kernel.code = HostedCode(kernel, result, from_cache)
    return kernel
