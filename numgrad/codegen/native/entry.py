"""How Python and other machine code call a kernel whose body is LLVM IR.

Note [Native entries]
---------------------
``@packed`` takes a kernel's arguments from slots of eight bytes, as the entry for Python puts them
there: Note [Entries] in ``cpython.kernel_entry``.

``@numba_entry`` is for other machine code, and has Numba's calling convention. Only kernels without
arrays have one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.cpython import kernel_entry, offsets
from numgrad.codegen.native import machine
from numgrad.codegen.native.signature import Signature, in_slot, llvm_type, narrow, parse


def with_entries(body: str, signature: Signature | str) -> str:
    """The LLVM IR of a kernel with that of its entries."""
    signature = parse(signature) if isinstance(signature, str) else signature
    entries = "" if "define i32 @packed(" in body else _packed(signature)
    if signature.scalar:
        entries += _numba_entry(signature)
    return f"{body}\n{entries}"


def _packed(signature: Signature) -> str:
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
    lines.append(f"  %failed = call i32 @body({', '.join(given)}) noinline")
    if signature.result is not None:
        lines += _result(signature.result, len(given) - 1)
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


def _numba_entry(signature: Signature) -> str:
    """A call by Numba's convention: places for the result and for an exception, then arguments."""
    kinds = [kind for kind, _, role in signature.parameters() if role != "result"]
    given = [f"{kind} %a{number}" for number, kind in enumerate(kinds)]
    parameters = ["ptr %result", "ptr %error", *given]
    if signature.result is not None:
        given.append("ptr %result")
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


def assemble(
    body: str,
    signature: Signature | str,
    unique: str,
    *,
    speed: int = 1,
    effort: int = 2,
    unroll: bool = False,
    verify: bool = False,
) -> bytes:
    """Compile a body with its entries: see ``machine.compile_ir``."""
    text = with_entries(body, signature)
    return machine.compile_ir(
        text, unique, speed=speed, effort=effort, unroll=unroll, verify=verify
    )


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
