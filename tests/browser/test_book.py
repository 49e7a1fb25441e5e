"""The book as a reader uses it: search, theme, phone; and its pages as pictures. tests/pages/book uses axe."""

import functools
import http.server
import importlib.util
import threading
from pathlib import Path

import built
import pytest

from helpers.pages.book.audit import pages_of

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


def test_a_phone_reaches_the_contents(book, shown, shot):
    page = shown(f"{book}/index.html", width=PHONE)
    lessons = page.locator("nav a", has_text="Vector add").first
    expect(lessons).not_to_be_in_viewport()
    page.locator("button.primary-toggle:visible, label.primary-toggle:visible").first.click()
    expect(lessons).to_be_in_viewport()
    shot(page, "book_phone_contents")
    lessons.click()
    expect(heading(page)).to_contain_text("Vector add")
