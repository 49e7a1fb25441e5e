"""How fast an accepted answer is beside the course's solution, where a GPU grades.

    python -m helpers.teaching.classroom.speed NAME SOURCE

builds both, times them in one process with the course's timer (benchmarks/timer.py) and prints a JSON object: `speed`,
the solution's time divided by the answer's, or `failed` and why. Both get the same inputs: those of the exercise's far
case at the length that 32 bits can index, of which most have 2^24 elements. The timer checks the results before and
after, with outputs poisoned in between. An exercise without a far case has no inputs large enough.

The answer could attack the timer, whose process it shares: read what is suspiciously fast.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from helpers.practice import judge, registry
from helpers.practice.cases import Case
from helpers.practice.checks import CHECKS
from helpers.teaching.classroom.submissions import Answer
from helpers.upkeep.benchmarks import timer
from helpers.upkeep.benchmarks.contender import Contender
from helpers.upkeep.benchmarks.gpu import CudaBackend
from kernel_xray.build.loader import load
from kernel_xray.machine import guard, toolchain

SECONDS = 300.0  # for both builds and the timing
_BUDGET_MS = 400.0


def measure(answer: Answer) -> str:
    """The speed of an answer as a share of the solution's, such as "0.93"; "" if this machine cannot time kernels.

    Where the answer could not be timed, why: "failed: ...".
    """
    if timer.refusal():
        return ""
    with tempfile.TemporaryDirectory(prefix="answer_", ignore_cleanup_errors=True) as folder:
        if answer.is_cell:
            source = judge.assemble(answer.exercise, answer.text, Path(folder))
        else:
            source = Path(folder) / registry.find(answer.exercise).starter.name
            source.write_text(answer.text, encoding="utf-8")
        command = [sys.executable, "-m", __name__, answer.exercise, str(source)]
        with guard.started(command, sys.executable, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
            try:
                said, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return f"failed: it was not built and timed within {SECONDS:.0f} s"
    return read(said, process.returncode)


def read(said: bytes, status: int) -> str:
    """What `measure` returns, from what the timing process printed and its exit status."""
    try:
        given = json.loads(said.splitlines()[-1])
        failed, share = given.get("failed"), given.get("speed")
    except (ValueError, IndexError, AttributeError):
        return f"failed: the timing ended with status {status}"
    if isinstance(failed, str):
        return f"failed: {failed}"
    usable = isinstance(share, float) and 0 < share < 1e4
    return f"{share:.3g}" if usable else "failed: the timing gave no time"


def compare(name: str, source: Path, backend: timer.Backend, case: Case | None = None) -> dict:
    """The answer in `source` and the solution, timed side by side: {"speed": share} or {"failed": why}."""
    case = case or large_case(name)
    written = [torch.empty_like(x, device=toolchain.device) for x in case.outputs.values()]
    arguments = (*map(_filled, case.inputs), *written)
    out = range(len(case.inputs), len(arguments))
    tolerance = {key: case.tolerance[key] for key in ("accumulation", "rtol", "atol") if key in case.tolerance}

    def contender(label: str, path: Path) -> Contender:
        function = getattr(load(f"{name}_{label}", [path], is_python_module=False), name)
        return Contender(label, function, arguments, CHECKS[name].reference, out, **tolerance)

    contenders = [contender("solution", registry.find(name).solution), contender("answer", source)]
    timed = timer.measure(contenders, backend, budget_ms=_BUDGET_MS)
    if timed.failures:
        label = "solution" if "solution" in timed.failures else "answer"
        return {"failed": f"{label}: {timed.failures[label]}"[:2000]}
    return {"speed": timed.stats["solution"].median_ms / timed.stats["answer"].median_ms}


def can_time(name: str) -> bool:
    """Whether an exercise has inputs that are large enough."""
    return CHECKS[name].far is not None


def large_case(name: str) -> Case:
    """The inputs to time an exercise on. Raises ValueError if it has none."""
    far = CHECKS[name].far
    if far is None:
        raise ValueError(f"{name} has no inputs that are large enough to be timed")
    return far.case(far.short)


def _filled(value: object) -> object:
    """A tensor on the device: of a meta tensor its shape and dtype, with normally distributed elements."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.device.type != "meta":
        return value.to(toolchain.device)
    made = torch.empty(value.shape, dtype=value.dtype, device=toolchain.device)
    return made.normal_() if made.is_floating_point() else made.random_(0, 2)


def main(name: str, source: str) -> None:
    """Prints what `compare` returns; an error is the answer's."""
    try:
        found = compare(name, Path(source), CudaBackend())
    except Exception as error:
        found = {"failed": f"{type(error).__name__}: {error}"[:2000]}
    print(f"\n{json.dumps(found)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
