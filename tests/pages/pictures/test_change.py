"""`show_change`: exactly the lines that differ, each with its number in its own file."""

import itertools
import re

import pytest

import helpers
from helpers.pages.book import lessons
from helpers.pages.pictures.change import show_change
from helpers.pages.pictures.show import show_kernel
from helpers.paths import KERNELS

OLD = """// Adds.
__global__ void add_kernel(float* a) {
  int i = threadIdx.x;
  a[i] += 1;
  a[i] += 2;
}

__global__ void wide_kernel(float* a) {
  int i = 4 * threadIdx.x;
  if (i < 8) {
    a[i] += 1;
    a[i] += 2;
  }
}
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "old.cu"
    path.write_text(OLD)
    return path


def test_lines_that_differ_are_marked_and_equal_ones_are_not(source):
    text = repr(show_change(show_kernel(source, "add_kernel"), show_kernel(source, "wide_kernel"))).split("\n")
    assert [title.split(",")[1] for title in text[:2]] == [" lines 1-6", " lines 8-14"]
    assert "- 3   int i = threadIdx.x;" in text and "+ 9   int i = 4 * threadIdx.x;" in text
    assert " 11     a[i] += 1;" in text  # indented more, otherwise the same
    assert {line[0] for line in text[2:]} == {"-", "+", " "}


def test_what_is_far_from_a_change_is_left_out(source, tmp_path):
    long = tmp_path / "long.cu"
    lines = [f"int line_{n};" for n in range(20)]
    source.write_text("\n".join(lines))
    long.write_text("\n".join([*lines[:10], "int more;", *lines[11:15], "int <other>;", *lines[16:]]))
    change = show_change(source, long)
    shown = repr(change)
    assert "line_7;" not in shown and "line_8;" in shown and "line_13;" in shown and "line_18;" not in shown
    page = change._repr_html_()
    assert "&lt;" in page and "<other>" not in page and page.count("<pre") == page.count("</pre>") == 1
    assert len(re.findall("<div", page)) == len(shown.split("\n")) - 2


def test_a_lone_brace_does_not_tear_a_change_apart(tmp_path):
    old, new = tmp_path / "old.cu", tmp_path / "new.cu"
    old.write_text("for (;;) {\n  a();\n}\nb();\nc();\n")
    new.write_text("d();\nif (e) {\n  f();\n}\nc();\n")
    marks = [line[0] for line in repr(show_change(old, new)).split("\n")[2:]]
    assert marks == ["-"] * 4 + ["+"] * 4 + [" "]


def test_equal_sources_are_refused(source):
    with pytest.raises(ValueError, match="do not differ"):
        show_change(source, source)


def test_rungs_of_the_ladder_fit_the_width_of_a_lesson():
    rungs = ("05_register_2d", "06_vectorised", "07_async", "08_warp_tile")
    files = [KERNELS / "matmul" / f"{rung}.cu" for rung in rungs]
    for old, new in itertools.pairwise(files):
        change = helpers.show_change(old, new)
        assert max(map(len, repr(change).split("\n"))) <= 88 + len("+123 ")
        assert len(lessons.SHOWN.findall(change._repr_html_())) == 2  # which the book makes links of


def test_a_struct_is_shown_by_its_name():
    shown = show_kernel(KERNELS / "matmul" / "11_wgmma.cu", "Tile").text
    assert shown.startswith("struct Tile {") and shown.endswith("};")
    with pytest.raises(ValueError, match="TileIndex"):  # which it lists
        show_kernel(KERNELS / "include" / "hopper_matmul.h", "Tyle")
