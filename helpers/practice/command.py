"""`python -m helpers check NAME [FILE]`: is this file an answer to the exercise?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from helpers.practice import judge, registry


def main(arguments: list[str]) -> int:
    """0: accepted; 1: not, and the reason is printed; 2: no such exercise or file."""
    listed = "\n".join(f"  {e.lesson}  {e.name:22}{e.title}" for e in registry.exercises())
    parser = argparse.ArgumentParser(
        prog="python -m helpers check",
        description="Check an answer to an exercise: build it, run it on many cases, and say what is wrong first.",
        epilog=f"exercises (lesson, name, title):\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="of the exercise")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", type=Path, help="with an answer; by default kernels/exercises/NAME.cu"
    )
    options = parser.parse_args(arguments)
    try:
        verdict = judge.check_file(options.name, options.file)
    except (registry.UnknownExercise, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    print(verdict)
    return 0 if verdict.accepted else 1
