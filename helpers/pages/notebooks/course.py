"""Runs the notebooks of the course and writes them as pages: `python -m helpers course` (`make course`).

Each notebook is executed as a copy, in its own folder, by the kernel of this environment. The executed copy and its
page go to build/course/, with an index.html that links to all pages; a notebook that fails is written too, with its
error. `--in-place` writes the outputs back into the notebook, in canonical form: so a run on a GPU can be committed.
`--workers N` runs N notebooks at a time: the pages are ready sooner, but the notebooks' measurements are disturbed.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from helpers.pages.notebooks import canonical
from helpers.pages.notebooks.pages import Row, index_page, title_of, to_html
from helpers.paths import BUILD, NOTEBOOKS

PAGES = BUILD / "course"
CELL_TIMEOUT = 600  # seconds; a first compilation by nvcc takes minutes at most
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def reason(error: Exception) -> str:
    """One line for the table: the first line of the notebook's error."""
    if isinstance(error, CellTimeoutError):
        return f"a cell ran for more than {CELL_TIMEOUT} s"
    if isinstance(error, DeadKernelError):
        return "the notebook's process died"
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {ANSI.sub('', error.evalue).strip().splitlines()[0] if error.evalue.strip() else ''}"
    return f"{type(error).__name__}: {error}"


async def execute(notebook: NotebookNode, folder: Path, on_cell: Callable[[], None] = lambda: None) -> str:
    """Runs all cells of `notebook` in the working directory `folder` and stores their outputs in it.

    Returns "ok", or "failed: " and the reason. `on_cell` is called after each cell, code or not.
    """
    # Use the environment's kernel, not one of the same name that the user installed for another Python.
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        on_cell_complete=lambda cell, cell_index: on_cell(),
    )
    for cell in notebook.cells:  # a cell that a failed run never reaches must not look as if it had run
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    # The notebook receives the output of C code; ipykernel repeats it on its own stdout, which would break the bar.
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        await client.async_execute(**quiet)
    except (CellExecutionError, CellTimeoutError, DeadKernelError, RuntimeError) as error:
        return f"failed: {reason(error)}"
    return "ok"


def run_course(
    notebooks: list[Path],
    build: Path,
    target: str,
    *,
    in_place: bool = False,
    report: Callable[[Row], None] = print,
    workers: int = 1,
) -> list[Row]:
    """Executes the notebooks, writes copies, pages and the index into `build`, and calls `report` after each notebook.

    in_place: also write the notebook itself, in canonical form, if it ran without an error.
    workers: how many run at a time. An interrupt (Ctrl-C) ends them all and propagates.
    """
    build.mkdir(parents=True, exist_ok=True)
    loaded = [(path, nbformat.read(path, as_version=4)) for path in notebooks]
    with tqdm(total=sum(len(nb.cells) for _, nb in loaded), unit="cell", dynamic_ncols=True, leave=False) as bar:

        async def run(path: Path, notebook: NotebookNode) -> tuple[Row, str]:
            async with free:
                bar.set_description(path.stem)
                start, done = time.monotonic(), 0

                def on_cell() -> None:
                    nonlocal done
                    done += 1
                    bar.update()

                result = await execute(notebook, path.parent, on_cell)
                bar.update(len(notebook.cells) - done)  # the cells that a failed notebook never reached
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


def _run_apart(work: Coroutine) -> Any:
    """Runs `work` in a thread: in the main thread, nbclient mistakes an interrupt for a dead kernel."""
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
                loop.call_soon_threadsafe(task.cancel)  # this also ends the notebooks' processes
            raise


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m helpers course", description="Run the notebooks, write pages.")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="notebooks whose name matches, such as '0[01]*'")
    parser.add_argument("--in-place", action="store_true", help="write the outputs into notebooks/, in canonical form")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="notebooks at a time (default: 1)")
    parser.add_argument("--build", type=Path, default=PAGES, help="where the pages go (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers must be 1 or more, got {options.workers}")
    notebooks = sorted(NOTEBOOKS.glob(f"{options.only.removesuffix('.ipynb')}.ipynb"))
    if not notebooks:
        print(f"course: no notebook in {NOTEBOOKS} matches {options.only!r}", file=sys.stderr)
        return 1

    from kernel_xray.machine.toolchain import target

    width = max(len(path.stem) for path in notebooks)
    print(f"{'notebook':{width}}  {'time':>8}  {'target':9}  result")

    def report(row: Row) -> None:
        print(f"{row.name:{width}}  {row.seconds:6.1f} s  {row.target:9}  {row.result}", flush=True)

    try:
        rows = run_course(
            notebooks, options.build, target, in_place=options.in_place, report=report, workers=options.workers
        )
    except KeyboardInterrupt:
        print("course: stopped; the finished notebooks have their pages", file=sys.stderr)
        return 130
    failed = sum(not row.ok for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} notebooks ran without an error; pages: {options.build / 'index.html'}")
    return 1 if failed else 0
