"""Operations with forward and backward written by hand, views, and operations made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype, resolve
from numgrad.core.arguments import UnknownParameter, complete, translated
from numgrad.core.formula import Meta
from numgrad.core.interpreter import interpreter, raw, state
from numgrad.core.op import Op
from numgrad.core.plan import Call, conform, remember
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradError, NumgradIndexError, NumgradTypeError, NumgradValueError


class View(Op):
    """An operation whose body is a NumPy expression that gives a view where it can.

    It has no kernel: the body is its forward, and its gradient formulas are run on ndarrays. A body
    that returns a tuple has as many outputs; ``g`` of its formulas is a tuple then.
    """

    planned = True
    result = "A view of ``x`` where that is possible, else a copy; its dtype is that of ``x``."

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(function, **options)
        self.views: dict[tuple, tuple[ViewCall, dict[str, Any]]] = {}
        """The record of a call of one operand, and its parameters, by how it was written."""

    def forget(self) -> None:
        self.views.clear()
        super().forget()

    def known_view(self, x: np.ndarray, rest: tuple, params: dict[str, Any]) -> Any:
        """The same for an operand of some dtype and shape; None where all has to be looked at."""
        try:
            key = x.dtype, x.shape, rest, tuple(params.items())
            for value in (*rest, *params.values()):  # 1, 1.0 and True hash alike
                key += (type(value), *(map(type, value) if type(value) is tuple else ()))
            known = self.views.get(key)
        except TypeError:  # a parameter that is no part of a key
            return None
        if known is None:
            args, given = complete(self, (x, *rest), params)
            if len(args) != 1:
                return None
            _, call = self.run(args, given)
            assert isinstance(call, ViewCall)
            if call.nout != 1 or call.out_metas or (self.formulas and call.saves(1)):
                return None
            return remember(self.views, key, (call, given))
        return known

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        x, *rest = args
        if not isinstance(x, np.ndarray):
            x = np.asarray(x)
        check_dtype(self.name, x.dtype)
        out = checked(self.name, x, self.function, x, *rest, **params)
        if isinstance(out, np.generic):  # NumPy gives scalars for some 0-d results
            out = np.asarray(out)
        metas: tuple[Meta, ...] = (Meta(x.shape, x.dtype),)
        if rest:
            metas += (Meta((), x.dtype),) * len(rest)
            params = params | dict(zip(self.inputs[1:], rest, strict=False))
        return out, ViewCall(self, metas, params, out)

    def shares(self, x: Any, out: Any) -> bool:
        """Whether ``out``, made from ``x``, looks at the memory of ``x``."""
        base = out.base
        return out is x or (base is not None and (base is x or base is getattr(x, "base", None)))


class ViewCall(Call):
    """A call of a view, whose results may be several and of another dtype (``astype``)."""

    __slots__ = ("_gradient_view", "dtype", "floating", "nout", "out_metas", "shape")

    def __init__(self, op: Op, metas: tuple, params: dict[str, Any], out: Any) -> None:
        super().__init__(op, metas, params)
        self._gradient_view: Any = ()
        """Shape, offset and strides of the gradient in a contiguous one of the result, if that is
        a view too; None if it is not, empty as long as nobody asked."""
        if type(out) is tuple:
            self.nout = len(out)
            self.out_metas = tuple(Meta(o.shape, o.dtype) for o in out)
            self.floating = True
        else:
            self.nout, self.out_metas = 1, ()
            self.shape, self.dtype = out.shape, out.dtype
            self.floating = out.dtype.kind in "fc"

    @property
    def results(self) -> tuple[Meta, ...]:
        return self.out_metas or (Meta(self.shape, self.dtype),)

    def differentiable(self, k: int) -> bool:
        return self.floating and self.op.inputs[k] in self.op.formulas

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        plain = type(g) is np.ndarray and g.flags.c_contiguous and not saved
        if plain and self._gradient_view:
            shape, offset, strides = self._gradient_view
            return [np.ndarray(shape, g.dtype, g, offset, strides)], 0
        gradients, owned = super().backward(mask, g, saved)
        if plain and self._gradient_view is not None:
            self._gradient_view = _view_in(g, gradients)
        return gradients, owned


def _view_in(x: np.ndarray, results: Sequence[Any]) -> tuple | None:
    """Shape, offset and strides of the one result in a contiguous array that it is a view of."""
    y = results[0]
    if len(results) > 1 or y is None or not y.size or y.dtype != x.dtype:
        return None
    if y is not x and y.base is not x and (y.base is None or y.base is not x.base):
        return None
    offset = y.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    return y.shape, offset, y.strides


def checked(operation: str, x: np.ndarray, function: Any, *args: Any, **params: Any) -> Any:
    """Call NumPy; its errors come out naming the operation and what it was given."""
    try:
        return function(*args, **params)
    except NumgradError:
        raise
    except KeyError:  # of a table of kernels, by dtype
        for a in args:
            if isinstance(a, np.ndarray):
                check_dtype(operation, a.dtype)
        raise
    except (ValueError, TypeError, IndexError) as error:
        for kind, ours in (
            (IndexError, NumgradIndexError),  # includes AxisError
            (TypeError, NumgradTypeError),
            (ValueError, NumgradValueError),
        ):
            if isinstance(error, kind):
                raise ours(f"{operation}: operand of shape {x.shape}: {error}") from error
        raise


_NOTHING, _EMPTY = Meta((), np.dtype(np.int64)), np.empty(0)
"""Stand-ins for operands that are left out."""


class Primitive(Op):
    """An operation whose body computes its result on ndarrays, through njit kernels.

    The body returns the output, or the output and a tuple of the declared ``auxiliaries`` that
    gradient formulas may name. ``outputs=True`` declares a tuple of outputs, ``materializes=False``
    that gradients of those that none reached are None, ``row_sparse=True`` that the backward kernel
    may return row-sparse gradients.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        auxiliaries: Sequence[str] = (),
        outputs: bool = False,
        row_sparse: bool = False,
        materializes: bool = True,
        **options: Any,
    ) -> None:
        self.auxiliaries = tuple(auxiliaries)
        self.outputs = outputs
        self.row_sparse = row_sparse
        self.materializes = materializes
        self.backward_kernel: Callable[..., Any] | None = None
        self.saved_names: dict[tuple[int, int], tuple[str, ...]] = {}
        self.types: np.ufunc | Callable[..., Any] | None = None
        """Operands for ``resolve``, for where Python numbers, whose dtype is weak, are there."""
        super().__init__(function, **options)

    def strong(self, args: Sequence[Any]) -> Sequence[Any]:
        """Python numbers as arrays of the dtypes that they have beside the others."""
        assert self.types is not None
        if len({hasattr(a, "dtype") for a in args}) < 2:  # arrays or numbers alone
            return args
        loop, _ = resolve(self.types, [getattr(a, "dtype", type(a)) for a in args])
        return [
            np.asarray(a) if hasattr(a, "dtype") else np.asarray(a, d)
            for a, d in zip(args, loop, strict=True)
        ]

    def forget(self) -> None:
        self.saved_names.clear()

    def vjp_kernel(self, function: Callable[..., Any]) -> Primitive:
        """Declare the backward by hand: ``function(call, mask, g, **saved)`` -> list of gradients.

        It computes on ndarrays what the gradient formulas specify; a test holds the two together.
        Arrays in the list must be new, owned by nobody else. Operations declared ``row_sparse`` may
        return a ``RowSparseArray``, whose values may be a view of ``g``: Note [Row-sparse
        gradients] in ``row_gradients``.
        """
        self.backward_kernel = function
        return self

    def arrays(self, args: Sequence[Any]) -> list[Any]:
        """Operands as arrays, or None."""
        if self.types is not None:
            args = self.strong(args)
        arrays = [a if a is None or isinstance(a, np.ndarray) else np.asarray(a) for a in args]
        if self._refuses_complex:
            self.check_real([a for a in arrays if a is not None])
        return arrays

    def results_of(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[tuple, tuple]:
        """The results for arrays, and what a backward needs besides."""
        first = _EMPTY
        for a in args:
            if a is not None:
                first = a
                break
        out = checked(self.name, first, self.function, *args, **params)
        aux: tuple = ()
        if self.auxiliaries:
            out, aux = out
        if self.outputs:
            return tuple(out), aux
        # NumPy gives scalars for 0-d results
        return (out if isinstance(out, np.ndarray) else np.asarray(out),), aux

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        args = self.arrays(args)
        metas = tuple([_NOTHING if a is None else Meta(a.shape, a.dtype) for a in args])
        outs, aux = self.results_of(args, params)
        call = PrimitiveCall(self, metas, params, aux, outs)
        return (outs if self.outputs else outs[0]), call


class PrimitiveCall(Call):
    """A call of a primitive, whose backward may be a kernel of its own."""

    __slots__ = ("floating", "nout", "out_metas", "outs")
    op: Primitive

    def __init__(self, op: Primitive, metas: tuple, params: dict, aux: tuple, outs: tuple) -> None:
        self.op, self.metas, self.params, self.aux = op, metas, params, aux
        self.nout = len(outs)
        self.outs = tuple([(o.shape, o.dtype) for o in outs])
        self.out_metas = self.results if op.outputs else ()
        self.floating = "f" in (kinds := [o.dtype.kind for o in outs]) or "c" in kinds

    @property
    def results(self) -> tuple[Meta, ...]:
        return tuple([Meta(*out) for out in self.outs])

    @property
    def row_sparse(self) -> bool:
        return self.op.row_sparse

    def differentiable(self, k: int) -> bool:
        return self.floating and super().differentiable(k)

    def saves(self, mask: int) -> tuple[str, ...]:
        known = self.op.saved_names
        mask_saved = known.get((len(self.metas), mask))
        if mask_saved is None:
            mask_saved = known[len(self.metas), mask] = super().saves(mask)
        return mask_saved

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        kernel = self.op.backward_kernel
        if kernel is None or mask & self.op.refused_mask:
            return super().backward(mask, g, saved)
        values = dict(zip(self.saves(mask), saved, strict=True))
        before = state.interpreters  # as ``interpreter(raw)``, without the microsecond it takes
        try:
            state.interpreters = (*before, raw)
            state.refresh()
            gradients = kernel(self, mask, g, **values)
        finally:
            state.interpreters = before
            state.refresh()
        for k, meta in enumerate(self.metas):
            value = gradients[k]
            if mask >> k & 1 and value is not None and type(value) is not RowSparseArray:
                gradients[k] = conform(value, meta)
        return gradients, mask


class Composite(Op):
    """An operation written with others: its gradient, tracing and forward mode are theirs."""

    composed = True

    def compute(self, args: tuple, params: dict[str, Any]) -> Any:
        return self.expanded(args, params)

    def expanded(self, args: tuple, params: dict[str, Any]) -> Any:
        """The result by the operations it is written with, in whatever interpreter called."""
        try:
            return self.function(*args, **params)
        except TypeError as error:
            try:
                self.__signature__.bind(*args, **params)
            except TypeError as mismatch:
                ours = {theirs: name for name, theirs in self.spellings.items()}
                renamed = translated(self, params)
                if renamed.keys() != params.keys():
                    return self.expanded(args, renamed)
                renamed = {ours.get(name, name): value for name, value in params.items()}
                if renamed.keys() != params.keys() and len(renamed) == len(params):
                    return self.expanded(args, renamed)
                raise UnknownParameter(self, f"{self.name}: {mismatch}") from error
            raise

    def run(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        with interpreter(raw):
            out = self.function(*args, **params)
        return out, Call(self, (), params)
