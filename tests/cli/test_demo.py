"""``python -m numgrad demo``, in process."""

import importlib.util
import io
import json

import numpy as np
import pytest

from numgrad.cli import main, nist
from numgrad.cli.fit import digits_of_agreement, fit_least_squares
from numgrad.progress import Progress


def demo(capsys, *options):
    """Run the demo with ``--json``; return exit status and fits."""
    status = main(["demo", "--json", *options])
    return status, json.loads(capsys.readouterr().out)["fits"]


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", nist.names())
def test_six_certified_digits_from_both_starts(name, capsys):
    status, fits = demo(capsys, "--problem", name)
    least_squares = [fit for fit in fits if fit["method"] == "least_squares"]
    assert [fit["start"] for fit in least_squares] == [1, 2]
    for fit in least_squares:
        assert fit["digits"] >= 6
        assert fit["deviation_digits"] >= 6
        assert fit["rss_digits"] >= 9
        assert fit["converged"]
        assert fit["function_evaluations"] >= fit["gradient_evaluations"] > 0
        np.testing.assert_allclose(fit["parameters"], fit["certified_parameters"], rtol=1e-6)
    assert status == 0


def test_one_plain_minimize_reaches_the_certified_values(capsys):
    _, fits = demo(capsys, "--problem", "Chwirut2", "--problem", "Rat42", "--start", "2")
    minimized = [fit for fit in fits if fit["method"] == "minimize"]
    assert [fit["problem"] for fit in minimized] == ["Chwirut2"]
    assert minimized[0]["digits"] >= 6
    assert len(fits) == 3


def test_start_chooses_the_starting_values(capsys):
    _, fits = demo(capsys, "--problem", "DanWood", "--start", "1")
    assert {fit["start"] for fit in fits} == {1}


def test_names_in_any_case_and_repeated(capsys):
    _, fits = demo(capsys, "--problem", "MISRA1A", "--problem", "misra1a", "--start", "2")
    assert [(f["problem"], f["method"]) for f in fits] == [
        ("Misra1a", "least_squares"),
        ("Misra1a", "minimize"),
    ]


def test_a_wrong_name_gets_the_list_and_status_2(capsys):
    assert main(["demo", "--problem", "Misra1a", "--problem", "Misra9z"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Misra9z" in err
    assert all(name in err for name in nist.names())


def test_a_wrong_start_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["demo", "--start", "3"])
    assert caught.value.code == 2
    assert "--start" in capsys.readouterr().err


def test_list_names_every_problem_and_fits_nothing(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--list"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(name in out for name in nist.names())
    assert list(tmp_path.iterdir()) == []
    assert main(["demo", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["problem"] for entry in listed] == nist.names()
    assert listed[0]["parameters"] == 3


def test_the_table(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--problem", "Rat42", "--start", "2", "--no-plot"]) == 0
    out, err = capsys.readouterr()
    head, rule, row, minimized = out.splitlines()[:4]
    assert head.split() == [
        *("problem", "method", "start", "parameters", "RSS"),
        *("certified", "digits", "f/grad", "time"),
    ]
    assert set(rule) == {"-", " "}
    assert row.split()[:6] == ["Rat42", "least_squares", "2", "72.4622", "2.61808", "0.0673592"]
    assert "8.05652e+00  8.05652e+00" in row
    assert minimized.split()[1] == "minimize"
    assert "fitting 1/2 Rat42 from start 2" in err
    assert list(tmp_path.iterdir()) == []


def test_missed_digits_are_named_and_set_the_status(capsys, monkeypatch):
    monkeypatch.setattr("numgrad.optimize.least_squares.MOST_EVALUATIONS", 30)
    assert main(["demo", "--problem", "MGH09", "--start", "1", "--no-plot"]) == 1
    out = capsys.readouterr().out
    assert "MGH09, least_squares, start 1: only" in out


@pytest.mark.slow(cases=0)
def test_the_plot_is_written_where_asked_or_in_the_current_folder(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    options = ["demo", "--problem", "Nelson", "--problem", "ENSO", "--start", "2"]
    assert main(options) == 0
    assert (tmp_path / "numgrad_demo.png").read_bytes().startswith(b"\x89PNG")
    assert "numgrad_demo.png" in capsys.readouterr().err
    assert main([*options, "--json", "--plot", "fits.svg"]) == 0
    assert "<svg" in (tmp_path / "fits.svg").read_text(encoding="utf-8")
    json.loads(capsys.readouterr().out)


def test_the_band_is_that_of_the_linearised_model():
    pytest.importorskip("matplotlib")
    from numgrad.cli.plot import half_width

    problem = nist.load("Misra1a")
    b, x, grid = problem.certified, problem.x, np.linspace(100.0, 700.0, 5)

    def slopes(x):  # of b1 * (1 - exp(-b2 * x)), by hand
        return np.stack([1 - np.exp(-b[1] * x), b[0] * x * np.exp(-b[1] * x)], axis=1)

    fit = fit_least_squares(problem, 2)
    parameters = problem.rss / (x.size - 2) * np.linalg.inv(slopes(x).T @ slopes(x))
    variance = np.sum(slopes(grid) @ parameters * slopes(grid), axis=1)
    expected = 2.178812829667 * np.sqrt(variance)  # Student's quantile of 0.975, 12 degrees
    np.testing.assert_allclose(half_width(problem, fit, grid), expected, rtol=1e-5)


def test_an_unwritable_plot_is_reported(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    missing = str(tmp_path / "missing" / "fits.png")
    assert main(["demo", "--problem", "DanWood", "--start", "2", "--plot", missing]) == 1
    assert "no plot: " in capsys.readouterr().err


def test_without_matplotlib_the_demo_draws_text_and_says_how_to_get_it(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name, *rest: None if name == "matplotlib" else find_spec(name, *rest),
    )
    assert main(["demo", "--problem", "DanWood", "--start", "2"]) == 0
    out, err = capsys.readouterr()
    assert "numgrad-jit[plot]" in err
    drawn = out[out.index("DanWood: 1") :].splitlines()[1:]
    assert sum(line.count("o") for line in drawn[:16]) == 6  # one for each of the data
    assert drawn[17].split() == ["1.309", "x", "1.68"]
    assert out.splitlines()[-3].startswith("1 of 1 fits by least squares reached 6 certified")
    assert list(tmp_path.iterdir()) == []


def test_digits_of_agreement():
    assert digits_of_agreement([1.0, 2.0], [1.0, 2.0]) == 11
    assert digits_of_agreement([1.0, -2.0], [1.0, 2.0]) == 0
    assert digits_of_agreement([1.0, np.nan], [1.0, 2.0]) == 0
    assert digits_of_agreement([np.inf], [1.0]) == 0
    assert digits_of_agreement(1 + 1e-4, 1.0) == 4


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_is_drawn_in_place_on_a_terminal_and_removed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    with Progress(4, "fitting", terminal) as progress:
        for i in range(4):
            progress.step(f"problem {i} " + 100 * "x")
    drawn = terminal.getvalue()
    assert "\n" not in drawn
    lines = drawn.replace("\x1b[K", "").split("\r")[1:]
    assert all(len(line) < 60 for line in lines)
    assert "[######..................] 1/4" in lines[0]
    assert "[########################] 4/4" in lines[3]
    assert drawn.endswith("\r\x1b[K")


def test_elsewhere_progress_is_plain_lines():
    stream = io.StringIO()
    with Progress(2, "fitting", stream) as progress:
        progress.step("a")
        progress.step("b")
    assert stream.getvalue() == "fitting 1/2 a\nfitting 2/2 b\n"


def test_the_demo_compares_with_differences(capsys):
    assert main(["demo", "--problem", "Hahn1", "--problem", "Misra1a", "--no-plot"]) == 0
    head, exact, differences = (
        line.split() for line in capsys.readouterr().out.splitlines()
        if line.startswith(("derivatives", "numgrad,", "SciPy,"))
    )  # fmt: skip
    assert head[-2:] == ["calls", "seconds"]
    assert exact[2:5] == ["4", "of", "4"]
    # differences have half of the digits, so fits end early
    assert float(differences[5]) < float(exact[5])
    # forward differences take a call for each of 7 and 2 parameters, at every step
    assert int(differences[6]) > 4 * 9
