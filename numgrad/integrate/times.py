"""The span of a solution, and the times asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.core.masks import refuse_mask
from numgrad.core.op import OPS
from numgrad.errors import NumgradNotImplementedError, NumgradValueError
from numgrad.tensors.tensor import Tensor


class Times:
    """The span, and the times asked for."""

    def __init__(self, span: Any, t_eval: Any) -> None:
        if not hasattr(span, "__len__") or len(span) != 2:
            raise NumgradValueError("solve_ivp: t_span is a pair, the first and the last time")
        self.first, self.last = (self._time(x, "t_span") for x in (span[0], span[1]))
        self.asked = None if t_eval is None else self._time(t_eval, "t_eval", 1)
        self.has_tensors = any(isinstance(x, Tensor) for x in (span, *span, t_eval))
        if self.asked is not None:
            self._check_asked()

    def _time(self, x: Any, what: str, ndim: int = 0) -> Tensor:
        refuse_mask("solve_ivp", x)
        t = x if isinstance(x, Tensor) else Tensor(np.array(x, dtype=None))
        if isinstance(t, Batched):
            raise NumgradNotImplementedError(
                f"solve_ivp: {what} differs by example of vmap, and all examples share their "
                "times; scale time inside of the function instead"
            )
        if t.dtype.kind not in "iuf" or t.ndim != ndim:
            raise NumgradValueError(
                f"solve_ivp: {what} has dtype {t.dtype} and shape {tuple(t.shape)}; times are "
                f"real numbers{', in a 1-D array' if ndim else ''}"
            )
        if not np.all(np.isfinite(t._array)):
            raise NumgradValueError(f"solve_ivp: {what} is not finite; give finite times")
        return t if t.dtype == np.float64 else OPS["astype"](t, np.float64)

    def _check_asked(self) -> None:
        assert self.asked is not None
        t, (a, b) = self.asked._array, self.span
        if np.any(t < min(a, b)) or np.any(t > max(a, b)):
            raise NumgradValueError(
                f"solve_ivp: t_eval has times outside of t_span ({a:.6g}, {b:.6g}); leave them "
                "out, or make the span longer"
            )
        steps = np.diff(t)
        if np.any(steps <= 0 if b > a else steps >= 0):
            raise NumgradValueError(
                "solve_ivp: t_eval is not in the order of integration, each time once; sort it"
            )

    @property
    def span(self) -> tuple[float, float]:
        """As numbers."""
        return float(self.first._array), float(self.last._array)

    @property
    def numbers(self) -> Any:
        """The times asked for, as numbers."""
        return None if self.asked is None else self.asked._array

    def reached(self, t: np.ndarray) -> Tensor:
        """The times of a solution, with what leads to those given."""
        if self.asked is not None:
            return self.asked if t.size == self.asked.shape[0] else self.asked[: t.size]
        if not self.has_tensors or not t.size:
            return Tensor(t)
        ends = [self.first.reshape(1)] if t[0] == self.span[0] else []
        closing = [self.last.reshape(1)] if len(t) > 1 and t[-1] == self.span[1] else []
        inner = t[len(ends) : len(t) - len(closing)]
        return OPS["concat"]([*ends, Tensor(inner), *closing])
