"""``ng.jit``: a function that is compiled when it is called with a new kind of arguments."""

from __future__ import annotations

import functools
import gc
import inspect
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from numgrad import config
from numgrad.autograd.modes import no_grad
from numgrad.codegen.compile import Kernel
from numgrad.codegen.locks import TRACING
from numgrad.compiler.call import signature
from numgrad.compiler.call.signature import RECORDING
from numgrad.compiler.graph.graph import Graph
from numgrad.compiler.inspect.statistics import FUNCTIONS, Statistics
from numgrad.compiler.messages import announced, no_internal_error
from numgrad.compiler.run.dispatch import MISS, NAMES, compiled
from numgrad.compiler.run.program import Options
from numgrad.compiler.run.specialise import Specialisation, changing_numbers
from numgrad.compiler.trace.promoted_numbers import Key
from numgrad.compiler.trace.tracing import trace
from numgrad.core.interpreter import state
from numgrad.core.wrappers import found_by_name
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError, warn

if TYPE_CHECKING:
    import numpy as np

    from numgrad.autograd.variable import Tensor
    from numgrad.compiler.native.function import NativeFunction
    from numgrad.markup import Report
    from numgrad.transforms.signatures import Transformed

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

RETRACES = 8
"""Retraces of one function after which there is a warning."""

MOST_KEPT = 64
"""For how many objects that have neither attributes nor weak references methods are kept."""

HOT = 8
"""How many specialisations a dispatcher tries at once; others are found by their keys."""

_INFERENCE, _PLAIN = 3, 1


class Jitted(Generic[P, R]):
    """A function with its compiled forms; made by ``ng.jit``.

    Attributes
    ----------
    specialisations
        What was compiled so far, in that order: one for each kind of arguments, and for each state
        of what else the function read.
    """

    __numgrad_jit__ = True
    __wrapped__: Callable[P, R]
    __name__: str

    def __init__(self, function: Callable[P, R], choices: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._choices = choices
        self._parameters = signature.Parameters(
            function, choices["static_argnums"], choices["static_argnames"], choices["donate"]
        )
        self._options = Options(
            self._parameters.name, choices["parallel"], choices["contract"], choices["cache"]
        )
        self.specialisations: list[Specialisation] = []
        self._by_kind: dict[tuple, list[Specialisation]] = {}
        self._constant: set[Key] = set()  # numbers that cannot be inputs
        self._owner: type | None = None
        self._attribute = ""
        self._bound: dict[int, tuple[Any, Jitted]] = {}
        self._slow_calls = 0
        # a class of its own, whose ``__call__`` is the dispatcher: Python looks it up there, and
        # no argument is packed and unpacked on the way
        family = type(self)
        own: Any = type(family.__name__, (family,), {"__module__": family.__module__})
        self.__class__ = own
        self._names: dict[str, Any] = {"_calls": 0}
        self._renew()
        FUNCTIONS.add(self)

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload  # ndarrays where the function names Tensors
    def __call__(self: Jitted[..., Tensor], *args: Any, **kwargs: Any) -> np.ndarray: ...
    @overload
    def __call__(
        self: Jitted[..., tuple[Any, ...] | list[Any] | Mapping[Any, Any]],
        *args: Any,
        **kwargs: Any,
    ) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, compiled."""
        return self._miss(self._parameters.bind(args, kwargs))

    def _renew(self) -> None:
        """Write the dispatcher again."""
        listed = self._parameters.names
        values = "".join(f"{name}, " for name in listed)
        hot = self.specialisations[-HOT:]
        blocks = [
            ["    if not _config.jit or _config.check_jit:", f"        return _miss(({values}))"]
        ]
        blocks += [s.writer.hot() for s in hot]
        names = {**NAMES, "_miss": self._miss, "_calls": self._names["_calls"]}
        for specialisation in hot:
            names.update(specialisation.layout.names)
        function = compiled(
            self._parameters.name,
            self._parameters.header,
            blocks,
            f"return _miss(({values}))",
            names,
        )
        self._names = names
        type(self).__call__ = staticmethod(function)  # pyright: ignore

    # -------------------------------------------------------------------------- other calls

    def _miss(self, values: Sequence[Any]) -> Any:
        """A call that no specialisation took as it came."""
        if state.interpreters or not config.jit:
            return self._parameters.call(values)
        if self._owner is not None and values and isinstance(values[0], self._owner):
            return self._parameters.on(self._through_class, values)
        self._slow_calls += 1
        arguments = signature.Arguments.of(self._parameters, values)
        key = self._key(arguments)
        if config.check_jit:
            from numgrad.compiler.run.check import checked

            return checked(arguments, self._suitable(arguments, key))
        out = self._try(arguments, key)
        return self._first(arguments, key) if out is MISS else out

    def _first(self, arguments: signature.Arguments, key: tuple) -> Any:
        """A call that a specialisation is made for."""
        with TRACING:
            out = self._try(arguments, key)  # another thread may have been faster
            if out is not MISS:
                return out
            self._parameters.check_current()
            with announced(f"compiling {self._parameters.name}"), seldom_collecting():
                new = self._specialise(arguments, key)
                out = self._parameters.on(new.enter, arguments.values)
                if out is MISS:  # tracing changed what was closed over
                    out = new.force(arguments)
        return out

    def _key(self, arguments: signature.Arguments) -> tuple:
        mode = _INFERENCE if state.inference else RECORDING if state.grad_enabled else _PLAIN
        return (*arguments.key(self._choices["dynamic"], mode == RECORDING), mode)

    def _try(self, arguments: signature.Arguments, key: tuple) -> Any:
        for value in reversed(self._by_kind.get(signature.hashed_key(key), ())):
            if signature.same_key(value.key, key):
                out = self._parameters.on(value.enter, arguments.values)
                if out is not MISS:
                    return out
        return MISS

    def _suitable(self, arguments: signature.Arguments, key: tuple) -> Specialisation:
        """A specialisation for arguments, compiled now if there is none."""
        with TRACING:
            for value in reversed(self._by_kind.get(signature.hashed_key(key), ())):
                if signature.same_key(value.key, key):
                    arrays = self._parameters.on(value.arrays, arguments.values)
                    if arrays is not MISS:
                        return value
            return self._specialise(arguments, key)

    def _specialise(self, arguments: signature.Arguments, key: tuple) -> Specialisation:
        begin = time.perf_counter()
        count = len(self.specialisations)
        reason = None
        if count:
            near = next(
                (s for s in reversed(self.specialisations) if signature.same_key(s.key, key)), None
            )
            near = near or self.specialisations[-1]
            from numgrad.compiler.inspect.report import difference  # which first calls do without

            reason = difference(near.layout, near.key, arguments, key)
        new = self._promoting(count, arguments, key)
        if new is None:
            new = self._trace(count, arguments, key)
        new.reason = reason
        if count == RETRACES:
            warn(
                f"jit: {self._parameters.name} was traced again {count} times, each time at the "
                f"cost of a compilation; the last time because {reason}. Pass numbers that change "
                "as arguments, or as arrays of shape (), and keep lengths out of branches and "
                "loops (ng.jit_stats() shows what was compiled)"
            )
        self.specialisations = [*self.specialisations, new]
        kind = signature.hashed_key(key)
        self._by_kind[kind] = [*self._by_kind.get(kind, ()), new]
        self._renew()
        new.tracing_seconds = time.perf_counter() - begin
        return new

    def _trace(
        self, count: int, arguments: signature.Arguments, key: tuple, promoted: Collection[Key] = ()
    ) -> Specialisation:
        what, function = f"it traced {self._parameters.name}", self._parameters.function
        options, dynamic = self._options, self._choices["dynamic"]
        with no_internal_error(what, function, runs_users_code=True):
            return Specialisation(count, arguments, key, options, dynamic, self.like, promoted)

    def _promoting(
        self, count: int, arguments: signature.Arguments, key: tuple
    ) -> Specialisation | None:
        """Numbers around the function that change are inputs: Note [Promoted numbers]."""
        if count < 2:
            return None
        keys = changing_numbers(self.specialisations) - self._constant
        try:
            return self._trace(count, arguments, key, keys) if keys else None
        except Exception:  # of which the trace with the numbers themselves has its own
            self._constant |= keys
            return None

    @property
    def is_plain(self) -> bool:
        """Whether no argument is static or donated."""
        return not any(self._choices[k] for k in ("static_argnums", "static_argnames", "donate"))

    def like(self, function: Callable[..., Any]) -> Jitted:
        """A new compiled function of ``function``, with the same choices."""
        none = {"static_argnums": (), "static_argnames": (), "donate": ()}
        return Jitted(function, {**self._choices, **none})

    # -------------------------------------------------------------------------- as a function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an object, compiled for each object, whose attributes are read."""
        if instance is None:
            return self
        attributes = getattr(instance, "__dict__", None)
        name = self._attribute or self.__name__
        if attributes is None or inspect.getattr_static(type(instance), name, None) is not self:
            return self._method_of(instance)
        result = attributes[name] = self._method(MethodType(self.__wrapped__, instance))
        return result  # and from now on it is found there

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._attribute = owner, name

    def _through_class(self, instance: Any, *args: Any, **kwargs: Any) -> Any:
        """``Class.method(instance, ...)``."""
        return self.__get__(instance, type(instance))(*args, **kwargs)

    def _method_of(self, instance: Any) -> Jitted:
        """The method of an object that has no place for it, kept here while the object lives."""
        key = id(instance)
        cached = self._bound.get(key)
        if cached is not None:
            return cached[1]
        try:
            method: Any = signature.WeakMethod(self.__wrapped__, instance)
            alive: Any = weakref.ref(instance, lambda _: self._bound.pop(key, None))
        except TypeError:  # its class forbids weak references
            method, alive = MethodType(self.__wrapped__, instance), instance
            while len(self._bound) >= MOST_KEPT:
                self._bound.pop(next(iter(self._bound)))
        made = self._method(method)
        self._bound[key] = (alive, made)
        return made

    def _method(self, method: Any) -> Jitted:
        """A method of an object, with the choices that concern its other arguments."""
        first = next(iter(self._parameters.names), None)
        choices = dict(self._choices)
        for option in ("static_argnums", "static_argnames", "donate"):
            option_value = choices[option]
            listed = (option_value,) if isinstance(option_value, int | str) else option_value
            choices[option] = tuple(
                k - 1 if type(k) is int and k > 0 else k for k in listed if k not in (0, first)
            )
        return Jitted(method, choices)

    def __reduce__(self) -> Any:
        function = self.__wrapped__
        if isinstance(function, signature.METHODS):
            name = function.__name__
            if isinstance(getattr(type(function.__self__), name, None), Jitted):
                return getattr, (function.__self__, name)
            function = MethodType(function.__func__, function.__self__)  # also of a weak one
        return found_by_name(self, function) or (Jitted, (function, self._choices))

    def __repr__(self) -> str:
        return f"<jitted {self.__wrapped__!r}>"

    # --------------------------------------------------------------------------- seeing inside

    @property
    def statistics(self) -> Statistics:
        """Counts of calls, traces and kernels so far."""
        module, name = getattr(self, "__module__", ""), getattr(self, "__qualname__", repr(self))
        value = self.specialisations
        return Statistics(
            f"{module}.{name}",
            self._names["_calls"] + self._slow_calls,
            len(value),
            sum(len(s.kernels) for s in value),
            sum(k.from_cache for s in value for k in s.kernels),
            sum(s.seconds for s in value),
        )

    def _last(self, what: str) -> Specialisation:
        if not self.specialisations:
            raise NumgradRuntimeError(
                f"{what}: {self._parameters.name} is not compiled yet; call it once"
            )
        return self.specialisations[-1]

    @property
    def raw(self) -> Callable[P, R]:
        """The function compiled last, without any look at its arguments.

        They must be of the same kinds, dtypes, ranks and nesting as in the call that it was
        compiled for, and C-contiguous; anything else ends in wrong numbers or worse.
        """
        return self._last("raw").raw

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> Graph:
        """The operations that a call with these arguments consists of; nothing is compiled.

        ``print`` shows them as text beside your lines, Jupyter as a picture; see ``Graph``.
        """
        values = self._parameters.bind(args, kwargs)
        arguments = signature.Arguments.of(self._parameters, values)
        with TRACING:
            return trace(arguments, dynamic=self._choices["dynamic"], recorded=False).graph

    @property
    def source(self) -> str:
        """The generated source of what was compiled last: kernels and functions around them."""
        value = self._last("source").programs
        return "\n\n".join(getattr(program, "source", "") for program in value)

    def _kernels(self, what: str) -> list[Kernel]:
        """The serial variants of the kernels compiled last; compiles them if they are not yet."""
        return [step.kernel() for step in self._last(what).steps]

    @property
    def llvm(self) -> str:
        """LLVM IR of the kernels compiled last, after optimisation."""
        return "\n".join(f"; {k.name}\n{k.llvm()}" for k in self._kernels("llvm"))

    @property
    def asm(self) -> str:
        """Assembly of the kernels compiled last."""
        return "\n".join(f"# {k.name}\n{k.asm()}" for k in self._kernels("asm"))

    def native(
        self, *examples: Any, shapes: Literal["fixed", "free"] = "free", threads: int = 1,
        workspace: bool = False, **named: Any,
    ) -> NativeFunction:  # fmt: skip
        """The function as machine code for C, for Numba's compiled functions and for SciPy.

        Parameters
        ----------
        *examples, **named
            Arguments such as it will get: their dtypes, ranks and nesting count. Bools, strings and
            other arguments that are no arrays or numbers, and what the function captures, are
            constants.
            Donated arrays are overwritten in place where the function writes to them.
        shapes
            ``"free"``: lengths are arguments, from 2 on, where the function or what it captures
            does not fix them; those that are 0 or 1 in the examples stay so. ``"fixed"``: they are
            those of the examples.
        threads
            In how many threads a call may run its large loops, of half a millisecond and more. It
            creates them and waits for them; calls beside another one, as in ``prange``, run in
            their own thread. Results have the same bits for any number.
        workspace
            Whether the function has a last argument, ``struct numgrad_workspace *workspace`` of
            ``{void *memory; int64_t size; int64_t needed;}``: it takes memory from there and calls
            ``malloc`` only for what is beyond; ``needed`` tells how much a call had in use, also
            of a size of 0. NULL is none. `NativeFunction.workspace` makes one.

        Returns
        -------
        NativeFunction
            With ``.address``, ``.declaration`` in C, ``.ctypes``, ``.cffi``, ``.njit`` for Numba
            and ``.low_level_callable(signature)`` for SciPy; values and gradients have the bits of
            this function on one thread, except that kernels of ours transform, factor, solve and
            sort where this function calls libraries: last bits differ, and ``argsort`` gives equal
            elements in their order. Sums beside results that are views of arguments, which are
            copied with them, may differ in last bits too.

        Raises
        ------
        NumgradNotImplementedError
            If something in it has no kernel: eigenvalues and other decompositions of LAPACK, some
            special functions, generators of random numbers (`ng.random.normal_at` takes a seed),
            calls of Python functions; the error names the operation and the line.

        Examples
        --------
        >>> import numpy as np, numgrad as ng
        >>> from scipy.integrate import quad
        >>> fast = ng.jit(lambda t, k: np.exp(-k * t) * np.sin(t))
        >>> integrand = fast.native(0.0, 0.0).low_level_callable("double(double)", 0.5)
        >>> round(quad(integrand, 0, 10)[0], 6)
        0.805989
        """
        from numgrad.compiler.native.function import NativeFunction
        from numgrad.compiler.native.program import (
            NativeProgram,
            check_options,
            with_copied_results,
        )

        if shapes not in ("fixed", "free"):
            raise NumgradValueError(f'native: shapes is "fixed" or "free", got {shapes!r}')
        check_options(threads, workspace)
        copied = Jitted(with_copied_results(self.__wrapped__), self._choices)
        parameters = copied._parameters
        with no_grad():
            arguments = signature.Arguments.of(parameters, parameters.bind(examples, named))
            specialisation = copied._suitable(arguments, copied._key(arguments))
        arrays = specialisation.force(arguments, run=False)
        program = NativeProgram(
            specialisation, arrays, shapes == "fixed", parameters.name, threads, workspace
        )
        return NativeFunction(program, parameters, arguments, self)

    def report(self) -> Report:
        """Text about what was compiled so far: why, from what and into what.

        For each kind of arguments that the function was called with: its inputs and guards, the
        passes over its graph, and its kernels: which operations ended in which loops, which loops
        LLVM vectorised (kernels that came from disk are compiled again to see that), estimates of
        bytes moved and arithmetic for the lengths of the call that was traced, buffers, operations
        that run as Python calls in between, time of compilation, threads.

        Examples
        --------
        >>> import numpy as np, numgrad as ng
        >>> fast = ng.jit(lambda x: np.sum(np.exp(x) * x))
        >>> value = fast(np.ones(1000))
        >>> text = fast.report()
        >>> [line.strip() for line in text.splitlines() if "moved" in line]
        ['about 8*n0 = 8,000 bytes moved; 2*n0 = 2,000 flops; n0 = 1,000 exp']
        >>> "for i0 in range(lo, hi): reads x  [vectorised" in text
        True
        """
        from numgrad.compiler.inspect.report import report  # which compiling does without

        return report(self._parameters.name, self.specialisations, self.statistics)


class JitOptions(TypedDict, total=False):
    """Options of ``ng.jit``."""

    static_argnums: int | Sequence[int]
    static_argnames: str | Sequence[str]
    dynamic: bool
    parallel: bool | Literal["auto"]
    contract: bool
    donate: int | str | Sequence[int | str]
    cache: bool


if TYPE_CHECKING:
    T = TypeVar("T", bound=Transformed)

    class JittedTransform(Jitted[..., Any], Generic[T]):
        """A compiled derivative or batch, which is called as it is without ``ng.jit``."""

        @property
        def __call__(self) -> T:  # pyright: ignore
            """Call it."""
            ...

    class _Decorator:
        """``ng.jit`` with options."""

        @overload
        def __call__(self, f: T, /) -> JittedTransform[T]: ...
        @overload
        def __call__(self, f: Callable[P, R], /) -> Jitted[P, R]: ...
        def __call__(self, f: Any, /) -> Any: ...


@overload
def jit(f: T, **options: Unpack[JitOptions]) -> JittedTransform[T]: ...
@overload
def jit(f: Callable[P, R], **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
@overload
def jit(f: None = None, **options: Unpack[JitOptions]) -> _Decorator: ...
def jit(
    f: Any = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    dynamic: bool = True,
    parallel: bool | Literal["auto"] = "auto",
    contract: bool = False,
    donate: int | str | Sequence[int | str] = (),
    cache: bool = True,
) -> Any:
    """Compile a function, with all the gradients in it, to one native kernel.

    The first call with a new kind of arguments runs the function on stand-ins for them and compiles
    the operations that it applies; later calls run the compiled code alone. A kind is: how the
    arguments nest, their dtypes and ranks and which lengths are 0 or 1, and the values of static
    arguments and of numbers that the function reads from outside.

    Parameters
    ----------
    f
        A function of arrays, Tensors, numbers, and tuples, lists and dicts of these. Without it,
        the result is a decorator.
    static_argnums, static_argnames
        Arguments whose values the function is compiled for, by position or name: what decides a
        branch, an axis, a number of steps.
    dynamic
        Whether lengths are read at run time; else each shape is compiled for, which takes about
        100 KB of memory as long as the function lives.
    parallel
        Whether loops run in several threads; ``"auto"`` decides by their work.
    contract
        Whether a product and a sum of different operations may become one instruction, which
        rounds once, and whether sums of a matrix product may add up factors instead: faster, but
        last bits, and what infinite factors give, may differ from eager code.
    donate
        Arguments, by position or name, whose memory may be overwritten: the function may write to
        them in place.
    cache
        Whether compiled code is kept on disk.

    Returns
    -------
    callable
        The function: ndarrays in, ndarrays out; Tensors out where a Tensor is among the arguments,
        or results depend on one from outside that requires grad. What is read from outside
        (globals, enclosed variables, attributes) is read at each call.

    Raises
    ------
    NumgradTypeError
        If ``f`` cannot be called, or an option is of the wrong kind.
    NumgradValueError
        If an option names an argument that does not exist.

    Notes
    -----
    Python code that is not made of operations, such as ``print``, runs only while the function is
    traced. So lengths of arrays around it, and what plain NumPy computes of such (``table.sum()``),
    become part of what is compiled; it is compiled again where one of them has another shape or
    other numbers (of those above 64 MB a sample is compared). Those that are nothing but operands,
    and views of them (``table.T``, ``table[1:]``), are read at each call. An array in a list or
    tuple that is an operand is taken for one that is nothing else where a loop takes it.
    A floating number around the function (enclosed, global, an attribute) is part of what is
    compiled; after two values it is read at each call, unless code asks for it, as a branch does.
    Arguments are then Tensors without numbers, and so is what is computed from them, as in
    ``ng.grad``. ``isinstance(x, np.ndarray)`` or ``isinstance(x, float)`` says of an argument what
    was given; ``type(x)``, ``np.isscalar(x)``, and both of what was computed, say Tensor: a branch
    on these may be another one than without ``ng.jit``.
    Tensors that the function sets in place of what was there around it, as a hidden state in an
    attribute (``self.h = ng.tanh(x + self.h)``), an element or a variable, are results that each
    call sets. What is set there for the first time is not: let it be None before.
    Results share memory where eager ones do. ``ng.config.jit = False`` runs everything eagerly,
    ``ng.config.check_jit = True`` compares each call with an eager one.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> @ng.jit
    ... def loss(w, x):
    ...     return np.sum(np.tanh(x @ w) ** 2)
    >>> x = np.eye(2)
    >>> loss(np.zeros(2), x)
    np.float64(0.0)
    >>> step = ng.jit(ng.value_and_grad(loss))
    >>> value, gradient = step(np.zeros(2), x)
    >>> gradient
    array([0., 0.])
    """
    choices = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "dynamic": dynamic,
        "parallel": parallel,
        "contract": contract,
        "donate": donate,
        "cache": cache,
    }
    if not isinstance(dynamic, bool):
        raise NumgradTypeError(f"jit: dynamic is a bool, got {dynamic!r}")
    if f is None:
        return functools.partial(jit, **choices)
    if not callable(f):
        raise NumgradTypeError(f"jit: compiles functions, got {type(f).__name__}")
    return Jitted(f, choices)


OBJECTS = 50_000
"""Objects made and still there after which Python looks for garbage: a graph keeps what it makes,
so looking after every few hundred took a tenth of the time."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Make Python collect garbage less often, in all threads; if it does not, it stays so."""
    before = gc.get_threshold()
    seldom = (before[0] and max(before[0], OBJECTS), *before[1:])
    gc.set_threshold(*seldom)
    try:
        yield
    finally:
        if gc.get_threshold() == seldom:  # else somebody has chosen others meanwhile
            gc.set_threshold(*before)
