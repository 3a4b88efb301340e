"""Bad arguments of public functions: an error of ours that says what was seen, nothing changed."""

import functools
import gc

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError

functional = ng.autograd.functional
V = ng.tensor([1.0, 2.0])
W = ng.tensor([1.0, 2.0], requires_grad=True)
DEEP = functools.reduce(lambda inner, _: [inner], range(3000), 1.0)
CYCLIC = []
CYCLIC.append(CYCLIC)
HUGE = 2**2000


class Foreign:
    """Stands for an array of another library with gradients of its own."""

    __module__ = "torch"

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


MANY = np.ones((1,) * 33)

# a call, and what its error names
CALLS = {
    "axes, two": (lambda: ng.asarray(MANY) + 1, "add.*33 axes.*reshape"),
    "axes, one": (lambda: np.sin(ng.asarray(MANY)), "sin.*33 axes"),
    "axes, grad": (lambda: ng.grad(lambda x: np.sum(x * x))(MANY), "multiply.*33"),
    "huge times": (lambda: V * HUGE, "multiply.*2001 bits.*float"),
    "huge reflected": (lambda: HUGE - V, "subtract.*2001 bits"),
    "huge in a ufunc": (lambda: np.add(V, HUGE), "add.*2001 bits"),
    "huge in where": (lambda: np.where([True, False], V, HUGE), "where.*2001 bits"),
    "huge in place": (lambda: V.clone().__iadd__(HUGE), "add.*2001 bits"),
    "zeros": (lambda: ng.zeros((-1,)), "zeros.*negative"),
    "ones": (lambda: ng.ones(-1), "ones.*negative"),
    "empty": (lambda: ng.empty("a"), "empty.*'a'"),
    "full": (lambda: ng.full(2, [1, 2, 3]), "full.*broadcast"),
    "eye": (lambda: ng.eye(-1), "eye.*negative"),
    "dtype": (lambda: ng.zeros(2, dtype="foo"), "zeros.*foo"),
    "dtype like": (lambda: ng.zeros_like(V, dtype="foo"), "zeros_like.*foo"),
    "like ragged": (lambda: ng.ones_like([[1], [1, 2]]), "ones_like"),
    "arange": (lambda: ng.arange(0, 1, 0), "arange"),
    "arange huge": (lambda: ng.arange(2**60), "arange"),
    "linspace": (lambda: ng.linspace(0, 1, -1), "linspace.*-1"),
    "tensor of nothing": (lambda: ng.tensor(None), "tensor.*object"),
    "tensor of complex": (lambda: ng.tensor([1j], dtype=float), "tensor.*complex"),
    "deep tensor": (lambda: ng.tensor(DEEP), "200 levels.*itself"),
    "cyclic tensor": (lambda: ng.tensor(CYCLIC), "200 levels.*itself"),
    "deep argument": (lambda: ng.grad(lambda x: 1.0)(DEEP), "200 levels.*itself"),
    "cyclic argument": (lambda: ng.grad(lambda x: 1.0)(CYCLIC), "200 levels.*itself"),
    "deep aux": (lambda: ng.grad(lambda x: (x, DEEP), has_aux=True)(1.0), "200 levels"),
    "deep operand": (lambda: V + DEEP, "add.*list"),
    "of another library": (lambda: V * Foreign(), "multiply.*array of torch.*ng.tensor"),
    "of another library first": (lambda: Foreign() - V, "subtract.*array of torch.*ng.tensor"),
    "cyclic operand": (lambda: np.stack([V, CYCLIC]), "stack"),
    "argnums": (lambda: ng.grad(np.sin, argnums="x")(1.0), "argnums.*integers.*'x'"),
    "argnums twice": (lambda: ng.grad(np.add, argnums=(0, -2))(1.0, 2.0), "argnums.*twice"),
    "no function": (lambda: ng.grad(3), "grad.*function.*int"),
    "no function either": (lambda: ng.hessian(None), "hessian.*function.*NoneType"),
    "no array": (lambda: ng.grad(np.sin)("a"), "grad.*argument.*str"),
    "no result": (lambda: ng.grad(lambda x: None)(1.0), "grad.*returned None"),
    "no result of jacobian": (lambda: ng.jacobian(lambda x: None)(1.0), "jacobian.*returned None"),
    "no result of hessian": (lambda: ng.hessian(lambda x: None)(1.0), "hessian.*returned None"),
    "several results": (lambda: ng.grad(lambda x: [x])(1.0), "returned a list.*np.stack"),
    "inference": (lambda: ng.inference_mode()(lambda: ng.grad(np.sin)(1.0))(), "inference_mode"),
    "grad of nothing": (lambda: ng.autograd.grad(W[0], []), "grad.*inputs is empty"),
    "grad with a word": (lambda: ng.autograd.grad(W[0], W, "a"), "grad.*str is no gradient"),
    "backward with an object": (lambda: W[0].backward(object()), "backward.*object is no gradient"),
    "edge": (lambda: ng.autograd.graph.get_gradient_edge(3), "get_gradient_edge.*int"),
    "version": (lambda: ng.autograd.graph.increment_version([V, 3]), "increment_version.*int"),
    "unpack": (lambda: ng.autograd.forward_ad.unpack_dual([[1], [1, 2]]), "unpack_dual"),
    "format": (lambda: f"{V:.3f}", r"format '\.3f'.*\(2,\)"),
    "format code": (lambda: f"{ng.tensor(1.5):d}", "format 'd'.*float64"),
    "round": (lambda: round(V, "a"), "round.*'a'"),
    "in": (lambda: [] in V, "in: a list"),
    "setitem": (lambda: V.clone().__setitem__(0, [[1], [1, 2]]), "setitem"),
    "seed": (lambda: ng.random.manual_seed("a"), "manual_seed.*'a'"),
    "generator": (lambda: ng.random.default_rng(-1), "default_rng.*-1"),
    "draw": (lambda: ng.random.default_rng(0).normal(0, -1), "random.normal"),
    "draw size": (lambda: ng.random.default_rng(0).uniform(size=-1), "random.uniform"),
    "draw rows": (lambda: ng.random.default_rng(0).choice([]), "random.choice"),
}


@pytest.fixture
def no_collection():
    """Without callbacks of the collector, which find no frame left in the deepest recursion."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", CALLS)
def test_a_bad_argument_gets_an_error_that_names_it(name):
    call, message = CALLS[name]
    with pytest.raises(NumgradError, match=f"(?s){message}"):
        call()
    assert W.grad is None
    assert V._version == 0
    assert ng.is_grad_enabled()
    assert ng.grad(lambda x: x * x)(3.0) == 6.0


def test_numbers_are_formatted_and_rounded():
    assert f"{ng.tensor([[1.25]], requires_grad=True):.1f}" == "1.2"
    assert f"{ng.tensor(3):d}" == "3"
    assert round(ng.tensor([1.26, 2.0]), 1).tolist() == [1.3, 2.0]
    assert round(ng.tensor(1.6)).item() == 2.0


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_padding_of_no_axes(mode):
    t = ng.tensor(1.5, requires_grad=True)
    padded = np.pad(t, 2, mode=mode)
    padded.backward()
    np.testing.assert_array_equal(padded.detach(), np.pad(np.array(1.5), 2, mode=mode))
    assert t.grad.item() == 1.0


def test_no_argument_to_differentiate():
    for transform in (ng.grad, ng.jacobian, ng.hessian):
        assert transform(lambda x: x * x, argnums=())(1.0) == ()


def test_versions_of_several_tensors():
    a, b = ng.zeros(2), ng.zeros(2)
    ng.autograd.graph.increment_version([a, b])
    ng.autograd.graph.increment_version(iter([a]))
    assert (a._version, b._version) == (2, 1)


def test_views_made_where_nothing_is_recorded_lead_nowhere():
    for mode, requires_grad in ((ng.no_grad, False), (ng.inference_mode, True)):
        with mode():
            view = W[:1]
        assert view.requires_grad is (view * 2).requires_grad is requires_grad
        assert view.is_leaf
        assert not view.is_inference()


def test_settings_are_those_that_exist():
    with pytest.raises(ng.errors.NumgradAttributeError, match=r"config.*'num_threads'.*check_jit"):
        ng.config.num_threads = 2
    with pytest.raises(ng.errors.NumgradTypeError, match=r"config: jit is True or False.*'no'"):
        ng.config.jit = "no"
    assert ng.config.jit is True
    assert not hasattr(ng.config, "num_threads")
    names = "jit, check_jit, machine_code and pool_bytes"
    with pytest.raises(ng.NumgradAttributeError, match=rf"config: .*'foo'; there are {names}"):
        _ = ng.config.foo  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ng.NumgradAttributeError, match="config: get_num_threads is a function"):
        ng.config.get_num_threads = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ng.NumgradAttributeError, match="config: jit cannot be deleted"):
        del ng.config.jit


def test_hooks_are_functions():
    optimizer, node = ng.optim.SGD([W]), (W * 2).grad_fn
    for register in (
        optimizer.register_step_pre_hook,
        optimizer.register_load_state_dict_post_hook,
        ng.optim.register_optimizer_step_post_hook,
        node.register_prehook,
        ng.nn.Identity().register_forward_hook,
        ng.nn.register_module_forward_hook,
        ng.nn.Identity().register_state_dict_pre_hook,
    ):
        with pytest.raises(ng.errors.NumgradTypeError, match=f"^{register.__name__}: a hook is"):
            register(3)
