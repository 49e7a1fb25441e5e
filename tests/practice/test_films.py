"""The film in a verdict: of the warp that had the fault or wrote the first wrong element, opened there, and small."""

import base64
import gzip
import html
import re

import pytest
from running import data_of

from helpers import target
from helpers.practice.assistance import solution_source
from helpers.practice.judge import check_cell

RIGHT = solution_source("vector_scale").text
STORE = "if (i < n) out[i] = factor * x[i];"
UNBOUNDED = RIGHT.replace("if (i < n) ", "")
RACING = RIGHT.replace(STORE, f"{STORE}\n  if (n > 1) out[0] = x[i % n];")
DOUBLED = RIGHT.replace("factor *", "2 * factor *")
DOUBLED_LATER = RIGHT.replace("factor *", "(i < 40 ? 1 : 2) * factor *")
ONE_UNWRITTEN = RIGHT.replace("(i < n)", "(i != 40 && i < n)")
# The elements of a block in the order in which its threads come: right as long as that is the order of their numbers.
IN_TURN = RIGHT.replace(
    STORE,
    """__shared__ unsigned next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  if (i < n) out[i] = factor * x[i - threadIdx.x + atomicAdd(&next, 1u)];""",
)


def opened(verdict):
    """The one side of a verdict's film, its one warp, and the operation and the frame at which it opens."""
    assert len(verdict.film) < 25_000
    assert verdict.film in verdict._repr_html_() and verdict.film not in repr(verdict)
    packed = re.search(r'atob\("([^"]+)"\)', html.unescape(verdict.film))[1]  # in the frame
    data = data_of(gzip.decompress(base64.b64decode(packed)).decode())
    (side,), ((warp,),) = data["sides"], [side["warps"] for side in data["sides"]]
    frame = warp["frames"][data["at"]]
    return data, side, warp, side["operations"][frame[0]], frame


@pytest.mark.parametrize(
    ("answer", "kind"), [pytest.param(UNBOUNDED, "out-of-bounds", marks=pytest.mark.slow), (RACING, "race")]
)
def test_a_fault_is_filmed(answer, kind):
    verdict = check_cell("vector_scale", answer)
    assert kind in verdict.message
    assert "opened at the fault</summary>" in verdict.film
    _, side, warp, operation, (_, lanes, addresses, *_) = opened(verdict)
    ((place, words),) = side["faults"].items()
    assert words.startswith(f"{kind}, thread ")
    assert f"{operation['file']}:{operation['line']}" == place
    assert f"cell:{operation['line']}" in verdict.message
    thread = int(re.search(r"thread \((\d+), 0, 0\)", words)[1])
    assert warp["faulty"] >> thread % 32 & 1 and warp["faulty"] & lanes == warp["faulty"]
    if kind == "out-of-bounds":  # the access that was never made is drawn, past the end of its tensor
        assert warp["faulty"] == 1 << thread % 32
        verb, region = re.search(r"(reads|writes) 4 bytes just past the end of (.*)", words).groups()
        assert (operation["kind"], operation["region"]) == ("load" if verb == "reads" else "store", region)
        index = (lanes & (warp["faulty"] - 1)).bit_count()
        offset = sum(side["addresses"][addresses][: index + 1]) - operation["start"]
        assert offset == 4 * int(re.search(r"\((\d+) float32\)", region)[1])
    else:
        assert operation["kind"] == "store" and operation["region"].startswith("out (")


ORDERED = pytest.mark.skipif(target == "gpu", reason="a GPU does not run threads in the order of their numbers")


@pytest.mark.slow  # builds an answer; the film of a fault, which is made the same way, is quick
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (DOUBLED, r"first +\[0\]"),
        (DOUBLED_LATER, r"n = 255: .*\n  first +\[40\]"),
        pytest.param(IN_TURN, r"(?s)first +\[\d+\].*in the order of their numbers, the result is right", marks=ORDERED),
    ],
)
def test_the_write_of_the_first_wrong_element_is_filmed(answer, expected):
    verdict = check_cell("vector_scale", answer)
    assert verdict.kind == "rejected" and re.search(expected, verdict.message)
    assert "opened where it wrote the first wrong element</summary>" in verdict.film
    data, side, warp, operation, (_, lanes, addresses, *_) = opened(verdict)
    assert side["faults"] == {}
    element = int(re.search(r"first +\[(\d+)\]", verdict.message)[1])
    wrote = re.search(rf"\[{element}\]: block (\d+), thread (\d+)  <- the first", verdict.message)
    block, thread = map(int, wrote.groups())
    assert warp["name"] == f"vector_scale_kernel, block ({block}, 0, 0), warp {thread // 32}"
    assert operation["kind"] == "store" and operation["region"].startswith("out (")
    assert lanes >> thread % 32 & 1
    written = [sum(side["addresses"][addresses][: i + 1]) - operation["start"] for i in range(lanes.bit_count())]
    assert 4 * element in written
    where = f"element {element} of {operation['region']}."
    assert f"It opens where lane {thread % 32} of this warp writes {where}" in data["notes"]


# That a right answer has no film is in test_exercises.py too.
@pytest.mark.slow  # builds an answer
@pytest.mark.parametrize("answer", [pytest.param(RIGHT, marks=pytest.mark.slow), ONE_UNWRITTEN])
def test_where_nothing_was_written_wrong_there_is_no_film(answer):
    verdict = check_cell("vector_scale", answer)
    assert verdict.accepted == (answer == RIGHT)
    assert ("[40]: no thread  <- the first wrong one" in verdict.message) == (answer == ONE_UNWRITTEN)
    assert verdict.film == "" and "<iframe" not in verdict._repr_html_()
