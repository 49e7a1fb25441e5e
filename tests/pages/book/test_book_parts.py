"""The book's parts as pure functions: adapted lessons, kernels' pages, links, tables, citations, docstrings, checks."""

import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.__main__ import COMMANDS
from helpers.ladder.results.records import Recorded
from helpers.ladder.results.table import Table
from helpers.pages.book import (
    assemble,
    audit,
    citations,
    docstrings,
    kernel_pages,
    lessons,
    measured,
    phrases,
    reference,
)
from helpers.pages.museum.published import PUBLISHED
from helpers.paths import DOCS, NOTEBOOKS, ROOT

HEAD = '<pre><span class="head">kernels/matmul/03_tiled.cu, lines 44-52</span>'


def notebook():
    png = new_output("display_data", {"image/png": "iVBORw0KGgo=", "text/plain": "thread_map:\n  3 blocks"})
    shown = new_output("display_data", {"text/html": HEAD, "text/plain": "kernels/matmul/03_tiled.cu, lines 44-52"})
    cells = [
        new_markdown_cell("# 07 Title"),
        new_code_cell("helpers.thread_map(24, 8)", outputs=[png]),
        new_code_cell('helpers.show_kernel("../kernels/wrong/matmul.cu")', outputs=[shown]),
    ]
    return new_notebook(cells=cells)


# -- Lessons -----------------------------------------------------------------------------------------------------------


def test_a_lesson_gets_links_and_texts():
    original = notebook()
    before = copy.deepcopy(original)
    lesson = lessons.adapted(original, ["matmul/03_tiled.cu", "wrong/matmul.cu", "vector_add.cu"])
    assert lesson.cells[1].metadata["mystnb"]["image"]["alt"] == "thread_map: 3 blocks"
    assert '<a href="../kernels/matmul/03_tiled.cu.html#L-44">' in lesson.cells[2].outputs[0].data["text/html"]
    assert "[kernels/wrong/matmul.cu](../kernels/wrong/matmul.cu.md)" in lesson.cells[-1].source
    assert "vector_add" not in lesson.cells[-1].source
    assert original == before  # the committed notebook is not touched


def test_a_file_without_a_page_gets_no_link():
    assert lessons.linked(HEAD, {"vector_add.cu"}) == HEAD
    assert len(lessons.adapted(notebook(), []).cells) == 3


def test_no_lesson_of_the_book_asks_to_run_a_cell_again():
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        read = nbformat.read(path, as_version=4)
        cells = [cell for cell in read.cells if cell.source.startswith("%%exercise")]
        assert cells and all("run it again" in nbformat.v4.writes(new_notebook(cells=[cell])) for cell in cells)
        shown = [cell for cell in lessons.adapted(read, []).cells if cell.source.startswith("%%exercise")]
        pages = [output.data["text/html"] for cell in shown for output in cell.outputs if "text/html" in output.data]
        assert len(pages) >= len(cells) and all("your own copy" in page and "again" not in page for page in pages)


def test_every_lesson_is_in_the_table_and_every_picture_has_a_text():
    rows = lessons.lessons_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert {f"{row.document}.ipynb" for row in rows} == {f"notebooks/{p.name}" for p in NOTEBOOKS.glob("*.ipynb")}
    texts = [
        cell.metadata["mystnb"]["image"]["alt"]
        for path in NOTEBOOKS.glob("*.ipynb")
        for cell in lessons.adapted(nbformat.read(path, as_version=4), []).cells
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))
    ]
    assert len(texts) > 15
    assert all(len(text) > 20 and "<" not in text for text in texts)


def test_the_picture_of_the_landing_page_is_found():
    png, text = lessons.picture(nbformat.read(NOTEBOOKS / "01_vector_add.ipynb", as_version=4), "sectors a request")
    assert png.startswith(b"\x89PNG") and "32 sectors" in text
    with pytest.raises(ValueError, match="no picture"):
        lessons.picture(notebook(), "sectors a request")


# -- Kernels -----------------------------------------------------------------------------------------------------------


def test_every_kernel_has_a_page_in_one_folder():
    files = kernel_pages.kernel_files()
    assert {"vector_add.cu", "matmul/03_tiled.cu", "include/launch.h", "museum/published.cu"} <= set(files)
    pages = [kernel_pages.folder_page(folder, files) for folder in kernel_pages.FOLDERS]
    for name in files:
        assert sum(f"\n{Path(name).name} </kernels/{name}>\n" in page for page in pages) == 1, name
    assert not [name for name in files if name.startswith("exercises/")]  # their sources are the solutions


def test_a_kernels_page_has_lines_lessons_and_headers():
    lesson = lessons.Lesson("01", "vector_add", "")
    text = '#include "launch.h"\n#include <cuda.h>\n__global__ void add(float* x) {}\n'
    page = kernel_pages.kernel_page("a/b.cu", text, ["include/launch.h"], {"lesson 01": lesson})
    assert page.startswith("# kernels/a/b.cu\n")
    assert "[lesson 01](/notebooks/01_vector_add.ipynb)" in page
    assert "[include/launch.h](../../kernels/include/launch.h.md)" in page and "cuda.h]" not in page
    assert 'id="L-3"' in page and "__global__" in page


# -- Pages of docs/ ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](sandbox.md#x)", "[a](sandbox.md#x)"),
        ("[a](../kernels/vector_add.cu)", "[a](/kernels/vector_add.cu.md)"),
        ("[a](../helpers/set_up.py)", "a"),
        ("[a](/notebooks/01.ipynb)", "[a](/notebooks/01.ipynb)"),
        ("[a](https://x.org/y.md)", "[a](https://x.org/y.md)"),
        ("[a](#term)", "[a](#term)"),
        ("![a](architecture.svg)", "![a](architecture.svg)"),
    ],
)
def test_links_lead_to_pages_or_are_text(link, expected):
    known = {"docs/sandbox.md", "kernels/vector_add.cu.md", "notebooks/01.ipynb"}
    assert assemble.without_dead_links(link, Path("docs"), known) == expected


def test_a_generated_part_is_filled_in_and_an_unknown_one_refused():
    assert assemble.filled("a\n<!-- book: lessons -->\nb", {"lessons": "L"}) == "a\nL\nb"
    with pytest.raises(KeyError, match="figures"):
        assemble.filled("<!-- book: figures -->", {"lessons": "L"})


def test_a_new_page_of_docs_is_in_the_contents():
    pages = ["docs/glossary", "docs/instructors_guide", "docs/new"]
    contents = assemble.contents([*(f"{name}.md" for name in pages), "notebooks/00_a.ipynb"])
    assert [contents.count(f"\n/{name}\n") for name in pages] == [1] * 3
    assert "sandbox" not in contents  # there is no such page here


def test_a_table_keeps_its_title_cells_and_notes():
    text = measured.markdown(Table("GPU, date", ["op", "a|b"], [["x", "1"]], ["a note"]))
    assert text == "**GPU, date**\n\n| op | a\\|b |\n| :--- | ---: |\n| x | 1 |\n\na note\n"
    text = measured.markdown(Table("GPU", ["op", "vs a_b", "why"], [["x_y", "1", "a_b"]], sentences=True))
    assert text == "**GPU**\n\n| op | vs a_<wbr>b | why |\n| :--- | ---: | :--- |\n| x_<wbr>y | 1 | a_b |\n"


def test_a_machine_is_named_with_the_commits_of_its_records():
    """Not with that of the latest run, which `machine` has."""
    machine = {"gpu": "G", "driver": "1", "cuda": "2", "torch": "3", "date": "2026-11-22", "commit": "c" * 40}
    records = [{"date": "2026-11-21", "commit": letter * 40} for letter in "bab"]
    text = measured.machine(Recorded(Path("g.json"), machine, records))
    assert "`results/g.json`: G, 2026-11-21; driver 1, CUDA 2, PyTorch 3; 3 records" in text
    assert f"commit {'a' * 12}, {'b' * 12}." in text and "cc" not in text


# -- Glossary and bibliography -----------------------------------------------------------------------------------------


def entries():
    """Term -> definition."""
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\{glossary\}\n(.*?)```", text, re.DOTALL)
    return dict(re.findall(r"^(\S.*)\n((?:  .*\n)+)", "\n".join(blocks), re.MULTILINE))


def test_the_glossary_has_terms_enough_and_each_source_is_in_the_bibliography():
    found = entries()
    assert len(found) >= 80
    assert len({term.lower() for term in found}) == len(found)
    sources = {source for text in found.values() for source in re.findall(r"\]\(bibliography\.md#([\w-]+)\)", text)}
    listed = anchors((DOCS / "bibliography.md").read_text(encoding="utf-8"))
    assert len(sources) > 8 and sources <= listed


def anchors(text):
    """Those that GitHub and the book make of Markdown's headings."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text, re.M)}


def test_a_link_within_docs_leads_to_a_heading():
    assert anchors("# Little's law\n### A `b`: c_d-e") == {"littles-law", "a-b-c_d-e"}
    pages = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    known = {name: anchors(text) for name, text in pages.items()}
    links = [
        (name, file or name, anchor)
        for name, text in pages.items()
        for file, anchor in re.findall(r"\]\(([\w./]*)#([\w-]+)\)", text)
    ]
    assert len(links) > 50
    assert [link for link in links if "/" not in link[1] and link[2] not in known[link[1]]] == []


UNITS = "KiB|GB|TB/s|TFLOP/s|bits|significant|microseconds|registers of|slots"
MEASURE = re.compile(rf"\d\s*(?:{UNITS})|\b(?:\d\.\d|\d+,\d+)\b")


def test_a_definition_with_a_measure_names_its_source():
    assert MEASURE.search("up to 227 KiB") and MEASURE.search("up to 1,024 threads") and not MEASURE.search("0 to 31")
    assert [term for term, text in entries().items() if MEASURE.search(text) and "](bibliography.md#" not in text] == []


def test_terms_are_found_in_plural_and_abbreviations_with_their_capitals():
    finds = phrases.pattern(["SM", "warp", "bank", "bank conflict", "mbarrier"])
    terms = dict.fromkeys(["sm", "warp", "bank", "bank conflict", "mbarrier"], "")
    text = "Warps of all SMs have bank conflicts; so do sm, warped, warp-wide and re-bank."
    assert [match.group() for match in finds.finditer(text)] == ["Warps", "SMs", "bank conflicts"]
    assert [phrases.term_of(name, terms) for name in ("Warps", "SMs", "banks", "fence")] == ["warp", "sm", "bank", None]


def test_every_published_bug_has_an_address():
    addresses = [citations.url(source) for bug in PUBLISHED for source in bug.sources]
    assert "https://github.com/karpathy/llm.c/blob/f1e2ace/dev/cuda/common.h#L333" in addresses
    assert "https://github.com/kokkos/kokkos/issues/2681" in addresses
    assert not [address for address in addresses if " " in address]
    with pytest.raises(ValueError, match="names neither"):
        citations.url("a forum")


# -- Reference ---------------------------------------------------------------------------------------------------------


def test_arguments_of_a_docstring_become_definitions():
    lines = ["Runs `f(*a)`.", "", "threads   per block", "a, b      |x| * 2,", "          or more", "", "Raises it."]
    assert [line for line in docstrings.restructured(lines) if line] == [
        "Runs ``f(*a)``.",
        *("``threads``", "   per block"),
        *("``a``, ``b``", r"   \|x\| \* 2,", "   or more"),
        "Raises it.",
    ]


def test_the_reference_has_every_name_of_the_face():
    import helpers

    page = reference.api()
    assert [name for name in helpers.__all__ if f":: helpers.{name}\n" not in page] == []


def test_every_command_has_its_help_and_none_does_its_job(monkeypatch):
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("a command replaced this process"))
    text = reference.command_line()
    for name in COMMANDS:
        assert f"\n## {name}\n" in text and f"usage: python -m helpers {name}" in text, name


# -- Checks of finished pages ------------------------------------------------------------------------------------------


GOOD = (
    '<html><a href="b.html#there">b</a><img src="x.png" alt="lanes"><link rel="canonical" href="https://x.org"></html>'
)


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (("", ""), None),
        (("b.html#there", "c.html"), "leads nowhere"),
        (("#there", "#nowhere"), "without this anchor"),
        (('alt="lanes"', ""), "no alternative text"),
        (('src="x.png"', 'src="https://x.org/x.png"'), "requests https://x.org/x.png"),
        (("<html>", '<html><script src="//cdn.org/x.js"></script>'), "requests //cdn.org/x.js"),
        (("<html>", "<html><style>@import 'https://x.org/f.css'</style>"), "requests https://x.org/f.css"),
        (("<html>", "<html>" + "x" * audit.LARGEST_LESSON), "bytes, more than"),
    ],
)
def test_a_planted_fault_of_a_page_is_found(tmp_path, change, finding):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "a.html").write_text(GOOD.replace(*change))
    (folder / "b.html").write_text('<h1 id="there">b</h1>')
    (folder / "x.png").write_bytes(b"")
    found = audit.findings(tmp_path)
    assert len(found) == (finding is not None)
    assert finding is None or finding in found[0]


def test_a_style_sheet_that_requests_and_an_empty_book_are_found(tmp_path):
    assert "no page" in audit.findings(tmp_path)[0]
    (tmp_path / "a.html").write_text("<html></html>")
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.org/a.woff) }")
    assert audit.findings(tmp_path) == ["a.css: requests https://fonts.org/a.woff"]
