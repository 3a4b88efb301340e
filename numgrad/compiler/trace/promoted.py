"""Numbers around a function that have changed from trace to trace, as inputs of the graph.

Note [Promoted numbers]
-----------------------
A floating number that a function reads around itself is part of what is compiled, and another one
has it compiled again. One that has had two values already is *promoted* at the third: the trace
has a Tensor in its place, as it has for arguments that are numbers, and each call reads the number
(``routes`` says how the Tensor comes into the place). The compiled function must do what it would
do with the number. So whatever asks for the number ends such a trace: branches, lengths, texts,
functions of ``math``. What NumPy and Python compute of numbers alone is refused too, except for
sums and products, since Python raises errors and gives complex numbers where NumPy has infinity and
NaN. The place is then never promoted again, and the function is traced with the number, as before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.call.routes import Key, Routes
from numgrad.compiler.graph.graph import INPUT, Graph, Value
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.core.op import Op
from numgrad.errors import NumgradTraceError

_ALONE = {
    *("add", "conjugate", "multiply", "negative", "positive", "subtract"),
    *("detached", "unrecorded"),
}
"""Operations on numbers alone that Python and NumPy do alike."""

_become: Any = object.__dict__["__class__"].__set__


class PromotedNumber(Tensor):
    """A Tensor in place of a number around a function, or of what is computed of such alone."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise _refusal("hash()")

    def __repr__(self) -> str:
        raise _refusal("repr()")

    def __str__(self) -> str:
        raise _refusal("str()")

    def __format__(self, spec: str) -> str:
        raise _refusal("format()")

    def __float__(self) -> float:
        raise _refusal("float()")

    def __int__(self) -> int:
        raise _refusal("int()")

    def __complex__(self) -> complex:
        raise _refusal("complex()")

    def __index__(self) -> int:
        raise _refusal("an index")

    def __bool__(self) -> bool:
        raise _refusal("bool()")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.copy:  # which makes NumPy's number of Python's
            raise _refusal("copy")
        return super().__array_function__(func, types, args, kwargs)


class _Active(threading.local):
    """The promotion of the trace that is under way in a thread."""

    promotion: Promotion | None = None


_active = _Active()


def _refusal(what: str) -> NumgradTraceError:
    """The error of code that asks for the number, which ends the trace also if it is caught."""
    error = NumgradTraceError(f"{what}: the number around the function is not known in this trace")
    if _active.promotion is not None:
        _active.promotion.error = error
    return error


class Promotion:
    """The Tensors in place of numbers around a function, in one trace."""

    def __init__(self, tracer: Any, routes: Routes) -> None:
        self.numbers: dict[Key, Tensor] = {}
        self.error: NumgradTraceError | None = None
        self._alone: dict[Value, bool] = {}
        self._computed: list[Tensor] = []
        for key, source in routes.sources.items():
            number = source.value
            if type(number) is float:
                tensor = tracer.number(number)
            else:
                tensor = tracer.array((), number.dtype, scalar=True)
            self.numbers[key] = tensor
            value = tracer.value(tensor)
            tracer.numbers[value] = number
            self._alone[value] = True
        self._given = list(self._alone)

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Have the Tensors refuse to be taken for other than numbers."""
        around, _active.promotion = _active.promotion, self
        try:
            for tensor in self.numbers.values():
                _become(tensor, PromotedNumber)
            yield
        finally:
            _active.promotion = around
            for tensor in (*self.numbers.values(), *self._computed):
                _become(tensor, Tensor)

    def mark(self, result: Any) -> None:
        """Have what an operation computed of numbers alone refuse the same."""
        array = result._array if type(result) is Tensor else None
        if isinstance(array, TracedArray) and self.is_alone(array.value):
            _become(result, PromotedNumber)
            self._computed.append(result)

    def check(self, op: Op, arrays: Iterable[Any]) -> None:
        """Raise for an operation on numbers alone that Python might do in another way."""
        values = [a.value for a in arrays if isinstance(a, TracedArray)]
        alone = all(v.weak or self.is_alone(v) for v in values)
        if values and alone and op.name not in _ALONE:
            raise _refusal(op.name)

    def check_results(self, graph: Graph, results: list[Value]) -> None:
        """Raise if a function returns what NumPy computes of numbers alone, or caught a refusal.

        The same for a number that it read nowhere, or not where it was expected to.
        """
        if self.error is not None:
            raise self.error
        used = {v for node in graph.nodes for v in node.inputs}.union(results)
        if not used.issuperset(self._given):
            raise _refusal("use")
        for value in results:
            if not value.weak and self.is_alone(value):
                raise _refusal("return")

    def is_alone(self, value: Value) -> bool:
        """Whether a value depends on nothing but promoted numbers, and on one of them."""
        cached = self._alone.get(value)
        if cached is None:
            inputs = value.node.inputs
            known = [self.is_alone(v) for v in inputs if v.constant is None]
            cached = value.node.op != INPUT and bool(known) and all(known)
            self._alone[value] = cached
        return cached
