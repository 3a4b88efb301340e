"""What code mentions: globals, attributes, strings, and the modules that it imports."""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import resolve_name
from types import CodeType, FunctionType

from numgrad.compiler.call.reads import all_codes

WORD = re.compile(r"[^\W\d]\w*")
_IMPORTERS = {"import_module", "__import__", "modules"}
"""What else gives a module for a name."""


@lru_cache(maxsize=4096)
def names_in(code: CodeType) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The globals and attributes that code, and functions defined in it, look up, and its strings.

    Strings may be names, for ``getattr(self, "weight")``.
    """
    names: set[str] = set()
    attributes: set[str] = set()
    texts: set[str] = set()
    evaluates = "eval" in code.co_names or "exec" in code.co_names
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"):
            attributes.add(instruction.argval)
        elif instruction.opname == "LOAD_CONST" and type(instruction.argval) is str:
            texts.add(instruction.argval)
            if evaluates:
                texts.update(WORD.findall(instruction.argval))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = names_in(constant)
            names |= inner[0]
            attributes |= inner[1]
            texts |= inner[2]
    return frozenset(names), frozenset(attributes), frozenset(texts)


@lru_cache(maxsize=4096)
def asked_in(code: CodeType) -> frozenset[str]:
    """The attributes of which code may ask whether they are there."""
    names, attributes, texts = names_in(code)
    found: set[str] = set()
    if not names.isdisjoint(("getattr", "hasattr", "vars")):
        found.update(filter(str.isidentifier, texts))
    if "AttributeError" in names:
        found |= attributes
    return frozenset(found)


@lru_cache(maxsize=4096)
def asks_for_kinds(code: CodeType) -> bool:
    """Whether code may ask of what class an object is."""
    return not {"isinstance", "__class__"}.isdisjoint(code.co_names) or any(
        step.opname == "MATCH_CLASS" for step in dis.get_instructions(code)
    )


def modules_in(function: FunctionType, known: set[str]) -> Iterator[str]:
    """The full names of modules that a function, and those defined in it, import when they run.

    They may do so by name, which is then a string of the code or among those that are ``known``.
    """
    package = function.__globals__.get("__package__") or ""
    imports, texts, by_name = _imports(function.__code__)
    for name, level in imports:
        try:
            yield resolve_name("." * level + name, package) if level else name
        except ImportError:  # beyond the package: the import says so
            continue
    if by_name:
        yield from sorted((texts | known) & sys.modules.keys())


@lru_cache(maxsize=4096)
def _imports(code: CodeType) -> tuple[list[tuple[str, int]], set[str], bool]:
    """Name and level of each import; strings; whether one of these may be imported by name."""
    found: dict[tuple[str, int], None] = {}
    texts: set[str] = set()
    by_name = False
    for part in all_codes(code):
        steps = list(dis.get_instructions(part))
        for number, step in enumerate(steps):
            if step.opname == "IMPORT_NAME":
                level = steps[number - 2].argval
                found[step.argval, level] = None
                if not level:  # "import a.b" binds a
                    found[step.argval.partition(".")[0], 0] = None
        texts.update(text for text in part.co_consts if type(text) is str)
        by_name = by_name or not _IMPORTERS.isdisjoint(part.co_names)
    return list(found), texts, by_name
