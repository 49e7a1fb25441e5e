"""A learner's own copies of the lessons.

Running a cell changes the notebook. The committed lessons keep the outputs of a GPU, and because nobody runs them in
place, `git pull` never conflicts. The copies lie beside them, so that paths such as `../kernels` hold in both.
"""

from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from helpers.pages.notebooks import own_files
from helpers.paths import MY_LESSONS, NOTEBOOKS

RECORD = ".copied.json"  # name of a lesson -> hash of what was copied


def refresh(lessons: Path = NOTEBOOKS, own: Path = MY_LESSONS) -> list[str]:
    """Copies new and changed lessons, except over a copy that the learner has changed.

    Returns the names of the lessons that are newer than the learner's copy. Copies are trusted: JupyterLab shows their
    outputs as they are.
    """
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(lessons.glob("[0-9][0-9]_*.ipynb"))}
    written, newer = own_files.renew(own, texts, RECORD)
    notary = NotebookNotary()
    for name in written:
        notary.sign(nbformat.reads(texts[name], as_version=4))
    return newer
