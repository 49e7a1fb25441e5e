"""Interactive figures, each moved by hand and by keyboard, in both themes, on a desk and on a phone."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import helpers
from helpers.pages.figures.climb import where_bytes_go
from helpers.pages.figures.loads import load_cost
from helpers.paths import BUILD, KERNELS
from kernel_xray.report import run

pytest.importorskip("playwright.sync_api", reason="needs Playwright, of the extra [browser]")
from playwright.sync_api import expect

SCRUB = """async (count) => {
  const times = [], frames = [];
  for (let i = 0, last = 0; i < count; i++) {
    const start = performance.now();
    film.go(i);
    times.push(performance.now() - start);
    const now = await new Promise(requestAnimationFrame);
    if (last) frames.push(now - last);
    last = now;
  }
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  return { steps: film.length, "ms of a redraw's script": median(times), "ms from frame to frame": median(frames) };
}"""


def save_film(folder):
    """Matrices that are read along columns: with bank conflicts and barriers."""
    ops = helpers.load("matmul_tiled_traced", [KERNELS / "matmul" / "03_tiled.cu"], is_python_module=False, traced=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "MOST_FRAMES", 250_000)
        report = run.xray(ops.matmul_tiled_unpadded, torch.randn(2800, 64).t(), torch.randn(64, 2800).t(), film=True)
    report.film(warps=2).save(folder / "film.html")


@dataclass(frozen=True)
class Figure:
    """A page of one file: `save` writes NAME.html into a folder. Each key at `moved` changes what `told` says."""

    save: Callable[[Path], None]
    moved: str
    keys: tuple[str, ...]
    told: str
    states: tuple[str, ...]  # scripts that bring it into others of its states
    clicked: str = ""  # before all keys


FIGURES = {
    "film": Figure(
        save_film, "#time", ("ArrowRight", "PageDown", "End", "Home", "PageDown"), "#clock", ("film.go(9)",)
    ),
    "load_cost": Figure(
        lambda folder: load_cost().save(folder / "load_cost.html"),
        *("#stride", ("ArrowRight", "End", "Home", "ArrowRight"), "#said"),
        ("0", "document.getElementById('show').click()", "loads.choose(loads.presets[6]); loads.answer(3)"),
        clicked="#predict",  # shows each answer at once
    ),
    "where_bytes_go": Figure(
        lambda folder: where_bytes_go().save(folder / "where_bytes_go.html"),
        *("#rung", ("ArrowRight", "End", "Home", "PageUp"), "#said", ("0", "climb.go(5)", "climb.go(11)")),
    ),
}


@pytest.fixture(scope="module")
def address_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")

    def address(name):
        if not (folder / f"{name}.html").exists():
            FIGURES[name].save(folder)
        return (folder / f"{name}.html").as_uri()

    return address


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_moves_and_fits_its_window(address_of, shown, shot, name, width, theme):
    page, how = shown(address_of(name), width=width, theme=theme), FIGURES[name]
    told = page.locator(how.told)
    if how.clicked:
        page.locator(how.clicked).click()
    for key in how.keys:
        before = told.inner_text()
        page.locator(how.moved).press(key)
        expect(told).not_to_have_text(before)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    shot(page, f"figure_{name}_{width}_{theme}")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_hinders_nobody(address_of, shown, axe, name, width, theme):
    page, how = shown(address_of(name), width=width, theme=theme), FIGURES[name]
    page.evaluate("document.querySelectorAll('details').forEach((folded) => { folded.open = true; })")
    for state in how.states:
        page.evaluate(f"{state}; 0")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert axe(page, impacts=("serious", "critical") if name == "film" else ()) == []


# -- The film ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def film(address_of, shown):
    page = shown(address_of("film"))
    page.wait_for_function("window.film")
    return page


def test_the_films_controls(film, shot):
    clock, said, steps = film.locator("#clock"), film.locator(".said"), film.evaluate("film.length")
    film.get_by_role("button", name="step", exact=True).click()
    expect(clock).to_have_text(f"step 2 of {steps}")
    box = film.locator("canvas").bounding_box()
    film.mouse.move(box["x"] + 5, box["y"] + 20)
    film.mouse.down()
    film.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=5)
    film.mouse.up()
    expect(clock).to_have_text(f"step {steps // 2 + 1} of {steps}")
    cursor = film.locator(".cursor").bounding_box()
    assert abs(cursor["x"] - box["x"] - box["width"] / 2) < 4
    film.locator("svg [data-lane='3']").first.hover()
    expect(film.locator("#tip")).to_contain_text("lane 3, thread (3, 0, 0)")
    shot(film, "figure_film_hovered")
    before = said.inner_text()
    film.get_by_role("button", name="play").click()
    expect(film.get_by_role("button", name="pause")).to_be_visible()
    expect(said).not_to_have_text(before)
    film.get_by_role("button", name="pause").click()
    film.get_by_label("warp of").select_option(index=1)
    expect(clock).to_have_text(re.compile("step 1 of"))


def test_all_steps_are_scrubbed(film):
    """How long that takes is written beside the screenshots."""
    steps = film.evaluate("film.length")
    assert steps > 4_000
    measured = film.evaluate(SCRUB, steps)
    expect(film.locator("#clock")).to_have_text(f"step {steps} of {steps}")
    BUILD.joinpath("browser").mkdir(parents=True, exist_ok=True)
    (BUILD / "browser" / "film_speed.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
