"""The arguments of a call: how they nest, what is specialised on them; inputs, results, guards.

Note [Leaves]
-------------
Tuples, lists, dicts and named tuples are taken apart. Of what is in them, arrays, Tensors and
numbers are *dynamic*: a compiled function is made for their dtype and rank and reads the values
when it is called. None, bools, strings, functions and whatever is declared static are part of what
it is made for. A parameter that is left to its default stays out of the matter: the function
itself knows it.
"""

from __future__ import annotations

import copy
import enum
import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import field
from types import MethodType
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from numgrad.autograd.variable import Tensor, refresh
from numgrad.codegen.dtypes import check_dtype
from numgrad.compiler.call.source import Source
from numgrad.compiler.graph.graph import Value
from numgrad.compiler.graph.sizes import Size, Sizes
from numgrad.core.arguments import signature_of
from numgrad.core.tree import Nesting, flatten, paths, unflatten
from numgrad.core.wrappers import FunctionWrapper
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.eager import check_array_kind

RECORDING, PLAIN = 2, 1
"""Two of the values of ``state.mode``."""


@dataclass
class Input:
    """One input of a compiled function.

    Attributes
    ----------
    value
        Its place in the graph.
    leaf
        The leaf of the arguments, or None for something captured.
    source
        Source of something captured; None if it is held.
    owner
        What was captured.
    gradient
        Whether it is the ``.grad`` of that.
    """

    value: Value
    leaf: Leaf | None = None
    source: Source | None = None
    owner: Any = None
    gradient: bool = False

    @property
    def tensor(self) -> bool:
        """Whether what is found there is a Tensor."""
        return isinstance(self.owner, Tensor) if self.leaf is None else self.leaf.kind == TENSOR

    @property
    def is_number(self) -> bool:
        """Whether it is a promoted number: Note [Promoted numbers] in ``promoted_numbers``."""
        return isinstance(self.owner, float | np.floating)

    @property
    def name(self) -> str:
        """How a reader would write it."""
        if self.leaf is not None:
            return self.leaf.path
        return "an array" if self.source is None else self.source.name


@dataclass
class Result:
    """One leaf of what a function returns: output ``number``, a length, or something constant.

    ``dead_end`` makes a Tensor of it, if its gradients could not be traced. Note [Shared results]
    in ``trace.arrays``: ``origin`` is the input and ``same`` the number of the result that it is,
    or that ``views`` make it of; ``gradient_of`` is the captured Tensor whose ``.grad`` it is.
    """

    number: int | None = None
    value: Value | None = None
    size: Size | None = None
    constant: Any = None
    dead_end: Callable[..., Any] | None = None
    origin: Value | None = None
    same: int | None = None
    views: Any = None
    gradient_of: Tensor | None = None
    source: Source | None = None


@dataclass
class GradientResult:
    """A Tensor whose ``.grad`` is output ``number``, or None, from then on.

    ``source`` is where the Tensor is found; ``present`` says that it had a gradient before, which
    then holds the new numbers.
    """

    tensor: Tensor
    source: Source | None
    number: int | None
    present: bool


@dataclass
class CallLayout:
    """All that the owner of a specialisation depends on.

    Attributes
    ----------
    parameters, nestings
        Names of the parameters, and the nesting of each (see ``Arguments``).
    leaves
        Leaves of the arguments.
    inputs
        Inputs of the program, in order.
    results, nesting
        Leaves and nesting of what is returned.
    writes
        For each write of the program, the number of the input that it goes to.
    touched
        Inputs whose memory the program itself writes to.
    gradients
        What ``.grad`` of captured Tensors is set to.
    bare
        Tensors that must not have a ``.grad`` before, with their places.
    as_tensors
        Whether results are Tensors.
    mode
        ``state.mode`` that it was traced in.
    guards
        What must be as it was around the function.
    sizes
        Lengths and their guards.
    run
        What is called with the inputs.
    state
        ``FunctionState`` that takes the results, sets some around the function, and returns the
        others; None if there are none.
    """

    parameters: list[str]
    nestings: list[tuple[Nesting] | None]
    leaves: list[Leaf]
    inputs: list[Input]
    results: list[Result]
    nesting: Nesting
    writes: list[int]
    touched: list[int]
    gradients: list[GradientResult]
    bare: list[tuple[Tensor, Source | None]]
    as_tensors: bool
    mode: int
    guards: list[Source]
    sizes: Sizes
    run: Callable[..., tuple[Any, ...]]
    record: Callable[..., Sequence[Any]] | None = None
    state: Any = None
    number: int = 0
    names: dict[str, Any] = field(default_factory=dict)


DEEPEST = 64
"""How deep containers may be in one another: each level is read, and made, at every call."""
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<not given>"})()
"""Marker in place of an argument that was not given."""

ARRAY, TENSOR, SCALAR, NUMBER, STATIC = "array", "Tensor", "scalar", "number", "static"
"""Kinds of leaves: ndarrays, Tensors, NumPy's and Python's numbers, and what is compared."""

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""Python integers that compiled functions take."""

_STATIC = (type(None), bool, str, bytes, slice, range, np.dtype, enum.Enum, type(Ellipsis))


# ----------------------------------------------------------------------------------- functions


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters to call a function with.

    Wrappers are taken at their word, except those of this library, which pass on what they get.
    """
    inner: Any = function.method if isinstance(function, WeakMethod) else function
    while True:
        module = getattr(inner, "__globals__", {}).get("__name__", "")
        ours = module.startswith("numgrad.") or isinstance(inner, FunctionWrapper)
        if not (ours and hasattr(inner, "__wrapped__")):
            break
        inner = vars(inner)["__wrapped__"]
    try:
        result = signature_of(inner, follow_wrapped=False)
    except (TypeError, ValueError):  # a builtin without a signature
        result = _ANY
    listed = list(result.parameters.values())
    if any(p.name.startswith("_") for p in listed):  # names that dispatchers use
        return list(_ANY.parameters.values())
    return listed


_ANY = inspect.signature(lambda *args, **kwargs: None)


class Parameters:
    """The parameters of a function, and which arguments are static or donated."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        donate: int | str | Sequence[int | str],
    ) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.listed = parameters_of(function)
        self.names = [p.name for p in self.listed]
        kinds = {p.kind: p.name for p in self.listed}
        self.star: str | None = kinds.get(inspect.Parameter.VAR_POSITIONAL)
        self.double_star: str | None = kinds.get(inspect.Parameter.VAR_KEYWORD)
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.positional = [p.name for p in self.listed if p.kind in positional]
        self.static = self._select("static_argnums", static_argnums)
        self.static |= self._select("static_argnames", static_argnames)
        self.donated = self._select("donate", donate)
        self.warned_of_loops = False
        both = sorted(map(str, self.static & self.donated))
        if both:
            raise NumgradValueError(
                f"jit: argument {both[0]} of {self.name} is both static and donated; only arrays "
                "can be donated"
            )

    def _select(self, option: str, selection: Any) -> set[str | int]:
        """Names of parameters, or positions among ``*args``."""
        listed = (selection,) if isinstance(selection, int | str) else tuple(selection)
        members: set[str | int] = set()
        for item in listed:
            if isinstance(item, str):
                if item not in self.names and self.double_star is None:
                    raise NumgradValueError(
                        f"jit: {option} names {item!r}, and the parameters of {self.name} are "
                        f"{', '.join(self.names) or 'none'}"
                    )
                members.add(item)
                continue
            if isinstance(item, bool) or not isinstance(item, int):
                raise NumgradTypeError(f"jit: {option} are integers or names, got {item!r}")
            number = item + len(self.positional) if item < 0 else item
            if 0 <= number < len(self.positional):
                members.add(self.positional[number])
            elif self.star is not None and item >= 0:
                members.add(number - len(self.positional))
            else:
                raise NumgradValueError(
                    f"jit: {option} names argument {item}, and {self.name} takes "
                    f"{len(self.positional)} by position"
                )
        return members

    @property
    def header(self) -> str:
        """The parameter list of a function that is called in place of this one."""
        parts: list[str] = []
        keyword_only = False
        for number, p in enumerate(self.listed):
            if p.kind is p.KEYWORD_ONLY and not keyword_only and self.star is None:
                parts.append("*")
            keyword_only = keyword_only or p.kind is p.KEYWORD_ONLY
            star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = "" if p.default is p.empty else "=_missing"
            parts.append(f"{star}{p.name}{default}")
            last = number + 1 == len(self.listed)
            if p.kind is p.POSITIONAL_ONLY and (
                last or self.listed[number + 1].kind is not p.POSITIONAL_ONLY
            ):
                parts.append("/")
        return ", ".join(parts)

    def check_current(self) -> None:
        """Raise if the function has other parameters by now, where a reloader put in other code."""
        now = parameters_of(self.function)
        if [(p.name, p.kind) for p in now] != [(p.name, p.kind) for p in self.listed]:
            raise NumgradTypeError(
                f"jit: the parameters of {self.name} were ({', '.join(self.names)}) when ng.jit "
                f"got it, and are ({', '.join(p.name for p in now)}) since its code was replaced; "
                f"call ng.jit({self.name}) again"
            )

    def call(self, values: Sequence[Any]) -> Any:
        """Call the function with a value for each parameter."""
        return self.on(self.function, values)

    def on(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Call another function with the same parameters."""
        args: list[Any] = []
        keywords: dict[str, Any] = {}
        skipped = False
        for p, value in zip(self.listed, values, strict=True):
            if p.kind is p.VAR_POSITIONAL:
                args.extend(value)
            elif p.kind is p.VAR_KEYWORD:
                keywords.update(value)
            elif value is MISSING:
                skipped = True
            elif skipped or p.kind is p.KEYWORD_ONLY:
                keywords[p.name] = value
            else:
                args.append(value)
        return function(*args, **keywords)

    def bind(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """A value for each parameter."""
        return list(_binder(self.header)(*args, **kwargs))


@functools.lru_cache
def _binder(header: str) -> Callable[..., tuple]:
    parameters = inspect.signature(eval(f"lambda {header}: 0", {"_missing": MISSING}))
    names = ", ".join(parameters.parameters)
    return eval(f"lambda {header}: ({names}{',' if names else ''})", {"_missing": MISSING})


# --------------------------------------------------------------------------------------- leaves


@dataclass
class Leaf:
    """One leaf of the arguments.

    Attributes
    ----------
    kind
        One of the kinds above.
    value
        What is handed on: a C-contiguous array where an array was given.
    given
        What the caller gave.
    path
        How a reader would write it.
    donated
        Whether its memory may be overwritten.
    """

    kind: str
    value: Any
    given: Any
    path: str
    donated: bool = False

    @property
    def array(self) -> Any:
        """The ndarray, or the number."""
        if self.kind == TENSOR:
            return self.value._array
        return np.asarray(self.value) if self.kind == SCALAR else self.value

    @property
    def shows_kind(self) -> bool:
        """Whether a Tensor stands for it in a trace that is asked for its kind."""
        return self.kind in (NUMBER, SCALAR) or type(self.given) is np.ndarray

    def key(self, dynamic: bool, recorded: bool) -> tuple:
        """The kind of arguments that a compiled function is made for."""
        if self.kind == STATIC:
            return STATIC, type(self.value), self.value
        if self.kind == NUMBER:
            return NUMBER, type(self.value)
        array = self.array
        pattern = tuple([n if n < 2 or not dynamic else -1 for n in array.shape])
        needs = self.kind == TENSOR and recorded and self.value._requires_grad
        return self.kind, array.dtype, pattern, needs


@dataclass
class Arguments:
    """The arguments of one call, taken apart.

    Attributes
    ----------
    nestings
        Nesting of each parameter; None in a tuple for one that was not given.
    leaves
        All leaves, in order.
    """

    parameters: Parameters
    nestings: list[tuple[Nesting] | None] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    @classmethod
    def of(cls, parameters: Parameters, values: Sequence[Any]) -> Arguments:
        """Take the value of each parameter apart.

        Raises
        ------
        NumgradTypeError
            For what can be neither an input of a compiled function nor compared.
        """
        self = cls(parameters)
        for p, value in zip(parameters.listed, values, strict=True):
            if value is MISSING:
                self.nestings.append(None)
            elif p.kind is p.VAR_POSITIONAL:
                parts = [
                    self._part(item, f"{p.name}[{k}]", {k, p.name}) for k, item in enumerate(value)
                ]
                self.nestings.append(((tuple, None, tuple(parts)),))
            elif p.kind is p.VAR_KEYWORD:
                parts = [self._part(item, name, {name, p.name}) for name, item in value.items()]
                self.nestings.append(((dict, tuple(value), tuple(parts)),))
            else:
                self.nestings.append((self._part(value, p.name, {p.name}),))
        return self

    def _part(self, value: Any, name: str, names: set[str | int]) -> Nesting:
        p = self.parameters
        if names & p.static:
            self.leaves.append(_static(p.name, name, value))
            return None
        results: list[Any] = []
        nesting = flatten(value, results, DEEPEST)
        donated = bool(names & p.donated)
        self.leaves.extend(
            _leaf(p.name, path, leaf, donated)
            for path, leaf in zip(paths(nesting, name), results, strict=True)
        )
        return nesting

    def rebuild(self, leaves: Sequence[Any]) -> list[Any]:
        """A value for each parameter, with other leaves."""
        remaining = iter(leaves)
        return [
            MISSING if nesting is None else unflatten(nesting[0], remaining)
            for nesting in self.nestings
        ]

    @property
    def values(self) -> list[Any]:
        """A value for each parameter, fit for a compiled function."""
        return self.rebuild([leaf.value for leaf in self.leaves])

    def key(self, dynamic: bool, recorded: bool) -> tuple:
        """The kind of arguments a compiled function is made for; last the mode of the thread."""
        return tuple(self.nestings), tuple([leaf.key(dynamic, recorded) for leaf in self.leaves])

    @property
    def dynamic(self) -> list[Leaf]:
        """The leaves that are inputs of a compiled function."""
        return [leaf for leaf in self.leaves if leaf.kind != STATIC]


def same(a: Any, b: Any) -> bool:
    """Whether two static values are interchangeable."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float | complex):
        return repr(a) == repr(b)  # tells zeros apart, and not NaNs
    return bool(a == b)


def same_key(a: tuple, b: tuple) -> bool:
    """Whether arguments with one key can use what was made for the other."""
    return (
        a[-1] == b[-1]
        and a[0] == b[0]
        and all(
            x[:2] == y[:2] and (same(x[2], y[2]) if x[0] == STATIC else x == y)
            for x, y in zip(a[1], b[1], strict=True)
        )
    )


def hashed_key(key: tuple) -> tuple:
    """A hash of a key, of which equal keys have the same: of all but nestings and static values.

    Static values may have no hash, and be equal in other ways than by ``==``.
    """
    return key[-1], *[x[:2] if x[0] == STATIC else x for x in key[1]]


def _static(function: str, path: str, value: Any) -> Leaf:
    if isinstance(value, np.ndarray | Tensor):
        raise NumgradTypeError(
            f"jit: the static argument {path} of {function} is an array of shape "
            f"{tuple(value.shape)}; static arguments are compared by value at each call, so leave "
            "it out of static_argnums and static_argnames"
        )
    try:
        hash(value)
        snapshot = value
    except TypeError:
        try:
            snapshot = copy.deepcopy(value)  # so that the owner's changes show
            bool(snapshot == value)
        except Exception as error:
            raise NumgradTypeError(
                f"jit: the static argument {path} of {function} is a {type(value).__name__} that "
                "can neither be hashed nor compared; pass a tuple of numbers and strings"
            ) from error
    return Leaf(STATIC, snapshot, value, path)


def _leaf(function: str, path: str, value: Any, donated: bool) -> Leaf:
    kind = type(value)
    if isinstance(value, Tensor):
        check_dtype("jit", value._array.dtype)
        refresh(value)
        return Leaf(TENSOR, value, value, path, donated)
    if isinstance(value, np.ndarray):
        check_array_kind(f"jit: the argument {path} of {function}", value, argument=True)
        array = np.asarray(value)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.type)
        check_dtype("jit", array.dtype)
        return Leaf(ARRAY, array, value, path, donated)
    if kind in (int, float, complex):
        if kind is int and not LEAST <= value <= MOST:
            raise NumgradTypeError(
                f"jit: the argument {path} of {function} is the integer {value}, which does not "
                f"fit int64; pass it as a float, or where it fits as np.uint64({path})"
            )
        return Leaf(NUMBER, value, value, path)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        check_dtype("jit", value.dtype)
        return Leaf(SCALAR, value, value, path)
    if isinstance(value, _STATIC) or callable(value):
        return Leaf(STATIC, value, value, path)
    if hasattr(value, "__array__"):
        check_array_kind(f"jit: the argument {path} of {function}", value, argument=True)
        array = np.ascontiguousarray(np.asarray(value))
        check_dtype("jit", array.dtype)
        return Leaf(ARRAY, array, value, path)
    raise NumgradTypeError(
        f"jit: the argument {path} of {function} is a {kind.__name__}, which is neither an array, "
        "a number, nor a tuple, list or dict of them; pass its arrays, or name it in "
        "static_argnames to compile for this very object"
    )


# ----------------------------------------------------------------------------------------- methods


class WeakMethod:
    """A method of an object that it does not keep alive."""

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self.__func__ = function
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.instance: ReferenceType[Any] = ref(instance)

    @property
    def __self__(self) -> Any:
        return self.instance()

    @property
    def method(self) -> MethodType:
        """The method, which keeps it alive."""
        return MethodType(self.__func__, self.__self__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return self.method(*args, **kwargs)


METHODS = (MethodType, WeakMethod)
"""Classes of methods, with ``__func__`` and ``__self__``."""
