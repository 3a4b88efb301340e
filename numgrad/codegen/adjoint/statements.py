"""Reading of statements: assignments, branches, arrays that take turns.

Note [Arrays that take turns]
-----------------------------
Names of arrays that a loop assigns to one another, as ``u, v = v, u`` does, are parts of one array
with one more axis, and a name is an integer, its place there. So an exchange exchanges integers,
which loops carry as they do others, and for all that follows a name means one array for ever. What
was an argument is copied in at the start and, if it is overwritten, out at the end.

Note [Arrays made anew]
-----------------------
A name that each iteration gives a new array of the same shape, as ``x = x + dt * v``, is one array
that iterations overwrite: a copy made before the loop. So is one that the sides of a branch give
different arrays. Note [Shared copies] in ``sharing`` says when that is not the same.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.calls import CallReader
from numgrad.codegen.adjoint.emission import SCALARS
from numgrad.codegen.adjoint.expressions import NOT_READ
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    CallCheck,
    Define,
    Expression,
    KernelBranch,
    Load,
    Value,
    names_in,
)
from numgrad.codegen.adjoint.scopes import is_docstring
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    IndexSpan,
    Items,
    LocalFunction,
    Made,
    Selection,
)
from numgrad.codegen.native.syntax import read_first
from numgrad.errors import NumgradAssertionError, NumgradError

_ASSIGNED = "="
"""Where names are kept: the value of an assignment to several targets while it is read."""


class ReadAgain(Exception):
    """A loop is read again: a name is of another dtype, not bounded from below, or an array.

    ``reason`` is "dtype", "bound", "unset" of an array that was taken for a number, or "storage"
    of an array that iterations make anew.
    """

    def __init__(self, name: str, reason: str, dtype: np.dtype | None = None) -> None:
        super().__init__(name)
        self.name, self.reason, self.dtype = name, reason, dtype


class NoTurns(Exception):
    """Names do not just take turns, so the function is read again: Note [Arrays made anew]."""

    def __init__(self, function: Any, group: str) -> None:
        super().__init__(group)
        self.function, self.group = function, group


class StatementReader(CallReader):
    """Reads statements other than loops."""

    def statements(self, body: Sequence[ast.stmt], env: dict[str, Any]) -> None:
        for k, statement in enumerate(body):
            self.following.append(body[k + 1 :])
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
            try:
                method(statement, env)
            except NumgradError:
                raise
            except NOT_READ:
                self.refuse_text(statement)
            self.following.pop()

    def read_later(self) -> set[str]:
        """Names of which statements after the one that is read may use the value."""
        return read_first([s for level in reversed(self.following) for s in level])

    def unset(self, dtype: np.dtype | None) -> Value:
        """The value of a name to which nothing was assigned, once its dtype is known."""
        if dtype is None:
            return False
        return {"f": math.nan, "c": complex(math.nan), "b": False}.get(dtype.kind, 0)

    def _do_Pass(self, node: ast.Pass, env: dict[str, Any]) -> None:
        pass

    def _do_Expr(self, node: ast.Expr, env: dict[str, Any]) -> None:
        if is_docstring(node):
            return
        if not isinstance(node.value, ast.Call):
            self.refuse(node, "an expression without effect", "remove it")
        self.value(node.value, env)

    def _do_Assert(self, node: ast.Assert, env: dict[str, Any]) -> None:
        message = ast.unparse(node.test)
        if isinstance(node.msg, ast.Constant):
            message = f"{node.msg.value}: {message}"
        condition = self.truth(self.scalar(node.test, env))
        message = f"{self.scopes[-1].name}: assertion {message}, {self.scopes[-1].line(node)}"
        self._check_at_call(node, condition, message, NumgradAssertionError)

    def _do_Raise(self, node: ast.Raise, env: dict[str, Any]) -> None:
        self._check_at_call(node, False, *self._raised(node, env))

    def _raised(self, node: ast.Raise, env: dict[str, Any]) -> tuple[str, type[Exception]]:
        """The message and the class of an error that a kernel raises."""
        error, message = node.exc, ""
        if isinstance(error, ast.Call):
            if error.args:
                given = error.args[0]
                message = given.value if isinstance(given, ast.Constant) else ast.unparse(given)
            error = error.func
        kind = self.value(error, env) if error is not None else None
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            self.refuse(node, "raise of what is no class of errors", "raise ValueError(...)")
        return str(message), kind

    def _check_at_call(
        self, node: Any, condition: Value, message: str, error: type[Exception]
    ) -> None:
        """Have calls raise if a condition of their arguments is not so."""
        if condition is True:
            return
        if self.block.parent is not None or not self.follows_from_arguments(condition):
            word = "an assertion" if isinstance(node, ast.Assert) else "raise"
            self.refuse(node, f"{word} in a loop or branch, or about what is computed",
                        "check arguments at the start, or before the call")  # fmt: skip
        message = message.replace("{", "{{").replace("}", "}}")
        self.checks.append(CallCheck(condition, message, (), error))

    def follows_from_arguments(self, value: Any) -> bool:
        """Whether a call knows a value before the kernel runs."""
        if isinstance(value, Expression):
            if value.operation == "shape":
                array = self.arrays[value.operands[0]]
                return array.role in ("argument", "constant")
            return all(self.follows_from_arguments(o) for o in value.operands)
        if not isinstance(value, str):
            return True
        for s in self.top.statements:
            if isinstance(s, Define) and s.name == value:
                return all(self.follows_from_arguments(o) for o in s.operands)
            if isinstance(s, Load) and s.name == value:
                array = self.arrays[s.array]
                known = array.role == "argument" and s.array not in self.written
                return known and all(self.follows_from_arguments(o) for o in s.index)
        return self.homes[value] is self.top and value in self.reserved

    def _do_FunctionDef(self, node: ast.FunctionDef, env: dict[str, Any]) -> None:
        env[node.name] = LocalFunction(node, self.scopes[-1], env)

    def _do_AnnAssign(self, node: ast.AnnAssign, env: dict[str, Any]) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, env), env, node)

    def _do_Assign(self, node: ast.Assign, env: dict[str, Any]) -> None:
        value = self.value(node.value, env)
        if len(node.targets) > 1 and not isinstance(node.targets[0], ast.Name):
            value = env[_ASSIGNED] = self._in_memory(value, node)
        for target in node.targets:
            self.assign(target, value, env, node)
            if isinstance(target, ast.Name):  # which may have named it
                value = env[target.id]
        env.pop(_ASSIGNED, None)

    def _in_memory(self, value: Any, node: Any) -> Any:
        """A value of several targets, whose arrays are computed once, before the first of them."""
        if isinstance(value, Items):
            return type(value)(self._in_memory(v, node) for v in value)
        return self.as_view(value, node) if isinstance(value, Made | ArrayExpression) else value

    def assign(self, target: ast.expr, value: Any, env: dict[str, Any], node: Any) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(value, ArrayView) and value.ndim == 1:
                value = Items(self.load(value, (k,)) for k in range(len(target.elts)))
            if not isinstance(value, Items) or len(value) != len(target.elts):
                self.refuse(node, f"unpacking in {ast.unparse(node)}", "unpack shapes and tuples")
            if any(self._writes(part) for part in target.elts[:-1]):
                value = self.computed(self._apart(value, target, node), node)
            for part, item in zip(target.elts, value, strict=True):
                self.assign(part, item, env, node)
            return
        if isinstance(target, ast.Subscript):
            base = self.value(target.value, env)
            if not isinstance(base, ArrayView):
                self.refuse(node, f"an assignment to {ast.unparse(target)}", "assign to arrays")
            self._put(self._target(base, target, env), value, node)
            return
        if not isinstance(target, ast.Name):
            self.refuse(node, f"an assignment to {ast.unparse(target)}", "use names and arrays")
        env[target.id] = self._named(target.id, value, env, node)

    def _writes(self, target: ast.expr) -> bool:
        """Whether an assignment changes memory that is there."""
        return not isinstance(target, ast.Name) or (len(self.scopes), target.id) in self.storages

    def _apart(self, items: Items, target: ast.Tuple | ast.List, node: Any) -> Items:
        """Several values, with copies of arrays of iterations that an assignment gives new ones."""
        names = [n.id for n in target.elts if isinstance(n, ast.Name)]
        storages = [self.storages.get((len(self.scopes), name)) for name in names]
        values = list(items)
        for k, (item, part) in enumerate(zip(items, target.elts, strict=True)):
            own = storages[names.index(part.id)] if isinstance(part, ast.Name) else None
            if any(_shares(item, s.array) for s in storages if s is not None and s is not own):
                values[k] = self._own_copy(ast.unparse(part), item, node)
        return type(items)(values)

    def _own_copy(self, name: str, view: ArrayView, node: Any) -> ArrayView:
        """An array of its own for what is one in NumPy: Note [Shared copies] in ``sharing``."""
        own = self.allocated(name, self.copy_of(view)._replace(content=None), node)
        self.give(own, view, name, node)
        return own

    def computed(self, items: Items, node: Any) -> Items:
        """Several values, with the elements of arrays computed before anything is assigned."""
        values: list[Any] = []
        for item in items:
            if isinstance(item, Items):
                item = self.computed(item, node)
            elif isinstance(item, ArrayExpression) or (
                isinstance(item, Made) and item.content is not None
            ):
                item = self.copy_of(self.as_view(item, node))
            values.append(item)
        return type(items)(values)

    def _target(
        self, base: ArrayView, node: ast.Subscript, env: dict[str, Any]
    ) -> ArrayView | Selection:
        part = self.part(base, node, env)
        assert isinstance(part, ArrayView | Selection)
        return part

    def _taken(self, selection: Selection, node: Any) -> ArrayView:
        """The chosen elements as they are before an assignment, in an array of their own."""
        if selection.mask is not None:
            selection = Selection(selection.view, 0, tuple(self._places_of(selection.mask, node)))
        return self.stored_within(self.selected(selection), selection.view.shape, node)

    def _put(self, view: ArrayView | Selection, value: Any, node: Any) -> None:
        """Give an element or a part of an array a value."""
        if isinstance(view, Selection):
            self.fill_selected(view, value, node)
            return
        if isinstance(value, Made):
            value = self.allocated("part", value, node)
        if view.ndim:
            self.fill(view, value, node)
            return
        if not isinstance(value, SCALARS):
            self.refuse(node, f"an array assigned to an element in {ast.unparse(node)}", "use one")
        self.store(view.array, view.at(()), value, node)

    def _named(self, name: str, value: Any, env: dict[str, Any], node: Any) -> Any:
        """The value that a name gets."""
        group = self.scopes[-1].rotated.get(name)
        storage = self.storages.get((len(self.scopes), name))
        if storage is not None and isinstance(value, Made | ArrayView | ArrayExpression):
            return self._put_in_storage(name, storage, value, env, node)
        if isinstance(value, ArrayExpression):
            value = self.copy_of(value)
        if isinstance(value, Items):
            copies = [self.copy_of(v) if isinstance(v, ArrayExpression) else v for v in value]
            value = type(value)(
                self.allocated(name, v, node) if isinstance(v, Made) else v for v in copies
            )
        if isinstance(value, Made):
            if group is not None:
                return self._turning(group, name, value, node)
            return self.allocated(name, value, node)
        if self.is_text(value):
            self.refuse(node, f"{name} is a string", "use numbers")
        if not isinstance(value, SCALARS):
            return value
        if name in self.promoted and len(self.scopes) == 1:
            value = self.cast(value, self.promoted[name])
        if isinstance(value, str) and not any(_mentions(v, value) for v in env.values()):
            value = self.renamed(value, name)
        return value

    def _check_anew(self, name: str) -> None:
        """Read the loop around again if a branch makes an array of it anew that is read later."""
        depth, outer = self.around[-1] if self.around else (0, {})
        known = (depth, name) not in self.storages and isinstance(outer.get(name), ArrayView)
        if depth == len(self.scopes) and known and name in self.read_later():
            raise ReadAgain(name, "storage")

    def start_storage(self, name: str, env: dict[str, Any], node: Any) -> ArrayView:
        """Copy an array for the iterations that follow: Note [Arrays made anew]."""
        view = self._own_copy(name, env[name], node)
        self.storages[len(self.scopes), name] = view
        return view

    def _put_in_storage(
        self, name: str, storage: ArrayView, value: Any, env: dict[str, Any], node: Any
    ) -> ArrayView:
        """Assign an array that iterations make anew: Note [Arrays made anew]."""
        for other in self.read_later():
            if other != name and _shares(env.get(other), storage.array):
                self._check_anew(other)
                self.refuse(node, f"{name} becomes another array in a loop, and {other} is a part "
                            "of it", "copy that")  # fmt: skip
        dtype = value.dtype if isinstance(value, Made) else self.element_dtype(value)
        problem = self._difference(storage, dtype, value.shape, node)
        if problem is not None:
            self.refuse(node, f"{name} becomes an array of another {problem} in a loop",
                        "use another name, or assign to its elements")  # fmt: skip
        content = value
        if isinstance(value, Made):
            content = value.content if value.content is not None else 0
        if value is not storage and not (isinstance(value, Made) and value.maker == "empty"
                                         and value.content is None):  # fmt: skip
            shares = not isinstance(value, Made) or value.shares
            self.give(storage, content, name, node, shares=shares)
        return storage

    def _difference(
        self, view: ArrayView, dtype: np.dtype, shape: Sequence[Value], node: Any
    ) -> str | None:
        """In what an array is not like another one, or None; calls check lengths that they know."""
        if len(shape) != view.ndim or dtype != self.element_dtype(view):
            return "dtype or rank"
        for one, other in zip(view.shape, shape, strict=True):
            if self.unguarded(one) == self.unguarded(other):
                continue
            equal = Expression("==", (one, other))
            if not self.is_checked_by_calls(equal):
                return "length"
            self.check_lengths(one, other, node)
        return None

    def _raises(self, node: ast.If, condition: Value, env: dict[str, Any]) -> bool:
        """Read a branch of which one side is an error; whether it is one."""
        for side, rest, fulfilled in (
            (node.body, node.orelse, self.negation(condition)),
            (node.orelse, node.body, condition),
        ):
            if len(side) == 1 and isinstance(side[0], ast.Raise):
                self._check_at_call(side[0], fulfilled, *self._raised(side[0], env))
                self.statements(rest, env)
                return True
        return False

    def _do_AugAssign(self, node: ast.AugAssign, env: dict[str, Any]) -> None:
        if isinstance(node.target, ast.Subscript):
            base = self.value(node.target.value, env)
            if not isinstance(base, ArrayView):
                self.refuse(node, f"an assignment to {ast.unparse(node.target)}", "use arrays")
            view = self._target(base, node.target, env)
            value = self.value(node.value, env)
            if isinstance(view, Selection) or view.ndim:
                own = view.view if isinstance(view, Selection) else view
                self._check_in_place(own, value, node)
            if isinstance(view, Selection):
                self._put(view, self.binary(node, node.op, self._taken(view, node), value), node)
                return
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
                    self.store(view.array, view.at(()), value, node, add=True)
                    return
            old = self.load(view)
            self._put(view, self.binary(node, node.op, old, value), node)
            return
        if not isinstance(node.target, ast.Name):
            self.refuse(node, f"an assignment to {ast.unparse(node.target)}", "use names, arrays")
        load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        old = self.value(load, env)
        value = self.value(node.value, env)
        if isinstance(old, ArrayView):
            self._check_in_place(old, value, node)
        new = self.binary(node, node.op, old, value)
        if isinstance(old, ArrayView):  # the array itself changes
            self.fill(old, new, node)
            return
        self.assign(node.target, new, env, node)

    def _check_in_place(self, view: ArrayView, value: Any, node: ast.AugAssign) -> None:
        """Refuse ``a op= b`` of floats into an array that cannot hold them, as NumPy does."""
        own = self.element_dtype(view)
        given = value.dtype if isinstance(value, Made) else None
        if given is None and isinstance(value, (*SCALARS, ArrayView, ArrayExpression)):
            given = self.element_dtype(value)
        floats = isinstance(node.op, ast.Div) or (given is not None and given.kind in "fc")
        if own.kind in "biu" and floats:
            self.refuse(node, f"{ast.unparse(node)} puts floats into an array of {own.name}",
                        "make it of float64, or another array of the result")  # fmt: skip

    def _do_Return(self, node: ast.Return, env: dict[str, Any]) -> None:
        if node.value is None:
            self.results = []
            return
        value = self.value(node.value, env)
        if value is None:
            self.results = []
            return
        self.results = list(value) if isinstance(value, Items) else [value]
        kinds = (*SCALARS, ArrayView, ArrayExpression, Made)
        if len(self.scopes) == 1 and (
            self.is_text(value) or not all(isinstance(v, kinds) for v in self.results)
        ):
            self.refuse(node, f"{ast.unparse(node)}: a result that is no number and no array",
                        "return numbers, arrays")  # fmt: skip

    def _do_If(self, node: ast.If, env: dict[str, Any]) -> None:
        condition = self.truth(self.scalar(node.test, env))
        if not isinstance(condition, bool) and self._raises(node, condition, env):
            return
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
        sides = _Sides(node, blocks)
        ends = {
            name: self._joining(name, envs[0].get(name), envs[1].get(name), sides)
            for name in sorted(set(envs[0]) | set(envs[1]))
        }
        joined = self.joined(blocks, sides.pairs)
        labels = [label for label, *_ in joined]
        env |= {name: end(labels) for name, end in ends.items()}
        self.emit(KernelBranch(condition, blocks[0], blocks[1], joined))

    def _of_IfExp(self, node: ast.IfExp, env: dict[str, Any]) -> Any:
        condition = self.truth(self.scalar(node.test, env))
        if isinstance(condition, bool):
            return self.value(node.body if condition else node.orelse, env)
        before, values, blocks = self.block, list[Any](), list[Block]()
        for part in (node.body, node.orelse):
            self.block = Block(before.loop, before)
            value = self.value(part, env)
            is_unmade = isinstance(value, Made | ArrayExpression)
            values.append(self.as_view(value, node) if is_unmade else value)
            blocks.append(self.block)
        self.block = before
        sides = _Sides(node, blocks)
        end = self._joining("", values[0], values[1], sides)
        joined = self.joined(blocks, sides.pairs)
        self.emit(KernelBranch(condition, blocks[0], blocks[1], joined))
        value = end([label for label, *_ in joined])
        if value is None:
            self.refuse(node, f"{ast.unparse(node)} is not of one kind", "give two numbers, or two "
                        "arrays of the same shape")  # fmt: skip
        return value

    def _joining(
        self, name: str, then: Any, other: Any, sides: _Sides
    ) -> Callable[[Sequence[str]], Any]:
        """The function that gives a name's value after a branch, of the names of joined scalars."""
        if isinstance(then, ArrayView):
            if then.same_as(other):
                return lambda _: then
            if then.takes_turns_with(other):
                place = sides.pair(name, then.index[0], other.index[0])
                rest, order = then.index[1:], then.order
                return lambda labels: ArrayView(
                    then.array, [labels[place], *rest], order, rotates=True
                )
            if isinstance(other, ArrayView):
                self._check_anew(name)
                if not name or name in self.read_later():
                    view = self._joined_arrays(name, then, other, sides)
                    return lambda _: view
        elif isinstance(then, Items) and isinstance(other, Items) and len(then) == len(other):
            parts = [self._joining(name, a, b, sides) for a, b in zip(then, other, strict=True)]
            return lambda labels: type(then)(part(labels) for part in parts)
        elif then is other or (then == other and type(then) is type(other)):
            return lambda _: then
        numbers = [v for v in (then, other) if isinstance(v, SCALARS)]
        if (
            not numbers
            or isinstance(then, ArrayView | Items)
            or isinstance(other, ArrayView | Items)
        ):
            return lambda _: None
        if len(numbers) == 1:  # set on one side only: of any value on the other
            if not self.is_generated and name not in self.read_later():
                return lambda _: None
            zero = self.unset(self.dtype_of(numbers[0]))
            then, other = (then, zero) if numbers[0] is then else (zero, other)
        place = sides.pair(name, then, other)
        return lambda labels: labels[place]

    def _joined_arrays(
        self, name: str, then: ArrayView, other: ArrayView, sides: _Sides
    ) -> ArrayView:
        """An array for those that the sides of a branch give a name: Note [Arrays made anew]."""
        before, label = self.block, name or ast.unparse(sides.node)
        shapes = [v.shape for v in (then, other) if all(map(self._is_known, v.shape))]
        if not shapes:
            self.refuse(sides.node, f"{label} is an array whose length is computed in the branch",
                        "make it before the branch, and assign to its elements")  # fmt: skip
        dtype = self.element_dtype(then)
        view = self.allocated(name or "part", Made("empty", dtype, shapes[0]), sides.node)
        for block, value in zip(sides.blocks, (then, other), strict=True):
            problem = self._difference(view, self.element_dtype(value), value.shape, sides.node)
            if problem is not None:
                self.refuse(sides.node, f"{label} is an array of another {problem} in each branch",
                            "use another name in each, or assign to elements")  # fmt: skip
            self.block = block
            self.give(view, value, label, sides.node)
            self.block = before
        return view

    def _is_known(self, value: Value) -> bool:
        """Whether an integer is known in the block that is read."""
        homes = [
            self.arrays[n].home if n in self.arrays else self.homes[n] for n in names_in(value)
        ]
        return all(home is None or self.block.is_within(home) for home in homes)

    def _turning(self, group: str, name: str, made: Made, node: Any) -> ArrayView:
        """A place among arrays that take turns, for an array that is made."""
        if made.shares:
            raise NoTurns(self.scopes[-1].function, group)
        key = (self.scopes[-1], group)
        buffer = self.buffers.get(key)
        if buffer is None or buffer.home is not self.block:
            view = self.allocated(
                f"{name}_turns", Made("empty", made.dtype, (1, *made.shape)), node
            )
            statement = self.block.statements[-1]
            assert isinstance(statement, Allocate)
            buffer = self.buffers[key] = statement
            self.turning[buffer.array] = key
            count = 1
        else:
            array = self.arrays[buffer.array]
            if made.dtype != array.dtype or len(made.shape) != array.ndim - 1:
                raise NoTurns(self.scopes[-1].function, group)
            for own, other in zip(made.shape, buffer.shape[1:], strict=True):
                if self.unguarded(own) != self.unguarded(other):
                    equal = Expression("==", (own, other))
                    message = f"{name} and arrays that it takes turns with have different lengths, "
                    self.check_call(equal, message + "{} and {}", node, (own, other))
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


class _Sides:
    """The sides of a branch under reading.

    Attributes
    ----------
    pairs
        Scalars that are joined: what the user calls them, the value of each side.
    """

    def __init__(self, node: ast.If | ast.IfExp, blocks: Sequence[Block]) -> None:
        self.node, self.blocks = node, blocks
        self.pairs: list[tuple[str, Value, Value]] = []

    def pair(self, name: str, then: Any, other: Any) -> int:
        """Add a pair; its number."""
        self.pairs.append((name, then, other))
        return len(self.pairs) - 1


def _shares(value: Any, array: str) -> bool:
    """Whether what a name stands for is in the memory of an array."""
    if isinstance(value, Items):
        return any(_shares(v, array) for v in value)
    return isinstance(value, ArrayView) and value.array == array


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
