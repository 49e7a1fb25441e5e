"""Rules for the rooms of a package, each from what the sources say to a list of violations.

A page, docs/architecture.md, has the table of the rooms from the ground up and the table "Where is ...?". A room is a
folder, named by its path in the package.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# A file of one of these names has the same meaning in each room: its docstring and public names, its commands.
SHARED_NAMES = {"__init__", "__main__", "command"}
Imports = Mapping[str, set[str]]  # module -> modules that it imports, all without the package's name


@dataclass(frozen=True)
class Package:
    """A package: its name, its folder, the text of its page, and which of its files are in no room."""

    name: str
    folder: Path
    page: str
    outside: tuple[str, ...]

    def table(self, heading: str) -> list[list[str]]:
        """The rows of the table below a heading of the page, without code marks."""
        (text,) = (part for part in re.split(r"^## ", self.page, flags=re.MULTILINE) if part.startswith(f"{heading}\n"))
        rows = re.findall(r"^\| *(.+?) *\|$", text, re.MULTILINE)
        return [
            [cell.strip().replace("`", "") for cell in row.split("|")] for row in rows[1:] if not row.startswith("-")
        ]

    @property
    def rooms(self) -> list[str]:
        """From the ground up."""
        return [room.rstrip("/") for room, *_ in self.table("Rooms")]

    def for_others(self) -> list[str]:
        """The modules that others may rely on, of a table whose rows may name several."""
        return [module.strip() for names, _ in self.table("Modules for others") for module in names.split(",")]

    def files(self) -> list[Path]:
        paths = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        return [path for path in paths if "__pycache__" not in path.parts]

    def modules(self) -> dict[str, Path]:
        """Module -> file."""
        named = {
            ".".join(path.with_suffix("").parts): self.folder / path for path in self.files() if path.suffix == ".py"
        }
        return {module.removesuffix(".__init__"): path for module, path in named.items()}

    def imports(self) -> Imports:
        """Of all modules but the face and what runs before anything is installed."""
        modules = self.modules()
        return {
            module: self.imports_of(module, ast.parse(path.read_text(encoding="utf-8")), modules)
            for module, path in modules.items()
            if module not in ("__init__", "set_up")
        }

    def imports_of(self, module: str, tree: ast.AST, modules: Iterable[str]) -> set[str]:
        """What a module imports of its package, anywhere in its text; "" is the face."""
        own = imported(tree, {f"{self.name}.{known}" for known in modules}, module)
        own = {name for name in own if name == self.name or name.startswith((f"{self.name}.", "("))}
        return {name.removeprefix(self.name).lstrip(".") for name in own} - {module}


def imported(tree: ast.AST, modules: Iterable[str], module: str = "") -> set[str]:
    """The modules that a text imports, in full; of a name, the module that holds it, unless it is one of `modules`."""
    known, found = set(modules), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            found.add(f"(relative import in {module})")
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {name.name: f"{node.module}.{name.name}" for name in node.names}
            found |= {inner if inner in known else node.module for inner in full.values()}
    return found


def room_of(module: str, rooms: list[str]) -> str:
    """The room that a module is in, or that it is itself; "" for none."""
    path = f"{module.replace('.', '/')}/"
    return next((room for room in sorted(rooms, key=len, reverse=True) if path.startswith(f"{room}/")), "")


def upward(imports: Imports, rooms: list[str], free: Iterable[str] = ()) -> list[str]:
    """Imports from a room to a room above it, or to the face. The command line and `free` may import anything."""
    level = {room: i for i, room in enumerate(rooms)}
    return [
        f"{module} imports {target or 'the face'}"
        for module, targets in imports.items()
        if module not in ("__main__", *free)
        for target in targets
        if target not in free
        if level.get(room_of(target, rooms), len(rooms)) > level.get(room_of(module, rooms), -1)
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
    """Modules and rooms named like something that the face hands out: such a name is a function, and only that."""
    return sorted({part for module in modules for part in module.split(".")} & set(face))


def without_room(files: Iterable[Path], rooms: list[str], outside: Iterable[str] = ()) -> list[str]:
    """Files that are in no room."""
    above = {"/".join([*room.split("/")[:-1], "__init__.py"]) for room in rooms}  # what a group of rooms is for
    known = {*outside, *above}
    return [str(f) for f in files if f.as_posix() not in known and not room_of(f.as_posix(), rooms)]


def undescribed(package: Package) -> Iterator[str]:
    """Rooms with Python whose __init__ does not say what they are for."""
    for room in package.rooms:
        folder = package.folder / room
        if any(folder.glob("*.py")) and not ast.get_docstring(ast.parse((folder / "__init__.py").read_text())):
            yield room


def lost(package: Package) -> list[str]:
    """Questions of the page whose room or file does not exist."""
    rooms, rows = package.rooms, package.table("Where is ...?")
    return [
        q for q, room, file in rows if room.rstrip("/") not in rooms or not (package.folder / room / file).is_file()
    ]
