"""The syntax of a kernel's text: of lines that are alike, one is parsed.

Note [Lines alike]
------------------
Generated text is long because it repeats itself: but for its names and for places in memory, a
line such as ``v7 = float64(e3 * v1)`` stands there a thousand times. The *form* of a line is what
is left without these. Python parses one line of each form, and what stands between lines of known
forms; the syntax of all other lines is put together like that of the first. Translation too looks
at the form of a line first: ``repetition``. In a short text forms are rarely met again, and the
first line of each takes ten times as long: Python parses it as a whole, which takes a tenth off the
translation of the kernels of most operations (7 operations in fresh processes, 0.85 to 0.99) and
2 % off their first calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from numgrad.codegen.native.syntax import used_names

_LINE = re.compile(r"(?: {4})+((?:acc|[a-z])\d+ = |store\()")
_PART = re.compile(r"((?<![\w.])(?:(?:acc|[a-z])\d+|s_\w+|(?:0|[1-9]\d*)(?![\w.]))\b)")
_STAND_IN = "_line_"
SHORT = 250
"""Lines up to which a text is parsed as a whole."""


class Form(NamedTuple):
    """The text that lines have in common, and the parts in which one differs from others.

    Attributes
    ----------
    names
        The names in all lines, by themselves or as the place of a part, and which are assigned to.
    """

    texts: tuple[str, ...]
    parts: tuple[str, ...]
    names: tuple[tuple[str | int, bool], ...]


def parse(text: str) -> list[ast.stmt]:
    """The syntax of a text, as ``ast.parse`` finds it; lines have no positions, but functions do.

    The attribute ``form`` of a statement is the ``Form`` of its line, if it was read by that, as in
    texts that are not ``SHORT``.
    """
    lines = text.split("\n")
    if len(lines) <= SHORT:
        return ast.parse(text).body
    runs: list[list[ast.stmt]] = []
    around = 0  # the margin of the run that the line before belongs to
    for number, line in enumerate(lines):
        match = _LINE.match(line)
        statement = _statement(line, match.start(1)) if match else None
        if match is None or statement is None:
            around = 0
            continue
        margin = match.start(1)
        if margin == around:
            runs[-1].append(statement)
            lines[number] = ""
        else:
            lines[number] = f"{' ' * margin}{_STAND_IN}{len(runs)}"
            runs.append([statement])
        around = margin
    body = ast.parse("\n".join(lines)).body
    placed = sum([_put_back(node, runs) for node in body if isinstance(node, ast.FunctionDef)])
    # what looks like a line may be a part of something longer, such as of a list of arguments
    return body if placed == len(runs) else ast.parse(text).body


def _put_back(node: Any, runs: Sequence[list[ast.stmt]]) -> int:
    """Put runs of lines where others stand for them; how many those were."""
    placed = 0
    for field in ("body", "orelse"):
        statements: list[ast.stmt] | None = getattr(node, field, None)
        if not statements:
            continue
        body: list[ast.stmt] = []
        for each in statements:
            if _stands_in(each):
                body += runs[int(each.value.id.removeprefix(_STAND_IN))]  # pyright: ignore
                placed += 1
                continue
            if isinstance(each, ast.For | ast.If | ast.While):
                placed += _put_back(each, runs)
            body.append(each)
        setattr(node, field, body)
    return placed


def _stands_in(node: ast.stmt) -> bool:
    """Whether a statement stands for lines."""
    name = node.value if isinstance(node, ast.Expr) else None
    return isinstance(name, ast.Name) and name.id.startswith(_STAND_IN)


def _statement(line: str, margin: int) -> ast.stmt | None:
    """The syntax of a line, made by that of its form; None if the form is not a simple one."""
    pieces = _PART.split(line[margin:])
    texts, parts = tuple(pieces[::2]), tuple(pieces[1::2])
    known = _maker(texts, tuple([text.isdigit() for text in parts]))
    if known is None:
        return None
    make, names = known
    statement = make(parts)
    statement.form = Form(texts, parts, names)
    return statement


@lru_cache(10_000)
def _maker(
    texts: tuple[str, ...], numbers: tuple[bool, ...]
) -> tuple[Callable[..., Any], Any] | None:
    """A function of the parts of a line that makes its syntax, and the names of its form."""
    stand_ins = [f"_part_{k}" for k in range(len(numbers))]
    text = "".join([a + b for a, b in zip(texts, [*stand_ins, ""], strict=True)])
    try:
        (tree,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    if isinstance(tree, ast.Assign):
        if len(tree.targets) > 1 or not isinstance(tree.targets[0], ast.Name):
            return None
    elif not isinstance(tree, ast.Expr):
        return None
    names: dict[str, Any] = {"int": int}
    source = _made(tree, numbers, names)
    if source is None:
        return None
    places = {name: k for k, name in enumerate(stand_ins)}
    uses = [(places.get(n.id, n.id), isinstance(n.ctx, ast.Store)) for n in used_names(tree)]
    kept = [use for use in uses if not (isinstance(use[0], int) and numbers[use[0]])]
    return eval(f"lambda parts: {source}", names), tuple(kept)


def _made(node: Any, numbers: tuple[bool, ...], names: dict[str, Any]) -> str | None:
    """An expression that makes a piece of syntax; None if it has no part in which lines differ."""
    if isinstance(node, list):
        copies = [_made(each, numbers, names) for each in node]
        texts = [_known(n, names) if f is None else f for n, f in zip(node, copies, strict=True)]
        return None if copies == [None] * len(node) else f"[{', '.join(texts)}]"
    if not isinstance(node, ast.AST):
        return None
    kind = _known(type(node), names)
    if isinstance(node, ast.Name) and node.id.startswith("_part_"):
        position = int(node.id.removeprefix("_part_"))
        if numbers[position]:
            return f"{_known(ast.Constant, names)}(int(parts[{position}]), None)"
        return f"{kind}(parts[{position}], {_known(node.ctx, names)})"
    fields = [getattr(node, field, None) for field in node._fields]
    made = [_made(each, numbers, names) for each in fields]
    if made == [None] * len(fields):
        return None
    texts = [_known(n, names) if f is None else f for n, f in zip(fields, made, strict=True)]
    return f"{kind}({', '.join(texts)})"


def _known(value: Any, names: dict[str, Any]) -> str:
    """A name for a value that all lines of a form share."""
    name = f"k{len(names)}"
    names[name] = value
    return name
