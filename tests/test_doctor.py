"""`python -m helpers doctor` and `first-kernel`: what they accept and what they report."""

import stat

import pytest
import torch

from helpers import doctor, first_kernel


def test_this_machine_can_run_the_course(capsys):
    assert doctor.main([]) == 0
    printed = capsys.readouterr().out
    assert "The course can run here." in printed
    for what in ("Python", "PyTorch", "C++ compiler", "ninja", "GPU", "target"):
        assert what in printed


@pytest.mark.parametrize(("version", "state"), [((3, 9, 18), "problem"), ((3, 10, 0), "ok"), ((3, 13, 0), "ok")])
def test_python(version, state):
    assert doctor.check_python(version).state == state


@pytest.mark.parametrize(
    ("version", "state"), [("2.10.1", "problem"), ("2.11.0", "ok"), ("2.13.0+cpu", "ok"), ("3.0.0a0+git1", "ok")]
)
def test_torch(version, state):
    finding = doctor.judge_torch(version, None)
    assert finding.state == state
    assert version in finding.found


def test_a_compiler_is_judged_by_what_it_compiles(tmp_path):
    assert doctor.check_compiler().state == "ok"
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho 'tools are not installed' >&2\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    finding = doctor.check_compiler(str(broken))
    assert finding.state == "problem"
    assert "tools are not installed" in finding.found
    assert doctor.check_compiler(str(tmp_path / "missing")).state == "problem"


def test_a_problem_is_explained_and_decides_the_exit_status(monkeypatch, capsys):
    problem = doctor.Finding("ninja", "problem", "not found", "PyTorch builds with it", "make setup")
    note = doctor.Finding("GPU", "note", "none", "no GPU times", "nothing")
    monkeypatch.setattr(doctor, "CHECKS", (lambda: note, lambda: None, lambda: problem))
    monkeypatch.setattr(doctor, "check_torch", None)
    assert doctor.main([]) == 1
    printed = capsys.readouterr().out
    assert "why it matters: PyTorch builds with it" in printed
    assert "what to do: make setup" in printed
    assert "1 to mend" in printed
    monkeypatch.setattr(doctor, "CHECKS", (lambda: note,))
    assert doctor.main([]) == 0


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], (0, None)),
        ([1.0, 2.0, 0.0], [1.0, 3.0, 1.0], (2, 1)),
        ([float("nan")], [float("nan")], (1, 0)),
        ([float("nan"), 1.0], [0.0, 1.0], (1, 0)),
    ],
)
def test_wrong_elements_are_counted(got, expected, wrong):
    assert first_kernel.compare(torch.tensor(got), torch.tensor(expected)) == wrong


def test_first_kernel_gives_the_right_answer_here(capsys):
    assert first_kernel.main([]) == 0
    assert "right, all 1,000,003 elements" in capsys.readouterr().out


def test_a_wrong_first_kernel_is_reported(monkeypatch, capsys):
    outcome = first_kernel.Outcome("simulator", 1.0, size=10, wrong=3, first_wrong=7)
    monkeypatch.setattr(first_kernel, "run", lambda: outcome)
    assert first_kernel.main([]) == 1
    printed = capsys.readouterr()
    assert "WRONG at 3 of 10 elements, first at 7" in printed.out
    assert "doctor" in printed.err
