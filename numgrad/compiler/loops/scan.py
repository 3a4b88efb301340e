"""``scan`` in compiled functions: an operation whose parameter is the graph of a step.

Note [Derivatives of loops]
---------------------------
The gradient of a loop is again a loop, from the end to the start: its step computes the step of the
first one again from the carry that was saved, but for what is dear (Note [Values saved of steps] in
``saved_values``), and pulls the cotangent of the carry back through it (the transposition of
``scan`` in JAX; reverse mode as in Griewank and Walther, Evaluating Derivatives, chapter 3). What
all steps read has its gradients summed up in the carry, or after the loop (Note [Products after a
loop]). Tangents go along with the carry, and a batch of loops is a loop of batches. All of these
are bodies traced from the graph of the first one (Note [Derived bodies] in ``body``), so they can
be differentiated and batched again.

Note [Products after a loop]
----------------------------
The gradient of a matrix that steps multiply with is a sum of products, of rank one for a step with
a vector: a loop that adds them up writes the whole matrix at each step. Where that is more than the
factors, the loop collects these, and one product of all of them gives the sum (loop distribution,
and one matrix product for many updates of rank one).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph.graph import BodyPrimitive, Graph, TracedNode, Value, has_derivatives
from numgrad.compiler.graph.sizes import Sizes
from numgrad.compiler.loops.activity import useful_operands, varied_results
from numgrad.compiler.loops.body import (
    LoopBody,
    carrying,
    dense,
    draws_before,
    fix_carry_dtypes,
    is_zero,
    nonzero,
    without_invariants,
)
from numgrad.compiler.loops.loop_program import LoopProgram
from numgrad.compiler.loops.saved_values import MOST_SAVED, ROOM, elements, needed_values
from numgrad.compiler.passes.rewriting import join_common
from numgrad.compiler.trace import tracer
from numgrad.compiler.trace.body import DependentDrawError, own_memory
from numgrad.compiler.trace.cut import extract
from numgrad.core.abstract import zeros
from numgrad.core.batching import BatchOperand
from numgrad.core.draws import of_steps
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind, drawn_together
from numgrad.core.op import OPS, Op

SMALLEST = 64
"""Elements of a matrix that is added up in the loop in any case: they may stay in registers."""

Factors = tuple[Value, Value]
"""Factors of ``transpose(a) @ b``: vectors or matrices."""


Places = tuple[int, int]


def with_factors(body: LoopBody, summed: Sequence[int]) -> tuple[LoopBody, dict[int, list[Places]]]:
    """A transposed loop that collects factors in place of sums, and where it has those of each.

    ``summed`` are the parts of its carry that add up something. Places are those in what is
    collected.
    """
    graph, c = body.graph, body.carries
    factors_of: dict[int, list[Factors]] = {}
    for k in summed:
        if factors := _factors(graph, k):
            factors_of[k] = factors
    if not factors_of:
        return body, {}
    rows = list(graph.outputs[c : len(graph.outputs) - c])
    places: dict[int, list[Places]] = {}
    for k, pairs in factors_of.items():
        places[k] = []
        for pair in pairs:
            places[k].append((len(rows), len(rows) + 1))
            rows += pair
    left = [k for k in range(c) if k not in factors_of]
    inputs = [v for k, v in enumerate(graph.inputs) if k not in factors_of]
    before = [graph.inputs[k] for k in left]
    extracted = extract(graph, inputs, [*(graph.outputs[k] for k in left), *rows, *before])
    return LoopBody(extracted, len(left), body.xs), places


def product(pairs: Sequence[tuple[Any, Any]], dtype: Any) -> Any:
    """The sum that pairs of collected factors give."""
    total: Any = None
    for a, b in pairs:
        here = OPS["matmul"](OPS["permute_dims"](_in_a_row(a), axes=(1, 0)), _in_a_row(b))
        total = here if total is None else total + here
    return total if total.dtype == dtype else OPS["astype"](total, dtype)


def _in_a_row(x: Any) -> Any:
    """The rows of all steps, one below the other."""
    return OPS["reshape"](x, (x.shape[0] * x.shape[1], x.shape[2])) if x.ndim == 3 else x


def _factors(graph: Graph, k: int) -> list[Factors]:
    """Factors of what is added to a part of the carry; none where that is no sum of products."""
    total, before = graph.outputs[k].node, graph.inputs[k]
    if total.name != "add" or total.inputs[0] is not before:
        return []
    factors: list[Factors] = []
    stack = [total.inputs[1]]
    while stack:
        value = stack.pop()
        pair = _pair(value)
        if pair is not None:
            factors.append(pair)
        elif value.node.name == "add" and all(v.ndim == 2 for v in value.node.inputs):
            stack += value.node.inputs
        else:
            return []
    collected = sum(elements(v) for pair in factors for v in pair)
    return factors if elements(before) > SMALLEST and 2 * collected < elements(before) else []


def _pair(value: Value) -> Factors | None:
    """The factors of a product of matrices, or of a column and a row."""
    node = value.node
    if value.ndim != 2 or value.dtype.kind not in "fc":
        return None
    if node.name == "matmul":
        a, b = node.inputs
        if a.node.name == "permute_dims" and a.node.params["axes"] == (1, 0) and b.ndim == 2:
            return a.node.inputs[0], b
    if node.name == "multiply":
        a, b = (_vector(v) for v in node.inputs)
        if a is not None and b is not None and a[1] == 0 and b[1] == 1:
            return a[0], b[0]
        if a is not None and b is not None and a[1] == 1 and b[1] == 0:
            return b[0], a[0]
    return None


def _vector(value: Value) -> tuple[Value, int] | None:
    """The vector that a column or a row is, and the axis of a matrix along which it lies."""
    if value.ndim == 1:
        return value, 1
    node = value.node
    if node.name != "reshape" or node.inputs[0].ndim != 1:
        return None
    axis = 0 if _is_one(value.shape[1]) else 1
    return (node.inputs[0], axis) if _is_one(value.shape[1 - axis]) else None


def _is_one(n: Any) -> bool:
    return isinstance(n, int) and n == 1


class Scan(BodyPrimitive):
    """The rules of ``scan``: Note [Derivatives of loops].

    Operands are the carry ``c``, the arrays ``T x`` that are gone through, and what all steps read,
    ``a``; results the last carry, then what is collected, ``T y``.
    """

    linear = trims = True

    def shape(self, inputs: Sequence[Meta], params: dict[str, Any]) -> tuple[Meta, ...]:
        """``([c], [T x], [a]) -> [c], [T y]``."""
        body: LoopBody = params["body"]
        results = body.results_for(inputs, params["lengths"])
        rows = [Meta((params["length"], *m.shape), m.dtype) for m in results[body.carries :]]
        return (*results[: body.carries], *rows)

    def vjp(
        self, g: Sequence[Any], inputs: Sequence[Any], y: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """``([ct c], [T ct y], [c], [T x], [a]) -> [ct c], [T ct x], [ct a]``."""
        body: LoopBody = params["body"]
        c = body.carries
        _, xs, outside = body.parts(inputs)
        results, metas = body.results, body.metas
        grads = [dense(x, output) for x, output in zip(g, y, strict=True)]
        rows = range(c, len(results))
        of_rows = [k for k in rows if has_derivatives(results[k]) and not is_zero(g[k])]
        given = [k for k in range(c) if has_derivatives(results[k]) and not is_zero(g[k])]
        if body.transposed:  # rows of second derivatives share a loop
            given = [k for k in range(c) if has_derivatives(results[k])]
        variables = useful_operands(body.graph, [*given, *of_rows], c)
        if not variables:
            return [None] * len(metas)
        of_carry = [k for k in variables if k < c]
        summed = [k for k in variables if k >= c + body.xs]
        keeping = body
        if not body.keeps:
            keeping = body.derived("keep", body.keeping)[0]
            y = call(keeping, inputs, params)
        saved = y[len(y) - c :]
        offers = y[len(y) - c - keeping.offers : len(y) - c]

        def make() -> tuple[tuple[LoopBody, list[int], dict[int, list[Places]]], list[Any]]:
            whole, taken, besides = _transposed(keeping, of_carry, of_rows, variables, summed)
            back, places = with_factors(whole, range(len(of_carry), whole.carries))
            back.transposed = True
            return (back, taken, places), besides

        (back, taken, pairs_of), besides = body.derived(
            ("vjp", tuple(of_rows), tuple(of_carry)), make
        )
        factored = {summed[k - len(of_carry)]: pairs for k, pairs in pairs_of.items()}
        added = [k for k in summed if k not in factored]
        start = [grads[k] for k in of_carry]
        start += [Tensor(zeros(inputs[k].shape, metas[k].dtype)) for k in added]
        rows_read = [*xs, *(offers[k] for k in taken), *(grads[k] for k in of_rows)]
        operands = (*start, *saved, *rows_read, *outside, *besides)
        out = call(back, operands, params, turned=True)
        by_operand: dict[int, Any] = dict(zip((*of_carry, *added), out, strict=False))
        through = [k for k in variables if c <= k < c + body.xs]
        collected = out[back.carries :]
        by_operand.update(zip(through, collected, strict=False))
        for k, pairs in factored.items():
            factors = [(collected[i], collected[j]) for i, j in pairs]
            by_operand[k] = product(factors, metas[k].dtype)
        return [by_operand.get(k) for k in range(len(metas))]

    def jvp(
        self, tangents: Sequence[Any], inputs: Sequence[Any], params: dict[str, Any]
    ) -> tuple[Any, ...]:
        """``([t c], [T t x], [t a], [c], [T x], [a]) -> [t c], [T t y]``."""
        body: LoopBody = params["body"]
        metas, results, c = body.metas, body.results, body.carries
        moving = nonzero(tangents, metas)
        moved = varied_results(body.graph, moving, c)
        if not moved:
            return (None,) * len(results)
        moving = sorted({*moving, *(k for k in moved if k < c)})
        numbers = [[k for k in group if k in moving] for group in body.parts(range(len(metas)))]

        def interleaved(values: Sequence[Any], along: Callable[[int], Any]) -> list[Any]:
            """Each kind of operands, followed by the tangents of these."""
            parts = zip(body.parts(values), numbers, strict=True)
            return [x for group, ks in parts for x in (*group, *map(along, ks))]

        def make() -> tuple[LoopBody, list[Any]]:
            def step(step_inputs: Sequence[Tensor]) -> list[Any]:
                rest, point, directions = list(step_inputs), [], []
                for group, ks in zip(body.parts(metas), numbers, strict=True):
                    point += rest[: len(group)]
                    directions += rest[len(group) : len(group) + len(ks)]
                    rest = rest[len(group) + len(ks) :]
                primal, along = body.jvp(point, moving, directions)
                new = [*primal[:c], *(along[k] for k in moved if k < c)]
                return _with_carries(new, [along[k] for k in moved if k >= c], step_inputs)

            graph, besides = body.trace(step, interleaved(metas, lambda k: metas[k]))
            carries, xs = (len(group) + len(ks) for group, ks in zip(
                body.parts(metas)[:2], numbers[:2], strict=True))  # fmt: skip
            return LoopBody(graph, carries, xs), besides

        forward, besides = body.derived(("jvp", tuple(moving)), make)
        operands = interleaved(inputs, lambda k: dense(tangents[k], inputs[k]))
        out = call(forward, [*operands, *besides], params)
        made = dict(zip([k for k in moved if k < c], out[c:], strict=False))
        made.update(zip([k for k in moved if k >= c], out[forward.carries :], strict=False))
        return tuple(made.get(k) for k in range(len(results)))

    def batch(
        self, op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
    ) -> Any:
        """``([B c], [B T x], [B a or a]) -> [B c], [B T y]``, a loop of steps for all examples."""
        body: LoopBody = params["body"]
        c, x = body.carries, body.carries + body.xs
        own = any(operands[k].batched for k in body.states)
        batched = tuple((k < c or o.batched) and k not in body.states
                        for k, o in enumerate(operands))  # fmt: skip

        def make() -> tuple[LoopBody, list[Any]]:
            def step(inputs: Sequence[Tensor]) -> list[Any]:
                return body.batch_step(inputs, batched, own, size)

            graph, besides = body.trace(step, body.batch_metas(batched, size))
            return LoopBody(graph, c, body.xs), besides

        loop, besides = body.derived(("batch", size, batched, own), make)
        values = []
        for k, operand in enumerate(operands):
            value = operand.repeated(size) if k < c else operand.value
            if k in body.states:
                value = tracer.one_of_all(operand, size)
            values.append(OPS["moveaxis"](value, 0, 1) if c <= k < x and batched[k] else value)
        out = []
        for k, v in enumerate(call(loop, (*values, *besides), params)):
            if k in body.states_made:
                out.append(state_of_batch(v, own, size))
            else:
                out.append(v if k < c else OPS["moveaxis"](v, 0, 1))
        return tuple(out)

    def direct(
        self, node: TracedNode, sizes: Sizes, general: Callable[..., Any]
    ) -> Callable[..., Any] | None:
        """One call of its kernel, where steps are few."""
        return node.params["body"].program(LoopProgram).direct(node, sizes, general)

    def native(self, call: Any) -> None:
        """A call of its kernel, or of the function of a step for each."""
        params = call.node.params
        call.scan(params["body"].program(LoopProgram), params["length"], params["reverse"])

    def dependence(
        self, patterns: Any, node: TracedNode, args: Sequence[Any], parts: Sequence[Any]
    ) -> list[Any]:
        """The patterns of its step, as often as it runs."""
        body: LoopBody = node.params["body"]
        length, c = patterns.number(node.params["length"]), body.carries
        step = patterns.of_body(body.graph)
        carry, xs, outside = body.parts(list(parts))
        _, rows, fixed = body.parts([patterns.value(a) for a in args])
        collected: dict[int, list[Any]] = {}
        for k in range(length)[::-1] if node.params["reverse"] else range(length):
            here = [patterns.row(x, k, length) for x in xs]
            known = [*[None] * c, *(None if x is None else x[k] for x in rows), *fixed]
            results = step([*carry, *here, *outside], known)
            carry, collected[k] = results[:c], results[c:]
        columns = [
            patterns.column(value, [collected[k][j] for k in range(length)])
            for j, value in enumerate(node.outputs[c:])
        ]
        return [*carry, *columns]


@Scan.declare(outputs=True, materializes=False)
def scan(*inputs, body, length, reverse=False, lengths=()):
    """A loop: the last carry, and what the steps give besides, along a first axis.

    ``lengths`` are those of the axes that the body reads and no operand has.
    """
    return tuple(body.program(LoopProgram).run(inputs, length, reverse, body.by_axis(lengths)))


def call(
    body: LoopBody, operands: Sequence[Any], like: dict[str, Any], turned: bool = False
) -> Any:
    """A call of a body made from another, of which ``like`` are the parameters."""
    lengths = body.lengths(like["body"].by_axis(like["lengths"]) if "lengths" in like else None)
    params = {"body": body, "length": like["length"], "lengths": lengths}
    return bind(scan, tuple(operands), {**params, "reverse": like["reverse"] is not turned})


def _transposed(
    body: LoopBody, of_carry: list[int], of_rows: list[int], variables: list[int], summed: list[int]
) -> tuple[LoopBody, list[int], list[Any]]:
    """The step of the transposed loop: ``([ct c], [ct a], [c], [x], [offer], [ct y], [a])``.

    It carries cotangents of the carry and the gradients of what all steps read, and goes through
    carries, ``xs``, offers of the loop that it takes, and cotangents of what was collected; it
    collects those of ``xs``. Second are the numbers of the offers.
    """
    metas, results, c = body.metas, body.results, body.carries
    carry, xs, outside = body.parts(metas)
    step_metas = [results[k] for k in of_carry] + [metas[k] for k in summed]
    carries, saved = len(step_metas), [*carry, *xs]
    step_metas += [*saved, *(results[k] for k in of_rows), *outside]
    end = len(results) - c
    offers = range(end - body.offers, end)

    def step(inputs: Sequence[Tensor]) -> list[Any]:
        cotangents, rest = list(inputs[: len(of_carry)]), inputs[len(of_carry) :]
        sums, rest = rest[: len(summed)], rest[len(summed) :]
        point, rest = list(rest[: len(saved)]), rest[len(saved) :]
        cotangents += rest[: len(of_rows)]
        point += rest[len(of_rows) :]
        given = (*of_carry, *of_rows)
        grads = body.vjp(point, variables, given, cotangents, offers)
        by_operand = dict(zip(variables, grads, strict=False))
        new = [by_operand[k] for k in of_carry]
        new += [a + by_operand[k] for a, k in zip(sums, summed, strict=True)]
        through = [by_operand[k] for k in variables if c <= k < c + body.xs]
        return [*_with_carries(new, through, inputs), *grads[len(variables) :]]

    graph, besides = body.trace(step, step_metas)
    split = len(graph.outputs) - body.offers
    values, graph.outputs = graph.outputs[split:], graph.outputs[:split]
    taken = needed_values(graph, body.chains, values)
    before = carries + len(saved)
    inputs = [*graph.inputs[:before], *(values[k] for k in taken), *graph.inputs[before:]]
    graph = extract(graph, inputs, graph.outputs)
    return LoopBody(graph, carries, len(saved) + len(taken) + len(of_rows)), taken, besides


def _with_carries(new: list[Any], rows: list[Any], inputs: Sequence[Any]) -> list[Any]:
    """The results of a step: the new carry, what is collected, and the carry before."""
    return [*new, *rows, *inputs[: len(new)]]


def state_of_batch(x: Any, own: bool, size: int) -> Any:
    """The state of a generator as a rule returns it."""
    shared = BatchOperand(x, False)
    return shared.repeated(size) if own else shared


def compiled_scan(
    function: Callable[[Sequence[Tensor]], tuple[list[Any], list[Any]]],
    carry: Sequence[Any],
    weak: Sequence[bool],
    xs: Sequence[Any],
    length: Any,
    reverse: bool,
    save: Any = None,
) -> tuple[list[Any], list[Any]]:
    """The loop of a step, which takes and returns flat lists: the last carry, what was collected.

    The dtypes of carries become those that the step gives them. ``save`` is that of ``ng.scan``.
    """

    def step(inputs: Sequence[Tensor]) -> list[Any]:
        new, rows = function([*own_memory(inputs[: len(carry)]), *inputs[len(carry) :]])
        return [*new, *rows, *inputs[: len(new)]]

    rest = [Meta(a.shape[1:], a.dtype) for a in xs]
    try:
        carry, traced = fix_carry_dtypes(step, carry, weak, rest, draws=True)
    except DependentDrawError:
        carry, traced = fix_carry_dtypes(step, carry, weak, rest, carries=True)
    if traced.draws:
        xs = [*xs, *drawn_together(of_steps(draws_before(traced), length, reverse))]
    sources = traced.sources
    if sources:
        traced = carrying(traced, len(carry), len(xs))
        carry = [*carry, *tracer.generator_states(sources)]
    join_common(traced.graph)
    graph, outside = traced.graph, traced.outside
    if not (
        isinstance(length, int) and length == 0
    ):  # computed for no step, they may have no value
        graph, outside = without_invariants(graph, len(carry) + len(xs), outside)
    body = LoopBody(graph, len(carry), len(xs)).with_offers(ROOM.get(save, MOST_SAVED))
    operands = (*carry, *xs, *outside)
    params = {"length": length, "reverse": reverse, "lengths": body.lengths()}
    out = bind(scan, operands, {"body": body, **params})
    rows = out[len(carry) : len(out) - len(carry) - body.offers]
    count = len(carry) - len(sources)
    tracer.put_generator_states(sources, out[count : len(carry)])
    return list(out[:count]), list(rows)
