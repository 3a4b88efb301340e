"""How Python and other machine code call a kernel whose body is LLVM IR.

Note [Entries]
--------------
All kernels have the same entry: a function of CPython's (``METH_FASTCALL``) in machine code,
compiled once and kept on disk. The description of its kernel is its ``self``. It reads the fields
of arrays where NumPy's public structure has them, and puts them into slots of eight bytes;
``@packed`` of the kernel takes these, and gives them to the body where that has other callers or a
result. What is not plain, such as a subclass of
``numpy.ndarray``, an array of another rank or a float for an integer, it leaves to the slow entry,
written in Python, which converts it or says what is wrong. The slow entry serves alone where the
structures lie differently than the fast one expects; that is checked once.

Dtypes of the same size are not told apart: callers pass those of the signature.

``@numba_entry`` is for other machine code, and has Numba's calling convention. Only kernels without
arrays have one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.native import fast_entry, layout, machine
from numgrad.codegen.native.signature import Signature, in_slot, llvm_type, narrow, parse
from numgrad.codegen.native.slow_entry import SlowEntry


def with_entries(body: str, signature: Signature | str) -> str:
    """The LLVM IR of a kernel with that of its entries."""
    signature = parse(signature) if isinstance(signature, str) else signature
    entries = "" if "define i32 @packed(" in body else _packed(signature)
    if signature.scalar:
        entries += _numba_entry(signature)
    return f"{body}\n{entries}"


def _packed(signature: Signature) -> str:
    """A call of the body with arguments that lie in slots: Note [Entries]."""
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
    found = machine.load(payload, engine)
    entry: Callable[..., Any] = SlowEntry(name, signature, found["packed"], nogil, engine)
    if layout.is_readable():
        entry = fast_entry.python_function(name, signature, found["packed"], entry, nogil)
    return Bound(entry, found.get("numba_entry"))
