"""Reading of statements: assignments, branches, arrays that take turns.

Note [Arrays that take turns]
-----------------------------
Names of arrays that a loop assigns to one another, as ``u, v = v, u`` does, are parts of one array
with one more axis, and a name is an integer, its place there. So an exchange exchanges integers,
which loops carry as they do others, and for all that follows a name means one array for ever. What
was an argument is copied in at the start and, if it is overwritten, out at the end.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.calls import CallReader
from numgrad.codegen.adjoint.emission import SCALARS
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    KernelBranch,
    names_in,
)
from numgrad.codegen.adjoint.scopes import is_docstring
from numgrad.codegen.adjoint.values import ArrayExpression, ArrayView, IndexSpan, Items, Made


class StatementReader(CallReader):
    """Reads statements other than loops."""

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
        if not isinstance(value, SCALARS):
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
        if not isinstance(value, SCALARS):
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
            floating = self.arrays[view.array].differentiable and isinstance(value, SCALARS)
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
            if not isinstance(then, SCALARS) and not isinstance(other, SCALARS):
                env[name] = None
                continue
            if not isinstance(then, SCALARS) or not isinstance(other, SCALARS):
                # set on one side only: of any value on the other
                if not self.is_generated:
                    env[name] = None
                    continue
                known: Any = then if isinstance(then, SCALARS) else other
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
