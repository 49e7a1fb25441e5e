"""GPUs as data: what each can do at most, a TOML file in gpus/ for each, every figure with its source."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_xray.machine import toml

GPUS = Path(__file__).parent / "gpus"
_FIGURES = {"sms": int, "clock_hz": float, "dram_bytes_per_second": float, "l2_bytes": int}
_OPTIONAL = ("l2_bytes_per_second", "launch_seconds", "blocks_per_second")
_GROUPS = ("flops", "latency")


@dataclass(frozen=True)
class GPU:
    """The limits of one GPU, per second where they are rates."""

    name: str
    capability: str
    sms: int
    clock_hz: float  # of the SMs, at most
    dram_bytes_per_second: float
    l2_bytes: int
    l2_bytes_per_second: float = 0.0  # between the L2 cache and all SMs, in either direction; 0: not known
    # By the type of the factors, per second; all but float32 and float64 on tensor cores, dense.
    flops: dict[str, float] = field(default_factory=dict)
    # Measured ones (build/measure_gpu.py), 0 or absent if nobody has.
    launch_seconds: float = 0.0  # of an empty kernel among many
    blocks_per_second: float = 0.0  # that can begin, at most
    latency: dict[str, float] = field(default_factory=dict)  # seconds of a load at least: from "l1", "l2", "dram"


def known() -> list[str]:
    """The names that `find` takes."""
    return sorted(path.stem for path in GPUS.glob("*.toml"))


def stem(name: str) -> str:
    """The name of a GPU as that of its file."""
    return re.sub(r"[\W_]+", "_", name.lower()).strip("_")


def known_like(name: str) -> Path | None:
    """The file of the GPU that `known` or nvidia-smi writes like this."""
    return next((GPUS / f"{each}.toml" for each in known() if f"_{each}_" in f"_{stem(name)}_"), None)


def find(name: str) -> GPU:
    """A GPU by its name, as `known` or nvidia-smi writes it, or by its file. ValueError for an unknown one."""
    path = Path(name) if name.endswith(".toml") else known_like(name)
    if path is None:
        raise ValueError(f"gpu is {name!r}; known are {', '.join(known())}, or the path of a .toml file")
    if not path.is_file():
        raise ValueError(f"gpu is {name!r}, which is not a file")
    return read(path)


def read(path: Path) -> GPU:
    """A file of gpus/, or one like it. ValueError for a figure that is missing, out of range or without a source."""
    found = {key: value for key, (value, _) in figures(path).items()}
    missing = next((key for key in _FIGURES if key not in found), None)
    if missing:
        raise ValueError(f"{path.name}: {missing} has no source")
    data = _data(path)
    given: dict[str, Any] = {key: kind(found[key]) for key, kind in _FIGURES.items()}
    given |= {key: found[key] for key in _OPTIONAL if key in found}
    for group in _GROUPS:
        given[group] = {k.partition(".")[2]: v for k, v in found.items() if k.startswith(f"{group}.")}
    return GPU(data["name"], data["capability"], **given)


def figures(path: Path) -> dict[str, tuple[float, str]]:
    """Value and source of each figure of a file, by its name, such as "flops.float32". ValueError as `read`."""
    data = _data(path)
    tables = {key: data[key] for key in (*_FIGURES, *_OPTIONAL) if key in data}
    tables |= {f"{group}.{key}": table for group in _GROUPS for key, table in data.get(group, {}).items()}
    for key, table in tables.items():
        if not str(table.get("source", "")).strip():
            raise ValueError(f"{path.name}: {key} has no source")
        if not table.get("value", 0) > 0:
            raise ValueError(f"{path.name}: {key} is {table.get('value')}; it must be greater than 0")
    return {key: (float(table["value"]), table["source"]) for key, table in tables.items()}


def _data(path: Path) -> dict:
    return toml.loads(path.read_text(encoding="utf-8"))
