"""The carry of a loop in eager code, step by step, and decisions that differ by example.

Note [Dtypes of a carry]
------------------------
A carry has one dtype throughout: the one in which a step gives it back. A Python number has none of
its own, as in NumPy: it takes that of the first array it meets. Whether it meets any but NumPy's
default ones shows in the first step, which is watched for that; then the step is traced, as a
compiled loop does it, and the carry gets the dtypes that are found so. A step that cannot be traced
carries such numbers as NumPy's defaults.

Note [Writes to a carry]
------------------------
A step may write to its carry (``c += x``), which is its own: neither what the loop began with nor
what was collected changes. So the first step gets copies. If it writes to them, so do all others;
else the others get the carry itself, since a copy takes as long as a short step, and are looked at
for writes. The first that writes after all is refused if that changed what was collected before.
In inference mode writes are not counted, and every step gets copies.

Note [Examples that part ways]
------------------------------
Inside ``vmap`` code is run once for all examples. Where some go on and others do not, it is run for
all, and each example takes what is its own. An example that would not have got there computes with
the numbers of one that does, as constants, also of what it reads from outside (Note [Read in a
branch] in ``autograd.batching.batch``): its own might be where the code has no value, and a NaN
that nobody takes would still be one in the gradient. Compilers call this predication, or masked
execution where lanes of a vector diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from numgrad.autograd.argument import GivenTensor
from numgrad.autograd.batching.batch import Batched, read_in_branch
from numgrad.autograd.batching.selected import beneath, levels_of, spread
from numgrad.autograd.versions import write_count
from numgrad.core.abstract import AbstractLength
from numgrad.core.foreign import refuse_mask
from numgrad.core.formula import Meta
from numgrad.core.interpreter import (
    Interpreter,
    ThreadSettings,
    bind,
    bind_recorded,
    interpreter,
    state,
)
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, flatten, map_leaves, paths, unflatten
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.tensors.inplace import root_of_batch
from numgrad.tensors.random_state import RandomState, reached
from numgrad.tensors.tensor import Tensor


def decided(name: str, value: Any) -> Any:
    """A truth value as a bool, or as it is, if examples differ or it is not known yet.

    Raises
    ------
    NumgradTypeError
        If it is none, or not a single one.
    """
    _check_truth(name, value)
    value = read_in_branch(value)
    flags = _numbers(value)
    if flags is None:
        return truth(name, value)
    if not flags.size:  # a batch of no example
        return False
    return bool(flags.flat[0]) if np.all(flags == flags.flat[0]) else value


def truth(name: str, value: Any) -> Any:
    """A truth value as an array of a trace; raises as ``decided`` does."""
    _check_truth(name, value)
    return OPS["astype"](as_operand(value), np.bool)


def _check_truth(name: str, value: Any) -> None:
    shape = np.shape(value) if not isinstance(value, Tensor) else value.shape
    if tuple(shape) != ():
        raise NumgradTypeError(
            f"{name}: the condition is a {type(value).__name__} of shape {tuple(shape)}; it is one "
            "truth value: np.all or np.any make one of several"
        )
    known = isinstance(value, Tensor | AbstractLength)
    if not known and np.asarray(value).dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: the condition is a {type(value).__name__}; it is one truth value, as a bool "
            "or a number"
        )


def numbered(name: str, value: Any) -> Any:
    """An integer as an int, or as it is, if examples differ or it is not known yet."""
    array = value if isinstance(value, Tensor) else np.asarray(value)
    if tuple(array.shape) != () or array.dtype.kind not in "iub":
        raise NumgradTypeError(
            f"{name}: the index is one integer, got dtype {array.dtype} and shape "
            f"{tuple(array.shape)}"
        )
    value = read_in_branch(value)
    numbers = _numbers(value)
    if numbers is None:
        return value
    if not numbers.size:
        return 0
    return int(numbers.flat[0]) if np.all(numbers == numbers.flat[0]) else value


def _numbers(value: Any) -> np.ndarray | None:
    """A number, or those of all examples; None if they are not known before a compiled call."""
    numbers = state.ground.numbers(beneath(value)) if isinstance(value, Tensor) else value
    return None if numbers is None else np.asarray(numbers)


@contextmanager
def only_for(on: Any, tree: Any) -> Iterator[Any]:
    """Inside is what only those examples do that are ``on``; gives a nesting to do it with.

    The others have the numbers of one of those in it, and in what the code reads besides.
    """
    over = levels_of(on)
    flags = np.asarray(state.ground.numbers(beneath(on))).astype(bool)
    index = tuple(int(k) for k in np.unravel_index(int(np.argmax(flags)), flags.shape))

    def of_running(leaf: Any) -> Any:
        leaf = read_in_branch(leaf)  # of a branch around this one
        if set(over).isdisjoint(levels_of(leaf)):
            return leaf
        one = beneath(spread(leaf, over))[index].detach()
        return np.where(on, leaf, one)

    if not flags.any():
        yield tree
        return
    with over[-1].only_for(of_running):
        yield map_leaves(lambda x: of_running(x) if isinstance(x, Batched) else x, tree)


def select(name: str, on: Any, a: Any, b: Any) -> Any:
    """A nesting whose leaves are those of ``a`` where ``on``, else of ``b``."""
    of_a: list[Any] = []
    of_b: list[Any] = []
    nesting = flatten(a, of_a)
    where = align(nesting, b, of_b, "the result")
    if where is not None:
        refuse_nesting(name, where)
    return unflatten(nesting, (_of_two(name, on, x, y) for x, y in zip(of_a, of_b, strict=True)))


def refuse_nesting(name: str, where: str) -> NoReturn:
    """Raise for branches that return other nestings."""
    raise NumgradValueError(
        f"{name}: {where} is nested otherwise in another branch; all return the same nesting"
    )


def check_shapes(name: str, a: Sequence[Any], b: Sequence[Any]) -> None:
    """Raise where two branches return other shapes in one place."""
    if tuple(a) != tuple(b):
        raise NumgradValueError(
            f"{name}: branches return shapes {tuple(a)} and {tuple(b)} in one place; all return "
            "the same shapes"
        )


def leaf(name: str, what: str, x: Any) -> Tensor:
    """A leaf of a nesting as a Tensor.

    Raises
    ------
    NumgradTypeError
        If it is neither an array nor a number.
    """
    if isinstance(x, Tensor):
        return x
    refuse_mask(name, x)
    if not isinstance(x, AbstractLength) and np.asarray(x).dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: {what} holds a {type(x).__name__}; it holds arrays and numbers"
        )
    return Tensor(state.ground.lift(x))


def _of_two(name: str, on: Any, x: Any, y: Any) -> Any:
    if x is None or y is None:
        return None
    check_shapes(name, *(a.shape if isinstance(a, Tensor) else np.shape(a) for a in (x, y)))
    return np.where(on, x, y)


def advanced(name: str, on: Any, body: Callable[[Any], Any], carry: Any) -> Any:
    """``body(carry)`` for those examples that are ``on``; the others stay as they are."""
    if on is True:
        return body(carry)
    with only_for(on, carry) as own:
        made = body(own)
    return select(name, on, made, carry)


def branched(
    name: str,
    on: Any,
    first: Callable[..., Any],
    second: Callable[..., Any],
    operands: Sequence[Any],
) -> Any:
    """``first(*operands)`` for those examples that are ``on``, ``second`` for the others."""
    off = OPS["logical_not"](on)
    with only_for(on, tuple(operands)) as own:
        a = first(*own)
    with only_for(off, tuple(operands)) as own:
        b = second(*own)
    return select(name, on, a, b)


_FLOAT = np.dtype(np.float64)
DEFAULTS = {np.dtype(name) for name in ("bool", "int64", "float64", "complex128")}


class _Watching(Interpreter):
    """Sees whether a step meets dtypes other than NumPy's defaults: Note [Dtypes of a carry]."""

    met = False

    def bind(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        with self._below():
            out = bind(op, args, params)
        self._look(args, out)
        return out

    def recorded(self, op: Any, args: tuple, params: dict[str, Any]) -> tuple[Any, Any]:
        with self._below():
            out, call = bind_recorded(op, args, params)
        self._look(args, out)
        return out, call

    def assign(self, target: Any, result: Any) -> None:
        self._look((target,), result)

    def _look(self, args: tuple, out: Any) -> None:
        if not self.met:
            arrays = (*args, *(out if isinstance(out, tuple) else (out,)))
            self.met = any(getattr(x, "dtype", _FLOAT) not in DEFAULTS for x in arrays)

    def _below(self) -> ThreadSettings:
        stack = state.interpreters
        return ThreadSettings(interpreters=stack[: stack.index(self)] if self in stack else stack)


class CarryingLoop:
    """The carry of a loop: Note [Loops in eager code].

    Attributes
    ----------
    name
        The function that errors name.
    counted
        Whether the carry is a pair of the number of a step and what the caller carries along.
    rows
        What was collected, by step.
    """

    def __init__(self, name: str, init: Any, others: Sequence[Any], counted: bool = False) -> None:
        self.name, self.counted = name, counted
        leaves: list[Any] = []
        self.nesting = flatten(init, leaves)
        self.as_tensors = bool(state.transforms or state.interpreters or state.ground.deferred)
        self.as_tensors |= any(isinstance(x, Tensor) for x in (*leaves, *others))
        self.leaves = [leaf(name, "the carry", x) for x in leaves]
        self.weak = [_is_number(x) for x in leaves]
        self.steps = 0
        self.rows: dict[int, list[Any]] = {}
        self._writes = state.inference

    @property
    def carry(self) -> Any:
        """The carry at present."""
        return unflatten(self.nesting, iter(self.leaves))

    def step(self, one: Callable[[Any], tuple[Any, Any]]) -> Any:
        """Make a step; returns what else it gives."""
        if self.steps:
            return self._carry_on(*self._run(one))
        random = watching = None
        if any(self.weak) or any(a.dtype != np.float64 for a in self.leaves):
            random = RandomState(one)
        if any(self.weak):
            with interpreter(_Watching()) as watching:
                new, y = self._run(one)
        else:
            new, y = self._run(one)
        met = watching is not None and watching.met and self._try_to_fix(lambda c, _: one(c), [])
        if met or self.widen([a.dtype for a in self.checked(new)]):
            if random is not None:
                random.restore()
            self.weak = [False] * len(self.weak)
            return self.step(one)
        return self._carry_on(new, y)

    def _run(self, one: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
        """The next carry, to which the step may write: Note [Writes to a carry]."""
        if self._writes:
            return one(copied(self.carry))
        leaves = self.leaves if self.steps else [OPS["copy"](a) for a in self.leaves]
        memories = [root_of_batch(a) for a in leaves]
        before = [write_count(a) for a in memories]
        result = one(unflatten(self.nesting, iter(leaves)))
        written = [a for a, n in zip(memories, before, strict=True) if write_count(a) != n]
        self._writes = bool(written)
        if written and self._collected(written):
            raise NumgradRuntimeError(
                f"{self.name}: step {self.steps} writes to its carry in place (c += x), which the "
                "first did not, and so to what was collected before; make a new one (c = c + x)"
            )
        return result

    def _collected(self, memories: Sequence[Tensor]) -> bool:
        """Whether what was collected shows one of these memories."""
        rows = [y for row in self.rows.values() for y in row if isinstance(y, Tensor)]
        return any(root_of_batch(y) is a for y in rows for a in memories)

    def _carry_on(self, new: Any, y: Any) -> Any:
        """Carry on what a step made, in the dtypes of the carry; returns ``y``."""
        self.leaves = [
            a if a.dtype == before.dtype else self._converted(k, a, before.dtype)
            for k, (a, before) in enumerate(zip(self.checked(new), self.leaves, strict=True))
        ]
        self.steps += 1
        return y

    def widen(self, made: Sequence[np.dtype]) -> bool:
        """Convert the carry to hold what the first step made, too; whether it had other dtypes."""
        dtypes = [self._dtype(k, dtype) for k, dtype in enumerate(made)]
        if dtypes == [a.dtype for a in self.leaves]:
            return False
        self.leaves = [OPS["astype"](a, d) for a, d in zip(self.leaves, dtypes, strict=True)]
        self.weak = [False] * len(dtypes)
        return True

    def fix_numbers(self, one: Callable[..., Any], inputs: Sequence[Any]) -> None:
        """Find the dtypes of numbers, if what the step has at hand is not of NumPy's defaults."""
        if not any(self.weak):
            return
        met = [a for a, weak in zip(self.leaves, self.weak, strict=True) if not weak]
        met += [x for x in reached(one, set()) if isinstance(x, np.ndarray | np.generic | Tensor)]
        if not {x.dtype for x in (*met, *inputs)} <= DEFAULTS:
            self._try_to_fix(one, inputs)

    def _try_to_fix(self, one: Callable[..., Any], inputs: Sequence[Any]) -> bool:
        """Settle dtypes if the step can be traced; whether they are others."""
        before = self.leaves, self.weak
        try:
            self.fix_dtypes(one, inputs, watched=True)
        except Exception:  # of whatever kind: the step is not meant to run here
            self.leaves, self.weak = before
        return [a.dtype for a in self.leaves] != [a.dtype for a in before[0]]

    def fix_dtypes(
        self, one: Callable[..., Any], inputs: Sequence[Any], watched: bool = False
    ) -> None:
        """Give the carry the dtypes that a traced step leaves alone.

        ``watched`` refuses steps that do more than compute.
        """
        again = True
        while again:
            again = self.widen(self.traced(one, inputs, watched)[0]) or any(self.weak)
            self.weak = [False] * len(self.weak)

    def fix_without_steps(self, one: Callable[..., Any]) -> None:
        """Give the carry of a loop that made no step the dtypes that one would give it."""
        if not self.steps:
            self._try_to_fix(one, [])

    def traced(
        self, one: Callable[..., Any], inputs: Sequence[Any], watched: bool = False
    ) -> tuple[list[np.dtype], Nesting, list[tuple[tuple, np.dtype] | None]]:
        """Trace one step: dtypes of the carry, nesting and kinds of the rest."""
        from numgrad.compiler.trace.body import own_memory, trace_body

        count = len(self.leaves)
        metas = [Meta(a.shape, a.dtype) for a in self.leaves]
        metas += [Meta((1, *x.shape[1:]), x.dtype) for x in inputs]
        results: list[Any] = []
        structure: Nesting = None

        def function(values: Sequence[Tensor]) -> list[Any]:
            nonlocal structure
            results.clear()  # it may be traced again
            new, y = one(unflatten(self.nesting, iter(own_memory(values[:count]))), values[count:])
            structure = flatten(y, results)
            return [*self.checked(new), *(output for output in results if output is not None)]

        outputs = iter(
            trace_body(function, metas, self.weak, carries=True, watched=watched).graph.outputs
        )
        dtypes = [next(outputs).dtype for _ in range(count)]
        kinds = [None if output is None else next(outputs) for output in results]
        return dtypes, structure, [None if v is None else (v.shape, v.dtype) for v in kinds]

    def _dtype(self, k: int, made: np.dtype) -> np.dtype:
        """The dtype of a carry of which the first step made another one."""
        before = self.leaves[k].dtype
        return np.result_type(before.type(0).item() if self.weak[k] else before, made)

    def _converted(self, k: int, a: Any, dtype: np.dtype) -> Any:
        if np.can_cast(a.dtype, dtype, "same_kind"):
            return OPS["astype"](a, dtype)
        raise NumgradTypeError(
            f"{self.name}: {self._path(k)} has dtype {dtype} at first and {a.dtype} after a step; "
            "convert it with astype"
        )

    def checked(self, new: Any) -> list[Any]:
        """The leaves of what a step returned, nested and shaped as before."""
        results = nested_alike(
            self.name, self.nesting, new, "the carry after a step", inner=self.counted
        )
        arrays = [leaf(self.name, "the carry", x) for x in results]
        for k, (a, before) in enumerate(zip(arrays, self.leaves, strict=True)):
            if tuple(a.shape) != tuple(before.shape):
                raise NumgradValueError(
                    f"{self.name}: {self._path(k)} has shape {tuple(before.shape)} at first and "
                    f"{tuple(a.shape)} after a step; a loop carries the same shapes along"
                )
        return arrays

    def _path(self, k: int) -> str:
        path = list(paths(self.nesting, "the carry"))[k]
        return path.replace("[1]", "", 1) if self.counted else path

    def result(self) -> Any:
        """The carry as the caller gets it."""
        return unflatten(self.nesting, (self.kind(a) for a in self.leaves))

    def kind(self, value: Any) -> Any:
        """A result as the caller gets it: a Tensor, or an ndarray where nobody asked for one."""
        if value is None or self.as_tensors or value.requires_grad:
            return value
        array = value._array
        return array if array.ndim else array[()]


def copied(carry: Any) -> Any:
    """A carry to which a step may write."""
    return map_leaves(OPS["copy"], carry)


def _is_number(x: Any) -> bool:
    """Whether something is a Python number, also as an argument of a compiled function."""
    if type(x) in (Tensor, GivenTensor) and state.ground.deferred:
        return bool(getattr(getattr(x._array, "value", None), "weak", False))
    return type(x) in (int, float, complex)


def nested_alike(
    name: str, nesting: Nesting, value: Any, what: str, inner: bool = False
) -> list[Any]:
    """The leaves of a value that is to be nested in that way.

    Errors are about the second of a pair where that is ``inner``.
    """
    results: list[Any] = []
    where = align(nesting, value, results, what)
    if where is not None:
        where = where.replace("[1]", "", 1) if inner else where
        raise NumgradValueError(
            f"{name}: {where} is nested otherwise than before; return what is nested alike"
        )
    return results
