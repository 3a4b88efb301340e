"""``torch.special``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng
from numgrad.torch.calls import ROWS, pairs, publish, table
from numgrad.torch.table_elementwise import log_product as log_product


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


TABLE = """
[float 1]
airy_ai(x): ng.special.airy(x)[0]
spherical_bessel_j0(x): ng.special.spherical_jn(0, x)
{entr erfcx i0e i1 i1e ndtr ndtri log_ndtr bessel_j0=j0 bessel_j1=j1 bessel_y0=y0 bessel_y1=y1
 modified_bessel_i0=i0 modified_bessel_i1=i1 modified_bessel_k0=k0 modified_bessel_k1=k1
 scaled_modified_bessel_k0=k0e scaled_modified_bessel_k1=k1e}(input): ng.special.@(input)
[float 2]
xlog1py(input, other): log_product(ng.special.xlog1py, -1, input, other)
zeta(input, other): ng.special.zeta(input, other)
{chebyshev_polynomial_t=chebyt chebyshev_polynomial_u=chebyu chebyshev_polynomial_v=chebyv
 chebyshev_polynomial_w=chebyw hermite_polynomial_h=hermite hermite_polynomial_he=hermitenorm
 laguerre_polynomial_l=laguerre legendre_polynomial_p=legendre}(input, n): _polynomial(
    "@", input, n)
{shifted_chebyshev_polynomial_t=chebyt shifted_chebyshev_polynomial_u=chebyu
 shifted_chebyshev_polynomial_v=chebyv shifted_chebyshev_polynomial_w=chebyw}(input, n): (
    _polynomial("@", 2 * input - 1, n))
"""
_SAME = (
    "digamma erf erfc erfinv exp2 expm1 i0 log1p logit logsumexp polygamma round sinc xlogy "
    "log_softmax softmax expit=sigmoid gammaln=lgamma psi=digamma gammainc=igamma "
    "gammaincc=igammac multigammaln=mvlgamma"
)
"""Functions of the topmost module, some under another name."""
_rows = table("special", globals(), TABLE)
_rows |= {name: ROWS[""][own] for name, own in pairs(_SAME)}
publish("special", globals(), _rows)
