"""How each operation of the table is called where its gradients are checked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.core.elementwise import Elementwise
from numgrad.core.op import OPS, Op
from numgrad.core.primitive import Composite
from numgrad.nn import operations as _operations  # noqa: F401 (completes the table)
from numgrad.operations.special_functions.declare import ParameterDerivative, SpecialFunction
from numgrad.testing.samples import Sample, draw, samples
from tests.operations.calls import calls_of

GIVEN = {"ruled", "written_detached", "written_unrecorded"}
"""What a trace notes: derivatives that are given, not those of what is computed."""

STEPS = {"round"}
"""Composed of what has no gradient."""

TABLE = [
    op
    for op in OPS.values()
    if op.name not in GIVEN | STEPS
    and op.__module__.startswith("numgrad.")
    and op.differentiable
    and (op.formulas or isinstance(op, Composite))
    and (isinstance(op, Composite) or set(op.refused) != set(op.inputs))
    and not isinstance(op, ParameterDerivative)
]
"""Every differentiable operation; not those of users, nor what second derivatives reach."""


@dataclass
class Case:
    """A call with operands, some of which may be without a gradient."""

    function: Callable[..., Any]
    operands: list[np.ndarray]
    differentiable: list[bool]

    def tensors(self, arrange: Callable[[np.ndarray], np.ndarray] = np.copy) -> list[ng.Tensor]:
        return [
            ng.asarray(arrange(a)).requires_grad_(d)
            for a, d in zip(self.operands, self.differentiable, strict=True)
        ]


# Elementwise operations differ by their formulas, and share the loops around them: these go through
# every layout, the others through some.
EVERY_LAYOUT = {"multiply", "where"}
_NAMES = [op.name for op in TABLE]


def turn(op: Op) -> int:
    """An elementwise operation's number among those with as many operands.

    What concerns the loops that these share is dealt out to them in turn: ``turn(op) % n``.
    """
    kin = [
        o for o in OPS.values() if isinstance(o, Elementwise) and len(o.inputs) == len(op.inputs)
    ]
    return kin.index(op)


def layouts_of(op: Op, dtype: Any) -> list[Sample]:
    """Samples of an elementwise operation; every layout is met by some of the operations.

    Of two real operands both are broadcast in the first sample, the second comes in turn. Complex
    numbers, whose loops are those of real ones, are tried on operands of one shape.
    """
    found = list(samples(op, dtype))
    if isinstance(op, SpecialFunction):  # what is called in loops like others is SciPy's
        return found[:1]
    if np.dtype(dtype).kind == "c":
        return found if op.name in EVERY_LAYOUT else found[:1]
    if len(op.inputs) == 2:
        found.insert(0, found.pop(2))
    if op.name in EVERY_LAYOUT or len(op.inputs) == 1:
        return found
    turn = _NAMES.index(op.name)
    if len(op.inputs) == 2:
        return [found[0], found[1 + turn % (len(found) - 1)]]
    return [found[turn % len(found)]]


def cases(op: Op, dtype: Any = np.float64) -> Iterator[Case]:
    """Calls of an operation that its gradients are checked on, none of those that it refuses."""
    complex_ = np.dtype(dtype).kind == "c"
    return (case for case in drawn(op, dtype) if not (complex_ and _is_refused(case)))


def _is_refused(case: Case) -> bool:
    """Whether some operand has to be real."""
    try:
        case.function(*map(ng.asarray, case.operands))
    except ng.NumgradError:
        return True
    return False


def drawn(op: Op, dtype: Any) -> Iterator[Case]:
    """Calls of an operation, also those that it refuses."""
    declared = list(_calls(op, dtype, empty=False))
    if declared:  # these say better how it is called than what is drawn
        yield from declared
        return
    of_family = isinstance(op, Elementwise)
    for sample in layouts_of(op, dtype) if of_family else samples(op, dtype):
        operands = prepare(op, sample.args)
        beside = op.real_beside if operands[-1].dtype.kind == "c" else 0
        smooth = [
            op.inputs == ("inputs",)
            or (followed(op, op.inputs[k]) and a.dtype.kind in "fc" and k >= beside)
            for k, a in enumerate(operands)
        ]
        yield Case(lambda *x, p=sample.params: op(*x, **p), operands, smooth)


def followed(op: Op, name: str) -> bool:
    """Whether an input has a gradient formula that does not raise."""
    return isinstance(op, Composite) or (name in op.formulas and name not in op.refused)


def empty_cases(op: Op) -> Iterator[Case]:
    """Calls without any element, of what is neither elementwise nor along axes."""
    return _calls(op, np.float64, empty=True)


def _calls(op: Op, dtype: Any, *, empty: bool) -> Iterator[Case]:
    for shapes, function in calls_of(op):
        if any(0 in shape for shape in shapes) is empty:
            operands = [draw(op, s, dtype, k) for k, s in enumerate(shapes)]
            yield Case(function, operands, [True] * len(operands))


def prepare(op: Op, operands: Any) -> list[np.ndarray]:
    """Operands as the operation takes them: a condition is of bools, an order is real."""
    return [
        a.real > 0.3 if name == "condition" else a.real if k < op.real_beside else a
        for k, (name, a) in enumerate(zip(op.inputs, operands, strict=False))
    ] or list(operands)
