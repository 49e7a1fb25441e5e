"""`python -m helpers book` (`make book`): assembles the book, has Sphinx write its pages, and checks them.

A warning of Sphinx, a link that leads nowhere, a request to the network and a picture without alternative text are
errors. Nothing is executed and nothing is downloaded.
"""

import argparse
import importlib.util
import re
import shutil
import sys
import time
from pathlib import Path

from helpers.paths import BUILD, DOCS
from kernel_xray.machine.progress import Progress


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers book", description="Write the course as a book.")
    parser.add_argument("--build", type=Path, default=BUILD / "book", help="where the pages go (default: %(default)s)")
    parser.add_argument("--repository", metavar="OWNER/NAME", help="of the course, on GitHub: pages link to it")
    options = parser.parse_args(arguments)
    if options.repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", options.repository):
        print(f"book: {options.repository!r} is not OWNER/NAME, such as octocat/kernel-ladder", file=sys.stderr)
        return 2
    if importlib.util.find_spec("sphinx") is None or importlib.util.find_spec("myst_nb") is None:
        print("book: Sphinx is not installed; `make book` installs what the book needs", file=sys.stderr)
        return 1
    start = time.monotonic()
    status = build(options.build, options.repository)
    if status:
        print("book: Sphinx found the problems above", file=sys.stderr)
        return status

    from helpers.pages.book.audit import findings, pages_of

    found = findings(options.build)
    for problem in found:
        print(f"book: {problem}", file=sys.stderr)
    sizes = {path.stat().st_size: path for path in pages_of(options.build)}
    largest = sizes[max(sizes)].relative_to(options.build)
    taken = f"{len(sizes)} pages in {time.monotonic() - start:.0f} s, the largest {max(sizes) / 1e6:.2f} MB ({largest})"
    print(f"book: {taken}; {len(found)} problems; open {options.build / 'index.html'}")
    return 1 if found else 0


def build(pages: Path, repository: str | None = None) -> int:
    """Writes the book into `pages`, its sources and Sphinx's own files beside it; returns Sphinx's exit status."""
    from sphinx.cmd.build import main as sphinx

    from helpers.pages.book.assemble import assemble

    if (pages / "searchindex.js").exists():  # a book: none of its pages may outlive its source
        shutil.rmtree(pages)
    sources = pages.with_name(f"{pages.name}_sources")
    with Progress("book: collecting lessons, kernels and tables"):
        count = len(assemble(sources))
    with Progress(f"book: writing {count} pages, which takes minutes"):
        theme = (
            {"repository_url": f"https://github.com/{repository}", "use_repository_button": True} if repository else {}
        )
        return sphinx(
            ["-b", "html", "-q", "-W", "--keep-going", "-E", "-j", "2", "-c", str(DOCS)]
            + [f"-Dhtml_theme_options.{name}={value}" for name, value in theme.items()]
            + ["-d", str(pages.with_name(f"{pages.name}_doctrees")), str(sources), str(pages)]
        )
