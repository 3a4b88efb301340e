"""From formulas to machine code: the only floor that knows Numba and LLVM, besides the kernels."""
