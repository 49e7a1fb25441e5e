"""Every answer gets one verdict, whatever becomes of a worker; a run that was killed goes on where it was."""

import json
import multiprocessing
import sys
import tempfile
import time

import pytest

from helpers.paths import TESTS
from helpers.teaching.classroom import calibration, formats, grading, results, submissions
from helpers.teaching.classroom.points import Scheme, Worth
from helpers.teaching.classroom.verdicts import Checked, Store, key_of

STAND_IN = TESTS / "teaching" / "classroom" / "stand_in.py"
SCHEME = Scheme("Week 1", {"roll": Worth(2.0), "blend": Worth(3.0, 1.0)})


def points(whole):
    return {one.name: [(result.kind, result.points) for result in one.results] for one in whole.submissions}


def test_points_are_for_accepted_and_for_efficient_answers(folder, graded):
    root = folder(
        {
            "ann/roll.cu": "right",
            "ann/blend.cu": "right",
            "bob/roll.cu": "wrong",
            "bob/blend.cu": "right but wasteful",
            "eve/lesson.ipynb": ["%%exercise roll\nright", "%%exercise roll\nwrong", "%%exercise transpose\nright"],
        }
    )
    whole, _ = graded(root, SCHEME)
    ann, bob = [("accepted", 2), ("accepted", 4)], [("rejected", 0), ("accepted", 3)]
    assert points(whole) == {"ann": ann, "bob": bob, "eve": [("ambiguous", 0), ("missing", 0)]}
    eve = whole.submissions[-1]
    roll, blend = (result.message for result in eve.results)
    assert roll == "lesson.ipynb, cell 1 and lesson.ipynb, cell 2 differ, so neither was checked; keep one"
    assert blend == "there is no file blend.cu and no cell %%exercise blend"
    assert eve.problems == ("transpose is not part of this assignment: not counted",)


def test_what_the_solution_wastes_costs_no_points(folder, graded, monkeypatch):
    root = folder({"ann/blend.cu": "right but wasteful"})
    own = submissions.Answer("blend", "right and wasteful too", "blend.cu")
    for module in ("grading", "results"):
        monkeypatch.setattr(f"helpers.teaching.classroom.{module}.solution_of", lambda name: own)
    whole, _ = graded(root, SCHEME)
    assert points(whole)["ann"][1] == ("accepted", 4)


@pytest.fixture
def calibrated(tmp_path, monkeypatch):
    """A function that judges stand-ins for solutions and starters. Returns what is not graded, and the requests."""
    monkeypatch.setenv("KERNEL_XRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERNEL_LADDER_CACHE", raising=False)
    log, store = tmp_path / "requests", Store(tmp_path / "verdicts")

    def run(solutions, starters):
        for function, texts in (("solution_of", solutions), ("_starter_of", starters)):
            answers = {name: submissions.Answer(name, text, "") for name, text in texts.items()}
            monkeypatch.setattr(calibration, function, answers.get)
        log.write_text("")
        command = [sys.executable, "-I", "-S", str(STAND_IN), str(log)]
        found = calibration.not_graded(solutions, store, 2, command)
        return found, sorted(log.read_text().splitlines()), store

    return run


def test_an_exercise_whose_solution_is_refused_or_whose_starter_is_accepted_is_not_graded(calibrated):
    solutions = {"roll": "right", "blend": "an error", "saxpy": "right, too"}
    starters = {"roll": "a gap", "blend": "a gap", "saxpy": "also right"}
    found, requests, store = calibrated(solutions, starters)
    assert set(found) == {"blend", "saxpy"}
    assert found["blend"].startswith("the course's own solution gets 'not right yet' here: n = 5: 1 of 5 elements")
    assert found["saxpy"] == "the starter, which solves nothing, gets 'accepted' here: 5 cases"
    assert len(requests) == 6
    assert store.get(key_of(submissions.Answer("roll", "right", ""))).accepted, "answers are compared with it"


def test_a_sound_grader_is_judged_once_and_a_broken_one_each_time(calibrated):
    solutions, starters = {"roll": "right", "blend": "an error"}, {"roll": "a gap", "blend": "a gap"}
    assert len(calibrated(solutions, starters)[1]) == 4
    assert calibrated(solutions, starters)[1] == ["blend a gap", "blend an error"]
    assert calibrated({**solutions, "blend": "right"}, starters)[0] == {}
    assert calibrated({**solutions, "blend": "right"}, starters)[1] == []


def test_a_starter_is_judged_and_not_refused_unseen():
    for name in ("roll", "softmax_op"):
        assert not submissions.is_starter(calibration._starter_of(name))


def test_the_same_answer_is_checked_once(folder, graded):
    root = folder({f"{i}/roll.cu": "right" for i in range(20)})
    scheme = Scheme("", {"roll": Worth(1.0)})
    whole, requests = graded(root, scheme)
    assert requests == ["roll right"]
    assert {tuple(results) for results in points(whole).values()} == {(("accepted", 1),)}
    assert graded(root, scheme)[1] == []


@pytest.mark.parametrize(("text", "requests"), [("ends", 4), ("babbles", 4), ("lies", 4), ("right", 1)])
def test_a_worker_that_fails_is_replaced_and_the_others_are_graded(folder, graded, text, requests):
    root = folder({"ann/roll.cu": text, "bob/roll.cu": "wrong", "eve/roll.cu": "right, too"})
    whole, got = graded(root, Scheme("", {"roll": Worth(1.0)}), jobs=1)
    kinds = {one.name: one.results[0].kind for one in whole.submissions}
    assert kinds == {"ann": "accepted" if text == "right" else "fault", "bob": "rejected", "eve": "accepted"}
    assert got.count(f"roll {text}") == requests


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("right, unlucky", [("accepted", 3), ("accepted", 3)]),  # its third worker does not end
        ("ends", [("fault", 4), ("fault", 8)]),  # twice two workers in each run
    ],
)
def test_an_answer_whose_workers_were_ended_is_checked_again_by_this_run_and_the_next(folder, tmp_path, text, seen):
    (found,) = submissions.find(folder({"ann/roll.cu": text}))
    (answer,) = found.answers["roll"]
    for expected in seen:
        store, log = Store(tmp_path / "verdicts"), tmp_path / "log"
        grading.check([answer], store, 1, [sys.executable, "-I", "-S", str(STAND_IN), str(log)])
        assert (store.get(key_of(answer)).kind, len(log.read_text().splitlines())) == expected


def test_an_answer_whose_process_was_killed_has_no_verdict_that_stays(folder, tmp_path):
    (found,) = submissions.find(folder({"ann/roll.cu": "right"}))
    (answer,) = found.answers["roll"]
    for killed, kind in ((False, "not built"), (True, "accepted")):  # as a task of a job array left it; then merged
        store = Store(tmp_path / "verdicts")
        store.put(key_of(answer), Checked("roll", "not built", "it ended the process (SIGKILL)", passing=killed))
        grading.check([answer], store, 1, [sys.executable, "-I", "-S", str(STAND_IN), str(tmp_path / "log")])
        assert store.get(key_of(answer)).kind == kind


def test_a_worker_that_does_not_start_grades_nobody(folder, tmp_path):
    found = submissions.find(folder({"roll.cu": "right"}))
    with pytest.raises(grading.Unfit, match="did not start"):
        grading.grade(found, SCHEME, Store(tmp_path), 1, [sys.executable, "-I", "-S", str(STAND_IN)])


def test_a_damaged_verdict_is_reached_again(folder, graded, tmp_path):
    root, store = folder({"roll.cu": "right"}), Store(tmp_path / "verdicts")
    (answer,) = submissions.find(root)[0].answers["roll"]
    scheme = Scheme("", {"roll": Worth(1.0)})
    first, _ = graded(root, scheme, single=True, store=store)
    (file,) = (tmp_path / "verdicts").glob("*.json")
    good = file.read_text()
    for damaged in ("", good[:40], good.replace('"accepted"', "3"), good.replace("accepted", "perfect"), "[]", "{}"):
        file.write_text(damaged)
        assert store.get(key_of(answer)) is None
    assert graded(root, scheme, single=True, store=store) == (first, ["roll right"])
    assert file.read_text() == good


def test_a_key_depends_on_all_that_a_verdict_depends_on(tmp_path, monkeypatch):
    answer = submissions.Answer("roll", "x", "roll.cu")
    same = submissions.Answer("roll", "x", "elsewhere.cu")
    others = [submissions.Answer("roll", "y", ""), submissions.Answer("blend", "x", "")]
    others.append(submissions.Answer("roll", "x", "", is_cell=True))
    assert key_of(answer) == key_of(same)
    assert len({key_of(one) for one in (answer, *others)}) == 4
    before = key_of(answer)
    monkeypatch.setattr("helpers.teaching.classroom.verdicts.target", "another")
    assert key_of(answer) != before


def test_verdicts_are_cleared_only_when_asked(tmp_path):
    store = Store(tmp_path)
    store.put("roll-1", Checked("roll", "accepted", "all"))
    assert Store(tmp_path).get("roll-1") == Checked("roll", "accepted", "all")
    assert store.get("blend-1") is None
    store.clear()
    assert store.get("roll-1") is None


# -- Killed and resumed ------------------------------------------------------------------------------------------------


def grade(root, out, part=None):
    """Grades as the command does, with stand-ins for the judge."""
    store, log = Store(out / "verdicts", shared=bool(part)), str(out / "log")
    found, scheme = submissions.find(root), Scheme("Week 1", {"roll": Worth(2.0), "blend": Worth(3.0)})
    command = [sys.executable, "-I", "-S", str(STAND_IN), log]
    grading.grade(found, scheme, store, 2, command, part=part or grading.WHOLE)
    if part:
        return
    for name in set(formats.FORMATS) - {"classroom50"}:  # that one is for a single submission
        formats.write(name, results.collect(found, scheme, store), out)


def started(function, *arguments):
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    return process


def wait_for_verdicts(out, count):
    end = time.monotonic() + 100
    while time.monotonic() < end and len(list(out.glob("verdicts/*.json"))) < count:
        time.sleep(0.01)


def content(out):
    files = (path for path in sorted(out.rglob("*")) if path.is_file() and path.name != "log")
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def test_killed_half_way_and_resumed_gives_the_same_bytes_and_checks_nothing_twice(folder, tmp_path):
    texts = {f"s{i:02}/{name}.cu": f"slow {i} {'right' * (i % 3 > 0)}" for i in range(20) for name in ("roll", "blend")}
    root, whole, killed = folder(texts), tmp_path / "whole", tmp_path / "killed"
    for out in (whole, killed):
        out.mkdir()
    grade(root, whole)
    process = started(grade, root, killed)
    wait_for_verdicts(killed, 15)
    process.kill()
    process.join()
    kept = [json.loads(path.read_text()) for path in killed.glob("verdicts/*.json")]
    assert 15 <= len(kept) < 40
    assert not (killed / "grades.csv").exists()
    asked = (killed / "log").read_text().splitlines()
    (killed / "verdicts" / "roll-0.json.1.partial").write_text("{")  # as if killed while it wrote
    grade(root, killed)
    again = (killed / "log").read_text().splitlines()[len(asked) :]
    assert content(killed) == content(whole)
    assert len(content(whole)) == 40 + len(("grades.csv", "grades.json", "junit.xml", "anonymous.json")) + 3 * 20 + 1
    assert len(again) == 40 - len(kept)


@pytest.mark.slow  # three graders; one that is resumed is tested above
def test_tasks_of_a_job_array_check_each_text_once_and_the_last_run_what_lost_ones_left(folder, tmp_path):
    texts = {f"s{i:02}/{name}.cu": f"slow {i % 12} right" for i in range(16) for name in ("roll", "blend")}
    root, whole, parts = folder(texts), tmp_path / "whole", tmp_path / "parts"
    for out in (whole, parts):
        out.mkdir()
    grade(root, whole)
    tasks = [started(grade, root, parts, grading.Part(number, 4)) for number in range(3)]  # the fourth is lost
    wait_for_verdicts(parts, 1)
    tasks[0].kill()
    for task in tasks:
        task.join()
    asked = (parts / "log").read_text().splitlines()
    assert 12 <= len(set(asked)) == len(asked) < 24
    assert [path.name for path in parts.iterdir() if path.name != "log"] == ["verdicts"]
    kept = len(list(parts.glob("verdicts/*.json")))
    grade(root, parts)
    assert content(parts) == content(whole)
    assert len((parts / "log").read_text().splitlines()) == len(asked) + 24 - kept


def test_one_of_several_tasks_judges_the_grader_for_all(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_XRAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERNEL_LADDER_CACHE", raising=False)
    command = [sys.executable, "-I", "-S", str(STAND_IN), str(tmp_path / "log")]
    arguments = (["roll", "blend"], Store(tmp_path / "verdicts"), 1, command)
    tasks = [started(lambda: sys.exit(bool(calibration.not_graded(*arguments)))) for _ in range(3)]
    for task in tasks:
        task.join()
    asked = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith(("roll ", "blend "))]
    assert [task.exitcode for task in tasks] == [0, 0, 0]
    assert len(asked) == 4  # two solutions and two starters


@pytest.mark.slow  # waits for workers; the test above ends one half way
def test_a_batch_system_that_ends_the_grader_leaves_no_folder_of_a_worker(folder, tmp_path, monkeypatch):
    (temporary := tmp_path / "temporary").mkdir()
    (out := tmp_path / "out").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    root = folder({f"s{i:03}/roll.cu": f"slow {i}" for i in range(500)})
    process = started(grade, root, out)
    wait_for_verdicts(out, 1)
    assert list(temporary.glob("answer_worker_*"))
    process.terminate()
    process.join(60)
    assert process.exitcode == 1  # by KeyboardInterrupt
    assert list(temporary.iterdir()) == []


def test_all_formats_are_tried_here():
    here = {"csv", "json", "junit", "gradescope", "prairielearn", "classroom50", "html", "anonymous"}
    assert set(formats.FORMATS) == here
