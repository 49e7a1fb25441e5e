"""The output of NVIDIA's tools on the exhibits, recorded on a GPU: results/sanitizer_vs_xray.json."""

import json
from dataclasses import dataclass
from pathlib import Path

from helpers.ladder.results.table import Table
from helpers.paths import RESULTS

PATH = RESULTS / "sanitizer_vs_xray.json"
HOW = "not recorded yet; on a machine with a GPU: python -m helpers.upkeep.validation FOLDER"


@dataclass(frozen=True)
class Session:
    """A command and its output; the repr shows both, and the machine."""

    command: str
    output: str
    machine: str

    def __repr__(self) -> str:
        return f"$ {self.command}\n{self.output}\n[recorded on {self.machine}]" if self.machine else self.output


def recorded(name: str, path: Path = PATH) -> Session:
    """The session of this name: "asynchronous", "blocking", "memcheck", "racecheck", "ncu", ... Raises ValueError.

    A session that was recorded on another day than the rest has its own date. One that names a file or a module of the
    course says of which commit they are: both may have changed since.
    """
    document = _read(path)
    if document is None:
        return Session("", HOW, "")
    for session in document["sessions"]:
        if session["name"] == name:
            found = {**document["machine"], **session}
            names = ".cu:" in session["output"] or "helpers." in session["command"]
            since = f"; names and lines are those of commit {found['commit']}" if names else ""
            return Session(session["command"], session["output"], _label(found) + since)
    raise ValueError(f"no session {name!r}; there are {', '.join(s['name'] for s in document['sessions'])}")


def verdicts(path: Path = PATH) -> list[dict]:
    """What each tool found in each exhibit of the X-ray: the file's records; [] if there is no file."""
    document = _read(path)
    return document["records"] if document else []


def side_by_side(path: Path = PATH) -> Table:
    """A row per exhibit: what the X-ray and each of compute-sanitizer's tools found; no entry if it was not run."""
    document = _read(path)
    if document is None:
        return Table(HOW, [], [])
    records = document["records"]
    tools = list(dict.fromkeys(tool for record in records for tool in record["tools"]))
    rows = [
        [record["exhibit"], _kind(record["xray"]), *(_found(record["tools"], tool) for tool in tools)]
        for record in records
    ]
    return Table(f"recorded on {_label(document['machine'])}", ["exhibit", "X-ray", *tools], rows)


def _found(tools: dict, name: str) -> str:
    return _kind(tools[name]) if name in tools else ""


def _kind(verdict: dict | None) -> str:
    return "did not end" if verdict is None else verdict["kind"] or "nothing"


def _read(path: Path) -> dict | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _label(machine: dict) -> str:
    return f"{machine['gpu']}, {machine['date']}"
