"""The library of functions that formulas may call, as ``kernels.vmath`` hands it over.

The writer of kernels knows names: what a function is called in a formula, and where its compiled
form is found. ``numgrad.kernels.vmath.library`` fills these tables.
"""

LIBRARY: dict[str, tuple[str, str]] = {}
"""NumPy's name -> (module, function there without its suffix of a dtype)."""

COMPLEX_LIBRARY: dict[str, str] = {}
"""Functions with a form for complex numbers, whose name is NumPy's -> module."""

REAL_BESIDE: dict[str, int] = {}
"""Functions of that form whose first arguments are real all the same -> how many these are."""

WITH_RARE: set[str] = set()
"""Functions whose fast form holds for most arguments only: ``<name>_rare`` tells which, and
``<name>_slow`` does those."""

SLOW_FOR_ALL: set[str] = set()
"""Functions of these whose slow form gives other arguments the bits of the fast form."""

EXTERNALS: dict[str, tuple[str, ...]] = {}
"""Functions of the library, complex forms as ``<name>_c128`` -> where the linker finds the C
functions that each calls."""
