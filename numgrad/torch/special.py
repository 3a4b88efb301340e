"""``torch.special``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.torch.calls import ROWS, publish, table


def _polynomial(name: str, x: Any, n: Any) -> Any:
    """Orthogonal polynomials of degrees by element, whose fraction does not count."""
    degrees = np.trunc(np.asarray(getattr(n, "_array", n))).astype(np.int64)
    least = np.maximum(degrees, 0)
    if name in ("chebyv", "chebyw"):  # differences and sums of those of the second kind
        u = ng.special.eval_chebyu(least, x)
        before = ng.where(degrees > 0, ng.special.eval_chebyu(np.maximum(least - 1, 0), x), 0)
        out = u - before if name == "chebyv" else u + before
    else:
        out = getattr(ng.special, f"eval_{name}")(least, x)
    return ng.where(degrees < 0, 0, out).astype(x.dtype)


_POLYNOMIALS = {
    **{f"chebyshev_polynomial_{kind}": f"cheby{kind}" for kind in "tuvw"},
    "hermite_polynomial_h": "hermite", "hermite_polynomial_he": "hermitenorm",
    "laguerre_polynomial_l": "laguerre", "legendre_polynomial_p": "legendre",
}  # fmt: skip
"""Polynomials, and their names behind ``eval_`` in ``ng.special``."""

TABLE = (
    """
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
"""
    + "".join(
        f"{name}(input, n): _polynomial({short!r}, input, n)\n"
        for name, short in _POLYNOMIALS.items()
    )
    + "".join(
        f"shifted_chebyshev_polynomial_{kind}(input, n): "
        f"_polynomial('cheby{kind}', 2 * input - 1, n)\n"
        for kind in "tuvw"
    )
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
