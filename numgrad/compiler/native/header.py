"""The header of exported functions, for C99 and C++.

Note [Structures in headers]
----------------------------
A function whose arguments or results are nested is also there with a structure for each container,
as an inline function that calls the flat one: the ABI is that of pointers and numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numgrad
from numgrad.codegen.c_library import MESSAGES, CParameter, ExportedFunction, c_type
from numgrad.compiler.native.program import identifier

_WORKSPACE = """\
#ifndef NUMGRAD_WORKSPACE
#define NUMGRAD_WORKSPACE
/* Memory for calls of one thread at a time. What is beyond `size` is allocated; `needed` becomes
 * the most bytes that a call had in use, so a call with {NULL, 0, 0} tells the size. */
struct numgrad_workspace {
  void *memory;
  int64_t size;
  int64_t needed;
};
#endif
""".splitlines()


def header(stem: str, functions: Sequence[ExportedFunction], cpu: str) -> str:
    """The text of ``<stem>.h``."""
    guard = f"NUMGRAD_{stem.upper()}_H"
    lines = [
        f"/* Functions compiled by numgrad {numgrad.__version__} for {cpu}.",
        " *",
        " * They are reentrant, write where pointers that are not const say and nowhere else, and",
        " * return 0 or a status. Results overlap neither each other nor arguments. */",
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
    if any(a.role == "workspace" for f in functions for a in f.arguments):
        lines += _WORKSPACE
    for function in functions:
        lines += [*_comment(function), function.declaration, "", *_structured(function)]
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
            does = "overwrites" if port.name in function.overwritten else word
            lines.append(f" * {does} {port.name}: {path}, {port.dtype.name} {port.extents}")
    if function.workspace_size is not None:
        lines.append(f" * needs {function.workspace_size} bytes of workspace for the examples")
    if function.threads > 1:
        lines.append(
            f" * runs large loops in up to {function.threads} threads (link with -pthread)"
        )
    return [f"/* {function.name}", *lines, " */"]


def _structured(function: ExportedFunction) -> list[str]:
    """Structures and the function of them, if something is nested: Note [Structures in headers]."""
    groups = _groups(function)
    if all(alone for _, _, alone in groups):
        return []
    lines, parameters, passed, names = [], [], [], {function.name}
    for name, arguments, alone in groups:
        if alone:
            for a in arguments:
                own = CParameter(identifier(a.name, names), a.dtype, a.role, a.rank)
                parameters += own.declarations()
                passed += [_word(declaration) for declaration in own.declarations()]
            continue
        pointer = identifier(name, names)
        fields, used = [], set[str]()
        for argument in arguments:
            stem = argument.name.removeprefix(f"{name}_")
            stem = identifier(f"item_{stem}" if stem[0].isdigit() else stem, used)
            if argument.role == "result" and not argument.rank:
                several = "[2]" if argument.dtype.kind == "c" else ""
                fields.append(f"{c_type(argument.dtype)} {stem}{several};")
                passed.append(f"{pointer}->{stem}" if several else f"&{pointer}->{stem}")
                continue
            own = CParameter(stem, argument.dtype, argument.role, argument.rank)
            fields += [f"{declaration};" for declaration in own.declarations()]
            passed += [f"{pointer}->{_word(declaration)}" for declaration in own.declarations()]
        kind = identifier(f"{function.name}_{name}", names)
        lines += ["typedef struct {", *(f"  {field}" for field in fields), f"}} {kind};", ""]
        const = "" if arguments[0].role == "result" else "const "
        parameters.append(f"{const}{kind} *{pointer}")
    head = f"static inline int32_t {function.name}_nested({', '.join(parameters)}) {{"
    return [*lines, head, f"  return {function.name}({', '.join(passed)});", "}", ""]


def _groups(function: ExportedFunction) -> list[tuple[str, list[CParameter], bool]]:
    """Arguments by the parameter of Python that they belong to, and whether it is not nested."""
    owners: list[str] = []
    alone: dict[str, bool] = {}
    for name, nesting in function.about["parameters"].items():
        alone[name] = isinstance(nesting, str)
        owners += [name] * _count(nesting)
    inputs = iter(owners)
    members: dict[str, list[CParameter]] = {}
    results: list[CParameter] = []
    workspace = [argument for argument in function.arguments if argument.role == "workspace"]
    for argument in function.arguments:
        if argument.role == "result":
            results.append(argument)
        elif argument.role == "workspace":
            continue
        elif argument.role == "length":
            number, _ = function.about["lengths"][argument.name]
            members[owners[number]].append(argument)
        else:
            members.setdefault(next(inputs), []).append(argument)
    groups = [(name, arguments, alone[name]) for name, arguments in members.items()]
    nesting = function.about["results"]
    groups += [("result", results, "items" not in nesting)] if results else []
    return groups + ([("workspace", workspace, True)] if workspace else [])


def _count(nesting: Any) -> int:
    """The inputs in a nesting."""
    if isinstance(nesting, str):
        return int(nesting == "*")
    return sum(map(_count, nesting["items"]))


def _word(declaration: str) -> str:
    """The name that is declared."""
    return declaration.replace("*", " ").split()[-1]
