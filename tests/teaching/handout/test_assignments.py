"""The instructor's file: what it means, and what is said about a mistake in it."""

from datetime import datetime

import pytest

from helpers.practice import registry
from helpers.teaching.classroom import points
from helpers.teaching.handout import assignments
from helpers.teaching.handout.assignments import read

GOOD = """
title: Two weeks
assignments:
  one: {opens: 2027-01-11, due: 2027-01-17, weight: 1, exercises: {roll: 10, transpose: 5}}
  two: {title: The rest, due: 2027-01-24 12:00, weight: 3, efficiency: 0.5, exercises: {swiglu: 8}}
"""


def course(tmp_path, text):
    path = tmp_path / "course.yml"
    path.write_text(text, encoding="utf-8")
    return read(path)


def test_a_course_is_read(tmp_path):
    found = course(tmp_path, GOOD)
    one, two = found.assignments
    assert (found.title, found.exercises, found.lessons) == (
        "Two weeks", ("roll", "transpose", "swiglu"), ("00", "01", "06", "08"),
    )  # fmt: skip
    assert (one.opens, one.due) == (datetime(2027, 1, 11), datetime(2027, 1, 17, 23, 59))
    assert (two.opens, two.due) == (None, datetime(2027, 1, 24, 12))
    assert (one.scheme.title, two.scheme.title) == ("one", "The rest")
    assert [found.share(each) for each in (one, two)] == [0.25, 0.75]
    assert (two.scheme.exercises["swiglu"].correctness, two.scheme.exercises["swiglu"].efficiency) == (4, 4)


def test_a_file_of_points_says_the_same(tmp_path):
    for assignment in course(tmp_path, GOOD).assignments:
        assert points.scheme(assignment.points) == assignment.scheme
        correctness = points.scheme(assignment.for_correctness())
        assert correctness.total == assignment.scheme.total
        assert not any(worth.efficiency for worth in correctness.exercises.values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Two", "titel: Two", "unknown key 'titel'; is it title?"),
        ("title: Two weeks", "title: 3", "title is 3; write a text of one line"),
        ("assignments:", "assignments: {}\nlessons:", "assignments is missing or empty"),
        ("  one:", "  1:", "assignments.1: 1 names files; write up to 40 letters"),
        ("  one:", "  ../one:", "'../one' names files"),
        ("weight: 1", "wieght: 1", "assignments.one: unknown key 'wieght'; is it weight?"),
        ("weight: 1", "weight: 0", "assignments.one.weight is 0; write a number above 0"),
        ("weight: 1", "weight: .nan", "assignments.one.weight is nan; write a number above 0"),
        ("weight: 1", "weight: true", "assignments.one.weight is True"),
        ("opens: 2027-01-11", "opens: monday", "assignments.one.opens is 'monday'; write a date such as"),
        ("opens: 2027-01-11", "opens: 2027-01-18", "is not after opens"),
        ("opens: 2027-01-11", "opens: 7", "assignments.one.opens is 7; write a date"),
        ("2027-01-24 12:00", "2027-01-24 25:00", "assignments.two.due is '2027-01-24 25:00'"),
        ("roll: 10", "rol: 10", "assignments.one: exercises: there is no exercise 'rol'; is it roll?"),
        ("roll: 10", "roll: -1", "assignments.one: exercises.roll is -1"),
        ("swiglu: 8", "roll: 8", "roll is in one and in two; an exercise is handed in once"),
        ("swiglu: 8", "compact_registered: 8", "builds upon the solution of compact, which students do not get"),
        ("efficiency: 0.5", "efficiency: 2", "assignments.two: efficiency is 2; write a share"),
        ("title: Two weeks", 'lessons: ["99"]', "lessons: there is no lesson '99'"),
        ("title: Two weeks", "lessons: 10", "lessons: there is no lesson 10; write a list such as"),
        ("title: Two weeks", "title: [", "course.yml:"),
        ("title: Two weeks", "title: a\ntitle: b", "'title' is written twice"),
    ],
)
def test_a_mistake_is_named(tmp_path, old, new, message):
    assert GOOD.count(old) == 1
    with pytest.raises(points.PointsError) as error:
        course(tmp_path, GOOD.replace(old, new))
    assert message in str(error.value) and str(tmp_path / "course.yml") in str(error.value)


def test_the_ready_made_courses_are_in_the_lessons_order():
    found = {path.stem: read(path) for path in assignments.COURSES.glob("*.yml")}
    assert sorted(found) == ["afternoon", "four_weeks"]
    assert len(found["afternoon"].assignments) == 1
    assert len(found["four_weeks"].assignments) == 4
    order = [exercise.name for exercise in registry.exercises()]
    for each in found.values():
        assert sorted(each.exercises, key=order.index) == list(each.exercises)
        assert sum(each.share(assignment) for assignment in each.assignments) == pytest.approx(1)
    minutes = sum(registry.read(name).minutes for name in found["afternoon"].exercises)
    assert minutes <= 120, "an afternoon has four hours for exercises and lessons"
