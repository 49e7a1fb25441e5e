"""The files around the course agree with each other: dependencies, constraints, targets, lesson table, licence."""

import importlib
import os
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from running import git, python, run, tracked_files, without

from helpers.__main__ import COMMANDS, full_name, main
from helpers.paths import ROOT
from helpers.practice.marks import HEADLINE
from kernel_xray.machine import toml

PYPROJECT = toml.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
TARGETS = ("setup", "lab", "test", "course", "bench", "clean", "help")
LESSONS = 18
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]


def requirements(lines, python=None):
    """name -> Requirement, for lines such as "torch>=2.11", of those that this machine needs with that Python."""
    chosen = {"python_version": python} if python else {}
    wanted = [r for r in map(Requirement, lines) if r.marker is None or r.marker.evaluate(chosen)]
    return {canonicalize_name(requirement.name): requirement for requirement in wanted}


# -- Dependencies ------------------------------------------------------------------------------------------------------


def conda_differences(environment, project):
    """How environment.yml differs from what pyproject.toml names, in words."""
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    plain = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    named = requirements((line for line in pip if not line.startswith("-e")), PYTHONS[0])
    wanted = requirements([*project["dependencies"], *project["optional-dependencies"]["cuda"]], PYTHONS[0])
    found = [f"{name}: only in one of the two" for name in sorted(set(named) ^ set(wanted))]
    both = [(name, named[name], wanted[name]) for name in set(named) & set(wanted)]
    found += [f"{name}: {ours} against {theirs}" for name, ours, theirs in both if ours != theirs]
    needed = ("cxx-compiler", "make", "pip", "-e .[dev]", "-e ./kernel_xray")  # the last two are the packages here
    found += [f"{entry} is missing" for entry in needed if entry not in (*plain, *pip)]
    if not any(entry.startswith(f"python{project['requires-python']}") for entry in plain):
        found.append(f"python is not {project['requires-python']}")
    return found


@pytest.fixture
def environment():
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def test_conda_environment_names_the_same_dependencies(environment):
    assert conda_differences(environment, PROJECT) == []
    named = requirements(line for line in environment["dependencies"][-1]["pip"] if not line.startswith("-e"))
    assert {"torch", "jupyterlab", "nbval", "ninja", "matplotlib"} <= set(named)


@pytest.mark.parametrize(
    ("line", "replacement"),
    [
        ("torch>=2.11", "torch>=2.10"),
        ("nbval>=0.11,<0.12", None),
        ("tomli>=2,<3; python_version < '3.11'", None),
        ("-e .[dev]", "-e ."),
        ("make", None),
    ],
)
def test_a_difference_in_the_conda_environment_is_seen(environment, line, replacement):
    for entries in (environment["dependencies"], environment["dependencies"][-1]["pip"]):
        if line in entries:
            entries[entries.index(line)] = replacement or "wheel"
    assert conda_differences(environment, PROJECT)


def constraint_problems(text, python):
    """What is wrong with the constraints of a file under a version of Python such as "3.10"."""
    chosen, found = {}, []
    for constraint in map(Requirement, re.findall(r"^\s*([^#\s].*)", text, re.MULTILINE)):
        if constraint.marker and not constraint.marker.evaluate({"python_version": python}):
            continue
        name = canonicalize_name(constraint.name)
        pins = list(constraint.specifier)
        if len(pins) != 1 or pins[0].operator != "==" or "*" in pins[0].version:
            found.append(f"{constraint}: not one exact version")
        elif name in chosen:
            found.append(f"{name}: two versions for Python {python}")
        else:
            chosen[name] = Version(pins[0].version)
    for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for name, requirement in requirements(lines, python).items():
            if name not in chosen:
                found.append(f"{name}: no version for Python {python}")
            elif chosen[name] not in requirement.specifier:
                found.append(f"{name}: {chosen[name]} is outside {requirement}")
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_constraints_give_every_dependency_one_version_within_its_range(python):
    constraints = (ROOT / "constraints.txt").read_text()
    assert constraint_problems(constraints, python) == []
    assert "torch==2.13.0" in constraints.splitlines()


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"torch==2\.13\.0", "torch==2.10.0"),
        (r"torch==2\.13\.0", "torch>=2.13"),
        (r"torch==2\.13\.0", "torch==2.13.*"),
        (r"ninja==.*", ""),
        (r"(numpy==\S+); python_version < \"3.11\"", r"\1"),
    ],
)
def test_wrong_constraints_are_seen(pattern, replacement):
    text, count = re.subn(pattern, replacement, (ROOT / "constraints.txt").read_text())
    assert count == 1
    assert constraint_problems(text, "3.12")


def test_what_runs_now_is_what_the_project_asks_for():
    wanted = requirements(PROJECT["dependencies"])
    wrong = [name for name, r in wanted.items() if not r.specifier.contains(version(name), prereleases=True)]
    assert wrong == []


# -- Commands ----------------------------------------------------------------------------------------------------------


def make(*arguments):
    return run("make", "--no-print-directory", *arguments, status=None, env=without("MAKE", "MFLAGS"))


def test_make_alone_lists_the_targets():
    shown = make()
    assert shown.returncode == 0
    listed = re.findall(r"^  make (\S+) +\S", shown.stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    assert set(TARGETS) <= set(listed)
    assert sorted(listed) == sorted(phony)


def test_an_old_python_is_refused_with_a_sentence(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")  # what the version test of a Python 3.9 answers
    old.chmod(0o755)
    refused = make("setup", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert refused.returncode != 0
    assert "no Python 3.10 to 3.14" in refused.stderr and "PYTHON=" in refused.stderr
    assert not (tmp_path / "venv").exists()


def test_make_takes_a_python_for_which_pytorch_has_wheels():
    makefile = (ROOT / "Makefile").read_text()
    condition = re.search(r"^FITS := import sys; sys.exit\(not (.+)\)$", makefile, re.MULTILINE).group(1)
    condition = condition.replace("sys.version_info", "version")
    fitting = [n for n in range(30) if eval(condition, {"version": (3, n, 1)})]
    assert [f"3.{n}" for n in fitting] == PYTHONS
    assert f", Python {PYTHONS[0]} to {PYTHONS[-1]}, " in (ROOT / "README.md").read_text()
    candidates = re.search("^CANDIDATES := (.+)$", makefile, re.MULTILINE).group(1).split()
    assert {f"python{python}" for python in PYTHONS} < set(candidates)


def test_continuous_integration_runs_make_test():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert re.search(r"^(exec )?make test$", script.read_text(), re.MULTILINE)
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    for job, command in (("test", ".ci/run"), ("aarch64", ".ci/aarch64")):
        assert any(step.get("run") == command for step in jobs[job]["steps"])
    systems = {entry["os"].split("-")[0] for entry in jobs["test"]["strategy"]["matrix"]["include"]}
    assert {"ubuntu", "macos"} <= systems


def test_a_missing_emulator_is_named(tmp_path):
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    refused = run(ROOT / ".ci" / "aarch64", env={"PATH": str(tmp_path)}, status=1)
    assert "not found: qemu-aarch64 aarch64-linux-gnu-g++ debootstrap unshare. Debian" in refused.stderr


def test_every_command_exists():
    for module, _ in COMMANDS.values():
        assert callable(importlib.import_module(full_name(module)).main)


def test_an_unknown_command_is_refused(capsys):
    for wrong, told in (("chek", "did you mean check?"), ("colonel", "there are doctor, first-kernel, lab, ")):
        with pytest.raises(SystemExit) as ended:
            main([wrong])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err


def test_without_a_command_all_are_listed(capsys):
    assert main([]) == 2
    table = capsys.readouterr().out.partition("commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in table.split("\n")] == list(COMMANDS)


def test_a_python_without_pytorch_is_told_which_one_to_use(monkeypatch):
    """-S: without the environment's packages. A module that lacks for another reason is still an error."""
    check = "check roll kernels/solutions/roll.cu"
    done = python("-S", "-m", "helpers", *check.split(), env=without("PYTHONPATH"), status=1)
    assert done.stdout == ""
    course = ROOT / ".venv" / "bin" / "python"
    advice = f"use the course's: {course} -m helpers {check}" if course.exists() else "run make setup"
    assert done.stderr == f"helpers: this Python, {sys.executable}, has no torch; {advice}\n"
    monkeypatch.setitem(COMMANDS, "doctor", ("nowhere", ""))
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        main(["doctor"])


def misformatted(files):
    """What clang-format would change, as its own messages."""
    program = shutil.which("clang-format", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("clang-format, of the [dev] extra, is not installed")
    return run(program, "--style=file", "--dry-run", *files).stderr


def too_wide(files):
    """Lines that a lesson could not show without scrolling. An exercise's first line is data, and stays one line."""
    limit = int(re.search(r"ColumnLimit: (\d+)", (ROOT / "kernels" / ".clang-format").read_text())[1])
    lines = ((path, number, line) for path in files for number, line in enumerate(path.read_text().split("\n"), 1))
    return [f"{path.name}:{number}" for path, number, line in lines if len(line) > limit and not HEADLINE.match(line)]


def test_kernels_and_simulator_are_formatted(tmp_path):
    for folder in (ROOT / "kernels", ROOT / "kernel_xray" / "src"):
        sources = [path for path in folder.rglob("*") if path.suffix in (".cu", ".cuh", ".h", ".inc", ".cpp")]
        assert sources
        if folder.name == "kernels":  # clang-format leaves comments as they are
            assert too_wide(sources) == []
        assert misformatted(sources) == ""
    untidy = tmp_path / "untidy.cu"
    untidy.write_text("__global__ void k(float *x) {\nx[0]=1;}\n// " + 86 * "-" + "\n")
    assert too_wide([untidy]) == ["untidy.cu:3"]
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    assert "untidy.cu" in misformatted([untidy])


# -- README, licence, words --------------------------------------------------------------------------------------------


def lesson_table_problems(readme, notebooks):
    """How the lesson table differs from the notebooks (file names) that are there."""
    rows = re.findall(r"^\| (\d\d) \| (.+?) \| (.+?) \|$", readme, re.MULTILINE)
    found = [] if [int(number) for number, *_ in rows] == list(range(LESSONS)) else ["not one row for each lesson"]
    listed = set()
    for number, name, _ in rows:
        link = re.fullmatch(r"\[(\w+)\]\(notebooks/(\w+)\.ipynb\)", name)
        planned = re.fullmatch(r"(\w+) \(planned\)", name)
        title = (link or planned).group(1) if link or planned else ""
        file = f"{number}_{title}.ipynb"
        if not link and not planned:
            found.append(f"row {number}: neither a link nor planned")
        elif link and f"{link.group(2)}.ipynb" != file:
            found.append(f"row {number}: its link leads elsewhere")
        elif bool(link) != (file in notebooks):
            why = "links to a notebook that is not there" if link else "is there, not planned"
            found.append(f"row {number}: {why}")
        listed.add(file)
    return found + [f"{name}: not in the table" for name in sorted(set(notebooks) - listed)]


def test_the_lesson_table_is_that_of_the_notebooks():
    notebooks = [path.name for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert notebooks
    assert lesson_table_problems((ROOT / "README.md").read_text(), notebooks) == []


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"\| 13 \|.*\n", ""),
        (r"\[vector_add\]\(notebooks/01_vector_add\.ipynb\)", "vector_add (planned)"),
        (r"\[vector_add\]\(notebooks/01_vector_add\.ipynb\)", "vector_add"),
        (r"notebooks/01_vector_add\.ipynb", "notebooks/00_start_here.ipynb"),
        (r"\[many_gpus\]\(notebooks/16_many_gpus\.ipynb\)", "[many_cpus](notebooks/16_many_cpus.ipynb)"),
    ],
)
def test_a_wrong_lesson_table_is_seen(pattern, replacement):
    readme = (ROOT / "README.md").read_text()
    text, count = re.subn(pattern, replacement, readme)
    assert count == 1
    present = [f"{name}.ipynb" for name in re.findall(r"\(notebooks/(\w+)\.ipynb\)", readme)]
    assert lesson_table_problems(readme, present) == []
    assert lesson_table_problems(text, present)
    assert lesson_table_problems(readme, [*present, "14_more.ipynb"])


def test_readme_names_the_two_commands_and_its_links_exist():
    readme = (ROOT / "README.md").read_text()
    assert "make lab" in readme
    assert "make test" in readme
    links = re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", readme)
    # From ../../ on they are pages of the repository on GitHub, wherever that is.
    links = [link for link in links if "://" not in link and not re.match(r"\.\./\.\./(actions|tree)/", link)]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_licence():
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("BSD 3-Clause License\n")
    assert "Copyright (c) 2026, The Kernel Ladder authors" in text
    assert "Neither the name of the copyright holder" in text
    assert PROJECT["license"] == "BSD-3-Clause"


# Paths of one machine say nothing to a reader elsewhere. (In pieces, so that this file does not contain them.)
MACHINE_PATHS = re.compile("/" + r"work/(?:main|shared)\b|(?<![\w.~])/" + r"(?:root|home/\w+|Users/\w+)/")


def test_no_file_names_a_path_of_one_machine():
    wrong = []
    for name, path in tracked_files().items():
        text = path.read_text(encoding="utf-8", errors="replace")
        wrong += [f"{name}: {found.group()}" for found in MACHINE_PATHS.finditer(text)]
    assert wrong == []


@pytest.mark.parametrize("text", ["/".join(["", "work", "main", "x"]), "see /" + "root/x", "in /" + "home/ann/x"])
def test_a_path_of_one_machine_is_seen(text):
    assert MACHINE_PATHS.search(text)
    assert not MACHINE_PATHS.search("~/.cache, build/course, /usr/local/cuda/bin, framework/main, a/root/b")


SUBJECT = 72  # characters


def commits_without_form(folder, since, upto="HEAD"):
    """What is wrong with the messages of the commits after `since`; merges may be without a body."""
    log = git(folder, "log", "--no-merges", "-z", "--format=%h%n%s%n%b", f"{since}..{upto}")
    problems = []
    for commit, subject, body in (entry.split("\n", 2) for entry in log.split("\0") if entry):
        if len(subject) > SUBJECT:
            problems.append(f"{commit}: the subject has {len(subject)} characters, {SUBJECT} at most: {subject}")
        if not body.strip():
            problems.append(f"{commit}: no body says why: {subject}")
    return problems


def test_new_commits_have_a_short_subject_and_a_reason():
    """Those of a pull request, whose base CI names; on a developer's machine those that origin/main lacks."""
    base = os.environ.get("KERNEL_LADDER_BASE", "origin/main")
    known = run("git", "rev-parse", "--verify", "-q", base, status=None)
    if known.returncode and "KERNEL_LADDER_BASE" not in os.environ:
        pytest.skip("this copy knows no origin/main to compare with")
    assert commits_without_form(ROOT, base) == []


def test_a_commit_without_form_is_named(tmp_path):
    git(tmp_path, "init", "-q")
    for message in ("First\n\nWhy.", "Good\n\nIts reason.", "No reason", f"{'long ' * 15}\n\nIts reason."):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", message)
    long, bare = commits_without_form(tmp_path, "HEAD~3")
    assert "the subject has 74 characters" in long and "no body says why: No reason" in bare


def test_workflows_name_actions_by_commit():
    used = [line for path in (ROOT / ".github/workflows").glob("*.yml") for line in path.read_text().splitlines()]
    used = [line for line in used if re.match(r"\s*(- )?uses:", line)]
    assert used
    assert [line for line in used if not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d", line)] == []
