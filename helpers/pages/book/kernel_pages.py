"""A page for each kernel file: source with an anchor for each line, the lessons that use it, its headers."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from helpers.pages.book.lessons import Lesson
from helpers.paths import KERNELS

LEXERS = {".cu": "cuda", ".h": "cuda", ".cpp": "cpp", ".py": "python"}
# Folder below kernels/ -> title and introduction of its part; the order is that of the book.
FOLDERS = {
    "": ("Operators", "One readable file per operator."),
    "matmul": ("The matmul ladder", "Numbered as it is climbed: each rung makes one change to the rung before it."),
    "include": ("Shared headers", "What several kernels need: launch checks, vectors of elements, Hopper's units."),
    "solutions": ("Solutions of the exercises", "**They give the answers away.** Try the lesson's exercise first."),
    "wrong": ("Kernels with a planted mistake", "Shown in the lessons, and repaired there."),
    "museum": ("The museum of bugs", "Each bug has a fixed twin beside it; lesson 13 walks through them."),
}


def kernel_files(root: Path = KERNELS) -> list[str]:
    """The files that get a page, as paths below kernels/, folder by folder."""
    return [
        path.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in sorted((root / folder).glob("*"))
        if path.suffix in LEXERS
    ]


def includes(text: str, files: Iterable[str]) -> list[str]:
    """The course's headers that a source names in #include "..."."""
    named = re.findall(r'^\s*#\s*include\s+"([\w./]+)"', text, re.MULTILINE)
    return [file for name in named for file in files if file in (f"include/{name}", name)]


def kernel_page(name: str, text: str, files: Iterable[str], lessons: Mapping[str, Lesson]) -> str:
    """The page of a file below kernels/ as MyST Markdown.

    text     of the file
    lessons  those that use it, by the title of the link
    """
    up = "../" * (name.count("/") + 1)
    facts = []
    if lessons:
        links = ", ".join(f"[{title}](/{lesson.document}.ipynb)" for title, lesson in lessons.items())
        facts.append(f"Used in {links}.")
    if found := includes(text, files):
        facts.append("Includes " + ", ".join(f"[{file}]({up}kernels/{file}.md)" for file in found) + ".")
    return f"# kernels/{name}\n\n{' '.join(facts)}\n\n```{{raw}} html\n{source_html(text, Path(name).suffix)}\n```\n"


def source_html(text: str, suffix: str) -> str:
    """The source in the theme's colours, each line with its number and the anchor L-NUMBER."""
    lexer = get_lexer_by_name(LEXERS[suffix], stripnl=False)
    formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, cssclass="highlight")
    return f'<div class="highlight-{LEXERS[suffix]} notranslate">{highlight(text, lexer, formatter)}</div>'


def folder_page(folder: str, files: Iterable[str]) -> str:
    """The page of a folder of kernels, with its files as subpages."""
    title, introduction = FOLDERS[folder]
    inside = [name for name in files if str(Path(name).parent) == (folder or ".")]
    # Without the folder: the contents are narrow, and would break a path inside a word.
    entries = "\n".join(f"{Path(name).name} </kernels/{name}>" for name in inside)
    return f"# {title}\n\n{introduction}\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"
