"""First values of parameters: ranges and distributions, and what PyTorch documents of them."""

import math
from contextlib import nullcontext

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn
from numgrad.nn import init


@pytest.fixture
def rng():
    return ng.random.default_rng(0)


def test_calculate_gain(lib, raises):
    gain = lib.nn.init.calculate_gain
    for name in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "sigmoid"):
        assert gain(name) == 1
    assert gain("tanh") == 5 / 3
    assert gain("relu") == math.sqrt(2)
    assert gain("selu") == 0.75
    assert gain("leaky_relu") == pytest.approx(math.sqrt(2 / 1.0001))
    assert gain("leaky_relu", 2) == pytest.approx(math.sqrt(2 / 5))
    for wrong in (("gelu?",), ("leaky_relu", "x"), ("leaky_relu", True)):
        with raises(ValueError, "calculate_gain"):
            gain(*wrong)


def test_fixed_values(lib):
    i = lib.nn.init
    x = lib.empty((2, 3))
    assert i.constant_(x, 2.5) is x
    assert x[1, 2] == 2.5
    assert i.ones_(x).sum() == 6
    assert i.zeros_(x).sum() == 0
    np.testing.assert_array_equal(i.eye_(x), np.eye(2, 3))
    for values in (lib.empty(3), lib.empty((2, 2, 2))):
        with pytest.raises(ValueError, match=r"2|two"):
            i.eye_(values)


def test_dirac(lib, raises):
    i = lib.nn.init
    for shape, groups in (((3, 2, 5), 1), ((4, 2, 3, 4), 2), ((2, 3, 1, 2, 3), 1)):
        x = i.dirac_(lib.empty(shape), groups)
        wanted = np.zeros(shape)
        for group in range(groups):
            for k in range(min(shape[0] // groups, shape[1])):
                place = (group * (shape[0] // groups) + k, k, *(n // 2 for n in shape[2:]))
                wanted[place] = 1
        np.testing.assert_array_equal(x, wanted)
    with raises(ValueError, "axes"):
        i.dirac_(lib.empty((2, 2)))
    with raises(ValueError, "groups"):
        i.dirac_(lib.empty((3, 2, 2)), 2)


def test_parameters_are_filled_without_recording(lib):
    p = lib.nn.Parameter(lib.zeros(3))
    assert lib.nn.init.uniform_(p, 1, 2) is p
    assert p.is_leaf
    assert p.requires_grad
    assert (p >= 1).all()


def test_uniform_and_normal(rng):
    x = ng.empty((100, 100))
    init.uniform_(x, -2, 3, generator=rng)
    assert x.min() >= -2
    assert x.max() < 3
    assert abs(x.mean() - 0.5) < 0.05
    init.normal_(x, 2, 3, generator=rng)
    assert abs(x.mean() - 2) < 0.1
    assert abs(np.std(x.numpy()) - 3) < 0.1
    z = init.normal_(ng.empty((100, 100), dtype=ng.complex128), 0, 2, generator=rng).numpy()
    assert abs(np.std(z) - 2) < 0.1
    assert abs(np.std(z.real) - math.sqrt(2)) < 0.1
    z = init.uniform_(ng.empty(1000, dtype=ng.complex64), 1, 2, generator=rng).numpy()
    assert z.real.min() >= 1
    assert z.imag.max() <= 2
    with pytest.raises(ValueError, match="negative"):
        init.normal_(x, 0, -1)


@pytest.mark.parametrize(
    ("low", "high"), [(-2.0, 2.0), (-0.1, 3.0), (0.5, 0.6), (2.5, 9.0), (-30.0, -6.0), (9.0, 9.5)]
)
def test_truncated_normal(rng, low, high):
    stats = pytest.importorskip("scipy.stats")
    x, mean, std = ng.empty(20_000), 1.0, 2.0
    far = low > 2 or high < -2
    with pytest.warns(UserWarning, match="two standard") if far else nullcontext():
        init.trunc_normal_(x, mean, std, mean + std * low, mean + std * high, generator=rng)
    drawn = (x.numpy() - mean) / std
    assert drawn.min() >= low
    assert drawn.max() <= high
    assert stats.kstest(drawn, stats.truncnorm(low, high).cdf).pvalue > 1e-3


def test_errors_of_truncated_normal():
    for arguments in ((0, 0), (0, 1, 2, 2), (0, 1, 3, 2)):
        with pytest.raises(ValueError, match="trunc_normal_"):
            init.trunc_normal_(ng.empty(2), *arguments)


@pytest.mark.parametrize("shape", [(200, 300), (40, 30, 3, 4)])
def test_xavier_and_kaiming(rng, shape):
    x = ng.empty(shape)
    kernel = math.prod(shape[2:])
    fan_in, fan_out = shape[1] * kernel, shape[0] * kernel
    bound = 2 * math.sqrt(6 / (fan_in + fan_out))
    assert _spread(init.xavier_uniform_(x, 2, rng)) == pytest.approx(bound, rel=1e-2)
    assert _std(init.xavier_normal_(x, 2, rng)) == pytest.approx(bound / math.sqrt(3), rel=0.05)
    for mode, fan in (("fan_in", fan_in), ("fan_out", fan_out), ("FAN_IN", fan_in)):
        bound = math.sqrt(6 / (1 + 0.25) / fan)
        x = init.kaiming_uniform_(x, 0.5, mode, generator=rng)
        assert _spread(x) == pytest.approx(bound, rel=1e-2)
        x = init.kaiming_normal_(x, 0, mode, "tanh", generator=rng)
        assert _std(x) == pytest.approx(5 / 3 / math.sqrt(fan), rel=0.05)


def _spread(x):
    return np.abs(x.numpy()).max()


def _std(x):
    return np.std(x.numpy())


def test_errors_of_fans(lib, raises):
    i = lib.nn.init
    for fill in (i.xavier_uniform_, i.xavier_normal_, i.kaiming_uniform_, i.kaiming_normal_):
        with raises(ValueError, fill.__name__):
            fill(lib.empty(3))
    for fill in (i.kaiming_uniform_, i.kaiming_normal_):
        with raises(ValueError, "fan_in"):
            fill(lib.empty((2, 2)), mode="fan")
        with pytest.warns(UserWarning, match=r"zero-element|no elements"):
            fill(lib.empty((0, 2)))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3), (4, 4)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_orthogonal(rng, shape, dtype):
    x = init.orthogonal_(ng.empty(shape, dtype=dtype), 2, rng).numpy().reshape(shape[0], -1)
    product = x @ x.conj().T if x.shape[0] <= x.shape[1] else x.conj().T @ x
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_matrices_are_spread_evenly(rng):
    corners = [init.orthogonal_(ng.empty((2, 2)), generator=rng)[0, 0].item() for _ in range(400)]
    assert abs(np.mean(corners)) < 0.1
    assert np.mean(np.abs(corners)) == pytest.approx(2 / math.pi, abs=0.05)


def test_errors_of_orthogonal(lib, raises):
    with raises(ValueError, "orthogonal_"):
        lib.nn.init.orthogonal_(lib.empty(3))
    assert lib.nn.init.orthogonal_(lib.empty((0, 3))).shape == (0, 3)


def test_sparse(lib, raises):
    x = lib.nn.init.sparse_(lib.empty((10, 4)), 0.25, std=2.0)
    assert (np.asarray(x == 0).sum(0) == 3).all()
    with raises(ValueError, "two axes"):
        lib.nn.init.sparse_(lib.empty(3), 0.1)
    if lib is ng:
        with raises(ValueError, "share"):
            lib.nn.init.sparse_(lib.empty((3, 3)), 1.5)


def test_generators(rng):
    fills = [
        init.uniform_,
        init.normal_,
        init.trunc_normal_,
        init.xavier_uniform_,
        init.xavier_normal_,
        init.kaiming_uniform_,
        init.kaiming_normal_,
        init.orthogonal_,
        lambda x, generator=None: init.sparse_(x, 0.5, generator=generator),
    ]
    for fill in fills:
        values = []
        for make in (ng.random.default_rng, np.random.default_rng):
            values.append(fill(ng.empty((3, 3)), generator=make(7)))
        assert (values[0] == values[1]).all()
        for _ in range(2):
            np.random.seed(7)
            values.append(fill(ng.empty((3, 3))))
        assert (values[2] == values[3]).all()
        single = fill(ng.empty((3, 3), dtype=ng.float32), generator=np.random.default_rng(7))
        np.testing.assert_allclose(single, values[0], rtol=1e-6)
    with pytest.raises(TypeError, match=r"uniform_.*int"):
        init.uniform_(ng.empty(2), generator=3)
    with pytest.raises(TypeError, match="ndarray"):
        init.zeros_(np.empty(2))


def test_checkpoints_repeat_what_is_drawn():
    x = ng.ones(3, requires_grad=True)
    drawn = []

    def noisy(x):
        drawn.append(init.normal_(ng.empty(3)))
        return x * drawn[-1]

    ng.checkpoint(noisy, x).sum().backward()
    assert (drawn[0] == drawn[1]).all()
    assert nn.init is init
