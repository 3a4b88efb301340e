"""A kernel's text in LLVM's language: where the parts that read and write it come together."""

from __future__ import annotations

from numgrad.codegen.intrinsics import HAS_FMA
from numgrad.codegen.native import machine
from numgrad.codegen.native.function import write_body
from numgrad.codegen.native.ir import ModuleText
from numgrad.codegen.native.loops import write_loop
from numgrad.codegen.native.signature import Signature
from numgrad.codegen.native.source import KernelText

LONG, VERY_LONG = 60_000, 100_000
"""Characters of a text from which on functions are called and not written in place, and from which
on LLVM is to take less time."""


def translate(
    source: str,
    signature: Signature,
    *,
    has_fma: bool = HAS_FMA,
    parallel: bool = False,
    check_bounds: bool = False,
) -> str:
    """The module of a kernel whose text defines ``kernel``: its body is ``@body``."""
    module = ModuleText(
        long=len(source) > LONG,
        very_long=len(source) > VERY_LONG,
        least_masked=machine.least_masked(),
        wide=machine.vector_bits() == 512,
        check_bounds=check_bounds,
        large_pages=machine.has_large_pages(),
    )
    kernel = KernelText(source).functions["kernel"]
    write_body(module, kernel, signature, write_loop, has_fma=has_fma, parallel=parallel)
    return module.text()
