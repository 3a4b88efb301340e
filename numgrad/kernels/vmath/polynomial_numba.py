"""Numba's definition of the instruction of ``polynomial``."""

from numba import types

from numgrad.codegen.intrinsics import HAS_FMA


def _multiply_add(builder, a, b, c):
    if HAS_FMA:
        return builder.fma(a, b, c)
    return builder.fadd(builder.fmul(a, b), c)


def estrin(typingctx, x, coefficients):
    if not (
        isinstance(x, types.Float)
        and isinstance(coefficients, types.UniTuple)
        and coefficients.dtype == x
    ):
        return None

    def codegen(context, builder, signature, args):
        power = args[0]
        terms = [builder.extract_value(args[1], i) for i in range(coefficients.count)]
        while len(terms) > 1:
            odd = terms[-1:] if len(terms) % 2 else []
            pairs = zip(terms[0::2], terms[1::2], strict=False)
            terms = [_multiply_add(builder, b, power, a) for a, b in pairs] + odd
            if len(terms) > 1:
                power = builder.fmul(power, power)
        return terms[0]

    return x(x, coefficients), codegen
