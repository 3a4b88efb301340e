"""Reading of functions: Python's syntax becomes the loop representation."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.emission import safe_name
from numgrad.codegen.adjoint.exits import without_exits
from numgrad.codegen.adjoint.iteration import LoopReader
from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.outputs import OutputLike, WrittenParameters
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Define,
    KernelArray,
    KernelFunction,
    KernelLoop,
    Load,
    Store,
    Value,
    blocks_of,
    walk,
)
from numgrad.codegen.adjoint.scopes import (
    TEXT,
    Scope,
    check_statements,
    is_docstring,
    rotated_names,
)
from numgrad.codegen.adjoint.sharing import stale_copy
from numgrad.codegen.adjoint.statements import NoTurns
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    Items,
    LocalFunction,
    Made,
)
from numgrad.codegen.dtypes import INT64
from numgrad.errors import NumgradKernelError

Kind = tuple[np.dtype, int]
"""The dtype and rank of an argument; a number has rank 0."""
MOST_AXES = 4
_DEEPEST = 40


class FunctionReader(LoopReader):
    """Reads a function for arguments of known dtypes and ranks."""

    def __init__(
        self,
        scope: Scope,
        kinds: Sequence[Kind],
        written: WrittenParameters,
        operations: Operations,
        unturned: Collection[tuple[Any, str]] = (),
    ) -> None:
        super().__init__(operations)
        self.scopes.append(scope)
        self.is_generated = hasattr(scope.function, TEXT)
        self.unturned = unturned
        scope.rotated = self._rotated(scope)
        own = _own_names(scope.parameters)
        self.written = frozenset(own[name] for name in written.names)
        self.reserved = set(own.values()) | {f"result{k}" for k in range(100)}
        passed = [name for name in scope.parameters if name not in written.made]
        env: dict[str, Any] = {}
        for user, (dtype, rank) in zip(passed, kinds, strict=True):
            name = own[user]
            if rank:
                self.arrays[name] = KernelArray(name, dtype, rank, "argument")
                env[user] = self.whole_view(name)
            else:
                self.dtypes[name] = INT64 if dtype.kind in "iu" else dtype
                self.homes[name] = self.top
                env[user] = name
        for user, declaration in written.made.items():
            env[user] = self._made_output(own[user], user, declaration, env)
        copies = self._with_turns(scope, env)
        while self.failed in self.reserved:
            self.failed += "_"
        self.reserved.add(self.failed)
        body = without_exits(scope.statements, scope.refuse)
        self.statements(body, env)
        returned = [self._materialized(v, scope.tree) for v in self.results]
        results, scalars = self._stored_results(returned, scope)
        results += [own[name] for name in written.made]
        for name, argument, view in copies:
            if name in written.names:
                self.fill(argument, view, scope.tree)
        if self.failures:
            results.append(self.failed)
            self.arrays[self.failed].shape = (len(self.failures),)
        self.result = KernelFunction(
            scope.name, [own[name] for name in passed], self._used_arrays(results), self.dtypes,
            self.homes, self.top, results, scalars, self.constants, self.checks,
            [own[name] for name in written.names], self.failures, self.failed,
        )  # fmt: skip
        self._check_writes(scope)
        number(self.result)
        self._check_copies(scope)

    # ---------------------------------------------------------------------- start and end

    def _rotated(self, scope: Scope) -> dict[str, str]:
        """The names of a function that take turns, with one of each set."""
        names = rotated_names(scope.tree.body)
        return {n: g for n, g in names.items() if (scope.function, g) not in self.unturned}

    def _made_output(
        self, name: str, user: str, declaration: OutputLike, env: dict[str, Any]
    ) -> ArrayView:
        """An array that is written and that callers do not pass."""
        lengths, dtype = self._declared(user, declaration, env, self.scopes[0].tree)
        self.arrays[name] = KernelArray(name, dtype, len(lengths), "result", None, tuple(lengths))
        return self.whole_view(name)

    def _declared(
        self, user: str, declaration: OutputLike, env: dict[str, Any], node: Any
    ) -> tuple[list[Value], np.dtype]:
        """The shape and dtype of an array that ``ng.like`` declares."""
        model = env[declaration.argument]
        is_array = isinstance(model, ArrayView)
        dtype = declaration.dtype or self.element_dtype(model)
        if declaration.shape is not None:
            lengths = [self._declared_length(n, user, env) for n in declaration.shape]
        elif is_array:
            lengths = list(model.shape)
        else:
            self.refuse(node, f"{user} is made like {declaration.argument}, which is a number",
                        "give it a shape")  # fmt: skip
        if len(lengths) > MOST_AXES:
            self.refuse(node, f"{user} has {len(lengths)} axes", f"give it at most {MOST_AXES}")
        return lengths, dtype

    def _declared_length(self, length: int | str, user: str, env: dict[str, Any]) -> Value:
        if isinstance(length, int):
            return length
        node = ast.parse(length, mode="eval").body
        for each in ast.walk(node):
            ast.copy_location(each, self.scopes[0].tree)
        before = len(self.block.statements)
        value = self.whole(node, env)
        if any(not isinstance(s, Define | Load) for s in self.block.statements[before:]):
            self.refuse(node, f"the length {length} of {user}", "make it of lengths and integers")
        return value

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

    def _materialized(self, value: Any, node: Any) -> Any:
        if isinstance(value, Made):
            return self.allocated("made", value, node)
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
                self.store(name, (0,), value, scope.tree)
        return results, scalars

    def _used_arrays(self, results: Sequence[str]) -> dict[str, KernelArray]:
        """The arrays that are left of those read, without those of loops that were read again."""
        made = {s.array for s in walk(self.top) if isinstance(s, Allocate)}
        return {name: a for name, a in self.arrays.items() if a.role != "local" or name in made}

    def _check_writes(self, scope: Scope) -> None:
        for s in walk(self.top):
            if not isinstance(s, Store):
                continue
            role = self.arrays[s.array].role
            if role == "argument" and s.array not in self.written:
                remedy = f'declare it: writes="{s.array}"'
                scope.refuse(s.line or 1, f"{s.array} is overwritten", remedy)
            if role == "constant":
                problem = f"{s.array} is captured and overwritten"
                scope.refuse(s.line or 1, problem, "pass it as argument")

    # -------------------------------------------------------------------------------- functions

    def _check_copies(self, scope: Scope) -> None:
        """Refuse what differs from NumPy where that has one array: Note [Shared copies]."""
        stale = stale_copy(self.top, self.copies, self.arrays)
        if stale is None:
            return
        copy, store = stale
        label, source = copy.label, str(copy.source).rstrip("_0123456789")
        what = f"{label} may share elements" + ("" if source == label else f" with {source}")
        remedy = f"assign to elements, as {label}[:] = ..., or copy it, {label}.copy()"
        scope.refuse(store.line or 1, f"{what}, and one of them is overwritten", remedy)

    def inline(self, node: Any, function: Any, arguments: Sequence[Any]) -> Any:
        scope = self.scopes[-1].captures.scope_of(function)
        if any(s.function is scope.function for s in self.scopes):
            self.refuse(node, f"{scope.name} calls itself", "write the recursion as a loop")
        if len(self.scopes) > _DEEPEST:
            self.refuse(node, "functions that call others without end", "write loops")
        arguments = [
            self.as_view(a, node) if isinstance(a, Made | ArrayExpression) else a for a in arguments
        ]
        definition = getattr(function, "definition", None)
        if isinstance(getattr(definition, "written", None), WrittenParameters):
            return self._inline_kernel(node, definition, arguments)
        if len(arguments) != len(scope.parameters):
            self.refuse(node, f"{scope.name} takes {len(scope.parameters)} arguments", "give them")
        return self.inlined(scope, dict(zip(scope.parameters, arguments, strict=True)))

    def _inline_kernel(self, node: Any, definition: Any, arguments: Sequence[Any]) -> Any:
        """Another kernel, which is a function: it overwrites copies and returns them."""
        scope, written = definition.scope, definition.written
        if len(arguments) != len(definition.parameters):
            self.refuse(node, f"{scope.name} takes {len(definition.parameters)} arguments",
                        "give them")  # fmt: skip
        env = dict(zip(definition.parameters, arguments, strict=True))
        outputs = []
        for name in written.names:
            if name in written.made:
                declaration = written.made[name]
                shape, dtype = self._declared(name, declaration, env, node)
                env[name] = self.allocated(name, Made("zeros", dtype, tuple(shape)), node)
            elif isinstance(env[name], ArrayView):
                env[name] = self.allocated(name, self.copy_of(env[name]), node)
            outputs.append(env[name])
        results = self.inlined(scope, dict(env))
        returned = [] if results is None else results if isinstance(results, Items) else [results]
        values = [*returned, *outputs]
        return values[0] if len(values) == 1 else Items(values)

    def inlined(self, scope: Scope, env: dict[str, Any]) -> Any:
        check_statements(scope)
        scope.rotated = self._rotated(scope)
        return self._run(without_exits(scope.statements, scope.refuse), scope, env)

    def _run(self, body: list[ast.stmt], scope: Scope, env: dict[str, Any]) -> Any:
        outer, self.results = self.results, []
        promoted, self.promoted = self.promoted, {}
        following, self.following = self.following, []
        self.scopes.append(scope)
        try:
            self.statements(body, env)
        finally:
            self.scopes.pop()
            self.promoted, self.following = promoted, following
        results, self.results = self.results, outer
        if not results:
            return None
        return results[0] if len(results) == 1 else Items(results)

    def inline_local(
        self, node: Any, function: LocalFunction, arguments: Sequence[Any], env: dict[str, Any]
    ) -> Any:
        tree, scope = function.tree, function.scope
        given = tree.args
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        if given.vararg or given.kwarg or given.kwonlyargs or given.defaults:
            self.refuse(node, "a function in a function with defaults or *", "define it outside")
        if len(names) != len(arguments):
            self.refuse(node, f"the arguments of {ast.unparse(node)}", "give each parameter one")
        if sum(s is scope for s in self.scopes) > _DEEPEST:
            self.refuse(node, "functions that call others without end", "write loops")
        around = env if scope is self.scopes[-1] else function.env
        inner = around | dict(zip(names, arguments, strict=True))
        if isinstance(tree, ast.Lambda):
            self.scopes.append(scope)
            try:
                return self.value(tree.body, inner)
            finally:
                self.scopes.pop()
        body = [s for s in tree.body if not is_docstring(s)]
        return self._run(without_exits(body, scope.refuse), scope, inner)


def _own_names(parameters: Sequence[str]) -> dict[str, str]:
    """Names of parameters in programs, by the user's."""
    own: dict[str, str] = {}
    for name in parameters:
        label = safe_name(name)
        while label != name and label in (*parameters, *own.values()):
            label += "_own"
        own[name] = label
    return own


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
    scope: Scope, kinds: Sequence[Kind], written: WrittenParameters, operations: Operations
) -> KernelFunction:
    """Read a function for arguments of these kinds.

    Raises
    ------
    NumgradKernelError
        If something in it is not of the language of kernels.
    """
    unturned: set[tuple[Any, str]] = set()
    while True:
        try:
            return FunctionReader(scope, kinds, written, operations, unturned).result
        except NoTurns as again:
            unturned.add((again.function, again.group))
        except RecursionError as error:
            raise NumgradKernelError(
                f"{scope.name}: is nested too deep; write it in parts"
            ) from error
