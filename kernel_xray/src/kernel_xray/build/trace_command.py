"""`kernel-xray trace FILE ... --call EXPRESSION`: X-rays the kernels of an extension or program, without a GPU.

The report says which lines waste memory traffic and what breaks CUDA's rules. A budget makes it a check.
"""

import argparse
import sys
from pathlib import Path

from kernel_xray.build.arguments import SubjectError
from kernel_xray.build.project import add_options, flags_of
from kernel_xray.build.subjects import Subject, examine
from kernel_xray.report import budget as budgets
from kernel_xray.report import gpu_models
from kernel_xray.report.budget import BudgetError, Over
from kernel_xray.report.document import as_json
from kernel_xray.report.facts import SECONDS, limits_of
from kernel_xray.report.report import Report
from kernel_xray.report.report_page import as_page
from kernel_xray.report.sarif import as_sarif
from kernel_xray.report.text import incomplete
from kernel_xray.translate.errors import BuildError

FORMATS = ("text", "html", "json", "sarif")
_SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".sarif": "sarif"}
_OK, _FOUND, _USAGE, _UNJUDGED = 0, 1, 2, 3
_EPILOG = """\
In EXPRESSION, `ops` holds the extension's functions and `torch` is PyTorch; tensors are on the CPU. The numbers that
torch draws, and the schedule, come from --seed, so that every run counts the same.

exit status: 0 no fault and within budget; 1 a fault, over budget, or a program that failed; 2 wrong arguments, or
sources that do not build; 3 a budget that cannot be judged or written, since a trace ended early (--seconds, --steps)

  PROG scale.cu --call "ops.scale(torch.randn(1000), 2.0)"
  PROG bind.cpp scale.cu --call "ops.scale(x, 2.0)" --setup "x = torch.randn(1000)" -o xray.sarif
  PROG scale.cu --call "ops.scale(torch.randn(1000), 2.0)" --budget budget.yml"""


def main(arguments: list[str], prog: str = "kernel-xray trace") -> int:
    """Returns an exit status, as the help explains it."""
    options = _parser(prog).parse_args(arguments)
    try:
        limits_of(options.max_blocks, options.steps, options.seconds, "--max-blocks", "--steps", "--seconds")
        limits_of(1 if options.blocks is None else options.blocks, None, 0, "--blocks", "--steps", "--seconds")
        if options.gpu:
            gpu_models.find(options.gpu)
        outputs = [(_format(options.format, path), path) for path in options.output]
        for path in [*options.output, *filter(None, [options.write_budget, options.film])]:
            if not path.absolute().parent.is_dir():
                raise SubjectError(f"{path} cannot be written: {path.parent} is not a folder; make it first")
        flags = flags_of(options)
        named = options.budget or (None if options.write_budget else flags.budget)
        budget = budgets.read(named) if named else None
        report, ended = examine(
            Subject(
                options.files,
                call=options.call,
                setup=options.setup,
                arguments=options.args,
                flags=flags,
                seed=options.seed,
                max_blocks=options.max_blocks,
                budget=options.steps,
                seconds=options.seconds,
                timeout=options.timeout,
                film=options.film is not None,
                blocks=options.blocks,
                gpu=options.gpu,
            )
        )
        if options.gpu:
            report.limits(options.gpu)
        judged = not incomplete(report)
        over = budgets.check(budget, report) if budget and judged else None
    except (SubjectError, BudgetError, BuildError, OSError, ValueError, TypeError) as error:
        return _usage(str(error))
    title = options.call or Path(options.files[0]).name
    for format_, path in outputs:
        path.write_text(_written(format_, report, title, over), encoding="utf-8")
    if options.write_budget and judged:
        options.write_budget.write_text(f"# {title}\n{budgets.of(report)}", encoding="utf-8")
        print(f"wrote {options.write_budget}", file=sys.stderr)
    if options.film:
        report.save(options.film)
        print(f"wrote {options.film}", file=sys.stderr)
    if not outputs:
        print(_written(options.format or "text", report, title, over), end="")
    as_text = not outputs and options.format in (None, "text")  # has listed what is over budget
    print(_verdict(report, ended, over, listed=as_text), file=sys.stdout if outputs else sys.stderr)
    failed = bool(over) if over is not None else bool(report.faults)
    if not judged and (budget or options.write_budget):
        print(f"xray: the budget cannot be {'judged' if budget else 'written'}", file=sys.stderr)
        return _FOUND if failed or ended else _UNJUDGED
    return _FOUND if failed or ended else _OK


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description=__doc__.partition(": ")[2],
        epilog=_EPILOG.replace("PROG", prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="all .cu and .cpp sources of one extension, or of one program")
    add("--call", metavar="EXPRESSION", help="what to run of an extension, such as ops.f(torch.randn(1000))")
    add("--setup", metavar="CODE", help="Python statements before the call, or a .py file with them")
    add("--args", metavar="TEXT", help="arguments of a program, in one text")
    add("--budget", type=Path, metavar="FILE", help="a YAML file with what kernels and lines may cost")
    add("--write-budget", type=Path, metavar="FILE", help="write the budget that this run just keeps")
    add("--format", choices=FORMATS, help="of the report; by default that of the name given with -o, or text")
    add("-o", dest="output", type=Path, action="append", default=[], metavar="FILE", help="write it here; repeatable")
    add_options(add)
    add("--film", type=Path, metavar="FILE", help="write a page that plays the warps of the first block, step by step")
    add("--gpu", metavar="NAME", help=f"the least time of each launch there: {', '.join(gpu_models.known())}")
    add("--seed", type=int, default=0, help="of torch's numbers and of the schedule; 0 by default")
    add("--max-blocks", type=int, default=64, metavar="N", help="traced of a launch; larger ones are sampled")
    add("--blocks", type=int, metavar="N", help="run only N blocks of each launch, for the counts of a large one")
    add(
        "--seconds",
        type=float,
        default=SECONDS,
        help="of processor time until which long blocks are traced; %(default)s",
    )
    add("--steps", type=int, metavar="N", help="traced of a block, in place of --seconds")
    add("--timeout", type=float, metavar="SECONDS", help="of a program; none by default")
    return parser


def _usage(message: str) -> int:
    print(f"xray: {message}", file=sys.stderr)
    return _USAGE


def _format(wanted: str | None, path: Path) -> str:
    return wanted or _SUFFIXES.get(path.suffix.lower(), "text")


def _written(format_: str, report: Report, title: str, over: list[Over] | None) -> str:
    root = Path.cwd()
    if format_ == "json":
        return as_json(report, root, over)
    if format_ == "sarif":
        return as_sarif(report, root, over)
    if format_ == "html":
        return as_page(report, root, title, over)
    budget = "".join(f"\nOVER BUDGET\n{each}\n" for each in over or [])
    return f"{report}\n{budget}"


def _verdict(report: Report, ended: str, over: list[Over] | None, listed: bool) -> str:
    """One line for a log, after what a failed program wrote and, unless it is `listed`, what is over budget."""
    faults = (
        ", ".join(f"{fault.kind} at {Path(fault.file).name}:{fault.line}" for fault in report.faults) or "no faults"
    )
    budget = [] if over is None else [f"{len(over)} over budget" if over else "within budget"]
    cut = ["incomplete"] if incomplete(report) else []
    worst = report.worst
    wasteful = f"worst line {Path(worst.file).name}:{worst.line}: {worst.efficiency:.0%} efficient" if worst else ""
    line = "; ".join(part for part in (faults, *cut, *budget, wasteful) if part)
    return "\n".join(part for part in (ended, *([] if listed else map(str, over or [])), f"xray: {line}") if part)
