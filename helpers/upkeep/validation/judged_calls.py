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
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

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
_MICRO = ("global", "shared", "tile")  # groups of cases
Bounds = list[tuple[str, dict[str, float]]]  # of each launch: its kernel, and seconds by resource


@functools.cache
def calls() -> dict[Key, Call | Case]:
    """All that is launched: the recorded calls, those that take longest first, and the micro-kernels."""
    longest = sorted(recorded(LEAST), key=lambda call: -call.seconds)
    micro = [case for case in CASES if case.group in _MICRO]
    return {call.key: call for call in longest} | {("micro", case.name, case.group, ()): case for case in micro}


def main(arguments: Sequence[str], bounds: Callable[[str, Key], Bounds] | None = None) -> int:
    """Measures into a folder or, without one, completes results/limits_vs_ncu.json. Returns an exit status."""
    path = Path(arguments[0]) / PATH.name if arguments else PATH
    measured = path.exists()
    gpu = json.loads(path.read_text())["machine"]["gpu"] if measured else torch.cuda.get_device_name()
    wanted = list(calls())
    if measured:
        records = json.loads(path.read_text(encoding="utf-8"))["records"]
        known = {key_of(record) for record in records if "bounds" in record}
        wanted = [key for key in wanted if key in {*map(key_of, records)} - known]
    with ProcessPoolExecutor(_processors(), mp_context=get_context("spawn"), initializer=_without_gpu) as pool:
        found = {pool.submit(bounds or bounds_of, gpu, key): key for key in wanted}
        try:
            if not measured:
                measure(path.parent)
        except ncu.NcuError:
            pool.shutdown(cancel_futures=True)
            raise
        document = json.loads(path.read_text(encoding="utf-8"))
        for each in as_completed(found):
            try:
                why = complete(document["records"], found[each], each.result())
            except BrokenProcessPool:
                print("a process ended, for want of memory perhaps; run this again to go on")
                return 1
            except (RuntimeError, MemoryError) as error:
                why = str(error).partition("\n")[0]
            write_lists(path, document)
            if why:
                print(f"{found[each]}: {why}", flush=True)
    print(table(document["records"]))
    return 0


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def measure(out: Path, seconds: float = 3600) -> None:
    """Builds the kernels, runs the calls under ncu and writes what it said. Raises ncu.NcuError."""
    out.mkdir(parents=True, exist_ok=True)
    launch_together([{"op": name, "build": True} for name in {call.operator.name for call in recorded(LEAST)}])
    for case in {case.source: case for case in CASES if case.group in _MICRO}.values():
        case.prepared(torch.device("cuda"), False)
    log = out / "limits.csv"
    program = [sys.executable, "-m", "helpers.upkeep.validation", "launches", "--recorded"]
    command = ncu.command(log, ["."], program, METRICS, "--nvtx", "--profile-from-start", "off", cache="all")
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    records = read(log.read_text(errors="replace") if log.exists() else "")
    if not records:
        raise ncu.NcuError("ncu counted nothing:\n" + (done.stdout + done.stderr)[-2000:])
    write_lists(out / PATH.name, {"machine": machine_record(commit_name()), "records": records})


def launch_all() -> int:
    """Makes each call once, for ncu: in a range with its key."""
    for key, call in calls().items():
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
