"""Gradients compared with central differences, first and second order.

Note [Real Jacobians]
---------------------
Both sides are real matrices: a complex number counts as its real and imaginary part. The numerical
column of a part is the central difference along it. An analytical row comes from the gradient for a
cotangent ``v`` that is 1 (i for an imaginary part) at one output element: the gradient is dL/dx + i
dL/dy of ``L = Re(conj(v) * output)``, so its parts are the entries of that row. For complex
derivatives both directions are checked in this way, holomorphic or not.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd import grad
from numgrad.autograd.engine.backward import dense_grad
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.autograd.modes import enable_grad
from numgrad.errors import (
    GradcheckError,
    NumgradAssertionError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.tensors.tensor import Tensor
from numgrad.transforms.mapping import vmap


def gradcheck(
    f: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    nondet_tol: float = 0.0,
    raise_exception: bool = True,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
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
    check_undefined_grad
        With several outputs, require a gradient that does not arrive to count as zeros; otherwise
        zeros are given in its place.
    check_grad_dtypes
        Require gradients to have the dtype of their input.
    check_batched_grad, check_batched_forward_grad
        Require a batch of cotangents (``is_grads_batched``), or of tangents, to give what they give
        one by one.
    check_forward_ad, check_backward_ad
        Compare what forward mode gives with the differences, and what a backward gives.
    fast_mode
        Compare products with one random vector on each side in place of whole Jacobians.

    Returns
    -------
    bool
        Whether the gradients agree.

    Raises
    ------
    GradcheckError
        On a mismatch; the message names output and input and shows both Jacobians.
    NumgradValueError
        If no input requires grad, or nothing is to be checked.
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
    if not (check_forward_ad or check_backward_ad):
        raise NumgradValueError(
            "gradcheck: neither check_forward_ad nor check_backward_ad is True, there is nothing "
            "to check"
        )
    for batched, mode in (
        (check_batched_grad and not check_backward_ad, "check_batched_grad, check_backward_ad"),
        (
            check_batched_forward_grad and not check_forward_ad,
            "check_batched_forward_grad, check_forward_ad",
        ),
    ):
        if batched:
            first, second = mode.split(", ")
            raise NumgradValueError(f"gradcheck: {first} needs {second}=True as well")
    arguments, checked = _checked_inputs("gradcheck", inputs)
    check = _Check(f, arguments, checked, eps, atol, rtol, fast_mode)
    try:
        if check_forward_ad:
            check.forward(check_batched_forward_grad, check_undefined_grad)
        check.independence()
        if check_backward_ad:
            check.backward(nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad)
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
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
) -> bool:
    """Compare the gradients of the gradients of ``f`` with central differences.

    The function checked takes the inputs and cotangents of the outputs, and returns the gradients
    that a backward with ``create_graph=True`` gives. Parameters are those of ``gradcheck``;
    ``grad_outputs`` are the cotangents, by default random ones of a fixed seed, which do not lie
    contiguously with ``gen_non_contig_grad_outputs``. The gradients are differentiated by a
    backward with ``check_rev_over_rev``, in forward mode with ``check_fwd_over_rev``.

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
        if gen_non_contig_grad_outputs:
            cotangents = [
                Tensor(np.stack([g._array] * 2, axis=-1)[..., 0], True) for g in cotangents
            ]
    else:
        cotangents = [
            g.detach().requires_grad_() if not g.requires_grad else g
            for g in _as_sequence(grad_outputs)
        ]
    count = len(arguments)
    positions = [position for position, _ in checked]

    def gradients(*both: Any) -> tuple:
        values, cotangents = both[:count], both[count:]
        roots = [y for y in _outputs(f, values) if y.requires_grad]
        grads = grad(
            roots,
            [values[k] for k in positions],
            list(cotangents),
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradients,
        (*arguments, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        nondet_tol=nondet_tol,
        raise_exception=raise_exception,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
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
    cotangents = []
    for y in outputs:
        value = rng.uniform(0.5, 1.5, y.shape) * rng.choice([-1.0, 1.0], y.shape)
        if y.dtype.kind == "c":
            value = value + 1j * rng.uniform(0.5, 1.5, y.shape)
        cotangents.append(Tensor(np.asarray(value, y.dtype), True))
    return cotangents


# -------------------------------------------------------------------------------- Jacobians


def _parts(dtype: np.dtype) -> tuple[complex, ...]:
    return (1.0, 1j) if dtype.kind == "c" else (1.0,)


def _flatten(array: np.ndarray) -> np.ndarray:
    """Elements as reals; the two parts of a complex one side by side."""
    flat = np.ascontiguousarray(array).reshape(-1)
    wide = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
    return wide.view(np.float64)


def _units(shape: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
    """Arrays with a 1 at one element, i for its imaginary part: the columns of Jacobians."""
    units = []
    for index in np.ndindex(shape):
        for component in _parts(dtype):
            unit = np.zeros(shape, dtype)
            unit[index] = component
            units.append(unit)
    return units


def _random_unit(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A random array of norm 1."""
    value = rng.normal(size=shape)
    if dtype.kind == "c":
        value = value + 1j * rng.normal(size=shape)
    return np.asarray(value / (np.linalg.norm(value) or 1.0), dtype)


def _complex_note(x: Tensor, y: Tensor) -> str:
    if "c" not in (x.dtype.kind, y.dtype.kind):
        return ""
    return "\n(complex numbers as pairs of rows or columns: real, imaginary part)"


class _Check:
    """A function at a point, its central differences, and what they are compared with.

    ``directions`` are those in which inputs move, ``cotangents`` those of outputs: units for whole
    Jacobians, a random one each in fast mode.
    """

    def __init__(
        self, f: Callable[..., Any], arguments: tuple, checked: list[tuple[int, Tensor]],
        eps: float, atol: float, rtol: float, fast: bool,
    ) -> None:  # fmt: skip
        self.f, self.arguments, self.checked = f, arguments, checked
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.tensors = [x for _, x in checked]
        with enable_grad():
            self.outputs = _outputs(f, arguments)
            self.again = _outputs(f, arguments)
        rng = np.random.default_rng(0)

        def vectors(x: Tensor) -> list[np.ndarray]:
            if not fast:
                return _units(x.shape, x.dtype)
            return [_random_unit(rng, x.shape, x.dtype)] if x.size else []

        self.directions = [vectors(x) for x in self.tensors]
        self.cotangents = [vectors(y) if y.dtype.kind in "fc" else [] for y in self.outputs]
        # derivatives of each output (rows, elements as reals) along each direction of each input
        self.numerical = [
            self._differences(x, ways)
            for x, ways in zip(self.tensors, self.directions, strict=True)
        ]

    def _differences(self, x: Tensor, ways: Sequence[np.ndarray]) -> list[np.ndarray]:
        """For each output the matrix of its central differences along some directions."""
        array = x._array
        columns: list[list[np.ndarray]] = [[] for _ in self.outputs]

        def values() -> list[np.ndarray]:
            with enable_grad():  # the function may call autograd itself
                outputs = _outputs(self.f, self.arguments)
            for number, (y, first) in enumerate(zip(outputs, self.outputs, strict=True)):
                if y.shape != first.shape or y.dtype != first.dtype:
                    raise NumgradAssertionError(
                        f"gradcheck: output {number} has shape {first.shape} and dtype "
                        f"{first.dtype}, and with a moved input {y.shape} and {y.dtype}; they must "
                        "not depend on values"
                    )
            return [_flatten(y._array) for y in outputs]

        before = array.copy()
        for direction in ways:
            try:
                array[...] = np.where(direction == 0, before, before + direction * self.eps)
                above, high = values(), array.copy()
                array[...] = np.where(direction == 0, before, before - direction * self.eps)
                below, low = values(), array.copy()
            finally:
                array[...] = before
            # what rounding left of two steps
            step = np.linalg.norm(high - low) / np.linalg.norm(direction)
            for column, a, b in zip(columns, above, below, strict=True):
                with np.errstate(invalid="ignore"):
                    column.append((a - b) / step)
        sizes = [_flatten(y._array).size for y in self.outputs]
        return [
            np.stack(column, axis=1) if column else np.zeros((size, 0))
            for column, size in zip(columns, sizes, strict=True)
        ]

    def _compare(self, how: str, number: int, k: int, actual: np.ndarray, expected: Any) -> None:
        if actual.shape == expected.shape and np.allclose(actual, expected, self.rtol, self.atol):
            return
        position, x = self.checked[k]
        y = self.outputs[number]
        where = "the Jacobians" if how == "analytical" else f"in {how} the Jacobian"
        differ = "differ" if how == "analytical" else "differs"
        raise GradcheckError(
            f"gradcheck: {where} of output {number} for input {position} {differ}."
            f"{_complex_note(x, y)}\nnumerical:\n{expected}\n{how}:\n{actual}"
        )

    def independence(self) -> None:
        """Outputs that do not require grad do not depend on the inputs."""
        for number, y in enumerate(self.outputs):
            if y.dtype.kind not in "fc" or y.requires_grad:
                continue
            for (position, _), jacobians in zip(self.checked, self.numerical, strict=True):
                if not np.allclose(jacobians[number], 0, self.rtol, self.atol):
                    raise GradcheckError(
                        f"gradcheck: output {number} does not require grad, yet it depends on "
                        f"input {position}; numerical Jacobian:\n{jacobians[number]}"
                    )

    # -------------------------------------------------------------------------------- forward

    def forward(self, batched: bool, undefined: bool) -> None:
        """Compare what forward mode gives, with zero tangents of other inputs and without."""
        for k, (position, x) in enumerate(self.checked):
            columns = [
                self._tangents(position, Tensor(direction)) for direction in self.directions[k]
            ]
            for number, y in enumerate(self.outputs):
                if y.dtype.kind in "fc":
                    entries = [_flatten(tangents[number]._array) for tangents in columns]
                    empty = np.zeros((_flatten(y._array).size, 0))
                    matrix = np.stack(entries, axis=1) if entries else empty
                    self._compare("forward mode", number, k, matrix, self.numerical[k][number])
            if batched and x.size:
                rng = np.random.default_rng(1)
                ways = np.stack([_random_unit(rng, x.shape, x.dtype) for _ in range(2)])
                single = [self._tangents(position, Tensor(each)) for each in ways]
                tangents_of = partial(self._tangents, position)
                batch = _batch("tangents", partial(vmap(tangents_of), Tensor(ways)))
                for number in range(len(self.outputs)):
                    expected = np.stack([tangents[number]._array for tangents in single])
                    self._compare_batch("tangents", number, position, batch[number], expected)
        if undefined and len(self.checked) > 1:
            for k, (_, x) in enumerate(self.checked):
                if x.size:
                    self._check_alone(k)

    def _check_alone(self, k: int) -> None:
        """Other inputs without tangents count as if they had zeros."""
        position, way = self.checked[k][0], Tensor(self.directions[k][0])
        pair = [self._tangents(position, way, alone) for alone in (True, False)]
        for number, (a, b) in enumerate(zip(*pair, strict=True)):
            if not np.allclose(a._array, b._array, self.rtol, self.atol, equal_nan=True):
                raise GradcheckError(
                    f"gradcheck: where only input {position} has a tangent, that of output "
                    f"{number} is\n{a._array}\nand with zeros for the others\n{b._array}"
                )

    def _tangents(
        self, position: int, direction: Tensor, alone: bool = False
    ) -> tuple[Tensor, ...]:
        """Tangents of all outputs for one of an input; others have zeros, or none if ``alone``."""
        arguments = list(self.arguments)
        with dual_level(), enable_grad():
            for other, x in [] if alone else self.checked:
                if other != position:
                    arguments[other] = make_dual(x, Tensor(np.zeros(x.shape, x.dtype)))
            arguments[position] = make_dual(arguments[position], direction)
            pairs = [(y, unpack_dual(y).tangent) for y in _outputs(self.f, arguments)]
            return tuple([y.detach() * 0 if t is None else t for y, t in pairs])

    # ------------------------------------------------------------------------------- backward

    def backward(
        self, nondet_tol: float, undefined: bool, grad_dtypes: bool, batched: bool
    ) -> None:
        """Compare what a backward gives, and check the gradients in the other ways."""
        for number, y in enumerate(self.outputs):
            if y.dtype.kind not in "fc" or not y.requires_grad:
                continue
            if undefined:
                self._check_undefined(number)
            rows = [self._rows(self.outputs, number, not undefined) for _ in range(2)]
            rows.append(self._rows(self.again, number, not undefined))
            for k, (position, x) in enumerate(self.checked):
                first, *others = [self._matrix(number, k, each) for each in rows]
                for other in others:
                    if not np.allclose(first, other, 0, nondet_tol, equal_nan=True):
                        raise GradcheckError(
                            f"gradcheck: the gradient of output {number} for input {position} is "
                            f"not deterministic; two passes gave\n{first}\nand\n{other}\nwhich "
                            f"differ by {np.max(np.abs(first - other)):.3g}, more than "
                            f"nondet_tol={nondet_tol}"
                        )
                weights = np.stack(
                    [_flatten(v) for v in self.cotangents[number]]
                    or [np.zeros(_flatten(y._array).size)]
                )[: len(self.cotangents[number])]
                self._compare("analytical", number, k, first, weights @ self.numerical[k][number])
                g = rows[0][-1][k] if rows[0] else None
                if grad_dtypes and g is not None and g.dtype != x.dtype:
                    raise GradcheckError(
                        f"gradcheck: the gradient of input {position} is {g.dtype}, the input "
                        f"{x.dtype}"
                    )
            if batched and y.size:
                self._check_batched(number)
            self._check_zero_cotangent(number, undefined)

    def _rows(self, outputs: Sequence[Tensor], number: int, zeros: bool) -> list[Sequence[Any]]:
        """Gradients of all inputs for each cotangent of an output.

        ``zeros`` are given to the other outputs; else nothing arrives at them.
        """
        others = _followed(outputs, number) if zeros else []
        nothing = [np.zeros(y.shape, y.dtype) for y in others]
        return [
            self._gradients([outputs[number], *others], [v, *nothing])
            for v in self.cotangents[number]
        ]

    def _gradients(self, roots: Sequence[Tensor], cotangents: Sequence[Any]) -> tuple:
        return dense_grad(
            list(roots), self.tensors, list(cotangents), retain_graph=True, allow_unused=True
        )

    def _matrix(self, number: int, k: int, rows: Sequence[Sequence[Any]]) -> np.ndarray:
        """Gradients of one input, a row for each cotangent, times the directions of the input."""
        x, ways = self.tensors[k], self.directions[k]
        for row in rows:
            if row[k] is not None and row[k].shape != x.shape:
                raise GradcheckError(
                    f"gradcheck: the gradient of an input of shape {x.shape} has shape "
                    f"{row[k].shape}"
                )
        zeros = np.zeros(x.shape, x.dtype)
        grads = [_flatten(zeros if row[k] is None else row[k]._array) for row in rows]
        flat = [_flatten(direction) for direction in ways]
        if not grads or not flat:
            return np.zeros((len(grads), len(flat)))
        return np.stack(grads) @ np.stack(flat, axis=1)

    def _check_undefined(self, number: int) -> None:
        """A gradient that does not arrive at an output counts as zeros."""
        y, others = self.outputs[number], _followed(self.outputs, number)
        if not others:
            return
        weights = [g._array for g in _random_cotangents(others)]
        try:
            absent = self._gradients(others, weights)
        except Exception as error:
            raise GradcheckError(
                f"gradcheck: the backward fails where no gradient arrives at output {number} "
                f"({type(error).__name__}: {error}); it has to count as zeros"
            ) from error
        present = self._gradients([y, *others], [np.zeros(y.shape, y.dtype), *weights])
        for (position, x), a, b in zip(self.checked, absent, present, strict=True):
            zeros = np.zeros(x.shape, x.dtype)
            a, b = (zeros if g is None else g._array for g in (a, b))
            if not np.allclose(a, b, self.rtol, self.atol, equal_nan=True):
                raise GradcheckError(
                    f"gradcheck: where no gradient arrives at output {number}, that of input "
                    f"{position} is\n{a}\nand with zeros in its place\n{b}"
                )

    def _check_batched(self, number: int) -> None:
        """A batch of cotangents gives what they give one by one."""
        y, rng = self.outputs[number], np.random.default_rng(1)
        cotangents = np.stack([_random_unit(rng, y.shape, y.dtype) for _ in range(2)])
        single = [self._gradients([y], [v]) for v in cotangents]
        batch = _batch("cotangents", lambda: dense_grad(
            y, self.tensors, Tensor(cotangents), retain_graph=True, allow_unused=True,
            is_grads_batched=True,
        ))  # fmt: skip
        for k, (position, x) in enumerate(self.checked):
            zeros = np.zeros(x.shape, x.dtype)
            expected = np.stack([zeros if g[k] is None else g[k]._array for g in single])
            self._compare_batch("cotangents", number, position, batch[k], expected)

    def _compare_batch(
        self, what: str, number: int, position: int, actual: Tensor | None, expected: np.ndarray
    ) -> None:
        values = np.zeros_like(expected) if actual is None else actual._array
        if values.shape != expected.shape or not np.allclose(
            values, expected, self.rtol, self.atol, equal_nan=True
        ):
            raise GradcheckError(
                f"gradcheck: a batch of {what}, of output {number} for input {position}, gives\n"
                f"{values}\nand one by one they give\n{expected}"
            )

    def _check_zero_cotangent(self, number: int, undefined: bool) -> None:
        """A backward that does not multiply by what comes in gives something for zeros."""
        roots = [self.outputs[number]]
        if not undefined:
            roots += _followed(self.outputs, number)
        grads = self._gradients(roots, [np.zeros(y.shape, y.dtype) for y in roots])
        for (position, _), g in zip(self.checked, grads, strict=True):
            if g is not None and np.any(g._array != 0):
                raise GradcheckError(
                    f"gradcheck: a zero cotangent of output {number} gives input {position} the "
                    f"gradient\n{g._array}\nso its backward does not multiply by the incoming "
                    "gradient"
                )


def _followed(outputs: Sequence[Tensor], number: int) -> list[Tensor]:
    """The outputs with a gradient besides one."""
    return [
        y for k, y in enumerate(outputs) if k != number and y.requires_grad and y.dtype.kind in "fc"
    ]


def _batch(what: str, compute: Callable[[], Any]) -> Any:
    try:
        return compute()
    except Exception as error:
        raise GradcheckError(
            f"gradcheck: a batch of {what} is not possible ({type(error).__name__}: {error})"
        ) from error
