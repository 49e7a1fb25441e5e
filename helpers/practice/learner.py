"""What a learner has tried and solved, kept in a file of their own.

It is `kernel_ladder/progress.json` in the user's data folder (XDG_DATA_HOME, or ~/.local/share), which outlives the
build cache and serves every copy of the course. KERNEL_LADDER_PROGRESS names another file. It holds
`{"exercises": {NAME: {"tries": 3, "last": "rejected", "solved": "2026-11-23"}}}`; `solved` is missing until an answer
was accepted. Nothing here raises for a file that cannot be read or written: a sentence on stderr says what is lost.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypedDict

from helpers.practice.verdict import Verdict
from kernel_xray.machine import cache

VARIABLE = "KERNEL_LADDER_PROGRESS"
NOWHERE = Path(os.devnull)  # as VARIABLE: nothing is kept
TRIED = ("accepted", "rejected", "not built", "fault")  # kinds of verdicts that count as a try


class Record(TypedDict, total=False):
    """What is known about one exercise."""

    tries: int
    last: str  # the kind of the last verdict
    solved: str  # the day of the first accepted answer


Records = dict[str, Record]


def place() -> Path:
    """The file with the learner's progress; it may not exist yet."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base).expanduser() / "kernel_ladder" / "progress.json"


def noted(verdict: Verdict) -> Verdict:
    """Records a verdict on a learner's answer, and returns it. An answer that equals the starter is not a try."""
    if verdict.kind in TRIED:
        _change(lambda records: _add(records, verdict))
    return verdict


def records() -> Records:
    """What is recorded, by the exercise's name. A damaged file is set aside, with a sentence on stderr."""
    path = place()
    try:
        return _read(path)
    except OSError as error:
        _say(f"your progress cannot be read: {path} ({error.strerror or error})")
        return {}


def reset(names: Iterable[str] = ()) -> None:
    """Forgets the exercises `names`; without names, all."""
    given = list(names)
    _change(lambda found: [found.pop(name, None) for name in given or list(found)])


def _add(found: Records, verdict: Verdict) -> None:
    record = found.setdefault(verdict.name, {})
    record["tries"] = record.get("tries", 0) + 1
    record["last"] = verdict.kind
    if verdict.accepted:
        record.setdefault("solved", time.strftime("%Y-%m-%d"))


def _change(edit: Callable[[Records], object]) -> None:
    """Reads, edits and writes the records; of several processes, one at a time."""
    path = place()
    if path == NOWHERE:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_name(f".{path.name}.lock"), "w") as file, cache.lock(file):
            found = _read(path)
            edit(found)
            cache.write_whole(path, json.dumps({"exercises": found}, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        why = error.strerror or error
        _say(f"your progress was not saved: {path} cannot be written ({why}); set {VARIABLE} to a file that can")


def _read(path: Path) -> Records:
    """The records in a file. Sets a damaged one aside; raises OSError if it cannot be read or is not a file."""
    if path == NOWHERE or not path.exists():
        return {}
    if not path.is_file():
        raise OSError("it is not a file")
    try:
        return _understood(json.loads(path.read_text(encoding="utf-8"))["exercises"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
        os.replace(path, aside)
        _say(f"your progress begins anew: {path} is not what the course writes; it is kept as {aside.name}")
        return {}


def _understood(found: dict) -> Records:
    """The records of a file. Raises TypeError if one of them is not a record."""
    for name, record in found.items():
        if not (isinstance(name, str) and isinstance(record["tries"], int) and isinstance(record["last"], str)):
            raise TypeError(name)
        if not isinstance(record.get("solved", ""), str):
            raise TypeError(name)
    return found


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
