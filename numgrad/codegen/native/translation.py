"""The text of a kernel becomes a module of LLVM IR."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.native import machine
from numgrad.codegen.native.function import write_body
from numgrad.codegen.native.ir import ModuleText
from numgrad.codegen.native.loops import write_loop
from numgrad.codegen.native.signature import Signature
from numgrad.codegen.native.source import KernelText

LONG, VERY_LONG = 60_000, 100_000
"""Characters of a text from which on functions are called and not written in place, and from which
on LLVM is to take less time."""


def translate(source: str, signature: Signature, **options: Any) -> str:
    """The text of the module of a kernel whose text defines ``kernel``: ``@body`` is its body."""
    return translated_module(source, signature, **options).text()


def translated_module(
    source: str,
    signature: Signature,
    *,
    has_fma: bool | None = None,
    parallel: bool = False,
    check_bounds: bool = False,
    workspace: bool = False,
) -> ModuleText:
    """The module of a kernel whose text defines ``kernel``: its body is ``@body``."""
    module = ModuleText(
        long=len(source) > LONG,
        very_long=len(source) > VERY_LONG,
        least_masked=machine.least_masked(),
        wide=machine.vector_bits() == 512,
        check_bounds=check_bounds,
        workspace=workspace,
    )
    kernel = KernelText(source).functions["kernel"]
    has_fma = machine.has_fma() if has_fma is None else has_fma
    write_body(module, kernel, signature, write_loop, has_fma=has_fma, parallel=parallel)
    return module
