"""What the benchmarks of our own tools share: options, the record of a run on a GPU, and showing what was recorded.

Each of builds, feedback, simulator, tracing, overhead and scaling has `measure` (returns numbers, prints nothing),
`table` (their text) and `main` (the command line of its flag of `python -m helpers bench`).
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def parser(flag: str, description: str | None, *, record: str = "") -> argparse.ArgumentParser:
    """The options of one benchmark: its flag and, if it records, --record, with `record` as the example of a file."""
    made = argparse.ArgumentParser(prog="python -m helpers bench", description=description)
    made.add_argument(flag, action="store_true", required=True, help="run this benchmark")
    if record:
        made.add_argument("--record", type=Path, metavar="FILE", help=f"also write the results there: results/{record}")
    return made


def positive(text: str) -> int:
    """An option's value, 1 or more. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)


def save(document: Mapping, path: Path | None) -> None:
    """Writes a document as JSON, if there is a path."""
    if path is not None:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def recorded(path: Path, table: Callable[[Mapping], str], command: str) -> str:
    """The recorded document as text, or "not measured yet" and the command that measures it."""
    if not path.is_file():
        return f"not measured yet; {command} --record results/{path.name}"
    return table(json.loads(path.read_text(encoding="utf-8")))


def refuse(reason: str, known: str) -> int:
    """Prints why nothing is measured here, and what is recorded. Returns the exit status 1."""
    print(f"bench: {reason}", file=sys.stderr)
    print(known)
    return 1


def finish(records: list[dict], table: Callable[[Mapping], str], path: Path | None) -> int:
    """Prints records measured on this machine's GPU and saves them with the machine. Returns the exit status 0."""
    from helpers.upkeep.benchmarks.conditions import commit_name, machine_record

    document = {"machine": machine_record(commit_name()), "records": records}
    print(table(document))
    save(document, path)
    return 0
