"""Writes Sphinx's source folder: the lessons, the pages of docs/, and all that is generated.

The folder has the repository's layout. A link to a file that has no page becomes plain text.
"""

import posixpath
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import nbformat

from helpers.pages.book import citations, kernel_pages, lessons, measured, reference
from helpers.pages.figures.climb import where_bytes_go
from helpers.pages.figures.loads import load_cost
from helpers.paths import DOCS, KERNELS, NOTEBOOKS, ROOT
from kernel_xray.report.shell import Page

# Part of the contents -> its pages below docs/, in order. Pages that no part names are added to the last one.
PARTS = {
    "Measured": ("../results/index", "xray_vs_ncu", "yardsticks"),
    "How it works": ("simulator", "limits", "architecture", "answers", "sandbox"),
    "Look up": (
        "commands",
        "cloud",
        "field",
        "cpp",
        "glossary",
        "../reference/api",
        "../reference/command_line",
        "bibliography",
    ),
    "For teachers and contributors": ("instructors_guide", "../CONTRIBUTING"),
}
PICTURES = {".svg", ".png", ".webp"}
GENERATED = re.compile(r"^<!-- book: (\w+) -->$", re.MULTILINE)  # where a page of docs/ takes generated text
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def assemble(folder: Path) -> list[str]:
    """Writes all pages into `folder`, which is emptied first; returns the names of the documents."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = {**lesson_pages(), **kernel_documents(), **measured.pages(folder), **reference.pages()}
    for path in sorted(DOCS.glob("*.md")):
        pages[f"docs/{path.name}"] = path.read_text(encoding="utf-8")
    pages["CONTRIBUTING.md"] = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    pages["index.md"] = re.sub(r"\]\((?=[\w.]+\.md|pictures/)", "](docs/", pages.pop("docs/index.md")) + contents(pages)
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    parts = {
        "lessons": lesson_table(),
        "published": citations.published(),
        "xray": xray(folder),
        "load_cost": figure(folder, "load_cost", load_cost()),
        "where_bytes_go": figure(folder, "where_bytes_go", where_bytes_go()),
        **measured.parts(folder),
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = without_dead_links(filled(text, parts), Path(name).parent, set(pages))
        path.write_text(text, encoding="utf-8")
    for path in DOCS.rglob("*.*"):
        if path.suffix in PICTURES and "_static" not in path.parts:
            (folder / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / path.relative_to(ROOT))
    return list(pages)


def lesson_pages() -> dict[str, str]:
    """Path -> text of each lesson's notebook."""
    files = kernel_pages.kernel_files()
    return {
        f"notebooks/{path.name}": nbformat.writes(lessons.adapted(nbformat.read(path, as_version=4), files))
        for path in sorted(NOTEBOOKS.glob("*.ipynb"))
    }


def kernel_documents() -> dict[str, str]:
    """Path -> text of the pages of kernels and of their folders."""
    files = kernel_pages.kernel_files()
    used: dict[str, dict[str, lessons.Lesson]] = {}
    for lesson in table_of_lessons():
        notebook = nbformat.read(ROOT / f"{lesson.document}.ipynb", as_version=4)
        for name in lessons.kernels_used(notebook, files):
            used.setdefault(name, {})[f"lesson {lesson.number}"] = lesson
    found = {}
    for folder in kernel_pages.FOLDERS:
        found[f"kernels/{folder or 'operators'}_files.md"] = kernel_pages.folder_page(folder, files)
    for name in files:
        text = (KERNELS / name).read_text(encoding="utf-8")
        found[f"kernels/{name}.md"] = kernel_pages.kernel_page(name, text, files, used.get(name, {}))
    return found


def xray(folder: Path) -> str:
    """The picture of a strided load from lesson 01, as Markdown for the landing page."""
    notebook = nbformat.read(NOTEBOOKS / "01_vector_add.ipynb", as_version=4)
    png, text = lessons.picture(notebook, "sectors a request")
    (folder / "docs" / "xray.png").write_bytes(png)
    return f"```{{image}} docs/xray.png\n:alt: {text}\n:width: 900px\n```\n"


def figure(folder: Path, name: str, page: Page) -> str:
    """A figure that a reader moves, as Markdown for the landing page. In a file: its script has no links."""
    (folder / f"{name}.html").write_text(page._repr_html_(), encoding="utf-8")
    return f"```{{raw}} html\n:file: {name}.html\n```\n"


def table_of_lessons() -> list[lessons.Lesson]:
    return lessons.lessons_of((ROOT / "README.md").read_text(encoding="utf-8"))


def lesson_table() -> str:
    """The ladder of lessons with links, from the table in README.md."""
    rows = (f"| [](/{x.document}.ipynb) | {x.concept} |" for x in table_of_lessons())
    return "\n".join(["| lesson | what it teaches |", "|---|---|", *rows])


def contents(pages: Iterable[str]) -> str:
    """The table of contents, at the end of the landing page: the lessons, the kernels, then PARTS."""
    known = {name.rpartition(".")[0] for name in pages}
    parts: dict[str, list[str]] = {
        "Lessons": sorted(name for name in known if name.startswith("notebooks/")),
        "Kernels": [f"kernels/{folder or 'operators'}_files" for folder in kernel_pages.FOLDERS],
    }
    for title, names in PARTS.items():
        parts[title] = [name.removeprefix("../") if name.startswith("../") else f"docs/{name}" for name in names]
    placed = {name for names in parts.values() for name in names}
    *_, last = parts.values()
    last += sorted(name for name in known if name.startswith("docs/") and name not in placed and name != "docs/index")
    trees = (
        f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(f"/{n}" for n in names if n in known) + "\n```\n"
        for title, names in parts.items()
    )
    return "\n" + "\n".join(trees)


def filled(page: str, parts: Mapping[str, str]) -> str:
    """A page with its generated parts. Raises KeyError for a part that does not exist."""
    return GENERATED.sub(lambda mark: parts[mark.group(1)], page)


def without_dead_links(page: str, place: Path, known: set[str]) -> str:
    """A page in which relative links lead to documents of the book; a link to any other file is plain text."""

    def repaired(link: re.Match) -> str:
        text, target, anchor = link.group(1), link.group(2), link.group(3) or ""
        path = posixpath.normpath(posixpath.join("/", place, target))[1:]  # below the source folder, as all pages are
        if path in known:
            return link.group()
        if f"{path}.md" in known:
            return f"[{text}](/{path}.md{anchor})"
        return text

    return LINK.sub(repaired, page)
