"""Operations of neural networks, one module a field."""

from numgrad.ops.nn import (
    activation as activation,
)
from numgrad.ops.nn import (
    batch_normalization as batch_normalization,
)
from numgrad.ops.nn import (
    convolution as convolution,
)
from numgrad.ops.nn import (
    cross_entropy as cross_entropy,
)
from numgrad.ops.nn import (
    dropout as dropout,
)
from numgrad.ops.nn import (
    embedding as embedding,
)
from numgrad.ops.nn import (
    linear as linear,
)
from numgrad.ops.nn import (
    loss as loss,
)
from numgrad.ops.nn import (
    normalization as normalization,
)
from numgrad.ops.nn import (
    pooling as pooling,
)
from numgrad.ops.nn import (
    recurrent as recurrent,
)
