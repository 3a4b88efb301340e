"""The operation: a named function with gradient formulas; the table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from numgrad.core.arguments import REQUIRED, complete, signature_of
from numgrad.core.documentation import Documented, Page, signature
from numgrad.core.formula import REFUSED, GradientFormula
from numgrad.core.interpreter import State, bind, state
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError

OPS: dict[str, Op] = {}
"""Every operation by name."""
on_forget: list[Callable[[], None]] = []
"""Functions that are called when an operation is declared anew."""
FOUND: list[dict[Any, Any]] = []
"""Tables made from that one, which are emptied where a user's operation is declared anew."""
RESERVED = frozenset(("g", "y", "self", "empty"))
"""Names with a meaning in gradient formulas and entries: users' inputs called so get a ``_``."""


class Kink(NamedTuple):
    """Where an operation has no derivative: for each input its value and its gradient there."""

    points: dict[str, tuple[Any, Any]]
    params: dict[str, Any]


def not_real(name: str, dtype: np.dtype) -> NumgradTypeError:
    """The error of an operation of real operands that gets a complex one."""
    return NumgradTypeError(
        f"{name}: defined for real operands only, got {dtype}; apply it to real() and imag()"
    )


class Op(Documented):
    """A named operation; call it with Tensors, arrays and numbers.

    The concrete families are ``Elementwise``, ``AxisOp``, ``View``, ``Primitive`` and
    ``Composite``; each says how to ``run`` on ndarrays and what a backward is.

    Attributes
    ----------
    name, inputs, params
        Name, by default that of the function; positional inputs, keyword parameters with their
        defaults.
    ref
        The NumPy function with the same meaning, or a dotted name of one elsewhere.
    declared, complex_formulas
        Gradient formulas by input, as declared; those that take their places where an operand is
        complex. ``formulas`` has those that are implied as well.
    constants
        Inputs by which the result has no derivative: ``no_derivative``.
    domain, special, samples
        What the operation is tried on: the range to draw operands from; further operands of
        interest; shapes of operands with parameters.
    kinks, smooth
        Where it has no derivative, and what is used there (``kink``); or that it has one wherever
        it is defined.
    linear, bilinear
        Whether it is linear in all operands together; in each of them.
    may_raise
        Whether a call is there for the error that it may raise, also if nobody reads its result.
    materializes
        Whether gradient formulas get zeros for outputs that no gradient reached, or None.
    materializes_tangents
        Whether formulas of forward mode get zeros for operands without a tangent, or None.
    lowering
        Dotted name of the module that writes it as terms of a compiled function, which is imported
        when the compiler first meets it.
    real_only, keeps_dtype, signed_zeros
        Whether it refuses complex operands; whether the result has the dtype of the first operand,
        whatever the others; whether the sign of a zero is promised.
    complex_ref
        What it is compared with on complex operands, if not ``ref``.
    holomorphic
        Whether gradient formulas say the product of ``g`` with a complex derivative, of which the
        conjugate is due: ``Call.gradient`` takes it.
    real_beside
        How many inputs, the first ones, are real where the others are complex.
    """

    inputs: tuple[str, ...]
    implied: tuple[str, ...] = ()
    auxiliaries: tuple[str, ...] = ()
    differentiable = True
    planned = False
    """Whether the function behind calls finds plans of calls that were made before."""

    materializes = True
    materializes_tangents = True
    stand_ins: Mapping[str, Callable[[Any], dict[str, Any]]] = MappingProxyType({})
    """Parameters of another library's function of the name -> what stands for their values here;
    nothing, where results do not depend on them."""

    joint_gradients: Callable[[int, Any, dict[str, Any], dict[str, Any]], list[Any]] | None = None
    """Function of ``mask``, ``g`` and saved values that gives the gradients of all operands, where
    that is less than one formula for each."""

    keeps_state = False
    """Whether ``run_recorded(arrays, params, mask)`` computes more, for operands of ``mask``."""

    wider: Op | None = None
    """The operation that gets a call with parameters that this has not, if that has them."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str = "",
        ref: Any = None,
        dunder: str | None = None,
        method: bool | str = True,
        domain: tuple[float, float] = (-2.0, 2.0),
        special: Sequence[float] = (),
        samples: Sequence[Any] = (),
        differentiable: bool = True,
        linear: bool = False,
        bilinear: bool = False,
        may_raise: bool = False,
        lowering: str | None = None,
        smooth: bool = False,
        real_only: bool = False,
        holomorphic: bool = False,
        real_beside: int = 0,
        keeps_dtype: bool = False,
        signed_zeros: bool = True,
        aliases: Sequence[str] = (),
        internal: bool = False,
        register: bool = True,
    ) -> None:
        code = function.__code__
        self.function, self._line = function, code.co_firstlineno
        self.name = name or function.__name__.rstrip("_")
        self.__name__ = self.name
        self.__qualname__ = self.name
        self.__module__ = function.__module__ or "__main__"  # of text that was executed
        self.__doc__ = Page(self)
        names = code.co_varnames[: code.co_argcount]
        self.renamed = {}
        for name in RESERVED.intersection(names) if self.is_users else ():
            result_name = f"{name}_"
            while result_name in code.co_varnames:
                result_name += "_"
            self.renamed[name] = result_name
        self.inputs = tuple([self._input(name) for name in names])
        if code.co_flags & 0x04:  # *args: any number of inputs
            self.inputs = ("inputs",)
        keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        defaults = function.__kwdefaults__ or {}
        self.params = {name: defaults.get(name, REQUIRED) for name in keywords}
        self.defaults = function.__defaults__ or ()
        self.ref, self.dunder, self.method = ref, dunder, method
        self.domain, self.special = domain, tuple(special)
        self.samples = tuple(samples)
        self.complex_ref: Callable[..., Any] | None = None
        self.kinks: list[Kink] = []
        self.smooth = smooth or linear
        self.real_only, self.keeps_dtype, self.signed_zeros = real_only, keeps_dtype, signed_zeros
        self._refuses_complex = real_only and self.is_users
        self.holomorphic, self.real_beside = holomorphic, real_beside
        self.differentiable, self.linear, self.aliases = differentiable, linear, tuple(aliases)
        self.bilinear, self.may_raise, self.lowering = bilinear, may_raise, lowering
        self.internal = internal  # a part of other operations, without a public name
        self.declared: dict[str, GradientFormula] = {}
        self.constants: frozenset[str] = frozenset()
        self.complex_formulas: dict[str, GradientFormula] = {}
        self.jvp_formula: Callable[..., Any] | None = None
        self.shape_rule: Callable[..., Any] | None = None
        self.batching: Callable[..., Any] | None = None
        self._enter: Callable[..., Any] | None = None
        self.in_python: Any = None  # the function behind calls that is written in Python
        self.shortcuts: Any = None  # what machine code knows of calls, with a method ``clear``
        if register:
            known = OPS.get(self.name)
            if known is not None and not known._is_redefined(self):
                raise NumgradRuntimeError(
                    f"{self.name}: an operation of this name is registered already; choose another"
                )
            OPS[self.name] = self
            if known is not None:
                for table in FOUND:
                    table.clear()
            State.ground.attach(self, known)

    def _is_redefined(self, by: Op) -> bool:
        """Whether ``by`` takes this place.

        A user's own may be declared anew, as notebooks do; one of this package by the same line,
        which runs again after an import of its module that something interrupted.
        """
        origins = [(op.__module__, op.function.__qualname__) for op in (self, by)]
        return origins[0] == origins[1] and (self.is_users or self._line == by._line)

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
        theirs = list(signature_of(ref).parameters)[len(self.inputs) :]
        if self.name == "astype":  # whose method takes the order there
            theirs = theirs[:1]
        pairs = zip(self.params, theirs, strict=False)
        return tuple([ours for ours, name in takewhile(lambda pair: pair[0] == pair[1], pairs)])

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Inputs and parameters -> names that callers or NumPy have for those at the same place."""
        own = {name: written for written, name in self.renamed.items()}
        if own or not callable(self.ref) or isinstance(self.ref, np.ufunc):
            return own
        theirs = signature_of(self.ref).parameters
        ours = (*self.inputs, *self.params)
        return {
            name: p.name
            for name, p in zip(ours, theirs.values(), strict=False)
            if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in ours and name not in theirs
        }

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

    @property
    def entered(self) -> bool:
        """Whether the function behind a call has been made."""
        return self._enter is not None

    def enter_by(self, enter: Callable[..., Any]) -> None:
        """Let calls of an operation that has been ``entered`` go to another function."""
        self._enter = enter
        type(self).__call__ = staticmethod(enter)  # pyright: ignore

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

    def _input(self, written: str) -> str:
        """The name of an input that a user has called so."""
        return self.renamed.get(written, written)

    def vjp(self, /, **formulas: Callable[..., Any]) -> Op:
        """Declare the gradient formula of each named input; returns the operation.

        A formula takes ``g``, the gradient of the output, and whatever else it names: ``y``,
        inputs, ``meta_<input>``, parameters. Its parameter list decides what a backward keeps. An
        input that is called ``g`` or ``y`` itself is ``g_`` or ``y_`` there.

        Raises
        ------
        NumgradTypeError
            If a formula names something else, or an input does not exist.
        """
        for written, function in formulas.items():
            name = self._input(written)
            if name not in self.inputs:
                raise NumgradTypeError(f"{self.name}: no input is called {written!r}")
            self.declared[name] = GradientFormula(self, function)
        self._redeclared()
        return self

    def refuse(self, /, **formulas: Callable[..., Any]) -> Op:
        """Declare gradient formulas that raise, of inputs whose derivative does not exist."""
        for name, function in formulas.items():
            self.declared[name] = GradientFormula(self, function, REFUSED)
        self._redeclared()
        return self

    def no_derivative(self, *names: str) -> Op:
        """Declare that the result has no derivative by these inputs, all if none is named.

        They count as constants, as indices do by nature: no gradient is recorded for them. An input
        with neither this nor a gradient formula has one derived from the body, if that is a
        formula; else a gradient with respect to it raises. Returns the operation.

        Raises
        ------
        NumgradTypeError
            If an input does not exist.

        Examples
        --------
        >>> import numpy as np, numgrad as ng
        >>> @ng.primitive()
        ... def gather_rows(x, rows):
        ...     '''Some rows of a matrix.'''
        ...     return x[rows.astype(int)]
        >>> gather_rows.vjp(x=lambda g, rows, meta_x: ng.index_add(
        ...     np.zeros(meta_x.shape), rows.astype(int), g, axis=0
        ... )).no_derivative("rows")
        <numgrad operation gather_rows(x, rows)>
        """
        names = tuple([self._input(name) for name in names])
        for name in names:
            if name not in self.inputs:
                raise NumgradTypeError(f"{self.name}: no input is called {name!r}")
        self.constants |= frozenset(names or self.inputs)
        self._redeclared()
        return self

    def _redeclared(self) -> None:
        for name in ("formulas", "refused_mask"):
            self.__dict__.pop(name, None)
        self.forget()

    @cached_property
    def formulas(self) -> dict[str, GradientFormula]:
        """The gradient formula of each input that is no constant, declared or implied."""
        return {
            name: self.declared[name] if name in self.declared else self.undeclared(name)
            for name in self.inputs
            if name in self.declared or (self.differentiable and name not in self.constants)
        }

    def undeclared(self, name: str) -> GradientFormula:
        """The gradient formula of an input for which none was declared."""
        return GradientFormula(self, refusal(self.name, name, own=self.is_users), REFUSED)

    @property
    def refused(self) -> tuple[str, ...]:
        """Inputs by which there is no derivative, so that asking for it raises."""
        return tuple([name for name, f in self.formulas.items() if f.kind == REFUSED])

    @cached_property
    def refused_mask(self) -> int:
        """The same as bits."""
        return sum([1 << self.inputs.index(name) for name in self.refused])

    @property
    def is_users(self) -> bool:
        """Whether it is no operation of this package."""
        return self.__module__.partition(".")[0] != __name__.partition(".")[0]

    def check_real(self, operands: Sequence[Any]) -> None:
        """Raise if an operation of a user's, declared ``real_only``, gets a complex operand.

        Those of this package refuse them by their dtype rules. ``operands`` are arrays, dtypes or
        types of Python numbers.
        """
        if self._refuses_complex:
            for operand in operands:
                dtype = np.dtype(getattr(operand, "dtype", operand))
                if dtype.kind == "c":
                    raise not_real(self.name, dtype)

    def forget(self) -> None:
        """Drop what earlier calls decided: formulas decide what is saved and compiled."""
        if self.shortcuts is not None:
            self.shortcuts.clear()
        for function in on_forget:
            function()

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

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        """Compute on ndarrays and numbers: the output (or tuple of outputs) and the ``Call``."""
        raise NotImplementedError

    def compute(self, args: tuple, params: dict[str, Any]) -> Any:
        """The output alone, from arguments as a caller writes them."""
        args, params = complete(self, args, params)
        # NumPy gives scalars for 0-d results, so a formula may pass some on
        arrays = [np.asarray(a) if isinstance(a, np.generic) else a for a in args]
        return self.run(arrays, params)[0]


def refusal(operation: str, name: str, *, own: bool = False) -> Callable[[Any], Any]:
    """The gradient formula of an input that has none: it raises instead of being silently 0.

    The step of a compiled loop has gradients of all that it reads, of which few may be asked for:
    there it raises where one is needed.
    """
    remedy = "detach() it"
    if own:
        remedy = (
            f"declare it with {operation}.vjp({name}=...), or that it counts as a constant with "
            f"{operation}.no_derivative({name!r})"
        )
    message = f"{operation}: has no derivative with respect to {name!r}; {remedy}"

    def refuse(g: Any) -> Any:
        if state.ground.inner:
            return bind(OPS["refused"], (g,), {"message": message})
        raise NumgradNotImplementedError(message)

    return refuse


def _find_op(name: str, module: str) -> Op:
    if name not in OPS:  # of a layer or a user: what declares it may not be loaded yet
        import_module(module)
    if name not in OPS:
        raise NumgradRuntimeError(
            f"pickle: the operation {name} was declared in {module}, and is not declared in this "
            "process; declare it in a module that both import"
        )
    return OPS[name]
