"""The operator on several devices: each way to divide the work gives the gradients of one process."""

import json
import os
import re
import subprocess
import sys
import time

import pytest
import torch
from made_up import MACHINE

from helpers.ladder.pytorch import many_gpus
from helpers.ladder.pytorch.processes import call
from helpers.upkeep.benchmarks import scaling as scaling_bench

pytestmark = pytest.mark.slow
TWO = 2
SIMULATED = {"KERNEL_LADDER_TARGET": "simulator"} if torch.cuda.device_count() < TWO else {}


@pytest.fixture(scope="module")
def two_processes():
    return {line["way"]: line for line in many_gpus.launch(TWO)}


@pytest.mark.parametrize("way", many_gpus.WAYS)
def test_two_processes_give_the_gradients_of_one(two_processes, way):
    found = two_processes[way]
    assert found["processes"] == TWO
    assert found["largest_gradient"] > 1e-3
    assert found["largest_difference"] <= 1e-13 * found["largest_gradient"]


def test_a_process_holds_its_part_of_sharded_parameters(two_processes):
    parts = {way: two_processes[way]["all"] / two_processes[way]["held"] for way in many_gpus.WAYS}
    assert parts == {"ddp": 1, "fsdp": TWO, "tensor_parallel": TWO}


def test_each_line_of_the_rule_holds(two_processes):
    lines = two_processes["each line"]["lines"]
    assert len(lines) == 5
    assert all(line["placed"] and line["largest_difference"] < 1e-14 for line in lines)


def test_sums_are_added_up_before_they_are_multiplied(two_processes):
    found = two_processes["product of sums"]
    assert found["got"] == found["want"] == (1 + 2) ** 2


def test_a_wrong_sharding_rule_gives_a_wrong_product():
    *_, found = many_gpus.launch(TWO, "ddp", "--rule", "wrong")
    assert found["got"] == 1 + 2**2 != found["want"]


# -- Processes ---------------------------------------------------------------------------------------------------------


def work(arguments):
    """Returns what the process was told, and prints; the second process may fail, end or wait."""
    rank, processes = os.environ["RANK"], int(os.environ["WORLD_SIZE"])
    print("printed by", rank, flush=True)
    if arguments == ["fails"] and rank == "1":
        raise ValueError("the second is wrong")
    if arguments == ["ends"] and rank == "1":
        os._exit(3)
    if arguments == ["waits"] and rank == "1":
        time.sleep(60)
    return rank, processes, list(arguments), "x" * 100_000


def test_the_first_process_answers():
    before = dict(os.environ)
    assert call(work, 3, ["a", "b"]) == ("0", 3, ["a", "b"], "x" * 100_000)
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        ("fails", RuntimeError, "test_many_gpus.work failed:.*ValueError: the second is wrong.*printed by 1"),
        ("ends", RuntimeError, "process 1 terminated with exit code 3.*printed by 0.*printed by 1"),
        ("waits", TimeoutError, "test_many_gpus.work takes longer than 4 s"),
    ],
)
def test_a_failed_process_is_reported(argument, error, message):
    call(work, 1)  # the slow imports are done
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        call(work, 2, [argument], seconds=4 if argument == "waits" else 100)


@pytest.mark.parametrize("rule", ["right", "wrong"])
def test_the_same_under_torchrun(rule):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["-m", "helpers.ladder.pytorch.many_gpus", "ddp", "--rule", rule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **SIMULATED})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["way"] for line in lines] == ["ddp", "each line", "product of sums"], done.stderr
    assert lines[-1]["got"] == (9 if rule == "right" else 5)


# -- python -m helpers bench --scaling ---------------------------------------------------------------------------------


def test_a_step_costs_what_the_clock_says():
    now, taken = [0.0], iter([9.0, 9.0, 9.0, 0.1, 0.3, 0.2])  # the first three only warm up

    def step():
        now[0] += next(taken)

    assert scaling_bench.milliseconds(step, lambda: None, steps=3, clock=lambda: now[0]) == pytest.approx(200)


def test_efficiency_is_the_share_of_the_best():
    found = scaling_bench.records(100.0, {"ddp": 125.0, "tensor_parallel": 62.5}, 2)
    assert [(r["speed_up"], r["efficiency"]) for r in found] == [(1.6, 0.8), (1.6, 0.8)]
    ddp, tensor_parallel = scaling_bench.table({"machine": MACHINE, "records": found}).split("\n")[1:3]
    assert ddp.split()[2:4] == ["weak", "16,384"] and tensor_parallel.split()[2:4] == ["strong", "8,192"]
    assert "80%" in ddp
