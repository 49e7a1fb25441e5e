"""The file of points: what it means, and what is wrong with it, in words."""

import pytest

from helpers.teaching.classroom import points
from helpers.teaching.classroom.points import PointsError, Worth


@pytest.fixture
def read(tmp_path):
    def run(text):
        file = tmp_path / "points.yml"
        file.write_text(text, encoding="utf-8")
        return points.read(file)

    return run


def test_points_and_shares(read):
    scheme = read("title: Week 1\nefficiency: 0.2\nexercises:\n  roll: 10\n  blend: {points: 3, efficiency: 0}")
    assert scheme == points.Scheme("Week 1", {"roll": Worth(8.0, 2.0), "blend": Worth(3.0)})
    assert scheme.total == 13
    assert read("exercises: {roll: 0.1, blend: 0.2}").total == 0.3


def test_without_a_file_each_exercise_is_one_point_in_lesson_order():
    found = points.one_each(["transpose", "roll"]).exercises
    assert list(found.items()) == [("roll", Worth(1.0)), ("transpose", Worth(1.0))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file holds NoneType; write 'key: value' lines with title, efficiency, exercises"),
        ("- roll", "the file holds list"),
        ("exercises:\n  roll: [", r"points.yml:2: not YAML"),
        ("exercises:\n  roll: 1\n  roll: 2", "'roll' is written twice"),
        ("exercises: {}", "exercises is missing or empty; write lines such as"),
        ("title: [1]\nexercises: {roll: 1}", r"title is \[1\]; write a text"),
        ("exercise: {roll: 1}", "unknown key 'exercise'; is it exercises?"),
        ("exercises: {rol: 1}", "exercises: there is no exercise 'rol'; is it roll?"),
        ("exercises: {1: 1}", "exercises: there is no exercise 1; there are lanes"),
        ("exercises: {roll: ten}", "exercises.roll is 'ten'; write a number of points above 0"),
        ("exercises: {roll: true}", "exercises.roll is True"),
        ("exercises: {roll: 0}", "exercises.roll is 0"),
        ("exercises: {roll: .nan}", "exercises.roll is nan"),
        ("exercises: {roll: .inf}", "exercises.roll is inf"),
        ("exercises: {roll: {efficiency: 1}}", "exercises.roll: points is missing; write 'roll: {points: 10}'"),
        ("exercises: {roll: {points: x}}", "exercises.roll.points is 'x'"),
        ("exercises: {roll: {points: 1, efficiency: 2}}", "exercises.roll.efficiency is 2; write a share"),
        ("exercises: {roll: {points: 1, speed: 2}}", "speed holds int; write .key: value. lines with share, at_least"),
        ("efficiency: -1\nexercises: {roll: 1}", "efficiency is -1; write a share of the points from 0 to 1"),
        ("exercises: !!python/object/apply:os.system [x]", "not YAML"),
        ("a: " + "[" * 500, "not a YAML text|not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_key_and_value(read, text, said):
    with pytest.raises(PointsError, match=said):
        read(text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(PointsError, match="cannot be read"):
        points.read(tmp_path / "none.yml")
    (tmp_path / "binary.yml").write_bytes(b"\xff\xff")
    with pytest.raises(PointsError, match="not a YAML text in UTF-8"):
        points.read(tmp_path / "binary.yml")
