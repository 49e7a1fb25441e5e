"""The book as `make book` writes it, for tests of its pages."""

import subprocess
import sys
from pathlib import Path

from helpers.paths import ROOT


def book_in(folder: Path, *options: str) -> Path:
    """Builds the book into a new folder inside `folder`; returns the new one. Fails if the book has problems."""
    pages = folder / "book"
    command = [sys.executable, "-m", "helpers", "book", "--build", str(pages), *options]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert made.returncode == 0 and "; 0 problems;" in made.stdout, made.stdout[-1000:] + made.stderr[-3000:]
    return pages
