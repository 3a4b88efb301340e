"""Products in the functions of one matrix."""

from numgrad.codegen.device import device
from numgrad.kernels.products.blas import gemm


@device
def product(a, trans_a, b, trans_b, out, add, alone):
    """``out = op(a) @ op(b)`` of row-major matrices; ``op`` 2 is the adjoint."""
    inner = a.shape[0] if trans_a else a.shape[1]
    gemm(
        a.dtype, trans_a, trans_b, out.shape[0], out.shape[1], inner, a.ctypes.data, a.shape[1],
        b.ctypes.data, b.shape[1], out.ctypes.data, out.shape[1], add, alone,
    )  # fmt: skip
