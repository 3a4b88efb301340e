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
is recompiled and replaced.

On a hit neither the generated source nor the kernel library is imported, and Numba's registries are
never filled (0.3 s): machine code is linked and its entry point called directly. The entry point
unboxes its arguments by position without a dispatcher's type look-up (0.12 us against 0.20 us for
three arrays), so callers must pass exactly the dtypes, ranks and layouts of the signature. A
contiguous array may be passed where the signature says ``A``.
"""

import hashlib
import os
import pickle
import platform
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numgrad.kernels import linker, memory, threads
from numgrad.kernels.device import kernel_dispatcher
from numgrad.kernels.sources import library_digest

# One kernel is compiled or loaded at a time: Numba holds a global lock of its own anyway.
_lock = threading.RLock()
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
    functions = functions or {}
    identities = sorted((name, id(function)) for name, function in functions.items())
    options = f"{parallel=} {nogil=} externals={sorted(externals)} {identities=} {keep=}"
    key = hashlib.sha256("\0".join((name, source, signature, options)).encode()).hexdigest()[:32]
    found = _loaded.get(key)
    if found is not None:
        return found
    with _lock:
        found = _loaded.get(key)
        if found is None:
            found = _load_or_compile(
                name, source, signature, parallel, nogil, tuple(externals), functions, keep
            )
            _loaded[key] = found
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
    keep = keep and not functions
    memory.keep_freed_memory()
    if parallel:
        threads.prepare_pool()
    options = f"{parallel}{nogil}{externals}"
    text = "\0".join((_stamp(), library_digest(source), name, source, signature, options))
    key = hashlib.sha256(text.encode()).hexdigest()[:24]
    stem = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}-{key}"  # not all systems have files jit_<lambda>
    for symbol in externals:
        linker.link(symbol)
    result = _load(stem) if keep else None
    if from_cache := result is not None:
        entry = result.entry_point
    else:
        path = _write(f"{stem}.py", source.encode()) if keep or functions else None
        unique = f"{name}_{key}"
        dispatcher = kernel_dispatcher(
            source, str(path or stem), unique, parallel, nogil, functions
        )
        entry = dispatcher.compile(signature)
        (result,) = dispatcher.overloads.values()
        if keep:
            _save(stem, result)
    return Kernel(name, source, signature, parallel, nogil, functions, entry, from_cache, result)


def _library(kernel: Kernel) -> Any:
    """Numba's code library of a kernel; that of one from disk holds machine code only."""
    if not kernel.from_cache:
        return kernel.compile_result.library
    with _lock:
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


# ---------------------------------------------------------------------------------- the files


def _cache_roots() -> list[Path]:
    """Directories to read from, best first; the first writable one is written to."""
    chosen = os.environ.get("NUMGRAD_CACHE_DIR")
    if chosen:
        return [Path(chosen).expanduser()]
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return [Path(base).expanduser() / "numgrad"]


_temporary: Path | None = None


def _temporary_root() -> Path:
    """A private directory for this process, removed at exit."""
    global _temporary
    if _temporary is None:
        import atexit
        import shutil

        _temporary = Path(tempfile.mkdtemp(prefix="numgrad-"))
        atexit.register(_remove_temporary, os.getpid(), shutil.rmtree, _temporary)
    return _temporary


def _remove_temporary(owner: int, remove: Callable, path: Path) -> None:
    if os.getpid() == owner:  # a forked child must not take the directory from its parent
        remove(path, ignore_errors=True)


def _write(filename: str, content: bytes) -> Path | None:
    """Put a file into the cache in one step; where that is not possible, into a temporary one."""
    for root in (*_cache_roots(), None):
        try:
            directory = root if root is not None else _temporary_root()
            directory.mkdir(parents=True, exist_ok=True)
            handle, partial = tempfile.mkstemp(dir=directory, prefix=".partial-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.replace(partial, directory / filename)
            except BaseException:
                os.unlink(partial)
                raise
            return directory / filename
        except OSError:
            continue  # not writable or full: the next directory; without any, nothing is kept
    return None


_DIGEST = hashlib.sha256().digest_size


def _load(stem: str) -> Any:
    """The compile result of an intact cache entry, else None."""
    roots = [*_cache_roots(), *([_temporary] if _temporary else [])]
    for root in roots:
        try:
            content = (root / f"{stem}.bin").read_bytes()
        except OSError:
            continue
        digest, payload = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(payload).digest() != digest:
            continue
        from numba.core import compiler
        from numba.core.registry import cpu_target
        from numba.core.runtime.nrt import rtsys

        context = cpu_target.target_context
        rtsys.initialize(context)
        try:
            return compiler.CompileResult._rebuild(context, *pickle.loads(payload))
        except Exception as error:  # an intact file this installation cannot link: compile anew
            warnings.warn(
                f"numgrad: cached kernel {stem} could not be loaded ({error}); compiling it again",
                RuntimeWarning,
                stacklevel=2,
            )
    return None


def _save(stem: str, result: Any) -> None:
    from numba.core.serialize import dumps

    if result.library.has_dynamic_globals:
        return  # holds an address of this process
    payload = dumps(result._reduce())
    _write(f"{stem}.bin", hashlib.sha256(payload).digest() + payload)


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


def cache_info() -> dict[str, Any]:
    """Where compiled kernels are kept: ``path``, ``writable``, ``entries`` and ``bytes``."""
    root = _cache_roots()[0]
    files = list(root.glob("*-*.bin")) if root.is_dir() else []
    nearest = next((p for p in (root, *root.parents) if p.exists()), root)
    return {
        "path": str(root),
        "writable": os.access(nearest, os.W_OK),
        "entries": len(files),
        "bytes": sum(_size(file) for file in files),
    }


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # another process cleared it
        return 0


def clear_cache() -> int:
    """Delete every compiled kernel on disk, return how many; kernels in use go on working."""
    count = 0
    root = _cache_roots()[0]
    for pattern in ("*-*.py", "*-*.bin", ".partial-*"):
        for path in root.glob(pattern) if root.is_dir() else ():
            path.unlink(missing_ok=True)
            count += pattern == "*-*.bin"
    return count
