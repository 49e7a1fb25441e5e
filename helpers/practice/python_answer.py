"""Answers in Python: the code that an operator needs beside its kernel."""

import traceback
from pathlib import Path
from types import SimpleNamespace

from helpers.practice.case_runner import plain


class Failed(Exception):
    """The code did not run. The message begins with file and line, as a compiler's message does."""


def run(source: str) -> SimpleNamespace:
    """Runs the file and returns the names that it defines. Raises Failed.

    Two files beside it hold the code before and after a notebook's cell: see judge.assemble.
    """
    path = Path(source)
    names: dict[str, object] = {"__name__": "answer", "__file__": source}
    try:
        for part in (path.with_suffix(".before"), path, path.with_suffix(".after")):
            if part.is_file():
                exec(compile(part.read_text(encoding="utf-8"), str(part), "exec"), names)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise Failed(f"{error.filename}:{error.lineno}: error: {error.msg}\n  > {line}") from None
    except Exception as error:
        raise Failed(located(error, source)) from None
    return SimpleNamespace(**names)


def located(error: BaseException, source: str) -> str:
    """The error's type and message; before them, the innermost line of `source` in its traceback, if there is one."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    where = f"{source}:{frames[-1].lineno}: " if frames else ""
    line = f"\n  > {frames[-1].line}" if frames and frames[-1].line else ""
    message = plain(error).split("\n\n")[0]  # some of PyTorch's go on for a page
    return f"{where}{type(error).__name__}: {message}{line}"
