"""Films: the frames of a run add up to its report, hold what lanes loaded and stored, and fit one small page."""

import re
import struct
from collections import Counter
from dataclasses import replace

import pytest
import torch
from running import data_of, printed_by
from simt_programs import operators

import helpers
from helpers.paths import INSTRUMENT, KERNELS, ROOT
from helpers.upkeep.validation.counted import LAUNCHES, case
from kernel_xray import film
from kernel_xray.report import run
from kernel_xray.report.film_data import sectors, wavefronts
from kernel_xray.report.run import xray
from kernel_xray.runtime.libsimt import is_clang

FAULTY = ROOT / "kernel_xray" / "tests" / "build" / "strided.cu"
EVERY_BLOCK = range(64)  # as many as are traced
# Kernels of the course, with shapes of at most 64 blocks.
SHAPES = {
    "who_is_where": (1000,),
    "two_ways": (1000,),
    "vector_add_simple": (1000,),
    "vector_add_grid_stride": (1000,),
    "vector_add": (1003,),
    "fused_muladd": (1000,),
    "bias_gelu_simple": (7, 100),
    "bias_gelu": (7, 100),
    "softmax": (5, 300),
    "matmul_naive": (33, 20, 12),
    "matmul_coalesced": (33, 20, 12),
    "matmul_tiled_unpadded": (40, 33, 20),
    "matmul_tiled_padded": (40, 33, 20),
}


def call(name, **changes):
    """A call of a traced kernel of the course, on small tensors."""
    operator, kernel, launch = next(each for each in LAUNCHES if each[1].name == name)
    launch = replace(launch, shape=SHAPES[name], **changes)
    return case(operator, kernel, launch).prepared(torch.device("cpu"), True)


def sums(report):
    """What the film's requests cost, and what the report says: by line, kernel, space and kind."""
    filmed, counted = Counter(), Counter()
    for frame in report.recorded.frames:
        if frame.kind:
            key = frame.file, frame.line, report.launches[frame.launch].kernel, frame.space, frame.kind
            filmed[(*key, "requests")] += 1
            filmed[(*key, "cost")] += frame.cost
            filmed[(*key, "ideal")] += frame.ideal
    for line in report.lines:
        key = line.file, line.line, line.kernel, line.space, line.kind
        counted.update({(*key, name): getattr(line, name) for name in ("requests", "cost", "ideal")})
    return filmed, counted


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_frames_add_up_to_the_report(name, monkeypatch):
    monkeypatch.setattr(run, "MOST_FRAMES", 10**6)
    report = xray(call(name), film=EVERY_BLOCK)
    assert all(launch.traced_blocks == launch.blocks <= len(EVERY_BLOCK) for launch in report.launches)
    assert report.recorded.left_out == 0
    filmed, counted = sums(report)
    assert counted
    assert filmed == counted


@pytest.fixture(scope="module")
def tiled():
    """The report of matmul_tiled_unpadded on transposed 64 x 64 matrices, with the film of its first block."""
    ops = helpers.load("matmul_tiled_traced", [KERNELS / "matmul" / "03_tiled.cu"], is_python_module=False, traced=True)
    turned = torch.randn(64, 64).t(), torch.randn(64, 64).t()
    return [xray(function, *turned, film=True) for function in (ops.matmul_tiled_unpadded, ops.matmul_tiled_padded)]


faulty = operators(helpers.load, "film_faulty", [FAULTY], is_python_module=False, traced=True)


def test_a_film_changes_no_count(faulty):
    x = torch.randn(1024)
    plain, filmed = xray(faulty.scale, x, 2.0, 32, seed=1), xray(faulty.scale, x, 2.0, 32, seed=1, film=True)
    assert plain.recorded is None
    assert plain.lines == filmed.lines
    assert {frame.block for frame in filmed.recorded.frames} == {0}


def test_frames_hold_what_lanes_load_and_store(faulty):
    x = torch.arange(64, dtype=torch.float32)
    report = xray(faulty.scale, x, 2.0, 1, film=True)
    load, store = (next(f for f in report.recorded.warps()[0, 0, 1] if f.kind == kind) for kind in ("load", "store"))
    assert load.region == "x (64 float32)"
    assert [address - load.start for address in load.addresses] == [4 * i for i in range(32, 64)]
    assert struct.unpack("<32f", bytes.fromhex(load.values)) == tuple(x[32:].tolist())
    assert struct.unpack("<32f", bytes.fromhex(store.values)) == tuple((2 * x[32:]).tolist())
    assert (load.cost, load.ideal, load.lanes) == (4, 4, list(range(32)))


def test_one_sector_is_not_sectors(faulty):
    """In what the page says of a line in all blocks; the script says the rest."""
    for size, said in ((1, "load 1 sector (best 1)"), (9, "load 2 sectors (best 2)")):
        (side,) = data_of(xray(faulty.scale, torch.zeros(size), 2.0, 1, film=True).film().page)["sides"]
        assert any(said in total for total in side["totals"].values())


def test_barriers_and_divergence_are_frames(tiled, faulty):
    unpadded, _ = tiled
    for frames in unpadded.recorded.warps().values():
        assert sum(frame.what == "block barrier" for frame in frames) == 2 * 64 // 32
    report = xray(faulty.scale, torch.zeros(40), 2.0, 1, film=True)
    (partial,) = [frame for frame in report.recorded.warps()[0, 0, 1] if frame.kind == "load"]
    assert partial.lanes == list(range(8))


def test_every_run_has_the_same_frames(faulty):
    def frames(seed):
        report = xray(faulty.scale, torch.zeros(64), 2.0, 1, film=True, seed=seed)
        return [[(f.what, f.line, f.mask, f.kind) for f in warp] for warp in report.recorded.warps().values()]

    first = frames(0)
    xray(faulty.race, torch.zeros(64), film=True)
    assert all(frames(seed) == first for seed in range(1, 4))
    whats = [{what for what, *_ in warp} for warp in first]
    assert whats == [{"step", "request"}] * 2 + [{"step"}] * 6  # 64 elements for 8 warps


def test_the_film_begins_in_the_kernel(faulty):
    report = xray(faulty.scale, torch.zeros(64), 2.0, 1, film=True)
    (launch,) = report.launches
    first = 0 if is_clang() else launch.line  # clang++ gives these steps no line
    assert first in {frame.line for frame in report.recorded.frames}
    (side,) = data_of(report.film().page)["sides"]
    assert launch.line not in {operation["line"] for operation in side["operations"]}


def test_the_page_is_one_small_file_without_a_network(tiled, tmp_path):
    unpadded, padded = tiled
    unpadded.save(tmp_path / "film.html")
    page = (tmp_path / "film.html").read_text()
    assert len(page.encode()) <= 300_000
    outside = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?://|<link|<img|import\s|fetch\(", outside)
    assert "default-src 'none'" in page
    both = film(unpadded, padded, titles=("without <padding>", "padded"))
    assert len(data_of(both.page)["sides"]) == 2
    assert "without &lt;padding&gt; and padded</h1>" in both.page
    assert both._repr_html_().startswith('<iframe title="film of a warp"')
    assert "8 of the 32 filmed warps are here." in data_of(page)["notes"]


def test_what_is_left_out_is_said(tiled, monkeypatch, faulty):
    notes = data_of(film(tiled[0], warps=2, frames=50).page)["notes"]
    assert notes[0] == "2 of the 32 filmed warps are here."
    assert notes[1].startswith("Only the first 50 steps of a warp are here; the longest has 1")
    monkeypatch.setattr(run, "MOST_FRAMES", 3)
    report = xray(faulty.scale, torch.zeros(1024), 2.0, 1, film=True)
    assert len(report.recorded.frames) == 3
    assert report.recorded.left_out > 0
    notes = data_of(report.film().page)["notes"]
    assert f"The recording ended early: it left out {report.recorded.left_out} steps of all warps." in notes
    assert "scale_kernel: 1 of 4 blocks filmed; lines' totals are of all." in notes


def test_it_opens_at_the_fault(faulty):
    report = xray(faulty.race, torch.zeros(64), film=True)
    data = data_of(report.film().page)
    (side,) = data["sides"]
    warp = side["warps"][side["start"]]
    operation = side["operations"][warp["frames"][data["at"]][0]]
    assert (operation["file"], operation["line"]) == (FAULTY.name, report.faults[0].line)
    assert list(side["faults"]) == [f"{FAULTY.name}:{report.faults[0].line}"]


def test_it_opens_at_the_last_write_of_an_element(faulty):
    """Of warp 1, which is not the first; a write that was not filmed is refused."""
    x = torch.zeros(1024)
    report = xray(faulty.scale, x, 2.0, 1, film=[0], who_wrote=True, seed=0)
    wrote = next(w for w in report.writers if (w.block, w.thread) == (0, 45))
    data = data_of(film(report, wrote=wrote).page)
    (side,) = data["sides"]
    warp = side["warps"][side["start"]]
    assert warp["name"].endswith("block (0, 0, 0), warp 1")
    operation = side["operations"][warp["frames"][data["at"]][0]]
    assert (operation["kind"], operation["region"]) == ("store", wrote.name)
    assert f"It opens where lane 13 of this warp writes element {wrote.offset // 4} of {wrote.name}." in data["notes"]
    for change in ({"block": 1}, {"offset": 0}, {"name": "y"}, {"thread": 3}):
        with pytest.raises(ValueError, match="the film has no step in which thread"):
            film(report, wrote=replace(wrote, **change))


@pytest.mark.parametrize(
    ("wrong", "error"), [([], ValueError), ([-1], ValueError), ("0", TypeError), (3, TypeError), ([0.5], TypeError)]
)
def test_a_wrong_choice_of_blocks_is_refused(faulty, wrong, error):
    with pytest.raises(error, match=r"film is .*; give"):
        xray(faulty.scale, torch.zeros(8), 2.0, 1, film=wrong)


def test_a_report_without_a_film_says_how_to_get_one(faulty, tiled):
    report = xray(faulty.scale, torch.zeros(8), 2.0, 1)
    for wrong, message in (
        (report.film, "film=True"),
        (lambda: film(*tiled, *tiled), "takes one or two"),
        (lambda: film(*tiled, titles=("one",)), "give as many"),
        (lambda: film(tiled[0], warps=0), "warps is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        ([4 * i for i in range(32)], 4, (4, 4)),
        ([4 * i + 4 for i in range(32)], 4, (5, 4)),
        ([128 * i for i in range(32)], 4, (32, 4)),
        ([64] * 32, 4, (1, 1)),
        ([16 * i for i in range(32)], 16, (16, 16)),
    ],
)
def test_sectors(addresses, size, expected):
    assert sectors(addresses, size) == expected


@pytest.mark.parametrize(
    ("address", "size", "expected"),
    [
        (lambda lane: 4 * lane, 4, (1, 1)),
        (lambda lane: 128 * lane, 4, (32, 1)),
        (lambda lane: 132 * lane, 4, (1, 1)),
        (lambda lane: 0, 4, (1, 1)),
        (lambda lane: 8 * lane, 8, (2, 2)),
        (lambda lane: 16 * lane, 16, (4, 4)),
        (lambda lane: 16 * (lane // 2), 16, (2, 2)),  # neighbours share an address: two parts are served as one
    ],
)
def test_wavefronts(address, size, expected):
    assert wavefronts({lane: address(lane) for lane in range(32)}, size) == expected


def test_the_page_draws_what_the_frames_cost(tiled, tmp_path):
    """The script's own sectors and banks, of every frame of the page, against the costs that Python computed."""
    scripts = [INSTRUMENT / "kernel_xray" / "report" / name for name in ("shell.js", "lanes.js", "film.js")]
    program = """
let requests = 0, wrong = 0;
for (const side of data.sides) for (const warp of side.warps) for (const packed of warp.frames) {
  const frame = unpack(side, packed);
  if (!isRequest(frame)) continue;
  requests += 1;
  const drawn = (frame.space === 'shared' ? wavefrontsOf(frame) : sectorsOf(frame)).length;
  if (drawn !== frame.cost || !told(frame) || !valueText(frame, 0)) wrong += 1;
}
console.log(JSON.stringify([requests, wrong]));
"""
    requests, wrong = printed_by(scripts, program, data_of(tiled[0].film().page), tmp_path)
    assert requests > 1000
    assert wrong == 0
