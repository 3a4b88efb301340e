"""One call of a differentiated function: its arguments, what it closes over, its results.

Note [Closures]
---------------
An operation has the tape lead to its inputs, and a function that a solver calls may use Tensors
that are none. They are found by recording one call: where its nodes lead to what was there before.
Each such place in the graph becomes a Tensor without numbers, which is one more input. Where one of
them leads to another, the leaves behind are taken in their place, so that no gradient counts twice.

Note [Transforms of compiled functions]
---------------------------------------
A compiled function is called as it was written where arrays stand for batches or have tangents. So
``vmap``, ``jvp`` and ``jacfwd`` of one, which call it so, become compiled functions themselves.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import index
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.batching.batch import BatchingInterpreter, read_in_branch
from numgrad.autograd.batching.selected import beneath, levels, levels_of, raised, spread
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.engine.task import edge_of, leads_elsewhere, reachable
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.graph import GradientEdge
from numgrad.autograd.modes import enable_grad, no_grad
from numgrad.autograd.node import Node
from numgrad.autograd.variable import constant
from numgrad.autograd.versions import next_sequence
from numgrad.codegen.dtypes import check_dtype, native
from numgrad.core.abstract import AbstractLength
from numgrad.core.arguments import signature_of
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.refusals import replaced_by_numpy
from numgrad.core.tree import Nesting, flatten, flatten_arrays, leaves, map_leaves, unflatten
from numgrad.core.wrappers import FunctionWrapper
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.labels import unlabelled
from numgrad.tensors.random_state import RepeatedDraws
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.linearization import Linearization, Product, filled

ArgnumsLike: TypeAlias = int | Sequence[int] | None
Argnames: TypeAlias = str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Argnums:
    """Arguments by position, by name, or both; ``choose`` makes it when a function is transformed.

    Attributes
    ----------
    name
        Of the transform, for messages.
    numbers, names
        The positions, and the names; ``single`` and ``single_name`` if it is one, not in a tuple.
    positions
        The names of the arguments that the function takes by position, as far as they are known.
    """

    name: str
    function: Callable[..., Any]
    numbers: tuple[int, ...]
    single: bool
    names: tuple[str, ...] = ()
    single_name: bool = False
    holomorphic: bool = False
    positions: tuple[str, ...] = ()

    def keys(self, args: tuple, kwargs: dict[str, Any]) -> list[int | str]:
        """The places of the arguments in a call: positions and keywords."""
        count = len(args)
        keys: list[int | str] = []
        for number in self.numbers:
            if not -count <= number < count:
                raise NumgradValueError(
                    f"{self.name}: argnums names argument {number}, the call has {count}"
                )
            keys.append(number % count)
        for argname in self.names:
            known = argname in self.positions
            position = self.positions.index(argname) if known else count
            if position >= count and argname not in kwargs:
                raise NumgradValueError(
                    f"{self.name}: argnames names {argname!r}, which the call does not give; pass "
                    "it, a default is not differentiated"
                )
            keys.append(argname if argname in kwargs else position)
        if len(keys) > 1 and len(set(keys)) < len(keys):
            raise NumgradValueError(
                f"{self.name}: argnums {self.numbers} and argnames {self.names} name an argument "
                "twice"
            )
        return keys

    def arranged(self, parts: Sequence[Any]) -> Any:
        """Results, one for each argument, as the caller gets them.

        By position one or a tuple, by name one or a dict; a pair for both.
        """
        count = len(self.numbers)
        by_number = parts[0] if self.single else tuple(parts[:count])
        if not self.names:
            return by_number
        named = parts[count:]
        by_name = named[0] if self.single_name else dict(zip(self.names, named, strict=True))
        return (by_number, by_name) if self.numbers else by_name


def choose(
    name: str,
    f: Callable[..., Any],
    argnums: ArgnumsLike = None,
    argnames: Argnames = None,
    holomorphic: bool = False,
) -> Argnums:
    """Arguments that are checked; the first one if none is named."""
    check_function(name, f)
    if argnames is None:
        numbers, single = _argnums(name, 0 if argnums is None else argnums)
        return Argnums(name, f, numbers, single, holomorphic=holomorphic)
    numbers, single = ((), False) if argnums is None else _argnums(name, argnums)
    names = (argnames,) if isinstance(argnames, str) else _names(name, argnames)
    return Argnums(
        name, f, numbers, single, names, isinstance(argnames, str), holomorphic, _positions(f)
    )


def check_function(name: str, f: Any) -> None:
    """Raise if there is nothing to call."""
    if not callable(f):
        raise NumgradTypeError(
            f"{name}: takes a function, got a {type(f).__name__}; give the function and "
            f"call what is returned, as in ng.{name}(f)(x)"
        )


def _argnums(name: str, argnums: int | Sequence[int]) -> tuple[tuple[int, ...], bool]:
    positions: tuple[Any, ...] = tuple(argnums) if isinstance(argnums, list | tuple) else (argnums,)
    try:
        return tuple([index(number) for number in positions]), not isinstance(argnums, list | tuple)
    except TypeError:
        raise NumgradTypeError(
            f"{name}: argnums is the position of an argument, or several in a tuple, as integers; "
            f"got {argnums!r}"
        ) from None


def _names(name: str, argnames: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(argnames, list | tuple) or not all(isinstance(n, str) for n in argnames):
        raise NumgradTypeError(
            f"{name}: argnames is the name of an argument, or several in a tuple; got {argnames!r}"
        )
    return tuple(argnames)


def _positions(f: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = signature_of(f).parameters.values()
    except (TypeError, ValueError):  # of what is written in C
        return ()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind in by_position)


def jitted_in(f: Any) -> Any:
    """The function made by ``ng.jit`` that ``f`` is, or is a partial or a transform of."""
    while True:
        if hasattr(type(f), "__numgrad_jit__"):
            return f
        if isinstance(f, functools.partial):
            f = f.func
        elif isinstance(f, FunctionWrapper) and f.made_of:
            f = f.made_of[0]
        else:
            return None


def compiled_whole(f: Any, transformed: Callable[..., Any]) -> Callable[..., Any]:
    """A transform of ``f``; compiled if ``f`` is, unless that has static or donated arguments."""
    jitted = jitted_in(f)
    if jitted is None or not jitted.is_plain:
        return transformed
    compiled: list[Any] = []

    @functools.wraps(transformed)
    def whole(*args: Any, **kwargs: Any) -> Any:
        if state.interpreters:
            return transformed(*args, **kwargs)
        if not compiled:
            compiled.append(jitted.like(transformed))
        return compiled[0](*args, **kwargs)

    return whole


_PRODUCTS = frozenset({"vjp", "jvp", "linearize"})
"""Transforms whose results hold values too, so that some may be without a derivative."""


class TransformedCall:
    """One call of a differentiated function: its arguments, and what kind the results are.

    Note [Nested transforms]
    ------------------------
    The function gets Tensors of its own in place of the arguments that are differentiated, so that
    the caller's, if it closes over them, are constants to this transform. They keep what outer
    transforms follow: a graph and tangents. What the value was computed from then says whether
    anything outside can be differentiated: if its graph leads to a leaf that requires grad and was
    not made by this call, which may have come as an argument or from a closure, the backward is
    recorded and results are Tensors with that graph. Tensors made for the call are frozen when it
    ends, so that what is returned leads outside or nowhere. Without anything outside, or under
    ``no_grad``, nothing is recorded and results have no graph.

    Used as a context: what is asked for inside is recorded, results are converted after it. It may
    be entered again, for another product.
    """

    def __init__(
        self,
        argnums: Argnums,
        args: tuple,
        kwargs: dict[str, Any] | None = None,
        *,
        recorded: bool = True,
        like: Any = None,
    ) -> None:
        name, kwargs = argnums.name, kwargs or {}
        if state.inference:
            raise NumgradRuntimeError(
                f"{name}: in inference_mode nothing is recorded that could be differentiated; "
                "leave it first"
            )
        self.name, self.argnums = name, argnums
        self.keys = argnums.keys(args, kwargs)
        self.arguments = args, kwargs
        values: list[Any] = []
        self.nestings = [
            flatten_arrays(args[key] if isinstance(key, int) else kwargs[key], values)
            for key in self.keys
        ]
        self.recorded, self.records = recorded, state.grad_enabled
        self.constant = state.constant and not state.grad_enabled
        self.tensors = [_own(name, leaf) for leaf in values]
        known = map(beneath, self.tensors)
        self.own = [t for t in known if recorded and t._grad_fn is None]
        if argnums.holomorphic:
            _check_complex(name, "an argument", self.tensors)
        self.as_tensors = bool(
            state.transforms
            or state.interpreters
            or any(isinstance(x, Tensor) for x in values)
            or (like is not None and any(isinstance(x, Tensor) for x in leaves(like)))
        )
        self.outside = False
        self.maps: list[Linearization] = []
        self.aux: Any = None
        self.has_aux = False
        self.structure: Nesting = None
        self._draws: RepeatedDraws | None = None

    def __enter__(self) -> TransformedCall:
        self._before = {"grad_enabled": state.grad_enabled}
        try:
            state.set(grad_enabled=self.recorded or self.records)
            for tensor in self.own:
                tensor.requires_grad_()
            for linear in self.maps:
                linear.freeze(False)
            return self
        except BaseException:  # such as a signal handler's
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        state.set(**self._before)
        for tensor in self.own:
            tensor._requires_grad = False
        for linear in self.maps:
            linear.freeze()

    # ----------------------------------------------------------------------------- the function

    def run(self, tensors: Sequence[Tensor], has_aux: bool = False) -> tuple[Any, Any]:
        """Results of the function for these, and ``aux``; it may not call ``backward``."""
        self.has_aux = has_aux
        args, kwargs = list(self.arguments[0]), self.arguments[1].copy()
        remaining = iter(tensors)
        for key, nesting in zip(self.keys, self.nestings, strict=True):
            if isinstance(key, int):
                args[key] = unflatten(nesting, remaining)
            else:
                kwargs[key] = unflatten(nesting, remaining)
        before = state.set(transforms=state.transforms + 1)
        try:
            result = self.argnums.function(*args, **kwargs)
        except ValueError as error:
            if (replaced := replaced_by_numpy(error)) is not None:
                raise replaced from None
            raise
        finally:
            state.set(**before)
        if not has_aux:
            return result, None
        if not (isinstance(result, tuple) and len(result) == 2):
            raise NumgradTypeError(
                f"{self.name}: with has_aux the function returns a pair (value, aux), got "
                f"{type(result).__name__}"
            )
        return result

    def value(self, has_aux: bool = False) -> Tensor:
        """The result of the function, which is one array."""
        result, self.aux = self.run(self.tensors, has_aux)
        value = _as_tensor(self.name, self.argnums.function, result)
        if value._array.dtype.kind not in "fc":
            check_floating(self.name, f"{_name_of(self.argnums.function)} returned", value.dtype)
        self.look_outside([value])
        return value

    def outputs(self, has_aux: bool = False) -> list[Tensor]:
        """The arrays that the function returns, as Tensors."""
        result, self.aux = self.run(self.tensors, has_aux)
        values = self.arrays(result)
        self.look_outside(values)
        return values

    def repeatable_outputs(self, has_aux: bool = False) -> list[Tensor]:
        """The same where ``evaluate`` is to draw the same random numbers."""
        self._draws = RepeatedDraws(self.argnums.function, self.arguments)
        with self._draws:
            return self.outputs(has_aux)

    def evaluate(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The arrays that another call of the function returns."""
        with self._draws or nullcontext():
            return self.arrays(self.run(tensors, self.has_aux)[0])

    def arrays(self, result: Any) -> list[Tensor]:
        """The arrays in what the function returned, whose nesting is kept in ``structure``."""
        results: list[Any] = []
        self.structure = flatten(result, results)
        function = self.argnums.function
        values = [_as_tensor(self.name, function, leaf) for leaf in results]
        kinds = [v._array.dtype.kind in "fc" for v in values]
        if not all(kinds) and not (self.name in _PRODUCTS and any(kinds)):
            other = values[kinds.index(False)]
            check_floating(self.name, f"{_name_of(function)} returned", other.dtype)
        if self.argnums.holomorphic:
            _check_complex(self.name, f"what {_name_of(function)} returned", values)
        return values

    def look_outside(self, values: Sequence[Tensor]) -> None:
        """Find out whether values depend on anything that may be differentiated outside."""
        results = [*values, *(leaf for leaf in leaves(self.aux) if isinstance(leaf, Tensor))]
        requires_grad = state.ground.deferred and not self.constant  # by who compiles it
        self.outside = requires_grad or (self.records and self.leads_outside(results))

    # -------------------------------------------------------------------------- the derivative

    def linear(self, values: Sequence[Tensor], *, recorded: bool = False) -> Linearization:
        """The derivative of values by the inputs, recorded where anything outside needs that."""
        self.maps.append(Linearization(values, self.tensors, recorded or self.outside))
        return self.maps[-1]

    def gradients(self, value: Tensor, create_graph: bool | None = None) -> list[Tensor]:
        """The gradients of a number by the inputs."""
        value = real_number(self.argnums, value)
        recorded = self.outside if create_graph is None else create_graph
        return self.filled(Linearization([value], self.tensors, recorded).gradient())

    def filled(self, product: Product, shape: tuple = ()) -> list[Tensor]:
        """Derivatives of something of that shape by the inputs, with zeros for None.

        The engine gives the conjugate of the derivative of a holomorphic function.
        """
        dense = [
            filled(None, shape + t._array.shape, t._array.dtype) if result is None else result
            for result, t in zip(product, self.tensors, strict=True)
        ]
        return list(map(OPS["conjugate"], dense)) if self.argnums.holomorphic else dense

    def follow(self, vectors: Iterable[Tensor | None]) -> None:
        """Take note of vectors of a product: what they are computed from may be outside."""
        directions = [v for v in vectors if v is not None]
        self.outside |= self.records and self.leads_outside(directions)

    def leads_outside(self, values: Iterable[Tensor]) -> bool:
        """Whether values depend on a leaf that requires grad and is none of this call's."""
        return leads_elsewhere(map(beneath, values), list(map(beneath, self.tensors)))

    @contextmanager
    def following(self, primals: Any, vectors: Iterable[Tensor | None]) -> Iterator[None]:
        """A later product, with vectors made of ``primals``."""
        before = self.as_tensors, self.outside, self.records
        self.records = state.grad_enabled
        self.as_tensors |= any(isinstance(leaf, Tensor) for leaf in leaves(primals))
        self.as_tensors |= bool(state.transforms or state.interpreters)
        try:
            with self:
                self.outside &= self.records
                self.follow(vectors)
                yield
        finally:
            self.as_tensors, self.outside, self.records = before

    # --------------------------------------------------------------------------------- results

    def result(self, values: Iterable[Any]) -> Any:
        """Values, one for each differentiated array, in the nesting of the arguments."""
        remaining = iter(values)
        return self.argnums.arranged([unflatten(nesting, remaining) for nesting in self.nestings])

    def kinds(self, tree: Any) -> Any:
        """A nesting of Tensors as the caller's kind."""
        return map_leaves(self.kind, tree)

    def kind(self, value: Any) -> Any:
        """A Tensor as the caller's kind: Tensors where Tensors came in, else ndarrays."""
        if not isinstance(value, Tensor):
            return value
        if self.as_tensors or self.outside:
            if self.outside or not value.requires_grad:
                return value
            if all([isinstance(each, BatchingInterpreter) for each in state.interpreters]):
                return value.detach()
            with no_grad():  # an operation keeps tangents, which detach() does not
                return OPS["positive"](value)
        array = value._array
        return array if array.ndim else array[()]


def _own(name: str, leaf: Any) -> Tensor:
    """A Tensor of the call's own in place of an argument: Note [Nested transforms]."""
    leaf = read_in_branch(leaf)
    floating = isinstance(leaf, Tensor) and leaf.dtype.kind in "fc"
    if not isinstance(leaf, Tensor):
        _numbers(name, "an argument", leaf)
        leaf = native(leaf) if isinstance(leaf, np.ndarray) else leaf
    if floating and ((leaf.requires_grad and state.grad_enabled) or has_tangent(leaf)):
        own = OPS["positive"](leaf)
    else:
        own = state.ground.differentiable(beneath(leaf))
        own = raised(own, levels_of(leaf))
    if own.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: an argument of dtype {own.dtype} cannot be differentiated; pass floating or "
            "complex arrays, as x.astype(float) is, or leave it out of argnums"
        )
    if not floating:
        check_dtype(name, own.dtype)
    # Note [Derivatives by example] in ``linearization``
    return spread(own, levels())


def _numbers(name: str, what: str, value: Any) -> Any:
    """Something that is no Tensor as an array of numbers; of an argument no copy."""
    is_argument = what == "an argument"
    check_array_kind(name, value, argument=is_argument)
    if isinstance(value, AbstractLength):
        return value
    plural = value is None or isinstance(value, list | tuple | dict)
    array = None if plural else native(np.array(value, copy=None if is_argument else True))
    if array is None or array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{name}: {what} is a {type(value).__name__}, which has no derivatives; give Tensors, "
            "arrays or numbers"
        )
    return array


def _as_tensor(name: str, function: Callable, value: Any) -> Tensor:
    """A result of a function; numbers and arrays depend on nothing."""
    value = unlabelled(value)
    if isinstance(value, Tensor):
        return value
    if isinstance(value, AbstractLength):
        return constant(value)
    if isinstance(value, list | tuple):
        raise NumgradTypeError(
            f"{name}: {_name_of(function)} returned a {type(value).__name__}; return one array (of "
            "several make one with np.stack), or a value with has_aux=True and the rest beside it"
        )
    if value is None:
        raise NumgradTypeError(
            f"{name}: {_name_of(function)} returned None; return what is to be differentiated"
        )
    array = _numbers(name, f"what {_name_of(function)} returned", value)
    return Tensor(array)


def check_floating(name: str, what: str, dtype: Any) -> None:
    """Raise if results of a dtype have no derivatives, which are no zeros."""
    if dtype.kind not in "fc":
        raise NumgradTypeError(
            f"{name}: {what} {dtype}, which has no derivative; return floating numbers: those that "
            "are compared, counted or looked for; a constant as a float; what is to come out "
            "beside them with has_aux=True"
        )


def _check_complex(name: str, what: str, values: Sequence[Tensor]) -> None:
    for value in values:
        if value.dtype.kind != "c":
            raise NumgradTypeError(
                f"{name}: with holomorphic=True all is complex, and {what} has dtype "
                f"{value.dtype}; convert it with .astype(np.complex128), or leave out holomorphic"
            )


def _name_of(function: Callable) -> str:
    return getattr(function, "__name__", "the function")


def real_number(argnums: Argnums, value: Tensor) -> Tensor:
    """A result of a function, if it has a gradient."""
    single = value._array.size == 1
    if not single or (value._array.dtype.kind == "c") != argnums.holomorphic:
        remedy = "take its .real or its absolute value" if single else "sum it, or use ng.jacobian"
        raise NumgradRuntimeError(
            f"{argnums.name}: {_name_of(argnums.function)} returned shape {value._array.shape} and "
            f"dtype {value._array.dtype}; a gradient is that of one real number (complex with "
            f"holomorphic=True): {remedy}"
        )
    return value


def closed_over(
    name: str,
    function: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    own: Sequence[Tensor],
    remedy: str = "pass the Tensor in args",
) -> list[Tensor]:
    """Tensors with the places of what ``function`` closes over: Note [Closures].

    Raises
    ------
    NumgradRuntimeError
        If forward mode or ``vmap`` follows it, which see values, and no graph.
    """
    start = next_sequence()
    with enable_grad():
        outputs = function(own)
    for out in outputs:
        if type(out) is not Tensor or has_tangent(out):
            how = "forward mode follows" if type(out) is Tensor else "vmap maps over"
            raise NumgradRuntimeError(
                f"{name}: the function closes over a Tensor that {how}, and a solver calls it "
                f"outside of that; {remedy}"
            )
    roots = [y for y in outputs if y.requires_grad]
    if not roots:
        return []
    known = set(map(id, own))
    ends = list(map(edge_of, roots))
    inside = [n for n in reachable(ends).values() if n.sequence > start]
    mapping: dict[Any, Any] = {}
    for edge in (*ends, *(e for n in inside for e in n.edges)):
        node = edge[0] if type(edge) is tuple else edge
        older = type(node) is Node and node.sequence < start
        leaf = isinstance(node, Tensor) and node._requires_grad and id(node) not in known
        if older or leaf:
            mapping[_place(edge)] = edge
    beyond = [e for node in reachable(mapping.values()).values() for e in node.edges]
    if any(_place(e) in mapping for e in beyond):
        mapping = {
            _place(e): e
            for e in (*mapping.values(), *beyond)
            if isinstance(e, Tensor) and e._requires_grad and id(e) not in known
        }
    if not mapping:
        return []
    places = [
        e if isinstance(e, Tensor) else GradientEdge(*(e if type(e) is tuple else (e, 0)))
        for e in mapping.values()
    ]
    weights = [Tensor(np.ones(y.shape, y.dtype)) for y in roots]
    shown = dense_grad(roots, places, weights, True, False, allow_unused=True)
    return [_placed(e, g) for e, g in zip(mapping.values(), shown, strict=True) if g is not None]


def _place(edge: Any) -> Any:
    if isinstance(edge, Tensor):
        return id(edge), -2
    if edge is None:
        return None
    return (edge[0].sequence, edge[1]) if type(edge) is tuple else (edge.sequence, -1)


def _placed(edge: Any, like: Tensor) -> Tensor:
    """A Tensor at a place in the graph, of whose gradient the shape is known."""
    if isinstance(edge, Tensor):
        return edge
    node, slot = (edge[0], edge[1] + 1) if type(edge) is tuple else (edge, 0)
    return Tensor(np.zeros(like.shape, like.dtype), True, node, slot)
