"""What the benchmarks of our own tools share: the form in which each is declared, its command, and its record.

Each module declares one `BENCHMARK`: `measure` returns what it found and prints nothing, `table` is its text, and the
runner here does the rest.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.paths import RESULTS


def positive(text: str) -> int:
    """An option's value, 1 or more. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)


@dataclass(frozen=True)
class Benchmark:
    """A flag of `python -m helpers bench`.

    measure  given the options: what was found, JSON if it can be recorded. Raises RuntimeError if it fails
    table    that as text
    options  name -> keywords of ArgumentParser.add_argument
    file     in results/, for --record
    where    what it needs, for one that needs GPUs: its document is {"machine": ..., "records": what was found}
    refusal  for such a one, given the options: why this machine cannot measure; its command shows `file` then
    right    whether what was found is as it should be
    """

    flag: str
    about: str | None
    measure: Callable[[argparse.Namespace], Any]
    table: Callable[[Any], str] = str
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    file: str = ""
    where: str = ""
    refusal: Callable[[argparse.Namespace], str | None] = lambda options: None
    right: Callable[[Any], bool] = lambda found: True

    def main(self, arguments: list[str]) -> int:
        """Measures, prints and records. The exit status is 0 if it was measured and is right."""
        options = self._parser().parse_args(arguments)
        if reason := self.refusal(options):
            print(f"bench: {reason}", file=sys.stderr)
            print(self.recorded())
            return 1
        try:
            found = self.measure(options)
        except RuntimeError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
        if self.where:
            from helpers.upkeep.benchmarks.conditions import commit_name, machine_record

            found = {"machine": machine_record(commit_name()), "records": found}
        print(self.table(found))
        if self.file and options.record:
            options.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0 if self.right(found) else 1

    def recorded(self, path: Path | None = None) -> str:
        """What was recorded, as text; "not measured yet ..." and the command that measures it if there is nothing."""
        path = path or RESULTS / self.file
        if path.is_file():
            return self.table(json.loads(path.read_text(encoding="utf-8")))
        return f"not measured yet; {self.where}: python -m helpers bench {self.flag} --record results/{path.name}"

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog="python -m helpers bench", description=self.about)
        parser.add_argument(self.flag, action="store_true", required=True, help="run this benchmark")
        if self.file:
            note = f"also write the results there: results/{self.file}"
            parser.add_argument("--record", type=Path, metavar="FILE", help=note)
        for name, how in self.options.items():
            parser.add_argument(name, **how)
        return parser


def cpu_seconds(*, own: bool) -> float:
    """Processor time of this process's descendants that have ended, and its `own`."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, *[resource.RUSAGE_SELF] * own)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
