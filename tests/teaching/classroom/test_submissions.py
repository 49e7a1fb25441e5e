"""Answers are found by the names of exercises; what cannot be graded is said, and nothing raises."""

import json
import os

import pytest

from helpers.practice import quoted, registry
from helpers.teaching.classroom import submissions

STARTER = registry.read("roll").starter
HEADLINE = "// vector_scale.cu: Scale a vector. Exercise 1 of lesson 01, about 5 minutes."
CELL = registry.read("roll").cell_text


def one(root):
    (found,) = submissions.find(root, single=True)
    return found


def wheres(found):
    return {name: [answer.where for answer in answers] for name, answers in found.answers.items()}


def test_files_and_cells_are_matched_by_the_name_of_the_exercise(folder):
    root = folder(
        {
            "roll.cu": "mine",
            "deep/er/compact_registered.py": "mine",
            "alice_173_vector_scale.cu": HEADLINE,
            "lesson.ipynb": ["print(1)", "%%exercise transpose\nmine\n", ["%%exercise blend\n", "mine"]],
        }
    )
    found = one(root)
    assert wheres(found) == {
        "roll": ["roll.cu"],
        "compact_registered": ["deep/er/compact_registered.py"],
        "vector_scale": ["alice_173_vector_scale.cu"],
        "transpose": ["lesson.ipynb, cell 2"],
        "blend": ["lesson.ipynb, cell 3"],
    }
    assert found.answers["transpose"][0].text == "mine\n"
    assert found.answers["blend"][0].is_cell
    assert found.problems == ()


def test_what_cannot_be_graded_is_said(folder):
    root = folder(
        {
            "rol.cu": "mine",
            "compact_registered.cu": "mine",
            "broken.ipynb": "{",
            "list.ipynb": "[]",
            "deep.ipynb": "[" * 100_000,
            "numbers.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": [1]}]}),
            "odd.ipynb": ["%%exercise rolls\n"],
            "huge.cu": "x" * (quoted.BYTES + 1),
            "bell\x1b[2J.cu": "",
        }
    )
    (root / "roll.cu").write_bytes(b"\xff\xfe mine")
    os.mkfifo(root / "pipe.cu")
    (root / "secret.cu").symlink_to("/etc/passwd")
    (root / "elsewhere").symlink_to("/etc")
    found = one(root)
    assert wheres(found) == {"roll": ["roll.cu"]}
    said = "\n".join(found.problems)
    for sentence in (
        "rol.cu: there is no exercise 'rol'; is it roll?",
        "compact_registered.cu: an answer to compact_registered is a .py file; rename it to compact_registered.py",
        "broken.ipynb cannot be read as a notebook (JSONDecodeError); save it again as .ipynb",
        "list.ipynb cannot be read as a notebook (TypeError)",
        "deep.ipynb cannot be read as a notebook (RecursionError)",
        "numbers.ipynb cannot be read as a notebook (TypeError)",
        "odd.ipynb, cell 1: there is no exercise 'rolls'; is it roll?",
        "huge.cu is larger than 4 MB: not read",
        "roll.cu is not UTF-8 text; what could not be read was replaced",
        "pipe.cu is not a regular file: not read",
        "secret.cu is a symbolic link: not followed",
        "elsewhere is a symbolic link: not followed",
    ):
        assert sentence in said
    assert said.isprintable() or "\x1b" not in said


def test_a_cell_may_hold_what_is_not_text(folder):
    found = one(folder({"lesson.ipynb": ["%%exercise roll\n\ud800\0mine"]}))
    assert found.answers["roll"][0].text == "?\ufffdmine"


def test_two_answers_are_one_only_if_they_agree(folder):
    both = one(folder({"roll.cu": "mine", "lesson.ipynb": ["%%exercise roll\nmine"]}, "both"))
    assert wheres(both) == {"roll": ["lesson.ipynb, cell 1", "roll.cu"]}
    copies = one(folder({"a/roll.cu": "mine", "b/roll.cu": "mine\n"}, "copies"))
    assert wheres(copies) == {"roll": ["a/roll.cu"]}


def test_an_untouched_starter_is_an_answer_only_if_there_is_no_other(folder):
    beside = one(folder({"roll.cu": STARTER, "lesson.ipynb": [f"%%exercise roll\n{CELL}", "%%exercise roll\nmine"]}))
    assert wheres(beside) == {"roll": ["lesson.ipynb, cell 2"]}
    alone = one(folder({"roll.cu": STARTER, "lesson.ipynb": [f"%%exercise roll\n{CELL}"]}, "alone"))
    assert wheres(alone) == {"roll": ["lesson.ipynb, cell 1"]}


def test_a_folder_is_one_submission_or_holds_them(folder):
    root = folder({"ann/roll.cu": "1", "bob/week 1/roll.cu": "2", ".git/roll.cu": "3", "grades/roll.cu": "4"})
    found = submissions.find(root, leave_out=root / "grades")
    assert [(one.name, list(one.answers)) for one in found] == [("ann", ["roll"]), ("bob", ["roll"])]
    assert [one.name for one in submissions.find(root / "ann")] == ["ann"]
    assert [one.name for one in submissions.find(root, single=True)] == ["class"]
    (root / "zoe").symlink_to(root / "ann")
    zoe = submissions.find(root)[-1]
    assert (zoe.answers, zoe.problems) == ({}, ("zoe is a symbolic link, which is not followed",))


@pytest.mark.parametrize("place", ["my_lessons/exercises/roll.cu", "kernels/exercises/roll.cu"])
def test_of_a_copy_of_the_course_only_answers_and_notebooks_are_read(folder, place):
    root = folder({place: "mine", "kernels/solutions/roll.cu": "s", "notebooks/a.ipynb": []})
    (found,) = submissions.find(root)
    assert (wheres(found), found.problems) == ({"roll": [place]}, ())


def test_in_a_clone_the_learners_copies_of_the_lessons_are_read(folder):
    root = folder({"my_lessons/a.ipynb": ["%%exercise roll\nmine"], "notebooks/a.ipynb": [f"%%exercise roll\n{CELL}"]})
    (found,) = submissions.find(root)
    assert wheres(found) == {"roll": ["my_lessons/a.ipynb, cell 1"]}


def test_a_folder_with_nothing_to_grade_is_refused(folder, tmp_path):
    with pytest.raises(submissions.NoSubmission, match=r"neither answers .* nor folders"):
        submissions.find(folder({}))
    with pytest.raises(submissions.NoSubmission, match="is not a folder"):
        submissions.find(tmp_path / "nowhere")


def test_names_that_are_not_text_do_not_reach_a_terminal_or_a_file(tmp_path):
    odd = os.fsencode(tmp_path) + b"/ann\xff\x1b"
    os.makedirs(odd + b"/b\xff")
    with open(odd + b"/b\xff/roll.cu", "w") as file:
        file.write("mine")
    (found,) = submissions.find(tmp_path)
    assert found.name.startswith("ann<dcff><1b>~")
    assert wheres(found) == {"roll": ["b\ufffd/roll.cu"]}


def test_files_without_end_are_not_read(folder, monkeypatch):
    monkeypatch.setattr(submissions, "FILES", 3)
    found = one(folder({f"{i}/roll.cu": str(i) for i in range(5)}))
    assert len(found.answers["roll"]) == 3
    assert "more than 3 files" in found.problems[0]


def test_a_submission_that_is_made_to_be_slow_is_read_in_part(folder, monkeypatch):
    unknown = folder({"a.ipynb": [f"%%exercise rol_{i}" for i in range(5000)]}, "unknown")
    problems = one(unknown).problems
    assert len(problems) == submissions._PROBLEMS + 1
    assert problems[-1] == "and 4,900 more problems"
    many = one(folder({"a.ipynb": [f"%%exercise roll\n{i}" for i in range(5000)]}, "many"))
    assert len(many.answers["roll"]) == submissions._ANSWERS
    monkeypatch.setattr(submissions, "TOTAL", 1000)
    large = one(folder({f"{i}/roll.cu": str(i) * 400 for i in range(5)}, "large"))
    assert len(large.answers["roll"]) == 2 and large.problems == ("more than 0 MB of files: the others were not read",)


def test_an_answer_in_the_last_cell_of_thousands_is_found(folder):
    cells = [f"x = {i}" for i in range(5000)] + ["%%exercise roll\nmine"]
    assert wheres(one(folder({"a.ipynb": cells}))) == {"roll": ["a.ipynb, cell 5001"]}


def test_a_cell_of_50_mb_is_not_read_and_archives_are_not_unpacked(folder):
    root = folder({"a.ipynb": ["%%exercise roll\n" + "x" * 50_000_000], "hand in.ZIP": "PK", "b/deep.tar.gz": ""})
    (root / "roll.cu").write_text("mine")
    found = one(root)
    assert wheres(found) == {"roll": ["roll.cu"]}
    assert set(found.problems) == {
        "a.ipynb is larger than 4 MB: not read",
        "hand in.ZIP is an archive: unpack it, then grade",
        "b/deep.tar.gz is an archive: unpack it, then grade",
    }


@pytest.mark.parametrize("name", ["a\nb", "<b>x", "=cmd()", "x" * 200, "\u202eevil", "a\tb"])
def test_a_name_stays_on_one_line_and_does_not_hide_an_answer(folder, name):
    (found,) = submissions.find(folder({f"{name}/roll.cu": "mine"}, "class"))
    assert found.name.isprintable() and len(found.name) <= submissions.NAME
    assert wheres(found) == {"roll": ["roll.cu"]}


def test_names_that_differ_are_shown_as_different_names(folder):
    names = ["ann", "ann\x1b", "ann\x1d", "ann<1b>", "\u202eann", "x" * 200, "x" * 199 + "y", "Zo\u00eb"]
    found = submissions.find(folder({f"{name}/roll.cu": "mine" for name in names}))
    assert len({one.name for one in found}) == len(names)
    assert {"ann", "ann<1b>", "Zo\u00eb"} < {one.name for one in found}


@pytest.mark.parametrize("place", ["kernels/exercises/roll.cu", "my_lessons/roll.cu"])
def test_a_student_with_a_folder_of_the_course_does_not_make_the_class_one_submission(folder, place):
    root = folder({"ann/roll.cu": "1", "bob/roll.cu": "2", place: "mine"})
    assert [one.name for one in submissions.find(root)] == ["ann", "bob", place.partition("/")[0]]
    alone = folder({"my_lessons/exercises/roll.cu": "mine"}, "alone")
    assert [one.name for one in submissions.find(alone)] == ["alone"]
