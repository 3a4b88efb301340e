"""Texts as compiled functions of arrays."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.adjoint.operations import INSTRUCTIONS, NAMED, Operations
from numgrad.codegen.adjoint.parallel import IMPORTS, ParallelText
from numgrad.codegen.adjoint.representation import KernelFunction
from numgrad.codegen.adjoint.vectors import NameFacts, VectorText, vector_form
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.library import COMPLEX_LIBRARY, EXTERNALS, LIBRARY, SLOW_FOR_ALL, WITH_RARE
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.kernel import CHECK_BOUNDS
from numgrad.codegen.native.signature import parse
from numgrad.errors import NumgradRuntimeError

_COLUMNS = ("::1", ":,::1", ":,:,::1", ":,:,:,::1", ":,:,:,:,::1")


class Text:
    """A text with the dtypes and ranks of what it takes; compiled when it is first called.

    Attributes
    ----------
    plain
        The text as it was written: a definition of ``kernel``.
    kinds
        For each argument its dtype and rank; 0 for a number.
    """

    def __init__(
        self,
        name: str,
        plain: str,
        kinds: Sequence[tuple[np.dtype, int]],
        operations: Operations,
        facts: NameFacts,
    ) -> None:
        self.name, self.plain, self.kinds, self.operations = name, plain, kinds, operations
        self.facts = facts

    def _in_vectors(self, source: str) -> VectorText:
        """A text with its innermost loops in vector form; as it is if indices are checked."""
        return VectorText(source, []) if CHECK_BOUNDS else vector_form(source, self.facts)

    @cached_property
    def source(self) -> str:
        """The text as a person reads it."""
        return self._in_vectors(self.plain).source

    @cached_property
    def parallel(self) -> ParallelText:
        """The text with its parallel loops cut into chunks."""
        return ParallelText(self.plain)

    @cached_property
    def vectors(self) -> VectorText:
        """The text as it is compiled: parallel loops in chunks, innermost ones in vector form."""
        return self._in_vectors(self.parallel.text)

    @cached_property
    def whole(self) -> tuple[str, set[str]]:
        """The text with imports and the functions that it calls, and what the linker finds."""
        text = self.operations.with_definitions(self.vectors.source)
        imports = [
            "import numpy as np",
            "from numgrad.codegen.intrinsics import add_any_order, grow, growing",
        ]
        if self.parallel.is_parallel:
            imports += IMPORTS
        functions: list[str] = []
        externals: set[str] = set()
        for operation, suffix in sorted(set(NAMED.findall(text))):
            if f"{operation}_{suffix}" in self.operations.definitions:
                continue
            if f"def {operation}_{suffix}(" in text:
                continue
            imported, defined, symbols = _bound(operation, suffix)
            imports += imported
            functions += defined
            externals |= symbols
        return "\n".join([*imports, "", *functions, text]), externals

    @cached_property
    def serial(self) -> str:
        """The whole text for one thread; parallel loops have the same chunks, so the same bits."""
        return one_by_one(self.whole[0]) if self.parallel.is_parallel else self.whole[0]

    @cached_property
    def signature(self) -> str:
        types = [
            type_name(dtype) + (f"[{_COLUMNS[rank - 1]}]" if rank else "")
            for dtype, rank in self.kinds
        ]
        return f"void({', '.join(types)})"

    def scalar_loops(self) -> dict[str, str]:
        """Innermost loops that are not compiled to vectors: by the name of their index, why."""
        source, _ = self.whole
        from numgrad.codegen.native.translation import translated_module

        module = translated_module(source, parse(self.signature), parallel=True)
        return module.scalar_loops | {one.variable: one.reason for one in self.vectors.scalar}

    @cached_property
    def entry(self) -> Callable[..., Any]:
        """The compiled function."""
        source, externals = self.whole
        is_parallel = self.parallel.is_parallel
        try:
            entry = compile_kernel(
                re.sub(r"\W", "_", self.name),
                source,
                self.signature,
                externals=sorted(externals),
                parallel=is_parallel,
                nogil=True,
                hosted=False,
            ).entry
        except Unsupported as reason:
            raise fault(self.name, f"its program is not compiled, as it has {reason}") from reason
        return threads.ChunkLauncher(entry) if is_parallel else entry


class _OneByOne(ast.NodeTransformer):
    """Makes parallel loops of a function serial: variables of a task are its own, and kept.

    ``names`` are those assigned so far.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if isinstance(node.ctx, ast.Store):
            self.names.add(node.id)
        return node

    def visit_For(self, node: ast.For) -> Any:
        before = set(self.names)
        self.generic_visit(node)
        call = node.iter
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "prange"):
            return node
        stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        own = {n.id for n in stored if isinstance(n.ctx, ast.Store)} & before
        call.func = ast.Name("range", ast.Load())
        kept = [f"{name}__kept = {name}" for name in sorted(own)]
        again = [f"{name} = {name}__kept" for name in sorted(own)]
        return [*ast.parse("\n".join(kept)).body, node, *ast.parse("\n".join(again)).body]


def one_by_one(source: str) -> str:
    """A text whose parallel loops are serial."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            _OneByOne().visit(node)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def fault(name: str, problem: str) -> NumgradRuntimeError:
    """An error for a program that was written wrongly here, whatever the user's function is."""
    return NumgradRuntimeError(
        f"{name}: {problem}; this is a fault of numgrad, not of your function: please report it "
        "with the text of the function"
    )


def _bound(operation: str, suffix: str) -> tuple[list[str], list[str], set[str]]:
    """Imports and definitions that bind a function of texts, and symbols for the linker."""
    name = f"{operation}_{suffix}"
    if suffix.startswith("c"):
        symbols = set(EXTERNALS.get(name, ()))
        return [f"from {COMPLEX_LIBRARY[operation]} import {name}"], [], symbols
    if operation in INSTRUCTIONS:
        imported = f"from numgrad.codegen.intrinsics import {INSTRUCTIONS[operation]} as {name}"
        return [imported], [], set()
    module, function = LIBRARY[operation]
    symbols = set(EXTERNALS.get(operation, ()))
    if operation not in WITH_RARE:
        return [f"from {module} import {function}_{suffix} as {name}"], [], symbols
    if operation in SLOW_FOR_ALL:
        return [f"from {module} import {function}_slow_{suffix} as {name}"], [], symbols
    imports = [
        f"from {module} import {function}{form}_{suffix} as {operation}{form}_{suffix}_"
        for form in ("", "_rare", "_slow")
    ]
    choice = (
        f"def {name}(a):\n"
        f"    return {operation}_slow_{suffix}_(a) if {operation}_rare_{suffix}_(a) "
        f"else {operation}_{suffix}_(a)\n"
    )
    return imports, [choice], symbols


def kinds_of(function: KernelFunction, names: Sequence[str]) -> list[tuple[np.dtype, int]]:
    """The dtype and rank of parameters, captured arrays and results."""
    kinds = []
    for name in names:
        array = function.arrays.get(name)
        kinds.append((array.dtype, array.ndim) if array else (function.dtypes[name], 0))
    return kinds
