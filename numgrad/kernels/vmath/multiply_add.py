"""``a * b + c`` for uses in which the rounding error of the product must not be lost.

Where the CPU has FMA this is one instruction. Elsewhere (Note [Multiply-add without hardware]) the
product is taken with its error: exact if the sum cancels the leading half of the product, which is
what error terms, remainders and argument reductions need.
"""

from numgrad.codegen.device import device
from numgrad.codegen.intrinsics import HAS_FMA, fma
from numgrad.kernels.vmath.double_double import two_prod_f32, two_prod_f64

if HAS_FMA:

    @device
    def exact_mul_add_f64(a, b, c):
        """``a * b + c`` without the rounding error of the product."""
        return fma(a, b, c)

    @device
    def exact_mul_add_f32(a, b, c):
        """``a * b + c`` without the rounding error of the product."""
        return fma(a, b, c)

else:

    @device
    def exact_mul_add_f64(a, b, c):
        """``a * b + c`` without the rounding error of the product."""
        high, low = two_prod_f64(a, b)
        return (high + c) + low

    @device
    def exact_mul_add_f32(a, b, c):
        """``a * b + c`` without the rounding error of the product."""
        high, low = two_prod_f32(a, b)
        return (high + c) + low
