"""`python -m helpers mutants`: do the checks find small mistakes in the solutions and the course's kernels?"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from helpers.paths import KERNELS, ROOT
from helpers.upkeep.mutants import isolation, judges, record, score, targets
from helpers.upkeep.mutants.isolation import Result
from helpers.upkeep.mutants.kinds import OPERATORS
from helpers.upkeep.mutants.mutation import Mutant
from helpers.upkeep.mutants.record import Line
from helpers.upkeep.mutants.targets import Target
from kernel_xray.machine import reaper, toolchain
from kernel_xray.machine.progress import ProgressBar

Work = list[tuple[Target, Mutant]]
_CHANGE = re.compile(r"^\+\+\+ b/(.+?)\t?$|^@@ -\S+ \+(\d+),?(\d*) @@", re.MULTILINE)  # a file, or lines of it


def main(arguments: list[str]) -> int:
    """Prints scores and survivors. Returns 0 if at least 95% were killed, 1 if fewer, 2 for a wrong argument."""
    options = _parser().parse_args(arguments)
    unknown = [name for name in options.operators if name not in OPERATORS]
    try:
        if unknown:
            raise ValueError(f"there is no operator {', '.join(unknown)}; there are {', '.join(OPERATORS)}")
        chosen = targets.find(options.name)
        changed = changed_since(options.since) if options.since else None
    except ValueError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    operators = [OPERATORS[name] for name in options.operators or OPERATORS]
    work = [(target, mutant) for target in chosen for mutant in target.mutants(operators)]
    if changed is not None:
        work = [(target, mutant) for target, mutant in work if mutant.line in changed.get(mutant.file, ())]
    work = sampled(work, options.sample, options.seed)
    if options.list:
        print(*(mutant.difference() for _, mutant in work), f"{len(work)} mutants", sep="\n")
        return 0
    if toolchain.target != "simulator":
        print("mutants: they run in the simulator: hide the GPU (CUDA_VISIBLE_DEVICES=)", file=sys.stderr)
        return 2
    if options.record.is_file() and not options.resume:
        print(f"mutants: {options.record} exists: --resume goes on with it", file=sys.stderr)
        return 2
    lines = run(work, options.record, options.workers)
    print(*score.table(lines), sep="\n")
    total = sum(line.verdict == "killed" for line in lines)
    return 0 if total >= 0.95 * (total + len(score.survivors(lines))) else 1


def changed_since(commit: str) -> dict[str, set[int]]:
    """File in kernels/ -> the lines that differ from a commit's. Raises ValueError if git knows no such commit."""
    command = ["git", "-C", str(KERNELS), "diff", "--relative", "-U0", "--no-ext-diff", "--dst-prefix=b/", commit, "--"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode:
        raise ValueError(f"--since {commit}: {done.stderr.strip().splitlines()[0]}")
    changed: dict[str, set[int]] = {}
    lines: set[int] = set()
    for file, first, count in _CHANGE.findall(done.stdout):
        if file:
            lines = changed[file] = set()
        else:
            lines.update(range(int(first), int(first) + int(count or 1)))
    return changed


def sampled(work: Work, count: int, seed: str = "") -> Work:
    """`count` mutants spread over all, the same ones each time for a seed; all for 0."""
    if not count or count >= len(work):
        return work
    drawn = sorted((mutant.key for _, mutant in work), key=lambda key: hashlib.sha256(f"{seed}{key}".encode()).digest())
    kept = set(drawn[:count])
    return [(target, mutant) for target, mutant in work if mutant.key in kept]


def run(work: Work, path: Path, workers: int) -> list[Line]:
    """Judges the mutants that the record lacks; returns the lines of all. Raises RuntimeError for a wrong original."""
    known = record.read(path)
    missing = [(target, mutant) for target, mutant in work if mutant.key not in known]
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        judges.prepare()
        _judge_all(missing, path, workers)
        known = record.read(path)
    return [known[mutant.key] for _, mutant in work]


def _judge_all(work: Work, path: Path, workers: int) -> None:
    """Each worker is a fork of this process; it forks once more for each mutant. Originals that passed are recorded.

    Originals come first, but no mutant waits for them: some take minutes. A wrong one ends the run.
    """
    known, every = record.read(path), {target.name: target for target, _ in work}.values()
    originals = [(target, target.original()) for target in every if target.original().key not in known]
    bar = ProgressBar("mutants", len(originals) + len(work))
    with ProcessPoolExecutor(workers, get_context("fork"), reaper.end_with_parent) as pool, bar:
        try:
            waiting = {
                pool.submit(_judged, target, mutant.text): (target, mutant) for target, mutant in originals + work
            }
            for done in as_completed(waiting):
                (target, mutant), result = waiting[done], done.result()
                if mutant.operator == "none" and result.verdict != "survived":
                    raise RuntimeError(f"{target.file} itself is rejected, so its mutants say nothing: {result.why}")
                record.append(path, Line.of(target.name, mutant, result))
                bar.step(note=target.name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _judged(target: Target, text: str) -> Result:
    return isolation.judged(judges.judge, target, text)


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:17}{operator.sentence}" for name, operator in OPERATORS.items())
    parser = argparse.ArgumentParser(
        prog="python -m helpers mutants",
        description="Makes one small mistake at a time in solutions and the course's kernels, and runs their checks.",
        epilog=f"operators:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="*", help="an exercise, or a file in kernels/ without its ending")
    parser.add_argument("--operators", nargs="+", default=[], metavar="OPERATOR", help="only these kinds of mistakes")
    parser.add_argument("--record", type=Path, default=ROOT / "build" / "mutants.jsonl", help="where verdicts are kept")
    parser.add_argument("--resume", action="store_true", help="go on with the record of a run that was ended")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes that judge at a time")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N of the mutants, spread over all")
    parser.add_argument("--seed", default="", help="of a sample: another one has other mutants")
    parser.add_argument("--since", metavar="COMMIT", help="only mutants of lines that differ from a commit's")
    parser.add_argument("--list", action="store_true", help="print the mutants, and judge none")
    return parser
