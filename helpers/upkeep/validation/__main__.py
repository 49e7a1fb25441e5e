"""The command line of the validation; see the package's docstring."""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in ("launches", "exhibit", "examine"):
        from helpers.upkeep.validation import children
    if first == "launches":
        parser = argparse.ArgumentParser(prog="launches", description="Makes every counted launch.")
        parser.add_argument("--only", default="", help="a part of the names of the launches to make")
        parser.add_argument("--recorded", action="store_true", help="those of `judged`, of the operator in --only")
        options = parser.parse_args(arguments[1:])
        if options.recorded:
            from helpers.upkeep.validation import judged_calls

            return judged_calls.launch_all(options.only)
        return children.launches(options.only)
    if first == "exhibit":
        parser = argparse.ArgumentParser(prog="exhibit", description="Runs exhibits of the museum on the GPU.")
        parser.add_argument("names", nargs="+")
        parser.add_argument("--fixed", action="store_true")
        options = parser.parse_args(arguments[1:])
        return children.exhibit(options.names, options.fixed)
    if first == "examine":
        return children.examine_all()
    if first == "document":
        from helpers.upkeep.validation import documents

        documents.COUNTS_DOCUMENT.write_text(documents.counts_table(documents.read(documents.COUNTS)), encoding="utf-8")
        return 0
    if first == "seeds":
        from helpers.upkeep.validation import seeds

        return seeds.main(int(arguments[1]) if len(arguments) > 1 else 100)
    if first == "limits":
        from helpers.upkeep.validation import rung_limits

        return rung_limits.main(arguments[1:])
    if first == "judged":
        from helpers.upkeep.validation import judged_calls

        return judged_calls.main(arguments[1:])
    if first in ("indigo", "rodinia"):
        from helpers.upkeep.validation.yardsticks import command

        return command.main(first, arguments[1:])
    parser = argparse.ArgumentParser(
        prog="python -m helpers.upkeep.validation",
        description="Compares the simulator with ncu and compute-sanitizer.",
        epilog="Other parts: document, seeds [COUNT], limits [RUNG ...], judged [OUT], indigo FOLDER, rodinia FOLDER.",
    )
    parser.add_argument(
        "out",
        type=Path,
        help="the folder for the results, or another part, as below",
    )
    parser.add_argument(
        "--only",
        default="counts,bugs,sessions",
        help="parts, separated by commas; counts is also ncu, on a GPU, and then simulator, on any machine",
    )
    parser.add_argument("--launches", default="", help="a part of the names of the launches to count, in place of all")
    parser.add_argument("--jobs", type=int, default=0, help="simultaneous processes under compute-sanitizer")
    options = parser.parse_args(arguments)
    import torch

    from helpers.upkeep.validation.comparison import HALVES, PARTS, Campaign

    parts = tuple(options.only.split(","))
    if unknown := set(parts) - {*PARTS, *HALVES}:
        parser.error(f"--only knows {', '.join((*PARTS, *HALVES))}, not {', '.join(sorted(unknown))}")
    recorded = options.out / "xray_vs_ncu.json"
    if options.launches and {"counts", "simulator"} & set(parts) and not recorded.is_file():
        parser.error(f"--launches replaces a part of {recorded}, which is missing: copy the one in results/ there")
    if parts != ("simulator",) and not torch.cuda.is_available():
        parser.error("this needs a GPU: PyTorch sees none")
    return Campaign(options.out, options.jobs, launches=options.launches).run(parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
