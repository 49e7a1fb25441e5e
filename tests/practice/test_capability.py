"""An exercise for GPUs of one capability: on another GPU the verdict says so, and what checks it instead."""

import pytest
import torch

from helpers.practice import isolated, registry, trial
from helpers.practice.checks import CHECKS
from helpers.practice.verdict import Verdict


def ask(process, header, parts=()):
    raise AssertionError(header["do"])


def outcome(monkeypatch, name, capability, device="cuda"):
    monkeypatch.setattr(isolated.Process, "ask", ask)
    monkeypatch.setattr(trial, "device", torch.device(device))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    return trial.run(name, registry.find(name).solution)


@pytest.mark.parametrize("capability", [(7, 5), (8, 9), (10, 0), (12, 0)])
def test_another_gpu_cannot_check_it_and_the_verdict_says_what_can(monkeypatch, capability):
    found = outcome(monkeypatch, "ring_consumer", capability)
    assert found.kind == "unchecked"
    text = repr(Verdict("ring_consumer", found.kind, found.message))
    begins = "ring_consumer: not checked here: it cannot be checked on this GPU: its kernel needs compute"
    assert text.startswith(begins)
    assert "capability 9.0" in text and f"has compute capability {capability[0]}.{capability[1]}" in text
    assert "KERNEL_LADDER_TARGET=simulator python -m helpers check ring_consumer" in text
    assert not Verdict("ring_consumer", found.kind, found.message).accepted


@pytest.mark.parametrize(
    ("name", "capability", "device"),
    [("ring_consumer", (9, 0), "cuda"), ("ring_consumer", (7, 5), "cpu"), ("roll", (7, 5), "cuda")],
)
def test_elsewhere_the_check_goes_on(monkeypatch, name, capability, device):
    assert "build" in outcome(monkeypatch, name, capability, device).message


def test_the_exercises_of_lesson_11_are_for_hopper():
    lesson = {exercise.name for exercise in registry.exercises() if exercise.lesson == "11"}
    assert {name for name, what in CHECKS.items() if what.capability} == lesson
