"""The figures that a reader moves: their answers, by keyboard too; in a notebook's frame, and without scripts."""

import re

import pytest

from helpers.pages.figures.climb import climb, where_bytes_go
from helpers.pages.figures.loads import PRESETS, load_cost

pytest.importorskip("playwright.sync_api", reason="needs Playwright, of the extra [browser]")
from playwright.sync_api import expect

FIGURES = {"load_cost": load_cost, "where_bytes_go": where_bytes_go}
# What is around a figure in the book and in JupyterLab, with a dark theme in a browser that prefers a light one.
HOSTS = {
    "book": '<html data-theme="dark"><body style="--pst-color-background: #121212; --pst-color-text-base: #ced6dd">',
    "lab": '<html><body data-jp-theme-light="false" style="--jp-layout-color0: #111; --jp-content-font-color1: #fff">',
}


@pytest.fixture
def hosted(shown, tmp_path):
    """Opens a page with this HTML."""

    def opened(html):
        (tmp_path / "page.html").write_text("<!DOCTYPE html>" + html, encoding="utf-8")
        return shown((tmp_path / "page.html").as_uri())

    return opened


@pytest.fixture
def show(shown, tmp_path):
    """Opens a figure from a file."""

    def opened(name):
        FIGURES[name]().save(tmp_path / "figure.html")
        page = shown((tmp_path / "figure.html").as_uri())
        page.wait_for_function(f"window.{'loads' if name == 'load_cost' else 'climb'}")
        return page

    return opened


def text(page, element):
    return page.locator(f"#{element}").text_content()


def test_the_answer_comes_after_a_prediction(show):
    page = show("load_cost")
    drawn, guess = page.locator("#picture line"), page.locator("#guess")
    assert text(page, "said") == text(page, "table") == ""
    assert drawn.count() == 0
    guess.press_sequentially("5")
    guess.press("Enter")
    assert text(page, "said").startswith("You said 5; it is 4 sectors. 128 bytes move, 128 of them are used.")
    expect(page.locator("#said")).to_be_focused()
    assert drawn.count() == page.locator("#table tr").count() == 32
    page.locator("#stride").press("ArrowRight")
    assert text(page, "expression") == "x[2 * i]" and text(page, "said") == ""
    page.locator("#predict").click()
    assert text(page, "said").startswith("8 sectors. 256 bytes move, 128 of them are used. 4 would do: efficiency 50%.")
    page.locator("#space").press("ArrowDown")
    assert text(page, "said").startswith("2 wavefronts. Bank 0 has to serve 2 words, one at a time.")


def test_presets_are_drawn_with_their_cost(show):
    page = show("load_cost")
    page.locator("#predict").click()
    for number, preset in enumerate(PRESETS):
        page.locator("#presets button").nth(number).click()
        cost, ideal = preset.access.cost()
        assert re.match(rf"{cost} (sector|wavefront)s?\.", text(page, "said")), preset.name
        assert ("would do" in text(page, "said")) == (cost > ideal)
        boxes = page.locator("#picture rect").evaluate_all(
            "all => all.map(box => [+box.getAttribute('y'), box.getAttribute('fill')])"
        )
        below = [(y, fill) for y, fill in boxes if y >= 92]
        if preset.access.space == "shared":
            assert len({y for y, _ in below}) == cost, preset.name
        else:
            assert sum(fill == "var(--pale)" for _, fill in below) == cost, preset.name
        assert page.locator("#presets button[aria-pressed=true]").all_text_contents() == [preset.name]


def test_the_slider_climbs_the_ladder(show):
    page, rungs = show("where_bytes_go"), climb()["rungs"]
    slider, dot, places = page.locator("#rung"), page.locator("#roof .now"), []
    for number, rung in enumerate(rungs):
        said = text(page, "said")
        assert said.startswith(rung["file"].split("/")[1][:2])
        assert rung["adds"] in said and f"{round(100 * rung['of_cublas'])}% of cuBLAS" in said
        shown = [float(cell) for cell in page.locator("#counters td:nth-child(2)").all_text_contents()]
        assert shown == pytest.approx([rung[key] for key in ("from_global", "least", "from_shared", "registers")], 5e-3)
        places.append([float(dot.get_attribute(name)) for name in ("cx", "cy")])
        assert page.locator("#warp rect").count() > 1
        assert slider.get_attribute("aria-valuetext").endswith(f"{number + 1} of {len(rungs)}")
        slider.press("ArrowRight")
    assert [x for x, _ in places[:8]] == sorted(x for x, _ in places[:8])  # more FLOPs per byte, to the right
    assert places[0][1] > places[-1][1]  # and faster, upwards
    page.locator("#down").click()
    assert text(page, "said").startswith(rungs[-2]["file"].split("/")[1][:2])


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_fills_its_frame_in_the_theme_around_it(hosted, name, host):
    page = hosted(HOSTS[host] + FIGURES[name]()._repr_html_())
    page.wait_for_function("document.querySelector('.ladder-still').hidden")
    frame = "document.querySelector('iframe')"
    assert page.evaluate(f"getComputedStyle({frame}.contentDocument.documentElement).colorScheme") == "dark"
    wanted = {"book": "rgb(18, 18, 18)", "lab": "rgb(17, 17, 17)"}[host]
    assert page.evaluate(f"getComputedStyle({frame}.contentDocument.body).backgroundColor") == wanted
    page.wait_for_function(f"{frame}.contentDocument.documentElement.scrollHeight <= {frame}.clientHeight + 1")
    assert page.evaluate(f"{frame}.clientHeight - {frame}.contentDocument.querySelector('main').offsetHeight") < 60


@pytest.mark.parametrize("name", FIGURES)
def test_without_scripts_there_is_a_picture(hosted, name):
    page = hosted(re.sub(r"<iframe.*?</iframe>", "", FIGURES[name]()._repr_html_(), flags=re.DOTALL))
    expect(page.locator("img")).to_be_visible()
    assert page.locator("img").evaluate("it => it.naturalWidth") > 1000
