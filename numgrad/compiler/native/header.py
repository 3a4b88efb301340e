"""The header of exported functions, for C99 and C++."""

from __future__ import annotations

from collections.abc import Sequence

import numgrad
from numgrad.codegen.c_library import MESSAGES, ExportedFunction


def header(stem: str, functions: Sequence[ExportedFunction], cpu: str) -> str:
    """The text of ``<stem>.h``."""
    guard = f"NUMGRAD_{stem.upper()}_H"
    lines = [
        f"/* Functions compiled by numgrad {numgrad.__version__} for the CPU {cpu}.",
        " *",
        " * They are reentrant, write where pointers to results say and nowhere else, and return",
        " * 0 or a status. Results overlap neither each other nor arguments. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
    ]
    for function in functions:
        lines += [*_comment(function), function.declaration, ""]
    lines += [
        "/* The message of a status. */",
        f"static inline const char *{stem}_message(int32_t status) {{",
        "  switch (status) {",
        '    case 0: return "";',
        *(f'    case {status}: return "{text}";' for status, text in MESSAGES.items()),
        "  }",
        '  return "unknown status";',
        "}",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def _comment(function: ExportedFunction) -> list[str]:
    """Lines that say what arguments are."""
    lines = []
    for word, ports in (("takes", function.inputs), ("gives", function.outputs)):
        for port in ports:
            path = port.path.replace("*/", "* /")
            lines.append(f" * {word} {port.name}: {path}, {port.dtype.name} {port.extents}")
    return [f"/* {function.name}", *lines, " */"]
