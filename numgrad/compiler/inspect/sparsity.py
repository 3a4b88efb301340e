"""``sparsity``: elements of a derivative that may differ from zero.

Note [Propagated patterns]
--------------------------
The pattern of an array is a boolean matrix: a row for each of its elements, a column for each
element that is differentiated by. It is propagated through the terms of a graph
(``codegen.nests.terms``), of which there are few kinds, so every operation that is written with
terms is known. An element of a map depends on what the elements of its operands depend on; views
and joins only say where elements come from, which is found by applying them to an array of
positions; sums, products and scans unite rows. What is no term (a sort, a call of Python code) is
taken for dense. No number that depends on an argument is looked at: where it decides what is read,
everything that it could be read counts. So the pattern holds whatever the values are. Arrays that
the function reads from outside are looked at where they are indices. Integers and booleans have no
derivative, so their pattern is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from scipy import sparse

from numgrad.autograd.modes import enable_grad
from numgrad.codegen.nests import terms
from numgrad.codegen.nests.polynomial import value_of
from numgrad.compiler.graph.evaluate import compute
from numgrad.compiler.graph.graph import BodyOperation, Graph, TracedNode, Value
from numgrad.compiler.lower.expand import Expansion
from numgrad.compiler.lower.matrices import ProductSizes
from numgrad.compiler.passes import optimize
from numgrad.compiler.trace.interpreter import TraceInterpreter
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.interpreter import state
from numgrad.core.tree import flatten, unflatten
from numgrad.errors import NumgradError, NumgradRuntimeError, NumgradValueError
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.call import ArgnumsLike, TransformedCall, choose
from numgrad.transforms.derivatives import grad

Pattern = Any
"""A boolean ``csr_array``; None for want of any dependence."""

RULES: dict[str, Callable[..., list[Pattern]]] = {}
"""Rules of operations that are no terms."""


def stacked(rows: Sequence[Pattern]) -> Pattern:
    """Patterns one below the other."""
    return sparse.vstack(list(rows), format="csr")


class Dependence:
    """The patterns of all terms of a graph: Note [Propagated patterns]."""

    def __init__(
        self,
        expansion: Expansion,
        graph: Graph,
        of_inputs: dict[Value, Pattern],
        known: dict[Value, np.ndarray],
        columns: int,
    ) -> None:
        self.expansion, self.graph, self.columns = expansion, graph, columns
        self._given = {k: of_inputs.get(v) for k, v in enumerate(graph.inputs)}
        self._known = {k: known[v] for k, v in enumerate(graph.inputs) if v in known}
        self._patterns: dict[int, Pattern] = {}
        self._opaque: dict[int, list[Pattern]] = {}
        self._values: dict[int, Any] = {}

    def outputs(self) -> list[Pattern]:
        """The patterns of the outputs."""
        return [self.pattern(self.expansion.of[v]) for v in self.graph.outputs]

    # ---------------------------------------------------------------------------------- patterns

    def pattern(self, term: terms.Term) -> Pattern:
        """The pattern of a term."""
        pending = [term]
        while pending:  # a chain of operations may be longer than Python nests calls
            top = pending[-1]
            missing = [a for a in top.args if a.number not in self._patterns]
            if top.number in self._patterns or not missing:
                pending.pop()
                if top.number not in self._patterns:
                    self._patterns[top.number] = self._propagate(top)
            else:
                pending += missing
        return self._patterns[term.number]

    def _propagate(self, term: terms.Term) -> Pattern:
        if term.op in (terms.BUFFER, terms.SCALAR):
            return self._given[term.detail]
        if term.dtype.kind not in "fc" or term.op in (terms.CONSTANT, terms.SIZE, terms.IOTA):
            return None
        if term.op == terms.OPAQUE:
            return self._of_opaque(term)
        parts = [self._patterns[a.number] for a in term.args]
        if all(pattern is None for pattern in parts):
            return None
        shape = lengths(term.shape)
        if term.op == terms.VIEW:
            return parts[0][viewed(term, places(term.args[0])).ravel()]
        if term.op == terms.CHOOSE:
            return self._choose(term, parts)
        if term.op == terms.REDUCE:
            return self._reduced(parts[0], term.args[0], term.detail[1])
        if term.op == terms.GATHER:
            return self._gathered(term, parts[0], shape)
        if term.op == terms.SCATTER:
            return self._scattered(term, parts[0], shape)
        if term.op == terms.SCAN:
            return self._scanned(term, parts, shape)
        if term.op == terms.PRODUCT:
            return self._product(term.detail, parts)
        return self._united([
            None if pattern is None else pattern[np.broadcast_to(places(a), shape).ravel()]
            if a.shape != term.shape else pattern
            for a, pattern in zip(term.args, parts, strict=True)
        ])  # fmt: skip

    def _united(self, parts: Sequence[Pattern]) -> Pattern:
        result = None
        for pattern in parts:
            if pattern is not None and pattern is not result:
                result = pattern if result is None else result + pattern
        return result

    def _empty(self, count: int) -> Pattern:
        return sparse.csr_array((count, self.columns), dtype=bool)

    def _choose(self, term: terms.Term, parts: Sequence[Pattern]) -> Pattern:
        counts = [prod(lengths(a.shape)) for a in term.args]
        starts = np.concatenate([[0], np.cumsum(counts)])
        at = [places(a) + start for a, start in zip(term.args, starts, strict=False)]
        rows = [self._empty(n) if p is None else p for n, p in zip(counts, parts, strict=True)]
        return stacked(rows)[choose_elements(term, at).ravel()]

    def _grouped(self, pattern: Pattern, groups: np.ndarray, count: int) -> Pattern:
        """Rows united by the number of their group."""
        ones = np.ones(groups.size, bool)
        order = (groups.ravel(), np.arange(groups.size))
        return sparse.csr_array((ones, order), shape=(count, groups.size)) @ pattern

    def _reduced(self, pattern: Pattern, x: terms.Term, axes: tuple[int, ...]) -> Pattern:
        shape = lengths(x.shape)
        rest = [1 if a in axes else n for a, n in enumerate(shape)]
        groups = np.broadcast_to(np.arange(prod(rest)).reshape(rest), shape)
        return self._grouped(pattern, groups, prod(rest))

    def _gathered(self, term: terms.Term, pattern: Pattern, shape: tuple[int, ...]) -> Pattern:
        if pattern is None:
            return None
        x, positions = term.args
        axis, span = term.detail
        source = lengths(x.shape)
        index = np.ogrid[tuple(slice(n) for n in shape)]
        result = self._positions(positions, source[axis : axis + 1])
        if result is None:  # any element along the axis
            pattern, result = self._reduced(pattern, x, (axis,)), np.zeros(shape, np.int64)
            source = tuple(1 if a == axis else n for a, n in enumerate(source))
        at = (*index[:axis], np.broadcast_to(result, shape), *index[axis + span :])
        return pattern[flat(at, source, shape).ravel()]

    def _scattered(self, term: terms.Term, pattern: Pattern, shape: tuple[int, ...]) -> Pattern:
        if pattern is None:
            return None
        x, positions = term.args
        axis, span = term.detail[1]
        source = lengths(x.shape)
        result = self._positions(positions, shape[axis : axis + 1])
        if result is None:  # anywhere along the axis
            united = self._reduced(pattern, x, tuple(range(axis, axis + span)))
            rest = tuple(1 if a == axis else n for a, n in enumerate(shape))
            return united[np.broadcast_to(np.arange(prod(rest)).reshape(rest), shape).ravel()]
        index = np.ogrid[tuple(slice(n) for n in source)]
        at = (*index[:axis], np.broadcast_to(result, source), *index[axis + span :])
        return self._grouped(pattern, flat(at, shape, source), prod(shape))

    def _scanned(
        self, term: terms.Term, parts: Sequence[Pattern], shape: tuple[int, ...]
    ) -> Pattern:
        pattern = self._united(parts)
        if not prod(shape):
            return pattern
        lines = np.moveaxis(places(term), term.detail[1], 0)
        united: list[Pattern] = []
        for line in lines:
            here = pattern[line.ravel()]
            united.append(united[-1] + here if united else here)
        return stacked(united)[np.argsort(lines.ravel())]

    def _product(self, sizes: ProductSizes, parts: Sequence[Pattern]) -> Pattern:
        batch, m, n, k = (value_of(x) or 0 for x in (sizes.batch, sizes.m, sizes.n, sizes.k))
        left, right = parts
        rows = [None, None]
        for side, (pattern, ends) in enumerate(((left, (m, k)), (right, (k, n)))):
            if pattern is None:
                continue
            own = 1 if sizes.shared[side] else batch
            positions = np.arange(own * ends[side]).reshape(own, *((m, 1) if side == 0 else (1, n)))
            groups = np.broadcast_to(positions, (own, *ends))
            groups = groups.swapaxes(1, 2) if sizes.trans[side] else groups
            united = self._grouped(pattern, groups, own * ends[side])
            rows[side] = united[np.broadcast_to(positions, (batch, m, n)).ravel()]
        return self._united(rows)

    # ------------------------------------------------------------------------- what is no term

    def _of_opaque(self, term: terms.Term) -> Pattern:
        number, output = term.detail
        if number not in self._opaque:
            node = self.expansion.opaque[number]
            args = [self.pattern(a) for a in term.args]
            self._opaque[number] = self._of_node(node, term.args, args)
        return self._opaque[number][output]

    def _of_node(
        self, node: TracedNode, args: Sequence[terms.Term], parts: Sequence[Pattern]
    ) -> list[Pattern]:
        """The patterns of what a node computes that is no term."""
        if all(pattern is None for pattern in parts):
            return [None] * len(node.outputs)
        result = None
        if node.name in RULES:
            result = RULES[node.name](self, node, args, parts)
        elif isinstance(node.op, BodyOperation):
            result = node.op.rules.dependence(self, node, args, parts)
        if result is not None:
            return result
        united = self._united([self._one(pattern) for pattern in parts if pattern is not None])
        counts = [prod(shape_of(self.graph, v)) for v in node.outputs]
        return [
            united[np.zeros(n, np.int64)] if v.dtype.kind in "fc" else None
            for n, v in zip(counts, node.outputs, strict=True)
        ]

    def of_body(
        self, graph: Graph
    ) -> Callable[[Sequence[Pattern], Sequence[np.ndarray | None]], list[Pattern]]:
        """The patterns of the outputs of a body, of those of its inputs and of known inputs."""
        expansion = Expansion(graph)

        def outputs(parts: Sequence[Pattern], known: Sequence[np.ndarray | None]) -> list[Pattern]:
            numbers = {v: x for v, x in zip(graph.inputs, known, strict=True) if x is not None}
            of_inputs = dict(zip(graph.inputs, parts, strict=True))
            return Dependence(expansion, graph, of_inputs, numbers, self.columns).outputs()

        return outputs

    def number(self, length: Any) -> int:
        """A length as a number."""
        return self.graph.sizes.evaluate(length, {})

    @staticmethod
    def row(pattern: Pattern, k: int, length: int) -> Pattern:
        """The pattern of the elements at ``k`` along the first axis, which has that length."""
        if pattern is None:
            return None
        count = pattern.shape[0] // length
        return pattern[k * count : (k + 1) * count]

    def column(self, value: Value, rows: Sequence[Pattern]) -> Pattern:
        """The pattern of a value of which these are those of its elements along the first axis."""
        if value.dtype.kind not in "fc" or not rows:
            return None
        count = prod(shape_of(self.graph, value)) // len(rows)
        return stacked([self._empty(count) if p is None else p for p in rows])

    def _one(self, pattern: Pattern) -> Pattern:
        """The rows of a pattern united in one."""
        return self._grouped(pattern, np.zeros(pattern.shape[0], np.int64), 1)

    def _positions(self, index: terms.Term, lengths: tuple[int, ...]) -> Any:
        """Positions along an axis of that length, if they are known and in range."""
        result = self.value(index)
        known = result is not None and lengths and np.all((result >= 0) & (result < lengths[0]))
        return result if known else None

    # ----------------------------------------------------------------------------------- numbers

    def value(self, term: terms.Term) -> Any:
        """The numbers of a term that depends on no argument; None where they are not known."""
        if term.number not in self._values:
            try:
                self._values[term.number] = self._number(term)
            except (NumgradError, TypeError, ValueError, IndexError):
                self._values[term.number] = None
        return self._values[term.number]

    def _number(self, term: terms.Term) -> Any:
        shape = lengths(term.shape)
        if term.op in (terms.BUFFER, terms.SCALAR):
            return self._known.get(term.detail)
        if term.op == terms.CONSTANT:
            return np.full(shape, term.detail, term.dtype)
        if term.op == terms.SIZE:
            return np.full(shape, value_of(term.detail))
        if term.op == terms.IOTA:
            axis, divisor = term.detail
            at = places(term) if axis is None else np.indices(shape, sparse=True)[axis]
            return np.broadcast_to(at // value_of(divisor), shape)
        args = [self.value(a) for a in term.args]
        if any(a is None for a in args):
            return None
        if term.op == terms.VIEW:
            return viewed(term, args[0])
        if term.op == terms.CHOOSE:
            return choose_elements(term, args)
        if term.op == terms.GATHER:
            axis, span = term.detail
            index = np.ogrid[tuple(slice(n) for n in shape)]
            return args[0][(*index[:axis], args[1], *index[axis + span :])]
        if term.op == terms.REDUCE:
            kind, axes = term.detail
            return _REDUCTIONS[kind](args[0], axis=axes) if kind in _REDUCTIONS else None
        if term.op == terms.SCATTER:
            return self._numbers_scattered(term, args, shape)
        if term.op == "cast":
            return args[0].astype(term.dtype)
        function = getattr(np, term.op, None) if term.is_map else None
        return None if function is None else np.asarray(function(*args)).astype(term.dtype)

    def _numbers_scattered(
        self, term: terms.Term, args: Sequence[Any], shape: tuple[int, ...]
    ) -> Any:
        kind, (axis, span) = term.detail
        if kind not in ("sum", "max"):
            return None
        lowest = 0 if kind == "sum" else np.iinfo(term.dtype).min
        out = np.full(shape, lowest, term.dtype)
        index = np.ogrid[tuple(slice(n) for n in args[0].shape)]
        at = (*index[:axis], args[1], *index[axis + span :])
        (np.add if kind == "sum" else np.maximum).at(out, at, args[0])
        return out


_REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any,
               "all": np.all}  # fmt: skip


# ---------------------------------------------------------------------------- dependent operations


_MOVES = ("concat", "stack", "roll", "copy")
"""Operations that may be no terms and do nothing but put elements elsewhere."""


def patterns(
    graph: Graph, of_inputs: dict[Value, Pattern], known: dict[Value, np.ndarray], columns: int
) -> list[Pattern]:
    """The patterns of the outputs of a graph whose lengths are all numbers.

    ``of_inputs`` are those of its inputs, ``known`` the numbers of inputs that depend on nothing.
    """
    return Dependence(Expansion(graph), graph, of_inputs, known, columns).outputs()


Rule = Callable[[Dependence, TracedNode, Sequence[terms.Term], Sequence[Pattern]], list[Pattern]]


def _move(
    self: Dependence, node: TracedNode, args: Sequence[terms.Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """Elements that are put elsewhere: the operation says where, applied to their positions."""
    counts = [prod(lengths(a.shape)) for a in args]
    starts = np.concatenate([[0], np.cumsum(counts)])
    at = [places(a) + start for a, start in zip(args, starts, strict=False)]
    rows = [self._empty(n) if p is None else p for n, p in zip(counts, parts, strict=True)]
    (result,) = compute(node, at, lambda n: self.graph.sizes.evaluate(n, {}))
    return [stacked(rows)[np.asarray(result).ravel()]]


def _multiplied(
    self: Dependence, node: TracedNode, args: Sequence[terms.Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """The product of a sparse matrix and a vector or matrix."""
    pattern, adjoint = node.params["pattern"], node.params["adjoint"]
    rows, columns = pattern.places(adjoint)
    count, inner = pattern.shape[::-1] if adjoint else pattern.shape
    width = prod(lengths(args[1].shape)[1:])
    wide = np.arange(width)
    at = (rows[:, None] * width + wide).ravel()
    result = None
    if parts[1] is not None:
        ones = np.ones(at.size, bool)
        source = (columns[:, None] * width + wide).ravel()
        result = sparse.csr_array((ones, (at, source)), shape=(count * width, inner * width))
        result = result @ parts[1]
    if parts[0] is not None:
        of_data = parts[0][np.repeat(np.arange(rows.size), width)]
        result = self._united([result, self._grouped(of_data, at, count * width)])
    return [result]


def _convolved(
    self: Dependence, node: TracedNode, args: Sequence[terms.Term], parts: Sequence[Pattern]
) -> list[Pattern]:
    """A convolution: what lies under the window, along the axes that it moves along."""
    shapes = [lengths(a.shape) for a in args]
    (out,) = (shape_of(self.graph, v) for v in node.outputs)
    axes = node.params.get("axes", (0,))
    full = node.name == "convolve_whole" or node.params.get("mode") == "full"
    where = np.indices(out)
    results = []
    for own, other, pattern in zip(shapes, shapes[::-1], parts, strict=True):
        if pattern is None:
            continue
        rows, columns = [], []
        inside = all(other[a] <= own[a] for a in axes)
        window = [other[a] if full or inside else own[a] for a in axes]
        for offset in np.ndindex(*window):
            at = [w if own[a] > 1 or a in axes else 0 * w for a, w in enumerate(where)]
            for a, o in zip(axes, offset, strict=True):
                at[a] = at[a] - o if full else at[a] + o if inside else 0 * at[a] + o
            within = np.all([(i >= 0) & (i < n) for i, n in zip(at, own, strict=True)], axis=0)
            rows.append(places_in(out)[within])
            columns.append(np.ravel_multi_index([i[within] for i in at], own))
        at = np.concatenate(rows), np.concatenate(columns)
        moved = sparse.csr_array((np.ones(at[0].size, bool), at), shape=(prod(out), prod(own)))
        results.append(moved @ pattern)
    return [self._united(results)]


RULES.update(
    {
        **dict.fromkeys(("convolve_whole", "correlate_inside"), _convolved),
        **dict.fromkeys(_MOVES, _move),
        "sparse_matmul": _multiplied,
    }
)


# --------------------------------------------------------------------------------------- positions


def lengths(shape: Sequence[Any]) -> tuple[int, ...]:
    """The shape of a term as numbers."""
    return tuple([value_of(n) or 0 for n in shape])


def shape_of(graph: Graph, value: Value) -> tuple[int, ...]:
    """The shape of a value as numbers."""
    return tuple([graph.sizes.evaluate(n, {}) for n in value.shape])


def places(term: terms.Term) -> np.ndarray:
    """The positions of the elements of a term, in its shape."""
    return places_in(lengths(term.shape))


def places_in(shape: tuple[int, ...]) -> np.ndarray:
    """The positions of the elements of an array, in its shape."""
    return np.arange(prod(shape)).reshape(shape)


def flat(index: Sequence[np.ndarray], shape: tuple[int, ...], like: tuple[int, ...]) -> np.ndarray:
    """Positions in an array of that shape."""
    if not shape:
        return np.zeros(like, np.int64)
    full = [np.broadcast_to(i, like) for i in index]
    return np.ravel_multi_index(full, shape) if prod(like) else np.zeros(like, np.int64)


def viewed(term: terms.Term, x: np.ndarray) -> np.ndarray:
    """A view of an array, by a term."""
    kind, detail = term.detail
    shape = lengths(term.shape)
    if kind == "broadcast":
        return np.broadcast_to(x, shape)
    if kind == "permute":
        return x.transpose(detail)
    if kind == "getitem":
        rest = iter(shape)
        return x[tuple([_basic(entry, rest) for entry in detail])]
    if kind == "diagonal":
        return np.diagonal(x, *detail)
    return x.reshape(shape)


def _basic(entry: tuple, rest: Any) -> Any:
    """A position or slice, of which the detail of a view has start and step."""
    start = value_of(entry[0]) or 0
    if len(entry) == 1:
        return start
    step = entry[1] if isinstance(entry[1], int) else value_of(entry[1])
    return _slice(start, step, next(rest))


def _slice(start: int, step: Any, count: int) -> slice:
    if not count:
        return slice(0, 0)
    stop = start + step * (count - 1) + (1 if step > 0 else -1)
    return slice(start, stop if stop >= 0 else None, step)


def choose_elements(term: terms.Term, args: Sequence[np.ndarray]) -> np.ndarray:
    """An array put together of several: ``codegen.nests.indices``."""
    kind, detail = term.detail
    shape = lengths(term.shape)
    if kind == "join":
        return np.concatenate(args, axis=detail)
    x, other = args
    if kind == "triangle":
        offset, lower = detail
        k = value_of(offset) or 0
        row, column = np.ogrid[: shape[-2], : shape[-1]]
        mask = row + k >= column if lower else row + k <= column
        return np.where(mask, np.broadcast_to(x, shape), other)
    out = np.array(np.broadcast_to(other, shape))
    if kind == "diagonal":
        on = np.diagonal(out, *detail)
        on.flags.writeable = True
        on[...] = x
        return out
    index = [
        value_of(entry[0]) or 0
        if len(entry) == 1
        else _slice(value_of(entry[0]) or 0, entry[1], value_of(entry[2]) or 0)
        for entry in detail
    ]
    out[tuple(index)] = x
    return out


def sparsity(
    f: Callable[..., Any], *args: Any, order: int = 1, argnums: ArgnumsLike = None
) -> sparse.csr_array:
    """Find which elements of the Jacobian or Hessian of a function may differ from zero.

    The function is traced once, and what depends on what is followed through its operations. So
    the pattern holds for arguments of these shapes, whatever their values are: it may have too many
    elements, never too few. Elementwise operations, views, indexing, sums, products of matrices,
    scatters and loops are followed element by element; the result of anything else counts as
    depending on all of its operands.

    Parameters
    ----------
    f
        A function that ``ng.jit`` can trace: no ``if`` on a value.
    *args
        Its arguments, of which shapes and dtypes count.
    order
        1 for the Jacobian; 2 for the Hessian of a function that returns one number.
    argnums
        The argument that is differentiated by, or several; the first one by default.

    Returns
    -------
    scipy.sparse.csr_array
        Of booleans, with a row for each element of the result, and a column for each element of
        the arguments, in the order of ``ng.tree.ravel``; for order 2 symmetric.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        As for ``ng.jacobian``, or if ``order`` is neither 1 nor 2.
    NumgradRuntimeError
        If it is called inside of a function that ``ng.jit`` or ``ng.vmap`` transforms.
    NumgradTraceError
        If the function looks at values.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> pattern = ng.func.sparsity(lambda x: x[1:] * x[:-1], np.ones(4))
    >>> pattern.toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    if order not in (1, 2):
        raise NumgradValueError(f"sparsity: order is 1 (Jacobian) or 2 (Hessian), got {order!r}")
    if state.ground.deferred or state.interpreters:
        raise NumgradRuntimeError(
            "sparsity: shapes are numbers outside of ng.jit, ng.vmap and forward mode only; find "
            "the pattern before, for arrays of the same shapes"
        )
    numbers = choose("sparsity", f, argnums)
    call = TransformedCall(numbers, args, recorded=False)
    derived = f if order == 1 else grad(f, argnums=numbers.numbers)
    arguments = list(args)

    def traced(tensors: Sequence[Tensor]) -> Any:
        remaining = iter(tensors)
        for key, nesting in zip(call.keys, call.nestings, strict=True):
            arguments[key] = unflatten(nesting, remaining)  # pyright: ignore
        return derived(*arguments)

    tracer = Tracer(dynamic=False)
    with TraceInterpreter(tracer), enable_grad():
        tensors = [tracer.array(t.shape, t.dtype) for t in call.tensors]
        inputs = [tracer.value(t) for t in tensors]
        results: list[Any] = []
        flatten(traced(tensors), results)
        tracer.graph.outputs = [tracer.value(call.arrays(x)[0]) for x in results]
    graph = tracer.graph
    optimize(graph)
    sizes = [int(t.size) for t in call.tensors]
    columns = sum(sizes)
    starts = np.cumsum([0, *sizes])
    own = {
        value: sparse.csr_array(
            (np.ones(n, bool), (np.arange(n), np.arange(start, start + n))), shape=(n, columns)
        )
        for value, n, start in zip(inputs, sizes, starts, strict=False)
    }
    known = {c.value: c.array for c in tracer.captured}
    found_rows = patterns(graph, own, known, columns)
    empty = [sparse.csr_array((0, columns), dtype=bool)]
    rows = [
        sparse.csr_array((prod(map(int, v.shape)), columns), dtype=bool) if p is None else p
        for v, p in zip(graph.outputs, found_rows, strict=True)
    ]
    pattern: Any = sparse.csr_array(sparse.vstack(empty + rows, format="csr"))
    if order == 2:
        pattern = sparse.csr_array(pattern + pattern.T)
    pattern.sort_indices()
    return pattern
