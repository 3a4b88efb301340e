"""Arrays that are kept whole at the start of each step of a loop over time.

Note [Snapshots]
----------------
A stencil reads an element and its neighbours, so the values that its gradient keeps of an iteration
are several, while an array has one element for each. Where a step reads an array as it was when the
step began, and goes through all of it, a copy of the array by step (the store-all strategy of
Griewank and Walther, "Evaluating Derivatives", 2008, chapter 12) holds them all: 8 bytes an element
in place of 16 for nonlinear conduction. It is taken if fewer values are kept with it than without.

That a read finds what was there at the start is proven: stores of the step to the same array come
later, and not in a loop with the read, or are to another one of arrays that are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from numgrad.codegen.adjoint.placement import Tapes
from numgrad.codegen.adjoint.reading import number
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Expression,
    KernelArray,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    affine,
    subtract,
    walk,
)
from numgrad.codegen.adjoint.rotations import cycle_of, distinct_names
from numgrad.codegen.dtypes import INT64


def kept_in_steps(tapes: Tapes) -> int:
    """How many values are kept of iterations inside of others."""
    return sum(tapes.is_inner(loop) for loop in tapes.loops.values())


class Snapshot(NamedTuple):
    """An array that a loop over time keeps by step, one of exchanged ones by its ``place``.

    ``reads`` are those that find what was there when the step began.
    """

    loop: KernelLoop
    array: str
    place: Value | None
    reads: list[Load]


def possible_snapshots(function: KernelFunction) -> list[Snapshot]:
    """The arrays that loops over time may keep whole: Note [Snapshots]."""
    distinct = distinct_names(function)
    return [
        snapshot
        for s in function.body.statements
        if isinstance(s, KernelLoop) and s.test is None and s.step == 1 and not s.parallel
        for snapshot in _snapshots_of(function, s, distinct)
    ]


def take_snapshots(function: KernelFunction) -> int:
    """Let loops over time keep arrays whole, and return how many: Note [Snapshots]."""
    snapshots = possible_snapshots(function)
    for snapshot in snapshots:
        _keep(function, snapshot)
    if snapshots:
        number(function)
    return len(snapshots)


def _snapshots_of(
    function: KernelFunction, loop: KernelLoop, distinct: set[frozenset[str]]
) -> Iterator[Snapshot]:
    inside = list(walk(loop.body))
    loads: dict[tuple[str, Value | None], list[Load]] = {}
    cycles = {c.name: cycle_of(loop, c) for c in loop.carried}
    for s in inside:
        if isinstance(s, Load) and function.arrays[s.array].home in (None, function.body):
            place = s.index[0] if _is_one_of(function, s, cycles) else None
            loads.setdefault((s.array, place), []).append(s)
    for (array, place), reads in loads.items():
        own = function.arrays[array]
        stores = [s for s in inside if isinstance(s, Store) and s.array == array]
        if not stores or own.grows or not own.differentiable:
            continue
        early = [s for s in reads if all(_is_later(t, s, loop, distinct) for t in stores)]
        if len(early) > 1 and any(_goes_through(function, s, place) for s in early):
            yield Snapshot(loop, array, place, early)


def _is_one_of(
    function: KernelFunction, load: Load, cycles: Mapping[str, list[Value] | None]
) -> bool:
    """Whether a read is of one of arrays that each step exchanges."""
    first, count = load.index[0], _shape(function, load.array)[0]
    cycle = cycles.get(first) if isinstance(first, str) else None
    return (
        cycle is not None
        and isinstance(count, int)
        and all(isinstance(k, int) and 0 <= k < count for k in cycle)
    )


def _is_later(store: Store, load: Load, loop: KernelLoop, distinct: set[frozenset[str]]) -> bool:
    """Whether a store of a step does not change what a load of the same step reads."""
    one, other = store.index[0], load.index[0]
    if isinstance(one, str) and isinstance(other, str) and frozenset((one, other)) in distinct:
        return True
    pairs = zip(store.home.loops(), load.home.loops(), strict=False)
    common = [a for a, b in pairs if a is b]
    return common[-1] is loop and store.place > load.place


def _shape(function: KernelFunction, name: str) -> tuple[Value, ...]:
    array = function.arrays[name]
    return array.shape or tuple([Expression("shape", (name, k)) for k in range(array.ndim)])


def _goes_through(function: KernelFunction, load: Load, place: Value | None) -> bool:
    """Whether loops around a read go through all of the array but for a margin."""
    loops = {loop.variable: loop for loop in load.home.loops()[1:]}
    first = 0 if place is None else 1
    shape = _shape(function, load.array)
    used = set()
    for index, length in zip(load.index[first:], shape[first:], strict=True):
        known, whole = affine(index), affine(length)
        around = loops.pop(known[0], None) if known is not None else None
        if around is None or around.test is not None or around.step != 1:
            return False
        end = affine(around.high)
        if not isinstance(around.low, int) or end is None or whole is None or end[0] != whole[0]:
            return False
        used.add(around)
    return bool(used)


def _keep(function: KernelFunction, snapshot: Snapshot) -> None:
    """Copy an array, or one of those that are exchanged, at the start of each step."""
    loop, array, place, reads = snapshot
    first = 0 if place is None else 1
    shape = _shape(function, array)[first:]
    steps = Expression("max", (0, subtract(loop.high, loop.low)))
    count = len(function.dtypes) + len(function.arrays)

    def unused(stem: str) -> str:
        nonlocal count
        while True:
            count += 1
            name = f"{stem}_{count}"
            if name not in function.dtypes and name not in function.arrays:
                return name

    def put(block: Block, statement: KernelStatement) -> None:
        statement.home, statement.line = block, loop.line
        block.statements.append(statement)

    kept = unused(f"{array}_steps")
    dtype = function.arrays[array].dtype
    whole = (steps, *shape)
    function.arrays[kept] = KernelArray(kept, dtype, len(whole), "local", function.body, whole)
    made = Allocate(kept, "empty", whole)
    made.home, made.line = function.body, loop.line
    function.body.statements.insert(function.body.statements.index(loop), made)
    step = subtract(loop.variable, loop.low)
    begin = Block(loop, loop.body)
    block, index = begin, list[Value]()
    for length in shape:
        inner = Block(None, block if block is not begin else loop.body)
        variable = unused("e")
        function.dtypes[variable], function.homes[variable] = INT64, inner
        nest = KernelLoop(variable, 0, length, 1, inner)
        inner.loop = nest
        put(block, nest)
        nest.home = loop.body if block is begin else block
        index.append(variable)
        block = inner
    value = unused("element")
    function.dtypes[value], function.homes[value] = dtype, block
    own = tuple(index) if place is None else (place, *index)
    put(block, Load(value, array, own))
    put(block, Store(kept, (step, *index), value))
    loop.body.statements[:0] = begin.statements
    for s in reads:
        s.copy = (kept, (step, *s.index[first:]))
