"""`python -m helpers similarity FOLDER`: which answers of a class are too much alike to be independent?"""

import argparse
import sys
from pathlib import Path

from helpers.teaching.classroom import submissions
from helpers.teaching.handout import similarity
from helpers.teaching.handout.similarity_page import page
from kernel_xray.machine import cache


def main(arguments: list[str]) -> int:
    """Prints the table of pairs and writes the page. Returns 0, whatever is found; 2 for wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m helpers similarity",
        description="Compare the answers of a class with each other; list pairs that are too much alike.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="the folder of submissions, as for `grade`")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, default=Path("similarity.html"), help="the page (default: similarity.html)"
    )
    options = parser.parse_args(arguments)
    try:
        found = submissions.find(options.folder)
        pairs = similarity.pairs(found)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        cache.write_whole(options.out, page(pairs, len(found)))
    except submissions.NoSubmission as error:
        print(f"similarity: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"similarity: needs {error.name}; `make setup` installs it", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"similarity: {error.filename} cannot be written ({error.strerror}); --out names another", file=sys.stderr
        )
        return 2
    print(table(pairs, len(found)))
    print(f"wrote {options.out}")
    return 0


def table(pairs: list[similarity.Pair], count: int) -> str:
    """One line for each exercise of each pair."""
    if not pairs:
        return f"{similarity.counted(count)}: no two are alike beyond what the exercises explain"
    rows = [
        f"{pair.names[0]}  {pair.names[1]}  {one.exercise}  {one.share:.0%}  {one.prints}"
        for pair in pairs
        for one in pair.common
    ]
    return "\n".join(["submission  submission  exercise  of the shorter  fingerprints", *rows])
