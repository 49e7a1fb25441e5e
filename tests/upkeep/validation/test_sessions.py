"""The recorded debugging sessions: each shows the error or the verdict that it is about, and no other error."""

import json

from helpers.pages.museum.recorded import PATH
from helpers.upkeep.validation import profiled, sessions


def test_the_recorded_sessions_are_about_what_they_should_be():
    assert sessions.problems(json.loads(PATH.read_text())["sessions"]) == []


def test_an_error_that_a_session_is_not_about_is_found():
    whole = [{"name": name, "output": output} for name, output in ABOUT.items()]
    assert sessions.problems(whole) == []
    assert sessions.problems(whole[1:]) == ["asynchronous: not recorded"]
    lost = [{"name": "blocking", "output": "ModuleNotFoundError: No module named 'helpers'"}]
    found = sessions.problems([s for s in whole if s["name"] != "blocking"] + lost)
    assert [line.partition(":")[0] for line in found] == ["blocking", "blocking"]  # one error missing, another there
    assert found[1] == "blocking: ModuleNotFoundError"


# The least that each session must show.
ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
SECTION = "a section  bias_gelu_simple  bias_gelu\nDuration, us   213.3   126.3"
ABOUT = {
    "asynchronous": f"    doubled = 2 * numbers\n{ILLEGAL}",
    "blocking": f"    column = museum_ops.int_overflow(table, 5)\n{ILLEGAL}",
    "memcheck neighbour": "ERROR SUMMARY: 0 errors",
    "memcheck": "Invalid __global__ read of size 1 bytes\n at int_overflow_kernel(",
    "racecheck": "Error: Race reported between\n at tile_overwritten_kernel(",
    "racecheck global": "RACECHECK SUMMARY: 0 hazards displayed",
    "synccheck": "COMPUTE-SANITIZER",
    "ncu": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum  1",
    "clock and stream": "no_synchronise  broken  0.83 ms measured",
    **{f"ncu: {name}": SECTION for name in profiled.READ},
}
