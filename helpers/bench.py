"""Measuring: `bench(...)` in a notebook, and `python -m helpers bench` for the records in results/.

On a GPU, `bench` times the given contenders on the spot. In the simulator it times nothing: it shows what results/ has
for the operator, labelled with GPU and date. So one cell serves both targets.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from helpers import results
from helpers.timer import Backend, Measurement, Stats, TimerError, measure, refusal


@dataclass(frozen=True)
class Bench:
    """What `bench` returns. A table as a repr; `stats[name].median_ms` and so on where it was measured here."""

    table: object
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
    """Time `contenders` (name -> function) on `inputs`, in turns, each checked before and after against `reference`.

    reference     the same computation in PyTorch; it is given copies of the inputs, floating-point ones as float64
    op            the operator's name in results/, whose rows are shown where there is no GPU
    bytes, flops  moved or done by one call; the table then shows GB/s or TFLOP/s
    copy          with `bytes`: time a copy of as many bytes among the contenders, and show shares of its rate
    versus        the contender against which speed-ups are shown
    accumulation, rtol, atol, out   as in helpers.check
    budget_ms     GPU time for the samples
    backend       what to time with; by default the GPU's timer

    A contender that fails or is wrong is named below the table and has no time. Raises TimerError in the simulator if
    `op` is not given, and ValueError for a `versus` that is no contender.
    """
    from helpers.benchmarks.contender import Contender, copy_bytes, copy_contender
    from helpers.benchmarks.table import live_table, recorded_table

    if versus is not None and versus not in contenders:
        raise ValueError(f"versus is {versus!r}; give one of {', '.join(contenders)}")
    if backend is None:
        if reason := refusal():
            if op is None:
                raise TimerError(f"{reason}. Give op='...' to see what was recorded")
            return Bench(recorded_table(op, results.recorded(op)), measured=False)
        from helpers.benchmarks.gpu import CudaBackend

        backend = CudaBackend()
    tolerance = {"accumulation": accumulation, "rtol": rtol, "atol": atol, "out": out}
    entered = [Contender(name, call, inputs, reference, **tolerance) for name, call in contenders.items()]
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


# -- the command -------------------------------------------------------------------------------------------------------


# Other benchmarks: of the course's own machinery, which need no GPU, and of calls.
_OTHERS = {
    "--build": "helpers.build_bench",
    "--simulator": "helpers.simulator_bench",
    "--trace": "helpers.xray_bench",
    "--overhead": "helpers.overhead_bench",
    "--scaling": "helpers.scaling_bench",
}


def main(arguments: list[str]) -> int:
    """`python -m helpers bench`: see --help. The exit status is 0 only if everything asked for was measured."""
    from helpers.benchmarks.operators import OPERATORS

    for flag, module in _OTHERS.items():
        if flag in arguments:
            return importlib.import_module(module).main(arguments)
    options = _parser(OPERATORS).parse_args(arguments)
    unknown = [name for name in options.op if name not in OPERATORS]
    if unknown:
        print(f"bench: no operator {', '.join(unknown)}; there are {', '.join(OPERATORS)}", file=sys.stderr)
        return 2
    if options.show or not options.op:
        return _show(options.op or OPERATORS)
    if reason := refusal():
        print(f"bench: {reason}", file=sys.stderr)
        _show(options.op)
        return 1
    from helpers.benchmarks.campaign import Campaign
    from helpers.benchmarks.machine import commit_name

    campaign = Campaign(
        operators={name: OPERATORS[name] for name in options.op},
        record=options.record,
        replace=options.replace,
        commit=options.commit or commit_name(),
        budget_ms=options.budget_ms,
        dtypes=options.dtypes,
        shapes=options.sizes,
        sweep=not options.no_sweep,
        compiled=not options.no_compile,
    )
    try:
        return campaign.run()
    except results.ResultsError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _parser(operators: Mapping) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m helpers bench",
        description="Measure operators on this machine's GPU, beside eager PyTorch, torch.compile and a copy.",
        epilog=f"Operators: {', '.join(operators)}. --build times an edit of a kernel to its result, "
        "--simulator the simulator itself, --overhead the ways to call an operator, --scaling several GPUs.",
    )
    parser.add_argument("op", nargs="*", metavar="OP", help="operators to measure; none: show what is recorded")
    parser.add_argument("--record", metavar="FILE", help="write the records there, such as results/h200.json")
    parser.add_argument("--replace", action="store_true", help="begin FILE anew instead of adding to it")
    parser.add_argument("--show", action="store_true", help="show what results/ holds; measure nothing")
    parser.add_argument(
        "--sizes",
        type=parse_shapes,
        metavar="S",
        help="shapes instead of the operator's own, with commas: 2**28, 4096x4096, 2**12..2**20 (powers of two)",
    )
    parser.add_argument(
        "--dtypes", type=lambda s: s.split(","), help="dtypes instead of the operator's own, with commas"
    )
    parser.add_argument("--no-sweep", action="store_true", help="leave out the curve over the size")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    parser.add_argument("--budget-ms", type=float, default=400.0, help="GPU time for the samples of a cell (400)")
    parser.add_argument("--commit", help="what is measured, where git cannot tell")
    return parser


def parse_shapes(text: str) -> list[tuple[int, ...]]:
    """Shapes from "2**28", "4096x1024", "2**12..2**20" and lists of these. Raises ArgumentTypeError."""
    return [shape for item in text.split(",") for shape in _parse_item(item)]


def _parse_item(item: str) -> list[tuple[int, ...]]:
    first, dots, last = item.partition("..")
    try:
        if dots:
            low, high = _parse_number(first), _parse_number(last)
            return [(2**k,) for k in range(low.bit_length() - 1, high.bit_length())]
        return [tuple(_parse_number(part) for part in item.split("x"))]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{item!r} is no shape; write 2**28, 4096x4096 or 2**12..2**20") from None


def _parse_number(part: str) -> int:
    base, _, power = part.strip().partition("**")
    value = int(base) ** int(power or 1)
    if value < 1:
        raise ValueError(part)
    return value


def _show(names) -> int:
    from helpers.benchmarks.table import recorded_table

    for name in names:
        print(recorded_table(name, results.recorded(name)))
    return 0
