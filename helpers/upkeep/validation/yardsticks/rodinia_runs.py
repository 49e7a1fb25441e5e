"""Builds a Rodinia program with our loader, runs it and its reference, and compares what they write."""

import math
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers.upkeep.validation.yardsticks.rodinia import Program, Reference
from kernel_xray.build.programs import program
from kernel_xray.translate.errors import BuildError, UnsupportedError

SECONDS = 900.0  # for one run, on a busy machine too
# Where a program fails; "bug": the simulator stops it at a known bug of its own; "right": it does not fail.
STAGES = ("input", "build", "run", "result", "bug", "right")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\b(?:nan|inf)\b", re.IGNORECASE)


@dataclass(frozen=True)
class RodiniaCase:
    """A program, the user's copy of the suite, and a folder for what is made."""

    program: Program
    suite: Path
    work: Path

    @property
    def name(self) -> str:
        return self.program.name


def examine(case: RodiniaCase) -> dict:
    """Builds and runs a program: `stage` is the one of STAGES where it failed, for `reason`.

    xray  the kinds and places of faults in a traced run; None if it was not made or had no time to end
    """
    p = case.program
    record: dict = {"benchmark": p.benchmark, "check": kind_of_check(p), "stage": "build", "reason": "", "xray": None}
    if lacking := [need for need in p.needs if not (case.suite / "data" / need).is_file()]:
        return {**record, "stage": "input", "reason": f"needs data/{lacking[0]} of the suite's data"}
    place = arena(case, "cuda", p.folder)
    try:
        ended = _run(case, place, traced=False)
    except (BuildError, UnsupportedError) as error:
        return {**record, "reason": str(error)[:600]}
    if ended.fault and ended.fault.kind == "illegal-access" and p.bug:
        return {**record, "stage": "bug", "reason": p.bug}
    if ended.ended != "exit" or ended.status or ended.fault:
        told = (ended.stderr or ended.stdout)[-300:]
        return {**record, "stage": "run", "reason": f"{ended}: {told}"}
    wrong = compare(case, place, ended.stdout)
    record |= {"stage": "result", "reason": wrong} if wrong else {"stage": "right"}
    if p.traced:
        try:
            traced = _run(case, arena(case, "traced", p.folder), traced=True)
        except (BuildError, UnsupportedError) as error:
            return {**record, "reason": f"traced: {error}"[:600]}
        if traced.ended == "exit" and traced.report is not None:
            faults = {(f.kind, Path(f.file).name, f.line) for f in traced.report.faults}
            record["xray"] = [f"{kind} {file}:{line}" for kind, file, line in sorted(faults)]
    return record


def kind_of_check(p: Program) -> str:
    """What a result is compared with."""
    if isinstance(p.reference, Reference):
        return "the suite's program for CPUs"
    return "a known result" if p.reference else "its own check" if p.says else "it ends"


def arena(case: RodiniaCase, kind: str, folder: str) -> Path:
    """An empty folder for a run, with `data` as many levels above as in the suite."""
    top = case.work / "runs" / case.name / kind
    shutil.rmtree(top, ignore_errors=True)
    place = top / "cuda" / folder
    place.mkdir(parents=True)
    (top / "data").symlink_to(case.work / "data", target_is_directory=True)
    return place


def _run(case: RodiniaCase, place: Path, traced: bool):
    p, folder = case.program, case.suite / "cuda" / case.program.folder
    first, *others = [folder / source for source in p.sources]
    options = ["-w", *p.defines]
    return program(
        first,
        *p.arguments,
        sources=others,
        include_paths=[folder / path for path in p.include],
        cuda_cflags=options,
        cflags=options,
        ldflags=[*objects(p, folder, case.work / "objects" / case.name), "-lm"],
        cwd=place,
        timeout=SECONDS,
        traced=traced,
        seed=1,
    )


def objects(p: Program, folder: Path, out: Path) -> list[str]:
    """The program's C files, compiled as C. Raises BuildError."""
    made = []
    out.mkdir(parents=True, exist_ok=True)
    for source in p.c:
        target = out / f"{source.replace('/', '_')}.o"
        include = [f"-I{folder / path}" for path in p.include]
        # The runtime functions of the simulator are C++: a C file that calls one has to name it as the linker does.
        calls = ["-DcudaSetDevice=_Z13cudaSetDevicei", *p.defines]
        _compile(["cc", "-std=gnu89", "-c", "-O2", "-fPIE", "-w", *include, *calls, str(folder / source)], target)
        made.append(str(target))
    return [*made, still_clock(out)]


def still_clock(out: Path) -> str:
    """An object whose `time` always returns 1: several programs and their references seed random numbers with it."""
    source, target = out / "time.c", out / "time.o"
    source.write_text("long time(long *at) { if (at) *at = 1; return 1; }\n")
    _compile(["cc", "-c", "-fPIE", str(source)], target)
    return str(target)


def _compile(command: list[str], target: Path) -> None:
    done = subprocess.run([*command, "-o", str(target)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{Path(command[-1]).name} does not compile: {done.stderr[:500]}", done.stderr)


def compare(case: RodiniaCase, place: Path, printed: str) -> str:
    """Why the result is not right; "" if it is."""
    p = case.program
    if p.says:
        return "" if re.search(p.says, printed, re.DOTALL) else f"its check does not say so: {printed[-300:]}"
    if p.reference is None:
        return ""
    got = counted(printed if p.output == "stdout" else _text(place / p.output), p.lines)
    if isinstance(p.reference, str):
        wanted = numbers(_text(case.work / "data" / p.reference))
    else:
        wanted = counted(_referred(case, p.reference), p.lines)
    return difference(got, wanted, p.tolerance)


def _referred(case: RodiniaCase, reference: Reference) -> str:
    """What the suite's program for CPUs writes. Raises BuildError."""
    folder, place = case.suite / reference.folder, arena(case, "reference", case.program.folder)
    target, cpp = place / "reference", reference.sources[0].endswith(".cpp")
    options = ["-O1", "-w", "-fopenmp", *reference.defines, *(() if cpp else ("-std=gnu89",))]
    options = [f"-I{folder / option[2:]}" if option.startswith("-I") else option for option in options]
    files = [str(folder / source) for source in reference.sources]
    _compile(["c++" if cpp else "cc", *options, *files, still_clock(place), "-lm"], target)
    done = subprocess.run([target, *reference.arguments], cwd=place, capture_output=True, timeout=SECONDS, check=False)
    if case.program.output == "stdout":
        return done.stdout.decode(errors="replace")
    return _text(place / case.program.output)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def counted(text: str, lines: str) -> list[float]:
    """The numbers in the parts of a text that match `lines`; all of them without it."""
    return numbers("\n".join(re.findall(lines, text, re.MULTILINE)) if lines else text)


def numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def difference(got: list[float], wanted: list[float], tolerance: float) -> str:
    """How two lists of numbers differ; "" if all are equal within the tolerance. No number at all is a difference."""
    if not wanted or len(got) != len(wanted):
        return f"{len(got)} numbers instead of {len(wanted)}"
    scale = max((abs(w) for w in wanted if math.isfinite(w)), default=1.0)
    for i, (g, w) in enumerate(zip(got, wanted, strict=True)):
        if not (g == w or math.isclose(g, w, rel_tol=tolerance, abs_tol=tolerance * 1e-2 * scale)):
            return f"number {i} is {g}, not {w}"
    return ""


def summary(records: list[dict]) -> list[dict]:
    """How many programs and benchmarks came how far. A benchmark counts as right if all of its programs are."""
    names = sorted({record["benchmark"] for record in records})
    of = {name: [record for record in records if record["benchmark"] == name] for name in names}

    def came(*stages: str) -> tuple[int, int]:
        return (
            sum(record["stage"] in stages for record in records),
            sum(all(record["stage"] in stages for record in programs) for programs in of.values()),
        )

    ended = ("result", "right")
    steps = {"all": STAGES, "built": STAGES[2:], "ended": ended, "right": ended[1:], "right or bug": STAGES[4:]}
    return [
        {"what": what, "programs": programs, "benchmarks": benchmarks}
        for what, stages in steps.items()
        for programs, benchmarks in (came(*stages),)
    ]
