"""`python -m helpers readme`: writes what README.md has from measurements and runs; `--check` reports what is outdated.

Text between `<!-- measured: NAME -->` and `<!-- end -->` is generated: tables from results/, the length of the course
from its lessons, a verdict from the check of an exercise. So are the pictures in docs/pictures/.
"""

import argparse
import json
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import nbformat

from helpers.ladder.catalogue.matmul import RUNGS
from helpers.ladder.results import scoreboard
from helpers.paths import DOCS, NOTEBOOKS, RESULTS, ROOT
from helpers.practice import registry
from helpers.upkeep.validation.documents import summary

README = ROOT / "README.md"
PICTURES = DOCS / "pictures"
PART = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
BAR = 20  # characters, for cuBLAS's speed
WASTEFUL = ("transpose", "[kTile + 1]", "[kTile]")  # an exercise, and a change that makes its solution slow


# ----------------------------------------------------------------------------------------------------------------------
# Parts that only read files


def ladder() -> str:
    """The measured ladder: a row for each file, the first ones in float32, those with tensor cores in bfloat16.

    A rung that is for other sizes, or that was not measured at this one, has none.
    """
    rows, where = [], ""
    shown: set[str] = set()
    for dtype in ("float32", "bfloat16"):
        table = scoreboard.scoreboard(dtype)
        where = table.title.rpartition(": ")[2]
        for rung, rate, share, _, limit, lines, _ in table.rows:
            file = RUNGS.get(rung, "")
            if rung == "cublas":
                rows.append(f"| cuBLAS, {dtype} | {rate} | 100% | {'▇' * BAR} | | |")
            elif share and file not in shown and Path(file).stem[3:] == rung.removeprefix("matmul_"):
                shown.add(file)
                bar = "▇" * max(1, round(BAR * float(share.rstrip("%")) / 100))
                rows.append(f"| [{Path(file).stem}](kernels/{file}) | {rate} | {share} | {bar} | {limit} | {lines} |")
    return "\n".join(
        [
            "| rung | TFLOP/s | of cuBLAS | | limited by | lines |",
            "|---|---:|---:|---|---|---:|",
            *rows,
            "",
            f"4096 x 4096 x 4096 on {where}; `results/` has every record with the commit of its run. "
            "Limited by: what the X-ray finds to take longest, and its share of the time.",
            "",
        ]
    )


def course() -> str:
    """How much there is, and how long it takes: by the lessons' own words, and by the exercises' own minutes."""
    lessons = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
    reading = 0
    for path in lessons:
        first = nbformat.read(path, as_version=4).cells[0].source
        reading += int(re.search(r"\*\*Time:\*\*\s+(\d+)\s+minutes", first)[1])  # type: ignore[index]
    exercises = registry.exercises()
    solving = sum(registry.read(exercise.name).minutes for exercise in exercises)
    return (
        f"{len(lessons)} lessons and {len(exercises)} exercises: about {reading / 60:.0f} hours of lessons and "
        f"{solving / 60:.0f} of exercises.\n"
    )


def first_start() -> str:
    """What the first start takes, from results/first_start.json."""
    found = json.loads((RESULTS / "first_start.json").read_text(encoding="utf-8"))
    size, lessons, machine = found["environment"], found["lessons"], found["machine"]
    memory = max(each["peak_mb"] for each in lessons) / 1000
    took = "some minutes"
    if machine.get("load", machine["cores"]) < machine["cores"] / 2:  # else others slowed it down
        took = f"{lessons[0]['seconds'] / 60:.0f} minutes on {machine['cores']} cores"
    return (
        f"On Linux without a GPU, the lessons' {size['packages']} packages are {size['download_mb']:,} MB to download "
        f"and {size['installed_mb'] / 1000:.1f} GB on disk; set-up\nprints what it does. "
        f"The first lesson takes {took}, most of them to build the simulator, once.\n"
        f"Lessons {' and '.join(each['lesson'] for each in lessons)} needed at most {memory:.1f} GB of memory.\n"
    )


def agreement() -> str:
    """How often the X-ray's counts are those of Nsight Compute, from results/xray_vs_ncu.json."""
    document = json.loads((RESULTS / "xray_vs_ncu.json").read_text(encoding="utf-8"))
    heading, launches, equal, corrected, _ = summary(document)[0]
    return (
        f"Of {launches} launches of the {heading}, {equal} have exactly Nsight Compute's requests, sectors and "
        f"wavefronts, and {corrected}\nonce nvcc's machine code corrects the counts; [each difference]"
        f"(docs/xray_vs_ncu.md) has its reason ({document['machine']['gpu']}).\n"
    )


# ----------------------------------------------------------------------------------------------------------------------
# Parts that build and run kernels


def verdict() -> str:
    """The verdict on a solution without its padding."""
    from helpers.practice import judge, registry

    name, before, after = WASTEFUL
    source = registry.find(name).solution.read_text(encoding="utf-8")
    if source.count(before) != 1:
        raise ValueError(f"{before!r} is {source.count(before)} times in the solution of {name}; it must be there once")
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / f"{name}.cu"
        answer.write_text(source.replace(before, after), encoding="utf-8")
        said = str(judge.check_file(name, answer)).replace(f"{folder}/", "")
    shown = "\n".join(line for each in said.splitlines() for line in textwrap.wrap(each, 92, break_on_hyphens=False))
    return f"```text\n{shown}\n```\n"


def pictures() -> dict[str, str]:
    """File name -> SVG."""
    from helpers.pages.front import drawings, runs

    first, second = runs.rung(1), runs.rung(2)
    return {
        "xray.svg": drawings.xray_picture([first, runs.race()]),
        "film.svg": drawings.film_picture([first, second]),
    }


READ: Mapping[str, Callable[[], str]] = {
    "course": course, "ladder": ladder, "agreement": agreement, "first_start": first_start
}  # fmt: skip
RUN: Mapping[str, Callable[[], str]] = {"verdict": verdict}


def filled(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The page with these parts written anew. Raises KeyError for a part that the page lacks."""
    named = {name for _, name, _, _ in PART.findall(text)}
    if lacking := set(parts) - named:
        raise KeyError(f"README.md has no part for {', '.join(sorted(lacking))}")
    return PART.sub(lambda m: f"{m[1]}{parts[m[2]]()}{m[4]}" if m[2] in parts else m[0], text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers readme", description="Write README.md's generated parts.")
    parser.add_argument("--check", action="store_true", help="write nothing; report what is outdated")
    parser.add_argument("--no-runs", action="store_true", help="only the parts for which no kernel has to run")
    options = parser.parse_args(arguments)
    before = README.read_text(encoding="utf-8")
    wanted = {README: filled(before, READ if options.no_runs else {**READ, **RUN})}
    if not options.no_runs:
        wanted |= {PICTURES / name: text for name, text in pictures().items()}
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in old:
        print(f"{path.relative_to(ROOT)} {'is outdated: python -m helpers readme' if options.check else 'written'}")
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
