"""CONTRIBUTING.md keeps its promise: every command in it runs, and every file that it names is there."""

import re
import textwrap

import pytest
import yaml
from running import run

from helpers.paths import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FOLDERS = ("docs", "helpers", "kernel_xray", "kernels", "notebooks", "results", "tests")


def commands(text: str) -> list[str]:
    """The lines of the blocks marked `sh`."""
    blocks = re.findall(r"^( *)```sh\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL)
    return [line for _, block in blocks for line in textwrap.dedent(block).splitlines()]


def missing_files(text: str) -> list[str]:
    """Paths in code marks or links that do not exist; those with a NAME or NN to be filled in are left out."""
    named = re.findall(r"`([\w./]+/[\w./]*)`|\]\(([\w./]+)(?:#[\w-]+)?\)", text)
    paths = [path for pair in named for path in pair if path and not re.search(r"NAME|NN|my_gpu", path)]
    return [path for path in paths if path.split("/")[0] in FOLDERS and not (ROOT / path).exists()]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands(TEXT))
def test_every_command_runs(command):
    run("bash", "-c", command)


def test_there_are_commands_for_each_recipe():
    recipes = re.findall(r"^## Add .*?(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    assert len(recipes) >= 5
    assert all(commands(recipe) for recipe in recipes)


def test_a_command_that_fails_is_seen():
    (planted,) = commands("1. Do:\n\n   ```sh\n   python -m helpers no-such-command\n   ```\n")
    assert run("bash", "-c", planted, status=None).returncode != 0


def test_every_file_is_there():
    assert missing_files(TEXT) == []
    assert missing_files((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")) == []
    assert missing_files("see `tests/no_such_folder/`") == ["tests/no_such_folder/"]


def test_the_changelog_has_the_version_of_the_package():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+?)(?: - |$)", changelog, re.MULTILINE)[:2] == ["Unreleased", version]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == version
    assert cited["license"] == "BSD-3-Clause"
    assert {"cff-version", "message", "title", "authors", "date-released"} <= set(cited)


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda p: p.stem)
def test_issue_templates_are_forms(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert "blank_issues_enabled" in form
        return
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
