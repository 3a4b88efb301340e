"""Errors in units in the last place, measured against mpmath."""

import mpmath
import numpy as np

_MANTISSA = {np.dtype(np.float32): (24, -149), np.dtype(np.float64): (53, -1074)}


def _one_error(got: float, truth, largest: float, digits: int, least: int) -> float:
    if mpmath.isnan(truth):
        return 0.0 if np.isnan(got) else np.inf
    if np.isnan(got):
        return np.inf
    _, exponent = mpmath.frexp(truth) if mpmath.isfinite(truth) else (0, 0)
    spacing = mpmath.ldexp(1, max(exponent - digits, least))
    bound = mpmath.mpf(largest) * (1 + mpmath.ldexp(1, -digits))  # above it rounding gives infinity
    if mpmath.isinf(truth) or abs(truth) >= bound:
        if np.isinf(got):
            return 0.0 if (got > 0) == (truth > 0) else np.inf
        return np.inf if mpmath.isinf(truth) else float(abs(truth - got) / spacing)
    if np.isinf(got):  # rounded up past the largest finite value: count the spacing below it
        got = mpmath.sign(got) * mpmath.mpf(2) ** int(np.frexp(largest)[1])
    return float(abs(mpmath.mpf(got) - truth) / spacing)


def ulp_errors(got, reference, *arguments, precision: int = 160) -> np.ndarray:
    """Error of each ``got[i]`` in ulps of ``got.dtype``.

    The truth is ``reference(*arguments[i])``, computed by mpmath with ``precision`` bits from the
    exact values of ``arguments``. Subnormal results are measured in the smallest subnormal. A
    result that overflows must be infinite, a NaN must be NaN; a wrong one counts as infinite error.
    """
    got = np.asarray(got).ravel()
    columns = [np.asarray(a).ravel() for a in arguments]
    digits, least = _MANTISSA[got.dtype]
    largest = float(np.finfo(got.dtype).max)
    errors = np.empty(got.size)
    with mpmath.workprec(precision):
        for i in range(got.size):
            values = [c[i].item() for c in columns]
            truth = mpmath.mpf(reference(*map(mpmath.mpf, values)))
            errors[i] = _one_error(float(got[i]), truth, largest, digits, least)
    return errors


def assert_ulp(got, reference, *arguments, limit: float, precision: int = 160) -> None:
    """Fail, naming the worst argument, if any error exceeds ``limit`` ulps."""
    errors = ulp_errors(got, reference, *arguments, precision=precision)
    worst = int(np.argmax(errors))
    where = [np.asarray(a).ravel()[worst] for a in arguments]
    assert errors[worst] <= limit, (
        f"{errors[worst]:.4g} ulp > {limit} at {where!r}: got {np.asarray(got).ravel()[worst]!r}"
    )
