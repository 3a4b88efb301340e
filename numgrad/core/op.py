"""The operation: a named function with gradient formulas; the table of all; a call of one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.documentation import Documented, Page, signature
from numgrad.core.interpreter import Interpreter, State, interpreter
from numgrad.errors import NumgradRuntimeError, NumgradTypeError

OPS: dict[str, Op] = {}
"""Every operation by name."""

REQUIRED: Any = object()
"""Default of a parameter that has none."""


@dataclass(frozen=True, slots=True)
class Meta:
    """Shape and dtype of an operand that a gradient formula names as ``meta_<input>``."""

    shape: tuple[Any, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Formula:
    """A gradient formula: its parameter names say what it needs (design idea 2).

    ``needs`` are the values a backward must have kept (inputs, ``y``, auxiliaries), ``metas`` the
    inputs of which shape and dtype suffice, ``params`` the parameters of the call it reads.
    """

    __slots__ = ("function", "metas", "names", "needs", "params", "uses_g")

    def __init__(self, op: Op, function: Callable[..., Any], *, reserved: str = "g") -> None:
        code = function.__code__
        self.function = function
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.uses_g = reserved in self.names
        self.needs: tuple[str, ...] = ()
        self.metas: tuple[str, ...] = ()
        self.params: tuple[str, ...] = ()
        for name in self.names:
            if name == reserved:
                continue
            if name == "y" or name in op.inputs or name in op.auxiliaries:
                self.needs += (name,)
            elif name.startswith("meta_") and name[5:] in op.inputs:
                self.metas += (name[5:],)
            elif name in op.params or name in op.implied:
                self.params += (name,)
            else:
                raise NumgradTypeError(
                    f"{op.name}: the gradient formula names {name!r}, which is neither g, y, an "
                    f"input ({', '.join(op.inputs)}), meta_<input>, nor a parameter"
                )


class Kink(NamedTuple):
    """Where an operation has no derivative: for each input its value and its gradient there."""

    points: dict[str, tuple[Any, Any]]
    params: dict[str, Any]


class Op(Documented):
    """A named operation; call it with Tensors, arrays and numbers.

    The concrete families are ``Elementwise``, ``AxisOp``, ``View``, ``Primitive`` and
    ``Composite``; each says how to ``run`` on ndarrays and what a backward is.

    Attributes
    ----------
    name, inputs, params
        Name, positional inputs, keyword parameters with their defaults.
    ref
        The NumPy function with the same meaning, or a dotted name of one elsewhere.
    formulas
        Gradient formula of each differentiable input.
    domain, special, samples, calls, errors
        What the operation is tried on: the range to draw operands from; further operands of
        interest; shapes of operands with parameters; shapes with a function that makes the call,
        where parameters cannot say it; calls that raise.
    kinks, smooth
        Where it has no derivative, and what is used there (``kink``); or that it has one wherever
        it is defined.
    linear, bilinear
        Whether it is linear in all operands together; in each of them.
    effects
        Whether a call is there for more than its result: an error that it may raise.
    lowering
        Dotted name of the module that writes it as terms of a compiled function, which is imported
        when the compiler first meets it.
    real, keeps_dtype, signed_zeros
        Whether it refuses complex operands; whether the result has the dtype of the first operand,
        whatever the others; whether the sign of a zero is promised.
    complex_ref
        What it is compared with on complex operands, if not ``ref``.
    """

    inputs: tuple[str, ...]
    implied: tuple[str, ...] = ()
    auxiliaries: tuple[str, ...] = ()
    differentiable = True

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        ref: Any = None,
        dunder: str | None = None,
        method: bool | str = True,
        domain: tuple[float, float] = (-2.0, 2.0),
        special: Sequence[float] = (),
        samples: Sequence[Any] = (),
        errors: Sequence[Any] = (),
        differentiable: bool = True,
        linear: bool = False,
        bilinear: bool = False,
        effects: bool = False,
        lowering: str | None = None,
        smooth: bool = False,
        real: bool = False,
        keeps_dtype: bool = False,
        signed_zeros: bool = True,
        aliases: Sequence[str] = (),
        internal: bool = False,
        register: bool = True,
    ) -> None:
        code = function.__code__
        self.function = function
        self.name = function.__name__.rstrip("_")
        self.__name__ = self.name
        self.__qualname__ = self.name
        self.__module__ = function.__module__
        self.__doc__ = Page(self)
        self.inputs = code.co_varnames[: code.co_argcount]
        if code.co_flags & 0x04:  # *args: any number of inputs
            self.inputs = ("inputs",)
        keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        given = function.__kwdefaults__ or {}
        self.params = {name: given.get(name, REQUIRED) for name in keywords}
        self.defaults = function.__defaults__ or ()
        self.ref, self.dunder, self.method = ref, dunder, method
        self.domain, self.special = domain, tuple(special)
        self.samples, self.errors = tuple(samples), tuple(errors)
        self.calls: Sequence[tuple[tuple, Callable[..., Any]]] = ()
        self.complex_ref: Callable[..., Any] | None = None
        self.kinks: list[Kink] = []
        self.smooth = smooth or linear
        self.real, self.keeps_dtype, self.signed_zeros = real, keeps_dtype, signed_zeros
        self.differentiable, self.linear, self.aliases = differentiable, linear, tuple(aliases)
        self.bilinear, self.effects, self.lowering = bilinear, effects, lowering
        self.internal = internal  # a part of other operations, without a public name
        self.formulas: dict[str, Formula] = {}
        self.jvp_formula: Callable[..., Any] | None = None
        self.shape_rule: Callable[..., Any] | None = None
        self.batching: Callable[..., Any] | None = None
        self._enter: Callable[..., Any] | None = None
        if register:
            if self.name in OPS:
                raise NumgradRuntimeError(
                    f"{self.name}: an operation of this name is registered already; choose another"
                )
            OPS[self.name] = self
            if State.ground is not None:  # a user's: the table's own come when Tensor is complete
                State.ground.attach(self)

    def eager_entry(self) -> Callable[..., Any] | None:
        """The function behind eager calls, if the operation has a hot path of its own."""
        return None

    @property
    def names(self) -> tuple[str, ...]:
        """The name and the aliases."""
        return (self.name, *self.aliases)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Parameters that may be given by position: those that NumPy has at the same place."""
        ref: Any = self.ref
        if isinstance(ref, str):
            home, _, name = ref.rpartition(".")
            ref = {"numpy": np, "numpy.linalg": np.linalg}.get(home)
            ref = getattr(ref, name, None)
        if not callable(ref) or isinstance(ref, np.ufunc):
            return tuple(self.params)
        theirs = list(inspect.signature(ref).parameters)[len(self.inputs) :]
        if self.name == "astype":  # whose method takes the order there
            theirs = theirs[:1]
        pairs = zip(self.params, theirs, strict=False)
        return tuple([ours for ours, name in takewhile(lambda pair: pair[0] == pair[1], pairs)])

    def __call__(self, *args: Any, **params: Any) -> Any:
        # Note [Calling an operation]: the first call replaces ``__call__`` by the eager entry
        # point, in a class of the operation's own, since Python looks it up on the class. That
        # saves packing the arguments twice, 0.1 us of a call of 1 us.
        return self.entry(*args, **params)

    @property
    def entry(self) -> Callable[..., Any]:
        """The function behind a call."""
        enter = self._enter
        if enter is None:
            enter = self._enter = State.ground.entry(self)
            family = type(self)
            members = {"__call__": staticmethod(enter), "__module__": family.__module__}
            self.__class__ = type(family.__name__, (family,), members)  # pyright: ignore
        return enter

    def __repr__(self) -> str:
        return f"<numgrad operation {self.name}({', '.join((*self.inputs, *self.params))})>"

    def __reduce__(self) -> tuple:
        return _find_op, (self.name, self.__module__)

    @property
    def __signature__(self) -> Any:
        return signature(self)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def vjp(self, **formulas: Callable[..., Any]) -> Op:
        """Declare the gradient formula of each named input; returns the operation.

        A formula takes ``g``, the gradient of the output, and whatever else it names: ``y``,
        inputs, ``meta_<input>``, parameters. Its parameter list decides what a backward keeps.

        Raises
        ------
        NumgradTypeError
            If a formula names something else, or an input does not exist.
        """
        for name, function in formulas.items():
            if name not in self.inputs:
                raise NumgradTypeError(f"{self.name}: no input is called {name!r}")
            self.formulas[name] = Formula(self, function)
        self.forget()
        return self

    def forget(self) -> None:
        """Drop what earlier calls decided: formulas decide what is saved and compiled."""

    def kink(self, *, params: dict[str, Any] | None = None, **points: tuple[Any, Any]) -> Op:
        """Declare operands at which there is no derivative, and the gradients used there.

        For each input a pair: its value, and the gradient of the sum of the result with respect to
        it, None where that is not looked at. The rule is the derivative if it exists; else the
        subgradient of smallest norm where the operation is convex or concave there; else the limit,
        which may be infinite.
        """
        self.kinks.append(Kink(points, params or {}))
        return self

    def jvp(self, function: Callable[..., Any]) -> Op:
        """Declare the tangent of the output where the gradient formulas do not give it.

        ``function`` names what it needs: ``t_<input>``, the tangent of an input (zeros if it has
        none; a tuple ``t_inputs`` for variadic operations), inputs, ``y``, auxiliaries, parameters.
        It returns a Tensor, or a tuple (None for zero) for several outputs, and takes precedence
        over the gradient formulas.
        """
        self.jvp_formula = function
        return self

    def shape(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declare how shapes and dtypes of what is computed follow from those of the inputs.

        ``function`` takes a ``Meta`` for each input (None for one left out) and all parameters; it
        returns what the body does, with a ``Meta`` for each array. Lengths may be symbols, so it
        computes with them and compares them as little as it can.
        """
        self.shape_rule = function
        return function

    def batch(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare how a call acts on whole batches: Note [Rules of batching] in ``batching``."""
        self.batching = rule
        return rule

    # What a family provides.

    def warm(self, dtype: Any) -> Iterator[str]:
        """Compile what ``dtype`` needs, naming each kernel when it is ready."""
        yield from ()

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        """Compute on ndarrays and numbers: the output (or tuple of outputs) and the call record."""
        raise NotImplementedError


def _find_op(name: str, module: str) -> Op:
    if name not in OPS:  # of a layer or a user: what declares it may not be loaded yet
        import_module(module)
    return OPS[name]


CONSUMES = 2
"""``Call.large`` of a call whose ``consume(mask, g, owned)`` may write to ``g`` if it is owned."""


class Call:
    """One application of an operation to operands of known shapes: what its backward depends on.

    The generic form computes gradients by running the formulas on ndarrays under ``raw``; families
    with compiled backwards override ``backward``.
    """

    __slots__ = ("aux", "metas", "op", "params")
    functions: Any = MappingProxyType({})
    """Compiled backwards by mask, where a family has them: ``(g, *saved) -> gradients, owned``."""
    large: int = False
    """Whether ``backward_into(mask, g, saved, buffers)``, which adds to buffers, is worth while."""
    nout = 1
    """Number of outputs."""
    out_metas: tuple[Meta, ...] = ()
    """Shapes and dtypes of the outputs of an operation that returns a tuple, else empty."""
    materializes = True
    """Whether its backward gets zeros for outputs that no gradient reached, or None."""
    row_sparse = False
    """Whether ``backward`` may return gradients that are row-sparse, which are for leaves only."""
    opaque = False
    """Whether a user's code made the outputs: what it returned as a view cannot be written to."""

    def __init__(
        self,
        op: Op,
        metas: tuple[Meta, ...],
        params: dict[str, Any],
        aux: tuple = (),
    ) -> None:
        self.op, self.metas, self.params, self.aux = op, metas, params, aux

    @property
    def results(self) -> tuple[Meta, ...]:
        """Shapes and dtypes of the outputs, one or several."""
        return self.out_metas

    def input_name(self, k: int) -> str:
        """Name of operand ``k``; variadic operations number theirs."""
        names = self.op.inputs
        return names[k] if names != ("inputs",) else "inputs"

    def differentiable(self, k: int) -> bool:
        """Whether operand ``k`` has a gradient formula."""
        return self.input_name(k) in self.op.formulas

    def saves(self, mask: int) -> tuple[str, ...]:
        """What backward needs when the operands of the bits of ``mask`` need gradients."""
        needs: list[str] = []
        for k in range(len(self.metas)):
            if mask >> k & 1:
                needs += self.op.formulas[self.input_name(k)].needs
        order = (*self.op.inputs, *self.op.auxiliaries, "y")
        return tuple(sorted(set(needs), key=order.index))

    def arguments(self, formula: Formula, k: int, values: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of a formula, apart from ``g``."""
        given = {name: values[name] for name in formula.needs}
        names = self.op.inputs
        for name in formula.metas:
            given[f"meta_{name}"] = self.metas[names.index(name) if name != "inputs" else k]
        for name in formula.params:
            given[name] = self.implied(name, k) if name in self.op.implied else self.params[name]
        return given

    def implied(self, name: str, k: int) -> Any:
        """Value of a parameter that the family supplies."""
        if name == "index":  # which of a variadic operation's operands
            return k
        if name == "metas":
            return self.metas
        raise KeyError(name)

    def gradient(self, k: int, g: Any, values: dict[str, Any]) -> Any:
        """Gradient of operand ``k`` by its formula, on whatever kind of value ``g`` is."""
        formula = self.op.formulas[self.input_name(k)]
        given = self.arguments(formula, k, values)
        if formula.uses_g:
            given["g"] = g
        return formula.function(**given)

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        """Gradients of the operands in ``mask`` (None for others), on whatever ``g`` is."""
        return [
            self.gradient(k, g, values) if mask >> k & 1 else None for k in range(len(self.metas))
        ]

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        """Gradients of the operands in ``mask`` (None for others) and which of them are owned.

        Bit ``k`` of the second result says that gradient ``k`` is an array nobody else holds.
        """
        values = dict(zip(self.saves(mask), saved, strict=True))
        out: list[Any] = [None] * len(self.metas)
        with interpreter(raw):
            for k, meta in enumerate(self.metas):
                if mask >> k & 1:
                    value = self.gradient(k, g, values)
                    out[k] = None if value is None else conform(value, meta)
        return out, 0


def conform(value: np.ndarray, meta: Meta) -> np.ndarray:
    """``value`` summed over broadcast axes to ``meta.shape`` and converted to ``meta.dtype``."""
    value = np.asarray(value)
    if value.ndim == 0 and meta.shape:
        value = np.broadcast_to(value, meta.shape)
    if value.shape != meta.shape:
        value = sum_to_shape(value, meta.shape)
    if value.dtype != meta.dtype:
        if value.dtype.kind == "c" and meta.dtype.kind != "c":
            value = np.real(value)
        value = value.astype(meta.dtype)
    return value


def sum_to_shape(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes along which ``shape`` was broadcast to ``value.shape``."""
    lead = value.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and value.shape[lead + i] != 1
    )
    if axes:
        value = OPS["sum"].run((value,), {"axis": axes, "keepdims": False, "dtype": None})[0]
    return np.broadcast_to(value.reshape(shape) if value.size == np.prod(shape) else value, shape)


class RawInterpreter(Interpreter):
    """Computes on ndarrays, records nothing; Tensors are not expected."""

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if isinstance(op, Composite):
            return op.function(*args, **params)
        args, params = complete(op, args, params)
        # NumPy gives scalars for 0-d results, so a formula may pass some on
        arrays = [np.asarray(a) if isinstance(a, np.generic) else a for a in args]
        return op.run(arrays, params)[0]


raw = RawInterpreter()


def complete(op: Op, args: tuple, params: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Inputs in positional order and all parameters, from how a caller wrote them.

    Parameters may be given by position after the inputs, as in ``np.sum(x, 0)``.
    """
    if op.inputs == ("inputs",):
        if len(args) == 1 and isinstance(args[0], list | tuple):
            args = tuple(args[0])
    else:
        count = len(op.inputs)
        if len(args) > count:
            extra = args[count:]
            names = op.positional
            if len(extra) > len(names):
                raise NumgradTypeError(
                    f"{op.name}: takes {count} inputs and parameters {', '.join(names) or 'none'} "
                    f"by position; got {len(args)} positional arguments"
                    + (f"; give {', '.join(op.params)} by name" if op.params else "")
                )
            params = {**dict(zip(names, extra, strict=False)), **params}
            args = args[:count]
        elif len(args) < count:
            missing = op.inputs[len(args) :]
            given = []
            for position, name in enumerate(missing, start=len(args)):
                if name in params:
                    params = dict(params)
                    given.append(params.pop(name))
                elif position >= count - len(op.defaults):
                    given.append(op.defaults[position - count])
                else:
                    raise NumgradTypeError(f"{op.name}: input {name!r} is missing")
            args = (*args, *given)
    if params:
        for name in params:
            if name not in op.params:
                raise NumgradTypeError(
                    f"{op.name}: no parameter is called {name!r}; it has "
                    f"{', '.join(op.params) or 'none'}"
                )
        params = {**op.params, **params}
    else:
        params = dict(op.params)
    for name, value in params.items():
        if value is REQUIRED:
            raise NumgradTypeError(f"{op.name}: parameter {name!r} is missing")
    return args, params


class Composite(Op):
    """An operation written with others: its gradient, tracing and forward mode are theirs."""

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        with interpreter(raw):
            out = self.function(*args, **params)
        return out, Call(self, (), params)
