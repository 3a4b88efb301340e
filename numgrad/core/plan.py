"""A call of an operation: the plan of all that does not depend on numbers, and what is saved.

Note [Plans]
------------
Everything about a call that does not depend on the numbers (result dtype, broadcasting, which
kernel, serial or parallel) is a ``Plan``, found by the dtypes and shapes of the operands. The eager
hot path is one look-up of the plan, one ``np.empty`` and one call of the kernel's entry point.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from numgrad.core.formula import GradientFormula, Meta
from numgrad.core.interpreter import interpret, raw, state
from numgrad.core.op import OPS, Op

CONSUMES = 2
"""``Call.large`` of a call whose ``consume(mask, g, owned)`` may write to ``g`` if it is owned."""


class Call:
    """One application of an operation to operands of known shapes: what its backward depends on.

    The generic form computes gradients by running the formulas on ndarrays under ``raw``; families
    with compiled backwards override ``backward``.
    """

    __slots__ = ("aux", "metas", "op", "params")
    functions: Any = MappingProxyType({})
    """Compiled backwards by mask, where a family has them: ``(g, *saved) -> gradients, owned``."""
    large: int = False
    """Whether ``backward_into(mask, g, saved, buffers)``, which adds to buffers, is worth while."""
    nout = 1
    """Number of outputs."""
    out_metas: tuple[Meta, ...] = ()
    """Shapes and dtypes of the outputs of an operation that returns a tuple, else empty."""
    row_sparse = False
    """Whether ``backward`` may return gradients that are row-sparse, which are for leaves only."""
    opaque = False
    """Whether a user's code made the outputs: what it returned as a view cannot be written to."""
    ruled = False
    """Whether code of a user's makes gradients inside: of steps, say."""
    composed = False
    """Whether the operation is none of the table, and its backward consists of such."""

    def __init__(
        self, op: Op, metas: tuple[Meta, ...], params: dict[str, Any], aux: tuple = ()
    ) -> None:
        self.op, self.metas, self.params, self.aux = op, metas, params, aux

    @property
    def materializes(self) -> bool:
        """Whether its backward gets zeros for outputs that no gradient reached, or None."""
        return self.op.materializes

    @property
    def results(self) -> tuple[Meta, ...]:
        """Shapes and dtypes of the outputs, one or several."""
        return self.out_metas

    def input_name(self, k: int) -> str:
        """Name of operand ``k``; variadic operations number theirs."""
        names = self.op.inputs
        return names[k] if names != ("inputs",) else "inputs"

    @property
    def formulas(self) -> dict[str, GradientFormula]:
        """The gradient formula of each input, for operands of these dtypes."""
        op = self.op
        if op.complex_formulas and "c" in [m.dtype.kind for m in self.metas]:
            return op.formulas | op.complex_formulas
        return op.formulas

    def differentiable(self, k: int) -> bool:
        """Whether operand ``k`` has a gradient formula."""
        return self.input_name(k) in self.op.formulas

    def saves(self, mask: int) -> tuple[str, ...]:
        """Values that backward needs when the operands of the bits of ``mask`` need gradients."""
        needs: list[str] = []
        op = self.op  # most have one formula for all dtypes: a property takes a call
        formulas = self.formulas if op.complex_formulas else op.formulas
        for k in range(len(self.metas)):
            if mask >> k & 1:
                needs += formulas[self.input_name(k)].needs
        order = (*self.op.inputs, *self.op.auxiliaries, "y")
        return tuple(sorted(set(needs), key=order.index))

    def auxiliary(self, name: str) -> Any:
        """A value, by name, that a backward needs besides operands and results."""
        return self.aux[self.op.auxiliaries.index(name)]

    def arguments(self, formula: GradientFormula, k: int, values: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of a formula, apart from ``g``."""
        values_by_name = {}
        for name in formula.needs:
            values_by_name[name] = values[name]
        names = self.op.inputs
        for name in formula.metas:
            values_by_name[f"meta_{name}"] = self.metas[
                names.index(name) if name != "inputs" else k
            ]
        for name in formula.params:
            values_by_name[name] = (
                self.implied(name, k) if name in self.op.implied else self.params[name]
            )
        return values_by_name

    def consuming(self, mask: int) -> Callable[..., Any] | None:
        """A compiled backward that writes its gradient over ``g``, where there is one.

        Asked for if the call is ``large``, by an engine that owns ``g``.
        """
        return None

    def implied(self, name: str, k: int) -> Any:
        """Value of a parameter that the family supplies."""
        if name == "index":  # which of a variadic operation's operands
            return k
        if name == "metas":
            return self.metas
        raise KeyError(name)

    def gradient(self, k: int, g: Any, values: dict[str, Any]) -> Any:
        """Gradient of operand ``k`` by its formula, on whatever kind of value ``g`` is."""
        op = self.op
        formulas = self.formulas if op.complex_formulas else op.formulas
        formula = formulas[self.input_name(k)]
        arguments = self.arguments(formula, k, values)
        complex_ = False
        for meta in self.metas:
            if meta.dtype.kind == "c":
                complex_ = True
                break
        if complex_ and op.by_elements and len(self.metas) > 1:
            op.promote(arguments, self.metas)  # pyright: ignore[reportAttributeAccessIssue]
        conjugates = op.holomorphic and complex_
        if formula.uses_g:
            arguments["g"] = _conjugate(g) if conjugates else g
        grad = formula.function(**arguments)
        return _conjugate(grad) if conjugates else grad

    def gradients(self, mask: int, g: Any, values: dict[str, Any]) -> list[Any]:
        """Gradients of the operands in ``mask`` (None for others), on whatever ``g`` is."""
        if self.op.joint_gradients is not None:
            return self.op.joint_gradients(mask, g, values, self.params)
        grads: list[Any] = [None] * len(self.metas)
        for k in range(len(grads)):
            if mask >> k & 1:
                grads[k] = self.gradient(k, g, values)
        return grads

    def backward(self, mask: int, g: Any, saved: Sequence[Any]) -> tuple[list[Any], int]:
        """Gradients of the operands in ``mask`` (None for others) and which of them are owned.

        Bit ``k`` of the second result says that gradient ``k`` is an array nobody else holds.
        """
        values = dict(zip(self.saves(mask), saved, strict=True))
        out: list[Any] = [None] * len(self.metas)
        before = state.interpreters  # as ``interpreter(raw)``, without the microsecond it takes
        try:
            state.interpreters = (*before, raw)
            state.refresh()
            for k, meta in enumerate(self.metas):
                if mask >> k & 1:
                    value = self.gradient(k, g, values)
                    out[k] = None if value is None else conform(value, meta)
        finally:
            state.interpreters = before
            state.refresh()
        return out, 0


def _conjugate(value: Any) -> Any:
    if isinstance(value, tuple | list):  # of several outputs, some without a gradient
        return tuple([None if v is None else np.conj(v) for v in value])
    return np.conj(value)


def conform(value: np.ndarray, meta: Meta) -> np.ndarray:
    """``value`` summed over broadcast axes to ``meta.shape`` and converted to ``meta.dtype``."""
    value = np.asarray(value)
    if value.ndim == 0 and meta.shape:
        value = np.broadcast_to(value, meta.shape)
    if value.shape != meta.shape:
        value = sum_to_shape(value, meta.shape)
    if value.dtype != meta.dtype:
        if value.dtype.kind == "c" and meta.dtype.kind != "c":
            value = np.real(value)
        value = value.astype(meta.dtype)
    return value


def sum_to_shape(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes along which ``shape`` was broadcast to ``value.shape``."""
    lead = value.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 and value.shape[lead + i] != 1
    )
    if axes:
        value = OPS["sum"].run((value,), {"axis": axes, "keepdims": False, "dtype": None})[0]
    return np.broadcast_to(value.reshape(shape) if value.size == np.prod(shape) else value, shape)


MAX_PLANS = 4096
"""Plans kept per operation; shapes beyond that many start afresh."""

LARGE = 16384
"""Elements from which adding a gradient in the kernel that computes it saves time."""

_Any = TypeVar("_Any")


def remember(plans: dict[tuple, _Any], key: tuple, plan: _Any) -> _Any:
    """Keep a plan, and return it."""
    if len(plans) >= MAX_PLANS:
        plans.clear()
    plans[key] = plan
    return plan


class Planned(Op):
    """An operation whose calls are planned by dtypes and shapes: Note [Plans].

    A plan has what the eager hot path reads: ``entry``; ``empty``, ``allocate`` and ``dtype``,
    which make the result; ``flat`` (operands are passed as they are), ``dims``, ``floating``,
    ``grad_mask`` (a bit for each operand that may get a gradient) and ``save_masks`` (for each mask
    of operands that require grad, a bit for each operand that is saved and one for the result).
    """

    planned = True
    plans: dict[tuple, Any]
    whole = False
    """Whether kernels take arrays as they are, none raveled, and backwards need at most two."""
    bind = staticmethod(interpret)
    """Compute a call that no plan is ready for."""
    check: Callable[[Sequence[Any]], None] | None = None
    """A check that raises for integers that it cannot compute with."""

    def forget(self) -> None:
        self.plans.clear()
        super().forget()


class Plan(Call):
    """How an operation of one result is computed for operands of given dtypes and shapes."""

    __slots__ = ()
    dtype: np.dtype
    functions: dict[int, Callable[..., Any]]
    """Compiled backwards by mask, and by its complement those that add to buffers."""
    shape: tuple[int, ...]
    steps: dict[int, Any]
    """Facts for machine code by mask, in some families: Note [Launches]."""

    @property
    def results(self) -> tuple[Meta, ...]:
        return (Meta(self.shape, self.dtype),)

    def backward(self, mask: int, g: np.ndarray, saved: Sequence[Any]) -> tuple[Any, int]:
        function = self.functions.get(mask)
        if function is None:
            function = self.functions[mask] = self._compile_backward(mask)
        return function(g, *saved)

    def backward_into(
        self, mask: int, g: np.ndarray, saved: Sequence[Any], buffers: Sequence[Any]
    ) -> tuple[Any, int]:
        function = self.functions.get(~mask)
        if function is None:
            function = self.functions[~mask] = self._compile_backward(mask, accumulate=True)
        return function(g, *saved, buffers)

    def _compile_backward(self, mask: int, *, accumulate: bool = False) -> Callable[..., Any]:
        """The function of ``g`` and saved values that gives gradients or adds them to buffers."""
        raise NotImplementedError
