"""``autograd.functional``: against PyTorch and closed forms, and what it leaves alone."""

import numpy as np
import pytest
import scipy

import numgrad as ng
import numgrad.autograd.functional as AF
from numgrad.core.interpreter import state

# Functions are written with what Tensors of numgrad and of PyTorch share; each with the shapes of
# its inputs, and whether these are given as a tuple.
FUNCTIONS = {
    "vector to vector": (lambda x: x.sin() * x.sum(), [(3,)], False),
    "matrix to scalar": (lambda x: (x * x).exp().sum(), [(2, 2)], False),
    "number to number": (lambda x: x.exp() * x, [()], False),
    "one element to one element": (lambda x: (x * x).reshape((1, 1)), [(1,)], False),
    "number to vector": (lambda x, y: x * y.sin(), [(), (3,)], True),
    "one input in a tuple": (lambda x: x * x, [(3,)], True),
    "one output in a tuple": (lambda x: (x * x,), [(3,)], False),
    "two outputs": (lambda x: (x * x, x.sum()), [(3,)], False),
    "two of each": (lambda x, y: (x @ y, y.exp()), [(2, 3), (3,)], True),
    "an input without influence": (lambda x, y: x.exp(), [(3,), (2, 2)], True),
    "an output without a graph": (lambda x: (x * x, x.detach()), [(3,)], False),
    "linear": (lambda x, y: x * 2 - y, [(3,), (3,)], True),
    "input as output": (lambda x, y: (y, x), [(3,), ()], True),
}
SCALAR_FUNCTIONS = {
    "cubic": (lambda x: (x * x * x).sum(), [(3,)], False),
    "one element": (lambda x: (x.exp() * x).reshape((1, 1)), [(1,)], False),
    "matrix": (lambda x: (x @ x).sin().sum(), [(2, 2)], False),
    "coupled": (lambda x, y: (x * x * y.sum()).sum() + y.exp().sum(), [(2, 2), (3,)], True),
    "separable": (lambda x, y: (x * x).sum() + (y * y * y).sum(), [(3,), (2,)], True),
    "linear": (lambda x, y: (x * 2).sum() - y, [(3,), ()], True),
    "one input in a tuple": (lambda x: x.sin().sum(), [(3,)], True),
    "an input without influence": (lambda x, y: x.exp().sum(), [(3,), (2,)], True),
    "constant": (lambda x: x.sum().detach(), [(3,)], False),
}
PRODUCTS = ("vjp", "jvp", "vhp", "hvp")
NEED_V = ("jvp", "vhp", "hvp")  # also for a function with one output
EVERY = (*PRODUCTS, "jacobian", "hessian")


def drawn(shapes, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    values = [rng.uniform(0.2, 1.5, shape) for shape in shapes]
    if np.dtype(dtype).kind == "c":
        values = [value + 1j * rng.uniform(0.2, 1.5, value.shape) for value in values]
    return [np.asarray(value, dtype) for value in values]


def packed(values, as_tuple):
    return tuple(values) if as_tuple else values[0]


def flat(tree):
    return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, tuple) else [tree]


def mapped(function, tree):
    if isinstance(tree, tuple):
        return tuple(mapped(function, part) for part in tree)
    return function(tree)


def assert_same(ours, theirs, check_graph=True):
    """Nesting, shapes, dtypes, ``requires_grad`` and values are those of PyTorch."""
    assert isinstance(ours, tuple) == isinstance(theirs, tuple)
    if isinstance(ours, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, check_graph)
        return
    assert isinstance(ours, ng.Tensor)
    assert ours.shape == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
    assert not check_graph or ours.requires_grad == theirs.requires_grad
    rtol = 2e-5 if ours.dtype in (np.float32, np.complex64) else 1e-11
    np.testing.assert_allclose(ours.numpy(force=True), theirs.detach(), rtol=rtol, atol=rtol)


def assert_agrees_with_torch(which, function, inputs, *v, **options):
    """The results, and with ``create_graph`` the gradients they give to the inputs and to ``v``."""
    torch = pytest.importorskip("torch")
    results, leaves = [], []
    for module, tensor in ((AF, ng.tensor), (torch.autograd.functional, torch.tensor)):
        given = mapped(lambda a, tensor=tensor: tensor(a, requires_grad=True), (inputs, *v))
        results.append(getattr(module, which)(function, *given, **options))
        leaves.append(flat(given))
        assert all(leaf.grad is None for leaf in leaves[-1])
    # PyTorch cuts vectorized rows from one array, so that constant ones appear to require grad
    assert_same(*results, check_graph="vectorize" not in options)
    recorded = [pair for pair in zip(*map(flat, results), strict=True) if pair[0].requires_grad]
    assert options.get("create_graph") or not recorded
    if recorded:
        for side in zip(*recorded, strict=True):
            sum((part * part).sum() for part in side).backward()
        for a, b in zip(*leaves, strict=True):
            assert (a.grad is None) == (b.grad is None)
            if b.grad is not None:
                np.testing.assert_allclose(a.grad, b.grad, rtol=1e-10, atol=1e-11)


# ------------------------------------------------------------------------------ against PyTorch


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian_and_products_agree_with_torch(name, create_graph):
    function, shapes, as_tuple = FUNCTIONS[name]
    x, v = packed(drawn(shapes), as_tuple), packed(drawn(shapes, 1), as_tuple)
    y = function(*map(ng.tensor, drawn(shapes)))
    w = packed(drawn([part.shape for part in flat(y)], 2), isinstance(y, tuple))
    assert_agrees_with_torch("jacobian", function, x, create_graph=create_graph)
    assert_agrees_with_torch("jacobian", function, x, create_graph=create_graph, vectorize=True)
    assert_agrees_with_torch("vjp", function, x, w, create_graph=create_graph)
    assert_agrees_with_torch("jvp", function, x, v, create_graph=create_graph)


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_hessian_and_products_agree_with_torch(name, create_graph):
    function, shapes, as_tuple = SCALAR_FUNCTIONS[name]
    x, v = packed(drawn(shapes), as_tuple), packed(drawn(shapes, 1), as_tuple)
    assert_agrees_with_torch("hessian", function, x, create_graph=create_graph)
    assert_agrees_with_torch("hessian", function, x, create_graph=create_graph, vectorize=True)
    assert_agrees_with_torch("vhp", function, x, v, create_graph=create_graph)
    assert_agrees_with_torch("hvp", function, x, v, create_graph=create_graph)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_gives_the_reverse_mode_jacobian(name):
    function, shapes, as_tuple = FUNCTIONS[name]
    x = packed(drawn(shapes), as_tuple)
    forward = AF.jacobian(function, x, vectorize=True, strategy="forward-mode")
    reverse = AF.jacobian(function, x)
    assert isinstance(forward, tuple) == isinstance(reverse, tuple)
    for a, b in zip(flat(forward), flat(reverse), strict=True):
        assert not a.requires_grad
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_forward_over_reverse_gives_the_hessian(name):
    function, shapes, as_tuple = SCALAR_FUNCTIONS[name]
    x = packed(drawn(shapes), as_tuple)
    forward = AF.hessian(function, x, vectorize=True, outer_jacobian_strategy="forward-mode")
    reverse = AF.hessian(function, x)
    assert isinstance(forward, tuple) == isinstance(reverse, tuple)
    for a, b in zip(flat(forward), flat(reverse), strict=True):
        assert not a.requires_grad
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def widened(x):
    return x.astype(np.float64) if isinstance(x, ng.Tensor) else x.double()


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda z: z * z, np.complex128),
        (abs, np.complex128),
        (lambda x: x * (1 + 2j), np.float64),
        (widened, np.float32),
    ],
    ids=["holomorphic", "to real", "from real", "float32"],
)
def test_dtypes_of_the_vectorized_jacobian(function, dtype, strategy):
    torch = pytest.importorskip("torch")
    (x,) = drawn([(2,)], dtype=dtype)
    options = {"vectorize": True, "strategy": strategy}
    ours = AF.jacobian(function, x, **options)
    assert_same(ours, torch.autograd.functional.jacobian(function, torch.tensor(x), **options))


@pytest.mark.parametrize(
    "function", [lambda z: z * z * z, lambda z: z.exp() * abs(z), lambda z: (z, abs(z))]
)
def test_complex_products_agree_with_torch(function):
    (z,) = drawn([(3,)], dtype=np.complex128)
    y = function(ng.tensor(z))
    w = mapped(lambda part: np.asarray(part) * (2j if part.dtype.kind == "c" else 1.5), y)
    assert_agrees_with_torch("vjp", function, z, w)
    assert_agrees_with_torch("jvp", function, z, z * 2j)


@pytest.mark.parametrize("which", ["vhp", "hvp"])
def test_complex_hessian_products_agree_with_torch(which):
    z, v = drawn([(3,), (3,)], dtype=np.complex128)
    assert_agrees_with_torch(which, lambda z: (abs(z) * abs(z) * abs(z)).sum(), z, v)


@pytest.mark.parametrize("which", PRODUCTS)
def test_v_is_converted_to_the_dtype_it_meets(which):
    def function(x):
        y = x * x * x
        return y.sum() if which in ("vhp", "hvp") else y

    (x,) = drawn([(3,)], dtype=np.float32)
    (v,) = drawn([(3,)], 1)
    assert_agrees_with_torch(which, function, x, v)
    integers = getattr(AF, which)(function, x, np.array([1, 2, 3]))[1]
    floats = getattr(AF, which)(function, x, np.array([1.0, 2.0, 3.0]))[1]
    np.testing.assert_array_equal(integers, floats)


STRICT = {
    "constant": lambda x, y: (x * y).sum().detach(),
    "without y": lambda x, y: (x * x * x).sum(),
    "linear": lambda x, y: (x + y).sum(),
    "quadratic": lambda x, y: (x * y + x * x + y * y).sum(),
    "separable": lambda x, y: (x * x * x).sum() + (y * y * y).sum(),
    "cubic": lambda x, y: (x * x * y + y * y * x + x * x * x * y * y * y).sum(),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("which", EVERY)
@pytest.mark.parametrize("name", STRICT)
def test_strict_raises_where_torch_does(name, which, create_graph):
    """Promise 109."""
    torch = pytest.importorskip("torch")
    x = tuple(drawn([(2,), (2,)]))
    v = (x,) if which in NEED_V else ()

    def run(module, tensor):
        given = mapped(tensor, (x, *v))
        return getattr(module, which)(STRICT[name], *given, strict=True, create_graph=create_graph)

    try:
        theirs = run(torch.autograd.functional, torch.tensor)
    except RuntimeError:
        with pytest.raises(ng.NumgradRuntimeError, match=f"{which}: .*strict=False"):
            run(AF, ng.tensor)
    else:
        assert_same(run(AF, ng.tensor), theirs)


# ----------------------------------------------------------------------- against closed forms


def test_rosenbrock():
    x = np.array([1.3, 0.7, 0.8, 1.9])

    def function(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    v = np.array([1.0, -2.0, 0.5, 3.0])
    hessian = scipy.optimize.rosen_hess(x)
    np.testing.assert_allclose(AF.jacobian(function, x), scipy.optimize.rosen_der(x), rtol=1e-13)
    for vectorize in (False, True):
        np.testing.assert_allclose(
            AF.hessian(function, x, vectorize=vectorize), hessian, rtol=1e-13
        )
    value, product = AF.hvp(function, x, v)
    np.testing.assert_allclose(value, scipy.optimize.rosen(x), rtol=1e-14)
    np.testing.assert_allclose(product, hessian @ v, rtol=1e-13)
    np.testing.assert_allclose(AF.vhp(function, x, v)[1], v @ hessian, rtol=1e-13)


def test_softmax():
    x = np.array([0.3, -1.0, 2.0])

    def softmax(x):
        weights = np.exp(x)
        return weights / np.sum(weights)

    p = np.exp(x) / np.exp(x).sum()
    expected = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(AF.jacobian(softmax, x), expected, rtol=1e-13)
    np.testing.assert_allclose(AF.jvp(softmax, x, x)[1], expected @ x, rtol=1e-12)
    np.testing.assert_allclose(AF.vjp(softmax, x, x)[1], x @ expected, rtol=1e-12)


def test_matrix_product():
    a, b = drawn([(2, 3), (3, 2)])
    by_a, by_b = AF.jacobian(np.matmul, (a, b))
    unit = np.eye(2)
    np.testing.assert_allclose(by_a, np.einsum("ik,lj->ijkl", unit, b), rtol=1e-14)
    np.testing.assert_allclose(by_b, np.einsum("il,jk->ijlk", a, unit), rtol=1e-14)


def test_products_are_transposes_of_each_other():
    """``<w, J v> = <J^T w, v>``."""
    x, v, w = drawn([(4,), (4,), (3,)])
    a = drawn([(3, 4)], 1)[0]

    def function(x):
        return np.tanh(a @ (x * x))

    forward, back = AF.jvp(function, x, v)[1], AF.vjp(function, x, w)[1]
    np.testing.assert_allclose(np.sum(forward * w), np.sum(back * v), rtol=1e-13)


def test_third_derivatives_through_the_hessian():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    AF.hessian(lambda x: np.sum(x**4), x, create_graph=True).sum().backward()
    np.testing.assert_allclose(x.grad, 24 * np.array([1.0, 2.0]), rtol=1e-14)
    third = AF.jacobian(lambda x: AF.hessian(lambda y: np.sum(y**4), x, create_graph=True), x)
    np.testing.assert_allclose(third[1, 1], [0.0, 48.0], rtol=1e-14)


# --------------------------------------------------------------------- what it leaves alone


@pytest.mark.parametrize("which", PRODUCTS)
def test_v_may_be_left_out_for_one_number(which):
    def function(x):
        return np.sum(x**3)

    value, product = getattr(AF, which)(function, ng.tensor([2.0]))
    assert value.item() == 8.0
    assert product.item() == 12.0  # first and second derivative of x**3 agree at 2


def test_ndarrays_are_accepted_and_tensors_returned():
    x = np.array([1.0, 2.0])
    value, product = AF.vjp(np.sin, x, np.ones(2))
    assert type(value) is type(product) is ng.Tensor
    np.testing.assert_allclose(product, np.cos(x))
    assert AF.jacobian(np.exp, np.float64(0.0)).shape == ()
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_an_ndarray_changed_behind_a_kept_graph_is_noticed():
    x = np.array([1.0, 2.0])
    _, product = AF.vjp(lambda x: np.sum(x**3), x, create_graph=True)
    x[0] = 7.0
    with pytest.raises(RuntimeError, match="changed"):
        product.sum().backward()


@pytest.mark.parametrize("which", EVERY)
def test_no_grad_hooks_and_grad_are_left_alone(which):
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    x.grad = ng.tensor([5.0, 6.0])
    seen = []
    x.register_hook(seen.append)
    v = (x,) if which in NEED_V else ()
    with ng.no_grad():
        result = getattr(AF, which)(lambda x: np.sum(x**3), x, *v)
        assert not ng.is_grad_enabled()
        kept = getattr(AF, which)(lambda x: np.sum(x**3), x, *v, create_graph=True)
    assert not any(part.requires_grad for part in flat(result))
    assert all(part.requires_grad for part in flat(kept))
    np.testing.assert_array_equal(x.grad, [5.0, 6.0])
    assert x.requires_grad
    assert x.is_leaf
    assert x._version == 0
    assert seen == []


def test_a_captured_tensor_is_a_constant():
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    for create_graph in (False, True):
        jacobian = AF.jacobian(lambda y: x * y, x, create_graph=create_graph)
        np.testing.assert_array_equal(jacobian.detach(), np.diag([1.0, 2.0]))


def test_an_input_cannot_be_written_to():
    x = ng.tensor([1.0, 2.0])

    def function(x):
        x *= 2
        return x

    for create_graph in (False, True):
        with pytest.raises(RuntimeError):
            AF.jacobian(function, x, create_graph=create_graph)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_the_graph_leads_to_leaves_behind_the_input():
    leaf = ng.tensor([1.0, 2.0], requires_grad=True)
    _, product = AF.vjp(lambda x: np.sum(x**2), leaf * 3, create_graph=True)
    product.sum().backward()
    np.testing.assert_allclose(leaf.grad, [6.0, 6.0])


def test_empty_inputs_and_outputs():
    x = np.array([1.0, 2.0])
    forward = {"vectorize": True, "strategy": "forward-mode"}
    for options in ({}, {"strict": True}, {"vectorize": True}, forward):
        assert AF.jacobian(lambda x: x[:0] * 2, x, **options).shape == (0, 2)
        assert AF.jacobian(lambda x: x.sum() * np.ones(2), x[:0], **options).shape == (2, 0)
    assert AF.hessian(lambda x: x.sum(), x[:0]).shape == (0, 0)
    assert AF.jvp(np.sin, x[:0], x[:0])[1].shape == (0,)


# ------------------------------------------------------------------------------------- errors

POINT = np.array([1.0, 2.0])


@pytest.mark.parametrize("which", EVERY)
@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        (np.sum, [1.0, 2.0], "inputs is a list"),
        (np.sum, 1.0, "inputs is a float"),
        (np.add, (POINT, [1.0]), r"inputs\[1\] is a list"),
        (np.sum, (), "empty tuple"),
        (np.sum, np.array([1, 2]), "input 0 has dtype int64"),
        (np.sum, np.array(["a"]), "dtype"),
        (lambda x: [x], POINT[:1], "output 0 of the function is a list"),
        (lambda x: (x, 2.0), POINT[:1], "output 1 of the function is a float"),
        (lambda x: np.ones(1), POINT[:1], "output 0 of the function is a ndarray"),
        (lambda x: (), POINT[:1], "returned an empty tuple"),
    ],
)
def test_arguments_of_the_wrong_kind(which, function, inputs, message):
    with pytest.raises(ng.NumgradTypeError, match=f"{which}: .*{message}"):
        getattr(AF, which)(function, inputs)


@pytest.mark.parametrize(
    ("which", "function", "inputs", "v", "message"),
    [
        ("vjp", np.sin, POINT, None, "v may be left out only where the output of the function"),
        ("vjp", lambda x: (x.sum(), x.sum()), POINT, None, "v may be left out"),
        ("vjp", np.sum, POINT.astype(complex), None, "complex128 of shape"),
        ("jvp", np.sin, POINT, None, "v may be left out only where the input"),
        ("vhp", np.sum, POINT, None, "v may be left out only where the input"),
        ("hvp", np.sum, POINT, None, "v may be left out only where the input"),
        ("vjp", np.sin, POINT, np.ones(3), r"v is float64 of shape \(3,\)"),
        ("vjp", np.sum, POINT, np.ones(1), r"v is float64 of shape \(1,\)"),
        ("jvp", np.add, (POINT, POINT), (POINT, np.ones(())), r"v\[1\] is float64 of shape \(\)"),
        ("jvp", np.add, (POINT, POINT), POINT, r"v has 1 part\(s\), the input has 2"),
        ("hvp", np.sum, POINT, (POINT, POINT), r"v has 2 part\(s\), the input has 1"),
        ("vjp", np.sin, POINT, POINT * 1j, "v is complex128"),
        ("vjp", np.sin, POINT * 1j, POINT, "v is float64"),
        ("vhp", np.sin, POINT, POINT, r"float64 of shape \(2,\).*jacobian"),
        ("hvp", lambda x: (np.sum(x),), POINT, POINT, "a tuple of 1"),
        ("hvp", lambda x: np.sum(x * 1j), POINT, POINT, "complex128"),
    ],
)
def test_vectors_and_outputs_that_do_not_fit(which, function, inputs, v, message):
    with pytest.raises(ng.NumgradRuntimeError, match=f"{which}: .*{message}"):
        getattr(AF, which)(function, inputs, v)


def test_v_must_be_a_tensor():
    with pytest.raises(ng.NumgradTypeError, match="vjp: v is a list"):
        AF.vjp(np.sin, POINT, [1.0, 1.0])


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ng.NumgradValueError, "no strategy 'sideways'", {"strategy": "sideways"}),
        (ng.NumgradRuntimeError, "vectorize=True", {"strategy": "forward-mode"}),
        (
            ng.NumgradRuntimeError,
            "no graph",
            {"strategy": "forward-mode", "vectorize": True, "create_graph": True},
        ),
        (ng.NumgradRuntimeError, "strict", {"vectorize": True, "strict": True}),
        (
            ng.NumgradRuntimeError,
            "strict",
            {"strategy": "forward-mode", "vectorize": True, "strict": True},
        ),
    ],
)
@pytest.mark.parametrize("which", ["jacobian", "hessian"])
def test_options_that_exclude_each_other(which, error, message, options):
    if which == "hessian" and "strategy" in options:
        options = {**options, "outer_jacobian_strategy": options["strategy"]}
        del options["strategy"]
    with pytest.raises(error, match=f"{which}: .*{message}"):
        getattr(AF, which)(np.sum, POINT, **options)


def test_hessian_of_what_is_no_number():
    with pytest.raises(ng.NumgradRuntimeError, match=r"hessian: .*jacobian"):
        AF.hessian(np.sin, POINT)


def test_jacobian_of_a_complex_output_asks_what_is_meant():
    with pytest.raises(ng.NumgradRuntimeError, match="output 0 of the function is complex"):
        AF.jacobian(np.square, POINT * 1j)
    with pytest.raises(ng.NumgradRuntimeError, match="gradient by input 0 is complex"):
        AF.hessian(lambda z: np.sum(np.abs(z)), POINT * (1 + 1j))


def test_in_inference_mode_nothing_can_be_differentiated():
    before = state.set(inference=True)
    try:
        with pytest.raises(ng.NumgradRuntimeError, match="inference_mode"):
            AF.jacobian(np.sin, POINT)
    finally:
        state.set(**before)


def test_an_error_of_the_function_passes_and_leaves_the_grad_mode():
    def function(x):
        raise KeyError("mine")

    with ng.no_grad():
        with pytest.raises(KeyError, match="mine"):
            AF.jacobian(function, POINT)
        assert not ng.is_grad_enabled()
