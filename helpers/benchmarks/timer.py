"""The timer: how long work takes on a GPU, measured so that contenders can be compared.

It refuses the simulator: the time of a simulated kernel is that of a CPU and says nothing about a GPU. For the rest:

- CUDA events around the work, after a warm-up; the CPU queues everything ahead and is not in the numbers.
- Contenders take turns, one sample each a round, each round beginning with another: a clock that drifts hits all alike.
- L2 is flushed before each sample by *reading* a large buffer. Writing one, as is often done, leaves dirty lines whose
  write-back is then charged to the contender.
- What is shorter than SHORT_MS is captured many times into a CUDA graph, each time on a copy of the inputs that no call
  before it has touched, with an output of its own; a sample is a replay divided by the number of calls. So gaps between
  launches stay out, and inputs still come from memory.
- Every contender is checked before and after, and the second check looks at what was timed: its outputs are filled with
  NaN, the graph is replayed, and the result must be right.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from helpers import results
from helpers.machine import toolchain
from helpers.machine.paths import RESULTS
from helpers.results.measurement import Measurement, Stats

SHORT_MS = 0.1  # below, the gaps between launches would count: a CUDA graph is timed
GRAPH_MS = 0.4  # a graph holds calls for about this long, so that its own launch (some microseconds) counts little
MAX_CALLS = 100  # in a graph
MAX_COPIES = 2**31  # bytes that copies of the inputs may take


class TimerError(RuntimeError):
    """Nothing can be timed here."""


class Prepared(Protocol):
    """A contender made ready to be timed: `run` queues `calls` calls."""

    calls: int

    def run(self) -> None: ...

    def outputs_again(self) -> list[list[torch.Tensor]]: ...


class Backend(Protocol):
    """What `measure` needs from a device; tests give one whose clock is a script."""

    gpu: str

    def prepare(self, contender: Any, input_sets: Sequence[tuple], graph: bool) -> Prepared: ...

    def times(self, order: Sequence[Prepared]) -> list[float]: ...

    def peak_bytes(self, contender: Any) -> int | None: ...


def refusal(target: str | None = None, folder: str | os.PathLike = RESULTS) -> str | None:
    """Why nothing can be timed on this target ("gpu" or "simulator"; this machine's by default), or None.

    The message names what the files of `folder` recorded, with GPU and date.
    """
    if (target or toolchain.target) == "gpu":
        return None
    try:
        known = [f"results/{r.path.name} ({r.label})" for r in results.recorded(folder=folder)]
    except results.ResultsError as error:
        known = [str(error)]
    return (
        "kernels run in the simulator here (helpers.target is 'simulator'). How long a CPU takes for that says nothing "
        f"about a GPU, so nothing is timed. Measured on a GPU: {', '.join(known) or 'nothing yet'}; "
        "`python -m helpers bench --show` shows it"
    )


def summary(samples: Sequence[float]) -> Stats:
    """Median and percentiles of milliseconds. Raises ValueError if there are none, or one is not positive."""
    if not samples or not all(0 < s < math.inf for s in samples):
        raise ValueError(f"samples must be one or more positive times, got {list(samples)[:5]}")
    ordered = sorted(samples)
    last = len(ordered) - 1
    return Stats(
        statistics.median(ordered), ordered[round(0.2 * last)], ordered[round(0.8 * last)], samples=len(ordered)
    )


def measure(contenders: Sequence[Any], backend: Backend, *, budget_ms: float = 400.0) -> Measurement:
    """Check, time in turns, and check again.

    contenders  objects with `name`, `call`, `inputs`, `check_before() -> max error` and `check_after(prepared)`: see
                helpers/benchmarks/contender.py; names are unique
    budget_ms   of GPU time for the samples; never fewer than 20 rounds, never more than 200

    A contender that raises, or is wrong before or after, is in `failures` and has no time. What breaks the GPU itself
    (an illegal address) ends the run with the error.
    """
    if len({c.name for c in contenders}) != len(contenders):
        raise ValueError(f"contenders must have different names, got {[c.name for c in contenders]}")
    result = Measurement(backend.gpu)

    def attempt(contender: Any, what: str, action: Callable[[], Any]) -> Any:
        if contender.name in result.failures:
            return None
        try:
            return action()
        except Exception as error:
            result.failures[contender.name] = f"{what}: {type(error).__name__}: {error}"
            return None

    def prepare_all(calls: int, graph: bool) -> dict[str, Prepared]:
        sets: dict[int, list[tuple]] = {}
        ready = {}
        for c in contenders:
            if id(c.inputs) not in sets:
                sets[id(c.inputs)] = [c.inputs, *(_copy(c.inputs) for _ in range(calls - 1))]
            made = attempt(c, "capture" if graph else "call", lambda c=c: backend.prepare(c, sets[id(c.inputs)], graph))
            if made is not None:
                ready[c.name] = made
        return ready

    for c in contenders:
        error = attempt(c, "check before timing", c.check_before)
        if error is not None:
            result.errors[c.name] = error
    ready = prepare_all(1, graph=False)
    if ready:
        fastest, all_together = _estimate(ready, backend)
        if fastest < SHORT_MS:
            result.timing = "graph"
            most = max(sum(t.nbytes for t in c.inputs if isinstance(t, torch.Tensor)) for c in contenders)
            calls = min(math.ceil(GRAPH_MS / fastest), MAX_CALLS, max(1, MAX_COPIES // max(1, most)))
            ready = prepare_all(max(2, calls), graph=True)
            all_together *= max(2, calls)
    if ready:
        rounds = int(min(200, max(20, budget_ms / all_together)))
        samples = _sample(ready, backend, rounds)
        for c in contenders:
            if c.name in ready:
                attempt(c, "check after timing", lambda c=c: c.check_after(ready[c.name]))
        result.stats = {name: summary(ms) for name, ms in samples.items() if name not in result.failures}
    return result


def _estimate(ready: dict[str, Prepared], backend: Backend) -> tuple[float, float]:
    """Milliseconds of a call of the fastest contender, and of a round of all; warms up on the way."""
    backend.times([ready[n] for n in ready])
    rough = {n: max(1e-4, min(backend.times([p] * 3))) for n, p in ready.items()}  # what does nothing may take 0 ms
    return min(rough.values()), sum(rough.values())


def _sample(ready: dict[str, Prepared], backend: Backend, rounds: int) -> dict[str, list[float]]:
    """Round-robin, each round starting one contender later; the first tenth of the rounds only warms up."""
    names = list(ready)
    warm = max(2, rounds // 10)
    order = [names[(r + i) % len(names)] for r in range(warm + rounds) for i in range(len(names))]
    times = backend.times([ready[n] for n in order])
    samples: dict[str, list[float]] = {n: [] for n in names}
    for name, ms in list(zip(order, times, strict=True))[warm * len(names) :]:
        samples[name].append(ms)
    return samples


def _copy(inputs: tuple) -> tuple:
    return tuple(t.detach().clone() if isinstance(t, torch.Tensor) else t for t in inputs)
