"""Single machine instructions that Python has no spelling for, as names: no compiler is imported.

Every function takes and returns scalars, is inlined by LLVM, and stays vectorisable.
"""

from numgrad.codegen.device import instruction, literal_instruction


@instruction
def fma(a, b, c):
    """``a * b + c`` with one rounding."""


@instruction
def bits(x):
    """The bit pattern of a float as a signed integer of its width."""


@instruction
def from_bits(i):
    """The float whose bit pattern is the int32 or int64 ``i``."""


@instruction
def select(condition, a, b):
    """``a`` where ``condition`` holds, else ``b``; both are evaluated, nothing branches."""


@instruction
def sqrt(x):
    """Square root, correctly rounded."""


@instruction
def fabs(x):
    """Absolute value: clears the sign bit."""


@instruction
def floor(x):
    """Largest integral value not above ``x``."""


@instruction
def ceil(x):
    """Smallest integral value not below ``x``."""


@instruction
def trunc(x):
    """Integral part, rounded towards zero."""


@instruction
def rint(x):
    """Nearest integral value, halves to even."""


@instruction
def copysign(x, y):
    """Magnitude of ``x`` with the sign of ``y``."""


@instruction
def maximum(x, y):
    """Larger of two; NaN if either is NaN."""


@instruction
def minimum(x, y):
    """Smaller of two; NaN if either is NaN."""


@instruction
def add_any_order(a, b):
    """``a + b`` that LLVM may reassociate with its like: the accumulation step of a sum."""


@instruction
def add_product(total, a, b):
    """``total + a * b`` in one rounding where the CPU can: a step of a product of matrices.

    LLVM may take the steps in any order.
    """


@instruction
def multiply_any_order(a, b):
    """``a * b`` that LLVM may reassociate with its like: the accumulation step of a product."""


# Note [Multiply-add without hardware]
# ``llvm.fma`` on a CPU without FMA calls a software routine, 33 times slower than a product and a
# sum. Elementary functions therefore use ``mul_add``, which is ``fma`` where the CPU has it and the
# two-rounding form elsewhere; error-free transformations there go through Dekker's splitting.
def _has_fma() -> bool:
    from numgrad.codegen.native import machine

    return machine.has_fma()


HAS_FMA = _has_fma()


@instruction
def mul_add(a, b, c):
    """``a * b + c``, in one rounding where the CPU can."""


@instruction
def estrin(x, coefficients):
    """``c[0] + c[1] x + ... + c[n] x**n`` for a tuple ``c`` of constants of the type of ``x``.

    It is written out as multiply-adds by Estrin's scheme, which has a few operations more than
    Horner's rule and a much shorter chain of dependent ones, on which a loop of 70 operations an
    element waits: erf took 1.7 ns with Horner, 1.2 with this. A loop over the tuple would have to
    be unrolled by LLVM before the loop around it can be vectorised, which is not certain.
    """


@instruction
def no_inline():
    """Keep the function that calls this from being inlined.

    Inlined copies of a loop would be optimised once more at each place, and might then add in
    another order.
    """


# Note [Alias scopes]
# A loop over several arrays given by addresses vectorises only if LLVM knows that they do not
# overlap. Checking that as the loop starts is what it does for up to eight pairs, beyond that it
# gives up. ``load`` and ``store`` say it instead: each of ``scopes`` arrays has a scope of its own,
# and an access within one is declared not to touch the others. A number beyond these says only that
# iterations of the innermost loop do not read there what others of them store.


@literal_instruction
def load(like, address, index, scope, scopes):
    """Element ``index`` of the array at ``address``, of the dtype ``like``: Note [Alias scopes]."""


@literal_instruction
def load_if(like, condition, address, index, scope, scopes):
    """Load an element where ``condition`` holds, else give zero without touching memory."""


@literal_instruction
def store(value, address, index, scope, scopes):
    """Set element ``index`` of the array at ``address``: Note [Alias scopes]."""


@instruction
def peek(like, address):
    """The integer of the dtype ``like`` at ``address``."""


@instruction
def prefetch(row, index):
    """Fetch into the cache the element of a contiguous row that will be changed soon.

    Nothing is read: an index out of range does no harm.
    """


def growing(dtype):
    """An empty vector that ``grow`` makes longer; only the native compiler has it."""
    return [dtype]


def grow(vector, length):
    """Make room in a growing vector for at least ``length`` elements."""
    vector.extend([0] * (length - len(vector)))
