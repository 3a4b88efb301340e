"""Python functions as text: their syntax, and the values that names in them stand for."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from numgrad.errors import NumgradKernelError

TEXT = "__kernel_text__"
"""Attribute of a function that was made from text: that text."""


@dataclass(eq=False)
class Scope:
    """A function under reading.

    Attributes
    ----------
    function
        The Python function; ``tree`` is its syntax, ``file`` and ``first`` where that begins.
    """

    function: Callable[..., Any]
    tree: ast.FunctionDef
    file: str = ""
    first: int = 1
    rotated: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def names(self) -> Mapping[str, Any]:
        """Globals and enclosed variables, as they are now."""
        return _names_around(self.function)

    @property
    def parameters(self) -> list[str]:
        given = self.tree.args
        return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]

    @property
    def defaults(self) -> dict[str, Any]:
        """Values of parameters that need not be given."""
        values = self.function.__defaults__ or ()
        given = self.tree.args
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        known = dict(zip(names[len(names) - len(values) :], values, strict=True))
        return known | (self.function.__kwdefaults__ or {})

    @property
    def statements(self) -> list[ast.stmt]:
        """The body without its docstring."""
        return [s for s in self.tree.body if not is_docstring(s)]

    def refuse(self, node: Any, problem: str, remedy: str) -> NoReturn:
        """Raise for a node of the syntax, or a number of a line."""
        raise NumgradKernelError(f"{self.name}: {problem}, {self.line(node)}; {remedy}")

    def line(self, node: Any) -> str:
        """Where a node of the syntax, or a line of the text, is in the user's file."""
        line = (node if isinstance(node, int) else getattr(node, "lineno", 1)) + self.first - 1
        return f"line {line} of {self.file}" if self.file else f"line {line}"


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a constant alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def plain_function(function: Any) -> Any:
    """The Python function of a compiled one."""
    return getattr(function, "py_func", function)


def scope_of(function: Any) -> Scope:
    """Read the text of a function.

    Raises
    ------
    NumgradKernelError
        If there is none, or it is no plain ``def``.
    """
    function = plain_function(function)
    name = getattr(function, "__name__", repr(function))
    file, first = "", 1
    if hasattr(function, TEXT):
        text = getattr(function, TEXT)
    else:
        try:
            lines, first = inspect.getsourcelines(function)
            text = textwrap.dedent("".join(lines))
            file = inspect.getsourcefile(function) or ""
        except (OSError, TypeError) as error:
            raise NumgradKernelError(
                f"{name}: the text of the function is not to be found; define it in a file or "
                "a notebook, as a def"
            ) from error
    try:
        tree = ast.parse(text).body[0]
    except SyntaxError:  # a lambda in the middle of a line
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise NumgradKernelError(f"{name}: is no function of several lines; write it as a def")
    scope = Scope(function, tree, file, first)
    given = tree.args
    if given.vararg or given.kwarg:
        scope.refuse(tree, "parameters by *", "list them one by one")
    return scope


def _names_around(function: Callable[..., Any]) -> Mapping[str, Any]:
    enclosed = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            enclosed[name] = cell.cell_contents
        except ValueError:  # assigned later than the function is read
            continue
    return ChainMap(enclosed, function.__globals__)


def assigned_names(statements: Sequence[ast.AST]) -> list[str]:
    """The names that statements assign to, in order."""
    names: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = None
    return list(names)


def rotated_names(statements: list[ast.stmt]) -> dict[str, str]:
    """Names that loops, or exchanges in branches, assign to one another, with one of the set."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    around = (ast.For, ast.While, ast.If)
    for outer in (n for s in statements for n in ast.walk(s) if isinstance(n, around)):
        for node in ast.walk(outer):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                if isinstance(outer, ast.If) and not isinstance(target, ast.Tuple):
                    continue
                left = target.elts if isinstance(target, ast.Tuple) else [target]
                value = node.value
                right = value.elts if isinstance(value, ast.Tuple) else [value]
                if len(left) != len(right):
                    continue
                for a, b in zip(left, right, strict=True):
                    if isinstance(a, ast.Name) and isinstance(b, ast.Name) and a.id != b.id:
                        leader[find(a.id)] = find(b.id)
    return {name: find(name) for name in leader}


def returned_count(scope: Scope) -> int:
    """How many values a function returns, as its returns are written."""
    for node in ast.walk(scope.tree):
        if isinstance(node, ast.Return) and node.value is not None:
            if isinstance(node.value, ast.Tuple | ast.List):
                return len(node.value.elts)
            return int(not (isinstance(node.value, ast.Constant) and node.value.value is None))
    return 0


_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("try", "check before the call"),
    ast.With: ("with", "write it around the call"),
    ast.ClassDef: ("a class", "use numbers and arrays"),
    ast.Global: ("global", "return the value"),
    ast.Nonlocal: ("nonlocal", "return the value"),
    ast.Import: ("an import", "import it outside"),
    ast.ImportFrom: ("an import", "import it outside"),
    ast.Yield: ("yield", "write to an array"),
    ast.YieldFrom: ("yield", "write to an array"),
    ast.Await: ("await", "write a plain function"),
    ast.Dict: ("a dict", "use arrays"),
    ast.Set: ("a set", "use arrays"),
    ast.SetComp: ("a comprehension", "write the loop"),
    ast.DictComp: ("a comprehension", "write the loop"),
    ast.JoinedStr: ("a string", "use numbers"),
    ast.NamedExpr: ("an assignment in an expression", "assign it before"),
    ast.Delete: ("del", "leave it out"),
}


def check_statements(scope: Scope) -> None:
    """Raise for what is not of the language of kernels, whatever the dtypes."""
    for statement in scope.statements:
        for node in _walk_code(statement):
            refusal = _REFUSED.get(type(node))
            if refusal is not None:
                scope.refuse(node, *refusal)


def _walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it, without messages of errors."""
    yield node
    if isinstance(node, ast.Raise):
        return
    parts = [node.test] if isinstance(node, ast.Assert) else ast.iter_child_nodes(node)
    for part in parts:
        yield from _walk_code(part)
