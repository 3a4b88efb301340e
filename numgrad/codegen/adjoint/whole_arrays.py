"""Statements of whole arrays as loops: expressions by elements, local arrays, products."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.array_functions import PRODUCTS
from numgrad.codegen.adjoint.emission import SCALARS, StatementEmitter, safe_name
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    CallCheck,
    Expression,
    KernelArray,
    KernelLoop,
    Load,
    Store,
    Value,
)
from numgrad.codegen.adjoint.sharing import SharedCopy
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    IndexSpan,
    Items,
    Made,
    Reshaped,
)
from numgrad.codegen.dtypes import COMPLEX64, FLOAT32, INT64


class ArrayEmitter(StatementEmitter):
    """Adds loops for statements of whole arrays."""

    def whole_view(self, array: str) -> ArrayView:
        """All of an array."""
        known = self.arrays[array]
        lengths = known.shape or [Expression("shape", (array, k)) for k in range(known.ndim)]
        return ArrayView(array, [IndexSpan(0, length) for length in lengths])

    def by_elements(
        self,
        apply: Callable[..., Value],
        operands: Sequence[Any],
        node: Any,
        loops: bool = False,
    ) -> ArrayExpression:
        """An operation on each element of arrays and numbers; ``loops`` if it takes a loop."""
        if not all(isinstance(o, (*SCALARS, ArrayView, ArrayExpression)) for o in operands):
            self.refuse(node, f"an operand of {ast.unparse(node)} is no number", "use numbers")
        arrays = [o for o in operands if isinstance(o, ArrayView | ArrayExpression)]
        longest = max(arrays, key=lambda a: a.ndim)
        operands = [self._once(o, longest.shape, node) for o in operands]
        arrays = [o for o in operands if isinstance(o, ArrayView | ArrayExpression)]
        loops = loops or any(isinstance(a, ArrayExpression) and a.loops for a in arrays)
        reads: set[str] = set()
        for a in arrays:
            reads |= {a.array} if isinstance(a, ArrayView) else a.reads

        def at(places: Sequence[Value]) -> Value:
            return apply(*[self.element(operand, places) for operand in operands])

        shape = list(longest.shape)
        for a in arrays:
            for axis, length in enumerate(a.shape, len(shape) - a.ndim):
                if shape[axis] == 1:
                    shape[axis] = length
                elif length != 1:
                    shape[axis] = self.check_lengths(shape[axis], length, node)
        return ArrayExpression(tuple(shape), at, reads, loops)

    def _once(self, content: Any, shape: Sequence[Value], node: Any) -> Any:
        """An expression, in an array if its elements take loops and would be computed again."""
        if not isinstance(content, ArrayExpression) or not content.loops:
            return content
        own = shape[len(shape) - content.ndim :]
        repeats = any(a == 1 and b != 1 for a, b in zip(content.shape, own, strict=True))
        if content.ndim == len(shape) and not repeats:
            return content
        return self.stored(content, node)

    def check_lengths(self, one: Value, other: Value, node: Any) -> Value:
        """The length of two axes, of which it is an error if they differ.

        Where the kernel itself compares them it is the lesser: nothing is read out of range before
        the call raises.
        """
        if one == other:
            return one
        if self.unguarded(one) != self.unguarded(other):
            equal = Expression("==", (one, other))
            message = "arrays have different lengths, {} and {}"
            if self.check_call(equal, message, node, (one, other)):
                return one
        length = Expression("min", (one, other))
        self.guarded[length] = one
        return length

    def beside_arrays(self, operands: Sequence[Any]) -> list[Any]:
        """Operands of which integers beside arrays of single precision are of it, as in NumPy."""
        kinds = (ArrayView, ArrayExpression)
        dtypes = [self.element_dtype(o) for o in operands if isinstance(o, kinds)]
        if np.result_type(*dtypes) not in (FLOAT32, COMPLEX64):
            return list(operands)
        return [
            o if isinstance(o, kinds) or self.dtype_of(o).kind in "fc" else self.cast(o, FLOAT32)
            for o in operands
        ]

    def unguarded(self, length: Value) -> Value:
        """A length, as far as nothing fails that the kernel checks."""
        while length in self.guarded:
            length = self.guarded[length]
        return length

    def check_call(
        self, condition: Value, message: str, node: Any, operands: tuple[Value, ...] = ()
    ) -> bool:
        """Have calls raise where a condition is not so; whether they know it beforehand.

        If they do not, as in a branch or of what is computed, the kernel counts failures.
        """
        where = self.scopes[-1].line(node)
        if self.is_checked_by_calls(condition):
            self.checks.append(CallCheck(condition, f"{message}, {where}", operands))
            return True
        if self.failed not in self.arrays:
            self.arrays[self.failed] = KernelArray(self.failed, INT64, 1, "result")
        place = len(self.failures)
        self.failures.append(f"{message.replace(', {} and {}', '')}, {where}")
        fails = Expression("int", (Expression("not", (condition,)),))
        self.emit(Store(self.failed, (place,), fails, add=True))
        return False

    def is_checked_by_calls(self, condition: Value) -> bool:
        """Whether a condition follows from arguments, and what is read is in no branch."""
        block = self.block
        while block.parent is not None:
            if block.loop is None or block.loop.body is not block:
                return False
            block = block.parent
        return self.follows_from_arguments(condition)

    def follows_from_arguments(self, value: Any) -> bool:
        """Whether a call knows a value before the kernel runs."""
        raise NotImplementedError

    def element(self, content: Any, places: Sequence[Value]) -> Value:
        """An element of what is broadcast to more places, or a number."""
        if not isinstance(content, ArrayView | ArrayExpression):
            return content
        own = places[len(places) - content.ndim :]
        own = [0 if n == 1 else p for n, p in zip(content.shape, own, strict=True)]
        return self.load(content, own) if isinstance(content, ArrayView) else content.at(own)

    def check_fits(
        self, content: ArrayView | ArrayExpression, shape: Sequence[Value], node: Any
    ) -> list[Value]:
        """The lengths of a place that an array is assigned to, which must be those of the array."""
        if content.ndim > len(shape):
            self.refuse(node, "an array of more axes than what it is assigned to", "write the loop")
        lengths = list(shape)
        for axis, length in enumerate(content.shape, len(shape) - content.ndim):
            if length != 1:
                lengths[axis] = self.check_lengths(shape[axis], length, node)
        return lengths

    def elements(self, content: ArrayView | ArrayExpression) -> ArrayExpression:
        """An array as an expression."""
        if isinstance(content, ArrayExpression):
            return content
        return ArrayExpression(content.shape, lambda p: self.load(content, p), {content.array})

    def stored(self, elements: ArrayExpression, node: Any) -> ArrayView:
        """An expression of arrays in an array of its own."""
        return self.allocated("part", self.copy_of(elements), node)

    def copy_of(self, content: ArrayView | ArrayExpression) -> Made:
        """A copy of an array that is to be made."""
        dtype, shares = self.element_dtype(content), isinstance(content, Reshaped)
        return Made("empty", dtype, content.shape, content, shares)

    def new_copy(self, content: ArrayView | ArrayExpression) -> Made:
        """A copy that NumPy makes too."""
        return self.copy_of(content)._replace(shares=False)

    def made_of(self, items: Items) -> Made:
        """An array of numbers, arrays or tuples of such that is to be made."""
        shape: list[Value] = []
        inner: Any = items
        while isinstance(inner, Items):
            shape.append(len(inner))
            inner = inner[0] if inner else 0.0
        if isinstance(inner, ArrayView | ArrayExpression):
            shape += inner.shape

        def dtypes(value: Any) -> list[np.dtype]:
            if isinstance(value, Items):
                return [d for part in value for d in dtypes(part)]
            return [self.element_dtype(value)]

        return Made("empty", np.result_type(*dtypes(items)), tuple(shape), items)

    def is_text(self, value: Any) -> bool:
        """Whether a value is a string, or has one; numbers have names."""
        return isinstance(value, Items) and any(
            isinstance(v, str) and v not in self.dtypes for v in value
        )

    def as_view(self, value: Any, node: Any) -> ArrayView:
        """An array in memory for anything that is one."""
        if isinstance(value, Items):
            value = self.made_of(value)
        if isinstance(value, Made):
            return self.allocated("part", value, node)
        return self.stored(value, node) if isinstance(value, ArrayExpression) else value

    def element_dtype(self, content: Any) -> np.dtype:
        """The dtype of the elements of an array or expression, without writing any."""
        if isinstance(content, ArrayView):
            return self.arrays[content.array].dtype
        if not isinstance(content, ArrayExpression):
            return self.dtype_of(content)
        before, self.block = self.block, Block(self.block.loop, self.block)
        dtype = self.dtype_of(content.at([0] * content.ndim))
        self.block = before
        return dtype

    def allocated(self, stem: str, made: Made, node: Any) -> ArrayView:
        """An array of the function's own."""
        name = safe_name(stem)
        while name in self.arrays or name in self.dtypes or name in self.reserved:
            self.count += 1
            name = f"{safe_name(stem).rstrip('_0123456789') or 'v'}_{self.count}"
        grows = made.maker == "growing"
        shape = () if grows else tuple(made.shape)
        self.arrays[name] = KernelArray(
            name, made.dtype, len(made.shape), "local", self.block, shape, grows
        )
        self.emit(Allocate(name, made.maker, tuple(made.shape)))
        view = self.whole_view(name)
        if made.shares:
            label = ast.unparse(node) if stem == "part" else stem
            self.give(view, made.content, label, node)
        elif made.content is not None:
            self.fill(view, made.content, node)
        return view

    def give(
        self, view: ArrayView, content: Any, label: str, node: Any, *, shares: bool = True
    ) -> None:
        """Let a copy be another array: Note [Shared copies] in ``sharing``."""
        source = None
        if shares and isinstance(content, ArrayView | Reshaped):
            source = content.array if isinstance(content, ArrayView) else content.source
        begin = len(self.block.statements)
        self.fill(view, content, node)
        filled = self.block.statements[begin:]
        self.copies.append(SharedCopy(view.array, source, filled, label))

    def fill(self, view: ArrayView, content: Any, node: Any) -> None:
        """``view[...] = content``, by loops."""
        if isinstance(content, Items) and self._matches(view, content, node):
            for k, item in enumerate(content):
                self.fill(view.part([k, *[IndexSpan(0, n) for n in view.shape[1:]]]), item, node)
            return
        if isinstance(content, Items):
            content = self.made_of(content)
        if isinstance(content, Made):
            content = self.allocated("part", content, node)
        reads = content.reads if isinstance(content, ArrayExpression) else set()
        if isinstance(content, ArrayView):
            if content.same_as(view):
                return
            reads = {content.array}
        if view.array in reads and not view.is_apart_from(content):
            # it is read whole before it is written
            content = self.stored(self.elements(content), node)
        lengths: Sequence[Value] = view.shape
        if isinstance(content, ArrayView | ArrayExpression):
            lengths = self.check_fits(content, lengths, node)
        content = self._once(content, view.shape, node)
        before, places = self.block, []
        for length in lengths:
            places.append(self.open_loop(length).variable)
        self.store(view.array, view.at(places), self.element(content, places), node)
        self.block = before

    def _matches(self, view: ArrayView, items: Items, node: Any) -> bool:
        """Whether a view has a place for each of its items, none of which is broadcast."""
        shape = self.made_of(items).shape
        if shape == view.shape:
            return True
        equal = Expression("==", (view.shape[0], len(items)))
        if len(shape) != view.ndim or len(items) == 1 or not self.is_checked_by_calls(equal):
            return False
        self.check_lengths(view.shape[0], len(items), node)
        return True

    def open_loop(self, length: Value, stem: str = "k") -> KernelLoop:
        """Begin a loop over a length; what follows is its body."""
        body = Block(None, self.block)
        loop = KernelLoop("", 0, length, 1, body)
        body.loop = loop
        self.emit(loop)
        self.block = body
        loop.variable = self.fresh(stem, INT64)
        self.lowest[loop.variable] = 0
        return loop

    def store(
        self, array: str, index: Sequence[Value], value: Value, node: Any, *, add: bool = False
    ) -> None:
        dtype = self.arrays[array].dtype
        self.check_real(self.dtype_of(value), dtype, node)
        if dtype.kind in "fc":
            value = self.cast(value, dtype)
        elif dtype.kind == "b":
            value = self.truth(value)
        else:
            value = self.integer(value)
        self.emit(Store(array, tuple(index), value, add))

    def product(self, left: Any, right: Any, node: Any) -> Any:
        """``left @ right``."""
        ranks = []
        operands: list[ArrayView] = []
        for operand in (left, right):
            operand = self.as_view(operand, node)
            if not isinstance(operand, ArrayView):
                self.refuse(node, "a product of matrices with a number", "use *")
            operands.append(operand)
            ranks.append(operand.ndim)
        function = PRODUCTS.get((ranks[0], ranks[1]))
        if function is None:
            self.refuse(node, "a product of arrays of more than two axes", "write the loops")
        left, right = operands
        inner = right.shape[0]
        if self.check_lengths(left.shape[-1], inner, node) != left.shape[-1]:
            spans = [IndexSpan(0, n) for n in left.shape[:-1]]
            left = left.part([*spans, IndexSpan(0, Expression("min", (left.shape[-1], inner)))])
            operands = [left, right]
        if ranks == [1, 1]:
            dtype = np.result_type(*[self.element_dtype(o) for o in operands])
            return self.in_single(self.inline(node, function, operands), dtype)
        shape = (*left.shape[:-1], *right.shape[1:])
        dtype = np.result_type(*[self.element_dtype(o) for o in operands])
        out = self.allocated("product", Made("empty", dtype, shape), node)
        self.inline(node, function, [*operands, out])
        return out

    def in_single(self, value: Any, dtype: np.dtype) -> Any:
        """A sum, added up in double precision, in the dtype of arrays of single precision."""
        return self.cast(value, dtype) if dtype in (FLOAT32, COMPLEX64) else value

    def load(self, view: ArrayView, places: Sequence[Value] = ()) -> Value:
        """An element."""
        array = self.arrays[view.array]
        dtype = INT64 if array.dtype.kind in "iu" else array.dtype
        name = self.fresh(array.name, dtype)
        self.emit(Load(name, array.name, view.at(places)))
        return name

    def value(self, node: ast.expr, env: dict[str, Any]) -> Any:
        """Read an expression."""
        raise NotImplementedError

    def inline(self, node: Any, function: Any, arguments: Sequence[Any]) -> Any:
        """Read another function's statements in place of a call."""
        raise NotImplementedError
