"""The book as a reader uses it: search, theme, phone, hindrances; and its pages as pictures."""

import functools
import http.server
import importlib.util
import json
import threading
from pathlib import Path

import built
import pytest

from helpers.pages.book.audit import pages_of
from helpers.paths import KERNELS
from helpers.practice.verdict import HEADS, Verdict
from kernel_xray.report.facts import Facts, FaultRecord, Launch, Line
from kernel_xray.report.html import as_html

pytest.importorskip("playwright.sync_api", reason="needs Playwright, of the extra [browser]")
from playwright.sync_api import expect

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("myst_nb"), reason="needs Sphinx, of the extra [book]")
PAGES = {
    "landing_page": "index.html",
    "lesson": "notebooks/08_matmul.html",
    "kernel": "kernels/matmul/03_tiled.cu.html",
    "tables": "results/index.html",
    "reference": "reference/api.html",
    "glossary": "docs/glossary.html",
    "generated_tables": "docs/xray_vs_ncu.html",
}
PHONE, DESK = 390, 1280  # pixels
SEEN = Path(__file__).with_name("seen.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return built.book_in(tmp_path_factory.mktemp("book"), "--repository", "octocat/course")


@pytest.fixture(scope="module")
def book(folder):
    """The address of the book on a server, without which the search cannot quote the pages that it finds."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def heading(page):
    return page.get_by_role("heading", level=1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window(book, shown, shot, name, width, theme):
    page = shown(f"{book}/{PAGES[name]}", width=width, theme=theme)
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    shot(page, f"book_{name}_{width}_{theme}")


def seen(page, what):
    """The value of an expression with the functions of seen.js."""
    return page.evaluate(f"(() => {{ {SEEN} return {what}; }})()")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_hinders_nobody(book, shown, axe, name, width, theme):
    page = shown(f"{book}/{PAGES[name]}", width=width, theme=theme)
    seen(page, "unfold()")
    assert axe(page) == []


def test_a_planted_hindrance_is_found(book, shown, axe):
    page = shown(f"{book}/index.html")
    page.evaluate("document.querySelector('article p:not(:has(img))').style.color = '#ccc'")
    page.evaluate("document.querySelector('article img').removeAttribute('alt')")
    assert {finding.partition(":")[0] for finding in axe(page)} >= {"color-contrast", "image-alt"}


def facts():
    """An X-ray as one might be of vector_add.cu."""
    file = str(KERNELS / "vector_add.cu")
    costs = enumerate((32, 64, 256), 26)
    lines = [Line(file, i, "k", "global", "load", 8, cost, 32, 0, 0, 32.0, nvcc="merged") for i, cost in costs]
    fault = FaultRecord("out-of-bounds", file, 26, "k", (0, 0, 0), (1, 0, 0), "reads past the end")
    launch = Launch("k", file, 26, (1, 1, 1), (32, 1, 1), 1, 1, 32.0, 0, 0)
    return Facts(None, lines, [fault], [launch], [fault])


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_xray_and_verdicts_can_be_read(book, shown, axe, theme, width):
    """With lines of each efficiency, a fault and a remark; verdicts in each of their colours."""
    page = shown(f"{book}/{PAGES['lesson']}", width=width, theme=theme)
    outputs = [as_html(facts()), *(Verdict("vector_scale", kind, "why")._repr_html_() for kind in HEADS)]
    cells = "".join(f'<div class="cell_output"><div class="output text_html">{html}</div></div>' for html in outputs)
    page.evaluate(f"document.querySelector('article section').innerHTML = {json.dumps(cells)}")
    seen(page, "unfold()")
    page.evaluate("document.querySelectorAll('.cell_output > .output, pre').forEach(box => { box.tabIndex = 0 })")
    assert page.locator(".ladder-xray td").count() > 15
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert axe(page) == []


def in_theme(page, theme):
    page.evaluate("theme => document.querySelector(`.theme-change-button[data-mode=${theme}]`).click()", theme)
    expect(page.locator("html")).to_have_attribute("data-theme", theme)


@pytest.mark.timeout(600)
def test_nothing_scrolls_sideways_on_a_desk(book, folder, shown):
    page, found = shown(f"{book}/index.html"), {}
    names = [path.relative_to(folder).as_posix() for path in pages_of(folder)]
    assert len(names) > 150
    for name in names:
        page.goto(f"{book}/{name}")
        for theme in ("light", "dark"):
            in_theme(page, theme)
            found |= {f"{name}, {theme}": boxes for boxes in [seen(page, "scrolled()")] if boxes}
    assert found == {}


@pytest.mark.parametrize("box", ["pre", ".pst-scrollable-table-container, article .text_html", "a.image-reference"])
def test_a_planted_box_that_scrolls_is_found(book, shown, box):
    page = shown(f"{book}/{PAGES['lesson']}")
    assert seen(page, "scrolled()") == []
    seen(page, f"plant({box!r})")
    assert len(seen(page, "scrolled()")) == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_the_verdicts_of_every_xray(book, folder, shown, shot, theme):
    page, total = shown(f"{book}/index.html", width=PHONE, theme=theme), 0
    for path in sorted((folder / "notebooks").glob("*.html")):
        page.goto(f"{book}/notebooks/{path.name}")
        count, unseen = seen(page, "verdicts()")
        assert unseen == [], path.name
        total += count
    assert total > 30
    page.goto(f"{book}/{PAGES['lesson']}")
    page.locator(".ladder-xray").first.scroll_into_view_if_needed()
    shot(page, f"book_xray_{PHONE}_{theme}")
    page.evaluate("[...document.styleSheets].find(sheet => sheet.href?.includes('/xray.css')).disabled = true")
    assert "efficiency" in seen(page, "verdicts()")[1]


@pytest.mark.parametrize("name", ["results/index.html", "notebooks/09_matmul_fast.html", "notebooks/11_hopper.html"])
def test_a_phone_shows_the_sentences_of_the_ladders_tables(book, shown, name):
    page = shown(f"{book}/{name}", width=PHONE)
    tables = page.locator("article table", has=page.locator("th", has_text="what it changes"))
    around = "it.closest('.text_html, .pst-scrollable-table-container')"
    wide = f"them => them.map(it => it.scrollWidth > {around}.clientWidth)"
    assert set(tables.evaluate_all(wide)) == {False}
    page.evaluate("[...document.styleSheets].find(sheet => sheet.href?.includes('/book.css')).disabled = true")
    assert any(tables.evaluate_all(wide))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lanes_of_figures_stand_out(book, shown, theme):
    page = shown(f"{book}/index.html", theme=theme)
    frames = page.locator("iframe")
    for i in range(frames.count()):
        frames.nth(i).scroll_into_view_if_needed()
        expect(frames.nth(i).content_frame.locator("svg").first).to_be_visible()
    found = dict(seen(page, "contrasts()"))
    assert {"lane 0", "lane 31", "which sectors?", "TFLOP/s"} <= set(found)
    assert {text: ratio for text, ratio in found.items() if ratio < 4.5} == {}


def test_the_book_has_a_name_an_icon_and_a_link_to_its_source(book, shown):
    page = shown(f"{book}/{PAGES['lesson']}")
    brand = page.locator(".navbar-brand:visible")
    expect(brand).to_contain_text("The Kernel Ladder")
    assert brand.locator("img:visible").evaluate("it => it.complete && it.naturalWidth > 0")
    assert page.locator("link[rel=icon]").get_attribute("href").partition("?")[0].endswith("icon.svg")
    expect(page.locator("a[href='https://github.com/octocat/course']").first).to_be_visible()


def test_the_first_page_begins_with_a_picture(book, shown):
    page = shown(f"{book}/index.html")
    assert page.locator("article h1 + * img").evaluate("it => it.complete && it.naturalWidth > 0")


def test_a_search_leads_to_a_lesson(book, shown, shot):
    page = shown(f"{book}/index.html")
    page.keyboard.press("ControlOrMeta+k")
    page.locator("input[type=search]:visible").fill("bank conflict")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a", has_text="Matrix multiplication").first
    expect(found).to_be_visible(timeout=30_000)
    expect(page.locator("#search-results li .context").first).to_contain_text("bank")
    expect(page.locator("#search-results")).not_to_contain_text("System Settings")
    shot(page, "book_search")
    found.click()
    expect(heading(page)).to_contain_text("Matrix multiplication")


def test_the_theme_is_kept_from_page_to_page(book, shown, shot):
    page = shown(f"{book}/index.html")
    root = page.locator("html")
    page.locator(".theme-switch-button:visible").click()
    page.locator(".theme-change-button[data-mode=dark]:visible").click()
    expect(root).to_have_attribute("data-theme", "dark")
    page.goto(f"{book}/notebooks/01_vector_add.html")
    expect(root).to_have_attribute("data-theme", "dark")
    shot(page, "book_theme_switched")
    page.evaluate("document.querySelector('.theme-change-button[data-mode=auto]').click()")
    expect(root).to_have_attribute("data-theme", "light")


def test_a_hint_is_unfolded(book, shown):
    hint = shown(f"{book}/notebooks/01_vector_add.html").locator(".cell_output details").first
    expect(hint).to_have_js_property("open", False)
    hint.locator("summary").click()
    expect(hint).to_have_js_property("open", True)


def test_a_phone_reaches_the_contents(book, shown, shot):
    page = shown(f"{book}/index.html", width=PHONE)
    lessons = page.locator("nav a", has_text="Vector add").first
    expect(lessons).not_to_be_in_viewport()
    page.locator("button.primary-toggle:visible, label.primary-toggle:visible").first.click()
    expect(lessons).to_be_in_viewport()
    shot(page, "book_phone_contents")
    lessons.click()
    expect(heading(page)).to_contain_text("Vector add")
