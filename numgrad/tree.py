"""Nested containers of arrays, as transforms and ``jit`` take them.

Tuples, lists, named tuples, dicts, instances of dataclasses and of classes given to ``register``
are containers; everything else is a leaf, None too.

>>> import numgrad as ng
>>> ng.tree.map(lambda x: x * 2, {"w": 1.0, "b": [2.0, 3.0]})
{'w': 2.0, 'b': [4.0, 6.0]}
"""

from collections.abc import Callable as _Callable, Iterable as _Iterable
from math import prod as _prod
from typing import Any as _Any

import numpy as _np

from numgrad.core import tree as _tree
from numgrad.core.foreign import refuse_mask as _refuse_mask
from numgrad.core.op import OPS as _OPS
from numgrad.core.tree import leaves, register
from numgrad.errors import (
    NumgradTypeError as _NumgradTypeError,
    NumgradValueError as _NumgradValueError,
)
from numgrad.tensors.tensor import Tensor as _Tensor

__all__ = ["flatten", "leaves", "map", "ravel", "register", "unflatten"]


def __dir__() -> list[str]:
    return __all__


def flatten(tree: _Any) -> tuple[list[_Any], _Any]:
    """The leaves of a nesting, depth first, and its structure, which ``unflatten`` takes.

    Two structures are equal if containers have the same types, lengths and keys.

    Examples
    --------
    >>> import numgrad as ng
    >>> leaves, structure = ng.tree.flatten({"w": 1.0, "b": (2.0, 3.0)})
    >>> leaves
    [1.0, 2.0, 3.0]
    >>> ng.tree.unflatten(structure, [10, 20, 30])
    {'w': 10, 'b': (20, 30)}
    """
    leaves: list[_Any] = []
    structure = _tree.flatten(tree, leaves)
    return leaves, structure


def unflatten(structure: _Any, leaves: _Iterable[_Any]) -> _Any:
    """The nesting of that structure with these leaves; see ``flatten``.

    Raises
    ------
    NumgradValueError
        If there are more or fewer leaves than it has.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.tree.unflatten(ng.tree.flatten([0, 0])[1], "ab")
    ['a', 'b']
    """
    values = list(leaves)
    count = sum(1 for _ in _tree.paths(structure, ""))
    if len(values) != count:
        raise _NumgradValueError(
            f"unflatten: got {len(values)} leaves for a structure that has {count}; give one each"
        )
    return _tree.unflatten(structure, iter(values))


def map(function: _Callable[..., _Any], tree: _Any, *others: _Any) -> _Any:
    """The nesting of what a function returns for each leaf.

    Parameters
    ----------
    function
        Gets a leaf of each of the nestings.
    tree, *others
        Nestings of one structure; keys of dicts may come in another order.

    Raises
    ------
    NumgradValueError
        If structures differ.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.tree.map(lambda w, g: w - 0.1 * g, {"w": 1.0}, {"w": 5.0})
    {'w': 0.5}
    """
    leaves, structure = flatten(tree)
    columns = [leaves]
    for other in others:
        column: list[_Any] = []
        where = _tree.align(structure, other, column, "x")
        if where is not None:
            raise _NumgradValueError(
                f"map: the structures of nestings differ at {where}; give nestings of one structure"
            )
        columns.append(column)
    return _tree.unflatten(structure, iter([function(*row) for row in zip(*columns, strict=True)]))


def ravel(tree: _Any) -> tuple[_Any, _Callable[[_Any], _Any]]:
    """All numbers of a nesting as one vector, and the function that puts such a vector back.

    Parameters
    ----------
    tree
        A nesting of Tensors, arrays and numbers.

    Returns
    -------
    vector : Tensor or ndarray
        1-D, a Tensor if there is one in the nesting, of the dtype to which all promote.
    unravel : callable
        Takes a vector of that length to a nesting like ``tree``, each array of its shape and dtype;
        a Tensor gives Tensors, and gradients flow through both ways.

    Raises
    ------
    NumgradTypeError
        If something in the nesting is no number.
    NumgradValueError
        If ``unravel`` gets another shape.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> vector, unravel = ng.tree.ravel({"w": np.ones((2, 2)), "b": 3.0})
    >>> vector
    array([1., 1., 1., 1., 3.])
    >>> unravel(vector * 2)["b"]
    array(6.)
    """
    leaves, structure = flatten(tree)
    arrays = [leaf if isinstance(leaf, _Tensor) else _np.asarray(leaf) for leaf in leaves]
    for leaf, array in zip(leaves, arrays, strict=True):
        _refuse_mask("ravel", leaf)
        if array.dtype.kind not in "biufc":
            raise _NumgradTypeError(
                f"ravel: the nesting has a {type(leaf).__name__} in it; it takes Tensors, arrays "
                "and numbers"
            )
    shapes, dtypes = [a.shape for a in arrays], [a.dtype for a in arrays]
    whole = (sum(_prod(shape) for shape in shapes),)

    def unravel(vector: _Any) -> _Any:
        if not isinstance(vector, _Tensor):
            vector = _np.asarray(vector)
        if vector.shape != whole:
            raise _NumgradValueError(
                f"unravel: got shape {vector.shape}, the vector of this nesting has shape {whole}"
            )
        parts, start = [], 0
        for shape, dtype in zip(shapes, dtypes, strict=True):
            stop = start + _prod(shape)
            parts.append(vector[start:stop].reshape(shape).astype(dtype, copy=False))
            start = stop
        return _tree.unflatten(structure, iter(parts))

    flat = [a.reshape(-1) for a in arrays]
    if not flat:
        return _np.zeros(0), unravel
    if any(isinstance(a, _Tensor) for a in flat):
        return _OPS["concat"](flat), unravel
    return _np.concatenate(flat), unravel
