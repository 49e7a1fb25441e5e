"""A real browser for tests of what a reader sees: Playwright drives a Chromium of this machine, without a window.

Screenshots are kept under build/browser/, for a person to look at. axe-core, which finds what hinders readers, comes
from npm: `npm install --prefix build/axe axe-core@4.14.1`.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.paths import BUILD, ROOT
from kernel_xray.machine import guard

TOKEN = "ladder"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
SHOTS = BUILD / "browser"
AXE = BUILD / "axe" / "node_modules" / "axe-core" / "axe.min.js"
HERE = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "http://localhost:")  # not the network
LEFT_OUT = {".git", ".venv", "build", "packages"}  # of the course


def pytest_collection_modifyitems(items):
    """All of these tests are slow, and need a browser with what drives it."""
    skip = [] if PROGRAM else [pytest.mark.skip(reason="needs Chromium or Chrome")]
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for mark in (pytest.mark.slow, *skip):
                item.add_marker(mark)


@pytest.fixture(scope="session")
def browser():
    how = 'needs Playwright: make setup EXTRAS="--extra browser --extra book"'
    driver = pytest.importorskip("playwright.sync_api", reason=how)
    with driver.sync_playwright() as playwright:
        root = os.geteuid() == 0  # Chromium refuses root its sandbox
        opened = playwright.chromium.launch(executable_path=PROGRAM, chromium_sandbox=not root)
        yield opened
        opened.close()


@pytest.fixture
def shown(browser):
    """Opens an address in a page of its own: shown(address, width=390, theme="dark").

    No script of a page may fail, except JupyterLab's own, and no page may ask the network.
    """
    contexts, errors, asked = [], [], []

    def open_page(address, *, width=1280, height=900, theme="light"):
        phone = width < 600
        size = {"width": width, "height": height}
        contexts.append(browser.new_context(viewport=size, color_scheme=theme, is_mobile=phone, has_touch=phone))
        page = contexts[-1].new_page()
        if "/lab/" not in str(address):
            page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(str(address))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    assert [address for address in asked if not address.startswith(HERE)] == []


@pytest.fixture
def axe():
    """What axe finds on a page, each with the elements: axe(page), of impacts that hinder a reader."""
    if not AXE.exists():
        pytest.skip("needs npm install --prefix build/axe axe-core@4.14.1")

    def found(page, impacts=("serious", "critical")):
        # A colour that still changes, as a button's does when the theme is set, is not the one that a reader sees.
        page.evaluate("document.getAnimations().filter(it => it instanceof CSSTransition).forEach(it => it.finish())")
        # As an expression: the page's policy admits no script that is added to it.
        page.evaluate(AXE.read_text(encoding="utf-8") + "; 0")
        rules = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
        rules = [rule for rule in rules if not impacts or rule["impact"] in impacts]
        return [f"{rule['id']}: {[node['html'][:120] for node in rule['nodes'][:4]]}" for rule in rules]

    return found


@pytest.fixture(scope="session")
def shot():
    """Keeps a picture of a page: shot(page, "lesson_01_verdict")."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return lambda page, name, **options: page.screenshot(path=SHOTS / f"{name}.png", **options)


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """A copy of the course: what a learner does to it changes no file of this one."""
    folder = tmp_path_factory.mktemp("learner") / "course"
    return shutil.copytree(ROOT, folder, ignore=lambda path, names: LEFT_OUT & set(names) if Path(path) == ROOT else ())


@pytest.fixture(scope="session")
def lab(course):
    """The address of JupyterLab as `make lab` opens it in the copy. Its theme is that of the browser."""
    made = course / "jupyter"
    themes = made / "config/lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"
    themes.parent.mkdir(parents=True)
    themes.write_text('{"adaptive-theme": true}', encoding="utf-8")
    settings = {f"JUPYTER_{name}_DIR": str(made / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    options = f"--no-browser --ServerApp.port=0 --ServerApp.port_retries=0 --IdentityProvider.token={TOKEN}"
    log = course / "lab.log"
    # Of pytest's variables, one keeps ipykernel from showing what kernels print.
    left_out = ("PYTHONPATH", "MAKEFLAGS", "PYTEST_")
    inside = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    environment = {**inside, **settings, "KERNEL_LADDER_PROGRESS": str(course / "progress.json")}
    command = ["make", "lab", f"PYTHON={sys.executable}", "VENV=none", f"ARGS={options}"]
    with log.open("w") as writing:
        to_log = {"stdout": writing, "stderr": subprocess.STDOUT}
        with guard.started(command, shutil.which("make"), cwd=course, env=environment, **to_log) as process:
            yield address_in(log, process)


def address_in(log: Path, process: subprocess.Popen, seconds: float = 540) -> str:
    """What JupyterLab's log says where it is served."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if found := [word for word in log.read_text().split() if word.startswith("http://localhost:")]:
            return found[0].replace("token=...", f"token={TOKEN}")
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")
