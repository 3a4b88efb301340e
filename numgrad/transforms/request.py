"""Requests to ``autograd.functional``: PyTorch's rules for arguments, results and ``strict``.

Note [Fresh inputs]
-------------------
The function gets Tensors of its own, never the caller's: a Tensor that it captures is a constant
even where the same Tensor is an input as well, hooks on the caller's do not fire, and no ``.grad``
is written. With ``create_graph`` they are views of inputs that require grad, so results lead back
to these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.batching.selected import beneath, levels, spread
from numgrad.autograd.forward_ad import has_tangent
from numgrad.autograd.modes import enable_grad
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import Version
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.formula import Meta
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, NumgradValueError
from numgrad.tensors.random_state import RepeatedDraws
from numgrad.transforms.call import check_floating
from numgrad.transforms.linearization import Linearization, dual_columns, filled, one

Tensors: TypeAlias = tuple[Tensor, ...]

Outputs: TypeAlias = tuple[Tensors, bool]
"""Results of a function, as a tuple, and whether it was one Tensor outside of a tuple."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request: by which function's name (for messages), and with which flags."""

    name: str
    create_graph: bool
    strict: bool
    made: list[Tensor] = field(default_factory=list)
    """Leaves of its own, which are frozen in the end: what is returned does not lead there."""
    maps: list[Linearization] = field(default_factory=list)
    """The results that were differentiated, frozen in the end as well."""

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what is called inside."""
        try:
            with enable_grad():
                yield
        finally:
            for leaf in self.made:
                leaf._requires_grad = False
            for linear in self.maps:
                linear.freeze()

    # --- arguments

    def fresh(self, inputs: Any) -> tuple[Tensors, bool]:
        """Tensors to call the function with, and whether one was given: Note [Fresh inputs]."""
        if state.inference:
            raise NumgradRuntimeError(
                f"{self.name}: in inference_mode nothing is recorded that could be differentiated; "
                "leave it first"
            )
        tensors, single = self._tensors("inputs", inputs)
        for k, x in enumerate(tensors):
            if x.dtype.kind not in "fc":
                raise NumgradTypeError(
                    f"{self.name}: input {k} has dtype {x.dtype}, which has no derivatives; "
                    "convert it, for example with .astype(np.float64)"
                )
        return tuple(self._own(x, requires_grad=True) for x in tensors), single

    def vector(self, v: Any, like: Tensors, what: str) -> Tensors:
        """The vector of a product, checked against ``like`` and converted to its dtypes."""
        if v is None:
            if len(like) == 1 and _is_number(like[0]):
                return (one(like[0]),)
            listed = ", ".join(f"{t.dtype} of shape {t.shape}" for t in like)
            raise NumgradRuntimeError(
                f"{self.name}: v may be left out only where {what} is one real number, here it is "
                f"{listed}; pass a v like that"
            )
        tensors, single = self._tensors("v", v)
        if len(tensors) != len(like):
            raise NumgradRuntimeError(
                f"{self.name}: v has {len(tensors)} part(s), {what} has {len(like)}; pass one each"
            )
        for k, (tensor, t) in enumerate(zip(tensors, like, strict=True)):
            fits = tensor.shape == t.shape and (tensor.dtype.kind == "c") == (t.dtype.kind == "c")
            if not fits:
                raise NumgradRuntimeError(
                    f"{self.name}: {'v' if single else f'v[{k}]'} is {tensor.dtype} of shape "
                    f"{tensor.shape}, {what} is {t.dtype} of shape {t.shape}; pass a v of that "
                    "shape, complex only where that is"
                )
        return tuple(
            self._own(tensor, requires_grad=False).astype(t.dtype, copy=False)
            for tensor, t in zip(tensors, like, strict=True)
        )

    def _tensors(self, what: str, values: Any) -> tuple[Tensors, bool]:
        """Tensors or ndarrays as a tuple of Tensors, and whether it was one outside of a tuple."""
        single = not isinstance(values, tuple)
        tensors = (values,) if single else values
        if not tensors:
            raise NumgradTypeError(f"{self.name}: {what} is an empty tuple; give a Tensor at least")
        names = [what] if single else [f"{what}[{k}]" for k in range(len(tensors))]
        return tuple(map(self._tensor, names, tensors)), single

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

    def _own(self, tensor: Tensor, *, requires_grad: bool) -> Tensor:
        """A Tensor with the same numbers, connected to ``tensor`` if that is asked for."""
        over = levels() if requires_grad else []  # Note [Derivatives by example]
        if self.create_graph and tensor.requires_grad:
            return spread(tensor.reshape(tensor.shape), over)
        if self.create_graph and has_tangent(tensor):
            own = OPS["positive"](tensor)
        elif self.create_graph and state.ground.deferred and not state.constant:
            own = state.ground.differentiable(tensor)  # followed by who compiles it
        else:
            own = tensor.detach()
        own = spread(own, over)
        if requires_grad:
            self.made.append(beneath(own))
            self.made[-1]._requires_grad = True
        return own

    # --- the function

    def outputs(self, func: Callable[..., Any], x: Tensors) -> Outputs:
        """Results of the function for ``x``."""
        value = func(*x)
        y = value if isinstance(value, tuple) else (value,)
        if not y:
            raise NumgradTypeError(f"{self.name}: the function returned an empty tuple")
        for k, output in enumerate(y):
            if not isinstance(output, Tensor):
                raise NumgradTypeError(
                    f"{self.name}: output {k} of the function is a {type(output).__name__}; return "
                    "a Tensor or a tuple of them, computed from the arguments without converting "
                    "these to arrays or numbers"
                )
            check_floating(self.name, f"output {k} of the function is", output.dtype)
            if self.strict and not output.requires_grad:
                raise self._independent(f"output {k} of the function", "the inputs")
        return y, not isinstance(value, tuple)

    def gradient(self, func: Callable[..., Any], x: Tensors) -> tuple[Tensor, Tensors]:
        """Value of a scalar function, and its gradient as a function of ``x`` on the tape."""
        y, single = self.outputs(func, x)
        if not (single and _is_number(y[0])):
            listed = f"{y[0].dtype} of shape {y[0].shape}" if single else f"a tuple of {len(y)}"
            raise NumgradRuntimeError(
                f"{self.name}: only one real number has a Hessian, the function returned {listed}; "
                "sum it, or take the jacobian"
            )
        result = Linearization(y, x, create_graph=True).pull((one(y[0]),))
        return y[0], self.filled(result, x, "the function", "input {}", recorded=True)

    # --- the linear map

    def linear(self, y: Tensors, x: Tensors) -> Linearization:
        """The derivative of ``y`` by ``x``."""
        self.maps.append(Linearization(y, x, self.create_graph))
        return self.maps[-1]

    def pullback(self, y: Tensors, w: Tensors, x: Tensors, what: str) -> Tensors:
        """The product ``w J`` for each of ``x``."""
        result = self.linear(y, x).pull(w, last=True)
        return self.filled(result, x, what, "input {}", recorded=self.create_graph)

    def pushforward(self, y: Tensors, v: Tensors, x: Tensors, whole: str, inner: str) -> Tensors:
        """The product ``J v`` for each of ``y``."""
        linear = self.linear(y, x)
        self.filled(linear.transposed.y, x, whole, "input {}", recorded=True)
        result = linear.push(v, last=True)
        return self.filled(result, y, inner, "the inputs", recorded=self.create_graph)

    def rows(self, y: Tensors, x: Tensors, vectorize: bool, what: str) -> list[Tensors]:
        """Jacobian of each output by each of ``x``."""
        linear = self.linear(y, x)
        table = []
        for k, output in enumerate(y):
            if output.dtype.kind == "c" and output.requires_grad and output.size and not vectorize:
                raise NumgradRuntimeError(
                    f"{self.name}: {what.format(k)} is complex, and a row is the derivative of one "
                    "real number; return real and imaginary part as two outputs, or pass "
                    "vectorize=True for that of the real part"
                )
            row = linear.rows(k, vectorize)
            like = [Meta(output.shape + t.shape, t.dtype) for t in x]
            if output.size:  # else there is nothing to be strict about
                row = self.filled(row, like, what.format(k), "input {}", recorded=self.create_graph)
            table.append(row)
        return table

    def filled(
        self,
        results: Sequence[Tensor | None],
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
        for k, grad in enumerate(results):
            if self.strict and grad is None:
                raise self._independent(what.format(k), by.format(k))
            if self.strict and recorded and grad is not None and not grad.requires_grad:
                raise NumgradRuntimeError(
                    f"{self.name}: the derivative of {what.format(k)} by {by.format(k)} is "
                    "constant, so it has none itself; pass strict=False if that is meant"
                )
        return tuple(
            filled(grad, meta.shape, meta.dtype) for grad, meta in zip(results, like, strict=True)
        )

    def _independent(self, what: str, by: str) -> NumgradRuntimeError:
        return NumgradRuntimeError(
            f"{self.name}: {what} does not depend on {by}; pass strict=False to get zeros"
        )

    # --- results

    def result(self, values: Sequence[Tensor], single: bool) -> Any:
        """Results for the caller: a graph only if asked for, a tuple unless ``single``."""
        results = tuple(values if self.create_graph else (value.detach() for value in values))
        return results[0] if single else results

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
            forward = strategy == "forward-mode"
            draws = RepeatedDraws(function) if forward else nullcontext()

            def evaluate(x: Sequence[Tensor]) -> Outputs:
                with draws:
                    return function(tuple(x))

            y, one_output = evaluate(x)
            if forward:
                table = dual_columns(lambda x: evaluate(x)[0], y, x)
            else:
                table = self.rows(y, x, vectorize, what)
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


def _is_number(value: Tensor) -> bool:
    return value.size == 1 and value.dtype.kind != "c"
