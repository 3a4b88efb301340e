"""Reading of NumPy's functions and methods of whole arrays."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.array_functions import (
    FUNCTIONS,
    OF_SOME,
    READ_ONCE,
    SUMS,
    interp,
    reduction,
    searchsorted as searchsorted_of_numbers,
)
from numgrad.codegen.adjoint.emission import NUMBERS, SCALARS
from numgrad.codegen.adjoint.expressions import ExpressionReader
from numgrad.codegen.adjoint.representation import (
    COMPLEX128,
    Expression,
    Value,
    add,
    multiply,
    subtract,
)
from numgrad.codegen.adjoint.scopes import Scope, scope_of
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    IndexSpan,
    Items,
    Made,
    Reshaped,
    size_of,
)
from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64, KERNEL_DTYPES

CASTS: dict[str, np.dtype] = {
    "float": FLOAT64, "int": INT64, "bool": BOOL, "complex": COMPLEX128, "intp": INT64,
    "bool_": BOOL,
} | {dtype.name: dtype for dtype in KERNEL_DTYPES}  # fmt: skip
_MAKERS = ("zeros", "empty", "ones", "full", "zeros_like", "empty_like", "ones_like", "full_like")
_METHODS = (
    "copy", "sum", "max", "min", "mean", "prod", "dot", "conjugate", "conj", "fill", "astype",
    "transpose", "item", "argmax", "argmin", "reshape", "ravel", "flatten", "any", "all", "std",
    "var", "cumsum", "cumprod", "trace", "ptp", "swapaxes",
)  # fmt: skip
_ELEMENTWISE = (np.where, np.clip, np.round, np.around, np.real, np.imag, abs)
_FURTHER_UFUNCS = ("is", "logical", "bitwise", "degrees", "radians", "deg2rad", "rad2deg")
"""Beginnings of names of ufuncs that the operation table does not have."""


def is_array(value: Any) -> bool:
    """Whether a value is an array, made or not."""
    return isinstance(value, ArrayView | ArrayExpression | Made)


class ArrayCallReader(ExpressionReader):
    """Reads functions and methods of arrays, and what makes arrays."""

    def array_call(
        self, node: ast.Call, target: Any, name: str, arguments: list[Any], options: dict[str, Any]
    ) -> Any:
        """The result of one of NumPy's functions; None if it is one of numbers."""
        if name in _MAKERS:
            return self._maker(node, name, arguments, options)
        if name in ("dot", "matmul") and len(arguments) == 2:
            return self.product(arguments[0], arguments[1], node)
        method = getattr(self, f"_array_{name}", None)
        if method is not None and getattr(np, name, None) is target:
            return self._with_names(node, method, arguments, options)
        if target is np.where and len(arguments) == 1:
            return self._array_nonzero(node, arguments[0])
        if target is np.where and len(arguments) != 3:
            self.refuse(node, f"the arguments of {ast.unparse(node)}", "give one, or three")
        if any(self.is_text(a) for a in arguments):
            self.refuse(node, f"{ast.unparse(node)} with a string", "write it with @ or loops")
        arrays = [a for a in arguments if is_array(a) or (isinstance(a, Items) and a)]
        if not arrays:
            return None
        if set(options) == {"axis"} and len(arguments) == 1:
            return self._along_axis(node, name, arguments[0], options["axis"])
        if options:
            self.refuse(node, f"keywords in {ast.unparse(node)}", "write the loop")
        arguments = [self.as_view(a, node) if isinstance(a, Made | Items) else a for a in arguments]
        if len(arguments) == 2 and isinstance(arguments[1], int) and reduction(name, 1):
            return self._along_axis(node, name, arguments[0], arguments[1])
        if name in FUNCTIONS:
            arguments = [self.as_view(a, node) for a in arguments]
            if name in ("cumsum", "cumprod") and arguments[0].ndim != 1:
                self.refuse(node, f"{ast.unparse(node)} of other than a vector", "write the loop")
            if name == "vdot":
                arguments[0] = self.cut_to(arguments[0], arguments[1].shape, node)
            elif name == "cross":
                arguments = [self.cut_to(a, (3,), node) for a in arguments]
            return self.inline(node, FUNCTIONS[name], arguments)
        if len(arguments) == 1:
            floats = self.element_dtype(arguments[0]).kind == "f"
            function = reduction(name, arguments[0].ndim, floats)
            if function is not None:
                base = arguments[0] if name in READ_ONCE else self.as_view(arguments[0], node)
                if name in OF_SOME:
                    self.check_some(base, node, name)
                value = self.inlined(scope_of(function), {"a": base})
                return self.in_single(value, self.element_dtype(base)) if name in SUMS else value
        if self.is_elementwise(target, name):
            if name != "power":
                arguments = self.beside_arrays(arguments)
            return self.by_elements(
                lambda *values: self.scalar_call(node, target, name, values), arguments, node
            )
        self.refuse(node, f"{ast.unparse(node.func)} of whole arrays", "write the loop")

    def is_elementwise(self, target: Any, name: str) -> bool:
        """Whether a function of numbers goes through arrays by elements."""
        if target in _ELEMENTWISE or self.operations.table.name_of(target) is not None:
            return True
        return isinstance(target, np.ufunc) and name.startswith(_FURTHER_UFUNCS)

    def inlined(self, scope: Scope, env: dict[str, Any]) -> Any:
        """Read the statements of a function, and what it returns."""
        raise NotImplementedError

    def scalar_call(self, node: Any, target: Any, name: str, arguments: Sequence[Any]) -> Any:
        """A function of numbers."""
        raise NotImplementedError

    def method(self, node: ast.Call, env: dict[str, Any]) -> Any:
        """The result of a method of an array or number; None if it is none."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _METHODS:
            return None
        word = node.func.attr
        base = self.value(node.func.value, env)
        if isinstance(base, SCALARS):
            if word in ("conjugate", "conj"):
                return self.scalar_call(node, np.conj, "conjugate", [base])
            return base if word == "item" else None
        if not is_array(base):
            return None
        if isinstance(base, Made):
            base = self.as_view(base, node)
        arguments = [self.value(a, env) for a in node.args]
        options = {str(k.arg): self.value(k.value, env) for k in node.keywords}
        if word in ("copy", "flatten"):
            return self.new_copy(self.flattened(base, node) if word == "flatten" else base)
        if word == "astype":
            given = arguments[0] if arguments else options.pop("dtype", None)
            return Made("empty", self.dtype_named(node, given), base.shape, base)
        if word == "fill" and isinstance(base, ArrayView) and arguments:
            self.fill(base, arguments[0], node)
            return 0
        if word in ("reshape", "ravel"):
            shape = (-1,) if word == "ravel" else self._lengths(arguments)
            return self._reshape(node, base, shape)
        if word == "transpose" and arguments:
            return self._array_transpose(node, base, Items(self._lengths(arguments)))
        target = getattr(np, word, None)
        if word in ("conjugate", "conj") and self.element_dtype(base).kind != "c":
            return base
        if word in ("conjugate", "conj"):
            target, word = np.conj, "conjugate"
        return self.array_call(node, target, word, [base, *arguments], options)

    def _with_names(self, node: ast.Call, method: Any, arguments: list[Any], options: dict) -> Any:
        """A function that has a method ``_array_<name>``, with the parameters of that."""
        signature = inspect.signature(method)
        try:
            given = signature.bind(node, *arguments, **options)
        except TypeError:
            names = ", ".join(list(signature.parameters)[1:])
            self.refuse(node, f"the arguments of {ast.unparse(node)}", f"give {names}")
        return method(*given.args, **given.kwargs)

    def check_some(self, base: ArrayView | ArrayExpression, node: Any, name: str) -> None:
        """Have calls raise where an array has no elements, if it is not in a branch."""
        size = size_of(base.shape)
        if isinstance(size, int) and size > 0:
            return
        self.check_call(Expression(">", (size, 0)), f"{name} of an array without elements", node)

    # ------------------------------------------------------------------------ what makes arrays

    def dtype_named(self, node: Any, value: Any) -> np.dtype:
        """The dtype that an argument stands for."""
        if isinstance(value, np.dtype):
            dtype = value
        elif isinstance(value, type) or (isinstance(value, Items) and isinstance(value[0], str)):
            dtype = np.dtype(value[0] if isinstance(value, Items) else value)
        elif (name := getattr(value, "name", None)) in CASTS:  # a type of Numba's
            dtype = CASTS[str(name)]
        else:
            self.refuse(node, "a dtype that is computed", "name it, as np.float64")
        if dtype not in KERNEL_DTYPES:
            self.refuse(node, f"the dtype {dtype}", "use floats, complex numbers, integers, bools")
        return dtype

    def _lengths(self, given: Any) -> tuple[Value, ...]:
        """Lengths that are written as several arguments or as a tuple."""
        if isinstance(given, list) and len(given) == 1:
            given = given[0]
        return tuple(
            [self.integer(n) for n in (given if isinstance(given, Items | list) else (given,))]
        )

    def _maker(self, node: ast.Call, name: str, arguments: list[Any], options: dict) -> Made:
        first = arguments[0] if arguments else options.pop("shape", None)
        maker = name.removesuffix("_like")
        rest = arguments[1:]
        content: Any = None
        if maker == "full":
            content = rest.pop(0) if rest else options.pop("fill_value")
        if maker == "ones":
            content = 1.0
        if content is not None:
            maker = "empty"
        if name.endswith("_like"):
            if isinstance(first, Made):
                first = self.as_view(first, node)
            if not isinstance(first, ArrayView | ArrayExpression):
                self.refuse(node, f"{ast.unparse(node)} of no array", "give an array")
            shape, dtype = first.shape, self.element_dtype(first)
        else:
            shape = self._lengths(first)
            dtype = FLOAT64 if content is None else self.element_dtype(content)
        given = rest[0] if rest else options.pop("dtype", None)
        options.pop("order", None)
        if options or len(rest) > 1:
            self.refuse(node, f"options of {ast.unparse(node)}", "give shape and dtype")
        if given is not None:
            dtype = self.dtype_named(node, given)
        return Made(maker, dtype, tuple(shape), content)

    def _expressed(self, node: Any, shape: Sequence[Value], at: Any, dtype: Any = None) -> Made:
        """An array whose elements follow from their places."""
        content = ArrayExpression(tuple(shape), at, set())
        own = self.element_dtype(content) if dtype is None else self.dtype_named(node, dtype)
        return Made("empty", own, content.shape, content)

    def _array_arange(
        self, node: Any, start: Value, stop: Any = None, step: Value = 1, dtype: Any = None
    ) -> Made:
        first, last = (0, start) if stop is None else (start, stop)
        plus, times = ast.Add(), ast.Mult()
        if any(self.dtype_of(v).kind in "fc" for v in (first, last, step)):
            span = self.arithmetic(
                node, ast.Div(), self.arithmetic(node, ast.Sub(), last, first), step
            )
            count = Expression("max", (self.integer(self.define("ceil", span)), 0))
        elif not isinstance(step, int) or step == 0:
            self.refuse(node, "a range whose step is no constant", "write the loop")
        else:
            span = subtract(last, first) if step > 0 else subtract(first, last)
            count = self._count(self._positive(span), abs(step))

        def at(places: Sequence[Value]) -> Value:
            moved = self.arithmetic(node, times, places[0], step)
            return self.arithmetic(node, plus, first, moved)

        return self._expressed(node, (count,), at, dtype)

    def _array_linspace(self, node: Any, start: Value, stop: Value, num: Value = 50) -> Made:
        start, stop = self.cast(start, FLOAT64), self.cast(stop, FLOAT64)
        step = self.arithmetic(
            node, ast.Div(), self.arithmetic(node, ast.Sub(), stop, start), subtract(num, 1)
        )

        def at(places: Sequence[Value]) -> Value:
            moved = self.arithmetic(node, ast.Mult(), places[0], step)
            return self.arithmetic(node, ast.Add(), start, moved)

        return self._expressed(node, (self.integer(num),), at)

    def _array_eye(
        self, node: Any, N: Value, M: Any = None, k: Value = 0, dtype: Any = None
    ) -> Made:
        def at(places: Sequence[Value]) -> Value:
            return self.cast(self.compared("==", add(places[0], k), places[1]), FLOAT64)

        return self._expressed(node, (N, N if M is None else M), at, dtype)

    def _array_identity(self, node: Any, n: Value, dtype: Any = None) -> Made:
        return self._array_eye(node, n, dtype=dtype)

    def _array_array(self, node: Any, object: Any, dtype: Any = None) -> Any:
        if isinstance(object, Items):
            made = self.made_of(object)
        elif isinstance(object, Made):
            made = object
        elif is_array(object):
            made = self.new_copy(object)
        else:
            self.refuse(node, f"{ast.unparse(node)} of a number", "give it the shape 1")
        return made if dtype is None else made._replace(dtype=self.dtype_named(node, dtype))

    def _array_asarray(self, node: Any, object: Any, dtype: Any = None) -> Any:
        if self._is_asked(object, dtype, node):
            return object
        return self._array_array(node, object, dtype)

    def _is_asked(self, object: Any, dtype: Any, node: Any) -> bool:
        """Whether an array is of a dtype, or none is asked for, so that NumPy copies nothing."""
        if not isinstance(object, ArrayView | Reshaped):
            return False
        return dtype is None or self.dtype_named(node, dtype) == self.element_dtype(object)

    def _array_ascontiguousarray(self, node: Any, object: Any, dtype: Any = None) -> Any:
        if self._is_asked(object, dtype, node):
            source = object.array if isinstance(object, ArrayView) else object.source
            return Reshaped(object.shape, self.elements(object).at, source)
        return self._array_array(node, object, dtype)

    def _array_copy(self, node: Any, a: Any) -> Made:
        return self._array_array(node, a)

    # --------------------------------------------------------------------- joined and rearranged

    def _parts(self, node: Any, arrays: Any) -> list[ArrayView]:
        if not isinstance(arrays, Items) or not arrays:
            self.refuse(node, f"{ast.unparse(node)} of other than a tuple", "list the arrays")
        return [self.as_view(Items((a,)) if isinstance(a, SCALARS) else a, node) for a in arrays]

    def _array_concatenate(self, node: Any, arrays: Any, axis: Any = 0) -> ArrayView:
        parts = self._parts(node, arrays)
        rank = parts[0].ndim
        if not isinstance(axis, int) or any(p.ndim != rank for p in parts):
            self.refuse(node, f"{ast.unparse(node)} of arrays of different ranks", "write loops")
        axis %= rank
        shape = list(parts[0].shape)
        shape[axis] = 0
        starts = []
        for part in parts:
            starts.append(shape[axis])
            shape[axis] = add(shape[axis], part.shape[axis])
        dtype = np.result_type(*[self.element_dtype(p) for p in parts])
        out = self.allocated("joined", Made("empty", dtype, tuple(shape)), node)
        for start, part in zip(starts, parts, strict=True):
            spans = [IndexSpan(0, n) for n in shape]
            spans[axis] = IndexSpan(start, part.shape[axis])
            self.fill(out.part(spans), part, node)
        return out

    def _array_hstack(self, node: Any, arrays: Any) -> ArrayView:
        parts = self._parts(node, arrays)
        return self._array_concatenate(node, Items(parts), 0 if parts[0].ndim == 1 else 1)

    def _array_vstack(self, node: Any, arrays: Any) -> Any:
        parts = self._parts(node, arrays)
        if parts[0].ndim == 1:
            return self.made_of(Items(parts))
        return self._array_concatenate(node, Items(parts), 0)

    def _array_stack(self, node: Any, arrays: Any) -> Made:
        return self.made_of(Items(self._parts(node, arrays)))

    def _array_append(self, node: Any, arr: Any, values: Any) -> ArrayView:
        views = [self.as_view(Items((a,)) if isinstance(a, SCALARS) else a, node)
                 for a in (arr, values)]  # fmt: skip
        flat = [self._reshape(node, view, (-1,)) for view in views]
        return self._array_concatenate(node, Items(flat))

    def flattened(self, base: ArrayView | ArrayExpression, node: Any) -> ArrayExpression:
        return self._reshape(node, base, (-1,))

    def _array_reshape(self, node: Any, a: Any, newshape: Any) -> Any:
        return self._reshape(node, a, self._lengths(newshape))

    def _array_ravel(self, node: Any, a: Any) -> Any:
        return self._reshape(node, a, (-1,))

    def _reshape(self, node: Any, base: Any, shape: Sequence[Value]) -> ArrayExpression:
        """The elements of an array in another shape."""
        own = not isinstance(base, ArrayView | Reshaped)
        view = self.as_view(base, node)
        size = size_of(view.shape)
        known = size_of([n for n in shape if n != -1])
        if -1 in shape:
            if shape.count(-1) > 1 or known == 0:
                self.refuse(node, f"the lengths of {ast.unparse(node)}",
                            "give one of them as -1, the others as more than 0")  # fmt: skip
            if not isinstance(known, int):
                several = Expression(">", (known, 0))
                self.check_call(several, "reshape to -1 and a length of 0", node)
                known = Expression("max", (known, 1))
            rest = size if known == 1 else Expression("//", (size, known))
            shape = [rest if n == -1 else n for n in shape]
            known = multiply(known, rest)
        if known != size and self.check_lengths(known, size, node) != known:
            rest: Value = 1
            for length in shape[1:]:
                rest = multiply(rest, length)
            first = Expression("min", (shape[0], Expression("//", (size, rest))))
            self.guarded[first] = shape[0]
            shape = [first, *shape[1:]]

        def at(places: Sequence[Value]) -> Value:
            flat: Value = 0
            for place, length in zip(places, shape, strict=True):
                flat = add(multiply(flat, length), place)
            if view.ndim == 1:
                return self.load(view, [flat])
            index: list[Value] = []
            for length in view.shape[:0:-1]:
                index.append(self.integers("%", flat, length))
                flat = self.integers("//", flat, length)
            return self.load(view, [flat, *index[::-1]])

        if own:
            return ArrayExpression(tuple(shape), at, {view.array})
        return Reshaped(tuple(shape), at, view.array)

    def _array_shape(self, node: Any, a: Any) -> Items:
        return Items(self.as_view(a, node).shape)

    def _array_ndim(self, node: Any, a: Any) -> int:
        return a.ndim if not isinstance(a, SCALARS) else 0

    def _array_size(self, node: Any, a: Any) -> Value:
        return size_of(self.as_view(a, node).shape)

    def _array_transpose(self, node: Any, a: Any, axes: Any = None) -> ArrayView:
        view = self.as_view(a, node)
        order = range(view.ndim)[::-1] if axes is None else [int(k) % view.ndim for k in axes]
        if sorted(order) != list(range(view.ndim)):
            self.refuse(node, f"the axes of {ast.unparse(node)}", "list each axis once")
        return view.permuted(order)

    def _array_swapaxes(self, node: Any, a: Any, axis1: int, axis2: int) -> ArrayView:
        view = self.as_view(a, node)
        order = list(range(view.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return view.permuted(order)

    def _array_flip(self, node: Any, a: Any) -> ArrayView:
        view = self.as_view(a, node)
        return view.part([IndexSpan(subtract(n, 1), n, -1) for n in view.shape])

    def _array_flipud(self, node: Any, a: Any) -> ArrayView:
        return self._flipped(self.as_view(a, node), 0)

    def _array_fliplr(self, node: Any, a: Any) -> ArrayView:
        return self._flipped(self.as_view(a, node), 1)

    @staticmethod
    def _flipped(view: ArrayView, axis: int) -> ArrayView:
        spans = [IndexSpan(0, n) for n in view.shape]
        spans[axis] = IndexSpan(subtract(view.shape[axis], 1), view.shape[axis], -1)
        return view.part(spans)

    def _array_roll(self, node: Any, a: Any, shift: Value) -> ArrayExpression:
        view = self._vector(node, a)
        length = view.shape[0]

        def at(places: Sequence[Value]) -> Value:
            return self.load(view, [self.integers("%", subtract(places[0], shift), length)])

        return ArrayExpression((length,), at, {view.array})

    def _vector(self, node: Any, a: Any) -> ArrayView:
        view = self.as_view(a, node)
        if not isinstance(view, ArrayView) or view.ndim != 1:
            self.refuse(node, f"{ast.unparse(node)} of other than a vector", "write the loops")
        return view

    def _array_diff(self, node: Any, a: Any) -> Any:
        view = self.as_view(a, node)
        spans = [IndexSpan(0, n) for n in view.shape]
        count = self._positive(subtract(view.shape[-1], 1))
        one, other = (view.part([*spans[:-1], IndexSpan(k, count)]) for k in (1, 0))
        return self.binary(node, ast.Sub(), one, other)

    def _array_diag(self, node: Any, v: Any) -> ArrayExpression:
        view = self.as_view(v, node)
        if view.ndim == 2:
            count = Expression("min", view.shape)
            return ArrayExpression((count,), lambda p: self.load(view, [p[0], p[0]]), {view.array})
        view, n = self._vector(node, view), view.shape[0]
        zero = self.element_dtype(view).type(0).item()
        return ArrayExpression(
            (n, n), lambda p: self._kept(self.compared("==", *p), self.load(view, [p[0]]), zero),
            {view.array},
        )  # fmt: skip

    def _kept(self, condition: Value, one: Value, other: Value) -> Value:
        """``one if condition else other``, of numbers that are there."""
        return self.scalar_call(None, np.where, "where", [condition, one, other])

    def _triangle(self, node: Any, a: Any, operation: str, k: Value) -> ArrayExpression:
        view = self.as_view(a, node)
        zero = self.element_dtype(view).type(0).item()

        def at(places: Sequence[Value]) -> Value:
            inside = self.compared(operation, subtract(places[-1], places[-2]), k)
            return self._kept(inside, self.load(view, places), zero)

        return ArrayExpression(view.shape, at, {view.array})

    def _array_tril(self, node: Any, a: Any, k: Value = 0) -> ArrayExpression:
        return self._triangle(node, a, "<=", k)

    def _array_triu(self, node: Any, a: Any, k: Value = 0) -> ArrayExpression:
        return self._triangle(node, a, ">=", k)

    def _array_repeat(self, node: Any, a: Any, repeats: Value) -> ArrayExpression:
        view = self._vector(node, a)

        def at(places: Sequence[Value]) -> Value:
            return self.load(view, [self.integers("//", places[0], repeats)])

        return ArrayExpression((multiply(view.shape[0], repeats),), at, {view.array})

    def _array_expand_dims(self, node: Any, a: Any, axis: int) -> ArrayExpression:
        view = self.as_view(a, node)
        shape = list(view.shape)
        axis %= len(shape) + 1
        shape.insert(axis, 1)
        return ArrayExpression(
            tuple(shape), lambda p: self.load(view, [*p[:axis], *p[axis + 1 :]]), {view.array}
        )

    # ------------------------------------------------------------------------- sums and searches

    def _along_axis(self, node: Any, name: str, base: Any, axis: Any) -> ArrayExpression:
        """A reduction along one axis."""
        view = self.as_view(base, node)
        function = reduction(name, 1, self.element_dtype(view).kind == "f")
        if name in ("cumsum", "cumprod", "diff") or function is None:
            self.refuse(node, f"{ast.unparse(node)} along an axis", "write the loop")
        if not isinstance(axis, int) or not -view.ndim <= axis < view.ndim:
            self.refuse(node, f"the axis in {ast.unparse(node)}", "give an axis of the array")
        axis %= view.ndim
        single = self.element_dtype(view) if name in SUMS else FLOAT64
        if view.ndim == 1:
            return self.in_single(self.inline(node, function, [view]), single)
        if name in OF_SOME:
            self.check_some(view, node, name)

        def at(places: Sequence[Value]) -> Value:
            parts: list[Value | IndexSpan] = list(places)
            parts.insert(axis, IndexSpan(0, view.shape[axis]))
            return self.in_single(self.inline(node, function, [view.part(parts)]), single)

        shape = (*view.shape[:axis], *view.shape[axis + 1 :])
        return ArrayExpression(shape, at, {view.array}, loops=True)

    def _array_outer(self, node: Any, a: Any, b: Any) -> ArrayExpression:
        one, other = self._vector(node, a), self._vector(node, b)

        def at(places: Sequence[Value]) -> Value:
            factors = self.load(one, places[:1]), self.load(other, places[1:])
            return self.arithmetic(node, ast.Mult(), *factors)

        return ArrayExpression((one.shape[0], other.shape[0]), at, {one.array, other.array})

    def _array_searchsorted(self, node: Any, a: Any, v: Any, side: Any = None) -> Any:
        view = self._vector(node, a)
        right = isinstance(side, Items) and side[0] == "right"
        if is_array(v):
            return self.by_elements(
                lambda x: self.inline(node, searchsorted_of_numbers, [view, x, right]),
                [v],
                node,
                loops=True,
            )
        return self.inline(node, searchsorted_of_numbers, [view, v, right])

    def _array_interp(self, node: Any, x: Any, xp: Any, fp: Any) -> Any:
        values = self._vector(node, fp)
        places = self.cut_to(self._vector(node, xp), values.shape, node)
        if is_array(x):
            return self.by_elements(
                lambda v: self.inline(node, interp, [v, places, values]), [x], node, loops=True
            )
        return self.inline(node, interp, [x, places, values])

    def _array_nonzero(self, node: Any, a: Any) -> Items:
        view = self.as_view(a, node)
        if self.element_dtype(view).kind != "b":
            view = self.as_view(self.by_elements(self.truth, [view], node), node)
        return Items(self._places_of(view, node))

    def _array_flatnonzero(self, node: Any, a: Any) -> Any:
        return self._array_nonzero(node, self._vector(node, a))[0]

    def conversion(self, node: ast.Call, name: str, arguments: Sequence[Any]) -> Any:
        """A number, or the elements of an array, as another dtype."""
        dtype = CASTS[name]
        if len(arguments) == 2 and dtype.kind == "c":
            part = np.dtype(f"f{dtype.itemsize // 2}")
            for a in arguments:
                self.check_real(self.element_dtype(a), part, node)
            if all(isinstance(a, NUMBERS) for a in arguments):
                return complex(*arguments)
            return self.defined("from_parts", [self.cast(a, part) for a in arguments], dtype)
        value = arguments[0] if len(arguments) == 1 else None
        if isinstance(value, (*SCALARS, ArrayView, ArrayExpression)):
            self.check_real(self.element_dtype(value), dtype, node)
        if isinstance(value, ArrayView | ArrayExpression):
            return self.by_elements(lambda x: self.cast(x, dtype), [value], node)
        if not isinstance(value, SCALARS):
            self.refuse(node, f"the conversion {ast.unparse(node)}", "convert one number")
        if dtype.kind in "iu":
            return self.integer(value)
        return self.cast(value, dtype)
