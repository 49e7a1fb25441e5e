"""A learner's progress: recorded by verdicts, shown by lesson, never in the way."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import helpers
from helpers.paths import ROOT
from helpers.practice import command, judge, learner, magic, registry, standing, starters
from helpers.practice.verdict import Verdict

NAMES = [exercise.name for exercise in registry.exercises()]
LESSONS = {exercise.lesson for exercise in registry.exercises()}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    path = tmp_path / "mine" / "progress.json"
    monkeypatch.setenv(learner.VARIABLE, str(path))
    return path


def verdict(name, kind):
    return Verdict(name, kind, "why")


def test_verdicts_are_recorded(place):
    assert learner.records() == {}
    for kind in ("rejected", "unsolved", "interrupted", "unknown", "not built", "accepted", "rejected"):
        given = verdict("roll", kind)
        assert learner.noted(given) is given
    record = learner.records()["roll"]
    assert (record["tries"], record["last"]) == (4, "rejected")  # what equals the starter is not a try
    assert len(record["solved"]) == len("2026-11-23")  # solved once is solved
    learner.noted(verdict("blend", "fault"))
    assert "solved" not in learner.records()["blend"]
    assert json.loads(place.read_text())["exercises"].keys() == {"roll", "blend"}


def test_the_place(monkeypatch, tmp_path, place):
    assert learner.place() == place
    monkeypatch.delenv(learner.VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert learner.place() == tmp_path / "data" / "kernel_ladder" / "progress.json"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert learner.place() == tmp_path / ".local" / "share" / "kernel_ladder" / "progress.json"


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"exercises": []}', b'{"exercises": {"roll": 3}}', b'{"exercises": {"roll": {"tries": "x"}}}',
     b'{"exercises": {"roll": {"tries": 1, "last": "accepted", "solved": 7}}}', b"\xff\xfe", b"[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_is_set_aside(place, damage, capsys):
    place.parent.mkdir()
    place.write_bytes(damage)
    learner.noted(verdict("roll", "accepted"))
    assert learner.records()["roll"]["tries"] == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    (aside,) = place.parent.glob("progress.json.damaged-*")
    assert aside.name in said
    assert aside.read_bytes() == damage
    assert "1 of" in repr(helpers.my_progress())


def test_a_place_that_cannot_be_written_is_no_obstacle(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(learner.VARIABLE, str(tmp_path / "file" / "progress.json"))
    assert learner.noted(verdict("roll", "accepted")).accepted
    assert f"set {learner.VARIABLE} to a file that can" in capsys.readouterr().err
    monkeypatch.setenv(learner.VARIABLE, str(tmp_path))  # a folder
    assert learner.noted(verdict("roll", "accepted")).accepted
    assert "cannot be written (it is not a file)" in capsys.readouterr().err
    assert "Nothing is solved yet" in repr(helpers.my_progress())
    assert "cannot be read" in capsys.readouterr().err
    assert tmp_path.is_dir()


def test_nothing_is_kept_in_the_null_device(monkeypatch, capsys):
    monkeypatch.setenv(learner.VARIABLE, os.devnull)
    learner.noted(verdict("roll", "accepted"))
    assert learner.records() == {}
    assert capsys.readouterr().err == ""
    assert not Path(os.devnull).is_file()


def test_a_file_system_without_flock_keeps_verdicts_too(place, monkeypatch, capsys):
    def flock(file, how, original=fcntl.flock):
        if Path(file.name).is_relative_to(place.parent):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        original(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    learner.noted(verdict("roll", "accepted"))
    assert learner.records()["roll"]["tries"] == 1 and capsys.readouterr().err == ""


def test_no_verdict_is_lost_when_several_notebooks_run(place):
    code = (
        "from helpers.practice import learner; from helpers.practice.verdict import Verdict\n"
        "for i in range(50): learner.noted(Verdict('roll', 'rejected', ''))"
    )
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(subprocess.run, [sys.executable, "-c", code], cwd=ROOT, check=True) for _ in range(3)]
        for _ in range(50):
            learner.noted(verdict("blend", "rejected"))
    assert all(run.result().returncode == 0 for run in runs)
    assert {name: record["tries"] for name, record in learner.records().items()} == {"roll": 150, "blend": 50}
    assert [path.name for path in place.parent.iterdir() if "partial" in path.name] == []


def test_what_is_next():
    def following(**kinds):
        learner.reset()
        for name, kind in kinds.items():
            learner.noted(verdict(name, kind))
        return helpers.my_progress().next.name

    assert following() == "lanes"
    assert following(lanes="accepted") == "reverse"
    assert following(lanes="rejected") == "lanes"
    assert following(lanes="accepted", reverse="accepted", times_table="accepted") == "vector_scale"
    assert following(blend="accepted") == "silu_mul"  # goes on where the learner is
    assert following(**dict.fromkeys(NAMES[-3:], "accepted")) == "lanes"  # and comes back for the rest
    learner.reset()
    for name in NAMES:
        learner.noted(verdict(name, "accepted"))
        if name == NAMES[-2]:
            assert "; the rest takes about 30 minutes. Go on with exercise 1" in helpers.my_progress().summary()
    assert helpers.my_progress().next is None
    assert helpers.my_progress().summary() == f"All {len(NAMES)} exercises are solved."


def test_the_progress_is_shown():
    empty = repr(helpers.my_progress())
    assert empty.startswith(f"Nothing is solved yet: there are {len(NAMES)} exercises")
    assert "Begin with exercise 1 of lesson 00, lanes: Warps and lanes of a block (about 5 minutes)." in empty
    assert "[x] lanes" not in empty
    learner.noted(verdict("lanes", "accepted"))
    learner.noted(verdict("reverse", "fault"))
    learner.noted(verdict("an_older_exercise", "accepted"))  # one that the course no longer has
    shown = helpers.my_progress()
    text = repr(shown)
    assert text.startswith(f"Solved: 1 of {len(NAMES)} exercises; ")
    assert "Go on with exercise 2 of lesson 00, reverse" in text
    assert "  [x] lanes                 Warps and lanes of a block (1 try)\n  [~] reverse " in text
    assert "an_older_exercise" not in text
    assert text.count("[x]") == 2  # and the legend
    page = shown._repr_html_()
    assert page.count("<tr>") == len(LESSONS) + 1  # the head
    assert page.count("&#10003;") == 1
    assert 'title="Turn a vector around: tried (1 try)"' in page
    assert all(f">{name}<" in page or f" {name}<" in page for name in NAMES)


def test_a_cell_and_the_command_record_their_verdicts(monkeypatch, capsys):
    monkeypatch.setattr(judge, "check_cell", lambda name, text: verdict(name, "accepted"))
    monkeypatch.setattr(starters, "unsolved", lambda name, path: None)
    monkeypatch.setattr(judge, "check_file", lambda name, path: verdict(name, "rejected"))
    assert magic.exercise("roll", "text").accepted
    assert command.main(["blend"]) == 1
    last = {name: record["last"] for name, record in learner.records().items()}
    assert last == {"roll": "accepted", "blend": "rejected"}
    capsys.readouterr()


def test_the_command_shows_and_resets(place, capsys):
    for name in ("roll", "blend"):
        learner.noted(verdict(name, "accepted"))
    assert standing.main([]) == 0
    shown = capsys.readouterr().out
    assert f"Solved: 2 of {len(NAMES)}" in shown
    assert shown.endswith(f"kept in {place}\n")
    assert standing.main(["--reset", "roll"]) == 0
    assert learner.records().keys() == {"blend"}
    assert standing.main(["--reset", "rol"]) == 2
    assert "there is no exercise 'rol'" in capsys.readouterr().err
    assert learner.records().keys() == {"blend"}
    assert standing.main(["--reset"]) == 0
    assert learner.records() == {}
    assert "Nothing is solved yet" in capsys.readouterr().out
