"""The rooms of helpers/ are those of docs/architecture.md, imports run down only, and of the instrument the course uses
what is for others.

Each rule is a function from what the sources say to a list of violations; each is also given a planted violation.
"""

import ast
import json
import re
from pathlib import Path

import architecture_rules as rules
import pytest

import helpers
from helpers.paths import DOCS, HELPERS, INSTRUMENT, ROOT

# Which all may import; and a script that a lesson shows and runs, so it imports as a learner does.
FREE = ("paths", "upkeep.validation.late_error")
OUTSIDE = ("__init__.py", "__main__.py", "paths.py", "set_up.py")
COURSE = rules.Package("helpers", HELPERS, (DOCS / "architecture.md").read_text(encoding="utf-8"), OUTSIDE)
THEIR_PAGE = ROOT / "kernel_xray" / "docs" / "architecture.md"
THEIRS = rules.Package("kernel_xray", INSTRUMENT / "kernel_xray", THEIR_PAGE.read_text(encoding="utf-8"), ())
ROOMS, MODULES, QUESTIONS = COURSE.rooms, COURSE.modules(), COURSE.table("Where is ...?")
FILES = {module for module in MODULES if module.replace(".", "/") not in ROOMS}  # without the rooms themselves
FOR_OTHERS = {"kernel_xray", *(f"kernel_xray.{module}" for module in THEIRS.for_others())}


@pytest.fixture(scope="module")
def imports():
    return COURSE.imports()


# -- The rules hold ----------------------------------------------------------------------------------------------------


def test_the_page_lists_the_rooms_that_there_are():
    assert len(ROOMS) == len(set(ROOMS))
    assert all((HELPERS / room).is_dir() for room in ROOMS)
    assert rules.without_room(COURSE.files(), ROOMS, OUTSIDE) == []
    assert list(rules.undescribed(COURSE)) == []


def test_a_glance_at_helpers_shows_few_names():
    assert len([path for path in HELPERS.iterdir() if any(path.rglob("*.py"))]) <= 6


def test_imports_run_down_only(imports):
    assert rules.upward(imports, ROOMS, FREE) == []


def test_there_is_no_circle(imports):
    assert rules.circles(imports) == []


def test_no_two_modules_have_one_name():
    assert rules.shared_base_names([*FILES, *THEIRS.modules()]) == []


def test_no_module_is_named_like_a_function_of_the_face():
    assert rules.shadowed(MODULES, helpers.__all__) == []


def test_a_newcomer_is_sent_to_the_right_room():
    assert rules.lost(COURSE) == []


def test_there_are_questions_enough():
    assert len(QUESTIONS) >= 12
    assert len({room for _, room, _ in QUESTIONS}) >= 12


# -- The wall between the course and its instrument --------------------------------------------------------------------


THEIR_MODULES = {f"kernel_xray.{module}" for module in THEIRS.modules()}
OPEN = {*FOR_OTHERS, *(f"kernel_xray.{room}".replace("/", ".") for room in THEIRS.rooms)}


def private(source: str) -> list[str]:
    """The modules of the instrument that a text imports although they are not for others."""
    if "kernel_xray" not in source:
        return []
    found = rules.imported(ast.parse(source), THEIR_MODULES)
    return sorted(module for module in found if module.partition(".")[0] == "kernel_xray" and module not in OPEN)


def texts_of_the_course():
    """File -> Python text: modules, tests, the template, and the cells of the lessons."""
    tops = (HELPERS, ROOT / "tests", ROOT / "kernels", ROOT / "notebooks")
    for path in [ROOT / "conftest.py", *(path for top in tops for path in top.rglob("*.py"))]:
        yield path, path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code").splitlines()
        yield path, "\n".join(line for line in lines if re.match(r"(?:from|import) [\w., ]+$", line))


def test_the_course_uses_only_what_the_instrument_offers():
    found = {path.relative_to(ROOT): wrong for path, text in texts_of_the_course() if (wrong := private(text))}
    assert found == {}


def test_a_private_module_of_the_instrument_is_found():
    assert private("from kernel_xray import xray\nfrom kernel_xray.machine import cache") == []
    assert len(private("from kernel_xray.report import findings")) == 1
    assert len(private("from kernel_xray.translate.lexer import tokenize")) == 1
    assert len(private("def f():\n    import kernel_xray.build.extension as e")) == 1


# -- Planted violations are found --------------------------------------------------------------------------------------


def test_an_import_that_runs_up_is_found(imports):
    low, high = (room.replace("/", ".") for room in (ROOMS[0], ROOMS[-1]))
    planted = {**imports, f"{low}.planted": {f"{high}.campaign"}}
    assert rules.upward(planted, ROOMS, FREE) == [f"{low}.planted imports {high}.campaign"]
    assert rules.upward({f"{low}.planted": {""}}, ROOMS) == [f"{low}.planted imports the face"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import helpers", {""}),
        ("def f():\n    from helpers.pages import museum", {"pages.museum"}),
        ("from helpers.pages.museum.exhibit import find", {"pages.museum.exhibit"}),
        ("import helpers.practice.judge as j", {"practice.judge"}),
        ("from helpers import load", {""}),
        ("import helpersx, os, kernel_xray", set()),
    ],
)
def test_imports_are_read_from_the_text(source, expected):
    known = ["pages.museum", "pages.museum.exhibit", "practice.judge"]
    assert COURSE.imports_of("ladder.planted", ast.parse(source), known) == expected


def test_a_relative_import_is_found():
    found = COURSE.imports_of("practice.planted", ast.parse("from . import judge"), MODULES)
    assert rules.upward({"practice.planted": found}, ROOMS)


def test_a_circle_is_found():
    assert rules.circles({"a.x": {"a.y"}, "a.y": {"a.z"}, "a.z": {"a.x"}, "a.w": {"a.x"}}) == ["a.x", "a.y", "a.z"]


def test_a_second_module_of_one_name_is_found():
    assert rules.shared_base_names([*FILES, "pages.museum.judge"]) == ["judge"]
    assert rules.shared_base_names([*FILES, "pages.museum.command", "pages.museum.__main__"]) == []


def test_a_module_named_like_a_function_is_found():
    assert rules.shadowed([*MODULES, "checking.check"], helpers.__all__) == ["check"]
    assert rules.shadowed([*MODULES, "xray.report"], helpers.__all__) == ["xray"]


def test_a_file_outside_of_the_rooms_is_found():
    assert rules.without_room([Path("operators.py"), Path("practice/judge.py")], ROOMS, OUTSIDE) == ["operators.py"]
