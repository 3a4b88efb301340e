"""Text of Tensors, with PyTorch's rules: four digits, brackets, dtype and history behind."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.batching.batch import Batched
from numgrad.autograd.forward_ad import has_tangent
from numgrad.core.interpreter import state
from numgrad.tensors.conversions import is_invalid
from numgrad.torch.dtypes import OF, get_default_dtype

_names = ("precision", "threshold", "edgeitems", "linewidth")
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, np.inf, 3, 80)}
_options: dict[str, Any] = dict(zip(_names, _PROFILES["default"], strict=True), sci_mode=None)


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how Tensors are shown, by a profile (``default``, ``short``, ``full``) or one by one."""
    if profile is not None:
        _options.update(zip(_names, _PROFILES[profile], strict=True))
    given = zip(_names, (precision, threshold, edgeitems, linewidth), strict=True)
    _options.update({name: value for name, value in given if value is not None}, sci_mode=sci_mode)


def _real_format(numbers: np.ndarray) -> tuple[Any, int]:
    """A function that shows a number of an array, and the width of those that are finite."""
    digits, flat = _options["precision"], numbers.ravel()
    if numbers.dtype.kind in "iub":
        width = max([len(str(v)) for v in flat.tolist()])
        return (lambda v: str(v).rjust(width)), width
    finite = flat[np.isfinite(flat) & (flat != 0)].astype(np.float64)
    whole = bool((finite == np.ceil(finite)).all())
    scientific = False
    if finite.size:
        low, high = float(np.abs(finite).min()), float(np.abs(finite).max())
        scientific = _options["sci_mode"]
        if scientific is None:
            scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4

    def text(v: Any) -> str:
        if scientific:
            return f"{v:.{digits}e}"
        if whole:
            return f"{v:.0f}." if np.isfinite(v) else f"{v:.0f}"
        return f"{v:.{digits}f}"

    width = max(map(len, map(text, finite)), default=1)
    return (lambda v: text(v).rjust(width)), width


def _formatter(numbers: np.ndarray) -> tuple[Any, int]:
    edge = _options["edgeitems"]
    if numbers.size > _options["threshold"]:  # the numbers that are shown
        for axis, n in enumerate(numbers.shape):
            if n > 2 * edge:
                numbers = np.take(numbers, [*range(edge), *range(n - edge, n)], axis)
    if numbers.dtype.kind != "c":
        return _real_format(numbers)
    real, width = _real_format(np.real(numbers))
    imag, second = _real_format(np.imag(numbers))

    def text(v: Any) -> str:
        part = imag(v.imag).strip()
        return f"{real(v.real)}{part if part[0] == '-' else '+' + part}j"

    return text, width + second + 1


def _body(array: np.ndarray, text: Any, width: int, indent: int) -> str:
    if not array.ndim:
        return text(array[()])
    edge = _options["edgeitems"]
    summarise = array_size(array) > _options["threshold"] and array.shape[0] > 2 * edge
    rows = (
        [*range(edge), None, *range(array.shape[0] - edge, array.shape[0])]
        if summarise
        else range(len(array))
    )
    between = " ..." if array.ndim == 1 else "..."
    parts = [between if k is None else _body(array[k], text, width, indent + 1) for k in rows]
    if array.ndim > 1:
        return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"
    per_line = max(1, (_options["linewidth"] - indent) // (width + 2))
    lines = [", ".join(parts[k : k + per_line]) for k in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


_whole = [0]


def array_size(array: np.ndarray) -> int:
    """Number of elements of the Tensor that is shown."""
    return max(_whole[-1], array.size)


def shown(x: Any) -> str:
    """The text of a Tensor."""
    from numgrad.torch.autograd import forward_ad
    from numgrad.torch.autograd.graph import node_name
    from numgrad.torch.wrapping import Parameter, wrapped

    if isinstance(x._tensor, Batched):
        level = state.interpreters.index(x._tensor.level) + 1
        return f"BatchedTensor(lvl={level}, bdim=0, value={shown(wrapped(x._tensor.value))})"
    array = x._tensor.numpy(force=True)
    prefix = "tensor("
    usual = {get_default_dtype().numpy, np.dtype(np.int64), np.dtype(bool)}
    behind = []
    real = array.dtype in usual
    if not (real and (array.size or array.dtype.kind == "f")) and (
        array.dtype != get_default_dtype().to_complex().numpy
    ):
        behind = [f"dtype={OF[array.dtype]!r}"]
    if not array.size and array.ndim != 1:
        behind.insert(0, f"size={tuple(array.shape)}")
    node = x._tensor.grad_fn
    if node is not None:
        behind.append(f"grad_fn=<{node_name(node).rpartition(':')[2]}>")
    elif is_invalid(x._tensor):
        behind.append("grad_fn=<Invalid>")
    elif x._tensor.requires_grad:
        behind.append("requires_grad=True")
    if has_tangent(x._tensor):
        behind.append(f"tangent={forward_ad.unpack_dual(x).tangent}")
    _whole.append(array.size)
    try:
        body = _body(array, *_formatter(array), len(prefix)) if array.size else "[]"
    finally:
        _whole.pop()
    text = prefix + body
    used = len(text) - text.rfind("\n") + 1
    for part in behind:
        fits = used + len(part) + 2 <= _options["linewidth"]
        text += f", {part}" if fits else f",\n{' ' * len(prefix)}{part}"
        used = used + len(part) + 2 if fits else len(prefix) + len(part)
    return f"Parameter containing:\n{text})" if isinstance(x, Parameter) else f"{text})"
