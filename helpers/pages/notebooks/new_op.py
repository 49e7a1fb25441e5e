"""`python -m helpers new-op NAME` (`make new-op NAME=...`): a package for an operator of your own.

It is a copy of kernels/template/ under another name, with launch.h, so that it needs nothing else.
"""

import argparse
import keyword
import re
import sys
from pathlib import Path

from helpers.paths import KERNEL_INCLUDE, KERNELS, ROOT

TEMPLATE = KERNELS / "template"
HEADER = KERNEL_INCLUDE / "launch.h"
OLD_NAME = "my_op"
TAKEN = ("torch", "helpers", "test", "tests", "csrc", "numpy")


class NewOpError(ValueError):
    """An impossible name for a package, or a folder that already exists."""


def check(name: str) -> None:
    """Raises NewOpError if an operator, its Python package or its C++ namespace cannot have the name."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise NewOpError(f"{name!r} must be lower-case letters, digits and _, the first a letter, such as my_scale")
    if keyword.iskeyword(name) or name in TAKEN or name in sys.stdlib_module_names:
        raise NewOpError(f"{name!r} is a keyword of Python or the name of a module; choose another")


def write(name: str, into: Path) -> Path:
    """Writes the package to `into`/`name` and returns that folder. Raises NewOpError; overwrites nothing."""
    check(name)
    folder = into / name
    if folder.exists():
        raise NewOpError(f"{folder} already exists; choose another name, or remove it")
    for path in files():
        target = folder / str(path.relative_to(TEMPLATE)).replace(OLD_NAME, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8").replace(OLD_NAME, name), encoding="utf-8")
    (folder / "csrc" / HEADER.name).write_text(HEADER.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def files() -> list[Path]:
    """The template's files, without the products of building and testing it."""
    left = ("build", "__pycache__", ".pytest_cache")
    found = [p for p in sorted(TEMPLATE.rglob("*")) if p.is_file() and p.suffix not in (".so", ".pyc")]
    return [p for p in found if not any(part in left or part.endswith(".egg-info") for part in p.parts)]


def main(arguments: list[str]) -> int:
    """The exit status is 0 if the package was written, 2 for an impossible name."""
    parser = argparse.ArgumentParser(prog="python -m helpers new-op", description=__doc__)
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="of the operator and its package")
    parser.add_argument(
        "--into", type=Path, default=ROOT / "packages", help="the folder that will contain it (default: packages/)"
    )
    options = parser.parse_args(arguments)
    if not options.name:
        print("new-op: give a name: make new-op NAME=my_scale", file=sys.stderr)
        return 2
    try:
        folder = write(options.name, options.into)
    except NewOpError as error:
        print(f"new-op: {error}", file=sys.stderr)
        return 2
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    print(f"wrote {shown}/; build and test it:\n  {Path(sys.executable)} -m pytest {shown}")
    return 0
