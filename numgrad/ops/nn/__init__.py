"""Operations of neural networks, one module a field."""

from numgrad.ops.nn import (
    linear as linear,
)
from numgrad.ops.nn import (
    normalization as normalization,
)
from numgrad.ops.nn import (
    recurrent as recurrent,
)
