"""The finished book: `python -m helpers book` as a whole. tests/browser opens its pages."""

import importlib.util
import itertools
import re

import built
import pytest

from helpers.paths import NOTEBOOKS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not importlib.util.find_spec("myst_nb"), reason="needs Sphinx, which `make book` installs"),
]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return built.book_in(tmp_path_factory.mktemp("book"))


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
