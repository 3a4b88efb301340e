"""Functions of loops with their derivatives, for arguments of known dtypes and ranks."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.adjoint.backward import Backward
from numgrad.codegen.adjoint.checkpoints import check_segments, put_in_segments
from numgrad.codegen.adjoint.compiled import Text, fault, kinds_of
from numgrad.codegen.adjoint.lengths import ResultLengths
from numgrad.codegen.adjoint.operations import Operations, OperationTable
from numgrad.codegen.adjoint.outputs import WrittenParameters
from numgrad.codegen.adjoint.placement import raise_allocations, stays_in_branch
from numgrad.codegen.adjoint.reading import MOST_AXES, Kind, number, read_function
from numgrad.codegen.adjoint.reports import KernelReport, kept_bytes, report_of
from numgrad.codegen.adjoint.representation import KernelFunction, KernelLoop
from numgrad.codegen.adjoint.scopes import TEXT, Scope, check_statements, scope_of
from numgrad.codegen.adjoint.simplification import simplify
from numgrad.codegen.adjoint.snapshots import kept_in_steps, possible_snapshots, take_snapshots
from numgrad.codegen.adjoint.split import ForwardState, SplitProgram, UnitGradients
from numgrad.codegen.adjoint.sweeps import (
    backward_of,
    forward_text,
    gradient_text,
    parameters,
    with_derivatives,
)
from numgrad.codegen.adjoint.tangent import tangent_text
from numgrad.codegen.adjoint.text_calls import TextCalls
from numgrad.codegen.adjoint.vectors import facts_of
from numgrad.codegen.intrinsics import grow, growing
from numgrad.errors import NumgradKernelError, NumgradValueError

SAVE = ("all", "less")


class Output(NamedTuple):
    """A result of a program: what array holds it, whether it is a number, dtype and rank."""

    array: str
    is_number: bool
    dtype: np.dtype
    rank: int


class KernelDefinition:
    """A function that was read, and its programs by signature.

    Attributes
    ----------
    written
        Parameters that it overwrites.
    parameters
        Those that callers pass.
    save
        "all" values that the gradient needs of loops over time, or "less": Note [Checkpoints of
        loops] in ``checkpoints``, and what is dear to compute is computed again.
    """

    def __init__(
        self, function: Callable[..., Any], writes: Any, table: OperationTable, save: str = "all"
    ) -> None:
        if save not in SAVE:
            raise NumgradValueError(
                f"kernel: save is one of {', '.join(map(repr, SAVE))}, not {save!r}"
            )
        _check_unbound(function)
        self.scope, self.save = scope_of(function), save
        names = self.scope.parameters
        self.written = WrittenParameters.declared(self.scope.name, writes, names)
        self.parameters = tuple([name for name in names if name not in self.written.made])
        self.operations = Operations(table, keeps_dear=save == "all")
        self._programs: dict[tuple, DerivativeProgram] = {}
        self.last: DerivativeProgram | None = None
        check_syntax(self)
        self.scope.lengths = self.written.expressions

    @property
    def name(self) -> str:
        return self.scope.name

    def specialize(self, kinds: Sequence[Kind]) -> DerivativeProgram:
        """The program for arguments of these dtypes and ranks."""
        key = tuple(kinds)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = DerivativeProgram(self, key)
        self.last = program
        return program


def _check_unbound(function: Any) -> None:
    """Refuse methods, which would be called without what they are bound to."""
    outer, _, name = getattr(function, "__qualname__", "").rpartition(".")
    is_bound = inspect.ismethod(function) or isinstance(function, classmethod)
    if not is_bound and inspect.isfunction(function) and outer and not outer.endswith("<locals>"):
        is_bound = next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
    if is_bound:
        raise NumgradKernelError(
            f"{name}: is a method, and kernels are not bound to objects; make it a function or a "
            "staticmethod, and pass what it reads of the object as arguments"
        )


def check_syntax(definition: KernelDefinition) -> None:
    """Raise for what is seen without dtypes: arguments that are overwritten and not named."""
    scope = definition.scope
    check_statements(scope)
    names = set(scope.parameters) - set(definition.written.names)
    assigned = {
        n.id
        for n in ast.walk(scope.tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base = node.value
            if isinstance(base, ast.Name) and base.id in names - assigned:
                scope.refuse(node, f"{base.id} is overwritten", f'declare it: writes="{base.id}"')


class DerivativeProgram:
    """A function for arguments of known dtypes and ranks, with its derivatives.

    ``call``, ``vjp``, ``jvp`` and ``jvp_of_vjp`` take arrays that are contiguous and have exactly
    these dtypes, and numbers, and change none of them.

    Attributes
    ----------
    calls
        What they do with arrays: Note [Calls of texts].
    """

    calls = TextCalls()

    def __init__(self, definition: KernelDefinition, kinds: Sequence[Kind]) -> None:
        self.definition, self.operations = definition, definition.operations
        for dtype, rank in kinds:
            if dtype == np.uint64:
                raise NumgradKernelError(
                    f"{definition.name}: an argument of uint64; integers of kernels are int64, so "
                    "convert it with astype(np.int64)"
                )
            if rank > MOST_AXES:
                raise NumgradKernelError(
                    f"{definition.name}: an array of {rank} axes; kernels take arrays of up to "
                    f"{MOST_AXES}, so reshape it"
                )
        definition.scope.capture()
        self.kinds, self.segments = kinds, list[KernelLoop]()
        self.function = self._read(definition.scope, kinds, definition.written)
        self.names = self.function.parameters
        written = self.function.written
        others = {*written, self.function.failed}
        returned = [name for name in self.function.results if name not in others]
        self.outputs = [self._output(name) for name in (*returned, *written)]
        if not self.outputs:
            raise NumgradKernelError(
                f"{definition.name}: returns nothing and writes nothing; return a value, or name "
                "what it overwrites in writes"
            )
        self.lengths = ResultLengths(self.function, self.operations)
        self._gradients: dict[tuple[str, ...], Text] = {}
        self._backwards: dict[tuple[tuple[str, ...], bool], Backward] = {}
        self._splits: dict[tuple[str, ...], SplitProgram | None] = {}
        self._tangents: dict[tuple[str, ...], Text] = {}
        self._seconds: dict[tuple[Text, tuple[str, ...]], Text] = {}
        self._read_texts: dict[Text, KernelFunction] = {}
        if definition.save == "less":
            self.backward(self.all_inputs)  # which is refused at the first call, not later
        definition.scope.captures.settle()

    def _read(
        self, scope: Scope, kinds: Sequence[Kind], written: WrittenParameters
    ) -> KernelFunction:
        function = read_function(scope, kinds, written, self.operations)
        raise_allocations(function)
        simplify(function)
        number(function)
        for allocation in stays_in_branch(function):
            raise NumgradKernelError(
                f"{function.name}: {allocation.array} is made in a branch, with a length that is "
                f"computed there, line {allocation.line + scope.first - 1} of {scope.file}; make "
                "it before the branch"
            )
        return function

    def _output(self, name: str) -> Output:
        array = self.function.arrays[name]
        is_number = name in self.function.scalars
        return Output(name, is_number, array.dtype, 0 if is_number else array.ndim)

    # -------------------------------------------------------------------------------- the texts

    def _text(self, word: str, source: str, names: Sequence[str], function: KernelFunction) -> Text:
        more = [function.arrays.get(n) for n in names]
        kinds = kinds_of(function, parameters(function))
        for name, array in zip(names, more, strict=True):
            if array is not None:
                kinds.append((array.dtype, array.ndim))
            else:
                kinds.append((function.dtypes[name], 1 if word == "backward" else 0))
        facts = facts_of(function)
        return Text(f"{function.name}_{word}", source, kinds, self.operations, facts)

    @cached_property
    def _with_derivatives(self) -> list[str]:
        return with_derivatives(self.function)

    @cached_property
    def forward(self) -> Text:
        """The function itself."""
        return self._text(
            "forward", forward_text(self.function, self.operations), (), self.function
        )

    def tangent(self, moving: tuple[str, ...]) -> Text:
        """The function with its tangents, where those of other parameters are zero."""
        text = self._tangents.get(moving)
        if text is None:
            source = tangent_text(self.function, self.operations, moving)
            text = self._text("tangent", source, self._with_derivatives, self.function)
            self._tangents[moving] = text
        return text

    def backward(self, inputs: tuple[str, ...], *, fuses: bool = True) -> Backward:
        """The backward sweep, for these parameters, with fused loops or with none."""
        backward = self._backwards.get((inputs, fuses))
        if backward is None:
            backward = backward_of(self.swept, self.operations, inputs, fuses=fuses)
            check_segments(self.segments, backward.tapes, self.definition.scope.refuse)
            self._backwards[inputs, fuses] = backward
        return backward

    @cached_property
    def swept(self) -> KernelFunction:
        """The function whose sweeps give the gradient."""
        scope = self.definition.scope
        if self.definition.save == "all":
            return self._with_snapshots(scope)
        function = self._read(scope, self.kinds, self.definition.written)
        backward = backward_of(function, self.operations, self.all_inputs, fuses=False)
        self.segments = put_in_segments(function, backward.tapes, scope.refuse)
        return function

    def _with_snapshots(self, scope: Scope) -> KernelFunction:
        """The function that keeps arrays by step, if it keeps fewer values then."""

        def kept(function: KernelFunction) -> int:
            sweep = backward_of(function, self.operations, self.all_inputs, fuses=False)
            return kept_in_steps(sweep.tapes)

        before = kept(self.function)
        if before < 2 or not possible_snapshots(self.function):
            return self.function
        function = self._read(scope, self.kinds, self.definition.written)
        count = take_snapshots(function)
        return function if count and kept(function) + count < before else self.function

    def split(self, inputs: tuple[str, ...]) -> SplitProgram | None:
        """The function in split mode, for these parameters; None if it has no such form."""
        if inputs not in self._splits:
            backward = self.backward(inputs, fuses=False)
            split = SplitProgram(self.swept, self.operations, backward, inputs)
            self._splits[inputs] = split if split.is_possible else None
        return self._splits[inputs]

    def gradient(self, inputs: tuple[str, ...]) -> Text:
        """The joint forward and backward sweep, for these parameters."""
        text = self._gradients.get(inputs)
        if text is None:
            backward = self.backward(inputs)
            source = gradient_text(self.swept, self.operations, backward)
            text = self._text("backward", source, self._with_derivatives, self.swept)
            self._gradients[inputs] = text
        return text

    def read_text(self, text: Text) -> KernelFunction:
        """A text, read as users' functions are."""
        read = self._read_texts.get(text)
        if read is None:
            space: dict[str, Any] = {"growing": growing, "grow": grow}
            space |= self.operations.namespace(self.operations.with_definitions(text.plain))
            exec(text.plain, space)
            function = space["kernel"]
            setattr(function, TEXT, text.plain)
            names = text.plain.partition("(")[2].partition(")")[0].split(", ")
            written = WrittenParameters(
                tuple([n for n, (_, rank) in zip(names, text.kinds, strict=True) if rank])
            )
            try:
                read = self._read_texts[text] = self._read(scope_of(function), text.kinds, written)
            except NumgradKernelError as error:
                raise fault(text.name, f"its derivative is not found ({error})") from error
        return read

    def tangent_of(self, text: Text, moving: tuple[str, ...]) -> Text:
        """The tangents of a text, where those of other parameters of it are zero."""
        known = self._seconds.get((text, moving))
        if known is None:
            read = self.read_text(text)
            source = tangent_text(read, self.operations, moving)
            known = self._text("second", source, with_derivatives(read), read)
            self._seconds[text, moving] = known
        return known

    def source(self, word: str) -> str:
        """A program as text: "forward", "backward", "tangent", "augmented" or "reverse"."""
        if word == "forward":
            return self.forward.source
        if word == "tangent":
            return self.tangent(self.all_inputs).source
        if word == "backward":
            return self.gradient(self.all_inputs).source
        if word in ("augmented", "reverse"):
            split = self.split(self.all_inputs)
            if split is None:
                raise NumgradValueError(
                    f"source: {self.function.name} has no split form; its gradient is computed by "
                    "the program backward"
                )
            return (split.forward if word == "augmented" else split.reverse).source
        raise NumgradValueError(
            f"source: no program is called {word!r}; it is forward, backward, tangent, augmented "
            "or reverse"
        )

    def report(self, arguments: Sequence[Any] = ()) -> KernelReport:
        """List the values that the gradient keeps and the loops that run again."""
        texts = {
            "function": self.forward,
            "tangents": self.tangent(self.all_inputs),
            "gradient": self.gradient(self.all_inputs),
        }
        backward = self.backward(self.all_inputs)
        is_fused = self.is_joined(self.all_inputs)
        split = None if is_fused else self.split(self.all_inputs)
        size = kept_bytes(split, self._given(arguments)) if split and arguments else None
        scope = self.definition.scope
        return report_of(self.function, backward, scope, texts, split, is_fused, size)

    @cached_property
    def all_inputs(self) -> tuple[str, ...]:
        """The parameters with derivatives."""
        return tuple([n for n in self.names if n in self._with_derivatives])

    # -------------------------------------------------------------------------------- the calls

    def _given(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Arguments by name, with copies of those that are overwritten."""
        given = dict(zip(self.names, arguments, strict=True))
        for check in self.function.checks:
            if not self.calls.holds(self.lengths.value(check.condition, given)):
                operands = [self.lengths.value(n, given) for n in check.operands]
                message = check.message.format(*operands)
                if check.error is not None:
                    raise check.error(message)
                raise NumgradValueError(f"{self.function.name}: {message}")
        for output in self.outputs:
            if output.array in given:
                given[output.array] = self.calls.copy(given[output.array])
        return given

    def _shape(self, name: str, given: Mapping[str, Any]) -> list[Any]:
        """The shape of a result."""
        return [self.calls.length(n) for n in self.lengths.values(name, given)]

    def _results(self, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        results = {}
        for name in self.function.results:
            counts = name in self.function.written or name == self.function.failed
            dtype, shape = self.function.arrays[name].dtype, self._shape(name, given)
            results[name] = self.calls.make("zeros" if counts else "empty", shape, dtype)
        return results

    def _check_results(self, results: Mapping[str, Any]) -> None:
        """Raise for what the kernel itself has found wrong."""
        failed = results.get(self.function.failed)
        if failed is not None and self.calls.any(failed):
            place = np.flatnonzero(failed.reshape(-1, failed.shape[-1]).any(axis=0))[0]
            raise NumgradValueError(f"{self.function.name}: {self.function.failures[place]}")

    def _outputs_of(self, arrays: Mapping[str, Any]) -> list[np.ndarray]:
        return [
            self.calls.number(arrays[o.array]) if o.is_number else arrays[o.array]
            for o in self.outputs
        ]

    def _first(self, given: Mapping[str, Any], results: Mapping[str, Any]) -> list[Any]:
        constants = map(self.calls.contiguous, self.function.constants.values())
        return [*given.values(), *constants, *results.values()]

    def call(self, *arguments: Any) -> list[np.ndarray]:
        """The outputs."""
        given = self._given(arguments)
        results = self._results(given)
        self.calls.run(self.forward, self._first(given, results))
        self._check_results(results)
        return self._outputs_of({**given, **results})

    def _cotangents(self, arrays: Mapping[str, Any], seeds: Sequence[Any]) -> dict[str, np.ndarray]:
        """Arrays of cotangents at the end of the forward sweep."""
        out: dict[str, np.ndarray] = {}
        for output, seed in zip(self.outputs, seeds, strict=True):
            name = output.array
            if seed is not None and self.function.arrays[name].differentiable:
                shape, dtype = arrays[name].shape, arrays[name].dtype
                if name in out:  # an array may be returned twice
                    self.calls.add(out[name], seed)
                else:
                    out[name] = self.calls.make("empty", shape, dtype)
                    self.calls.fill(out[name], seed)
        dtypes = self.function.dtypes
        return {
            name: out[name]
            if name in out
            else self.calls.make("zeros", arrays[name].shape, arrays[name].dtype)
            if name in self.function.arrays
            else self.calls.make("zeros", (1,), dtypes[name])
            for name in self._with_derivatives
        }

    def vjp(
        self,
        arguments: Sequence[Any],
        seeds: Sequence[Any],
        inputs: tuple[str, ...] = (),
        directions: Sequence[Sequence[Any]] = (),
        changes: Sequence[Any] | None = None,
    ) -> list[Any]:
        """The gradients by the arguments, None by those not in ``inputs`` (all if empty).

        With ``directions`` their derivatives along tangents of the arguments, once along each;
        ``changes`` are what the seeds change by along the last.
        """
        inputs = inputs or self.all_inputs
        given = self._given(arguments)
        results = self._results(given)
        arrays = {**given, **results}
        bars = self._cotangents(arrays, seeds)
        along = [self._dots(arrays, t, self._moving(t)) for t in directions]
        if changes is not None:
            arrived = [o.array for o, v in zip(self.outputs, changes, strict=True) if v is not None]
            changed = self._cotangents(arrays, changes)
            along[-1] |= _renamed({n: v for n, v in changed.items() if n in arrived})
        bars = self._run_along(self.gradient(inputs), given, results, bars, along)
        return self._gradients_of(bars, inputs)

    def _run_along(
        self,
        text: Text,
        given: Mapping[str, Any],
        results: Mapping[str, Any],
        derivatives: Mapping[str, Any],
        along: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Run a text that takes ``derivatives``, which it overwrites, with tangents of tangents.

        ``along`` has the tangents of parameters ``x``, and of derivatives, called ``x'``, for each
        level; others do not move. Returns what the derivatives become, along all levels.
        """
        names: list[Any] = [*parameters(self.function), *_renamed(derivatives)]
        values = [*self._first(given, results), *derivatives.values()]
        for level, tangents in enumerate(along):
            read = self.read_text(text)
            own = dict(zip(read.parameters, zip(names, values, strict=True), strict=True))
            values += map(self.calls.contiguous, read.constants.values())
            names += read.constants
            derivable = with_derivatives(read)
            text = self.tangent_of(text, tuple([n for n in derivable if own[n][0] in tangents]))
            for n in derivable:
                name, value = own[n]
                if name in tangents:
                    values.append(tangents[name])
                elif n in read.arrays:
                    values.append(self.calls.make("zeros", value.shape, value.dtype))
                else:
                    values.append(read.dtypes[n].type(0))
                names.append((name, level))
        self.calls.run(text, values)
        self._check_results(results)
        ends = dict(zip(names, values, strict=True))
        out = {}
        for name in derivatives:
            end: Any = f"{name}'"
            for level in range(len(along)):
                end = (end, level)
            out[name] = ends[end]
        return out

    def forward_sweep(
        self, arguments: Sequence[Any], inputs: tuple[str, ...], *, asked: bool = False
    ) -> tuple[list[np.ndarray], ForwardState | UnitGradients | None]:
        """The outputs, and what ``backward_sweep`` needs of them; None if it has no such form.

        That is the gradient itself, of a result of 1, where sweeps are joined; else the state of
        split mode. ``asked`` says that the backward sweep follows for certain.
        """
        if self.is_joined(inputs, asked):
            given = self._given(arguments)
            results = self._results(given)
            arrays = {**given, **results}
            ones = [1 if o.dtype.kind in "fc" else None for o in self.outputs]
            bars = self._cotangents(arrays, ones)
            self.calls.run(self.gradient(inputs), [*self._first(given, results), *bars.values()])
            self._check_results(results)
            gradients = tuple([bars[n] for n in inputs])
            return self._outputs_of(arrays), UnitGradients(inputs, [gradients])
        split = self.split(inputs)
        if split is None:
            return self.call(*arguments), None
        given = self._given(arguments)
        results = self._results(given)
        state = split.new_state(given, self.calls)
        text = self.forward if split.is_empty else split.forward
        self.calls.run(text, [*self._first(given, results), *state.arrays])
        self._check_results(results)
        return self._outputs_of({**given, **results}), state

    def is_joined(self, inputs: tuple[str, ...], asked: bool = False) -> bool:
        """Whether a forward sweep computes the gradient as well, of a result that is one number.

        It does where most of the work is in fused loops: Note [Fused sweeps] in ``fused``. If the
        gradient is ``asked`` for, also where any is, and where there is no split form.
        """
        backward = self.backward(inputs)
        if backward.is_mostly_fused or (asked and backward.fused):
            return True
        outputs = [o for o in self.outputs if o.dtype.kind in "fc"]
        is_number = len(outputs) == 1 and outputs[0].is_number and outputs[0].dtype.kind == "f"
        return asked and is_number and self.split(inputs) is None

    def has_forward_sweep(self, inputs: tuple[str, ...], asked: bool) -> bool:
        """Whether ``forward_sweep`` gives something that ``backward_sweep`` needs."""
        return self.is_joined(inputs, asked) or self.split(inputs) is not None

    def reads_outputs(self, inputs: tuple[str, ...], asked: bool = False) -> bool:
        """Whether ``backward_sweep`` reads elements of the outputs."""
        split = None if self.is_joined(inputs, asked) else self.split(inputs)
        return split is not None and split.reads_outputs

    def backward_sweep(
        self,
        arguments: Sequence[Any],
        outputs: Sequence[np.ndarray] | None,
        state: ForwardState | UnitGradients,
        seeds: Sequence[Any],
    ) -> list[Any]:
        """The gradients, as ``vjp`` gives them, by the inputs that the forward sweep ran for.

        ``outputs`` may be None unless ``reads_outputs``.
        """
        if isinstance(state, UnitGradients):
            return self._scaled(arguments, state, seeds)
        split = self.split(state.inputs)
        assert split is not None
        given = dict(zip(self.names, arguments, strict=True))
        results = {}
        for k, output in enumerate(self.outputs):
            if outputs is not None:
                own = self.calls.row(outputs[k]) if output.is_number else outputs[k]
                (given if output.array in given else results)[output.array] = own
            elif output.array not in given:  # its lengths may be read
                shape = self._shape(output.array, given)
                results[output.array] = self.calls.make("empty", shape, output.dtype)
        results = {
            name: results[name]
            if name in results
            else self.calls.make("zeros", (1,), np.dtype(np.int64))
            for name in self.function.results
        }
        bars = self._cotangents({**given, **results}, seeds)
        values = [*self._first(given, results), *state.arrays, *bars.values()]
        self.calls.run(split.reverse, values)
        return self._gradients_of(bars, state.inputs)

    def _scaled(
        self, arguments: Sequence[Any], state: UnitGradients, seeds: Sequence[Any]
    ) -> list[Any]:
        """The gradients for a seed, from those for 1."""
        (seed,) = [s for s, o in zip(seeds, self.outputs, strict=True) if o.dtype.kind in "fc"]
        arrays = None if seed is None else state.take()
        if arrays is None:
            return self.vjp(arguments, seeds, state.inputs)
        places = [self.names.index(n) for n in state.inputs]

        def again() -> list[Any]:
            gradients = self.vjp(arguments, seeds, state.inputs)
            return [gradients[k] for k in places]

        arrays = self.calls.scaled(arrays, seed, again)
        return self._gradients_of(dict(zip(state.inputs, arrays, strict=True)), state.inputs)

    def _gradients_of(self, bars: Mapping[str, np.ndarray], inputs: tuple[str, ...]) -> list[Any]:
        return [
            None
            if n not in inputs
            else bars[n]
            if n in self.function.arrays
            else self.calls.number(bars[n])
            for n in self.names
        ]

    def jvp(self, arguments: Sequence[Any], *directions: Sequence[Any]) -> list[np.ndarray | None]:
        """The derivatives of the outputs along tangents, once along each; None of integers."""
        given = self._given(arguments)
        results = self._results(given)
        arrays = {**given, **results}
        first, *others = directions
        text, dots = self.tangent(self._moving(first)), self._dots(arrays, first)
        along = [self._dots(arrays, t, self._moving(t)) for t in others]
        return self._tangents_of_outputs(self._run_along(text, given, results, dots, along))

    def _tangents_of_outputs(self, dots: Mapping[str, Any]) -> list[np.ndarray | None]:
        return [
            None
            if o.array not in dots
            else self.calls.number(dots[o.array])
            if o.is_number
            else dots[o.array]
            for o in self.outputs
        ]

    def _moving(self, tangents: Sequence[Any]) -> tuple[str, ...]:
        """The parameters that have a tangent."""
        pairs = zip(self.names, tangents, strict=True)
        return tuple([n for n, t in pairs if t is not None and n in self.all_inputs])

    def _dots(
        self, arrays: Mapping[str, Any], tangents: Sequence[Any], names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Tangents of arrays and numbers, of all if not of some; zero where there is none."""
        by_name = dict(zip(self.names, tangents, strict=True))
        out: dict[str, Any] = {}
        for name in self._with_derivatives if names is None else names:
            tangent = by_name.get(name)
            if name not in self.function.arrays:
                out[name] = self.function.dtypes[name].type(0) if tangent is None else tangent
                continue
            array = arrays[name]
            maker = "zeros" if tangent is None else "empty"
            out[name] = self.calls.make(maker, array.shape, array.dtype)
            if tangent is not None:
                self.calls.fill(out[name], tangent)
        return out


def _renamed(derivatives: Mapping[str, Any]) -> dict[str, Any]:
    """Derivatives of ``x`` by the name ``x'``."""
    return {f"{name}'": value for name, value in derivatives.items()}
