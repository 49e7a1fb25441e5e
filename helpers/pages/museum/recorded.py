"""The output of NVIDIA's tools on the exhibits, recorded on a GPU: results/sanitizer_vs_xray.json."""

import json
from dataclasses import dataclass
from pathlib import Path

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

    A session that was recorded on another day than the rest has its own date.
    """
    document = _read(path)
    if document is None:
        return Session("", HOW, "")
    for session in document["sessions"]:
        if session["name"] == name:
            return Session(session["command"], session["output"], _label({**document["machine"], **session}))
    raise ValueError(f"no session {name!r}; there are {', '.join(s['name'] for s in document['sessions'])}")


def verdicts(path: Path = PATH) -> list[dict]:
    """What each tool found in each exhibit of the X-ray: the file's records; [] if there is no file."""
    document = _read(path)
    return document["records"] if document else []


def side_by_side(path: Path = PATH) -> str:
    """A line per exhibit: what the X-ray and each of compute-sanitizer's tools found."""
    document = _read(path)
    if document is None:
        return HOW
    lines = []
    for record in document["records"]:
        said = {"X-ray": record["xray"], **record["tools"]}
        found = (f"{tool}: {_kind(verdict)}" for tool, verdict in said.items())
        lines.append(f"{record['exhibit']:<19}" + "; ".join(found))
    return "\n".join([*lines, f"[recorded on {_label(document['machine'])}]"])


def _kind(verdict: dict | None) -> str:
    return "did not end" if verdict is None else verdict["kind"] or "nothing"


def _read(path: Path) -> dict | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _label(machine: dict) -> str:
    return f"{machine['gpu']}, {machine['date']}"
