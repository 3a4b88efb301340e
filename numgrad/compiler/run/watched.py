"""Watching compiled programs run: what a program calls is exchanged for as long as it is watched.

The function around the kernels is held by dispatchers and by tapes, so it stays and gets other
code, which calls a copy of it that is watched; kernels and segments it finds by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from numgrad.codegen.locks import ENTRIES
from numgrad.compiler.run.program import PROGRAMS, KernelProgram
from numgrad.compiler.run.steps import KernelStep, Segment
from numgrad.errors import generated


class ProgramWatch(NamedTuple):
    """Functions that watch: each makes, of a function, one to be called in its place.

    Attributes
    ----------
    run
        ``run(program, function)``, for the whole of a program.
    segment
        ``segment(program, segment, function)``
    kernel
        ``kernel(program, step, skipped, function)``; of the arguments the first ``skipped`` are not
        the kernel's.
    """

    run: Callable[..., Any]
    segment: Callable[..., Any]
    kernel: Callable[..., Any]


_watch: ProgramWatch | None = None
_plain: WeakKeyDictionary[KernelProgram, dict[str, Any]] = WeakKeyDictionary()
"""Functions that watched programs called before, and their code."""


def watch(how: ProgramWatch | None) -> None:
    """ProgramWatch all programs from now on, or with None no longer."""
    global _watch
    with ENTRIES:
        _watch = how
        for program in list(PROGRAMS):
            recode(program)


def recode(program: KernelProgram) -> None:
    """Let a program be watched, if programs are, and else not."""
    with ENTRIES:
        names = program._namespace
        plain = _plain.pop(program, None)
        if plain is not None:
            code = program.run.__code__ = plain.pop("watched")
            # a call in another thread may be just before it
            names.update(plain, watched=FunctionType(code, names, "run"))
            plain.clear()
        if _watch is None or not isinstance(program.run, FunctionType):
            return
        code = program.run.__code__
        plain = _plain[program] = {name: names[name] for name, *_ in _calls(program)}
        for name, step, skipped in _calls(program):
            if isinstance(step, Segment):
                names[name] = _watch.segment(program, step, names[name])
            else:
                called = _Replacing(names, name, plain)
                names[name] = called.watched = _watch.kernel(program, step, skipped, called)
        names["watched"] = _watch.run(program, FunctionType(code, names, "run"))
        plain["watched"] = code
        parameters = ", ".join(code.co_varnames[: code.co_argcount])
        scope: dict[str, Any] = {}
        source = f"def run({parameters}):\n    return watched({parameters})\n"
        exec(compile(source, generated("watched program"), "exec"), scope)
        program.run.__code__ = scope["run"].__code__


def _calls(program: KernelProgram) -> Iterator[tuple[str, KernelStep | Segment, int]]:
    """Names that a program calls, what is behind each, and arguments before the kernel's own."""
    kernels = 0
    for position, step in enumerate(program.steps):
        if isinstance(step, Segment):
            yield f"s{position + 1}", step, 0
        else:
            yield f"k{kernels}", step, 0
            yield f"launch{kernels}", step, 2
            kernels += 1


class _Replacing:
    """A function that may replace itself by another, as one does that compiles a kernel first."""

    def __init__(self, names: dict[str, Any], name: str, plain: dict[str, Any]) -> None:
        self.names, self.name, self.plain = names, name, plain
        self.watched: Any = None

    def __call__(self, *arguments: Any) -> None:
        (self.plain.get(self.name) or self.names[self.name])(*arguments)
        current = self.names[self.name]
        if current is not self.watched and self.name in self.plain:
            self.plain[self.name], self.names[self.name] = current, self.watched
