"""The figure 'Where the bytes go': its tiles are the kernels', its bytes the X-ray's, its speeds those of results/."""

import re

import pytest
import torch
from running import printed_by

import helpers
from helpers.ladder import results
from helpers.ladder.catalogue.matmul import RUNGS
from helpers.ladder.results.records import Recorded
from helpers.pages.figures import climb as page
from helpers.pages.figures.climb import climb, where_bytes_go
from helpers.pages.figures.rungs import AT_OTHER_SIZES, rungs
from helpers.pages.figures.tile_constants import best_tile, constants
from helpers.paths import HELPERS, INSTRUMENT, KERNELS
from kernel_xray.report.run import xray

LADDER = {rung.file.rpartition("/")[2].removesuffix(".cu"): rung for rung in rungs()}
LANES = range(32)
SIZES = {"global": 32, "shared": 128}  # bytes of a sector, and of a wavefront


def test_every_file_of_the_ladder_is_a_rung_with_a_sentence():
    assert [rung.file for rung in LADDER.values()] + list(AT_OTHER_SIZES) == list(dict.fromkeys(RUNGS.values()))
    assert all(len(rung.adds) > 30 for rung in LADDER.values())


def test_constants_are_read_from_the_kernels():
    found = constants("matmul/04_register_1d.cu")
    assert (found["kM"], found["kRows"], found["kThreads"]) == (64, 8, 512)  # the last is 64 / 8 * 64
    assert constants("matmul/12_cluster.cu")["kCluster"] == 2
    assert constants("matmul/12_cluster.cu")["kStages"] == 4  # of the header that it includes
    assert len(best_tile("matmul/08_warp_tile.cu")) == 8


# What the kernels' own headers say: (rung, words with a number, what it must be)
SAID = [
    ("03_tiled", r"(\d+) FLOPs per byte from global memory", lambda r: 1 / r.from_global),
    ("05_register_2d", r"(\d+) FLOPs per byte", lambda r: 1 / r.from_global),
    ("11_wgmma", r": (\d+) FLOPs per byte", lambda r: 1 / r.from_global),
    ("12_cluster", r"instead of 16 and 32: (\d+) FLOPs per byte", lambda r: 1 / r.from_global),
    ("02_coalesced", r"where 01_naive.cu touches (\d+) \+ 1", lambda r: 64 * LADDER["01_naive"].from_global / 32 - 1),
]


@pytest.mark.parametrize(("name", "words", "number"), SAID, ids=[name for name, *_ in SAID])
def test_bytes_are_what_the_kernels_headers_say(name, words, number):
    text = re.sub(r"\n// ?", " ", (KERNELS / LADDER[name].file).read_text(encoding="utf-8"))
    (said,) = re.findall(words, text)
    assert int(number(LADDER[name]) + 0.01) == int(said)


def test_every_rung_loads_no_more_than_the_one_before():
    for dtype in ("float32", "bfloat16"):
        costs = [rung.from_global for rung in LADDER.values() if rung.dtype == dtype]
        assert costs == sorted(costs, reverse=True)


def elements(rung, lane):
    """The elements of its block's tile of c that a lane of the first warp computes."""
    lanes = rung.lanes
    y, x = divmod(lane, lanes.across)
    rows, columns = (
        [first + at * step + i for first, length in spans for i in range(length)]
        for spans, at, step in ((lanes.rows, y, lanes.row_step), (lanes.columns, x, lanes.column_step))
    )
    return {(row, column) for row in rows for column in columns}


@pytest.mark.slow
@pytest.mark.parametrize("name", LADDER)
def test_bytes_and_tiles_are_those_of_the_xray(name):
    rung = LADDER[name]
    flags = ["-gencode=arch=compute_90a,code=sm_90a"] if rung.file.endswith(("wgmma.cu", "cluster.cu")) else None
    source = [KERNELS / rung.file]
    ops = helpers.load(f"figure_{name}", source, is_python_module=False, traced=True, extra_cuda_cflags=flags)
    m, n, k = rung.block[0] * rung.blocks_sharing_b, rung.block[1], 2 * rung.block[2]
    if not k:
        m, n, k = 64, 64, 8
    dtype = getattr(torch, rung.dtype)
    report = xray(getattr(ops, rung.name), torch.ones(m, k, dtype=dtype), torch.ones(k, n, dtype=dtype), film=True)
    loads = [line for line in report.lines if "load" in line.kind and "results" not in line.source]
    bytes_of = {space: size * sum(line.cost for line in loads if line.space == space) for space, size in SIZES.items()}
    flops = 2 * m * n * k
    assert bytes_of["global"] / flops == rung.from_global
    if rung.instruction[0] != rung.warp[0] or rung.lanes:  # wgmma's own reads of shared memory are not traced
        assert bytes_of["shared"] / flops == rung.from_shared
    if rung.lanes:
        stored = {lane: set() for lane in LANES}
        stores = [f for f in report.recorded.frames if (f.space, f.kind) == ("global", "store")]
        first = min(frame.start for frame in stores)
        for frame in stores:
            if frame.block == frame.warp == 0:
                for lane, address in zip(frame.lanes, frame.addresses, strict=True):
                    at = (address - first) // 4
                    stored[lane] |= {divmod(at + i, n) for i in range(frame.size // 4)}
        assert stored == {lane: elements(rung, lane) for lane in LANES}
        rows, columns = ({place[i] for owned in stored.values() for place in owned} for i in (0, 1))
        assert (max(rows) + 1, max(columns) + 1) == rung.warp


# -- The page ----------------------------------------------------------------------------------------------------------


def test_speeds_are_the_recorded_ones():
    data = climb()
    assert data["machine"] == results.recorded("matmul")[0].label
    for packed, rung in zip(data["rungs"], LADDER.values(), strict=True):
        record = results.find("matmul", rung.name, dtype=rung.dtype, shape=(4096,) * 3)
        assert packed["tflops"] == (record and record["flops"] / record["median_ms"] / 1e9)
        assert packed["of_cublas"] == (record and record["of_cublas"])
        assert packed["peak"] in data["peaks"]


def test_a_rung_without_a_record_is_on_the_page_without_a_speed(monkeypatch):
    monkeypatch.setattr(page.results, "find", lambda *_, **__: None)
    data = climb()
    assert len(data["rungs"]) == len(LADDER)
    assert {rung["tflops"] for rung in data["rungs"]} == {None}
    assert repr(page.still(data)).startswith("the matmul ladder")


def test_nothing_recorded_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setattr(page.results, "recorded", lambda *_: list[Recorded]())
    with pytest.raises(results.ResultsError, match="python -m helpers bench matmul --record"):
        where_bytes_go()


def test_the_figure_is_a_page_with_a_picture(tmp_path):
    figure = where_bytes_go()
    figure.save(tmp_path / "bytes.html")
    page = (tmp_path / "bytes.html").read_text(encoding="utf-8")
    assert len(page.encode()) < 40_000
    outside = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?://|<link|<img|import\s|fetch\(", outside)
    text = re.search(r'<img class="ladder-still" alt="([^"]+)"', figure._repr_html_())[1]
    recorded = {rung["file"].rpartition("/")[2].removesuffix(".cu") for rung in climb()["rungs"] if rung["tflops"]}
    assert len(recorded) > 10
    assert {name for name in LADDER if f"{name}: " in text} == recorded


def test_the_page_draws_the_lanes_elements(tmp_path):
    """The script's own elements of each lane against those of `elements`, which the X-ray confirms."""
    report = INSTRUMENT / "kernel_xray" / "report"
    scripts = [report / "shell.js", report / "lanes.js", HELPERS / "pages" / "figures" / "climb.js"]
    program = """
const rungs = data.rungs.filter((rung) => rung.lanes);
const boxes = (rung, lane) => rectangles(spansOf(rung, lane, 'rows'), spansOf(rung, lane, 'columns'));
const drawn = rungs.map((rung) => [...Array(32).keys()].map((lane) => boxes(rung, lane)));
const words = rungs.every((rung) => blockTold(rung) && warpTold(rung));
console.log(JSON.stringify([words, drawn]));
"""
    words, drawn = printed_by(scripts, program, climb(), tmp_path)
    assert words
    for rung, lanes in zip((rung for rung in LADDER.values() if rung.lanes), drawn, strict=True):
        for lane, boxes in enumerate(lanes):
            places = ((box, i, j) for box in boxes for i in range(box["height"]) for j in range(box["width"]))
            covered = [(box["y"] + i, box["x"] + j) for box, i, j in places]
            assert len(covered) == len(set(covered))
            assert set(covered) == elements(rung, lane)
