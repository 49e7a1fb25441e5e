"""Finds the answers in a folder of submissions: files named after an exercise, and `%%exercise NAME` cells.

What cannot be graded, such as a name that is not an exercise or an unreadable notebook, becomes a sentence in the
result; nothing that a submission holds raises an exception here. Symbolic links are not followed, so that a submission
cannot hand in a file from elsewhere.
"""

import difflib
import hashlib
import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.practice import quoted, registry, starters
from helpers.practice.cells import named_in
from helpers.practice.marks import HEADLINE

SUFFIXES = {".cu", ".py", ".ipynb"}
FILES = 1000  # in a submission
TOTAL = 100_000_000  # bytes of all files that are read
NAME = 60  # characters of a submission's name that are shown
ARCHIVES = {".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar"}
_PROBLEMS, _ANSWERS = 100, 20  # that are named, of a submission and of an exercise: one of each is enough to act on
# In a copy of the course, only these folders hold answers; kernels/exercises is that of copies from before 2026-12.
ABOUT_COURSE = ("my_lessons", "kernels/exercises", "notebooks")
_BESIDE_ANSWERS = ("helpers", "notebooks")  # one of these is in each copy
# In a notebook that is handed in, most cells are not answers; in these folders, no file is.
_SKIPPED = {"__pycache__", "__MACOSX", "build", "node_modules"}


@dataclass(frozen=True)
class Answer:
    """The text of an answer. `where` names the file, and the cell of a notebook, counted from 1."""

    exercise: str
    text: str
    where: str
    is_cell: bool = False


@dataclass(frozen=True)
class Submission:
    """What one student handed in: by exercise the answers found (more than one cannot be graded), and problems."""

    name: str
    answers: dict[str, tuple[Answer, ...]]
    problems: tuple[str, ...] = ()

    def only(self, exercises: Collection[str]) -> "Submission":
        """The same without answers to other exercises."""
        kept = {name: found for name, found in self.answers.items() if name in exercises}
        return Submission(self.name, kept, self.problems)


class NoSubmission(ValueError):
    """The folder has nothing to grade. The message says what was looked for."""


def find(folder: Path, single: bool = False, leave_out: Path | None = None) -> list[Submission]:
    """The submissions in `folder`, by name.

    It is one submission if it holds answers itself, is a copy of the course, or `single` says so; otherwise each
    folder in it is one. `leave_out` is a folder that is not searched. Raises NoSubmission.
    """
    if not folder.is_dir():
        raise NoSubmission(f"{folder} is not a folder; name the folder of a submission, or the folder that holds them")
    inside = sorted(folder.iterdir())
    own = any(path.suffix in SUFFIXES and path.is_file() for path in inside)
    if single or own or _is_course(folder):
        return [read(folder, leave_out)]
    folders = [path for path in inside if path.is_dir() and not _skipped(path, leave_out)]
    if not folders:
        raise NoSubmission(
            f"{folder} has neither answers (NAME.cu, NAME.py, *.ipynb) nor folders of submissions; exercises: "
            f"{', '.join(exercise.name for exercise in registry.exercises())}"
        )
    return [read(path, leave_out) for path in folders]


def read(folder: Path, leave_out: Path | None = None) -> Submission:
    """The submission in `folder`. Never raises: what cannot be read is one of its problems."""
    problems: list[str] = []
    name = shown_name(folder.resolve().name if not folder.is_symlink() else folder.name)
    if folder.is_symlink():
        return Submission(name, {}, (f"{name} is a symbolic link, which is not followed",))
    found: dict[str, list[Answer]] = {}
    left = TOTAL
    for path in _files(folder, leave_out, problems):
        where = printable(path.relative_to(folder).as_posix())
        text = _text(path, where, problems)
        if text is None:
            continue
        left -= len(text)
        if left < 0:
            problems.append(f"more than {TOTAL // 1_000_000} MB of files: the others were not read")
            break
        answers = _cells(text, where, problems) if path.suffix == ".ipynb" else _file(path, text, where, problems)
        for answer in answers:
            found.setdefault(answer.exercise, []).append(answer)
    chosen = {exercise: tuple(_distinct(answers)[:_ANSWERS]) for exercise, answers in found.items()}
    said = list(dict.fromkeys(map(printable, problems)))
    more = [f"and {len(said) - _PROBLEMS:,} more problems"] if len(said) > _PROBLEMS else []
    return Submission(name, chosen, (*said[:_PROBLEMS], *more))


def printable(text: str) -> str:
    """The text on one line, without characters that could change what a terminal or a table shows."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def shown_name(name: str) -> str:
    """A submission's name as it is shown: different for different names, and at most NAME characters.

    A control character is its number, such as <1b>; a long name ends in a digest of all of it.
    """
    text = "".join(c if c.isprintable() else f"<{ord(c):x}>" for c in name)
    if len(text) <= NAME and text == name:
        return text
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{text[: NAME - 9]}~{digest}"


def is_starter(answer: Answer) -> bool:
    """Whether it is the text that learners get, up to white space."""
    marked = registry.read(answer.exercise)
    return starters.same(answer.text, marked.cell_text if answer.is_cell else marked.starter)


def _distinct(answers: list[Answer]) -> list[Answer]:
    """Answers that differ; an untouched starter is one only if there is no other."""
    by_text = {(answer.text.strip(), answer.is_cell): answer for answer in reversed(answers)}
    kept = [answer for answer in answers if by_text[answer.text.strip(), answer.is_cell] is answer]
    kept = kept[: 2 * _ANSWERS]  # thousands would take minutes to compare with the starter
    return [answer for answer in kept if not is_starter(answer)] or kept[:1]


# -- files -------------------------------------------------------------------------------------------------------------


def _is_course(folder: Path) -> bool:
    """Whether it is a copy of the course, or its answers alone. One folder of such a name is that of a student."""
    if not any((folder / name).is_dir() for name in ABOUT_COURSE[:2]):
        return False
    beside = {path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")}
    return beside == {ABOUT_COURSE[0]} or any((folder / name).is_dir() for name in _BESIDE_ANSWERS)


def _skipped(path: Path, leave_out: Path | None) -> bool:
    hidden = path.name.startswith(".") or path.name in _SKIPPED
    return hidden or (leave_out is not None and path.resolve() == leave_out.resolve())


def _files(folder: Path, leave_out: Path | None, problems: list[str]) -> Iterator[Path]:
    """The files that may hold answers, in a fixed order."""
    starts = [path for name in ABOUT_COURSE if (path := folder / name).is_dir()] if _is_course(folder) else [folder]
    count = 0

    def unreadable(error: OSError) -> None:
        problems.append(f"{os.path.relpath(error.filename, folder)} cannot be read ({error.strerror})")

    for start in starts:
        for where, folders, names in os.walk(start, onerror=unreadable):
            here = Path(where)
            linked = [name for name in folders if (here / name).is_symlink()]
            problems += [f"{(here / name).relative_to(folder)} is a symbolic link: not followed" for name in linked]
            folders[:] = sorted(name for name in folders if not _skipped(here / name, leave_out))
            for name in sorted(names):
                if Path(name).suffix.lower() in ARCHIVES and not name.startswith("."):
                    problems.append(f"{(here / name).relative_to(folder)} is an archive: unpack it, then grade")
                if Path(name).suffix in SUFFIXES and not name.startswith("."):
                    count += 1
                    if count > FILES:
                        problems.append(f"more than {FILES:,} files: the others were not read")
                        return
                    yield here / name


def _text(path: Path, where: str, problems: list[str]) -> str | None:
    """The text of a file."""
    try:
        content = quoted.contents(path)
    except quoted.Unreadable as error:
        problems.append(f"{where} {error}: not read")
        return None
    except OSError as error:
        linked, why = path.is_symlink(), f"cannot be read ({error.strerror})"
        problems.append(f"{where} {'is a symbolic link: not followed' if linked else why}")
        return None
    text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    if "\N{REPLACEMENT CHARACTER}" in text or "\0" in text:
        problems.append(f"{where} is not UTF-8 text; what could not be read was replaced")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _file(path: Path, text: str, where: str, problems: list[str]) -> list[Answer]:
    """The answer in a source file: named by the file, or by the first line that its starter had."""
    names = {exercise.name: exercise.starter.suffix for exercise in registry.exercises()}
    first = HEADLINE.match(text)
    name = path.stem if path.stem in names or first is None else first["name"]
    if name not in names:
        problems.append(f"{where}: {_unknown(path.stem, list(names))}")
        return []
    if names[name] != path.suffix:
        problems.append(f"{where}: an answer to {name} is a {names[name]} file; rename it to {name}{names[name]}")
        return []
    return [Answer(name, text, where)]


def _cells(text: str, where: str, problems: list[str]) -> list[Answer]:
    """The answers in a notebook."""
    names = [exercise.name for exercise in registry.exercises()]
    found = []
    try:
        cells = json.loads(text)["cells"]
        sources = [(i, cell["source"]) for i, cell in enumerate(cells, 1) if cell["cell_type"] == "code"]
        joined = [(i, source if isinstance(source, str) else "".join(source)) for i, source in sources]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problems.append(f"{where} cannot be read as a notebook ({type(error).__name__}); save it again as .ipynb")
        return []
    for number, source in joined:
        name = named_in(source)
        if name is None:
            continue
        if name not in names:
            likely = names if len(problems) < _PROBLEMS else []
            problems.append(f"{where}, cell {number}: {_unknown(name, likely)}")
            continue
        text = source.partition("\n")[2].replace("\0", "\N{REPLACEMENT CHARACTER}")
        text = text.encode("utf-8", "replace").decode()  # JSON can hold halves of characters
        found.append(Answer(name, text, f"{where}, cell {number}", is_cell=True))
    return found


def _unknown(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name[:80], names, 1)
    return f"there is no exercise {name[:80]!r}" + (f"; is it {near[0]}?" if near else "")
