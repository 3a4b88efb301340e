"""Convolutions, filters and spectra of signals against SciPy."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.signal

import numgrad as ng
from numgrad.testing import gradcheck

DTYPES = (np.float64, np.float32, np.complex128, np.int64)


def draw(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = 3 * rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def same(actual, expected):
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            same(a, e)
        return
    expected = np.asarray(expected)
    tolerance = 1e-4 if expected.dtype in (np.float32, np.complex64) else 1e-9
    actual = actual.detach().numpy() if isinstance(actual, ng.Tensor) else actual
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, strict=True)


def check(name, *args, **options):
    """The function on Tensors and SciPy's on arrays give the same, or raise the same."""
    ours = [ng.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    try:
        expected = getattr(scipy.signal, name)(*args, **options)
    except ValueError:
        with pytest.raises(ng.NumgradValueError, match=name):
            getattr(ng.signal, name)(*ours, **options)
    else:
        same(getattr(ng.signal, name)(*ours, **options), expected)


SHAPES = (
    *(((5,), (2,)), ((5,), (3,)), ((2,), (5,)), ((4, 3), (2, 2)), ((2, 2), (3, 5))),
    *(((4, 3), (3, 2)), ((3, 2, 2), (2, 2, 1)), ((1,), (1,)), ((), ()), ((3, 2), (2, 3))),
    *(((300,), (200,)), ((40, 30), (20, 21))),
)


@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions(name):
    for first, second in SHAPES:
        for mode in ("full", "same", "valid"):
            for method in ("auto", "direct", "fft"):
                for dtype in DTYPES:
                    a, b = draw(first, dtype), draw(second, dtype, 1)
                    check(name, a, b, mode, method)
            check(name, draw(first), draw(second, np.complex128), mode)


def test_convolutions_along_some_axes():
    shapes = ((3, 4), (1, 2), 1), ((1, 4), (3, 2), 1), ((3, 4), (2, 2), None)
    for first, second, axes in shapes:
        for mode in ("full", "same", "valid"):
            for name in ("fftconvolve", "oaconvolve"):
                check(name, draw(first), draw(second), mode, axes)


@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_convolutions_of_images(name):
    for first, second in (((5, 4), (2, 2)), ((5, 4), (3, 3)), ((4, 5), (1, 4)), ((2, 2), (5, 4))):
        for mode in ("full", "same", "valid"):
            for boundary in ("fill", "wrap", "symm"):
                for value in (0, 2.5):
                    check(name, draw(first), draw(second), mode, boundary, value)
    a, b = draw((5, 4), np.complex128), draw((2, 3), np.complex128)
    check(name, a, b)
    # where it exchanges its operands SciPy forgets to conjugate the second: we agree with correlate
    same(ng.signal.correlate2d(b, a, "valid"), scipy.signal.correlate(b, a, "valid"))


@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_recursive_filters(dtype):
    for nb, na in ((1, 1), (3, 1), (1, 3), (3, 3), (2, 4), (4, 2)):
        b = draw((nb,), dtype)
        a = np.append(2, 0.1 * draw((na - 1,), dtype)).astype(dtype)
        for shape, axis in (((9,), -1), ((3, 7), 1), ((7, 3), 0), ((2,), 0), ((1,), 0)):
            x = draw(shape, dtype)
            check("lfilter", b, a, x, axis)
            state = list(shape)
            state[axis] = max(na, nb) - 1
            check("lfilter", b, a, x, axis, draw(state, dtype, 1))
        if max(na, nb) > 1:
            check("lfilter_zi", b, a)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_states_of_filters_are_broadcast(axis):
    """Along other axes than that of the filter, as SciPy's."""
    b, a, x = draw((3,)), np.array([2.0, 0.3]), draw((4, 2, 3))
    shape = [*x.shape]
    shape[axis] = 2
    for ones in range(8):
        given = [1 if ones >> k & 1 and k != axis else n for k, n in enumerate(shape)]
        check("lfilter", b, a, x, axis, draw(given, x.dtype, 1))
    for k in range(3):
        for wrong in {0, 1, 2, 5} - {shape[k]} - ({1} if k != axis else set()):
            zi = np.ones([*shape[:k], wrong, *shape[k + 1 :]])
            with pytest.raises(ng.NumgradValueError, match="lfilter: zi of shape"):
                ng.signal.lfilter(b, a, x, axis, zi)
    with pytest.raises(ng.NumgradValueError, match="lfilter: zi of shape"):
        ng.signal.lfilter(b, a, x, axis, np.ones((1, *shape)))


def test_filters_in_sections_and_both_directions():
    x = draw((3, 40))
    for order in (2, 3, 5):
        b, a = scipy.signal.butter(order, 0.3)
        sections = scipy.signal.butter(order, 0.3, output="sos")
        check("sosfilt", sections, x)
        check("sosfilt", sections, x, 1, draw((len(sections), 3, 2)))
        check("sosfilt_zi", sections)
        for kind in ("odd", "even", "constant", None):
            for length in (None, 4, 0, 40):
                check("filtfilt", b, a, x, -1, kind, length)
                check("sosfiltfilt", sections, np.ascontiguousarray(x.T), 0, kind, length)


@pytest.mark.parametrize("dtype", DTYPES[:3])
def test_spectra(dtype):
    for n in (40, 41):
        x, y = draw((3, n), dtype), draw((3, n), dtype, 1)
        for options in (
            {"nperseg": 15, "noverlap": 4},
            {"nperseg": 16, "nfft": 33, "detrend": "linear", "scaling": "spectrum", "fs": 3.0},
            {"window": np.hamming(12)},
            {"nperseg": 8, "detrend": False, "return_onesided": False},
        ):
            with warnings.catch_warnings(action="ignore"):  # of complex signals
                check("welch", x, **options)
                check("csd", x, y, **options)
        with warnings.catch_warnings(action="ignore"):
            check("periodogram", x, nfft=30)
            check("periodogram", x, 2.0, "hann", 50, scaling="spectrum")
            for options in (
                {"nperseg": 15, "noverlap": 10, "fs": 2.0},
                {"nperseg": 8, "boundary": None, "padded": False},
                {"nperseg": 8, "boundary": "odd"},
                {"nperseg": 8, "boundary": "even", "scaling": "psd", "fs": 3.0},
            ):
                check("stft", x, **options)
            spectra = scipy.signal.stft(x, nperseg=8, nfft=12)[2]
            one = x.dtype.kind != "c"
            expected = scipy.signal.istft(spectra, nperseg=8, nfft=12, input_onesided=one)[1]
            found = ng.signal.istft(ng.tensor(spectra), nperseg=8, nfft=12, input_onesided=one)
            same(found[1], expected)
            turned = ng.tensor(np.moveaxis(spectra, (1, 2), (0, 2)))
            same(
                ng.signal.istft(
                    turned, nperseg=8, nfft=12, input_onesided=one, time_axis=2, freq_axis=0
                )[1],
                expected,
            )


def test_signals_resampled_and_without_trend():
    for dtype in DTYPES[:3]:
        for n in (40, 41):
            x = draw((3, n), dtype)
            for count in (20, 21, 39, 40, 41, 42, 80, 81):
                check("resample", x, count, None, 1)
                check("resample", x[0].copy(), count, np.arange(n) * 0.5)
            for kind in ("linear", "constant"):
                check("detrend", x, -1, kind)
                check("detrend", x, -1, kind, [5, 20])
            if dtype is not np.complex128:
                check("hilbert", x)
                check("hilbert", x, 30, 0)


def test_polynomials_and_medians():
    x = draw((3, 40))
    for mode in ("interp", "mirror", "constant", "nearest", "wrap"):
        for given in ((5, 2), (5, 2, 1, 0.5), (7, 3, 2), (4, 1), (6, 2, 1), (1, 0), (3, 1, 2)):
            check("savgol_filter", x, *given, mode=mode)
        check("savgol_filter", x.T.astype(np.float32), 5, 2, axis=0, mode=mode, cval=1.0)
    check("savgol_coeffs", 5, 2, 1, 0.3)
    check("get_window", ("kaiser", 4.0), 9)
    check("get_window", "hann", 8, False)
    check("medfilt", x, (1, 5))


def test_gradients_of_filters():
    def tensor(values):
        return ng.tensor(values, requires_grad=True)

    b, a, x = tensor([0.4, -0.2]), tensor([1.3, 0.3, -0.2]), tensor(draw((6,)) / 3)
    assert gradcheck(lambda b, a, x: ng.signal.filtfilt(b, a, x, padlen=2), [b, a, x])
    bent = lambda b, a, x: ng.grad(lambda a: np.sum(ng.signal.lfilter(b, a, x) ** 3))(a)  # noqa: E731
    assert gradcheck(bent, [b, a, x])


def test_a_filter_is_identified_from_what_it_does():
    """Coefficients of a resonance from its answer to noise, by gradients through the recurrence."""
    signal = np.random.default_rng(0).normal(size=400)
    truth = np.array([-1.2, 0.7])
    heard = scipy.signal.lfilter([1.0], [1.0, *truth], signal)

    def misfit(a):
        return np.mean((ng.signal.lfilter([1.0], ng.concat([[1.0], a]), signal) - heard) ** 2)

    found = scipy.optimize.minimize(ng.value_and_grad(misfit), [-0.5, 0.2], jac=True)
    np.testing.assert_allclose(found.x, truth, atol=1e-5)


def test_what_is_compiled():
    def energy(x, b):
        y = ng.signal.lfilter(b, b + 1, ng.signal.convolve(x, b))
        return np.sum(y**2)

    gradient = ng.grad(energy, argnums=(0, 1))
    operands = draw((6,)), np.array([0.3, 0.2])
    for actual, expected in zip(ng.jit(gradient)(*operands), gradient(*operands), strict=True):
        np.testing.assert_allclose(actual, expected)


def test_jacobians_take_the_batch_at_once():
    x = draw((4,))
    matrix = ng.jacobian(lambda x: ng.signal.convolve(x, [1.0, 2.0]))(x)
    np.testing.assert_array_equal(matrix, scipy.linalg.convolution_matrix([1.0, 2.0], 4))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s, x: s.convolve(x, np.ones((2, 2))), r"convolve: shapes \(4,\) and \(2, 2\)"),
        (lambda s, x: s.convolve(x, x, "most"), "convolve: mode is 'full'.*'most'"),
        (lambda s, x: s.convolve(x, x, method="slow"), "convolve: method is 'auto'.*'slow'"),
        (lambda s, x: s.convolve2d(x, x), "convolve2d: .*operands have 2 axes"),
        (lambda s, x: s.fftconvolve(x, x, axes=()), r"fftconvolve: axes=\(\)"),
        (lambda s, x: s.lfilter([], [1.0], x), r"lfilter: b of shape \(0,\)"),
        (lambda s, x: s.lfilter([1.0], [0.0, 1.0], x), "lfilter: the first coefficient in a is 0"),
        (lambda s, x: s.lfilter([1.0, 1], [1.0], x, zi=[1, 2]), r"lfilter: zi of shape \(2,\)"),
        (lambda s, x: s.sosfilt(np.ones((1, 5)), x), r"sosfilt: sos of shape \(1, 5\)"),
        (lambda s, x: s.filtfilt([1.0], [1.0], x, padlen=4), "filtfilt: 4 elements .* padlen=4"),
        (lambda s, x: s.welch(x, nperseg=4, noverlap=4), "welch: noverlap=4"),
        (lambda s, x: s.stft(x, nperseg=4, nfft=3), "stft: nfft=3 is less"),
        (lambda s, x: s.csd(x, ng.ones(5)), r"csd: signals of shapes \(4,\) and \(5,\)"),
        (lambda s, x: s.get_window("square", 3), "get_window: no window 'square'"),
        (lambda s, x: s.savgol_filter(x, 5, 2), "savgol_filter: window_length=5 is more"),
        (lambda s, x: s.savgol_filter(x, 3, 3), "savgol_coeffs: 3 places.*order 3"),
        (lambda s, x: s.resample(x, 0), "resample: 4 points to 0"),
        (lambda s, x: s.detrend(x, bp=9), "detrend: bp=9"),
        (lambda s, x: s.detrend(x[:0]), "detrend: no elements"),
        (lambda s, x: s.convolve2d(ng.ones((2, 2)), ng.ones((0, 2))), "convolve2d: .* is empty"),
        (lambda s, x: s.medfilt(x, 2), "medfilt: kernel_size=2"),
    ],
)
def test_errors_name_the_operation_and_what_was_seen(call, says):
    with pytest.raises(ng.NumgradValueError, match=says):
        call(ng.signal, ng.ones(4))


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(
    "function",
    [
        lambda s, x, w: s.convolve(x, w),
        lambda s, x, w: s.convolve(w, x, "same"),
        lambda s, x, w: s.correlate(x, w, "valid"),
        lambda s, x, w: s.fftconvolve(x, x),
        lambda s, x, w: s.lfilter(w, w + 0.5, x),
        lambda s, x, w: s.lfilter(x + 1.0, w, w)[:0] if x.size else x * w.sum(),
        lambda s, x, w: s.savgol_filter(x, 5, 2, mode="constant"),
    ],
)
def test_gradients_of_what_has_no_element(function, n):
    x = ng.tensor(np.ones(n), requires_grad=True)
    w = ng.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = function(ng.signal, x, w)
    for gradient, leaf in zip(
        ng.autograd.grad(y.sum(), (x, w), allow_unused=True), (x, w), strict=True
    ):
        assert gradient is None or gradient.shape == leaf.shape
        assert n or gradient is None or not np.any(gradient.numpy())
