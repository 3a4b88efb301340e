"""Functions composed of operations: PyTorch's values and gradients, and all transforms of them."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError
from numgrad.nn.loss import ctc as ctc_operation
from tests.nn import recorded
from tests.nn.agreement import agrees_with_itself, agrees_with_torch, found_by

RNG = np.random.default_rng(0)
CLASSES = np.array([2, 0, 1, 2])
SEVERAL = np.array([[0, -1, 2], [1, 2, -1], [-1, 0, 0], [2, 0, 1]])
BAGS, OFFSETS = np.array([0, 2, 3, 3, 1, 4, 4, 2]), np.array([0, 3, 3, 5])
ROWS = np.array([[0, 1, 2], [2, 2, 4]])
LABELS = np.array([[1, 1, 2], [3, 4, 0], [2, 2, 2], [4, 1, 3]])
PLACES = np.array([[[0, 3], [9, 10]], [[6, 2], [8, 5]]])


def R(*shape):
    return RNG.normal(size=shape)


def F(name, *args, **options):
    return lambda lib: lambda *x: getattr(lib.nn.functional, name)(*x, *args, **options)


def bag(indices, offsets=None, **options):
    def make(lib):
        def call(table, *factors):
            return lib.nn.functional.embedding_bag(
                lib.tensor(indices), table, None if offsets is None else lib.tensor(offsets),
                per_sample_weights=factors[0] if factors else None, **options,
            )  # fmt: skip

        return call

    return make


def ctc(times, lengths, joined=False, **options):
    def make(lib):
        def call(x):
            labels = LABELS
            if joined:
                pairs = zip(LABELS, lengths, strict=True)
                labels = np.concatenate([row[:n] for row, n in pairs])
            return lib.nn.functional.ctc_loss(
                lib.nn.functional.log_softmax(x, -1), lib.tensor(labels), lib.tensor(times),
                lib.tensor(lengths), **options,
            )  # fmt: skip

        return call

    return make


def unpool(size=None):
    return lambda lib: (
        lambda x: lib.nn.functional.max_unpool2d(x, lib.tensor(PLACES), 2, output_size=size)
    )


TABLE, SEQUENCE, IMAGE, VOLUME = R(5, 3), R(2, 3, 7), R(1, 2, 5, 6), R(1, 2, 3, 4, 5)
ROUGH, BLOCK = np.round(R(2, 3, 5, 7)), R(2, 4, 5, 4, 6)
GRID = 1.3 * R(2, 3, 4, 2)
SIGNS = np.where(RNG.random((4, 3)) < 0.5, -1, 1)
CASES = [
    ("embedding_bag", bag(BAGS, OFFSETS, padding_idx=2), [TABLE]),
    ("interpolate", F("interpolate", size=(3, 9), mode="bilinear"), [IMAGE]),
    ("unfold", F("unfold", (3, 2), dilation=(1, 2), padding=(1, 0), stride=2), [R(2, 3, 6, 5)]),
    ("ctc", ctc([7, 5, 4, 3], [3, 2, 3, 3], zero_infinity=True), [R(7, 4, 5)]),
    ("conv3d", F("conv3d", 1, (1, 0, 2), groups=2), [BLOCK, R(6, 2, 3, 2, 2), R(6)]),
    *[(f"bag-{m}-{p}", bag(BAGS, OFFSETS, mode=m, padding_idx=p), [TABLE])
      for m in ("max", "sum", "mean") for p in (None, 2)],
    *[(f"bags-{m}-{p}", bag(ROWS, mode=m, padding_idx=p), [TABLE])
      for m in ("max", "sum", "mean") for p in (None, 2)],
    ("bag-factors", bag(BAGS, OFFSETS, mode="sum", padding_idx=3), [TABLE, R(8)]),
    ("bags-factors", bag(ROWS, mode="sum"), [TABLE, R(2, 3)]),
    ("bag-last", bag(BAGS, np.append(OFFSETS, 8), include_last_offset=True), [TABLE]),
    ("bag-none", bag(BAGS[:0], np.array([0, 0]), mode="max"), [TABLE]),
    *[(f"{mode}-{size}", F("interpolate", size=size, mode=mode), [x])
      for mode in ("nearest", "nearest-exact", "area")
      for x, size in ((SEQUENCE, 11), (IMAGE, (3, 9)), (VOLUME, (5, 2, 5)))],
    *[(f"{mode}-{size}-{align}", F("interpolate", size=size, mode=mode, align_corners=align), [x])
      for mode, x, sizes in (
          ("linear", SEQUENCE, (4, 13)), ("bilinear", IMAGE, ((10, 12),)),
          ("bicubic", IMAGE, ((3, 9), (10, 12))), ("trilinear", VOLUME, ((2, 5, 9), (6, 4, 1))))
      for size in sizes for align in (False, True)],
    *[(f"{mode}-factor-{again}", F("interpolate", scale_factor=1.7, mode=mode,
                                   recompute_scale_factor=again), [IMAGE])
      for mode in ("nearest", "bilinear", "bicubic") for again in (False, True)],
    *[(f"{mode}-antialias-{size}", F("interpolate", size=size, mode=mode, antialias=True), [IMAGE])
      for mode in ("bilinear", "bicubic") for size in ((3, 4), (2, 9))],
    *[(f"grid-{mode}-{pad}-{align}", F("grid_sample", mode, pad, align), [R(2, 3, 4, 5), GRID])
      for mode, pad, align in (
          ("bilinear", "zeros", False), ("bilinear", "reflection", True),
          ("nearest", "border", False), ("bicubic", "reflection", False))],
    ("grid-volume", F("grid_sample", padding_mode="border", align_corners=False),
     [R(1, 2, 3, 4, 5), R(1, 2, 3, 2, 3)]),
    ("affine_grid", F("affine_grid", (2, 3, 4, 5), align_corners=True), [R(2, 2, 3)]),
    ("fold", F("fold", (6, 5), (3, 2), (1, 2), (1, 0), 2), [R(2, 18, 6)]),
    ("unfold-one", F("unfold", 2), [R(3, 6, 5)]),
    ("pixel_shuffle", F("pixel_shuffle", 2), [R(2, 8, 2, 3)]),
    ("pixel_unshuffle", F("pixel_unshuffle", 2), [R(2, 3, 4, 6)]),
    ("channel_shuffle", F("channel_shuffle", 3), [R(2, 6, 4)]),
    ("ctc-mean", ctc([7, 7, 5, 6], [3, 2, 3, 0]), [R(7, 4, 5)]),
    ("ctc-blank", ctc([7, 7, 5, 6], [3, 1, 3, 2], blank=5, reduction="sum"), [R(7, 4, 6)]),
    ("conv3d-same", F("conv3d", padding="same", dilation=(1, 2, 1)),
     [BLOCK, R(3, 4, 2, 3, 1), R(3)]),
    ("conv3d-one", F("conv3d", stride=2), [BLOCK[0], R(3, 4, 2, 3, 1)]),
    ("conv_transpose3d", F("conv_transpose3d", stride=(2, 1, 3), padding=(1, 0, 1),
                           output_padding=(1, 0, 2), groups=2, dilation=(2, 1, 1)),
     [R(2, 4, 3, 2, 3), R(4, 3, 2, 3, 2), R(6)]),
    ("avg_pool3d", F("avg_pool3d", (2, 3, 2), (1, 2, 2), (1, 1, 0), True, False), [BLOCK]),
    ("avg_pool3d-divisor", F("avg_pool3d", 2, divisor_override=5), [BLOCK]),
    ("max_pool3d", F("max_pool3d", (2, 3, 2), (1, 2, 2), (1, 1, 0), ceil_mode=True,
                     return_indices=True), [BLOCK]),
    ("max_pool3d-ties", F("max_pool3d", 2, 1, dilation=(2, 1, 3), return_indices=True),
     [np.round(BLOCK)]),
    ("adaptive_avg_pool3d", F("adaptive_avg_pool3d", (2, None, 4)), [BLOCK]),
    ("adaptive_max_pool1d", F("adaptive_max_pool1d", 3, return_indices=True), [SEQUENCE]),
    ("adaptive_max_pool2d", F("adaptive_max_pool2d", (3, None), return_indices=True), [ROUGH]),
    ("adaptive_max_pool3d", F("adaptive_max_pool3d", (2, None, 1), return_indices=True),
     [R(2, 3, 5, 4)]),
    ("max_unpool2d", unpool(), [R(2, 2, 2)]),
    ("max_unpool2d-size", unpool((5, 4)), [R(2, 2, 2)]),
    ("lp_pool1d", F("lp_pool1d", 2.0, 3, 2, True), [R(2, 3, 6)]),
    ("lp_pool2d", F("lp_pool2d", 3.0, (2, 3)), [abs(R(2, 3, 6, 6))]),
    ("lp_pool3d", F("lp_pool3d", 2.0, 2), [R(2, 3, 4, 4, 4)]),
    ("instance_norm", F("instance_norm", eps=0.1), [SEQUENCE]),
    ("local_response_norm", F("local_response_norm", 4, 0.5, k=2.0), [R(2, 5, 3)]),
    ("margin_ranking_loss", F("margin_ranking_loss", margin=0.3), [R(4, 3), R(4, 3), SIGNS]),
    ("hinge_embedding_loss", F("hinge_embedding_loss", reduction="sum"), [R(4, 3), SIGNS]),
    ("soft_margin_loss", F("soft_margin_loss"), [R(4, 3), SIGNS]),
    ("multi_margin_loss", F("multi_margin_loss", p=2, margin=0.5, reduction="none"),
     [R(4, 3), CLASSES]),
    ("multi_margin_loss-one", F("multi_margin_loss"), [R(3), CLASSES[:1]]),
    ("multi_margin_loss-weight",
     lambda lib: lambda x, t: lib.nn.functional.multi_margin_loss(
         x, t, weight=lib.tensor([0.5, 1.0, 2.0], dtype=lib.float64)), [R(4, 3), CLASSES]),
    ("multilabel_margin_loss", F("multilabel_margin_loss", reduction="none"), [R(4, 3), SEVERAL]),
    ("multilabel_margin_loss-one", F("multilabel_margin_loss"), [R(3), SEVERAL[1]]),
    ("multilabel_soft_margin_loss", F("multilabel_soft_margin_loss", reduction="none"),
     [R(4, 3), (SIGNS + 1) / 2]),
    ("triplet", F("triplet_margin_with_distance_loss", swap=True), [R(4, 3), R(4, 3), R(4, 3)]),
    ("glu", F("glu", 1), [R(2, 4, 3)]),
    ("softshrink", F("softshrink"), [R(4, 5)]),
    ("hardshrink", F("hardshrink"), [R(4, 5)]),
    ("hardswish", F("hardswish"), [3 * R(4, 5)]),
    ("tanhshrink", F("tanhshrink"), [R(4, 5)]),
    ("threshold", F("threshold", 0.1, 3.0), [R(4, 5)]),
    ("rrelu", F("rrelu"), [R(4, 5)]),
]  # fmt: skip
EDGES = np.array([-np.inf, -4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, np.inf, np.nan])


def nearest(mode, n):
    """Places that are chosen for many pairs of lengths, and for factors."""
    factors = (1.1, 2, 2.5, 0.3, 0.7, 3.3)

    def make(lib):
        def call():
            x = lib.tensor(np.arange(float(n)).reshape(1, 1, n))
            sizes = [{"size": m} for m in (1, 2, 3, 5, 8, 13, 19, 40, 59)]
            sizes += [{"scale_factor": f} for f in factors if int(x.shape[-1] * f)]
            return [lib.nn.functional.interpolate(x, mode=mode, **size) for size in sizes]

        return call

    return make


RECORDED = [
    *CASES,
    *[(f"edges-{name}", F(name, *args), [EDGES[1:-2]]) for name, *args in (
        ("hardsigmoid",), ("hardswish",), ("hardshrink",), ("softshrink",), ("threshold", 0.5, 7.0),
        ("relu6",), ("hardtanh", -1.0, 2.0), ("leaky_relu", 0.1), ("elu", 0.7), ("celu", 0.5),
        ("selu",))],
    *[(f"{mode}-of-{n}", nearest(mode, n), [])
      for mode in ("nearest", "nearest-exact") for n in (1, 4, 7, 13, 40)],
]  # fmt: skip
"""What ``recorded.json`` has PyTorch's results of."""

NAMES = [name for name, *_ in CASES]
ALL = pytest.mark.parametrize(("make", "arrays"), [case[1:] for case in CASES], ids=NAMES)


@pytest.mark.parametrize(("name", "make", "arrays"), RECORDED, ids=[name for name, *_ in RECORDED])
def test_values_first_and_second_gradients_are_those_recorded(name, make, arrays):
    with warnings.catch_warnings(action="ignore"):
        recorded.agree(name, arrays, found_by(ng, make(ng), arrays))


@pytest.mark.slow
def test_the_installed_pytorch_gives_what_is_recorded():
    torch = pytest.importorskip("torch")
    for name, make, arrays in RECORDED:
        with warnings.catch_warnings(action="ignore"):
            recorded.agree(name, arrays, found_by(torch, make(torch), arrays))


@pytest.mark.slow(cases=5)
@ALL
def test_values_first_and_second_gradients(make, arrays):
    torch = pytest.importorskip("torch")
    agrees_with_torch(torch, make(ng), make(torch), arrays)


@pytest.mark.slow(cases=3)
@ALL
def test_forward_mode_batches_and_compiled_code(make, arrays):
    agrees_with_itself(make(ng), arrays)


@pytest.mark.parametrize(
    "call",
    [F("hardsigmoid"), F("hardswish"), F("hardshrink"), F("softshrink"), F("threshold", 0.5, 7.0)],
)
def test_where_pieces_meet(call):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (ng, torch):
        x = lib.tensor(EDGES, requires_grad=True)
        y = call(lib)(x)
        y.sum().backward()
        found.append([np.asarray(y.detach()), np.asarray(x.grad)[:-1]])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_which_element_is_nearest(mode):
    torch = pytest.importorskip("torch")
    for n in range(1, 40, 3):
        x = np.arange(float(n)).reshape(1, 1, n)
        sizes = [{"size": m} for m in range(1, 60)]
        sizes += [{"scale_factor": f} for f in (1.1, 2, 2.5, 0.3, 0.7, 3.3) if int(n * f)]
        for size in sizes:
            ours = ng.nn.functional.interpolate(x, mode=mode, **size)
            theirs = torch.nn.functional.interpolate(torch.tensor(x), mode=mode, **size)
            np.testing.assert_array_equal(ours, theirs)


def test_joined_labels_and_impossible_ones():
    x = R(7, 4, 5)
    together = ctc([7, 5, 4, 5], [3, 2, 3, 3], reduction="none")(ng)(x)
    joined = ctc([7, 5, 4, 5], [3, 2, 3, 3], joined=True, reduction="none")(ng)(x)
    np.testing.assert_array_equal(together, joined)
    assert np.isinf(together.numpy()).tolist() == [False, False, True, False]
    for zero in (False, True):
        given = ng.tensor(x, requires_grad=True)
        times = [7, 5, 4, 5]
        loss = ctc(times, [3, 2, 3, 3], zero_infinity=zero, reduction="sum")(ng)(given)
        loss.backward()
        assert np.isinf(loss.item()) == (not zero)
        assert np.isnan(given.grad.numpy()[:, 2]).any() == (not zero)
        assert np.isfinite(given.grad.numpy()[:, [0, 1, 3]]).all()


def test_ctc_reads_and_writes_inside_its_arrays(monkeypatch):
    labels, met = np.array([[1, 1, 2], [3, 2, 1]]), []

    def choose(serial, parallel, work):
        def entry(x, states, skips, times, lasts, alpha, *others):
            met.append((alpha.shape, steps * states.shape[1], states.shape))

        return entry

    monkeypatch.setattr(ctc_operation, "threads", SimpleNamespace(choose=choose))
    for steps in (5, 1):
        ng.nn.functional.ctc_loss(R(steps, 2, 4), labels, [steps, steps], [3, 3])
    assert met == [((2, size), size, (2, 7)) for size in (35, 7)]
    monkeypatch.undo()
    # without a step there is one way to say nothing, and none to say something
    for lengths, expected in (([0, 0], [0, 0]), ([0, 3], [0, np.inf])):
        x = ng.tensor(np.zeros((0, 2, 4)), requires_grad=True)
        loss = ng.nn.functional.ctc_loss(x, labels, [0, 0], lengths, reduction="none")
        assert loss.tolist() == expected
        loss.sum().backward()
        assert x.grad.shape == (0, 2, 4)


def test_the_second_derivative_of_ctc_is_that_of_differences():
    labels = np.array([[1, 1], [3, 2]])

    def loss(x):
        return ng.nn.functional.ctc_loss(x, labels, [4, 3], [2, 2], reduction="sum")

    x = ng.tensor(R(4, 2, 4))
    hessian = ng.hessian(loss)(x).numpy().reshape(x.size, x.size)
    for k in (0, 5, 13, 27):
        step = np.zeros(x.size)
        step[k] = 1e-6
        step = step.reshape(x.shape)
        up, down = (ng.grad(loss)(x + s).numpy() for s in (step, -step))
        np.testing.assert_allclose(hessian[k], (up - down).ravel() / 2e-6, atol=1e-8)


def test_random_slopes_and_dropouts():
    ng.random.manual_seed(0)
    x = ng.tensor(np.full(20_000, -2.0), requires_grad=True)
    y = ng.nn.RReLU(0.1, 0.5)(x)
    y.sum().backward()
    assert 0.1 <= x.grad.min().item() < 0.11 < 0.49 < x.grad.max().item() <= 0.5
    np.testing.assert_allclose(y.detach(), x.grad * -2.0)
    values = ng.nn.AlphaDropout(0.3)(R(100_000)).numpy()
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1) < 0.02
    whole = ng.nn.FeatureAlphaDropout(0.5)(np.ones((50, 4, 3))).numpy()
    assert (whole == whole[:, :, :1]).all()
    assert len(np.unique(whole)) == 2
    one = ng.nn.functional.gumbel_softmax(ng.tensor(R(3, 4), requires_grad=True), 0.5, True, dim=0)
    assert one.sum(axis=0).tolist() == [1.0] * 4
    (one * R(3, 4)).sum().backward()


@pytest.mark.parametrize("name", ["Hardsigmoid", "Hardswish", "RReLU", "AlphaDropout"])
def test_inplace(name):
    leaf = ng.tensor(R(4, 5), requires_grad=True)
    x = leaf * 1.0
    y = getattr(ng.nn, name)(inplace=True)(x)
    assert y is x
    y.sum().backward()
    assert leaf.grad is not None
    with pytest.raises(NumgradError, match=r"_: the target .* is a leaf"):
        getattr(ng.nn, name)(inplace=True)(leaf)


PADS = {"Constant": (2.5,), "Zero": (), "Reflection": (), "Replication": (), "Circular": ()}


MODES = {"Constant": "constant", "Zero": "constant", "Reflection": "reflect",
         "Replication": "edge", "Circular": "wrap"}  # fmt: skip


@pytest.mark.parametrize("kind", PADS)
@pytest.mark.parametrize("rank", [1, 3, 2])
def test_pad_modules_are_numpys(kind, rank):
    x = R(2, 3, *(4, 5, 6)[:rank])
    value = {"constant_values": 2.5} if kind == "Constant" else {}
    for widths in (1, [1, 2, 0, 1, 2, 1][: 2 * rank]):
        pairs = [(1, 1)] * rank
        if widths != 1:  # of the last axis first
            pairs = [(widths[2 * k], widths[2 * k + 1]) for k in reversed(range(rank))]
        layer = getattr(ng.nn, f"{kind}Pad{rank}d")(widths, *PADS[kind])
        expected = np.pad(x, [(0, 0), (0, 0), *pairs], MODES[kind], **value)
        np.testing.assert_array_equal(layer(x), expected)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("kind", PADS)
@pytest.mark.parametrize("rank", [1, 3, 2])
def test_pad_modules(kind, rank):
    torch = pytest.importorskip("torch")
    x = R(2, 3, *(4, 5, 6)[:rank])
    for widths in (1, [1, 2, 0, 1, 2, 1][: 2 * rank]):
        ours, theirs = (
            getattr(m.nn, f"{kind}Pad{rank}d")(widths, *PADS[kind]) for m in (ng, torch)
        )
        assert repr(ours) == repr(theirs)
        np.testing.assert_array_equal(ours(x), theirs(torch.tensor(x)))


nn, f = ng.nn, ng.nn.functional


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f.glu(np.ones((2, 3))), r"axis -1 of shape \(2, 3\) has odd length"),
        (lambda: nn.Softshrink(-1.0), "lambd is -1.0; it must be at least 0"),
        (lambda: nn.RReLU(0.5, 0.1), "RReLU: lower is 0.5; it must be at most upper, 0.1"),
        (lambda: f.hardswish(np.arange(3)), "hardswish: needs a real floating dtype, got int64"),
        (lambda: nn.Softmax2d()(np.ones((2, 2))), r"Softmax2d: .* got shape \(2, 2\)"),
        (lambda: nn.ZeroPad2d((1, 2, 3)), r"ZeroPad2d: padding must be an integer, or 4 of them"),
        (lambda: nn.ConstantPad1d("a", 0.0), "ConstantPad1d: padding must be an integer or 2"),
        (lambda: nn.ReflectionPad1d(3)(np.ones((1, 2, 3))), "can add at most 2 elements"),
        (lambda: nn.ReplicationPad2d(1)(np.ones((2, 2))), r"needs an input with 4 axes"),
        (lambda: f.interpolate(IMAGE), "takes a size or a scale_factor"),
        (lambda: f.interpolate(IMAGE, 3, mode="linear"), r"\(N, C, length\) for 'linear'"),
        (lambda: f.interpolate(IMAGE, 3, mode="cubic"), "mode is 'cubic'; it must be one of"),
        (lambda: f.interpolate(IMAGE, 3, align_corners=True), "takes no align_corners"),
        (lambda: f.interpolate(IMAGE, scale_factor=-1.0), "a positive number or a tuple of 2"),
        (lambda: f.interpolate(IMAGE, 0), "size must be an integer, or a tuple of 2"),
        (lambda: nn.Upsample(scale_factor="a"), "Upsample: scale_factor is a number"),
        (lambda: f.grid_sample(IMAGE, R(2, 3, 3, 2)), "and a grid of shape .* do not fit"),
        (lambda: f.grid_sample(IMAGE, R(1, 3, 3, 2), "cubic"), "mode 'cubic' is not available"),
        (lambda: f.affine_grid(R(2, 2, 3), (1, 1, 4, 4)), r"theta of shape \(2, 2, 3\)"),
        (lambda: f.unfold(IMAGE, 9), r"a kernel of shape \(9, 9\) .* is larger than"),
        (lambda: f.fold(np.ones((2, 9, 4)), 4, 2), r"needs shape \(N, C \* 4, 9\)"),
        (lambda: f.pixel_shuffle(IMAGE, 2), "2 channels .* are no multiple of 4"),
        (lambda: f.channel_shuffle(IMAGE, 3), "a multiple of groups=3"),
        (lambda: f.conv3d(VOLUME, R(2, 3, 1, 1, 1)), "not fit for groups=1; the weight needs"),
        (lambda: f.conv3d(SEQUENCE, R(2, 2, 1, 1, 1)), "conv3d: needs an input with 5 axes"),
        (lambda: f.max_unpool2d(R(2, 2, 2), PLACES[:1], 2), "they need the same shape"),
        (lambda: f.max_unpool2d(R(2, 2, 2), PLACES, 2, output_size=(9, 9)), "within a stride"),
        (lambda: f.adaptive_max_pool2d(np.ones((1, 0, 2)), 2), "has no largest element"),
        (lambda: f.lp_pool1d(SEQUENCE, 0, 2), "norm_type must not be 0"),
        (lambda: f.instance_norm(R(2, 3, 1)), "more than one element in a channel"),
        (lambda: nn.InstanceNorm1d(4, affine=True)(SEQUENCE), "made for num_features=4"),
        (lambda: f.local_response_norm(R(2, 3), 2), "a positive size"),
        (lambda: f.multi_margin_loss(R(4, 3), CLASSES + 1), "targets must be below 3"),
        (lambda: f.multi_margin_loss(R(4, 3), CLASSES, p=3), "p is 3; it must be 1 or 2"),
        (lambda: f.multi_margin_loss(R(4, 3), CLASSES[:2]), r"the target then \(4,\)"),
        (lambda: f.multilabel_margin_loss(R(4, 3), SEVERAL / 1), "classes, integers; got dtype"),
        (lambda: nn.MarginRankingLoss(reduction="all"), "reduction must be one of"),
        (lambda: nn.TripletMarginWithDistanceLoss(margin=0.0), "margin must be positive"),
        (lambda: f.embedding_bag(BAGS, TABLE), "give one axis and offsets"),
        (lambda: f.embedding_bag(BAGS, TABLE, [1, 2]), r"offsets \[1, 2\] must begin with 0"),
        (lambda: f.embedding_bag(BAGS + 1, TABLE, [0]), "index 5 in a table of 5 rows"),
        (lambda: f.embedding_bag(ROWS, TABLE, per_sample_weights=R(2, 3)), "the mode is 'sum'"),
        (lambda: nn.EmbeddingBag(3, 2, mode="min"), "EmbeddingBag: mode is 'min'"),
        (lambda: nn.EmbeddingBag(3, 2, mode="max", sparse=True), "mode 'max' has no sparse"),
        (lambda: ctc([8, 1, 1, 1], [1] * 4)(ng)(R(7, 4, 5)), r"input_lengths .* from 0 to 7"),
        (lambda: ctc([7] * 4, [4] * 4)(ng)(R(7, 4, 5)), r"target_lengths .* from 0 to 3"),
        (lambda: ctc([7] * 4, [3, 2, 3, 3])(ng)(R(7, 4, 4)), "targets run from 1 to 4"),
        (lambda: ctc([7] * 4, [3] * 4, blank=4)(ng)(R(7, 4, 5)), "the blank, 4, cannot be a label"),
        (lambda: ctc([7] * 4, [3] * 4, blank=9)(ng)(R(7, 4, 5)), "blank is 9; classes run"),
        (lambda: f.ctc_loss(R(7, 4, 5), LABELS, [7] * 3, [3] * 4), "one for each of 4 examples"),
        (lambda: f.ctc_loss(R(7), LABELS, [7], [3]), r"log_probs of shape \(7,\)"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises(NumgradError, match=message) as caught:
        call()
    assert isinstance(caught.value, TypeError | ValueError | IndexError)


@pytest.mark.parametrize(
    ("image", "grid"),
    [
        ((1, 2, 4), (1, 3, 1)), ((1, 2, 3, 3, 3, 3), (1, 2, 2, 2, 2, 4)), ((1, 2, 3, 4), (1, 3, 2)),
        ((2, 2, 3, 4), (1, 3, 3, 2)), ((1, 2, 3, 4), (1, 3, 3, 3)),
        ((1, 2, 3, 4, 5), (1, 2, 2, 2, 2)),
        ((1, 0, 3, 4), (1, 3, 3, 2)), ((1, 2, 0, 4), (1, 3, 3, 2)), ((1, 2, 3, 0), (1, 3, 3, 2)),
    ],
)  # fmt: skip
def test_images_and_grids_that_do_not_fit_are_refused(image, grid):
    with pytest.raises(ng.NumgradValueError, match=r"and a grid of shape .* do not fit"):
        ng.nn.functional.grid_sample(np.ones(image), np.ones(grid))
