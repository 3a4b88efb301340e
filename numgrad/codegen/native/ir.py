"""Text of LLVM's language: modules, functions, blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numgrad.errors import NumgradError

LONG = 400
"""Instructions of a function from which on LLVM translates it as it stands, if the text is long:
half the time to compile, up to a fifth more to run."""
MOST_SCOPES = 64
"""Arrays up to which LLVM is told that they lie apart: each access names all others."""


class Unsupported(NumgradError):
    """What the native compiler does not translate; Numba does."""


class ModuleText:
    """Functions, what they declare, and constants.

    Attributes
    ----------
    long, very_long
        Whether little is to be written twice, because LLVM would take long; and whether it is to
        translate long functions as they stand.
    least_masked
        Bytes of the smallest elements of which the CPU reads and writes those that a mask names.
    """

    def __init__(
        self, *, long: bool = False, very_long: bool = False, least_masked: int = 4
    ) -> None:
        self.long, self.very_long, self.least_masked = long, very_long, least_masked
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.constants: dict[str, str] = {}
        self.metadata: list[str] = []
        self.known_functions: dict[Any, Any] = {}
        self.written: dict[Any, int] = {}
        self.outlined: dict[str, Any] = {}
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


class FunctionWriter:
    """The instructions of one function, block after block.

    Equal instructions without effects are written once, as long as the first dominates: ``inside``
    ends what a branch or a loop has made.
    """

    def __init__(
        self, module: ModuleText, name: str, parameters: Sequence[tuple[str, str]]
    ) -> None:
        self.module, self.name, self.parameters = module, name, parameters
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.block = "entry"
        self.ended = False
        self.flags = ""
        self.contract = ""
        self._count = 0
        self._known: dict[str, str] = {}
        self._made: list[str] = []
        self._labels = 0
        self._domain: str | None = None
        self._scopes: dict[int, str] = {}
        self._accesses: dict[int, str] = {}

    # ---------------------------------------------------------------------------- instructions

    def fresh(self) -> str:
        """A name for a value."""
        self._count += 1
        return f"%v{self._count}"

    def pure(self, text: str) -> str:
        """The value of an instruction without effects that depends on its operands alone."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self.fresh()
            self._made.append(text)
            self.lines.append(f"  {found} = {text}")
        return found

    def value(self, text: str) -> str:
        """The value of an instruction that depends on memory."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def effect(self, text: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {text}")

    def slot(self, kind: str, first: str | None = None) -> str:
        """Memory on the stack, for a variable."""
        name = f"%s{len(self.slots)}"
        self.slots.append(f"  {name} = alloca {kind}")
        if first is not None:
            self.slots[-1] += f"\n  store {kind} {first}, ptr {name}"
        return name

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget what was written since ``mark``."""
        lines, made = mark
        del self.lines[lines:]
        self._forget(made)

    def mark(self) -> tuple[int, int]:
        """Where the function stands."""
        return len(self.lines), len(self._made)

    def _forget(self, made: int) -> None:
        for text in self._made[made:]:
            del self._known[text]
        del self._made[made:]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Blocks that do not dominate what follows."""
        made = len(self._made)
        yield
        self._forget(made)

    # ---------------------------------------------------------------------------------- blocks

    def label(self, stem: str) -> str:
        """A name for a block."""
        self._labels += 1
        return f"{stem}.{self._labels}"

    def start(self, label: str) -> None:
        """Begin a block."""
        if not self.ended:
            self.effect(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.block, self.ended = label, False

    def begin(self, label: str) -> None:
        """Begin a block that only branches lead to."""
        self.lines.append(f"{label}:")
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
        """Metadata of an access to one of ``count`` arrays that do not overlap."""
        found = self._accesses.get(number)
        if found is None:
            found = self._accesses[number] = self._access(number, count)
        return found

    def _access(self, number: int, count: int) -> str:
        if count > MOST_SCOPES:
            return ""
        module = self.module
        if self._domain is None:
            self._domain = module.node(f'distinct !{{!"{self.name}"}}')
        for k in range(count):
            if k not in self._scopes:
                self._scopes[k] = module.node(f'distinct !{{!"numgrad array {k}", {self._domain}}}')
        own = module.node(f"!{{{self._scopes[number]}}}")
        others = ", ".join(self._scopes[k] for k in range(count) if k != number)
        text = f", !alias.scope {own}"
        return f"{text}, !noalias {module.node(f'!{{{others}}}')}" if others else text

    def text(self, result: str, linkage: str = "private ") -> str:
        """The function."""
        given = ", ".join(f"{kind} {name}" for kind, name in self.parameters)
        flags = self.flags
        if self.module.very_long and len(self.lines) > LONG:
            flags = "noinline optnone "
        head = f"define {linkage}{result} @{self.name}({given}) #0 {flags}{{\nentry:"
        body = self.lines
        if not self.ended:
            body = [*body, "  unreachable"]
        return "\n".join([head, *self.slots, *body, "}"])
