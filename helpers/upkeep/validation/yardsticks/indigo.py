"""The Indigo suite: kernels over graphs, each with the bugs that its file name says. The X-ray should find just those.

Liu, Azami, Walters, Burtscher: The Indigo Program-Verification Microbenchmark Suite of Irregular Parallel Code
Patterns, ISPASS 2022. The suite's own generator writes the kernels from templates with tags; our graphs are the input.
A bug needs an input that shows it, so that each kernel runs on three graphs, with two launches each.
"""

import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_xray.build.programs import ProgramResult, program
from kernel_xray.translate.errors import BuildError

# The tag in a file's name -> the fault that it plants. guardBug: a plain read beside the atomics of other threads.
BUGS = {
    "atomicBug": "race",
    "guardBug": "race",
    "raceBug": "race",
    "syncBug": "race",
    "boundsBug": "out-of-bounds",
}
KINDS = ("race", "out-of-bounds")
# Threads in a block, and blocks: a block for each vertex of every graph, and so few that threads take several vertices.
LAUNCHES = ((64, 48), (32, 3))
SECONDS = 60.0  # for one run


@dataclass(frozen=True)
class IndigoCase:
    """A kernel, and what it runs on."""

    name: str
    file: Path
    include: Path
    graphs: tuple[Path, ...]


def bugs(name: str) -> list[str]:
    """The bugs that the name of a kernel's file says."""
    return [tag for tag in re.split(r"[_.]", name) if tag in BUGS]


def expected(name: str) -> list[str]:
    """The kinds of faults that the X-ray should report, and no others."""
    planted = {BUGS[bug] for bug in bugs(name)}
    return [kind for kind in KINDS if kind in planted]


def sources(folder: Path, work: Path) -> tuple[list[Path], Path]:
    """The kernels and the folder of their header. A copy of the suite's generator writes them into `work` if need be.

    Raises FileNotFoundError if `folder` holds neither a generated suite nor its generator.
    """
    generated = next((path.parent for path in sorted(folder.rglob("CUDA")) if (path.parent / "include").is_dir()), None)
    if generated:
        return sorted((generated / "CUDA").rglob("*.cu")), generated / "include"
    generators = folder / "Generators"
    if not (generators / "generate_CUDA_codes.py").is_file():
        raise FileNotFoundError(
            f"{folder} has neither Generators/generate_CUDA_codes.py nor a generated suite (CUDA/ and include/); "
            "it must be a copy of https://github.com/burtscher/IndigoSuite"
        )
    copy, out = work / "Generators", work / "CUDA"
    if not out.is_dir():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(generators, copy)
        (copy / "CUDA").mkdir()
        for template in sorted((copy / "CUDA_sources").glob("*.idg")):
            call = [sys.executable, "-W", "ignore", "generate_CUDA_codes.py", str(template)]
            call += [str((folder / "copyright.txt").resolve()), str(copy / "CUDA")]
            subprocess.run(call, cwd=copy, check=True, capture_output=True)
        (copy / "CUDA").rename(out)
    return sorted(out.rglob("*.cu")), copy / "sources_include"


def examine(case: IndigoCase) -> dict:
    """Runs a kernel on all its inputs: the faults and remarks of the X-ray, and how often the result was right."""
    faults: Counter[tuple[str, int]] = Counter()
    remarks: Counter[tuple[str, int]] = Counter()
    results: Counter[str] = Counter()
    for graph in case.graphs:
        for launch in LAUNCHES:
            try:
                ended = program(
                    case.file, graph, *launch, traced=True, include_paths=[case.include], timeout=SECONDS, seed=1
                )
            except BuildError as error:
                return {"bugs": bugs(case.name), "error": f"does not build: {error}"[:2000]}
            assert ended.report is not None
            faults.update({(fault.kind, fault.line) for fault in ended.report.faults})
            remarks.update({(remark.kind, remark.line) for remark in ended.report.remarks})
            results[outcome(ended)] += 1
    return {
        "bugs": bugs(case.name),
        "faults": [[kind, line, runs] for (kind, line), runs in sorted(faults.items())],
        "remarks": [[kind, line, runs] for (kind, line), runs in sorted(remarks.items())],
        "results": dict(sorted(results.items())),
    }


def outcome(ended: ProgramResult) -> str:
    """What the suite's own comparison with serial code printed: "right", "wrong", "unchecked"; else how it ended."""
    if ended.ended != "exit" or ended.status:
        return ended.ended if ended.ended != "exit" else f"exit status {ended.status}"
    return {"matches": "right", "differs": "wrong"}.get(
        next(iter(re.findall(r"result (matches|differs)", ended.stdout)), ""), "unchecked"
    )


def found(record: dict, kind: str) -> bool:
    """Whether the X-ray named a fault of this kind; for a race, a remark (all threads store one value) counts too."""
    return any(k == kind for k, *_ in record.get("faults", ())) or (kind == "race" and remarked(record))


def remarked(record: dict) -> bool:
    """Whether the X-ray remarked on a race without a fault: stores of one and the same value."""
    races = [k for k, *_ in record.get("faults", ())]
    return "race" not in races and any(k == "race" for k, *_ in record.get("remarks", ()))


def false_alarms(record: dict) -> list[str]:
    """The kinds of faults that a kernel was accused of without such a bug, and not as a consequence of another one."""
    return sorted(_unplanted(record) - set(consequences(record)))


def consequences(record: dict) -> list[str]:
    """Further kinds of faults in a kernel whose bounds bug was found.

    Its stray reads give values that were never written, and its stray accesses fall into other arrays, where they race.
    """
    strayed = "out-of-bounds" in expected(record["name"]) and found(record, "out-of-bounds")
    return sorted(_unplanted(record) & {"race", "uninitialised-read"}) if strayed else []


def _unplanted(record: dict) -> set[str]:
    return {kind for kind, *_ in record.get("faults", ())} - set(expected(record["name"]))


def summary(records: Iterable[dict], of: int = 0) -> list[dict]:
    """For each kind of fault: cases with and without it, found and falsely reported; then for each bug.

    of   the number of kernels that the records are a sample of
    """
    records = list(records)
    ran = [record for record in records if "error" not in record]
    rows: list[dict] = [{"what": "all", "cases": len(records), "of": of or len(records), "ran": len(ran)}]
    for kind in KINDS:
        planted = [r for r in ran if kind in expected(r["name"])]
        clean = [r for r in ran if kind not in expected(r["name"])]
        rows.append(
            {
                "what": kind,
                "planted": len(planted),
                "found": sum(found(r, kind) for r in planted),
                "by_remark": sum(kind == "race" and remarked(r) for r in planted),
                "clean": len(clean),
                "false_alarms": sum(kind in false_alarms(r) for r in clean),
                "consequences": sum(kind in consequences(r) for r in clean),
            }
        )
    correct = [r for r in ran if not r["bugs"]]
    wrong = sum("wrong" in r["results"] for r in correct)
    accused = sum(bool(false_alarms(r)) for r in correct)
    rows.append({"what": "no bug", "cases": len(correct), "any_false_alarm": accused, "wrong_result": wrong})
    for bug in BUGS:
        alone = [r for r in ran if r["bugs"] == [bug]]
        rows.append({"what": f"{bug} alone", "cases": len(alone), "found": sum(found(r, BUGS[bug]) for r in alone)})
    return rows


def cases(folder: Path, work: Path, graphs: Sequence[Path], only: str = "") -> list[IndigoCase]:
    """The kernels of the suite whose name has `only` in it, in a random order that is always the same."""
    files, include = sources(folder, work)
    chosen = [file for file in files if only in file.stem]
    random.Random(0).shuffle(chosen)
    return [IndigoCase(file.stem, file, include, tuple(graphs)) for file in chosen]


def sample(every: Sequence[IndigoCase], count: int | None) -> list[IndigoCase]:
    """The first `count` cases, and all others with a bug that none of these has; None: every case."""
    first, others = list(every[:count]), every[len(every[:count]) :]
    present = {bug for case in first for bug in bugs(case.name)}
    return first + [case for case in others if set(bugs(case.name)) - present]
