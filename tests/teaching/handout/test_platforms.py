"""Files for platforms: their form, and that what they run gives the points."""

import json
import os
import re
import sys
import zipfile

import pytest
import torch
import yaml
from running import run

from helpers.paths import KERNELS, ROOT
from helpers.practice import registry
from helpers.practice.checks import CHECKS
from helpers.teaching.classroom import command as grade_command
from helpers.teaching.classroom import grading, points
from helpers.teaching.handout import assignments, command, kernelbot, leaks, platforms, release

pytestmark = (
    pytest.mark.slow
)  # writes a course for seven platforms; test_release.py looks for leaks in one that is handed out

FOUR_WEEKS = assignments.read(assignments.COURSES / "four_weeks.yml")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder in which the course of four weeks was written for all platforms."""
    out = tmp_path_factory.mktemp("platforms")
    assert command.main(["four_weeks", "--out", str(out), "--platform", *platforms.PLATFORMS]) == 0
    return out


@pytest.fixture(scope="module")
def pages(written):
    """The texts of that folder's files, and Gradescope's scripts."""
    return [
        *(page.read_text(encoding="utf-8", errors="replace") for page in contents(written).values()),
        *gradescope_scripts(written),
    ]


def contents(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def test_no_platform_gets_a_solution(written):
    for name in platforms.PLATFORMS:
        assert contents(written / name), name
        assert leaks.leaks(written / name) == []
    for archive in (written / "gradescope").glob("*.zip"):
        assert leaks.leaks(archive) == []


@pytest.mark.parametrize("path", sorted(platforms.TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_every_template_is_used_and_none_has_a_word_left(path, pages):
    text = path.read_text(encoding="utf-8")
    kept = max(re.split(r"\$+\w+|\$\$|\$\{", text), key=len).strip()
    found = [page for page in pages if kept in page]
    assert found
    assert not any(re.search(r"\$\$|\$(course|points|python|identifier)\b", page) for page in found)


def gradescope_scripts(written):
    with zipfile.ZipFile(written / "gradescope" / "week_1.zip") as archive:
        return [archive.read(name).decode() for name in ("setup.sh", "run_autograder")]


def test_shell_scripts_are_well_formed(written):
    names = ("prairielearn/serverFilesCourse/kernel_ladder/run.sh", "slurm/grade.sbatch")
    for script in [*gradescope_scripts(written), *((written / name).read_text() for name in names)]:
        assert script.startswith("#!/usr/bin/env bash\n")
        run("bash", "-n", text=script)


def test_gradescope_gets_an_archive_with_its_scripts_at_the_root(written):
    for assignment in FOUR_WEEKS.assignments:
        with zipfile.ZipFile(written / "gradescope" / f"{assignment.name}.zip") as archive:
            names = set(archive.namelist())
            assert {"setup.sh", "run_autograder", "points.yml", "course/Makefile"} <= names
            assert all(archive.getinfo(name).external_attr >> 16 & 0o111 for name in ("setup.sh", "run_autograder"))
            given = points.scheme(yaml.safe_load(archive.read("points.yml")))
        assert given.total == assignment.scheme.total
        assert list(given.exercises) == list(assignment.scheme.exercises)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it builds the simulator anew, for another folder
def test_gradescope_s_script_writes_results(written, tmp_path):
    source, submission = tmp_path / "source", tmp_path / "submission"
    with zipfile.ZipFile(written / "gradescope" / "week_1.zip") as archive:
        archive.extractall(source)
    (source / "course" / ".venv").symlink_to(sys.prefix)
    submission.mkdir()
    text = (KERNELS / "solutions" / "vector_scale.cu").read_text()
    course = {"AUTOGRADER": str(tmp_path), "PYTHONPATH": str(source / "course")}
    for answer, score in ((text, 10), (text.replace("i < n", "i <= n"), 0)):
        (submission / "vector_scale.cu").write_text(answer)
        run("bash", source / "run_autograder", **course)
        results = json.loads((tmp_path / "results" / "results.json").read_text())
        scores = {test["name"]: test["score"] for test in results["tests"]}
        assert scores["vector_scale"] == score and scores["roll"] == 0


def test_prairielearn_s_files_have_its_schemas_keys(written):
    """infoQuestion.json and infoAssessment.json, version of 2026-11: required keys, and no others than these."""
    folder = written / "prairielearn"
    identities = set()
    for name in FOUR_WEEKS.exercises:
        info = json.loads((folder / "questions" / name / "info.json").read_text())
        assert {"uuid", "title", "topic", "type"} <= set(info)
        assert set(info) <= {
            "uuid", "title", "topic", "tags", "type", "singleVariant", "showCorrectAnswer", "gradingMethod",
            "externalGradingOptions",
        }  # fmt: skip
        assert (info["type"], info["gradingMethod"]) == ("v3", "External")
        options = info["externalGradingOptions"]
        assert {"image", "entrypoint"} <= set(options) and 0 < options["timeout"] <= 600
        shared = options["entrypoint"].removeprefix("/grade/")
        assert (folder / shared).is_file() and os.access(folder / shared, os.X_OK)
        assert all((folder / "serverFilesCourse" / part).is_dir() for part in options["serverFilesCourse"])
        assert UUID.fullmatch(info["uuid"])
        identities.add(info["uuid"])
        page = (folder / "questions" / name / "question.html").read_text()
        (file,) = re.findall(r'source-file-name="([^"]+)"', page)
        assert (folder / "questions" / name / file).read_text() == registry.read(name).starter
        assert points.read(folder / "questions" / name / "tests" / "points.yml").total
    assert len(identities) == len(FOUR_WEEKS.exercises)
    for number, assignment in enumerate(FOUR_WEEKS.assignments, 1):
        place = folder / "courseInstances" / platforms.IDENTIFIER / "assessments" / assignment.name
        info = json.loads((place / "infoAssessment.json").read_text())
        assert set(info) == {"uuid", "type", "title", "set", "number", "allowAccess", "zones"}
        assert info["number"] == str(number) and UUID.fullmatch(info["uuid"]) and info["type"] == "Homework"
        assert info["allowAccess"][0]["endDate"].endswith("T23:59:00")
        (zone,) = info["zones"]
        assert [question["id"] for question in zone["questions"]] == list(assignment.scheme.exercises)


@pytest.mark.parametrize("platform", ["prairielearn", "kubernetes"])
def test_an_image_has_the_students_copy(platform, written):
    course = written / platform / "image" / "course"
    assert (course / "helpers" / "practice" / "judge.py").is_file()
    assert not (course / ".git").exists() and not (course / "kernels" / "solutions").exists()


def test_the_workflow_pins_what_our_own_does(written):
    text = (written / "student" / ".github" / "workflows" / "points.yml").read_text()
    own = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    used = re.findall(r"uses: (.+)", text)
    assert len(used) == 2 and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use) for use in used)
    assert all(use in own for use in used)
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for step in workflow["jobs"]["points"]["steps"]:
        if "run" in step:
            run("bash", "-n", text=step["run"])


def test_slurm_s_tasks_each_take_a_part_and_the_last_job_counts_points(written, tmp_path):
    """With a stand-in for Python that prints its arguments, and the variables that sbatch sets."""
    (tmp_path / "a class").mkdir()
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)

    def asked(*more, **variables):
        script = ("bash", written / "slurm" / "grade.sbatch", "a class", "week_3", "out", *more)
        return run(*script, cwd=tmp_path, PYTHON=str(stand_in), **variables).stdout.split("\n")[2:-1]

    points_file = written / "points" / "week_3.yml"
    usual = ["grade", str(tmp_path / "a class"), "--jobs", "2", "--points", str(points_file)]
    usual += ["--out", str(tmp_path / "out")]
    task = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MAX": "49", "SLURM_CPUS_PER_TASK": "2"}
    assert asked("--trust", **task) == [*usual, "--part", "3/50", "--trust"]
    del task["SLURM_ARRAY_TASK_ID"]
    assert asked(**task) == [*usual, "--resume", "--format", "csv", "json", "html", "anonymous"]
    scheme = points.read(points_file)
    assert any(worth.efficiency for worth in scheme.exercises.values()), "the instructor's points, not the students'"


def test_kubernetes_pods_each_take_a_part_and_the_last_job_counts_points(written, tmp_path):
    """With a stand-in for the image's Python that prints its arguments."""
    (stand_in := tmp_path / ".venv" / "bin" / "python").parent.mkdir(parents=True)
    stand_in.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)
    parts, last = yaml.safe_load_all((written / "kubernetes" / "week_3.yml").read_text())
    asked = []
    for job in (parts, last):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        arguments = run(*container["command"], cwd=tmp_path, JOB_COMPLETION_INDEX="7").stdout.split("\n")
        assert arguments[:3] == ["-m", "helpers", "grade"]
        asked.append(grade_command._parser().parse_args(arguments[3:-1]))
    assert parts["spec"]["completionMode"] == "Indexed"
    assert asked[0].part == grading.Part(7, parts["spec"]["completions"])
    assert asked[1].part is None and asked[1].resume and "html" in asked[1].format
    assert asked[0].out == asked[1].out and asked[0].folder == asked[1].folder
    assert (written / "kubernetes" / "image" / "course" / asked[0].points).is_file()


# -- KernelBot ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def problem(request, tmp_path, monkeypatch):
    """The module reference.py of a problem, as KernelBot's eval.py imports it."""
    text = kernelbot.REFERENCE
    given = kernelbot.PROBLEMS[request.param]
    parts = {part: getattr(given, part) for part in ("inputs", "reference", "rtol")}
    source = text.format(name=request.param, sizes=", ".join(f"{size}: int" for size in given.sizes), **parts)
    module = {}
    exec(compile(source, "reference.py", "exec"), module)
    return request.param, given, module


@pytest.mark.parametrize("problem", kernelbot.PROBLEMS, indirect=True)
def test_a_problem_agrees_with_the_check(problem):
    name, given, module = problem
    for sizes in given.tests:
        data = module["generate_input"](*sizes, seed=1)
        wanted = CHECKS[name].reference(*[x.double() if isinstance(x, torch.Tensor) else x for x in data])
        assert module["check_implementation"](data, wanted.float()) == (True, "")
        good, message = module["check_implementation"](data, wanted.float() + 1)
        assert not good and message
        again = module["generate_input"](*sizes, seed=1)
        other = module["generate_input"](*sizes, seed=2)
        assert torch.equal(data[0], again[0]) and not torch.equal(data[0], other[0])


def test_a_task_has_the_keys_that_kernelbot_reads(written):
    """LeaderboardTask of src/libkernelbot/task.py (read 2026-11-23) takes no others."""
    fields = {
        "lang", "files", "config", "libraries", "tests", "test_timeout", "benchmarks", "benchmark_timeout",
        "ranked_timeout", "ranking_by", "seed", "multi_gpu", "validation", "description", "templates", "gpus",
    }  # fmt: skip
    tasks = list((written / "kernelbot").glob("*/task.yml"))
    assert len(tasks) == len(set(FOUR_WEEKS.exercises) & set(kernelbot.PROBLEMS)) >= 5
    for path in tasks:
        given = yaml.safe_load(path.read_text())
        assert set(given) <= fields and {"lang", "files", "config", "description"} <= set(given)
        own = [file["source"] for file in given["files"] if "/" not in file["source"] and "@" not in file["source"]]
        assert all((path.parent / file).is_file() for file in [*own, given["templates"]["Python"]])
        sizes = set(kernelbot.PROBLEMS[path.parent.name].sizes)
        assert all(set(case) == sizes | {"seed"} for case in given["tests"] + given["benchmarks"])


def test_the_workflow_is_part_of_every_release():
    assert ".github/workflows/points.yml" in dict(release.contents(FOUR_WEEKS))
