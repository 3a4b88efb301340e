"""Operations of neural networks, one module a field."""

from numgrad.ops.nn import (
    embedding as embedding,
)
from numgrad.ops.nn import (
    linear as linear,
)
