"""Makes the launches that judged.py compares: once under ncu, and in X-rays of a few blocks.

    python -m helpers.upkeep.validation judged OUT     on a GPU, once: the recorded calls above 20 us and the
                                                       micro-kernels under ncu, and at the same time their X-rays
    python -m helpers.upkeep.validation judged         anywhere: the X-rays that results/limits_vs_ncu.json lacks

The first writes OUT/limits_vs_ncu.json, which belongs in results/. Both go on where an earlier run stopped.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from helpers.ladder.results.records import write_lists
from helpers.upkeep.benchmarks.campaign import launch_together
from helpers.upkeep.benchmarks.conditions import commit_name, machine_record
from helpers.upkeep.validation import ncu
from helpers.upkeep.validation.case import Case
from helpers.upkeep.validation.counted import CASES
from helpers.upkeep.validation.judged import LEAST, METRICS, PATH, Key, complete, key_of, read, table
from helpers.upkeep.validation.recorded_calls import Call, by_resource, recorded
from kernel_xray.report.run import xray

_SECONDS = 8.0  # of processor time of an X-ray
MICRO, _GROUPS = "micro", ("global", "shared", "tile")  # in place of an operator; groups of cases
Bounds = list[tuple[str, dict[str, float]]]  # of each launch: its kernel, and seconds by resource


@functools.cache
def calls() -> dict[Key, Call | Case]:
    """All that is launched: the micro-kernels, and the recorded calls, operator by operator."""
    micro = [case for case in CASES if case.group in _GROUPS]
    found: dict[Key, Call | Case] = {(MICRO, case.name, case.group, ()): case for case in micro}
    return found | {call.key: call for call in sorted(recorded(LEAST), key=lambda call: call.operator.name)}


def main(
    arguments: Sequence[str],
    measure: Callable[[Path, str], list[dict]] | None = None,
    bounds: Callable[[str, Key], Bounds] | None = None,
) -> int:
    """Measures into a folder or, without one, completes results/limits_vs_ncu.json. Returns an exit status.

    measure, bounds   in place of the functions below
    """
    path = Path(arguments[0]) / PATH.name if arguments else PATH
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lists(path, {"machine": machine_record(commit_name()), "records": []})
    document = json.loads(path.read_text(encoding="utf-8"))
    records, gpu = document["records"], document["machine"]["gpu"]
    known = {key_of(record) for record in records if record.get("bounds")}
    measured = {record["op"] for record in records}
    operators = [op for op in dict.fromkeys(key[0] for key in calls()) if op not in measured] if arguments else []
    lacking = {*map(key_of, records)} - known
    wanted = [key for key in calls() if key in lacking or key[0] in operators]
    answers: dict[Key, Bounds] = {}  # of calls that ncu has not counted yet
    with ThreadPoolExecutor(1) as alone, ProcessPoolExecutor(**_processes(bool(operators))) as pool:
        found: dict[Future, Key | str] = {
            alone.submit(measure or measured_by_ncu, path.parent, op): op for op in operators
        }
        found |= {pool.submit(bounds or bounds_of, gpu, key): key for key in wanted}
        failed = False
        for each in as_completed(found):
            what = found[each]
            if each.cancelled():
                continue
            if not isinstance(what, str):
                answers[what] = _answer(what, each)
            elif error := each.exception():
                print(error, flush=True)
                failed = True
                for further in (future for future, key in found.items() if key[0] == what):
                    further.cancel()
            else:
                records += each.result()
                measured.add(what)
            for key in [key for key in answers if key[0] in measured]:
                _set_beside(records, key, answers.pop(key))
            write_lists(path, document)
    print(table(records))
    return int(failed)


def _answer(key: Key, future: Future) -> Bounds:
    try:
        return future.result()
    except BrokenProcessPool:
        raise SystemExit("a process ended, for want of memory perhaps; run this again to go on") from None
    except (RuntimeError, MemoryError) as error:
        print(f"{key}: {str(error).partition(chr(10))[0]}", flush=True)
        return []


def _set_beside(records: Sequence[dict], key: Key, bounds: Bounds) -> None:
    if bounds and (why := complete(records, key, bounds)):
        print(f"{key}: {why}", flush=True)


def _processes(beside_ncu: bool) -> dict[str, Any]:
    """Of the pool: a process for each processor, less two if ncu needs them."""
    number = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = max(1, number - 2 * beside_ncu)
    return {"max_workers": workers, "mp_context": get_context("spawn"), "initializer": _without_gpu}


def _without_gpu() -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(1)


def bounds_of(gpu: str, key: Key) -> Bounds:
    """The limits of a call's launches on a GPU, from an X-ray of a few blocks, or of all of a micro-kernel."""
    call = calls()[key]
    if isinstance(call, Case):
        report = xray(call.prepared(torch.device("cpu"), True), seed=0, sass=True, gpu=gpu)
    else:
        report = call.report(gpu, _SECONDS)
    return [(each.launch.kernel, by_resource(each)) for each in report.limits(gpu).launches]


def measured_by_ncu(out: Path, operator: str, seconds: float = 3600) -> list[dict]:
    """Builds an operator's kernels, runs its calls under ncu and returns what it said. Raises ncu.NcuError."""
    own = [call for key, call in calls().items() if key[0] == operator]
    for case in {call.source: call for call in own if isinstance(call, Case)}.values():
        case.prepared(torch.device("cuda"), False)
    if operator != MICRO:
        launch_together([{"op": operator, "build": True}])
    log = out / f"ncu_{operator}.csv"
    program = [sys.executable, "-m", "helpers.upkeep.validation", "launches", "--recorded", "--only", operator]
    command = ncu.command(log, ["."], program, METRICS, "--nvtx", "--profile-from-start", "off", cache="all")
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    records = read(log.read_text(errors="replace") if log.exists() else "")
    if not records or done.returncode:
        raise ncu.NcuError(f"ncu did not count {operator}:\n" + (done.stdout + done.stderr)[-2000:])
    return records


def launch_all(operator: str) -> int:
    """Makes each call of an operator once, for ncu: in a range with its key."""
    for key, call in calls().items():
        if key[0] != operator:
            continue
        launch = _prepared(call)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        torch.cuda.nvtx.range_push("|".join(map(str, (*key[:3], *key[3]))))
        with torch.no_grad():
            launch()
            torch.cuda.synchronize()
        torch.cuda.nvtx.range_pop()
        torch.cuda.profiler.stop()
    return 0


def _prepared(call: Call | Case) -> Callable[[], object]:
    if isinstance(call, Case):
        return call.prepared(torch.device("cuda"), False)
    function = call.kernel.load()[call.variant]
    return functools.partial(function, *call.operator.inputs(call.shape, getattr(torch, call.dtype), "cuda"))
