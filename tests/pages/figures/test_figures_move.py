"""The figures in a real browser: they move, by keyboard too, can be read in both themes, and fill a notebook's frame.

Chromium and axe-core are those of tests/pages/book/test_book_pages.py.
"""

import json
import re

import pytest

from helpers.pages.figures.climb import climb, where_bytes_go
from helpers.pages.figures.loads import PRESETS, load_cost
from helpers.paths import BUILD

chromium = pytest.importorskip("chromium", reason="needs websocket-client, which comes with JupyterLab")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not chromium.PROGRAM, reason="needs Chromium or Chrome")]
AXE = BUILD / "axe" / "node_modules" / "axe-core" / "axe.min.js"
FIGURES = {"load_cost": load_cost, "where_bytes_go": where_bytes_go}
# What is around a figure in the book and in JupyterLab, with a dark theme in a browser that prefers a light one.
HOSTS = {
    "book": '<html data-theme="dark"><body style="--pst-color-background: #121212; --pst-color-text-base: #ced6dd">',
    "lab": '<html><body data-jp-theme-light="false" style="--jp-layout-color0: #111; --jp-content-font-color1: #fff">',
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.Page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
        assert opened.errors == []


@pytest.fixture
def show(page, tmp_path):
    """Opens a figure from a file and returns the page: show("load_cost", width=390)."""

    def opened(name, **how):
        FIGURES[name]().save(tmp_path / "figure.html")
        page.open(tmp_path / "figure.html", **how)
        page.wait(f"window.{'loads' if name == 'load_cost' else 'climb'}")
        return page

    return opened


def press(page, key, code):
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)


def text(page, element):
    return page.run(f"document.getElementById('{element}').textContent")


def test_the_answer_comes_after_a_prediction(show):
    page = show("load_cost")
    assert text(page, "said") == "" and text(page, "table") == ""
    assert page.run("document.querySelectorAll('#picture line').length") == 0
    page.run("document.getElementById('guess').focus()")
    page.call("Input.insertText", text="5")
    press(page, "Enter", 13)
    assert text(page, "said").startswith("You said 5; it is 4 sectors. 128 bytes move, 128 of them are used.")
    assert page.run("document.activeElement.id") == "said"
    assert page.run("document.querySelectorAll('#picture line').length") == 32
    assert page.run("document.querySelectorAll('#table tr').length") == 32
    page.run("document.getElementById('stride').focus()")
    press(page, "ArrowRight", 39)
    assert text(page, "expression") == "x[2 * i]" and text(page, "said") == ""
    page.run("document.getElementById('predict').click()")
    assert text(page, "said").startswith("8 sectors. 256 bytes move, 128 of them are used. 4 would do: efficiency 50%.")
    page.run("document.getElementById('space').focus()")
    press(page, "ArrowDown", 40)
    assert text(page, "said").startswith("2 wavefronts. Bank 0 has to serve 2 words, one at a time.")


def test_presets_are_drawn_with_their_cost(show):
    page = show("load_cost")
    page.run("document.getElementById('predict').click()")
    for number, preset in enumerate(PRESETS):
        page.run(f"document.querySelectorAll('#presets button')[{number}].click()")
        cost, ideal = preset.access.cost()
        assert re.match(rf"{cost} (sector|wavefront)s?\.", text(page, "said")), preset.name
        assert ("would do" in text(page, "said")) == (cost > ideal)
        below = "[...document.querySelectorAll('#picture rect')].filter((box) => +box.getAttribute('y') >= 92)"
        if preset.access.space == "shared":
            rows = page.run(f"new Set({below}.map((box) => box.getAttribute('y'))).size")
        else:
            rows = page.run(f"{below}.filter((box) => box.getAttribute('fill') === 'var(--pale)').length")
        assert rows == cost, preset.name
        pressed = "[...document.querySelectorAll('#presets button[aria-pressed=true]')].map((each) => each.textContent)"
        assert page.run(pressed) == [preset.name]


def test_the_slider_climbs_the_ladder(show):
    page, data = show("where_bytes_go"), climb()
    page.run("document.getElementById('rung').focus()")
    places = []
    for number, rung in enumerate(data["rungs"]):
        said = text(page, "said")
        assert said.startswith(rung["file"].split("/")[1][:2])
        assert rung["adds"] in said and f"{round(100 * rung['of_cublas'])}% of cuBLAS" in said
        shown = page.run("[...document.querySelectorAll('#counters td:nth-child(2)')].map((cell) => +cell.textContent)")
        assert shown == pytest.approx([rung[key] for key in ("from_global", "least", "from_shared", "registers")], 5e-3)
        dot = "document.querySelector('#roof .now').getAttribute"
        places.append((page.run(f"+{dot}('cx')"), page.run(f"+{dot}('cy')")))
        assert page.run("document.querySelectorAll('#warp rect').length") > 1
        named = page.run("document.getElementById('rung').getAttribute('aria-valuetext')")
        assert named.endswith(f"{number + 1} of 12")
        press(page, "ArrowRight", 39)
    assert [x for x, _ in places[:8]] == sorted(x for x, _ in places[:8])  # more FLOPs per byte, to the right
    assert places[0][1] > places[-1][1]  # and faster, upwards
    page.run("document.getElementById('down').click()")
    assert text(page, "said").startswith("11 wgmma")


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_fills_its_frame_in_the_theme_around_it(page, tmp_path, name, host):
    path = tmp_path / "host.html"
    path.write_text("<!DOCTYPE html>" + HOSTS[host] + FIGURES[name]()._repr_html_(), encoding="utf-8")
    page.open(path, theme="light")
    page.wait("document.querySelector('.ladder-still').hidden")
    frame = "document.querySelector('iframe')"
    assert page.run(f"getComputedStyle({frame}.contentDocument.documentElement).colorScheme") == "dark"
    wanted = {"book": "rgb(18, 18, 18)", "lab": "rgb(17, 17, 17)"}[host]
    assert page.run(f"getComputedStyle({frame}.contentDocument.body).backgroundColor") == wanted
    page.wait(f"{frame}.contentDocument.documentElement.scrollHeight <= {frame}.clientHeight + 1")
    assert page.run(f"{frame}.clientHeight - {frame}.contentDocument.querySelector('main').offsetHeight") < 60


@pytest.mark.parametrize("name", FIGURES)
def test_without_scripts_there_is_a_picture(page, tmp_path, name):
    path = tmp_path / "host.html"
    html = FIGURES[name]()._repr_html_()
    path.write_text("<!DOCTYPE html>" + re.sub(r"<iframe.*?</iframe>", "", html, flags=re.DOTALL), encoding="utf-8")
    page.open(path)
    assert page.run("document.querySelector('img').naturalWidth") > 1000
    assert page.run("getComputedStyle(document.querySelector('img')).display") != "none"


@pytest.mark.skipif(not AXE.exists(), reason="needs npm install --prefix build/axe axe-core@4.14.1")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_hinders_nobody_and_stays_within_the_window(show, name, width, theme):
    page = show(name, width=width, theme=theme)
    page.run("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
    page.run(AXE.read_text(encoding="utf-8") + "; 0")
    states = {
        "load_cost": [
            "0",
            "document.getElementById('show').click()",
            "loads.choose(loads.presets[6]); loads.answer(3)",
        ],
        "where_bytes_go": ["0", "climb.go(5)", "climb.go(11)"],
    }
    for state in states[name]:
        page.run(state)
        assert page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        rules = page.run("axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)")
        found = [(rule["id"], [node["html"][:100] for node in rule["nodes"][:3]]) for rule in rules]
        assert found == [], json.dumps(found)
    assert page.requests == [page.run("location.href")]
