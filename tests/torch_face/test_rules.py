"""Rules of the face that differ from NumPy's, with values computed by NumPy or by hand."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import numgrad as ng
import numgrad.torch as torch
from numgrad.torch.calls import RECORDER, ROWS

ONES = {d: torch.ones(2, dtype=d) for d in torch.dtypes.OF.values()}


def test_floats_are_single_by_default():
    assert torch.tensor([1.0, 2.0]).dtype is torch.float32
    assert torch.zeros(2, 3).dtype is torch.float32
    assert torch.tensor([1, 2]).dtype is torch.int64
    assert torch.tensor(np.ones(2)).dtype is torch.float64
    assert torch.tensor(1j).dtype is torch.complex64
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor([1.0]).dtype is torch.float64
        assert (torch.tensor([1]) / 2).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (ONES[torch.float32], torch.tensor(1.0, dtype=torch.float64), "float32"),
        (ONES[torch.int64], torch.tensor(1.0, dtype=torch.float64), "float64"),
        (ONES[torch.int64], 0.5, "float32"),
        (ONES[torch.int8], 3, "int8"),
        (ONES[torch.bool], 3, "int64"),
        (ONES[torch.uint8], ONES[torch.int8], "int16"),
        (ONES[torch.int64], ONES[torch.float32], "float32"),
        (ONES[torch.float64], 1j, "complex128"),
        (ONES[torch.complex64], ONES[torch.float64], "complex128"),
        (torch.tensor(1, dtype=torch.int32), torch.tensor(1.0), "float32"),
    ],
    ids=lambda v: str(getattr(v, "dtype", v)) + ("()" if getattr(v, "shape", None) == () else ""),
)
def test_promotion_by_category(a, b, expected):
    d = getattr(torch, expected)
    assert torch.result_type(a, b) is d
    assert (a + b).dtype is d
    assert (b * a).dtype is d


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([np.float32(1), 2.0], "float32"), ([np.float64(1), 2.0], "float64"),
        ([np.int64(1), 2.0], "float32"), ([[np.float32(1)], [2]], "float32"),
        ([np.float32(1), 1j], "complex64"), ([np.ones(2, "f"), [1.0, 2.0]], "float32"),
        ([1, 2.5, True], "float32"), ([], "float32"), ([1.0, np.float64(2)], "float64"),
    ],
    ids=str,
)  # fmt: skip
def test_the_dtype_of_lists(data, expected):
    assert torch.tensor(data).dtype is getattr(torch, expected)


def test_integers():
    x = torch.tensor([-7, 7])
    assert (x / 2).tolist() == [-3.5, 3.5]
    assert (x // 2).tolist() == [-4, 3]
    assert torch.div(x, 2, rounding_mode="trunc").tolist() == [-3, 3]
    assert (x % 4).tolist() == [1, 3]
    assert torch.fmod(x, 4).tolist() == [-3, 3]
    assert torch.tensor([100], dtype=torch.uint8).sum().dtype is torch.int64
    with pytest.raises(RuntimeError, match=r"mean.*float"):
        x.mean()
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.add_(0.5)


def test_statistics_are_unbiased():
    values = np.array([[1.0, 2.0, 4.0], [0.0, 1.0, 5.0]])
    x = torch.tensor(values)
    assert np.allclose(x.var(1).numpy(), values.var(1, ddof=1))
    assert np.allclose(x.std(0, unbiased=False).numpy(), values.std(0))
    assert np.allclose(x.var(correction=0).numpy(), values.var())
    assert x.median().item() == 1.0


def test_named_tuples():
    x = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    assert x.max(dim=1).values.tolist() == values.tolist() == [3.0]
    assert indices.tolist() == [0]
    assert torch.sort(x).indices.tolist() == [[1, 2, 0]]
    assert x.topk(2).values.tolist() == [[3.0, 2.0]]
    assert torch.linalg.svd(torch.eye(2)).S.tolist() == [1.0, 1.0]
    x.max(1).values.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 0.0]]


def test_a_gradient_is_one_object_and_of_the_class():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen = []
    y = x * x
    y.register_hook(lambda g: seen.append(type(g)) or g * 2)
    y.sum().backward()
    assert x.grad is x.grad
    assert seen == [torch.Tensor]
    assert x.grad.tolist() == [4.0, 8.0]


def test_memory_is_shared_and_gradients_cross():
    array = np.ones(3)
    x = torch.from_numpy(array)
    x.mul_(2)
    assert array.tolist() == [2.0, 2.0, 2.0]
    assert x.numpy() is not None
    assert np.shares_memory(x.numpy(), array)
    w = ng.tensor([1.0, 2.0], requires_grad=True)
    (torch.as_tensor(w) * 3).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]
    assert isinstance(ng.exp(torch.ones(2)), torch.Tensor)


def test_machine_code_gives_the_numbers_of_python():
    x = torch.tensor([0.3, 0.7], requires_grad=True)

    def gradient():
        x.grad = None
        for _ in range(30):
            y = torch.exp(torch.sin(x) * x + 0.5) / (2 - x)
        y.sum().backward()
        return y, x.grad

    y, g = gradient()
    RECORDER.code.load()
    for _ in range(3):
        again, g_again = gradient()
    assert torch.equal(y, again)
    assert torch.equal(g, g_again)
    assert type(again) is torch.Tensor
    assert (x.double() * torch.tensor(2.0)).dtype is torch.float64
    with pytest.raises(TypeError):
        torch.sin(2.0)
    assert (1 + x).dtype is torch.float32
    with pytest.raises(TypeError):
        x + "text"


def test_in_place_and_out():
    x = torch.tensor([1.0, 4.0])
    assert x.sqrt_() is x
    assert x.tolist() == [1.0, 2.0]
    out = torch.empty(0)
    assert torch.add(x, 1, out=out) is out
    assert out.tolist() == [2.0, 3.0]
    with pytest.warns(UserWarning, match="resized"):
        torch.add(torch.ones(3), 1, out=out)
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.add_(1)
    with pytest.raises(RuntimeError, match="out="):
        torch.exp(leaf, out=out)
    before = x._version
    x.clamp_(max=1.5)
    assert x._version == before + 1


def test_axes_change_in_place_without_a_write():
    x = torch.arange(4.0).view(2, 2)
    other = x[:]
    assert x.t_() is x
    assert x.tolist() == [[0.0, 2.0], [1.0, 3.0]]
    assert other.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert x.unsqueeze_(0).shape == (1, 2, 2)
    assert x.squeeze_().shape == (2, 2)
    with pytest.raises(RuntimeError, match="leaf"):
        torch.ones(2, 2, requires_grad=True).t_()


def test_indices():
    values = np.arange(24.0).reshape(2, 3, 4)
    x = torch.tensor(values)
    row = torch.tensor([2, 0])
    for index, expected in [
        (1, values[1]),
        ((..., None), values[..., None]),
        ((slice(None), [0, 2]), values[:, [0, 2]]),
        ((0, row, slice(1, 3)), values[0, [2, 0], 1:3]),
        (x > 10, values[values > 10]),
        ((0, slice(None), [1, 3]), values[0][:, [1, 3]]),
        (([0, 1], slice(None), 2), values[:, :, 2][[0, 1]]),
        ((slice(None), [0, 2], None, ..., 1), values[..., 1][:, [0, 2], None]),
        ((row // 2, ..., row[0]), values[..., 2][[1, 0]]),
        ((slice(None), row, ..., [1, 3]), values[:, [2, 0], [1, 3]]),  # of no axes
        ((row // 2, ..., row), values[[1, 0], :, [2, 0]]),
        ((1, torch.tensor(values[0] > 4)), values[1][values[0] > 4]),
    ]:
        assert np.array_equal(x[index].numpy(), expected)
    x[0, row] = torch.tensor(-1.0)
    values[0, [2, 0]] = -1
    x[1, :, [0, 3]] = torch.tensor([[7.0, 8.0]] * 3)
    values[1][:, [0, 3]] = [7, 8]
    assert np.array_equal(x.numpy(), values)
    whole = torch.zeros(2, dtype=torch.int64)
    whole[0] = 2.7
    assert whole.tolist() == [2, 0]
    with pytest.raises(ValueError, match="step"):
        x[::-1]


def test_shapes_and_strides():
    x = torch.arange(6).view(2, 3)
    assert x.shape == torch.Size([2, 3])
    assert x.size(-1) == 3
    assert x.t().stride() == (1, 3)
    assert x.permute(1, 0).reshape(-1).tolist() == [0, 3, 1, 4, 2, 5]
    assert x.unsqueeze(0).expand(2, -1, -1).shape == (2, 2, 3)
    assert [p.tolist() for p in x.split([1, 2], dim=1)[1]] == [[1, 2], [4, 5]]
    with pytest.raises(RuntimeError, match="view"):
        x.t().view(6)
    assert x.repeat(2, 1).shape == (4, 3)


def test_what_there_is_not():
    assert not torch.cuda.is_available()
    with pytest.raises(RuntimeError, match="CPU"):
        torch.ones(2).cuda()
    with pytest.raises(NotImplementedError, match="float32"):
        torch.zeros(2, dtype=torch.float16)
    with pytest.raises(AttributeError, match="out of scope"):
        torch.onnx  # noqa: B018
    with pytest.raises(AttributeError, match="nearest is cumsum"):
        torch.cumsun  # noqa: B018
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(1, requires_grad=True).numpy()


def test_copies_and_pickles():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin is not x
        assert twin.requires_grad
        assert torch.equal(twin, x)
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32


def test_text():
    assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(torch.ones(1, dtype=torch.float64)) == "tensor([1.], dtype=torch.float64)"
    assert repr(torch.zeros(2, requires_grad=True)) == "tensor([0., 0.], requires_grad=True)"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([True, False], "[ True, False]"),
        (True, "True"),
        ([-np.inf, np.inf], "[-inf, inf]"),
        ([np.nan, 1.0, -0.0], "[nan, 1., -0.]"),
        ([np.nan, 1.5], "[   nan, 1.5000]"),
        ([12345678.0, 1.0], "[1.2346e+07, 1.0000e+00]"),
        ([complex(np.inf, -np.inf), 1.5 - 0.25j], "[   inf-infj, 1.5000-0.2500j]"),
    ],
)
def test_text_of_mixed_widths(data, text):
    assert repr(torch.tensor(data)) == f"tensor({text})"


def test_random_numbers_follow_the_seed():
    torch.manual_seed(1)
    first = torch.rand(3), torch.randn(3), torch.randperm(5)
    torch.manual_seed(1)
    again = torch.rand(3), torch.randn(3), torch.randperm(5)
    assert all(map(torch.equal, first, again))
    generator = torch.Generator().manual_seed(3)
    state = generator.get_state()
    x = torch.rand(2, generator=generator)
    generator.set_state(state)
    assert torch.equal(x, torch.rand(2, generator=generator))


def test_parameters_of_rows_are_what_they_promote():
    for space, rows in ROWS.items():
        for name, row in rows.items():
            assert row.kind == "same" or row.operands, (space, name)


def test_import_of_numgrad_does_not_load_the_face():
    import subprocess
    import sys

    code = "import numgrad, sys; print('numgrad.torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_complex_numbers_become_real_with_a_warning():
    x = torch.tensor([1 + 2j])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert x.to(torch.float32).tolist() == [1.0]
    assert told


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.clamp_(-0.5, 0.5),
        lambda y: torch.clamp_(y, -0.5, 0.5),
        lambda y: y.clamp_(min=-0.5).clamp_(max=0.5),
        lambda y: y[:].clamp_(-0.5, 0.5),
    ],
)
def test_what_is_written_in_place_is_differentiated_as_it_was(write):
    w = torch.tensor([-0.7, 0.2, 0.9], requires_grad=True)
    write(w * 1).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [0.0, 1.0, 0.0])


def test_operands_that_do_not_go_together_raise_a_runtime_error():
    for call in (
        lambda: torch.ones(2, 3) @ torch.ones(2, 3),
        lambda: torch.ones(2) + torch.ones(3),
        lambda: torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.float64),
        lambda: torch.tensor([True]) - torch.tensor([True]),
        lambda: torch.empty(0).max(),
    ):
        with pytest.raises(RuntimeError):
            call()
    for call in (
        lambda: torch.linalg.solve(torch.zeros(2, 2), torch.ones(2)),
        lambda: torch.linalg.cholesky(-torch.eye(2)),
    ):
        with pytest.raises(torch.linalg.LinAlgError) as caught:
            call()
        assert isinstance(caught.value, RuntimeError)


def test_moments_and_powers_keep_the_dtype():
    x = torch.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    assert (
        torch.cov(x).dtype == torch.corrcoef(x).dtype == torch.vander(x[0]).dtype == torch.float32
    )
    np.testing.assert_allclose(torch.cov(x).numpy(), np.cov(x.numpy()), rtol=1e-6)


DRAWS = {
    "rand": lambda x: x + torch.rand(20),
    "rand_like": lambda x: x + torch.rand_like(x),
    "normal_": lambda x: x.clone().normal_(),
    "dropout": torch.nn.functional.dropout,
    "randint": lambda x: x + torch.randint(0, 99, (20,)),
    "randperm": lambda x: x + torch.randperm(20),
    "multinomial": lambda x: x[:5] + torch.multinomial(torch.ones(20), 5),
    "poisson": lambda x: x + torch.poisson(torch.full((20,), 9.0)),
    "binomial": lambda x: x + torch.binomial(torch.full((20,), 9.0), torch.full((20,), 0.5)),
    "generator": lambda x: x + torch.rand(20, generator=torch.Generator()),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_of_a_batch(name):
    draw, x = DRAWS[name], torch.ones(2, 20)
    with pytest.raises(RuntimeError, match="randomness='same' or"):
        torch.vmap(draw)(x)
    first, second = torch.vmap(draw, randomness="same")(x)
    assert torch.equal(first, second)
    first, second = torch.vmap(draw, randomness="different")(x)
    assert not torch.equal(first, second)
    assert first.dtype is x.dtype


@pytest.mark.parametrize(
    "draw",
    [
        lambda p: torch.bernoulli(p),
        lambda p: torch.zeros_like(p).bernoulli_(p),
        lambda p: torch.poisson(1e-30 + 1e9 * p) / 1e9,
        lambda p: torch.binomial(torch.ones_like(p), p),
        lambda p: torch.normal(p, 1e-9 * torch.ones_like(p)),
        lambda p: torch.nn.functional.one_hot(torch.multinomial(p, 1), 3)[0],
    ],
)
def test_parameters_of_random_numbers_may_be_those_of_examples(draw):
    chances = torch.eye(3)
    results = torch.vmap(draw, randomness="different")(chances)
    np.testing.assert_allclose(results.numpy(), chances.numpy(), atol=1e-3)
    np.testing.assert_allclose(
        torch.compile(draw, fullgraph=True)(chances[1]).numpy(), chances[1].numpy(), atol=1e-3
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.view(x.size(0), -1),
        lambda x: x.view_as(torch.ones(6)),
        lambda x: x.contiguous().t(),
        lambda x: x * x.stride(0),
        lambda x: x if x.is_contiguous() else -x,
        lambda x: x.unfold(1, 2, 1),
    ],
)
def test_examples_of_a_batch_have_a_layout(function):
    x = torch.arange(12.0).reshape(2, 3, 2)
    expected = [function(one).tolist() for one in x]
    assert torch.func.vmap(function)(x).tolist() == expected


@pytest.mark.parametrize(
    "layer",
    [torch.nn.Linear(2, 2), torch.nn.Conv1d(2, 2, 1), torch.nn.LayerNorm(2), torch.nn.LSTM(2, 2),
     torch.nn.PReLU(), torch.nn.BatchNorm1d(2)],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_layers_take_the_dtype_of_their_parameters(layer):
    x = torch.ones(2, 2, dtype=torch.float64)
    for other in (x, x.long()):
        with pytest.raises(RuntimeError, match="same dtype"):
            layer(other)
    layer.double()(x)


def test_losses_promote_by_category():
    x, target = torch.ones(2), torch.ones(2, dtype=torch.long)
    assert torch.nn.functional.mse_loss(x, target).dtype is torch.float32
    assert torch.nn.MSELoss()(x, target).dtype is torch.float32
    assert torch.nn.functional.huber_loss(input=x, target=target).dtype is torch.float32
    classes = torch.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2], div_value=1.0)
    assert classes(torch.ones(2, 2), target).loss.dtype is torch.float32
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.nn.functional.linear(input=x, weight=torch.ones(2, 2).double())
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.nn.BCELoss()(x, x.double())


def test_the_logit_has_no_gradient_where_it_is_nan():
    x = torch.tensor([-1.0, 0.0, 0.5, 2.0], requires_grad=True)
    torch.logit(x).sum().backward()
    assert np.array_equal(x.grad.numpy(), [np.nan, np.inf, 4, np.nan], equal_nan=True)


def test_a_pseudo_inverse_of_a_hermitian_matrix_with_equal_eigenvalues():
    x = torch.eye(2, dtype=torch.float64, requires_grad=True)
    torch.linalg.pinv(x, hermitian=True).sum().backward()
    assert x.grad.tolist() == [[-1, -1], [-1, -1]]


def test_beta_numbers_come_near_to_one():
    torch.manual_seed(0)
    a = torch.full((2000,), 0.05, dtype=torch.float64)
    x = torch.distributions.Beta(a, a).sample()
    assert 1 - x.max() == 2.0**-53


VIEWS = {
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "unfold": lambda x: x.unfold(0, 2, 2),
    "real": lambda x: torch.view_as_complex(x).real,
    "view_as_real": lambda x: torch.view_as_real(torch.view_as_complex(x)),
    "adjoint": lambda x: x.H,
    "positive": lambda x: +x,
}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views_reach_the_memory_and_the_gradient(name):
    leaf = torch.arange(8.0).reshape(4, 2).requires_grad_()
    x = leaf * 1
    numbers = VIEWS[name](torch.arange(8).reshape(4, 2).float()).long()  # which elements it shows
    VIEWS[name](x).mul_(3)
    expected = np.ones(8)
    expected[numbers.numpy().ravel()] = 3
    assert x.detach().numpy().ravel().tolist() == (np.arange(8) * expected).tolist()
    x.sum().backward()
    assert leaf.grad.numpy().ravel().tolist() == expected.tolist()


def test_windows_that_overlap_add_their_gradients():
    x = torch.arange(4.0).requires_grad_()
    (x.unfold(0, 2, 1) * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [1, 11, 11, 10]
    with pytest.raises(RuntimeError, match="several times"):
        x.detach().unfold(0, 2, 1).zero_()
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.as_strided((3,), (2,))


def test_copies_are_no_views():
    x = torch.arange(4.0).reshape(2, 2)
    for made in (x.flip(0), torch.fliplr(x), x.rot90(), torch.diag(x)):
        made.zero_()
    assert x.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="read-only"):
        torch.ones(2, dtype=torch.complex64).conj().zero_()


def test_equal_numbers_share_the_gradient_of_a_median():
    x = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0], requires_grad=True)
    x.median().backward()
    assert np.allclose(x.grad, [0, 1 / 3, 0, 1 / 3, 1 / 3])


def test_a_list_of_indices_is_a_tuple_of_them():
    x = torch.arange(9).reshape(3, 3)
    assert x[[[0, 2], [1, 1]]].tolist() == [1, 7]
    assert x[[slice(None), [0, 2]]].tolist() == [[0, 2], [3, 5], [6, 8]]
    assert x[[0, 2]].tolist() == [[0, 1, 2], [6, 7, 8]]


def test_what_is_made_in_inference_mode_stays_out_of_records():
    with torch.inference_mode():
        x = torch.ones(2)
    with pytest.raises(RuntimeError, match="inference"):
        (x * torch.ones(2, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="inference"):
        x.add_(1)


def test_correlations_of_integers_are_floats():
    x = torch.tensor([[1, 1, 3], [2, 2, 5]], dtype=torch.int32)
    assert torch.corrcoef(x).dtype is torch.cov(x).dtype is torch.float32
    assert np.allclose(torch.corrcoef(x), 1)
    assert [part.shape for part in torch.zeros(0, 3).chunk(2)] == [(0, 3), (0, 3)]


INTEGERS = torch.tensor([2, 3])


@pytest.mark.parametrize(
    "divide",
    [
        lambda: INTEGERS // 0,
        lambda: INTEGERS % torch.tensor([1, 0]),
        lambda: 5 % torch.tensor([0, 3]),
        lambda: INTEGERS.clone().fmod_(0),
        lambda: torch.div(INTEGERS, 0, rounding_mode="floor"),
        lambda: torch.div(INTEGERS, torch.tensor(0), rounding_mode="trunc"),
        lambda: torch.func.vmap(lambda x: x // (x - 2))(INTEGERS),
    ],
)
def test_integers_have_no_quotient_by_zero(divide):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide()


def test_quotients_by_zero_that_there_are():
    assert (INTEGERS // 0.0).tolist() == [np.inf, np.inf]
    assert (torch.tensor([], dtype=torch.int64) // 0).shape == (0,)
    assert (INTEGERS % torch.tensor([2, 2])).tolist() == [0, 1]


def test_packed_sequences_hold_tensors():
    rnn = torch.nn.utils.rnn
    x = torch.arange(12.0).reshape(3, 2, 2)
    packed = rnn.pack_padded_sequence(x, torch.tensor([2, 3]), enforce_sorted=False)
    after, _ = torch.nn.LSTM(2, 2)(packed)
    for p in (packed, after):
        assert all(type(value) is torch.Tensor for value in p)
        assert [v.tolist() for v in p[1:]] == [[2, 2, 1], [1, 0], [1, 0]]
    assert rnn.invert_permutation(torch.tensor([2, 0, 1])).tolist() == [1, 2, 0]


def test_a_batched_function_returns_tensors():
    with pytest.raises(ValueError, match="must only return Tensors, got float"):
        torch.vmap(lambda x: (x, 2.0))(torch.ones(2))


def test_the_norm_of_no_gradients_has_the_default_dtype():
    utils = torch.nn.utils
    norms = utils.clip_grad_norm_([], 1.0), utils.get_total_norm(tensors=[])
    norms += (utils.clip_grad_norm_(parameters=torch.ones(2, requires_grad=True), max_norm=1.0),)
    assert [(norm.dtype, norm.item()) for norm in norms] == [(torch.float32, 0.0)] * 3


def test_a_parametrized_weight_is_assigned_to():
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, x):
            return x.triu()

    layer = torch.nn.Linear(2, 2)
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight = torch.ones(2, 2)
    assert layer.parametrizations.weight.original.tolist() == [[1.0, 1.0], [0.0, 1.0]]


def test_masked_fill_takes_a_value_that_requires_grad():
    value = torch.tensor(2.0, requires_grad=True)
    filled = torch.zeros(3).masked_fill(torch.tensor([True, False, True]), value)
    filled.sum().backward()
    assert filled.tolist() == [2.0, 0.0, 2.0]
    assert value.grad.item() == 2.0
