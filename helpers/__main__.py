"""The command line of the course: `python -m helpers NAME ...`.

Each sub-command is a module with `main(arguments) -> exit status`, imported only when that command runs.
"""

import argparse
import difflib
import importlib
import importlib.util
import sys
from pathlib import Path

from helpers.paths import HELPERS, ROOT

COMMANDS = {
    "doctor": ("upkeep.doctor.diagnosis", "report what this machine has, what is missing, and how to fix it"),
    "first-kernel": ("upkeep.doctor.first_kernel", "build and run a first kernel and check its result"),
    "lab": ("pages.notebooks.lab", "open your copies of the lessons in JupyterLab"),
    "course": ("pages.notebooks.course", "run every notebook and write pages under build/course/"),
    "book": ("pages.book.command", "write the course as a book under build/book/"),
    "colab": (
        "pages.front.colab",
        "write the lessons for Colab and Kaggle: colab OUT --repository OWNER/NAME",
    ),
    "readme": ("pages.front.front_page", "write, or check, what README.md has from measurements and runs"),
    "run": ("kernel_xray.build.run_command", "build and run a CUDA program: run FILE [ARGUMENTS]"),
    "xray": (
        "kernel_xray.build.trace_command",
        "X-ray the kernels of your own extension or program: xray FILE --call EXPRESSION",
    ),
    "cache": ("kernel_xray.machine.cache_command", "show what the build cache holds, or delete it"),
    "check": ("practice.command", "check an answer to an exercise: check NAME [FILE]"),
    "hint": ("practice.hint_command", "print the next hint of an exercise: hint NAME"),
    "progress": ("practice.standing", "show which exercises you have solved, and what comes next"),
    "grade": ("teaching.classroom.command", "grade a submission, or a folder of submissions: grade FOLDER"),
    "handout": (
        "teaching.handout.command",
        "write the students' copy, without solutions: handout COURSE",
    ),
    "guide": ("teaching.handout.guide", "write, or check, what is generated of the instructor's guide"),
    "similarity": (
        "teaching.handout.similarity_command",
        "compare the answers of a class: similarity FOLDER",
    ),
    "starters": (
        "practice.starters",
        "make your files of the exercises; or write, or check, the lessons' cells of them",
    ),
    "new-op": ("pages.notebooks.new_op", "write a package for your own operator: new-op NAME"),
    "mutants": ("upkeep.mutants.command", "make one small mistake at a time in a kernel, and run its checks"),
    "bench": ("upkeep.benchmarks.command", "measure operators on a GPU, or show what is recorded"),
}
# A copy for students lacks some rooms.
COMMANDS = {
    name: found
    for name, found in COMMANDS.items()
    if found[0].startswith("kernel_xray.") or (HELPERS / Path(*found[0].split("."))).parent.is_dir()
}


def full_name(module: str) -> str:
    """The module of a command: one of ours, or the instrument's own, which has the course's name for it here."""
    return module if module.startswith("kernel_xray.") else f"helpers.{module}"


def main(arguments: list[str]) -> int:
    lines = "\n".join(f"  {name:14}{purpose}" for name, (_, purpose) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m helpers",
        usage="python -m helpers COMMAND ...",
        epilog=f"commands:\n{lines}\n\npython -m helpers COMMAND --help says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", metavar="COMMAND", help="one of those below")
    if not arguments:
        parser.print_help()
        return 2
    options = parser.parse_args(arguments[:1])
    if options.command not in COMMANDS:
        near = difflib.get_close_matches(options.command, COMMANDS, n=1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(COMMANDS)}"
        parser.error(f"no command {options.command!r}; {advice}")
    try:
        module = importlib.import_module(full_name(COMMANDS[options.command][0]))
        named = [f"python -m helpers {options.command}"] if module.__name__.startswith("kernel_xray.") else []
        return module.main(arguments[1:], *named)
    except ModuleNotFoundError as error:
        if importlib.util.find_spec("torch") is not None:
            raise
        course = ROOT / ".venv" / "bin" / "python"
        advice = f"use the course's: {course} -m helpers {' '.join(arguments)}" if course.exists() else "run make setup"
        print(f"helpers: this Python, {sys.executable}, has no {error.name}; {advice}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
