"""Assignment of statements to loops: which loops they share, and how loops are nested.

Note [Loop tree]
----------------
Statements of one kernel become a tree of loops. At each level the loop is chosen that the largest
amount of work can share: a statement may join if it has that loop and everything it waits for is
computed before the loop, or inside it for the same index. If other statements have to come before
that loop, whatever does not depend on it is computed first. What is reduced over a loop is complete
only after it, so a loop may have to run several times: the run with the most work counts. Among
equals the one is put outside that is far longer than the others of a product, for lanes to go along
it, else the one whose steps in memory are the widest, so that the innermost one walks along rows;
inside of others, where only some of them have to wait, the one over which less is reduced, as the
rest would hold all partial results at once. Two loops without anything between them that walk
through all arrays as one are merged.

Note [Columns]
--------------
Statements that reduce columns and those that read the results could all share the loop along the
rows, outermost: each iteration of it would walk down a column, which takes 20 times as long as
walking along rows with the partial results of all columns in memory. So there the loop over rows is
opened first, with what is ready for it, and runs again for what waits, apart from what has a number
for each column only (loop distribution; Allen and Kennedy, "Optimizing compilers for modern
architectures", 2001, section 5.3), unless lanes of products go along the rows, in blocks. Nor does
a statement join others in a loop across its own memory if it has no other loop with them: what it
reads of theirs is then a number for each column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field

from numgrad.codegen.nests.indices import Index, loop_index, loops_in, single_loop
from numgrad.codegen.nests.polynomial import Length, multiply
from numgrad.codegen.nests.statements import Bodies, Loops, Statement
from numgrad.codegen.nests.terms import FUSED, ONE, REDUCE, Term
from numgrad.dataclass import dataclass

MOST_TOGETHER = 300
"""Statements among which loops are shared: what comes later starts anew, as choosing loops takes
time by the square of their number, and LLVM takes long for long functions."""
AHEAD = 8
"""Loops that are considered though something has to be computed before them."""
RUNS = 3
"""How often a loop may run, for the run in which the largest amount of work is shared."""
WIDE, DEEP = 16, 48
"""Elements of a row and of a column from which on rows are walked along: fewer of a column are cut
into lanes."""
INNER = 4
"""The same of a column within other loops, which are not cut."""


@dataclass(eq=False)
class Loop:
    """A loop over ``items``, statements or loops.

    ``merged`` are the loops it stands for: the index of the last one runs through all of them, the
    others stay at 0. ``tiled`` is a loop inside that is cut into tiles: Note [Tiles] in ``lanes``.
    ``product`` is one that holds a product alone: Note [Block products] in
    ``block_products``.
    """

    loop: int
    length: Length
    items: list[Loop | Statement] = field(default_factory=list)
    merged: tuple[int, ...] = ()
    lanes: bool = False
    tiled: int | None = None
    rows: bool = False
    product: bool = False

    def runs(self) -> list[Statement]:
        """The statements right inside."""
        return [item for item in self.items if isinstance(item, Statement)]

    def statements(self) -> list[Statement]:
        """Every statement inside, in order."""
        out: list[Statement] = []
        for item in self.items:
            out += [item] if isinstance(item, Statement) else item.statements()
        return out


Item = Loop | Statement


def paths(loop: Loop) -> list[tuple[Statement, list[Loop]]]:
    """Every statement in a loop with the loops around it."""
    out: list[tuple[Statement, list[Loop]]] = []

    def visit(item: Item, path: list[Loop]) -> None:
        if isinstance(item, Statement):
            out.append((item, path))
        else:
            for inner in item.items:
                visit(inner, [*path, item])

    visit(loop, [])
    return out


@dataclass
class Reads:
    """Dependences and accesses of statements.

    Attributes
    ----------
    waits
        The statements that it waits for, each with the loops in which it is read where it is made.
    strides
        The widest step in memory, by loop.
    along
        The loop that lanes are to go along: of a product, one that is far longer than the others.
    """

    waits: list[dict[int, set[int]]]
    strides: list[dict[int, int]]
    work: list[float]
    along: list[int | None]


def study(statements: Sequence[Statement], bodies: Bodies, loops: Loops) -> Reads:
    """Read every body once."""
    position = {s.term.number: k for k, s in enumerate(statements)}
    waits: list[dict[int, set[int]]] = []
    strides: list[dict[int, int]] = []
    work: list[float] = []
    along: list[int | None] = []
    for statement in statements:
        waited: dict[int, set[int]] = {}
        steps: dict[int, int] = {}
        touched = [(statement.term, statement.index)]
        for symbol in bodies.loads(statement):
            number, index = symbol.detail
            if number in position:
                k = position[number]
                same = _made_in(statements[k], index)
                waited[k] = waited[k] & same if k in waited else same
            if index[:1] != ("flat",):
                touched.append((bodies.terms[number], index))
        for term, index in touched:
            for loop, step in _steps(term, index, loops).items():
                steps[loop] = max(step, steps.get(loop, 0))
        waits.append(waited)
        strides.append(steps)
        total = 1.0
        for loop in set(statement.all_loops()):
            total *= loops.hint(loop)
        work.append(total)
        along.append(_along(statement, bodies, loops))
    return Reads(waits, strides, work, along)


def _along(statement: Statement, bodies: Bodies, loops: Loops) -> int | None:
    """The loop of a product that is over four times as long as its others, if one is."""
    if bodies.body(statement).detail != FUSED:
        return None
    longest, *others = sorted(set(statement.all_loops()), key=lambda u: -loops.hint(u))
    far = all(loops.hint(longest) > 4 * loops.hint(u) for u in others)
    return longest if len(others) > 1 and far else None


def _steps(term: Term, index: Index, loops: Loops) -> dict[int, int]:
    """How far apart in memory successive iterations of each loop read."""
    steps: dict[int, int] = {}
    stride = 1
    for n, entry in zip(reversed(term.shape), reversed(index), strict=True):
        loop = single_loop(entry)
        if loop is not None:
            steps[loop] = max(steps.get(loop, 0), stride)
        if n != ONE:
            stride *= max(loops.hint_of(n), 1)
    return steps


def build(statements: Sequence[Statement], bodies: Bodies, loops: Loops) -> list[Item]:
    """The loops of a kernel: Note [Loop tree]."""
    reads = study(statements, bodies, loops)
    remaining = {k: sorted(set(s.all_loops())) for k, s in enumerate(statements)}
    items: list[Item] = []
    for first in range(0, len(statements), MOST_TOGETHER):
        members = list(range(first, min(first + MOST_TOGETHER, len(statements))))
        items += _level(members, remaining, statements, loops, reads)
    return [_merged(item, bodies, loops) for item in items]


def _level(
    members: list[int],
    remaining: dict[int, list[int]],
    statements: Sequence[Statement],
    loops: Loops,
    reads: Reads,
    inside: bool = False,
) -> list[Item]:
    """Items that compute ``members``, for which ``remaining`` loops are still to be opened.

    ``inside`` says whether they are in a loop.
    """
    items: list[Item] = []
    left = list(members)
    while left:
        waiting, ready = set(left), []
        for k in left:  # one may wait for one before it
            if not remaining[k] and waiting.isdisjoint(reads.waits[k]):
                ready.append(k)
                waiting.remove(k)
        if ready:
            items += [statements[k] for k in ready]
            left = [k for k in left if k in waiting]
            continue
        loop, joined = _best(left, remaining, statements, loops, reads, inside)
        if _waits(joined, left, reads):
            before = _independent(joined, left, reads)
            items += _level(before, remaining, statements, loops, reads, inside)
            done = set(before)
            left = [k for k in left if k not in done]
            continue
        within = {k: [u for u in remaining[k] if u != loop] for k in joined}
        body = _level(joined, within, statements, loops, reads, inside=True)
        items.append(Loop(loop, loops.lengths[loop], body, (loop,)))
        chosen = set(joined)
        left = [k for k in left if k not in chosen]
    return items


def _best(
    left: list[int],
    remaining: dict[int, list[int]],
    statements: Sequence[Statement],
    loops: Loops,
    reads: Reads,
    inside: bool,
) -> tuple[int, list[int]]:
    waiting = set(left)
    possible: dict[int, float] = {}
    span: dict[int, tuple[int, int]] = {}
    ready: set[int] = set()
    for position, k in enumerate(left):
        for loop in remaining[k]:
            possible[loop] = possible.get(loop, 0.0) + reads.work[k]
            span[loop] = span.get(loop, (position, 0))[0], position + 1
        if waiting.isdisjoint(reads.waits[k]):
            ready.update(remaining[k])
    most = -1.0
    equals: list[tuple[int, list[int]]] = []
    for number, loop in enumerate(sorted(possible, key=lambda u: -possible[u])):
        if most > possible[loop]:
            break
        if number >= AHEAD and loop not in ready:
            continue
        joined, work = _heaviest(loop, left[slice(*span[loop])], remaining, reads)
        if work > most:
            most, equals = work, []
        if work == most:
            equals.append((loop, joined))
    assert equals, "a statement waits for itself"
    equals[0] = _by_rows(*equals[0], left, remaining, statements, loops, reads, inside)
    if len(equals) == 1:
        return equals[0]
    some_wait = inside and len({loop in ready for loop, _ in equals}) > 1

    def key(candidate: tuple[int, list[int]]) -> tuple:
        loop, joined = candidate
        step = max((reads.strides[k].get(loop, 0) for k in joined), default=0)
        reduced = sum(loop in statements[k].reduced.values() for k in joined)
        lanes = not inside and any(reads.along[k] == loop for k in joined)
        first = -reduced if some_wait else 0
        return first, lanes, loop in ready, step, -reduced, loops.hint(loop), -loop

    return max(equals, key=key)


def _by_rows(
    along: int,
    joined: list[int],
    left: list[int],
    remaining: dict[int, list[int]],
    statements: Sequence[Statement],
    loops: Loops,
    reads: Reads,
    inside: bool,
) -> tuple[int, list[int]]:
    """The loop to open, and its statements, in place of one across memory: Note [Columns]."""
    lanes = not inside and any(reads.along[k] == along for k in joined)
    if loops.hint(along) < WIDE or lanes:
        return along, joined
    deep = INNER if inside else DEEP
    stride = max(reads.strides[k].get(along, 0) for k in joined)
    users = Counter(u for k in joined for u in remaining[k])

    def across(k: int, among: Iterable[int | None]) -> int | None:
        """A loop of a statement with wider steps."""
        steps = reads.strides[k]
        for u in among:
            least = steps.get(along, 0) if u is not None and users[u] == 1 else stride
            if u is not None and steps.get(u, 0) > least > 0 and loops.hint(u) >= deep:
                return u
        return None

    for k in joined:
        loop = across(k, [u for u in remaining[k] if u in statements[k].reduced.values()])
        if loop is not None and (inside or is_rounded(statements[k].term)):
            return loop, _heaviest(loop, left, remaining, reads)[0]
    flat: list[int] = []
    others: set[int] = set()
    for k in joined:  # in order
        if across(k, remaining[k]) is None and others.isdisjoint(reads.waits[k]):
            flat.append(k)
        else:
            others.add(k)
    return along, flat or joined


def is_rounded(term: Term) -> bool:
    """Whether the result of a reduction depends on an order; others are cut into lanes."""
    return term.dtype.kind in "fc" and (term.op != REDUCE or term.detail[0] in ("sum", "prod"))


def _heaviest(
    loop: int, left: list[int], remaining: dict[int, list[int]], reads: Reads
) -> tuple[list[int], float]:
    """The statements of one run of a loop that has to run several times, and their work."""
    best: tuple[list[int], float] = [], -1.0
    for _ in range(RUNS):
        joined = _joined(loop, left, remaining, reads)
        work = sum(reads.work[k] for k in joined)
        if work > best[1]:
            best = joined, work
        inside = set(joined)
        left = [k for k in left if k not in inside]
        if sum(reads.work[k] for k in left if loop in remaining[k]) <= best[1]:
            break
    return best


def _joined(loop: int, left: list[int], remaining: dict[int, list[int]], reads: Reads) -> list[int]:
    """The statements that can be computed in one loop, in order, what they wait for before it."""
    joined: list[int] = []
    inside: set[int] = set()
    after: set[int] = set()
    for k in left:
        waits = reads.waits[k]
        late = not after.isdisjoint(waits)
        if loop not in remaining[k]:
            if late or not inside.isdisjoint(waits):
                after.add(k)
        elif late or any(p in inside and loop not in same for p, same in waits.items()):
            after.add(k)
        else:
            joined.append(k)
            inside.add(k)
    return joined


def _made_in(producer: Statement, index: Index) -> set[int]:
    """The loops in whose same iteration an element that is read is made."""
    if index[:1] == ("flat",):
        return set()
    pairs = list(zip(producer.loops, index, strict=True))
    other = {loop for loop, entry in pairs if single_loop(entry) != loop}
    return {loop for loop, _ in pairs if loop is not None and loop not in other}


def _waits(joined: list[int], left: list[int], reads: Reads) -> bool:
    """Whether something else has to be computed before."""
    others = set(left) - set(joined)
    return not all(others.isdisjoint(reads.waits[k]) for k in joined)


def _independent(joined: list[int], left: list[int], reads: Reads) -> list[int]:
    """The statements that can be computed before, in order."""
    after = set(joined)
    for k in left:
        if not after.isdisjoint(reads.waits[k]):
            after.add(k)
    return [k for k in left if k not in after]


# -------------------------------------------------------------------------------- merging loops


def _merged(item: Item, bodies: Bodies, loops: Loops) -> Item:
    if isinstance(item, Statement):
        return item
    item.items = [_merged(inner, bodies, loops) for inner in item.items]
    if len(item.items) == 1 and isinstance(item.items[0], Loop):
        inner = item.items[0]
        if not inner.lanes and _walks_as_one(item, inner, bodies):
            length = multiply(item.length, inner.length)
            return Loop(inner.loop, length, inner.items, item.merged + inner.merged)
    return item


def _walks_as_one(outer: Loop, inner: Loop, bodies: Bodies) -> bool:
    """Whether every access moves along with both loops as with one."""
    for statement in inner.statements():
        ours = (set(outer.merged), set(inner.merged))
        reduced = {loop for loop in statement.reduced.values() if loop is not None}
        made = {loop for loop in statement.loops if loop is not None}
        for group in (reduced, made):
            if (ours[0] & group and not ours[1] <= group) or (
                ours[1] & group and not ours[0] <= group
            ):
                return False
        if statement.scanned in outer.merged + inner.merged:
            return False
        if not all(_linear(offset, outer, inner) for offset in touched(statement, bodies)):
            return False
    return True


def touched(statement: Statement, bodies: Bodies) -> list[Length]:
    """The offsets that a statement reads and writes."""
    offsets = [statement.term.offset(statement.index)]
    stack, seen = [bodies.body(statement)], set()
    while stack:
        symbol = stack.pop()
        if id(symbol) in seen:
            continue
        seen.add(id(symbol))
        if symbol.op == "load":
            number, index = symbol.detail
            flat = index[:1] == ("flat",)
            offsets.append(index[1] if flat else bodies.terms[number].own_offset(index))
        elif symbol.op == "index":
            offsets.append(symbol.detail)
        stack.extend(symbol.args)
    return offsets


def _linear(offset: Length, outer: Loop, inner: Loop) -> bool:
    """Whether an offset is that of ``outer * length + inner``, or of neither."""
    per_outer, per_inner = coefficient(offset, outer.loop), coefficient(offset, inner.loop)
    if per_outer is None or per_inner is None:
        return False
    return per_outer == multiply(per_inner, inner.length)


def coefficient(offset: Length, loop: int) -> Length | None:
    """The growth of an offset with each iteration; None if it does not grow evenly."""
    atom = loop_index(loop)[0][0][0]
    growth = []
    for product, coefficient in offset:
        times = product.count(atom)
        if times > 1:
            return None
        if times:
            rest = list(product)
            rest.remove(atom)
            growth.append((tuple(rest), coefficient))
        for other in product:
            if other[0] != "axis" and loop in loops_in(((((other),), 1),)):
                return None
    return tuple(sorted(growth, key=repr))
