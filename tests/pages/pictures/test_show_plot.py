"""Kernels shown from their files, errors shown as text, and the pictures of threads and elements."""

import re

import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from helpers.pages.pictures import show
from helpers.pages.pictures.plot import ALARM, grid_and_blocks, recorded_map, thread_map
from helpers.pages.pictures.show import functions_in, show_error, show_kernel
from helpers.paths import ROOT
from kernel_xray.report import picture
from kernel_xray.report.canvas import COLOURS, INK, PAPER

SOURCE = """\
// A file.
#include <cuda_runtime.h>  // {
#define LOOP(n) \\
  for (int i = 0; i < (n); ++i) {

// ----------------------------------------------------------------------
// Adds; the comment has a brace } and a call add(1).
// Second line.
template <typename T, int N = (1 + 2)>
__global__ void __launch_bounds__(256) add(const T* a, T* out, int (*f)(int)) {
  if (a[0] > 0) {
    out[0] = '}' == '{' ? a[0] : f("{ \\" {"[0]);
  }
}

struct Pair {
  int first() const { return 1; }
};

namespace inner {
static inline int twice(int x) { return 2 * x; }
}  // namespace inner

void add(int);

// region launch
int launch() {
  auto f = [](int x) { return x; };
  return f(1);
}
// endregion

constexpr int table[] = {1, 2, 3};
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "file.cu"
    path.write_text(SOURCE)
    return path


# -- show_kernel -------------------------------------------------------------------------------------------------------


def test_functions_are_found_with_their_comments_and_template_lines():
    assert functions_in(SOURCE) == {"add": (7, 14), "twice": (21, 21), "launch": (27, 30)}


def test_every_kernel_of_the_course_is_found():
    for path in ROOT.glob("kernels/**/*.cu"):
        text = path.read_text()
        kernels = re.findall(r"^__global__(?:[^(]|(?<=__)\([^)]*\))*?\b(?!__)(\w+)\(", text, flags=re.MULTILINE)
        assert kernels or "__global__" not in text, path
        assert set(kernels) <= set(functions_in(text)), path


def test_plain_text_has_path_and_line_numbers(source):
    _, *shown = repr(show_kernel(source, "twice")).split("\n")
    assert shown == ["21  static inline int twice(int x) { return 2 * x; }"]
    text = repr(show_kernel(source, "add")).split("\n")
    assert text[0].endswith("file.cu, lines 7-14")
    assert text[1] == " 7  // Adds; the comment has a brace } and a call add(1)."
    assert text[-1] == "14  }"


def test_lines_regions_and_whole_files(source):
    assert show_kernel(source, lines=(1, 2)).text == "\n".join(SOURCE.split("\n")[:2])
    assert show_kernel(source, region="launch").text.startswith("int launch() {")
    assert show_kernel(source, region="launch").first == 27
    assert show_kernel(source).text == SOURCE.rstrip("\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "nope"}, "no function or struct 'nope'; it defines add, twice, launch, Pair"),
        ({"region": "nope"}, "no region 'nope'; it has launch"),
        ({"lines": (3, 2)}, "has lines 1 to 33"),
        ({"lines": (0, 2)}, "has lines 1 to 33"),
        ({"lines": (1, 34)}, "has lines 1 to 33"),
        ({"name": "add", "lines": (1, 2)}, "not several"),
    ],
)
def test_a_missing_part_is_refused(source, options, message):
    with pytest.raises(ValueError, match=message):
        show_kernel(source, **options)


def test_a_region_must_end(tmp_path):
    path = tmp_path / "file.cu"
    path.write_text("// region open\nint x;\n")
    with pytest.raises(ValueError, match="no // endregion"):
        show_kernel(path, region="open")


def test_paths_are_shown_from_the_root_of_the_course(monkeypatch):
    monkeypatch.chdir(ROOT / "notebooks")
    assert show_kernel("../kernels/vector_add.cu", "vector_add").path == "kernels/vector_add.cu"


def test_html_has_every_line_escaped_and_coloured(source):
    page = show_kernel(source, "add")._repr_html_()
    assert "&lt;typename</span> T" in page or "&lt;" in page
    assert "<typename" not in page
    assert page.count('class="n"') == 8
    assert '<span class="c1">// Second line.</span>' in page
    assert re.search(r'<span class="kr">__global__</span>', page)
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", body).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    text = text.replace("&quot;", '"').replace("&#x27;", "'")
    assert text == repr(show_kernel(source, "add"))


# -- show_error --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "rest"),  # the place and the frames of a check; advice that every CUDA error carries
    [
        ("kernels/x.cu:3, n must be 1", "Exception raised from f at x.cpp:1\nframe #0"),
        ("CUDA error: invalid argument", "Search for `cudaErrorInvalidValue' in https://...\nmore"),
    ],
)
def test_errors_are_printed_short(capsys, message, rest):
    def fail():
        raise RuntimeError(f"{message.replace('kernels/', f'{show.ROOT}/kernels/')}\n{rest}")

    show_error(fail)
    assert capsys.readouterr().out == f"RuntimeError: {message}\n"


def test_an_error_that_does_not_come_is_an_error():
    with pytest.raises(AssertionError, match="expected to fail"):
        show_error(int, "3")


# -- pictures ----------------------------------------------------------------------------------------------------------


def cells(figure):
    """(face colour, edge colour, hatched) of each rectangle, in order."""
    from matplotlib.colors import to_hex

    return [
        (to_hex(p.get_facecolor()) if p.get_facecolor()[3] else None, to_hex(p.get_edgecolor()), bool(p.get_hatch()))
        for p in figure.axes[0].patches
    ]


def labels(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_one_each_hatches_the_threads_past_the_end():
    figure = thread_map(10, 4)
    drawn = cells(figure)
    assert isinstance(figure, Figure)
    assert [face for face, _, _ in drawn] == [COLOURS[0]] * 4 + [COLOURS[1]] * 4 + [COLOURS[2]] * 2 + [None] * 2
    assert [hatched for _, _, hatched in drawn] == [False] * 10 + [True] * 2
    assert "2 threads past the end, 0 elements without a thread" in repr(figure)
    assert [text for text in labels(figure) if text.startswith("block")] == ["block 0", "block 1", "block 2"]


def test_a_capped_grid_shows_the_elements_without_a_thread():
    figure = thread_map(14, 4, blocks=2)
    assert sum(edge == ALARM for _, edge, _ in cells(figure)) == 6
    assert labels(figure).count("?") == 6
    assert "6 elements without a thread" in repr(figure)
    assert not any(edge == ALARM for _, edge, _ in cells(thread_map(14, 4)))


def test_grid_stride_starts_a_row_for_each_round():
    figure = thread_map(20, 4, blocks=2, form="grid stride")
    rows = sorted({patch.get_y() for patch in figure.axes[0].patches})
    assert len(rows) == 3
    assert {"round 0", "round 1", "round 2"} <= set(labels(figure))
    threads = [text for text in labels(figure) if re.fullmatch(r"t\d", text)]
    assert threads == ["t0", "t1", "t2", "t3"] * 5


def test_chunks_give_each_thread_neighbours():
    threads = [text for text in labels(thread_map(8, 2, blocks=2, form="chunk")) if re.fullmatch(r"t\d", text)]
    assert threads == ["t0", "t0", "t1", "t1"] * 2


def test_a_record_is_drawn_as_it_is():
    figure = recorded_map(torch.tensor([1, 1, -1, 0]), [0, 1, -1, 5])
    assert [face for face, _, _ in cells(figure)] == [COLOURS[1], COLOURS[1], None, COLOURS[0]]
    assert [text for text in labels(figure) if re.fullmatch(r"t\d|\?", text)] == ["t0", "t1", "?", "t5"]


def test_grid_and_blocks_draws_each_thread():
    figure = grid_and_blocks((3, 2), (4, 5))
    assert sum(len(squares.get_paths()) for squares in figure.axes[0].collections) == 3 * 2 * 4 * 5
    assert "block (2, 1)" in labels(figure)
    assert labels(figure).count("3,4") == 6
    assert "block 2" in labels(grid_and_blocks((3,), (8,)))


@pytest.mark.parametrize(
    "figure", [thread_map(10, 4), thread_map(100, 32), thread_map(20, 4, 2, "grid stride"), grid_and_blocks((3,), (8,))]
)
def test_texts_do_not_overlap_and_stay_inside(figure):
    figure.canvas.draw()
    page = figure.bbox
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert all(box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1 for box in boxes)
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:i])


def contrast(one, other):
    """Of two colours, as WCAG 2.2 defines it."""
    lights = [
        sum(
            share * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
            for share, c in zip((0.2126, 0.7152, 0.0722), to_rgb(colour), strict=True)
        )
        for colour in (one, other)
    ]
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_text_stands_out_on_paper_and_on_lanes():
    assert contrast(INK, PAPER) >= 4.5 > contrast("#858585", PAPER)  # an ink that black paper would admit too
    assert [c for c in COLOURS if contrast(c, "white") < 4.5] == []
    assert [lane for lane in range(32) if contrast(picture._colour(lane), "white") < 4.5] == []


def test_pictures_are_images_without_pyplot():
    data, options = thread_map(10, 4)._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert options["width"] <= 1000
    assert thread_map(10, 4)._repr_png_()[0] == data


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: thread_map(0, 4), "elements must be 1 or more, got 0"),
        (lambda: thread_map(4, 0), "threads must be 1 or more, got 0"),
        (lambda: thread_map(4, 4, blocks=0), "blocks must be 1 or more, got 0"),
        (lambda: thread_map(4, 4, form="spiral"), "'spiral'"),
        (lambda: thread_map(1000, 4), "512 at most"),
        (lambda: recorded_map([0], [0, 1]), "got 1 and 2"),
        (lambda: grid_and_blocks((1, 1, 1), (4,)), "grid must be"),
        (lambda: grid_and_blocks((1,), (0,)), "block must be"),
        (lambda: grid_and_blocks((64,), (64,)), "too many"),
    ],
)
def test_senseless_pictures_are_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
