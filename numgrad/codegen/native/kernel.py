"""A kernel on the way from its text to a Python function."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from numgrad.codegen.cpython import kernel_entry
from numgrad.codegen.native import entry, machine
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.signature import parse
from numgrad.errors import NumgradIndexError, NumgradTypeError

CHECK_BOUNDS = os.environ.get("NUMGRAD_BOUNDSCHECK", "0") not in ("", "0")
"""Whether kernels check indices: Note [Bounds] in ``memory``."""


class NativeCode:
    """A kernel's code: text in LLVM's language and the object made of it."""

    def __init__(self, kernel: Any) -> None:
        if kernel.functions:
            raise Unsupported("it calls functions that others have compiled")
        self.kernel = kernel
        try:
            self.signature = parse(kernel.signature)
        except NumgradTypeError as error:
            raise Unsupported(str(error)) from error
        self._address: int | None = None

    def translated(self) -> str:
        """The kernel in LLVM's language, with its entries, before optimisation."""
        # thirty modules, which a kernel that comes from disk does without
        from numgrad.codegen.native.translation import translate

        kernel = self.kernel
        try:
            body = translate(
                kernel.source,
                self.signature,
                parallel=kernel.parallel,
                check_bounds=CHECK_BOUNDS,
            )
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
            # such as an operator that an array has and a number has not
            raise Unsupported(f"{type(error).__name__}: {error}") from error
        return entry.with_entries(body, self.signature)

    def compile(self, unique: str) -> bytes:
        """Make the object."""
        text = self.translated()
        kernel_entry.prepare()
        try:
            return machine.compile_ir(text, unique.replace("-", "_"))
        except RuntimeError as error:
            raise Unsupported(f"LLVM does not take its code: {error}") from error

    def load(self, payload: bytes) -> Callable[..., Any]:
        """The Python function of an object."""
        kernel = self.kernel
        if CHECK_BOUNDS:
            _link_report()
        bound = entry.bind(
            payload, kernel.name, self.signature, nogil=kernel.nogil or kernel.parallel,
            lasting=kernel.lasting,
        )  # fmt: skip
        self._address = bound.address
        return _reporting(kernel.name, bound.entry) if CHECK_BOUNDS else bound.entry

    @property
    def address(self) -> int:
        """Where the function is that other machine code calls, by Numba's calling convention."""
        assert self._address is not None
        return self._address

    def llvm(self) -> str:
        """LLVM IR after optimisation."""
        return machine.optimised(self.translated(), "inspected")

    def asm(self) -> str:
        """Assembly for this CPU."""
        return machine.assembly(self.translated(), "inspected")


@cache
def _own_digest() -> str:
    """Hash of the files of this compiler."""
    digest, folder = hashlib.sha256(), os.path.dirname(__file__)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def native_stamp() -> str:
    """Identify this compiler and the machine, which besides a source decide on machine code."""
    return f"{_own_digest()} {machine.stamp()}{' bounds' if CHECK_BOUNDS else ''}"


# --------------------------------------------------------------- Note [Bounds] in ``memory``

_report = (ctypes.c_int64 * 4)()


@cache
def _link_report() -> None:
    """Make the memory of reports known to the linker."""
    from llvmlite import binding

    from numgrad.codegen.native.memory import REPORT

    binding.add_symbol(REPORT, ctypes.addressof(_report))


def _reporting(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel's entry that raises what the kernel reports."""

    def entry(*arguments: Any) -> Any:
        _report[0] = 0
        try:
            return run(*arguments)
        except MemoryError:
            statement, axis, index, length = _report
            if not statement:
                raise
            text = ctypes.string_at(statement).decode()
            raise NumgradIndexError(
                f"kernel {name}: index {index} is out of range for axis {axis} with {length} "
                f"elements, in {text}"
            ) from None

    return entry
