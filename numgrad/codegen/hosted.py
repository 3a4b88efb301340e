"""Kernels that Numba compiles: those whose text is not in the language of ``native``."""

from __future__ import annotations

import pickle
import sys
from typing import Any

from numgrad.codegen.device import kernel_dispatcher
from numgrad.codegen.interrupts import deferred
from numgrad.errors import warn


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
        kernel.source,
        path,
        f"{kernel.name}_{key}",
        kernel.parallel,
        kernel.nogil,
        kernel.functions,
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
    """Everything besides its source and the kernel library that decides its machine code."""
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
        _stamp_text = " ".join(str(part) for part in parts)
    return _stamp_text
