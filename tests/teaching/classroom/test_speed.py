"""Points for speed: where they come from, and what happens on a machine that cannot time kernels."""

import json

import pytest
import torch
from scripted import Script

from helpers.practice import registry
from helpers.practice.cases import Case
from helpers.teaching.classroom import points, speed, submissions
from helpers.teaching.classroom.points import Scheme, Worth
from helpers.teaching.classroom.verdicts import Store
from kernel_xray.machine.toolchain import target

SOLUTION = registry.find("roll").solution


@pytest.fixture
def timed(graded, folder):
    """A function that grades a right and a wrong answer with a stand-in judge and given times."""

    def run(worth, found, store=None):
        asked = []
        root = folder({"ann/roll.cu": "right", "bob/roll.cu": "wrong"})
        given = {"jobs": 1, "store": store, "measure": lambda answer: asked.append(answer.text) or found}
        ann, bob = (one.results[0] for one in graded(root, Scheme("", {"roll": worth}), **given)[0].submissions)
        assert bob.points == 0
        return ann, asked

    return run


@pytest.mark.parametrize(
    ("found", "unmeasured", "got", "said"),
    [
        ("0.8", "withheld", 10, "0.8 times the solution's; at least 0.8 earns 4 points"),
        ("0.79", "given", 6, "0.79 times the solution's; at least 0.8 earns 4 points"),
        ("failed: answer: wrong", "given", 6, "failed: answer: wrong"),
        ("", "withheld", 6, "not measured, since no GPU timed this answer: its 4 points are withheld"),
        ("", "given", 10, "not measured, since no GPU timed this answer: its 4 points are given"),
    ],
)
def test_the_bar_decides_and_the_verdict_says_so(timed, found, unmeasured, got, said):
    ann, asked = timed(Worth(6.0, 0.0, 4.0, 0.8, unmeasured), found)
    assert (ann.points, ann.maximum) == (got, 10)
    assert f"speed: {said}" in ann.text()
    assert asked == ["right"], "only accepted answers are timed"


def test_an_answer_is_timed_once_and_only_where_speed_counts(timed, tmp_path):
    store = Store(tmp_path / "verdicts")
    assert timed(Worth(10.0), "2", store)[1] == []
    assert timed(Worth(6.0, 0.0, 4.0, 0.8), "", store)[1] == ["right"]
    assert timed(Worth(6.0, 0.0, 4.0, 0.8), "2", store)[1] == ["right"], "not measured before"
    ann, asked = timed(Worth(6.0, 0.0, 4.0, 0.8), "3", store)
    assert asked == []
    assert ann.points == 10 and "2 times" in ann.text()


@pytest.mark.parametrize(
    ("said", "status", "found"),
    [
        (b'warning\n{"speed": 0.9344}\n', 0, "0.934"),
        (b'{"failed": "answer: wrong"}', 0, "failed: answer: wrong"),
        (b'{"speed": "9"}', 0, "failed: the timing gave no time"),
        (b'{"speed": -1.0}', 0, "failed: the timing gave no time"),
        (b"", -11, "failed: the timing ended with status -11"),
        (b"[1]", 0, "failed: the timing ended with status 0"),
    ],
)
def test_what_the_timing_process_prints_is_read_with_care(said, status, found):
    assert speed.read(said, status) == found


@pytest.mark.skipif(target == "gpu", reason="this machine has a GPU, where the answer is timed")
def test_without_a_gpu_nothing_is_timed():
    assert speed.measure(submissions.Answer("roll", SOLUTION.read_text(encoding="utf-8"), "roll.cu")) == ""


@pytest.mark.skipif(target != "gpu", reason="needs a GPU that times kernels")
@pytest.mark.slow  # builds two kernels
def test_on_a_gpu_an_answer_is_timed_beside_the_solution():
    answer = submissions.Answer("roll", SOLUTION.read_text(encoding="utf-8"), "roll.cu")
    assert float(speed.measure(answer)) > 0


@pytest.mark.skipif(target == "gpu", reason="the scripted device has CPU tensors")
@pytest.mark.slow  # builds two kernels, three times
def test_answer_and_solution_are_timed_on_the_same_inputs_and_checked(tmp_path):
    x = torch.arange(1000.0)
    case = Case("small", (x, 3), {"out": x})  # the output is like x, not x itself
    right, wrong = tmp_path / "right.cu", tmp_path / "wrong.cu"
    text = SOLUTION.read_text(encoding="utf-8")
    right.write_text(text + "\n// mine\n")
    wrong.write_text(text.replace("(i - shift % n)", "(i + shift % n)"))
    assert speed.compare("roll", right, Script(solution=1.0, answer=4.0), case) == {"speed": 0.25}
    assert speed.compare("roll", right, Script(solution=3.0, answer=1.0), case) == {"speed": 3.0}
    failed = speed.compare("roll", wrong, Script(), case)["failed"]
    assert failed.startswith("answer: check before timing: CheckFailed")
    assert json.dumps(failed)


def test_an_exercise_with_a_bar_has_large_inputs(tmp_path):
    names = [exercise.name for exercise in registry.exercises() if speed.can_time(exercise.name)]
    assert len(names) >= 20
    for name in names:
        case = speed.large_case(name)
        assert sum(x.numel() for x in (*case.inputs, *case.outputs.values()) if isinstance(x, torch.Tensor)) > 10_000
    (tmp_path / "points.yml").write_text("exercises: {outer_meta: {points: 1, speed: {share: 0.5, at_least: 1}}}")
    with pytest.raises(points.PointsError, match=r"outer_meta.speed: outer_meta has no inputs that are large enough"):
        points.read(tmp_path / "points.yml")
    with pytest.raises(ValueError, match="large enough"):
        speed.large_case("outer_meta")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{at_least: 0.8}", "share is missing; write 'speed: {share: 0.25, at_least: 0.8}'"),
        ("{share: 0.5}", "at_least is missing"),
        ("2", "roll.speed holds int"),
        ("{share: 2, at_least: 0.8}", "speed.share is 2; write a share of the points"),
        ("{share: 0.5, at_least: 0}", "speed.at_least is 0; write a share of the solution's speed"),
        ("{share: 0.5, at_least: 0.8, of: cublas}", "speed.of is 'cublas'; the only choice is 'solution'"),
        ("{share: 0.5, at_least: 0.8, unmeasured: lost}", "speed.unmeasured is 'lost'; write withheld or given"),
        ("{share: 0.5, at_last: 0.8}", "unknown key 'at_last'; is it at_least?"),
        ("{share: 0.9, at_least: 0.8}", "the shares for efficiency and speed, 0.2 and 0.9, exceed 1"),
    ],
)
def test_a_wrong_bar_is_refused(tmp_path, given, said):
    file = tmp_path / "points.yml"
    file.write_text(f"efficiency: 0.2\nexercises: {{roll: {{points: 10, speed: {given}}}}}")
    with pytest.raises(points.PointsError) as refused:
        points.read(file)
    assert said in str(refused.value)


def test_a_bar_is_read(tmp_path):
    file = tmp_path / "points.yml"
    bar = "{share: 0.25, at_least: 0.8, of: solution, unmeasured: given}"
    file.write_text(f"exercises: {{roll: {{points: 20, efficiency: 0.25, speed: {bar}}}}}")
    assert points.read(file).exercises == {"roll": Worth(10.0, 5.0, 5.0, 0.8, "given")}
    assert points.read(file).total == 20
