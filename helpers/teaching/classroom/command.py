"""`python -m helpers grade FOLDER`: grades one submission, or a folder of submissions."""

import argparse
import os
import sys
from pathlib import Path

from helpers.teaching.classroom import calibration, classroom50, formats, grading, points, results, sandbox, submissions
from helpers.teaching.classroom.verdicts import Store
from helpers.upkeep.benchmarks.tools import positive


def main(arguments: list[str]) -> int:
    """Grades and writes. Returns 0 if all was graded, whatever the points; 1 if not; 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        out = options.out
        found = submissions.find(options.folder, options.single, leave_out=out)
        single = options.single or (
            len(found) == 1 and found[0].name == submissions.shown_name(options.folder.resolve().name)
        )
        wanted = {name for one in found for name in one.answers}
        scheme = points.read(options.points) if options.points else points.one_each(wanted)
        if not scheme.exercises:
            raise submissions.NoSubmission(f"{options.folder} holds no answer to any exercise; {_named(found)}")
        if "classroom50" in options.format:  # an error before the grading, not after it
            classroom50.result(results.Class(scheme, (results.Graded("", ()),), single))
        store = Store(out / "verdicts", shared=bool(options.part))
    except (submissions.NoSubmission, points.PointsError, classroom50.NotThere) as error:
        print(f"grade: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"grade: {error.filename} cannot be written ({error.strerror}); --out names another", file=sys.stderr)
        return 2
    refused = "" if options.trust else sandbox.problem()
    if refused and not sandbox.in_a_container():
        print(
            f"grade: answers would run with all of your rights, because they cannot be confined here: {refused}. Grade "
            "in a container, or pass --trust if you trust those who wrote them; docs/sandbox.md",
            file=sys.stderr,
        )
        return 2
    if refused:
        print(f"grade: only the container confines the answers: {refused}", file=sys.stderr)
    if not (options.resume or options.part):
        store.clear()
    try:
        worker = grading.worker(not (refused or options.trust))
        broken = calibration.not_graded([n for n in scheme.exercises if n in wanted], store, options.jobs, worker)
        for name, why in broken.items():
            print(f"grade: {name} is not graded: {why}", file=sys.stderr)
        sound = scheme.without(broken)
        mine = [one.only(sound.exercises) for one in found]
        grading.grade(mine, sound, store, options.jobs, worker, part=options.part or grading.WHOLE)
    except grading.Unfit as error:
        print(f"grade: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ngrade: stopped; --resume goes on from here", file=sys.stderr)
        return 130
    if options.part:
        print(f"the verdicts of this part are in {out / 'verdicts'}; --resume without --part counts points")
        return 1 if broken else 0
    whole = results.collect(found, scheme, store, single, broken)
    for name in dict.fromkeys(options.format):
        if broken and name == "classroom50":
            print("grade: result.json is not written: Classroom 50 takes no test without a score", file=sys.stderr)
            continue
        for path in formats.write(name, whole, out):
            print(f"wrote {path}")
    print(formats.table(whole))
    return 1 if broken else 0


def _named(found: list[submissions.Submission]) -> str:
    problems = [f"{one.name}: {problem}" for one in found for problem in one.problems]
    return "; ".join(problems[:5]) or "an answer is a file named after its exercise, or a cell %%exercise NAME"


def _part(text: str) -> grading.Part:
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and int(number) < int(of)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a part; write K/N, from 0/50 to 49/50 for 50 tasks")
    return grading.Part(int(number), int(of))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m helpers grade",
        description="Grade a submission, or a folder of submissions: check each answer and count points.",
        epilog=f"The file of points:{(points.__doc__ or '').partition(':')[2]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a submission, or a folder of submissions")
    parser.add_argument("--points", metavar="FILE", type=Path, help="points by exercise (YAML); by default one each")
    parser.add_argument(
        "--format", nargs="+", default=[], choices=formats.FORMATS, metavar="FORMAT", action="extend",
        help=f"files to write: {', '.join(formats.FORMATS)}",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("grades"), help="where to (default: grades)")
    parser.add_argument(
        "--jobs", metavar="N", type=positive, default=os.cpu_count() or 1, help="answers to check at a time"
    )
    parser.add_argument("--resume", action="store_true", help="keep the verdicts of an earlier run in DIR")
    parser.add_argument(
        "--part", metavar="K/N", type=_part,
        help="check the K-th of N parts of the class's answers, K from 0, and write nothing but verdicts: "
        "one task of a job array does so, and a last run with --resume writes the files",
    )  # fmt: skip
    parser.add_argument("--trust", action="store_true", help="do not confine the answers: see docs/sandbox.md")
    parser.add_argument("--single", action="store_true", help="FOLDER is one submission, even if it holds only folders")
    return parser
