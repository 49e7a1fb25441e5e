"""GPUs as data: what each can do at most, a TOML file in gpus/ for each, every figure with its source."""

import re
from dataclasses import dataclass
from pathlib import Path

from kernel_xray.machine import toml

GPUS = Path(__file__).parent / "gpus"
_FIGURES = {"sms": int, "clock_hz": float, "dram_bytes_per_second": float, "l2_bytes": int}


@dataclass(frozen=True)
class GPU:
    """The limits of one GPU, per second where they are rates."""

    name: str
    capability: str
    sms: int
    clock_hz: float  # of the SMs, at most
    dram_bytes_per_second: float
    l2_bytes: int
    l2_bytes_per_second: float  # between the L2 cache and all SMs, in either direction; 0: not known
    flops: dict[str, float]  # by the type of the factors, per second; all but float32 on tensor cores, dense


def known() -> list[str]:
    """The names that `find` takes."""
    return sorted(path.stem for path in GPUS.glob("*.toml"))


def find(name: str) -> GPU:
    """A GPU by its name, as `known` or nvidia-smi writes it. ValueError for an unknown one."""
    wanted = re.sub(r"[\W_]+", "_", name.lower()).strip("_")
    for stem in known():
        if f"_{stem}_" in f"_{wanted}_":
            return read(GPUS / f"{stem}.toml")
    raise ValueError(f"gpu is {name!r}; known are {', '.join(known())}")


def read(path: Path) -> GPU:
    """A file of gpus/, or one like it. ValueError for a figure that is missing, out of range or without a source."""
    data = toml.loads(path.read_text(encoding="utf-8"))

    def figure(table: dict, key: str) -> float:
        entry = table.get(key, {})
        if not str(entry.get("source", "")).strip():
            raise ValueError(f"{path.name}: {key} has no source")
        if not entry.get("value", 0) > 0:
            raise ValueError(f"{path.name}: {key} is {entry.get('value')}; it must be greater than 0")
        return entry["value"]

    flops = data.get("flops", {})
    figures = {key: kind(figure(data, key)) for key, kind in _FIGURES.items()}
    to_l2 = figure(data, "l2_bytes_per_second") if "l2_bytes_per_second" in data else 0.0
    rates = {key: float(figure(flops, key)) for key in flops}
    return GPU(data["name"], data["capability"], **figures, l2_bytes_per_second=to_l2, flops=rates)
