"""Runs the notebooks of the course and writes them as pages: `python -m helpers course` (`make course`).

Each notebook is executed as a copy, in the folder where it lies, by the kernel of this environment. The executed copy
and its page go to build/course/, with an index.html that links to all of them; a notebook that fails is written too,
up to and with its error. `--in-place` writes the outputs back into the notebook, in canonical form: that is how the
outputs of a run on a GPU come to be committed. `--workers N` runs N notebooks at a time, for those who want the pages
soon: what the notebooks measure is then disturbed.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from tqdm import tqdm

from helpers.machine.paths import ROOT
from helpers.notebooks import canonical

NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "build" / "course"
CELL_TIMEOUT = 600  # seconds; a first compilation by nvcc takes minutes at most
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Row:
    """How the run of one notebook ended."""

    name: str
    seconds: float
    target: str
    result: str  # "ok", or "failed: " and the reason on one line

    @property
    def ok(self) -> bool:
        return self.result == "ok"


def title_of(notebook) -> str:
    """The first heading of a notebook, or an empty string."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = re.search(r"^#\s+(.+)$", cell.source, re.MULTILINE)
            if found:
                return found.group(1).strip()
    return ""


def reason(error: Exception) -> str:
    """One line for a table: the last line of what the notebook raised."""
    if isinstance(error, CellTimeoutError):
        return f"a cell ran for more than {CELL_TIMEOUT} s"
    if isinstance(error, DeadKernelError):
        return "the notebook's process died"
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {ANSI.sub('', error.evalue).strip().splitlines()[0] if error.evalue.strip() else ''}"
    return f"{type(error).__name__}: {error}"


async def execute(notebook, folder: Path, on_cell: Callable[[], None] = lambda: None) -> str:
    """Runs all cells of `notebook`, which receives the outputs, with `folder` as the working directory.

    Returns "ok", or "failed: " and the reason. `on_cell` is called after each cell, code or not.
    """
    # The environment's kernel, not one of the same name that the user has installed for another Python.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        on_cell_complete=lambda cell, cell_index: on_cell(),
    )
    for cell in notebook.cells:  # what a failed run does not reach shall not look as if it had run
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    # What C code prints reaches the notebook; ipykernel repeats it on its own stdout, which would break the bar.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        await client.async_execute(**quiet)
    except (CellExecutionError, CellTimeoutError, DeadKernelError, RuntimeError) as error:
        return f"failed: {reason(error)}"
    return "ok"


def to_html(notebook, name: str) -> str:
    """The page for an executed notebook; links to other notebooks lead to their pages."""
    page, _ = HTMLExporter(embed_images=True).from_notebook_node(notebook, {"metadata": {"name": name}})
    return re.sub(r'href="([\w.-]+)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', page)


def index_page(rows: list[tuple[Row, str]]) -> str:
    """index.html for pairs (row, title)."""
    lines = "\n".join(
        f'<tr><td><a href="{row.name}.html">{html.escape(row.name)}</a></td><td>{html.escape(title)}</td>'
        f"<td>{row.seconds:.1f} s</td><td>{html.escape(row.target)}</td><td>{html.escape(row.result)}</td></tr>"
        for row, title in rows
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Kernel Ladder</title>\n'
        "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:left}</style></head>\n"
        "<body><h1>Kernel Ladder</h1>\n<table><tr><th>notebook</th><th>title</th><th>time</th><th>target</th>"
        f"<th>result</th></tr>\n{lines}\n</table></body></html>\n"
    )


def run_course(
    notebooks: list[Path],
    build: Path,
    target: str,
    in_place: bool = False,
    report: Callable[[Row], None] = print,
    workers: int = 1,
) -> list[Row]:
    """Executes each notebook, writes copy, page and index into `build`, and calls `report` after each one.

    in_place: also write the notebook itself, in canonical form, if it ran without an error.
    workers: how many run at a time. An interrupt (Ctrl-C) ends them all, and is passed on.
    """
    build.mkdir(parents=True, exist_ok=True)
    loaded = [(path, nbformat.read(path, as_version=4)) for path in notebooks]
    with tqdm(total=sum(len(nb.cells) for _, nb in loaded), unit="cell", dynamic_ncols=True, leave=False) as bar:

        async def run(path: Path, notebook) -> tuple[Row, str]:
            async with free:
                bar.set_description(path.stem)
                start, done = time.monotonic(), 0

                def on_cell() -> None:
                    nonlocal done
                    done += 1
                    bar.update()

                result = await execute(notebook, path.parent, on_cell)
                bar.update(len(notebook.cells) - done)  # the cells that a failed notebook did not reach
                row = Row(path.stem, time.monotonic() - start, target, result)
                text = canonical.fixed(nbformat.writes(notebook))
                (build / path.name).write_text(text, encoding="utf-8")
                (build / f"{path.stem}.html").write_text(to_html(notebook, path.stem), encoding="utf-8")
                if in_place and row.ok:
                    path.write_text(text, encoding="utf-8")
                bar.clear()
                report(row)
                return row, title_of(notebook)

        async def run_all() -> list[tuple[Row, str]]:
            return await asyncio.gather(*(run(path, notebook) for path, notebook in loaded))

        free = asyncio.Semaphore(workers)
        rows = _run_apart(run_all())
    (build / "index.html").write_text(index_page(rows), encoding="utf-8")
    return [row for row, _ in rows]


def _run_apart(work: Coroutine):
    """What `work` returns. It runs in a thread: in the main one, nbclient takes an interrupt for a dead kernel."""
    running = []

    async def cancellable():
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(asyncio.run, cancellable())
        try:
            return ended.result()
        except KeyboardInterrupt:
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)  # ends the notebooks' processes on the way
            raise


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers course", description="Run the notebooks, write pages.")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="notebooks whose name matches, such as '0[01]*'")
    parser.add_argument("--in-place", action="store_true", help="write the outputs into notebooks/, in canonical form")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="notebooks at a time (default: 1)")
    parser.add_argument("--build", type=Path, default=BUILD, help="where the pages go (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers must be 1 or more, got {options.workers}")
    notebooks = sorted(NOTEBOOKS.glob(f"{options.only.removesuffix('.ipynb')}.ipynb"))
    if not notebooks:
        print(f"course: no notebook in {NOTEBOOKS} matches {options.only!r}", file=sys.stderr)
        return 1

    from helpers.machine.toolchain import target

    width = max(len(path.stem) for path in notebooks)
    print(f"{'notebook':{width}}  {'time':>8}  {'target':9}  result")

    def report(row: Row) -> None:
        print(f"{row.name:{width}}  {row.seconds:6.1f} s  {row.target:9}  {row.result}", flush=True)

    try:
        rows = run_course(notebooks, options.build, target, options.in_place, report, options.workers)
    except KeyboardInterrupt:
        print("course: stopped; the notebooks that had ended have their pages", file=sys.stderr)
        return 130
    failed = sum(not row.ok for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} notebooks ran without an error; pages: {options.build / 'index.html'}")
    return 1 if failed else 0
