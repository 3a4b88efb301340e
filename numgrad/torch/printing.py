"""Text of Tensors, with PyTorch's rules: four digits, brackets, dtype and history behind."""

from __future__ import annotations

from collections.abc import Callable
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


def _format(numbers: np.ndarray) -> Callable[[Any], str]:
    """A function that shows a number of an array, as wide as those that are finite."""
    if numbers.dtype.kind == "c":
        real, imag = _format(np.real(numbers)), _format(np.imag(numbers))

        def pair(v: Any) -> str:
            part = imag(v.imag).strip()
            return f"{real(v.real)}{part if part[0] == '-' else '+' + part}j"

        return pair
    digits, flat = _options["precision"], numbers.ravel()
    if numbers.dtype.kind in "iub":
        width = max([len(str(v)) for v in flat.tolist()])
        return lambda v: str(v).rjust(width)
    finite = flat[np.isfinite(flat) & (flat != 0)].astype(np.float64)
    whole, scientific = (
        bool((finite == np.ceil(finite)).all()),
        finite.size and _options["sci_mode"],
    )
    if scientific is None:
        low, high = np.abs(finite).min(), np.abs(finite).max()
        scientific = high / low > 1000.0 or high > 1e8 or low < 1e-4

    def text(v: Any) -> str:
        if scientific:
            return f"{v:.{digits}e}"
        if whole:
            return f"{v:.0f}." if np.isfinite(v) else f"{v:.0f}"
        return f"{v:.{digits}f}"

    width = max(map(len, map(text, finite)), default=1)
    return lambda v: text(v).rjust(width)


def _body(array: np.ndarray, short: bool, prefix: str) -> str:
    """The elements in brackets, lines as long as PyTorch's."""
    if not array.size:
        return "[]"
    numbers, edge = array, _options["edgeitems"]
    for axis, n in enumerate(array.shape if short else ()):  # those that are shown
        if n > 2 * edge:
            numbers = np.take(numbers, [*range(edge), *range(n - edge, n)], axis)
    shown = np.array2string(
        array, _options["linewidth"] + max(array.ndim - 1, 0), separator=", ", prefix=prefix,
        formatter={"all": _format(numbers)}, threshold=_options["threshold"], edgeitems=edge,
    )  # fmt: skip
    return shown.replace(", ..., ", ",  ..., ")


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
    default, short = get_default_dtype(), array.size > _options["threshold"]
    others = [default.to_complex().numpy, np.int64, np.bool] if array.size else []
    known = array.dtype in [default.numpy, *others]
    behind = [] if known else [f"dtype={OF[array.dtype]!r}"]
    if not array.size and array.ndim != 1:
        behind.insert(0, f"size={tuple(array.shape)}")
    node = x._tensor.grad_fn
    if node is not None or is_invalid(x._tensor):
        name = "Invalid" if node is None else node_name(node).rpartition(":")[2]
        behind.append(f"grad_fn=<{name}>")
    elif x._tensor.requires_grad:
        behind.append("requires_grad=True")
    if has_tangent(x._tensor):
        behind.append(f"tangent={forward_ad.unpack_dual(x).tangent}")
    text = prefix + _body(array, short, prefix)
    used = len(text) - text.rfind("\n") + 1
    for part in behind:
        fits = used + len(part) + 2 <= _options["linewidth"]
        text += f", {part}" if fits else f",\n{' ' * len(prefix)}{part}"
        used = used + len(part) + 2 if fits else len(prefix) + len(part)
    return f"Parameter containing:\n{text})" if isinstance(x, Parameter) else f"{text})"
