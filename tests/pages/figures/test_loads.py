"""The figure 'What does a load cost?': its arithmetic, in Python and in JavaScript, is that of the X-ray."""

import random
from dataclasses import asdict
from pathlib import Path

import nbformat
import pytest
import torch
from running import printed_by
from simt_programs import load_cases

import helpers
from helpers.pages.figures.loads import PRESETS, Access, load_cost
from helpers.paths import HELPERS, INSTRUMENT, KERNELS, NOTEBOOKS
from kernel_xray.report.run import xray

SHARED_BYTES = 32 * 1024  # of patterns.cu
REPORT = INSTRUMENT / "kernel_xray" / "report"
SCRIPTS = [REPORT / "shell.js", REPORT / "lanes.js", HELPERS / "pages" / "figures" / "loads.js"]


def accesses(number: int) -> list[Access]:
    """Random accesses, among them those of the page's presets, that fit the memory of patterns.cu."""
    draw, found = random.Random(1), [preset.access for preset in PRESETS]
    while len(found) < number:
        access = Access(
            draw.choice(["global", "shared"]),
            draw.choice([1, 2, 4, 8, 16]),
            draw.choice([1, 2, 4, 8, 16, 32]),
            draw.choice([0, 1, 1, 2, 3, 4, 8, 16, 31, 32, 33, draw.randrange(65)]),
            draw.choice([0, 1, 4, 8, 16, 32, 33, 64, 128, 129, draw.randrange(130)]),
            draw.choice([0, 0, 1, 2, draw.randrange(34)]),
        )
        if max(access.addresses()) + access.size <= SHARED_BYTES:
            found.append(access)
    return found


ACCESSES = accesses(160)


@pytest.fixture(scope="module")
def counted():
    """What the X-ray counts for each access: cost and ideal of its one request."""
    source = Path(__file__).with_name("patterns.cu")
    pattern = load_cases(source, "figure_patterns", traced=True).pattern
    data, sink = torch.zeros(2 * SHARED_BYTES, dtype=torch.uint8), torch.zeros(1, dtype=torch.int32)
    costs = []
    for access in ACCESSES:
        numbers = [access.size, access.across, access.stride, access.pitch, access.offset]
        report = xray(pattern, [data, sink], [access.space == "shared", *numbers])
        (line,) = [line for line in report.lines if line.kind == "load" and line.requests == 1]
        assert (line.space, line.size) == (access.space, access.size)
        costs.append((line.cost, line.ideal))
    return costs


def test_the_patterns_are_of_many_kinds(counted):
    assert len({(access.space, access.size) for access in ACCESSES}) == 10
    for space, least in (("global", 20), ("shared", 8)):
        costs = {cost for access, (cost, _) in zip(ACCESSES, counted, strict=True) if access.space == space}
        assert {1, 32} <= costs and len(costs) >= least


def test_the_costs_are_those_of_the_xray(counted):
    assert [access.cost() for access in ACCESSES] == counted


def test_the_pages_costs_are_those_of_the_xray(counted, tmp_path):
    program = """
const accesses = data.map((each) => requestOf(each));
const told = accesses.every((each) => explained(each).length > 20);
console.log(JSON.stringify([told, accesses.map((each) => [costOf(each).cost, costOf(each).ideal])]));
"""
    told, costs = printed_by(SCRIPTS, program, [asdict(access) for access in ACCESSES], tmp_path)
    assert told
    assert [tuple(cost) for cost in costs] == counted


@pytest.mark.parametrize(
    ("access", "cost"),
    [
        (Access(), (4, 4)),
        (Access(offset=1), (5, 4)),
        (Access(stride=2), (8, 4)),
        (Access(across=8, pitch=64), (4, 4)),
        (Access(across=8, pitch=64, offset=4), (8, 4)),
        (Access("shared", across=1, pitch=32), (32, 1)),
        (Access("shared", across=1, pitch=33), (1, 1)),
        (Access("shared", 8, stride=2), (4, 2)),
    ],
)
def test_costs_that_can_be_reckoned_by_hand(access, cost):
    assert access.cost() == cost


# -- The presets are what the lessons' kernels do ----------------------------------------------------------------------

P, Q = torch.ones(64, 64), torch.ones(64, 64)
ARGUMENTS = {
    "vector_add_simple": lambda: torch.ones(2, 4096).unbind(0),
    "add_chunked": lambda: torch.ones(3, 4096).unbind(0),
    "vector_add": lambda: torch.ones(2, 4096).unbind(0),
    "matmul_naive": lambda: (P, Q),
    "matmul_coalesced": lambda: (P, Q),
    "matmul_tiled_unpadded": lambda: (P.t(), Q.t()),
    "matmul_tiled_padded": lambda: (P.t(), Q.t()),
    "matmul_vectorised": lambda: (torch.ones(128, 128), torch.ones(128, 128)),
}


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_is_an_access_of_its_lessons_kernel(preset):
    file, function, words = preset.at
    name = "figure_" + file.replace("/", "_").removesuffix(".cu")
    ops = helpers.load(name, [KERNELS / file], is_python_module=False, traced=True)
    report = xray(getattr(ops, function), *ARGUMENTS[function](), film=True)
    sources = {(line.file, line.line): line.source for line in report.lines}
    access = preset.access
    wanted = [address - access.addresses()[0] for address in access.addresses()]
    found = [
        frame
        for frame in report.recorded.frames
        if (frame.space, frame.size) == (access.space, access.size)
        and words in sources[frame.file, frame.line]
        and [address - frame.addresses[0] for address in frame.addresses] == wanted
    ]
    assert found
    assert {(frame.cost, frame.ideal) for frame in found} == {access.cost()}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_a_preset_names_the_lesson_of_its_kernel(preset):
    (lesson,) = NOTEBOOKS.glob(f"{preset.lesson}_*.ipynb")
    shown = "\n".join(cell.source for cell in nbformat.read(lesson, as_version=4).cells)
    # Lesson 06 loads four elements at a time in a kernel of its own, of which vector_add is the simplest case.
    assert preset.at[1] in shown or (preset.at[1], lesson.stem) == ("vector_add", "06_bias_gelu_float4")


# -- The page ----------------------------------------------------------------------------------------------------------


def test_the_figure_is_a_page_with_a_picture(tmp_path):
    figure = load_cost("shared")
    figure.save(tmp_path / "load.html")
    assert len((tmp_path / "load.html").read_bytes()) < 40_000
    assert repr(figure).startswith("<load_cost figure, ")
    shown = figure._repr_html_()
    assert 'alt="a row of a tile: 1 wavefront, 1 at best a column of a tile: 32 wavefronts, 1 at best"' in shown
    assert 'src="data:image/png;base64,' in shown
    assert len(shown) < 150_000


def test_another_space_is_refused():
    with pytest.raises(ValueError, match="space is 'local'"):
        load_cost("local")


def test_the_presets_can_be_set_with_the_pages_controls():
    body = (HELPERS / "pages" / "figures" / "loads.html").read_text(encoding="utf-8")
    for preset in PRESETS:
        access = preset.access
        assert 0 <= access.stride <= 64 and 0 <= access.pitch <= 129 and 0 <= access.offset <= 33
        assert f'<option value="{access.size}">' in body
    for knob, most in (("stride", 64), ("pitch", 129), ("offset", 33)):
        assert f'<input id="{knob}" type="range" min="0" max="{most}">' in body
