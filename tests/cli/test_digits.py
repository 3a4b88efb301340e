"""``python -m numgrad demo digits``, in process."""

import importlib.util
import json

import numpy as np
import pytest

import numgrad as ng
from numgrad.cli import digits, main


@pytest.fixture
def easy_digits(monkeypatch):
    """In place of scikit-learn's: each digit is one picture with a little noise."""

    def load():
        rng = np.random.default_rng(0)
        pictures = rng.random((10, 1, 8, 8), np.float32)
        labels = rng.integers(0, 10, 500)
        images = pictures[labels] + 0.05 * rng.standard_normal((500, 1, 8, 8), np.float32)
        return digits.Digits((images[100:], labels[100:]), (images[:100], labels[:100]))

    monkeypatch.setattr(digits, "load", load)
    monkeypatch.setattr(digits, "RATE", 0.01)
    pretend(monkeypatch, found=True)


def pretend(monkeypatch, found):
    """Say that scikit-learn is or is not installed."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *rest: (
            ("spec" if found else None) if name == "sklearn" else find_spec(name, *rest)
        ),
    )


@pytest.mark.slow(cases=0)
@pytest.mark.usefixtures("easy_digits")
def test_both_models_learn_and_come_back_from_their_files(capsys, tmp_path):
    folder = tmp_path / "new" / "models"
    assert main(["demo", "digits", "--epochs", "5", "--save", str(folder)]) == 0
    out, err = capsys.readouterr()
    head, rule, *rows = out.splitlines()
    assert head.split()[:3] == ["model", "parameters", "epochs"]
    assert set(rule) == {"-", " "}
    assert [row.split()[:3] for row in rows[:2]] == [["mlp", "85002", "5"], ["cnn", "6090", "5"]]
    assert all("the same" in row for row in rows[:2])
    assert "training mlp 5/5 loss 0." in err
    assert sorted(path.name for path in folder.iterdir()) == ["cnn.safetensors", "mlp.safetensors"]
    state = ng.load(folder / "mlp.safetensors")
    assert [tensor.dtype for tensor in state["model"].values()] == [np.float32] * 6
    assert len(state["optimizer"]["state"]) == 6


@pytest.mark.slow(cases=0)
@pytest.mark.usefixtures("easy_digits")
def test_json_and_a_seed_that_repeats(capsys):
    options = ["demo", "digits", "--model", "mlp", "--epochs", "2", "--seed", "3", "--json"]
    reports = []
    for _ in range(2):
        assert main(options) == 0
        (report,) = json.loads(capsys.readouterr().out)
        assert report["reloaded_is_same"]
        assert report["good"]
        assert len(report["losses"]) == 2
        reports.append({k: v for k, v in report.items() if not k.endswith("seconds")})
    assert reports[0] == reports[1]


@pytest.mark.slow(cases=0)
@pytest.mark.usefixtures("easy_digits")
def test_a_model_that_is_not_as_good_as_promised_sets_the_status(capsys, monkeypatch):
    monkeypatch.setattr(digits, "RATE", 0.0)
    assert main(["demo", "digits", "--model", "mlp", "--epochs", "1"]) == 1
    assert "mlp" in capsys.readouterr().out


def test_without_scikit_learn_the_demo_says_how_to_get_it(capsys, monkeypatch):
    pretend(monkeypatch, found=False)
    assert main(["demo", "digits"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "pip install" in err
    assert "scikit-learn" in err


@pytest.mark.parametrize("options", [["--epochs", "0"], ["--epochs", "x"], ["--model", "rnn"]])
def test_wrong_options_are_refused(options, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["demo", "digits", *options])
    assert caught.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_the_split_repeats_and_loses_no_image():
    pytest.importorskip("sklearn")
    found, again = digits.load(), digits.load()
    np.testing.assert_array_equal(found.test[0], again.test[0])
    assert found.train[0].shape == (1437, 1, 8, 8)
    assert found.test[0].shape == (360, 1, 8, 8)
    assert found.train[0].dtype == np.float32
    assert found.train[0].min() == 0.0
    assert found.train[0].max() == 1.0
    # each digit occurs about 180 times
    counts = np.bincount(np.concatenate([found.train[1], found.test[1]]))
    assert counts.min() >= 174
    assert counts.max() <= 183


@pytest.mark.slow(cases=0)
def test_handwritten_digits(capsys):
    pytest.importorskip("sklearn")
    assert main(["demo", "digits", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [report["model"] for report in found] == ["mlp", "cnn"]
    for report in found:
        assert report["accuracy"] > 0.97
        assert report["reloaded_is_same"]
        assert report["losses"][-1] < 0.1 < report["losses"][0]
