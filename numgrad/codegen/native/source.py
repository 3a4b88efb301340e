"""A kernel's text, the functions of the library that it calls, and the module made of them."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import linecache
import textwrap
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np

from numgrad.codegen.native import lines as lines_alike
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.syntax import calls, is_straight, nodes, variables
from numgrad.dataclass import dataclass

_TYPES = {
    name: np.dtype("bool" if name == "boolean" else name)
    for name in (
        "boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float32", "float64", "complex64", "complex128",
    )
}  # fmt: skip
_CONSTRUCTORS = {name: dtype.type for name, dtype in _TYPES.items()}
_ALLOCATING = ("empty", "zeros", "empty_like")
PRANGE = object()
"""The value of the name ``prange``."""
THREADS = object()
"""The value of the name ``get_num_threads``."""
_NUMBA = {**_TYPES, "prange": PRANGE, "get_num_threads": THREADS}
"""Names that texts import from Numba."""


@dataclass(frozen=True, eq=False)
class SourceFunction:
    """A function whose body is translated.

    Attributes
    ----------
    tree
        Its syntax.
    look_up
        The value of a name that is not local.
    library
        Whether it belongs to the kernel library and not to the kernel's text.
    text
        What it is written as, if it is of the kernel's text.
    """

    name: str
    tree: ast.FunctionDef
    look_up: Callable[[str], Any]
    library: bool
    contract: bool = False
    text: str = ""

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The body without its docstring."""
        first = self.tree.body[0]
        documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return self.tree.body[1:] if documented else self.tree.body

    @cached_property
    def size(self) -> int:
        """How many nodes the syntax has."""
        return sum(len(nodes(s)) for s in self.statements)

    @cached_property
    def whole_size(self) -> int:
        """The same with the functions of the library that it calls, once for each call."""
        total = self.size
        for call in (c for s in self.statements for c in calls(s)):
            if isinstance(call.func, ast.Name):
                try:
                    called = self.look_up(call.func.id)
                except AttributeError:  # a local name
                    continue
                if hasattr(called, "py_func"):
                    total += library_function(called.py_func, False).whole_size
        return total

    @cached_property
    def straight(self) -> bool:
        """Whether the statements run one after the other, to a result at the end."""
        return is_straight(self.statements)

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names that need memory."""
        return variables(self.tree)

    @cached_property
    def allocates(self) -> bool:
        """Whether it makes arrays of its own."""
        if self.text:  # which may be long
            return any(f".{name}(" in self.text for name in _ALLOCATING)
        attributes = (node for node in nodes(self.tree) if isinstance(node, ast.Attribute))
        return any(node.attr in _ALLOCATING for node in attributes)


@cache
def library_function(function: Callable[..., Any], contract: bool) -> SourceFunction:
    """A Python function of the kernel library."""
    tree = ast.parse(textwrap.dedent(_text_of(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise Unsupported(f"{function.__name__} is not a function of several lines")
    closed = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    given = dict(closed)

    def look_up(name: str) -> Any:
        if name in given:
            return given[name]
        if name in function.__globals__:
            return function.__globals__[name]
        return getattr(builtins, name)

    return SourceFunction(function.__name__, tree, look_up, library=True, contract=contract)


def _text_of(function: Callable[..., Any]) -> str:
    """The lines of a function, found by what is indented further: ``inspect`` reads every token."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    if not lines:
        return inspect.getsource(function)
    last = max(number for _, _, number in code.co_lines() if number is not None)
    end, margin = last - code.co_firstlineno + 1, _indentation(lines[0])
    for line in lines[end:]:
        if line.strip() and _indentation(line) <= margin:
            break
        end += 1
    return "".join(lines[:end])


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


class KernelText:
    """A kernel's text: its functions, constants and imports."""

    def __init__(self, text: str) -> None:
        self._imported: dict[str, tuple[str, str]] = {}
        self._constants: dict[str, Any] = {"np": np}
        self.functions: dict[str, SourceFunction] = {}
        lines = text.split("\n")
        nodes = lines_alike.parse(text)
        ends = [node.lineno - 1 for node in nodes[1:]]
        for node, end in zip(nodes, [*ends, len(lines)], strict=True):
            self._take(node, "\n".join(lines[node.lineno - 1 : end]))

    def _take(self, node: ast.stmt, text: str = "") -> None:
        if isinstance(node, ast.Import):
            if [(a.name, a.asname) for a in node.names] != [("numpy", "np")]:
                raise Unsupported("an import")
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            for name in node.names:
                self._imported[name.asname or name.name] = (node.module, name.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            code = compile(ast.Expression(node.value), "<kernel>", "eval")
            self._constants[node.targets[0].id] = eval(code, {"np": np, **_CONSTRUCTORS})
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            if not isinstance(node.value, ast.Tuple):
                raise Unsupported("an assignment to several names")
            for name, value in zip(node.targets[0].elts, node.value.elts, strict=True):
                self._take(ast.Assign([name], value))
        elif isinstance(node, ast.FunctionDef):
            contract = any(
                isinstance(d, ast.Name) and d.id == "contracted" for d in node.decorator_list
            )
            self.functions[node.name] = SourceFunction(
                node.name, node, self.look_up, False, contract, text
            )
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise Unsupported(type(node).__name__)

    def look_up(self, name: str) -> Any:
        """The value of a name."""
        if name in self.functions:
            return self.functions[name]
        if name in self._constants:
            return self._constants[name]
        if name not in self._imported:
            return getattr(builtins, name)
        module, target = self._imported[name]
        if module == "numba":
            return _NUMBA[target]
        return getattr(importlib.import_module(module), target)
