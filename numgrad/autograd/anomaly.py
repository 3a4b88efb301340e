"""Finding the operation behind a failing backward or a NaN: nodes remember who recorded them.

Note [Anomaly mode]
-------------------
While it is on, operations go through ``bind``, which stores the lines of the caller's stack with
each node, and every node gets the side object that makes a walk look for NaNs. Off, it costs
nothing.

Note [Floating-point flags]
---------------------------
NumPy's warnings of invalid values and divisions by zero are flags of the CPU, which its loops set
as IEEE 754 has it. Kernels here do not: vectors compute both sides of a branch, and constants
stand for what is outside of a domain. Of 14 elementary functions at six points each, kernels raised
flags in 27 cases where NumPy does not, and missed ``log`` at -1 and at 0. Right flags would take
other formulas, comparing results another pass over them. So kernels are silent, and anomaly mode,
in which everything is slow, compares.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from numgrad.autograd.hooks import node_extras
from numgrad.autograd.variable import Tensor
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import Changing, ChangingAtOnce, state
from numgrad.core.op import Op
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradFloatingPointError, NumgradRuntimeError, warn
from numgrad.libraries import PACKAGE, is_users

GRADIENTS = "gradients"
"""``check_nan`` for NaNs in gradients only, not in results."""


def remember_line(node: Any) -> None:
    """Store with a new node the stack of the code that called the operation."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    extras = node_extras(node)
    extras.trace = "".join(traceback.format_stack(frame, limit=16))
    extras.parent = state.running


def fail_on_nan(node: Any, gradients: Sequence[Any]) -> None:
    """Raise if a gradient that a node computed has a NaN, where NaNs are looked for."""
    if not state.check_nan:
        return
    for position, g in enumerate(gradients):
        array = g._array if isinstance(g, Tensor) else g
        values = array.values if type(array) is RowSparseArray else array
        if values is not None and values.dtype.kind in "fc" and (values != values).any():
            raise NumgradRuntimeError(
                f"{_name(node)}: its backward returned NaN in the gradient of operand {position}, "
                f"of shape {array.shape}; the warning above shows the line that recorded it"
            )


def warn_of_result(op: Op, arrays: Sequence[Any], result: Any) -> None:
    """Warn or raise, as ``np.errstate`` asks, of NaN or infinities that come of finite operands.

    Of elementwise operations, as in NumPy; Note [Floating-point flags].
    """
    if (
        not (state.check_nan is True and isinstance(op, Elementwise))
        or result.dtype.kind not in "fc"
    ):
        return
    settings: Any = np.geterr()
    for kind, name, test in (("invalid", "NaN", np.isnan), ("divide", "infinite", np.isinf)):
        if settings[kind] == "ignore" or not test(result).any():
            continue
        if all(np.isfinite(a).all() for a in arrays) and not _in_backward():
            message = (
                f"{op.name}: of finite operands, a result of shape {result.shape} is {name} "
                f"somewhere; np.errstate({kind}='ignore') says that it may be"
            )
            if settings[kind] == "raise":
                raise NumgradFloatingPointError(message)
            warn(message, RuntimeWarning)


def _in_backward() -> bool:
    """Whether a gradient formula is being computed, not the user's operation."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        if frame.f_globals.get("__name__") == "numgrad.autograd.engine.walk":
            return True
        frame = frame.f_back
    return False


def explain(node: Any, error: BaseException) -> None:
    """Warn, in anomaly mode, with the line that recorded the node whose backward failed."""
    if not state.anomaly or node is None or getattr(error, "_numgrad_explained", False):
        return
    trace = None if node.extras is None else node.extras.trace
    recorded = f"the operation was recorded here:\n{trace}"
    if trace is None:
        recorded = (
            "No forward pass information is available, since the operation was recorded outside "
            "anomaly mode"
        )
    _report(f"Error detected in {_name(node)}: its backward failed; {recorded}")
    if trace is not None:
        _explain_parents(node)
    error._numgrad_explained = True  # pyright: ignore


def _name(node: Any) -> str:
    """Name of a node in warnings and errors: that of the mode's function, if it has one."""
    return node.name() if state.anomaly is True else state.anomaly(node)


def _report(message: str) -> None:
    """Warn; where warnings are errors, print, since that would hide the error it explains."""
    try:
        warn(message, UserWarning)
    except UserWarning as warning:
        print(warning, file=sys.stderr)


def _explain_parents(node: Any) -> None:
    """Warn with the lines of the nodes, outermost last, whose backwards recorded a node."""
    while (parent := node.extras and node.extras.parent) is not None:
        trace = parent.extras and parent.extras.trace
        _report(
            f"{_name(node)}: was recorded by the backward of {_name(parent)}, which was recorded "
            + (f"here:\n{trace}" if trace else "outside anomaly mode")
        )
        node = parent


class set_detect_anomaly(ChangingAtOnce):
    """Turn anomaly mode on or off, at once or for a block: see ``detect_anomaly``.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.autograd.set_detect_anomaly(False):
    ...     pass
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._settings = {"anomaly": bool(mode), "check_nan": bool(check_nan)}
        self._change()

    def _changes(self) -> dict[str, Any]:
        return self._settings.copy()


class detect_anomaly(Changing):
    """Find the operation whose backward fails or returns NaN.

    Operations recorded inside remember the lines that called them. When the backward of one, run
    inside too, raises or (with ``check_nan``) returns NaN, a warning shows these lines. An
    elementwise operation whose result is NaN or infinite, of operands that are finite, warns at
    once or raises, as ``np.errstate`` asks; outside of this mode operations on Tensors do not heed
    it. Slow: for debugging.

    Examples
    --------
    >>> import warnings
    >>> import numgrad as ng
    >>> x = ng.tensor(0.0, requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), ng.autograd.detect_anomaly():
    ...     y = ng.sqrt(x) * 0.0
    ...     try:
    ...         y.backward()
    ...     except ng.NumgradRuntimeError as error:
    ...         print(error.args[0].split(",")[0])
    SqrtBackward: its backward returned NaN in the gradient of operand 0
    """

    def __init__(self, check_nan: bool = True) -> None:
        warn(
            "Anomaly Detection has been enabled: operations remember their lines, which makes them "
            "slow; use it to find an error",
            UserWarning,
        )
        self._check_nan = bool(check_nan)

    def _changes(self) -> dict[str, Any]:
        return {"anomaly": True, "check_nan": self._check_nan}


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.is_anomaly_enabled()
    False
    """
    return bool(state.anomaly)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN in this thread.

    Examples
    --------
    >>> import numgrad as ng
    >>> with ng.autograd.set_detect_anomaly(True, check_nan=False):
    ...     ng.autograd.is_anomaly_check_nan_enabled()
    False
    """
    return bool(state.check_nan)
