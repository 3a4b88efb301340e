"""What is distributed: the sdist has all of the repository, versions and requirements agree."""

import datetime
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import numgrad as ng

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ABOUT_GIT = (".github/",)
"""What only the repository needs."""


def test_versions_agree():
    assert ng.__version__ == PROJECT["version"]


def test_citation():
    """Its fields are those of https://github.com/citation-file-format, version 1.2.0."""
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    required = {"cff-version", "message", "title", "authors"}
    optional = {
        "abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords",
        "license", "license-url", "preferred-citation", "references", "repository",
        "repository-artifact", "repository-code", "type", "url", "version",
    }  # fmt: skip
    assert required <= citation.keys() <= required | optional
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] in ("software", "dataset")
    assert [set(author) for author in citation["authors"]] == [{"name"}]  # an entity, no person
    assert all(type(citation[key]) is str and citation[key] for key in ("title", "message"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert len(set(citation["keywords"])) == len(citation["keywords"])
    assert isinstance(citation.get("date-released", datetime.date.today()), datetime.date)


def test_conda_recipe_requires_the_same():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    python, *others = recipe["requirements"]["run"]
    assert python == f"python {PROJECT['requires-python']}"
    assert [text.replace(" ", "") for text in others] == PROJECT["dependencies"]
    assert (ROOT / ".ci" / "conda" / recipe["source"]["path"]).resolve() == ROOT.resolve()


def test_conda_recipe_renders():
    """rattler-build (``pip install py-rattler-build``) reads it, as conda-forge's builders do."""
    rattler_build = pytest.importorskip("rattler_build")
    path = ROOT / ".ci" / "conda" / "recipe.yaml"
    (variant,) = rattler_build.Stage0Recipe.from_file(str(path)).render()
    recipe = variant.recipe.to_dict()
    assert recipe["build"]["noarch"] == "python"
    assert recipe["requirements"]["run"][0] == f"python {PROJECT['requires-python']}"
    assert (ROOT / recipe["about"]["license_file"][0]).is_file()


@pytest.mark.slow(cases=0)
def test_conda_recipes_own_tests():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    imports, scripts = recipe["tests"]
    commands = [["-c", f"import {name}"] for name in imports["python"]["imports"]]
    commands += [line.split()[1:] for line in scripts["script"]]
    for command in commands:
        subprocess.run(
            [sys.executable, *command], check=True, stdout=subprocess.DEVNULL, timeout=300
        )


@pytest.mark.slow(cases=0)  # .ci/run builds it in an environment of its own, and the wheel of it
def test_the_sdist_has_all_of_the_repository(tmp_path):
    setuptools = pytest.importorskip("setuptools", minversion="77")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    if listed.returncode or not listed.stdout:
        pytest.skip("no git checkout")
    names = listed.stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    build = "from setuptools import build_meta; print(build_meta.build_sdist('dist'))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, (setuptools.__version__, done.stderr)
    with tarfile.open(next((tmp_path / "dist").iterdir())) as archive:
        files = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    made = {"PKG-INFO", *(name for name in files if re.match(r"numgrad_jit\.egg-info/", name))}
    expected = {name for name in names if not name.startswith(ABOUT_GIT)}
    assert files - made == expected
