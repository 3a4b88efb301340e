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

from collections.abc import Iterable, Sequence

from numgrad.codegen.adjoint.backward import Backward, bar
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
from numgrad.codegen.adjoint.text import Line, Texts, joined_lines
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
    function: KernelFunction, operations: Operations, inputs: Sequence[str]
) -> Backward:
    """The backward sweep, with those loops replayed that have loops with tapes in them."""
    replayed: set[KernelLoop] = set()
    impossible: set[KernelLoop] = set()
    while True:
        try:
            backward = Backward(function, operations, inputs, replayed, recomputed_lines)
        except NoReplay as problem:
            replayed = replayed - {problem.loop}
            impossible.add(problem.loop)
            continue
        more: set[KernelLoop] = set()
        for loop in backward.tapes.loops.values():
            around = loop.home.loops()
            if backward.tapes.root(loop) is None and not replayed.intersection(around):
                more |= set([a for a in around if a not in impossible][:1])
        if not more - replayed:
            return backward
        replayed = replayed | more


class ForwardSweep:
    """The forward sweep, which keeps what the backward sweep asks for; alone if there is none."""

    def __init__(self, function: KernelFunction, texts: Texts, backward: Backward | None) -> None:
        self.function, self.texts, self.backward = function, texts, backward
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
        if loop is not None and self.tapes.root(loop) is None:
            return [f"{self.tapes.element(name, loop)} = {name}"]
        return []

    def _cotangents(self, s: Allocate) -> list[Line]:
        """An array of cotangents for one that is made outside of all loops."""
        if self.backward is None or s.home.loop is not None:
            return []
        if not self.backward.has_cotangent(s.array):
            return []
        maker = "growing" if s.maker == "growing" else "zeros"
        return [self.texts.allocation(bar(s.array), Allocate(s.array, maker, s.shape))]

    def _loop(self, s: KernelLoop) -> list[Line]:
        test = self.lines(s.test) if s.test is not None else []
        body = self.lines(s.body)
        keeps = self.backward is not None and self.tapes.root(s) is None
        lines = loop_lines(self.texts, self.tapes, s, body, test, keeps=keeps)
        for c in s.carried:
            lines += self.texts.assignment([c.out], [c.name]) + self._keeping(c.out)
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
