"""Operations of neural networks, one module a field."""

from numgrad.ops.nn import (
    convolution as convolution,
)
from numgrad.ops.nn import (
    linear as linear,
)
from numgrad.ops.nn import (
    pooling as pooling,
)
