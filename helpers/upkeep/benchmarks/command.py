"""`python -m helpers bench`: measures operators on a GPU for the records in results/, or shows the records.

A flag such as --build runs another benchmark: of the course's own tools, of calls, of several GPUs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from helpers.ladder import results
from helpers.upkeep.benchmarks.timer import refusal

if TYPE_CHECKING:
    from helpers.ladder.catalogue import Operator

# Flag -> the module of another benchmark in this room, and what it times; those of the course's own tools need no GPU.
_OTHERS = {
    "--build": ("builds", "an edit of a kernel to its result"),
    "--feedback": ("feedback", "the wait for a verdict"),
    "--simulator": ("simulator", "the simulator itself"),
    "--trace": ("tracing", "its traced mode"),
    "--load": ("crowd", "many learners at once"),
    "--grading": ("graded_class", "the grading of a class"),
    "--first-start": ("first_start", "a newcomer's first start"),
    "--first-result": ("first_result", "the tools of lesson 15 with empty caches"),
    "--overhead": ("overhead", "the ways to call an operator"),
    "--schedules": ("schedules", "the parts of the schedule of Hopper's attention"),
    "--scaling": ("scaling", "several GPUs"),
}


def main(arguments: list[str]) -> int:
    """`python -m helpers bench`: see --help. The exit status is 0 only if every measurement succeeded."""
    from helpers.ladder.catalogue import OPERATORS

    for flag, (module, _) in _OTHERS.items():
        if flag in arguments:
            return importlib.import_module(f"helpers.upkeep.benchmarks.{module}").BENCHMARK.main(arguments)
    options = _parser(OPERATORS).parse_args(arguments)
    unknown = [name for name in options.op if name not in OPERATORS]
    if unknown:
        print(f"bench: no operator {', '.join(unknown)}; there are {', '.join(OPERATORS)}", file=sys.stderr)
        return 2
    if options.missing and not options.record:
        print("bench: --missing needs the file that lacks records: --record results/h200.json", file=sys.stderr)
        return 2
    names = options.op or (list(OPERATORS) if options.missing else [])
    known = {kernel.name for name in names for kernel in OPERATORS[name].kernels}
    if unknown := [name for name in options.kernels or () if name not in known]:
        print(f"bench: no kernel {', '.join(unknown)}; --list names those of an operator", file=sys.stderr)
        return 2
    if options.list and not options.missing:
        print(*(_entry(OPERATORS[name]) for name in options.op or OPERATORS), sep="\n")
        return 0
    if options.show or not names:
        return _show(options.op or OPERATORS)
    reason = refusal()
    if reason and not options.list:
        print(f"bench: {reason}", file=sys.stderr)
        _show(options.op)
        return 1
    from helpers.upkeep.benchmarks.campaign import Campaign
    from helpers.upkeep.benchmarks.conditions import commit_name

    campaign = Campaign(
        operators={name: OPERATORS[name] for name in names},
        record=options.record,
        replace=options.replace,
        commit=options.commit or commit_name(),
        budget_ms=options.budget_ms,
        dtypes=options.dtypes,
        shapes=options.sizes,
        sweep=not options.no_sweep,
        compiled=not options.no_compile,
        kernels=options.kernels,
        missing=options.missing,
    )
    try:
        if options.list:
            print(*map(_job, campaign.jobs()), sep="\n")
            return 0
        return campaign.run()
    except results.ResultsError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def _parser(operators: Mapping) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m helpers bench",
        description="Measure operators on this machine's GPU, beside eager PyTorch, torch.compile and a copy.",
        epilog=f"Operators: {', '.join(operators)}. Other benchmarks: "
        + ", ".join(f"{flag} times {what}" for flag, (_, what) in _OTHERS.items()),
    )
    parser.add_argument("op", nargs="*", metavar="OP", help="operators to measure; none: show what is recorded")
    parser.add_argument("--record", metavar="FILE", help="write the records there, such as results/h200.json")
    parser.add_argument("--replace", action="store_true", help="start FILE again instead of adding to it")
    parser.add_argument("--show", action="store_true", help="show what results/ holds; measure nothing")
    parser.add_argument("--list", action="store_true", help="list operators, their variants, dtypes and shapes")
    parser.add_argument(
        "--sizes",
        type=parse_shapes,
        metavar="S",
        help="shapes in place of the operator's own, with commas: 2**28, 4096x4096, 2**12..2**20 (powers of two)",
    )
    parser.add_argument(
        "--dtypes", type=lambda s: s.split(","), help="dtypes in place of the operator's own, with commas"
    )
    parser.add_argument("--kernels", type=lambda s: s.split(","), help="kernels in place of all, with commas")
    parser.add_argument(
        "--missing",
        action="store_true",
        help="measure only what the file of --record lacks, of all operators if none is named; with --list: list it",
    )
    parser.add_argument("--no-sweep", action="store_true", help="leave out the curve over the size")
    parser.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    parser.add_argument("--budget-ms", type=float, default=400.0, help="GPU time for the samples of a cell (400)")
    parser.add_argument("--commit", help="the commit that is measured, if git cannot tell")
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
        raise argparse.ArgumentTypeError(f"{item!r} is not a shape; write 2**28, 4096x4096 or 2**12..2**20") from None


def _parse_number(part: str) -> int:
    base, _, power = part.strip().partition("**")
    value = int(base) ** int(power or 1)
    if value < 1:
        raise ValueError(part)
    return value


def _entry(operator: Operator) -> str:
    """An operator, a line for each of its variants with the dtypes that it is measured in, and the shapes."""
    sizes = ", ".join("x".join(map(str, shape)) for shape in operator.shapes)
    swept = f", and a curve over {len(operator.sweep)} sizes" if operator.sweep else ""
    lines = [f"{operator.name}: {sizes}{swept}"]
    for variant in operator.variants:
        dtypes = [dtype for dtype in operator.dtypes if operator.takes(variant, dtype)]
        lines.append(f"  {variant:28}{', '.join(dtypes)}")
    return "\n".join(lines)


def _job(job: Mapping) -> str:
    """What one process measures: an operator in one dtype, at some shapes."""
    return f"{job['op']}, {job['dtype']}: " + ", ".join("x".join(map(str, c["shape"])) for c in job["cells"])


def _show(names: Iterable[str]) -> int:
    from helpers.ladder.results.table import recorded_table

    for name in names:
        print(recorded_table(name, results.recorded(name)))
    return 0
