"""Making a step of many tensors ready: what may fail is done before anything is written.

Note [Rows as tensors]
----------------------
The kernel of an update steps tensors that lie anywhere in memory. A row of a parameter with the
same row of each state array is such a tensor, so one launch steps all rows of a gradient in place,
by the formula that steps whole tensors. Uniform values (a count of steps) are the parameter's, so
a variant of the kernel reads and writes them once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import Addresses, addresses, copied_addresses
from numgrad.core.row_gradients import RowSparseArray
from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.kernels.multi_tensor import UpdateKernel, update_kernel
from numgrad.optim.formula import Formula, Settings, as_float

Launch = Callable[[], None]
"""What remains of a step when nothing can fail any more."""


FLOAT64 = np.dtype(np.float64)


REAL = {
    np.dtype(of): np.dtype(element)
    for of, element in (
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.complex64, np.float32),
        (np.complex128, np.float64),
    )
}
"""What elements of parameters are made of: complex ones are pairs."""


@cache
def update_of(
    formula: Formula,
    states: tuple[str, ...],
    numbers: tuple[str, ...],
    switches: tuple[tuple[str, bool], ...],
    maximize: bool,
    dtype: np.dtype,
    shared: bool = False,
) -> UpdateKernel:
    """The kernel of a formula for the states in use; ``dtype`` is one of real elements."""

    def read(p: Any, g: Any, **values: Any) -> dict[str, Any]:
        return formula.function(p, -g if maximize else g, **values)

    read.__name__ = formula.name
    unused = {name: None for name in (*formula.elements, *formula.uniform) if name not in states}
    return update_kernel(
        read,
        ("p", "g", *[name for name in states if name in formula.elements]),
        [name for name in states if name in formula.uniform],
        numbers,
        {**dict(switches), **unused},
        dtype,
        shared,
    )


def prepare(
    optimizer: str,
    formula: Formula,
    settings: Settings,
    maximize: bool,
    arrays: list[np.ndarray],
    count: int,
) -> list[Launch]:
    """Launches that apply a formula to ``count`` tensors.

    Parameters
    ----------
    optimizer
        Its name, for errors.
    arrays
        The parameters, then their gradients, then each state array of all tensors.

    Raises
    ------
    NumgradTypeError, NumgradRuntimeError
        If a parameter has a dtype that is not optimized, or an array is not what belongs there.
    """
    dtype = arrays[0].dtype
    if dtype in REAL:
        layout = addresses(arrays, count, elements_of(formula, settings), 1, dtype)
        if layout is not None:
            return [_launch(formula, settings, maximize, dtype, layout)]
    return _prepare_pieces(optimizer, formula, settings, maximize, arrays, count)


def _launch(
    formula: Formula, settings: Settings, maximize: bool, dtype: np.dtype, layout: Addresses
) -> Launch:
    """One launch for arrays of one dtype."""
    numbers, switches, states = settings
    kernel = update_of(formula, states, tuple(numbers), switches, maximize, REAL[dtype])
    run = threads.choose(
        kernel.entry,
        partial(kernel.entry, True),
        kernel.work_ns(layout.total),
        partial(kernel.entry, False, True),
    )
    values = [v if type(v) is float else as_float(v) for v in numbers.values()]

    def launch() -> None:
        run(layout.pointers, layout.starts, *values)
        if layout.copies:
            layout.write_back()

    return launch


def _prepare_pieces(
    optimizer: str,
    formula: Formula,
    settings: Settings,
    maximize: bool,
    arrays: list[np.ndarray],
    count: int,
) -> list[Launch]:
    """A launch for each dtype, on copies of arrays that the kernel cannot take."""
    columns = [arrays[k * count : (k + 1) * count] for k in range(len(arrays) // count)]
    pieces: dict[np.dtype, list[int]] = {}
    for t, param in enumerate(columns[0]):
        check(optimizer, formula, settings, [column[t] for column in columns])
        pieces.setdefault(param.dtype, []).append(t)
    elements = elements_of(formula, settings)
    launches: list[Launch] = []
    for dtype, members in pieces.items():
        chosen = [column[t] for column in columns for t in members]
        layout = copied_addresses(chosen, len(members), elements, 1, dtype)
        launches.append(_launch(formula, settings, maximize, dtype, layout))
    return launches


def elements_of(formula: Formula, settings: Settings) -> int:
    """How many arrays of a tensor have one value an element; the first of all."""
    return 2 + sum([name in formula.elements for name in settings.states])


def check(optimizer: str, formula: Formula, settings: Settings, arrays: list[Any]) -> None:
    """Raise unless the formula can be applied to the arrays of a tensor."""
    names = ("parameter", "gradient", *settings.states)
    shape, dtype = arrays[0].shape, arrays[0].dtype
    if dtype not in REAL:
        raise NumgradTypeError(
            f"{optimizer}.step: a parameter has dtype {dtype}; parameters must be float32, "
            "float64, complex64 or complex128"
        )
    elements = elements_of(formula, settings)
    for k, (name, array) in enumerate(zip(names, arrays, strict=True)):
        wanted = (shape, dtype) if k < elements else ((), FLOAT64)
        fits = array.dtype == wanted[1] and (k >= elements or array.shape == shape)
        if not fits or (k >= elements and array.size != 1):
            raise NumgradRuntimeError(
                f"{optimizer}.step: {name} has shape {array.shape} and dtype {array.dtype} "
                f"where shape {wanted[0]} and dtype {wanted[1]} belong; was the parameter "
                "replaced, or the state of another one loaded?"
            )
        if k != 1 and not array.flags.writeable:
            raise NumgradRuntimeError(
                f"{optimizer}.step: {name} of shape {array.shape} lies in memory that must "
                "not be written; optimize a copy"
            )


def update_rows(
    kernel: UpdateKernel,
    numbers: list[float],
    param: np.ndarray,
    grad: RowSparseArray,
    elements: list[np.ndarray],
    uniforms: list[np.ndarray],
) -> None:
    """Apply a formula to the rows of ``grad``: Note [Rows as tensors].

    Parameters
    ----------
    kernel, numbers
        The formula, compiled for shared uniform values, and its numbers.
    param, elements
        Parameter and states of its shape, all of the dtype of the gradient.
    grad
        Coalesced.
    uniforms
        States of one number.
    """
    values = grad.values
    rows = grad.indices if len(values) else np.zeros(1, np.int64)  # one without elements
    reals = values.size * (2 if values.dtype.kind == "c" else 1)
    arrays = (param, *elements)
    plain = [np.require(a, None, ("C", "A")) for a in arrays]
    each = np.arange(rows.size + 1)
    pointers = np.empty((2 + len(elements) + len(uniforms), rows.size), np.int64)
    columns = [(plain[0], rows), (values, each[:-1]), *[(a, rows) for a in plain[1:]]]
    for k, (array, which) in enumerate(columns):
        np.add(_address(array), which * array.strides[0], out=pointers[k])
    for k, array in enumerate(uniforms):
        pointers[len(columns) + k] = _address(array)
    run = threads.choose(
        kernel.entry,
        partial(kernel.entry, True),
        kernel.work_ns(reals),
        partial(kernel.entry, False, True),
    )
    run(pointers, each * (reals // rows.size), *numbers)
    for array, copy in zip(arrays, plain, strict=True):
        if copy is not array:
            array[rows] = copy[rows]


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
