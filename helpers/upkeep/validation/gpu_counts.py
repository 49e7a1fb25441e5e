"""What ncu counted on a GPU, as a file: the simulator's side may then be counted on another machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from helpers.ladder.results.records import write_lists
from helpers.upkeep.validation import documents, sass
from helpers.upkeep.validation.case import Case
from helpers.upkeep.validation.counters import Counts

NAME = "ncu.json"


@dataclass(frozen=True)
class Measured:
    """The counts of a case, and the memory instructions in its kernel's machine code ("" if they are unknown)."""

    counts: Counts
    sass: str


def write(folder: Path, machine: dict, cases: Sequence[Case], counts: Sequence[Counts | None]) -> None:
    """Writes the counts of the cases, in their order; a case without counts is left out."""
    listings = _listings()
    launches = [
        {"name": case.name, "kernel": c.kernel, "sass": sass.find(listings, c.kernel), "counts": c.values}
        for case, c in zip(cases, counts, strict=True)
        if c is not None
    ]
    write_lists(folder / NAME, {"machine": machine, "launches": launches})


def read(folder: Path) -> tuple[dict, dict[str, Measured]]:
    """The machine, and what was measured of each case, by its name. Raises RuntimeError if there is no such file."""
    path = folder / NAME
    if not path.exists():
        raise RuntimeError(
            f"{path} is missing; on a GPU, python -m helpers.upkeep.validation {folder} --only ncu writes it"
        )
    document = documents.read(path)
    found = {e["name"]: Measured(Counts(e["counts"], e["kernel"]), e["sass"]) for e in document["launches"]}
    return document["machine"], found


def _listings() -> dict[str, str]:
    listings: dict[str, str] = {}
    for path in torch.ops.loaded_libraries:
        if "validation_" in Path(path).name and "_traced" not in Path(path).name:
            listings |= sass.of_library(Path(path))
    return listings
