"""``torch.special``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.torch.calls import ROWS, publish, table


def _polynomial(name: str, x: Any, n: Any) -> Any:
    """Orthogonal polynomials by their three-term recurrences, of degrees by element."""
    first, following = _FIRST[name](x)
    degrees = np.trunc(np.asarray(getattr(n, "_array", n)))
    top = int(degrees.max()) if degrees.size else 0
    before, now = ng.ones_like(x), first
    out = ng.where(degrees == 0, before, ng.zeros_like(x))
    for k in range(1, top + 1):
        out = ng.where(degrees == k, now, out)
        before, now = now, following(k, now, before)
    return out


def _chebyshev(start: Any) -> Any:
    def rule(x: Any) -> tuple[Any, Any]:
        return start(x), lambda k, now, before: 2 * x * now - before

    return rule


def _shifted(rule: Any) -> Any:
    return lambda x: rule(2 * x - 1)


_FIRST: dict[str, Any] = {
    "t": _chebyshev(lambda x: x),
    "u": _chebyshev(lambda x: 2 * x),
    "v": _chebyshev(lambda x: 2 * x - 1),
    "w": _chebyshev(lambda x: 2 * x + 1),
    "h": lambda x: (2 * x, lambda k, now, before: 2 * (x * now - k * before)),
    "he": lambda x: (x, lambda k, now, before: x * now - k * before),
    "l": lambda x: (
        1 - x, lambda k, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1),
    ),
    "p": lambda x: (
        x, lambda k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1),
    ),
}  # fmt: skip
_FIRST |= {f"shifted {name}": _shifted(_FIRST[name]) for name in "tuvw"}
_families = {
    "chebyshev_polynomial_": ("t u v w", ""),
    "shifted_chebyshev_polynomial_": ("t u v w", "shifted "),
    "hermite_polynomial_": ("h he", ""), "laguerre_polynomial_": ("l", ""),
    "legendre_polynomial_": ("p", ""),
}  # fmt: skip

TABLE = """
[float 1]
entr(input): ng.special.entr(input)
erfcx(input): ng.special.erfcx(input)
i0e(input): ng.special.i0e(input)
i1(input): ng.special.i1(input)
i1e(input): ng.special.i1e(input)
ndtr(input): ng.special.ndtr(input)
ndtri(input): ng.special.ndtri(input)
log_ndtr(input): ng.special.log_ndtr(input)
airy_ai(x): ng.special.airy(x)[0]
bessel_j0(input): ng.special.j0(input)
bessel_j1(input): ng.special.j1(input)
bessel_y0(input): ng.special.y0(input)
bessel_y1(input): ng.special.y1(input)
modified_bessel_i0(input): ng.special.i0(input)
modified_bessel_i1(input): ng.special.i1(input)
modified_bessel_k0(input): ng.special.k0(input)
modified_bessel_k1(input): ng.special.k1(input)
scaled_modified_bessel_k0(x): ng.special.k0e(x)
scaled_modified_bessel_k1(x): ng.special.k1e(x)
spherical_bessel_j0(x): ng.special.spherical_jn(0, x)
[float 2]
xlog1py(input, other): ng.special.xlog1py(input, other)
zeta(input, other): ng.special.zeta(input, other)
""" + "".join(
    f"{prefix}{name}(input, n): _polynomial({kind + name!r}, input, n)\n"
    for prefix, (names, kind) in _families.items()
    for name in names.split()
)
_rows = table("special", globals(), TABLE)
_same = (
    "digamma erf erfc erfinv exp2 expm1 i0 log1p logit logsumexp polygamma round sinc xlogy "
    "log_softmax softmax expit=sigmoid gammaln=lgamma psi=digamma gammainc=igamma "
    "gammaincc=igammac multigammaln=mvlgamma"
)
for _entry in _same.split():
    _name, _, _own = _entry.partition("=")
    _rows[_name] = ROWS[""][_own or _name]
publish("special", globals(), _rows)
