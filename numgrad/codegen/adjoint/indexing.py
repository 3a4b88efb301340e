"""Reading of subscripts: elements, slices, indexing by arrays of integers and of truths."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from numgrad.codegen.adjoint.array_functions import masked_fill, places_of, whole_power
from numgrad.codegen.adjoint.emission import SCALARS
from numgrad.codegen.adjoint.representation import Expression, Value, add, subtract
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    IndexSpan,
    Items,
    ListItems,
    Made,
    Selection,
)
from numgrad.codegen.adjoint.whole_arrays import ArrayEmitter


class IndexReader(ArrayEmitter):
    """Reads subscripts."""

    def whole(self, node: ast.expr, env: dict[str, Any]) -> Value:
        """The value of an expression that is an integer."""
        value = self.value(node, env)
        if not isinstance(value, SCALARS):
            self.refuse(node, f"{ast.unparse(node)} is no number", "write it with scalars")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            operands = [self.value(part, env) for part in (node.left, node.right)]
            if not any(isinstance(o, SCALARS) and self.dtype_of(o).kind in "fc" for o in operands):
                return self.inline(
                    node, whole_power, operands
                )  # if it were negative, Python raises
        if self.dtype_of(value).kind in "fc":
            self.refuse(node, f"{ast.unparse(node)} is no integer", "convert it with int()")
        return self.integer(value)

    def _of_Subscript(self, node: ast.Subscript, env: dict[str, Any]) -> Any:
        base = self.value(node.value, env)
        if isinstance(base, Items):
            if isinstance(node.slice, ast.Slice):
                parts = (node.slice.lower, node.slice.upper, node.slice.step)
                bounds = [None if p is None else self.value(p, env) for p in parts]
                return type(base)(base[slice(*bounds)])
            at = self.value(node.slice, env)
            if isinstance(at, int) and -len(base) <= at < len(base):
                return base[at]
            if isinstance(at, int) or not all(isinstance(item, SCALARS) for item in base):
                self.refuse(node, "an index of a tuple that is no constant", "use an array")
            base = self.allocated("items", self.made_of(base), node)
        elif isinstance(base, ArrayExpression | Made):
            element = self._element_of(base, node, env)
            if element is not None:
                return element
            base = self.as_view(base, node)
        if isinstance(base, SCALARS) and isinstance(node.slice, ast.Tuple) and not node.slice.elts:
            return base  # of an array without axes
        if not isinstance(base, ArrayView):
            self.refuse(node, f"the subscript {ast.unparse(node)}", "index arrays only")
        part = self.part(base, node, env)
        if isinstance(part, Selection):
            return self.selected(part)
        if isinstance(part, ArrayExpression):
            return part
        return part if part.ndim else self.load(part)

    def _element_of(self, base: Any, node: ast.Subscript, env: dict[str, Any]) -> Value | None:
        """One element of an expression of arrays, of which no other is needed."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(base, ArrayExpression) or len(parts) != base.ndim:
            return None
        if any(isinstance(p, ast.Slice) or _is_new_axis(p) for p in parts):
            return None
        places = [self.value(p, env) for p in parts]
        if not all(isinstance(p, SCALARS) and self.dtype_of(p).kind == "i" for p in places):
            return None
        return base.at([self._wrapped(p, n) for p, n in zip(places, base.shape, strict=True)])

    def part(
        self, base: ArrayView, node: ast.Subscript, env: dict[str, Any]
    ) -> ArrayView | Selection | ArrayExpression:
        """The part of an array that a subscript gives; an expression if it has new axes."""
        given = self._indices(base, node, env)
        added = [k for k, part in enumerate(given) if part is None]
        given = [part for part in given if part is not None]
        if len(given) > base.ndim:
            self.refuse(node, f"too many indices in {ast.unparse(node)}", "index existing axes")
        given += [slice(None)] * (base.ndim - len(given))
        places: list[Value | IndexSpan] = []
        arrays: dict[int, ArrayView] = {}
        for axis, part in enumerate(given):
            length = base.span(axis).length
            if isinstance(part, slice):
                places.append(IndexSpan(0, length))
            elif isinstance(part, ast.Slice):
                places.append(self._slice(part, length, env))
            elif isinstance(part, ArrayView):
                arrays[axis] = part
                places.append(IndexSpan(0, length))
            else:
                if self.dtype_of(part).kind not in "iu":
                    self.refuse(node, f"an index of {ast.unparse(node)} is no integer", "use int()")
                places.append(self._wrapped(part, length))
        view = base.part(places)
        if arrays:
            advanced = [
                k for k, part in enumerate(given) if not isinstance(part, slice | ast.Slice)
            ]
            if added or advanced[-1] - advanced[0] != len(advanced) - 1:
                self.refuse(node, f"arrays between other indices in {ast.unparse(node)}",
                            "write a loop over its places")  # fmt: skip
            first = sum(isinstance(p, IndexSpan) for p in places[: min(arrays)])
            return self._selection(view, first, list(arrays.values()), node)
        if added:
            return self._with_new_axes(view, added, node)
        return view

    def _indices(self, base: ArrayView, node: ast.Subscript, env: dict[str, Any]) -> list[Any]:
        """The entries of a subscript, without ellipsis and masks; None for a new axis."""
        given: list[Any] = []
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        count = sum(not _is_new_axis(p) for p in parts)
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                given += [slice(None)] * (base.ndim - count + 1)
                continue
            if isinstance(part, ast.Slice):
                given.append(part)
                continue
            at = self.value(part, env)
            if self.is_text(at):
                self.refuse(node, f"{ast.unparse(node)} has a string for an index", "use integers")
            is_array = isinstance(at, Items) and (len(parts) > 1 or isinstance(at, ListItems))
            if is_array or isinstance(at, Made | ArrayExpression):
                at = self.as_view(at, node)
            if isinstance(at, ArrayView):
                kind = self.element_dtype(at).kind
                if kind == "b":
                    if len(parts) > 1:
                        self.refuse(node, f"a mask beside other indices in {ast.unparse(node)}",
                                    "write the loop with an if")  # fmt: skip
                    return [at]
                if kind not in "iu":
                    self.refuse(node, f"an index of {ast.unparse(node)} is no integer", "use int()")
            elif not isinstance(at, (*SCALARS, Items)) and at is not None:
                self.refuse(node, f"an index of {ast.unparse(node)} is no integer", "use int()")
            given += at if isinstance(at, Items) else [at]
        return given

    def _with_new_axes(
        self, view: ArrayView, added: Sequence[int], node: ast.Subscript
    ) -> ArrayExpression:
        """A view with axes of length 1."""
        shape = list(view.shape)
        for axis in added:
            shape.insert(axis, 1)
        kept = [k for k in range(len(shape)) if k not in added]
        if isinstance(node.ctx, ast.Store):
            self.refuse(node, f"an assignment to {ast.unparse(node)}", "leave out the new axes")
        return ArrayExpression(
            tuple(shape), lambda places: self.load(view, [places[k] for k in kept]), {view.array}
        )

    # ------------------------------------------------------------------------ indexing by arrays

    def _selection(
        self, view: ArrayView, first: int, arrays: Sequence[ArrayView], node: Any
    ) -> Selection:
        """Elements that arrays of integers choose, or the truths of one."""
        mask = None
        if self.element_dtype(arrays[0]).kind == "b":
            mask = arrays[0]
            if first or mask.ndim > view.ndim:
                self.refuse(node, f"the mask in {ast.unparse(node)}", "write the loop with an if")
            mask = self.cut_to(mask, view.shape, node)
            if isinstance(node.ctx, ast.Store):
                return Selection(view, 0, (mask,) * mask.ndim, mask)
            arrays = self._places_of(mask, node)
        if any(a.ndim != arrays[0].ndim for a in arrays):
            self.refuse(node, f"arrays of different ranks in {ast.unparse(node)}", "write the loop")
        for other in arrays[1:]:
            arrays = [self.cut_to(arrays[0], other.shape, node), *arrays[1:]]
        return Selection(view, first, tuple(arrays))

    def cut_to(self, array: ArrayView, shape: Sequence[Value], node: Any) -> ArrayView:
        """An array whose lengths must be the first ones of a shape."""
        lengths = [
            self.check_lengths(*pair, node) for pair in zip(array.shape, shape, strict=False)
        ]
        return array.part([IndexSpan(0, length) for length in lengths])

    def _places_of(self, mask: ArrayView, node: Any) -> list[ArrayView]:
        """The indices of the truths of a mask."""
        places = self.inline(node, places_of(mask.ndim), [mask])
        return list(places) if isinstance(places, Items) else [places]

    def selected(self, selection: Selection) -> ArrayExpression:
        """The chosen elements as an expression."""
        reads = {selection.view.array, *[a.array for a in selection.indices]}
        return ArrayExpression(
            selection.shape, lambda places: self.load(*self._chosen(selection, places)), reads
        )

    def _chosen(
        self, selection: Selection, places: Sequence[Value]
    ) -> tuple[ArrayView, list[Value]]:
        """The view and the place in it of a chosen element."""
        view, first, indices, _ = selection
        rank = indices[0].ndim
        own = places[first : first + rank]
        chosen = [
            self._wrapped(self.load(array, own), view.shape[first + k])
            for k, array in enumerate(indices)
        ]
        return view, [*places[:first], *chosen, *places[first + rank :]]

    def stored_within(
        self, elements: ArrayExpression, longest: Sequence[Value], node: Any
    ) -> ArrayView:
        """An expression in an array of its own, which has room for the longest one."""
        if len(longest) != elements.ndim:
            return self.stored(elements, node)
        dtype = self.element_dtype(elements)
        room = self.allocated("part", Made("empty", dtype, tuple(longest)), node)
        view = room.part([IndexSpan(0, n) for n in elements.shape])
        self.fill(view, elements, node)
        return view

    def fill_selected(self, selection: Selection, content: Any, node: Any) -> None:
        """Assign to the chosen elements, in their order."""
        selection = self._apart_from_indices(selection, node)
        view, mask = selection.view, selection.mask
        if mask is not None:
            if isinstance(content, SCALARS) and mask.ndim == view.ndim:
                self.check_real(self.dtype_of(content), self.element_dtype(view), node)
                self.inline(node, masked_fill(mask.ndim), [view, mask, content])
                return
            selection = Selection(view, 0, tuple(self._places_of(mask, node)))
        if isinstance(content, Items | Made):
            content = self.as_view(content, node)
        lengths: Sequence[Value] = selection.shape
        if isinstance(content, ArrayView | ArrayExpression):
            reads = content.reads if isinstance(content, ArrayExpression) else {content.array}
            if view.array in reads:
                content = self.stored_within(self.elements(content), selection.view.shape, node)
            lengths = self.check_fits(content, selection.shape, node)
        before, places = self.block, []
        for length in lengths:
            places.append(self.open_loop(length).variable)
        target, place = self._chosen(selection, places)
        self.store(target.array, target.at(place), self.element(content, places), node)
        self.block = before

    def _apart_from_indices(self, selection: Selection, node: Any) -> Selection:
        """A selection that an assignment to it does not change: its indices are of other arrays."""
        target = selection.view.array
        if all(a.array != target for a in selection.indices):
            return selection
        own = [
            self.stored(self.elements(a), node) if a.array == target else a
            for a in selection.indices
        ]
        mask = None if selection.mask is None else own[0]
        return selection._replace(indices=tuple(own), mask=mask)

    # --------------------------------------------------------------------------------- one axis

    def _wrapped(self, place: Value, length: Value) -> Value:
        """A place that may count from the end."""
        lowest = self.lower_bound(place)
        if lowest is not None and lowest >= 0:
            return place
        if isinstance(place, int):
            return add(length, place)
        return Expression("wrap", (place, length))

    def _slice(self, node: ast.Slice, length: Value, env: dict[str, Any]) -> IndexSpan:
        step = 1 if node.step is None else self.whole(node.step, env)
        if not isinstance(step, int) or step == 0:
            self.refuse(node, "a slice whose step is no constant", "write a loop over its places")
        low = None if node.lower is None else self.whole(node.lower, env)
        high = None if node.upper is None else self.whole(node.upper, env)
        if step < 0:
            start = subtract(length, 1) if low is None else self._bound_backwards(low, length)
            stop = -1 if high is None else self._bound_backwards(high, length)
            span = subtract(start, stop)
            if low is not None or high is not None:
                span = self._positive(span)
            return IndexSpan(start, self._count(span, -step), step)
        start = 0 if low is None else self._bound(low, length)
        stop = length if high is None else self._bound(high, length)
        span = subtract(stop, start)
        if not (start == 0 and high is None):
            span = self._positive(span)
        return IndexSpan(start, self._count(span, step), step)

    def _bound(self, place: Value, length: Value) -> Value:
        """A bound of a slice, from the start and within the axis."""
        if isinstance(place, int) and place < 0:
            place = add(length, place)
            return self._positive(place)
        lowest = self.lower_bound(place)
        if lowest is None or lowest < 0:
            place = Expression("max", (Expression("wrap", (place, length)), 0))
        return place if place == 0 else Expression("min", (place, length))

    def _bound_backwards(self, place: Value, length: Value) -> Value:
        """A bound of a slice that goes backwards: from -1 to the last place."""
        if isinstance(place, int) and place < 0:
            return Expression("max", (add(length, place), -1))
        lowest = self.lower_bound(place)
        if lowest is None or lowest < 0:
            place = Expression("max", (Expression("wrap", (place, length)), -1))
        return Expression("min", (place, subtract(length, 1)))

    def _positive(self, length: Value) -> Value:
        lowest = self.lower_bound(length)
        return length if lowest is not None and lowest >= 0 else Expression("max", (length, 0))

    @staticmethod
    def _count(span: Value, step: int) -> Value:
        if step == 1:
            return span
        return Expression("//", (add(span, step - 1), step))


def _is_new_axis(node: ast.expr) -> bool:
    """Whether an index is written as None or newaxis."""
    if isinstance(node, ast.Constant):
        return node.value is None
    return isinstance(node, ast.Attribute) and node.attr == "newaxis"
