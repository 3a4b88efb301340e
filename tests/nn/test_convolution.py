"""Convolutions against a loop, SciPy, PyTorch and finite differences."""

import itertools

import numpy as np
import pytest
import scipy

import numgrad as ng
from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from numgrad.nn import convolution_plan
from numgrad.testing import gradcheck, gradgradcheck

F = ng.nn.functional
rng = np.random.default_rng(7)


def array(*shape, dtype="float64"):
    return rng.normal(size=shape).astype(dtype)


def pairs(value, rank):
    return value if isinstance(value, tuple) else (value,) * rank


def correlate(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """The definition of a convolution, one output at a time."""
    rank = w.ndim - 2
    stride, dilation = pairs(stride, rank), pairs(dilation, rank)
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(w.shape[2:], dilation, strict=True)]
        widths = [(t // 2, t - t // 2) for t in total]
    else:
        widths = [(p, p) for p in pairs(0 if padding == "valid" else padding, rank)]
    x = np.pad(x, [(0, 0), (0, 0), *widths])
    spans = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    out = [(n - m) // s + 1 for n, m, s in zip(x.shape[2:], spans, stride, strict=True)]
    y = np.zeros((len(x), len(w), *out), np.result_type(x, w))
    size, outputs = w.shape[1], len(w) // groups
    for place in itertools.product(*map(range, out)):
        part = tuple(
            slice(o * s, o * s + m, d)
            for o, s, m, d in zip(place, stride, spans, dilation, strict=True)
        )
        seen = x[(slice(None), slice(None), *part)]
        for o in range(len(w)):
            first = o // outputs * size
            terms = seen[:, first : first + size] * w[o]
            y[(slice(None), o, *place)] = terms.sum(axis=tuple(range(1, terms.ndim)))
    return y if b is None else y + b.reshape(-1, *(1,) * rank)


CASES = [
    # input, weight, options
    ((3, 2, 7), (4, 2, 3), {}),
    ((2, 4, 9), (4, 2, 2), {"stride": 2, "padding": 1, "groups": 2}),
    ((1, 1, 6), (2, 1, 3), {"dilation": 2, "padding": 2}),
    ((2, 3, 6), (2, 3, 4), {"padding": "same"}),
    ((5, 2, 6, 5), (3, 2, 3, 2), {"padding": (1, 0)}),
    ((3, 4, 7, 6), (6, 2, 3, 2), {"stride": (2, 3), "padding": (2, 0), "dilation": (1, 2),
                                  "groups": 2}),
    ((3, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "padding": "same"}),  # depthwise
    ((9, 3, 4, 4), (5, 3, 1, 1), {}),
    ((2, 3, 5, 5), (5, 3, 1, 1), {"stride": 2}),
    ((1, 2, 4, 40), (3, 2, 3, 3), {"padding": 1, "stride": (1, 2)}),  # one sample at a time
    ((1, 2, 4, 70), (3, 2, 3, 3), {"padding": 1}),
    ((6, 8, 20, 24), (16, 8, 3, 3), {"padding": 1}),
    ((37, 2, 3, 3), (3, 2, 2, 2), {"padding": "valid"}),  # several samples in a box
    ((1, 2, 30, 40), (5, 2, 3, 3), {"padding": 1}),  # several boxes
    ((2, 2, 20, 21), (4, 1, 3, 3), {"padding": 1, "stride": (1, 2), "groups": 2}),  # flat rows
    ((1, 2, 1400), (2, 2, 3), {"padding": 1}),
    ((1, 16, 1400), (16, 16, 3), {"padding": 1, "stride": 2}),
    ((8, 128, 3, 3), (64, 128, 1, 1), {}),
    ((2, 3, 4, 5, 6), (5, 3, 2, 3, 2), {"padding": (1, 0, 2), "stride": (2, 1, 1)}),
    ((1, 4, 3, 4, 4), (2, 2, 2, 1, 3), {"dilation": (1, 2, 2), "padding": 2, "groups": 2}),
    ((8, 15, 3, 3), (64, 15, 3, 3), {"padding": 1}),
    ((2, 1, 2, 2), (1, 1, 2, 2), {"padding": 4}),  # windows that see padding only
]  # fmt: skip


def convolution(w):
    return (F.conv1d, F.conv2d, F.conv3d)[w.ndim - 3]


@pytest.mark.parametrize(("x", "w", "options"), CASES, ids=str)
def test_convolution_is_its_definition(x, w, options):
    x, w = array(*x), array(*w)
    b = array(len(w))
    expected = correlate(x, w, b, **options)
    actual = convolution(w)(ng.tensor(x), w, b, **options)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-10, atol=1e-11)
    without = convolution(w)(ng.tensor(x), w, **options)
    np.testing.assert_allclose(without.numpy(), correlate(x, w, **options), atol=1e-10)


@pytest.mark.parametrize(("x", "w", "options"), CASES, ids=str)
def test_gradients_are_the_adjoint(x, w, options):
    """``<g, C(x, w)> = <C'(g, w), x> = <C'(g, x), w>`` and a sum, all by the loop's output."""
    x, w = ng.tensor(array(*x), requires_grad=True), ng.tensor(array(*w), requires_grad=True)
    b = ng.tensor(array(len(w)), requires_grad=True)
    y = convolution(w)(x, w, b, **options)
    g = array(*y.shape)
    y.backward(ng.tensor(g))
    dx, dw = array(*x.shape), array(*w.shape)
    along = np.sum(g * correlate(dx, w.detach().numpy(), **options))
    np.testing.assert_allclose(np.sum(x.grad.numpy() * dx), along, rtol=1e-9, atol=1e-9)
    along = np.sum(g * correlate(x.detach().numpy(), dw, **options))
    np.testing.assert_allclose(np.sum(w.grad.numpy() * dw), along, rtol=1e-9, atol=1e-9)
    expected = g.sum(axis=(0, *range(2, g.ndim)))
    np.testing.assert_allclose(b.grad.numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("places", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_boxes_of_places_and_complex_parts(places, monkeypatch):
    """The same identities where every axis is cut into boxes, of complex numbers too."""
    monkeypatch.setattr(convolution_plan, "_PLACES", places)
    for number, (x, w, options) in enumerate(
        [
            ((3, 2, 5, 4), (3, 2, 3, 2), {"padding": (1, 0), "stride": (2, 1)}),
            ((2, 4, 7), (6, 2, 2), {"groups": 2, "dilation": 3, "padding": 2}),
            ((1, 2, 3, 4, 3), (2, 2, 1, 2, 2), {"stride": (1, 1, 2), "padding": 1}),
            ((2, 17, 2, 2), (16, 17, 4, 3), {"padding": 2}),
        ]
    ):
        x, w, dx, dw = (
            array(*shape) + (1j * array(*shape) if number < 2 else 0) for shape in (x, w, x, w)
        )
        p, rank = {"stride": 1, "dilation": 1, "padding": 0, "groups": 1} | options, w.ndim - 2
        stride, dilation, padding = (
            pairs(p[name], rank) for name in ("stride", "dilation", "padding")
        )
        plan = convolution_plan.ConvolutionPlan(
            x.shape, w.shape, x.dtype, stride, tuple((n, n) for n in padding), dilation, p["groups"]
        )
        b = array(len(w)) * x.ravel()[0]
        y = plan.forward(x, w, b)
        np.testing.assert_allclose(y, correlate(x, w, b, **options), atol=1e-11)
        g = array(*y.shape) * y.ravel()[0]
        gx, gw = plan.input_gradient(g, w), plan.weight_gradient(x, g)
        np.testing.assert_allclose(np.sum(gx * dx), np.sum(g * correlate(dx, w, **options)))
        np.testing.assert_allclose(np.sum(gw * dw), np.sum(g * correlate(x, dw, **options)))


def test_flat_rows_with_strides():
    """Of few outputs rows of a frame are convolved whole, what lies between places left out."""
    x, w, dx, dw = (array(*shape, dtype="float32") for shape in ((2, 2, 20, 43), (4, 1, 3, 3)) * 2)
    pair = ((1, 2), ((1, 1), (1, 1)), (1, 1))
    plan = convolution_plan.ConvolutionPlan(x.shape, w.shape, x.dtype, *pair, 2)
    options = {"stride": (1, 2), "padding": 1, "groups": 2}
    y = plan.forward(x, w, None)
    np.testing.assert_allclose(y, correlate(x, w, **options), atol=1e-5)
    g = array(*y.shape, dtype="float32")
    gx, gw = plan.input_gradient(g, w), plan.weight_gradient(x, g)
    along = np.sum(g * correlate(dx, w, **options), dtype="float64")
    np.testing.assert_allclose(np.sum(gx * dx, dtype="float64"), along, atol=1e-3)
    along = np.sum(g * correlate(x, dw, **options), dtype="float64")
    np.testing.assert_allclose(np.sum(gw * dw, dtype="float64"), along, atol=1e-3)


def test_scipy_agrees():
    x, w = array(1, 1, 9, 8), array(1, 1, 3, 4)
    expected = scipy.signal.correlate2d(x[0, 0], w[0, 0], "valid")
    np.testing.assert_allclose(F.conv2d(x, w).numpy()[0, 0], expected, atol=1e-12)
    full = scipy.signal.convolve2d(x[0, 0], w[0, 0], "full")
    np.testing.assert_allclose(F.conv_transpose2d(x, w).numpy()[0, 0], full, atol=1e-12)
    x, w = array(1, 1, 9), array(1, 1, 4)
    expected = scipy.signal.correlate(x[0, 0], w[0, 0], "valid")
    np.testing.assert_allclose(F.conv1d(x, w).numpy()[0, 0], expected, atol=1e-12)


TRANSPOSED = [
    ((2, 3, 5), (3, 2, 3), {}),
    ((2, 4, 4), (4, 1, 2), {"stride": 3, "padding": 1, "output_padding": 2, "groups": 2}),
    ((3, 2, 4, 3), (2, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "output_padding": (1, 0)}),
    ((1, 4, 3, 3), (4, 2, 3, 3), {"dilation": 2, "groups": 2, "output_padding": 1, "padding": 1}),
    ((5, 2, 3, 3), (2, 3, 1, 1), {"stride": 2}),
    ((2, 16, 1, 2), (16, 3, 4, 4), {"stride": (1, 3)}),  # places that meet few elements
    ((1, 2, 2, 3, 4), (2, 3, 3, 2, 2), {"stride": 2, "padding": 1, "output_padding": 1}),
]


def transposed(w):
    return (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[w.ndim - 3]


@pytest.mark.parametrize(("x", "w", "options"), TRANSPOSED, ids=str)
def test_transposed_convolution_is_the_adjoint_of_one(x, w, options):
    x, w = array(*x), array(*w)
    b = array(w.shape[1] * options.get("groups", 1))
    y = transposed(w)(x, w, b, **options).numpy()
    rank = w.ndim - 2
    plain = {k: v for k, v in options.items() if k != "output_padding"}
    kernel = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, d, e in zip(
            x.shape[2:], w.shape[2:], *(
                pairs(options.get(key, default), rank)
                for key, default in (
                    ("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0),
                )
            ),
            strict=True,
        )
    ]  # fmt: skip
    assert y.shape[2:] == tuple(kernel)
    z = array(*y.shape)
    forward = correlate(z, w, **plain)[tuple(slice(n) for n in x.shape)]
    shift = np.sum(b * z.sum(axis=(0, *range(2, z.ndim))))
    np.testing.assert_allclose(np.sum(y * z), np.sum(x * forward) + shift, rtol=1e-10)


SMALL = [
    ((2, 2, 4), (2, 1, 2), {"groups": 2, "padding": 1, "stride": 2}),
    ((2, 1, 3, 3), (2, 1, 2, 2), {"dilation": (1, 2), "padding": 1}),
]


@pytest.mark.parametrize(("x", "w", "options"), SMALL, ids=str)
def test_gradients_of_gradients(x, w, options):
    x, w = array(*x), array(*w)
    for function, outputs in ((convolution(w), len(w)), (transposed(w), w.shape[1])):
        bias = array(outputs * (options.get("groups", 1) if function is transposed(w) else 1))
        given = x
        if function is transposed(w):
            given = array(len(x), len(w), *x.shape[2:])
        operands = [ng.tensor(a, requires_grad=True) for a in (given, w, bias)]

        def f(x, w, b, function=function):
            return function(x, w, b, **options)

        assert gradcheck(f, operands)
        assert gradgradcheck(f, operands)


def test_tangents_and_batches_of_examples():
    x, w, b = array(3, 2, 1, 4, 4), array(3, 2, 1, 3, 3), array(2)
    with BatchingInterpreter(3) as level:
        y = F.conv2d(level.wrap(ng.tensor(x)), level.wrap(ng.tensor(w)), b, padding=1)
        samples = level.unwrap(y)
    expected = [correlate(x[k], w[k], b, padding=1) for k in range(3)]
    np.testing.assert_allclose(samples.numpy(), expected, atol=1e-12)
    t = array(*x[0].shape)
    with dual_level():
        tangent = unpack_dual(F.conv2d(make_dual(ng.tensor(x[0]), ng.tensor(t)), w[0], b)).tangent
    np.testing.assert_allclose(tangent.numpy(), correlate(t, w[0]), atol=1e-12)


def test_unbatched_and_empty_inputs():
    x, w = array(2, 5, 5), array(3, 2, 3, 3)
    np.testing.assert_allclose(F.conv2d(x, w).numpy(), correlate(x[None], w)[0], atol=1e-12)
    assert F.conv_transpose2d(array(3, 4, 4), w).shape == (2, 6, 6)
    for function, shape in ((F.conv2d, (0, 2, 5, 5)), (F.conv_transpose2d, (0, 3, 5, 5))):
        empty = ng.tensor(np.zeros(shape), requires_grad=True)
        weight = ng.tensor(w, requires_grad=True)
        y = function(empty, weight, stride=2)
        assert y.shape[0] == 0
        y.sum().backward()
        assert empty.grad.shape == shape
        assert not weight.grad.numpy().any()


def test_strides_in_memory_do_not_matter():
    x, w = array(4, 6, 5, 2), array(2, 3, 3, 2)
    expected = correlate(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), w.transpose(0, 3, 1, 2))
    y = F.conv2d(x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-12)


@pytest.fixture
def two_threads():
    before = ng.get_num_threads()
    ng.set_num_threads(2)
    yield
    ng.set_num_threads(before)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(
    ("x", "w"), [((33, 8, 12, 12), (8, 8, 3, 3)), ((33, 8, 12, 12), (1, 8, 3, 3)),
                 ((1, 30, 12, 12), (130, 30, 3, 3))], ids=str,
)  # fmt: skip
def test_any_number_of_threads_gives_the_same_bits(x, w, two_threads):
    x, w = (ng.tensor(array(*shape), requires_grad=True) for shape in (x, w))
    found = []
    for count in (2, 1):
        ng.set_num_threads(count)
        y = F.conv2d(x, w, padding=1)
        found.append([y, *ng.autograd.grad(y.sum(), (x, w))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    expected = correlate(x.detach().numpy(), w.detach().numpy(), padding=1)
    np.testing.assert_allclose(found[0][0].detach().numpy(), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        (((3,), (2, 3, 2)), {}, ng.NumgradValueError, "conv1d: needs an input"),
        (((2, 3, 4), (2, 3, 2, 2)), {}, ng.NumgradValueError, "shape"),
        (((2, 3, 4), (2, 2, 2)), {}, ng.NumgradValueError, "groups=1"),
        (((2, 3, 4), (2, 1, 2)), {"groups": 3}, ng.NumgradValueError, "divisible by groups"),
        (((2, 3, 4), (2, 3, 6)), {"padding": 0}, ng.NumgradValueError, "larger than"),
        (((2, 3, 4), (2, 3, 3)), {"stride": 0}, ng.NumgradValueError, "stride"),
        (((2, 3, 4), (2, 3, 3)), {"dilation": (1, 1)}, ng.NumgradValueError, "dilation"),
        (((2, 3, 4), (2, 3, 3)), {"padding": -1}, ng.NumgradValueError, "padding"),
        (((2, 3, 4), (2, 3, 3)), {"padding": 0.5}, ng.NumgradTypeError, "padding"),
        (((2, 3, 4), (2, 3, 3)), {"padding": "full"}, ng.NumgradValueError, "'same' or 'valid'"),
        (((2, 3, 4), (2, 3, 3)), {"padding": "same", "stride": 2}, ng.NumgradValueError, "stride"),
        (((2, 3, 4), (2, 3, 0)), {}, ng.NumgradValueError, "empty"),
        (((2, 3, 4), (2, 3, 2), (3,)), {}, ng.NumgradValueError, "bias of shape"),
    ],
    ids=str,
)
def test_errors(arguments, options, kind, message):
    function = F.conv1d if len(arguments[0]) < 4 and len(arguments[1]) == 3 else F.conv2d
    with pytest.raises(kind, match=message):
        function(*[np.ones(shape) for shape in arguments], **options)


def test_errors_of_dtypes_and_transposed_convolutions():
    x, w = np.ones((1, 2, 4)), np.ones((2, 3, 2))
    with pytest.raises(ng.NumgradTypeError, match="float32, float64"):
        F.conv1d(x.astype(np.float32), np.ones((1, 2, 2)))
    with pytest.raises(ng.NumgradTypeError, match="int64"):
        F.conv1d(x.astype(int), w.astype(int))
    for options, message in (
        ({"output_padding": 1}, "output_padding"),
        ({"groups": 3}, "groups=3"),
        ({"padding": 3}, "use less padding"),
        ({"bias": np.ones(2)}, "bias of shape"),
    ):
        with pytest.raises(ng.NumgradValueError, match=message):
            F.conv_transpose1d(x, w, **options)


# ------------------------------------------------------------------------------------- layers


def test_layers_hold_their_options():
    layer = ng.nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), dilation=2, groups=2, bias=False,
                         padding_mode="reflect", dtype=np.float32)  # fmt: skip
    assert repr(layer) == (
        "Conv2d(4, 6, kernel_size=(3, 2), stride=(2, 2), padding=(1, 0), dilation=(2, 2), "
        "groups=2, bias=False, padding_mode=reflect)"
    )
    assert layer.weight.shape == (6, 2, 3, 2)
    assert layer.weight.dtype == np.float32
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    layer = ng.nn.ConvTranspose1d(4, 6, 3, 2, output_padding=1, padding=1)
    assert repr(layer) == (
        "ConvTranspose1d(4, 6, kernel_size=(3,), stride=(2,), padding=(1,), output_padding=(1,))"
    )
    assert layer.weight.shape == (4, 6, 3)
    bound = 1 / np.sqrt(6 * 3)
    for parameter in layer.parameters():
        values = parameter.detach().numpy()
        assert 0.5 * bound < np.abs(values).max() <= bound


def test_a_layer_of_float32_keeps_it():
    layer = ng.nn.Conv2d(1, 2, 3, dtype=np.float32)
    x = array(2, 1, 5, 5, dtype="float32")
    y = layer(x)
    assert y.dtype == np.float32
    w, b = (p.detach().numpy() for p in layer.parameters())
    np.testing.assert_allclose(y.detach().numpy(), correlate(x, w, b), rtol=1e-4, atol=1e-5)
    y.sum().backward()
    assert layer.weight.grad.dtype == layer.bias.grad.dtype == np.float32


@pytest.mark.parametrize(
    ("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_padding_modes(mode, numpy_mode):
    x = array(2, 3, 6, 5)
    layer = ng.nn.Conv2d(3, 2, (3, 2), padding=(2, 1), padding_mode=mode)
    w, b = (p.detach().numpy() for p in layer.parameters())
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2), (1, 1)), mode=numpy_mode)
    np.testing.assert_allclose(layer(x).detach().numpy(), correlate(padded, w, b), atol=1e-12)
    same = ng.nn.Conv2d(3, 2, (3, 2), padding="same", padding_mode=mode)
    assert same(x).shape == (2, 2, 6, 5)
    assert ng.nn.Conv2d(3, 2, 3, padding="valid", padding_mode=mode)(x).shape == (2, 2, 4, 3)


def test_output_size_chooses_the_output_padding():
    layer = ng.nn.ConvTranspose2d(2, 1, 3, stride=(3, 2), padding=1)
    x = array(1, 2, 4, 4)
    assert layer(x).shape == (1, 1, 10, 7)
    assert layer(x, output_size=(12, 8)).shape == (1, 1, 12, 8)
    assert layer(x[0], output_size=(1, 11, 7)).shape == (1, 11, 7)
    for size in ((13, 7), (9, 7), (10,)):
        with pytest.raises(ng.NumgradValueError, match="output_size"):
            layer(x, output_size=size)


@pytest.mark.parametrize(
    ("kind", "arguments", "options"),
    [
        ("Conv2d", (3, 4, 3), {"groups": 2}),
        ("Conv2d", (4, 3, 3), {"groups": 2}),
        ("Conv2d", (4, 4, 3), {"groups": 0}),
        ("Conv2d", (4, 4, 0), {}),
        ("Conv2d", (4, 4, (3, 3, 3)), {}),
        ("Conv1d", (4, 4, 3), {"padding": "same", "stride": 2}),
        ("Conv1d", (4, 4, 3), {"padding": "full"}),
        ("Conv1d", (4, 4, 3), {"padding_mode": "mirror"}),
        ("Conv1d", (4, 4, 3), {"device": "gpu"}),
        ("ConvTranspose1d", (4, 4, 3), {"padding": "same"}),
        ("ConvTranspose1d", (4, 4, 3), {"padding_mode": "reflect"}),
    ],
    ids=str,
)
def test_layers_refuse_what_does_not_fit(kind, arguments, options):
    with pytest.raises(ng.NumgradValueError):
        getattr(ng.nn, kind)(*arguments, **options)


def test_pad():
    x = array(2, 3, 4)
    for mode, name in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        expected = np.pad(x, ((0, 0), (1, 2), (3, 0)), mode=name)
        np.testing.assert_array_equal(F.pad(x, (3, 0, 1, 2), mode=mode).numpy(), expected)
    expected = np.pad(x, ((0, 0), (0, 0), (1, 2)), constant_values=3)
    np.testing.assert_array_equal(F.pad(x, (1, 2), value=3).numpy(), expected)
    np.testing.assert_array_equal(F.pad(x, (-1, 0, 0, -1)).numpy(), x[:, :-1, 1:])
    expected = np.pad(x, ((0, 0), (0, 0), (0, 2)))[..., 1:]
    np.testing.assert_array_equal(F.pad(x, (-1, 2)).numpy(), expected)
    x = ng.tensor(x, requires_grad=True)
    assert gradcheck(lambda x: F.pad(x, (-1, 2, 1, 0), mode="reflect"), x)
    for widths, mode in (
        ((1,), "constant"),
        ((4, 0), "reflect"),
        ((5, 0), "circular"),
        ((1, 1), "mirror"),
        ((-3, -2), "constant"),
        ((0,) * 8, "constant"),
    ):
        with pytest.raises(ng.NumgradValueError, match="pad: "):
            F.pad(x, widths, mode=mode)
    with pytest.raises(ng.NumgradValueError, match="takes no value"):
        F.pad(x, (1, 1), mode="reflect", value=1.0)


# ------------------------------------------------------------------------------------ PyTorch


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
def test_functions_agree_with_torch():
    torch = pytest.importorskip("torch")
    for table, family in ((CASES, "conv"), (TRANSPOSED, "conv_transpose")):
        for x, w, options in table:
            name = f"{family}{len(w) - 2}d"
            groups = options.get("groups", 1)
            outputs = w[0] if table is CASES else w[1] * groups
            arrays = [array(*shape) for shape in (x, w, (outputs,))]
            theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
            expected = getattr(torch.nn.functional, name)(*theirs, **options)
            g = array(*expected.shape)
            expected.backward(torch.tensor(g))
            ours = [ng.tensor(a, requires_grad=True) for a in arrays]
            actual = getattr(F, name)(*ours, **options)
            actual.backward(ng.tensor(g))
            np.testing.assert_allclose(
                actual.detach().numpy(), expected.detach().numpy(), rtol=1e-9, atol=1e-9
            )
            for a, b in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
def test_layers_agree_with_torch():
    torch = pytest.importorskip("torch")
    for kind, arguments, options, shape in (
        ("Conv1d", (4, 6, 3), {"padding": "same", "dilation": 2, "groups": 2}, (2, 4, 9)),
        ("Conv2d", (2, 3, (3, 2)), {"padding": (2, 1), "padding_mode": "circular"}, (2, 2, 5, 4)),
        ("Conv2d", (2, 3, 4), {"padding": "same", "padding_mode": "reflect"}, (2, 5, 4)),
        ("Conv2d", (2, 3, 3), {"padding": 3, "padding_mode": "replicate"}, (2, 2, 5, 4)),
        ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "groups": 2, "bias": False}, (2, 4, 3, 4)),
    ):
        theirs = getattr(torch.nn, kind)(*arguments, dtype=torch.float64, **options)
        ours = getattr(ng.nn, kind)(*arguments, **options)
        assert repr(ours) == repr(theirs)
        ours.load_state_dict({k: ng.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
        x = array(*shape)
        t = torch.tensor(x, requires_grad=True)
        expected = theirs(t)
        n = ng.tensor(x, requires_grad=True)
        actual = ours(n)
        np.testing.assert_allclose(actual.detach().numpy(), expected.detach().numpy(), atol=1e-12)
        g = array(*expected.shape)
        expected.backward(torch.tensor(g))
        actual.backward(ng.tensor(g))
        np.testing.assert_allclose(n.grad.numpy(), t.grad.numpy(), atol=1e-11)
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-11)
