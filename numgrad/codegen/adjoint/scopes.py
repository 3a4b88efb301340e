"""Python functions as text: their syntax, and the values that names in them stand for.

Note [Captured values]
----------------------
What a kernel reads from outside, of itself and of functions that it calls, is read once, when it is
first called, and arrays are copied: every later specialisation, derivative and batch has the same
values. So globals, enclosed variables, attributes and the texts of functions are looked up by
``CapturedValues`` alone, whatever the dtypes. A first call that is refused settles nothing. A
kernel in a kernel has its own values, as it has where it is called by itself.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from numgrad.dataclass import dataclass
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
    lengths
        Expressions beside the tree that are read with its names.
    """

    function: Callable[..., Any]
    tree: ast.FunctionDef
    file: str = ""
    first: int = 1
    rotated: dict[str, str] = field(default_factory=dict)
    lengths: tuple[str, ...] = ()
    _names: dict[str, Any] | None = None
    _defaults: dict[str, Any] | None = None
    _captures: CapturedValues | None = None

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def names(self) -> Mapping[str, Any]:
        """Globals and enclosed variables: Note [Captured values]."""
        if self._names is None:
            self.captures.read(self)
        assert self._names is not None
        return self._names

    @property
    def captures(self) -> CapturedValues:
        """Values read from outside, by the function and by those that a kernel calls."""
        if self._captures is None:
            self._captures = CapturedValues()
        return self._captures

    def capture(self) -> None:
        """Read what is outside, unless a program was made of it."""
        if self._captures is None or self._captures.is_open:
            self._captures = captures = CapturedValues()
            captures.is_open = False  # for kernels that call each other
            try:
                captures.read(self)
            finally:
                captures.is_open = True

    @property
    def parameters(self) -> list[str]:
        given = self.tree.args
        return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]

    @property
    def defaults(self) -> dict[str, Any]:
        """Values of parameters that need not be given."""
        if self._defaults is not None:
            return self._defaults
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


class CapturedValues:
    """The values that a kernel reads from outside: Note [Captured values].

    Attributes
    ----------
    is_open
        Whether the next call reads them anew, as no program was made of them.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._values: dict[int, tuple[Any, Any]] = {}
        self._attributes: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._scopes: dict[Any, Scope] = {}
        self._kernels: list[CapturedValues] = []

    def settle(self) -> None:
        """Keep the values from now on, those of kernels that are called too."""
        if self.is_open:
            self.is_open = False
            self._values.clear()  # which holds the arrays that were copied
            for inner in self._kernels:
                inner.settle()

    def read(self, scope: Scope) -> None:
        """Look up all names of a function, and what it reaches by them."""
        around, own = _names_around(scope.function), _local_names(scope.function.__code__)
        nodes = [n for s in (*scope.tree.body, *map(ast.parse, scope.lengths)) for n in ast.walk(s)]
        names = dict.fromkeys(n.id for n in nodes if isinstance(n, ast.Name) and n.id not in own)
        values = scope._names = {n: self.value(around[n]) for n in names if n in around}
        scope._defaults = None
        scope._defaults = {n: self.value(v) for n, v in scope.defaults.items()}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                self._value_of(node, values)

    def value(self, value: Any) -> Any:
        """A value as it was captured: a copy of an array, a number for one without axes."""
        if id(value) not in self._values:
            self._values[id(value)] = value, value  # a list may contain itself
            copy = value
            if isinstance(value, np.ndarray):
                copy = np.array(value, order="C") if value.ndim else value[()]
            elif isinstance(value, tuple | list):
                copy = (list if isinstance(value, list) else tuple)(map(self.value, value))
            elif _is_followed(value):
                with suppress(NumgradKernelError):  # raised where it is called
                    self.scope_of(value)
            self._values[id(value)] = value, copy
        return self._values[id(value)][1]

    def attribute(self, base: Any, name: str) -> Any:
        """An attribute of a value from outside."""
        key = id(base), name
        if key not in self._attributes:
            self._attributes[key] = base, self.value(getattr(base, name))
        return self._attributes[key][1]

    def scope_of(self, function: Any) -> Scope:
        """A function or kernel that is called, to be read once more."""
        scope = _kernel_scope(function)
        if scope is not None:
            if scope.captures not in (self, *self._kernels):
                scope.capture()
                self._kernels.append(scope.captures)
            return replace(scope)
        function = getattr(function, "__kernel__", None) or plain_function(function)
        scope = self._scopes.get(function)
        if scope is None:
            scope = self._scopes[function] = scope_of(function)
            scope._captures = self
            self.read(scope)
        return replace(scope)

    def _value_of(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        """The value of a name, or of attributes of one; None if it is not from outside."""
        if isinstance(node, ast.Name):
            return values.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        base = self._value_of(node.value, values)
        if base is None or hasattr(base, "__array__") or not hasattr(base, node.attr):
            return None
        return self.attribute(base, node.attr)


def _kernel_scope(value: Any) -> Scope | None:
    scope = getattr(getattr(value, "definition", None), "scope", None)
    return scope if isinstance(scope, Scope) else None


def _is_followed(value: Any) -> bool:
    """Whether a value is a kernel, or a function of users or of another library."""
    if not callable(value) or isinstance(value, type):
        return False
    library = (getattr(value, "__module__", None) or "").partition(".")[0]
    is_function = inspect.isfunction(plain_function(value))
    return _kernel_scope(value) is not None or (
        is_function and library not in ("numpy", "math", "numgrad")
    )


def _local_names(code: CodeType) -> set[str]:
    """The names of a function that stand for nothing from outside."""
    used, inner = set(code.co_names), [c for c in code.co_consts if isinstance(c, CodeType)]
    for part in inner:
        used.update(part.co_names)
        inner += [c for c in part.co_consts if isinstance(c, CodeType)]
    return {*code.co_varnames, *code.co_cellvars} - used


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
