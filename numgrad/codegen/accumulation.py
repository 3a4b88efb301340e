"""Steps that put partial results of a reduction together.

Each step exists as a scalar function and for arrays of partial results; sums of floats are
compensated (Note [Blocks of a reduction] in ``reductions``). ``finish_<step>`` serves reductions,
which may fold their columns. What compiled functions need is less, and takes less time to compile:
``join_rows_<step>`` for many columns, ``join_few_<step>`` for a few, one after the other.
"""

from numgrad.codegen import intrinsics
from numgrad.codegen.device import device, instruction, outlined
from numgrad.codegen.intrinsics import no_inline


@outlined
def touch(array):
    """Keep an array alive up to here, whose memory was used by its address."""
    no_inline()


@device
def add(a, b):
    """Sum of two numbers."""
    return a + b


@device
def multiply(a, b):
    """Product of two numbers."""
    return a * b


@device
def maximum(a, b):
    """Larger of two floats, NaN if either is."""
    return intrinsics.maximum(a, b)


@device
def minimum(a, b):
    """Smaller of two floats, NaN if either is."""
    return intrinsics.minimum(a, b)


@instruction
def ordered_maximum(a, b):
    """Larger of two floats, undefined if either is NaN; a pass over a row looks out for NaN itself.

    One instruction, where ``maximum`` takes five.
    """


@instruction
def ordered_minimum(a, b):
    """Smaller of two floats, undefined if either is NaN."""


@device
def larger(a, b):
    """Larger of two integers."""
    return intrinsics.select(a > b, a, b)


@device
def smaller(a, b):
    """Smaller of two integers."""
    return intrinsics.select(a < b, a, b)


@device
def either(a, b):
    """Logical or of two bools."""
    return a | b


@device
def both(a, b):
    """Logical and of two bools."""
    return a & b


@device
def is_nan(z):
    """Whether a part of a complex number is NaN."""
    return (z.real != z.real) | (z.imag != z.imag)


@device
def before(a, b):
    """Whether complex ``a`` precedes ``b``: real parts decide, then imaginary parts."""
    return (a.real < b.real) | ((a.real == b.real) & (a.imag < b.imag))


@device
def larger_complex(a, b):
    """Later of two complex numbers in lexicographic order; the first with a NaN wins."""
    return b if (before(a, b) | is_nan(b)) and not is_nan(a) else a


@device
def smaller_complex(a, b):
    """Earlier of two complex numbers in lexicographic order; the first with a NaN wins."""
    return b if (before(b, a) | is_nan(b)) and not is_nan(a) else a


# Whether ``a`` takes the place of an earlier ``b`` in a search for the first extreme.


@device
def never(a):
    """Whether an integer is NaN, which none is."""
    return False


@device
def is_nan_float(a):
    """Whether a float is NaN."""
    return a != a


@device
def larger_first(a, b):
    """Whether integer ``a`` comes before ``b`` in argmax."""
    return a > b


@device
def smaller_first(a, b):
    """Whether integer ``a`` comes before ``b`` in argmin."""
    return a < b


@device
def larger_float_first(a, b):
    """Whether float ``a`` comes before ``b`` in argmax; the first NaN stays."""
    return (a > b) | ((a != a) & (b == b))


@device
def smaller_float_first(a, b):
    """Whether float ``a`` comes before ``b`` in argmin; the first NaN stays."""
    return (a < b) | ((a != a) & (b == b))


@device
def larger_complex_first(a, b):
    """Whether complex ``a`` comes before ``b`` in argmax; the first NaN stays."""
    return (before(b, a) | is_nan(a)) and not is_nan(b)


@device
def smaller_complex_first(a, b):
    """Whether complex ``a`` comes before ``b`` in argmin; the first NaN stays."""
    return (before(a, b) | is_nan(a)) and not is_nan(b)


@device
def add_compensated(total, error, value):
    """``total + value``, and ``error`` plus what rounding lost (Knuth's two-sum)."""
    new = total + value
    part = new - total
    return new, error + ((total - (new - part)) + (value - part))


@device
def compensated(total, error):
    """A compensated sum as one number; an overflow left NaN in ``error``, which is ignored."""
    return total if error - error != error - error else total + error


@device
def locate(task, tiles, tile, length, inner):
    """Where a tile of columns lies: its width, its first and last element, its first column."""
    block = task // tiles
    left = (task - block * tiles) * tile
    columns = min(tile, inner - left)
    start = block * length * inner + left
    corner = block * inner + left
    return columns, start, (block + 1) * length * inner, corner, corner + columns


@outlined
def last_start(starts, place):
    """The place of the last of ``starts``, which are in order, that is not above ``place``."""
    first, beyond = 0, starts.size
    while first < beyond:
        middle = (first + beyond) // 2
        if starts[middle] <= place:
            first = middle + 1
        else:
            beyond = middle
    return first - 1


@outlined
def finish_sum(part, chunks, columns, fold):
    """Add up the rows of ``part``, then ``fold`` groups of ``columns``, into its first elements."""
    no_inline()
    if chunks == 1 and fold == 1:
        return
    total, error = part[0], part[chunks]
    for j in range(columns * fold):
        error[j] = 0
    for c in range(1, chunks):
        row = part[c]
        for j in range(columns * fold):
            total[j], error[j] = add_compensated(total[j], error[j], row[j])
    for q in range(1, fold):
        more = total[q * columns : (q + 1) * columns]
        lost = error[q * columns : (q + 1) * columns]
        for j in range(columns):
            total[j], error[j] = add_compensated(total[j], error[j] + lost[j], more[j])
    for j in range(columns):
        total[j] = compensated(total[j], error[j])


@outlined
def join_rows_sum(part, chunks, columns, whole):
    """Add up the rows of ``part``, of which there are some, into ``whole``."""
    no_inline()
    total, error = part[0], part[chunks]
    for j in range(columns):
        error[j] = 0
    for c in range(1, chunks):
        row = part[c]
        for j in range(columns):
            total[j], error[j] = add_compensated(total[j], error[j], row[j])
    for j in range(columns):
        whole[j] = compensated(total[j], error[j])


@outlined
def join_few_sum(part, chunks, columns):
    """Add up the rows of ``part``, of which there are some, into the first."""
    no_inline()
    for j in range(columns):
        part[chunks, j] = 0
        total, error = part[0, j], part[chunks, j]
        for c in range(1, chunks):
            total, error = add_compensated(total, error, part[c, j])
        part[0, j] = compensated(total, error)


@outlined
def spread(values, columns, fold):
    """Repeat the first ``columns`` values ``fold`` times."""
    no_inline()
    for q in range(1, fold):
        copy = values[q * columns : (q + 1) * columns]
        for j in range(columns):
            copy[j] = values[j]


def _finish(step):
    def finish(part, chunks, columns, fold):
        no_inline()
        total = part[0]
        for c in range(1, chunks):
            row = part[c]
            for j in range(columns * fold):
                total[j] = step(total[j], row[j])
        for q in range(1, fold):
            more = total[q * columns : (q + 1) * columns]
            for j in range(columns):
                total[j] = step(total[j], more[j])

    # the linker symbol comes from this name: equal ones of cached kernels would be taken for one
    finish.__qualname__ = f"finish_{step.__name__}"
    return outlined(finish)


def _join_rows(step):
    def join_rows(part, chunks, columns, whole):
        no_inline()
        total = part[0]
        for c in range(1, chunks):
            row = part[c]
            for j in range(columns):
                total[j] = step(total[j], row[j])
        for j in range(columns):
            whole[j] = total[j]

    join_rows.__qualname__ = f"join_rows_{step.__name__}"
    return outlined(join_rows)


def _join_few(step):
    def join_few(part, chunks, columns):
        no_inline()
        for j in range(columns):
            c = 1
            while c < chunks:  # a ``for`` would be written in vectors
                part[0, j] = step(part[0, j], part[c, j])  # small integers stay such in memory
                c += 1

    join_few.__qualname__ = f"join_few_{step.__name__}"
    return outlined(join_few)


finish_add = _finish(add)
finish_multiply = _finish(multiply)
finish_maximum = _finish(maximum)
finish_minimum = _finish(minimum)
finish_larger = _finish(larger)
finish_smaller = _finish(smaller)
finish_larger_complex = _finish(larger_complex)
finish_smaller_complex = _finish(smaller_complex)
finish_either = _finish(either)
finish_both = _finish(both)

join_rows_add = _join_rows(add)
join_rows_multiply = _join_rows(multiply)
join_rows_maximum = _join_rows(maximum)
join_rows_minimum = _join_rows(minimum)
join_rows_larger = _join_rows(larger)
join_rows_smaller = _join_rows(smaller)
join_rows_larger_complex = _join_rows(larger_complex)
join_rows_smaller_complex = _join_rows(smaller_complex)
join_rows_either = _join_rows(either)
join_rows_both = _join_rows(both)

join_few_add = _join_few(add)
join_few_multiply = _join_few(multiply)
join_few_maximum = _join_few(maximum)
join_few_minimum = _join_few(minimum)
join_few_larger = _join_few(larger)
join_few_smaller = _join_few(smaller)
join_few_larger_complex = _join_few(larger_complex)
join_few_smaller_complex = _join_few(smaller_complex)
join_few_either = _join_few(either)
join_few_both = _join_few(both)
