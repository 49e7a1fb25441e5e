"""`python -m helpers handout COURSE.yml`: writes the students' copy of the course, without solutions."""

import argparse
import sys
from pathlib import Path

from helpers.practice import registry
from helpers.teaching.classroom.points import PointsError
from helpers.teaching.handout import assignments, leaks, platforms, release


def main(arguments: list[str]) -> int:
    """Writes OUT/student and OUT/student.zip. Returns 0, 1 if they would show a solution, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    ready = assignments.COURSES / f"{options.course}.yml"
    try:
        if not registry.with_solutions():
            raise PointsError("this copy of the course has no solutions, so nothing can be handed out from it")
        course = assignments.read(ready if ready.is_file() else Path(options.course))
        folder, archive = options.out / "student", options.out / "student.zip"
        release.write(course, folder)
        release.commit(folder, course.title, archive)
        points = platforms.write_points(course, options.out)
        written = [platforms.write(name, course, options.out, folder) for name in dict.fromkeys(options.platform)]
    except PointsError as error:
        print(f"handout: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"handout: {error}", file=sys.stderr)
        return 2
    found = [leak for place in (folder, archive, points, *written) for leak in leaks.leaks(place)]
    if found:
        archive.unlink()
        print("handout: do not hand this out, it shows solutions:", *found, sep="\n  ", file=sys.stderr)
        return 1
    for assignment in course.assignments:
        due = f", due {assignment.due:%Y-%m-%d %H:%M}" if assignment.due else ""
        count = len(assignment.scheme.exercises)
        print(f"{assignment.name}: {count} {'exercise' if count == 1 else 'exercises'}{due}")
    print(f"wrote {folder}, a git repository of one commit\nwrote {archive}")
    for path in (points, *written):
        print(f"wrote {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    ready = ", ".join(path.stem for path in sorted(assignments.COURSES.glob("*.yml")))
    parser = argparse.ArgumentParser(
        prog="python -m helpers handout",
        description="Write what students get: a repository with the chosen exercises and lessons, and no solutions.",
        epilog=f"The file of a course:{(assignments.__doc__ or '').partition(':')[2]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("course", metavar="COURSE", help=f"a YAML file, or a ready-made course: {ready}")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("build/classroom"), help="where to (default: build/classroom)"
    )
    parser.add_argument(
        "--platform", nargs="+", default=[], choices=platforms.PLATFORMS, metavar="NAME", action="extend",
        help=f"also write the files for these platforms: {', '.join(platforms.PLATFORMS)}",
    )  # fmt: skip
    return parser
