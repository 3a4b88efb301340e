"""Long functions of nests in parts, functions of their own that are called for each block of lanes.

Note [Parts of nests]
---------------------
A nest of hundreds of statements, as of the gradient of an unrolled recursion over a tree, is a
function of which LLVM's allocation of registers takes the square of its length or longer. Its
blocks of lanes do much work between any two of its loops, so these are called in groups (function
outlining): what a group reads of what was assigned before are its parameters, what later ones read
of what it assigns are its results. So whole programs stay one nest, whose values between loops are
in a cache, at a time of compilation that grows as their length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

PART = 1000
"""Lines of a part."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"^ +(\w+(?:, \w+)*) = ")
_BLOCKS = "    for base in range("
_INSIDE = " " * 8


def in_parts(lines: Sequence[str], name: str) -> list[str]:
    """The function of a nest in blocks of lanes, after those of its parts if it is long.

    ``lines`` are decorator, head and body of the function.
    """
    start = next((k + 2 for k, line in enumerate(lines) if line.startswith(_BLOCKS)), len(lines))
    end = start  # after the width of a block
    while end < len(lines) and lines[end].startswith(_INSIDE):
        end += 1
    if end - start <= PART:
        return list(lines)
    groups: list[list[str]] = [[]]
    for line in lines[start:end]:
        if len(groups[-1]) >= PART and not line.startswith(_INSIDE + " "):
            groups.append([])
        groups[-1].append(line)
    before = {"base", *_NAME.findall(lines[1])}.union(*map(_assigned, lines[2:start]))
    reads = [_names(group) for group in groups] + [_names(lines[end:])]
    functions: list[str] = []
    calls: list[str] = []
    for k, group in enumerate(groups):
        known = sorted(before & reads[k])
        assigned = set[str]().union(*map(_assigned, group))
        outer = set[str]().union(*(_assigned(x) for x in group if not x.startswith(_INSIDE + " ")))
        made = (assigned & before) | outer
        results = ", ".join(sorted(made & set[str]().union(*reads[k + 1 :])))
        head = f"{name}_part_{k}({', '.join(known)})"
        functions += [lines[0], f"def {head}:", lines[2], *(line[4:] for line in group)]
        functions += [f"    return {results}", "", ""] if results else ["", ""]
        calls.append(f"{_INSIDE}{results} = {head}" if results else f"{_INSIDE}{head}")
        before |= outer
    return [*functions, *lines[:start], *calls, *lines[end:]]


def _names(lines: Sequence[str]) -> set[str]:
    return {name for line in lines for name in _NAME.findall(line)}


def _assigned(line: str) -> set[str]:
    """The names that a line assigns."""
    match = _ASSIGNED.match(line)
    return set(match[1].split(", ")) if match else set()
