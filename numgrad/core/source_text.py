"""What a function computes, as text: gradient formulas in the documentation of operations."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType
from typing import Any


def expression(function: Any) -> str:
    """What a function computes, as text on one line if it is one expression."""
    node = _node(function.__code__)
    if node is None:
        return f"<source of {function.__name__} is not available>"
    if isinstance(node, ast.Lambda):
        return ast.unparse(node.body)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        return ast.unparse(body[0].value)
    return "\n".join(ast.unparse(statement) for statement in body)


def _node(code: CodeType) -> ast.Lambda | ast.FunctionDef | None:
    """The syntax tree of a function, found by the line and by its parameters."""
    count = code.co_argcount + code.co_kwonlyargcount
    found = [
        node
        for node in _functions(code.co_filename).get(code.co_firstlineno, [])
        if [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
        == list(code.co_varnames[:count])
        and (isinstance(node, ast.Lambda) == (code.co_name == "<lambda>"))
    ]
    if len(found) > 1:  # lambdas side by side on a line
        found = [node for node in found if _spans(node, code)]
    return found[0] if found else None


def _spans(node: Any, code: CodeType) -> bool:
    """Whether the instructions of ``code`` lie inside of ``node``."""
    low, high = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return all(
        low <= (line, column) and (end, last) <= high
        for line, end, column, last in code.co_positions()
        if line is not None and end is not None and column is not None and column != last
    )


@lru_cache(maxsize=4)
def _functions(path: str) -> dict[int, list[Any]]:
    """The functions and lambdas of a file by their first lines."""
    found: dict[int, list[Any]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:  # what runs as a file is not always one
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda | ast.FunctionDef):
            decorators = getattr(node, "decorator_list", ())
            first = min([node.lineno, *(d.lineno for d in decorators)])
            found.setdefault(first, []).append(node)
    return found
