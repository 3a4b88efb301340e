"""Cross entropy and negative log-likelihood of classes: every option, shape and extreme."""

import itertools

import numpy as np
import pytest
from scipy import special

import numgrad as ng
from numgrad.autograd.batching.batch import BatchingInterpreter
from numgrad.core.op import OPS
from numgrad.core.plan import Call
from numgrad.nn import functional as F

inf, nan = np.inf, np.nan
SHAPES = [(5, 3), (3,), (2, 3, 4), (2, 3, 2, 2), (2, 1), (0, 3), (2, 3, 0)]
OPTIONS = list(itertools.product(("none", "sum", "mean"), (False, True), (0.0, 0.2)))
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def problem(shape, *, weighted=True, dtype=np.float64):
    rng = np.random.default_rng(list(shape))
    axis = 0 if len(shape) == 1 else 1
    classes = shape[axis]
    x = (3 * rng.standard_normal(shape)).astype(dtype)
    target = rng.integers(0, classes, shape[:axis] + shape[axis + 1 :])
    if target.size > 2:
        target.flat[1] = -100
    return x, target, rng.uniform(0.5, 2, classes).astype(dtype) if weighted else None


def expected(log_p, target, weight, reduction, smoothing=0.0):
    """The definition, one row after the other."""
    axis = 0 if log_p.ndim == 1 else 1
    classes = log_p.shape[axis]
    weight = np.ones(classes) if weight is None else weight.astype(float)
    rows = np.moveaxis(log_p, axis, -1).reshape(-1, classes)
    losses, total = np.zeros(target.size), 0.0
    for k, (row, t) in enumerate(zip(rows, target.ravel(), strict=True)):
        if t != -100:
            losses[k] = -(1 - smoothing) * weight[t] * row[t]
            losses[k] -= smoothing / classes * (weight @ row)
            total += weight[t]
    if reduction == "none":
        return losses.reshape(target.shape)
    if reduction == "sum":
        return losses.sum()
    return losses.sum() / total if total else nan


@shapes
@pytest.mark.parametrize(("reduction", "weighted", "smoothing"), OPTIONS)
def test_cross_entropy(shape, reduction, weighted, smoothing):
    x, target, weight = problem(shape, weighted=weighted)
    axis = 0 if len(shape) == 1 else 1
    loss = F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=smoothing)
    log_p = special.log_softmax(x, axis)
    np.testing.assert_allclose(
        loss.numpy(), expected(log_p, target, weight, reduction, smoothing), rtol=1e-12
    )
    assert loss.dtype == np.float64


@shapes
@pytest.mark.parametrize(
    ("reduction", "weighted"), list(itertools.product(("none", "sum", "mean"), (0, 1)))
)
def test_nll_loss(shape, reduction, weighted):
    x, target, weight = problem(shape, weighted=weighted)
    loss = F.nll_loss(x, target, weight, reduction=reduction)
    np.testing.assert_allclose(loss.numpy(), expected(x, target, weight, reduction), rtol=1e-12)


@shapes
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_backward_kernel_is_the_formula(name, reduction, shape):
    op = OPS[name]
    for weighted, smoothing in ((False, 0.0), (True, 0.2)):
        x, target, weight = problem(shape, weighted=weighted)
        params = {"ignore_index": -100, "reduction": reduction}
        if name == "cross_entropy":
            params["label_smoothing"] = smoothing
        out, call = op.run((x, target, weight), params)
        g = np.asarray(np.random.default_rng(0).standard_normal(out.shape))
        named = {"x": x, "target": target, "weight": weight}
        named |= dict(zip(op.auxiliaries, call.aux, strict=True))
        saved = [named[n] for n in call.saves(1)]
        actual, _ = call.backward(1, g, saved)
        with np.errstate(invalid="ignore", divide="ignore"):
            formula, _ = Call.backward(call, 1, g, saved)
        np.testing.assert_allclose(actual[0], formula[0], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4)])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_gradients_by_differences(shape, smoothing):
    x, target, weight = problem(shape)
    x = ng.tensor(x, requires_grad=True)

    def loss(x):
        return F.cross_entropy(x, target, weight, label_smoothing=smoothing)

    ng.testing.gradcheck(loss, [x])
    ng.testing.gradgradcheck(loss, [x])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(5, 3), (3,), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("reduction", "weighted", "smoothing"), OPTIONS)
def test_torch(shape, dtype, reduction, weighted, smoothing):
    torch = pytest.importorskip("torch")
    x, target, weight = problem(shape, weighted=weighted, dtype=dtype)
    found = []
    for lib, f in ((ng, F), (torch, torch.nn.functional)):
        logits = lib.tensor(x, requires_grad=True)
        options = {"weight": None if weight is None else lib.tensor(weight)}
        options["reduction"] = reduction
        given = lib.tensor(target)
        values = []
        for loss in (
            f.cross_entropy(logits, given, label_smoothing=smoothing, **options),
            f.nll_loss(logits, given, **options),
        ):
            g = np.random.default_rng(1).standard_normal(tuple(loss.shape)).astype(dtype)
            (first,) = lib.autograd.grad(loss, logits, lib.tensor(g))
            values += [loss.detach(), first]
        found.append([np.asarray(v) for v in values])
    tolerance = (
        {"rtol": 1e-11, "atol": 1e-13} if dtype == "float64" else {"rtol": 2e-5, "atol": 2e-6}
    )
    for ours, theirs in zip(*found, strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, **tolerance)


PROBABILITIES = list(itertools.product([(5, 3), (3,), (2, 3, 4)], OPTIONS))


def test_losses_of_probabilities():
    for shape, options in PROBABILITIES:
        of_probabilities(shape, *options)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(("shape", "options"), PROBABILITIES)
def test_losses_of_probabilities_are_those_of_torch(shape, options):
    torch = pytest.importorskip("torch")
    loss, logits, target, weight = of_probabilities(shape, *options)
    loss.sum().backward()
    a, b = (torch.tensor(v.numpy(force=True), requires_grad=True) for v in (logits, target))
    w = None if weight is None else torch.tensor(weight)
    torch.nn.functional.cross_entropy(
        a, b, w, reduction=options[0], label_smoothing=options[2]
    ).sum().backward()
    np.testing.assert_allclose(logits.grad.numpy(), a.grad.numpy(), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(target.grad.numpy(), b.grad.numpy(), rtol=1e-11, atol=1e-13)


def of_probabilities(shape, reduction, weighted, smoothing):
    x, _, weight = problem(shape, weighted=weighted)
    axis = 0 if len(shape) == 1 else 1
    q = special.softmax(np.random.default_rng(5).standard_normal(shape), axis)
    logits, target = ng.tensor(x, requires_grad=True), ng.tensor(q, requires_grad=True)
    options = {"reduction": reduction, "label_smoothing": smoothing}
    loss = F.cross_entropy(logits, target, weight, **options)
    w = 1.0 if weight is None else weight.reshape(-1, *(1,) * (len(shape) - axis - 1))
    mixed = q * (1 - smoothing) + smoothing / shape[axis]
    losses = -np.sum(w * mixed * special.log_softmax(x, axis), axis=axis)
    reduce = {"none": np.asarray, "sum": np.sum, "mean": np.mean}[reduction]
    np.testing.assert_allclose(loss.numpy(force=True), reduce(losses), rtol=1e-12)
    return loss, logits, target, weight


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_extreme_logits(dtype):
    x = np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4 - 1, -inf]], dtype)
    target = np.array([1, 0, 1])
    logits = ng.tensor(x, requires_grad=True)
    loss = F.cross_entropy(logits, target, reduction="none")
    p = 1 / (1 + np.e)
    np.testing.assert_allclose(loss.numpy(force=True), [2e4, np.log(3), -np.log(p)], rtol=1e-6)
    loss.sum().backward()
    slopes = [[1, -1, 0], [-2 / 3, 1 / 3, 1 / 3], [1 - p, p - 1, 0]]
    rtol = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(logits.grad.numpy(), slopes, rtol=rtol)


@pytest.mark.parametrize("inner", [(), (2,)])
def test_infinite_and_missing_logits(inner):
    rows = np.array([[inf, 0.0], [-inf, -inf], [nan, 0.0], [-inf, 0.0], [-inf, 0.0], [nan, inf]])
    x = np.broadcast_to(rows.reshape(6, 2, *(1,) * len(inner)), (6, 2, *inner))
    target = np.broadcast_to(
        np.array([0, 0, 0, 1, 0, -100]).reshape(6, *(1,) * len(inner)), (6, *inner)
    )
    logits = ng.tensor(x, requires_grad=True)
    loss = F.cross_entropy(logits, target, reduction="none")
    loss.sum().backward()
    expected = np.array([nan, nan, nan, 0, inf, 0]).reshape(6, *(1,) * len(inner))
    np.testing.assert_array_equal(loss.numpy(force=True), np.broadcast_to(expected, (6, *inner)))
    slopes = np.array([[nan] * 2] * 3 + [[0, 0], [-1, 1], [0, 0]]).reshape(6, 2, *(1,) * len(inner))
    np.testing.assert_array_equal(logits.grad.numpy(), np.broadcast_to(slopes, x.shape))


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
def test_nothing_to_divide_by(function):
    x = ng.tensor(np.zeros((2, 3)), requires_grad=True)
    ignored = function(x, np.array([-100, -100]))
    assert np.isnan(ignored.item())
    ignored.backward()
    assert x.grad.tolist() == np.zeros((2, 3)).tolist()
    assert np.isnan(function(x, np.array([0, 1]), np.zeros(3)).item())
    assert np.isnan(function(np.zeros((0, 3)), np.zeros(0, int)).item())
    assert function(np.zeros((0, 3)), np.zeros(0, int), reduction="sum").item() == 0
    with_zeros = function(x, np.array([0, 1]), np.array([0.0, 1.0, 1.0]), reduction="none")
    assert with_zeros[0].item() == 0
    assert function(x, np.array([7, 7]), ignore_index=7, reduction="sum").item() == 0


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize("bad", [3, -1, -101, 2**40])
def test_a_target_that_is_no_class(function, bad):
    for x in (np.zeros((2, 3)), np.zeros((2, 3, 2))):
        target = np.zeros(x.shape[:1] + x.shape[2:], int)
        target.flat[-1] = bad
        with pytest.raises(IndexError, match=rf"{function.__name__}: target {bad} .*0 to 2"):
            function(x, target)


@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss])
def test_errors(function):
    x, target, name = np.zeros((4, 3)), np.zeros(4, int), function.__name__
    with pytest.raises(TypeError, match=rf"{name}.*\(4,\).*float64.*integers"):
        function(x, target * 1.0)
    with pytest.raises(TypeError, match="bool"):
        function(x, target == 0)
    with pytest.raises(ValueError, match=rf"{name}.*\(4, 3\).*\(3,\).*needs \(4,\)"):
        function(x, target[:3])
    with pytest.raises(ValueError, match="class axis"):
        function(np.zeros(()), np.array(0))
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        function(x, target, np.ones(2))
    with pytest.raises(TypeError, match="complex128"):
        function(x * 1j, target)
    with pytest.raises(ValueError, match="'average'"):
        function(x, target, reduction="average")
    with pytest.raises(RuntimeError, match="weights"):
        function(x, target, ng.ones(3, requires_grad=True))


def test_errors_of_cross_entropy():
    x = np.zeros((4, 3))
    with pytest.raises(ValueError, match=r"1\.5"):
        F.cross_entropy(x, np.zeros(4, int), label_smoothing=1.5)
    with pytest.raises(ValueError, match="ignore_index"):
        F.cross_entropy(x, x, ignore_index=1)
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        F.cross_entropy(x, x, np.ones(2))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_indices_of_any_integer_dtype(dtype):
    x, target, _ = problem((5, 3))
    target = np.abs(target) % 3
    logits = ng.tensor(x, requires_grad=True)
    loss = F.cross_entropy(logits, target.astype(dtype))
    assert loss.item() == F.cross_entropy(x, target).item()
    (g,) = ng.autograd.grad(loss, logits, create_graph=True)
    assert g.requires_grad


def test_operands_that_are_not_contiguous():
    x, target, weight = problem((5, 3))
    wide = np.repeat(x, 2, axis=1)
    logits = ng.tensor(wide, requires_grad=True)
    loss = F.cross_entropy(logits[:, ::2], target[::-1].copy()[::-1], np.repeat(weight, 2)[::2])
    np.testing.assert_allclose(loss.item(), F.cross_entropy(x, target, weight).item(), rtol=1e-15)
    loss.backward()
    assert not logits.grad.numpy()[:, 1::2].any()


def test_one_node_that_keeps_no_probabilities():
    x = ng.tensor(np.zeros((4, 3)), requires_grad=True)
    loss = F.cross_entropy(x, np.zeros(4, int))
    assert loss.grad_fn.name() == "CrossEntropyBackward"
    assert loss.grad_fn.next_functions[0][0].name() == "AccumulateGrad"
    assert loss.grad_fn._saved_x is x
    assert loss.grad_fn._saved_rows.shape == (2, 4)


def test_modules():
    x, target, weight = problem((5, 3))
    layer = ng.nn.CrossEntropyLoss(weight, ignore_index=1, reduction="sum", label_smoothing=0.1)
    expected = F.cross_entropy(
        x,
        np.where(target < 0, 0, target),
        weight,
        ignore_index=1,
        reduction="sum",
        label_smoothing=0.1,
    )
    assert layer(x, np.where(target < 0, 0, target)).item() == expected.item()
    assert list(layer.state_dict()) == ["weight"]
    assert list(layer.parameters()) == []
    assert repr(layer) == "CrossEntropyLoss()"
    assert not ng.nn.NLLLoss().state_dict()
    assert ng.nn.NLLLoss(weight)(x, target).item() == F.nll_loss(x, target, weight).item()
    assert layer.to(np.float32)(x.astype(np.float32), target * 0).dtype == np.float32
    with pytest.raises(ValueError, match=r"CrossEntropyLoss.*'all'"):
        ng.nn.CrossEntropyLoss(reduction="all")


def test_batches_are_examples_one_by_one():
    x, target, weight = problem((5, 3))
    stack = np.stack([x, 2 * x])
    with BatchingInterpreter(2) as level:
        losses = level.unwrap(F.cross_entropy(level.wrap(ng.tensor(stack)), target, weight))
    alone = [F.cross_entropy(part, target, weight).item() for part in stack]
    np.testing.assert_allclose(losses.numpy(), alone, rtol=1e-15)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(("shape", "dtype"), [((500, 200), "float64"), ((2, 20, 2600), "float32")])
def test_same_bits_for_any_number_of_threads(shape, dtype):
    x, target, weight = problem(shape, dtype=dtype)
    before = ng.get_num_threads()
    found = []
    for threads in (1, 2):
        ng.set_num_threads(threads)
        logits = ng.tensor(x, requires_grad=True)
        loss = F.cross_entropy(logits, target, weight, label_smoothing=0.1)
        loss.backward()
        found.append((loss.item(), logits.grad.numpy()))
    ng.set_num_threads(before)
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    log_p = special.log_softmax(x.astype(float), 1)
    rtol = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found[0][0], expected(log_p, target, weight, "mean", 0.1), rtol=rtol)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 3, 2)], ids=str)
def test_losses_of_a_batch_are_those_of_its_examples(shape, reduction):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(3, *shape)), rng.uniform(0.5, 2, 3)
    target = rng.integers(0, 3, (3, *(shape[:1] + shape[2:] if len(shape) > 1 else ())))
    target.flat[0] = -100

    def loss(x, target):
        smooth = F.cross_entropy(x, target, weight, reduction=reduction, label_smoothing=0.1)
        return smooth + F.nll_loss(x, target, reduction=reduction)

    gradient = ng.grad(lambda x, target: loss(x, target).sum())
    second = ng.grad(lambda x, target: (gradient(x, target) ** 2).sum())
    for function in (loss, gradient, second):
        examples = [np.asarray(function(*pair)) for pair in zip(x, target, strict=True)]
        assert np.allclose(ng.vmap(function)(x, target), examples, equal_nan=True)
        shared = [np.asarray(function(one, target[1])) for one in x]
        assert np.allclose(ng.vmap(function, (0, None))(x, target[1]), shared, equal_nan=True)
    with pytest.raises(ng.errors.NumgradValueError, match=r"shape .* do not fit"):
        ng.vmap(loss)(x, np.expand_dims(target, -1))


def test_linear_cross_entropy_is_that_of_the_scores():
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=5)
    target, factors = np.array([0, 4, 2, 2]), np.arange(1.0, 6.0)
    scores = x @ w.T + b
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    kept = factors[target] * (target != 4)
    expected = -(logs[np.arange(4), target] * kept).sum() / kept.sum()
    found = F.linear_cross_entropy(x, w, target, linear_bias=b, weight=factors, ignore_index=4)
    np.testing.assert_allclose(found.item(), expected, rtol=1e-14)
    several = F.linear_cross_entropy(
        x, rng.normal(size=(5, 2, 3)), np.ones((4, 2), int), reduction="none"
    )
    assert several.shape == (4, 2)
    tensors = [ng.tensor(a, requires_grad=True) for a in (x, w)]
    assert ng.testing.gradcheck(lambda x, w: F.linear_cross_entropy(x, w, target), tuple(tensors))
