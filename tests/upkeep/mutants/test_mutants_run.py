"""A run over mutants: verdicts of a process of its own, the record, resuming, scores, the command."""

import json
import os
import signal
import subprocess
import time

import pytest

import helpers
from helpers.upkeep.mutants import command, isolation, judges, record, score, targets
from helpers.upkeep.mutants.isolation import Result
from helpers.upkeep.mutants.judges import Killed, NotBuilt
from helpers.upkeep.mutants.kinds import OPERATORS
from helpers.upkeep.mutants.record import Line
from helpers.upkeep.mutants.targets import Target

TARGET = Target("roll", "solutions/roll.cu", region=(1, 80))
in_the_simulator = pytest.mark.skipif(helpers.target == "gpu", reason="mutants are judged in the simulator")


def line(key, verdict, target="roll", after="after"):
    return Line(key, target, "solutions/roll.cu", "narrow-32", 3, "before", after, verdict, "why", 1.5)


def spins(target, kernels):
    while True:
        pass


def kills(target, kernels):
    raise Killed("found")


def refuses(target, kernels):
    raise NotBuilt("no such type")


@pytest.mark.slow  # of the mutants' own run, which nothing else uses
@pytest.mark.parametrize(
    ("judge", "verdict", "why"),
    [
        (lambda target, kernels: None, "survived", ""),
        (kills, "killed", "found"),
        (refuses, "not built", "no such type"),
        (lambda target, kernels: os.kill(os.getpid(), signal.SIGSEGV), "killed", "it ended the process (SIGSEGV)"),
        (lambda target, kernels: os._exit(3), "killed", "it ended the process (exit status 3)"),
        (spins, "killed", "it did not end within 1 s"),
    ],
)
@in_the_simulator
def test_whatever_a_mutant_does_is_a_verdict(judge, verdict, why):
    result = isolation.judged(judge, TARGET, "text", seconds=1.0)
    assert (result.verdict, result.why) == (verdict, why)


@in_the_simulator
def test_a_judge_sees_the_mutant_beside_the_unchanged_files_and_leaves_nothing(tmp_path):
    def looks(target, kernels):
        assert (kernels / "softmax.cu").read_text() == "mutant"
        assert (kernels / "include" / "launch.h").read_text() == (targets.KERNELS / "include" / "launch.h").read_text()
        raise Killed(str(kernels))

    target = Target("softmax", "softmax.cu", ("softmax",))
    result = isolation.judged(looks, target, "mutant", seconds=20)
    assert result.verdict == "killed", result
    assert not os.path.exists(result.why)


PLANTED = """
import pytest
from inputs import mistaken
from helpers.paths import KERNELS
from kernel_xray.translate.errors import BuildError

def test_the_text():
    text = (KERNELS / "island.cu").read_text()
    if text == "unbuilt":
        raise BuildError("no such type")
    assert text == "right", "found"

def test_a_mistake(tmp_path):
    mistaken(KERNELS / "island.cu", "good", "bad", tmp_path)
    raise AssertionError("it was not skipped")
"""


@pytest.mark.slow  # of the mutants' own run, which nothing else uses
@in_the_simulator
@pytest.mark.parametrize(
    ("text", "verdict", "why"),
    [("right", "survived", ""), ("wrong", "killed", "found"), ("unbuilt", "not built", "no such type")],
)
def test_modules_of_tests_judge_the_mutant_in_place_of_its_original(tmp_path, text, verdict, why):
    module = tmp_path / "test_planted.py"
    module.write_text(PLANTED)
    result = isolation.judged(judges.judge, Target("island", "island.cu", tests=(str(module),)), text, seconds=60)
    assert result.verdict == verdict, result
    assert why in result.why


def test_the_modules_that_judge_exist():
    for target in targets.targets():
        for name in target.tests:
            assert name.startswith("-k") or (judges.TESTS / "kernels" / name).is_file(), target


def test_a_record_is_read_as_it_was_written_but_for_a_line_cut_short(tmp_path):
    path = tmp_path / "record.jsonl"
    record.append(path, line("a", "killed"))
    with path.open("a") as file:
        file.write('{"key": "b", "targ')
    record.append(path, line("c", "survived"))
    assert record.read(path) == {"a": line("a", "killed"), "c": line("c", "survived")}
    assert len(path.read_text().splitlines()) == 3
    assert record.read(tmp_path / "none.jsonl") == {}


def test_a_run_judges_only_what_the_record_lacks(tmp_path, monkeypatch):
    path = tmp_path / "record.jsonl"
    work = [(TARGET, mutant) for mutant in TARGET.mutants([OPERATORS["comparison"], OPERATORS["constant"]])]
    judged = []

    def judge_all(missing, path, workers):
        judged.append(len(missing))
        for target, mutant in missing[:2]:  # then it is killed
            record.append(path, Line.of(target.name, mutant, Result("killed", "why", 0.1)))
        if len(missing) > 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "_judge_all", judge_all)
    monkeypatch.setattr(judges, "prepare", lambda: None)
    while True:
        try:
            lines = command.run(work, path, 1)
            break
        except KeyboardInterrupt:
            continue
    assert judged == list(range(len(work), 0, -2))
    assert [one.key for one in lines] == [mutant.key for _, mutant in work]


@pytest.mark.slow  # of the mutants' own run, which nothing else uses
@in_the_simulator
def test_workers_judge_originals_first_and_refuse_a_wrong_one(tmp_path, monkeypatch):
    def judge(target, kernels):
        if (kernels / target.file).read_text() != target.text():
            raise Killed("another text")

    monkeypatch.setattr(judges, "judge", judge)
    work = [(TARGET, mutant) for mutant in TARGET.mutants([OPERATORS["narrow-32"]])]
    path = tmp_path / "record.jsonl"
    command._judge_all(work, path, 2)
    lines = record.read(path)
    assert lines.pop(TARGET.original().key).verdict == "survived"
    assert {one.verdict for one in lines.values()} == {"killed"}
    assert set(lines) == {mutant.key for _, mutant in work}
    monkeypatch.setattr(judges, "judge", kills)
    with pytest.raises(RuntimeError, match=r"solutions/roll\.cu itself is rejected.*found"):
        command._judge_all(work, tmp_path / "other.jsonl", 1)


def test_a_sample_is_the_same_each_time_and_a_part_of_the_whole():
    work = [(TARGET, mutant) for mutant in TARGET.mutants(list(OPERATORS.values()))]
    sample = command.sampled(work, 5)
    assert len(sample) == 5
    assert sample == command.sampled(work, 5)
    assert sample != command.sampled(work, 5, seed="another")
    assert [pair for pair in work if pair in sample] == sample
    assert command.sampled(work, 0) == work


def test_the_score_leaves_out_what_is_equivalent_or_does_not_build(monkeypatch):
    monkeypatch.setattr(score.equivalents, "reason", lambda file, operator, after: "same" if after == "same" else "")
    verdicts = [("a", "killed"), ("b", "killed"), ("c", "killed"), ("d", "survived"), ("e", "not built")]
    lines = [*(line(*one) for one in verdicts), line("f", "survived", after="same")]
    assert score.score(lines) == "3/4 killed (75.0%), 1 equivalent, 1 not built"
    assert score.survivors(lines) == [line("d", "survived")]
    shown = "\n".join(score.table(lines))
    assert "all: 3/4 killed (75.0%)" in shown
    assert shown.startswith("roll  3/4 killed (75.0%)")
    assert "solutions/roll.cu:3 narrow-32\n  - before\n  + after" in shown
    assert score.score([]).startswith("0/0 killed (100.0%)")


def test_the_command_lists_and_refuses(capsys, tmp_path):
    assert command.main(["roll", "--operators", "narrow-32", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 mutants"
    assert command.main(["rol"]) == 2
    assert "there is no rol to mutate; there are lanes, reverse, " in capsys.readouterr().err
    assert command.main(["--operators", "narrow"]) == 2
    assert "there is no operator narrow; there are narrow-32" in capsys.readouterr().err
    path = tmp_path / "record.jsonl"
    path.write_text("")
    assert command.main(["roll", "--record", str(path)]) == 2


def test_every_kernel_is_a_target_or_left_out_for_a_reason():
    files = {str(path.relative_to(targets.KERNELS)) for path in targets.KERNELS.glob("*.cu")}
    files |= {str(path.relative_to(targets.KERNELS)) for path in targets.KERNELS.glob("matmul/*.cu")}
    files |= {str(path.relative_to(targets.KERNELS)) for path in targets.KERNELS.glob("solutions/*.cu")}
    known = {target.file for target in targets.targets()}
    assert files == {file for file in known | set(targets.LEFT_OUT) if file.endswith(".cu")}
    assert not known & set(targets.LEFT_OUT)
    assert len(known) == len(targets.targets())


# -- Real mutants ------------------------------------------------------------------------------------------------------

SAMPLE = [  # target, operator, changed line
    ("vector_max", "uninitialised", "float result;"),
    ("vector_max", "narrow-32", "__global__ void vector_max_kernel(const float* x, float* out, int n) {"),
    ("vector_add", "narrow-unsigned", "unsigned vectors = n / 4;"),
    ("matmul/03_tiled", "barrier", ";  // the tiles are complete"),
]


@pytest.mark.slow
@in_the_simulator
@pytest.mark.parametrize(("name", "operator", "after"), SAMPLE)
def test_a_real_mutant_is_killed_and_its_original_is_not(name, operator, after):
    judges.prepare()
    (target,) = targets.find([name])
    mutant = next(one for one in target.mutants([OPERATORS[operator]]) if one.after == after)
    began = time.monotonic()
    original = isolation.judged(judges.judge, target, target.text())
    assert original.verdict == "survived", original.why
    result = isolation.judged(judges.judge, target, mutant.text)
    assert result.verdict == "killed", json.dumps(result.why)
    assert 0 < result.seconds < time.monotonic() - began


def test_mutants_since_a_commit_are_those_of_the_lines_that_differ(tmp_path, monkeypatch, capsys):
    file = tmp_path / "kernels" / "two words.cu"
    file.parent.mkdir()
    monkeypatch.setattr(command, "KERNELS", file.parent)

    def git(*arguments):
        own = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(tmp_path), *own, *arguments], check=True, capture_output=True)

    git("init")
    file.write_text("one\ntwo\nthree\nfour\nfive\n")
    (tmp_path / "beside.cu").write_text("one\n")
    git("add", ".")
    git("commit", "-m", "first")
    file.write_text("one\nTWO\nthree\nfive\nsix\nseven\n")
    (tmp_path / "beside.cu").write_text("other\n")
    assert command.changed_since("HEAD") == {"two words.cu": {2, 5, 6}}
    git("commit", "-a", "-m", "second")
    assert command.changed_since("HEAD") == {}
    assert command.main(["roll", "--since", "nowhere", "--list"]) == 2
    assert "--since nowhere: fatal: " in capsys.readouterr().err
