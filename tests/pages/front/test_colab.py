"""The lessons as Colab opens them, and that one runs from an empty folder. The other starts in the cloud agree too."""

import asyncio
import json
import os
import re
import subprocess

import nbformat
import pytest
import yaml

from helpers.pages.front import colab
from helpers.pages.notebooks.course import execute
from helpers.paths import NOTEBOOKS, ROOT

NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
# Properties of devcontainer.json, of those in https://containers.dev/implementors/json_reference/. The file conforms to
# schemas/devContainer.base.schema.json of https://github.com/devcontainers/spec (November 2026).
DEVCONTAINER = {"name", "image", "hostRequirements", "onCreateCommand", "customizations"}


@pytest.fixture(scope="module")
def branch(tmp_path_factory):
    out = tmp_path_factory.mktemp("colab")
    assert colab.main([str(out), "--repository", "octocat/ladder", "--clone", ROOT.as_uri()]) == 0
    return out


def test_every_lesson_has_its_badge_and_the_first_cell(branch):
    written = {path.name: nbformat.read(path, as_version=4) for path in (branch / "notebooks").iterdir()}
    assert sorted(written) == NAMES
    for name, notebook in written.items():
        nbformat.validate(notebook)
        address = f"https://colab.research.google.com/github/octocat/ladder/blob/colab/notebooks/{name}"
        assert notebook.cells[0].source.startswith(f"[![Open in Colab]({colab.COLAB_BADGE})]({address})\n\n# ")
        assert notebook.cells[1].id == colab.MARK
        assert ROOT.as_uri() in notebook.cells[1].source
        assert [cell.source for cell in notebook.cells if cell.id == colab.MARK] == [notebook.cells[1].source]
        assert notebook.metadata.accelerator == "GPU"
        links = [link for c in notebook.cells if c.cell_type == "markdown" for link in colab.LINK.findall(c.source)]
        assert links == []


def test_the_rest_of_a_lesson_is_unchanged(branch):
    """Two-sided: the lessons do have links to others, and these lead to Colab."""
    before = nbformat.read(NOTEBOOKS / "01_vector_add.ipynb", as_version=4)
    after = nbformat.read(branch / "notebooks" / "01_vector_add.ipynb", as_version=4)
    code = [[c for c in notebook.cells if c.cell_type == "code" and c.id != colab.MARK] for notebook in (before, after)]
    assert code[0] == code[1]
    assert "(00_start_here.ipynb)" in before.cells[0].source
    assert "/octocat/ladder/blob/colab/notebooks/00_start_here.ipynb)" in after.cells[0].source


def test_a_link_to_a_file_leads_to_github():
    lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# T\n[a](../LICENSE#top) [b](#c)")])
    text = colab.for_colab(lesson, "x.ipynb", "octocat/ladder", "").cells[0].source
    assert "[a](https://github.com/octocat/ladder/blob/main/LICENSE#top)" in text
    assert "[b](#c)" in text


def test_the_page_links_every_lesson(branch):
    page = (branch / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"colab/notebooks/(\w+\.ipynb)\)\s*\|.*colab/notebooks/\1\)", page) == NAMES
    (binder,) = re.findall(r"https://mybinder\.org/v2/gh/(\S+)/HEAD\?urlpath=lab/tree/(\S+)\)", page)
    assert (ROOT / binder[1]).is_file() and binder[0] in page.partition("Generated from ")[2].partition("\n")[0]


def test_a_wrong_repository_is_refused(tmp_path, capsys):
    assert colab.main([str(tmp_path / "out"), "--repository", "https://github.com/octocat/ladder"]) == 2
    assert "is not OWNER/NAME" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_lesson_runs_from_an_empty_folder(branch, tmp_path, monkeypatch):
    """The first cell clones the last commit of this repository; the lesson then runs from the clone."""
    inside = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD:helpers/pages/front"], capture_output=True)
    if inside.returncode:
        pytest.skip("needs a git checkout with helpers/pages/front/ committed")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    lesson = nbformat.read(branch / "notebooks" / "00_start_here.ipynb", as_version=4)
    # Set-up has IPython load the magic of this copy, as no hosted machine does.
    loaded = "[name for name in sys.modules if name.startswith(('helpers', 'kernel_xray'))]"
    forget = f"import sys\nfor name in {loaded}:\n    del sys.modules[name]"
    lesson.cells.insert(0, nbformat.v4.new_code_cell(forget))
    lesson.cells.append(nbformat.v4.new_code_cell("import os; print(helpers.__file__, os.environ['PYTHONPATH'])"))
    assert asyncio.run(execute(lesson, tmp_path)) == "ok"
    printed = lesson.cells[-1].outputs[0].text
    clone = str(tmp_path / "kernel-ladder")
    assert printed.split() == [f"{clone}/helpers/__init__.py", clone]
    assert "target: " in lesson.cells[2].outputs[0].text


# -- Binder, Codespaces, the workflow ----------------------------------------------------------------------------------


def test_binder_installs_what_set_up_checks():
    """Its Python is one whose CPU build of PyTorch is in hashes/."""
    folder = ROOT / ".binder"
    script = folder / "postBuild"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    assert 'set_up.py --venv "${NB_PYTHON_PREFIX' in script.read_text()
    assert {"g++", "make", "binutils"} == set((folder / "apt.txt").read_text().split())
    minor = re.fullmatch(r"python-3\.(\d+)\n", (folder / "runtime.txt").read_text())[1]
    assert 11 <= int(minor) <= 13


def test_binder_s_script_stops_outside_binder(tmp_path):
    """Two-sided: it must not make an environment of the person's own Python."""
    outside = {name: value for name, value in os.environ.items() if name != "NB_PYTHON_PREFIX"}
    done = subprocess.run([str(ROOT / ".binder" / "postBuild")], cwd=ROOT, env=outside, capture_output=True, text=True)
    assert done.returncode != 0
    assert "set by repo2docker" in done.stderr


def test_the_devcontainer_makes_the_environment_that_it_opens():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert set(container) <= DEVCONTAINER
    assert container["onCreateCommand"] == "make setup"
    python = container["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert python == "${containerWorkspaceFolder}/.venv/bin/python"
    assert all((ROOT / name).is_file() for name in container["customizations"]["codespaces"]["openFiles"])
    version = re.search(r":3\.(\d+)$", container["image"])[1]
    assert 11 <= int(version) <= 13


def test_the_workflow_writes_the_branch_that_badges_name():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "colab.yml").read_text())
    (job,) = workflow["jobs"].values()
    steps = "\n".join(step.get("run", "") for step in job["steps"])
    assert f"--initial-branch={colab.BRANCH}" in steps
    assert f"refs/heads/{colab.BRANCH}" in steps
    assert "python -m helpers colab build/colab --repository" in steps
    assert workflow["permissions"] == {"contents": "write"}
