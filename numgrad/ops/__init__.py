"""The operations, one module a field; importing this package fills the table ``OPS``."""

from numgrad.ops import (
    arithmetic as arithmetic,
)
from numgrad.ops import (
    compare as compare,
)
from numgrad.ops import (
    complex as complex,
)
from numgrad.ops import (
    cumulative as cumulative,
)
from numgrad.ops import (
    diagonal as diagonal,
)
from numgrad.ops import (
    einsum as einsum,
)
from numgrad.ops import (
    embed as embed,
)
from numgrad.ops import (
    exponential as exponential,
)
from numgrad.ops import (
    extend as extend,
)
from numgrad.ops import (
    index as index,
)
from numgrad.ops import (
    join as join,
)
from numgrad.ops import (
    linalg as linalg,
)
from numgrad.ops import (
    masked as masked,
)
from numgrad.ops import (
    matmul as matmul,
)
from numgrad.ops import (
    nn as nn,
)
from numgrad.ops import (
    norm as norm,
)
from numgrad.ops import (
    reduce as reduce,
)
from numgrad.ops import (
    region as region,
)
from numgrad.ops import (
    scatter as scatter,
)
from numgrad.ops import (
    search as search,
)
from numgrad.ops import (
    shape as shape,
)
from numgrad.ops import (
    special as special,
)
from numgrad.ops import (
    trigonometric as trigonometric,
)
from numgrad.ops import (
    write as write,
)
