"""Source of the Python function that stands between a caller and a compiled one.

Note [Dispatch]
---------------
A call has to find out whether what was compiled suits its arguments, hand over the arrays and put
results into the caller's nesting. Each of these steps is a few dozen nanoseconds, so nothing may be
left to decide: for every specialisation one chain of conditions is written out, from the cheapest
to the dearest, with the reading of arrays and lengths folded in (``:=``). The dispatcher of a
function tries one after the other and ends in ``_miss``, which normalises the arguments (lists of
the wrong kind, foreign byte order, subclasses), tries once more, and traces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numgrad import config
from numgrad.autograd.node import mark_written
from numgrad.autograd.variable import TENSORS, Tensor, refresh
from numgrad.eager import new_tensor
from numgrad.jit.closure import FIXED, IDENTITY, VALUE, Place
from numgrad.jit.graph import Value
from numgrad.jit.signature import (
    ARRAY,
    LEAF,
    MISSING,
    NUMBER,
    SCALAR,
    STATIC,
    TENSOR,
    Leaf,
    Nesting,
    is_named_tuple,
    same,
)
from numgrad.jit.sizes import Guard, Size, Sizes
from numgrad.op.base import state

MISS: Any = type("Miss", (), {})()
"""What a specialisation returns for arguments that it was not made for."""


def _refreshed(tensor: Tensor) -> bool:
    refresh(tensor)
    return True


NAMES: dict[str, Any] = {
    "_MISS": MISS,
    "_Tensor": Tensor,
    "_asarray": np.asarray,
    "_compact": np.ascontiguousarray,
    "_config": config,
    "_copyto": np.copyto,
    "_missing": MISSING,
    "_ndarray": np.ndarray,
    "_new": new_tensor,
    "_refreshed": _refreshed,
    "_same": same,
    "_state": state,
    "_tensors": TENSORS,
    "_written": mark_written,
    "_calls": 0,
}
"""Names that every dispatcher uses."""


@dataclass
class Input:
    """One input of a compiled function.

    Attributes
    ----------
    value
        Its place in the graph.
    leaf
        The leaf of the arguments, or None for something captured.
    place
        Where something captured is found; None if it is held.
    source
        What was captured.
    """

    value: Value
    leaf: Leaf | None = None
    place: Place | None = None
    source: Any = None

    @property
    def tensor(self) -> bool:
        """Whether what is found there is a Tensor."""
        return isinstance(self.source, Tensor) if self.leaf is None else self.leaf.kind == TENSOR

    @property
    def name(self) -> str:
        """How a reader would write it."""
        if self.leaf is not None:
            return self.leaf.path
        return "an array" if self.place is None else self.place.name


@dataclass
class Result:
    """One leaf of what a function returns: output ``number``, a length, or something constant."""

    number: int | None = None
    value: Value | None = None
    size: Size | None = None
    constant: Any = None


@dataclass
class Layout:
    """All that the source of a specialisation depends on.

    Attributes
    ----------
    header
        Parameter list of the function.
    parameters, nestings
        Names of the parameters, and the nesting of each (see ``Arguments``).
    leaves
        Leaves of the arguments.
    inputs
        Inputs of the program, in order.
    results, nesting
        Leaves and nesting of what is returned.
    writes
        For each write of the program, the number of the input that it goes to.
    as_tensors
        Whether results are Tensors.
    mode
        ``state.mode`` that it was traced in.
    guards
        What must be as it was around the function.
    sizes
        Lengths and their guards.
    run
        What is called with the inputs.
    """

    header: str
    parameters: list[str]
    nestings: list[tuple[Nesting] | None]
    leaves: list[Leaf]
    inputs: list[Input]
    results: list[Result]
    nesting: Nesting
    writes: list[int]
    as_tensors: bool
    mode: int
    guards: list[Place]
    sizes: Sizes
    run: Callable[..., tuple[Any, ...]]
    record: Callable[..., tuple[Any, ...]] | None = None
    number: int = 0
    names: dict[str, Any] = field(default_factory=dict)


class Writer:
    """Writes the source of one specialisation."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._held: dict[int, str] = {}
        self._temporaries = 0
        self._bound: set[int] = set()
        self._arrays: dict[int, str] = {}  # input number -> the local that holds its ndarray
        self._owners: dict[int, str] = {}  # input number -> the local that holds the Tensor
        self._late: list[str] = []
        self._conditions = list(self._write_conditions())
        self._surroundings = list(self._write_surroundings())

    # --------------------------------------------------------------------------------- names

    def _hold(self, value: Any) -> str:
        """A name for an object in the namespace of the dispatcher."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"_h{self.layout.number}_{len(self._held)}"
            self.layout.names[name] = value
        return name

    def _local(self) -> str:
        self._temporaries += 1
        return f"_t{self._temporaries}"

    def _length(self, axis: int) -> str:
        return f"_n{axis}"

    # ---------------------------------------------------------------------------- conditions

    def _write_conditions(self) -> Iterator[str]:
        layout = self.layout
        yield f"_state.mode == {layout.mode}"
        numbers = {id(i.leaf): n for n, i in enumerate(layout.inputs) if i.leaf is not None}
        leaves = iter(layout.leaves)
        for name, nesting in zip(layout.parameters, layout.nestings, strict=True):
            if nesting is None:
                yield f"{name} is _missing"
            else:
                yield from self._of_nesting(nesting[0], name, leaves, numbers)
        yield from self._of_lengths()

    def _of_nesting(
        self, nesting: Nesting, text: str, leaves: Iterator[Leaf], numbers: dict[int, int]
    ) -> Iterator[str]:
        if nesting is LEAF:
            leaf = next(leaves)
            yield from self._of_leaf(leaf, text, numbers.get(id(leaf)))
            return
        kind, keys, parts = nesting
        name = text
        if not text.isidentifier():
            name = self._local()
            text = f"({name} := {text})"
        yield f"type({text}) is {self._hold(kind)}"
        if keys is not None:
            yield f"[*{name}] == {self._hold(list(keys))}" if keys else f"not {name}"
        elif not is_named_tuple(kind):
            yield f"len({name}) == {len(parts)}"
        for number, part in enumerate(parts):
            key = str(number) if keys is None else self._key(keys[number])
            yield from self._of_nesting(part, f"{name}[{key}]", leaves, numbers)

    def _key(self, key: Any) -> str:
        return repr(key) if type(key) in (str, int) else self._hold(key)

    def _of_leaf(self, leaf: Leaf, text: str, number: int | None) -> Iterator[str]:
        name = text
        if not text.isidentifier():
            name = self._local()
            text = f"({name} := {text})"
        if leaf.kind == STATIC:
            yield self._equal(text, name, leaf.value)
            return
        kind = {NUMBER: type(leaf.given), SCALAR: type(leaf.given)}.get(leaf.kind, None)
        if kind is not None:
            yield f"type({text}) is {self._hold(kind)}"
        elif leaf.kind == ARRAY:
            yield f"type({text}) is _ndarray"
        assert number is not None
        if leaf.kind == NUMBER:
            self._arrays[number] = name
        elif leaf.kind == SCALAR:
            self._arrays[number] = f"_asarray({name})"
        elif leaf.kind == TENSOR:
            yield from self._of_tensor(number, text, name, leaf.value)
        else:
            yield from self._of_array(number, name, name)

    def _of_tensor(self, number: int, text: str, name: str, tensor: Tensor) -> Iterator[str]:
        yield f"type({text}) in _tensors"
        if self.layout.mode == 2:
            yield f"({name}._memory is None or _refreshed({name}))"
            yield f"{name}._requires_grad is {tensor._requires_grad}"
        self._owners[number] = name
        array = self._local()
        yield f"type({array} := {name}._array) is _ndarray"
        yield from self._of_array(number, array, array)

    def _of_array(self, number: int, text: str, name: str) -> Iterator[str]:
        """Conditions on dtype and rank, and the reading of lengths."""
        value = self.layout.inputs[number].value
        yield f"{text}.dtype is {self._hold(value.dtype)}"
        self._arrays[number] = name
        if value.ndim < 2:
            yield f"{name}.ndim == {value.ndim}"
            lengths = [f"len({name})"]
        else:
            shape = self._local()
            yield f"len({shape} := {name}.shape) == {value.ndim}"
            lengths = [f"{shape}[{k}]" for k in range(value.ndim)]
        for expected, length in zip(value.shape, lengths, strict=False):
            yield from self._of_length(expected, length)

    def _of_length(self, expected: int | Size, text: str) -> Iterator[str]:
        sizes = self.layout.sizes
        expected = sizes.resolve(expected)
        axis = sizes.number(expected)
        if axis is not None and axis not in self._bound:
            self._bound.add(axis)
            yield f"({self._length(axis)} := {text}) > 1"
            return
        condition = f"{text} == {sizes.text(expected, self._length)}"
        if sizes.axes([expected]) <= self._bound:
            yield condition
        else:
            self._late.append(condition)

    def _of_lengths(self) -> Iterator[str]:
        """Relations between lengths, after all arguments are read."""
        self._captured = list(self._of_captured())
        if not self._captured:
            yield from self._relations()

    def _relations(self) -> Iterator[str]:
        yield from self._late
        sizes = self.layout.sizes
        for guard in sizes.guards:
            left, right = sizes.known(guard.left), sizes.known(guard.right)
            if left != right or guard.sign not in ("==", ">="):
                yield Guard(guard.sign, left, right).text(self._length)

    def _equal(self, text: str, name: str, value: Any) -> str:
        held = self._hold(value)
        if value is None or type(value) is bool:
            return f"{text} is {value}"
        return f"({text} is {held} or _same({name}, {held}))"

    # -------------------------------------------------------------------------- surroundings

    def _access(self, place: Place) -> str:
        text = place.access.replace("{0}", self._hold(place.holder))
        return text.replace("{1}", self._hold(place.key)) if "{1}" in text else text

    def _of_captured(self) -> Iterator[str]:
        for number, entry in enumerate(self.layout.inputs):
            if entry.leaf is not None:
                continue
            held = entry.place is None or entry.place.treatment == FIXED
            text = self._hold(entry.source) if held else self._access(entry.place)
            name = self._local()
            if isinstance(entry.source, Tensor):
                yield from self._of_tensor(number, f"({name} := {text})", name, entry.source)
            else:
                yield f"type({name} := {text}) is _ndarray"
                yield from self._of_array(number, name, name)

    def _write_surroundings(self) -> Iterator[str]:
        for place in self.layout.guards:
            text = self._access(place)
            if place.treatment == VALUE:
                if place.access.startswith("len("):
                    yield f"{text} == {place.value}"
                else:
                    name = self._local()
                    yield self._equal(f"({name} := {text})", name, place.value)
            elif place.treatment == IDENTITY:
                yield f"{text} is {self._hold(place.value)}"
        yield from self._captured
        if self._captured:
            yield from self._relations()

    # ----------------------------------------------------------------------------------- body

    def _argument(self, number: int) -> str:
        """An input as the program takes it."""
        entry, name = self.layout.inputs[number], self._arrays[number]
        if entry.value.ndim == 0:
            return name
        return f"{name} if {name}.flags.c_contiguous else _compact({name})"

    def _body(self) -> Iterator[str]:
        layout = self.layout
        yield "_calls += 1"
        arguments = ", ".join(map(self._argument, range(len(layout.inputs))))
        if layout.record is None:
            yield f"_r = {self._hold(layout.run)}({arguments})"
        else:
            owners = ", ".join(
                self._owners.get(n, self._arrays[n]) for n in range(len(layout.inputs))
            )
            yield f"_r = {self._hold(layout.record)}(({owners},), ({arguments},))"
        count = sum(result.number is not None for result in layout.results)
        for position, number in enumerate(layout.writes):
            yield f"_copyto({self._arrays[number]}, _r[{count + position}])"
            if number in self._owners:
                yield f"_written({self._owners[number]})"
        yield f"return {self._returned(layout.nesting, iter(layout.results))}"

    def _returned(self, nesting: Nesting, results: Iterator[Result]) -> str:
        if nesting is LEAF:
            return self._result(next(results))
        kind, keys, parts = nesting
        texts = [self._returned(part, results) for part in parts]
        if keys is not None:
            pairs = zip(map(self._key, keys), texts, strict=True)
            text = "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
            return text if kind is dict else f"{self._hold(kind)}({text})"
        if kind is list:
            return f"[{', '.join(texts)}]"
        inside = ", ".join(texts)
        if kind is not tuple:
            return f"{self._hold(kind)}({inside})"
        return f"({inside}{',' if texts else ''})"

    def _result(self, result: Result) -> str:
        layout = self.layout
        if result.size is not None:
            return layout.sizes.text(result.size, self._length)
        if result.number is None:
            return self._hold(result.constant)
        value = result.value
        assert value is not None
        text = f"_r[{result.number}]"
        if value.weak:
            return f"{self._hold(value.operand)}({text})"
        if layout.record is not None:
            return text
        if layout.as_tensors:
            array = text if value.ndim else f"_asarray({text}, {self._hold(value.dtype)})"
            return f"{'_new' if layout.mode == 3 else '_Tensor'}({array})"
        return text if value.ndim else f"{self._hold(value.dtype.type)}({text})"

    # --------------------------------------------------------------------------------- results

    def block(self, *, surroundings: bool = True) -> list[str]:
        """The statements that try this specialisation."""
        conditions = [*self._conditions]
        if surroundings:
            conditions += self._surroundings
        else:
            conditions += [*self._captured, *(self._relations() if self._captured else ())]
        body = [f"        {line}" for line in self._body()]
        test = " and ".join(conditions)
        if not self._surroundings:
            return [f"    if {test}:", *body]
        return [
            "    try:",
            f"        _ok = {test}",
            "    except Exception:",
            "        _ok = False",
            "    if _ok:",
            *body,
        ]


def dispatcher(
    name: str, header: str, writers: Sequence[Writer], last: str, names: dict[str, Any], **how: bool
) -> Callable[..., Any]:
    """The function that tries specialisations in turn and then executes the statement ``last``."""
    lines = [f"def _function({header}):", "    global _calls"]
    for writer in writers:
        lines += writer.block(**how)
        names.update(writer.layout.names)
    lines.append(f"    {last}")
    # among our own files, so that no line of it is taken for the user's
    path = os.path.join(os.path.dirname(__file__), f"<dispatcher of {name}>")
    exec(compile("\n".join(lines), path, "exec"), names)
    function = names["_function"]
    function.__name__ = function.__qualname__ = name
    return function
