"""Trading time for memory: a part of a computation is computed again when its gradient is needed.

Note [Checkpoints]
------------------
What the operations of a checkpointed call save is replaced by placeholders, numbered in the order
of saving. The first placeholder that a backward unpacks makes the function run again, on the same
arguments, under hooks that collect what is saved; values and placeholders are matched by number.
The graph recorded by this second run is thrown away: gradients flow through the first one.

A backward takes each value once, so one that finds its value gone is a new backward: the function
runs once for each of them. Backwards of different threads, and one inside the hook of another, keep
their values apart.

The arguments are saved as a node saves its operands, checked for changes and packed by the hooks
around the call. So a checkpoint within another keeps no argument alive, either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from threading import get_ident
from typing import Any
from weakref import ref

import numpy as np

from numgrad.autograd.hooks import user_code
from numgrad.autograd.saved import Guard, Packed, keep, pack, saved_tensors_hooks
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import check_current, next_sequence
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.errors import NumgradRuntimeError, NumgradValueError
from numgrad.libraries import PACKAGE
from numgrad.tensors.random_state import RandomState

ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]

_early_stop: ContextVar[bool | None] = ContextVar("early_stop", default=None)
_debug: ContextVar[bool | None] = ContextVar("debug", default=None)


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Decide for the checkpoints called inside whether their recomputation stops early.

    It takes the place of their argument ``early_stop``, and holds for this thread.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.tensors.checkpoint import set_checkpoint_early_stop
    >>> x = ng.tensor(0.0, requires_grad=True)
    >>> with set_checkpoint_early_stop(False):
    ...     y = ng.checkpoint(ng.exp, x)
    >>> y.backward()
    >>> x.grad
    tensor(1.)
    """
    before = _early_stop.set(bool(enable))
    try:
        yield
    finally:
        _early_stop.reset(before)


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Decide for the checkpoints called inside whether errors name lines; None: they do.

    It takes the place of their argument ``debug``, and holds for this thread.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.tensors.checkpoint import set_checkpoint_debug_enabled
    >>> x = ng.tensor(0.0, requires_grad=True)
    >>> with set_checkpoint_debug_enabled(True):
    ...     ng.checkpoint(ng.exp, x).backward()
    """
    before = _debug.set(enabled)
    try:
        yield
    finally:
        _debug.reset(before)


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Two contexts that do nothing: the default of ``checkpoint``."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = False,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """Call ``function`` without keeping what its backward needs: that is computed again.

    The call gives the same values and gradients as ``function(*args, **kwargs)``, of any order. A
    backward that reaches it calls ``function`` once more, so it must do the same again.

    Parameters
    ----------
    function
        Any function of Tensors, also one that uses leaves which are not among its arguments.
    *args, **kwargs
        What it is called with. Arguments are kept until the gradient was computed; change none of
        them in place.
    use_reentrant
        PyTorch's older manner, a backward within the backward, does not exist here: True is an
        error, and leaving it out does not warn.
    context_fn
        Returns two context managers: the first is around the call, the second around each
        recomputation.
    determinism_check
        ``"default"`` compares number, shapes and dtypes of what both runs save; ``"none"`` does
        not.
    early_stop
        Stop the recomputation as soon as everything needed was computed, by an exception (no
        ``Exception``, so handlers in ``function`` let it pass).
    preserve_rng_state
        Repeat the random numbers: those of NumPy's global generator, and of the generators among
        the arguments and the variables of ``function``.
    debug
        Let errors name the lines that saved what differs.

    Returns
    -------
    object
        What ``function`` returns.

    Raises
    ------
    NumgradValueError
        For ``use_reentrant=True`` or an unknown ``determinism_check``.
    NumgradRuntimeError
        In a backward, if the recomputation saves something else, or an argument was changed.

    Notes
    -----
    Where nothing is recorded, and where another meaning is given to operations (forward mode,
    tracing), ``function`` is simply called.

    Examples
    --------
    >>> import numgrad as ng
    >>> def layer(x):
    ...     print("computing")
    ...     return ng.tanh(ng.sin(x)).sum()
    >>> x = ng.tensor([0.0, 0.0], requires_grad=True)
    >>> y = ng.checkpoint(layer, x)
    computing
    >>> y.backward()
    computing
    >>> x.grad
    tensor([1., 1.])
    """
    if use_reentrant:
        raise NumgradValueError(
            "checkpoint: use_reentrant=True is not offered, since it loses gradients of what is not"
            " an argument; leave it out"
        )
    if determinism_check not in ("default", "none"):
        raise NumgradValueError(
            f"checkpoint: determinism_check is 'default' or 'none', got {determinism_check!r}"
        )
    if not state.grad_enabled or state.interpreters:
        return function(*args, **kwargs)
    override, chosen = _early_stop.get(), _debug.get()
    contexts = context_fn()
    region = _Region(function, args, kwargs, contexts[1])
    region.stops_early = early_stop if override is None else override
    region.checks = determinism_check == "default"
    region.lines = [] if (debug if chosen is None else chosen) else None
    if preserve_rng_state:
        region.random_state = RandomState(function, args, kwargs)
    with saved_tensors_hooks(region.pack, region.unpack), contexts[0]:
        result = function(*args, **kwargs)
    region.complete = True
    return result


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]], segments: int, input: Any, **kwargs: Any
) -> Any:
    """Apply functions one after the other, all but the last of several segments as checkpoints.

    Parameters
    ----------
    functions
        Functions of one argument: each gets the result of the one before.
    segments
        Number of runs of functions that the sequence is cut into, of equal length but for the
        last. Its square root is what needs the least memory.
    input
        Argument of the first function.
    **kwargs
        Options of ``checkpoint``.

    Raises
    ------
    NumgradValueError
        If ``segments`` is not between 1 and the number of functions.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad.tensors.checkpoint import checkpoint_sequential
    >>> x = ng.tensor(0.5, requires_grad=True)
    >>> y = checkpoint_sequential([ng.sin, ng.exp, ng.tanh, ng.sqrt], 2, x)
    >>> y.backward()
    >>> bool(ng.isclose(x.grad, ng.grad(lambda x: ng.sqrt(ng.tanh(ng.exp(ng.sin(x)))))(0.5)))
    True
    """
    functions = list(functions)
    if not 1 <= segments <= len(functions):
        raise NumgradValueError(
            f"checkpoint_sequential: segments={segments} for {len(functions)} functions; choose a "
            "number from 1 to theirs"
        )
    size = len(functions) // segments
    last = size * (segments - 1)
    for begin in range(0, last, size):
        input = checkpoint(_Chain(functions[begin : begin + size]), input, **kwargs)
    return _Chain(functions[last:])(input)


class _Chain:
    """Functions applied one after the other."""

    def __init__(self, functions: Sequence[Callable[[Any], Any]]) -> None:
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        for function in self.functions:
            value = function(value)
        return value


# ------------------------------------------------------------------------------ the first run


class _Placeholder:
    """The number of a value, which a node keeps in its place."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Region:
    """A checkpointed call: how to repeat it, and what it saved. See Note [Checkpoints].

    The nodes hold it, through their placeholders; it holds none of the nodes of the call.
    """

    stops_early = True
    checks = True
    complete = False
    """Whether the first run is over: until then a second one, for a backward inside the function,
    may get further than the first."""
    lines: list[str] | None = None
    """For each value the line that saved it, if errors shall name them."""
    random_state: RandomState | None = None

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple,
        kwargs: dict[str, Any],
        context: AbstractContextManager[Any],
    ) -> None:
        self.function, self.context = function, context
        self.args = [_keep(value) for value in args]
        self.kwargs = {name: _keep(value) for name, value in kwargs.items()}
        self.sequence = next_sequence()
        self.placeholders: list[ref[_Placeholder]] = []
        self.metas: list[Meta] = []
        self.recomputed: dict[tuple[int, int], dict[int, Tensor]] = {}

    def pack(self, tensor: Tensor) -> _Placeholder:
        """Note that a value is saved, and let it go."""
        placeholder = _Placeholder(len(self.metas))
        self.placeholders.append(ref(placeholder))
        self.metas.append(Meta(tensor.shape, tensor.dtype))
        if self.lines is not None:
            self.lines.append(_line())
        return placeholder

    def unpack(self, placeholder: _Placeholder) -> Tensor:
        """The value a placeholder stands for, computed again if this backward has not yet."""
        backward = (get_ident(), state.depth)
        number = placeholder.number
        values = self.recomputed.get(backward, {})
        if number not in values:
            self.recomputed.pop(backward, None)
            values = self.recomputed[backward] = _Recomputation(self).run()
        return values.pop(number)

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Arguments of the function."""
        args = [self._restore(saved) for saved in self.args]
        return args, {name: self._restore(saved) for name, saved in self.kwargs.items()}

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Run the function in the surroundings it had the first time."""
        repeated = nullcontext() if self.random_state is None else self.random_state.restored()
        with repeated, self.context:
            self.function(*args, **kwargs)

    def _restore(self, value: Any) -> Any:
        """An argument as it was given."""
        if type(value) is Packed:
            return _placed(value)
        if type(value) is Guard:
            value.check(_name)
            return value.array if value.tensor is None else value.tensor
        if isinstance(value, Tensor):
            check_current(_name, value, self.sequence)
        return value


def _name() -> str:
    """The name, in errors, of who keeps arguments."""
    return "checkpoint"


def _keep(value: Any) -> Any:
    """An argument as a node keeps an operand."""
    saved = keep(value)
    if isinstance(value, Tensor) and state.saved_hooks:
        is_leaf = value._requires_grad and value._grad_fn is None  # which the graph holds anyway
        return saved if is_leaf else pack(saved, state.saved_hooks[-1])
    return saved


def _placed(packed: Packed) -> Tensor:
    """A packed argument at its place in the graph."""
    array, edge = packed.unpack(), packed.origin
    if type(edge) is tuple:
        return Tensor(array, True, edge[0], edge[1] + 1)
    return Tensor(array, edge is not None, edge)


# ---------------------------------------------------------------------------- the second run


class _Stop(BaseException):
    """Ends a recomputation, once everything needed is there."""


class _Recomputation:
    """A second run of a function, which collects what its operations save."""

    def __init__(self, region: _Region) -> None:
        self.region = region
        self.values: dict[int, Tensor] = {}
        self.metas: list[Meta] = []
        self.lines: list[str] = []
        self.needed = {k for k, known in enumerate(region.placeholders) if known() is not None}
        self.last = max(self.needed)
        self.mutation: Any = None

    def run(self) -> dict[int, Tensor]:
        """The values that are still needed, by number."""
        self.mutation = state.mutation
        # before the modes change: unpacking them may be part of the same backward
        args, kwargs = self.region.arguments()
        with user_code(True, state.task):
            before = state.set(
                inference=False, interpreters=(), mutation=self, saved_hooks_disabled=None,
                saved_hooks=((self.pack, _as_it_is),),
            )  # fmt: skip
            try:
                self.region.call(args, kwargs)
            except _Stop:
                pass
            else:
                self._check_count()
            finally:
                state.set(**before)
        self._check_metas()
        return self.values

    def pack(self, tensor: Tensor) -> Tensor:
        """Collect what was needed of the first run."""
        number = len(self.metas)
        self.metas.append(Meta(tensor.shape, tensor.dtype))
        if self.region.lines is not None:
            self.lines.append(_line())
        if number in self.needed:
            self.values[number] = tensor
        if number == self.last and self.region.stops_early:
            raise _Stop
        return tensor

    def before_write(self, array: np.ndarray) -> None:
        """Copy what was collected and is about to be changed by an in-place operation."""
        for number, tensor in self.values.items():
            if np.may_share_memory(tensor._array, array):
                self.values[number] = Tensor(tensor._array.copy())
        if self.mutation is not None:
            self.mutation.before_write(array)

    def _check_count(self) -> None:
        first, second = len(self.region.metas), len(self.metas)
        if second <= self.last or (second != first and self.region.checks and self.region.complete):
            raise NumgradRuntimeError(
                f"checkpoint: the function saved {first} tensors when it was called and {second} "
                "when it was called again for the backward; it must do the same both times"
                + self._where(min(first, second))
            )

    def _check_metas(self) -> None:
        if not self.region.checks:
            return
        for number, (first, second) in enumerate(zip(self.region.metas, self.metas, strict=False)):
            if first != second:
                raise NumgradRuntimeError(
                    f"checkpoint: tensor {number} that the function saved has shape {first.shape} "
                    f"and dtype {first.dtype}, but when it was called again for the backward shape "
                    f"{second.shape} and dtype {second.dtype}; it must do the same both times"
                    + self._where(number)
                )

    def _where(self, number: int) -> str:
        """The lines of both runs that saved a value, if they are known."""
        lines = self.region.lines
        if lines is None:
            return " (debug=True names the lines)"
        first, second = (
            names[number] if number < len(names) else "nowhere" for names in (lines, self.lines)
        )
        return f"; saved at first in {first}, then in {second}"


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


def _line() -> str:
    """Where the code that called numgrad stands."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    code = frame.f_code
    return f"{code.co_filename}, line {frame.f_lineno}, in {code.co_qualname}"
