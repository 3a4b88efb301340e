"""Accounts of a kernel for reports: operations, arithmetic, bytes, buffers, vectorised loops.

``account`` says what an item of a kernel computes and moves, ``source_loops`` which loops a nest
has, and ``judge`` which of them LLVM vectorised, as ``vector_loops`` reads off its optimised IR.

Note [Finding loops again]
--------------------------
Optimised IR does not say which line a loop comes from. But accesses through ``intrinsics.load`` and
``store`` carry a scope each (Note [Alias scopes] in ``intrinsics``), which survives optimisation;
what a loop reads and stores tells loops of one function apart. The body of a loop that LLVM
vectorised is called ``vector.body``, that of one written in lanes by ``native.loops`` ``full``;
``vec.epilog.vector.body`` does the rest of the same loop in shorter vectors.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from numgrad.codegen.emitter import Emitter
from numgrad.codegen.library import LIBRARY
from numgrad.codegen.nests.loop_tree import Item, Loop, paths
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply
from numgrad.codegen.nests.statements import Statement, loops_behind
from numgrad.codegen.nests.terms import (
    CALL,
    CALLS,
    PART,
    PRODUCT,
    REDUCE,
    SCAN,
    SCATTER,
    Term,
    count,
)
from numgrad.codegen.nests.write import SourceWriter, Storage
from numgrad.codegen.symbols import in_order
from numgrad.dataclass import dataclass

_FREE = frozenset(("const", "load", "index", "computed", "pair", "cast", "where", "real", "imag"))
"""Symbols that are no arithmetic."""


Node = Any
"""The node of a graph that terms were made for, with ``op``, ``name`` and ``line``."""


@dataclass
class Account:
    """Estimates for one item of a kernel.

    Attributes
    ----------
    nodes
        The operations of the graph that it computes, wholly or in part.
    flops
        Arithmetic on floating-point numbers; an operation on complex ones counts once.
    functions
        How many values of each elementary function.
    moved
        Bytes: each array that outlives the item counted once for each way of reading it, as far as
        the loops go, and once for each time it is stored.
    reads, writes
        These arrays.
    held
        Terms that live inside only, with their storage.
    """

    nodes: list[Node]
    flops: Length = ()
    functions: dict[str, Length] = field(default_factory=dict)
    moved: Length = ()
    reads: list[Term] = field(default_factory=list)
    writes: list[Term] = field(default_factory=list)
    held: list[tuple[Term, Storage]] = field(default_factory=list)


def account(item: Item, writer: SourceWriter, origin: Sequence[Node]) -> Account:
    """The account of an item of a kernel."""
    placed = [(item, [])] if isinstance(item, Statement) else paths(item)
    nodes = _nodes([s.term for s, _ in placed], writer.bodies.stored, origin)
    out = Account(nodes)
    emitter = Emitter(scalar_functions=writer.emitter.scalar_functions)
    study = SourceWriter(writer.bodies, writer.storage, emitter, {})
    counted: set = set()
    for statement, path in placed:
        _count_arithmetic(out, statement, path, study, counted)
        _count_bytes(out, statement, path, study, counted)
    return out


def _nodes(roots: Iterable[Term], stored: Container[int], origin: Sequence[Node]) -> list[Node]:
    """The operations behind terms, down to what is stored or in memory."""
    terms: dict[int, Term] = {}
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term.number in terms:
            continue
        terms[term.number] = term
        stack += [x for x in term.args if x.number not in stored and not x.in_memory]
    nodes = dict.fromkeys(origin[n] for n in sorted(terms) if n < len(origin))
    return [node for node in nodes if not isinstance(node.op, str)]


def _iterations(loops: Iterable[Loop]) -> Length:
    total = constant(1)
    for loop in loops:
        total = multiply(total, loop.length)
    return total


def _loops_around(loops: Iterable[int], path: Sequence[Loop]) -> list[Loop]:
    """The loops inside of which something is computed that depends on loops."""
    wanted = set(loops)
    side_by_side = [x for x in path if x.lanes and not any(each.rows for each in path)]
    order = [x for x in path if x not in side_by_side] + side_by_side  # which run innermost
    while order and not wanted.intersection(order[-1].merged):
        order.pop()
    return order


def _count_arithmetic(
    out: Account, statement: Statement, path: Sequence[Loop], study: SourceWriter, counted: set
) -> None:
    term = statement.term
    if term.op == PRODUCT:
        d = term.detail
        size = multiply(multiply(d.m, d.n), multiply(d.k, d.batch))
        out.flops = add(out.flops, multiply(constant(2), size))
        return
    if term.op == CALL:
        out.flops = add(out.flops, term.detail.flops)
        return
    for symbol in in_order([study.bodies.body(statement)], {}):
        if symbol.op in _FREE or symbol.dtype.kind not in "fc":
            continue
        around = _loops_around(study.depends(symbol), path)
        key = (symbol, tuple(map(id, around)))
        if key in counted:
            continue
        counted.add(key)
        times = _iterations(around)
        if symbol.op in LIBRARY or ":" in symbol.op:
            out.functions[symbol.op] = add(out.functions.get(symbol.op, ()), times)
        else:
            out.flops = add(out.flops, times)
    if term.op in (REDUCE, SCAN, SCATTER) and term.dtype.kind in "fc":
        out.flops = add(out.flops, _iterations(path))


def _count_bytes(
    out: Account, statement: Statement, path: Sequence[Loop], study: SourceWriter, counted: set
) -> None:
    bodies, term = study.bodies, statement.term
    for symbol in bodies.loads(statement):
        number, index = symbol.detail
        read, storage = bodies.terms[number], study.storage.get(number)
        if storage is None or not (storage.whole and storage.memory):
            continue
        if term.op in CALLS:
            loops, times = frozenset(), count(read.shape)
        else:
            parts = [index[1]] if index[:1] == ("flat",) else index
            loops = frozenset().union(*(loops_behind(operand, bodies) for operand in parts))
            times = _iterations(loop for loop in path if loops.intersection(loop.merged))
        key = (number, loops, tuple(map(id, path)) if loops else ())
        if key not in counted:
            counted.add(key)
            out.moved = add(out.moved, multiply(times, constant(read.dtype.itemsize)))
        if read not in out.reads:
            out.reads.append(read)
    storage = study.storage[term.number]
    if storage.whole and storage.memory:
        size = multiply(count(term.shape), constant(term.dtype.itemsize))
        out.moved = add(out.moved, size)
        out.writes.append(term)
    else:
        out.held.append((term, storage))


def stored_name(term: Term) -> int:
    """The number in the name of the memory of a term: its own, or of what it is a part of."""
    return term.detail[0] if term.op == PART else term.number


def by_line(nodes: Iterable[Node]) -> Iterator[tuple[str, list[str]]]:
    """Names of operations, by the line of the user's code they come from."""
    names: dict[str, list[str]] = {}
    for node in nodes:
        names.setdefault(node.line or "", []).append(node.name)
    yield from names.items()


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
    loops: list[SourceLoop] = []

    def visit(node: ast.stmt, around: list[SourceLoop]) -> None:
        if not isinstance(node, ast.For):
            product = _block_product(node)
            if product is not None:
                loops.append(product)
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
        loops.append(new)
        for inner in node.body:
            visit(inner, [*around, new])
        simple = [s for s in node.body if not isinstance(s, ast.Assign)]
        new.fills = new.innermost and not new.reads and len(simple) == 1 and bool(new.stores)

    (function,) = ast.parse("\n".join(lines)).body
    assert isinstance(function, ast.FunctionDef), "a nest is a function"
    for node in function.body:
        visit(node, [])
    return loops


def _block_product(node: ast.stmt) -> SourceLoop | None:
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
    for vector in vectorised:
        able = [k for k, loop in enumerate(loops) if vector.scopes <= loop.scopes]
        able = [k for k in able if loops[k].stored == vector.stored] or able
        least = min((len(loops[k].scopes) for k in able), default=0)
        best = [k for k in able if len(loops[k].scopes) == least]
        inner = [k for k in best if loops[k].innermost] or best
        if vector.scopes:
            alike.setdefault(tuple(inner), set()).add(vector)
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
            inside = any(j in kinds for j in _outer_loops(loops, k))
            loop.verdict = "unrolled in a vectorised loop" if inside else "not vectorised"


def _outer_loops(loops: Sequence[SourceLoop], k: int) -> Iterator[int]:
    """The loops around one."""
    depth = loops[k].depth
    for j in range(k - 1, -1, -1):
        if loops[j].depth < depth:
            depth = loops[j].depth
            yield j


_FUNCTION = re.compile(r"^define .*?@\"?([^\s\"(]+)\"?\(.*?^}", re.MULTILINE | re.DOTALL)
_NEST = re.compile(r"(?:^|\d)(nest_\d+)(?:_|$)")
_LABEL = re.compile(r"(vector\.body\d*|full\.\d+):")
_TARGET = re.compile(r"label %(vector\.body\d*|full\.\d+)\b")
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


def _bodies(function: str) -> Iterator[list[str]]:
    """The first blocks of loops in vectors, outermost ones only, in time linear in the text."""
    begins: dict[str, int] = {}  # where a loop begins, and where its first block ends
    ends: dict[str, int] = {}
    open_blocks: list[str] = []
    loops: list[tuple[int, int, int]] = []
    lines = function.splitlines()
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        if label:
            begins[label.group(1)] = number
            open_blocks.append(label.group(1))
        elif "br " in line:
            ends.update(dict.fromkeys(open_blocks, number))
            open_blocks.clear()
            for name in _TARGET.findall(line):
                if name in begins:
                    loops.append((begins.pop(name), ends[name], number))
    last = -1
    for begin, block, end in sorted(loops):
        if begin > last:
            yield lines[begin + 1 : block]
            last = end


def vector_loops(llvm: str) -> dict[str, list[VectorLoop]]:
    """The vectorised loops of each function ``nest_<k>`` in a module, in order."""
    numbers = {node: int(scope) for node, scope in _SCOPE.findall(llvm)}
    scopes = {
        node: {numbers[number] for number in re.findall(r"!(\d+)", listed) if number in numbers}
        for node, listed in _LIST.findall(llvm)
    }
    of_nest: dict[str, list[VectorLoop]] = {}
    for function in _FUNCTION.finditer(llvm):
        nest = _NEST.search(function.group(1))
        if nest is None:
            continue
        loops = of_nest.setdefault(nest.group(1), [])
        for body in _bodies(function.group()):
            used, stored = set[int](), set[int]()
            for line in body:
                for node in _USES.findall(line):
                    used |= scopes.get(node, set())
                    if _STORE.search(line):
                        stored |= scopes.get(node, set())
            kinds = Counter(_VECTOR.findall("\n".join(body)))
            floats = {kind: n for kind, n in kinds.items() if not kind[1].startswith("i")}
            (width, name), _ = (
                Counter(floats or kinds).most_common(1)[0] if kinds else (("1", ""), 0)
            )
            if kinds:
                kind = f"{width} x {name}"
                loops.append(VectorLoop(kind, frozenset(used), frozenset(stored), len(body) + 1))
    return of_nest
