"""A learner's own copies of the lessons.

Running a cell changes the notebook. The committed lessons keep the outputs of a GPU, and because nobody runs them in
place, `git pull` never conflicts. The copies lie beside them, so that paths such as `../kernels` hold in both.
"""

import hashlib
import json
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from helpers.paths import MY_LESSONS, NOTEBOOKS
from kernel_xray.machine import cache

RECORD = ".copied.json"  # name of a lesson -> hash of what was copied


def refresh(lessons: Path = NOTEBOOKS, own: Path = MY_LESSONS) -> list[str]:
    """Copies new and changed lessons, except over a copy that the learner has changed.

    Returns the names of the lessons that are newer than the learner's copy. Copies are trusted: JupyterLab shows their
    outputs as they are.
    """
    own.mkdir(exist_ok=True)
    record = own / RECORD
    copied = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    newer, notary = [], NotebookNotary()
    for lesson in sorted(lessons.glob("[0-9][0-9]_*.ipynb")):
        text, copy, known = lesson.read_text(encoding="utf-8"), own / lesson.name, copied.get(lesson.name)
        if not copy.exists() or _hash(copy.read_text(encoding="utf-8")) == known != _hash(text):
            cache.write_whole(copy, text)
            notary.sign(nbformat.reads(text, as_version=4))
            copied[lesson.name] = _hash(text)
        elif known != _hash(text):
            newer.append(lesson.name)
    cache.write_whole(record, json.dumps(copied, indent=1, sort_keys=True) + "\n")
    return newer


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
