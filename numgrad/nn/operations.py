"""The operations of neural networks; importing this module completes the table of operations.

So ``ng.ops``, which lists all, comes from here, and so does what lets a user add one, whose name
must be new.
"""

from numgrad.core.declare import elementwise, primitive
from numgrad.nn import dropout, embedding, linear  # noqa: F401
from numgrad.nn.activation import formulas  # noqa: F401
from numgrad.nn.convolution import primitives  # noqa: F401
from numgrad.nn.loss import cross_entropy, ctc, likelihood, regression  # noqa: F401
from numgrad.nn.normalization import batch, layer  # noqa: F401
from numgrad.nn.pooling import windows  # noqa: F401
from numgrad.nn.recurrent import sequences  # noqa: F401
from numgrad.operations.lazy_operations import declare_all
from numgrad.tensors.inspection import table as ops

declare_all()

__all__ = ["elementwise", "ops", "primitive"]
