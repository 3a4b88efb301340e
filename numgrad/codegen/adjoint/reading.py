"""Reading of functions: Python's syntax becomes the loop representation.

Note [Arrays that take turns]
-----------------------------
Names of arrays that a loop assigns to one another, as ``u, v = v, u`` does, are parts of one array
with one more axis, and a name is an integer, its place there. So an exchange exchanges integers,
which loops carry as they do others, and for all that follows a name means one array for ever. What
was an argument is copied in at the start and, if it is overwritten, out at the end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.calls import CallReader
from numgrad.codegen.adjoint.emission import safe_name
from numgrad.codegen.adjoint.exits import BOUND, without_exits
from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Carried,
    Expression,
    KernelArray,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    Store,
    Value,
    add,
    blocks_of,
    multiply,
    names_in,
    subtract,
    walk,
)
from numgrad.codegen.adjoint.scopes import (
    TEXT,
    Scope,
    assigned_names,
    check_statements,
    is_docstring,
    rotated_names,
    scope_of,
)
from numgrad.codegen.adjoint.values import ArrayExpression, ArrayView, IndexSpan, Items, Made
from numgrad.codegen.dtypes import INT64
from numgrad.codegen.native.syntax import read_first
from numgrad.errors import NumgradKernelError

Kind = tuple[np.dtype, int]
"""The dtype and rank of an argument; a number has rank 0."""
_SCALAR = (bool, int, float, complex, str, Expression)
_DEEPEST = 40


class _Reread(Exception):
    """A loop is read again, as a name in it has another dtype or is not bounded from below."""

    def __init__(self, name: str, dtype: np.dtype | None) -> None:
        super().__init__(name)
        self.name, self.dtype = name, dtype


class FunctionReader(CallReader):
    """Reads a function for arguments of known dtypes and ranks."""

    def __init__(
        self, scope: Scope, kinds: Sequence[Kind], writes: Sequence[str], operations: Operations
    ) -> None:
        super().__init__(operations)
        self.writes = frozenset(writes)
        self.written: frozenset[str] = frozenset()
        self.results: list[Any] = []
        self.promoted: dict[str, np.dtype] = {}
        self.unbounded: set[str] = set()
        self.buffers: dict[tuple[int, str], Allocate] = {}
        self.scopes.append(scope)
        self.is_generated = hasattr(scope.function, TEXT)
        scope.rotated = rotated_names(scope.tree.body)
        parameters: list[str] = []
        for name in scope.parameters:
            label = safe_name(name)
            while label != name and label in (*scope.parameters, *parameters):
                label += "_own"
            parameters.append(label)
        own = dict(zip(scope.parameters, parameters, strict=True))
        self.written = frozenset(own[name] for name in writes)
        self.reserved = set(parameters) | {f"result{k}" for k in range(100)}
        self.top = self.block
        env: dict[str, Any] = {}
        for user, name, (dtype, rank) in zip(scope.parameters, parameters, kinds, strict=True):
            if rank:
                self.arrays[name] = KernelArray(name, dtype, rank, "argument")
                env[user] = self.whole_view(name)
            else:
                self.dtypes[name] = INT64 if dtype.kind in "iu" else dtype
                self.homes[name] = self.top
                env[user] = name
        copies = self._with_turns(scope, env)
        body = without_exits(scope.statements, scope.refuse)
        self.statements(body, env)
        returned = [self._materialized(v, scope.tree) for v in self.results]
        results, scalars = self._stored_results(returned, scope)
        for name, argument, view in copies:
            if name in self.writes:
                self.fill(argument, view, scope.tree)
        self.result = KernelFunction(
            scope.name, parameters, self._used_arrays(results), self.dtypes, self.homes, self.top,
            results, scalars, self.constants, self.checks,
        )  # fmt: skip
        self._check_writes(scope)
        number(self.result)

    # ---------------------------------------------------------------------- start and end

    def _with_turns(
        self, scope: Scope, env: dict[str, Any]
    ) -> list[tuple[str, ArrayView, ArrayView]]:
        """Copy arguments that take turns: Note [Arrays that take turns]."""
        copies = []
        for name in scope.parameters:
            if name in scope.rotated and isinstance(env[name], ArrayView):
                content = env[name]
                dtype = self.arrays[content.array].dtype
                made = Made("empty", dtype, content.shape, content)
                env[name] = self._turning(scope.rotated[name], name, made, scope.tree)
                copies.append((name, content, env[name]))
        return copies

    def _turning(self, group: str, name: str, made: Made, node: Any) -> ArrayView:
        """A place among arrays that take turns, for an array that is made."""
        key = (id(self.scopes[-1]), group)
        buffer = self.buffers.get(key)
        if buffer is None or buffer.home is not self.block:
            view = self.allocated(
                f"{name}_turns", Made("empty", made.dtype, (1, *made.shape)), node
            )
            statement = self.block.statements[-1]
            assert isinstance(statement, Allocate)
            buffer = self.buffers[key] = statement
            count = 1
        else:
            array = self.arrays[buffer.array]
            if made.dtype != array.dtype or len(made.shape) != array.ndim - 1:
                self.refuse(node, f"{name} takes turns with an array of another dtype or rank",
                            "make them alike")  # fmt: skip
            for own, other in zip(made.shape, buffer.shape[1:], strict=True):
                if own != other:
                    self.checks.append((own, other, f"{name} and arrays that it takes turns with"))
            count = int(buffer.shape[0]) + 1  # pyright: ignore
            buffer.shape = (count, *buffer.shape[1:])
            array.shape = buffer.shape
        lengths = self.arrays[buffer.array].shape[1:]
        view = ArrayView(
            buffer.array, [count - 1, *[IndexSpan(0, n) for n in lengths]], rotates=True
        )
        content = made.content
        if content is None and made.maker != "empty":
            content = 0 if made.maker == "zeros" else 1
        if content is not None:
            self.fill(view, content, node)
        return view

    def _materialized(self, value: Any, node: Any) -> Any:
        if isinstance(value, Made):
            return self.allocated("made", value, node)
        if not isinstance(value, (*_SCALAR, ArrayView, ArrayExpression)):
            self.refuse(node, "a result that is no number and no array", "return numbers, arrays")
        return value

    def _stored_results(self, values: Sequence[Any], scope: Scope) -> tuple[list[str], set[str]]:
        """Store what is returned in arrays of its own."""
        results, scalars = [], set()
        for k, value in enumerate(values):
            name = f"result{k}"
            results.append(name)
            if isinstance(value, ArrayView | ArrayExpression):
                dtype = self.element_dtype(value)
                shape = tuple(value.shape)
                self.arrays[name] = KernelArray(name, dtype, len(shape), "result", None, shape)
                self.fill(self.whole_view(name), value, scope.tree)
            else:
                scalars.add(name)
                self.arrays[name] = KernelArray(name, self.dtype_of(value), 1, "result", None, (1,))
                self.store(name, (0,), value)
        return results, scalars

    def _used_arrays(self, results: Sequence[str]) -> dict[str, KernelArray]:
        """The arrays that are left of those read, without those of loops that were read again."""
        made = {s.array for s in walk(self.top) if isinstance(s, Allocate)}
        return {name: a for name, a in self.arrays.items() if a.role != "local" or name in made}

    def _check_writes(self, scope: Scope) -> None:
        for s in walk(self.top):
            if not isinstance(s, Store):
                continue
            if self.arrays[s.array].role == "argument" and s.array not in self.written:
                node = ast.Pass()
                node.lineno = s.line or 1
                scope.refuse(node, f"{s.array} is overwritten", f'declare it: writes="{s.array}"')
            if isinstance(s, Store) and self.arrays[s.array].role == "constant":
                node = ast.Pass()
                node.lineno = s.line or 1
                scope.refuse(node, f"{s.array} is captured and overwritten", "pass it as argument")

    # ------------------------------------------------------------------------------- statements

    def statements(self, body: Sequence[ast.stmt], env: dict[str, Any]) -> None:
        for statement in body:
            if len(self.scopes) == 1:
                self.line = getattr(statement, "lineno", self.line)
            method = getattr(self, f"_do_{type(statement).__name__}", None)
            if method is None:
                word = type(statement).__name__.lower()
                self.refuse(
                    statement,
                    f"a statement with {word}",
                    "kernels have assignments, for, while, if and return",
                )
            method(statement, env)

    def _do_Pass(self, node: ast.Pass, env: dict[str, Any]) -> None:
        pass

    def _do_Expr(self, node: ast.Expr, env: dict[str, Any]) -> None:
        if is_docstring(node):
            return
        if not isinstance(node.value, ast.Call):
            self.refuse(node, "an expression without effect", "remove it")
        self.value(node.value, env)

    def _do_Assert(self, node: ast.Assert, env: dict[str, Any]) -> None:
        self.refuse(node, "an assertion", "check arguments before the call")

    def _do_AnnAssign(self, node: ast.AnnAssign, env: dict[str, Any]) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, env), env, node)

    def _do_Assign(self, node: ast.Assign, env: dict[str, Any]) -> None:
        value = self.value(node.value, env)
        for target in node.targets:
            self.assign(target, value, env, node)
            if isinstance(target, ast.Name):  # which may have named it
                value = env[target.id]

    def assign(self, target: ast.expr, value: Any, env: dict[str, Any], node: Any) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, ArrayView) and value.ndim == 1:
                value = Items(self.load(value, (k,)) for k in range(len(target.elts)))
            if not isinstance(value, Items) or len(value) != len(target.elts):
                self.refuse(node, f"unpacking in {ast.unparse(node)}", "unpack shapes and tuples")
            for part, item in zip(target.elts, value, strict=True):
                self.assign(part, item, env, node)
            return
        if isinstance(target, ast.Subscript):
            base = self.value(target.value, env)
            if not isinstance(base, ArrayView):
                self.refuse(node, f"an assignment to {ast.unparse(target)}", "assign to arrays")
            view = self.part(base, target, env)
            self._put(view, value, node)
            return
        if not isinstance(target, ast.Name):
            self.refuse(node, f"an assignment to {ast.unparse(target)}", "use names and arrays")
        env[target.id] = self._named(target.id, value, env, node)

    def _put(self, view: ArrayView, value: Any, node: Any) -> None:
        """Give an element or a part of an array a value."""
        if isinstance(value, Made):
            value = self.allocated("part", value, node)
        if view.ndim:
            if isinstance(value, Items):
                for k, item in enumerate(value):
                    rest = [IndexSpan(0, n) for n in view.shape[1:]]
                    self._put(view.part([k, *rest]), item, node)
                return
            self.fill(view, value, node)
            return
        if not isinstance(value, _SCALAR):
            self.refuse(node, f"an array assigned to an element in {ast.unparse(node)}", "use one")
        self.store(view.array, view.at(()), value)

    def _named(self, name: str, value: Any, env: dict[str, Any], node: Any) -> Any:
        """The value that a name gets."""
        group = self.scopes[-1].rotated.get(name)
        if isinstance(value, ArrayExpression):
            value = Made("empty", self.element_dtype(value), value.shape, value)
        if isinstance(value, Items) and any(isinstance(v, Made) for v in value):
            value = Items(
                self.allocated(name, v, node) if isinstance(v, Made) else v for v in value
            )
        if isinstance(value, Made):
            if group is not None:
                return self._turning(group, name, value, node)
            return self.allocated(name, value, node)
        if isinstance(value, Items) and any(
            isinstance(v, str) and v not in self.dtypes for v in value
        ):
            self.refuse(node, f"{name} is a string", "use numbers")
        if not isinstance(value, _SCALAR):
            return value
        if name in self.promoted and len(self.scopes) == 1:
            value = self.cast(value, self.promoted[name])
        if isinstance(value, str) and not any(_mentions(v, value) for v in env.values()):
            value = self.renamed(value, name)
        return value

    def _do_AugAssign(self, node: ast.AugAssign, env: dict[str, Any]) -> None:
        if isinstance(node.target, ast.Subscript):
            base = self.value(node.target.value, env)
            if not isinstance(base, ArrayView):
                self.refuse(node, f"an assignment to {ast.unparse(node.target)}", "use arrays")
            view = self.part(base, node.target, env)
            value = self.value(node.value, env)
            if view.ndim:
                self._put(view, self.binary(node, node.op, view, value), node)
                return
            floating = self.arrays[view.array].differentiable and isinstance(value, _SCALAR)
            if floating and isinstance(node.op, ast.Add | ast.Sub):
                dtype = self.arrays[view.array].dtype
                common = np.result_type(dtype, self.dtype_of(value))
                if common == dtype:
                    value = self.cast(value, dtype)
                    if isinstance(node.op, ast.Sub):
                        value = self._negated(value)
                    self.store(view.array, view.at(()), value, add=True)
                    return
            old = self.load(view)
            self._put(view, self.binary(node, node.op, old, value), node)
            return
        if not isinstance(node.target, ast.Name):
            self.refuse(node, f"an assignment to {ast.unparse(node.target)}", "use names, arrays")
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        old = self.value(load, env)
        value = self.value(node.value, env)
        new = self.binary(node, node.op, old, value)
        if isinstance(old, ArrayView):  # the array itself changes
            self.fill(old, new, node)
            return
        self.assign(node.target, new, env, node)

    def _do_Return(self, node: ast.Return, env: dict[str, Any]) -> None:
        if node.value is None:
            self.results = []
            return
        value = self.value(node.value, env)
        if value is None:
            self.results = []
            return
        self.results = list(value) if isinstance(value, Items) else [value]

    def _do_If(self, node: ast.If, env: dict[str, Any]) -> None:
        condition = self.truth(self.scalar(node.test, env))
        if isinstance(condition, bool):
            self.statements(node.body if condition else node.orelse, env)
            return
        before, envs, blocks = self.block, [], []
        for part in (node.body, node.orelse):
            inner = dict(env)
            self.block = Block(before.loop, before)
            self.statements(part, inner)
            envs.append(inner)
            blocks.append(self.block)
        self.block = before
        pairs: list[tuple[str, Any, Any]] = []
        views: dict[str, ArrayView] = {}
        for name in sorted(set(envs[0]) | set(envs[1])):
            then, other = envs[0].get(name), envs[1].get(name)
            if _take_turns(then, other):
                views[name] = then
                pairs.append((name, then.index[0], other.index[0]))
                continue
            if isinstance(then, ArrayView | Items) or isinstance(other, ArrayView | Items):
                same = then is other or then == other
                if isinstance(then, ArrayView):
                    same = then.same_as(other)
                env[name] = then if same else None
                continue
            if then is other or (then == other and type(then) is type(other)):
                env[name] = then
                continue
            if not isinstance(then, _SCALAR) and not isinstance(other, _SCALAR):
                env[name] = None
                continue
            if not isinstance(then, _SCALAR) or not isinstance(other, _SCALAR):
                # set on one side only: of any value on the other
                if not self.is_generated:
                    env[name] = None
                    continue
                known: Any = then if isinstance(then, _SCALAR) else other
                zero = self.dtype_of(known).type(0).item()
                then, other = (known, zero) if known is then else (zero, known)
            pairs.append((name, then, other))
        joined = self.joined(blocks, pairs)
        for (name, *_), (label, *_) in zip(pairs, joined, strict=True):
            if name in views:
                view = views[name]
                env[name] = ArrayView(
                    view.array, [label, *view.index[1:]], view.order, rotates=True
                )
            else:
                env[name] = label
        self.emit(KernelBranch(condition, blocks[0], blocks[1], joined))

    # ------------------------------------------------------------------------------------ loops

    def _do_While(self, node: ast.While, env: dict[str, Any]) -> None:
        if node.orelse:
            self.refuse(node, "while ... else", "use a flag")
        self._repeat(node, env, None)

    def _do_For(self, node: ast.For, env: dict[str, Any]) -> None:
        if node.orelse:
            self.refuse(node, "for ... else", "use a flag")
        self._repeat(node, env, self._range(node, env))

    def _range(self, node: ast.For, env: dict[str, Any]) -> _Range:
        """The range that a loop goes through."""
        iterated, targets = node.iter, node.target
        if isinstance(iterated, ast.Call):
            word = self._word(iterated.func)
            if word in ("range", "prange"):
                if not isinstance(targets, ast.Name):
                    self.refuse(node, "several names for one range", "use one name")
                return self._of_range(iterated, targets.id, env)
            if word == "enumerate" and isinstance(targets, ast.Tuple) and len(targets.elts) == 2:
                start = self.whole(iterated.args[1], env) if len(iterated.args) > 1 else 0
                inner = ast.copy_location(ast.For(targets.elts[1], iterated.args[0], [], []), node)
                length, set_names = self._items(inner, env)

                def set_both(k: Value, inner_env: dict[str, Any]) -> None:
                    self.assign(targets.elts[0], add(k, start), inner_env, node)
                    set_names(k, inner_env)

                return _Range(0, length, 1, "k", set_both)
        length, set_names = self._items(node, env)
        return _Range(0, length, 1, "k", set_names)

    @staticmethod
    def _word(node: ast.expr) -> str:
        return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)

    def _of_range(self, call: ast.Call, name: str, env: dict[str, Any]) -> _Range:
        bounds = [self.whole(a, env) for a in call.args]
        low, high, step = ([0, *bounds, 1] if len(bounds) == 1 else [*bounds, 1])[:3]

        def set_name(k: Value, inner: dict[str, Any]) -> None:
            inner[name] = k

        parallel = self._word(call.func) == "prange"
        return _Range(low, high, step, name, set_name, parallel)

    def _items(self, node: ast.For, env: dict[str, Any]) -> tuple[Value, Callable[..., None]]:
        """How many items a loop has, and what gives the target item number ``k``."""
        iterated, target = node.iter, node.target
        if isinstance(iterated, ast.Call):
            word = self._word(iterated.func)
            if word in ("range", "prange"):
                bounds = [self.whole(a, env) for a in iterated.args]
                low, high, step = ([0, *bounds, 1] if len(bounds) == 1 else [*bounds, 1])[:3]
                if not isinstance(step, int) or step == 0:
                    self.refuse(node, "a range whose step is no constant", "loop over range alone")
                span = subtract(high, low) if step > 0 else subtract(low, high)
                count = self._count(self._positive(span), abs(step))
                return count, lambda k, inner: self.assign(
                    target, add(low, multiply(k, step)), inner, node
                )
            if word == "zip" and isinstance(target, ast.Tuple):
                parts = [
                    self._items(ast.copy_location(ast.For(t, i, [], []), node), env)
                    for t, i in zip(target.elts, iterated.args, strict=True)
                ]
                lengths = tuple([n for n, _ in parts])
                alike = all(n == lengths[0] for n in lengths)

                def set_all(k: Value, inner: dict[str, Any]) -> None:
                    for _, set_one in parts:
                        set_one(k, inner)

                return lengths[0] if alike else Expression("min", lengths), set_all
        value = self.value(iterated, env)
        if isinstance(value, ArrayExpression):
            value = self.stored(value, node)
        if not isinstance(value, ArrayView):
            self.refuse(
                node, f"a loop over {ast.unparse(iterated)}", "loop over range, prange or an array"
            )

        def set_item(k: Value, inner: dict[str, Any]) -> None:
            rest = [IndexSpan(0, n) for n in value.shape[1:]]
            item = value.part([k, *rest])
            self.assign(target, item if item.ndim else self.load(item), inner, node)

        return value.shape[0], set_item

    def _repeat(self, node: ast.For | ast.While, env: dict[str, Any], span: _Range | None) -> None:
        """Read a loop, again where a name in it turns out to be of another dtype."""
        before = self.block
        statements = list(before.statements)
        promoted, unbounded = dict(self.promoted), set(self.unbounded)
        for _ in range(_DEEPEST):
            try:
                self._read_loop(node, dict(env), env, span)
                break
            except _Reread as again:
                self.block = before
                before.statements = list(statements)
                if again.dtype is None:
                    self.unbounded.add(again.name)
                else:
                    self.promoted[again.name] = again.dtype
        else:
            self.refuse(node, "a loop whose names change their dtypes", "start them with floats")
        self.promoted, self.unbounded = promoted, unbounded

    def _read_loop(
        self,
        node: ast.For | ast.While,
        outer: dict[str, Any],
        env: dict[str, Any],
        span: _Range | None,
    ) -> None:
        before = self.block
        body = Block(None, before)
        loop = KernelLoop("", 0, 0, 1, body)
        loop.home = before
        body.loop = loop
        if span is not None:
            loop.low, loop.high, loop.step = span.low, span.high, span.step
            loop.parallel = span.parallel
        inner = dict(outer)
        assigned = assigned_names(list(node.body))
        if isinstance(node, ast.For):
            assigned += [n for n in assigned_names([node.target]) if n not in assigned]
        names = [n for n in assigned if outer.get(n) is not None]
        carried: list[tuple[str, Carried]] = []
        for name in names:
            start: Any = outer[name]
            if isinstance(start, ArrayView):
                if not start.rotates:
                    continue
                start = start.index[0]
            elif not isinstance(start, _SCALAR):
                continue
            if name in self.promoted:
                start = self.cast(start, self.promoted[name])
            self.block = body
            label = self.fresh(name, self.dtype_of(start))
            self.block = before
            one = Carried(label, start)
            bound = self.lower_bound(start)
            if bound is not None and self.dtypes[label] == INT64 and name not in self.unbounded:
                self.lowest[label] = bound
            carried.append((name, one))
            inner[name] = self._carrying(outer[name], label)
        loop.carried = [c for _, c in carried]
        count: Carried | None = None
        if isinstance(node, ast.While):
            loop.at_most = outer.get(getattr(node, BOUND, ""))
            loop.test = Block(loop, before)
            self.block = loop.test
            loop.condition = self.truth(self.scalar(node.test, inner))
        self.block = body
        loop.variable = self.fresh(span.name if span is not None else "trip", INT64)
        self._bound_variable(loop)
        if span is not None:
            span.set_names(loop.variable, inner)
        else:
            count = Carried(loop.variable, 0, Expression("+", (loop.variable, 1)))
        self.statements(node.body, inner)
        for name, one in carried:
            self._end(name, one, inner[name], outer[name], node)
        changed = self._changed(node, outer, inner, {name for name, _ in carried})
        # numbers that were not there before have none after, or those of the last iteration
        self.block = before
        self.emit(loop)
        for name, one in carried:
            one.out = self.fresh(name, self.dtypes[one.name])
            if one.name in self.lowest:
                self.lowest[one.out] = self.lowest[one.name]
            env[name] = self._carrying(outer[name], one.out)
        if count is not None:
            loop.carried.append(count)
            count.out = self.fresh("trips", INT64)
            self.lowest[count.out] = 0
        for name, value in inner.items():
            if name in changed or (name not in env and isinstance(value, _SCALAR)):
                env[name] = None

    def _changed(
        self,
        node: ast.For | ast.While,
        outer: dict[str, Any],
        inner: dict[str, Any],
        carried: set[str],
    ) -> set[str]:
        """Names of arrays and tuples that an iteration makes others, and does not read before."""
        changed = set()
        before = read_first([node])
        targets = [node.target] if isinstance(node, ast.For) else []
        for name in assigned_names([*node.body, *targets]):
            start, end = outer.get(name), inner.get(name)
            if start is None or name in carried or start is end:
                continue
            if isinstance(start, ArrayView) and start.same_as(end):
                continue
            if name in before:
                place = next(
                    n for n in ast.walk(node)
                    if isinstance(n, ast.Assign) and name in assigned_names([n])
                )  # fmt: skip
                self.refuse(
                    place, f"{name} becomes another array in a loop", "exchange arrays, or copy"
                )
            changed.add(name)
        return changed

    @staticmethod
    def _carrying(value: Any, label: str) -> Any:
        if isinstance(value, ArrayView):
            return ArrayView(value.array, [label, *value.index[1:]], value.order, rotates=True)
        return label

    def _end(self, name: str, one: Carried, end: Any, start: Any, node: Any) -> None:
        """Assign the values that an iteration leaves for the next."""
        if isinstance(start, ArrayView):
            if not isinstance(end, ArrayView) or not end.rotates or end.array != start.array:
                self.refuse(
                    node, f"{name} becomes another array in a loop", "exchange arrays, or copy"
                )
            one.end = end.index[0]  # pyright: ignore
            return
        if not isinstance(end, _SCALAR):
            self.refuse(node, f"{name} is a number and becomes an array", "use another name")
        own = self.dtypes[one.name]
        common = np.result_type(self.dtype_of(end), own)
        if common != own:
            raise _Reread(name, common)
        one.end = self.cast(end, own)
        if one.name in self.lowest:
            bound = self.lower_bound(one.end)
            if bound is None or bound < self.lowest[one.name]:
                raise _Reread(name, None)

    def _bound_variable(self, loop: KernelLoop) -> None:
        self.lowest.pop(loop.variable, None)
        bound: int | None = 0
        if loop.test is None:
            if not isinstance(loop.step, int):
                return
            bound = self.lower_bound(loop.low if loop.step > 0 else loop.high)
            if bound is not None and loop.step < 0:
                bound += 1
        if bound is not None:
            self.lowest[loop.variable] = bound

    # -------------------------------------------------------------------------------- functions

    def inline(self, node: Any, function: Any, arguments: Sequence[Any]) -> Any:
        scope = scope_of(getattr(function, "__kernel__", None) or function)
        if any(s.function is scope.function for s in self.scopes):
            self.refuse(node, f"{scope.name} calls itself", "write the recursion as a loop")
        if len(self.scopes) > _DEEPEST:
            self.refuse(node, "functions that call others without end", "write loops")
        arguments = [
            self.allocated("part", a, node) if isinstance(a, Made)
            else self.stored(a, node) if isinstance(a, ArrayExpression) else a
            for a in arguments
        ]  # fmt: skip
        if len(arguments) != len(scope.parameters):
            self.refuse(node, f"{scope.name} takes {len(scope.parameters)} arguments", "give them")
        body = without_exits(scope.statements, scope.refuse)
        outer, self.results = self.results, []
        promoted, self.promoted = self.promoted, {}
        self.scopes.append(scope)
        scope.rotated = rotated_names(scope.tree.body)
        check_statements(scope)
        try:
            self.statements(body, dict(zip(scope.parameters, arguments, strict=True)))
        finally:
            self.scopes.pop()
            self.promoted = promoted
        results, self.results = self.results, outer
        if not results:
            return None
        return results[0] if len(results) == 1 else Items(results)


def _take_turns(one: Any, other: Any) -> bool:
    """Whether two values are different arrays of a set that takes turns."""
    if not isinstance(one, ArrayView) or not isinstance(other, ArrayView) or one.same_as(other):
        return False
    return one.rotates and other.rotates and one.array == other.array


def _mentions(value: Any, name: str) -> bool:
    """Whether what a name stands for contains a value."""
    if isinstance(value, Items):
        return any(_mentions(v, name) for v in value)
    if isinstance(value, ArrayView):
        parts = [
            p for part in value.index for p in (part if isinstance(part, IndexSpan) else (part,))
        ]
        return any(_mentions(p, name) for p in parts)
    if isinstance(value, ArrayExpression):
        return True
    return name in names_in(value)


class _Range:
    """Range of a loop: its bounds, and how names are set in an iteration."""

    def __init__(
        self,
        low: Value,
        high: Value,
        step: Value,
        name: str,
        set_names: Callable[[Value, dict[str, Any]], None],
        parallel: bool = False,
    ) -> None:
        self.low, self.high, self.step = low, high, step
        self.name, self.set_names, self.parallel = name, set_names, parallel


def number(function: KernelFunction) -> None:
    """Number statements and loops."""
    loops = 0
    for place, statement in enumerate(walk(function.body)):
        statement.place = place
        if isinstance(statement, KernelLoop):
            statement.key = loops
            loops += 1
    assert all(b.parent is not None for s in walk(function.body) for b in blocks_of(s))


def read_function(
    scope: Scope, kinds: Sequence[Kind], writes: Sequence[str], operations: Operations
) -> KernelFunction:
    """Read a function for arguments of these kinds.

    Raises
    ------
    NumgradKernelError
        If something in it is not of the language of kernels.
    """
    try:
        return FunctionReader(scope, kinds, writes, operations).result
    except RecursionError as error:
        raise NumgradKernelError(f"{scope.name}: is nested too deep; write it in parts") from error
