"""gradcheck and gradgradcheck catch what they are for."""

import functools
import inspect

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck


def leaf(values=(0.5, 1.5), dtype=np.float64):
    return ng.tensor(np.array(values, dtype), requires_grad=True)


def wrong_by_a_factor(x):
    return 2 * x - x.detach()


def test_several_inputs_and_outputs():
    a, b = leaf(), leaf([[2.0, 3.0], [0.1, 0.2]])
    assert gradcheck(lambda a, b, c: (a * b + c, np.sin(a)), (a, b, 2.0))
    assert gradgradcheck(lambda a, b: (a * b * b, np.sin(a)), (a, b))
    np.testing.assert_array_equal(a.numpy(force=True), [0.5, 1.5])
    assert a.grad is None


def test_complex():
    z, x = leaf([1 + 2j, -0.5j + 0.3], complex), leaf()
    assert gradcheck(lambda z: z * z * np.conj(z), z)
    assert gradcheck(lambda z: (z * z).real, z)
    assert gradcheck(np.abs, z)
    assert gradcheck(lambda x, z: x * z, (x, z))
    with pytest.raises(ng.GradcheckError, match="pairs of rows"):
        gradcheck(lambda z: z * np.conj(z.detach()), z)


def test_mismatch_names_output_and_input_and_shows_both():
    """Promise 112."""
    with pytest.raises(ng.GradcheckError, match=r"(?s)output 1 for input 1.*numerical.*analytical"):
        gradcheck(lambda a, b: (a * b, a + wrong_by_a_factor(b)), (leaf(), leaf()))
    assert not gradcheck(wrong_by_a_factor, leaf(), raise_exception=False)
    with pytest.raises(ng.GradcheckError):
        gradgradcheck(lambda x: x * x * x.detach(), leaf())


def test_output_that_hides_its_dependence():
    with pytest.raises(ng.GradcheckError, match="does not require grad"):
        gradcheck(lambda x: (x * 2, x.detach() * 3), leaf())


def test_single_precision_warns():
    """Promise 112."""
    with pytest.warns(UserWarning, match="float32"):
        gradcheck(lambda x: x * 2, leaf(dtype=np.float32), eps=1e-2, atol=1e-2)


def test_inputs_that_cannot_be_checked_are_refused():
    """Promise 112."""
    with pytest.raises(ValueError, match="no input requires grad"):
        gradcheck(np.sin, ng.tensor([1.0]))
    overlapping = ng.asarray(np.broadcast_to(np.ones(1), (3,))).requires_grad_()
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(np.sin, overlapping)
    with pytest.raises(TypeError, match="must return a Tensor"):
        gradcheck(lambda x: 3.0, leaf())


def custom(name, backward):
    def forward(x):
        return x * 3.0

    forward.__name__ = name
    op = ng.primitive(method=False, register=False)(forward)
    op.vjp(x=lambda g, x: g * 3.0)
    op.vjp_kernel(backward)
    return op


def test_catches_a_backward_that_ignores_its_gradient():
    """Promise 112."""
    op = custom("ignores", lambda call, mask, g, x: [np.full_like(x, 3.0)])
    with pytest.raises(ng.GradcheckError, match=r"does not multiply|differ"):
        gradcheck(op, leaf([1.0]))
    with pytest.raises(ng.GradcheckError, match="does not multiply"):
        gradcheck(op, leaf([1.0]))


def test_catches_gradients_that_change():
    """Promise 112."""
    rng = np.random.default_rng(0)

    def noisy(call, mask, g, x):
        return [g * 3.0 + g * rng.uniform(0, 1e-7)]

    op = custom("noisy", noisy)
    with pytest.raises(ng.GradcheckError, match="not deterministic"):
        gradcheck(op, leaf())
    assert gradcheck(op, leaf(), nondet_tol=1e-6)


def test_dtype_and_shape_of_gradients():
    assert gradcheck(np.exp, leaf(), check_grad_dtypes=True)


def test_empty_and_zero_dimensional():
    assert gradcheck(np.exp, leaf(np.zeros((0, 3))))
    assert gradcheck(np.exp, leaf(0.3))


# ---------------------------------------------------------------------------- what can be switched


class Twice(ng.autograd.Function):
    """Its backward is wrong; forward mode and values are right."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3

    @staticmethod
    def jvp(ctx, t):
        return t * 2


class Forward(Twice):
    """Its forward mode is wrong."""

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 5


class Pair(ng.autograd.Function):
    """Two outputs; what does not arrive counts as ones, which is wrong."""

    missing = 1.0

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @classmethod
    def backward(cls, ctx, g, h):
        if g is None:
            return h * 3 + cls.missing
        return g * 2 + (cls.missing if h is None else h * 3)


class Failing(Pair):
    """Its backward fails where nothing arrives."""

    @classmethod
    def backward(cls, ctx, g, h):
        return g * 2 + h * 3


class NoBatch(ng.autograd.Function):
    """Its backward is Python code that no batch goes through."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return ng.tensor(g.numpy() * 2)


def test_each_direction_is_checked_when_asked(x):
    check = functools.partial(ng.testing.gradcheck, inputs=x, raise_exception=False)
    assert not check(Twice.apply)
    assert check(Twice.apply, check_forward_ad=True, check_backward_ad=False)
    assert check(Forward.apply)
    assert not check(Forward.apply, check_forward_ad=True)
    assert not check(Forward.apply, check_forward_ad=True, check_backward_ad=False)


@pytest.fixture
def x():
    return ng.tensor([0.5, -1.25, 2.0], requires_grad=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"check_backward_ad": False}, "nothing to check"),
        (
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "check_batched_grad needs check_backward_ad=True",
        ),
        (
            {"check_batched_forward_grad": True},
            "check_batched_forward_grad needs check_forward_ad=True",
        ),
    ],
)
def test_options_that_contradict_each_other(x, options, words):
    with pytest.raises(ValueError, match=words):
        ng.testing.gradcheck(np.sin, x, **options)


def test_a_gradient_that_does_not_arrive_counts_as_zeros(x):
    with pytest.raises(ng.errors.GradcheckError, match="no gradient arrives at output 0, that"):
        ng.testing.gradcheck(Pair.apply, x)
    assert ng.testing.gradcheck(Pair.apply, x, check_undefined_grad=False)
    with pytest.raises(ng.errors.GradcheckError, match=r"arrives at output 0.*TypeErr"):
        ng.testing.gradcheck(Failing.apply, x)
    assert ng.testing.gradcheck(Failing.apply, x, check_undefined_grad=False)


def test_batches_of_cotangents_and_tangents(x):
    for f in (np.sin, lambda x: (np.exp(x) * x, x[1:] * 2), lambda x: np.outer(x, x) * (1 + 2j)):
        assert ng.testing.gradcheck(
            f, x, check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True
        )
    assert ng.testing.gradcheck(NoBatch.apply, x)
    with pytest.raises(ng.errors.GradcheckError, match="batch of cotangents"):
        ng.testing.gradcheck(NoBatch.apply, x, check_batched_grad=True)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_products_with_random_vectors(x, fast_mode):
    check = functools.partial(
        ng.testing.gradcheck, raise_exception=False, fast_mode=fast_mode, check_forward_ad=True
    )
    z = ng.tensor([1 + 2j, -0.5j], requires_grad=True)
    assert check(lambda x, z: (np.outer(x, z) ** 2, np.abs(z)), (x, z))
    assert not check(Twice.apply, x)
    assert not check(Forward.apply, x)
    assert not check(lambda x: x * x.detach(), x)


def test_signed_zeros_stay_beside_what_moves():
    x, negative = ng.tensor([-0.0, 1.0], requires_grad=True), []

    def f(x):
        negative.append(bool(np.signbit(x._array[0])))
        return x * 2

    assert ng.testing.gradcheck(f, x)
    assert negative == [True, True, False, True, True, True]


def test_second_derivatives_by_either_mode(x):
    for options in (
        {"check_fwd_over_rev": True},
        {"check_fwd_over_rev": True, "check_rev_over_rev": False},
        {"gen_non_contig_grad_outputs": True},
        {"check_batched_grad": True},
        {"fast_mode": True},
    ):
        assert ng.testing.gradgradcheck(lambda x: np.exp(x) * np.sin(x), x, **options)
    with pytest.raises(ValueError, match="nothing to check"):
        ng.testing.gradgradcheck(np.exp, x, check_rev_over_rev=False)


def test_options_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for name in ("gradcheck", "gradgradcheck"):
        ours, theirs = (
            inspect.signature(getattr(home, name)).parameters
            for home in (ng.testing, torch.autograd)
        )
        assert set(theirs) - set(ours) <= {"func", "masked"}
        for option in set(ours) & set(theirs):
            assert ours[option].default == theirs[option].default


def test_outputs_must_not_change_shape_or_dtype():
    x = ng.ones(1, requires_grad=True)
    for changed in (lambda x: ng.concat([x, x]), lambda x: x.astype(np.float32)):
        with pytest.raises(AssertionError, match="output 0 has shape"):
            ng.testing.gradcheck(lambda x, f=changed: f(x) if x.item() >= 1 else x, x)
