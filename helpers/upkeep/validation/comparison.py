"""The whole validation. A part that fails is reported and left out."""

import functools
import os
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import torch

from helpers.ladder.results.records import write_lists
from helpers.pages import museum
from helpers.upkeep.benchmarks.conditions import commit_name, machine_record
from helpers.upkeep.validation import counted as cases
from helpers.upkeep.validation import counters, documents, gpu_counts, ncu, sanitizer, sessions
from helpers.upkeep.validation.case import Case
from kernel_xray.machine import toolchain
from kernel_xray.report import machine_code

PARTS = ("counts", "bugs", "sessions")
HALVES = ("ncu", "simulator")  # of "counts": the first needs the GPU, the second what the first has left in `out`
Job = tuple[str, tuple[str, ...], bool]  # a tool, the exhibits of one process, whether to run their fixed twins


class Campaign:
    """Writes into the folder `out`; `say` prints a line of progress.

    launches: a part of the names of the launches to count, in place of all. The others' counts stay in `out`.
    """

    def __init__(self, out: Path, jobs: int = 0, say: Callable[[str], None] = print, launches: str = ""):
        self.out, self.say, self.launches = out, say, launches
        self.cases = [case for case in cases.CASES if launches in case.name]
        self.jobs = jobs or max(2, min(12, (os.cpu_count() or 2) - 2))
        self.errors: list[str] = []
        self.began = time.monotonic()
        out.mkdir(parents=True, exist_ok=True)

    def run(self, parts: tuple[str, ...] = PARTS) -> int:
        """Runs the parts; returns 0 if all of them finished."""
        self.machine = {"gpu": "unknown", "date": "", "commit": ""}
        if parts != ("simulator",):
            self.machine = self._part("machine", lambda: machine_record(commit_name())) or self.machine
        self._part("builds", lambda: self._build(parts))
        if "counts" in parts:
            self._part("counts", self._counts)
        if "ncu" in parts:
            self._part("ncu", self._ncu)
        if "simulator" in parts:
            self._part("simulator", lambda: self._write(self._simulator()))
        bugs = (self._part("bugs", self._bugs) or []) if "bugs" in parts else []
        told = (self._part("sessions", lambda: sessions.record(self.jobs)) or []) if "sessions" in parts else []
        if bugs or told:
            document = {"machine": self.machine, "records": bugs, "sessions": told}
            write_lists(self.out / "sanitizer_vs_xray.json", document)
            (self.out / "sanitizer_vs_xray.md").write_text(documents.bugs_table(document), encoding="utf-8")
        (self.out / "errors.log").write_text("\n".join(self.errors), encoding="utf-8")
        self._tell(f"done; {len(self.errors)} parts failed" + (": see errors.log" if self.errors else ""))
        return 1 if self.errors else 0

    def _part(self, name: str, function: Callable[[], object]):
        self._tell(name)
        try:
            return function()
        except Exception:
            self.errors.append(f"{name}:\n{traceback.format_exc()}")
            self._tell(f"{name} failed: {sys.exc_info()[1]}"[:500])
            return None

    def _tell(self, text: str) -> None:
        self.say(f"[{time.monotonic() - self.began:5.0f} s] {text}")

    def _build(self, parts: tuple[str, ...]) -> None:
        """Builds everything for the sides that these parts have, so that child processes find it built."""

        def course(traced: bool) -> list[Callable[[], object]]:
            device = torch.device("cpu") if traced else toolchain.device
            one_of_each = {case.source: case for case in self.cases}.values()
            return [functools.partial(case.prepared, device, traced) for case in one_of_each]

        work: list[Callable[[], object]] = []
        if parts != ("simulator",):
            work += course(traced=False)
        if parts != ("ncu",):
            museum.operators("bounds")  # builds the simulator too, once for all
            work += course(traced=True)
        if set(parts) - set(HALVES):
            work += [functools.partial(museum.operators, f, traced=False) for f in (*compared(), "values", "host")]
            work += [functools.partial(museum.operators, f) for f in compared()]
        with ThreadPoolExecutor(self.jobs) as pool:
            for build in [pool.submit(w) for w in work]:
                build.result()

    def _counts(self) -> None:
        with ThreadPoolExecutor(1) as pool:  # ncu runs in a separate process; the simulator here
            waiting = pool.submit(self._ncu)
            mine = self._simulator()
            waiting.result()
        self._write(mine)

    def _ncu(self) -> None:
        counts = ncu.measure(self.cases, self.out / "ncu.csv", self.launches)
        gpu_counts.write(self.out, self.machine, self.cases, counts)

    def _simulator(self) -> list[tuple[counters.Counts | None, counters.Counts | None]]:
        """The counts of each case: of the source, and corrected by SASS."""
        mine = [self._simulated(case) for case in self.cases]
        with suppress(RuntimeError):  # what fails, fails again below, where it is told
            machine_code.compile_remembered(self.jobs)
        corrected = [self._simulated(case, sass=True) for case in self.cases]
        return list(zip(mine, corrected, strict=True))

    def _write(self, mine: list[tuple[counters.Counts | None, counters.Counts | None]]) -> None:
        machine, theirs = gpu_counts.read(self.out)
        here = commit_name()
        if machine["commit"] != here:
            machine = {**machine, "simulator_commit": here}
            self._tell(f"ncu counted commit {machine['commit']}, the simulator {here}: the kernels must be the same")
        records: list[dict] = []
        for case, (simulator, by_sass) in zip(self.cases, mine, strict=True):
            counted = theirs.get(case.name)
            if simulator is None or counted is None:
                self.errors.append(f"{case.name}: no counts of {'the simulator' if simulator is None else 'ncu'}")
                continue
            records += counters.records(case, simulator, counted.counts, counted.sass, by_sass)
        document = {"machine": machine, "records": records}
        if self.launches:
            document = self._added(records, machine["commit"])
        write_lists(self.out / "xray_vs_ncu.json", document)
        (self.out / "xray_vs_ncu.md").write_text(documents.counts_table(document), encoding="utf-8")
        for heading, launches, agreed, after, _ in documents.summary(document):
            self._tell(f"{heading}: {agreed} of {launches} equal in every counter, {after} once corrected by SASS")
        for line in documents.without_a_row(document):
            self._tell(line)

    def _added(self, records: list[dict], commit: str) -> dict:
        """The recording in `out` with these records, of another commit, in place of its own."""
        document = documents.read(self.out / "xray_vs_ncu.json")
        again = [case.name for case in self.cases]
        of_case: dict[str, list[dict]] = {case.name: [] for case in cases.CASES}
        for record in document["records"]:
            if record["kernel"] not in again:
                of_case[record["kernel"]].append(record)
        for record in records:
            of_case[record["kernel"]].append({**record, "commit": commit})
        return {**document, "records": [record for its in of_case.values() for record in its]}

    def _simulated(self, case: Case, sass: bool = False) -> counters.Counts | None:
        try:
            return counters.simulated(case, sass)
        except Exception as error:
            self.errors.append(f"{case.name}, in the simulator{', by SASS' if sass else ''}: {error}")
            return None

    def _bugs(self) -> list[dict]:
        """Runs each bug of the X-ray under each of compute-sanitizer's tools, a process each; then the fixed twins."""
        families = compared()
        shown = [e for e in museum.EXHIBITS if e.tool == "xray" and e.family in families]
        jobs: list[Job] = [(tool, (e.name,), False) for e in shown for tool in sanitizer.FOR_FAMILY[e.family]]
        for family in families:  # all twins together: no tool should report one
            twins = tuple(e.name for e in shown if e.family == family)
            jobs += [(tool, twins, True) for tool in sanitizer.FOR_FAMILY[family]]
        outputs = self._under_tools(jobs)
        loud = [job for job in jobs if job[2] and sanitizer.parse(outputs[job]) != sanitizer.Verdict("")]
        outputs |= self._under_tools([(tool, (name,), True) for tool, names, _ in loud for name in names])
        log = [
            f"##### {tool}: {', '.join(names)}{', fixed' if fixed else ''}\n{text}"
            for (tool, names, fixed), text in outputs.items()
        ]
        (self.out / "sanitizer.log").write_text("\n".join(log), encoding="utf-8")
        found: dict[tuple, sanitizer.Verdict | None] = {}
        for (tool, names, fixed), text in outputs.items():
            if (tool, names, fixed) not in loud:
                found |= {(name, tool, fixed): sanitizer.parse(text) for name in names}
        return [bug_record(exhibit, found) for exhibit in shown]

    def _under_tools(self, jobs: list[Job]) -> dict[Job, str]:
        with ThreadPoolExecutor(self.jobs) as pool:
            return dict(zip(jobs, pool.map(lambda job: sanitizer.run(*job), jobs), strict=True))


def compared() -> list[str]:
    """The museum's families that this machine's GPU can run under compute-sanitizer; `units` needs a Hopper GPU."""
    hopper = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    return [family for family in sanitizer.FOR_FAMILY if family != "units" or hopper]


def bug_record(exhibit: museum.Exhibit, found: dict) -> dict:
    """The record of an exhibit: where the bug is, what the X-ray found, what each tool found of it and of its twin."""
    mine, twin, planted = museum.examine(exhibit), museum.examine(exhibit, fixed=True), museum.planted(exhibit)
    assert planted is not None

    def verdicts(fixed: bool) -> dict:
        of = {tool: found.get((exhibit.name, tool, fixed)) for tool in sanitizer.FOR_FAMILY[exhibit.family]}
        return {tool: verdict.as_dict() if verdict else None for tool, verdict in of.items()}

    return {
        "exhibit": exhibit.name,
        "kind": planted.kind,
        "line": planted.lines[0],
        "xray": {"kind": mine.kind, "place": mine.place, "count": int(mine.found)},
        "tools": verdicts(False),
        "fixed": {"xray": {"kind": twin.kind, "place": twin.place, "count": int(twin.found)}, **verdicts(True)},
    }
