"""Fused sweeps: loops whose iterations are reversed as soon as they ran.

Note [Fused sweeps]
-------------------
Where the result is one number, the cotangents of sums that lead to it are known before they are
computed: of ``total = total + f(i)`` in a loop each ``f(i)`` has that of ``total`` after it. Such a
loop needs no reversed one: each iteration is followed by its own reversal, so that nothing is
computed twice, and what is kept of its inner loops is as long as one iteration (Griewank and
Walther, Evaluating Derivatives, 2008, section 10.2, call these partially separable functions).

It is done where it is proved; of any other loop the backward sweep is as ever. Of a loop that is
fused

- each carried value with a derivative is a sum: it enters its next value as a summand alone, and
  nothing else reads it;
- the cotangents of these after the loop follow from the result's, and from values computed before
  the loop;
- arrays with derivatives that are written in it are made in the iteration; what it reads of others
  is not written after it.

Loops in the body of a fused one are fused under the same conditions. To the cotangents of what was
computed before the loop its iterations only add; these start at zero before it. A branch at the end
of an iteration and the one that begins its reversal are one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from numgrad.codegen.adjoint.activity import Activity
from numgrad.codegen.adjoint.backward import bar, makers_of
from numgrad.codegen.adjoint.liveness import assigned_names, statements_in, targets_of
from numgrad.codegen.adjoint.operations import LABELS, Operations
from numgrad.codegen.adjoint.representation import (
    Block,
    Carried,
    Define,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    names_in,
    values_of,
    walk,
)
from numgrad.codegen.adjoint.text import Line, Texts, joined_lines, names_of_text

_LABELS = re.compile(r"\{(\w+)\}")


def fused_loops(
    function: KernelFunction, operations: Operations, activity: Activity
) -> dict[KernelLoop, list[Line]]:
    """The loops that can be fused, with the lines that give cotangents before each."""
    return _KnownCotangents(function, operations, activity).loops()


class _KnownCotangents:
    """Cotangents that are known before their values, from the result backwards."""

    def __init__(
        self, function: KernelFunction, operations: Operations, activity: Activity
    ) -> None:
        self.function, self.operations, self.activity = function, operations, activity
        self.texts = Texts(function, operations)
        self.makers = makers_of(function)
        self.uses: Counter[str] = Counter()
        for s in walk(function.body):
            at_most = [s.at_most] if isinstance(s, KernelLoop) else []
            for value in (*values_of(s), *at_most):
                self.uses.update(names_in(value))
        self.known: dict[KernelLoop, dict[str, list[Line]]] = {}
        self.fused: dict[KernelLoop, list[Line]] = {}

    def loops(self) -> dict[KernelLoop, list[Line]]:
        result = self._result()
        if result is not None:
            self._block(self.function.body, [(result.value, f"{bar(result.array)}[0]")])
        return self.fused

    def _result(self) -> Store | None:
        """The statement that stores the result, if the only one is a real number."""
        function = self.function
        outputs = {*function.results, *function.written}
        arrays = [function.arrays[n] for n in outputs if function.arrays[n].differentiable]
        if len(arrays) != 1 or arrays[0].dtype.kind != "f":
            return None
        name = arrays[0].name
        stores = [s for s in walk(function.body) if isinstance(s, Store) and s.array == name]
        is_plain = len(stores) == 1 and stores[0].home is function.body and not stores[0].add
        return stores[0] if is_plain and name in function.scalars else None

    def _block(self, block: Block, ends: Sequence[tuple[Value, str]]) -> None:
        """Find loops of a block, from values at its end with their cotangents."""
        before = set(self.known)
        for value, cotangent in ends:
            self._visit(value, cotangent, [], set(), block)
        for loop in [loop for loop in self.known if loop not in before]:
            known = self.known[loop]
            active = [c for c in loop.carried if c.name in self.activity]
            if not all(c.out in known for c in active) or not self._is_fusable(loop, active):
                continue
            lines: dict[str, Line] = {}
            for c in active:
                lines |= dict.fromkeys(known[c.out])
            self.fused[loop] = list(lines)
            self._block(loop.body, [(c.end, bar(c.out)) for c in active])

    def _visit(
        self, value: Value, cotangent: str, lines: list[Line], needed: set[str], block: Block
    ) -> None:
        """Follow a value with a known cotangent to what it is computed from.

        ``lines`` compute the cotangent, from the ``needed`` values.
        """
        if not isinstance(value, str) or value not in self.activity or self.uses[value] != 1:
            return
        maker = self.makers.get(value)
        if not isinstance(maker, Define | KernelLoop) or maker.home is not block:
            return
        lines = [*lines, f"{bar(value)} = {cotangent}"]
        if isinstance(maker, KernelLoop):
            carried = [c for c in maker.carried if c.out == value]
            if not carried or not all(self._is_before(n, maker) for n in needed):
                return
            self.known.setdefault(maker, {})[value] = lines
            if self._accumulates(maker, carried[0]):
                self._visit(carried[0].start, bar(value), lines, needed, block)
            return
        function = self.function
        dtypes = [function.dtype_of(o) for o in maker.operands]
        words = {c: self.texts.value(o) for c, o in zip(LABELS, maker.operands, strict=False)}
        values = dict(zip(LABELS, maker.operands, strict=False))
        for k, operand in enumerate(maker.operands):
            if operand not in self.activity:
                continue
            template = self.operations.partial(
                maker.operation, k, dtypes, function.dtypes[value], maker.operands
            )
            if template is None:
                continue
            labels = set(_LABELS.findall(template)) - {"g"}
            if "t" in labels:
                continue
            more = {n for label in labels for n in names_in(values[label])}
            text = template.format(**words, g=bar(value))
            self._visit(operand, text, lines, needed | more, block)

    def _is_before(self, name: str, loop: KernelLoop) -> bool:
        maker = self.makers.get(name)
        return not isinstance(maker, KernelStatement) or maker.place < loop.place

    # ------------------------------------------------------------------------------------- proofs

    def _is_fusable(self, loop: KernelLoop, active: Sequence[Carried]) -> bool:
        """Whether iterations can be reversed one by one: Note [Fused sweeps]."""
        if loop.test is not None or not all(c.moves and self._accumulates(loop, c) for c in active):
            return False
        own, last = set(), loop.place
        for s in walk(loop.body):
            last = max(last, s.place)
            if isinstance(s, Load | Store) and s.array in self.activity:
                own.add(s.array)
        for s in walk(self.function.body):
            if not isinstance(s, Store) or s.array not in own:
                continue
            home = self.function.arrays[s.array].home
            is_local = home is not None and home.is_within(loop.body)
            if not is_local and s.place > loop.place:
                return False
        return True

    def _accumulates(self, loop: KernelLoop, c: Carried) -> bool:
        """Whether each iteration only adds to a carried value, and nothing else reads it."""
        return not c.moves or c.end in self._sums(loop, {c.name}, c)

    def _sums(self, loop: KernelLoop, sums: set[str], carried: Carried) -> set[str]:
        """The values in a loop that are a carried one and summands; empty if it is used otherwise.

        The carried one itself is in ``sums``.
        """
        if loop.test is not None and sums.intersection(names_in(loop.condition)):
            return set()
        blocks = (loop.body,) if loop.test is None else (loop.test, loop.body)
        if not all(self._follow(block, sums) for block in blocks):
            return set()
        others = [c.end for c in loop.carried if c is not carried]
        return set() if sums.intersection(n for end in others for n in names_in(end)) else sums

    def _follow(self, block: Block, sums: set[str]) -> bool:
        """Add the sums of a block; False if a sum is used otherwise."""
        for s in block.statements:
            if isinstance(s, Define):
                places = [k for k, o in enumerate(s.operands) if o in sums]
                if not places:
                    if sums.intersection(n for o in s.operands for n in names_in(o)):
                        return False
                    continue
                is_sum = s.operation in ("add", "copy") or (
                    s.operation == "subtract" and places == [0]
                )
                if len(places) != 1 or not is_sum:
                    return False
                sums.add(s.name)
            elif isinstance(s, KernelBranch):
                if sums.intersection(names_in(s.condition)):
                    return False
                if not all(self._follow(side, sums) for side in (s.then, s.other)):
                    return False
                for name, a, b in s.joined:
                    both = (a in sums) + (b in sums)
                    if both == 1 or (not both and sums.intersection([*names_in(a), *names_in(b)])):
                        return False
                    if both:
                        sums.add(name)
            elif isinstance(s, KernelLoop):
                if not self._follow_loop(s, sums):
                    return False
            elif sums.intersection(n for v in values_of(s) for n in names_in(v)):
                return False
        return True

    def _follow_loop(self, s: KernelLoop, sums: set[str]) -> bool:
        bounds = [s.low, s.high, s.step, s.at_most]
        if sums.intersection(n for v in bounds for n in names_in(v)):
            return False
        inner = [c for c in s.carried if c.start in sums]
        others = [c.start for c in s.carried if c.start not in sums]
        if sums.intersection(n for v in others for n in names_in(v)) or len(inner) > 1:
            return False
        if not inner:
            blocks = (s.body,) if s.test is None else (s.test, s.body)
            if not all(self._follow(block, sums) for block in blocks):
                return False
            ends = [s.condition, *[c.end for c in s.carried]]
            return not sums.intersection(n for v in ends for n in names_in(v))
        sums.add(inner[0].name)
        if inner[0].moves and inner[0].end not in self._sums(s, sums, inner[0]):
            return False
        sums.add(inner[0].out)
        return True


def in_sequence(first: list[Line], second: list[Line]) -> list[Line]:
    """Nested lines one after the other; of a condition that both test, one branch.

    That of the last branch in ``first`` and the first one in ``second``, where the lines between
    them may as well run before it.
    """
    begin = next((k for k in reversed(range(len(first))) if _is_branch(first, k)), None)
    end = next((k for k in range(len(second)) if isinstance(second[k], list)), None)
    if (
        begin is None
        or end is None
        or not _is_branch(second, end - 1)
        or first[begin] != second[end - 1]
    ):
        return [*first, *second]
    then, other, after = _sides(first, begin)
    then_2, other_2, after_2 = _sides(second, end - 1)
    between = [*first[after:], *second[: end - 1]]
    condition = str(first[begin])
    branch = [condition, then, *(["else:", other] if other else [])]
    if not _are_independent(branch, between):
        return [*first, *second]
    then, other = in_sequence(then, then_2), in_sequence(other, other_2)
    branch = [condition, then, *(["else:", other] if other else [])]
    return [*first[:begin], *between, *branch, *second[after_2:]]


def _is_branch(lines: list[Line], k: int) -> bool:
    return k >= 0 and str(lines[k]).startswith("if ") and isinstance(lines[k + 1], list)


def _sides(lines: list[Line], k: int) -> tuple[list[Line], list[Line], int]:
    """The sides of the branch at a place, and the place after it."""
    if k + 2 < len(lines) and str(lines[k + 2]) == "else:":
        return lines[k + 1], lines[k + 3], k + 4
    return lines[k + 1], [], k + 2


def _are_independent(first: list[Line], second: list[Line]) -> bool:
    """Whether lines may run in either order."""
    texts = [joined_lines(lines, 0) for lines in (first, second)]
    names = [names_of_text(text) for text in texts]
    changed = [_changed_names(text) for text in texts]
    return names[0].isdisjoint(changed[1]) and names[1].isdisjoint(changed[0])


def _changed_names(text: str) -> set[str]:
    """The names that a text assigns, also to elements of, and those that calls may change."""
    statements = ast.parse(text).body
    changed = assigned_names(statements)
    for s in statements_in(statements):
        for target in targets_of(s):
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                changed.add(target.value.id)
        if isinstance(s, ast.Expr):
            changed |= {n.id for n in ast.walk(s) if isinstance(n, ast.Name)}
    return changed
