"""Checks of the loader's arguments: each error names the argument, the value received and what to give."""

import re
from pathlib import Path
from typing import Any


class SubjectError(ValueError):
    """Sources and arguments that do not fit together. The message says what to give instead."""


class CallError(SubjectError):
    """An expression that cannot be run. The message names the line, and what could be called instead."""


def check_name(name: object) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"name is {name!r}; it becomes a C++ and Python name: use letters, digits and underscores")
    if name in ("aten", "prim", "prims", "quantized", "torch", "_C"):
        raise ValueError(f"name is {name!r}, which PyTorch uses itself; choose another")


def as_list(argument: str, value: Any) -> list[str | Path]:
    values = [value] if isinstance(value, (str, Path)) else value
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, (str, Path)) for v in values):
        raise TypeError(f"{argument} is {value!r}; give a path or a list of paths")
    return list(values)


def strings(argument: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not all(isinstance(v, str) for v in value):
        raise TypeError(f"{argument} is {value!r}; give a list of strings, one for each flag")
    return list(value)


def texts(argument: str, value: Any) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise TypeError(f"{argument} is {type(value).__name__}; give the source as a string or a list of strings")
    return list(values)


def source_path(source: str | Path, argument: str = "sources") -> Path:
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(f"{argument} names {path}, which is a folder; give the .cu or .cpp files in it")
    if not path.is_file():
        raise FileNotFoundError(f"{argument} names {path}, which does not exist (looked in {Path.cwd()})")
    return path.resolve()
