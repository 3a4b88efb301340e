"""Interpreters, which say what operations and arrays mean: a stack for each thread.

Note [Interpreters]
-------------------
Calling an operation asks the interpreter on top of a per-thread stack what the call means. With an
empty stack that is ``state.ground``. In eager code this is the eager interpreter, which
``numgrad.tensors`` installs: operations never import Tensor. ``ng.jit`` pushes an interpreter that
records what a function computes, and makes it the ground as well. Above the ground, forward mode
and batches are levels that compute with the operations below them; ``raw`` computes on plain
ndarrays without recording (gradient formulas of views run under it), ``reading`` builds symbols (a
formula that calls other operations is read under it).

The ground says besides what *arrays* are, so code that makes one, draws one, writes to one or
wants its numbers asks ``state.ground``: eager arrays are NumPy's, those of a function that is being
compiled are abstract (Note [Tracing] in ``abstract``), and nobody else needs to know.

``state.mode`` says in one number what goes on in this thread, so the eager hot path pays one
look-up for all of it: 3 compute in inference mode, 2 compute and record, 1 compute, 0 go through
``bind``, since an interpreter is pushed, saved tensors are packed or anomalies looked for.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import get_ident
from typing import Any

import numpy as np

from numgrad.core.arguments import UnknownParameter
from numgrad.core.foreign import labelled_kind
from numgrad.errors import NumgradRuntimeError


class Interpreter(ABC):
    """Says what operations mean: Note [Interpreters]."""

    draws: bool = False
    """Whether it says what a random number is, with ``drawn``."""

    @abstractmethod
    def bind(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        """The result of a call of an operation."""

    def recorded(self, op: Any, args: tuple, params: dict[str, Any]) -> tuple[Any, Any]:
        """The result of ``bind``, and the ``Call`` on these very operands, None if there is none.

        An interpreter that has no part in a call passes it on: those below it may have one.
        """
        return self.bind(op, args, params), None

    def apply_function(self, function: Any, args: tuple, keywords: dict[str, Any]) -> tuple:
        """Outputs of a user's ``Function``, and the ctx if its forward ran."""
        raise NumgradRuntimeError(
            f"{function.__name__}.apply: {self!r} sees operations only, and a Function is Python "
            "code; use operations in its place"
        )

    def assign(self, target: Any, result: Any) -> None:
        """Take note that a value was written to the memory of a tensor."""
        return None

    def duplicate(self, original: Any, twin: Any) -> None:
        """Take note that a tensor was copied before a write."""
        return None


class RawInterpreter(Interpreter):
    """Computes on ndarrays, records nothing; Tensors are not expected."""

    def bind(self, op: Any, args: tuple, params: dict[str, Any]) -> Any:
        return op.compute(args, params)


raw = RawInterpreter()


class BaseInterpreter(Interpreter):
    """Says what arrays are as well; what lies under all other interpreters."""

    draws = True
    inner: bool = False
    """Whether it traces the body of a loop or branch: Note [Draws of a body] in ``draws``."""
    deferred: bool = False
    """Whether what is computed has numbers only later, each time that a compiled function runs."""

    def once(self, message: str) -> None:
        """Something is done now, and not again; raises ``NumgradTraceError`` if that is wrong."""
        return None

    def remember_draws(self) -> Any:
        """A context in which what is computed draws the numbers that come now, each time anew.

        The first time that it is entered they are drawn. None where that is left to generators.
        """
        return None

    def begun(self, generator: Any, like: Any = None) -> None:
        """Take note that a generator was made, as a copy of one that there is, if given."""
        return None

    def wrapped(self, source: Any) -> None:
        """Raise if it is not known whether NumPy's generator over ``source`` was made only now."""
        return None

    def reseeded(self, seed: Any) -> None:
        """Take note that NumPy's global generator was seeded."""
        return None

    # ----------------------------------------------------------------------------------- arrays

    @abstractmethod
    def lift(self, x: Any, dtype: Any = None) -> Any:
        """Anything as an array; a number gets the dtype, if one is given."""

    def detached(self, x: Any) -> Any:
        """The array of a Tensor, over the same memory, to be a constant."""
        return self.lift(x)

    def ask(self, what: str, x: Any) -> None:
        """Raise if a user asks a Tensor that says no whether it is followed, which is unknown."""
        return None

    def hooked(self, tensor: Any, handle: Any) -> None:
        """Take note that a hook was registered on a Tensor."""
        return None

    def saved_hooks(self) -> None:
        """Raise if functions that are to keep saved tensors would not be asked."""
        return None

    def node_hook(self, hook: Any) -> Any:
        """The form in which a hook that is registered on a node is stored."""
        return hook

    def follows(self, tensor: Any) -> bool:
        """Whether derivatives lead to a Tensor that does not say so, in a body."""
        return False

    def replaced(self, tensor: Any, x: Any) -> Any:
        """The array of a Tensor ``x`` in place of that of another, which keeps its history."""
        return x._array

    @abstractmethod
    def numbers(self, x: Any) -> Any:
        """The elements of a Tensor or array as an ndarray; None if it has none that could be seen.

        They are known only later in a trace, and differ by example in a batch.
        """

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two Tensors of one shape are known to have the same elements."""
        return bool(np.array_equal(self.numbers(a), self.numbers(b)))

    @abstractmethod
    def reads(self, data: Any) -> bool:
        """Whether a nesting holds anything that may be different at each run of what is called."""

    def found(self, array: Any) -> bool:
        """Whether an ndarray lies around what is compiled, and so may be another at each run."""
        return False

    def look_at(self, array: Any) -> None:
        """Let what is compiled compare the numbers of an ndarray around it at each run."""

    @abstractmethod
    def made(self, array: Any) -> Any:
        """An array that was just made, as memory of its own."""

    @abstractmethod
    def filled(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        """An array with one value everywhere."""

    @abstractmethod
    def zeros(self, shape: Any, dtype: Any) -> Any:
        """Zeros."""

    @abstractmethod
    def ones(self, shape: Any, dtype: Any) -> Any:
        """Ones."""

    @abstractmethod
    def empty(self, shape: Any, dtype: Any) -> Any:
        """An array of which every element will be written."""

    @abstractmethod
    def unit(self, shape: tuple, position: int, dtype: Any) -> Any:
        """Zeros with a 1 at one place, counted in C order."""

    @abstractmethod
    def units(self, shape: tuple, positions: range, dtype: Any) -> Any:
        """These arrays for some places in a row, along a first axis."""

    @abstractmethod
    def is_zero(self, array: Any) -> bool:
        """Whether an array is known to be zeros for want of a dependence."""

    @abstractmethod
    def differentiable(self, x: Any) -> Any:
        """A Tensor without history over what is to be differentiated; Python numbers are floats."""

    # ----------------------------------------------------------------------------------- memory

    @abstractmethod
    def store(self, target: Any, value: Any) -> None:
        """Write a value, which broadcasts, to the memory of a Tensor."""

    @abstractmethod
    def region(self, owner: Any, view: Any) -> Any:
        """Where a view lies in its root."""

    def lacks_gradient(self, tensor: Any) -> None:
        """Raise if a user finds no gradient of a Tensor where that is not known."""
        return None

    @abstractmethod
    def gradient(self, tensor: Any) -> Any:
        """The array in ``.grad`` of a Tensor."""

    @abstractmethod
    def set_gradient(self, tensor: Any, value: Any) -> None:
        """Replace what ``.grad`` of a Tensor holds."""

    # ---------------------------------------------------------------------------------- indices

    @abstractmethod
    def index_part(self, entry: Any, shape: tuple) -> Any:
        """A part of an index that is no plain integer, slice, None or Ellipsis."""

    def selected(self, x: Any, mask: Any) -> Any:
        """The elements of a Tensor at a mask without numbers."""
        raise NotImplementedError

    @abstractmethod
    def selected_shape(self, operation: str, shape: tuple, index: tuple) -> tuple:
        """The shape of what a basic index selects."""

    @abstractmethod
    def positions(self, operation: str, shape: tuple, index: tuple) -> Any:
        """Positions, in C order, of the elements that any other index selects."""

    # ------------------------------------------------------------------------------------ calls

    @abstractmethod
    def plan(self, op: Any, x: Any, params: dict[str, Any]) -> Any:
        """The record of a call of an operation on one Tensor, without its result."""

    @abstractmethod
    def called(
        self, function: Callable[..., tuple], operands: Sequence[Any], results: Sequence[tuple]
    ) -> list[Any]:
        """Tensors of what a Python function makes of ndarrays; it has no effects.

        ``results`` are the shapes and dtypes of what it returns.
        """

    @abstractmethod
    def effect(
        self, function: Callable[..., tuple], operands: Sequence[Any], targets: Sequence[Any]
    ) -> None:
        """Let a Python function, which gets ndarrays, change Tensors, whose arrays it returns."""

    # ---------------------------------------------------------------------------------- numbers

    @abstractmethod
    def drawn(
        self,
        function: Callable[..., Any],
        source: Any,
        operands: Sequence[Any],
        size: Any,
        dtype: Any,
        independent: bool = True,
    ) -> Any:
        """A Tensor of what ``function(*operands, size)`` draws from NumPy's bit generator.

        ``size`` is that of the result; for None, it has the shape to which the operands broadcast.
        ``independent`` says that its elements do not depend on each other, so that one call may
        draw them for many examples.
        """

    def drawn_together(self, draws: Any) -> list[Any]:
        """Tensors of what ``draws`` of a body give: Note [Draws of a body] in ``draws``."""
        raise NotImplementedError

    def shows_row(self, whole: Any, row: Any) -> None:
        """``row`` was read at an integer whose number comes later; else it would be a view."""

    @abstractmethod
    def seed(self) -> Any:
        """A random integer below ``2**53`` from NumPy's global generator."""


class _Missing:
    """The ground until something asks it: then ``numgrad.tensors`` installs its own."""

    def attach(self, op: Any, before: Any) -> None:
        """Wait: ``numgrad.tensors`` attaches all operations that there are."""

    def __getattr__(self, name: str) -> Any:
        import_module("numgrad.tensors")
        return getattr(State.ground, name)


class State(threading.local):
    """State of a thread that its operations depend on; ``mode`` sums it up for the hot path."""

    mode: int = 2
    grad_enabled: bool = True
    constant: bool = False
    """Whether code turned recording off, so that what it computes is constant in traces as well."""
    inference: bool = False
    interpreters: tuple = ()
    ground: Any = _Missing()
    """The interpreter that says what arrays are; of the class, the eager one."""
    saved_hooks: tuple = ()
    """Pairs of hooks for saved tensors, the innermost last."""
    saved_hooks_disabled: str | None = None
    """The reason why there may be none."""
    mutation: Any = None
    """The store of old values of saved tensors that are written to, if that is allowed."""
    anomaly: Any = False
    """Whether nodes remember the lines that recorded them; or the function that then names them."""
    check_nan: bool | str = True
    """Whether a backward then fails on NaN, and results are looked at: see ``GRADIENTS``."""
    running: Any = None
    """The node whose backward is being computed, then."""
    depth: int = 0
    """How many backwards, one within the other, a user's code is running in."""
    task: Any = None
    """The innermost of these backwards."""
    callbacks: tuple = ()
    """Functions that run when a backward is complete, each behind the ``depth`` inside of that."""
    transforms: int = 0
    """How many functional transforms, one within the other, are calling a user's function."""
    plain: bool = True
    """Whether a backward may start at once: no interpreter, no other backward, no transform."""
    entered: tuple = ()
    """Pairs of a context manager that the thread is inside of and what it needs at its exit."""

    def __init__(self) -> None:
        """Give a thread values of its own, so that one look-up, of its dictionary, finds them."""
        self.__dict__.update(_OWN)

    def refresh(self) -> None:
        """Bring ``mode`` and ``plain`` up to date."""
        _sum_up(self.__dict__)

    def set(self, **changes: Any) -> dict[str, Any]:
        """Change some settings; returns what to give to ``set`` to change them back.

        All are changed, or, where a signal handler raises meanwhile, none.
        """
        return self.exchange(changes)

    def exchange(self, changes: dict[str, Any]) -> dict[str, Any]:
        """Do as ``set`` does, with a dictionary."""
        own = self.__dict__
        before, changed = {}, False
        for name, value in changes.items():
            before[name] = previous = own[name] if name in own else getattr(self, name)
            if previous is not value:
                changed = True
        if not changed:
            return before
        try:
            own.update(changes)
            _sum_up(own)
            return before
        except BaseException:
            self.put(before)
            raise

    def put(self, settings: dict[str, Any]) -> None:
        """Change settings by name."""
        own = self.__dict__
        own.update(settings)
        _sum_up(own)

    def modes(self) -> dict[str, Any]:
        """Return the modes that a user's code may enter, so that they can end with that code."""
        own = self.__dict__
        return {name: own[name] for name in _MODES}

    def enter(self, manager: Any, memory: Any) -> None:
        """Remember what a context manager, which threads may share, needs at its exit."""
        self.entered = (*self.entered, (manager, memory))

    def leave(self, manager: Any) -> Any:
        """Return what it gave to ``enter`` last in this thread; None if it was not entered here."""
        entered = self.entered
        for k in reversed(range(len(entered))):
            if entered[k][0] is manager:
                self.entered = entered[:k] + entered[k + 1 :]
                return entered[k][1]
        return None


_MODES = ("grad_enabled", "constant", "inference", "entered")
_OWN = {
    name: value
    for name, value in vars(State).items()
    if name in State.__annotations__ and name != "ground"
}
"""Settings of a new thread; ``ground`` stays that of the class until a thread has another."""


def _sum_up(own: dict[str, Any]) -> None:
    """Let ``mode`` and ``plain`` follow from the other settings of a thread."""
    stack = own["interpreters"]
    own["plain"] = not (stack or own["depth"] or own["transforms"])
    if stack or own["saved_hooks"] or own["anomaly"]:
        own["mode"] = 0
    elif own["inference"]:
        own["mode"] = 3
    else:
        own["mode"] = 2 if own["grad_enabled"] else 1


state = State()


class ThreadSettings:
    """Settings of the thread, by name, for one ``with`` block."""

    __slots__ = ("_before", "_changes")

    def __init__(self, **changes: Any) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        self._before = state.exchange(self._changes)

    def __exit__(self, *exception: object) -> None:
        state.exchange(self._before)


class Interpreters:
    """Other interpreters of the thread, for one ``with`` block."""

    __slots__ = ("_before", "_stack")

    def __init__(self, *stack: Interpreter) -> None:
        self._stack = stack

    def __enter__(self) -> None:
        self._before = state.interpreters
        try:
            state.interpreters = self._stack
            state.refresh()
        except BaseException:  # such as a signal handler's
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        state.interpreters = self._before
        state.refresh()


class Changing:
    """A context manager that changes settings of the thread; threads may share one.

    A signal handler that raises while it is entered leaves them as they were.
    """

    def __enter__(self) -> Any:
        changes = self._changes()
        before = self._before(changes)
        before["entered"] = entered = state.entered
        changes["entered"] = (*entered, (self, before))
        try:
            state.put(changes)
            return self
        except BaseException:
            state.put(before)
            raise

    def __exit__(self, *exception: object) -> None:
        entered = state.entered
        if entered and entered[-1][0] is self:
            state.put(entered[-1][1])
            return
        before = state.leave(self)  # what was entered later stays
        if before is not None:  # None in a thread that collects somebody else's generator
            state.put({**before, "entered": state.entered})

    def _changes(self) -> dict[str, Any]:
        """ThreadSettings inside, by name, in a dictionary of its own."""
        raise NotImplementedError

    def _before(self, changes: dict[str, Any]) -> dict[str, Any]:
        """ThreadSettings to which its exit returns."""
        own = state.__dict__
        return {name: own[name] if name in own else getattr(state, name) for name in changes}


class ChangingAtOnce(Changing):
    """The same, which changes settings when it is made already.

    The exit of the first block, if the thread that made it enters one, returns to settings of
    before that.
    """

    _outer: tuple[int, dict[str, Any]] | None

    def _change(self) -> None:
        changes = self._changes()
        self._outer = (get_ident(), super()._before(changes))
        state.set(**changes)

    def _before(self, changes: dict[str, Any]) -> dict[str, Any]:
        return self._undone() or super()._before(changes)

    def _undone(self) -> dict[str, Any] | None:
        """ThreadSettings before it was made, once, in the thread that made it."""
        outer = self._outer
        if outer is None or outer[0] != get_ident():
            return None
        self._outer = None
        return outer[1]


def install_eager(active: Any) -> None:
    """Set the ground of threads in which nothing is compiled."""
    State.ground = active


_ORDINARY = frozenset(
    (np.ndarray, np.float64, float, int, bool, complex, list, tuple, str, type(None))
)
"""Kinds of operands that leave it to interpreters."""


def bind(op: Any, args: tuple, params: dict[str, Any]) -> Any:
    """Apply ``op``: by the function behind its calls if that finds plans, else ``interpret``."""
    return op(*args, **params) if state.mode and op.planned else interpret(op, args, params)


def interpret(op: Any, args: tuple, params: dict[str, Any]) -> Any:
    """Apply ``op`` under the current interpreter; some operands say themselves what it means."""
    for a in args:
        kind = type(a)
        if kind not in _ORDINARY:
            applies = getattr(kind, "_applies", None)
            if applies:
                return a.apply(op, args, params)
            if applies is None and labelled_kind(kind) is not None:
                # Note [Labels] in ``tensors.labels``
                return import_module("numgrad.tensors.labels").apply(op, args, params)
    stack = state.interpreters
    try:
        return (stack[-1] if stack else state.ground).bind(op, args, params)
    except UnknownParameter as error:
        wider = op.wider if error.op is op else None
        if wider is not None and params.keys() <= {*wider.params, *wider.stand_ins}:
            return interpret(wider, args, params)
        if args and not hasattr(args[0], "grad_fn") and type(args[0]) not in (list, tuple):
            copy = import_module("numgrad.core.op").OPS["copy"]  # which imports this module
            args = (bind(copy, args[:1], {}), *args[1:])  # NumPy asks a Tensor
        return error.as_numpy(op, args, params)


def bind_recorded(op: Any, args: tuple, params: dict[str, Any]) -> tuple[Any, Any]:
    """``bind``, and the record of the call: ``Interpreter.recorded``."""
    stack = state.interpreters
    return (stack[-1] if stack else state.ground).recorded(op, args, params)


def above_ground() -> int:
    """How many interpreters lie below the first that a trace on top of them sees."""
    stack = state.interpreters
    for k in reversed(range(len(stack))):
        if isinstance(stack[k], BaseInterpreter):
            return k + 1
    return 0


def drawn(*arguments: Any, **options: Any) -> Any:
    """``BaseInterpreter.drawn`` by who says what a random number is here."""
    levels = (each for each in reversed(state.interpreters) if each.draws)
    return next(levels, state.ground).drawn(*arguments, **options)


def drawn_together(draws: Any) -> list[Any]:
    """``BaseInterpreter.drawn_together`` by who says what a random number is here."""
    levels = (each for each in reversed(state.interpreters) if each.draws)
    return next(levels, state.ground).drawn_together(draws)


@contextmanager
def interpreter(active: Interpreter) -> Iterator[Any]:
    """Let ``active`` interpret the operations this thread calls."""
    before = state.interpreters
    try:
        state.interpreters = (*before, active)
        state.refresh()
        yield active
    finally:
        state.interpreters = before
        state.refresh()


@contextmanager
def eagerly(*interpreters: Interpreter, **changes: Any) -> Iterator[None]:
    """Compute at once what is called inside, whatever is being compiled around it."""
    before = state.set(interpreters=interpreters, ground=State.ground, **changes)
    try:
        yield
    finally:
        state.set(**before)
