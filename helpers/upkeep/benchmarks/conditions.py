"""The conditions of a measurement: GPU, driver, versions, clocks and power under load, date, commit."""

import datetime
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from helpers.paths import ROOT

FIELDS = ("clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "power.draw", "power.limit", "driver_version")


def machine_record(commit: str, busy: Callable[[], None] = lambda: time.sleep(0.01)) -> dict:
    """The `machine` part of results/<gpu>.json. `busy` keeps the GPU working while its clocks are read.

    Clocks are in MHz, power in watts; None if nvidia-smi does not report it. Needs a GPU.
    """
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    told = _ask(str(getattr(properties, "uuid", "")), busy) or _ask("", busy)
    sm, memory, sm_max, memory_max, draw, limit = (_number(told.get(field)) for field in FIELDS[:6])
    return {
        "gpu": properties.name,
        "driver": told.get("driver_version", "unknown"),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "clocks": {"sm_mhz": sm, "sm_max_mhz": sm_max, "memory_mhz": memory, "memory_max_mhz": memory_max},
        "power": {"draw_w": draw, "limit_w": limit},
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": commit,
    }


def memory_peak() -> float | None:
    """Peak bytes per second of the GPU's memory: two transfers per clock over the width of its bus."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))  # kHz, bits
    return 2 * clock * 1e3 * width / 8 or None


def commit_name(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str:
    """The commit, with `-dirty` if files outside results/ differ from it; KERNEL_LADDER_COMMIT overrides it.

    "unknown" outside a git checkout.
    """
    if environment.get("KERNEL_LADDER_COMMIT"):
        return environment["KERNEL_LADDER_COMMIT"]
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", ".", ":(exclude)results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("-dirty" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def _ask(uuid: str, busy: Callable[[], None]) -> dict[str, str]:
    """nvidia-smi's answers for one GPU; {} if it is missing or fails."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return {}
    command = [tool, f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    if uuid:
        command.append(f"--id={uuid if uuid.startswith('GPU-') else 'GPU-' + uuid}")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        busy()
    if process.poll() is None:
        process.kill()
    text, _ = process.communicate()
    return parse_answer(text) if process.returncode == 0 else {}


def parse_answer(text: str) -> dict[str, str]:
    """Field -> value from the line that nvidia-smi prints for one GPU; {} for anything else."""
    lines = text.strip().splitlines()
    values = [v.strip() for v in lines[0].split(",")] if len(lines) == 1 else []
    return dict(zip(FIELDS, values, strict=True)) if len(values) == len(FIELDS) else {}


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:  # "[N/A]"
        return None
