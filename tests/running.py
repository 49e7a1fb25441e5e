"""Programs that tests run, and what several tests read: the project's files, the data of a page."""

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.paths import INSTRUMENT, ROOT

Done = subprocess.CompletedProcess
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
OURS = {"PATH": PATH, "PYTHONPATH": f"{ROOT}{os.pathsep}{INSTRUMENT}"}


def run(*command: Any, cwd=ROOT, status=0, timeout=900, env=None, text="", **variables) -> Done:
    """Runs a command; fails unless it ends with `status`, where None is any. Returns the finished process.

    It finds this Python, and the course: `env` replaces the whole environment, `variables` are added to it. `text` is
    its standard input.
    """
    environment = {**(os.environ | OURS if env is None else env), **variables}
    options = {"capture_output": True, "text": True, "timeout": timeout, "input": text}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment, **options)
    assert status in (None, done.returncode), f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done


def python(*arguments: Any, **options) -> Done:
    return run(sys.executable, *arguments, **options)


def git(folder: Path, *arguments: Any) -> str:
    """What git prints, in a folder and with a made-up author."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return run("git", "-C", folder, *who, *arguments).stdout


def without(*prefixes: str) -> dict[str, str]:
    """This process's environment without the variables that begin so."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def tracked_files() -> dict[str, Path]:
    """Name -> path of what belongs to the project: tracked files, and new ones that are not ignored."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", status=None)
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = {name: ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    assert files
    return files


def data_of(page: str) -> Any:
    """The data in a page of a film or a figure."""
    return json.loads(gzip.decompress(base64.b64decode(re.search(r'<script id="data"[^>]*>([^<]+)<', page)[1])))


def printed_by(scripts: list[Path], program: str, given: Any, folder: Path) -> Any:
    """What a program prints as JSON after the scripts of a page; `given` is the constant `data`."""
    if (node := shutil.which("node")) is None:
        pytest.skip("needs node, which runs the page's script")
    texts = [*(path.read_text(encoding="utf-8") for path in scripts), f"const data = {json.dumps(given)};", program]
    (folder / "program.js").write_text("\n".join(texts), encoding="utf-8")
    return json.loads(run(node, folder / "program.js", timeout=60).stdout)
