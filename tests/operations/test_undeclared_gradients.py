"""Operations without a gradient formula: derived from a formula, refused, or declared to have none.

Values are compared with central differences and with derivatives written out.
"""

import pydoc

import numba
import numpy as np
import pytest

import numgrad as ng
from numgrad.core.formula import DECLARED, DERIVED, REFUSED
from numgrad.core.op import OPS
from numgrad.core.primitive import Composite
from numgrad.nn import operations as _operations  # noqa: F401 (completes the table)
from numgrad.operations.lazy_operations import declare_all
from numgrad.operations.special_functions.declare import ParameterDerivative
from numgrad.testing import gradcheck, gradgradcheck
from numgrad.testing.samples import samples
from tests.operations.calls import calls_of
from tests.operations.cases import GIVEN
from tests.operations.reference import by_name

declare_all()


@pytest.fixture(autouse=True)
def own_operations():
    """Operations of one test do not stay in the table."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]
        for method in {name, f"{name}_"} & set(vars(ng.Tensor)):
            delattr(ng.Tensor, method)


WITHOUT = """
raw_qr null_space orth qz mathieu_a mathieu_b pro_cv obl_cv class_distribution unrecorded
"""


def test_operations_of_which_no_derivative_is_known_are_these():
    """Another one is a declaration that got lost: tests of the table leave out what has none."""
    ours = [op for op in OPS.values() if op.__module__.startswith("numgrad.") and op.differentiable]
    ours = [op for op in ours if not isinstance(op, Composite | ParameterDerivative)]
    lacking = {op.name for op in ours if not op.formulas or set(op.refused) == set(op.inputs)}
    assert lacking - GIVEN == set(WITHOUT.split())


def growth():
    """A formula with a rule for one of its inputs."""

    @ng.elementwise()
    def grown(a, b):
        """a times exp(b)."""
        return a * np.exp(b)

    return grown.vjp(a=lambda g, b: g * np.exp(b))


WAYS = {
    "grad": lambda f, a, b: ng.grad(f, 1)(a, b),
    "jit(grad)": lambda f, a, b: ng.jit(ng.grad(f, 1))(a, b),
    "grad(jit)": lambda f, a, b: ng.grad(ng.jit(f), 1)(a, b),
    "jvp": lambda f, a, b: ng.jvp(lambda b: f(a, b), (b,), (1.0,))[1],
    "jit(jvp)": lambda f, a, b: ng.jit(lambda b: ng.jvp(lambda b: f(a, b), (b,), (1.0,))[1])(b),
    "linearize": lambda f, a, b: ng.linearize(lambda b: f(a, b), b)[1](1.0),
    "jacfwd": lambda f, a, b: ng.jacfwd(f, 1)(a, b),
    "jacrev": lambda f, a, b: ng.jacrev(f, 1)(a, b),
    "vmap(grad)": lambda f, a, b: ng.vmap(ng.grad(f, 1))(np.full(3, a), np.full(3, b))[2],
    "grad(vmap)": lambda f, a, b: ng.grad(lambda b: np.sum(ng.vmap(f)(np.full(1, a), b)))(
        np.full(1, b)
    )[0],
    "grad(grad)": lambda f, a, b: ng.grad(lambda b: ng.grad(f, 1)(a, b))(b),
    "hessian": lambda f, a, b: ng.hessian(f, 1)(a, b),
    "checkpoint": lambda f, a, b: ng.grad(lambda b: ng.checkpoint(f, a, b))(b),
    "scan": lambda f, a, b: ng.jit(
        ng.grad(lambda b: ng.scan(lambda c, _: (f(a, b), None), 0.0, None, length=2)[0])
    )(b),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_formula_has_the_derivative_that_follows_from_it(way):
    np.testing.assert_allclose(WAYS[way](growth(), 2.0, 1.0), 2 * np.e, rtol=1e-12)


def test_fits_with_a_formula():
    grown = growth()
    t = np.linspace(0.0, 2.0, 9)
    y = 3.0 * np.exp(0.7 * t)
    found = ng.curve_fit(lambda t, a, b: grown(a, b * t), t, y, p0=[1.0, 0.1])
    np.testing.assert_allclose(found.parameters, [3.0, 0.7], rtol=1e-6)
    assert np.isfinite(found.standard_errors).all()
    solved = ng.least_squares(lambda b: grown(3.0, b * t) - y, np.array([0.1]))
    np.testing.assert_allclose(solved.x, [0.7], rtol=1e-6)


FORMULAS = {
    "branches": lambda a, b: np.where(a > b, np.sin(a) * b, np.minimum(a, 2.0) / (1 + b * b)),
    "powers": lambda a, b: np.power(a, 3) + np.abs(b) ** 1.5 + np.hypot(a, b) + np.sqrt(a * a + 1),
    "remainders": lambda a, b: a % 0.7 + a * np.floor(b) + np.maximum(a, -b) - (-a) // 0.9,
    "one_is_left_out": lambda a, b: np.tanh(b),
    "operations": lambda a, b: ng.special.erf(a) + ng.sigmoid(b) * ng.softplus(a * b),
    "logic": lambda a, b: np.where((a > 0) & ~(b > 1), a, b) + np.isfinite(a) * b,
    "converted": lambda a, b: a.astype(np.float64) * b + (a > 0).astype(np.float64) * b,
}
OF_COMPLEX = {
    "holomorphic": lambda a, b: np.exp(a) * b + np.power(a, 2) / (3 + b),
    "parts": lambda a, b: np.real(a) * np.conj(b) + 1j * a.imag * b.real - np.imag(b),
    "magnitudes": lambda a, b: np.abs(a) * b + np.sign(b) * np.conj(a),
    "real_result": lambda a, b: np.abs(a * b) + np.real(a),
}
POINTS = np.array([0.31, 1.42, -0.63]), np.array([[0.54], [-1.17]])
PLACES = np.array([0.3 + 1.2j, -1.4 + 0.2j]), np.array([[0.5 - 0.7j], [-1.1 - 0.4j]])


def _declared(formula, name="made"):
    def body(a, b):
        return formula(a, b)

    body.__name__ = name
    return ng.elementwise(types=_types(formula))(body)


def _types(formula):
    """Of a formula whose result is real the dtype rules of the absolute value."""
    if formula is not OF_COMPLEX["real_result"]:
        return None
    return lambda operands: ([np.dtype(complex)] * 2, np.dtype(float))


@pytest.mark.parametrize("name", FORMULAS)
def test_derived_formulas_against_differences(name):
    op = _declared(FORMULAS[name])
    operands = [ng.tensor(p, requires_grad=True) for p in POINTS]
    assert gradcheck(op, operands, check_forward_ad=True)
    assert gradgradcheck(op, operands)
    a, b = POINTS
    summed = lambda a, b: np.sum(op(a, b))  # noqa: E731
    for got, want in zip(
        ng.jit(ng.grad(summed, (0, 1)))(a, b), ng.grad(summed, (0, 1))(a, b), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_derived_formulas_of_complex_numbers_against_differences(name):
    op = _declared(OF_COMPLEX[name])
    operands = [ng.tensor(p, requires_grad=True) for p in PLACES]
    assert gradcheck(op, operands, check_forward_ad=True)
    assert gradgradcheck(op, operands)


@pytest.mark.parametrize("name", ["holomorphic", "parts"])
def test_derived_formulas_of_a_real_operand_beside_a_complex_one(name):
    op = _declared(OF_COMPLEX[name])
    for a, b in ((POINTS[0][:2], PLACES[1]), (PLACES[0], POINTS[1])):
        operands = [ng.tensor(p, requires_grad=True) for p in (a, b)]
        assert gradcheck(op, operands, check_forward_ad=True)
        assert gradgradcheck(op, operands)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_derived_formulas_keep_dtypes(dtype):
    op = _declared(FORMULAS["powers"])
    a = ng.tensor(np.array([0.5, 2.0], np.float32), requires_grad=True)
    b = np.array([1, 2], dtype)
    op(a, b).sum().backward()
    assert a.grad.dtype == np.float32
    exact = 3 * a.detach().numpy() ** 2 + a.detach().numpy() / np.hypot(a.detach().numpy(), b)
    exact = exact + a.detach().numpy() / np.sqrt(a.detach().numpy() ** 2 + 1)
    np.testing.assert_allclose(a.grad, exact, rtol=1e-6)


def test_an_operation_of_operations_without_rules():
    grown = growth()

    @ng.elementwise()
    def twice(a, b):
        return grown(a, b) + grown(b, a)

    x = ng.tensor([0.3, 1.0], requires_grad=True)
    y = ng.tensor([0.7, -0.2], requires_grad=True)
    assert gradcheck(twice, (x, y), check_forward_ad=True)
    assert gradgradcheck(twice, (x, y))


# ------------------------------------------------------------------------- what cannot be derived


@numba.njit
def _product(a, b):
    return a * b


def without_rules():
    @ng.elementwise(kernel=_product)
    def scalar_kernel(a, b):
        """A product, element by element."""

    @ng.primitive()
    def array_kernel(a, b):
        """A product of arrays."""
        return np.asarray(a * b)

    @ng.primitive()
    def with_a_backward_kernel(a, b):
        """A product of arrays."""
        return np.asarray(a * b)

    with_a_backward_kernel.vjp_kernel(lambda call, mask, g: [g, g])

    @ng.elementwise()
    def of_a_kernel(a, b):
        """A formula that calls a kernel."""
        return 2 * scalar_kernel(a, b)

    return scalar_kernel, array_kernel, with_a_backward_kernel, of_a_kernel


REFUSED_WAYS = {k: v for k, v in WAYS.items() if k != "grad(grad)"}


@pytest.mark.parametrize("way", REFUSED_WAYS)
def test_a_kernel_without_a_rule_raises_where_a_gradient_would_pass(way):
    for op in without_rules():
        named = "scalar_kernel" if op.name == "of_a_kernel" else op.name
        with pytest.raises(NotImplementedError, match=f"{named}: has no derivative.*'b'.*vjp"):
            WAYS[way](op, 2.0, 1.0)
        assert float(op(2.0, ng.tensor(3.0, requires_grad=True)).detach()) in (6.0, 12.0)


def test_a_rule_for_one_input_does_not_hide_that_another_has_none():
    scalar_kernel, array_kernel, *_ = without_rules()
    for op in (scalar_kernel, array_kernel):
        op.vjp(a=lambda g, b: g * b)
        assert ng.grad(op)(2.0, 3.0) == 3.0
        a = ng.tensor(2.0, requires_grad=True)
        b = ng.tensor(3.0, requires_grad=True)
        with pytest.raises(NotImplementedError, match=r"'b'.*no_derivative\('b'\)"):
            op(a, b).backward()
        assert a.grad is None
        with pytest.raises(NotImplementedError, match="'b'"):
            ng.curve_fit(lambda t, b, op=op: op(t, b), np.arange(1.0, 4.0), np.ones(3), p0=[0.5])


@pytest.mark.parametrize("names", [("b",), ()])
def test_what_is_declared_to_have_none_counts_as_a_constant(names):
    for op in without_rules()[:3]:
        op.vjp(a=lambda g, b: g * b) if names else None
        assert op.no_derivative(*names) is op
        b = ng.tensor(3.0, requires_grad=True)
        assert not op(2.0, b).requires_grad
        assert ng.grad(lambda b, op=op: op(2.0, b) + b)(3.0) == 1.0
        assert ng.jvp(lambda b, op=op: op(2.0, b) + b, (3.0,), (1.0,))[1] == 1.0
        with pytest.raises(ng.NumgradTypeError, match="no input is called 'c'"):
            op.no_derivative("c")


def test_results_that_are_no_floats_need_no_declaration():
    @ng.primitive()
    def sign_bits(x):
        return np.signbit(x)

    @ng.elementwise(types=lambda operands: ([np.dtype(float)], np.dtype(np.int64)))
    def floors(x):
        return np.floor(x)

    x = ng.tensor([1.5, -2.5], requires_grad=True)
    assert not sign_bits(x).requires_grad
    assert not floors(x).requires_grad
    assert ng.grad(lambda x: np.sum(x * floors(x)))(np.array([1.5, -2.5])).tolist() == [1.0, -3.0]


def page(op):
    return pydoc.plain(pydoc.render_doc(op))


def test_what_is_shown_of_them():
    grown = growth()
    assert "b : derived from the body" in page(grown)
    assert "by b: derived from the body" in ng.ops["grown"].gradients
    scalar_kernel, *_ = without_rules()
    assert "a, b : none: asking for it raises" in page(scalar_kernel)
    assert "b : none, it counts as a constant" in page(scalar_kernel.no_derivative("b"))
    assert (grown.formulas["a"].kind, grown.formulas["b"].kind) == (DECLARED, DERIVED)
    assert scalar_kernel.refused == ("a",)


# ------------------------------------------------------------------------------------- the table

TABLE = [op for op in list(OPS.values()) if op.__module__.startswith("numgrad.")]

OF_FLOATS_WITHOUT_DERIVATIVE = {
    "histogram_bin_edges": "edges count as given",
    "histogram_edges": "edges count as given",
    "histogramdd_edges": "edges count as given",
    "given_edges": "edges count as given",
    "fftfreq": "written with operations of the spacing",
    "rfftfreq": "written with operations of the spacing",
    "detached": "cuts off a gradient",
    "refused": "raises",
    "general_eigenvalues": "where no gradient is asked for",
    "symmetric_eigenvalues": "where no gradient is asked for",
    "singular_values_alone": "where no gradient is asked for",
    "check_diagonal": "gives its operand back",
    "check_regular": "gives its operand back",
    "require_between": "gives its operand back",
    "order_places": "positions",
    "weighted_places": "positions",
}
"""Operations that are declared without a derivative, and whose result changes with an operand."""


def test_every_input_of_the_table_has_a_rule_or_raises_or_is_declared_without():
    inputs = [
        (op, name)
        for op in TABLE
        if not isinstance(op, Composite) and op.inputs != ("inputs",) and op.differentiable
        for name in op.inputs
    ]
    for op, name in inputs:
        formula = op.formulas.get(name)
        if formula is None:
            assert name in op.constants or op.jvp_formula is not None, (op.name, name)
        elif formula.kind == REFUSED:
            given = dict.fromkeys(formula.names)
            with pytest.raises(NotImplementedError, match="derivative"):
                formula.function(**given)


def _floats(function, operands):
    """The floating results of a call, or nothing if it refuses the operands."""
    try:
        out = function(*operands)
    except ng.NumgradError:
        return None
    out = out if isinstance(out, tuple) else (out,)
    return [np.asarray(ng.asarray(y).detach()) for y in out if y.dtype.kind in "fc"]


@pytest.mark.parametrize("op", **by_name([op for op in TABLE if not op.differentiable]))
def test_what_is_declared_without_a_derivative_has_none(op):
    if op.name in OF_FLOATS_WITHOUT_DERIVATIVE:
        return
    if calls_of(op):
        drawn = [
            (call, [np.linspace(0.3, 1.7, int(np.prod(s))).reshape(s) for s in shapes])
            for shapes, call in calls_of(op)
        ]
    else:
        drawn = [
            (lambda *a, p=sample.params: op(*a, **p), sample.args)
            for sample in samples(op, np.float64)
        ]
    for call, operands in drawn:
        for k, operand in enumerate(operands):
            if operand.dtype.kind != "f":
                continue
            moved = [a + 1e-7 * (j == k) for j, a in enumerate(operands)]
            for a, b in zip(_floats(call, operands) or (), _floats(call, moved) or (), strict=True):
                np.testing.assert_array_equal(a, b)
