"""A function at a point as a linear map: applied to vectors from either side, or as a matrix.

Note [Fresh inputs]
-------------------
The function gets Tensors of its own, never the caller's: a Tensor that it captures is a constant
even where the same Tensor is an input as well, hooks on the caller's do not fire, and no ``.grad``
is written. With ``create_graph`` they are views of inputs that require grad, so results lead back
to these.

Note [Forward products by two backwards]
----------------------------------------
The pullback ``w -> w J`` is linear in ``w``, and its transpose is ``v -> J v``. So a forward
product pulls back a ``w`` that requires grad (its value does not matter), recording that, and pulls
``v`` back through the record. This needs no forward-mode formula, and the result can have a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, has_tangent, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor, Version
from numgrad.codegen.expr import check_dtype
from numgrad.core.abstract import ones, zeros
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError

Tensors: TypeAlias = tuple[Tensor, ...]

Outputs: TypeAlias = tuple[Tensors, bool]
"""What a function returned, as a tuple, and whether it was one Tensor outside of a tuple."""


def pullback(
    y: Sequence[Tensor], w: Sequence[Tensor], x: Sequence[Tensor], create_graph: bool
) -> tuple[Tensor | None, ...]:
    """The product ``w J`` for each of ``x``; None for one that no ``y`` depends on."""
    pairs = [(part, weight) for part, weight in zip(y, w, strict=True) if part.requires_grad]
    if not pairs:
        return (None,) * len(x)
    roots, weights = zip(*pairs, strict=True)
    return dense_grad(roots, x, weights, create_graph=create_graph, allow_unused=True)


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked: by which function's name (for messages), and with which flags."""

    name: str
    create_graph: bool
    strict: bool
    made: list[Tensor] = field(default_factory=list)
    """Leaves of its own, which are frozen in the end: what is returned does not lead there."""

    @contextmanager
    def recording(self) -> Iterator[None]:
        """What is called inside is recorded."""
        try:
            with enable_grad():
                yield
        finally:
            for leaf in self.made:
                leaf._requires_grad = False

    # --- arguments

    def fresh(self, inputs: Any) -> tuple[Tensors, bool]:
        """Tensors to call the function with, and whether one was given: Note [Fresh inputs]."""
        if state.inference:
            raise NumgradRuntimeError(
                f"{self.name}: in inference_mode nothing is recorded that could be differentiated; "
                "leave it first"
            )
        given, single = self._tensors("inputs", inputs)
        for k, x in enumerate(given):
            if x.dtype.kind not in "fc":
                raise NumgradTypeError(
                    f"{self.name}: input {k} has dtype {x.dtype}, which has no derivatives; "
                    "convert it, for example with .astype(np.float64)"
                )
        return tuple(self._own(x, requires_grad=True) for x in given), single

    def vector(self, v: Any, like: Tensors, what: str) -> Tensors:
        """The vector of a product, checked against ``like`` and converted to its dtypes."""
        if v is None:
            if len(like) == 1 and _is_number(like[0]):
                return (_one(like[0]),)
            seen = ", ".join(f"{t.dtype} of shape {t.shape}" for t in like)
            raise NumgradRuntimeError(
                f"{self.name}: v may be left out only where {what} is one real number, here it is "
                f"{seen}; pass a v like that"
            )
        given, single = self._tensors("v", v)
        if len(given) != len(like):
            raise NumgradRuntimeError(
                f"{self.name}: v has {len(given)} part(s), {what} has {len(like)}; pass one each"
            )
        for k, (part, t) in enumerate(zip(given, like, strict=True)):
            fits = part.shape == t.shape and (part.dtype.kind == "c") == (t.dtype.kind == "c")
            if not fits:
                raise NumgradRuntimeError(
                    f"{self.name}: {'v' if single else f'v[{k}]'} is {part.dtype} of shape "
                    f"{part.shape}, {what} is {t.dtype} of shape {t.shape}; pass a v of that "
                    "shape, complex only where that is"
                )
        return tuple(
            self._own(part, requires_grad=False).astype(t.dtype, copy=False)
            for part, t in zip(given, like, strict=True)
        )

    def _tensors(self, what: str, values: Any) -> tuple[Tensors, bool]:
        """Tensors or ndarrays as a tuple of Tensors, and whether it was one outside of a tuple."""
        single = not isinstance(values, tuple)
        given = (values,) if single else values
        if not given:
            raise NumgradTypeError(f"{self.name}: {what} is an empty tuple; give a Tensor at least")
        names = [what] if single else [f"{what}[{k}]" for k in range(len(given))]
        return tuple(map(self._tensor, names, given)), single

    def _tensor(self, what: str, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value
        if not isinstance(value, np.ndarray | np.generic):
            raise NumgradTypeError(
                f"{self.name}: {what} is a {type(value).__name__}; give Tensors or ndarrays, "
                "several in a tuple (np.asarray makes one of numbers and lists)"
            )
        check_dtype(self.name, value.dtype)
        return Tensor(np.asarray(value), memory=Version(foreign=True))

    def _own(self, given: Tensor, *, requires_grad: bool) -> Tensor:
        """A Tensor with the same numbers, connected to ``given`` if that is asked for."""
        if self.create_graph and given.requires_grad:
            return given.reshape(given.shape)
        tangent = self.create_graph and has_tangent(given)
        own = OPS["positive"](given) if tangent else given.detach()
        if requires_grad:
            own._requires_grad = True
            self.made.append(own)
        return own

    # --- the function

    def outputs(self, func: Callable[..., Any], x: Tensors) -> Outputs:
        """What the function returns for ``x``."""
        value = func(*x)
        y = value if isinstance(value, tuple) else (value,)
        if not y:
            raise NumgradTypeError(f"{self.name}: the function returned an empty tuple")
        for k, part in enumerate(y):
            if not isinstance(part, Tensor):
                raise NumgradTypeError(
                    f"{self.name}: output {k} of the function is a {type(part).__name__}; return "
                    "a Tensor or a tuple of them, computed from the arguments without converting "
                    "these to arrays or numbers"
                )
            if self.strict and not part.requires_grad:
                raise self._independent(f"output {k} of the function", "the inputs")
        return y, not isinstance(value, tuple)

    def gradient(self, func: Callable[..., Any], x: Tensors) -> tuple[Tensor, Tensors]:
        """Value of a scalar function, and its gradient as a function of ``x`` on the tape."""
        y, single = self.outputs(func, x)
        if not (single and _is_number(y[0])):
            seen = f"{y[0].dtype} of shape {y[0].shape}" if single else f"a tuple of {len(y)}"
            raise NumgradRuntimeError(
                f"{self.name}: only one real number has a Hessian, the function returned {seen}; "
                "sum it, or take the jacobian"
            )
        found = pullback(y, (_one(y[0]),), x, create_graph=True)
        return y[0], self.filled(found, x, "the function", "input {}", recorded=True)

    # --- the linear map

    def pushforward(self, y: Tensors, v: Tensors, x: Tensors, whole: str, part: str) -> Tensors:
        """The product ``J v`` for each of ``y``: Note [Forward products by two backwards]."""
        w = [Tensor(zeros(t.shape, t.dtype), t.requires_grad) for t in y]
        self.made.extend(w)
        pulled = pullback(y, w, x, create_graph=True)
        pulled = self.filled(pulled, x, whole, "input {}", recorded=True)
        weights = [weight for weight in w if weight.requires_grad]
        found = iter(pullback(pulled, v, weights, self.create_graph))
        product = [next(found) if weight.requires_grad else None for weight in w]
        return self.filled(product, y, part, "the inputs", recorded=self.create_graph)

    def rows(self, y: Tensor, x: Tensors, vectorize: bool, what: str) -> Tensors:
        """Jacobian of one output by each of ``x``, by backwards."""
        like = [Meta(y.shape + t.shape, t.dtype) for t in x]
        if not y.size:  # no row to ask for, none to be strict about
            return tuple(Tensor(zeros(meta.shape, meta.dtype)) for meta in like)
        found: Sequence[Tensor | None] = (None,) * len(x)
        if y.requires_grad:
            if vectorize:
                basis = OPS["stack"]([Tensor(unit) for unit in _basis(y)])
                found = dense_grad(
                    y, x, basis, create_graph=self.create_graph, allow_unused=True,
                    is_grads_batched=True,
                )  # fmt: skip
            else:
                found = self._rows_in_turn(y, x, what)
        shaped = [
            None if part is None else part.reshape(meta.shape)
            for part, meta in zip(found, like, strict=True)
        ]
        return self.filled(shaped, like, what, "input {}", recorded=self.create_graph)

    def _rows_in_turn(self, y: Tensor, x: Tensors, what: str) -> list[Tensor | None]:
        if y.dtype.kind == "c":
            raise NumgradRuntimeError(
                f"{self.name}: {what} is complex, and a row is the derivative of one real number; "
                "return real and imaginary part as two outputs, or pass vectorize=True for that "
                "of the real part"
            )
        rows = [
            dense_grad(y, x, Tensor(unit), True, self.create_graph, allow_unused=True)
            for unit in _basis(y)
        ]
        return [
            None if column[0] is None else OPS["stack"](*column)
            for column in zip(*rows, strict=True)
        ]

    def filled(
        self,
        found: Sequence[Tensor | None],
        like: Sequence[Tensor | Meta],
        what: str,
        by: str,
        *,
        recorded: bool,
    ) -> Tensors:
        """Derivatives of ``what`` with zeros for None; in strict mode they must depend on ``by``.

        Both may leave ``{}`` for the position. Derivatives that are ``recorded`` must depend on the
        inputs themselves.
        """
        for k, part in enumerate(found):
            if self.strict and part is None:
                raise self._independent(what.format(k), by.format(k))
            if self.strict and recorded and part is not None and not part.requires_grad:
                raise NumgradRuntimeError(
                    f"{self.name}: the derivative of {what.format(k)} by {by.format(k)} is "
                    "constant, so it has none itself; pass strict=False if that is meant"
                )
        return tuple(
            Tensor(zeros(meta.shape, meta.dtype)) if part is None else part
            for part, meta in zip(found, like, strict=True)
        )

    def _independent(self, what: str, by: str) -> NumgradRuntimeError:
        return NumgradRuntimeError(
            f"{self.name}: {what} does not depend on {by}; pass strict=False to get zeros"
        )

    # --- results

    def result(self, values: Sequence[Tensor], single: bool) -> Any:
        """What the caller gets: without a graph unless asked for, without a tuple if ``single``."""
        kept = tuple(values if self.create_graph else (value.detach() for value in values))
        return kept[0] if single else kept

    def matrix(
        self,
        function: Callable[[Tensors], Outputs],
        inputs: Any,
        vectorize: bool,
        strategy: str,
        what: str,
    ) -> Any:
        """Jacobian of a function of fresh inputs, nested as its outputs and they are."""
        self._check_strategy(vectorize, strategy)
        with self.recording():
            x, one_input = self.fresh(inputs)
            if strategy == "forward-mode":
                table, one_output = columns(function, x)
            else:
                y, one_output = function(x)
                table = [self.rows(part, x, vectorize, what.format(k)) for k, part in enumerate(y)]
            rows = [self.result(row, one_input) for row in table]
        return rows[0] if one_output else tuple(rows)

    def _check_strategy(self, vectorize: bool, strategy: str) -> None:
        if strategy not in ("reverse-mode", "forward-mode"):
            raise NumgradValueError(
                f"{self.name}: there is no strategy {strategy!r}; choose 'reverse-mode', or "
                "'forward-mode' where the input is smaller than the output"
            )
        forward = strategy == "forward-mode"
        if forward and not vectorize:
            raise NumgradRuntimeError(f"{self.name}: forward-mode needs vectorize=True")
        if forward and self.create_graph:
            raise NumgradRuntimeError(
                f"{self.name}: forward-mode records no graph; leave out create_graph, or choose "
                "reverse-mode"
            )
        if vectorize and self.strict:
            raise NumgradRuntimeError(
                f"{self.name}: strict looks at one row after the other; pass vectorize=False with "
                "it"
            )


def columns(function: Callable[[Tensors], Outputs], x: Tensors) -> tuple[list[list[Tensor]], bool]:
    """Jacobian of each output by each of ``x``, by evaluations with dual numbers."""
    y, single = function(x)  # for the shapes, which an empty input would not show
    table: list[list[Tensor]] = [[] for _ in y]
    for k, t in enumerate(x):
        blocks: list[list[Tensor]] = [[] for _ in y]
        for unit in _basis(t):
            with dual_level():
                dual = make_dual(t, Tensor(unit))
                outputs, _ = function((*x[:k], dual, *x[k + 1 :]))
                for block, part in zip(blocks, outputs, strict=True):
                    tangent = unpack_dual(part).tangent
                    block.append(
                        Tensor(zeros(part.shape, part.dtype))
                        if tangent is None
                        else tangent.detach()
                    )
        for row, block, part in zip(table, blocks, y, strict=True):
            shape = part.shape + t.shape
            row.append(
                OPS["stack"](block, axis=-1).reshape(shape)
                if block
                else Tensor(zeros(shape, part.dtype))
            )
    return table, single


def _basis(like: Tensor) -> Iterator[Any]:
    """The arrays shaped like a Tensor that are 1 at one place."""
    shape = tuple(int(n) for n in like.shape)
    return (state.ground.unit(shape, k, like.dtype) for k in range(prod(shape)))


def _is_number(value: Tensor) -> bool:
    return value.size == 1 and value.dtype.kind != "c"


def _one(like: Tensor) -> Tensor:
    return Tensor(ones(like.shape, like.dtype))
