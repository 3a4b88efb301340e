"""``kernel``: users' functions of explicit loops as operations with derivatives.

Note [Recorded calls of kernels]
--------------------------------
A call that is recorded runs the augmented forward sweep, for the operands that require grad, and
its node holds the state for the backward sweep (``KernelCall``): Note [Split mode] in
``codegen.adjoint.split``. Of a result that is one number, a sum over iterations, it computes the
gradient at once, which the backward multiplies: Note [Fused sweeps] in ``codegen.adjoint.fused``.
Under hooks of saved tensors, which see arrays only, and where there is neither, the node holds the
operands alone, and its backward is the joint sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, overload

import numpy as np

from numgrad.codegen.adjoint.batches import BatchDefinition
from numgrad.codegen.adjoint.outputs import OutputLike
from numgrad.codegen.adjoint.program import DerivativeProgram, KernelDefinition
from numgrad.codegen.adjoint.reports import KernelReport
from numgrad.codegen.adjoint.scopes import plain_function, returned_count
from numgrad.codegen.adjoint.split import ForwardState, UnitGradients
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand
from numgrad.core.formula import GradientFormula, KnownInteger, Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.kernel_derivatives import (
    SweepOfKernel,
    Vectors,
    at,
    derivatives_of,
    described,
    plain,
)
from numgrad.core.kernel_operations import TABLE
from numgrad.core.primitive import Primitive, PrimitiveCall
from numgrad.errors import (
    NumgradKernelError,
    NumgradTypeError,
    NumgradValueError,
)

Writes = str | Sequence[str] | Mapping[str, OutputLike | None]
_WORK = 10_000
"""Steps that a check of overlapping memory may take; then arrays count as overlapping."""

_STATE = "forward state"
"""What a node saves besides operands and results; no operand can be called so."""


class KernelOperation(Primitive):
    """A function of explicit loops with its derivatives; ``ng.kernel`` makes one.

    Attributes
    ----------
    definition
        The function as it was read.
    """

    keeps_state = True
    materializes_tangents = False

    def __init__(
        self,
        function: Callable[..., Any],
        writes: Writes,
        save: str = "all",
        definition: KernelDefinition | BatchDefinition | None = None,
    ) -> None:
        function = plain_function(function)
        self.definition = definition or KernelDefinition(function, writes, TABLE, save)
        self.writes = writes
        self.__kernel__ = function
        self._batches: dict[tuple[bool, ...], BatchedKernel] = {}
        count = returned_count(self.definition.scope) + len(self.definition.written.names)
        self.count = len(self.definition.parameters)
        super().__init__(
            _form_of(function, self.definition),
            name=f"kernel_{function.__name__}",
            outputs=count > 1,
            materializes=False,
            register=False,
        )
        self.output_count = count
        self.__doc__ = function.__doc__
        self.__name__ = self.__qualname__ = function.__name__
        self.derivatives = derivatives_of(self)
        self.sweeps = {word: SweepOfKernel(self, word) for word in ("forward", "backward")}
        for k, name in enumerate(self.inputs):
            self.declared[name] = GradientFormula(self, self._gradient_formula(k))
        self.joint_gradients = self._joint_gradients
        self.backward_kernel = self._backward
        self.jvp_formula = self._tangent_formula()
        self.shape_rule = self.result_metas
        self.batching = self._batch_rule

    def __reduce__(self) -> Any:
        function = self.__kernel__
        own = (function.__module__, function.__qualname__, self.writes, self.definition.save)
        return _find_kernel, own

    @property
    def entry(self) -> Callable[..., Any]:
        """The function behind a call, which takes no keyword-only parameter by position."""
        is_new, enter = not self.entered, super().entry
        by_name = [a.arg for a in self.definition.scope.tree.args.kwonlyargs]
        by_name = [name for name in self.definition.parameters if name in by_name]
        if not (is_new and by_name):
            return enter
        most = len(self.definition.parameters) - len(by_name)

        def checked(*args: Any, **params: Any) -> Any:
            if len(args) > most:
                raise NumgradTypeError(
                    f"{self.__name__}: {len(args)} arguments by position, of {most}; give "
                    f"{', '.join(by_name)} by name"
                )
            return enter(*args, **params)

        self.enter_by(checked)
        return checked

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The user's function."""
        return self.__kernel__

    # -------------------------------------------------------------------------------- the calls

    def program(self, operands: Sequence[Any]) -> DerivativeProgram:
        """The program for operands of these dtypes and ranks."""
        if any(o is None for o in operands):  # traces pass it on, as calls do
            self._refuse_none(operands)
        program = self.definition.specialize([(o.dtype, len(o.shape)) for o in operands])
        if len(program.outputs) != self.output_count:
            raise NumgradKernelError(
                f"{self.__name__}: returns a tuple by its name; return its elements"
            )
        return program

    def _refuse_none(self, operands: Sequence[Any]) -> NoReturn:
        pairs = zip(self.definition.parameters, operands, strict=False)
        name = next(name for name, operand in pairs if operand is None)
        raise NumgradTypeError(
            f"{self.__name__}: {name} is None; pass an array or number that changes nothing, such "
            "as np.ones(n), or write a kernel without it"
        )

    def arrays(self, args: Sequence[Any]) -> list[Any]:
        if any(a is None for a in args):
            self._refuse_none(args)
        arrays = []
        for name, value in zip(self.definition.parameters, args, strict=False):
            try:
                array = value if isinstance(value, np.ndarray) else np.asarray(value)
            except ValueError as error:
                raise NumgradTypeError(f"{self.__name__}: {name} is no array: {error}") from error
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            if array.dtype.kind not in "biufc":
                raise NumgradTypeError(
                    f"{self.__name__}: {name} is {type(value).__name__} of dtype {array.dtype}; "
                    "kernels take arrays and numbers"
                )
            check_dtype(self.__name__, array.dtype)
            arrays.append(array)
        return arrays

    def results_of(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[tuple, tuple]:
        self.check_overlaps(args)
        return tuple(self.computed_by(self.program(args), args, params)), ()

    def computed_by(
        self, program: DerivativeProgram, args: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """The results by a program."""
        return program.call(*plain(args))

    def run_recorded(
        self, args: Sequence[Any], params: dict[str, Any], mask: int
    ) -> tuple[Any, KernelCall]:
        """The results for arrays, and the record of the call with what a backward reads.

        The bits of ``mask`` are those of operands that require grad.
        """
        args = self.arrays(args)
        metas = tuple([Meta(a.shape, a.dtype) for a in args])
        forward: ForwardState | UnitGradients | None = None
        names = self.inputs
        if state.saved_hooks:
            outs = self.results_of(args, params)[0]
        else:
            self.check_overlaps(args)
            program = self.program(args)
            wanted = tuple([n for k, n in enumerate(program.names) if mask >> k & 1])
            arrays, forward = program.forward_sweep(plain(args), wanted)
            outs = tuple(arrays)
            if forward is not None:
                outputs = ("y",) if program.reads_outputs(wanted) else ()
                names = (*names, *outputs, _STATE)
        call = KernelCall(self, metas, params, outs, names, forward)
        return (outs if self.outputs else outs[0]), call

    def check_overlaps(self, arrays: Sequence[np.ndarray]) -> None:
        """Raise if an argument that is overwritten shares memory with another one."""
        parameters = self.definition.parameters
        for own, name in enumerate(parameters):
            if name not in self.definition.written.names:
                continue
            for other, array in zip(parameters, arrays, strict=False):
                if other != name and _overlap(arrays[own], array):
                    raise NumgradValueError(
                        f"{self.__name__}: {other} may share elements with {name}, which is "
                        f"overwritten; pass {other}.copy()"
                    )

    def result_metas(self, *metas: Any) -> Any:
        """Shapes and dtypes of the results."""
        program = self.program(metas)
        given = {}
        for name, meta in zip(program.names, metas, strict=True):
            if meta.shape:
                given[name] = meta
            elif isinstance(meta, KnownInteger):
                given[name] = meta.value
        outs = []
        for output in program.outputs:
            if output.array in given:
                shape = given[output.array].shape
            elif output.is_number:
                shape = ()
            else:
                shape = program.lengths.traced_shape(output.array, given)
            outs.append(Meta(tuple(shape), output.dtype))
        return tuple(outs) if self.outputs else outs[0]

    # -------------------------------------------------------------------------- the derivatives

    def moving(self, operands: Sequence[Any], tangents: Sequence[Any]) -> Vectors:
        """The tangents of operands that have derivatives, and move."""
        program = self.program([described(o) for o in operands])
        pairs = enumerate(zip(program.names, tangents, strict=True))
        places = tuple([k for k, (n, t) in pairs if t is not None and n in program.all_inputs])
        return Vectors(places, tuple([tangents[k] for k in places]))

    def _gradient_formula(self, k: int) -> Callable[..., Any]:
        names = ", ".join(self.inputs)
        text = f"def gradient(g, {names}):\n    return of(g, ({names},))\n"
        space: dict[str, Any] = {"of": lambda g, operands: self._gradient(k, g, operands)}
        exec(text, space)
        return space["gradient"]

    def _gradient(self, k: int, g: Any, operands: tuple) -> Any:
        return self._gradients((k,), g, operands)[0]

    def _gradients(self, wanted: tuple[int, ...], g: Any, operands: tuple) -> tuple:
        seeds = tuple(g) if self.outputs else (g,)
        pairs = [(j, seed) for j, seed in enumerate(seeds) if seed is not None]
        w = Vectors(tuple([j for j, _ in pairs]), tuple([seed for _, seed in pairs]))
        return self.derivatives["vjp"].gradients(operands, w, (), wanted)

    def _joint_gradients(
        self, mask: int, g: Any, values: dict[str, Any], params: dict[str, Any]
    ) -> list[Any]:
        wanted = tuple([k for k in range(self.count) if mask >> k & 1])
        operands = tuple([values[name] for name in self.inputs])
        return at(wanted, self._gradients(wanted, g, operands), self.count)

    def _backward(self, call: Any, mask: int, g: Any, **saved: Any) -> list[Any]:
        """The gradients for arrays."""
        operands = self.arrays([saved[name] for name in self.inputs])
        program = self.program(operands)
        wanted = tuple([n for k, n in enumerate(program.names) if mask >> k & 1])
        seeds = list(g) if self.outputs else [g]
        forward = saved.get(_STATE)
        if forward is None:
            return program.vjp(plain(operands), seeds, wanted)
        y = saved.get("y")
        outputs = y if self.outputs or y is None else (y,)
        gradients = program.backward_sweep(plain(operands), outputs, forward, seeds)
        return [g if n in wanted else None for n, g in zip(program.names, gradients, strict=True)]

    def _tangent_formula(self) -> Callable[..., Any]:
        names = ", ".join(self.inputs)
        tangents = ", ".join(f"t_{name}" for name in self.inputs)
        text = f"def tangent({names}, {tangents}):\n    return of(({names},), ({tangents},))\n"
        space: dict[str, Any] = {"of": self._tangent}
        exec(text, space)
        return space["tangent"]

    def _tangent(self, operands: tuple, tangents: tuple) -> Any:
        program = self.program([described(o) for o in operands])
        moving = self.moving(operands, tangents)
        if not moving.places:
            return None
        outs = iter(self.derivatives["jvp"].derivatives(operands, [moving]))
        results = tuple([next(outs) if o.dtype.kind in "fc" else None for o in program.outputs])
        return results if self.outputs else results[0]

    # --------------------------------------------------------------------------------- batches

    def batched(self, mask: Sequence[bool]) -> BatchedKernel:
        """The kernel for batches, given which operands differ by example."""
        key = tuple(mask)
        known = self._batches.get(key)
        if known is None:
            known = self._batches.setdefault(key, BatchedKernel(self, key))
        return known

    def _batch_rule(
        self, op: Any, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        own, mask = self.batch_operands(operands, (), size)
        if own is None:
            return NotImplemented
        try:
            return bind(self.batched(mask), own, params)
        except NumgradKernelError:  # such as a length that is computed from an example
            return NotImplemented

    def batch_operands(
        self, operands: Sequence[BatchOperand], more: Sequence[int], size: int
    ) -> tuple[tuple[Any, ...] | None, tuple[bool, ...]]:
        """Operands and which of them differ by example; None if there is no form for a batch.

        Those that are written, and ``more``, have an axis of examples in any case.
        """
        if isinstance(self, BatchedKernel):  # an outer batch goes by example
            return None, ()
        written = self.definition.written.names
        names = self.definition.parameters
        pairs = enumerate(zip(names, operands, strict=True))
        mask = tuple([o.batched or k in more or name in written for k, (name, o) in pairs])
        both = zip(operands, mask, strict=True)
        return tuple([o.repeated(size) if own else o.value for o, own in both]), mask

    # ------------------------------------------------------------------------------- inspection

    def source(self, word: str = "backward", *arguments: Any) -> str:
        """A program as text that a person reads.

        Parameters
        ----------
        word
            "forward", the function itself; "backward", with its gradient; "tangent", with tangents;
            "augmented" and "reverse", the two sweeps of a call that is recorded, which holds what
            the second reads of the first.
        *arguments
            Arguments of the dtypes and ranks that it is for; left out, those of the last call.
        """
        return self._program_for(arguments).source(word)

    def report(self, *arguments: Any) -> KernelReport:
        """List the values that the gradient keeps, the loops that run again, what a call holds.

        Parameters
        ----------
        *arguments
            As those of ``source``.
        """
        given = plain(self.arrays(arguments)) if arguments else ()
        return self._program_for(arguments).report(given)

    def _program_for(self, arguments: Sequence[Any]) -> DerivativeProgram:
        if arguments:
            return self.program(self.arrays(arguments))
        program = self.definition.last
        if program is None:
            raise NumgradValueError(
                f"{self.__name__}: give arguments, as the kernel was not called yet"
            )
        return program


class BatchedKernel(KernelOperation):
    """A kernel for batches of examples: Note [Batch loop] in ``codegen.adjoint.batches``."""

    def __init__(self, kernel: KernelOperation, mask: tuple[bool, ...]) -> None:
        assert isinstance(kernel.definition, KernelDefinition)
        self.kernel, self.mask = kernel, mask
        definition = BatchDefinition(kernel.definition, mask)
        super().__init__(kernel.__kernel__, kernel.writes, definition=definition)

    def __reduce__(self) -> Any:
        return _find_batched, (self.kernel, self.mask)


class KernelCall(PrimitiveCall):
    """A recorded call of a kernel, with the state of its forward sweep until a node takes it."""

    __slots__ = ("names", "state")

    def __init__(
        self, op: KernelOperation, metas: tuple, params: dict[str, Any], outs: tuple,
        names: tuple[str, ...], state: ForwardState | UnitGradients | None,
    ) -> None:  # fmt: skip
        super().__init__(op, metas, params, (), outs)
        self.names, self.state = names, state

    def saves(self, mask: int) -> tuple[str, ...]:
        return self.names

    def auxiliary(self, name: str) -> Any:
        forward, self.state = self.state, None  # the node alone holds it, and frees it
        return forward


def _form_of(
    function: Callable[..., Any], definition: KernelDefinition | BatchDefinition
) -> Callable[..., Any]:
    """A function with the parameters that callers pass."""
    scope, names = definition.scope, definition.parameters
    if not (definition.written.made or scope.tree.args.kwonlyargs):
        return function
    defaults = [scope.defaults[n] for n in names if n in scope.defaults]
    for name in names[len(names) - len(defaults) :]:
        if name not in scope.defaults:
            scope.refuse(scope.tree, f"{name} has no default, after one that has", "give it one")
    space: dict[str, Any] = {}
    exec(f"def form({', '.join(names)}): ...", space)
    form = space["form"]
    form.__defaults__ = tuple(defaults)
    form.__module__, form.__qualname__ = function.__module__, function.__qualname__
    return form


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def _find_kernel(module: str, name: str, writes: Writes, save: str = "all") -> KernelOperation:
    from importlib import import_module

    value: Any = import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value if isinstance(value, KernelOperation) else KernelOperation(value, writes, save)


def _find_batched(kernel: KernelOperation, mask: tuple[bool, ...]) -> BatchedKernel:
    return kernel.batched(mask)


@overload
def kernel(
    function: Callable[..., Any], *, writes: Writes = (), save: Literal["all", "less"] = "all"
) -> KernelOperation: ...


@overload
def kernel(
    function: None = None, *, writes: Writes = (), save: Literal["all", "less"] = "all"
) -> Callable[[Callable[..., Any]], KernelOperation]: ...


def kernel(
    function: Any = None, *, writes: Writes = (), save: Literal["all", "less"] = "all"
) -> Any:
    """Give a function of explicit loops derivatives, compiled; a decorator.

    Parameters
    ----------
    function
        A function as Numba compiles it, or one that Numba has compiled; the table below says which
        Python it may have.
    writes
        Names of the arrays that the function overwrites. A call leaves these as they are: what
        they would hold afterwards are outputs, after those that are returned, in this order. A
        dictionary gives each name None, for an array that is passed, or ``ng.like("x")``, for one
        that a call makes: callers do not pass it, and it starts with zeros.
    save
        "all" values that the gradient needs of each step of a loop over time, or "less": the states
        at the starts of segments, as many as a segment has steps. Steps are then computed once
        more, and memory grows with the square root of their number; elementary functions are
        computed again instead of kept. ``report`` says how many bytes.
        Batches of ``ng.vmap`` keep all. The first call is refused where no outermost loop over
        ``range`` has segments: one in a branch, a ``while``, one with ``break`` or ``return``.

    Raises
    ------
    NumgradKernelError
        If something in the function has no derivative here; the message names the line and what to
        write instead. Some is found at the first call with arguments of new dtypes.
    NumgradValueError
        At a call, if arrays of one statement differ in length, a maximum is one of no elements, or
        arguments overlap in memory of which one is written.

    Notes
    -----
    ================ ==============================================================================
    the language     of kernels
    ================ ==============================================================================
    arguments        numbers, arrays of 1 to 4 axes of any layout; floats, complex numbers,
                     integers (computed in int64), bools; defaults, keywords
    statements       ``=`` with tuples and several targets, ``+=`` and its kin, annotations,
                     ``if``, ``for``, ``while``, their ``else``, ``break``, ``continue``,
                     ``return`` anywhere, ``pass``, docstrings; ``assert`` and ``raise`` about
                     arguments, before any loop or branch: calls raise them
    loops            over ``range``, ``prange``, ``enumerate``, ``zip``, ``reversed``, arrays,
                     ``x.flat``, ``np.ndindex``, ``np.ndenumerate``, tuples
    numbers          operators, comparisons in chains, bits, ``divmod``, ``round``, ``abs``,
                     ``min``, ``max``, ``int``, ``float``; functions of ``math``, ``cmath``, NumPy
                     and ``ng.special`` that have a derivative rule
    elements, parts  negative places, slices with any step, ``x[i]``, ``x.T``, ``x[:, None]``,
                     ``x[cols]``, ``x[x > 0]``, read and assigned to
    arrays           local ones by ``np.zeros``, ``empty``, ``ones``, ``full``, their ``_like``,
                     ``arange``, ``linspace``, ``eye``, ``array``, ``copy``; exchanges, and names
                     that iterations or branches give other arrays of the same shape
    whole arrays     expressions by elements, ``np.where``, ``sum``, ``prod``, ``mean``, ``max``,
                     ``std`` and others, along an axis too, ``@``, ``dot``, ``outer``, ``cumsum``,
                     ``diff``, ``concatenate``, ``reshape``, ``transpose``, ``searchsorted``,
                     ``interp``, ...; comprehensions of one loop
    functions        other functions, compiled by Numba or not, kernels, functions and lambdas
                     inside; constants and arrays from outside
    refused          recursion, lists that grow, dicts, sets, strings, classes, ``try``, ``with``,
                     ``print``, ``np.sort``, ``np.linalg``, random numbers, names that become
                     arrays of another length
    ================ ==============================================================================

    Not checked, as with Numba, are indices: one out of range reads or writes memory of others.
    ``NUMGRAD_BOUNDSCHECK=1`` in the environment has each compared, and raises ``IndexError``. A
    name that no path assigns is NaN, or 0 if it is an integer. Integers divided by 0 give 0.
    An axis of length 1 is repeated where it is written so, as in ``x[:, None]``, not where an
    argument has that length. Dtypes are Numba's: float32 with a float literal or an array of
    int64 is float64, an array of float32 with an integer stays. After an odd number of
    exchanges ``u, v = v, u`` the output for ``u`` is still what the caller's first array holds.
    Values from outside, and functions that are called, are read once, at the first call:
    derivatives, batches and other dtypes have the same.

    A call that is recorded holds until its backward what that reads of it: values of iterations
    that cannot be computed again, local arrays, and the outputs if these are overwritten arrays
    that it reads, which then must not be changed in place. Where the result is one number, a sum
    over a loop, it computes the gradient at once and holds that: call it under ``ng.no_grad()`` if
    none is wanted. ``report()`` says which.

    A loop over Numba's ``prange`` runs on several threads, in the function and in its derivatives,
    where its iterations are proved independent: numbers that they add to, multiply, or put into
    ``max(s, ...)`` and ``min(s, ...)`` and read nowhere else; numbers and arrays that each makes
    for itself; arrays that they read, write at places that belong to one iteration, or only add to
    (``a[k[i]] += ...``). Any other runs as ``range`` does, so it is never a race: ``report()``
    says why. Of nested ones the outermost is parallel. Results have the same bits for any number
    of threads; sums are not grouped as those of ``range``. Under ``ng.vmap`` the batch is such a
    loop around the function.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.kernel
    ... def smooth(x, a):
    ...     s = 0.0
    ...     for i in range(1, len(x)):
    ...         s += a * (x[i] - x[i - 1]) ** 2
    ...     return s
    >>> ng.grad(smooth)(np.array([0.0, 1.0, 3.0]), 0.5)
    array([-1., -1.,  2.])
    """
    if function is None:
        return lambda f: kernel(f, writes=writes, save=save)
    if isinstance(function, staticmethod):
        function = function.__func__
    if isinstance(function, KernelOperation) and not writes and save == "all":
        return function
    return KernelOperation(function, writes, save)
