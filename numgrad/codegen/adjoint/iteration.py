"""Reading of loops: ranges, items, what iterations hand to the next."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.emission import SCALARS
from numgrad.codegen.adjoint.exits import BOUND
from numgrad.codegen.adjoint.representation import (
    Block,
    Carried,
    Expression,
    KernelLoop,
    Value,
    add,
    multiply,
    subtract,
)
from numgrad.codegen.adjoint.scopes import assigned_names
from numgrad.codegen.adjoint.statements import NoTurns, ReadAgain, StatementReader
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    IndexSpan,
    Items,
    Made,
    size_of,
)
from numgrad.codegen.dtypes import INT64
from numgrad.codegen.native.syntax import read_first

_MOST_READINGS = 40
_MOST_ITEMS = 16


class LoopRange:
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


class LoopReader(StatementReader):
    """Reads loops."""

    def _do_While(self, node: ast.While, env: dict[str, Any]) -> None:
        self._repeat(node, env, None)
        self.statements(node.orelse, env)

    def _do_For(self, node: ast.For, env: dict[str, Any]) -> None:
        items = self._tuple_of(node.iter, env)
        if items is None:
            self._repeat(node, env, self._range(node, env))
        else:  # a few things of any kind: the statements once for each
            self.following.append([node])
            for item in self.computed(items, node):
                self.assign(node.target, item, env, node)
                self.statements(node.body, env)
            self.following.pop()
        self.statements(node.orelse, env)

    def _tuple_of(self, node: ast.expr, env: dict[str, Any]) -> Items | None:
        """The items of a tuple that a loop goes through, if it is one."""
        known = isinstance(node, ast.Name) and isinstance(env.get(node.id), Items)
        if not isinstance(node, ast.Tuple | ast.List) and not known:
            return None
        items = self.value(node, env)
        few = len(items) <= _MOST_ITEMS or not all(isinstance(item, SCALARS) for item in items)
        return items if few else None

    def _range(self, node: ast.For, env: dict[str, Any]) -> LoopRange:
        """The range that a loop goes through."""
        iterated, targets = node.iter, node.target
        if isinstance(iterated, ast.Call):
            word = self._word(iterated.func)
            if word in ("range", "prange"):
                if not isinstance(targets, ast.Name):
                    self.refuse(node, "several names for one range", "use one name")
                return self._of_range(iterated, targets.id, env)
            if word == "enumerate" and isinstance(targets, ast.Tuple) and len(targets.elts) == 2:
                given = [*iterated.args[1:], *[k.value for k in iterated.keywords]]
                start = self.whole(given[0], env) if given else 0
                inner = ast.copy_location(ast.For(targets.elts[1], iterated.args[0], [], []), node)
                length, set_names = self.items(inner, env)

                def set_both(k: Value, inner_env: dict[str, Any]) -> None:
                    self.assign(targets.elts[0], add(k, start), inner_env, node)
                    set_names(k, inner_env)

                return LoopRange(0, length, 1, "k", set_both)
        length, set_names = self.items(node, env)
        return LoopRange(0, length, 1, "k", set_names)

    @staticmethod
    def _word(node: ast.expr) -> str:
        return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)

    def _of_range(self, call: ast.Call, name: str, env: dict[str, Any]) -> LoopRange:
        bounds = [self.whole(a, env) for a in call.args]
        low, high, step = ([0, *bounds, 1] if len(bounds) == 1 else [*bounds, 1])[:3]
        if isinstance(step, int):
            if step == 0:
                self.refuse(call, f"the step of {ast.unparse(call)} is zero", "give another one")
        elif not self.is_generated and (self.lower_bound(step) or 0) < 1:
            self.check_call(Expression("!=", (step, 0)), "a range whose step is zero", call)

        def set_name(k: Value, inner: dict[str, Any]) -> None:
            inner[name] = k

        parallel = self._word(call.func) == "prange"
        return LoopRange(low, high, step, name, set_name, parallel)

    def items(self, node: ast.For, env: dict[str, Any]) -> tuple[Value, Callable[..., None]]:
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
                    self.items(ast.copy_location(ast.For(t, i, [], []), node), env)
                    for t, i in zip(target.elts, iterated.args, strict=True)
                ]
                lengths = tuple([n for n, _ in parts])
                alike = all(n == lengths[0] for n in lengths)

                def set_all(k: Value, inner: dict[str, Any]) -> None:
                    for _, set_one in parts:
                        set_one(k, inner)

                return lengths[0] if alike else Expression("min", lengths), set_all
            if word == "reversed" and len(iterated.args) == 1:
                inner = ast.copy_location(ast.For(target, iterated.args[0], [], []), node)
                length, set_one = self.items(inner, env)
                last = subtract(length, 1)
                return length, lambda k, inner: set_one(subtract(last, k), inner)
            if word in ("ndindex", "ndenumerate"):
                return self._all_indices(node, word, [self.value(a, env) for a in iterated.args])
        value = self.value(iterated, env)
        if isinstance(value, ArrayExpression | Made | Items):
            value = self.as_view(value, node)
        if not isinstance(value, ArrayView):
            self.refuse(
                node, f"a loop over {ast.unparse(iterated)}", "loop over range, prange or an array"
            )

        def set_item(k: Value, inner: dict[str, Any]) -> None:
            rest = [IndexSpan(0, n) for n in value.shape[1:]]
            item = value.part([k, *rest])
            self.assign(target, item if item.ndim else self.load(item), inner, node)

        return value.shape[0], set_item

    def _all_indices(
        self, node: ast.For, word: str, given: list[Any]
    ) -> tuple[Value, Callable[..., None]]:
        """The items of ``np.ndindex`` and ``np.ndenumerate``."""
        view = self.as_view(given[0], node) if word == "ndenumerate" else None
        shape = view.shape if view is not None else given
        if view is None and isinstance(given[0], Items):
            shape = given[0]
        count = size_of(list(shape))

        def set_indices(k: Value, inner: dict[str, Any]) -> None:
            places: list[Value] = []
            for length in shape[:0:-1]:
                places.append(self.integers("%", k, length))
                k = self.integers("//", k, length)
            index = Items([k, *places[::-1]])
            item = index if view is None else Items([index, self.load(view, index)])
            self.assign(node.target, item, inner, node)

        return count, set_indices

    def _repeat(
        self, node: ast.For | ast.While, env: dict[str, Any], span: LoopRange | None
    ) -> None:
        """Read a loop, again where a name in it turns out to be of another dtype."""
        before = self.block
        statements = list(before.statements)
        promoted, unbounded = dict(self.promoted), set(self.unbounded)
        depth = len(self.following)
        unset, stored = self._unset_names(node, env), list[str]()
        for _ in range(_MOST_READINGS):
            outer = env | {name: self.unset(self.promoted.get(name)) for name in unset}
            for name in stored:
                outer[name] = self.start_storage(name, env, node)
            try:
                self._read_loop(node, outer, env, span)
                break
            except ReadAgain as again:
                self.block = before
                del self.following[depth:]
                before.statements = list(statements)
                if again.dtype is not None:
                    self.promoted[again.name] = again.dtype
                elif again.reason == "bound":
                    self.unbounded.add(again.name)
                elif again.reason == "unset":
                    unset.discard(again.name)
                else:
                    stored.append(again.name)
        else:
            self.refuse(node, "a loop whose names change their dtypes", "start them with floats")
        self.promoted, self.unbounded = promoted, unbounded
        for name in stored:
            env[name] = outer[name]
            del self.storages[len(self.scopes), name]

    def _unset_names(self, node: ast.For | ast.While, env: dict[str, Any]) -> set[str]:
        """Names without a value before a loop that iterations hand on, or that are read after."""
        if self.is_generated:
            return set()
        targets = [node.target] if isinstance(node, ast.For) else []
        assigned = [n for n in assigned_names([*targets, *node.body]) if env.get(n) is None]
        if not assigned:
            return set()
        wanted = self.read_later() | read_first([node, *node.orelse])
        return {name for name in assigned if name in wanted}

    def _read_loop(
        self,
        node: ast.For | ast.While,
        outer: dict[str, Any],
        env: dict[str, Any],
        span: LoopRange | None,
    ) -> None:
        before = self.block
        body = Block(None, before)
        loop, line = KernelLoop("", 0, 0, 1, body), self.line
        loop.home = before
        body.loop = loop
        if span is not None:
            loop.low, loop.high, loop.step = span.low, span.high, span.step
            loop.parallel = span.parallel
        inner = dict(outer)
        assigned = assigned_names(list(node.body))
        if isinstance(node, ast.For):
            assigned += [n for n in assigned_names([node.target]) if n not in assigned]
        tuples = self._numbers_of_tuples(assigned, outer)
        for parts in tuples.values():
            env |= parts
            outer |= parts
        assigned += [n for parts in tuples.values() for n in parts]
        names = [n for n in assigned if outer.get(n) is not None]
        carried: list[tuple[str, Carried]] = []
        for name in names:
            start: Any = outer[name]
            if isinstance(start, ArrayView):
                if not start.rotates:
                    continue
                start = start.index[0]
            elif not isinstance(start, SCALARS):
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
        inner |= {name: Items(inner[n] for n in parts) for name, parts in tuples.items()}
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
        self.following.append([node])
        self.around.append((len(self.scopes), outer))
        try:
            self.statements(node.body, inner)
        finally:
            self.around.pop()
        self.following.pop()
        for name, parts in tuples.items():
            end = inner[name]
            if not isinstance(end, Items) or len(end) != len(parts):
                self.refuse(
                    node, f"{name} becomes another kind of tuple in a loop", "use two names"
                )
            inner |= dict(zip(parts, end, strict=True))
        for name, one in carried:
            if name not in env and not isinstance(inner[name], SCALARS):
                raise ReadAgain(name, "unset")
            self._end(name, one, inner[name], outer[name], node)
        changed = self._changed(node, outer, inner, {*tuples, *[name for name, _ in carried]})
        # numbers that were not there before have none after, or those of the last iteration
        self.block = before
        self.line = line
        self.emit(loop)
        for name, one in carried:
            one.out = self.fresh(name, self.dtypes[one.name])
            if one.name in self.lowest:
                self.lowest[one.out] = self.lowest[one.name]
            env[name] = self._carrying(outer[name], one.out)
        env |= {name: Items(env.pop(n) for n in parts) for name, parts in tuples.items()}
        if count is not None:
            loop.carried.append(count)
            count.out = self.fresh("trips", INT64)
            self.lowest[count.out] = 0
        hidden = {n for parts in tuples.values() for n in parts}
        for name, value in inner.items():
            if name in hidden:
                continue
            if name in changed or (name not in env and isinstance(value, SCALARS)):
                env[name] = None

    def _numbers_of_tuples(
        self, names: list[str], env: dict[str, Any]
    ) -> dict[str, dict[str, Value]]:
        """Tuples of numbers, each with names for these that no user has."""
        tuples: dict[str, dict[str, Value]] = {}
        for name in names:
            items = env.get(name)
            if not isinstance(items, Items) or not all(isinstance(v, SCALARS) for v in items):
                continue
            if not any(isinstance(v, str) and v not in self.dtypes for v in items):  # no string
                tuples[name] = {f"{name}\xa7{k}": number for k, number in enumerate(items)}
        return tuples

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
            if name in before or name in self.read_later():
                if isinstance(start, ArrayView) and isinstance(end, ArrayView):
                    raise ReadAgain(name, "storage")
                if name not in before:
                    changed.add(name)
                    continue
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
            if not start.takes_turns_with(end):
                scope, group = self.turning[start.array]
                raise NoTurns(scope.function, group)
            one.end = end.index[0]  # pyright: ignore
            return
        if not isinstance(end, SCALARS):
            self.refuse(node, f"{name} is a number and becomes an array", "use another name")
        own = self.dtypes[one.name]
        common = np.result_type(self.dtype_of(end), own)
        if common != own:
            raise ReadAgain(name, "dtype", common)
        one.end = self.cast(end, own)
        if one.name in self.lowest:
            bound = self.lower_bound(one.end)
            if bound is None or bound < self.lowest[one.name]:
                raise ReadAgain(name, "bound")

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
