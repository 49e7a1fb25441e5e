"""The command `kernel-xray NAME ...`, also `python -m kernel_xray NAME ...`.

Each sub-command is a module with `main(arguments, prog) -> exit status`, imported only when that command runs.
"""

import argparse
import importlib
import sys

from kernel_xray.machine.progress import Progress

COMMANDS = {
    "run": ("build.run_command", "build and run a CUDA program: run FILE [-- ARGUMENTS]"),
    "trace": (
        "build.trace_command",
        "X-ray the kernels of a program, or of an extension: trace FILE [--call EXPRESSION]",
    ),
    "measure-gpu": ("build.measure_gpu", "measure what this machine's GPU can do, for trace --gpu FILE"),
    "doctor": ("build.self_test", "say whether this machine can build and run kernels, and what is missing"),
    "cache": ("machine.cache_command", "show what the build cache holds, or delete it"),
}


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    lines = "\n".join(f"  {name:13}{purpose}" for name, (_, purpose) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="kernel-xray",
        usage="kernel-xray COMMAND ...",
        epilog=f"commands:\n{lines}\n\nkernel-xray COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of those below")
    name = parser.parse_args(arguments[:1]).command
    Progress.after = 0.2  # at a terminal, nothing else says that something goes on
    module = importlib.import_module(f"kernel_xray.{COMMANDS[name][0]}")
    return module.main(arguments[1:], f"kernel-xray {name}")


if __name__ == "__main__":
    sys.exit(main())
