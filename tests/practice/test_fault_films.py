"""The film in a verdict: of the warp that had the fault, opened there, small, and only where there is a fault."""

import base64
import gzip
import html
import json
import re

import pytest

from helpers.practice.judge import check_cell
from helpers.practice.verdict import solution_source

RIGHT = solution_source("vector_scale").text
UNBOUNDED = RIGHT.replace("if (i < n) ", "")
RACING = RIGHT.replace(
    "if (i < n) out[i] = factor * x[i];", "if (i < n) out[i] = factor * x[i];\n  if (n > 1) out[0] = x[i % n];"
)
DOUBLED = RIGHT.replace("factor *", "2 * factor *")


def data_of(film):
    """The data of a film's page, unpacked from its frame."""
    page = gzip.decompress(base64.b64decode(re.search(r'atob\("([^"]+)"\)', html.unescape(film))[1])).decode()
    return json.loads(gzip.decompress(base64.b64decode(re.search(r'<script id="data"[^>]*>([^<]+)<', page)[1])))


@pytest.mark.parametrize(("answer", "kind"), [(UNBOUNDED, "out-of-bounds"), (RACING, "race")])
def test_a_fault_is_filmed(answer, kind):
    verdict = check_cell("vector_scale", answer)
    assert kind in verdict.message
    assert len(verdict.film) < 25_000
    assert f"{verdict.film}</details>" in verdict._repr_html_() and verdict.film not in repr(verdict)
    data = data_of(verdict.film)
    (side,), ((warp,),) = data["sides"], [side["warps"] for side in data["sides"]]
    ((place, words),) = side["faults"].items()
    assert words.startswith(f"{kind}, thread ")
    shown = side["operations"][warp["frames"][data["at"]][0]]
    assert f"{shown['file']}:{shown['line']}" == place
    assert f"cell:{shown['line']}" in verdict.message


@pytest.mark.parametrize("answer", [RIGHT, DOUBLED])
def test_without_a_fault_there_is_no_film(answer):
    verdict = check_cell("vector_scale", answer)
    assert verdict.film == "" and "<iframe" not in verdict._repr_html_()
