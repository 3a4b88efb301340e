"""Einstein summation, lowered to diagonals, sums and matrix products.

Note [Lowering einsum]
----------------------
Repeated subscripts of one operand become a diagonal, those that nothing else names are summed at
once. Two operands are brought into the form (batch, own, summed) x (batch, summed, own) and
multiplied by ``matmul``; more than two are contracted pairwise in the order of ``np.einsum_path``.
Every step is an operation, so gradients of all orders follow.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import is_
from typing import Any

import numpy as np

from numgrad.core.declare import OPS, AbstractLength, composite
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.arrangement import permute_dims
from numgrad.operations.diagonal import diagonal
from numgrad.operations.matmul import matmul
from numgrad.operations.shape import as_operand, astype, reshape

_SHORT = 16
"""Lengths up to which a compiled function is made for each: sums of few products are unrolled."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@composite(ref=np.einsum, method=False, smooth=True)
def einsum(subscripts, *operands, optimize=True, dtype=None, casting="safe"):
    """Sum of products of elements whose axes are named by ``subscripts``, as ``"ij,jk->ik"``.

    Ellipses, repeated subscripts, an implicit output and the form with lists of axis numbers work
    as in NumPy. ``optimize`` is what ``np.einsum_path`` takes.

    Parameters
    ----------
    subscripts : str
        A letter for each axis of each operand, and after ``->`` those of the result.
    operands
        Arrays, as many as subscripts.
    optimize : bool, str or list
        What ``np.einsum_path`` takes.
    dtype : dtype_like
        What operands are converted to; by default what they promote to.
    casting : {'no', 'equiv', 'safe', 'same_kind', 'unsafe'}
        Which conversions to ``dtype`` are allowed.

    Returns
    -------
    Tensor
        With an axis for each letter after ``->``, of the dtype the operands promote to.

    Examples
    --------
    >>> a = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.einsum("ij,jk->ik", a, a)
    tensor([[ 7., 10.],
            [15., 22.]])
    >>> ng.einsum("ij->j", a)
    tensor([4., 6.])
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    arrays = [as_operand(x) for x in operands]
    for x in arrays:
        if x.dtype.kind not in "biufc":
            raise NumgradTypeError(f"einsum: dtype {x.dtype} is not numeric")
    if dtype is not None:
        arrays = [_converted(x, np.dtype(dtype), casting) for x in arrays]
    shapes = tuple([tuple(x.shape) for x in arrays])
    path: Any = optimize
    if isinstance(path, list | tuple):
        path = tuple([step if isinstance(step, str) else tuple(step) for step in path])
    abstract = any([isinstance(n, AbstractLength) for shape in shapes for n in shape])
    lower = _lowered if abstract else _known_steps
    steps, result = lower(subscripts, shapes, path)
    values = arrays
    for step, places, params in steps:
        values.append(step(*[values[k] for k in places], **params))
    return values[result]


def _converted(x: Any, dtype: np.dtype, casting: Any) -> Any:
    if not np.can_cast(x.dtype, dtype, casting):
        raise NumgradTypeError(
            f"einsum: an operand of dtype {x.dtype} is not converted to {dtype} with "
            f"casting={casting!r}; casting='unsafe' allows it"
        )
    return astype(x, dtype=dtype, copy=False)


# ------------------------------------------------------------------------------------ parsing


def _from_lists(arguments: Sequence[Any]) -> tuple[str, tuple]:
    """The call ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` with letters."""
    operands = tuple(arguments[: len(arguments) - len(arguments) % 2 : 2])
    lists = list(arguments[1::2]) + ([arguments[-1]] if len(arguments) % 2 else [])
    try:
        texts = ["".join("..." if k is Ellipsis else _LETTERS[k] for k in names) for names in lists]
    except (TypeError, IndexError):
        raise NumgradTypeError(
            "einsum: give a string of subscripts, or after each operand a list of axis numbers"
        ) from None
    text = ",".join(texts[: len(operands)])
    return (f"{text}->{texts[-1]}" if len(arguments) % 2 else text), operands


@lru_cache(maxsize=1024)
def _parse(subscripts: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Letters of each operand and of the result, ellipses spelled out."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise NumgradValueError(
            f"einsum: {subscripts!r} names {len(inputs)} operands, but {len(ranks)} were given"
        )
    used = set(text)
    spare = [c for c in _LETTERS if c not in used]
    longest = 0
    for names, rank in zip(inputs, ranks, strict=True):
        _check_letters(subscripts, names)
        bare = names.replace("...", "")
        extra = rank - len(bare)
        if extra < 0 or (extra and "..." not in names):
            raise NumgradValueError(
                f"einsum: {names!r} in {subscripts!r} names {len(bare)} axes of an operand that "
                f"has {rank}"
            )
        longest = max(longest, extra)
    dots = "".join(spare[:longest])
    spelled = []
    for names, rank in zip(inputs, ranks, strict=True):
        extra = rank - len(names.replace("...", ""))
        spelled.append(names.replace("...", dots[len(dots) - extra :] if extra else ""))
    if arrow:
        _check_letters(subscripts, right)
        output = right.replace("...", dots)
        if longest and "..." not in right:
            raise NumgradValueError(
                f"einsum: {subscripts!r} broadcasts axes with an ellipsis that the output lacks; "
                "write it there too, or sum them before"
            )
    else:
        once = [c for c in sorted(set(left) - set(",.")) if left.count(c) == 1]
        output = dots + "".join(once)
    for c in output:
        if output.count(c) > 1 or not any(c in names for names in spelled):
            raise NumgradValueError(
                f"einsum: output subscript {c!r} of {subscripts!r} must appear once, and in an "
                "operand"
            )
    return tuple(spelled), output


def _check_letters(subscripts: str, names: str) -> None:
    bare = names.replace("...", "", 1)
    if not all(c in _LETTERS for c in bare):
        raise NumgradValueError(
            f"einsum: {names!r} in {subscripts!r} is not made of letters and at most one '...'"
        )


def _lengths(subscripts: str, inputs: Sequence[str], shapes: Sequence[Any]) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for names, shape in zip(inputs, shapes, strict=True):
        for c, n in zip(names, shape, strict=True):
            known = lengths.setdefault(c, n)
            if known == 1:
                lengths[c] = n
            elif n not in (1, known):
                listed = ", ".join(map(str, shapes))
                raise NumgradValueError(
                    f"einsum: subscript {c!r} of {subscripts!r} has lengths {known} and {n} in "
                    f"operands of shapes {listed}"
                )
    return lengths


# -------------------------------------------------------------------------------------- steps


class _Steps:
    """The operations that a sum of products is: Note [Lowering einsum].

    Attributes
    ----------
    shapes
        Those of the operands and of the results, by place.
    calls
        Of each result the function, the places of its operands, and parameters.
    """

    def __init__(self, shapes: Sequence[tuple]) -> None:
        self.shapes = list(shapes)
        self.calls: list[tuple[Any, tuple[int, ...], dict[str, Any]]] = []

    def call(self, function: Any, *places: int, result: Sequence[Any], **params: Any) -> int:
        """The place of a further result, of a shape that is known."""
        self.calls.append((function, places, params))
        self.shapes.append(tuple(result))
        return len(self.shapes) - 1

    def reshaped(self, x: int, shape: Sequence[Any]) -> int:
        """The same elements in another shape."""
        shape, own = tuple(shape), self.shapes[x]
        if len(shape) == len(own) and all(map(is_, shape, own)):
            return x
        return self.call(reshape, x, result=shape, shape=shape)

    def ordered(self, names: str, x: int, order: str) -> int:
        """The axes in another order."""
        if names == order:
            return x
        axes = tuple([names.index(c) for c in order])
        shape = [self.shapes[x][k] for k in axes]
        return self.call(permute_dims, x, result=shape, axes=axes)

    def diagonals(self, names: str, x: int) -> tuple[str, int]:
        """The diagonal for each subscript that is repeated."""
        for c in dict.fromkeys(names):
            while names.count(c) > 1:
                shape, first = self.shapes[x], names.index(c)
                second = names.index(c, first + 1)
                if shape[first] != shape[second]:
                    raise NumgradValueError(
                        f"einsum: repeated subscript {c!r} names axes of lengths {shape[first]} "
                        f"and {shape[second]}"
                    )
                kept = [k for k in range(len(names)) if k not in (first, second)]
                rest = [*[shape[k] for k in kept], shape[first]]
                x = self.call(diagonal, x, result=rest, axis1=first, axis2=second)
                names = "".join([names[k] for k in kept]) + c
        return names, x

    def without_ones(self, names: str, x: int, lengths: dict[str, int]) -> tuple[str, int]:
        """Drop axes of length 1 that are broadcast: another operand has them in full."""
        shape = self.shapes[x]
        keep = [k for k, c in enumerate(names) if shape[k] == lengths[c]]
        if len(keep) == len(names):
            return names, x
        return "".join([names[k] for k in keep]), self.reshaped(x, [shape[k] for k in keep])

    def reduced(self, names: str, x: int, needed: set[str]) -> tuple[str, int]:
        """Sum over the axes nothing needs."""
        axes = tuple([k for k, c in enumerate(names) if c not in needed])
        if not axes:
            return names, x
        shape = [n for c, n in zip(names, self.shapes[x], strict=True) if c in needed]
        place = self.call(_sum_in_dtype, x, result=shape, axis=axes)
        return "".join([c for c in names if c in needed]), place

    def contracted(
        self, first: tuple[str, int], second: tuple[str, int], needed: set[str]
    ) -> tuple[str, int]:
        """Product of two operands, summed over the subscripts in both that nothing else needs."""
        names_a, a = self.reduced(*first, needed | set(second[0]))
        names_b, b = self.reduced(*second, needed | set(names_a))
        shared = [c for c in names_a if c in names_b]
        batch = "".join([c for c in shared if c in needed])
        summed = "".join([c for c in shared if c not in needed])
        own_a = "".join([c for c in names_a if c not in names_b])
        own_b = "".join([c for c in names_b if c not in names_a])
        length = dict(zip(names_a + names_b, self.shapes[a] + self.shapes[b], strict=True))
        lead, rows, columns = ([length[c] for c in names] for names in (batch, own_a, own_b))
        result, shape = batch + own_a + own_b, [*lead, *rows, *columns]
        if not summed:
            # nothing to sum: an elementwise product of broadcast operands
            a, b = self.ordered(names_a, a, batch + own_a), self.ordered(names_b, b, batch + own_b)
            if own_b:
                a = self.reshaped(a, [*lead, *rows, *[1] * len(own_b)])
            if own_a:
                b = self.reshaped(b, [*lead, *[1] * len(own_a), *columns])
            return result, self.call(OPS["multiply"], a, b, result=shape)
        count = prod([length[c] for c in summed])
        a = self.ordered(names_a, a, batch + own_a + summed)
        b = self.ordered(names_b, b, batch + summed + own_b)
        left = (prod(rows),) if own_a or batch else ()
        right = (prod(columns),) if own_b or batch else ()
        a = self.reshaped(a, (*lead, *left, count))
        b = self.reshaped(b, (*lead, count, *right))
        product = self.call(matmul, a, b, result=(*lead, *left, *right))
        return result, self.reshaped(product, shape)


def _sum_in_dtype(x: Any, axis: tuple[int, ...]) -> Any:
    """A sum, of integers and bools in their dtype."""
    total = OPS["sum"](x, axis=axis)
    return total if total.dtype == x.dtype else total.astype(x.dtype)


def _lowered(subscripts: str, shapes: Sequence[tuple], optimize: Any) -> tuple[list, int]:
    """The steps, and the place of the result."""
    inputs, output = _parse(subscripts, tuple(map(len, shapes)))
    lengths = _lengths(subscripts, inputs, shapes)
    for n in lengths.values():
        if isinstance(n, AbstractLength) and n.hint <= _SHORT:
            int(n)  # a compiled function is made for this length
    steps, terms = _Steps(shapes), []
    for x, names in enumerate(inputs):
        terms.append(steps.without_ones(*steps.diagonals(names, x), lengths))
    pairs = _path(tuple([n for n, _ in terms]), output, lengths, optimize) if terms[1:] else []
    for pair in pairs:
        factors = [terms[k] for k in pair]
        terms = [t for k, t in enumerate(terms) if k not in pair]
        needed = set(output).union(*[n for n, _ in terms])
        while len(factors) > 1:
            first, second = factors[:2]
            later = needed.union(*[n for n, _ in factors[2:]])
            factors = [steps.contracted(first, second, later), *factors[2:]]
        terms.append(factors[0])
    names, result = steps.reduced(terms[0][0], terms[0][1], set(output))
    return steps.calls, steps.ordered(names, result, output)


_known_steps = lru_cache(maxsize=1024)(_lowered)


def _path(
    names: tuple[str, ...], output: str, lengths: dict[str, int], optimize: Any
) -> list[tuple[int, ...]]:
    """The operands to contract in each step; the result goes to the end of the list."""
    if len(names) == 2:
        return [(0, 1)]
    if not isinstance(optimize, list | tuple):
        # a path is as good for the lengths of other calls; a symbol is no key of a cache
        known = {c: n.hint if isinstance(n, AbstractLength) else n for c, n in lengths.items()}
        return _found_path(names, output, tuple(known.items()), optimize)
    return [tuple(sorted(step)) for step in optimize if not isinstance(step, str)]


@lru_cache(maxsize=1024)
def _found_path(names: tuple[str, ...], output: str, lengths: tuple, optimize: Any) -> list[tuple]:
    if not optimize:
        return [tuple(range(len(names)))]
    known = dict(lengths)
    stand_ins = [np.broadcast_to(np.float64(0), [known[c] for c in n]) for n in names]
    method = "greedy" if optimize is True else optimize
    path, _ = np.einsum_path(f"{','.join(names)}->{output}", *stand_ins, optimize=method)
    return [tuple(sorted(step)) for step in path[1:]]
