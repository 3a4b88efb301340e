"""What one part of a kernel does: operations, arithmetic, bytes, buffers; for reports."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from numgrad.codegen.emitter import Emitter
from numgrad.codegen.library import LIBRARY
from numgrad.codegen.symbols import in_order
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, multiply
from numgrad.compiler.lower.statements import Statement, loops_behind
from numgrad.compiler.lower.terms import PART, PRODUCT, REDUCE, SCAN, SCATTER, Term, count
from numgrad.compiler.lower.tree import Item, Loop, paths
from numgrad.compiler.lower.write import SourceWriter, Storage

_FREE = frozenset(("const", "load", "index", "computed", "pair", "cast", "where", "real", "imag"))
"""Symbols that are no arithmetic."""


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

    nodes: list[TracedNode]
    flops: Length = ()
    functions: dict[str, Length] = field(default_factory=dict)
    moved: Length = ()
    reads: list[Term] = field(default_factory=list)
    writes: list[Term] = field(default_factory=list)
    held: list[tuple[Term, Storage]] = field(default_factory=list)


def account(item: Item, writer: SourceWriter, origin: Sequence[TracedNode]) -> Account:
    """What an item of a kernel does."""
    found = [(item, [])] if isinstance(item, Statement) else paths(item)
    nodes = _nodes([s.term for s, _ in found], writer.bodies.stored, origin)
    out = Account(nodes)
    emitter = Emitter(scalar_functions=writer.emitter.scalar_functions)
    study = SourceWriter(writer.bodies, writer.storage, emitter, {})
    counted: set = set()
    for statement, path in found:
        _count_arithmetic(out, statement, path, study, counted)
        _count_bytes(out, statement, path, study, counted)
    return out


def _nodes(
    roots: Iterable[Term], stored: Container[int], origin: Sequence[TracedNode]
) -> list[TracedNode]:
    """The operations behind terms, down to what is stored or in memory."""
    terms: dict[int, Term] = {}
    stack = list(roots)
    while stack:
        term = stack.pop()
        if term.number in terms:
            continue
        terms[term.number] = term
        stack += [x for x in term.args if x.number not in stored and not x.in_memory]
    found = dict.fromkeys(origin[n] for n in sorted(terms) if n < len(origin))
    return [node for node in found if not isinstance(node.op, str)]


def _product(loops: Iterable[Loop]) -> Length:
    total = constant(1)
    for loop in loops:
        total = multiply(total, loop.length)
    return total


def _around(loops: Iterable[int], path: Sequence[Loop]) -> list[Loop]:
    """The loops inside of which something is computed that depends on loops."""
    wanted = set(loops)
    order = list(path)
    if path and path[0].lanes and not (len(path) > 1 and path[1].rows):
        order = [*path[1:], path[0]]  # the iterations side by side run innermost
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
    for symbol in in_order([study.bodies.body(statement)], {}):
        if symbol.op in _FREE or symbol.dtype.kind not in "fc":
            continue
        around = _around(study.depends(symbol), path)
        key = (symbol, tuple(map(id, around)))
        if key in counted:
            continue
        counted.add(key)
        times = _product(around)
        if symbol.op in LIBRARY or ":" in symbol.op:
            out.functions[symbol.op] = add(out.functions.get(symbol.op, ()), times)
        else:
            out.flops = add(out.flops, times)
    if term.op in (REDUCE, SCAN, SCATTER) and term.dtype.kind in "fc":
        out.flops = add(out.flops, _product(path))


def _count_bytes(
    out: Account, statement: Statement, path: Sequence[Loop], study: SourceWriter, counted: set
) -> None:
    bodies, term = study.bodies, statement.term
    for symbol in bodies.loads(statement):
        number, index = symbol.detail
        read, place = bodies.terms[number], study.storage.get(number)
        if place is None or not (place.whole and place.memory):
            continue
        if term.op == PRODUCT:
            loops, times = frozenset(), count(read.shape)
        else:
            parts = [index[1]] if index[:1] == ("flat",) else index
            loops = frozenset().union(*(loops_behind(part, bodies) for part in parts))
            times = _product(loop for loop in path if loops.intersection(loop.merged))
        key = (number, loops, tuple(map(id, path)) if loops else ())
        if key not in counted:
            counted.add(key)
            out.moved = add(out.moved, multiply(times, constant(read.dtype.itemsize)))
        if read not in out.reads:
            out.reads.append(read)
    place = study.storage[term.number]
    if place.whole and place.memory:
        size = multiply(count(term.shape), constant(term.dtype.itemsize))
        out.moved = add(out.moved, size)
        out.writes.append(term)
    else:
        out.held.append((term, place))


def stored_name(term: Term) -> int:
    """The number in the name of the memory of a term: its own, or of what it is a part of."""
    return term.detail[0] if term.op == PART else term.number


def by_line(nodes: Iterable[TracedNode]) -> Iterator[tuple[str, list[str]]]:
    """Names of operations, by the line of the user's code they come from."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(node.line or "", []).append(node.name)
    yield from found.items()
