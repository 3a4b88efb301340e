"""Loops and branches as functions: ``scan``, ``fori_loop``, ``while_loop``, ``map``, ``cond``, ...

Note [Loops in eager code]
--------------------------
They are Python loops on the tape. What a loop carries along has one dtype, shape and nesting
throughout: Note [Dtypes of a carry] in ``carried``. Inside ``vmap`` a ``while_loop`` goes on until
all examples are done: Note [Examples that part ways] in ``carried``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.core.abstract import AbstractArray, AbstractLength
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.tree import Nesting, align, flatten, map_leaves, paths, unflatten
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.shape import as_index, as_operand
from numgrad.tensors.tensor import Tensor
from numgrad.transforms import carried
from numgrad.transforms.call import check_function
from numgrad.transforms.checkpointing import STATES, Save, in_segments, recomputed, steps_between


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    save: Save = None,
) -> tuple[Any, Any]:
    """Call ``step`` for each element along the first axis of ``xs``, carrying a state along.

    As ``for x in xs: carry, y = step(carry, x)``.

    Parameters
    ----------
    step
        Takes the carry and the elements of ``xs``; returns the new carry, nested and shaped as
        before, and what is collected, in any nesting, or None.
    init
        The carry at first: an array or number, or a nesting.
    xs
        Arrays whose first axis is gone through, in any nesting; None if there are none.
    length
        Number of steps; may be left out where ``xs`` tell it.
    reverse
        Begin at the end; what is collected keeps the order of ``xs``.
    save
        What is kept for gradients: ``"all"`` that steps compute, or only ``"carries"``, from which
        each step is computed again; the carry every so many steps, a number or a function of the
        length; ``"sqrt"``, the square root of the length, whose memory grows as that does. None is
        ``"all"`` in eager code; in compiled functions, where most of a step is cheap, the carries
        and what matrix products and long sums give, at most eight times the memory of the carries
        (``"all"``: as much as there is).

    Returns
    -------
    tuple
        The last carry, and what was collected, along a first axis: ndarrays if no Tensor came in
        and nothing can be differentiated, else Tensors.

    Raises
    ------
    NumgradTypeError
        If ``step`` returns no pair, or something is no array; if ``save`` is of another type.
    NumgradValueError
        If lengths differ or are not known, the carry changes its shape or nesting, or ``save`` is
        not positive.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.scan(lambda total, x: (total + x, total * x), 0.0, np.arange(4.0))
    (np.float64(6.0), array([0., 0., 2., 9.]))
    """
    check_function("scan", step)
    return _scan("scan", step, init, xs, length, reverse, save)


def _scan(
    name: str,
    step: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    save: Save = None,
) -> tuple[Any, Any]:
    """``scan`` for the function that errors name."""
    leaves: list[Any] = []
    nesting = None if xs is None else flatten(xs, leaves)
    count = _count(name, nesting, leaves, length)
    inputs = [carried.leaf(name, "xs", x) for x in leaves]

    def of_rows(carry: Any, rows: Iterable[Any]) -> tuple[Any, Any]:
        result = step(carry, None if xs is None else unflatten(nesting, iter(rows)))
        if isinstance(result, tuple) and len(result) == 2:
            return result
        raise NumgradTypeError(
            f"{name}: the step returned a {type(result).__name__}; it returns a pair, the carry "
            "and what is to be collected (None for nothing)"
        )

    def one(carry: Any, arrays: Sequence[Any], k: int = 0) -> tuple[Any, Any]:
        return of_rows(carry, (x[k] for x in arrays))

    def on_a_copy(carry: Any, arrays: Sequence[Any], k: int = 0) -> tuple[Any, Any]:
        return one(carried.copied(carry), arrays, k)

    loop = carried.CarryingLoop(name, init, leaves)
    every = None if save is None else steps_between(name, save, count)
    if every is not None and every > 1 and count:
        loop.fix_numbers(one, inputs)
        carry, ys = in_segments(
            partial(_scan, name), of_rows, loop.carry, inputs, count, every, reverse
        )
        return map_leaves(loop.kind, carry), map_leaves(loop.kind, ys)
    if state.ground.deferred:
        kind = save if every is None else STATES
        return _compiled_scan(one, loop, inputs, count, reverse, kind)
    loop.fix_numbers(one, inputs)
    order = range(count)[::-1] if reverse else range(count)
    rows = loop.rows
    structure: Nesting = None
    for k in order:
        called = one if every is None else partial(recomputed, on_a_copy)
        y = loop.step(partial(called, arrays=inputs, k=k))
        rows[k] = []
        structure = flatten(y, rows[k])
    if not count:
        ys = _of_no_step(one, loop, inputs)
        return loop.result(), ys
    columns = zip(*(rows[k] for k in range(count)), strict=True)
    return loop.result(), unflatten(structure, (loop.kind(_stacked(name, c)) for c in columns))


def _compiled_scan(
    one: Callable[..., Any],
    loop: carried.CarryingLoop,
    inputs: Sequence[Any],
    count: Any,
    reverse: bool,
    save: Save,
) -> tuple[Any, Any]:
    """Record the scan as a loop of the compiled function."""
    from numgrad.compiler.loops.scan import compiled_scan

    structure: Nesting = None
    places: list[int] = []

    def function(values: Sequence[Tensor]) -> tuple[list[Any], list[Any]]:
        nonlocal structure
        carry = unflatten(loop.nesting, iter(values[: len(loop.leaves)]))
        rows = [OPS["expand_dims"](x, axis=0) for x in values[len(loop.leaves) :]]
        new, y = one(carry, rows)
        results: list[Any] = []
        structure = flatten(y, results)
        places[:] = [k for k, item in enumerate(results) if item is not None]
        rows = [carried.leaf(loop.name, "what is collected", results[k]) for k in places]
        return loop.checked(new), rows

    leaves, weak = loop.leaves, loop.weak
    loop.leaves, made = compiled_scan(function, leaves, weak, inputs, count, reverse, save)
    by_place = dict(zip(places, made, strict=True))
    parts = (by_place.get(k) for k in range(len(list(paths(structure, "")))))
    return loop.result(), unflatten(structure, parts)


def fori_loop(
    lower: int, upper: int, body: Callable[[int, Any], Any], init: Any, save: Save = None
) -> Any:
    """The last carry of ``for i in range(lower, upper): carry = body(i, carry)``.

    Parameters
    ----------
    lower, upper
        Integers, also such that depend on arguments of a compiled function, or that differ by
        example of a batch; no step at all if ``upper`` is not the larger one.
    body
        Takes the number of the step and the carry, returns the new carry, nested and shaped alike.
        In compiled functions the number is a Tensor, with which an ndarray is indexed as
        ``ng.take(table, i, axis=0)``.
    init
        The carry at first: an array or number, or a nesting.
    save
        What is kept for gradients, as for ``scan``; "carries" alone where the number of steps is
        found while the loop runs.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``scan``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.grad(lambda x: ng.fori_loop(0, 3, lambda i, y: y * x + i, 1.0))(2.0)
    np.float64(13.0)
    """
    check_function("fori_loop", body)
    lower, upper = (_bound(name, n) for name, n in (("lower", lower), ("upper", upper)))
    if isinstance(lower, Tensor) or isinstance(upper, Tensor):
        return _until(lower, upper, body, init, save)
    loop = carried.CarryingLoop("fori_loop", init, [])
    if state.ground.deferred or save is not None:
        steps = OPS["iota"](length=max(upper - lower, 0)) + lower
        carry, _ = _scan("fori_loop", partial(_numbered, body), init, steps, save=save)
        return carry
    loop.fix_numbers(lambda carry, _: (body(lower, carry), None), [])
    for k in range(lower, upper):
        loop.step(lambda carry, k=k: (body(k, carry), None))
    loop.fix_without_steps(lambda carry, _: (body(lower, carry), None))
    return loop.result()


def _bound(what: str, n: Any) -> Any:
    """An integer, or a Tensor if it is not known yet or differs by example."""
    if isinstance(n, Tensor) and not n.ndim and n.dtype.kind in "iu":
        return carried.numbered("fori_loop", n)
    return _whole("fori_loop", what, n)


def _until(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any, save: Save) -> Any:
    """The loop between bounds that are found while it runs."""
    if save not in (None, STATES):
        raise NumgradValueError(
            f"fori_loop: save is {save!r}, and the number of steps is found while the loop runs; "
            "give 'carries', or bounds that are known"
        )
    start = OPS["astype"](carried.leaf("fori_loop", "lower", lower), np.int64)
    loop = carried.CarryingLoop("fori_loop", (start, init), [], counted=True)
    return _while(
        loop,
        lambda carry: OPS["less"](carry[0], upper),
        lambda carry: (carry[0] + 1, body(_as_number(carry[0] * 1), carry[1])),
    )[1]


def _numbered(body: Callable[[Any, Any], Any], carry: Any, k: Any) -> tuple[Any, None]:
    return body(_as_number(k), carry), None


def _as_number(k: Any) -> Any:
    """The number of a step, which promotes as a Python integer wherever it is known."""
    if type(k) is not Tensor:  # it differs by example
        return k
    value = getattr(k._array, "value", None)
    if value is not None:
        value.weak = True
        return k
    numbers = state.ground.numbers(k)
    return k if numbers is None or numbers.ndim else int(numbers)


def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """The last carry of ``while cond(carry): carry = body(carry)``.

    Gradients are those of the steps that were made, whose number is no function of anything.

    Parameters
    ----------
    cond
        Takes the carry, returns whether to go on: one truth value.
    body
        Takes the carry, returns the new one, nested and shaped alike.
    init
        The carry at first: an array or number, or a nesting.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``scan``, and if ``cond`` returns no single truth value.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def root(a):
    ...     def body(x):
    ...         return 0.5 * (x + a / x)
    ...     return ng.while_loop(lambda x: abs(x * x - a) > 1e-14 * a, body, a)
    >>> ng.grad(root)(4.0).round(8)
    np.float64(0.25)
    """
    check_function("while_loop", cond)
    check_function("while_loop", body)
    return _while(carried.CarryingLoop("while_loop", init, []), cond, body)


def _while(
    loop: carried.CarryingLoop, cond: Callable[[Any], Any], body: Callable[[Any], Any]
) -> Any:
    """``while_loop`` for the function that the loop is named for."""
    if state.ground.deferred:
        from numgrad.compiler.loops.while_loop import compiled_while

        def of(leaves: Sequence[Any]) -> Any:
            return unflatten(loop.nesting, iter(leaves))

        loop.leaves = compiled_while(
            lambda leaves: carried.truth(loop.name, cond(of(leaves))),
            lambda leaves: loop.checked(body(of(leaves))),
            loop.leaves,
            loop.weak,
        )
        return loop.result()

    def checked(carry: Any) -> Any:
        new = body(carry)
        loop.checked(new)
        return new

    loop.fix_numbers(lambda carry, _: (body(carry), None), [])
    goes_on: Any = True
    while True:
        again = carried.decided(loop.name, cond(loop.carry))
        if goes_on is not True and again is not False:  # who is done stays so, whatever is drawn
            again = carried.decided(loop.name, OPS["logical_and"](goes_on, again))
        goes_on = again
        if goes_on is False:
            loop.fix_without_steps(lambda carry, _: (body(carry), None))
            return loop.result()
        loop.step(lambda carry, on=goes_on: (carried.advanced(loop.name, on, checked, carry), None))


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Call ``f`` for each element along the first axis of ``xs``, and collect what it returns.

    As ``vmap``, but one after the other: ``f`` may do what cannot be done for many at once, and
    needs the memory of one.

    Parameters
    ----------
    f
        Takes the elements of ``xs``, returns arrays in any nesting.
    xs
        Arrays whose first axis is gone through, in any nesting.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``scan``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.map(lambda row: row.sum() if row[0] > 0 else 0.0, np.array([[1.0, 2.0], [-1.0, 5.0]]))
    array([3., 0.])
    """
    check_function("map", f)
    return _scan("map", lambda _, x: ((), f(x)), (), xs)[1]


def associative_scan(
    f: Callable[[Any, Any], Any], xs: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All partial results of an associative function, along an axis: ``f(f(x0, x1), x2)``, ...

    It takes a number of calls that grows with the logarithm of the length, each of many elements
    at once.

    Parameters
    ----------
    f
        Takes two nestings like ``xs`` with any number of elements along the axis, and combines
        them one by one; ``f(f(a, b), c)`` and ``f(a, f(b, c))`` are the same but for rounding.
    xs
        Arrays of one length along the axis, in any nesting.
    reverse
        Begin at the end: ``f(f(x2, x1), x0)``.
    axis
        The axis, of all arrays.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If there is nothing to combine, lengths differ, or ``f`` changes shapes or the nesting.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.associative_scan(np.multiply, np.arange(1.0, 6.0))
    array([  1.,   2.,   6.,  24., 120.])
    """
    check_function("associative_scan", f)
    leaves: list[Any] = []
    nesting, axis = flatten(xs, leaves), as_index("associative_scan", axis)
    arrays = [carried.leaf("associative_scan", "xs", x) for x in leaves]
    if not arrays or any(not -a.ndim <= axis < a.ndim for a in arrays):
        raise NumgradValueError(
            f"associative_scan: xs have shapes {[tuple(a.shape) for a in arrays]}; each needs an "
            f"axis {axis}"
        )
    front = [OPS["moveaxis"](a, axis, 0) for a in arrays]
    if reverse:
        front = [OPS["flip"](a, axis=0) for a in front]
    lengths = {a.shape[0] for a in front}
    if len(lengths) > 1:
        raise NumgradValueError(f"associative_scan: lengths {sorted(lengths)} of xs differ")

    def combined(left: list[Any], right: list[Any]) -> list[Any]:
        parts = [[OPS["moveaxis"](a, 0, axis) for a in side] for side in (left, right)]
        result = f(*(unflatten(nesting, iter(side)) for side in parts))
        results = carried.nested_alike("associative_scan", nesting, result, "what f returned")
        moved = [OPS["moveaxis"](as_operand(a), axis, 0) for a in results]
        for a, b in zip(moved, left, strict=True):
            if a.shape != b.shape:
                raise NumgradValueError(
                    f"associative_scan: f made shape {tuple(a.shape)} of shape {tuple(b.shape)}; "
                    "it combines elements one by one"
                )
        return moved

    results = _partial(combined, front, lengths.pop()) if arrays[0].shape[axis] else front
    if reverse:
        results = [OPS["flip"](a, axis=0) for a in results]
    kind = carried.CarryingLoop("associative_scan", (), leaves).kind
    return unflatten(nesting, (kind(OPS["moveaxis"](a, 0, axis)) for a in results))


def _partial(combined: Callable[..., list[Any]], xs: list[Any], n: int) -> list[Any]:
    """Partial results: of pairs first, between which the others are."""
    if n < 2:
        return xs
    odd = _partial(combined, combined([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs]), n // 2)
    even = [x[:1] for x in xs]
    if n > 2:
        rest = combined([x[: (n - 1) // 2] for x in odd], [x[2::2] for x in xs])
        even = [OPS["concat"]([a, b]) for a, b in zip(even, rest, strict=True)]
    return [_alternating(a, b, n) for a, b in zip(even, odd, strict=True)]


def _alternating(even: Any, odd: Any, n: int) -> Any:
    pairs = OPS["stack"]([even[: n // 2], odd], axis=1)
    whole = OPS["reshape"](pairs, (2 * (n // 2), *even.shape[1:]))
    return OPS["concat"]([whole, even[n // 2 :]]) if n % 2 else whole


def _whole(name: str, what: str, n: Any) -> Any:
    """The number of steps: an integer, or the length of an axis."""
    array = getattr(n, "_array", n)
    if isinstance(array, AbstractArray):
        array.refuse(
            f"{name}: {what}",
            "pass the argument that it comes from as a static one (static_argnums), or take it "
            "from the shape of an array",
        )
    return n if isinstance(n, AbstractLength) else as_index(name, n, what)


def _count(name: str, nesting: Nesting, leaves: Sequence[Any], length: int | None) -> int:
    """How many steps there are."""
    lengths: dict[str, Any] = {}
    for path, x in zip(paths(nesting, "xs"), leaves, strict=False):
        if not np.ndim(x):
            raise NumgradValueError(
                f"{name}: {path} is a {type(x).__name__} without axes; the steps go along the "
                "first axis of xs (of a list of numbers np.array makes an array)"
            )
        lengths[path] = x.shape[0] if hasattr(x, "shape") else len(x)
    if length is not None:
        lengths["length"] = _whole(name, "length", length)
    if not lengths:
        if name == "map":
            raise NumgradValueError("map: xs hold no array; f is called along their first axis")
        raise NumgradValueError(f"{name}: without xs, length is the number of steps; give it")
    count = next(iter(lengths.values()))
    if any(n != count for n in lengths.values()) or count < 0:
        said = ", ".join(f"{path}: {n}" for path, n in lengths.items())
        raise NumgradValueError(f"{name}: there is one number of steps, got {said}")
    return count


def _stacked(name: str, parts: Sequence[Any]) -> Any:
    """The rows that were collected from one place."""
    if all(item is None for item in parts):
        return None
    return OPS["stack"]([carried.leaf(name, "what is collected", item) for item in parts])


def _of_no_step(one: Callable[..., Any], loop: carried.CarryingLoop, inputs: Sequence[Any]) -> Any:
    """The rows of no step: a step that is only traced tells shapes and dtypes.

    The carry gets those that it would have after a step, as in a compiled loop of any length.
    """
    loop.fix_dtypes(one, inputs)
    _, structure, metas = loop.traced(one, inputs)
    zeros = state.ground.zeros
    made = [None if m is None else Tensor(zeros((0, *m[0]), m[1])) for m in metas]
    return unflatten(structure, (loop.kind(a) for a in made))


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """``true_fn(*operands)`` if ``pred``, else ``false_fn(*operands)``.

    Only one is called; inside ``vmap``, where examples differ, both, and each example gets what is
    its own, gradients too. Where the functions return different dtypes, the result has that of the
    one called, and in compiled functions and batches, which have one result for both, what they
    promote to.

    Parameters
    ----------
    pred
        One truth value.
    true_fn, false_fn
        Functions that return arrays of the same shapes, nested alike.
    *operands
        What they take: arrays, or nestings.

    Raises
    ------
    NumgradTypeError
        If ``pred`` is no single truth value, or a function is none.
    NumgradValueError
        If, for examples that differ, the functions return other shapes or nestings.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> root = lambda x: ng.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)
    >>> ng.vmap(ng.grad(root))(np.array([4.0, -1.0]))
    array([0.25, 0.  ])
    """
    check_function("cond", true_fn)
    check_function("cond", false_fn)
    choice = carried.decided("cond", pred)
    if isinstance(choice, bool):
        return (true_fn if choice else false_fn)(*operands)
    if state.ground.deferred:
        return _compiled_branches("cond", OPS["logical_not"](choice), [true_fn, false_fn], operands)
    return carried.branched("cond", choice, true_fn, false_fn, operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; an index beyond the ends is that of the end.

    Parameters
    ----------
    index
        One integer.
    branches
        Functions that return arrays of the same shapes, nested alike.
    *operands
        What they take: arrays, or nestings.

    Raises
    ------
    NumgradTypeError
        If ``index`` is no integer, or a branch is no function.
    NumgradValueError
        If there is no branch; and as for ``cond``.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.switch(1, [np.sin, np.cos, np.tan], 0.0)
    np.float64(1.0)
    """
    if not isinstance(branches, list | tuple):
        raise NumgradTypeError(
            f"switch: branches is a {type(branches).__name__}; give a list of functions"
        )
    if not branches:
        raise NumgradValueError("switch: there is no branch to choose; give one at least")
    for branch in branches:
        check_function("switch", branch)
    choice = carried.numbered("switch", index)
    if isinstance(choice, int):
        return branches[min(max(choice, 0), len(branches) - 1)](*operands)
    if state.ground.deferred:
        return _compiled_branches("switch", choice, branches, operands)
    return _among(choice, branches, 0, *operands)


def _among(index: Any, branches: Sequence[Callable[..., Any]], first: int, *operands: Any) -> Any:
    """The branch of each example, which is ``first`` or a later one."""
    if first == len(branches) - 1:
        return branches[first](*operands)
    here = carried.decided("switch", OPS["less_equal"](index, first))
    rest = partial(_among, index, branches, first + 1)
    if isinstance(here, bool):
        return (branches[first] if here else rest)(*operands)
    return carried.branched("switch", here, branches[first], rest, operands)


def _compiled_branches(
    name: str, which: Tensor, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """Record the branches as a part of the compiled function, of which one runs."""
    from numgrad.compiler.loops.subgraph import compiled_branches

    nesting: Nesting = None
    shapes: dict[int, Any] = {}

    def leaves_of(k: int) -> list[Any]:
        nonlocal nesting
        outputs: list[Any] = []
        result = branches[k](*operands)
        if not k:
            nesting = flatten(result, outputs)
        elif (where := align(nesting, result, outputs, "the result")) is not None:
            carried.refuse_nesting(name, where)
        made = [
            None if x is None else carried.leaf(name, "what a branch returns", x) for x in outputs
        ]
        for position, x in enumerate(made):
            if x is not None:
                carried.check_shapes(name, shapes.setdefault(position, x.shape), x.shape)
        return made

    number = OPS["astype"](which, np.int64)
    functions = [partial(leaves_of, k) for k in range(len(branches))]
    results = compiled_branches(name, number, functions)
    return unflatten(nesting, iter(results))
