"""`bench(...)`: measuring in a notebook.

On a GPU, `bench` times the given contenders. In the simulator it times nothing and shows what results/ has of the same
contenders, in the same dtype, labelled with shape, GPU and date. So one cell serves both targets.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from helpers.ladder import results
from helpers.ladder.results.measurement import Measurement, Stats
from helpers.ladder.results.table import Table, contenders_table, live_table
from helpers.upkeep.benchmarks.timer import Backend, TimerError, measure, refusal


@dataclass(frozen=True)
class Bench:
    """The result of `bench`: its repr is a table; `stats[name].median_ms` and so on if it was measured here."""

    table: Table
    measured: bool
    stats: Mapping[str, Stats] = field(default_factory=dict)

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def bench(
    contenders: Mapping[str, Callable],
    *inputs,
    reference: Callable,
    op: str | None = None,
    shape: Sequence[int] | None = None,
    bytes: int | None = None,
    flops: int | None = None,
    copy: bool = True,
    versus: str | None = None,
    accumulation: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
    out: Sequence[int] = (),
    budget_ms: float = 400.0,
    backend: Backend | None = None,
) -> Bench:
    """Time `contenders` (name -> function) on `inputs`, alternately, each checked before and after against `reference`.

    reference     the same computation in PyTorch; it is given copies of the inputs, floating-point ones as float64
    op            the operator's name in results/, whose records of these contenders are shown without a GPU
    shape         what a GPU would measure: without a GPU the records nearest to it are shown (None: the largest)
    bytes, flops  of one call; the table then shows GB/s or TFLOP/s
    copy          with `bytes`: also time a copy of the same size, and show shares of its rate
    versus        the contender against which speed-ups are shown
    accumulation, rtol, atol, out   as in helpers.check
    budget_ms     GPU time for the samples
    backend       the timer; by default the GPU's

    A contender that fails or is wrong is named below the table and has no time. Raises TimerError in the simulator
    without `op`, and ValueError if `versus` is not a contender.
    """
    from helpers.upkeep.benchmarks.contender import Contender, copy_bytes, copy_contender

    if versus is not None and versus not in contenders:
        raise ValueError(f"versus is {versus!r}; give one of {', '.join(contenders)}")
    if backend is None:
        if reason := refusal():
            if op is None:
                raise TimerError(f"{reason}. Give op='...' to see what was recorded")
            dtype = str(next(t.dtype for t in inputs if isinstance(t, torch.Tensor))).removeprefix("torch.")
            table = contenders_table(op, results.recorded(op), list(contenders), dtype, shape, versus)
            return Bench(table, measured=False)
        from helpers.upkeep.benchmarks.gpu import CudaBackend

        backend = CudaBackend()
    entered = [
        Contender(name, call, inputs, reference, accumulation=accumulation, rtol=rtol, atol=atol, out=out)
        for name, call in contenders.items()
    ]
    tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
    if bytes and copy:
        entered.append(copy_contender(bytes, tensors[0].dtype, tensors[0].device))
    measurement = measure(entered, backend, budget_ms=budget_ms)
    rates, shares = _rates(measurement, bytes, flops, copy_bytes(entered[-1]) if bytes and copy else 0)
    return Bench(live_table(measurement, rates, shares, versus), measured=True, stats=measurement.stats)


def _rates(measurement: Measurement, moved: int | None, flops: int | None, copied: int) -> tuple[dict, dict]:
    """Each contender's rate as text, and its share of the copy's."""
    per_ms = {n: (copied if n == "copy" and copied else moved or 0) / s.median_ms for n, s in measurement.stats.items()}
    if moved:
        rates = {n: f"{rate / 1e6:,.0f} GB/s" for n, rate in per_ms.items()}
    else:
        rates = {n: f"{flops / s.median_ms / 1e9:,.1f} TFLOP/s" for n, s in measurement.stats.items()} if flops else {}
    shares = {n: rate / per_ms["copy"] for n, rate in per_ms.items()} if copied and "copy" in per_ms else {}
    return rates, shares
