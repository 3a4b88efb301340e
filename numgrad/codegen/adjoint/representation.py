"""The loop representation: blocks of statements in single-assignment form.

Note [Values]
-------------
A ``Value`` is a number, the name of a scalar, or, for integers and truths that no memory access
makes, an ``Expression`` of such. Every name is assigned by one statement, once in each run of its
block. What a loop carries from one iteration to the next has a name of its own, assigned before the
loop and at the end of each iteration (``Carried``); a ``KernelBranch`` joins values of two sides
in a new name. So nothing but these, and elements of arrays, ever changes.

What a function returns it stores in arrays of its own, ``result0`` and further ones, of one element
for a number: outputs and arrays that are overwritten are the same thing for all that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64
from numgrad.dataclass import dataclass

COMPLEX128 = np.dtype("complex128")


class Expression(NamedTuple):
    """An integer or truth that follows from others: ``("+", ("i", 1))``.

    ``("shape", (array, axis))`` is the length of an axis, ``("wrap", (index, length))`` an index
    that may count from the end.
    """

    operation: str
    operands: tuple[Any, ...]


Value = bool | int | float | complex | str | Expression
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_TRUTHS = (*COMPARISONS, "not", "and", "or", "bool")


@dataclass(eq=False)
class Block:
    """Statements that run one after the other.

    Attributes
    ----------
    loop
        The loop of whose iterations it is a part; None outside of all.
    parent
        The block around it.
    """

    loop: KernelLoop | None = None
    parent: Block | None = None
    statements: list[KernelStatement] = field(default_factory=list)

    def loops(self) -> list[KernelLoop]:
        """The loops around, outermost first."""
        around: list[KernelLoop] = []
        loop = self.loop
        while loop is not None:
            around.append(loop)
            loop = loop.home.loop
        return around[::-1]

    def is_within(self, outer: Block) -> bool:
        """Whether this is the block or one inside of it."""
        block: Block | None = self
        while block is not None:
            if block is outer:
                return True
            block = block.parent
        return False


@dataclass(eq=False, kw_only=True)
class KernelStatement:
    """A step of a program.

    Attributes
    ----------
    home, place, line
        The block it is in; its number in the order of the text; the user's line.
    """

    home: Block = field(default_factory=Block, repr=False)
    place: int = 0
    line: int = 0


@dataclass(eq=False)
class Define(KernelStatement):
    """``name = operation(*operands)``, of scalars of one dtype."""

    name: str
    operation: str
    operands: tuple[Value, ...]


@dataclass(eq=False)
class Load(KernelStatement):
    """``name = array[index]``.

    Attributes
    ----------
    copy
        An array, and an index into it, where the same value is and is never overwritten; the
        backward sweep reads it there.
    """

    name: str
    array: str
    index: tuple[Value, ...]
    copy: tuple[str, tuple[Value, ...]] | None = None


@dataclass(eq=False)
class Store(KernelStatement):
    """``array[index] = value``, or ``+=`` with ``add``."""

    array: str
    index: tuple[Value, ...]
    value: Value
    add: bool = False


@dataclass(eq=False)
class Allocate(KernelStatement):
    """``array = np.<maker>(shape)``."""

    array: str
    maker: str
    shape: tuple[Value, ...]


@dataclass(eq=False)
class Ensure(KernelStatement):
    """Make room in a growing vector for at least ``length`` elements."""

    array: str
    length: Value


@dataclass(eq=False)
class Carried:
    """A value that a loop carries from one iteration to the next.

    Attributes
    ----------
    name, out
        What it is called inside of the loop, and after it.
    """

    name: str
    start: Value
    end: Value = 0
    out: str = ""

    @property
    def moves(self) -> bool:
        """Whether iterations change it."""
        return self.end != self.name

    @property
    def step(self) -> int | None:
        """By how much each iteration changes an integer, if by a constant."""
        end = self.end
        if isinstance(end, Expression) and end.operation in "+-" and end.operands[0] == self.name:
            step = end.operands[1]
            if isinstance(step, int) and not isinstance(step, bool):
                return step if end.operation == "+" else -step
        return None


@dataclass(eq=False)
class KernelBranch(KernelStatement):
    """``if condition``, whose sides give values to the names in ``joined``."""

    condition: Value
    then: Block
    other: Block
    joined: list[tuple[str, Value, Value]] = field(default_factory=list)


@dataclass(eq=False)
class KernelLoop(KernelStatement):
    """``for variable in range(low, high, step)``, or a while loop if ``test`` is a block.

    Attributes
    ----------
    at_most
        A bound of a while loop's iterations, if one is known; ``variable`` counts these.
    parallel
        Whether it was written with ``prange``.
    key
        Its number, by which texts call what belongs to it.
    """

    variable: str
    low: Value
    high: Value
    step: Value
    body: Block
    parallel: bool = False
    carried: list[Carried] = field(default_factory=list)
    test: Block | None = None
    condition: Value = True
    at_most: Value | None = None
    key: int = 0

    @property
    def count(self) -> str:
        """The name, after the loop, of how often a while loop ran."""
        return next(c.out for c in self.carried if c.name == self.variable)


@dataclass(eq=False)
class KernelArray:
    """An array that a program knows.

    Attributes
    ----------
    role
        "argument", "local", "result" or "constant".
    home
        Where a local one is allocated.
    shape
        Its lengths where an expression says them, else empty.
    grows
        Whether it is a vector that ``Ensure`` makes longer.
    """

    name: str
    dtype: np.dtype
    ndim: int
    role: str
    home: Block | None = None
    shape: tuple[Value, ...] = ()
    grows: bool = False

    @property
    def differentiable(self) -> bool:
        return self.dtype.kind in "fc"


class CallCheck(NamedTuple):
    """A condition that the arguments of a call must fulfil.

    Attributes
    ----------
    condition
        What must be true, if it follows from arguments.
    message, operands
        The message, with places for these values.
    error
        The class of the error, by default ``NumgradValueError``.
    """

    condition: Value
    message: str
    operands: tuple[Value, ...] = ()
    error: type[Exception] | None = None


@dataclass(eq=False)
class KernelFunction:
    """A function for arguments of known dtypes and ranks.

    Attributes
    ----------
    parameters
        Names of arguments in their order, arrays and scalars.
    results
        Names of the arrays that hold what it returns; ``scalars`` those of them that hold a number.
    dtypes, homes
        The dtype of each scalar name, and the block in which it has its value.
    constants
        Arrays that it captured, by name.
    checks
        What is looked at when it is called.
    failures
        What the kernel itself looks at, where calls cannot know it: messages, in the order of the
        elements of the result ``failed``, which count how often it was not so.
    written
        Parameters that it overwrites, and results that are parameters of the user's function and
        start with zeros, in the order of the outputs.
    """

    name: str
    parameters: list[str]
    arrays: dict[str, KernelArray]
    dtypes: dict[str, np.dtype]
    homes: dict[str, Block]
    body: Block
    results: list[str] = field(default_factory=list)
    scalars: set[str] = field(default_factory=set)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    checks: list[CallCheck] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed: str = ""

    def dtype_of(self, value: Value) -> np.dtype:
        """The dtype of a value."""
        return dtype_of(value, self.dtypes)

    def is_real_or_complex(self, name: Any) -> bool:
        """Whether a name is that of a scalar with derivatives."""
        return isinstance(name, str) and self.dtypes[name].kind in "fc"


def dtype_of(value: Value, dtypes: dict[str, np.dtype]) -> np.dtype:
    """The dtype of a value, given those of names."""
    if isinstance(value, str):
        return dtypes[value]
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    if isinstance(value, float):
        return FLOAT64
    if isinstance(value, complex):
        return COMPLEX128
    return BOOL if value.operation in _TRUTHS else INT64


def names_in(value: Any) -> list[str]:
    """The names of scalars in a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Expression) and value.operation != "shape":
        return [name for part in value.operands for name in names_in(part)]
    return []


def affine(value: Value) -> tuple[Any, int] | None:
    """``(name or length, constant)`` of a sum of such, ``(None, constant)`` of a number."""
    if isinstance(value, bool | float | complex):
        return None
    if isinstance(value, int):
        return None, value
    if isinstance(value, str):
        return value, 0
    if value.operation == "shape":
        return value, 0
    if value.operation in ("+", "-"):
        left, right = affine(value.operands[0]), affine(value.operands[1])
        if left is not None and right is not None:
            if right[0] is None:
                return left[0], left[1] + (right[1] if value.operation == "+" else -right[1])
            if left[0] is None and value.operation == "+":
                return right[0], left[1] + right[1]
    return None


def add(a: Value, b: Value) -> Value:
    """The sum of two integers."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(b, int) and not isinstance(b, bool):
        if b == 0:
            return a
        known = affine(a)
        if known is not None and known[0] is not None and isinstance(a, Expression):
            total = known[1] + b
            if total == 0:
                return known[0]
            return Expression("+" if total > 0 else "-", (known[0], abs(total)))
        return Expression("+" if b > 0 else "-", (a, abs(b)))
    if isinstance(a, int):
        return add(b, a)
    return Expression("+", (a, b))


def subtract(a: Value, b: Value) -> Value:
    """The difference of two integers."""
    if isinstance(b, int):
        return add(a, -b)
    if a == b:
        return 0
    return Expression("-", (a, b))


def multiply(a: Value, b: Value) -> Value:
    """The product of two integers."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 1:
        return b
    if b == 1:
        return a
    return Expression("*", (a, b))


def walk(block: Block) -> Iterator[KernelStatement]:
    """All statements of a block and of those inside, in the order of the text."""
    for statement in block.statements:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def blocks_of(statement: KernelStatement) -> tuple[Block, ...]:
    """The blocks inside of a statement."""
    if isinstance(statement, KernelBranch):
        return statement.then, statement.other
    if isinstance(statement, KernelLoop):
        return (statement.body,) if statement.test is None else (statement.test, statement.body)
    return ()


def map_values(statement: KernelStatement, change: Callable[[Any], Any]) -> None:
    """Change the values that a statement reads before blocks inside of it."""

    def changed(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([change(v) for v in values])

    match statement:
        case Define():
            statement.operands = changed(statement.operands)
        case Load():
            statement.index = changed(statement.index)
        case Store():
            statement.index, statement.value = changed(statement.index), change(statement.value)
        case Allocate():
            statement.shape = changed(statement.shape)
        case Ensure():
            statement.length = change(statement.length)
        case KernelBranch():
            statement.condition = change(statement.condition)
        case KernelLoop():
            loop = statement
            loop.low, loop.high, loop.step = changed((loop.low, loop.high, loop.step))
            loop.at_most = change(loop.at_most)
            for c in loop.carried:
                c.start = change(c.start)


def map_ends(statement: KernelStatement, change: Callable[[Any], Any]) -> None:
    """Change the values that a statement reads at the end of blocks inside of it."""
    if isinstance(statement, KernelBranch):
        statement.joined = [(name, change(a), change(b)) for name, a, b in statement.joined]
    elif isinstance(statement, KernelLoop):
        statement.condition = change(statement.condition)
        for c in statement.carried:
            c.end = change(c.end)


def values_of(statement: KernelStatement) -> tuple[Value, ...]:
    """The values that a statement itself reads, not those of blocks inside."""
    match statement:
        case Define():
            return statement.operands
        case Load():
            return statement.index if statement.copy is None else statement.copy[1]
        case Store():
            return (*statement.index, statement.value)
        case Allocate():
            return statement.shape
        case Ensure():
            return (statement.length,)
        case KernelBranch():
            sides = [v for _, *values in statement.joined for v in values]
            return (statement.condition, *sides)
        case KernelLoop():
            carried = [v for c in statement.carried for v in (c.start, c.end)]
            return (statement.low, statement.high, statement.step, statement.condition, *carried)
    return ()
