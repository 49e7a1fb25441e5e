"""`kernel-xray run FILE [ARGUMENTS]`: builds a CUDA program and runs it."""

import argparse
import signal
import sys

from kernel_xray.build.programs import program
from kernel_xray.build.project import add_options, flags_of
from kernel_xray.report.facts import SECONDS
from kernel_xray.translate.errors import BuildError

_TIMED_OUT = 124  # as of timeout(1)


def main(arguments: list[str], prog: str = "kernel-xray run") -> int:
    """Returns the program's exit status; 128 + n if signal n ended it, 124 at the time limit, 2 if it did not build."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} [OPTIONS] FILE [--] [ARGUMENTS ...]",
        description="Build a CUDA program, a source with a main(), for the GPU or the simulator, and run it.",
        epilog="What follows FILE goes to the program.",
    )
    parser.add_argument("--xray", action="store_true", help="X-ray its kernels and print the report when it has ended")
    parser.add_argument("--seed", type=int, help="of the X-ray's schedule; by default random")
    parser.add_argument("--budget", type=int, help="steps of a block that the X-ray traces, in place of --seconds")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="of processor time until which it traces long blocks; %(default)s",
    )
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="end it after this time; by default never")
    parser.add_argument("--source", action="append", default=[], metavar="FILE", help="a further source of the program")
    add_options(parser.add_argument)
    parser.add_argument("file", metavar="FILE", help="the source with main()")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="for the program")
    options = parser.parse_args(arguments)
    given = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    try:
        flags = flags_of(options)
        result = program(
            options.file,
            *given,
            traced=options.xray,
            sources=options.source,
            include_paths=flags.include,
            cflags=flags.cflags,
            cuda_cflags=flags.cuda_cflags,
            timeout=options.timeout,
            capture=False,
            seed=options.seed,
            budget=options.budget,
            seconds=options.seconds,
        )
    except (BuildError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    if result.report:
        print(result.report)
    if result.ended != "exit":
        print(result, file=sys.stderr)
    if result.status is not None:
        return result.status
    return _TIMED_OUT if result.ended == "time limit" else 128 + signal.Signals[result.ended]
