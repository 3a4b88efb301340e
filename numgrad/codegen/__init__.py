"""From formulas to machine code: besides the kernels, the only room that knows Numba and LLVM."""
