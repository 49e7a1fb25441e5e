"""The book as a reader uses it: search, theme, phone; and its pages as pictures. tests/pages/book uses axe."""

import functools
import http.server
import importlib.util
import threading

import built
import pytest

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


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The address of the book on a server, without which the search cannot quote the pages that it finds."""
    folder = built.book_in(tmp_path_factory.mktemp("book"))

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


def test_a_search_leads_to_a_lesson(book, shown, shot):
    page = shown(f"{book}/index.html")
    page.keyboard.press("ControlOrMeta+k")
    page.locator("input[type=search]:visible").fill("bank conflict")
    page.keyboard.press("Enter")
    found = page.locator("#search-results li a", has_text="Matrix multiplication").first
    expect(found).to_be_visible(timeout=30_000)
    expect(page.locator("#search-results li .context").first).to_contain_text("bank")
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
