"""Where numbers go in a sorted row, a block of them at a time.

The least and the greatest number of a block are searched for first; all others lie between, so
numbers in order take few steps. A step is the same for the whole block: no branch is guessed wrong,
and reads do not wait for each other.
"""

from numgrad.codegen.accumulation import larger, maximum, minimum, smaller
from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import select

BLOCK = 64
"""Numbers searched for together."""


@device
def is_before(a, v, right):
    """Whether an element stands before the place of a number, NaN being last."""
    below = (a < v) | ((v != v) & (a == a))
    return below | (right & ((a == v) | (v != v)))


@outlined
def place_of(a, v, right):
    """How many elements of a sorted row stand before the place of a number."""
    first = 0
    last = a.size
    while first < last:
        middle = (first + last) // 2
        if is_before(a[middle], v, right):
            first = middle + 1
        else:
            last = middle
    return first


@outlined
def bisect(a, v, places, first, last, right):
    """Places of numbers, all of them between two known places."""
    for i in range(v.size):
        places[i] = first
    count = last - first
    while count > 0:
        half = (count + 1) // 2
        for i in range(v.size):
            p = places[i]
            places[i] = select(is_before(a[p + half - 1], v[i], right), p + half, p)
        count -= half
    return 0


@outlined
def places_of_floats(a, v, places, right):
    """Places of a row of floats in a sorted one."""
    for lo in range(0, v.size, BLOCK):
        hi = min(lo + BLOCK, v.size)
        some = v[lo:hi]
        least, most = some[0], some[0]
        for i in range(some.size):
            least = minimum(least, some[i])
        for i in range(some.size):
            most = maximum(most, some[i])
        first, last = 0, a.size
        if least == least:  # without NaN
            first, last = place_of(a, least, right), place_of(a, most, right)
        bisect(a, some, places[lo:hi], first, last, right)
    return 0


@outlined
def places_of_integers(a, v, places, right):
    """The same of integers."""
    for lo in range(0, v.size, BLOCK):
        hi = min(lo + BLOCK, v.size)
        some = v[lo:hi]
        least, most = some[0], some[0]
        for i in range(some.size):
            least = smaller(least, some[i])
        for i in range(some.size):
            most = larger(most, some[i])
        first, last = place_of(a, least, right), place_of(a, most, right)
        bisect(a, some, places[lo:hi], first, last, right)
    return 0
