"""Instruments that make the package take notes, put in place for as long as a profile runs.

Where something is looked up by name each time, the name gets another value for as long as a
profile runs. What is held in many places, the functions behind operations and compiled programs,
gets other code: Note [Watched entries] in ``tensors.entries``. Off, nothing of this is there.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, wraps
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.autograd.engine import backward
from numgrad.autograd.variable import Tensor
from numgrad.codegen import compile as compiler, threads
from numgrad.compiler.loops import loop_program
from numgrad.compiler.run import program, specialise
from numgrad.core.interpreter import state
from numgrad.core.primitive import View
from numgrad.errors import generated
from numgrad.operations import index, join, write
from numgrad.operations.index import is_basic
from numgrad.optim import optimizer as step_hooks
from numgrad.profiler import notes as kinds
from numgrad.profiler.notes import Recording, Span, use
from numgrad.tensors import entries, inplace

Wrapper = Callable[[Recording, Any], Any]


def install(recording: Recording) -> Callable[[], None]:
    """Start taking notes; returns what ends that."""
    undo: list[Callable[[], Any]] = []
    try:
        for owner, name, wrapper in _WRAPPED:
            original = vars(owner)[name]
            undo.append(_setter(owner, name, original))
            setattr(owner, name, wraps(original)(wrapper(recording, original)))
        for function, wrapper in _RECODED:
            undo.append(recode(function, partial(wrapper, recording)))
        undo += _around_steps(recording)
        undo.append(lambda: program.watch(None))
        program.watch(_of_programs(recording))
        undo.append(lambda: entries.watch(None))
        entries.watch(_of_entries(recording), recording.noting)
    except BaseException:
        _undo(undo)
        raise
    use(recording)

    def remove() -> None:
        use(None)
        _undo(undo)

    return remove


def _undo(steps: Sequence[Callable[[], Any]]) -> None:
    for step in reversed(steps):
        step()


def recode(function: Any, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Let a function do what ``make`` makes of a copy, whoever holds it; returns what ends that."""
    code, names = function.__code__, function.__globals__
    plain = FunctionType(code, names, function.__name__, function.__defaults__)
    plain.__kwdefaults__ = function.__kwdefaults__
    name = f"_watched_{function.__name__}"
    names[name] = make(plain)
    scope: dict[str, Any] = {}
    source = f"def call(*args, **keywords):\n    return {name}(*args, **keywords)\n"
    exec(compile(source, generated(f"watched {function.__name__}"), "exec"), scope)
    function.__code__ = scope["call"].__code__

    def undo() -> None:
        function.__code__ = code
        names[name] = plain  # a call in another thread may be just before it

    return undo


def _setter(owner: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


# ---------------------------------------------------------------------------------- operations


def _of_entries(recording: Recording) -> dict[str, Any]:
    """Functions that watched entries call."""
    clock, note = recording.clock, recording.note

    def call(op: Any, function: Callable[..., Any], args: tuple, params: dict[str, Any]) -> Any:
        if state.ground.deferred:  # it is traced, and not computed now
            return function(args, params)
        begin, out = clock(), None
        try:
            out = function(args, params)
            return out
        finally:
            results = out if type(out) is tuple else (out,)
            span = Span(kinds.OPERATION, op.name)
            if not (isinstance(op, View) and _is_view(results)):
                span.read, span.written = _nbytes(args), _nbytes(results)
            note(begin, span, _sequence(results[0]) if results else -1)

    return {"call": call, "clock": clock, **recording.names}


def _called(recording: Recording, function: Any) -> Any:
    """A call of an operation that has its own way of being called."""
    call = _of_entries(recording)["call"]

    def watched_call(self: Any, *args: Any, **params: Any) -> Any:
        return call(self, lambda args, params: function(self, *args, **params), args, params)

    return watched_call


def _subscripted(recording: Recording, function: Any) -> Any:
    """A basic index of a Tensor; any other one is a call of ``getitem``."""

    def watched_subscript(self: Any, index: Any) -> Any:
        if not state.mode or not (type(index) is slice or is_basic(index)):
            return function(self, index)
        begin, sequence = recording.clock(), -1
        try:
            out = function(self, index)
            sequence = _sequence(out)
            return out
        finally:
            recording.note(begin, Span(kinds.OPERATION, "getitem"), sequence)

    return watched_subscript


def _written(recording: Recording, function: Any) -> Any:
    """An operation in place: ``inplace(op, name, target, args, params)``."""

    def watched_inplace(
        op: Any, name: str, target: Any, args: tuple, params: dict[str, Any]
    ) -> Any:
        call = partial(function, op, name, target, args, params)
        return _in_place(recording, name, target, (target, *args), call)

    return watched_inplace


def _assigned(recording: Recording, function: Any) -> Any:
    """A write of values: ``assign(name, target, value, part_of=None)``."""

    def watched_assign(name: str, target: Any, value: Any, **options: Any) -> Any:
        call = partial(function, name, target, value, **options)
        return _in_place(recording, name, target, (value,), call)

    return watched_assign


def _in_place(
    recording: Recording, name: str, target: Any, operands: tuple, call: Callable[[], Any]
) -> Any:
    if state.ground.deferred:
        return call()
    begin, span = recording.clock(), Span(kinds.OPERATION, name)
    try:
        return call()
    finally:
        span.read, span.written = _nbytes(operands), _nbytes((target,))
        recording.note(begin, span, _sequence(target))


def _sequence(tensor: Any) -> int:
    """Number of the node that a Tensor comes from, or -1."""
    node = getattr(tensor, "_grad_fn", None)
    return -1 if node is None else node.sequence


def _is_view(results: tuple) -> bool:
    return any(isinstance(y, Tensor) and y._memory is not None for y in results)


def _nbytes(values: Sequence[Any]) -> int:
    """Bytes of the arrays among values, and in lists of them."""
    total = 0
    for value in values:
        if isinstance(value, list | tuple):
            total += _nbytes(value)
        else:
            array = value._array if isinstance(value, Tensor) else value
            total += array.nbytes if isinstance(array, np.ndarray) else 0
    return total


# ------------------------------------------------------------------------------------- backward


def _walked(recording: Recording, walk: Any) -> Any:
    """A whole backward and its nodes, unless it is traced, and computed later."""
    clock, log, note = recording.clock, recording.log, recording.note
    span = Span(kinds.WALK, "backward")

    def watched_walk(evaluation: Any, *arguments: Any) -> Any:
        if state.ground.deferred:
            return walk(evaluation, *arguments)
        begin = clock()
        try:
            twin = log.evaluations.get(evaluation) or watched_evaluation(evaluation)
            return walk(twin, *arguments)
        finally:
            note(begin, span, -1, 4)  # above are at least two functions of the engine

    def watched_evaluation(evaluation: Any) -> Any:
        """One of the thread's own that notes nodes: it need not ask for the thread at each."""
        evaluate, add = evaluation.evaluate, log.add

        def watched_evaluate(node: Any, g: Any, mine: Any, waiting: Any) -> Any:
            begin = clock()
            result = evaluate(node, g, mine, waiting)
            add((begin, clock(), node.call, node.sequence, node.mask, result[1]))
            return result

        twin = log.evaluations[evaluation] = copy(evaluation)
        twin.evaluate = watched_evaluate
        return twin

    return watched_walk


# ------------------------------------------------------------------------- kernels and programs


def _compiled(recording: Recording, function: Any) -> Any:
    """Compiling a kernel, or loading it from disk."""

    def load_or_compile(kernel: Any, *args: Any) -> Any:
        begin, span = recording.clock(), Span(kinds.COMPILE, kernel.name)
        try:
            return function(kernel, *args)
        finally:
            span.kind = kinds.HIT if kernel.from_cache else kinds.COMPILE
            recording.note(begin, span)

    return load_or_compile


def _launched(recording: Recording, function: Any) -> Any:
    """A launch of several threads."""

    def launch(entry: Any, count: int, *arguments: Any) -> Any:
        begin = recording.clock()
        try:
            return function(entry, count, *arguments)
        finally:
            recording.note(begin, Span(kinds.THREADS, "launch", threads=count))

    return launch


def _traced(recording: Recording, function: Any) -> Any:
    """Tracing a function, all that comes before its kernels are compiled."""

    def initialise(
        self: Any, number: int, arguments: Any, key: Any, options: Any, *rest: Any
    ) -> None:
        begin = recording.clock()
        try:
            function(self, number, arguments, key, options, *rest)
        finally:
            recording.note(begin, Span(kinds.TRACE, options.name))

    return initialise


def _made(recording: Recording, function: Any) -> Any:
    """A new program is watched from the start."""

    def initialise(self: Any, *args: Any) -> None:
        function(self, *args)
        program.recode(self)

    return initialise


def _looped(recording: Recording, function: Any) -> Any:
    """All steps of a loop of a compiled function."""

    def run(self: Any, operands: Sequence[Any], *rest: Any) -> Any:
        begin, span = recording.clock(), Span(kinds.KERNEL, "loop", _nbytes(operands))
        try:
            result = function(self, operands, *rest)
            span.written = _nbytes(result)
            return result
        finally:
            recording.note(begin, span)

    return run


def _taped(recording: Recording, function: Any) -> Any:
    """A call of a compiled function that is recorded on the tape."""

    def call(self: Any, owners: tuple, arrays: tuple) -> list[Any]:
        begin, sequence = recording.clock(), -1
        try:
            outputs = function(self, owners, arrays)
            sequence = outputs[self.recorded[0]]._grad_fn.sequence
            return outputs
        finally:
            recording.note(begin, Span(kinds.OPERATION, self.name), sequence)

    return call


def _of_programs(recording: Recording) -> program.ProgramWatch:
    """How compiled programs are watched."""

    def run(of: program.KernelProgram, function: Any) -> Any:
        return recording.timed(Span(kinds.PROGRAM, of.options.name), function)

    def segment(of: program.KernelProgram, step: program.Segment, function: Any) -> Any:
        return recording.timed(Span(kinds.OPERATION, step.node.name), function)

    def kernel(
        of: program.KernelProgram, step: program.KernelStep, skipped: int, function: Any
    ) -> Any:
        written, clock, note = step.written, recording.clock, recording.note
        inputs = skipped + len(written.arrays)
        results = inputs + len(written.results)
        numbers = [int(name[1:]) for name in written.lengths]

        def call(*arguments: Any) -> None:
            begin = clock()
            try:
                function(*arguments)
            finally:
                lengths = arguments[len(arguments) - len(numbers) :]
                detail = of, step, dict(zip(numbers, lengths, strict=True))
                read = _nbytes(arguments[skipped:inputs])
                made = _nbytes(arguments[inputs:results])
                note(begin, Span(kinds.KERNEL, step.name, read, made, detail=detail))

        return call

    return program.ProgramWatch(run, segment, kernel)


# ------------------------------------------------------------------------------------ optimizers


def _around_steps(recording: Recording) -> list[Callable[[], None]]:
    """Note steps of optimizers; what ends that."""
    begun: dict[tuple[int, int], int] = {}
    log = recording.log

    def before(optimizer: Any, *arguments: Any) -> None:
        begun[id(optimizer), id(log.notes)] = recording.clock()

    def after(optimizer: Any, *arguments: Any) -> None:
        begin = begun.pop((id(optimizer), id(log.notes)), None)
        if begin is not None:
            span = Span(kinds.STEP, f"{type(optimizer).__name__}.step", *_bytes_of_step(optimizer))
            recording.note(begin, span)

    return [
        step_hooks.register_optimizer_step_pre_hook(before).remove,
        step_hooks.register_optimizer_step_post_hook(after).remove,
    ]


def _bytes_of_step(optimizer: Any) -> tuple[int, int]:
    """Bytes of parameters, their gradients and state, and of parameters and state."""
    gradients = written = 0
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p._grad is not None:
                gradients += _nbytes((p._grad,))
                written += _nbytes((p, *optimizer.state.get(p, {}).values()))
    return gradients + written, written


_WRAPPED: list[tuple[Any, str, Wrapper]] = [
    (index.Subscript, "__call__", _called),
    (join.Join, "__call__", _called),
    (write.IndexPut, "__call__", _called),
    (Tensor, "__getitem__", _subscripted),
    (backward, "walk", _walked),
    (compiler, "_load_or_compile", _compiled),
    (threads, "launch", _launched),
    (specialise.Specialisation, "__init__", _traced),
    (program.KernelProgram, "__init__", _made),
    (loop_program.LoopProgram, "run", _looped),
    (specialise.Differentiable, "__call__", _taped),
]
"""Whose attribute is replaced, which, and by what."""
_RECODED: list[tuple[Any, Wrapper]] = [(inplace.inplace, _written), (inplace.assign, _assigned)]
"""Functions that are held by name in several places."""
