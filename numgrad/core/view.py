"""Views: operations that only look at the same memory differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.call import Call
from numgrad.core.formula import Meta
from numgrad.core.op import Op
from numgrad.errors import NumgradError, NumgradIndexError, NumgradTypeError, NumgradValueError


class View(Op):
    """An operation whose body is a NumPy expression that gives a view where it can.

    It has no kernel: the body is its forward, and its gradient formulas are run on ndarrays. A body
    that returns a tuple has as many outputs; ``g`` of its formulas is a tuple then.
    """

    result = "A view of ``x`` where that is possible, else a copy; its dtype is that of ``x``."

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

    __slots__ = ("dtype", "floating", "nout", "out_metas", "shape")

    def __init__(self, op: Op, metas: tuple, params: dict[str, Any], out: Any) -> None:
        super().__init__(op, metas, params)
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


def checked(operation: str, x: np.ndarray, function: Any, *args: Any, **params: Any) -> Any:
    """Call NumPy; its errors come out naming the operation and what it was given."""
    try:
        return function(*args, **params)
    except NumgradError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        for kind, own in (
            (IndexError, NumgradIndexError),  # includes AxisError
            (TypeError, NumgradTypeError),
            (ValueError, NumgradValueError),
        ):
            if isinstance(error, kind):
                raise own(f"{operation}: operand of shape {x.shape}: {error}") from error
        raise
