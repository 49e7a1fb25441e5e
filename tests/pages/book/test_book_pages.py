"""The finished book: `python -m helpers book` as a whole, and its pages in a real browser.

The book is built once. The browser is a Chromium of this machine; axe-core, which finds what hinders readers, comes
from npm: `npm install --prefix build/axe axe-core@4.14.1`.
"""

import importlib.util
import itertools
import json
import re

import built
import pytest

from helpers.paths import BUILD, KERNELS, NOTEBOOKS
from helpers.practice.verdict import HEADS, Verdict
from kernel_xray.report.facts import Facts, FaultRecord, Launch, Line
from kernel_xray.report.html import as_html

chromium = pytest.importorskip("chromium", reason="needs websocket-client, which comes with JupyterLab")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not importlib.util.find_spec("myst_nb"), reason="needs Sphinx, which `make book` installs"),
]
AXE = BUILD / "axe" / "node_modules" / "axe-core" / "axe.min.js"
NEEDS_CHROMIUM = pytest.mark.skipif(not chromium.PROGRAM, reason="needs Chromium or Chrome")
NEEDS_AXE = pytest.mark.skipif(not AXE.exists(), reason="needs npm install --prefix build/axe axe-core@4.14.1")
KINDS = {  # one page of each kind
    "landing page": "index.html",
    "lesson": "notebooks/08_matmul.html",
    "kernel": "kernels/matmul/03_tiled.cu.html",
    "tables": "results/index.html",
    "reference": "reference/api.html",
    "glossary": "docs/glossary.html",
    "generated tables": "docs/xray_vs_ncu.html",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return built.book_in(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.Page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_every_lesson_leads_to_the_next_to_terms_and_to_kernels(book):
    names = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    for name, after in itertools.pairwise(names):
        text = (book / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
        assert re.search(rf'class="right-next"\s+href="{after}\.html"', text), name
        terms = re.findall(r'<a class="term [^"]*" href="(\.\./docs/glossary\.html#[^"]+)"', text)
        assert len(terms) > 5 and len(set(terms)) == len(terms), name
        assert "../kernels/" in text


def test_exercises_are_folded_and_coloured_as_cuda(book):
    text = (book / "notebooks" / "01_vector_add.html").read_text(encoding="utf-8")
    assert "<summary>Hint 1 of" in text and "<summary>A solution</summary>" in text
    assert re.search(r'"highlight-cuda notranslate"[^%]*%%</span><span class="n">exercise</span>', text)


def test_a_kernels_page_leads_back_to_its_lesson(book):
    text = (book / "kernels" / "vector_add.cu.html").read_text(encoding="utf-8")
    assert 'href="../notebooks/01_vector_add.html"' in text and 'id="L-20"' in text


# -- In a browser ------------------------------------------------------------------------------------------------------


@NEEDS_CHROMIUM
@NEEDS_AXE
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_hinders_nobody_and_stays_within_the_window(book, page, kind, width, theme):
    page.open(book / KINDS[kind], width=width, theme=theme)
    page.wait("document.documentElement.dataset.theme")
    assert page.run("document.documentElement.dataset.theme") == theme
    assert page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.run("document.querySelectorAll('details').forEach(folded => { folded.open = true })")
    assert serious(page) == []
    assert [address for address in page.requests if not address.startswith("file:")] == []
    assert page.errors == []


@NEEDS_CHROMIUM
@NEEDS_AXE
def test_a_planted_hindrance_is_found(book, page):
    page.open(book / "index.html")
    page.run("document.querySelector('article p:not(:has(img))').style.color = '#ccc'")
    page.run("document.querySelector('article img').removeAttribute('alt')")
    assert {finding.partition(":")[0] for finding in serious(page)} >= {"color-contrast", "image-alt"}


@NEEDS_CHROMIUM
@NEEDS_AXE
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_xray_and_verdicts_can_be_read(book, page, theme, width):
    """With lines of each efficiency, a fault and a remark; verdicts in each of their colours."""
    page.open(book / KINDS["lesson"], width=width, theme=theme)
    outputs = [as_html(facts()), *(Verdict("vector_scale", kind, "why")._repr_html_() for kind in HEADS)]
    cells = "".join(f'<div class="cell_output"><div class="output text_html">{html}</div></div>' for html in outputs)
    page.run(f"document.querySelector('article section').innerHTML = {json.dumps(cells)}")
    page.run("document.querySelectorAll('details').forEach(folded => { folded.open = true })")
    page.run("document.querySelectorAll('.cell_output > .output, pre').forEach(box => { box.tabIndex = 0 })")
    assert page.run("document.querySelectorAll('.ladder-xray td').length") > 15
    assert page.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert serious(page) == []


def facts():
    """An X-ray as one might be of vector_add.cu."""
    file = str(KERNELS / "vector_add.cu")
    costs = enumerate((32, 64, 256), 26)
    lines = [Line(file, i, "k", "global", "load", 8, cost, 32, 0, 0, 32.0, nvcc="merged") for i, cost in costs]
    fault = FaultRecord("out-of-bounds", file, 26, "k", (0, 0, 0), (1, 0, 0), "reads past the end")
    launch = Launch("k", file, 26, (1, 1, 1), (32, 1, 1), 1, 1, 32.0, 0, 0)
    return Facts(None, lines, [fault], [launch], [fault])


def serious(page):
    """What axe finds serious or worse, each with the elements."""
    # A colour that still changes, as a button's does when the theme is set, is not the one that a reader sees.
    page.run("document.getAnimations().filter(it => it instanceof CSSTransition).forEach(it => it.finish())")
    page.run(AXE.read_text(encoding="utf-8") + "; 0")
    found = page.run("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)")
    found = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    return [f"{rule['id']}: {[node['html'][:120] for node in rule['nodes'][:4]]}" for rule in found]


@NEEDS_CHROMIUM
def test_the_search_finds_a_term(book, page):
    page.open(book / "search.html", query="?q=bank+conflict")
    page.wait("document.querySelectorAll('#search-results li a').length > 3")
    found = page.run("[...document.querySelectorAll('#search-results li a')].map(link => link.textContent).join('|')")
    assert "Matrix multiplication" in found


@NEEDS_CHROMIUM
def test_the_theme_can_be_switched_and_a_hint_unfolded(book, page):
    page.open(book / "notebooks" / "01_vector_add.html")
    for theme in ("dark", "light", "auto"):
        page.run(f"document.querySelector('.theme-change-button[data-mode={theme}]').click()")
        page.wait(f"document.documentElement.dataset.mode == '{theme}'")
        assert page.run("document.documentElement.dataset.theme") == theme.replace("auto", "light")
    hint = "document.querySelector('.cell_output details')"
    assert not page.run(f"{hint}.open")
    page.run(f"{hint}.querySelector('summary').click()")
    assert page.run(f"{hint}.open")
