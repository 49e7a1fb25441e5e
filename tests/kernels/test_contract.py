"""Every operator of the catalogue keeps every point of contract.py, and every point rejects a wrong operator."""

import dataclasses
import os
import re

import contract_odd  # noqa: F401 - its points
import pytest
import torch
from contract import POINTS, ContractBroken, NotHere, Operator, blames, hold
from contract_wrong import WRONG
from contracted import OPERATORS, as_parameter
from running import OURS, python

import helpers
from helpers.paths import TESTS

ONLY_ON_A_GPU = {"device", "graph_capture"}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("operator", [as_parameter(operator) for operator in OPERATORS])
def test_contract(operator, point):
    try:
        hold(operator, point)
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.point}-{wrong.operator.name}")
def test_a_wrong_operator_is_rejected(wrong):
    if wrong.point == "graph_capture" and helpers.target == "gpu":
        assert re.search(wrong.match, broken_in_a_separate_process(wrong), re.DOTALL)
        return
    current = torch.cuda.current_device() if helpers.target == "gpu" else None
    try:
        with pytest.raises(ContractBroken, match=f"(?s){wrong.match}"):
            hold(wrong.operator, wrong.point)
    except NotHere as reason:
        assert wrong.point in ONLY_ON_A_GPU  # no other point has an excuse
        pytest.skip(str(reason))
    finally:
        if current is not None:
            torch.cuda.set_device(current)


def broken_in_a_separate_process(wrong):
    """The contract's message for a wrong operator. A failed capture leaves PyTorch's random numbers unusable."""
    code = (
        "import sys; from contract import ContractBroken, hold; from contract_wrong import WRONG\n"
        "wrong = WRONG[int(sys.argv[1])]\n"
        "try: hold(wrong.operator, wrong.point)\n"
        "except ContractBroken as broken: print('broken:', broken)"
    )
    path = os.pathsep.join([str(TESTS / "kernels"), OURS["PYTHONPATH"]])
    done = python("-c", code, WRONG.index(wrong), PYTHONPATH=path)
    assert done.stdout.startswith("broken:"), done.stdout + done.stderr
    return done.stdout


def test_every_point_has_something_to_reject():
    assert {wrong.point for wrong in WRONG} == set(POINTS)


def test_an_excuse_has_to_be_given():
    bare = Operator("bare", lambda: torch.mul, torch.mul, ("a", "b"))
    for point in ("gradients", "registration"):
        with pytest.raises(ContractBroken, match="say so in `excused`"):
            hold(bare, point)
    with pytest.raises(NotHere, match="because"):
        hold(dataclasses.replace(bare, excused={"gradients": "because"}), "gradients")


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_excuses_are_for_points_that_exist(operator):
    assert set(operator.excused) <= set(POINTS)


@pytest.mark.parametrize(
    ("message", "name", "expected"),
    [
        ("a must be contiguous", "a", True),
        ("check_input, launch.h:60, a must be float32", "a", True),
        ("a and b must have the same shape", "a", True),
        ("a and b must have the same shape", "b", True),
        ("b must be contiguous", "a", False),
        ("CUDA error: an illegal address; a kernel must not", "a", False),
        ("such a tensor must be contiguous", "a", False),
        ("grad must be float32", "a", False),
    ],
)
def test_which_argument_a_message_blames(message, name, expected):
    assert blames(message, name) is expected
