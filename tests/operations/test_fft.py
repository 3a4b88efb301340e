"""Fourier, cosine and sine transforms against NumPy, SciPy and PyTorch."""

from functools import partial

import numpy as np
import pytest
import scipy.fft

import numgrad as ng
from numgrad.testing import gradcheck

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_REAL = ("rfft", "ihfft")
SEVERAL = [name.replace("fft", f"fft{d}") for name in ONE for d in ("2", "n")]
TRIGONOMETRIC = ("dct", "idct", "dst", "idst", "dctn", "idctn", "dstn", "idstn")
DTYPES = (np.float64, np.float32, np.complex128, np.complex64, np.int32)


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = 3 * rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def check(actual, expected):
    assert actual.dtype == expected.dtype
    single = expected.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        actual.detach().numpy(),
        expected,
        rtol=1e-5 if single else 1e-12,
        atol=1e-5 if single else 1e-12,
        strict=True,
    )


@pytest.mark.parametrize("name", ONE)
def test_values_along_one_axis(name):
    function = getattr(np.fft, name)
    for dtype in DTYPES:
        for m in (1, 2, 5, 6):
            x = draw((3, m), dtype)
            for n, axis, norm in (
                (None, -1, None),
                (1, -1, "ortho"),
                (4, 1, "forward"),
                (5, 0, "backward"),
                (9, -1, "ortho"),
            ):
                try:
                    expected = function(x, n, axis, norm)
                except (TypeError, ValueError) as error:
                    with pytest.raises(type(error), match=r"complex|point"):
                        function(ng.tensor(x), n, axis, norm)
                else:
                    check(function(ng.tensor(x), n, axis, norm), expected)
                    check(getattr(ng.fft, name)(x, n, axis, norm), expected)


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_values_and_gradients_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    kind = np.float64 if name.startswith(("rfft", "ihfft")) else np.complex128
    lengths = [None, (4,), (4, 5)] if name in SEVERAL else [None, 4, 5]
    for shape in ((4, 3), (3, 4), (5, 5)):
        for norm, n in zip(("backward", "ortho", "forward"), lengths, strict=True):
            if n == (4,) and not name.endswith("n"):
                n = (5, 3)
            given = {"norm": norm, "s" if name in SEVERAL else "n": n}
            x = draw(shape, kind)
            theirs = torch.tensor(x, requires_grad=True)
            ours = ng.tensor(x, requires_grad=True)
            expected = getattr(torch.fft, name)(theirs, **given)
            actual = getattr(ng.fft, name)(ours, **given)
            check(actual, expected.detach().resolve_conj().numpy())
            g = draw(tuple(expected.shape), actual.dtype, 1)
            expected.backward(torch.tensor(g))
            actual.backward(ng.tensor(g))
            check(ours.grad, theirs.grad.resolve_conj().numpy())


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("name", TRIGONOMETRIC)
def test_cosines_and_sines(name):
    for kind in (1, 2, 3, 4):
        for norm in (None, "ortho", "forward"):
            for orthogonalize in (None, True, False):
                options = {"type": kind, "norm": norm, "orthogonalize": orthogonalize}
                for dtype in DTYPES[:4]:
                    x = draw((4, 3), dtype)
                    transform = partial(getattr(scipy.fft, name), **options)
                    # SciPy forgets the weights of imaginary parts
                    parts = [transform(part.copy()) for part in (x.real, x.imag)]
                    expected = parts[0] + 1j * parts[1] if x.dtype.kind == "c" else transform(x)
                    check(getattr(ng.fft, name)(ng.tensor(x), **options), expected)
                # linear, so that one pair of vectors and the adjoint says it all
                x = ng.tensor(draw((4, 3), np.float64), requires_grad=True)
                y = getattr(ng.fft, name)(x, **options)
                g = draw((4, 3), np.float64, 1)
                y.backward(ng.tensor(g))
                v = draw((4, 3), np.float64, 2)
                moved = getattr(scipy.fft, name)(v, **options)
                np.testing.assert_allclose(np.sum(x.grad.numpy() * v), np.sum(g * moved))


def test_single_precision_has_single_gradients():
    x = ng.tensor(draw((6,), np.float32), requires_grad=True)
    y = np.fft.irfft(np.fft.rfft(x) * 2)
    assert y.dtype == np.float32
    y.sum().backward()
    assert x.grad.dtype == np.float32


def test_numpys_corner_cases():
    x = draw((3, 2), np.float64)
    for axes in ((0, 0), (), (-1, 0)):
        check(np.fft.fftn(ng.tensor(x), axes=axes), np.fft.fftn(x, axes=axes))
    check(np.fft.fftn(ng.tensor(x), (-1, 4), (0, 1)), np.fft.fftn(x, (-1, 4), (0, 1)))
    assert np.fft.fft(ng.ones((0, 3))).shape == (0, 3)
    assert np.fft.irfft(ng.ones((0, 3))).shape == (0, 4)
    check(np.fft.fft(a=ng.tensor(x), n=5, axis=0), np.fft.fft(x, 5, 0))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: np.fft.rfft(ng.ones(3) + 0j), TypeError, "rfft: the operand is complex"),
        (lambda: np.fft.fft(ng.ones((2, 0))), ValueError, r"fft: 0 points.*\(2, 0\)"),
        (lambda: np.fft.fft(ng.ones(3), n=0), ValueError, "fft: n=0 points"),
        (lambda: np.fft.fft(ng.ones(3), n=-1), ValueError, "fft: n=-1 points"),
        (lambda: np.fft.fft(ng.ones(3), n=2.5), TypeError, "fft: n must be an integer"),
        (lambda: np.fft.irfft(ng.ones(1)), ValueError, r"irfft: 0 points.*\(1,\)"),
        (lambda: np.fft.fft(ng.ones(3), norm="x"), ValueError, "fft: norm is 'backward'.*'x'"),
        (lambda: np.fft.fft(ng.ones(3), axis=1), IndexError, "fft: axis 1"),
        (lambda: np.fft.fft(ng.tensor(3.0)), IndexError, "fft: axis -1"),
        (lambda: np.fft.fft2(ng.ones(3)), IndexError, "fft2: axis -2"),
        (lambda: np.fft.fftn(ng.ones((2, 2)), (3, 3), (0,)), ValueError, "different lengths"),
        (lambda: np.fft.rfftn(ng.ones((2, 2)), axes=()), ValueError, "rfftn: axes=()"),
        (lambda: ng.fft.fftn(ng.ones(2), (2, 2)), ValueError, "fftn: 2 lengths"),
        (lambda: ng.fft.dct(ng.ones(1), 1), ValueError, r"dct: type 1 needs.*\(1,\)"),
        (lambda: ng.fft.dct(ng.ones(2), 5), ValueError, "dct: type is 1, 2, 3 or 4, got 5"),
        (lambda: ng.fft.dctn(ng.ones((2, 2)), axes=(0, 0)), ValueError, "dctn: axes"),
        (lambda: ng.fft.fftfreq(0), ValueError, "fftfreq: 0 points"),
    ],
)
def test_errors_name_the_operation_and_what_was_seen(call, error, says):
    with pytest.raises(error, match=says) as caught:
        call()
    assert isinstance(caught.value, ng.NumgradError)


def test_frequencies():
    for n in (1, 4, 5):
        check(ng.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        check(ng.fft.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5))
    d = ng.tensor(0.5, requires_grad=True)
    ng.fft.rfftfreq(4, d)[1].backward()
    assert d.grad.item() == -1.0  # of 1 / (4 d)


def test_scipys_functions_find_these_when_told():
    x = ng.tensor([1.0, 2.0, 4.0], requires_grad=True)
    with pytest.raises(ng.NumgradError, match="requires grad"):
        scipy.fft.rfft(x)
    with scipy.fft.set_backend(ng.fft):
        y = scipy.fft.rfft(x)
        assert isinstance(scipy.fft.rfft(np.ones(3)), np.ndarray)
    assert y.requires_grad
    check(y, scipy.fft.rfft(np.array([1.0, 2.0, 4.0])))


def test_what_is_compiled():
    def power(x):
        return np.sum(np.abs(np.fft.rfft(2 * x)) ** 2 * ng.arange(x.shape[0] // 2 + 1))

    fast = ng.jit(ng.value_and_grad(power))
    for n in (5, 6):
        x = draw((n,), np.float64)
        for actual, expected in zip(fast(x), ng.value_and_grad(power)(x), strict=True):
            np.testing.assert_allclose(actual, expected)


def test_second_derivatives_through_a_spectrum():
    x = ng.tensor(draw((4,), np.float64), requires_grad=True)
    assert gradcheck(lambda x: ng.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 4 / 100))(x), [x])


def test_deconvolution_finds_wieners_solution():
    """The signal that explains blurred data best, by gradients and in closed form."""
    rng = np.random.default_rng(0)
    n, penalty = 64, 0.05
    place = np.arange(n)
    truth = np.where(abs(place - 30) < 8, 1.0, 0.0)
    response = np.fft.rfft(np.exp(-0.5 * np.minimum(place, n - place) ** 2 / 4) / 5)
    data = np.fft.irfft(response * np.fft.rfft(truth), n) + 0.01 * rng.normal(size=n)

    def loss(signal):
        blurred = np.fft.irfft(response * np.fft.rfft(signal), n)
        return np.sum((blurred - data) ** 2) + penalty * np.sum(signal**2)

    signal = ng.zeros(n, requires_grad=True)
    optimizer = ng.optim.LBFGS(
        [signal],
        max_iter=100,
        tolerance_grad=1e-9,
        tolerance_change=1e-15,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimizer.zero_grad()
        value = loss(signal)
        value.backward()
        return value

    optimizer.step(closure)
    wiener = np.conj(response) * np.fft.rfft(data) / (abs(response) ** 2 + penalty)
    np.testing.assert_allclose(signal.detach().numpy(), np.fft.irfft(wiener, n), atol=1e-6)


def test_independent_components_are_found():
    """Two sources, mixed: rotations of whitened data, by the gradient of their contrast."""
    rng = np.random.default_rng(1)
    time = np.arange(2000)
    sources = np.stack([np.sign(np.sin(time / 7)), rng.uniform(-1.7, 1.7, time.size)])
    mixed = np.array([[1.0, 0.6], [0.4, 1.0]]) @ sources
    mixed -= mixed.mean(axis=1, keepdims=True)
    scales, axes = np.linalg.eigh(np.cov(mixed))
    white = (axes / np.sqrt(scales)).T @ mixed

    def contrast(angle):  # kurtosis, which is smallest for sources flatter than a bell
        first = np.cos(angle) * white[0] + np.sin(angle) * white[1]
        second = np.cos(angle) * white[1] - np.sin(angle) * white[0]
        return np.mean(first**4) + np.mean(second**4)

    angle = 0.3
    for _ in range(40):
        angle = angle - 0.05 * ng.grad(contrast)(angle)
    found = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) @ white
    match = abs(np.corrcoef(found, sources)[:2, 2:])
    assert (match.max(axis=1) > 0.995).all(), match


@pytest.mark.parametrize("name", ["fft", "ifft", "ihfft"])
def test_zeros_of_real_signals_have_numpys_signs(name):
    signals = np.array([[3, 1, 4, 1], [-3, 1, 0, 1], [0, 0, 0, 0], [1, -1, 1, -1]])
    for x in (signals, signals.astype(np.float32), signals[:, :3]):
        for axis in (0, 1):
            expected = getattr(np.fft, name)(x, axis=axis)
            found = getattr(np.fft, name)(ng.tensor(x), axis=axis).numpy()
            np.testing.assert_allclose(np.angle(found), np.angle(expected), atol=1e-6)
