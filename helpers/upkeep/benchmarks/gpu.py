"""The timer on a GPU: CUDA events, the L2 flush, CUDA graphs for short work. The rules are in timer.py."""

from collections.abc import Sequence
from typing import Any

import torch

from helpers.upkeep.benchmarks.timer import Prepared, TimerError, refusal

FLUSH_BYTES = 2**27  # at least; four times the L2 if that is more


class Direct:
    """Plain calls on one set of inputs."""

    def __init__(self, contender: Any, inputs: tuple):
        self.contender, self.inputs, self.calls = contender, inputs, 1

    def run(self) -> None:
        self.contender.call(*self.inputs)

    def outputs_again(self) -> list[list[torch.Tensor]]:
        """The outputs of one more call, which reuses the memory of a previous call, filled with NaN."""
        self.contender.poison(self.contender.outputs(self.inputs), self.inputs)
        return [self.contender.outputs(self.inputs)]


class Graph:
    """A CUDA graph of one call on each set of inputs; it keeps all outputs, so that no two calls share one."""

    def __init__(self, contender: Any, input_sets: Sequence[tuple]):
        self.contender, self.sets, self.calls = contender, input_sets, len(input_sets)
        contender.call(*input_sets[0])  # the set-up of a first call must not be captured
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream()
        try:
            with torch.cuda.graph(self.graph):
                self.kept = [contender.outputs(inputs) for inputs in input_sets]
        finally:
            torch.cuda.set_stream(stream)  # a failed capture leaves its own stream current

    def run(self) -> None:
        self.graph.replay()

    def outputs_again(self) -> list[list[torch.Tensor]]:
        """Fills all outputs with NaN, replays, and returns those of the first, a middle and the last call."""
        for outputs, inputs in zip(self.kept, self.sets, strict=True):
            self.contender.poison(outputs, inputs)
        self.graph.replay()
        torch.cuda.synchronize()
        return [self.kept[i] for i in sorted({0, self.calls // 2, self.calls - 1})]


class CudaBackend:
    """Times work on the current CUDA device. Raises TimerError in the simulator."""

    def __init__(self, target: str | None = None):
        if reason := refusal(target):
            raise TimerError(reason)
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.gpu = properties.name
        size = max(FLUSH_BYTES, 4 * properties.L2_cache_size)
        self._cold = torch.ones(size // 4, dtype=torch.float32, device="cuda")

    def prepare(self, contender: Any, input_sets: Sequence[tuple], graph: bool) -> Prepared:
        if graph:
            return Graph(contender, input_sets)
        return Direct(contender, input_sets[0])

    def times(self, order: Sequence[Prepared]) -> list[float]:
        """Milliseconds per call of each, run in the given order."""
        marks = []
        for prepared in order:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._cold.sum()
            start.record()
            prepared.run()
            end.record()
            marks.append((start, end, prepared.calls))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) / calls for start, end, calls in marks]

    def peak_bytes(self, contender: Any) -> int:
        """How much one call raises the memory that tensors occupy, at its peak."""
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        contender.outputs(contender.inputs)
        return torch.cuda.max_memory_allocated() - before

    def busy(self) -> None:
        """A few milliseconds of work, so that clocks and power can be read under load."""
        for _ in range(50):
            self._cold.sum()
        torch.cuda.synchronize()
