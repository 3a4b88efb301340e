"""Long reasons stand once, in a titled note, and are cited by title: both must match."""

import ast
import re
from pathlib import Path

import numgrad as ng

PACKAGE = Path(ng.__file__).parent
TITLE = re.compile(r"^[ #]*Note \[([^\]]+)\](?:$|: )", re.MULTILINE)
CITED = re.compile(r"[Nn]ote \[([^\]]+)\](?:\s(?:in|of)\s``([a-z_.]+)``)?")


def flat(text: str) -> str:
    """Notes cited across a line's end, in comments too, on one line."""
    return re.sub(r"\s*\n\s*#?\s*", " ", text)


def test_notes_have_one_place_and_are_cited_by_it():
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    places: dict[str, Path] = {}
    for path, text in texts.items():
        for title in TITLE.findall(text):
            assert title not in places, f"Note [{title}] stands in {places[title]} and in {path}"
            places[title] = path
    assert len(places) > 40
    wrong = []
    for path, text in texts.items():
        for title, home in CITED.findall(flat(text)):
            found = places.get(title)
            module = found and ".".join(found.relative_to(PACKAGE.parent).with_suffix("").parts)
            module = module and module.removesuffix(".__init__")
            if not module or (home and not f".{module}".endswith(f".{home}")):
                wrong.append(f"{path.relative_to(PACKAGE)}: Note [{title}] {home} is in {module}")
    assert not wrong, "\n".join(wrong)


def test_the_map_of_jit_names_modules_that_exist():
    rooms = re.findall(r"^\d\. ``(\w+)``(.*?)(?=^\d\. |^For people)", jit_map(), re.M | re.S)
    assert len(rooms) == 7
    for room, text in rooms:
        modules = {path.stem for path in (PACKAGE / "compiler" / room).glob("*.py")}
        others = {path.stem for path in PACKAGE.rglob("*.py")} | {
            path.name for path in PACKAGE.rglob("*") if path.is_dir()
        }
        named = {name.split(".")[-1] for name in re.findall(r"``([\w.]+)``", text)}
        assert named <= modules | others, f"{room}: {sorted(named - modules - others)}"


def jit_map():
    return ast.get_docstring(ast.parse((PACKAGE / "compiler" / "__init__.py").read_text()))
