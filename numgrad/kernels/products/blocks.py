"""Products of blocks that stay in a cache, in the loops of generated kernels.

Note [Products of blocks]
-------------------------
A loop whose iterations run side by side holds what they compute in blocks: a row for each place of
the other axes, whose elements are those of the iterations. A sum of products along one of these
axes, for all places of another, is a product of a small matrix with such a block; a sum along the
iterations is a product of two blocks. ``block_product`` holds tiles of the result in registers, as
``gemm`` does (Note [Small products]), in vectors as wide as the CPU has them. Each element is added
up in the order of the summed axis, whatever the width.

Columns of the matrix that are zero in all rows of a tile are left out where they come first or
last, as in a triangular factor, if the block is finite: a product with zero then is zero, and to
add that changes no sum which begins with zero.
"""

from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import load, mul_add, peek, store
from numgrad.kernels.products.blas import broad_bytes, broad_finite, broad_tile, gather, stack

SLACK = 128
"""Bytes behind a block that a tile may read, whatever the CPU."""


@outlined
def block_product(like, size, a, row_a, step_a, b, row_b, count, c, row_c, rows, columns, add):
    """``c = a @ b``, or ``c += a @ b`` if ``add``, for ``a`` of (rows, count).

    Distances are in bytes, ``size`` is that of an element. Elements in rows of b and c are
    contiguous. Each row of b is read up to a whole number of tiles: ``SLACK`` bytes may follow the
    last.
    """
    no_inline()
    edge = stack(1024)
    pitch = broad_bytes()
    wide = pitch // size
    finite = -1  # not known
    for i in range(0, rows, 4):
        height = min(4, rows - i)
        x = a + i * row_a
        first = zeros(like, x, row_a, step_a, height, count)
        last = x + (count - 1) * step_a
        terms = count - first - zeros(like, last, row_a, -step_a, height, count - first)
        if terms < count:
            if finite < 0:
                finite = 1
                for left in range(0, columns, wide):
                    if finite > 0:
                        finite = broad_finite(like, b + left * size, row_b, count)
            if finite == 0:
                first, terms = 0, count
        x += first * step_a
        y = b + first * row_b
        for left in range(0, columns, wide):
            breadth = min(wide, columns - left)
            corner = c + i * row_c + left * size
            whole = breadth == wide
            target = corner if whole else edge
            row = row_c if whole else pitch
            if add and not whole:
                gather(like, corner, row_c, size, height, breadth, edge, pitch)
            broad_tile(
                like, 4, x, row_a, step_a, y + left * size, row_b, terms, target, row, height, add
            )
            if not whole:
                gather(like, edge, pitch, size, height, breadth, corner, row_c)


def _one_by_one(like, size, a, row_a, step_a, b, row_b, count, c, row_c, rows, columns, add):
    """The same sums, of which each is added up by itself."""
    for i in range(rows):
        for j in range(columns):
            address = c + i * row_c + j * size
            total = load(like, address, 0, 0, 1) if add else like(0)
            for k in range(count):
                x = load(like, a + i * row_a + k * step_a, 0, 0, 1)
                total = mul_add(x, load(like, b + k * row_b + j * size, 0, 0, 1), total)
            store(total, address, 0, 0, 1)


block_product.for_numba = _one_by_one


@outlined
def zeros(like, a, row, step, height, count):
    """How many of ``count`` columns are zero in all of up to four rows, before one that is not."""
    no_inline()
    second = min(1, height - 1) * row
    third = min(2, height - 1) * row
    fourth = min(3, height - 1) * row
    columns = 0
    while (
        columns < count
        and peek(like, a) == 0
        and peek(like, a + second) == 0
        and peek(like, a + third) == 0
        and peek(like, a + fourth) == 0
    ):
        columns += 1
        a += step
    return columns
