"""The instructor's guide: its generated parts are those of the course, and its commands run."""

import re
from pathlib import Path

import pytest
from running import run

from helpers.__main__ import COMMANDS
from helpers.paths import KERNELS, NOTEBOOKS, ROOT
from helpers.practice import registry
from helpers.teaching.handout import guide, mistakes, platforms

TEXT = guide.GUIDE.read_text(encoding="utf-8")
TESTED = (Path(__file__).parent / "test_notebook_platforms.py").read_text(encoding="utf-8")
BLOCK = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[0]  # the others need Slurm


def test_generated_parts_are_up_to_date():
    assert guide.main(["--check"]) == 0


def test_a_part_that_differs_is_found(tmp_path, capsys):
    stale = tmp_path / "guide.md"
    stale.write_text(TEXT.replace("A semicolon is missing.", "Nothing is missing."), encoding="utf-8")
    assert guide.main(["--check"], stale) == 1
    assert guide.main(["--write"], stale) == 0
    assert stale.read_text(encoding="utf-8") == TEXT


def test_every_lesson_and_exercise_is_listed():
    table = guide.lessons()
    for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"):
        assert re.search(rf"^\| {path.name[:2]} .+ \| \d+ \|", table, re.MULTILINE)
    for exercise in registry.exercises():
        assert f"`{exercise.name}`" in table
        assert f"**`{exercise.name}`**" in TEXT


def test_every_exercise_has_two_mistakes_and_every_mistake_a_sentence():
    found = list(mistakes.mistakes())
    for exercise in registry.exercises():
        assert len([one for one in found if one.exercise == exercise.name]) >= 2
    assert all(one.sentence.endswith((".", ")")) and " " in one.sentence for one in found)
    tables = "\n".join(path.read_text(encoding="utf-8") for path in mistakes.TABLES.glob("*.toml"))
    assert len(found) == len(re.findall(r"^\[\w+\.\w+\]", tables, re.MULTILINE)) > 100


def test_a_mistake_without_a_comment_is_refused(tmp_path):
    (tmp_path / "lesson_01.toml").write_text("# All is wrong,\n# twice.\n[roll.other]\n[roll.one]\nexpect = ''\n")
    with pytest.raises(ValueError, match=r"lesson_01.toml:4: \[roll.one\] has no comment"):
        list(mistakes.mistakes(tmp_path))
    (tmp_path / "lesson_01.toml").write_text("# All is wrong,\n# twice.\n[roll.other]\n")
    assert [one.sentence for one in mistakes.mistakes(tmp_path)] == ["All is wrong, twice."]


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    answer = tmp_path / "submissions" / "ann" / "vector_scale.cu"
    answer.parent.mkdir(parents=True)
    answer.write_bytes((KERNELS / "solutions" / "vector_scale.cu").read_bytes())
    for line in BLOCK.splitlines():
        run("bash", "-c", line, cwd=tmp_path)
    assert "ann,10,100" in (tmp_path / "grades" / "grades.csv").read_text()
    assert (tmp_path / "build" / "classroom" / "student.zip").is_file()
    assert (tmp_path / "grades" / "similarity.html").is_file()


def test_every_command_in_the_text_exists():
    used = set(re.findall(r"python -m helpers ([a-z][\w-]*)", TEXT))
    assert {"handout", "grade", "similarity", "guide", "doctor"} <= used <= set(COMMANDS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\n{target}:" in makefile for target in re.findall(r"`make (\w+)", TEXT))
    assert set(re.findall(r"--platform ([a-z]+)`", TEXT)) == set(platforms.PLATFORMS)


def test_every_command_of_a_platform_is_in_its_round_trip():
    for tool in ("nbgrader", "otter"):
        used = set(re.findall(rf"`{tool} (\w+) ", TEXT))
        assert used, tool
        assert [command for command in used if f'"{tool}", "{command}"' not in TESTED] == []


def test_the_afternoon_in_the_text_is_the_one_that_is_ready_made():
    paragraph = TEXT[TEXT.index("For one afternoon:") : TEXT.index("## Common mistakes")]
    course = (platforms.TEMPLATES.parent / "courses" / "afternoon.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)`", paragraph)) == set(re.findall(r"^      (\w+): \d+$", course, re.MULTILINE))
