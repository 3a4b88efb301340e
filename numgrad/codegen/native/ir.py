"""Text of LLVM's language: modules, functions, blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

from numgrad.errors import NumgradError

LONG = 400
"""Instructions of a function from which on LLVM translates it as it stands, if the text is long:
half the time to compile, a fifth to a half more to run."""
STRAIGHT = 200
"""The same for each of its loops, in which a processor spends more time than LLVM."""
LONG_BLOCK, BLOCK = 1000, 32
"""Instructions of a block of such a function from which on it becomes blocks of so many: LLVM's
allocation of registers takes long where a block has thousands, whose order it is free to change."""


_NAMES = re.compile(r"%[\w.]+")


class Unsupported(NumgradError):
    """A text that the native compiler does not translate; Numba does."""


class ModuleText:
    """Functions, what they declare, and constants.

    Attributes
    ----------
    long, very_long
        Whether little is to be written twice, because LLVM would take long; and whether it is to
        translate long functions as they stand.
    least_masked
        Bytes of the smallest elements of which the CPU reads and writes those that a mask names.
    wide
        Whether a vector of the CPU is as long as a line of its caches.
    check_bounds
        Whether indices are compared with the lengths of arrays: Note [Bounds] in ``memory``.
    workspace
        Whether memory comes from a caller: Note [Workspaces] in ``workspace``.
    scalar_loops
        Innermost loops without branches that are not in vectors: by the name of their index, why.
    """

    def __init__(
        self,
        *,
        long: bool = False,
        very_long: bool = False,
        least_masked: int = 4,
        wide: bool = False,
        check_bounds: bool = False,
        workspace: bool = False,
    ) -> None:
        self.long, self.very_long, self.least_masked = long, very_long, least_masked
        self.wide, self.check_bounds, self.workspace = wide, check_bounds, workspace
        self.scalar_loops: dict[str, str] = {}
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.constants: dict[str, str] = {}
        self.metadata: list[str] = []
        self.known_functions: dict[Any, Any] = {}
        self.written: dict[Any, int] = {}
        self.outlined: dict[tuple, Any] = {}
        self._names: dict[str, int] = {}

    def unique(self, stem: str) -> str:
        """A name that no other function of the module has."""
        count = self._names[stem] = self._names.get(stem, 0) + 1
        return stem if count == 1 else f"{stem}.{count}"

    def declare(self, name: str, result: str, parameters: Sequence[str]) -> str:
        """A function defined elsewhere; its name as an operand."""
        self.declarations[name] = f"declare {result} @{name}({', '.join(parameters)})"
        return f"@{name}"

    def constant(self, text: str) -> str:
        """The name of a constant in memory, given by its type and value."""
        return self.constants.setdefault(text, f"@constant.{len(self.constants)}")

    def node(self, text: str) -> str:
        """A node of metadata."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    def text(self) -> str:
        """The module; ``machine`` adds the attributes of its functions."""
        lines = [f"{name} = private constant {text}" for text, name in self.constants.items()]
        lines += self.declarations.values()
        lines += self.functions
        lines += [f"!{k} = {text}" for k, text in enumerate(self.metadata)]
        return "\n".join(lines) + "\n"


class Note(NamedTuple):
    """Record of a line written: a ``pure`` instruction, a ``value``, an ``effect``, or another."""

    kind: str
    text: str = ""
    least: int = 0
    made: str = ""


class FunctionWriter:
    """The instructions of one function, block after block.

    Equal instructions without effects are written once, as long as the first dominates: ``inside``
    ends what a branch or a loop has made. In loops (``repeated``) they are written before the
    outermost loop that makes none of their operands, so LLVM need not look for what to move there.

    Attributes
    ----------
    failed
        Address of the flag that says that something failed; empty in functions that need none.
    fails, lacks
        Whether some block leads to ``nothing``, which returns without a result, or to ``missing``,
        where memory ran out.
    statement
        What is being translated, for reports.
    """

    def __init__(
        self, module: ModuleText, name: str, parameters: Sequence[tuple[str, str]]
    ) -> None:
        self.module, self.name, self.parameters = module, name, parameters
        self.slots: list[str] = []
        self._lines: list[str | list[str]] = []
        self._before: list[list[str]] = []  # what is written before each loop around
        self._depths: dict[str, int] = {}  # of values made in loops
        self.block = "entry"
        self.ended = False
        self.flags = ""
        self.contract = ""
        self._count = 0
        self._known: dict[str, str] = {}
        self._made: list[tuple[str, int]] = []
        self._labels = 0
        self._domain: str | None = None
        self._scopes: list[tuple[str, str]] = []
        self._accesses: dict[int, str] = {}
        self.notes: list[Note] | None = None
        self.failed = self.statement = ""
        self.loops = 0
        self.fails = self.lacks = False

    @property
    def lines(self) -> list[str]:
        """All instructions and labels, in order."""
        lines: list[str] = []
        for line in self._lines:
            if isinstance(line, list):
                lines += line
            else:
                lines.append(line)
        return lines

    @lines.setter
    def lines(self, lines: list[str]) -> None:
        self._lines = [*lines]

    # ---------------------------------------------------------------------------- instructions

    def fresh(self) -> str:
        """A name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def pure(self, text: str, least: int = 0) -> str:
        """The value of an instruction without effects that depends on its operands alone.

        It is not written further out than in ``least`` loops.
        """
        name = self._known.get(text)
        if name is None:
            name = self._known[text] = self.fresh()
            depth = loops = len(self._before)
            # what may be contracted stays beside what it goes with, and registers last longer
            # than LLVM takes time to look at very long functions
            if loops and not self.module.very_long and " contract " not in text:
                depths = self._depths
                depth = max((depths.get(x, 0) for x in _NAMES.findall(text)), default=0)
                depth = max(depth, least)
            self._write(name, text, depth)
            self._made.append((text, depth))
        if self.notes is not None:
            self.notes.append(Note("pure", text, least, name))
        return name

    def _write(self, name: str, text: str, depth: int) -> None:
        before = self._before
        lines = before[depth] if depth < len(before) else self._lines
        lines.append(f"  {name} = {text}")
        if depth:
            self._depths[name] = depth

    def value(self, text: str) -> str:
        """The value of an instruction that depends on memory."""
        name = self.fresh()
        self._write(name, text, len(self._before))
        if self.notes is not None:
            self.notes.append(Note("value", text, 0, name))
        return name

    def define(self, name: str, text: str) -> None:
        """Make an instruction the value of a name that ``fresh`` has given."""
        self._write(name, text, len(self._before))
        self.note_other()

    def effect(self, text: str) -> None:
        """An instruction without a value."""
        self._lines.append(f"  {text}")
        if self.notes is not None:
            self.notes.append(Note("effect", text))

    def note_other(self) -> None:
        """Note what is not to be repeated as it stands."""
        if self.notes is not None:
            self.notes.append(Note("other"))

    def slot(self, kind: str, first: str | None = None) -> str:
        """Memory on the stack, for a variable."""
        self.note_other()
        name = f"%s{len(self.slots)}"
        self.slots.append(f"  {name} = alloca {kind}")
        if first is not None:
            self.slots[-1] += f"\n  store {kind} {first}, ptr {name}"
        return name

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Forget what was written since ``mark``."""
        lines, made, loops = mark
        del self._lines[lines:], self._before[loops:]
        self._forget(made)

    def mark(self) -> tuple[int, int, int]:
        """Where the function stands."""
        return len(self._lines), len(self._made), len(self._before)

    def _forget(self, made: int) -> None:
        """Forget what was made since ``made``, but what is written before the loops around."""
        kept, depth = [], len(self._before)
        for each in self._made[made:]:
            if each[1] < depth:
                kept.append(each)
            else:
                del self._known[each[0]]
        self._made[made:] = kept

    @property
    def depth(self) -> int:
        """How many loops are around."""
        return len(self._before)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Blocks that do not dominate what follows."""
        made = len(self._made)
        yield
        self._forget(made)

    @contextmanager
    def repeated(self, head: str) -> Iterator[None]:
        """Blocks of a loop, which begins with ``head``."""
        self.loops += 1
        before: list[str] = []
        self._lines.append(before)
        self.start(head)
        self._before.append(before)
        with self.inside():
            yield
        self._before.pop()

    # ---------------------------------------------------------------------------------- blocks

    def label(self, stem: str) -> str:
        """A name for a block."""
        self.note_other()
        self._labels += 1
        return f"{stem}.{self._labels}"

    def start(self, label: str) -> None:
        """Begin a block."""
        if not self.ended:
            self.effect(f"br label %{label}")
        self._lines.append(f"{label}:")
        self.block, self.ended = label, False

    def begin(self, label: str) -> None:
        """Begin a block that only branches lead to."""
        self._lines.append(f"{label}:")
        self.block, self.ended = label, False

    def jump(self, label: str) -> None:
        """End a block."""
        if not self.ended:
            self.effect(f"br label %{label}")
            self.ended = True

    def branch(self, condition: str, true: str, false: str) -> None:
        """End a block, in one of two ways."""
        if not self.ended:
            self.effect(f"br i1 {condition}, label %{true}, label %{false}")
            self.ended = True

    def leave(self, text: str) -> None:
        """Return."""
        if not self.ended:
            self.effect(text)
            self.ended = True

    # ------------------------------------------------------------------------------ alias scopes

    def scope(self, number: int, count: int) -> str:
        """Metadata of an access to one of ``count`` arrays that do not overlap, if it is one."""
        metadata = self._accesses.get(number)
        if metadata is None:
            metadata = self._accesses[number] = self._access(number, count)
        return metadata

    def _access(self, number: int, count: int) -> str:
        """Scopes of the bits of an array's number, a domain for each bit, and one that names it.

        LLVM takes two accesses for apart if in some domain all scopes of one are among those that
        the other does not alias: numbers that differ do in a bit, so few scopes tell many apart.
        """
        if number >= count:
            return ""
        module, others = self.module, []
        if self._domain is None:
            self._domain = module.node(f'distinct !{{!"{self.name}"}}')
        own = [module.node(f'distinct !{{!"numgrad array {number}", {self._domain}}}')]
        for bit in range((count - 1).bit_length()):
            if bit == len(self._scopes):
                domain = module.node(f'distinct !{{!"{self.name}, bit {bit}"}}')
                zero, one = (f'distinct !{{!"{x}", {domain}}}' for x in "01")
                self._scopes.append((module.node(zero), module.node(one)))
            is_one = number >> bit & 1
            own.append(self._scopes[bit][is_one])
            others.append(self._scopes[bit][1 - is_one])
        own, others = (module.node(f"!{{{', '.join(listed)}}}") for listed in (own, others))
        return f", !alias.scope {own}" + (f", !noalias {others}" if count > 1 else "")

    def text(self, result: str, linkage: str = "private ") -> str:
        """The function."""
        given = ", ".join(f"{kind} {name}" for kind, name in self.parameters)
        flags, body = self.flags, self.lines
        if self.module.very_long and len(body) > max(LONG, STRAIGHT * self.loops):
            flags, body = "noinline optnone ", _in_short_blocks(body)
        head = f"define {linkage}{result} @{self.name}({given}) #0 {flags}{{\nentry:"
        if not self.ended:
            body = [*body, "  unreachable"]
        return "\n".join([head, *self.slots, *body, "}"])


def _in_short_blocks(lines: list[str]) -> list[str]:
    """The instructions of a function in blocks of a limited length."""
    # a phi names the blocks before it; what may be contracted stays beside what it goes with
    if any(" = phi " in line or " contract " in line for line in lines):
        return lines
    blocks: list[str] = []
    labels = [k for k, line in enumerate(lines) if not line.startswith("  ")]
    for first, last in pairwise([0, *labels, len(lines)]):
        step = BLOCK if last - first > LONG_BLOCK else last - first
        for start in range(first, last, max(step, 1)):
            if start > first and not lines[start].startswith(("  br ", "  ret ")):
                blocks += [f"  br label %block.{start}", f"block.{start}:"]
            blocks += lines[start : min(start + step, last)]
    return blocks
