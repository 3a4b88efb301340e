"""Generated kernels as LLVM IR: written, compiled, kept and called without Numba."""
