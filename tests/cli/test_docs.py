"""``python -m numgrad docs``: what it runs, and what it says without sources or Sphinx."""

import sys

import pytest

from numgrad.cli import docs, main


@pytest.fixture
def calls(monkeypatch):
    """What would be run, which takes minutes; that it works is a stage of .ci/run."""
    calls = []
    monkeypatch.setattr(docs.subprocess, "call", lambda command: calls.append(command) or 0)
    monkeypatch.setattr(docs, "find_spec", lambda name: name)
    return calls


def test_builds_the_site_of_the_checkout(calls, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where no sources are: those beside the package
    shown = []
    monkeypatch.setattr(docs.webbrowser, "open", shown.append)
    assert main(["docs", "--pages-only", "--open"]) == 0
    (command,) = calls
    assert command[:3] == [sys.executable, "-m", "sphinx"]
    assert "nb_execution_mode=off" in command
    assert command[-2].endswith("notebooks")
    index = tmp_path / "build" / "site" / "index.html"
    assert capsys.readouterr().out == f"{index}\n"
    assert shown == [index.as_uri()]
    assert main(["docs", "--output", "elsewhere"]) == 0
    assert calls[1][-1] == "elsewhere"
    assert "nb_execution_mode=off" not in calls[1]


def test_names_what_is_missing(calls, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(docs, "find_spec", lambda name: None if name == "myst_nb" else name)
    assert main(["docs"]) == 2
    assert (
        "myst_nb not installed; python -m pip install 'numgrad-jit[docs]'"
        in capsys.readouterr().err
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(docs.numgrad, "__file__", str(tmp_path / "numgrad" / "__init__.py"))
    assert main(["docs"]) == 2
    assert "there is no folder notebooks" in capsys.readouterr().err
    assert not calls
