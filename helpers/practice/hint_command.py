"""`python -m helpers hint NAME`: the next hint of an exercise, one more at each call."""

import argparse
import sys

from helpers.practice import registry
from helpers.practice.assistance import Hints
from kernel_xray.machine import cache


def main(arguments: list[str]) -> int:
    """Prints the hints seen so far and the next one. Returns 2 if there is no such exercise."""
    parser = argparse.ArgumentParser(prog="python -m helpers hint", description=__doc__)
    parser.add_argument("name", metavar="NAME", help="the name of the exercise")
    parser.add_argument("--again", action="store_true", help="begin with the first hint again")
    options = parser.parse_args(arguments)
    try:
        registry.find(options.name)
    except registry.UnknownExercise as error:
        print(error, file=sys.stderr)
        return 2
    seen = cache.root() / "exercises" / f"{options.name}.hints"
    before = int(seen.read_text()) if seen.is_file() and not options.again else 0
    shown = min(before + 1, len(registry.read(options.name).hints))
    seen.parent.mkdir(parents=True, exist_ok=True)
    seen.write_text(str(shown))
    print(Hints(options.name, shown, in_terminal=True))
    return 0
