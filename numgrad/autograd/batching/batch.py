"""Computing for many examples at once with code that is written for one.

Note [Batched values]
---------------------
``BatchingInterpreter`` is an interpreter (Note [Interpreters] in ``core.interpreter``): within its
context a ``Batched`` stands for one example of a batch. Its shape is that of the example; its
``value`` is a Tensor (or a Batched of an outer level) with all of them along the first axis. An
operation with such an operand is carried out once, for the whole batch, under the interpreters
below: so it is recorded by the tape, and levels nest. Examples never meet, so the gradient of a sum
over the batch has the gradients of all examples.

A Batched is no ``Tensor`` by ``type()``: the hot paths of eager execution leave it to ``bind``.
What it gives as its array is an ``Outline``, with the shape and dtype of an example and no data:
code that only looks at those goes on, any other gets an error instead of wrong numbers.

Note [Read in a branch]
-----------------------
A branch that only some examples take is run for all. What it reads of others may lie where it has
no value, and a NaN that nobody takes would still be one in the gradient. So within
``only_for`` an example that was there before is read as one that ``instead`` gives in its place:
for those that do not take the branch the numbers of one that does.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from math import prod
from typing import Any, NoReturn

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.arguments import complete
from numgrad.core.batching import (
    BatchOperand,
    apply,
    by_example,
    find_rule,
    first_example,
    of_examples,
)
from numgrad.core.draws import Draw, Draws
from numgrad.core.foreign import NO_ARRAY, asked_by_product
from numgrad.core.interpreter import (
    Interpreter,
    Interpreters,
    above_ground,
    bind,
    bind_recorded,
    drawn,
    drawn_together,
    state,
)
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import Composite
from numgrad.core.refusals import Refusals
from numgrad.core.tree import leaves
from numgrad.errors import REFUSED, NumgradError, NumgradRuntimeError, NumgradValueError
from numgrad.operations.index import is_basic_part
from numgrad.operations.shape import as_operand

_NUMBERS_OF_EXAMPLES = count()
"""Counter that says which of two examples was made first."""


class Branch:
    """A branch that only some examples take: Note [Read in a branch].

    Parameters
    ----------
    instead
        What is read in place of an example that was there before.
    around
        The branch around this one.
    """

    def __init__(self, instead: Callable[[Batched], Any], around: Branch | None) -> None:
        self.instead, self.around = instead, around
        self.begun = next(_NUMBERS_OF_EXAMPLES)
        self.known: dict[int, tuple[Batched, Any]] = {}


class BatchingInterpreter(Interpreter):
    """Runs operations written for one example on whole batches; used as a context.

    Parameters
    ----------
    size
        Number of examples.
    examples
        Whether what is computed from differs by example, rather than directions to differentiate
        along.

    Attributes
    ----------
    randomness
        What random numbers are: ``"different"`` by example, the ``"same"``, or an ``"error"``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> from numgrad.autograd.batching.batch import BatchingInterpreter
    >>> with BatchingInterpreter(2) as level:
    ...     x = level.wrap(ng.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    ...     y = level.unwrap(np.dot(x, x))
    >>> x.shape, y
    ((3,), tensor([14., 77.]))
    """

    def __init__(self, size: int, *, examples: bool = False) -> None:
        self.size, self.examples = size, examples
        self.randomness = "different"
        self.branch: Branch | None = None
        self._refusals = Refusals(traced=False)

    def __repr__(self) -> str:
        return f"<batch of {self.size} examples>"

    def __enter__(self) -> BatchingInterpreter:
        self._before = state.interpreters
        self._refusals.__enter__()
        try:
            position = len(self._before) if self.examples else below_examples()
            state.set(interpreters=(*self._before[:position], self, *self._before[position:]))
            return self
        except BaseException:  # such as a signal handler's
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, *exception: Any) -> None:
        state.set(interpreters=self._before)
        self._refusals.__exit__(*exception)

    def wrap(self, value: Any) -> Batched:
        """One example to compute with, of a Tensor or array with all of them along axis 0.

        Raises
        ------
        NumgradValueError
            If the first axis has not the length of the batch.
        """
        with self._below():
            value = as_operand(value)
            if not isinstance(value, Tensor):
                value = Tensor(np.asarray(value))
        shape = value.shape
        if not shape or shape[0] != self.size:
            raise NumgradValueError(
                f"a batch of {self.size} examples needs an operand with a first axis of that "
                f"length, got shape {shape}; move the batch axis to the front with moveaxis"
            )
        return Batched(value, self)

    def unwrap(self, result: Any) -> Tensor:
        """The results of all examples along axis 0.

        What does not depend on the examples is broadcast, as a view, to their number.
        """
        if self.owns(result):
            return result.value
        with self._below():
            return BatchOperand(as_operand(result), False).repeated(self.size)

    @contextmanager
    def only_for(self, instead: Callable[[Batched], Any]) -> Iterator[None]:
        """Inside is a branch that only some examples take: Note [Read in a branch]."""
        around, self.branch = self.branch, Branch(instead, self.branch)
        try:
            yield
        finally:
            self.branch = around

    def read(self, value: Any) -> Any:
        """A value as the branch reads it that is being run."""
        branch = self.branch
        if branch is None or not isinstance(value, Batched) or value.made > branch.begun:
            return value
        pair = branch.known.get(id(value))
        if pair is None:
            self.branch = branch.around
            try:
                pair = branch.known[id(value)] = value, branch.instead(value)
            finally:
                self.branch = branch
        return pair[1]

    def owns(self, value: Any) -> bool:
        """Whether ``value`` stands for an example of this batch."""
        return isinstance(value, Batched) and value.level is self

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if isinstance(op, Composite):
            return op.expanded(args, params)
        args, params = complete(op, args, params)
        for name, value in params.items():
            several = isinstance(value, tuple | list)
            if (several and any(map(self.owns, value))) or self.owns(value):
                refuse(f"{op.name}: parameter {name!r}")
        operands, batched = [], False
        for a in args:
            x = as_operand(a) if isinstance(a, list | tuple) else a
            operand = self._operand(x if self.branch is None else self.read(x))
            batched = batched or operand.batched
            operands.append(operand)
        with self._below():
            if not batched:
                return bind(op, tuple([o.value for o in operands]), params)
            out = self._bind_batch(op, operands, params)
        if isinstance(out, tuple):
            return tuple([
                output.value if isinstance(output, BatchOperand) else Batched(output, self)
                for output in out
            ])  # fmt: skip
        return Batched(out, self)

    def recorded(self, op: Op, args: tuple, params: dict[str, Any]) -> tuple[Any, Any]:
        """Leave it to the interpreters below: no example has a record of its own."""
        values = (*args, *params.values())
        if any(map(self.owns, leaves(values))):
            return self.bind(op, args, params), None
        with self._below():
            return bind_recorded(op, args, params)

    @property
    def draws(self) -> bool:  # pyright: ignore
        """Directions to differentiate along share random numbers."""
        return self.examples and self.randomness != "same"

    def _check_randomness(self) -> None:
        if self.randomness == "error":
            raise NumgradRuntimeError(
                "vmap: the function draws random numbers; say whether they are the same for all "
                "examples or not: randomness='same' or randomness='different'"
            )

    def drawn(
        self, function: Callable[..., Any], source: Any, operands: Sequence[Any], size: Any,
        dtype: Any, independent: bool = True,
    ) -> Batched:  # fmt: skip
        """Numbers of its own for each example."""
        self._check_randomness()
        operands = list(map(self.read, operands))
        if size is None:
            shape = np.broadcast_shapes(*[self._operand(a).shape for a in operands])
        else:
            shape = tuple(size) if isinstance(size, tuple | list) else (size,)
        with self._below():
            draw = Draw(function, source, tuple(operands), shape, dtype, independent)
            each = of_examples(draw, self._operand, self.size)
            draws = drawn(each.function, source, each.operands, each.shape, dtype, each.independent)
            return Batched(draws, self)

    def drawn_together(self, draws: Draw | Draws) -> list[Batched]:
        """Numbers of its own for each example."""
        self._check_randomness()
        draws = draws.on(lambda x, _: self.read(x))
        with self._below():
            arrays = drawn_together(of_examples(draws, self._operand, self.size))
            places = zip(arrays, draws.leads, strict=True)
            return [Batched(apply("moveaxis", x, source=n, destination=0), self) for x, n in places]

    def _operand(self, a: Any) -> BatchOperand:
        return BatchOperand(a.value, True) if self.owns(a) else BatchOperand(a, False)

    def _bind_batch(self, op: Op, operands: list[BatchOperand], params: dict[str, Any]) -> Any:
        rule = find_rule(op)
        try:
            out = NotImplemented if rule is None else rule(op, operands, params, self.size)
        except NumgradError as error:
            failed = error
        else:
            return self._loop(op, operands, params) if out is NotImplemented else out
        if self.size:  # the same error for one example names the shapes that the caller sees
            first_example(op, operands, params)
        raise failed

    def _loop(self, op: Op, operands: list[BatchOperand], params: dict[str, Any]) -> Any:
        if not self.size:
            raise NumgradValueError(
                f"{op.name}: is computed for one example after the other, and a batch of none does "
                "not tell the shape of the result"
            )
        return by_example(op, operands, params, self.size)

    def _below(self) -> Interpreters:
        """Let the interpreters below this one bind."""
        stack = state.interpreters
        return Interpreters(*(stack[: stack.index(self)] if self in stack else stack))


class Outline:
    """Shape and dtype of an example, in place of the array that it does not have."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype

    def __repr__(self) -> str:
        return f"<outline of shape {self.shape} and dtype {self.dtype}>"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """Raise: ``what`` needs numbers, which differ by example."""
        refuse(what)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # NumPy asks what protocols it has; __array__ is refused
            raise AttributeError(name)
        refuse(f"the array of a batched tensor ({name})")


class Batched(Tensor):
    """One example of a batch: Note [Batched values]."""

    __slots__ = ("level", "made", "value")

    def __init__(self, value: Tensor, level: BatchingInterpreter) -> None:
        self.value = value
        self.level = level
        self.made = next(_NUMBERS_OF_EXAMPLES)
        self._requires_grad = False  # the value is recorded instead
        self._memory = self._grad_fn = self._grad = self._extra = None
        self._slot = 0

    @property
    def _array(self) -> Any:  # pyright: ignore
        if self.level not in state.interpreters:
            raise NumgradRuntimeError(
                f"a tensor that stands for one example (shape {self.shape}) of a batch of "
                f"{self.level.size} was used outside of its batched computation; return it from "
                "there, which gives the results of all examples"
            )
        return Outline(self.shape, self.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of one example."""
        return self.value.shape[1:]

    @property
    def ndim(self) -> int:
        """Number of axes of one example."""
        return self.value.ndim - 1

    @property
    def size(self) -> int:
        """Number of elements of one example."""
        return prod(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype of the elements."""
        return self.value.dtype

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the batch are recorded."""
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:  # pyright: ignore
        refuse("requires_grad = ...", NO_GRAPH)

    @property
    def grad_fn(self) -> Any:
        """Node that made the batch."""
        return self.value.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether no operation made the batch."""
        return self.value.is_leaf

    def detach(self) -> Tensor:
        """The same values without what recorded them."""
        around = state.interpreters
        if state.ground in around and self.level not in around[around.index(state.ground) :]:
            return Tensor(state.ground.detached(self))  # in the step of a loop, read from outside
        known = read_in_branch(self)
        return Batched(known.value.detach(), known.level)

    @property
    def data(self) -> Tensor:
        """The values over the same memory, without history."""
        return Batched(self.value.data, self.level)  # pyright: ignore[reportAttributeAccessIssue]

    @data.setter
    def data(self, value: Any) -> None:  # pyright: ignore
        level = self.level
        if not isinstance(value, Tensor) or value.shape != self.shape:
            refuse("data = ...", "and takes values of its own shape only; write to it instead")
        with level._below():
            whole = BatchOperand(
                level.unwrap(value) if level.owns(value) else value, level.owns(value)
            )
            self.value.data = whole.repeated(level.size).clone()

    def clone(self) -> Tensor:
        """A copy, through which gradients flow."""
        return bind(OPS["copy"], (self,), {})

    def write(self, how: Callable[[Tensor, Any], Any], new: Any, shape: tuple) -> None:
        """Let ``how`` change the memory of all examples, in each a part of that shape."""
        level, _ = self.level, self._array  # refused outside of the level
        branches = [b for b in map(_branch_of, state.interpreters) if b is not None]
        if any(self.made < branch.begun for branch in branches):
            raise NumgradRuntimeError(_OUTSIDE)
        new = level.read(as_operand(new))
        owned = level.owns(new)
        operand = BatchOperand(new.value if owned else new, owned)
        if operand.ndim > len(shape):
            raise NumgradValueError(
                f"a part of shape {shape} of an example cannot take shape {operand.shape}"
            )
        with level._below():
            how(self.value, operand.aligned(len(shape)))

    def __setitem__(self, index: Any, new: Any) -> None:
        parts = index if type(index) is tuple else (index,)
        if getattr(type(new), "_applies", False):
            parts, new = (...,), new.placed(self, index)
        elif len(parts) == 1 and isinstance(parts[0], Batched) and parts[0].dtype.kind == "b":
            parts, new = (...,), self._masked(parts[0], as_operand(new))
        if all(map(is_basic_part, parts)):
            where, shape = (slice(None), *parts), np.broadcast_to(0, self.shape)[parts].shape
        else:
            places = self._places(parts)
            shape = places[0].shape
            with self.level._below():
                rows = _numbered((self.level.size,))
                rows = apply("reshape", rows, shape=(self.level.size, *(1,) * len(shape)))
            where = (rows, *[part.value for part in places])

        def store(memory: Tensor, value: Any) -> None:
            memory[where] = value

        self.write(store, new, shape)

    def _masked(self, mask: Any, new: Any) -> Any:
        """The elements after a write at a mask."""
        lead, rest = mask.shape, self.shape[mask.ndim :]
        if lead != self.shape[: mask.ndim] or new.ndim > len(rest):
            refuse(
                f"a write of shape {tuple(new.shape)} at a mask of shape {lead} to shape "
                f"{self.shape}"
            )
        flags = OPS["reshape"](mask, (*lead, *(1,) * len(rest)))
        return OPS["where"](flags, new, self)

    def _places(self, parts: tuple) -> list[Batched]:
        """An index with arrays in it, as one array for each axis."""
        with self.level._below():
            whole = BatchOperand(_numbered(self.shape), False).repeated(self.level.size)
        rest = OPS["getitem"](self.level.wrap(whole), parts)
        places = []
        for length in self.shape[::-1]:
            places.append(OPS["remainder"](rest, length))
            rest = OPS["floor_divide"](rest, length)
        return places[::-1]

    def __copy__(self) -> Batched:
        twin = Batched(self.value, self.level)
        twin.made = self.made
        return twin

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return refuse("conversion to an ndarray") if not asked_by_product() else NO_ARRAY

    def __repr__(self) -> str:
        return (
            f"<one of {self.level.size} examples, shape {self.shape}, dtype {self.dtype}, of "
            f"{self.value!r}>"
        )


def _branch_of(interpreter: Any) -> Branch | None:
    return getattr(interpreter, "branch", None)


def read_in_branch(x: Any) -> Any:
    """``x`` as it is read here: Note [Read in a branch]."""
    for level in reversed(state.interpreters):
        if _branch_of(level) is not None:
            return level.read(x)  # pyright: ignore[reportAttributeAccessIssue]
    return x


def below_examples() -> int:
    """How many interpreters lie below all levels of examples.

    What follows derivatives belongs there, since the tape has whole batches.
    """
    stack, first = state.interpreters, above_ground()
    places = (k for k in range(first, len(stack)) if getattr(stack[k], "examples", False))
    return next(places, len(stack))


def _numbered(shape: tuple) -> Any:
    """The places of an array, counted in C order."""
    return as_operand(state.ground.positions("setitem", shape, (slice(None),) * len(shape)))


_NO_NUMBERS = (
    "so its numbers cannot be looked at, nor written to what all examples share; choose with "
    "np.where instead of if, make one array of several with np.stack, write to arrays made with "
    "np.zeros_like of an example, take "
    "table[k] of an ndarray with ng.take(table, k, axis=0), or compute one example at a time "
    "(is_grads_batched=False, vectorize=False, a loop)"
)
_OUTSIDE = (
    "a branch or a step that only some examples of a batch take writes to an array outside of it, "
    "which would change for all of them; write to a copy and return it"
)
NO_GRAPH = (
    "and only the whole batch has a place in a graph; use ng.grad and its like inside, or "
    "differentiate what the batched computation returns"
)


def refuse(what: str, reason: str = _NO_NUMBERS) -> NoReturn:
    """Raise since one example has no ``what`` of its own."""
    error = NumgradRuntimeError(
        f"{what}: a batched tensor stands for all examples of a batch at once, {reason}"
    )
    for scope in REFUSED.scopes[-1:]:  # Note [Refusals]
        scope.note(error)
    raise error


def _augmented(write: Callable[[Any, Any], Any]) -> Callable[..., Batched]:
    """An operator in place, on the memory of all examples."""

    def method(self: Batched, other: Any) -> Batched:
        self.write(write, other, self.shape)
        return self

    return method


def _refusal(what: str, reason: str = _NO_NUMBERS) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(what, reason)

    return method


_NUMBERS = {
    "__bool__": "bool() or if",
    "__complex__": "complex()",
    "__contains__": "in",
    "__float__": "float()",
    "__index__": "use as an index or length",
    "__int__": "int()",
    "__reduce__": "pickling",
    "item": "item()",
    "numpy": "numpy()",
    "tolist": "tolist()",
}
_OPERATORS = (
    "add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub",
    "truediv", "xor",
)  # fmt: skip
_WRITES = {"__delitem__": "del x[...]"}
_GRAPH = (
    "backward", "register_hook", "register_post_accumulate_grad_hook", "requires_grad_",
    "retain_grad",
)  # fmt: skip
_PROTOCOLS = (
    "__array__", "__bool__", "__complex__", "__eq__", "__float__", "__getitem__", "__index__",
    "__int__", "__iter__", "__len__", "__setitem__",
)  # fmt: skip

for _name, _what in (_NUMBERS | _WRITES).items():
    setattr(Batched, _name, _refusal(_what))
for _name in _GRAPH:
    setattr(Batched, _name, _refusal(f"{_name}()", NO_GRAPH))
for _name in _OPERATORS:
    setattr(Batched, f"__i{_name}__", _augmented(getattr(operator, f"i{_name}")))
for _name in _PROTOCOLS:
    setattr(Outline, _name, _refusal("the array of a batched tensor"))
