"""What JupyterLab shows of a lesson with the course's extension, in a real browser: colours, texts, line breaks."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from unittest import mock

import pytest

from helpers.pages.notebooks import copies
from helpers.pages.notebooks.lab import EXTENSIONS
from helpers.practice import cells, registry

chromium = pytest.importorskip("chromium", reason="needs websocket-client, which comes with JupyterLab")
NEEDS_CHROMIUM = pytest.mark.skipif(not chromium.PROGRAM, reason="needs Chromium or Chrome")
pytestmark = pytest.mark.timeout(600)
SCRIPT = EXTENSIONS / "kernel-ladder" / "static" / "remoteEntry.js"
EXERCISE = "[...document.querySelectorAll('.jp-CodeCell')].find(cell => cell.textContent.includes('%%exercise {}'))"


@pytest.mark.parametrize("exercise", registry.exercises(), ids=lambda exercise: exercise.name)
def test_an_exercise_is_in_the_language_of_its_file(exercise):
    """By the patterns with which the extension decides; each is one that Python understands too."""
    literals = dict(re.findall(r"const (EXERCISE|PYTHON) = /(.+)/m?;", SCRIPT.read_text(encoding="utf-8")))
    cell = cells.cell_source(exercise.name)
    assert re.match(literals["EXERCISE"], cell)
    assert not re.match(literals["EXERCISE"], f"print(1)\n{cell}")
    assert bool(re.search(literals["PYTHON"], cell, re.MULTILINE)) == (exercise.starter.suffix == ".py")


def test_the_package_names_its_files():
    package = json.loads((SCRIPT.parent.parent / "package.json").read_text(encoding="utf-8"))
    assert (SCRIPT.parent.parent / package["jupyterlab"]["_build"]["load"]) == SCRIPT
    assert f'const NAME = "{package["name"]}"' in SCRIPT.read_text(encoding="utf-8")
    assert package["name"] == SCRIPT.parent.parent.name and (SCRIPT.parent / "lessons.css").exists()


# -- In a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab as `make lab` starts it, but with settings and copies in a folder of its own."""
    home = tmp_path_factory.mktemp("home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_DATA_DIR": str(home / "data"), "HOME": str(home)}
    with mock.patch.dict(os.environ, own):
        copies.refresh(own=home / "my_lessons")
        options = [f"--port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token="]
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", f"--LabApp.extra_labextensions_path={EXTENSIONS}", *options],
            cwd=home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"{address}/api", timeout=5).close()
            break
        except OSError:
            assert time.monotonic() < deadline and process.poll() is None, "JupyterLab did not start"
            time.sleep(0.5)
    yield address
    process.terminate()
    process.wait(timeout=30)


@pytest.fixture(scope="module")
def page(lab, tmp_path_factory):
    """Lesson 01, opened for the first time."""
    with chromium.Page(tmp_path_factory.mktemp("browser")) as opened:
        opened.call("Emulation.setDeviceMetricsOverride", width=1300, height=1600, deviceScaleFactor=1, mobile=False)
        opened.call("Page.navigate", url=f"{lab}/lab/tree/my_lessons/01_vector_add.ipynb?reset")
        opened.wait(f"!!{EXERCISE.format('saxpy')}", seconds=120)
        opened.run(f"{EXERCISE.format('saxpy')}.scrollIntoView(), 0")
        yield opened


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_an_exercise_is_coloured_as_cpp_before_it_has_run(page):
    cell = EXERCISE.format("saxpy")
    page.wait(f"{cell}.querySelectorAll('.cm-line span').length > 5", seconds=60)
    comment = "[...{}.querySelectorAll('.cm-line span')].find(span => span.textContent.startsWith('// x, y, out'))"
    page.wait(f"!!{comment.format(cell)}", seconds=60)
    assert page.run(f"getComputedStyle({comment.format(cell)}).fontStyle") == "italic"


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_pictures_have_texts_and_lines_break_between_words(page):
    pictures = page.run("[...document.querySelectorAll('.jp-OutputArea img')].map(image => image.alt)")
    assert len(pictures) > 3 and all(pictures) and pictures[0].startswith("thread_map")
    styles = "[...document.querySelectorAll('.jp-OutputArea .jp-RenderedText pre')].map(pre => getComputedStyle(pre))"
    assert set(page.run(f"{styles}.map(style => style.wordBreak + ' ' + style.overflowX)")) == {"normal auto"}


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_kernels_are_coloured_and_nothing_is_asked_of_the_network(page, lab):
    keyword = page.run("getComputedStyle(document.querySelector('.ladder-source .kt')).color")
    assert keyword == "rgb(17, 99, 41)"
    assert page.run("document.querySelectorAll('.jp-toast-message, .Toastify__toast').length") == 0
    assert [address for address in page.requests if not address.startswith((lab, "blob:"))] == []
    assert page.errors == []
