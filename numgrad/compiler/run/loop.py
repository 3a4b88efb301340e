"""``scan`` in compiled functions: an operation whose parameter is the graph of a step.

Note [Derivatives of loops]
---------------------------
The gradient of a loop is again a loop, from the end to the start: its step computes the step of the
first one anew from the carry that was kept, and pulls the cotangent of the carry back through it.
What all steps read has its gradients summed up in the carry, or after the loop (Note [Products
after a loop] in ``deferred_products``). Tangents go along with the carry, and
a batch of loops is a loop of batches. All of these are bodies traced from the graph of the first
one, so they can be differentiated and batched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor
from numgrad.compiler.run.deferred_products import product, with_factors
from numgrad.compiler.run.loop_program import Body
from numgrad.compiler.trace.body import trace_body
from numgrad.compiler.trace.generators import (
    one_of_all,
)
from numgrad.compiler.trace.one_call import OfOneCall, follows
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, state
from numgrad.core.op import OPS, Op


@primitive(internal=True, method=False, outputs=True, materializes=False)
def scan(*inputs, body, length, reverse=False, lengths=()):
    """A loop: the last carry, and what the steps give besides, along a first axis.

    ``lengths`` are those of the axes that the body reads and no operand has.
    """
    return tuple(body.run(inputs, length, reverse, lengths))


def _loop(body: Body, operands: Sequence[Any], like: dict[str, Any], reverse: bool = False) -> Any:
    """A call of a body made from another, of which ``like`` are the parameters."""
    known = dict(zip(like["body"].axes, like["lengths"], strict=True)) if "lengths" in like else {}
    params = {"body": body, "length": like["length"], "lengths": body.lengths(known)}
    return bind(scan, tuple(operands), {**params, "reverse": like["reverse"] is not reverse})


@scan.shape
def _results(
    *inputs: Meta, body: Body, length: Any, reverse: bool, lengths: tuple
) -> tuple[Meta, ...]:
    found = body.results_for(inputs, lengths)
    collected = [Meta((length, *m.shape), m.dtype) for m in found[body.carries :]]
    return (*found[: body.carries], *collected)


T = TypeVar("T")
Derived = tuple[Body, list[Any]]
"""A body made from another one, and what it reads besides."""


def derived(body: Body, key: Any, make: Callable[[], tuple[T, list[Any]]]) -> tuple[T, list[Any]]:
    """What is made from a body, once if it reads nothing else."""
    found = body._derived.get(key)
    if found is None:
        found = make()
        if not found[1]:
            body._derived[key] = found
    return found


def _closed(
    like: Body, step: Callable[..., Any], given: Sequence[Meta], carries: int, xs: int
) -> Derived:
    traced = trace_body(step, given, sizes=like.graph.sizes)
    return Body(traced.graph, carries, xs), traced.outside


# -------------------------------------------------------------------------------------- gradients


def pulled(
    g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """The gradients of all operands: Note [Derivatives of loops]."""
    body: Body = params["body"]
    c = body.carries
    _, xs, outside = body.parts(inputs)
    results = body.results
    if body.keeps:
        kept = y[len(y) - c :]
    else:
        kept = _loop(derived(body, "keep", body.keeping)[0], inputs, params)[len(y) :]
    grads = [dense(x, part) for x, part in zip(g, y, strict=True)]
    of_carry = [k for k in range(c) if follows(results[k])]
    of_rows = [k for k in range(c, len(results)) if follows(results[k]) and not is_zero(g[k])]
    metas = body.metas
    wanted = [k for k, m in enumerate(metas) if follows(m)]
    summed = [k for k in wanted if k >= c + body.xs]

    def make() -> tuple[tuple[Body, dict[int, list[tuple[int, int]]]], list[Any]]:
        whole, besides = _pullback(body, of_carry, of_rows, wanted, summed)
        sums = range(len(of_carry), whole.carries)
        return with_factors(whole, sums), besides

    (back, places), besides = derived(body, ("pull", tuple(of_rows)), make)
    factored = {summed[k - len(of_carry)]: pairs for k, pairs in places.items()}
    added = [k for k in summed if k not in factored]
    start = [grads[k] for k in of_carry]
    start += [Tensor(zeros(inputs[k].shape, metas[k].dtype)) for k in added]
    rows = [grads[k] for k in of_rows]
    operands = (*start, *kept, *xs, *rows, *outside, *besides)
    found = _loop(back, operands, params, reverse=True)
    by_operand: dict[int, Any] = dict(zip((*of_carry, *added), found, strict=False))
    through = [k for k in wanted if c <= k < c + body.xs]
    collected = found[back.carries :]
    by_operand.update(zip(through, collected, strict=False))
    for k, pairs in factored.items():
        by_operand[k] = product([(collected[i], collected[j]) for i, j in pairs], metas[k].dtype)
    return [by_operand.get(k) for k in range(len(metas))]


def _pullback(
    body: Body, of_carry: list[int], of_rows: list[int], wanted: list[int], summed: list[int]
) -> Derived:
    """The step of the transposed loop.

    It carries cotangents of the carry and the gradients of what all steps read, and goes through
    carries, ``xs`` and cotangents of what was collected.
    """
    metas, results, c = body.metas, body.results, body.carries
    carry, xs, outside = body.parts(metas)
    given = [results[k] for k in of_carry] + [metas[k] for k in summed]
    carries, kept = len(given), [*carry, *xs]
    given += [*kept, *(results[k] for k in of_rows), *outside]

    def step(inputs: Sequence[Tensor]) -> list[Any]:
        cotangents, rest = list(inputs[: len(of_carry)]), inputs[len(of_carry) :]
        sums, rest = rest[: len(summed)], rest[len(summed) :]
        point, rest = list(rest[: len(kept)]), rest[len(kept) :]
        cotangents += rest[: len(of_rows)]
        point += rest[len(of_rows) :]
        for k in wanted:
            point[k] = Tensor(point[k]._array, True)
        with enable_grad():
            out = body(point)
        pairs = [
            (out[k], g)
            for k, g in zip((*of_carry, *of_rows), cotangents, strict=True)
            if isinstance(out[k], Tensor) and out[k].requires_grad
        ]
        leaves = [point[k] for k in wanted]
        found: Sequence[Any] = [None] * len(leaves)
        if pairs and leaves:
            roots, weights = zip(*pairs, strict=True)
            found = dense_grad(roots, leaves, weights, allow_unused=True)
        by_operand = {
            k: Tensor(zeros(metas[k].shape, metas[k].dtype)) if part is None else part
            for k, part in zip(wanted, found, strict=True)
        }
        new = [by_operand[k] for k in of_carry]
        new += [a + by_operand[k] for a, k in zip(sums, summed, strict=True)]
        return _with_carries(new, [by_operand[k] for k in wanted if c <= k < c + body.xs], inputs)

    return _closed(body, step, given, carries, len(kept) + len(of_rows))


def _with_carries(new: list[Any], rows: list[Any], inputs: Sequence[Any]) -> list[Any]:
    """The results of a step: the new carry, what is collected, and the carry before."""
    return [*new, *rows, *inputs[: len(new)]]


def dense(g: Any, like: Any) -> Any:
    """A derivative, zeros where there is none."""
    return Tensor(zeros(like.shape, like.dtype)) if g is None else g


def is_zero(g: Any) -> bool:
    """Whether a cotangent is known to be zero."""
    return g is None or state.ground.is_zero(g._array if isinstance(g, Tensor) else g)


_gradients = OfOneCall(pulled)
scan.implied = ("index",)
scan.vjp(
    inputs=lambda g, inputs, y, index, body, length, reverse, lengths: _gradients(
        g, inputs, y, index, body=body, length=length, reverse=reverse, lengths=lengths
    )
)


# --------------------------------------------------------------------------------------- tangents


@scan.jvp
def _pushed(t_inputs, inputs, body, length, reverse, lengths):
    metas, results, c = body.metas, body.results, body.carries
    moving = [k for k, m in enumerate(metas) if follows(m)]
    moved = [k for k, m in enumerate(results) if follows(m)]
    tangents = [dense(t_inputs[k], inputs[k]) for k in moving]

    def make() -> Derived:
        counts = [sum(low <= k < high for k in moving) for low, high in (
            (0, c), (c, c + body.xs), (c + body.xs, len(metas)))]  # fmt: skip
        carry, xs, outside = body.parts(metas)
        places = [[k for k in moving if low <= k < high] for low, high in (
            (0, c), (c, c + body.xs), (c + body.xs, len(metas)))]  # fmt: skip
        given = [
            *carry, *(metas[k] for k in places[0]),
            *xs, *(metas[k] for k in places[1]),
            *outside, *(metas[k] for k in places[2]),
        ]  # fmt: skip

        def step(given: Sequence[Tensor]) -> list[Any]:
            rest, point, directions = list(given), [], []
            for part, places_of in zip((carry, xs, outside), places, strict=True):
                point += rest[: len(part)]
                directions += rest[len(part) : len(part) + len(places_of)]
                rest = rest[len(part) + len(places_of) :]
            with dual_level():
                duals = list(point)
                for k, t in zip(moving, directions, strict=True):
                    duals[k] = make_dual(point[k], t)
                out = [unpack_dual(x) if isinstance(x, Tensor) else (x, None) for x in body(duals)]
            primal, tangent = [x[0] for x in out], [x[1] for x in out]
            along = [
                Tensor(zeros(results[k].shape, results[k].dtype))
                if tangent[k] is None
                else tangent[k]
                for k in moved
            ]
            new = [*primal[:c], *(t for k, t in zip(moved, along, strict=True) if k < c)]
            rows = [t for k, t in zip(moved, along, strict=True) if k >= c]
            return _with_carries(new, rows, given)

        return _closed(body, step, given, c + counts[0], body.xs + counts[1])

    forward, besides = derived(body, "push", make)
    parts = body.parts(inputs)
    places = body.parts(list(range(len(metas))))
    by_place = dict(zip(moving, tangents, strict=True))
    operands = []
    for part, numbers in zip(parts, places, strict=True):
        operands += [*part, *(by_place[k] for k in numbers if k in by_place)]
    operands += besides
    params = {"body": body, "length": length, "reverse": reverse, "lengths": lengths}
    found = _loop(forward, operands, params)
    of_carry = [k for k in moved if k < c]
    made = dict(zip(of_carry, found[c:], strict=False))
    made.update(zip([k for k in moved if k >= c], found[forward.carries :], strict=False))
    return tuple(made.get(k) for k in range(len(results)))


# ---------------------------------------------------------------------------------------- batches


@scan.batch
def _of_batches(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    """A loop whose carry is that of all examples."""
    body: Body = params["body"]
    c, x = body.carries, body.carries + body.xs
    shared = body.states
    own = any(operands[k].batched for k in shared)
    batched = tuple((k < c or o.batched) and k not in shared for k, o in enumerate(operands))

    def make() -> Derived:
        metas = [
            Meta((size, *m.shape), m.dtype) if b else m
            for m, b in zip(body.metas, batched, strict=True)
        ]

        def step(given: Sequence[Tensor]) -> list[Any]:
            return of_batch(body, given, batched, own, size)

        return _closed(body, step, metas, c, body.xs)

    loop, besides = derived(body, ("batch", size, batched, own), make)
    values = []
    for k, operand in enumerate(operands):
        value = operand.repeated(size) if k < c else operand.value
        if k in shared:
            value = one_of_all(operand, size)
        values.append(OPS["moveaxis"](value, 0, 1) if c <= k < x and batched[k] else value)
    found = _loop(loop, (*values, *besides), params)
    out = []
    for k, v in enumerate(found):
        if k in body.states_made:
            out.append(state_of_batch(v, own, size))
        else:
            out.append(v if k < c else OPS["moveaxis"](v, 0, 1))
    return tuple(out)


def of_batch(
    body: Body, given: Sequence[Any], batched: Sequence[bool], own: bool, size: int
) -> list[Any]:
    """A step for all examples, of inputs of which some have an axis of examples.

    ``own`` says whether each example draws random numbers of its own: Note [Generators that are
    carried] in ``generators``.
    """
    with BatchingInterpreter(size, examples=True) as level:
        inner = [level.wrap(v) if b else v for v, b in zip(given, batched, strict=True)]
        if own:
            for k in body.states:
                inner[k] = level.wrap(level.unwrap(given[k]))
        found = body(inner)
        made = [level.unwrap(v) for v in found]
        values = [v.value if level.owns(v) else v for v in found]
    of_states = {
        k: one_of_all(BatchOperand(values[k], level.owns(found[k])), size) for k in body.states_made
    }
    return [of_states.get(k, v) for k, v in enumerate(made)]


def state_of_batch(x: Any, own: bool, size: int) -> Any:
    """What a rule returns for the state of a generator."""
    shared = BatchOperand(x, False)
    return shared.repeated(size) if own else shared
