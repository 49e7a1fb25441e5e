"""The command lines of the yardsticks: what they try, where the results go."""

import argparse
import os
from pathlib import Path

from helpers.ladder.results.records import write_lists
from helpers.paths import RESULTS
from helpers.upkeep.benchmarks.tools import positive
from helpers.upkeep.validation.yardsticks import graphs, indigo, page, rodinia, rodinia_inputs, rodinia_runs, trials
from kernel_xray.machine import cache
from kernel_xray.runtime import libsimt


def main(suite: str, arguments: list[str]) -> int:
    """Runs a suite, writes its results and docs/yardsticks.md, and prints the summary. Returns the exit status 0."""
    parser = argparse.ArgumentParser(prog=f"python -m helpers.upkeep.validation {suite}", description=__doc__)
    parser.add_argument("folder", type=Path, help="a copy of the suite")
    parser.add_argument("--workers", type=positive, default=os.cpu_count() or 1, help="cases at a time")
    parser.add_argument("--only", default="", help="a part of the names of the cases to run; nothing is recorded")
    parser.add_argument("--out", type=Path, default=RESULTS / f"{suite}.json", help="the file for the results")
    if suite == "indigo":
        parser.add_argument("--sample", type=positive, help="how many kernels to run at random; default: all")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    machine = trials.machine(suite, options.folder)
    libsimt.runtime_library()  # built once, before the workers ask for it
    key = cache.digest(machine["suite_commit"], machine["commit"], str(options.folder.resolve()))
    work = cache.root() / f"{suite}-{key}"
    work.mkdir(exist_ok=True)
    try:
        document = {"machine": machine, **{"indigo": _indigo, "rodinia": _rodinia}[suite](options, work)}
    except FileNotFoundError as error:
        parser.error(str(error))
    if not document["records"]:
        parser.error(f"no case has {options.only!r} in its name")
    print(page.table(suite, document))
    if not options.only:
        write_lists(options.out, document)
        page.write()
    return 0


def _indigo(options: argparse.Namespace, work: Path) -> dict:
    every = indigo.cases(options.folder, work, graphs.make(work), options.only)
    found = indigo.sample(every, options.sample)
    records = trials.run("Indigo", indigo.examine, found, options.workers, work / "finished.jsonl")
    return {"summary": indigo.summary(records, len(every)), "records": records}


def _rodinia(options: argparse.Namespace, work: Path) -> dict:
    rodinia_inputs.make(work / "data", options.folder / "data")
    found = [
        rodinia_runs.RodiniaCase(program, options.folder.resolve(), work)
        for program in rodinia.PROGRAMS
        if options.only in program.name
    ]
    records = trials.run("Rodinia", rodinia_runs.examine, found, options.workers, work / "finished.jsonl")
    return {"summary": rodinia_runs.summary(records), "records": records}
