"""`python -m helpers grade`, from a folder to files, with the real judge."""

import csv
import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from helpers.paths import KERNELS, TESTS
from helpers.practice import registry
from helpers.practice.checks import CHECKS
from helpers.teaching.classroom import answer_worker, calibration, command, formats, sandbox

sys.path.append(str(TESTS / "practice"))
from wrong_answers import WRONG, cell_of

OTHERS = [name for name in formats.FORMATS if name != "classroom50"]
NAMES = [exercise.name for exercise in registry.exercises()]
SOLUTION = registry.find("roll").solution.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({}, [], "neither answers"),
        ({"readme.ipynb": []}, [], "holds no answer to any exercise"),
        ({"rol.cu": ""}, [], "class: rol.cu: there is no exercise 'rol'; is it roll?"),
        ({"roll.cu": ""}, ["--points", "none.yml"], "none.yml cannot be read"),
        ({"roll.cu": ""}, ["--format", "classroom50"], "for Classroom 50's runner, which sets CLASSROOM, ASSIGNMENT"),
        ({"a/roll.cu": ""}, ["--format", "classroom50"], "is for one submission"),
        ({"roll.cu": ""}, ["--out", "/dev/null/x"], "--out names another"),
    ],
)
def test_a_wrong_call_ends_with_a_sentence(folder, tmp_path, capsys, monkeypatch, files, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert command.main([str(folder(files)), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--format", "xml"], ["--jobs", "0"], ["--jobs", "two"], ["--part", "2"], ["--part", "4/4"]]
)
def test_a_wrong_option_is_refused(tmp_path, arguments):
    with pytest.raises(SystemExit) as ended:
        command.main([str(tmp_path), *arguments])
    assert ended.value.code == 2


def test_an_exercise_upon_anothers_kernel_may_read_that_kernel_only():
    given = {name: [str(path.relative_to(KERNELS)) for path in answer_worker._given(name)] for name in CHECKS}
    assert {name: paths for name, paths in given.items() if paths} == {
        "compact_registered": ["solutions/compact.cu"],
        "matmul_bias_gelu": ["matmul/10_mma.cu"],
        "muladd_rule": ["fused_muladd.cu"],
        "numpy_face": ["island.cu"],
        "sliding_window": ["attention.cu", "attention_backward.cu"],
        "softmax_op": ["softmax.cu"],
    }


def test_an_exercise_upon_others_may_not_read_its_own_solution(monkeypatch):
    path = KERNELS / "solutions" / "roll.cu"
    starter = f'#include "{path.name}"\n#include "../solutions/{path.name}"\n#include "compact.cu"\n'
    monkeypatch.setattr(registry, "read", lambda name: SimpleNamespace(starter=starter))
    assert [path.name for path in answer_worker._given("roll")] == ["compact.cu"]


@pytest.mark.slow  # builds and checks four times
def test_an_exercise_whose_solution_is_broken_is_not_graded_and_the_others_are(folder, tmp_path, capsys, monkeypatch):
    def broken(name):
        found = solution_of(name)
        return replace(found, text=found.text.replace("i - shift", "i + shift")) if name == "roll" else found

    solution_of = calibration.solution_of
    monkeypatch.setattr(calibration, "solution_of", broken)
    other = registry.find("vector_scale").solution.read_text(encoding="utf-8")
    root = folder({"ann/roll.cu": SOLUTION, "ann/vector_scale.cu": other, "bob/vector_scale.cu": "no"})
    assert command.main([str(root), "--out", str(tmp_path / "out"), "--format", *OTHERS]) == 1
    said = capsys.readouterr()
    assert "grade: roll is not graded: the course's own solution gets 'not right yet' here: n = " in said.err
    given = json.loads((tmp_path / "out" / "grades.json").read_text())
    assert list(given["not_graded"]) == ["roll"]
    points = {one["name"]: [(r["verdict"], r["points"]) for r in one["results"]] for one in given["submissions"]}
    assert points["ann"] == [("accepted", 1.0), ("ungraded", None)]
    assert points["bob"] == [("not built", 0.0), ("ungraded", None)]


def forms(names, text_of, cell_of):
    """The three forms in which students hand in answers: files, cells of a notebook, a copy of the course."""
    files = {registry.find(name).starter.name: text_of(name) for name in names}
    cells = [f"%%exercise {name}\n{cell_of(name)}" for name in names]
    course = {f"my_lessons/exercises/{file}": text for file, text in files.items()}
    return {"file": files, "notebook": {"lesson.ipynb": cells}, "folder": course}


def touched(name, text):
    """With a comment: an untouched starter is refused unseen."""
    return f"{text}\n{'#' if registry.find(name).starter.suffix == '.py' else '//'} to do\n"


@pytest.mark.slow  # 228 builds and checks
@pytest.mark.skipif(bool(sandbox.problem()), reason=f"this machine cannot confine: {sandbox.problem()}")
@pytest.mark.timeout(7200)
def test_each_solution_is_accepted_and_each_starter_refused_confined_and_in_each_form(folder, tmp_path):
    starter, cell = (lambda name: registry.read(name).starter), (lambda name: registry.read(name).cell_text)
    # The same text as calibration.py has, which is judged before the class is: only its cells are judged anew.
    judged, touched_cell = (lambda name: calibration._starter_of(name).text), (lambda name: touched(name, cell(name)))
    handed_in = {
        "solved": forms(NAMES, lambda name: registry.find(name).solution.read_text(encoding="utf-8"), cell_of),
        "touched": forms(NAMES, judged, touched_cell),
        "untouched": forms(NAMES, starter, cell),
    }
    root = folder(
        {
            f"{kind} {form}/{path}": text
            for kind, by_form in handed_in.items()
            for form, files in by_form.items()
            for path, text in files.items()
        }
    )
    assert command.main([str(root), "--out", str(tmp_path / "out"), "--format", "json"]) == 0
    given = json.loads((tmp_path / "out" / "grades.json").read_text())
    assert len(given["submissions"]) == 9
    expected = {"solved": {"accepted"}, "touched": {"rejected", "fault"}, "untouched": {"unsolved"}}
    for one in given["submissions"]:
        kinds = {result["exercise"]: result["verdict"] for result in one["results"]}
        assert set(kinds) == set(NAMES)
        assert set(kinds.values()) <= expected[one["name"].split()[0]], (one["name"], kinds)
        assert one["points"] == (len(NAMES) if one["name"].startswith("solved") else 0)


def content(out):
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.slow  # builds and checks seven answers
def test_real_answers_from_a_folder_to_files(folder, tmp_path, capsys):
    root = folder(
        {
            "ann/roll.cu": SOLUTION,
            "bob/roll.cu": registry.read("roll").starter,
            "eve/lesson.ipynb": [f"%%exercise roll\n{WRONG['roll_other_way'].cell()}"],
            "ida/lesson.ipynb": [f"%%exercise roll\n{WRONG['roll_negative_index'].cell()}"],
            "joe/roll.cu": SOLUTION + "\n#include <cstdlib>\nstatic int ended = (std::abort(), 0);\n",
            "kim/roll.cu": "not C++",
            "lea/roll.cu": SOLUTION + "\n#include <cstdlib>\nstatic int ended = (std::exit(0), 0);\n",
            "points.yml": "title: Week 1\nexercises: {roll: 10}",
        }
    )
    out = tmp_path / "out"
    arguments = [str(root), "--points", str(root / "points.yml"), "--out", str(out), "--format", *OTHERS]
    assert command.main(arguments) == 0
    assert "ann" in capsys.readouterr().out
    given = json.loads((out / "grades.json").read_text())
    found = {one["name"]: one["results"][0] for one in given["submissions"]}
    assert {name: (r["verdict"], r["points"]) for name, r in found.items()} == {
        "ann": ("accepted", 10),
        "bob": ("unsolved", 0),
        "eve": ("rejected", 0),
        "ida": ("fault", 0),
        "joe": ("not built", 0),
        "kim": ("not built", 0),
        "lea": ("not built", 0),
    }
    assert "5 of 5 elements are wrong" in found["eve"]["message"]
    assert "cell:7: out-of-bounds" in found["ida"]["message"]
    assert "roll.cu:1: error" in found["kim"]["message"]
    assert "calls abort when the answer is loaded" in found["joe"]["message"]
    assert "calls or names exit" in found["lea"]["message"]
    with open(out / "grades.csv", newline="") as file:
        assert [row[1] for row in csv.reader(file)] == ["points", "10", *["0"] * 6]
    assert {path.name for path in (out / "html" / "films").iterdir()} == {"eve roll.html", "ida roll.html"}
    assert ["<figure" in (out / "html" / f"{name}.html").read_text() for name in ("ann", "eve")] == [False, True]
    first = content(out)
    assert command.main(arguments) == 0  # graded once more, from the beginning
    assert content(out) == first
    assert str(tmp_path) not in (out / "grades.json").read_text()
