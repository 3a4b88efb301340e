"""Numbers around a function that have changed from trace to trace, as inputs of the graph.

Note [Promoted numbers]
-----------------------
A floating number that a function reads around itself is part of what is compiled, and another one
has it compiled again. One that has had two values already is *promoted* at the third: the trace
has a Tensor in its place, as it has for arguments that are numbers, and each call reads the number
(Note [Substituted numbers]). The compiled function must do what it would
do with the number. So whatever asks for the number ends such a trace: branches, lengths, texts,
functions of ``math``. What NumPy and Python compute of numbers alone is refused too, except for
sums and products, since Python raises errors and gives complex numbers where NumPy has infinity and
NaN. The place is then never promoted again, and the function is traced with the number, as before.

Note [Substituted numbers]
--------------------------
A trace that has a stand-in for a number around the function must find it where the code reads it,
while other threads go on to read the number. So nothing is written into variables. Functions that
read an enclosed variable or a global are copied with other cells and globals, and so is what leads
to them from the function that is traced: functions, and what transforms made of such. The copies
are of this trace alone. If something else leads to such a function too, such as a list, an object
or a class, its code could read the number itself, and the place is left as it is. For an attribute
of an object its class has a descriptor for the time of the trace, which gives the stand-in to the
thread that traces and the number to others.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from inspect import getattr_static
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.captures import Captures
from numgrad.compiler.call.source import VALUE, Source, is_atom
from numgrad.compiler.graph.graph import INPUT, Graph, Value
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.core.bytecode import facts
from numgrad.core.op import Op
from numgrad.core.wrappers import FunctionWrapper
from numgrad.errors import NumgradTraceError, NumgradTypeError
from numgrad.libraries import is_users_module

_ALONE = {
    *("add", "conjugate", "multiply", "negative", "positive", "subtract"),
    *("detached", "unrecorded"),
}
"""Operations on numbers alone that Python and NumPy do alike."""

_become: Any = object.__dict__["__class__"].__set__


class PromotedNumber(Tensor):
    """A Tensor in place of a number around a function, or of what is computed of such alone."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise _refusal("hash()")

    def __repr__(self) -> str:
        raise _refusal("repr()")

    def __str__(self) -> str:
        raise _refusal("str()")

    def __format__(self, spec: str) -> str:
        raise _refusal("format()")

    def __float__(self) -> float:
        raise _refusal("float()")

    def __int__(self) -> int:
        raise _refusal("int()")

    def __complex__(self) -> complex:
        raise _refusal("complex()")

    def __index__(self) -> int:
        raise _refusal("an index")

    def __bool__(self) -> bool:
        raise _refusal("bool()")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.copy:  # which makes NumPy's number of Python's
            raise _refusal("copy")
        return super().__array_function__(func, types, args, kwargs)


class _Active(threading.local):
    """The promotion of the trace that is under way in a thread."""

    promotion: Promotion | None = None


_active = _Active()


def _refusal(what: str) -> NumgradTraceError:
    """The error of code that asks for the number, which ends the trace also if it is caught."""
    error = NumgradTraceError(f"{what}: the number around the function is not known in this trace")
    if _active.promotion is not None:
        _active.promotion.error = error
    return error


class Promotion:
    """The Tensors in place of numbers around a function, in one trace."""

    def __init__(self, tracer: Any, substitution: Substitution) -> None:
        self.numbers: dict[Key, Tensor] = {}
        self.error: NumgradTraceError | None = None
        self._alone: dict[Value, bool] = {}
        self._computed: list[Tensor] = []
        for key, source in substitution.sources.items():
            number = source.value
            if type(number) is float:
                tensor = tracer.number(number)
            else:
                tensor = tracer.array((), number.dtype, scalar=True)
            self.numbers[key] = tensor
            value = tracer.value(tensor)
            tracer.numbers[value] = number
            self._alone[value] = True
        self._given = list(self._alone)

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Make the Tensors refuse to be taken for other than numbers."""
        around, _active.promotion = _active.promotion, self
        try:
            for tensor in self.numbers.values():
                _become(tensor, PromotedNumber)
            yield
        finally:
            _active.promotion = around
            for tensor in (*self.numbers.values(), *self._computed):
                _become(tensor, Tensor)

    def mark(self, result: Any) -> None:
        """Make the result of an operation on numbers alone refuse the same."""
        array = result._array if type(result) is Tensor else None
        if isinstance(array, TracedArray) and self.is_alone(array.value):
            _become(result, PromotedNumber)
            self._computed.append(result)

    def check(self, op: Op, arrays: Iterable[Any]) -> None:
        """Raise for an operation on numbers alone that Python might do in another way."""
        values = [a.value for a in arrays if isinstance(a, TracedArray)]
        alone = all(v.weak or self.is_alone(v) for v in values)
        if values and alone and op.name not in _ALONE:
            raise _refusal(op.name)

    def check_results(self, graph: Graph, results: list[Value]) -> None:
        """Raise if a function returns what NumPy computes of numbers alone, or caught a refusal.

        The same for a number that it read nowhere, or not where it was expected to.
        """
        if self.error is not None:
            raise self.error
        used = {v for node in graph.nodes for v in node.inputs}.union(results)
        if not used.issuperset(self._given):
            raise _refusal("use")
        for value in results:
            if not value.weak and self.is_alone(value):
                raise _refusal("return")

    def is_alone(self, value: Value) -> bool:
        """Whether a value depends on nothing but promoted numbers, and on one of them."""
        cached = self._alone.get(value)
        if cached is None:
            inputs = value.node.inputs
            known = [self.is_alone(v) for v in inputs if v.constant is None]
            cached = value.node.op != INPUT and bool(known) and all(known)
            self._alone[value] = cached
        return cached


# -------------------------------------------------------------------------------- substitution


Key = tuple[int, str]

_UNKNOWN = {
    *("__class__", "__closure__", "__code__", "__dict__", "__globals__", "__self__", "eval"),
    *("exec", "getattr_static", "globals", "id", "isinstance", "isscalar", "locals", "setattr"),
    *("suppress", "type", "vars", "issubclass", "callable", "object", "inspect", "sys", "gc"),
}
"""Names in code that may tell a stand-in from a number, or get at the number in another way."""
_TYPED = {
    *("add", "conj", "conjugate", "dot", "inner", "multiply", "negative", "outer", "positive"),
    "subtract",
}
"""Functions that make NumPy's numbers of Python's, where operators do not."""


def key_of(source: Source) -> Key:
    """The key of a source, as long as its holder lives."""
    return id(source.holder), source.access


def is_number(source: Source) -> bool:
    """Whether a place holds a floating number whose value is guarded."""
    return source.treatment == VALUE and _is_floating(source.value)


def _is_floating(value: Any) -> bool:
    return type(value) in (float, np.float64, np.float32)


def takes_stand_ins(code: CodeType) -> bool:
    """Whether code does the same with a stand-in for a number, or raises an error.

    It does not if it catches errors, asks what an object is, or stores something around itself.
    """
    has = facts(code)
    stores = has.sets_attributes or has.assigns_outside
    return not (stores or has.catches or has.asks_for_kinds or has.mentions(_UNKNOWN | _TYPED))


class Substitution:
    """Paths from a function to the numbers that it captures, and how others come into their places.

    Attributes
    ----------
    places
        One place of each number that can be replaced.
    """

    def __init__(self, captures: Captures, keys: Collection[Key]) -> None:
        self.sources: dict[Key, Source] = {}
        self._leading: dict[int, list[Source]] = {}
        self._copied: set[int] = set()
        self._attributes: set[Key] = set()
        if not keys or not all(map(takes_stand_ins, captures.codes)):
            return
        self._root = captures.sources[0].value
        for source in captures.sources:
            if not is_atom(source.value):
                self._leading.setdefault(id(source.value), []).append(source)
        readers: dict[Key, list[Source]] = {}
        for source in captures.sources:
            if key_of(source) in keys and is_number(source):
                readers.setdefault(key_of(source), []).append(source)
        for key, reads in readers.items():
            if all(map(self._is_attribute, reads)):
                self._attributes.add(key)
            elif not all(map(self._is_variable, reads)):
                continue
            self.sources[key] = reads[0]

    def _is_attribute(self, source: Source) -> bool:
        owner = source.parent.value if source.parent is not None else None
        kind = type(owner)
        name = source.name.rpartition(".")[2]
        return (
            type(kind) in (type, ABCMeta)
            and is_users_module(kind.__module__)
            and getattr(owner, "__dict__", None) is source.holder
            and source.access == f"{{0}}[{name!r}]"
            and kind.__getattribute__ is object.__getattribute__
            and all(is_atom(vars(base)[name]) for base in kind.__mro__ if name in vars(base))
        )

    def _is_variable(self, source: Source) -> bool:
        reader = source.parent.value if source.parent is not None else None
        needed: set[int] = set()
        if not (_is_read_by(source, reader) and self._can_copy(reader, needed)):
            return False
        self._copied |= needed
        return True

    def _can_copy(self, value: Any, needed: set[int]) -> bool:
        """Whether copies can take the place of something wherever it is found."""
        if id(value) in needed:
            return True
        needed.add(id(value))
        if type(value) is FunctionWrapper:  # it is made again with its parts
            if not value.can_be_made_of_others or needed.isdisjoint(map(id, value.made_of)):
                return False
        elif type(value) is not FunctionType and not _is_of_transform(value):
            return False
        for source in self._leading[id(value)]:
            if source.parent is None:
                if value is not self._root:
                    return False
                continue
            above = source.parent.value
            if type(above) is FunctionType and not _is_read_by(source, above):
                return False
            if not self._can_copy(above, needed):
                return False
        return True

    @contextmanager
    def replaced(self, numbers: dict[Key, Any]) -> Iterator[Callable[..., Any]]:
        """The function, which reads other numbers in their places."""
        with ExitStack() as stack:
            for key, number in numbers.items():
                source = self.sources[key]
                if key in self._attributes:
                    owner = source.parent.value  # pyright: ignore
                    name = source.name.rpartition(".")[2]
                    stack.enter_context(_attribute(owner, name, number))
            yield _Copies(numbers, self._copied).of(self._root)


def _is_of_transform(value: Any) -> bool:
    """Whether it is part of what a transform made."""
    return type(value).__module__.startswith(("numgrad.autograd.", "numgrad.transforms."))


def _is_read_by(source: Source, function: Any) -> bool:
    """Whether a place is an enclosed variable or a global of a function."""
    if type(function) is not FunctionType:
        return False
    return type(source.holder) is CellType or (
        source.holder is function.__globals__ and source.access.startswith("{0}[")
    )


@contextmanager
def _attribute(owner: Any, name: str, number: Any) -> Iterator[None]:
    """Let an attribute of an object be something else to this thread."""
    kind = type(owner)
    missing = object()
    before = vars(kind).get(name, missing)
    default = getattr_static(kind, name, missing)
    setattr(kind, name, _SubstitutedAttribute(owner, name, number, default, missing))
    try:
        yield
    finally:
        if before is missing:
            delattr(kind, name)
        else:
            setattr(kind, name, before)


class _SubstitutedAttribute:
    """An attribute of a class that shows one thread another number for one object."""

    def __init__(self, owner: Any, name: str, number: Any, default: Any, missing: object) -> None:
        self.owner, self.name, self.number = owner, name, number
        self.default, self.missing = default, missing
        self.thread = threading.get_ident()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is self.owner and threading.get_ident() == self.thread:
            return self.number
        if isinstance(self.default, _SubstitutedAttribute):  # of another object of the class
            return self.default.__get__(instance, owner)
        value = self.default
        if instance is not None:
            value = instance.__dict__.get(self.name, value)
        if value is self.missing:
            raise AttributeError(
                f"{type(instance).__name__!r} object has no attribute {self.name!r}"
            )
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: Any) -> None:
        if self.name not in instance.__dict__:
            raise AttributeError(self.name)
        del instance.__dict__[self.name]


class _Copies:
    """Functions copied with other numbers in cells and globals."""

    def __init__(self, numbers: dict[Key, Any], copied: set[int]) -> None:
        self._numbers, self._copied = numbers, copied
        self._made: dict[int, Any] = {}
        self._cells: dict[int, CellType] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def of(self, value: Any) -> Any:
        """A copy of a function and of what it calls; anything else as it is."""
        if id(value) not in self._copied:
            return value
        cached = self._made.get(id(value))
        if cached is not None:
            return cached
        if type(value) is FunctionWrapper:
            copied = value.made_of_others(tuple(map(self.of, value.made_of)))
            self._made[id(value)] = copied
            return copied
        if type(value) is not FunctionType:
            raise NumgradTypeError(f"a {type(value).__name__} cannot be made of other functions")
        cells = value.__closure__ or ()
        new = [self._cells.setdefault(id(cell), CellType()) for cell in cells]
        before = value.__globals__
        around = self._globals.get(id(before))
        first = around is None
        if around is None:
            around = self._globals[id(before)] = dict(before)
        copied = FunctionType(
            value.__code__, around, value.__name__, value.__defaults__, tuple(new)
        )
        copied.__kwdefaults__, copied.__dict__ = value.__kwdefaults__, value.__dict__
        copied.__qualname__, copied.__module__ = value.__qualname__, value.__module__
        self._made[id(value)] = copied
        for cell, other in zip(cells, new, strict=True):
            self._fill(cell, other)
        if first:
            for name, item in before.items():
                number = self._numbers.get((id(before), f"{{0}}[{name!r}]"))
                around[name] = self.of(item) if number is None else number
        return copied

    def _fill(self, cell: CellType, other: CellType) -> None:
        number = self._numbers.get((id(cell), "{0}.cell_contents"))
        if number is not None:
            other.cell_contents = number
            return
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        other.cell_contents = value
        other.cell_contents = self.of(value)
