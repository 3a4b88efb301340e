"""gradcheck and gradgradcheck catch what they are for."""

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
