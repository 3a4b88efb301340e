"""Kernels of connectionist temporal classification: threads share the examples.

Note [Paths of labels] in ``nn.loss.ctc`` says what ``alpha`` and ``beta`` are. All arrays
are flat but those with a row for each example: ``states``, what each state stands for, and
``skips``, where a state may follow the one two before. ``alpha`` is kept from the forward pass of
the same call; of ``beta`` only one time is.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

_STEPS = """
import numpy as np
from numba import {type}, int64, prange
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import maximum
from numgrad.kernels.vmath.exponential import exp_{bits} as exp
from numgrad.kernels.vmath.logarithm import log_{bits} as log

NEVER = {type}(-1e30)
ZERO, NAN = {type}(0), {type}(np.nan)

@outlined
def either(a, b, c):
    most = maximum(maximum(a, b), c)
    return most + log(exp(a - most) + exp(b - most) + exp(c - most))

@outlined
def forward(x, states, skips, time, last, alpha, step):
    # the likelihood; alpha has a row of states for each time
    count = states.size
    if time == 0:
        return NEVER if last > 0 else ZERO
    for s in range(last + 1):
        alpha[s] = NEVER
    alpha[0] = maximum(x[states[0]], NEVER)
    if last > 0:
        alpha[1] = maximum(x[states[1]], NEVER)
    for t in range(1, time):
        before = alpha[(t - 1) * count : t * count]
        now = alpha[t * count : (t + 1) * count]
        seen = x[t * step :]
        for s in range(last + 1):
            one, two = NEVER, NEVER
            if s > 0:
                one = before[s - 1]
            if s > 1:
                if skips[s] != 0:
                    two = before[s - 2]
            now[s] = either(before[s], one, two) + maximum(seen[states[s]], NEVER)
    final = alpha[(time - 1) * count :]
    if last > 0:
        return either(final[last], final[last - 1], NEVER)
    return final[0]

@outlined
def backward(x, states, skips, time, last, alpha, beta, likelihood, out, step):
    # adds probabilities of states to those of their classes
    count = states.size
    here, now = beta[:count], beta[count:]
    for s in range(last + 1):
        now[s] = NEVER
    now[last] = ZERO
    if last > 0:
        now[last - 1] = ZERO
    for back in range(time):
        t = time - 1 - back
        seen = x[t * step :]
        row, totals = alpha[t * count :], out[t * step :]
        for s in range(last + 1):
            totals[states[s]] += exp(row[s] + now[s] - likelihood)
            here[s] = now[s] + maximum(seen[states[s]], NEVER)
        for s in range(last + 1):
            one, two = NEVER, NEVER
            if s < last:
                one = here[s + 1]
            if s + 1 < last:
                if skips[s + 2] != 0:
                    two = here[s + 2]
            now[s] = either(here[s], one, two)
"""

_LIKELIHOOD = """
def kernel(x, states, skips, times, lasts, alpha, likelihoods, step, classes):
    for index in {range}(times.size):
        n = int64(index)
        likelihoods[n] = forward(
            x[n * classes :], states[n], skips[n], times[n], lasts[n], alpha[n], step
        )
"""

_SHARES = """
def kernel(x, states, skips, times, lasts, alpha, beta, out, step, classes):
    for index in {range}(times.size):
        n = int64(index)
        row = x[n * classes :]
        likelihood = forward(row, states[n], skips[n], times[n], lasts[n], alpha[n], step)
        if likelihood > {type}(-5e29):
            backward(
                row, states[n], skips[n], times[n], lasts[n], alpha[n], beta[n], likelihood,
                out[n * classes :], step,
            )
        else:
            for t in range(times[n]):
                for c in range(classes):
                    out[t * step + n * classes + c] = {nan}
"""


@cache
def likelihood_kernel(dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    """Likelihoods.

    Called with x, states, skips, times, lasts, alpha, likelihoods, step, classes.
    """
    return _compile("ctc", _LIKELIHOOD, "{0}[::1], int64, int64", dtype, parallel)


@cache
def shares_kernel(dtype: np.dtype, parallel: bool, zeros: bool) -> Callable[..., None]:
    """Probabilities of classes, added to ``out``, which starts with zeros.

    Called with x, states, skips, times, lasts, alpha, beta, out, step, classes. What is impossible
    gets zeros or NaN.
    """
    kind = "ctc_zeros" if zeros else "ctc_shares"
    source = _SHARES.replace("{nan}", "ZERO" if zeros else "NAN")
    return _compile(kind, source, "{0}[:,::1], {0}[::1], int64, int64", dtype, parallel)


def _compile(
    name: str, source: str, types: str, dtype: np.dtype, parallel: bool
) -> Callable[..., None]:
    kind = type_name(dtype)
    text = (_STEPS + source).format(
        type=kind, bits=f"f{dtype.itemsize * 8}", range="prange" if parallel else "range"
    )
    head = f"{kind}[::1], int64[:,::1], int64[:,::1], int64[::1], int64[::1], {kind}[:,::1]"
    kernel = compile_kernel(
        f"{name}_{short(dtype)}{'_p' * parallel}",
        text,
        f"void({head}, {types.format(kind)})",
        parallel=parallel,
        nogil=parallel,
    )
    return kernel.entry
