"""Losses against their definitions in NumPy and SciPy, and against PyTorch."""

import itertools

import numpy as np
import pytest
from scipy import special

import numgrad as ng
from numgrad.nn import functional as F

nn = ng.nn
RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((2, 4, 3))
UNIT = RNG.uniform(0.05, 0.95, (2, 4, 3))
COUNT = RNG.integers(0, 5, (4, 3)).astype(float)
RATE, VARIANCE = RNG.uniform(0.2, 3, (2, 4, 3))
LOG_P = np.log(UNIT)
WEIGHT, POS_WEIGHT = RNG.uniform(0.5, 2, (2, 3))
SIDE = np.array([1.0, -1.0, 1.0, -1.0])


def smooth(x, t, beta):
    d = np.abs(x - t)
    return np.where(d < beta, d**2 / (2 * beta), d - beta / 2)


def logits(x, t, pos_weight=1.0):
    return pos_weight * t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x)


def stirling(t):
    t = np.maximum(t, 1.0)
    return np.where(t > 1, t * np.log(t) - t + np.log(2 * np.pi * t) / 2, 0)


def normal(x, t, v):
    return (np.log(v) + (x - t) ** 2 / v) / 2


def cosine(a, b):
    return np.sum(a * b, -1) / np.sqrt((np.sum(a * a, -1) + 1e-12) * (np.sum(b * b, -1) + 1e-12))


def embedding(a, b, side, margin):
    return np.where(side == 1, 1 - cosine(a, b), np.maximum(cosine(a, b) - margin, 0))


def distance(a, b, p, eps):
    return np.linalg.norm(a - b + eps, p, axis=-1)


def triplet(a, near, far, margin=1.0, p=2.0, eps=1e-6, swap=False):
    other = distance(a, far, p, eps)
    other = np.minimum(other, distance(near, far, p, eps)) if swap else other
    return np.maximum(margin + distance(a, near, p, eps) - other, 0)


# Module, its options, its operands, the losses of single elements.
CASES = [
    ("MSELoss", {}, tuple(REAL), lambda x, t: (x - t) ** 2),
    ("L1Loss", {}, tuple(REAL), lambda x, t: np.abs(x - t)),
    ("SmoothL1Loss", {}, tuple(REAL), lambda x, t: smooth(x, t, 1.0)),
    ("SmoothL1Loss", {"beta": 0.3}, tuple(REAL), lambda x, t: smooth(x, t, 0.3)),
    ("SmoothL1Loss", {"beta": 0.0}, tuple(REAL), lambda x, t: np.abs(x - t)),
    ("HuberLoss", {"delta": 0.7}, tuple(REAL), lambda x, t: special.huber(0.7, x - t)),
    ("BCELoss", {}, tuple(UNIT), lambda x, t: -t * np.log(x) - (1 - t) * np.log(1 - x)),
    ("BCELoss", {"weight": WEIGHT}, tuple(UNIT),
     lambda x, t: WEIGHT * (-t * np.log(x) - (1 - t) * np.log(1 - x))),
    ("BCEWithLogitsLoss", {}, (REAL[0], UNIT[1]), logits),
    ("BCEWithLogitsLoss", {"weight": WEIGHT, "pos_weight": POS_WEIGHT}, (REAL[0], UNIT[1]),
     lambda x, t: WEIGHT * logits(x, t, POS_WEIGHT)),
    ("KLDivLoss", {}, (LOG_P[0], UNIT[1]), lambda x, t: special.xlogy(t, t) - t * x),
    ("KLDivLoss", {"log_target": True}, tuple(LOG_P), lambda x, t: np.exp(t) * (t - x)),
    ("PoissonNLLLoss", {}, (REAL[0], COUNT), lambda x, t: np.exp(x) - t * x),
    ("PoissonNLLLoss", {"full": True}, (REAL[0], COUNT),
     lambda x, t: np.exp(x) - t * x + stirling(t)),
    ("PoissonNLLLoss", {"log_input": False, "eps": 0.1}, (RATE, COUNT),
     lambda x, t: x - t * np.log(x + 0.1)),
    ("GaussianNLLLoss", {}, (*REAL, VARIANCE),
     normal),
    ("GaussianNLLLoss", {"full": True, "eps": 0.9}, (*REAL, VARIANCE),
     lambda x, t, v: normal(x, t, np.maximum(v, 0.9)) + np.log(2 * np.pi) / 2),
    ("CosineEmbeddingLoss", {}, (*REAL, SIDE), lambda a, b, t: embedding(a, b, t, 0.0)),
    ("CosineEmbeddingLoss", {"margin": -0.5}, (*REAL, SIDE),
     lambda a, b, t: embedding(a, b, t, -0.5)),
    ("TripletMarginLoss", {}, (*REAL, UNIT[0]), triplet),
    ("TripletMarginLoss", {"margin": 0.5, "p": 1.0, "eps": 0.01, "swap": True}, (*REAL, UNIT[0]),
     lambda *x: triplet(*x, 0.5, 1.0, 0.01, True)),
]  # fmt: skip
REDUCTIONS = {"none": np.asarray, "mean": np.mean, "sum": np.sum}


def text(options):
    return "".join(f"-{k}={v if np.ndim(v) == 0 else '...'}" for k, v in options.items())


cases = pytest.mark.parametrize(
    ("name", "options", "operands", "formula"), CASES, ids=[c[0] + text(c[1]) for c in CASES]
)
reductions = pytest.mark.parametrize("reduction", REDUCTIONS)
quiet = pytest.mark.filterwarnings("ignore:.*batchmean:UserWarning")


@cases
@reductions
@quiet
def test_formula(name, options, operands, formula, reduction):
    layer = getattr(nn, name)(**options, reduction=reduction)
    losses = formula(*operands)
    loss = layer(*map(ng.tensor, operands))
    np.testing.assert_allclose(loss.numpy(), REDUCTIONS[reduction](losses), rtol=1e-12, atol=1e-15)
    assert layer(*operands).tolist() == loss.tolist()  # ndarrays


@cases
@quiet
def test_gradients_of_all_operands(name, options, operands, formula):
    """By differences, of the target too, with a cotangent that differs from element to element."""
    layer = getattr(nn, name)(**options, reduction="none")
    if "eps" in options and name.startswith("Gauss"):
        operands = (*operands[:2], operands[2] + 1)  # below eps the gradient is not the slope
    count = 2 if name.startswith("Cosine") else len(operands)
    rest = operands[count:]
    given = [ng.tensor(a + 0.01, requires_grad=True) for a in operands[:count]]
    ng.testing.gradcheck(lambda *x: layer(*x, *rest), given)


@pytest.mark.slow
@cases
@reductions
@quiet
def test_torch(name, options, operands, formula, reduction):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (ng, torch):
        given = {k: v if np.ndim(v) == 0 else lib.tensor(v) for k, v in options.items()}
        layer = getattr(lib.nn, name)(**given, reduction=reduction)
        count = 2 if name.startswith("Cosine") else len(operands)
        inputs = [lib.tensor(a, requires_grad=True) for a in operands[:count]]
        loss = layer(*inputs, *[lib.tensor(a) for a in operands[count:]])
        g = np.random.default_rng(3).standard_normal(tuple(loss.shape))
        first = lib.autograd.grad(loss, inputs, lib.tensor(g), create_graph=True)
        if "eps" in options:  # what is cut off there has a slope in PyTorch
            first, inputs = first[:2], inputs[:2]
        second = lib.autograd.grad(sum((f * f).sum() for f in first), inputs, allow_unused=True)
        values = [loss, *first, *second]
        found.append([None if v is None else v.numpy(force=True) for v in values])
        found[-1].append(list(layer.state_dict()))
        found[-1].append(repr(layer))
    for ours, theirs in zip(*found, strict=True):
        if isinstance(ours, list | str):
            assert ours == theirs
            continue
        ours, theirs = (np.zeros(1) if v is None else v for v in (ours, theirs))
        if np.isnan(theirs).any():  # PyTorch's second derivative of Stirling's term, where it is 0
            assert options == {"full": True}
            ours, theirs = (np.where(np.isnan(theirs), 0, v) for v in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@cases
@quiet
def test_empty(name, options, operands, formula):
    layer = getattr(nn, name)(**options, reduction="none")
    assert layer(*[a[:0] for a in operands]).shape == formula(*[a[:0] for a in operands]).shape
    total = getattr(nn, name)(**options, reduction="sum")
    assert total(*[a[:0] for a in operands]).item() == 0


@pytest.mark.parametrize("name", sorted({c[0] for c in CASES} | {"CrossEntropyLoss", "NLLLoss"}))
def test_unknown_reduction(name):
    with pytest.raises(ValueError, match=rf"{name}: .*'none', 'mean', 'sum'.*'average'"):
        getattr(nn, name)(reduction="average")


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_warning_of_shapes_that_broadcast(function):
    with pytest.warns(UserWarning, match=rf"{function.__name__}.*\(4, 3\).*\(3,\)") as caught:
        loss = function(REAL[0], REAL[1, 0])
    assert caught[0].filename == __file__
    assert loss.shape == ()
    with (
        pytest.warns(UserWarning, match="same size"),
        pytest.raises(ValueError, match=r"\(4, 3\).*\(2,\)"),
    ):
        function(REAL[0], np.ones(2))


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.huber_loss])
@reductions
def test_weights_of_elements(function, reduction):
    weight = RNG.uniform(0.5, 2, (4, 3))
    loss = function(*REAL, reduction=reduction, weight=weight)
    losses = weight * function(*REAL, reduction="none").numpy()
    expected = REDUCTIONS[reduction](losses)
    if reduction == "mean" and function is not F.huber_loss:
        expected = losses.sum() / weight.sum()
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-12)
    torch = pytest.importorskip("torch")
    peer = getattr(torch.nn.functional, function.__name__)
    given = [torch.tensor(a) for a in (*REAL, weight)]
    theirs = peer(given[0], given[1], reduction=reduction, weight=given[2])
    np.testing.assert_allclose(loss.numpy(), theirs.numpy(), rtol=1e-12)


def test_complex_distance():
    z = ng.tensor([3 + 4j, 0j], requires_grad=True)
    loss = F.l1_loss(z, np.zeros(2), reduction="sum")
    loss.backward()
    assert loss.item() == 5.0
    np.testing.assert_allclose(z.grad.numpy(), [0.6 + 0.8j, 0])
    with pytest.raises(TypeError, match="complex128"):
        F.mse_loss(z, np.zeros(2))


def test_binary_cross_entropy_of_certain_errors():
    x = ng.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(x, np.array([1.0, 0.0, 0.0, 1.0]), reduction="none")
    assert loss.tolist() == [100, 100, 0, 0]
    loss.sum().backward()
    assert x.grad.tolist() == [-1e12, 1e12, 0, 0]


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_binary_cross_entropy_wants_probabilities(bad):
    with pytest.raises(ValueError, match=r"binary_cross_entropy: .*sigmoid.*run from"):
        F.binary_cross_entropy([0.5, bad], [0.0, 1.0])


def test_extreme_binary_logits():
    x = ng.tensor([1e4, -1e4, 1e4, -1e4], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, np.array([1.0, 1.0, 0.0, 0.0]), reduction="none")
    assert loss.tolist() == [0, 1e4, 1e4, 0]
    loss.sum().backward()
    assert x.grad.tolist() == [0, -1, 1, 0]
    tail = F.binary_cross_entropy_with_logits([50.0], [1.0]).item()
    assert tail == pytest.approx(np.exp(-50.0), rel=1e-12)


def test_gradient_of_pos_weight():
    w = ng.tensor(POS_WEIGHT, requires_grad=True)
    ng.testing.gradcheck(
        lambda w: F.binary_cross_entropy_with_logits(REAL[0], UNIT[1], pos_weight=w), [w]
    )


def test_binary_shapes_must_be_equal():
    for function in (F.binary_cross_entropy, F.binary_cross_entropy_with_logits):
        with pytest.raises(ValueError, match=rf"{function.__name__}: .*\(4, 3\).*\(3,\)"):
            function(UNIT[0], UNIT[1, 0])


@pytest.mark.parametrize("log_target", [False, True])
def test_batchmean(log_target):
    target = LOG_P[1] if log_target else UNIT[1]
    total = F.kl_div(LOG_P[0], target, reduction="sum", log_target=log_target)
    mean = nn.KLDivLoss(reduction="batchmean", log_target=log_target)(LOG_P[0], target)
    assert mean.item() == pytest.approx(total.item() / 4, rel=1e-15)
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(LOG_P[0], target, log_target=log_target)
    zero = F.kl_div([-1.0], [0.0], reduction="sum")
    assert zero.item() == 0


@pytest.mark.parametrize("shape", [(4, 3), (4,), (4, 1), ()])
def test_shapes_of_variances(shape):
    var = RNG.uniform(0.5, 2, shape)
    spread = np.broadcast_to(var[:, None] if shape == (4,) else var, (4, 3))
    expected = np.mean(np.log(spread) + (REAL[0] - REAL[1]) ** 2 / spread) / 2
    assert F.gaussian_nll_loss(*REAL, var).item() == pytest.approx(expected, rel=1e-12)


def test_bad_variances():
    with pytest.raises(ValueError, match=r"\(4, 3\).*\(3,\)"):
        F.gaussian_nll_loss(*REAL, np.ones(3))
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(*REAL, -1.0)
    with pytest.raises(ValueError, match="eps"):
        F.gaussian_nll_loss(*REAL, 1.0, eps=0.0)
    var = ng.tensor(np.zeros((4, 3)), requires_grad=True)
    F.gaussian_nll_loss(*REAL, var, eps=0.5, reduction="sum").backward()
    np.testing.assert_allclose(var.grad.numpy(), (1 - (REAL[0] - REAL[1]) ** 2 / 0.5))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity(dim):
    a, b = REAL
    norms = np.linalg.norm(a, axis=dim) * np.linalg.norm(b, axis=dim)
    found = F.cosine_similarity(a, b, dim)
    np.testing.assert_allclose(found.numpy(), np.sum(a * b, dim) / norms, rtol=1e-12)
    x = ng.tensor([[0.0, 0.0], [1e-12, 0.0]], requires_grad=True)
    F.cosine_similarity(x, np.ones(2)).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


@pytest.mark.parametrize(
    ("p", "keepdim"), list(itertools.product([0.5, 1, 2, 3, np.inf], [False, True]))
)
def test_pairwise_distance(p, keepdim):
    found = F.pairwise_distance(*REAL, p, keepdim=keepdim).numpy()
    expected = np.sum(np.abs(REAL[0] - REAL[1] + 1e-6) ** p, -1) ** (1 / p)
    expected = np.abs(REAL[0] - REAL[1] + 1e-6).max(-1) if p == np.inf else expected
    np.testing.assert_allclose(found, expected[:, None] if keepdim else expected, rtol=1e-12)


def test_bad_options():
    for function, options, words in (
        (F.smooth_l1_loss, {"beta": -1.0}, "beta"),
        (F.huber_loss, {"delta": 0.0}, "delta"),
        (lambda a, b, margin: F.triplet_margin_loss(a, b, b, margin), {"margin": 0.0}, "margin"),
    ):
        with pytest.raises(ValueError, match=words):
            function(*REAL, **options)
    with pytest.raises(ValueError, match="TripletMarginLoss"):
        nn.TripletMarginLoss(margin=-1.0)
    with pytest.raises(ValueError, match="2, 2 and 1 axes"):
        F.triplet_margin_loss(*REAL, REAL[0, 0])
    with pytest.raises(ValueError, match=r"cosine_embedding_loss.*\(4, 3\).*\(4, 1\)"):
        F.cosine_embedding_loss(*REAL, SIDE[:, None])


def test_vectors_of_a_single_pair():
    loss = F.cosine_embedding_loss(REAL[0, 0], REAL[1, 0], np.array(1.0))
    assert loss.item() == pytest.approx(1 - cosine(REAL[0, 0], REAL[1, 0]), rel=1e-12)


def test_common_losses_are_two_nodes():
    for function in (F.mse_loss, F.l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
        x = ng.tensor(REAL[0], requires_grad=True)
        node = function(x, UNIT[0]).grad_fn
        assert node.name() == "MeanBackward"
        assert node.next_functions[0][0].next_functions[0][0].name() == "AccumulateGrad"


def test_float32():
    x = ng.tensor(REAL[0].astype(np.float32), requires_grad=True)
    for function in (F.mse_loss, F.smooth_l1_loss):
        loss = function(x, REAL[1].astype(np.float32))
        loss.backward()
        assert loss.dtype == x.grad.dtype == np.float32
