"""A kernel on the way from its text to a Python function: LLVM IR, its entries, machine code.

Note [Native entries]
---------------------
``@packed`` takes a kernel's arguments from slots of eight bytes, as the entry for Python puts them
there: Note [Entries] in ``cpython.kernel_entry``.

``@numba_entry`` is for other machine code, and has Numba's calling convention. Only kernels without
arrays have one.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.cpython import kernel_entry, offsets
from numgrad.codegen.native import machine
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.signature import Signature, in_slot, llvm_type, narrow, parse
from numgrad.codegen.native.workspace import CONTEXT_OF_SLOTS
from numgrad.errors import NumgradIndexError, NumgradTypeError


def with_entries(body: str, signature: Signature | str, workspace: bool = False) -> str:
    """The LLVM IR of a kernel with that of its entries."""
    signature = parse(signature) if isinstance(signature, str) else signature
    entries = "" if "define i32 @packed(" in body else _packed(signature, workspace)
    if signature.scalar:
        entries += _numba_entry(signature, workspace)
    return f"{body}\n{entries}"


def _packed(signature: Signature, workspace: bool) -> str:
    """A call of the body with arguments that lie in slots: Note [Native entries]."""
    lines, given = ["define i32 @packed(ptr %slots) #0 {"], []
    for k, (kind, _, role) in enumerate(signature.parameters()):
        if role == "result":
            given.append(f"ptr %s{k}")
            continue
        wide = in_slot(kind)
        lines += [
            f"  %p{k} = getelementptr inbounds i64, ptr %slots, i64 {k}",
            f"  %w{k} = load {wide}, ptr %p{k}",
        ]
        if kind != wide:
            lines.append(f"  %n{k} = {narrow(wide)} {wide} %w{k} to {kind}")
        given.append(f"{kind} %{'w' if kind == wide else 'n'}{k}")
    if signature.result is not None:
        lines.append(f"  %s{len(given) - 1} = alloca [2 x i64], align 16")
    if workspace:
        lines.append(CONTEXT_OF_SLOTS)
        given.append("ptr %workspace")
    lines.append(f"  %failed = call i32 @body({', '.join(given)}) noinline")
    if signature.result is not None:
        lines += _result(signature.result, len(given) - 1 - workspace)
    return "\n".join([*lines, "  ret i32 %failed", "}\n"])


def _result(dtype: np.dtype, slot: int) -> list[str]:
    """Put the result into its slot, a complex number into two."""
    kind = llvm_type(dtype)
    wide = "double" if dtype.kind in "fc" else "i64"
    extend = "fpext" if dtype.kind in "fc" else "sext" if dtype.kind == "i" else "zext"
    lines = []
    for half in range(2 if dtype.kind == "c" else 1):
        lines += [
            f"  %rp{half} = getelementptr inbounds {kind}, ptr %s{slot}, i64 {half}",
            f"  %rn{half} = load {kind}, ptr %rp{half}",
            f"  %rs{half} = getelementptr inbounds i64, ptr %slots, i64 {slot + half}",
        ]
        if kind != wide:
            lines.append(f"  %rw{half} = {extend} {kind} %rn{half} to {wide}")
        name = "rn" if kind == wide else "rw"
        lines.append(f"  store {wide} %{name}{half}, ptr %rs{half}")
    return lines


def _numba_entry(signature: Signature, workspace: bool) -> str:
    """A call by Numba's convention: places for the result and for an exception, then arguments.

    With a workspace its context is in place of an exception: Note [Workspaces] in ``workspace``.
    """
    kinds = [kind for kind, _, role in signature.parameters() if role != "result"]
    given = [f"{kind} %a{number}" for number, kind in enumerate(kinds)]
    parameters = ["ptr %result", "ptr %error", *given]
    if signature.result is not None:
        given.append("ptr %result")
    if workspace:
        given.append("ptr %error")
    return "\n".join(
        [
            f"define i32 @numba_entry({', '.join(parameters)}) #0 {{",
            f"  %failed = call i32 @body({', '.join(given)}) noinline",
            "  ret i32 %failed",
            "}\n",
        ]
    )


class Bound(NamedTuple):
    """A kernel that is ready: the callable, and where its entry for other machine code is."""

    entry: Callable[..., Any]
    address: int | None


def assemble(body: str, signature: Signature | str, unique: str, *, verify: bool = False) -> bytes:
    """Compile a body with its entries: see ``machine.compile_ir``."""
    return machine.compile_ir(with_entries(body, signature), unique, verify=verify)


def bind(
    payload: bytes,
    name: str,
    signature: Signature | str,
    *,
    nogil: bool = False,
    lasting: bool = True,
) -> Bound:
    """Load what ``assemble`` returned, given the same signature and options.

    Unless it is ``lasting``, the callable owns the machine code.
    """
    signature = parse(signature) if isinstance(signature, str) else signature
    engine = None if lasting else machine.new_engine()
    addresses = machine.load(payload, engine)
    packed = addresses["packed"]
    entry: Callable[..., Any] = kernel_entry.SlowEntry(name, signature, packed, nogil, engine)
    if offsets.is_readable():
        entry = kernel_entry.python_function(name, signature, packed, entry, nogil)
    return Bound(entry, addresses.get("numba_entry"))


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

    def translated(self, workspace: bool = False) -> str:
        """The kernel in LLVM's language, with its entries, before optimisation."""
        # thirty modules, which a kernel that comes from disk does without
        from numgrad.codegen.native.translation import translate

        kernel = self.kernel
        try:
            body = translate(
                kernel.source, self.signature, parallel=kernel.parallel,
                check_bounds=CHECK_BOUNDS, workspace=workspace,
            )  # fmt: skip
        except (AttributeError, TypeError, ValueError, KeyError, IndexError) as error:
            # such as an operator that an array has and a number has not
            raise Unsupported(f"{type(error).__name__}: {error}") from error
        return with_entries(body, self.signature, workspace)

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
        bound = bind(
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
