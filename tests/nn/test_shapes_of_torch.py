"""Shapes that broadcast and numbers that are odd: values and gradients are those of PyTorch."""

import warnings

import numpy as np
import pytest

import numgrad as ng

PAIRS = [
    ((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 1), (1, 3)), ((2, 3), ()), ((), (2, 3)),
    ((0, 3), (1, 3)), ((1,), (4,)), ((2, 1, 3), (4, 1)),
]  # fmt: skip
DRAWN = {
    "real": lambda rng, shape: rng.normal(size=shape),
    "probability": lambda rng, shape: rng.uniform(0.1, 0.9, size=shape),
    "positive": lambda rng, shape: rng.uniform(0.2, 2.0, size=shape),
    "logarithm": lambda rng, shape: np.log(rng.uniform(0.1, 0.9, size=shape)),
    "sign": lambda rng, shape: np.where(rng.random(shape) < 0.5, -1.0, 1.0),
    "count": lambda rng, shape: rng.integers(0, 4, size=shape).astype(float),
}
FIXED = ("sign", "count")

CASES = [
    *[("cosine_similarity", s, "real real", {"dim": d}) for s in PAIRS for d in (0, -1)],
    *[("cosine_similarity", ((2, 1, 3), (2, 4, 1)), "real real", {"dim": 1})],
    *[("kl_div", s, "logarithm probability", {"reduction": "batchmean"}) for s in PAIRS],
    ("kl_div", ((), ()), "logarithm probability", {"reduction": "batchmean"}),
    ("kl_div", ((2, 3), (3,)), "logarithm logarithm", {"log_target": True, "reduction": "sum"}),
    *[
        ("gaussian_nll_loss", (*s, v), "real real positive", {"reduction": r})
        for s in [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((0, 3), (0, 3))]
        for v in [(2, 3), (2, 1), (1, 3), (2,)]
        for r in ("none", "mean")
        if len(v) > 1 or s[0][0] == 2
        if s[0][0] == 2 or v[0] == 1
    ],
    *[
        ("pad", ((1, 2, 5),), "real", {"pad": w, "mode": mode})
        for mode in ("constant", "reflect", "replicate", "circular")
        for w in [(1, 2), (-1, 2), (2, -1), (-1, -2), (-2, 0), (0, -3), (4, -1), (-1, 4), (1, -1)]
    ],
    *[
        ("pad", ((1, 2, 4, 5),), "real", {"pad": (2, -1, -1, 3), "mode": mode})
        for mode in ("reflect", "replicate", "circular")
    ],
]
LOSSES = [
    ("mse_loss", "real real"), ("l1_loss", "real real"), ("smooth_l1_loss", "real real"),
    ("huber_loss", "real real"), ("poisson_nll_loss", "real count"),
    ("pairwise_distance", "real real"),
]  # fmt: skip
MORE = [
    *[(name, s, kinds, {}) for name, kinds in LOSSES for s in PAIRS],
    ("triplet_margin_loss", ((2, 1), (1, 3), (2, 3)), "real real real", {"swap": True}),
    *[("cosine_embedding_loss", ((2, 3), s, (2,)), "real real sign", {}) for s in [(2, 3), (1, 3)]],
    (
        "scaled_dot_product_attention",
        ((2, 7, 3, 4), (2, 1, 5, 4), (1, 7, 5, 6)), "real real real", {},
    ),
    ("bilinear", ((2, 6, 3), (2, 6, 4), (1, 3, 4)), "real real real", {}),
]  # fmt: skip


@pytest.mark.slow(cases=8)
@pytest.mark.parametrize(
    ("name", "shapes", "kinds", "options"),
    [*CASES, *[pytest.param(*case, marks=pytest.mark.slow) for case in MORE]],
)
def test_values_and_gradients(name, shapes, kinds, options):
    torch = pytest.importorskip("torch")
    rng, kinds, found = np.random.default_rng(1), kinds.split(), []
    arrays = [DRAWN[kind](rng, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    for library, functional in ((torch, torch.nn.functional), (ng, ng.nn.functional)):
        inputs = [
            library.tensor(a, requires_grad=kind not in FIXED)
            for a, kind in zip(arrays, kinds, strict=True)
        ]
        with warnings.catch_warnings(action="ignore"):  # of shapes that broadcast, of "mean"
            y = getattr(functional, name)(*inputs, **options)
        weights = np.linspace(1.0, 2.0, int(np.prod(y.shape))).reshape(tuple(y.shape))
        (y * library.tensor(weights)).sum().backward()
        found.append([y.detach().numpy(), *[x.grad.numpy() for x in inputs if x.requires_grad]])
    for theirs, ours in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("width", [(-1, 5), (5, -4), (-6, 1), (6, 0)])
def test_circular_padding_repeats_no_more_than_is_left(width):
    with pytest.raises(ng.NumgradValueError, match="pad: "):
        ng.nn.functional.pad(ng.ones((1, 5)), width, mode="circular")
