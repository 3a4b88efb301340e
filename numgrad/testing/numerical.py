"""Gradients compared with central differences, first and second order.

Note [Real Jacobians]
---------------------
Both sides are real matrices: a complex number counts as its real and imaginary part. The numerical
column of a part is the central difference along it. An analytical row comes from the gradient for a
cotangent ``v`` that is 1 (i for an imaginary part) at one output element: the gradient is dL/dx + i
dL/dy of ``L = Re(conj(v) * output)``, so its parts are the entries of that row. For complex
derivatives both directions are checked in this way, holomorphic or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd import grad
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.errors import (
    GradcheckError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.tensors.tensor import Tensor


def gradcheck(
    f: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    nondet_tol: float = 0.0,
    raise_exception: bool = True,
    check_grad_dtypes: bool = False,
    check_forward_ad: bool = False,
) -> bool:
    """Compare the gradients of ``f`` with central differences.

    Every entry of the Jacobians has to satisfy ``|a - n| <= atol + rtol * |n|``. Further checks:
    two backward passes agree, a zero cotangent gives zero gradients, gradients have the shape of
    their input, and outputs that do not require grad do not depend on the inputs.

    Parameters
    ----------
    f
        Takes the inputs; returns a Tensor or a tuple of them, real or complex.
    inputs
        A Tensor or a sequence. Tensors that require grad are checked; they should be float64 or
        complex128 and must not overlap themselves. Anything else is passed on as it is.
    eps
        Step of the differences.
    atol, rtol
        Absolute and relative tolerance.
    nondet_tol
        Largest difference between the gradients of two passes.
    raise_exception
        Raise on a mismatch; otherwise return False.
    check_grad_dtypes
        Require gradients to have the dtype of their input.
    check_forward_ad
        Compare what forward mode gives with the differences as well.

    Returns
    -------
    bool
        Whether the gradients agree.

    Raises
    ------
    GradcheckError
        On a mismatch; the message names output and input and shows both Jacobians.
    NumgradValueError
        If no input requires grad.
    NumgradRuntimeError
        If an input's elements share memory (an axis of stride 0).

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor([0.5, 1.0], requires_grad=True)
    >>> ng.testing.gradcheck(lambda x: np.sin(x) * x, x)
    True
    >>> ng.testing.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
    False
    """
    arguments, checked = _checked_inputs("gradcheck", inputs)
    try:
        _check(
            f, arguments, checked, eps, atol, rtol, nondet_tol, check_grad_dtypes, check_forward_ad
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    f: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    nondet_tol: float = 0.0,
    raise_exception: bool = True,
    check_grad_dtypes: bool = False,
) -> bool:
    """Compare the gradients of the gradients of ``f`` with central differences.

    The function checked takes the inputs and cotangents of the outputs, and returns the gradients
    that a backward with ``create_graph=True`` gives. Parameters are those of ``gradcheck``;
    ``grad_outputs`` are the cotangents, by default random ones of a fixed seed.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> x = ng.tensor([0.5, 1.0], requires_grad=True)
    >>> ng.testing.gradgradcheck(np.exp, x)
    True
    """
    arguments, checked = _checked_inputs("gradgradcheck", inputs)
    with enable_grad():
        outputs = _outputs(f, arguments)
    if grad_outputs is None:
        cotangents = _random_cotangents([y for y in outputs if y.requires_grad])
    else:
        cotangents = [
            g.detach().requires_grad_() if not g.requires_grad else g
            for g in _as_sequence(grad_outputs)
        ]
    count = len(arguments)
    positions = [position for position, _ in checked]

    def gradients(*both: Any) -> tuple:
        given, cotangents = both[:count], both[count:]
        roots = [y for y in _outputs(f, given) if y.requires_grad]
        found = grad(
            roots,
            [given[k] for k in positions],
            list(cotangents),
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*arguments, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        raise_exception=raise_exception,
        check_grad_dtypes=check_grad_dtypes,
    )


# -------------------------------------------------------------------------------- arguments


def _as_sequence(inputs: Any) -> tuple:
    return tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)


def _checked_inputs(name: str, inputs: Any) -> tuple[tuple, list[tuple[int, Tensor]]]:
    """All arguments, and position and Tensor of those that require grad."""
    arguments = _as_sequence(inputs)
    checked = []
    for position, x in enumerate(arguments):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        if x.size and any(s == 0 and n > 1 for s, n in zip(x.strides, x.shape, strict=True)):
            raise NumgradRuntimeError(
                f"{name}: input {position} of shape {x.shape} has an axis of stride 0, so that one "
                "step would move several elements; pass a copy, x.clone()"
            )
        if x.dtype not in (np.float64, np.complex128):
            warn(
                f"{name}: input {position} is {x.dtype}; its differences are hardly accurate "
                "enough to compare with, use float64 or complex128",
                UserWarning,
            )
        checked.append((position, x))
    if not checked:
        raise NumgradValueError(
            f"{name}: no input requires grad, there is nothing to check; set requires_grad=True"
        )
    return arguments, checked


def _outputs(f: Callable[..., Any], arguments: Sequence[Any]) -> list[Tensor]:
    result = _as_sequence(f(*arguments))
    for position, y in enumerate(result):
        if not isinstance(y, Tensor):
            raise NumgradTypeError(
                f"gradcheck: output {position} is a {type(y).__name__}; the function must return a "
                "Tensor or a tuple of them"
            )
    return list(result)


def _random_cotangents(outputs: Sequence[Tensor]) -> list[Tensor]:
    rng = np.random.default_rng(0)
    found = []
    for y in outputs:
        value = rng.uniform(0.5, 1.5, y.shape) * rng.choice([-1.0, 1.0], y.shape)
        if y.dtype.kind == "c":
            value = value + 1j * rng.uniform(0.5, 1.5, y.shape)
        found.append(Tensor(np.asarray(value, y.dtype), True))
    return found


# -------------------------------------------------------------------------------- Jacobians


def _parts(dtype: np.dtype) -> tuple[complex, ...]:
    return (1.0, 1j) if dtype.kind == "c" else (1.0,)


def _flatten(array: np.ndarray) -> np.ndarray:
    """Elements as reals; the two parts of a complex one side by side."""
    flat = np.ascontiguousarray(array).reshape(-1)
    wide = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
    return wide.view(np.float64)


def _numerical(
    f: Callable[..., Any], arguments: tuple, x: Tensor, eps: float, count: int
) -> list[np.ndarray]:
    """For each of ``count`` outputs the matrix of its central differences."""
    array = x._array
    columns: list[list[np.ndarray]] = [[] for _ in range(count)]

    def values() -> list[np.ndarray]:
        with enable_grad():  # the function may call autograd itself
            return [_flatten(y._array) for y in _outputs(f, arguments)]

    sizes = [y.size for y in values()]
    for index in np.ndindex(array.shape):
        before = array[index]
        for part in _parts(array.dtype):
            try:
                array[index] = before + part * eps
                above, high = values(), array[index]
                array[index] = before - part * eps
                below, low = values(), array[index]
            finally:
                array[index] = before
            step = abs(high - low)  # what rounding left of two steps
            for column, a, b in zip(columns, above, below, strict=True):
                with np.errstate(invalid="ignore"):
                    column.append((a - b) / step)
    return [
        np.stack(column, axis=1) if column else np.zeros((size, 0))
        for column, size in zip(columns, sizes, strict=True)
    ]


def _analytical(y: Tensor, tensors: Sequence[Tensor]) -> tuple[list[np.ndarray], list[Any]]:
    """For each tensor the matrix of the gradients of ``y``; and the gradients of the last row."""
    rows: list[list[np.ndarray]] = [[] for _ in tensors]
    found: Sequence[Any] = [None] * len(tensors)
    for index in np.ndindex(y.shape):
        for part in _parts(y.dtype):
            cotangent = np.zeros(y.shape, y.dtype)
            cotangent[index] = part
            found = dense_grad(y, list(tensors), cotangent, retain_graph=True, allow_unused=True)
            for row, x, g in zip(rows, tensors, found, strict=True):
                if g is None:
                    row.append(_flatten(np.zeros(x.shape, x.dtype)))
                    continue
                if g.shape != x.shape:
                    raise GradcheckError(
                        f"gradcheck: the gradient of an input of shape {x.shape} has shape "
                        f"{g.shape}"
                    )
                row.append(_flatten(g._array))
    width = [x.size * len(_parts(x.dtype)) for x in tensors]
    return [np.stack(r) if r else np.zeros((0, w)) for r, w in zip(rows, width, strict=True)], [
        *found
    ]


def _check(
    f: Callable[..., Any],
    arguments: tuple,
    checked: list[tuple[int, Tensor]],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_grad_dtypes: bool,
    check_forward_ad: bool,
) -> None:
    with enable_grad():
        outputs = _outputs(f, arguments)
        again = _outputs(f, arguments)
    tensors = [x for _, x in checked]
    numerical = [_numerical(f, arguments, x, eps, len(outputs)) for x in tensors]
    if check_forward_ad:
        for (position, _), expected in zip(checked, numerical, strict=True):
            _check_forward(f, arguments, position, outputs, expected, atol, rtol)
    for number, (y, twin) in enumerate(zip(outputs, again, strict=True)):
        if y.dtype.kind not in "fc":
            continue
        if not y.requires_grad:
            for (position, _), jacobians in zip(checked, numerical, strict=True):
                if not np.allclose(jacobians[number], 0, rtol, atol):
                    raise GradcheckError(
                        f"gradcheck: output {number} does not require grad, yet it depends on "
                        f"input {position}; numerical Jacobian:\n{jacobians[number]}"
                    )
            continue
        analytical, gradients = _analytical(y, tensors)
        second, _ = _analytical(twin, tensors)
        third, _ = _analytical(y, tensors)
        for k, (position, x) in enumerate(checked):
            a, n = analytical[k], numerical[k][number]
            for other in (second[k], third[k]):
                if not np.allclose(a, other, 0, nondet_tol, equal_nan=True):
                    raise GradcheckError(
                        f"gradcheck: the gradient of output {number} for input {position} is not "
                        f"deterministic; two passes gave\n{a}\nand\n{other}\nwhich differ by "
                        f"{np.max(np.abs(a - other)):.3g}, more than nondet_tol={nondet_tol}"
                    )
            if a.shape != n.shape or not np.allclose(a, n, rtol, atol):
                raise GradcheckError(
                    f"gradcheck: the Jacobians of output {number} for input {position} differ."
                    f"{_complex_note(x, y)}\nnumerical:\n{n}\nanalytical:\n{a}"
                )
            g = gradients[k]
            if check_grad_dtypes and g is not None and g.dtype != x.dtype:
                raise GradcheckError(
                    f"gradcheck: the gradient of input {position} is {g.dtype}, the input {x.dtype}"
                )
        _check_zero_cotangent(number, y, checked)


def _complex_note(x: Tensor, y: Tensor) -> str:
    if "c" not in (x.dtype.kind, y.dtype.kind):
        return ""
    return "\n(complex numbers as pairs of rows or columns: real, imaginary part)"


def _forward(
    f: Callable[..., Any], arguments: tuple, position: int, outputs: Sequence[Tensor]
) -> list[np.ndarray]:
    """For each output the matrix whose columns are the derivatives that forward mode gives."""
    x = arguments[position]
    columns: list[list[np.ndarray]] = [[] for _ in outputs]
    for index in np.ndindex(x.shape):
        for part in _parts(x.dtype):
            tangent = np.zeros(x.shape, x.dtype)
            tangent[index] = part
            with dual_level(), enable_grad():
                dual = make_dual(x, Tensor(tangent))
                found = _outputs(f, (*arguments[:position], dual, *arguments[position + 1 :]))
                for column, y in zip(columns, found, strict=True):
                    t = unpack_dual(y).tangent
                    column.append(_flatten(np.zeros(y.shape, y.dtype) if t is None else t._array))
    return [
        np.stack(column, axis=1) if column else np.zeros((_flatten(y._array).size, 0))
        for column, y in zip(columns, outputs, strict=True)
    ]


def _check_forward(
    f: Callable[..., Any],
    arguments: tuple,
    position: int,
    outputs: Sequence[Tensor],
    numerical: Sequence[np.ndarray],
    atol: float,
    rtol: float,
) -> None:
    """Compare the Jacobians for one input."""
    jacobians = _forward(f, arguments, position, outputs)
    for number, (y, a, n) in enumerate(zip(outputs, jacobians, numerical, strict=True)):
        if y.dtype.kind not in "fc":
            continue
        if a.shape != n.shape or not np.allclose(a, n, rtol, atol):
            raise GradcheckError(
                f"gradcheck: in forward mode the Jacobian of output {number} for input {position} "
                f"differs.{_complex_note(arguments[position], y)}\nnumerical:\n{n}\n"
                f"forward mode:\n{a}"
            )


def _check_zero_cotangent(number: int, y: Tensor, checked: list[tuple[int, Tensor]]) -> None:
    """A backward that does not multiply by what comes in gives something for zeros."""
    found = dense_grad(
        y,
        [x for _, x in checked],
        np.zeros(y.shape, y.dtype),
        retain_graph=True,
        allow_unused=True,
    )
    for (position, _), g in zip(checked, found, strict=True):
        if g is not None and np.any(g._array != 0):
            raise GradcheckError(
                f"gradcheck: a zero cotangent of output {number} gives input {position} the "
                f"gradient\n{g._array}\nso its backward does not multiply by the incoming gradient"
            )
