"""The command line of the course: `python -m helpers NAME ...`.

Each sub-command is a module with `main(arguments) -> exit status`, imported only when that command runs.
"""

import argparse
import importlib
import importlib.util
import sys
from pathlib import Path

from helpers.machine.paths import ROOT

COMMANDS = {
    "doctor": ("doctor.diagnosis", "report what this machine has, what is missing, and how to fix it"),
    "first-kernel": ("doctor.first_kernel", "build and run a first kernel and check its result"),
    "lab": ("notebooks.lab", "open your copies of the lessons in JupyterLab"),
    "course": ("notebooks.course", "run every notebook and write pages under build/course/"),
    "book": ("book.command", "write the course as a book under build/book/"),
    "colab": ("front.colab", "write the lessons as Colab and Kaggle open them: colab OUT --repository OWNER/NAME"),
    "readme": ("front.front_page", "write, or check, what README.md has from measurements and runs"),
    "run": ("kernel_xray.build.run_command", "build and run a CUDA program: run FILE [ARGUMENTS]"),
    "xray": (
        "kernel_xray.build.trace_command",
        "X-ray the kernels of your own extension or program: xray FILE --call EXPRESSION",
    ),
    "cache": ("kernel_xray.machine.cache_command", "show what the build cache holds, or delete it"),
    "check": ("practice.command", "check an answer to an exercise: check NAME [FILE]"),
    "hint": ("practice.hint_command", "print the next hint of an exercise: hint NAME"),
    "progress": ("practice.standing", "show which exercises you have solved, and what comes next"),
    "grade": ("classroom.command", "grade a submission, or a folder of submissions: grade FOLDER"),
    "handout": ("handout.command", "write the students' copy of the course, without solutions: handout COURSE"),
    "guide": ("handout.guide", "write, or check, what is generated of the instructor's guide"),
    "similarity": ("handout.similarity_command", "compare the answers of a class with each other: similarity FOLDER"),
    "starters": ("practice.starters", "write, or check, what is generated from the exercises' solutions"),
    "new-op": ("notebooks.new_op", "write a package for your own operator: new-op NAME"),
    "mutants": ("mutants.command", "make one small mistake at a time in a kernel, and run its checks"),
    "bench": ("benchmarks.command", "measure operators on a GPU, or show what is recorded"),
}
# A copy for students lacks some rooms.
ROOMS = {path.name for path in Path(__file__).parent.iterdir()}
COMMANDS = {name: found for name, found in COMMANDS.items() if found[0].split(".")[0] in (*ROOMS, "kernel_xray")}


def main(arguments: list[str]) -> int:
    lines = "\n".join(f"  {name:14}{purpose}" for name, (_, purpose) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m helpers",
        usage="python -m helpers COMMAND ...",
        epilog=f"commands:\n{lines}\n\npython -m helpers COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of those below")
    options = parser.parse_args(arguments[:1])
    try:
        place = COMMANDS[options.command][0]
        if place.startswith("kernel_xray."):  # the instrument's own command, under the course's name
            return importlib.import_module(place).main(arguments[1:], f"python -m helpers {options.command}")
        return importlib.import_module(f"helpers.{place}").main(arguments[1:])
    except ModuleNotFoundError as error:
        if importlib.util.find_spec("torch") is not None:
            raise
        course = ROOT / ".venv" / "bin" / "python"
        advice = f"use the course's: {course} -m helpers {' '.join(arguments)}" if course.exists() else "run make setup"
        print(f"helpers: this Python, {sys.executable}, has no {error.name}; {advice}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
