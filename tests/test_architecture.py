"""The rooms of helpers/ are those of docs/architecture.md, and their imports run down only.

Each rule is a function from what the sources say to a list of violations; each is also given a planted violation.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import helpers
from helpers.machine.paths import DOCS, HELPERS

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
# A file of one of these names has the same meaning in each room: its docstring and public names, its commands.
SHARED_NAMES = {"__init__", "__main__", "command"}
Imports = Mapping[str, set[str]]  # module -> modules that it imports, all without the leading "helpers."


def table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading of docs/architecture.md, without code marks."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(f"{heading}\n"))
    rows = re.findall(r"^\| *(.+?) *\|$", text, re.MULTILINE)
    return [[cell.strip().replace("`", "") for cell in row.split("|")] for row in rows[1:] if not row.startswith("-")]


ROOMS = [room.rstrip("/") for room, _ in table("Rooms")]  # from the ground up
QUESTIONS = table("Where is ...?")


def python_files() -> dict[str, Path]:
    """Module -> file, of all modules of helpers; the simulator's headers hold none."""
    files = [path for path in HELPERS.rglob("*.py") if "include" not in path.relative_to(HELPERS).parts]
    named = {".".join(path.relative_to(HELPERS).with_suffix("").parts): path for path in files}
    return {module.removesuffix(".__init__"): path for module, path in named.items()}


def imports_of(module: str, tree: ast.AST, modules: Iterable[str]) -> set[str]:
    """What a module of helpers imports of helpers, anywhere in its text; "" is the face, `import helpers`."""
    known, found = set(modules), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.removeprefix("helpers").lstrip(".") for name in node.names if of_helpers(name.name)}
        elif isinstance(node, ast.ImportFrom) and of_helpers(node.module or ""):
            base = node.module.removeprefix("helpers").lstrip(".")
            for name in node.names:
                inner = f"{base}.{name.name}".lstrip(".")
                found.add(inner if inner in known else base)
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.add(f"(relative import in {module})")
    return found - {module}


def of_helpers(name: str) -> bool:
    return name == "helpers" or name.startswith("helpers.")


MODULES = python_files()


@pytest.fixture(scope="module")
def imports():
    return {
        module: imports_of(module, ast.parse(path.read_text(encoding="utf-8")), MODULES)
        for module, path in MODULES.items()
        if module not in ("__init__", "set_up")
    }


def room_of(module: str) -> str:
    return module.partition(".")[0]


def upward(imports: Imports, rooms: list[str]) -> list[str]:
    """Imports from a room to a room above it, or to the face. The command line may import anything."""
    level = {room: i for i, room in enumerate(rooms)}
    return [
        f"{module} imports {target or 'the face'}"
        for module, targets in imports.items()
        if module != "__main__"
        for target in targets
        if room_of(target) not in level or level[room_of(target)] > level[room_of(module)]
    ]


def circles(imports: Imports) -> list[str]:
    """Modules that reach themselves through their imports."""

    def reached(start: str) -> set[str]:
        seen, waiting = set(), list(imports.get(start, ()))
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += imports.get(module, ())
        return seen

    return [module for module in imports if module in reached(module)]


def shared_base_names(modules: Iterable[str]) -> list[str]:
    """Base names that more than one module has."""
    names = [module.rpartition(".")[2] for module in modules if "." in module]
    return sorted({name for name in names if names.count(name) > 1} - SHARED_NAMES)


def shadowed(modules: Iterable[str], face: Iterable[str]) -> list[str]:
    """Modules and rooms named like something that the face hands out: `helpers.check` is a function, and only that."""
    return sorted({part for module in modules for part in module.split(".")} & set(face))


def without_room(files: Iterable[Path], rooms: list[str]) -> list[str]:
    """Files of helpers/ that are in no room; the face, the command line and set_up.py are in none."""
    outside = [path for path in files if path.parts[0] not in rooms]
    return [str(path) for path in outside if str(path) not in ("__init__.py", "__main__.py", "set_up.py")]


# ----------------------------------------------------------------------------------------------------------------------
# The rules hold


def files_of_helpers() -> list[Path]:
    paths = (path.relative_to(HELPERS) for path in HELPERS.rglob("*") if path.is_file())
    return [path for path in paths if "__pycache__" not in path.parts]


def test_the_page_lists_the_rooms_that_there_are():
    folders = {path.parts[0] for path in files_of_helpers() if len(path.parts) > 1}
    assert len(ROOMS) == len(set(ROOMS))
    assert set(ROOMS) == folders
    assert without_room(files_of_helpers(), ROOMS) == []


def test_the_face_lists_the_same_rooms_in_the_same_order():
    listed = re.findall(r"^    (\w+) {2,}\S", helpers.__doc__, re.MULTILINE)
    assert listed == ROOMS


def test_every_room_says_what_it_is_for():
    assert all(ast.get_docstring(ast.parse((HELPERS / room / "__init__.py").read_text())) for room in ROOMS)


def test_imports_run_down_only(imports):
    assert upward(imports, ROOMS) == []


def test_there_is_no_circle(imports):
    assert circles(imports) == []


def test_no_two_modules_have_one_name():
    assert shared_base_names(MODULES) == []


def test_no_module_is_named_like_a_function_of_the_face():
    assert shadowed(MODULES, helpers.__all__) == []


@pytest.mark.parametrize(("question", "room", "file"), QUESTIONS, ids=[question for question, *_ in QUESTIONS])
def test_a_newcomer_is_sent_to_the_right_room(question, room, file):
    assert room.rstrip("/") in ROOMS
    assert (HELPERS / room / file).is_file(), question


def test_there_are_questions_enough():
    assert len(QUESTIONS) >= 12
    assert len({room for _, room, _ in QUESTIONS}) >= 12


# ----------------------------------------------------------------------------------------------------------------------
# Planted violations are found


def test_an_import_that_runs_up_is_found(imports):
    low, high = ROOMS[0], ROOMS[-1]
    planted = {**imports, f"{low}.planted": {f"{high}.campaign"}}
    assert upward(planted, ROOMS) == [f"{low}.planted imports {high}.campaign"]
    assert upward({"simt.planted": {""}}, ROOMS) == ["simt.planted imports the face"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import helpers", {""}),
        ("def f():\n    from kernel_xray.build import loader", {"build.loader"}),
        ("from kernel_xray.build.loader import load", {"build.loader"}),
        ("import kernel_xray.build.loader as l", {"build.loader"}),
        ("from helpers import load", {""}),
        ("from helpers import museum", {"museum"}),
        ("import helpersx, os", set()),
    ],
)
def test_imports_are_read_from_the_text(source, expected):
    assert imports_of("simt.planted", ast.parse(source), ["build.loader", "museum"]) == expected


def test_a_relative_import_is_found():
    found = imports_of("simt.planted", ast.parse("from . import lexer"), MODULES)
    assert upward({"simt.planted": found}, ROOMS)


def test_a_circle_is_found():
    assert circles({"a.x": {"a.y"}, "a.y": {"a.z"}, "a.z": {"a.x"}, "a.w": {"a.x"}}) == ["a.x", "a.y", "a.z"]


def test_a_second_module_of_one_name_is_found():
    assert shared_base_names([*MODULES, "museum.loader"]) == ["loader"]
    assert shared_base_names([*MODULES, "museum.command", "museum.__main__"]) == []


def test_a_module_named_like_a_function_is_found():
    assert shadowed([*MODULES, "checking.check"], helpers.__all__) == ["check"]
    assert shadowed([*MODULES, "xray.report"], helpers.__all__) == ["xray"]


def test_a_file_outside_of_the_rooms_is_found():
    assert without_room([Path("operators.py"), Path("simt/lexer.py")], ROOMS) == ["operators.py"]
