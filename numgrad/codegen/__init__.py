"""Translation of formulas to machine code; only kernels know Numba and LLVM besides."""
