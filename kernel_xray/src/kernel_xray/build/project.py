"""The flags of a command line, after those of the project: the table [tool.kernel-xray] of its pyproject.toml.

[tool.kernel-xray]
include = ["csrc/include"]              # relative to the file
define = ["USE_FAST_PATH", "TILE=64"]
undefine = ["__CUDA_NO_HALF_OPERATORS__"]
std = "c++20"
extra_cuda_cflags = ["-O3"]             # of nvcc, as `load` takes them; extra_cflags: of the .cpp files
budget = "budget.yml"                   # of trace, if the command line names none
"""

import argparse
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_xray.build.arguments import SubjectError
from kernel_xray.machine import toml

_LISTS = ("include", "define", "undefine", "extra_cflags", "extra_cuda_cflags")
_TEXTS = ("std", "budget")


@dataclass(frozen=True)
class Flags:
    """What the compilers of a program or an extension are given."""

    include: list[str] = field(default_factory=list)
    common: list[str] = field(default_factory=list)  # of all compilers: -D..., -U..., -std=..., -O...
    only_host: list[str] = field(default_factory=list)
    only_cuda: list[str] = field(default_factory=list)
    budget: Path | None = None

    @property
    def cflags(self) -> list[str]:
        """For the host's compiler, as `load` and `program` take them."""
        return [*self.only_host, *self.common]

    @property
    def cuda_cflags(self) -> list[str]:
        """For nvcc, likewise."""
        return [*self.only_cuda, *self.common]


def add_options(add: Callable[..., Any]) -> None:
    """Adds -I, -D, -U, -std, -O and -arch to a command line, by its parser's add_argument."""
    add("-I", dest="include", action="append", default=[], metavar="FOLDER", help="a folder of headers")
    for flag, metavar, text in (
        ("-D", "NAME[=VALUE]", "a macro for all sources"),
        ("-U", "NAME", "a macro that is not defined"),
        ("-std=", "STANDARD", "the C++ standard, such as c++20"),
        ("-O", "LEVEL", "the optimisation of a plain build; X-rays have their own"),
    ):
        kept = f"{flag}{{}}".format
        add(flag.rstrip("="), dest="common", action="append", default=[], metavar=metavar, type=kept, help=text)
    text = "nvcc's architecture; for sm_100a the simulated device is a Blackwell"
    add("-arch", dest="only_cuda", action="append", default=[], metavar="NAME", type="-arch={}".format, help=text)


def flags_of(options: argparse.Namespace, folder: Path | None = None) -> Flags:
    """The flags of the project that `folder` (by default the working one) is in, then those of the command line.

    Raises SubjectError for a table that cannot be read.
    """
    table, place = _table(folder or Path.cwd())
    common = [f"-D{name}" for name in table.get("define", [])] + [f"-U{name}" for name in table.get("undefine", [])]
    common += [f"-std={table['std']}"] if "std" in table else []
    return Flags(
        [*(str(place / path) for path in table.get("include", [])), *options.include],
        [*common, *options.common],
        table.get("extra_cflags", []),
        [*table.get("extra_cuda_cflags", []), *options.only_cuda],
        place / table["budget"] if "budget" in table else None,
    )


def _table(folder: Path) -> tuple[dict[str, Any], Path]:
    """The table of the nearest pyproject.toml that has one, and that file's folder."""
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if re.search(r"^\s*\[\s*tool\s*\.\s*[\"']?kernel-xray\b", text, re.MULTILINE):
            return _checked(_parsed(text, file), file), place
    return {}, folder


def _parsed(text: str, file: Path) -> dict[str, Any]:
    try:
        return toml.loads(text).get("tool", {}).get("kernel-xray", {})
    except toml.TOMLDecodeError as error:
        raise SubjectError(f"{file} is not TOML: {error}") from None


def _checked(table: dict[str, Any], file: Path) -> dict[str, Any]:
    for key, value in table.items():
        where = f"{file}: [tool.kernel-xray]: {key}"
        if key not in (*_LISTS, *_TEXTS):
            close = difflib.get_close_matches(key, [*_LISTS, *_TEXTS], n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join((*_LISTS, *_TEXTS))}"
            raise SubjectError(f"{where} is not known; {hint}")
        if key in _TEXTS and not isinstance(value, str):
            raise SubjectError(f"{where} is {value!r}; give a text")
        if key in _LISTS and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise SubjectError(f"{where} is {value!r}; give a list of texts")
    return table
