"""Clipping of gradients, by their norm or value by value.

Note [Norms that do not overflow]
---------------------------------
The squares of 1e200 overflow, those of 1e-200 vanish, and the norm does neither. The plain sum
of powers is right wherever it is finite and well above what underflow may have lost; elsewhere the
elements are scaled by their largest magnitude first.

Squares of all gradients of one dtype are summed by one kernel, in float64. For other orders the
norm of each gradient is an operation, and these are put together in float64 in their order. Either
way the total is the same bit by bit for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import chain
from types import GeneratorType
from typing import Any, TypeAlias

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.versions import INFERENCE, mark_all_written, version_of
from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import addresses
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.options import Option
from numgrad.errors import NumgradRuntimeError, NumgradTypeError, warn
from numgrad.kernels.multi_tensor import UpdateKernel, sum_of_squares, update_kernel
from numgrad.nn.utils.conversion import Tensors, listed
from numgrad.operations.norm import vector_norm
from numgrad.operations.reduce import max as largest
from numgrad.tensors.tensor import Tensor

Gradient: TypeAlias = Tensor | RowSparseTensor


_ORDER = Option(name="norm_type", annotation="float")


def total_norm(
    name: str, tensors: Sequence[Gradient], order: float, error_if_nonfinite: bool
) -> float:
    """The norm of that order; ``name`` is the function that was called.

    Raises
    ------
    NumgradTypeError
        If a dtype is neither floating nor complex.
    NumgradRuntimeError
        With ``error_if_nonfinite``, if the norm is NaN or infinite.
    """
    _ORDER.check(name, order)
    order = float(order)
    if state.ground.deferred:
        return _later(name, tensors, order, error_if_nonfinite)
    arrays = [
        t.coalesce().values._array if isinstance(t, RowSparseTensor) else t._array for t in tensors
    ]
    by_dtype: dict[np.dtype, list[np.ndarray]] = {}
    for array in arrays:
        by_dtype.setdefault(array.dtype, []).append(array)
    for dtype in by_dtype:
        if dtype.kind not in "fc":
            raise NumgradTypeError(
                f"{name}: a norm is that of floating or complex numbers, got dtype {dtype}"
            )
    with no_grad():
        if order == 2:
            total = _euclidean(by_dtype)
        elif order == 0:
            total = math.fsum(_norm(Tensor(a), order) for a in arrays if a.size)
        else:
            norms = [_norm(Tensor(a), order) for a in arrays if a.size]
            total = _norm(Tensor(np.array(norms)), order) if norms else 0.0
    if error_if_nonfinite and not math.isfinite(total):
        raise NumgradRuntimeError(
            f"{name}: the norm of order {order} of {len(tensors)} gradients is {total}; find out "
            "where they stop to be finite (ng.autograd.detect_anomaly), or pass "
            "error_if_nonfinite=False"
        )
    return total


def _later(name: str, tensors: Sequence[Gradient], order: float, error_if_nonfinite: bool) -> Any:
    """The norm in a function that is being compiled: computed at each call, as here."""

    def compute(*arrays: np.ndarray) -> tuple[np.ndarray]:
        total = total_norm(name, [Tensor(a) for a in arrays], order, error_if_nonfinite)
        return (np.array(total),)

    (total,) = state.ground.called(compute, tensors, [((), np.dtype(np.float64))])
    return total


def _euclidean(by_dtype: dict[np.dtype, list[np.ndarray]]) -> float:
    def root(factor: float) -> float:
        sums = [sum_of_squares(arrays, dtype, factor) for dtype, arrays in by_dtype.items()]
        return math.sqrt(sum(sums))

    every = [array for arrays in by_dtype.values() for array in arrays if array.size]
    plain = root(1.0)
    size = sum([array.size for array in every])
    if math.isnan(plain) or _is_exact(plain, size, np.dtype(np.float64), 2):
        return plain
    scale = max([largest(abs(Tensor(array))).item() for array in every], default=0.0)
    if scale == 0 or math.isinf(scale):
        return scale
    factor = 2.0 ** max(-1000, min(1000, -math.frexp(scale)[1]))
    return root(factor) / factor


def _norm(x: Tensor, order: float) -> float:
    plain = vector_norm(x, ord=order).item()
    if order <= 0 or math.isinf(order) or _is_exact(plain, x.size, x.dtype, order):
        return plain
    scale = largest(abs(x)).item()
    if scale == 0 or not math.isfinite(scale):
        return scale
    return scale * vector_norm(x / scale, ord=order).item()


def _is_exact(total: float, size: int, dtype: np.dtype, order: float) -> bool:
    """Whether no power in the sum of them overflowed, and what underflowed does not count."""
    limits = np.finfo(dtype)
    lost = (size * float(limits.tiny) / float(limits.eps)) ** (1 / order)
    return lost < total < math.inf


def update_many(
    formula: Callable[..., dict[str, Any]], columns: Sequence[Sequence[Tensor]], number: float
) -> list[int]:
    """Apply an update formula to Tensors, one launch for each dtype.

    Parameters
    ----------
    formula
        A function of one symbol for each column, by the names of its parameters, and of a number;
        returns ``{name: new value}`` for the first.
    columns
        The Tensors that are changed, and, in the same order, those that are read. Complex ones are
        pairs of reals.
    number
        The last argument of the formula.

    Returns
    -------
    list
        The positions of Tensors that were left alone and need operations of their own: layouts that
        the kernel does not take, dtypes that differ between columns, a Tensor that is there twice
        or was made in inference mode; all of them where operations are watched (forward mode).
    """
    watched = state.interpreters or state.mutation is not None
    if watched or len(set(map(id, columns[0]))) < len(columns[0]):
        return list(range(len(columns[0])))
    by_dtype: dict[np.dtype, list[int]] = {}
    for k, tensor in enumerate(columns[0]):
        by_dtype.setdefault(tensor.dtype, []).append(k)
    left = []
    for dtype, members in by_dtype.items():
        arrays = [column[k]._array for column in columns for k in members]
        layout = None
        if dtype.kind in "fc" and all(version_of(columns[0][k]) is not INFERENCE for k in members):
            # a second column is only read
            layout = addresses(arrays, len(members), len(columns), 1, dtype)
        if layout is None:
            left += members
            continue
        kernel = _kernel(formula, np.finfo(dtype).dtype)
        run = threads.choose(
            kernel.entry,
            partial(kernel.entry, True),
            kernel.work_ns(layout.total),
            partial(kernel.entry, False, True),
        )
        run(layout.pointers, layout.starts, number)
        mark_all_written([columns[0][k] for k in members])
    return left


@cache
def _kernel(formula: Callable[..., dict[str, Any]], dtype: np.dtype) -> UpdateKernel:
    code = formula.__code__
    *elements, number = code.co_varnames[: code.co_argcount]
    return update_kernel(formula, elements, (), (number,), {}, dtype)


_MAX_NORM = Option(name="max_norm", annotation="float")


_CLIP_VALUE = Option(name="clip_value", annotation="float")


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients in place so that their norm, taken together, is at most ``max_norm``.

    Each gradient is multiplied by ``min(1, max_norm / (total_norm + 1e-6))``.

    Parameters
    ----------
    parameters
        A Tensor or several, real or complex, of any dtypes; those without a gradient are passed
        over.
    max_norm
        The largest norm.
    norm_type
        The order of the norm of the one vector of all elements: any number, ``inf`` for the
        largest magnitude.
    error_if_nonfinite
        Raise if the norm is NaN or infinite, which otherwise makes gradients NaN or 0.
    foreach
        Accepted for PyTorch's sake; there is one way here.

    Returns
    -------
    Tensor
        The norm before clipping, 0-d, of the dtype to which the real dtypes of the gradients
        promote; 0 if there are none.

    Raises
    ------
    NumgradTypeError
        If something in ``parameters`` is no Tensor, its dtype neither floating nor complex, or
        ``max_norm`` or ``norm_type`` no number.
    NumgradRuntimeError
        With ``error_if_nonfinite``; gradients are as they were.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.utils.clip_grad_norm_(w, max_norm=1.0)
    tensor(5.)
    >>> print(w.grad.numpy().round(3))
    [0.6 0.8]
    """
    _MAX_NORM.check("clip_grad_norm_", max_norm)
    if isinstance(parameters, GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warn(
                "clip_grad_norm_: the generator of parameters gives none, maybe since it was used "
                "up before; nothing is clipped",
                UserWarning,
            )
    grads = _gradients("clip_grad_norm_", parameters)
    total = total_norm("clip_grad_norm_", grads, norm_type, error_if_nonfinite)
    _scale(grads, max_norm, total)
    return _as_tensor(total, grads)


def get_total_norm(
    tensors: Gradient | Iterable[Gradient],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of the one vector of all elements of ``tensors``, usually gradients.

    Parameters, result and errors are those of ``clip_grad_norm_``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.get_total_norm([ng.tensor([3.0]), ng.tensor([[0.0], [4.0]])])
    tensor(5.)
    """
    tensors = listed("get_total_norm", tensors, Gradient)
    total = total_norm("get_total_norm", tensors, norm_type, error_if_nonfinite)
    return _as_tensor(total, tensors)


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor | float, foreach: bool | None = None
) -> None:
    """Scale the gradients in place by ``min(1, max_norm / (total_norm + 1e-6))``.

    The second half of ``clip_grad_norm_``, for a norm that is known or counts more than these
    gradients.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.utils.clip_grads_with_norm_(w, max_norm=1.0, total_norm=10.0)
    >>> print(w.grad.numpy().round(3))
    [0.3 0.4]
    """
    _MAX_NORM.check("clip_grads_with_norm_", max_norm)
    norm: Any = total_norm
    if not state.ground.deferred:
        norm = float(total_norm.item() if isinstance(total_norm, Tensor) else total_norm)
    _scale(_gradients("clip_grads_with_norm_", parameters), max_norm, norm)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of the gradients in place to ``[-clip_value, clip_value]``.

    Parameters
    ----------
    parameters
        A Tensor or several, of real dtypes; those without a gradient are passed over.
    clip_value
        The bound.
    foreach
        Accepted for PyTorch's sake; there is one way here.

    Raises
    ------
    NumgradTypeError
        If something in ``parameters`` is no Tensor, a gradient is complex, or
        ``clip_value`` no number.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([3.0, -0.5], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.utils.clip_grad_value_(w, 1.0)
    >>> w.grad
    tensor([ 1. , -0.5])
    """
    _CLIP_VALUE.check("clip_grad_value_", clip_value)
    bound = float(clip_value)
    parameters = listed("clip_grad_value_", parameters)
    grads = _gradients("clip_grad_value_", parameters)
    for grad in grads:
        if grad.dtype.kind == "c":
            raise NumgradTypeError(
                f"clip_grad_value_: complex numbers have no order, and a gradient of dtype "
                f"{grad.dtype} was found; use clip_grad_norm_"
            )
    with no_grad():
        for parameter in parameters:
            grad = parameter.grad
            if isinstance(grad, RowSparseTensor):
                parameter.grad = grad.coalesce()  # what is clipped are sums of rows that repeat
                grad = parameter.grad.values
            if grad is not None:
                grad.clip_(-bound, bound)


def _gradients(name: str, parameters: Tensors) -> list[Gradient]:
    grads = (parameter.grad for parameter in listed(name, parameters))
    return [grad for grad in grads if grad is not None]


def _scale(grads: list[Gradient], max_norm: float, total: Any) -> None:
    share = float(max_norm) / (total + 1e-6)
    if state.ground.deferred:
        with no_grad():
            share = OPS["where"](share >= 1, 1.0, share)
            for grad in grads:
                grad.mul_(OPS["astype"](share, dtype=np.finfo(grad.dtype).dtype))
        return
    if share >= 1:
        return
    dense = [grad for grad in grads if isinstance(grad, Tensor)]
    left = [dense[k] for k in update_many(_scaled, [dense], share)]
    with no_grad():
        for grad in chain(left, (g for g in grads if isinstance(g, RowSparseTensor))):
            grad.mul_(share)


def _scaled(grad: Any, share: Any) -> dict[str, Any]:
    return {"grad": grad * share}


def _as_tensor(total: Any, tensors: list[Gradient]) -> Tensor:
    dtypes = [np.finfo(dtype).dtype for dtype in {t.dtype for t in tensors}]
    if state.ground.deferred:
        kind = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        return OPS["astype"](total, dtype=kind)
    with np.errstate(over="ignore"):  # of a norm that float32 has no number for
        return Tensor(np.array(total).astype(np.result_type(*dtypes) if dtypes else np.float64))
