"""Answers that are Python code: what an operator needs beside its kernel."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import SimpleNamespace

from helpers.practice.cases import plain


class Failed(Exception):
    """The code could not be run. The message begins with file and line, as a compiler's does."""


def run(source: str) -> SimpleNamespace:
    """Runs the file, and gives the names that it defines. Raises Failed.

    What belongs before and after a notebook's cell lies beside it: see judge.assemble.
    """
    path, names = Path(source), {"__name__": "answer", "__file__": source}
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
    """The error's type and message, after the last line of `source` that it has come through, if there is one."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    where = f"{source}:{frames[-1].lineno}: " if frames else ""
    line = f"\n  > {frames[-1].line}" if frames and frames[-1].line else ""
    message = plain(error).split("\n\n")[0]  # some of PyTorch's go on for a page
    return f"{where}{type(error).__name__}: {message}{line}"
