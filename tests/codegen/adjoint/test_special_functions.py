"""Functions of ``ng.special`` in kernels: values and two derivatives are those of eager calls."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.elementwise import Elementwise
from numgrad.errors import NumgradKernelError
from tests.codegen.adjoint.plain import plainly
from tests.codegen.adjoint.test_messages import function

FIRST = ["elliprj", "expn", "jv", "betainc"]
NAMES = [n for n in dir(ng.special) if isinstance(getattr(ng.special, n), Elementwise)]


def of_literals(name, place):
    """A function of one operand, with numbers for the others, and where to call it."""
    op = getattr(ng.special, name)
    domain = op.domain or (0.2, 0.8)
    domains = domain if isinstance(domain[0], tuple | list) else [domain] * len(op.inputs)
    points = [max(low, -50.0) + 0.37 * (min(high, 50.0) - max(low, -50.0)) for low, high in domains]
    texts = ["x" if k == place else repr(float(p)) for k, p in enumerate(points)]
    call = function(f"return op({', '.join(texts)})")
    call.__globals__["op"] = op
    return call, float(points[place])


@pytest.mark.slow(cases=len(FIRST))
@pytest.mark.parametrize("name", [*FIRST, *(n for n in NAMES if n not in FIRST)])
def test_values_and_derivatives(name):
    op = getattr(ng.special, name)
    for place in range(len(op.inputs)):
        eager, x = of_literals(name, place)
        kernel = ng.kernel(eager)
        with plainly():
            np.testing.assert_allclose(kernel(x), eager(x), rtol=1e-12)
            try:
                slopes = ng.grad(eager)(x), ng.grad(ng.grad(eager))(x)
            except (ng.NumgradNotImplementedError, ng.NumgradRuntimeError):
                continue
            seen = ng.grad(kernel)(x), ng.grad(ng.grad(kernel))(x)
            np.testing.assert_allclose(seen, slopes, rtol=1e-9, atol=1e-12)


def test_operands_without_derivatives():
    """Literals are none of which a derivative is asked; arguments are refused with a remedy."""
    whole = function("return op(n, x)", head="def f(n, x):")
    whole.__globals__["op"] = ng.special.expn
    with plainly(), pytest.raises(NumgradKernelError, match=r"f: expn has no derivative.*int"):
        ng.grad(ng.kernel(whole))(2.0, 0.5)


@pytest.mark.parametrize("call", ["polygamma(1, x)", "lambertw(x).real"])
def test_functions_that_kernels_do_not_read(call):
    composed = function(f"return special.{call}")
    composed.__globals__["special"] = ng.special
    with pytest.raises(NumgradKernelError, match=r"no function that kernels read.*outside"):
        ng.kernel(composed)(0.5)
