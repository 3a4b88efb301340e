"""Generated source straight to machine code: a compiler of the language kernels are written in.

Kernels are Python text that names every type: numbers, addresses, contiguous arrays, loops over
ranges, calls of the kernel library. For that language LLVM code follows from the text by walking
its syntax tree once, with no inference to do and innermost loops written as vectors of a fixed
number of lanes: Note [Loops in lanes] in ``loops``. What is not in it raises ``Unsupported``, and
Numba compiles the kernel instead.

``source`` reads a kernel's text; ``function`` translates its statements, ``loops`` what it repeats,
``expressions`` and ``calls`` what it computes, with ``arithmetic`` on ``values``, ``memory`` for
arrays and addresses, ``instructions`` for what the library calls; ``ir`` holds the text of LLVM's
language. ``machine`` and ``thread_pool`` make it callable; ``kernel`` does all of it.
"""
