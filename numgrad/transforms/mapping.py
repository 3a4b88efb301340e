"""``vmap``: functions written for one example, called with a whole batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from numgrad.autograd.batching.batch import Batched, BatchingInterpreter
from numgrad.core.abstract import AbstractLength
from numgrad.core.axis import one_axis
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import MAPPING, Nesting, container_of, flatten, paths, unflatten
from numgrad.core.wrappers import wrapper
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_operand
from numgrad.tensors.eager import check_array_kind
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import check_function, compiled_whole

if TYPE_CHECKING:
    from numgrad.transforms.signatures import MappedFunction

R = TypeVar("R")


def vmap(
    f: Callable[..., R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_size: int | None = None,
    randomness: str = "different",
) -> MappedFunction[R]:
    """The function that calls ``f`` for all examples of a batch at once.

    ``f`` is written for one example and called once, with Tensors that stand for all of them: what
    it computes is computed for the whole batch.

    Parameters
    ----------
    f
        A function of arrays, or nestings of them, that returns arrays in any nesting.
    in_axes
        Along which axis of the arguments their examples are; None for what all examples share. One
        for all positional arguments, or a tuple with one for each, which may itself be nested as
        the argument is, or its outer part. Of arguments given by name arrays count along axis 0.
    out_axes
        At which axis of the results the examples are put, in the same way; None for a result that
        is the same for all, which may be anything.
    axis_size
        Number of examples, where no argument tells it.
    randomness
        Which random numbers ``f`` draws: ``"different"`` ones for each example, the ``"same"`` for
        all, or an ``"error"``.

    Returns
    -------
    callable
        ndarrays in, ndarrays out; Tensors in, Tensors out, also if ``f`` closes over one that
        requires grad.

    Raises
    ------
    NumgradTypeError
        If axes are no integers, or an argument that has an axis is no array.
    NumgradValueError
        If numbers of examples differ, an axis does not exist, ``in_axes`` is nested otherwise
        than the arguments, nothing tells how many examples there are, or ``randomness`` is
        something else.
    NumgradRuntimeError
        If ``f`` looks at the numbers of an example, as an ``if`` does; if it draws and
        ``randomness`` is ``"error"``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.vmap(np.dot)(np.ones((3, 2)), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    array([ 3.,  7., 11.])

    Gradients of single examples:

    >>> loss = lambda w, x: (w @ x) ** 2
    >>> ng.vmap(ng.grad(loss), in_axes=(None, 0))(np.ones(2), np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[ 6., 12.],
           [ 0.,  2.]])
    """
    check_function("vmap", f)
    if randomness not in ("error", "different", "same"):
        raise NumgradValueError(
            f"vmap: randomness is 'error', 'different' or 'same', got {randomness!r}"
        )

    @functools.wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        examples = _Examples(args, in_axes, kwargs, axis_size)
        with BatchingInterpreter(examples.size, examples=True) as level:
            level.randomness = randomness
            wrapped = [
                x if axis is None else _example(level, x, axis) for x, axis in examples.pairs
            ]
            remaining = iter(wrapped)
            results = f(
                *[unflatten(nesting, remaining) for nesting in examples.nestings],
                **{
                    key: unflatten(nesting, remaining) for key, nesting in examples.keywords.items()
                },
            )
        outputs: list[Any] = []
        structure = flatten(results, outputs)
        axes = out_axes[0] if structure is None and _is_one(out_axes) else out_axes
        axes = list(_axes_of("out_axes", axes, structure, "the result"))
        as_tensors = examples.has_tensors or bool(state.transforms or state.interpreters)
        done = [
            _result(level, x, axis, lambda k=k: [*paths(structure, "the result")][k], as_tensors)
            for k, (x, axis) in enumerate(zip(outputs, axes, strict=True))
        ]
        return unflatten(structure, iter(done))

    return wrapper(compiled_whole(f, mapped), vmap, f, in_axes, out_axes, axis_size, randomness)


def _is_one(axes: Any) -> bool:
    return isinstance(axes, tuple) and len(axes) == 1


class _Examples:
    """The arrays in the arguments of a call, and along which of their axes the examples are."""

    def __init__(
        self, args: tuple, in_axes: Any, kwargs: dict[str, Any], axis_size: int | None
    ) -> None:
        leaves: list[Any] = []
        self.nestings = [flatten(arg, leaves) for arg in args]
        whole: Nesting = (tuple, None, tuple(self.nestings))
        if isinstance(in_axes, list):
            in_axes = tuple(in_axes)
        axes = list(_axes_of("in_axes", in_axes, whole, "the arguments"))
        self.keywords = {key: flatten(arg, leaves) for key, arg in kwargs.items()}
        axes += [0 if np.ndim(x) else None for x in leaves[len(axes) :]]  # by name
        self.has_tensors = any(isinstance(x, Tensor) for x in leaves)
        self.pairs = [
            (x, None) if axis is None else _along(x, axis, partial(self._name, k))
            for k, (x, axis) in enumerate(zip(leaves, axes, strict=True))
        ]
        self.size: Any = self._size(axis_size)

    def _name(self, k: int) -> str:
        """How a reader would write a leaf of the arguments."""
        whole: Nesting = (tuple, None, tuple(self.nestings))
        by_name = (n for key, nesting in self.keywords.items() for n in paths(nesting, key))
        return [*paths(whole, "argument "), *by_name][k]

    def _size(self, axis_size: int | None) -> Any:
        lengths = {k: x.shape[axis] for k, (x, axis) in enumerate(self.pairs) if axis is not None}
        if axis_size is not None:
            lengths[-1] = axis_size
        if not lengths:
            raise NumgradValueError(
                "vmap: no argument has an axis of examples, so their number is not known; give "
                "axis_size, or an axis in in_axes"
            )
        size = next(iter(lengths.values()))
        if any([length != size for length in lengths.values()]):
            said = ", ".join(
                f"{'axis_size' if k < 0 else self._name(k)}: {length}"
                for k, length in lengths.items()
            )
            raise NumgradValueError(
                f"vmap: the numbers of examples differ ({said}); in_axes names the axis of the "
                "examples in each argument, None if all share it"
            )
        return size


def _along(x: Any, axis: int, name: Callable[[], str]) -> tuple[Any, int]:
    """An argument as an array, and its axis of examples from the front; errors ask for its name."""
    if not isinstance(x, Tensor):
        check_array_kind("vmap", x, argument=True)
        array = None if x is None else np.asarray(x) if not isinstance(x, AbstractLength) else None
        if array is None or array.dtype.kind not in "biufc":
            raise NumgradTypeError(
                f"vmap: {name()} is a {type(x).__name__}, which has no axis of examples; "
                "give None for it in in_axes"
            )
        x = array
    if not -x.ndim <= axis < x.ndim:
        raise NumgradValueError(
            f"vmap: {name()} has shape {x.shape} and no axis {axis} of examples; name another one "
            "in in_axes, or None if all examples share it (of a list of numbers np.array makes an "
            "array)"
        )
    return x, axis % x.ndim


def _axes_of(what: str, axes: Any, nesting: Nesting, name: str) -> Iterator[int | None]:
    """The axis of each leaf; one that stands for a whole nesting is that of all in it."""
    if axes is None or isinstance(axes, int | np.integer):
        count = 1 if nesting is None else len(list(paths(nesting, "")))
        yield from [axes if axes is None else int(axes)] * count
        return
    container = container_of(type(axes))
    if container is None:
        try:
            axis = index(axes)
        except TypeError:
            raise NumgradTypeError(
                f"vmap: {what} holds axes as integers, or None; got {axes!r}"
            ) from None
        yield from _axes_of(what, axis, nesting, name)
        return
    keys, parts = container.split(axes)
    if container is MAPPING and nesting is not None and set(keys) == set(nesting[1] or ()):
        keys, parts = nesting[1], [axes[key] for key in nesting[1]]
    if (
        nesting is None
        or container is not container_of(nesting[0])
        or keys != nesting[1]
        or len(parts) != len(nesting[2])
    ):
        raise NumgradValueError(
            f"vmap: {what} is {axes!r} where {name} {_outline(nesting)}; nest it as that is, or "
            "give one axis for all of it"
        )
    for item, inner in zip(parts, nesting[2], strict=True):
        yield from _axes_of(what, item, inner, f"a part of {name}")


def _outline(nesting: Nesting) -> str:
    if nesting is None:
        return "is an array"
    kind, keys, parts = nesting
    return f"is a {kind.__name__} of {len(parts)}" + (f" with keys {list(keys)}" if keys else "")


def _example(level: BatchingInterpreter, x: Any, axis: int) -> Batched:
    with level._below():
        return level.wrap(OPS["moveaxis"](as_operand(x), axis, 0) if axis else x)


def _result(
    level: BatchingInterpreter, x: Any, axis: int | None, path: Callable[[], str], as_tensors: bool
) -> Any:
    """Results of ``f`` for all examples."""
    if not isinstance(x, Tensor | np.ndarray | np.generic | int | float | complex):
        if axis is None:
            return x
        raise NumgradTypeError(
            f"vmap: {path()} is a {type(x).__name__}, of which there is none for each example; "
            "return arrays or numbers, in any nesting"
        )
    owned = level.owns(x)
    if axis is None:
        if owned:
            raise NumgradValueError(
                f"vmap: out_axes is None for {path()}, which is not the same for all examples; "
                "give it an axis"
            )
        value = x if isinstance(x, Tensor) else Tensor(np.asarray(x))
    else:
        value = level.unwrap(x)
        axis = one_axis("vmap: out_axes", axis, value.ndim)
        if axis:
            value = OPS["moveaxis"](value, 0, axis)
    if as_tensors or state.ground.deferred or value.requires_grad:
        return value
    array = value._array
    return array if owned or axis is None else array.copy()
