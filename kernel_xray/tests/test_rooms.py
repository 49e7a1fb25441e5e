"""The package's rooms are those of docs/architecture.md, imports run down only, and nothing here knows the course."""

import ast
import re
from pathlib import Path

import pytest
from architecture_rules import (
    Package,
    circles,
    lost,
    room_of,
    shadowed,
    shared_base_names,
    undescribed,
    upward,
    without_room,
)

import kernel_xray
from kernel_xray.machine.paths import PACKAGE

HOME = Path(__file__).resolve().parents[1]
PAGE = (HOME / "docs" / "architecture.md").read_text(encoding="utf-8")
OURS = Package("kernel_xray", PACKAGE, PAGE, ("__init__.py", "__main__.py"))
ROOMS, MODULES = OURS.rooms, OURS.modules()
TEXTS = (".py", ".cpp", ".h", ".cuh", ".cu", ".inc", ".js", ".css", ".html")


def names_of_the_course(text):
    """The lines of a text that import the course, also in a text within it, or name its files or variables."""
    course = re.compile(r"\b(?:from|import)\s+(?:[\w, ]+,\s*)?helpers\b|\bhelpers[./]\w|KERNEL_LADDER|kernels/include")
    return [line.strip() for line in text.splitlines() if course.search(line)]


def test_the_package_and_its_tests_know_no_course():
    files = [path for top in ("src", "tests") for path in (HOME / top).rglob("*") if path.suffix in TEXTS]
    assert len(files) > 300
    found = {path: names_of_the_course(path.read_text(encoding="utf-8")) for path in files if path != Path(__file__)}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "from helpers.paths import ROOT",
        "    import helpers",
        'CODE = "import torch, helpers"',
        "// see helpers/paths.py",
        'os.environ["KERNEL_LADDER_CACHE"]',
        '"-Ikernels/include"',
    ],
)
def test_a_name_of_the_course_is_found(planted):
    assert names_of_the_course(f"x = 1\n{planted}\n") == [planted.strip()]
    assert names_of_the_course("its helpers are other threads; uint64_t helpers = 1; helpers_wanted()") == []


def test_the_page_lists_the_rooms_that_there_are():
    assert {room.partition("/")[0] for room in ROOMS} == {f.parts[0] for f in OURS.files() if len(f.parts) > 1}
    assert without_room(OURS.files(), ROOMS, OURS.outside) == []
    assert list(undescribed(OURS)) == []


def test_imports_run_down_only_and_in_no_circle():
    imports = OURS.imports()
    assert upward(imports, ROOMS) == []
    assert circles(imports) == []
    planted = {**imports, f"{ROOMS[0]}.planted": {"build.loader"}}
    assert upward(planted, ROOMS) == [f"{ROOMS[0]}.planted imports build.loader"]


def test_names_are_distinct():
    assert shared_base_names(MODULES) == []
    assert shadowed(MODULES, kernel_xray.__all__) == []


def test_a_newcomer_is_sent_to_the_right_file():
    questions = OURS.table("Where is ...?")
    assert len(questions) >= 12 and lost(OURS) == []


def test_the_modules_for_others_exist_and_say_what_they_offer():
    documented = OURS.for_others()
    assert len(documented) == len(set(documented)) and set(documented) <= set(MODULES)
    for module in documented:
        assert ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf-8"))), module
        assert room_of(module, ROOMS)
