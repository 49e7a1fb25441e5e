"""The timer: how long work takes on a GPU, measured so that contenders can be compared.

It refuses the simulator: the time of a simulated kernel is CPU time and says nothing about a GPU. Its rules:

- CUDA events surround the work, after a warm-up. The CPU queues everything ahead, so its time does not count.
- Contenders run round-robin, one sample each per round. Each round starts with another contender, so a drifting clock
  affects all equally.
- *Reading* a large buffer before each sample flushes the L2. Writing one, the usual way, would leave dirty lines whose
  write-back is charged to the contender.
- Work shorter than SHORT_MS is captured many times into a CUDA graph. Each call has an output of its own and a copy of
  the inputs that no earlier call has touched; a sample is one replay divided by the number of calls. So gaps between
  launches do not count, and inputs still come from memory.
- Every contender is checked before and after. The second check looks at the work that was timed: its outputs are filled
  with NaN, the graph is replayed, and the result must be right.
"""

import functools
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch

from helpers.ladder.results import ResultsError, recorded
from helpers.ladder.results.measurement import Measurement, Stats
from helpers.paths import RESULTS
from kernel_xray.machine import toolchain

SHORT_MS = 0.1  # shorter work is timed in a CUDA graph, or the gaps between launches would count
GRAPH_MS = 0.4  # the work in a graph, so that its own launch (a few microseconds) hardly counts
MAX_CALLS = 100  # in a graph
MAX_COPIES = 2**31  # bytes of all copies of the inputs


class TimerError(RuntimeError):
    """Nothing can be timed on this machine."""


class Prepared(Protocol):
    """A contender made ready to be timed: `run` queues `calls` calls."""

    calls: int

    def run(self) -> None: ...

    def outputs_again(self) -> list[list[torch.Tensor]]: ...


class Backend(Protocol):
    """What `measure` needs from a device; tests pass one with a scripted clock."""

    gpu: str

    def prepare(self, contender: Any, input_sets: Sequence[tuple], graph: bool) -> Prepared: ...

    def times(self, order: Sequence[Prepared]) -> list[float]: ...

    def peak_bytes(self, contender: Any) -> int | None: ...


def refusal(target: str | None = None, folder: str | os.PathLike = RESULTS) -> str | None:
    """Why nothing can be timed on this target ("gpu" or "simulator"; by default this machine's), or None.

    The message names the measurements recorded in `folder`, with GPU and date.
    """
    if (target or toolchain.target) == "gpu":
        return None
    try:
        known = [f"results/{r.path.name} ({r.label})" for r in recorded(folder=folder)]
    except ResultsError as error:
        known = [str(error)]
    return (
        "kernels run in the simulator here (helpers.target is 'simulator'). The time that a CPU takes to simulate them "
        f"says nothing about a GPU, so nothing is timed. Measured on a GPU: {', '.join(known) or 'nothing yet'}; "
        "`python -m helpers bench --show` shows it"
    )


def summary(samples: Sequence[float]) -> Stats:
    """Median and percentiles of times in milliseconds. Raises ValueError unless there are some, all positive."""
    if not samples or not all(0 < s < math.inf for s in samples):
        raise ValueError(f"samples must be one or more positive times, got {list(samples)[:5]}")
    ordered = sorted(samples)
    last = len(ordered) - 1
    return Stats(
        median_ms=statistics.median(ordered),
        p20_ms=ordered[round(0.2 * last)],
        p80_ms=ordered[round(0.8 * last)],
        samples=len(ordered),
    )


def in_turns(
    ways: Mapping[str, Callable[[], object]], sample: Callable[[Callable[[], object]], float], rounds: int
) -> dict[str, Stats]:
    """Takes a sample of each way per round, `rounds` times after two to warm up. sample(way): milliseconds."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(-2, rounds):
        for name, call in ways.items():
            milliseconds = sample(call)
            if number >= 0:
                samples[name].append(milliseconds)
    return {name: summary(milliseconds) for name, milliseconds in samples.items()}


def measure(contenders: Sequence[Any], backend: Backend, *, budget_ms: float = 400.0) -> Measurement:
    """Checks the contenders, times them round-robin, and checks them again.

    contenders  objects with `name`, `call`, `inputs`, `check_before() -> max error` and `check_after(prepared)`: see
                helpers/upkeep/benchmarks/contender.py; names are unique
    budget_ms   of GPU time for the samples; never fewer than 20 rounds, never more than 200

    A contender that raises, or is wrong before or after, is in `failures` and has no time. An error that breaks the GPU
    itself (an illegal address) ends the run.
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
            prepare = functools.partial(backend.prepare, c, sets[id(c.inputs)], graph)
            made = attempt(c, "capture" if graph else "call", prepare)
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
                attempt(c, "check after timing", functools.partial(c.check_after, ready[c.name]))
        result.stats = {name: summary(ms) for name, ms in samples.items() if name not in result.failures}
    return result


def _estimate(ready: dict[str, Prepared], backend: Backend) -> tuple[float, float]:
    """Milliseconds per call of the fastest contender, and per round of all. Warms up, too."""
    backend.times([ready[n] for n in ready])
    rough = {n: max(1e-4, min(backend.times([p] * 3))) for n, p in ready.items()}  # an empty contender may take 0 ms
    return min(rough.values()), sum(rough.values())


def _sample(ready: dict[str, Prepared], backend: Backend, rounds: int) -> dict[str, list[float]]:
    """Samples round-robin, each round starting one contender later; the first tenth of the rounds only warms up."""
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
