"""Inner loops of matrix products, in registers, on addresses: Note [Small products].

Addresses and distances are int64. Distances are in bytes; an axis of a matrix is given by the
distance of its elements. Every function takes the type of the elements first.

The loops are written as the instructions they shall become, for compilers to have little to
do: analysing, vectorising and unrolling loops over addresses took five times as long.
"""

from numgrad.codegen.device import instruction


@instruction
def stack(size):
    """Address of ``size`` bytes (a literal) on the stack of the calling function."""


@instruction
def tile(like, rows, vectors, width, a, row_a, step_a, b, row_b, count, c, row_c, left, add):
    """``c[r, j] = sum(a[r, l] * b[l, j] for l in range(count))`` in registers.

    r runs over ``rows`` (a literal), but no further than ``left``, j over as many elements as
    ``vectors`` SIMD vectors of ``width`` bytes (literals) hold. With ``add`` a sum starts from what
    c holds. Elements in rows of b and c are contiguous.
    """


@instruction
def broad_bytes():
    """Bytes of a row of ``broad_tile``."""


@instruction
def broad_tile(like, rows, a, row_a, step_a, b, row_b, count, c, row_c, left, add):
    """``tile`` of two vectors as wide as this CPU has them."""


@instruction
def broad_finite(like, b, row_b, count):
    """Whether ``count`` rows of ``broad_tile`` hold numbers that are finite, as 0 or 1."""


@instruction
def dots(like, rows, a, row_a, x, count, c, row_c, left, add):
    """``c[r] = sum(a[r, l] * x[l] for l in range(count))`` in several lanes.

    r runs over ``rows`` (a literal), but no further than ``left``. With ``add`` the sum is added to
    what c holds. Elements in rows of a and in x are contiguous.
    """


@instruction
def element(like, a, step_a, b, step_b, count, c, add):
    """``c = sum(a[l] * b[l] for l in range(count))``, from c on with ``add``."""


@instruction
def complex_element(like, a, step_a, sign_a, b, step_b, sign_b, count, c, add):
    """The same of complex numbers, with imaginary parts multiplied by ``sign_a``, ``sign_b``."""


@instruction
def gather(like, source, row, step, rows, columns, target, pitch):
    """Copy a matrix of ``rows`` and ``columns`` to one with contiguous rows ``pitch`` apart."""


@instruction
def gather_rows(like, width, source, row, rows, target, pitch):
    """Copy rows of ``width`` bytes (a literal), a SIMD vector, to ones ``pitch`` apart."""


@instruction
def turn(like, width, source, column, rows, target, pitch):
    """The same of a matrix whose columns are contiguous, ``column`` apart."""


@instruction
def clear(address, size):
    """Set ``size`` bytes to zero."""
