"""The plots of results: their labels, their refusals, and that no text overlaps another."""

import io

import pytest
from made_up import MACHINE, record
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread

from helpers.ladder.results.plots import bars, roofline, share_of_copy
from helpers.ladder.results.records import Recorded, ResultsError, problems, write

COPY = 4.2e9  # bytes per millisecond


def measured(ops=("vector_add", "fused_muladd"), sizes=range(12, 29, 4)):
    records = []
    for op in ops:
        for k in sizes:
            moved = {"vector_add": 12, "fused_muladd": 16}[op] * 2**k
            copied = moved / COPY + 0.002
            for variant, share in ((op, 1.03), (f"{op}_grid_stride", 0.95), (f"{op}_simple", 0.8)):
                ms = moved / COPY / share + 0.002
                vs = {"eager": 1.1 * copied / ms}
                vs |= {"compile": copied / ms, "compile_dynamic": 1.2 * copied / ms} if k == max(sizes) else {}
                times = {"median_ms": ms, "p20_ms": 0.99 * ms, "p80_ms": 1.01 * ms}
                place = {"op": op, "variant": variant, "shape": [2**k], "bytes": moved, "of_copy": copied / ms}
                records.append(record(**place, **times, vs=vs, note="made up"))
    return records


def source(records=None):
    return Recorded("made_up.json", MACHINE, measured() if records is None else records)


def _labels_within(axis):
    """Labels of the ticks inside the limits: only these are drawn."""
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


def overlaps(figure):
    """Pairs of texts that overlap, and texts that reach outside the figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    (ax,) = figure.axes
    texts = [*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
    texts += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    texts += ax.get_legend().get_texts() if ax.get_legend() else []
    drawn = [t for axis in (ax.xaxis, ax.yaxis) for t in _labels_within(axis)]
    ticks = {*ax.get_xticklabels(), *ax.get_yticklabels()}
    shown = [t for t in dict.fromkeys(texts) if t.get_text() and t.get_visible() and (t not in ticks or t in drawn)]
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in shown]
    width, height = canvas.get_width_height()
    found = [(a, b) for i, (a, x) in enumerate(boxes) for b, y in boxes[:i] if x.padded(-1).overlaps(y.padded(-1))]
    return found + [t for t, b in boxes if b.x0 < -1 or b.y0 < -1 or b.x1 > width + 1 or b.y1 > height + 1]


PLOTS = {
    "share": lambda: share_of_copy("vector_add", source()),
    "share, one size": lambda: share_of_copy("vector_add", source(measured(sizes=[28]))),
    "bars": lambda: bars("fused_muladd", source()),
    "roofline": lambda: roofline(source=source()),
}


def test_the_made_up_records_are_valid():
    assert problems({"machine": MACHINE, "records": measured()}) == []


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_names_its_device_and_unit_and_is_legible(name):
    figure = PLOTS[name]()
    (ax,) = figure.axes
    assert "NVIDIA H200, 2026-11-21" in ax.get_title(loc="left")
    assert "NVIDIA H200, 2026-11-21" in repr(figure)
    units = ("GB/s", "TFLOP/s", "% of copy bandwidth")
    assert any(unit in label for unit in units for label in (ax.get_xlabel(), ax.get_ylabel()))
    assert overlaps(figure) == []


def test_overlapping_texts_are_found():
    figure = PLOTS["bars"]()
    text = figure.axes[0].texts[0]
    figure.axes[0].text(*text.get_position(), "over it")
    assert overlaps(figure)
    figure = PLOTS["bars"]()
    outside = figure.axes[0].texts[0]
    outside.set_in_layout(False)  # else the layout would make room for it
    outside.set_x(5_300)
    assert overlaps(figure)


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_on_paper_so_that_it_fits_light_and_dark(name):
    png, size = PLOTS[name]()._repr_png_()
    pixels = imread(io.BytesIO(png))
    assert size["width"] == 900
    assert pixels.shape[1] == 1800
    assert pixels[0, 0, :3].min() > 0.99 and pixels[..., 3:].min(initial=1) == 1
    assert (pixels[..., :3].mean(axis=-1) < 0.5).sum() > 1000


def test_shares_are_of_the_largest_copy():
    figure = share_of_copy("vector_add", source())
    lines = {line.get_label(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}
    kernels = {"vector_add", "vector_add_grid_stride", "vector_add_simple"}
    assert set(lines) == kernels | {"eager PyTorch", "copy of the same size"}
    copies = lines["copy of the same size"].get_ydata()
    assert copies[-1] == pytest.approx(100)
    assert copies[0] < 5
    moved = 12 * 2**28
    largest = moved / (moved / COPY + 0.002)
    assert lines["vector_add"].get_ydata()[-1] == pytest.approx(100 * moved / (moved / COPY / 1.03 + 0.002) / largest)
    assert lines["eager PyTorch"].get_ydata()[-1] == pytest.approx(100 / 1.1)
    assert list(lines["vector_add"].get_xdata()) == [2**k for k in range(12, 29, 4)]


def test_bars_are_of_the_largest_shape_or_the_given_one():
    assert "[268435456]" in repr(bars("vector_add", source()))
    figure = bars("vector_add", source())
    (ax,) = figure.axes
    widths = {t.get_text(): p.get_width() for t, p in zip(ax.get_yticklabels(), ax.patches, strict=True)}
    assert widths["copy"] == pytest.approx(COPY / 1e6, rel=0.01)
    assert widths["vector_add"] / widths["copy"] == pytest.approx(1.03, rel=0.01)
    assert widths["copy"] / widths["torch.compile, dynamic shapes"] == pytest.approx(1.2)
    assert "[4096]" in repr(bars("vector_add", source(), shape=[4096]))
    with pytest.raises(ResultsError, match=r"not recorded at \[17\]"):
        bars("vector_add", source(), shape=[17])


def test_the_roofline_puts_operators_at_their_intensity():
    figure = roofline(source=source())
    points = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [p.get_xdata()[0] for p in points] == pytest.approx([1 / 12, 2 / 16])
    assert points[0].get_ydata()[0] == pytest.approx(1.03 * COPY / 12 / 1e9, rel=0.01)
    assert "fused_muladd" in repr(figure)


def test_an_operator_that_memory_does_not_bound_is_compared_with_the_peak_of_its_dtype():
    cube = [4096, 4096, 4096]
    ms = 2 * 4096**3 / 33.5e9
    product = record(op="matmul", variant="best", shape=cube, median_ms=ms, bytes=None, of_copy=None)
    figure = roofline(["matmul"], source([*measured(), product]))
    assert [t.get_text() for t in figure.axes[0].get_legend().get_texts()] == ["matmul: 34 TFLOP/s, 50% of the roof"]


def test_an_unknown_gpu_needs_its_peaks():
    unknown = Recorded("x", {**MACHINE, "gpu": "NVIDIA Unheard"}, measured())
    with pytest.raises(ResultsError, match="peaks of NVIDIA Unheard"):
        roofline(source=unknown)
    assert "NVIDIA Unheard" in repr(roofline(source=unknown, compute={"fp32": 20.0}))


def test_missing_records_are_refused(tmp_path):
    for draw in (share_of_copy, bars):
        with pytest.raises(ResultsError, match="nothing is recorded for matmul"):
            draw("matmul", source())
    with pytest.raises(ResultsError, match="float16"):
        roofline(source=source(), dtype="float16")
    with pytest.raises(ResultsError, match="does not exist"):
        bars("vector_add", tmp_path / "none.json")


def test_a_file_can_be_plotted(tmp_path):
    write(tmp_path / "h200.json", {"machine": MACHINE, "records": measured()})
    assert repr(bars("vector_add", tmp_path / "h200.json")) == repr(bars("vector_add", source()))
