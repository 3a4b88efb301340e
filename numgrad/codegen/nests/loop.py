"""A loop as a kernel: its body's statements within a loop over steps, over buffers made once.

Note [Loops over steps]
-----------------------
What a step computes it stores where it belongs: a row of what is collected, or the next carry (Note
[Places of a carry]). What else it returns unchanged is copied. All of it is one
function of the kernel, which knows of no two addresses that they do not overlap: from step to step
they do.

Note [Places of a carry]
------------------------
A part of the carry that a step computes goes to a second buffer; then the two change places. Where
what was before each step is collected, as gradients ask for it, no buffer is needed: a step reads
its part in the row that is collected, and writes the next one. A part that a step takes over from
another one, as methods do that look at two moments, moves along as an address. Collected, its rows
are those of the other part one step earlier, and the first is what the loop starts with: so both
share one array, which has a row more. That holds for what gradients alone read, since a user may
write to what a loop returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from numgrad.codegen.dtypes import numpy_name, type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.block_products import ProductCode
from numgrad.codegen.nests.kernel import KernelWriter, variant
from numgrad.codegen.nests.polynomial import Length
from numgrad.codegen.nests.terms import CONSTANT, SCALAR, SIZE, Term, Terms, count
from numgrad.codegen.nests.write import text
from numgrad.dataclass import dataclass

STEPS, REVERSE = "steps", "reverse"
"""Parameters: how many steps there are, and whether they begin at the end."""


@dataclass(frozen=True)
class LoopKernel:
    """The source of a loop.

    Attributes
    ----------
    lengths
        Axes of ``sizes`` that it takes after all arrays, steps and direction.
    shared
        Results that are rows of others, by number, and how many steps earlier: Note [Places of a
        carry].
    """

    source: str
    signature: str
    externals: set[str]
    functions: dict[str, object]
    lengths: list[int]
    shared: dict[int, tuple[int, int]]


def _kind(term: Term, rank: int) -> str:
    """The type of an array that holds what a term computes."""
    return f"{type_name(term.dtype)}[{':, ' * (rank - 1)}::1]"


class LoopWriter(KernelWriter):
    """Writes the kernel of a loop.

    Parameters
    ----------
    terms, stored
        Those of the body, as for other kernels.
    inputs
        What the body takes: the carry, elements of ``xs``, and what all steps read.
    results, ranks
        What it returns: the new carry, and what is collected; how many axes each has, of which
        terms may have more or fewer than what they are stored for.
    carries, xs
        How many of the inputs the first two are.
    emitter, products
        As for other kernels.
    check
        A condition that must be false in each step: where it is true the loop ends, and the last
        argument holds the number of that step.
    until
        The part of the carry that says whether there is another step, if that decides: the last
        argument then holds how many there were besides.
    keeps
        Whether the last results are the carry before each step, for gradients only.
    """

    def __init__(
        self,
        terms: Terms,
        stored: Sequence[Term],
        inputs: Sequence[Term],
        results: Sequence[Term],
        ranks: Sequence[int],
        carries: int,
        xs: int,
        emitter: Emitter,
        products: ProductCode,
        check: Term | None = None,
        until: int | None = None,
        keeps: bool = False,
    ) -> None:
        self.inputs, self.returned, self.carries, self.xs = inputs, results, carries, xs
        self.ranks, self.check, self.until = ranks, check, until
        self.places = Carries.of(inputs, results, carries, keeps)
        wanted = {t.number for t in (*results, *([check] if check else []))}
        exported = {t.number for t in stored} & wanted
        super().__init__(terms, stored, exported, emitter, products)

    def _scope(self, name: str) -> str:
        return "0, 1"  # Note [Loops over steps]

    def loop(self) -> LoopKernel:
        """The kernel."""
        functions, _, _, buffers = self._write_items()
        temporaries = self._temporaries(buffers)
        self._parameters()
        self.as_arrays = {
            t.number for t in self.results if any(f"x{t.number}" in line for line in self.lines)
        }
        lines = [*self._operands(), *temporaries, *self._buffers(), *self._start()]
        lines += ["    t = 0", f"    while t < {STEPS}:"]
        lines.append(f"        k = {STEPS} - 1 - t if {REVERSE} else t")
        lines += ["    " + line for line in [*self._rows(), *self.lines, *self._results()]]
        lines += ["        t = t + 1", *self._last(), *self._checked(), *self._end()]
        touch = self.use("touch", "codegen.accumulation")
        buffers += [*self.blocks.names(), *(f"x{name}" for name, _ in self._owned())]
        lines += [f"    {touch}({name})" for name in buffers]
        self._parameters()  # with the lengths that copies need
        parameters = [f"o{k}" for k in range(len(self.inputs))]
        parameters += [f"w{k}" for k in range(len(self.returned))]
        parameters += ["failed", STEPS, REVERSE, *self.lengths]
        head = f"def kernel({', '.join(parameters)}):"
        source = "\n".join([*functions, head, *lines]) + "\n"
        source = variant(source.replace("@SCOPES@", str(len(self.scopes))), parallel=False)
        kinds = [
            _kind(t, len(t.shape) + (self.carries <= k < self.carries + self.xs))
            for k, t in enumerate(self.inputs)
        ]
        kinds += [
            _kind(t, rank + (k >= self.carries))
            for k, (t, rank) in enumerate(zip(self.returned, self.ranks, strict=True))
        ]
        kinds += ["int64[::1]", *["int64"] * (2 + len(self.lengths))]
        return LoopKernel(
            self.emitter.header() + source,
            f"void({', '.join(kinds)})",
            self.emitter.externals,
            self.emitter.namespace,
            [int(name[1:]) for name in self.lengths],
            self.places.shared,
        )

    def _last(self) -> list[str]:
        """End the loop after a step that is the last one."""
        if self.until is None:
            return []
        load = self.use("load", "codegen.intrinsics")
        return [
            f"        if {load}(boolean, a_c{self.until}, 0, 0, 1) == 0:",
            "            failed[1] = t",
            f"            t = {STEPS}",
        ]

    def _checked(self) -> list[str]:
        """End the loop where a step must not go on."""
        if self.check is None:
            return []
        return [
            f"        if x{self.check.number}[0]:",
            "            failed[0] = k",
            f"            t = {STEPS}",
        ]

    # ----------------------------------------------------------------------------------- memory

    def _row_bytes(self, term: Term) -> str:
        return f"({text(self._size(term))}) * {term.dtype.itemsize}"

    def _size(self, term: Term) -> Length:
        size = count(term.shape)
        self.need(size)
        return size

    def _operands(self) -> list[str]:
        """Addresses of all operands and results."""
        lines = [f"    g{k} = int64(o{k}.ctypes.data)" for k in range(len(self.inputs))]
        return lines + [f"    h{k} = int64(w{k}.ctypes.data)" for k in range(len(self.returned))]

    def _buffers(self) -> list[str]:
        """Two buffers for each array of the carry, one for each result that is an array."""
        lines = []
        for name, term in self._owned():
            size, kind = text(self._size(term)), numpy_name(term.dtype)
            lines.append(f"    x{name} = np.empty(max({size}, 1), {kind})")
            lines.append(f"    a{name} = int64(x{name}.ctypes.data)")
        return lines

    def _owned(self) -> list[tuple[str, Term]]:
        """Buffers of the loop's own, by name."""
        buffers = [(f"_c{k}", self.inputs[k]) for k in range(self.carries)]
        buffers += [(f"_d{k}", self.inputs[k]) for k in range(self.carries)]
        return buffers + [(str(t.number), t) for t in self.results]

    def _copy(self, term: Term, source: str, target: str) -> list[str]:
        """Copy the elements of something shaped like ``term``."""
        load, store = (self.use(name, "codegen.intrinsics") for name in ("load", "store"))
        kind, size = type_name(term.dtype), text(self._size(term))
        self.counter += 1
        i = f"q{self.counter}"
        return [
            f"    for {i} in range({size}):",
            f"        {store}({load}({kind}, {source}, {i}, 0, 1), {target}, {i}, 0, 1)",
        ]

    def _start(self) -> list[str]:
        """The carry at first, and what all steps read."""
        lines = [f"    first = {STEPS} - 1 if {REVERSE} else 0"]
        for k, row in self.places.rows.items():
            lines.append(f"    a_c{k} = {self._collected(row, 'first')} if {STEPS} > 0 else a_c{k}")
        for k in range(self.carries):
            lines += self._copy(self.inputs[k], f"g{k}", f"a_c{k}")
        for k in self.places.shared:
            position = next(i for i, t in enumerate(self.inputs) if t is self.returned[k])
            lines.append(f"    if {STEPS} > 0:")
            copied = self._copy(self.inputs[position], f"g{position}", self._collected(k, "first"))
            lines += ["    " + line for line in copied]
        for k in range(self.carries + self.xs, len(self.inputs)):
            lines += self._read(k, f"g{k}")
        return lines

    def _rows(self) -> list[str]:
        """Lines that find the inputs of a step."""
        lines = []
        if self.places.rows:
            lines.append(f"    following = k - 1 if {REVERSE} else k + 1")
        for k, row in self.places.rows.items():
            there = self._collected(row, "following")
            lines.append(f"    a_n{k} = {there} if t + 1 < {STEPS} else a_d{k}")
        for k in range(self.carries + self.xs):
            if k < self.carries:
                lines += self._read(k, f"a_c{k}")
            else:
                lines += self._read(k, f"g{k} + k * {self._row_bytes(self.inputs[k])}")
        for number, address in self._direct().items():
            lines.append(f"    a{number} = {address}")
        return lines

    def _read(self, k: int, address: str) -> list[str]:
        term = self.inputs[k]
        if term.op == SCALAR:
            load = self.use("load", "codegen.intrinsics")
            return [f"    r{term.number} = {load}({type_name(term.dtype)}, {address}, 0, 0, 1)"]
        return [f"    a{term.number} = {address}"]

    def _direct(self) -> dict[int, str]:
        """Where results are stored at once: by the number of the term."""
        places: dict[int, str] = {}
        made, source = {t.number for t in self.results}, self.places.source
        for k, term in enumerate(self.returned):
            n = term.number
            if n in made and n not in self.as_arrays and n not in places and k not in source:
                places[n] = self._target(k)
        return places

    def _target(self, k: int) -> str:
        if k < self.carries:
            return f"a_n{k}" if k in self.places.rows else f"a_d{k}"
        return self._collected(k, "k")

    def _collected(self, k: int, number: str) -> str:
        """A row of a result that is collected."""
        return f"h{k} + {number} * {self._row_bytes(self.returned[k])}"

    def _results(self) -> list[str]:
        """Bring the results of a step to their places; then the new carry is the carry."""
        lines = []
        direct = self._direct()
        places = self.places
        there = {*places.source, *places.rows.values(), *places.shared}
        for k, term in enumerate(self.returned):
            target = self._target(k)
            if k not in there and direct.get(term.number) != target:
                lines += self._returned_as(term, target)
        lines += [f"    e_{k} = a_c{k}" for k in range(self.carries)]
        for k in range(self.carries):
            source = places.source.get(k)
            lines.append(f"    a_c{k} = {self._target(k) if source is None else f'e_{source}'}")
            if source is None and k not in places.rows:
                lines.append(f"    a_d{k} = e_{places.spare[k]}")
        return lines

    def _returned_as(self, term: Term, target: str) -> list[str]:
        """A result that is not stored at its place: an input, a number, or one of another place."""
        store, kind = self.use("store", "codegen.intrinsics"), numpy_name(term.dtype)
        if term.op == CONSTANT:
            value = repr(term.detail)
            if not np.isfinite(term.detail):
                value = f"float('{term.detail}')"
            return [f"    {store}({kind}({value}), {target}, 0, 0, 1)"]
        if term.op == SIZE:
            return [f"    {store}({kind}({text(term.detail)}), {target}, 0, 0, 1)"]
        if term.op == SCALAR:
            return [f"    {store}(r{term.number}, {target}, 0, 0, 1)"]
        return self._copy(term, f"a{term.number}", target)

    def _end(self) -> list[str]:
        lines = []
        for k in range(self.carries):
            lines += self._copy(self.inputs[k], f"a_c{k}", f"h{k}")
        return lines


@dataclass
class Carries:
    """The parts of a carry, by number, and where they are.

    Attributes
    ----------
    rows
        The result that collects a part which is computed, in whose rows it lies.
    source
        The part before the step that a part is after it.
    spare
        For a part that is computed and has a buffer: the one whose buffer is then free.
    shared
        For the result that collects a part: that whose rows it shares, and how many steps earlier.
    """

    rows: dict[int, int] = field(default_factory=dict)
    source: dict[int, int] = field(default_factory=dict)
    spare: dict[int, int] = field(default_factory=dict)
    shared: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, inputs: Sequence[Term], returned: Sequence[Term], count: int, keeps: bool
    ) -> Carries:
        """The carries of a loop that takes and returns these: the first ``count``.

        With ``keeps`` the last results are the carry before each step, for gradients only.
        """
        result = cls()
        position = {t.number: k for k, t in enumerate(inputs[:count]) if t.op != SCALAR}
        collected: dict[int, int] = {}
        own = len(returned) - count if keeps else len(returned)
        for k, term in reversed([*enumerate(returned)][count:]):
            if term.number in position:
                collected.setdefault(position[term.number], k)
        after: dict[int, int] = {}
        for k, term in enumerate(returned[:count]):
            i = position.get(term.number, k)
            if i != k and i not in after and k in position.values():
                result.source[k], after[i] = i, k
        for k in range(count):
            if k in result.source:
                continue
            if k in collected and returned[k].number != inputs[k].number:
                result.rows[k] = collected[k]
            last, depth = k, 0
            while last in after:
                last, depth = after[last], depth + 1
                if min(result.rows.get(k, 0), collected.get(last, 0)) < own:
                    continue
                result.shared[collected[last]] = result.rows[k], depth
            result.spare[k] = last
        return result
