"""Products of Householder's reflections, as LAPACK stores them."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.core.declare import composite
from numgrad.errors import NumgradValueError
from numgrad.operations.diagonal import tril, triu
from numgrad.operations.linear_algebra.checks import (
    adjoint,
    check_matrices,
    constant,
    identity,
    product,
)
from numgrad.operations.linear_algebra.triangular import solve_triangle
from numgrad.operations.shape import as_operand, expand_dims


@composite(
    method=False,
    smooth=True,
    errors=[
        (((3,), (3,)), {}, "NumgradLinAlgError"),
        (((2, 3), (2,)), {}, "NumgradValueError"),
        (((3, 2), (3,)), {}, "NumgradValueError"),
    ],
)
def householder_product(a, tau):
    """The first columns of ``H[0] @ H[1] @ ...`` with ``H[i] = 1 - tau[i] v[i] v[i]*``.

    ``v[i]`` has zeros, a one at ``i``, and below it what column ``i`` of ``a`` has there: as
    ``qr`` with ``mode="raw"`` gives them, transposed, and ``geqrf`` of LAPACK, whose ``orgqr`` this
    is. Reflections are put together as ``1 - V T V*`` (R. Schreiber, C. Van Loan, "A
    storage-efficient WY representation for products of Householder transformations", 1989).

    Parameters
    ----------
    a
        Matrices with no more columns than rows; what is on and above the diagonal is not read.
    tau
        A factor for each reflection, no more than ``a`` has columns.

    Returns
    -------
    Tensor
        Of the shape of ``a``.

    Raises
    ------
    NumgradValueError
        If there are more columns than rows, or more factors than columns.

    Examples
    --------
    >>> h, tau = np.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]), mode="raw")
    >>> ng.linalg.householder_product(h.T, tau)
    tensor([[-0.6, -0.8],
            [-0.8,  0.6]])
    """
    a, tau = as_operand(a), as_operand(tau)
    check_matrices("householder_product", a)
    m, n = a.shape[-2:]
    if not len(tau.shape) or not tau.shape[-1] <= n <= m:
        raise NumgradValueError(
            f"householder_product: reflections in a matrix of shape {tuple(a.shape)} with factors "
            f"of shape {tuple(tau.shape)}: there may be no more columns than rows, nor more "
            "factors than columns"
        )
    k, dtype = tau.shape[-1].__index__(), np.result_type(a.dtype, tau.dtype)
    unit = constant(np.eye(m.__index__(), n.__index__(), dtype=dtype))
    v = tril(a[..., :k], -1) + unit[..., :k]
    back, factors = adjoint(v), expand_dims(tau, -1)
    # T = inv(1 + D S) D, where S is what v* v has above its diagonal
    inner = identity(k, dtype) + factors * triu(product(back, v), 1)
    turned = solve_triangle(inner, factors * product(back, unit), unit=True)
    return unit - product(v, turned)


def _small(tau: Any) -> Any:
    return 0.5 * tau


householder_product.calls = [
    (((3, 2), (2,)), lambda a, tau: householder_product(a, _small(tau))),
    (((2, 3, 3), (2,)), lambda a, tau: householder_product(a, _small(tau))),
]
