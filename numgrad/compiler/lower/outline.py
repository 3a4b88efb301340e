"""The loops of a nest as its source has them, and what LLVM made of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from numgrad.codegen.vector_loops import VectorLoop

_ACCESSES = ("load", "load_if", "store")


@dataclass
class SourceLoop:
    """A loop of generated source.

    Attributes
    ----------
    depth
        How many loops are around it.
    header
        ``for i0 in range(...)``.
    reads, stores
        Names of the addresses that statements directly in it use.
    scopes, stored
        The scopes of all accesses in it, loops inside included, and of those that store.
    fills
        Whether it does nothing but store one value.
    product
        Whether it stands for the loops of a product of blocks.
    verdict
        What LLVM made of the loop, in words; empty for an outer loop that stays as it is.
    """

    depth: int
    header: str
    reads: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    scopes: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    innermost: bool = True
    fills: bool = False
    product: bool = False
    verdict: str = ""


def source_loops(lines: Sequence[str]) -> list[SourceLoop]:
    """The loops of a function, in the order of their headers."""
    found: list[SourceLoop] = []

    def visit(node: ast.stmt, around: list[SourceLoop]) -> None:
        if not isinstance(node, ast.For):
            product = _product(node)
            if product is not None:
                found.append(product)
                product.depth = len(around)
                for loop in around:
                    loop.innermost = False
            for name, scope, stores in _accesses(node):
                for loop in around:
                    loop.scopes.add(scope)
                    if stores:
                        loop.stored.add(scope)
                if around:
                    names = around[-1].stores if stores else around[-1].reads
                    if name not in names:
                        names.append(name)
            return
        for loop in around:
            loop.innermost = False
        header = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
        new = SourceLoop(len(around), header)
        found.append(new)
        for inner in node.body:
            visit(inner, [*around, new])
        simple = [s for s in node.body if not isinstance(s, ast.Assign)]
        new.fills = new.innermost and not new.reads and len(simple) == 1 and bool(new.stores)

    (function,) = ast.parse("\n".join(lines)).body
    assert isinstance(function, ast.FunctionDef), "a nest is a function"
    for node in function.body:
        visit(node, [])
    return found


def _product(node: ast.stmt) -> SourceLoop | None:
    """A product of blocks: the loops that it stands for."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "block_product"):
        return None
    _, _, a, _, _, b, _, count, c, _, rows, columns, _ = call.args
    left, right, result = (
        next(x.id for x in ast.walk(place) if isinstance(x, ast.Name)) for place in (a, b, c)
    )
    rows, count, columns = (ast.unparse(n) for n in (rows, count, columns))
    header = f"product of {rows} x {count} with {count} x {columns}"
    return SourceLoop(
        0, header, [left, right], [result], product=True, verdict="tiles in registers"
    )


def _accesses(node: ast.stmt) -> Iterator[tuple[str, int, bool]]:
    """Address, scope and direction of every access in a statement."""
    for call in ast.walk(node):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            continue
        if call.func.id in _ACCESSES:
            *_, address, _, scope, _ = call.args
            yield ast.unparse(address), int(ast.unparse(scope)), call.func.id == "store"


def judge(loops: Sequence[SourceLoop], vectorised: Sequence[VectorLoop] | None) -> None:
    """Say of each loop whether LLVM vectorised it: Note [Finding loops again].

    A vectorised loop is that of the source with the fewest accesses among those that have all of
    its own, for some may have moved out of it; if it can be, one that stores to the same arrays.
    Loops that are alike in this, such as one in steps and the one that does the rest, are all
    vectorised if there are as many vectorised ones that differ; else nothing is claimed.
    """
    if vectorised is None:
        for loop in loops:
            if not loop.product:
                loop.verdict = "not known" if loop.innermost else ""
        return
    alike: dict[tuple[int, ...], set[VectorLoop]] = {}
    kinds: dict[int, str] = {}
    for found in vectorised:
        able = [k for k, loop in enumerate(loops) if found.scopes <= loop.scopes]
        able = [k for k in able if loops[k].stored == found.stored] or able
        least = min((len(loops[k].scopes) for k in able), default=0)
        best = [k for k in able if len(loops[k].scopes) == least]
        inner = [k for k in best if loops[k].innermost] or best
        if found.scopes:
            alike.setdefault(tuple(inner), set()).add(found)
    unclear: set[int] = set()
    for group, different in alike.items():
        if len(different) >= len(group):
            kinds.update(dict.fromkeys(group, next(iter(different)).kind))
        else:
            unclear.update(group)
    for k, loop in enumerate(loops):
        if loop.product:
            continue
        if loop.fills:
            loop.verdict = "fills memory"
        elif k in kinds:
            loop.verdict = f"vectorised, {kinds[k]}"
        elif k in unclear:
            loop.verdict = "not known: vectorised, or one like it"
        elif loop.innermost:
            inside = any(j in kinds for j in _around(loops, k))
            loop.verdict = "unrolled in a vectorised loop" if inside else "not vectorised"


def _around(loops: Sequence[SourceLoop], k: int) -> Iterator[int]:
    """The loops around one."""
    depth = loops[k].depth
    for j in range(k - 1, -1, -1):
        if loops[j].depth < depth:
            depth = loops[j].depth
            yield j
