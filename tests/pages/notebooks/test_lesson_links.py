"""Lessons lead to one another: each lesson that prose names is a link, and the end of each leads to the next."""

import itertools
import re
from pathlib import Path

import nbformat
import pytest

from helpers import results
from helpers.ladder.catalogue.matmul import RUNGS
from helpers.pages.notebooks.links import linked, number_of
from helpers.paths import NOTEBOOKS, ROOT

LESSONS = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("As in lesson 02.", "As in [lesson 02](02_elementwise_mult.ipynb)."),
        ("Lesson 06's kernel", "[Lesson 06](06_bias_gelu_float4.ipynb)'s kernel"),
        ("see lesson\n08", "see [lesson\n08](08_matmul.ipynb)"),
        ("lessons 04 and 05", "[lessons 04](04_bias_gelu.ipynb) and [05](05_bias_gelu_half.ipynb)"),
    ],
)
def test_another_lesson_becomes_a_link(text, wanted):
    assert linked(text, "03") == wanted
    assert linked(wanted, "03") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "this is lesson 03",
        "in 2026, 12 lessons",
        "lesson 77",
        "## After lesson 02",
        "[the matmul of lesson 08](08_matmul.ipynb)",
        "`# lesson 02`",
        "```\nlesson 02\n```",
        '<img alt="lesson 02">',
    ],
)
def test_text_that_names_no_other_lesson_stays(text):
    assert linked(text, "03") == text


def test_the_end_of_each_lesson_leads_to_the_next_one():
    for path, after in itertools.pairwise(LESSONS):
        end = nbformat.read(path, as_version=4).cells[-1].source
        assert f"]({after.name})" in end.partition("## Next")[2], path.name


def test_links_to_files_lead_to_files():
    for path in LESSONS:
        notebook = nbformat.read(path, as_version=4)
        assert number_of(notebook) == path.name[:2]
        prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose):
            assert re.match(r"https?:", target) or (path.parent / target).exists(), f"{path.name}: {target}"


NAMED = re.compile(r"`((?:docs|helpers|kernels|notebooks|results|tests)/[\w./-]+)`")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_files_that_a_lesson_names_exist(lesson):
    prose = [cell.source for cell in nbformat.read(lesson, as_version=4).cells if cell.cell_type == "markdown"]
    assert [name for name in NAMED.findall("\n".join(prose)) if not (ROOT / name).exists()] == []


def unshown_rungs(sources: list[str]) -> list[str]:
    """Rungs of the matmul ladder whose file no cell of the lessons shows or links."""
    showing = "\n".join(source for source in sources if re.search(r"show_kernel\(|show_change\(|\]\(", source))
    return [rung for rung, file in RUNGS.items() if Path(file).stem not in showing]


def sources_of_the_ladder() -> list[str]:
    lessons = [lesson for lesson in LESSONS if "08" <= lesson.name[:2] <= "11"]
    return [cell.source for lesson in lessons for cell in nbformat.read(lesson, as_version=4).cells]


def test_each_rung_of_the_ladder_is_shown_and_recorded():
    assert unshown_rungs(sources_of_the_ladder()) == []
    measured = {record["variant"] for found in results.recorded("matmul") for record in found.records}
    assert [rung for rung in RUNGS if rung not in measured] == []


def test_a_rung_that_no_lesson_shows_is_found():
    sources = [source for source in sources_of_the_ladder() if "12_split" not in source]
    assert unshown_rungs(sources) == [rung for rung, file in RUNGS.items() if "12_split" in file]
