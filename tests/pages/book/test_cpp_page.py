"""docs/cpp.md quotes kernels: each line must be in the file that the sentence before it names."""

import re
import textwrap

import pytest

from helpers.paths import DOCS, KERNELS, NOTEBOOKS

PAGE = (DOCS / "cpp.md").read_text(encoding="utf-8")
QUOTE = re.compile(r"\]\(\.\./kernels/([\w/.]+)\)|^```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def misquoted(page: str) -> list[str]:
    """The quotes that are not, line by line, in the file that was linked last."""
    found, text = [], ""
    for file, quote in QUOTE.findall(page):
        if file:
            text = (KERNELS / file).read_text(encoding="utf-8")
        elif quote not in text:
            found.append(textwrap.dedent(quote))
    return found


def test_every_quote_is_in_its_file():
    assert PAGE.count("```cpp") >= 10
    assert misquoted(PAGE) == []


@pytest.mark.parametrize(
    ("old", "new"), [("const float *a, *b;", "const float *a, *c;"), ("vector_add.cu", "island.cu")]
)
def test_a_line_of_another_state_or_file_is_found(old, new):
    assert misquoted(PAGE.replace(old, new)) != []


def test_a_form_s_lesson_links_here():
    """The lesson in which a form is met first leads to its explanation."""
    for number in set(re.findall(r"^## .*: lesson (\d\d)$", PAGE, re.MULTILINE)):
        (lesson,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
        assert "](../docs/cpp.md" in lesson.read_text(encoding="utf-8"), lesson.name
