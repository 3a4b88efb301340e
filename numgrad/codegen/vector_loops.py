"""Which loops LLVM vectorised, read off its optimised IR.

Note [Finding loops again]
--------------------------
Optimised IR does not say which line a loop comes from. But accesses through ``intrinsics.load`` and
``store`` carry a scope each (Note [Alias scopes] in ``intrinsics``), which survives optimisation;
what a loop reads and stores tells loops of one function apart. The body of a loop that LLVM
vectorised is called ``vector.body``, that of one written in lanes by ``native.lanes`` ``full``;
``vec.epilog.vector.body`` does the rest of the same loop in shorter vectors.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_FUNCTION = re.compile(r"^define .*?@\"?([^\s\"(]+)\"?\(.*?^}", re.MULTILINE | re.DOTALL)
_NEST = re.compile(r"(?:^|\d)(nest_\d+)(?:_|$)")
_BODY = re.compile(
    r"^(vector\.body\d*|full\.\d+):(.*?)\n[^\n]*\bbr .*?label %\1\b", re.MULTILINE | re.DOTALL
)
_VECTOR = re.compile(r"<(\d+) x (half|float|double|i8|i16|i32|i64)>")
_USES = re.compile(r"!alias\.scope !(\d+)")
_STORE = re.compile(r"^\s*store |@llvm\.masked\.(?:store|scatter)")
_LIST = re.compile(r"^!(\d+) = !\{(![^}\"]*)\}", re.MULTILINE)
_SCOPE = re.compile(r"^!(\d+) = (?:distinct )?!\{!\"numgrad array (\d+)\"", re.MULTILINE)


@dataclass(frozen=True)
class VectorLoop:
    """A loop in vectors.

    Attributes
    ----------
    kind
        Width and type of most of its vectors, of floating-point ones if it has any.
    scopes, stored
        The scopes that it accesses, and those of them that it stores to.
    size
        How many instructions it has.
    """

    kind: str
    scopes: frozenset[int]
    stored: frozenset[int] = frozenset()
    size: int = 0


def vector_loops(llvm: str) -> dict[str, list[VectorLoop]]:
    """The vectorised loops of each function ``nest_<k>`` in a module, in order."""
    numbers = {node: int(scope) for node, scope in _SCOPE.findall(llvm)}
    scopes = {
        node: {numbers[part] for part in re.findall(r"!(\d+)", listed) if part in numbers}
        for node, listed in _LIST.findall(llvm)
    }
    found: dict[str, list[VectorLoop]] = {}
    for function in _FUNCTION.finditer(llvm):
        nest = _NEST.search(function.group(1))
        if nest is None:
            continue
        loops = found.setdefault(nest.group(1), [])
        for _, body in _BODY.findall(function.group()):
            used, stored = set[int](), set[int]()
            for line in body.splitlines():
                for node in _USES.findall(line):
                    used |= scopes.get(node, set())
                    if _STORE.search(line):
                        stored |= scopes.get(node, set())
            kinds = Counter(_VECTOR.findall(body))
            floats = {kind: n for kind, n in kinds.items() if not kind[1].startswith("i")}
            (width, name), _ = (
                Counter(floats or kinds).most_common(1)[0] if kinds else (("1", ""), 0)
            )
            if kinds:
                kind = f"{width} x {name}"
                size = len(body.splitlines())
                loops.append(VectorLoop(kind, frozenset(used), frozenset(stored), size))
    return found
