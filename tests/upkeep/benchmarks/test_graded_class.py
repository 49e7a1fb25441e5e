"""`bench --grading`: the class that it makes up, and a small one graded, killed and resumed."""

import functools
import json
import re
from collections import Counter

import pytest

from helpers.teaching.classroom import sandbox, submissions
from helpers.upkeep.benchmarks import graded_class as bench


@pytest.mark.slow  # a benchmark of our own tools
def test_the_class_is_the_same_each_time_and_has_answers_of_every_kind(tmp_path):
    kinds = bench.hand_in(tmp_path / "one", 40)
    assert bench.hand_in(tmp_path / "two", 40) == kinds
    assert bench.content(tmp_path / "one") == bench.content(tmp_path / "two")
    assert set(kinds.values()) == set(bench.KINDS)
    assert len(kinds) == 40 * len(bench.EXERCISES)
    found = submissions.find(tmp_path / "one")
    assert len(found) == 40
    texts = Counter()
    for one in found:
        assert one.problems == ()
        for name in bench.EXERCISES:
            assert len(one.answers.get(name, ())) == (kinds[one.name, name] != "missing")
        answers = [answer for answers in one.answers.values() for answer in answers]
        texts.update(a.text for a in answers if kinds[one.name, a.exercise] != "untouched")
    assert max(texts.values()) == 1, "no two students hand in the same text"
    assert any(answer.is_cell for one in found for answers in one.answers.values() for answer in answers)


@pytest.mark.parametrize("is_cell", [True, False])
@pytest.mark.parametrize("name", bench.EXERCISES)
def test_a_wrong_answer_differs_from_the_solution_in_one_place(name, is_cell):
    right, *wrong = (
        bench._answer(name, kind, is_cell, "me", bench.random.Random(i))
        for i, kind in enumerate(["right", *60 * ["wrong"]])
    )
    mistakes = bench.mistakes(name)
    mistaken = {functools.reduce(lambda text, one: text.replace(*one), m.items(), right) for m in mistakes}
    assert set(wrong) == mistaken - {right}
    assert len(set(wrong)) == len(mistakes) > 1


def test_a_reformatted_answer_has_the_code_of_the_solution():
    chance = bench.random.Random(0)
    for name in bench.EXERCISES:
        right, other = (bench._answer(name, kind, True, "me", chance) for kind in ("right", "reformatted"))
        code = [re.sub(r"//.*|\s", "", text) for text in (right, other)]
        assert right != other and code[0] == code[1]


def test_another_verdict_than_expected_and_other_bytes_are_said():
    grades = {"submissions": [{"name": "ann", "results": [
        {"exercise": "roll", "verdict": "accepted", "message": "5 cases\nx"}]}]}  # fmt: skip
    assert bench._unexpected(grades, {("ann", "roll"): "right"}) == []
    wrong = bench._unexpected(grades, {("ann", "roll"): "wrong"})
    assert wrong == ["ann, roll: wrong, but accepted: 5 cases"]
    text = str(bench.Graded(1, 2, 8.0, 6.0, kept=3, checked=4, kinds=Counter(wrong=1), wrong=wrong))
    assert "verdicts as expected          0 of 1" in text and "unexpected: ann, roll" in text
    assert "OTHER bytes" in text and "16.00 s of one job, 6.00 s of processor time" in text


@pytest.mark.parametrize(("same", "wrong", "status"), [(True, [], 0), (False, [], 1), (True, ["x"], 1)])
def test_the_exit_status_is_that_of_the_grading(monkeypatch, capsys, same, wrong, status):
    monkeypatch.setattr(bench, "measure", lambda count, jobs: bench.Graded(count, jobs, same=same, wrong=wrong))
    assert bench.BENCHMARK.main(["--grading", "--submissions", "12"]) == status
    assert "12 submissions of 5 exercises" in capsys.readouterr().out


@pytest.mark.slow  # checks about fifty answers twice
@pytest.mark.timeout(3600)
@pytest.mark.skipif(bool(sandbox.problem()), reason=f"this machine cannot confine: {sandbox.problem()}")
def test_twelve_submissions_killed_half_way_and_resumed_give_the_same_bytes():
    graded = bench.measure(12, 2)
    assert graded.same
    assert graded.wrong == []
    assert graded.checked // 2 <= graded.kept < graded.checked
    assert graded.cpu_seconds > 0 and json.dumps(graded.kinds)
