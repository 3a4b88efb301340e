"""``scan`` in compiled functions: an operation whose parameter is the graph of a step.

Note [Derivatives of loops]
---------------------------
The gradient of a loop is again a loop, from the end to the start: its step computes the step of the
first one anew from the carry that was kept, and pulls the cotangent of the carry back through it.
What all steps read has its gradients summed up in the carry, or after the loop (Note [Products
after a loop] in ``stacked``). Tangents go along with the carry, and
a batch of loops is a loop of batches. All of these are bodies traced from the graph of the first
one, so they can be differentiated and batched again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import CONSTANT, INPUT, SIZE, Graph
from numgrad.compiler.passes.common import join_common
from numgrad.compiler.run.loop_program import Body
from numgrad.compiler.run.replay import replay
from numgrad.compiler.run.stacked import product, with_factors
from numgrad.compiler.trace.body import TracedBody, trace_body
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.one_call import OfOneCall, follows
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import primitive
from numgrad.core.draws import Draw, Draws, of_steps
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, drawn_together, state
from numgrad.core.op import OPS, Op
from numgrad.random import checked_parameter
from numgrad.tensors.reparameterised import fixed


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


def _pulled(
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


_gradients = OfOneCall(_pulled)
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
    batched = tuple(k < c or o.batched for k, o in enumerate(operands))

    def make() -> Derived:
        metas = [
            Meta((size, *m.shape), m.dtype) if b else m
            for m, b in zip(body.metas, batched, strict=True)
        ]

        def step(given: Sequence[Tensor]) -> list[Any]:
            with BatchingInterpreter(size, examples=True) as level:
                inner = [level.wrap(v) if b else v for v, b in zip(given, batched, strict=True)]
                return [level.unwrap(v) for v in body(inner)]

        return _closed(body, step, metas, c, body.xs)

    loop, besides = derived(body, ("batch", size, batched), make)
    values = []
    for k, operand in enumerate(operands):
        value = operand.repeated(size) if k < c else operand.value
        values.append(OPS["moveaxis"](value, 0, 1) if c <= k < x and operand.batched else value)
    found = _loop(loop, (*values, *besides), params)
    return tuple(v if k < c else OPS["moveaxis"](v, 0, 1) for k, v in enumerate(found))


def compiled_scan(
    function: Callable[[Sequence[Tensor]], tuple[list[Any], list[Any]]],
    carry: Sequence[Any],
    weak: Sequence[bool],
    xs: Sequence[Any],
    length: Any,
    reverse: bool,
    everything: bool = False,
) -> tuple[list[Any], list[Any]]:
    """The loop of a step, which takes and returns flat lists: the last carry, what was collected.

    The dtypes of carries become those that the step gives them.
    """

    def step(given: Sequence[Tensor]) -> list[Any]:
        new, rows = function(given)
        return [*new, *rows, *given[: len(new)]]

    rest = [Meta(a.shape[1:], a.dtype) for a in xs]
    carry, traced = settled(step, carry, weak, rest, draws=True)
    if traced.draws:
        xs = [*xs, *drawn_together(of_steps(draws_before(traced), length, reverse))]
    join_common(traced.graph)
    graph, outside = without_invariants(traced.graph, len(carry) + len(xs), traced.outside)
    body = Body(graph, len(carry), len(xs))
    operands = (*carry, *xs, *outside)
    params = {"length": length, "reverse": reverse, "lengths": body.lengths()}
    found = bind(scan, operands, {"body": body, **params})
    rows = found[len(carry) : len(found) - len(carry)]
    return list(found[: len(carry)]), list(rows)


def draws_before(body: TracedBody) -> list[Draw | Draws]:
    """The draws of a body in terms of what is around it: Note [Draws of a body] in ``draws``."""

    def computed(x: Any, dtype: np.dtype) -> Any:
        x = replay(x, body.outside)[0] if isinstance(x, Graph) else x
        # gradients of numbers that are no integers follow the parameters in the body
        return fixed(x) if dtype.kind in "fc" else checked_parameter(x)

    return [draw.on(computed) for draw in body.draws]


def settled(
    step: Callable[..., list[Any]],
    carry: Sequence[Any],
    weak: Sequence[bool],
    rest: Sequence[Meta],
    draws: bool = False,
) -> tuple[list[Any], TracedBody]:
    """The carry in the dtypes that a step leaves alone, and the step for these.

    A step takes the carry and ``rest``, and returns the new carry first of all.
    """
    carry, flags = list(carry), list(weak)
    while True:
        dtypes = [a.dtype for a in carry]
        metas = [*(Meta(a.shape, a.dtype) for a in carry), *rest]
        traced = trace_body(step, metas, flags, draws=draws)
        made = [v.dtype for v in traced.graph.outputs[: len(carry)]]
        joined = [
            np.result_type(d.type(0).item() if w else d, m)
            for d, w, m in zip(dtypes, flags, made, strict=True)
        ]
        if not any(flags) and joined == dtypes:
            break
        carry = [
            a if d == joined[k] and not flags[k] else OPS["astype"](a, joined[k])
            for k, (a, d) in enumerate(zip(carry, dtypes, strict=True))
        ]
        flags = [False] * len(carry)
    if made == dtypes:
        return carry, traced

    def same(given: Sequence[Tensor]) -> list[Any]:
        new = step(given)
        converted = [OPS["astype"](x, d) for x, d in zip(new, dtypes, strict=False)]
        return [*converted, *new[len(dtypes) :]]

    return carry, trace_body(same, metas, draws=draws)


def without_invariants(graph: Graph, given: int, outside: Sequence[Any]) -> tuple[Graph, list[Any]]:
    """A body without what is the same in all steps, and what it reads from outside instead."""
    read = graph.inputs[given:]
    known, free = set(read), set()
    for node in graph.nodes:
        if node.op in (CONSTANT, SIZE) or (node.inputs and free.issuperset(node.inputs)):
            free.update(node.outputs)
        elif node.op != INPUT and known.union(free).issuperset(node.inputs):
            known.update(node.outputs)
    computed = known.difference(read)
    users = [v for node in graph.nodes if computed.isdisjoint(node.outputs) for v in node.inputs]
    needed = list(dict.fromkeys(v for v in (*users, *graph.outputs) if v in computed))
    if not needed:
        return graph, list(outside)
    values = replay(extract(graph, read, needed), outside)
    part = extract(graph, [*graph.inputs, *needed], graph.outputs)
    used = {v for node in part.nodes for v in node.inputs} | set(part.outputs)
    operands = list(zip(part.inputs[given:], [*outside, *values], strict=True))
    kept = [v for v, _ in operands if v in used]
    return (
        extract(part, [*part.inputs[:given], *kept], part.outputs),
        [x for v, x in operands if v in used],
    )
