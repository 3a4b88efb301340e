"""Functions of lists of Tensors: ``torch._foreach_add`` and others, which call methods of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.errors import NumgradRuntimeError
from numgrad.torch.wrapping import Tensor, named

_OF_ONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero"
)
_OF_MORE = "add addcdiv addcmul clamp_max clamp_min copy div lerp maximum minimum mul pow sub"
_ALONE = "clone max mm norm"
"""Methods without a form in place; ``zero`` and ``copy`` have no other."""
_COPIED = ("maximum", "minimum")  # there are no methods in place


def _each(name: str, method: str, inplace: bool) -> Callable[..., Any]:
    def called(self: Sequence[Tensor], *args: Any, **params: Any) -> Any:
        columns = [a if isinstance(a, list | tuple) else [a] * len(self) for a in args]
        if any(len(column) != len(self) for column in columns):
            raise NumgradRuntimeError(f"{name}: needs lists of {len(self)} members, as the first")
        results = []
        for x, *rest in zip(self, *columns, strict=True):
            if method[:4] == "addc" and len(rest) == 3:
                params["value"] = rest.pop()
            if inplace and method in _COPIED:
                x.copy_(getattr(x, method)(*rest, **params))
            else:
                results.append(getattr(x, method + "_" * inplace)(*rest, **params))
        return self if inplace else tuple(results)

    return named(called, name, f"Call ``{method}`` of each Tensor, with numbers or lists.")


FUNCTIONS = {
    f"_foreach_{name}{'_' * inplace}": _each(f"_foreach_{name}", name, bool(inplace))
    for inplace in (0, 1)
    for name in f"{_OF_ONE} {_OF_MORE} {_ALONE if not inplace else ''}".split()
    if inplace or name not in ("zero", "copy")
}
"""The functions by name."""
