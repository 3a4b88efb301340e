"""How a loop of users' kernels is cut into chunks, and private sums of these put together.

See Note [Chunks] in ``adjoint.parallel``.
"""

from numgrad.codegen.device import device, instruction

FEW_CHUNKS = 16
"""Chunks that are few."""
MOST_CHUNKS = 128
"""Chunks of a loop at most."""
BLOCK = 8192
"""Elements of private sums that one task adds up."""
FEW = 100_000
"""Elements of private sums that are not worth several tasks."""


@device
def cut_in_chunks(total, work, least, copying):
    """Iterations of a chunk, and the number of chunks, for iterations of so much work each.

    A chunk has ``least`` work at least, and ``copying``, for what is private to each. A few chunks
    are an even number, which two threads share.
    """
    if total <= 0:
        return 1, 0
    whole = total * work
    count = min(total, min(whole // max(least, copying), MOST_CHUNKS))
    if count < 2:
        return total, 1
    if count < FEW_CHUNKS:
        count -= count % 2
    size = -(-total // count)
    return size, -(-total // size)


@device
def clear_chunk(sums, chunk, length):
    """Set the private copy of a chunk to zero; the first one has none."""
    if chunk > 0:
        for place in range((chunk - 1) * length, chunk * length):
            sums[place] = 0


@device
def blocks_of(chunks, length):
    """Into how many blocks the elements of private sums are cut to be added up."""
    if chunks < 2 or length <= 0:
        return 0
    if chunks * length < FEW:
        return 1
    return -(-length // BLOCK)


@device
def add_chunks(total, sums, chunks, length, block):
    """Add private copies, in the order of chunks, to a block of the elements of an array."""
    blocks = blocks_of(chunks, length)
    low = block * length // blocks
    high = (block + 1) * length // blocks
    for chunk in range(1, chunks):
        first = (chunk - 1) * length
        for place in range(low, high):
            total[place] += sums[first + place]


@instruction
def partial_sums(count, like):
    """A vector of ``count`` elements of the dtype of a number or an array."""


@instruction
def chunk_of(whole, sums, chunk):
    """The private copy of a chunk, in the shape of an array; of the first one the array itself."""
