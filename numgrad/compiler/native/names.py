"""Names that users know operations by."""

from __future__ import annotations

import ast

from numgrad.compiler.graph.graph import CALL, TracedNode, code_at
from numgrad.compiler.lower.expand import form
from numgrad.core.op import OPS, Op

_IN_LOOPS = ("in the loop", "kernel call")
_CONTROL_FLOW = ("ng.cond", "numgrad.cond")
"""Calls by the name of an operation that are none of it."""


def user_name(node: TracedNode) -> str:
    """The name of a node's operation; of one that is a part of others, the call in its line."""
    if node.op == CALL:
        return getattr(node.params.get("function"), "__name__", "a function")
    op = node.op
    if not isinstance(op, Op) or not op.internal:
        return node.name
    calls = list(dict.fromkeys(_calls(code_at(node.line))))
    known = [c for c in calls if _is_operation(c)]
    others = [c for c in known if form(OPS[c.rpartition(".")[2]])[0] not in _IN_LOOPS]
    for names in (others, known, calls):
        if len(names) == 1:
            return names[0]
    return node.name.replace("_", " ")


def _calls(code: str) -> list[str]:
    """Calls in a line of a program."""
    for text in (code, f"{code}\n    pass", f"({code.rstrip(',:')})"):  # or a part of a statement
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        return [ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return []


def _is_operation(call: str) -> bool:
    """Whether a call may be that of an operation of the table."""
    op = OPS.get(call.rpartition(".")[2])
    return op is not None and not op.internal and call not in _CONTROL_FLOW
