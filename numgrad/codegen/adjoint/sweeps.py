"""Programs of a function: itself, with its gradient, with its tangents, as texts.

Note [Arguments of texts]
-------------------------
Every text takes the function's parameters, the arrays that it captured, and its results, which it
writes. The text with the gradient takes further the cotangents of all arrays of floats, parameters
and results: what they hold at the end is the gradient. For a number it takes an array of one
element, of which it sets the only one. The text with the tangents takes those of all parameters of
floats, numbers and arrays, and of results: what arrays hold at the end are the tangents of results.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from numgrad.codegen.adjoint.activity import Activity
from numgrad.codegen.adjoint.backward import Backward, bar, contributions
from numgrad.codegen.adjoint.fused import fused_loops, in_sequence
from numgrad.codegen.adjoint.liveness import summary_of
from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.placement import Tapes
from numgrad.codegen.adjoint.replay import NoReplay, branch_lines, loop_lines, recomputed_lines
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Define,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
)
from numgrad.codegen.adjoint.text import Line, Texts, joined_lines, zero
from numgrad.codegen.dtypes import numpy_name


def parameters(function: KernelFunction) -> list[str]:
    """The names that each text takes first: Note [Arguments of texts]."""
    return [*function.parameters, *function.constants, *function.results]


def differentiable_arrays(function: KernelFunction) -> list[str]:
    """Arrays of floats among parameters and results, in their order."""
    names = [*function.parameters, *function.results]
    return [n for n in names if n in function.arrays and function.arrays[n].differentiable]


def differentiable_numbers(function: KernelFunction) -> list[str]:
    """Numbers with derivatives among the parameters."""
    return [
        n
        for n in function.parameters
        if n not in function.arrays and function.dtypes[n].kind in "fc"
    ]


def with_derivatives(function: KernelFunction) -> list[str]:
    """Arrays of floats, then numbers with derivatives."""
    return [*differentiable_arrays(function), *differentiable_numbers(function)]


def definition(function: KernelFunction, names: Sequence[str], lines: Iterable[Line]) -> str:
    """A text that defines ``kernel``."""
    return f"def kernel({', '.join(names)}):\n{joined_lines([*lines, 'return'])}\n"


def backward_of(
    function: KernelFunction, operations: Operations, inputs: Sequence[str], *, fuses: bool
) -> Backward:
    """The backward sweep, with those loops replayed that have loops with tapes in them.

    If it ``fuses``, iterations of some loops are reversed at once: Note [Fused sweeps] in
    ``fused``.
    """
    activity = Activity(function, operations, inputs)
    fused = fused_loops(function, operations, activity) if fuses else {}
    replayed: set[KernelLoop] = set()
    impossible: set[KernelLoop] = set()
    while True:
        try:
            backward = Backward(function, operations, activity, replayed, recomputed_lines, fused)
        except NoReplay as problem:
            replayed = replayed - {problem.loop}
            impossible.add(problem.loop)
            continue
        more: set[KernelLoop] = set()
        for loop in backward.tapes.loops.values():
            around = loop.home.loops()
            again = replayed.union(fused).intersection(around)
            if backward.tapes.root(loop) is None and not again:
                more |= set([a for a in around if a not in impossible][:1])
        if not more - replayed:
            return backward
        replayed = replayed | more


class ForwardSweep:
    """The forward sweep, which keeps what the backward sweep asks for; alone if there is none."""

    def __init__(self, function: KernelFunction, texts: Texts, backward: Backward | None) -> None:
        self.function, self.texts, self.backward = function, texts, backward
        self.started: set[str] = set()  # names whose cotangents are zero before a fused loop
        self.tapes = backward.tapes if backward is not None else Tapes(function, texts, set())

    def lines(self, block: Block) -> list[Line]:
        out: list[Line] = []
        for s in block.statements:
            match s:
                case KernelBranch():
                    sides = []
                    for k, side in enumerate((s.then, s.other)):
                        names = [name for name, *_ in s.joined]
                        values = [self.texts.value(values[k]) for _, *values in s.joined]
                        sides.append(self.lines(side) + self.texts.assignment(names, values))
                    if any(sides):
                        out += branch_lines(self.texts.value(s.condition), sides)
                    for name, *_ in s.joined:
                        out += self._keeping(name)
                case KernelLoop():
                    out += self._loop(s)
                case _:
                    out += self._plain(s)
                    if isinstance(s, Define | Load):
                        out += self._keeping(s.name)
                    elif isinstance(s, Allocate):
                        out += self._cotangents(s)
        return out

    def _plain(self, s: KernelStatement) -> list[Line]:
        """A statement without blocks."""
        return [self.texts.statement(s)]

    def _keeping(self, name: str) -> list[Line]:
        """The lines that keep a value that was just computed."""
        loop = self.tapes.loops.get(name)
        if loop is not None and self._keeps(loop):
            return [f"{self.tapes.element(name, loop)} = {name}"]
        return []

    def _keeps(self, loop: KernelLoop) -> bool:
        """Whether this sweep, and no replay, keeps what is kept of a loop."""
        root = self.tapes.root(loop)
        return self.backward is not None and (root is None or root in self.backward.fused)

    def _cotangents(self, s: Allocate) -> list[Line]:
        """An array of cotangents for one that is made outside of loops, or in a fused one."""
        if self.backward is None:
            return []
        if s.home.loop is not None and s.home.loop not in self.backward.fused:
            return []
        if not self.backward.has_cotangent(s.array):
            return []
        maker = "growing" if s.maker == "growing" else "zeros"
        return [self.texts.allocation(bar(s.array), Allocate(s.array, maker, s.shape))]

    def _loop(self, s: KernelLoop) -> list[Line]:
        before: list[Line] = []
        inside = s.body.statements
        words = [d.operation for d in inside if isinstance(d, Define)]
        is_pure = all(isinstance(d, Define | Load) for d in inside)
        if self.backward is None and is_pure and {"tie_count", "tie_share"} & set(words):
            # only derivatives read the number of ties
            return self.texts.assignment(
                [c.out for c in s.carried], [self.texts.value(c.start) for c in s.carried]
            )
        if self.backward is not None and s in self.backward.fused:
            before = [*self._zeros(s, self.backward), *self.backward.fused[s]]
        test = self.lines(s.test) if s.test is not None else []
        body = self.lines(s.body)
        if self.backward is not None and s in self.backward.fused:
            stacks = [f"pos{loop.key}_ = 0" for loop in self.tapes.stacks(s)]
            body = in_sequence(body, self.backward.reversals[s])
            body = [*stacks, *self._defaults(s, body), *body]
        lines = loop_lines(self.texts, self.tapes, s, body, test, keeps=self._keeps(s))
        lines = [*before, *lines]
        for c in s.carried:
            lines += self.texts.assignment([c.out], [c.name]) + self._keeping(c.out)
        return lines

    def _defaults(self, s: KernelLoop, body: list[Line]) -> list[Line]:
        """Zero for what a branch of a fused loop defines and another one, of its reversal, reads.

        That has the same condition; a value set before both shows that no iteration takes it from
        the one before, so that those of ``prange`` may run in parallel.
        """
        read = summary_of(ast.parse(joined_lines(body, 0)).body).reads
        dtypes, outside = self.function.dtypes, (s.body, s.test)
        return [
            f"{name} = {zero(dtypes[name])}"
            for name, home in self.function.homes.items()
            if home.loop is s and home not in outside and name in read
        ]

    def _zeros(self, s: KernelLoop, backward: Backward) -> list[Line]:
        """Zero for cotangents of values from before a fused loop, if it is the first to add."""
        lines: list[Line] = []
        homes = self.function.homes
        for loop, reversal in backward.reversals.items():
            if loop is not s and not loop.home.is_within(s.body):
                continue
            for name in dict.fromkeys(contributions(reversal)):
                if not homes[name].is_within(s.body) and name not in self.started:
                    self.started.add(name)
                    lines.append(f"{bar(name)} = {zero(self.function.dtypes[name])}")
        return lines


def forward_text(function: KernelFunction, operations: Operations) -> str:
    """The function itself."""
    texts = Texts(function, operations)
    lines = ForwardSweep(function, texts, None).lines(function.body)
    return definition(function, parameters(function), lines)


def gradient_text(function: KernelFunction, operations: Operations, backward: Backward) -> str:
    """The joint forward and backward sweep."""
    tapes = backward.tapes
    lines: list[Line] = [
        f"tape_{name} = growing({numpy_name(function.dtypes[name])})"
        for name in sorted(tapes.loops)
    ]
    lines += [f"pos{loop.key}_ = 0" for loop in tapes.stacks(None)]
    lines += ForwardSweep(function, backward.texts, backward).lines(function.body)
    lines += backward.lines
    names, ends = gradient_ends(function, backward)
    return definition(function, [*parameters(function), *names], [*lines, *ends])


def gradient_ends(function: KernelFunction, backward: Backward) -> tuple[list[str], list[Line]]:
    """The names of cotangents that a text takes, and the lines that set those of numbers."""
    names = [bar(name) for name in differentiable_arrays(function)]
    lines: list[Line] = []
    for name in differentiable_numbers(function):
        names.append(f"{name}__o")
        if name in backward.touched:
            lines.append(f"{name}__o[0] = {bar(name)}")
    return names, lines
