"""The pages that `make course` writes."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.pages.book.audit import Page, outside
from helpers.pages.notebooks.pages import to_html


def test_a_page_of_the_course_requests_nothing():
    cells = [new_markdown_cell("# A title\n\n[next](02_b.ipynb#there)"), new_code_cell("1 + 1")]
    page = Page(to_html(new_notebook(cells=cells), "01_a"))
    assert [address for address in page.fetched if outside(address)] == []
    assert "import(" not in page.text  # of a module
    assert "02_b.html#there" in page.links
