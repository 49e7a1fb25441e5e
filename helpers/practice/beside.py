"""An accepted answer beside the solution: what both cost in one case, by their X-rays, and which exercise is next."""

import html
import json
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

from helpers.pages.pictures.show import shown_path
from helpers.practice import registry, trial
from helpers.practice.assistance import solution_source
from helpers.practice.traced_run import Counts
from kernel_xray.machine import cache
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime.libsimt import runtime_key

WORDS = {
    "launches": "kernels launched",
    "requests": "requests to global memory",
    "sectors": "sectors of global memory",
    "shared": "requests to shared memory",
    "wavefronts": "wavefronts of shared memory",
}


@dataclass(frozen=True)
class Beside:
    """`mine` and `theirs` are counts of the case `label`; without them there is no table."""

    name: str
    label: str = ""
    mine: Counts | None = None
    theirs: Counts | None = None

    def rows(self) -> list[tuple[str, int, int]]:
        """What is counted, the answer's and the solution's; what both lack is left out."""
        if self.mine is None or self.theirs is None:
            return []
        names = [WORDS[field.name] for field in fields(Counts)]
        rows = zip(names, astuple(self.mine), astuple(self.theirs), strict=True)
        return [row for row in rows if row[1] or row[2]]

    def __str__(self) -> str:
        shown = f"the solution is in {shown_path(registry.find(self.name).solution)}"
        lines = [shown] if registry.with_solutions() else []
        if rows := self.rows():
            lines.append(f"{self.label:<28} {'yours':>10} {'solution':>10}")
            lines += [f"  {what:<26} {mine:>10,} {theirs:>10,}" for what, mine, theirs in rows]
        following = registry.following(self.name)
        if following:
            lines.append(f"next: {following.title} ({shown_path(following.starter)})")
        return "\n".join(lines)

    def as_html(self) -> str:
        """A folded solution, a table, and the next exercise; the exercise alone in a copy without solutions."""
        following = registry.following(self.name)
        then = f"<div>Next: {html.escape(following.title)} (<code>{following.name}</code>).</div>" if following else ""
        if not registry.with_solutions():
            return then
        source = solution_source(self.name)._repr_html_()
        cell = 'style="text-align: right; padding: 0 12px 0 0"'
        table = ""
        if rows := self.rows():
            heads = "".join(f"<th {cell}>{html.escape(text)}</th>" for text in (self.label, "yours", "the solution"))
            body = "".join(
                f"<tr><td {cell}>{what}</td><td {cell}>{mine:,}</td><td {cell}>{theirs:,}</td></tr>"
                for what, mine, theirs in rows
            )
            table = f"<table><tr>{heads}</tr>{body}</table>"
        return f"<details><summary>Beside the solution</summary>{table}{source}</details>{then}"


def beside(name: str, label: str, mine: Counts | None) -> Beside:
    """The comparison for an answer whose X-ray of the case `label` counted `mine`. Builds the solution, once."""
    if mine is None or not registry.with_solutions():
        return Beside(name)
    solution = registry.find(name).solution
    kept = cache.root() / "exercises" / f"counts-{cache.digest(name, label, solution.read_bytes(), runtime_key())}.json"
    theirs = _read(kept)
    if theirs is None:
        with Progress(f"counting what the solution of {name} costs"):
            theirs = trial.count(name, solution, label)
    if theirs is not None and not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(theirs)), encoding="utf-8")
    return Beside(name, label, mine, theirs)


def _read(path: Path) -> Counts | None:
    try:
        return Counts(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
