"""The pages of recorded measurements: tables and plots of results/, each with GPU, date and commit."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from helpers.ladder.catalogue import OPERATORS
from helpers.ladder.results import plots, scoreboard
from helpers.ladder.results.records import Recorded, recorded
from helpers.ladder.results.table import Table, recorded_table
from helpers.ladder.results.table import markdown as lines_of
from helpers.paths import RESULTS
from helpers.upkeep.benchmarks import overhead, scaling
from kernel_xray.report.canvas import Picture

INTRODUCTION = """# Measurements

Every number here comes from a file in `results/`, which names its machine; each record has the date and the commit of
its own run. The tables show each operator at its largest shape; `python -m helpers bench --show OP` prints them, and
the files hold all shapes. More than 100% of a copy is possible: a copy reaches less than the data sheet's bandwidth,
and reading is cheaper than writing.
"""


def pages(folder: Path) -> dict[str, str]:
    """Path -> text of the page of measurements; its plots are written below `folder`."""
    sections = [INTRODUCTION, *map(machine, recorded()), "## The matmul ladder\n"]
    for dtype in ("float32", "bfloat16"):
        sections += [markdown(scoreboard.scoreboard(dtype)), plot(folder, f"ladder_{dtype}", scoreboard.ladder(dtype))]
    sections += ["## Two roofs\n", plot(folder, "roofline", plots.roofline()), "## Every operator\n"]
    for op in OPERATORS:
        if found := recorded(op):
            title = "; ".join(f"{part.label}, commit {', '.join(commits(part))}" for part in found)
            sections += [f"### {op}\n", markdown(replace(recorded_table(op, found), title=title))]
    sections += other_tables()
    return {"results/index.md": "\n".join(sections)}


def machine(found: Recorded) -> str:
    """What a file was measured on, and the commits of its records."""
    m = found.machine
    return (
        f"`results/{found.path.name}`: {found.label}; driver {m['driver']}, CUDA {m['cuda']}, PyTorch {m['torch']}; "
        f"{len(found.records)} records, measured at commit {', '.join(commits(found))}.\n"
    )


def commits(found: Recorded) -> list[str]:
    """The commits at which records were measured, shortened."""
    return sorted({record["commit"][:12] for record in found.records})


def parts(folder: Path) -> dict[str, str]:
    """Name -> text of what pages of docs/ take from here."""
    return {"ladder_plot": plot(folder, "ladder_float32", scoreboard.ladder(), below="results/")}


def other_tables() -> list[str]:
    """Sections for the files of other forms, as their commands print them."""
    tables: tuple[tuple[str, str, Callable[[Mapping], str]], ...] = (
        ("What a call costs", "call_overhead", overhead.table),
        ("Several GPUs", "many_gpus", scaling.table),
    )
    found = []
    for title, name, table in tables:
        document = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        machine = document["machine"]
        where = f"{machine['gpu']}, {machine['date']}, commit {machine['commit'][:12]}"
        found.append(f"## {title}\n\n`results/{name}.json`: {where}.\n\n```text\n{table(document)}\n```\n")
    return found


def plot(folder: Path, name: str, picture: Picture, below: str = "") -> str:
    """Writes results/NAME.png below `folder`; returns Markdown that shows it, with its values as alternative text."""
    path = folder / "results" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    png, _ = picture._repr_png_()
    path.write_bytes(png)
    return f"```{{image}} {below}{name}.png\n:alt: {' '.join(repr(picture).split())}\n:width: 900px\n```\n"


def markdown(table: Table) -> str:
    """A table in Markdown: its title above, its notes below. A name at its edges may wrap after an underscore."""
    sides = [":---", *("---:",) * (len(table.header) - 1)]
    sides[-1] = ":---" if table.sentences else sides[-1]
    rows = [[row[0].replace("_", "_<wbr>"), *row[1:]] for row in table.rows]
    lines = lines_of([name.replace("_", "_<wbr>") for name in table.header], rows, sides) if rows else []
    return "\n".join([f"**{table.title}**", "", *lines, "", *(f"{note}\n" for note in table.notes)])
