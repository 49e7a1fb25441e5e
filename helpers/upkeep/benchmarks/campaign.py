"""A campaign: measures some operators, in a fresh process for each operator and dtype, and records the results.

A failure is reported and does not stop the rest. The file is written after each process, so a later failure loses no
measurement.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.ladder import results
from helpers.ladder.catalogue import Operator
from helpers.ladder.results.table import record_table
from helpers.upkeep.benchmarks import worker

Launch = Callable[[Mapping], list[dict]]


def launch_together(jobs: Sequence[Mapping]) -> list[dict]:
    """Runs jobs at the same time, each in a fresh process. For builds only: nothing is timed."""
    started = [(worker.start(job), job) for job in jobs]
    return [line for process, job in started for line in worker.collect(process, job)]


def _lacks(recorded: Mapping[tuple, set[str]], operator: Operator, dtype: str, shape: Sequence[int]) -> bool:
    """Whether a variant that is timed in this cell has no record there."""
    timed = {v for v in operator.variants if operator.takes(v, dtype, tuple(shape))}
    return not timed <= recorded.get((operator.name, dtype, tuple(shape)), set())


@dataclass
class Campaign:
    """What to measure, and where to record it (None: only print).

    shapes, dtypes           in place of the operators' own; given shapes also replace the sweep
    kernels                  names of those to measure, in place of all
    missing                  leave out the cells of which `record` has every variant
    launch, launch_together  run one job in a fresh process, or several at once
    """

    operators: Mapping[str, Operator]
    record: str | None = None
    replace: bool = False
    commit: str = "unknown"
    budget_ms: float = 400.0
    dtypes: Sequence[str] | None = None
    shapes: Sequence[tuple[int, ...]] | None = None
    sweep: bool = True
    compiled: bool = True
    kernels: Sequence[str] | None = None
    missing: bool = False
    launch: Launch = worker.launch
    launch_together: Callable[[Sequence[Mapping]], list[dict]] = launch_together
    machine: dict | None = None
    failures: dict[str, str] = field(default_factory=dict)
    _begun: bool = False

    def jobs(self) -> list[dict]:
        """One job for each operator, dtype and shape with torch.compile as a peer; the first also has the sweep."""
        jobs = []
        recorded = self._recorded() if self.missing else {}
        for name, operator in self.operators.items():
            for place, dtype in enumerate(self.dtypes or operator.dtypes):
                shapes = list(self.shapes or operator.shapes)
                full = {"compiled": self.compiled, "budget_ms": self.budget_ms}
                each: list[list[dict[str, Any]]] = [[{"shape": list(shape), **full}] for shape in shapes]
                if self.sweep and self.shapes is None and place == 0:
                    swept = [shape for shape in operator.sweep if shape not in shapes]
                    quick = {"compiled": False, "budget_ms": self.budget_ms / 4}
                    each[0] += [{"shape": list(shape), **quick} for shape in swept]
                if self.missing:
                    each = [[c for c in cells if _lacks(recorded, operator, dtype, c["shape"])] for cells in each]
                common = {"op": name, "dtype": dtype, "commit": self.commit, **self._chosen()}
                jobs += [{**common, "cells": cells} for cells in each if cells]
        return jobs

    def run(self) -> int:
        """Builds, measures, prints and records. Returns 0 if nothing failed, else 1."""
        started = time.monotonic()
        if self.record and not self.replace and Path(self.record).exists():
            results.read(self.record)  # fails now if nothing can be added to the file
        jobs = self.jobs()
        built = dict.fromkeys(job["op"] for job in jobs)
        self._take(
            self.launch_together([{"op": op, "build": True, "commit": self.commit, **self._chosen()} for op in built])
        )
        print(f"built in {time.monotonic() - started:.0f} s", flush=True)
        if self.machine and self.record:
            self._write([])  # a file of another machine is refused now, not after minutes of measuring
        for job in jobs:
            records = self._take(self.launch(job))
            if records and self.machine:
                title = f"{job['op']}, {job['dtype']} on {self.machine['gpu']}"
                print(record_table(records, f"{title} ({time.monotonic() - started:.0f} s)"), flush=True)
                if self.record:
                    self._write(records)
        for where, why in self.failures.items():
            lines = [line for line in why.splitlines() if line.strip()]
            print(f"bench: FAILED {where}: " + "\n    ".join(lines[:12]), file=sys.stderr)
        if self.record and self._begun:
            print(f"recorded in {self.record}")
        return 1 if self.failures else 0

    def _chosen(self) -> dict:
        return {"kernels": list(self.kernels)} if self.kernels else {}

    def _recorded(self) -> dict[tuple, set[str]]:
        """The variants that the file has, by operator, dtype and shape."""
        found: dict[tuple, set[str]] = {}
        for r in results.read(self.record)["records"] if self.record and Path(self.record).exists() else ():
            found.setdefault((r["op"], r["dtype"], tuple(r["shape"])), set()).add(r["variant"])
        return found

    def _take(self, lines: Sequence[Mapping]) -> list[dict]:
        """Keeps the machine and the failures that a process emitted, and returns its records."""
        records = []
        for line in lines:
            self.machine = line.get("machine", self.machine)
            self.failures |= line.get("failures", {})
            if "cell" in line:
                cell = line["cell"]
                where = f"{cell['op']}, {cell['dtype']}, {cell['shape']}"
                self.failures |= {f"{where}, {name}": why for name, why in cell["failures"].items()}
                records += cell["records"]
        return records

    def _write(self, records: Sequence[dict]) -> None:
        assert self.record is not None
        assert self.machine is not None
        old = results.read(self.record) if Path(self.record).exists() else None
        document = results.merge(
            old, self.machine, records, replace=self.replace and not self._begun, variants=bool(self.kernels)
        )
        if records:
            results.write(self.record, document)
            self._begun = True
