"""The operations of neural networks; importing this module completes the table of operations.

So ``ng.ops``, which lists all, comes from here, and so does what lets a user add one, whose name
must be new.
"""

from numgrad.core.declare import elementwise, primitive
from numgrad.nn import (
    dropout,  # noqa: F401
    embedding,  # noqa: F401
    linear,  # noqa: F401
)
from numgrad.nn.activation import operation as activation  # noqa: F401
from numgrad.nn.convolution import operation as convolution  # noqa: F401
from numgrad.nn.loss import cross_entropy as loss_cross_entropy  # noqa: F401
from numgrad.nn.loss import ctc_operation as loss_ctc  # noqa: F401
from numgrad.nn.loss import operation as loss  # noqa: F401
from numgrad.nn.normalization import batch_operation as normalization_batch_operation  # noqa: F401
from numgrad.nn.normalization import operation as normalization  # noqa: F401
from numgrad.nn.pooling import operation as pooling  # noqa: F401
from numgrad.nn.recurrent import operation as recurrent  # noqa: F401
from numgrad.operations.lazy_operations import declare_all
from numgrad.tensors.inspection import table as ops

declare_all()

__all__ = ["elementwise", "ops", "primitive"]
