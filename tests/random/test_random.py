"""Random Tensors are NumPy's numbers."""

import io
import pickle

import numpy as np
import pytest

import numgrad as ng
from numgrad.random.generator import generator_of

CALLS = [
    lambda r: r.normal(1.0, 2.0, (2, 3)), lambda r: r.uniform(-1, 1, 4), lambda r: r.integers(0,
    9, 5),
    lambda r: r.permutation(6), lambda r: r.choice(10, 3, replace=False), lambda r: r.random(3),
    lambda r: r.power(2.0, 4), lambda r: r.triangular(0.0, 0.3, 1.0, 4), lambda r: r.zipf(2.0, 4),
    lambda r: r.vonmises(0.0, 2.0, 4), lambda r: r.wald(1.0, 2.0, 4), lambda r: r.f(3, 4, 4),
    lambda r: r.noncentral_chisquare(3, 1.0, 4), lambda r: r.noncentral_f(3, 4, 1.0, 4),
    lambda r: r.hypergeometric(5, 6, 3, 4), lambda r: r.logseries(0.4, 4),
    lambda r: r.standard_exponential(4, np.float32), lambda r: r.standard_cauchy(4),
    lambda r: r.multivariate_normal([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], (2, 3)),
    lambda r: r.multinomial(5, [0.2, 0.8], 3), lambda r: r.multinomial([5, 6], [0.2, 0.8]),
    lambda r: r.standard_normal(2, np.float32), lambda r: r.choice([1.0, 2.0], p=[0.5, 0.5]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_same_numbers_as_numpy(call):
    ours, theirs = call(ng.random.default_rng(3)), call(np.random.default_rng(3))
    assert isinstance(ours, ng.Tensor)
    assert ours.dtype == np.asarray(theirs).dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)


def test_tensors_as_arguments():
    rng = ng.random.default_rng(0)
    assert rng.normal(ng.zeros(3), ng.ones(3)).shape == (3,)
    assert sorted(rng.permutation(ng.arange(4)).tolist()) == [0, 1, 2, 3]


def as_file(value):
    buffer = io.BytesIO()
    ng.save(value, buffer)
    buffer.seek(0)
    return ng.load(buffer)


def as_pickle(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("kept", [as_file, as_pickle, lambda s: s], ids=["file", "pickle", "same"])
@pytest.mark.parametrize(
    "kind", [None, *(getattr(np.random, k) for k in ("PCG64", "MT19937", "Philox", "SFC64"))]
)
def test_a_generator_goes_on_from_a_state(kind, kept):
    rng = None if kind is None else np.random.Generator(kind(3))
    theirs = np.random if rng is None else rng

    def draws():
        integers = generator_of("test", rng).integers(9, size=3, dtype=np.uint32)
        return [*theirs.normal(size=3), *integers, *theirs.random(3)]

    theirs.normal()
    state = kept(ng.random.get_state(rng))
    first = draws()
    ng.random.set_state(state, rng)
    assert draws() == first
    ng.random.set_state(state, rng if rng is None else ng.random.Generator(rng))
    assert draws() == first


def broken_states(state):
    """A good state with one thing wrong."""
    yield from (None, 3, {}, {"state": {}}, {**state, "bit_generator": "Other"})
    for name in state:
        yield {k: v for k, v in state.items() if k != name}
        yield {**state, name: None}
    for name, value in state["state"].items():
        wrong = [None, -1, "x", 2**130, np.zeros(3)]
        if isinstance(value, np.ndarray):
            wrong = [value[:-1], value.astype(float), None]
        if name == "pos":
            wrong += [625, 10**9]
        for bad in wrong:
            yield {**state, "state": {**state["state"], name: bad}}
    if "buffer_pos" in state:
        yield {**state, "buffer_pos": 5}


@pytest.mark.parametrize("kind", [None, "PCG64", "MT19937", "Philox", "SFC64"])
def test_a_state_that_is_none_is_refused_and_nothing_changes(kind):
    rng = None if kind is None else np.random.Generator(getattr(np.random, kind)(3))
    before = ng.random.get_state(rng)
    for bad in broken_states(before):
        with pytest.raises((ng.NumgradTypeError, ng.NumgradValueError), match="set_state"):
            ng.random.set_state(bad, rng)
        after = ng.random.get_state(rng)
        assert str(after) == str(before)
    with pytest.raises(ng.NumgradTypeError, match="generator"):
        ng.random.get_state(3)


def test_training_with_dropout_goes_on_bitwise(tmp_path):
    x, y = np.linspace(-1, 1, 48).reshape(12, 4), np.linspace(0, 1, 12).reshape(12, 1)

    def make():
        model = ng.nn.Sequential(
            ng.nn.Linear(4, 8), ng.nn.Tanh(), ng.nn.Dropout(0.5), ng.nn.Linear(8, 1)
        )
        return model, ng.optim.SGD(model.parameters(), lr=0.1)

    def train(model, optimizer):
        for rows, wanted in ng.data.DataLoader((x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            ng.nn.functional.mse_loss(model(rows), wanted).backward()
            optimizer.step()

    ng.random.manual_seed(1)
    model, optimizer = make()
    train(model, optimizer)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": ng.random.get_state(),
    }
    ng.save(state, tmp_path / "state")
    train(model, optimizer)
    other, its_optimizer = make()
    state = ng.load(tmp_path / "state")
    other.load_state_dict(state["model"])
    its_optimizer.load_state_dict(state["optimizer"])
    ng.random.set_state(state["random"])
    train(other, its_optimizer)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_states_are_not_for_compiled_functions():
    with pytest.raises(ng.NumgradTraceError, match="get_state"):
        ng.jit(lambda x: (ng.random.get_state(), x * x)[1])(np.ones(2))


def test_a_compiled_function_draws_from_the_state_that_was_set():
    f = ng.jit(lambda x: ng.nn.functional.dropout(x) * 2.0)
    x = np.ones(20)
    state = ng.random.get_state()
    first = f(x)
    np.testing.assert_raises(AssertionError, np.testing.assert_array_equal, f(x), first)
    ng.random.set_state(state)
    np.testing.assert_array_equal(f(x), first)
    ng.random.set_state(state)
    np.testing.assert_array_equal(ng.nn.functional.dropout(x) * 2.0, first)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_permuted_elements_have_gradients(axis):
    a = np.arange(12.0).reshape(3, 4)
    x = ng.tensor(a, requires_grad=True)
    found = ng.random.default_rng(0).permuted(x, axis=axis)
    expected = np.random.default_rng(0).permuted(a, axis=axis)
    np.testing.assert_array_equal(found.detach(), expected)
    np.sum(found * a).backward()
    slope = np.empty(12)
    slope[expected.astype(int).ravel()] = a.ravel()
    np.testing.assert_array_equal(x.grad.numpy().ravel(), slope)
    eager, later = ng.random.default_rng(0), ng.random.default_rng(0)
    compiled = ng.jit(lambda x: later.permuted(x, axis=axis))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(a), eager.permuted(a, axis=axis))


def test_what_is_shuffled_or_chosen_has_gradients():
    a = np.arange(12.0).reshape(3, 4)
    for axis in (0, 1):
        expected = np.random.default_rng(1).permutation(a, axis=axis)
        for x in (ng.tensor(a), a.copy()):
            ng.random.default_rng(1).shuffle(x, axis)
            np.testing.assert_array_equal(x, expected)
    x = ng.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = ng.random.default_rng(0).permutation(x)
    np.testing.assert_array_equal(
        found.detach(), np.random.default_rng(0).permutation([1.0, 2.0, 3.0])
    )
    chosen = ng.random.default_rng(0).choice(x, 5)
    places = np.random.default_rng(0).choice(3, 5)
    np.testing.assert_array_equal(chosen.detach(), places + 1.0)
    chosen.sum().backward()
    np.testing.assert_array_equal(x.grad, np.bincount(places, minlength=3))


def test_methods_that_are_numpys():
    ours, theirs = ng.random.default_rng(3), np.random.default_rng(3)
    assert ours.bytes(5) == theirs.bytes(5)
    for ours_too, theirs_too in zip(ours.spawn(2), theirs.spawn(2), strict=True):
        assert ours_too.normal().item() == theirs_too.normal()
    counts = ng.jit(lambda c: ours.multivariate_hypergeometric(c, 4, size=2))([3, 4, 5])
    np.testing.assert_array_equal(counts, theirs.multivariate_hypergeometric([3, 4, 5], 4, size=2))
    assert ours.bit_generator.state == theirs.bit_generator.state
    with pytest.raises(ng.NumgradTraceError, match=r"random\.bytes"):
        ng.jit(lambda x: x * len(ours.bytes(2)))(1.0)


@pytest.mark.parametrize(
    "options", [{"method": "cholesky"}, {"method": "eigh"}, {"check_valid": "raise", "tol": 1e-6}]
)
def test_normal_vectors_take_numpys_options(options):
    given = np.array([0.5, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    expected = np.random.default_rng(3).multivariate_normal(*given, 4, **options)
    found = ng.random.default_rng(3).multivariate_normal(*given, 4, **options)
    np.testing.assert_array_equal(found.numpy(), expected)
