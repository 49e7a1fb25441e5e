"""`python -m helpers grade`, from a folder to files, with the real judge."""

import csv
import json
import sys

import pytest

from helpers.paths import TESTS
from helpers.practice import registry
from helpers.teaching.classroom import answer_worker, command, formats

sys.path.append(str(TESTS / "practice"))
from wrong_answers import WRONG

OTHERS = [name for name in formats.FORMATS if name != "classroom50"]
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


@pytest.mark.parametrize("arguments", [["--format", "xml"], ["--jobs", "0"], ["--jobs", "two"]])
def test_a_wrong_option_is_refused(tmp_path, arguments):
    with pytest.raises(SystemExit) as ended:
        command.main([str(tmp_path), *arguments])
    assert ended.value.code == 2


def test_an_exercise_upon_anothers_kernel_may_read_that_kernel_only():
    assert [path.name for path in answer_worker._given("compact_registered")] == ["compact.cu"]
    assert answer_worker._given("roll") == []


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
    first = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert command.main(arguments) == 0  # graded once more, from the beginning
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == first
    assert str(tmp_path) not in (out / "grades.json").read_text()
