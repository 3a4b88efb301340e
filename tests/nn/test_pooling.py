"""Pooling against a loop, PyTorch and finite differences."""

import itertools

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

F = ng.nn.functional
rng = np.random.default_rng(3)


def array(*shape, dtype="float64"):
    return rng.normal(size=shape).astype(dtype)


def pairs(value, rank):
    return value if isinstance(value, tuple) else (value,) * rank


def windows(n, k, s, p, d=1, ceil_mode=False):
    """Places of each window along an axis, those in the padding included."""
    starts = [start for start in range(-p, n + p, s)]
    last = n + p - (d * (k - 1) + 1)
    kept = [start for start in starts if start <= last or (ceil_mode and start < n)]
    if ceil_mode:  # one window at most goes beyond the end
        kept = [start for start in kept if start - s < last]
    return [[start + i * d for i in range(k)] for start in kept]


def pool(x, kernel, reduce, *, stride=None, padding=0, dilation=1, ceil_mode=False):
    """``reduce(values, places, window)`` of each window of each image."""
    rank = len(kernel)
    lengths = x.shape[-rank:]
    axes = [
        windows(n, k, s, p, d, ceil_mode)
        for n, k, s, p, d in zip(
            lengths, kernel, pairs(kernel if stride is None else stride, rank),
            pairs(padding, rank), pairs(dilation, rank), strict=True,
        )
    ]  # fmt: skip
    flat = x.reshape(-1, *lengths)
    out = np.empty((len(flat), *map(len, axes)))
    for m, image in enumerate(flat):
        for place in itertools.product(*[range(len(a)) for a in axes]):
            window = [a[i] for a, i in zip(axes, place, strict=True)]
            inside = [
                p for p in itertools.product(*window)
                if all(0 <= i < n for i, n in zip(p, lengths, strict=True))
            ]  # fmt: skip
            out[(m, *place)] = reduce([image[p] for p in inside], inside, window)
    return out.reshape(*x.shape[:-rank], *out.shape[1:])


MAXIMA = [
    # shape, window, options
    ((2, 3, 8), (2,), {}),
    ((2, 7), (3,), {"stride": 2, "padding": 1}),
    ((1, 2, 9), (3,), {"dilation": 2, "stride": 1, "padding": 1}),
    ((3, 2, 6, 5), (2, 2), {}),
    ((2, 1, 7, 6), (3, 2), {"stride": (2, 3), "padding": (1, 0), "ceil_mode": True}),
    ((2, 5, 5), (2, 3), {"stride": 2, "ceil_mode": True, "dilation": (2, 1)}),
    ((1, 1, 4, 4), (4, 4), {"stride": 3, "padding": 2, "ceil_mode": True}),
]


def maximum(shape):
    return F.max_pool1d if len(shape) == 1 else F.max_pool2d


@pytest.mark.parametrize(("shape", "kernel", "options"), MAXIMA, ids=str)
def test_max_pool(shape, kernel, options):
    x = array(*shape)
    lengths = shape[-len(kernel) :]
    y, indices = maximum(kernel)(ng.tensor(x), kernel, return_indices=True, **options)
    np.testing.assert_array_equal(y.numpy(), pool(x, kernel, lambda v, *_: max(v), **options))
    places = pool(
        x,
        kernel,
        lambda v, inside, _: np.ravel_multi_index(inside[int(np.argmax(v))], lengths),
        **options,
    )
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(indices.numpy(), places)


@pytest.mark.parametrize(("shape", "kernel", "options"), MAXIMA, ids=str)
def test_gradients_of_max_pool(shape, kernel, options):
    x = ng.tensor(array(*shape), requires_grad=True)

    def f(x):
        return maximum(kernel)(x, kernel, **options)

    assert gradcheck(f, x)
    if x.size < 50:
        assert gradgradcheck(f, x)


def test_ties_nans_and_infinities():
    x = ng.tensor([[1.0, 1.0, 2.0, 2.0, -np.inf, -np.inf]], requires_grad=True)
    y = F.max_pool1d(x, 2)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[1, 0, 1, 0, 1, 0]])
    x = ng.tensor([[np.nan, 1.0, 5.0, np.nan, np.nan, np.nan]])
    y, indices = F.max_pool1d(x, 2, return_indices=True)
    assert np.isnan(y.numpy()).all()
    assert indices.tolist() == [[0, 3, 5]]


def test_max_pool_of_other_dtypes():
    x = rng.integers(-9, 9, (2, 4, 4))
    y = F.max_pool2d(x, 2)
    assert y.dtype == np.int64
    np.testing.assert_array_equal(y.numpy(), x.reshape(2, 2, 2, 2, 2).max(axis=(2, 4)))
    x = ng.tensor(array(2, 4, 4, dtype="float32"), requires_grad=True)
    y = F.max_pool2d(x, 2)
    assert y.dtype == np.float32
    y.sum().backward()
    assert x.grad.dtype == np.float32
    with pytest.raises(ng.NumgradTypeError, match="no order"):
        F.max_pool1d(np.ones((1, 4), complex), 2)


AVERAGES = [
    ((2, 3, 8), (2,), {}),
    ((2, 7), (3,), {"stride": 2, "padding": 1}),
    ((2, 7), (3,), {"stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}),
    ((3, 2, 6, 5), (2, 2), {}),
    ((2, 1, 7, 6), (3, 2), {"stride": (2, 3), "padding": (1, 1), "ceil_mode": True}),
    ((2, 1, 6, 6), (3, 2), {"stride": 2, "padding": 1, "count_include_pad": False}),
    ((2, 5, 5), (2, 3), {"stride": 1, "divisor_override": 4}),
    ((1, 1, 4, 4), (4, 4), {"stride": 3, "padding": 2, "ceil_mode": True}),
]


def mean(shape):
    return F.avg_pool1d if len(shape) == 1 else F.avg_pool2d


def averaged(x, kernel, *, count_include_pad=True, divisor_override=None, **options):
    padding = pairs(options.get("padding", 0), len(kernel))
    padded = [n + p for n, p in zip(x.shape[-len(kernel) :], padding, strict=True)]

    def reduce(values, inside, window):
        if divisor_override is not None:
            return sum(values) / divisor_override
        if not count_include_pad:
            return sum(values) / len(values)
        counts = [sum(i < n for i in axis) for axis, n in zip(window, padded, strict=True)]
        return sum(values) / np.prod(counts)

    return pool(x, kernel, reduce, **options)


@pytest.mark.parametrize(("shape", "kernel", "options"), AVERAGES, ids=str)
def test_avg_pool(shape, kernel, options):
    x = array(*shape)
    y = mean(kernel)(ng.tensor(x), kernel, **options)
    np.testing.assert_allclose(y.numpy(), averaged(x, kernel, **options), rtol=1e-12, atol=1e-14)
    x = ng.tensor(x, requires_grad=True)
    assert gradcheck(lambda x: mean(kernel)(x, kernel, **options), x)
    if x.size < 50:
        assert gradgradcheck(lambda x: mean(kernel)(x, kernel, **options), x)


@pytest.mark.parametrize(
    ("shape", "size"),
    [((2, 3, 7), 3), ((2, 4), 4), ((2, 3), 5), ((2, 7, 5), (3, None)), ((1, 2, 5, 4), (2, 3)),
     ((2, 2, 3, 4), 1), ((1, 3, 3), (0, 2))],
    ids=str,
)  # fmt: skip
def test_adaptive_avg_pool(shape, size):
    rank = 1 if isinstance(size, int) and len(shape) < 4 else 2
    function = F.adaptive_avg_pool1d if rank == 1 else F.adaptive_avg_pool2d
    x = array(*shape)
    lengths = shape[-rank:]
    output = [n if m is None else m for m, n in zip(pairs(size, rank), lengths, strict=True)]
    expected = np.empty((*shape[:-rank], *output))
    for place in itertools.product(*map(range, output)):
        part = tuple(
            slice(int(np.floor(k * n / m)), int(np.ceil((k + 1) * n / m)))
            for k, n, m in zip(place, lengths, output, strict=True)
        )
        expected[(..., *place)] = x[(..., *part)].mean(axis=tuple(range(-rank, 0)))
    np.testing.assert_allclose(function(x, size).numpy(), expected, atol=1e-13)
    assert gradcheck(lambda x: function(x, size), ng.tensor(x, requires_grad=True))


ADAPTIVE = [((2, 7), (3,)), ((2, 5, 6), (3, 4)), ((1, 4, 5, 3), (2, 5, 2))]


@pytest.mark.parametrize(("shape", "size"), ADAPTIVE, ids=str)
def test_adaptive_max_pool(shape, size):
    """Values, places and gradients of parts, with equal elements: the first place wins."""
    rank = len(size)
    x = rng.integers(0, 4, shape).astype(float)
    source = ng.tensor(x, requires_grad=True)
    y, places = getattr(F, f"adaptive_max_pool{rank}d")(source, size, return_indices=True)
    lengths = shape[-rank:]
    parts = [
        [slice(k * n // m, -(-(k + 1) * n // m)) for k in range(m)]
        for n, m in zip(lengths, size, strict=True)
    ]
    number = np.arange(np.prod(lengths)).reshape(lengths)
    expected, gradient = np.zeros(places.shape), np.zeros((len(x), number.size))
    for image, place in itertools.product(range(len(x)), np.ndindex(*size)):
        box = tuple(axis[i] for axis, i in zip(parts, place, strict=True))
        at = number[box].ravel()[np.argmax(x[image][box])]
        expected[image, *place] = at
        gradient[image, at] += 1
    np.testing.assert_array_equal(places.numpy(), expected)
    flat = places.numpy().reshape(len(x), -1)
    taken = np.take_along_axis(x.reshape(len(x), -1), flat, 1)
    np.testing.assert_array_equal(y.detach().numpy().reshape(taken.shape), taken)
    y.sum().backward()
    np.testing.assert_array_equal(source.grad.numpy(), gradient.reshape(shape))


def test_places_of_equal_elements_of_volumes():
    x = np.zeros((1, 4, 4, 4))
    y, places = F.max_pool3d(ng.tensor(x), 3, 1, return_indices=True)
    first = np.arange(64).reshape(4, 4, 4)[:2, :2, :2]
    np.testing.assert_array_equal(places.numpy(), first[None])
    assert y.numpy().flags.c_contiguous


def test_many_windows_are_not_python_objects():
    import tracemalloc

    x = np.ones((1, 1, 300_001), np.float32)
    for pool, arguments in [
        (F.avg_pool1d, (1, 1)), (F.max_pool1d, (1, 1)), (F.adaptive_avg_pool1d, (300_001,)),
        (F.adaptive_max_pool1d, (150_000,)),
    ]:  # fmt: skip
        pool(x[..., :10], *([5] if "adaptive" in pool.__name__ else [1]))
        tracemalloc.start()
        pool(x, *arguments)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100 * x.size  # some arrays of integers; tuples took above 200 each


def test_parts_beyond_memory_and_no_windows():
    with pytest.raises(ng.NumgradValueError, match="more than memory can have"):
        F.adaptive_max_pool1d(np.ones((2, 2, 2)), 2**62)
    assert F.adaptive_max_pool2d(np.ones((2, 4, 4)), (0, 3)).shape == (2, 0, 3)
    assert F.fractional_max_pool2d(np.ones((2, 4, 4)), 2, (0, 3)).shape == (2, 0, 3)
    assert F.fractional_max_pool3d(np.ones((0, 1, 4, 4, 4)), 2, 2).shape == (0, 1, 2, 2, 2)


@pytest.mark.slow(cases=0)
def test_any_layout_and_number_of_threads():
    x = array(6, 5, 64, 30).transpose(2, 3, 0, 1)
    before = ng.get_num_threads()
    try:
        for f in (lambda x: F.max_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 1, 1)):
            found = []
            for threads, given in ((2, x), (1, np.ascontiguousarray(x))):
                ng.set_num_threads(threads)
                given = ng.tensor(given, requires_grad=True)
                y = f(given)
                (y * y).sum().backward()
                found.append((y.detach().numpy(), given.grad.numpy()))
            for a, b in zip(*found, strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        ng.set_num_threads(before)


def test_empty_batches():
    for function in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d):
        x = ng.tensor(np.zeros((0, 2, 4, 4)), requires_grad=True)
        y = function(x, 2)
        assert y.shape == (0, 2, 2, 2)
        y.sum().backward()
        assert x.grad.shape == (0, 2, 4, 4)


@pytest.mark.parametrize(
    ("name", "shape", "arguments", "message"),
    [
        ("max_pool1d", (4,), (2,), "needs an input with 3 axes"),
        ("max_pool2d", (4, 4), (2,), "needs an input with 4 axes"),
        ("max_pool2d", (1, 4, 4), (0,), "kernel_size"),
        ("max_pool2d", (1, 4, 4), (2, 0), "stride"),
        ("max_pool2d", (1, 4, 4), (2, 2, 2), "more than half"),
        ("max_pool2d", (1, 4, 4), (2, 2, 0, 0), "dilation"),
        ("max_pool2d", (1, 4, 4), ((5, 2),), "does not fit"),
        ("max_pool1d", (1, 1), (2, 1, 2, 3), "lies outside"),
        ("max_pool2d", (1, 0, 4), (1,), "does not fit"),
        ("avg_pool1d", (1, 4), (5,), "does not fit"),
        ("avg_pool2d", (1, 4, 4), (3, 1, 2), "more than half"),
        ("avg_pool2d", (1, 4, 4), (2, 2, 0, False, True, 0), "divisor_override"),
        ("adaptive_avg_pool1d", (1, 0), (2,), "nothing to average"),
        ("adaptive_avg_pool2d", (1, 4, 4), ((1, 2, 3),), "output_size"),
        ("adaptive_avg_pool2d", (1, 4, 4), (-1,), "output_size"),
    ],
)
def test_errors(name, shape, arguments, message):
    with pytest.raises(ng.NumgradValueError, match=f"^{name}: .*{message}"):
        getattr(F, name)(np.ones(shape), *arguments)


def test_averages_need_floats():
    with pytest.raises(ng.NumgradTypeError, match="avg_pool1d"):
        F.avg_pool1d(np.ones((1, 4), int), 2)


LAYERS = [
    ("MaxPool1d", (3, 2), {"padding": 1}, (2, 3, 8)),
    ("MaxPool2d", ((3, 2),), {"dilation": 2, "ceil_mode": True}, (2, 3, 8, 9)),
    ("AvgPool1d", (3,), {"padding": 1, "count_include_pad": False}, (2, 3, 8)),
    ("AvgPool2d", (3, 2), {"divisor_override": 2}, (2, 3, 8, 8)),
    ("AdaptiveAvgPool1d", (3,), {}, (2, 3, 8)),
    ("AdaptiveAvgPool2d", ((None, 2),), {}, (3, 8, 8)),
]


def test_layers_call_the_functions():
    x = array(2, 3, 8, 8)
    layer = ng.nn.MaxPool2d(3, 2, 1, return_indices=True)
    for a, b in zip(layer(x), F.max_pool2d(x, 3, 2, 1, return_indices=True), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    layer = ng.nn.AvgPool2d((3, 2), padding=1, ceil_mode=True, count_include_pad=False)
    expected = F.avg_pool2d(x, (3, 2), None, 1, True, False)
    np.testing.assert_array_equal(layer(x).numpy(), expected.numpy())
    assert repr(layer) == "AvgPool2d(kernel_size=(3, 2), stride=(3, 2), padding=1)"
    assert repr(ng.nn.AdaptiveAvgPool2d((None, 2))) == "AdaptiveAvgPool2d(output_size=(None, 2))"


def test_layers_and_functions_agree_with_torch():
    torch = pytest.importorskip("torch")

    def compare(ours, theirs, x):
        t, n = torch.tensor(x, requires_grad=True), ng.tensor(x, requires_grad=True)
        expected, actual = theirs(t), ours(n)
        np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), atol=1e-13)
        g = array(*expected.shape)
        expected.backward(torch.tensor(g))
        actual.backward(ng.tensor(g))
        np.testing.assert_allclose(n.grad.numpy(), t.grad.numpy(), atol=1e-13)

    for kind, arguments, options, shape in LAYERS:
        ours = getattr(ng.nn, kind)(*arguments, **options)
        theirs = getattr(torch.nn, kind)(*arguments, **options)
        assert repr(ours) == repr(theirs)
        compare(ours, theirs, array(*shape))
    for table, kind in ((MAXIMA, "max"), (AVERAGES, "avg")):
        for shape, kernel, options in table:
            name = f"{kind}_pool{len(kernel)}d"
            ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
            compare(
                lambda x, f=ours, k=kernel, o=options: f(x, k, **o),
                lambda x, f=theirs, k=kernel, o=options: f(x, k, **o),
                array(*shape),
            )
