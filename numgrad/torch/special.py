"""``torch.special``: Note [Rows of names] in ``calls``."""

from __future__ import annotations

from numgrad.torch.calls import ROWS, publish, table

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
"""
_rows = table("special", globals(), TABLE)
_same = (
    "digamma erf erfc erfinv exp2 expm1 i0 log1p logit logsumexp polygamma round sinc xlogy "
    "log_softmax softmax"
)
for _name, _own in [(name, name) for name in _same.split()] + [
    ("expit", "sigmoid"), ("gammaln", "lgamma"), ("psi", "digamma"), ("gammainc", "igamma"),
    ("gammaincc", "igammac"), ("multigammaln", "mvlgamma"),
]:  # fmt: skip
    _rows[_name] = ROWS[""][_own]
publish("special", globals(), _rows)
