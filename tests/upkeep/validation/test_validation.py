"""The comparison with NVIDIA's tools: its launches, its readers of their output, and its documents.

The samples are shortened output of ncu 2025.3 and compute-sanitizer 2025.3.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from made_up import MACHINE

from helpers.ladder.results.records import write_lists
from helpers.pages import museum
from helpers.paths import ROOT
from helpers.upkeep.validation import __main__ as command_line
from helpers.upkeep.validation import comparison as campaign
from helpers.upkeep.validation import counted as cases
from helpers.upkeep.validation import counters, documents, gpu_counts, ncu, sanitizer, sass, sessions
from helpers.upkeep.validation.counters import Counts
from kernel_xray.runtime.libsimt import is_clang

BY_NAME = {case.name: case for case in cases.CASES}

# -- The table of launches ---------------------------------------------------------------------------------------------


def test_there_are_enough_launches_and_no_name_is_used_twice():
    assert len(BY_NAME) == len(cases.CASES)
    assert sum(case.group == "global" for case in cases.CASES) >= 24
    assert sum(case.group == "shared" for case in cases.CASES) >= 24
    for size in (1, 2, 4, 8, 16):
        for verb in ("load", "store"):
            assert f"global {verb}, {size} B, neighbours" in BY_NAME


def test_every_kernel_of_the_course_is_counted():
    """A kernel of a lesson has launches in its entry in helpers/ladder/catalogue/, or a reason in `not_counted`."""
    kernels = set()
    for path in (*(ROOT / "kernels").glob("*.cu"), *(ROOT / "kernels" / "matmul").glob("*.cu")):
        nested = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
        bounds = rf"(?:__cluster_dims__{nested}\s+)?(?:__launch_bounds__{nested}\s+)?"
        kernels |= set(re.findall(rf"__global__\s+void\s+{bounds}(\w+)\(", path.read_text()))
    assert {"softmax_long_kernel", "matmul_mma_kernel", "matmul_cluster_kernel", "hello_kernel"} <= kernels
    counted = {cases.case(*entry).kernel for entry in cases.LAUNCHES}  # also those that this GPU cannot run
    assert kernels - counted == set(cases.NOT_COUNTED)


def recorded_counts() -> list[dict]:
    """The records of results/xray_vs_ncu.json: ncu's counts beside the simulator's."""
    return documents.read(ROOT / "results" / "xray_vs_ncu.json")["records"]


def counted_now(chosen):
    """For each recorded counter of these cases: the simulator's count now, and the record."""
    recorded = {(r["kernel"], r["metric"]): r for r in recorded_counts() if r["metric"] != counters.LANES}
    for case in chosen:
        for metric, count in counters.simulated(case).values.items():
            if record := recorded.get((case.name, metric)):
                yield count, record


@pytest.mark.parametrize(
    ("space", "least"),
    [
        pytest.param("global", 120, marks=pytest.mark.slow),  # one more build each: the counter is the same
        ("shared", 164),
        pytest.param("tile", 240, marks=pytest.mark.slow),
    ],
)
def test_micro_kernels_count_what_ncu_counted(space, least):
    compared = list(counted_now(case for case in cases.CASES if case.group == space))
    assert not [(count, record) for count, record in compared if count != record["ncu"]]
    assert len(compared) >= least


# Kernels that clang++ counts otherwise: it makes one store of those that end two branches, stores the fields of a
# struct one by one, keeps what it has just read, and brings lanes out of step that skip a branch.
WITH_GCC = (
    "two_ways, 100003",
    "fused_muladd_backward",
    "bias_gelu, float",
    "softmax, float",
    "attention_hopper_backward",
)


@pytest.mark.slow
def test_kernels_of_the_lessons_count_what_ncu_counted():
    """Includes float16 arguments passed by value. Counters that differ for a known reason still differ as recorded."""
    tensor_cores = ("matmul_wmma", "matmul_mma")  # the other rungs only read and write
    recorded = {record["kernel"] for record in recorded_counts()}
    chosen = [case for case in cases.COURSE if "matmul" not in case.name or case.name.startswith(tensor_cores)]
    chosen = [case for case in chosen if case.name in recorded]  # ncu has not counted the newest yet
    assert len(chosen) > 20
    if is_clang():
        chosen = [case for case in chosen if not case.name.startswith(WITH_GCC)]
    compared = list(counted_now(chosen))
    equal = [count == record["ncu"] for count, record in compared]
    assert not [(count, record) for count, record in compared if count != record["simulator"]]
    assert all(same or record["note"] for (_, record), same in zip(compared, equal, strict=True))
    assert sum(equal) >= 4 * len(chosen)


def test_a_difference_above_2_percent_has_its_reason():
    reasons = [*(why for *_, why in counters.REASONS), counters.REARRANGED, counters.CORRECTED]
    without = {
        (record["kernel"], record["metric"])
        for record in recorded_counts()
        if record["metric"] != counters.LANES
        and abs(record["simulator"] - record["ncu"]) > counters.WITHIN * max(record["simulator"], record["ncu"])
        and not any(why in record["note"] for why in reasons)
    }
    assert not without


def test_a_load_case_makes_no_store_and_shared_memory_is_cleared_in_single_wavefronts():
    values = counters.simulated(BY_NAME["global load, 8 B, neighbours"]).values
    counted = {"global load requests": 1, "global load sectors": 8, counters.LANES: 32.0}
    assert {name: value for name, value in values.items() if value} == counted
    values = counters.simulated(BY_NAME["shared load, 4 B, stride 32"]).values
    assert values["shared store requests"] == values["shared store wavefronts"] == 128


@pytest.mark.slow  # builds kernels; the micro-kernels are counted in any case
@pytest.mark.parametrize(
    ("name", "requests", "sectors"), [("vector_add_simple, 100003", 3126, 12501), ("vector_add, 2^18", 2048, 32768)]
)
def test_course_kernels_are_counted_whole(name, requests, sectors):
    values = counters.simulated(BY_NAME[name]).values
    assert (values["global load requests"], values["global load sectors"]) == (2 * requests, 2 * sectors)
    assert (values["global store requests"], values["global store sectors"]) == (requests, sectors)


def test_a_case_that_faults_is_refused():
    broken = museum.find("vector_guard")
    case = cases.Case("broken", "course", "k", "bounds.cu", lambda d, t: lambda: broken.function()(*broken.prepare(d)))
    with pytest.raises(RuntimeError, match=r"broken: bounds.cu:.*out-of-bounds"):
        counters.simulated(case)


# -- ncu ---------------------------------------------------------------------------------------------------------------

(LD,), (LS,) = counters.METRICS["global load requests"], counters.METRICS["global load sectors"]
MESSAGES = "==PROF== Connected to process 2201 (/usr/bin/python3.12)\n==PROF== Disconnected from process 2201\n"
PLACE = '"2201","python3.12","127.0.0.1"'
MICRO_KERNEL = "void micro_global_load_kernel<uint4>(const T1 *, unsigned int *, Pattern)"
ADD_KERNEL = "vector_add_simple_kernel(const float *, const float *, float *, long)"
WIDE = (
    MESSAGES
    + f'"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    f'"Device","CC","{LD}","{LS}","gpu__time_duration.sum"\n'
    '"","","","","","","","","","","","request","sector","ns"\n'
    f'"0",{PLACE},"{MICRO_KERNEL}","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","1","16","1,824"\n'
    f'"1",{PLACE},"{ADD_KERNEL}","1","7","(256, 1, 1)","(391, 1, 1)","0","9.0","6,252","25,002","n/a"\n'
)


def test_the_csv_of_ncu_is_read():
    first, second = ncu.parse(WIDE)
    assert first.kernel.startswith("void micro_global_load_kernel<uint4>(")
    assert first.values == {"global load requests": 1, "global load sectors": 16}
    assert second.values == {"global load requests": 6252, "global load sectors": 25002}


def test_a_counter_that_is_not_available_is_left_out():
    text = WIDE.replace('"25,002"', '"n/a"')
    assert ncu.parse(text)[1].values == {"global load requests": 6252}


def test_a_counter_of_two_names_is_their_sum():
    plain, by_ldmatrix = counters.METRICS["shared load requests"]
    both = WIDE.replace(LD, plain).replace(LS, by_ldmatrix)
    assert [launch.values["shared load requests"] for launch in ncu.parse(both)] == [1 + 16, 6252 + 25002]
    assert not ncu.parse(both.replace('"25,002"', '"n/a"'))[1].values  # one of two names is not a count


@pytest.mark.parametrize("text", ["", MESSAGES, "==ERROR== ERR_NVGPUCTRPERM - no permission\n", '"ID","Kernel Name"\n'])
def test_output_without_counts_gives_none(text):
    assert ncu.parse(text) == []


def test_rows_match_the_cases_by_order_and_name():
    micro, add = BY_NAME["global load, 16 B, neighbours"], BY_NAME["vector_add_simple, 100003"]
    loads, adds = ncu.parse(WIDE)
    rows = [loads, *[adds] * add.repeats]
    assert ncu.match([micro, add], rows) == [loads, adds]
    assert ncu.match([micro, BY_NAME["vector_add, 2^18"], add], rows) == [loads, None, adds]
    assert ncu.match([micro, add], rows[:-1]) == [loads, None]
    other = [Counts({"requests": 9.0}, "another_kernel(int)")] * BY_NAME["vector_add, 2^18"].repeats
    assert ncu.match([BY_NAME["vector_add, 2^18"], micro, add], [*other, *rows]) == [None, loads, adds]
    short = BY_NAME["fused_muladd, float32, 100003"]  # fused_muladd_backward_kernel begins with its name
    backward = Counts({}, "void fused_muladd_backward_kernel<float>(const T1 *)")
    assert ncu.match([short], [backward] * short.repeats) == [None]
    row = Counts({}, "void fused_muladd_kernel<float>(const T1 *)")
    assert ncu.match([short], [row] * short.repeats) == [row]


def test_the_minimum_of_several_launches_counts():
    add = BY_NAME["vector_add_simple, 100003"]
    rows = [Counts({"a": 9 - i, "b": 3.0} | ({"c": 1.0} if i > 1 else {}), add.kernel) for i in range(add.repeats)]
    assert ncu.match([add], rows) == [Counts({"a": 10 - add.repeats, "b": 3.0, "c": 1.0}, add.kernel)]


class FakeRuns:
    """Stands in for subprocess.run: writes ncu's log."""

    def __init__(self, *logs):
        self.logs, self.calls = list(logs), []

    def __call__(self, call, **options):
        self.calls.append(call)
        log = self.logs[min(len(self.calls), len(self.logs)) - 1]
        if isinstance(log, Exception):
            raise log
        Path(call[call.index("--log-file") + 1]).write_text(log)
        return subprocess.CompletedProcess(call, 0, "", "")


def test_measuring_leaves_out_a_counter_that_ncu_does_not_know(monkeypatch, tmp_path):
    fake = FakeRuns(f"==ERROR== Failed to find metric {LD}\n", WIDE)
    monkeypatch.setattr(subprocess, "run", fake)
    monkeypatch.setattr(cases.Case, "repeats", 1)
    chosen = [BY_NAME["global load, 16 B, neighbours"], BY_NAME["vector_add_simple, 100003"]]
    assert [c.kernel for c in ncu.measure(chosen, tmp_path / "log")] == [c.kernel for c in ncu.parse(WIDE)]
    first, second = (call[call.index("--metrics") + 1].split(",") for call in fake.calls)
    assert LD in first and LD not in second and set(first) - set(second) == {LD}
    assert "regex:(micro_global_load_kernel|vector_add_simple_kernel)" in fake.calls[0]
    assert fake.calls[0][-5:] == ["-m", "helpers.upkeep.validation", "launches", "--only", ""]


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n", "counted nothing.*LibraryNotLoaded"),
        (FileNotFoundError("no ncu"), "did not run: no ncu"),
        (subprocess.TimeoutExpired("ncu", 1), "did not run"),
    ],
)
def test_an_ncu_that_cannot_count_is_an_error(monkeypatch, tmp_path, log, message):
    monkeypatch.setattr(subprocess, "run", FakeRuns(log))
    with pytest.raises(ncu.NcuError, match=re.compile(message, re.DOTALL)):
        ncu.measure(cases.MICRO[:1], tmp_path / "log")


# -- Records -----------------------------------------------------------------------------------------------------------

MICRO, COURSE = BY_NAME["global load, 4 B, stride 2"], BY_NAME["vector_add, 2^18"]


def record_of(case, mine, theirs, metric="global load sectors", sass_text=""):
    found = counters.records(case, Counts({metric: mine}), Counts({metric: theirs}), sass_text)
    return next(record for record in found if record["metric"] == metric)


def test_records_have_the_fixed_form():
    loads, zero = {"global load requests": 1, "global load sectors": 8}, dict.fromkeys(counters.METRICS, 0)
    mine = Counts({**loads, "global store sectors": 0, counters.LANES: 32.0})
    theirs = Counts({**zero, **loads, counters.LANES: 31.99})
    found = list(counters.records(MICRO, mine, theirs))
    assert [r["metric"] for r in found] == ["global load requests", "global load sectors", counters.LANES]
    same = {"metric": "global load sectors", "simulator": 8, "ncu": 8, "note": ""}
    assert found[1] == {"kernel": MICRO.name, "group": "global"} | same
    assert counters.exact(found) == {MICRO.name: []}


def test_a_difference_is_noted_and_counted():
    assert record_of(MICRO, 8, 9)["note"] == "11% off"
    assert record_of(COURSE, 1000, 1001)["note"] == "0.1% off, within 2%"
    assert record_of(COURSE, 1000, 1021)["note"] == "2.1% off"
    assert record_of(COURSE, 1000, 500, sass_text="1 LDG.E.128")["note"] == "50% off; SASS: 1 LDG.E.128"
    assert record_of(COURSE, 9, 3, "shared load requests", "8 LDS, 16 LDS.128")["note"] == (
        "67% off; nvcc merges reads of neighbours; SASS: 8 LDS, 16 LDS.128"
    )
    assert "without a store" in record_of(COURSE, 9, 0, "shared store wavefronts", "2 LDGSTS.E")["note"]
    assert record_of(MICRO, 0, 4)["note"] == "100% off"
    assert counters.exact([record_of(MICRO, 8, 9)]) == {MICRO.name: ["global load sectors"]}
    assert counters.exact([record_of(MICRO, 8, 9)], "course") == {}


def test_a_counter_missing_in_ncu_is_not_equal():
    found = list(counters.records(MICRO, Counts({"global load sectors": 8}), Counts({})))
    assert {r["note"] for r in found} == {"ncu did not report it"}
    assert counters.exact(found)[MICRO.name]


def test_active_lanes_are_compared_loosely_and_explained():
    assert record_of(MICRO, 32.0, 31.97, counters.LANES)["note"] == ""
    assert "predicates" in record_of(MICRO, 24.0, 31.2, counters.LANES)["note"]


# -- SASS --------------------------------------------------------------------------------------------------------------

LISTING = """
	code for sm_90
		Function : _Z19fused_muladd_kernelIfEvPKT_S2_S2_PS0_ll
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                            /* 0x00000a00ff017b82 */
        /*0110*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;         /* 0x0000000402047981 */
        /*0120*/              @!P0 LDG.E.128.CONSTANT R8, desc[UR4][R6.64] ;         /* 0x0000000406087981 */
        /*0130*/                   STG.E.128 desc[UR4][R10.64], R4 ;                 /* 0x000000040a007986 */
		Function : _Z13double_kernelPKfPfl
        /*0110*/                   LDS.64 R4, [R2] ;                                 /* 0x0000000402047981 */
        /*0120*/                   UTMALDG.2D.MULTICAST [UR8], [UR6], UR9 ;          /* 0x00000008060073b4 */
        /*0130*/                   UTMACMDFLUSH ;                                    /* 0x00000000000079b7 */
        /*0140*/                   SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [UR4], RZ ;     /* 0x000000ffffff79a7 */
"""


def test_memory_instructions_are_counted():
    assert sass.parse(LISTING) == {
        "_Z19fused_muladd_kernelIfEvPKT_S2_S2_PS0_ll": "2 LDG.E.128.CONSTANT, 1 STG.E.128",
        "_Z13double_kernelPKfPfl": "1 LDS.64, 1 UTMACMDFLUSH, 1 UTMALDG.2D.MULTICAST",
    }
    assert sass.parse("no listing") == {}


def test_a_kernel_is_found_by_its_name_before_the_parameters():
    listings = {
        "void fused_muladd_kernel<float>(float const*, float const*, long)": "2 LDG",
        "void fused_muladd_kernel<double>(double const*)": "3 LDG",
    }
    assert sass.find(listings, "void fused_muladd_kernel<double>(const T1 *, const T1 *)") == "3 LDG"
    assert sass.find(listings, "fused_muladd_kernel<float>(const T1 *)") == "2 LDG"
    assert sass.find(listings, "double_kernel(const float *)") == ""
    assert sass.find({"void copy<true, 12>(int)": "1 LDGSTS"}, "void copy<1, 12>(int)") == "1 LDGSTS"
    assert sass.find({"void copy<true, 12>(int)": "1 LDGSTS"}, "void copy<0, 12>(int)") == ""
    modes = {"void store<(ladder::Mode)0, 8>(int)": "1 STG", "void store<(ladder::Mode)1, 8>(int)": "2 STG"}
    assert sass.find(modes, "void store<1, 8>(int)") == "2 STG"
    shapes = {"void attend<ladder::Shape<64, 2>, ladder::Mask>(int)": "1 LDS"}
    assert sass.find(shapes, "void attend<Shape<64, 2>, Mask>(int)") == "1 LDS"


# -- compute-sanitizer -------------------------------------------------------------------------------------------------

MEMCHECK = """========= COMPUTE-SANITIZER
int_overflow: CUDA error: unspecified launch failure
========= Invalid __global__ read of size 1 bytes
=========     at int_overflow_kernel(const unsigned char *, unsigned char *, int, int)+0xd0 in bounds.cu:125
=========     by thread (0,0,0) in block (2,0,0)
=========     Access at 0x7f0a80000005 is out of bounds
=========     and is 2,147,483,643 bytes before the nearest allocation at 0x7f0b00000000 of size 3,221,225,472 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: int_overflow(torch::stable::Tensor const&, long) in bounds.cu:195 [0xa5f2] in museum.so
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call.
=========         Host Frame: cudaDeviceSynchronize [0x5f2b1] in libcudart.so.13
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at tile_overwritten_kernel(float *)+0x1b0 in synchronisation.cu:33
=========     and Read access at tile_overwritten_kernel(const float *)+0x1f0 in synchronisation.cu:35 [384 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
tile_overwritten: no error
"""
SYNCCHECK = """========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at barrier_in_branch_kernel(const float *, float *, long)+0x110 in synchronisation.cu:60
=========     by thread (36,0,0) in block (1,0,0)
=========
========= ERROR SUMMARY: 28 errors
"""
MISSING_INIT = """========= COMPUTE-SANITIZER
========= Barrier error detected. Missing init.
=========     at no_init_kernel(bool)+0x110
=========     by thread (0,0,0) in block (0,0,0)
=========     Barrier is located at shared address 0x400
=========
========= Barrier error detected. Missing init.
=========     at no_init_kernel(bool)+0x110
=========     by thread (1,0,0) in block (0,0,0)
=========     Barrier is located at shared address 0x400
=========
no error
========= ERROR SUMMARY: 64 errors
========= ERROR SUMMARY: 59 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
ONE_ARRIVAL = """========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at hand_over_kernel(const float *, float *, bool)+0x250
=========     and Write access at hand_over_kernel(const float *, float *, bool)+0x310 [124 hazards]
=========
no error
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
UNKNOWN = """========= COMPUTE-SANITIZER
========= Unknown Error
=========     at hopper::arrive(hopper::Barrier &)+0x240 in hopper.h:61
=========     by thread (32,0,0) in block (0,0,0)
=========
no_barrier_init: CUDA error: unspecified launch failure
========= ERROR SUMMARY: 32 errors
"""
LAUNCH_FAILED = """========= COMPUTE-SANITIZER
no_barrier_init: CUDA error: unspecified launch failure
========= Target application returned an error
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)
"""
INITCHECK = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void kernel<float>(const T1 *)+0x70 in /some/where/values.cu:12
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f9e2ba00000
=========
========= ERROR SUMMARY: 4 errors
"""
CLEAN = "========= COMPUTE-SANITIZER\nguard_off_by_one: no error\n========= ERROR SUMMARY: 0 errors\n"
CLEAN_RACES = "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"


WITH_A_LINE = MISSING_INIT.replace("+0x110", "+0x110 in hopper.h:60")
NOT_INITIALISED = "Barrier error detected. Missing init"
DIVERGENT = "Barrier error detected. Divergent thread(s) in block"
VERDICTS = {
    "memcheck": (MEMCHECK, "Invalid __global__ read of size 1 bytes", "bounds.cu:125", "int_overflow_kernel", 2),
    "racecheck": (RACECHECK, "Race reported", "synchronisation.cu:33", "tile_overwritten_kernel", 1),
    "synccheck": (SYNCCHECK, DIVERGENT, "synchronisation.cu:60", "barrier_in_branch_kernel", 28),
    "missing init": (MISSING_INIT, NOT_INITIALISED, "", "no_init_kernel", 64),
    "missing init, with a line": (WITH_A_LINE, NOT_INITIALISED, "hopper.h:60", "no_init_kernel", 64),
    "one arrival": (ONE_ARRIVAL, "Race reported", "", "hand_over_kernel", 1),
    "unknown": (UNKNOWN, "Unknown Error", "hopper.h:61", "", 32),
    "a trap": (LAUNCH_FAILED, "CUDA error: unspecified launch failure", "", "", 0),
    "initcheck": (INITCHECK, "Uninitialized __global__ memory read of size 4 bytes", "values.cu:12", "kernel", 4),
    "clean": (CLEAN, "", "", "", 0),
    "no races": (CLEAN_RACES, "", "", "", 0),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_the_output_of_a_tool_is_read(name):
    output, *expected = VERDICTS[name]
    assert sanitizer.parse(output) == sanitizer.Verdict(*expected)


def test_the_finding_with_a_line_counts():
    with_another = MEMCHECK.replace(
        "========= Invalid", "========= Invalid __global__ write of size 4 bytes\n=========\n========= Invalid"
    )
    assert sanitizer.parse(with_another) == sanitizer.parse(MEMCHECK)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "========= COMPUTE-SANITIZER\n[ended after 90 s]\n",
        "========= Device not supported. Please refer to the documentation\n",
        "[it did not start: no such file]\n",
        "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 3 errors\n",  # findings of an unknown kind
    ],
)
def test_a_tool_that_did_not_finish_has_no_verdict(output):
    assert sanitizer.parse(output) is None


def test_the_shown_output_has_no_addresses_and_no_host_frames():
    shown = sanitizer.shown(MEMCHECK)
    assert "Host Frame" not in shown and "0x7f" not in shown and "in bounds.cu:125" in shown and "+0xd0" in shown
    assert "ERROR SUMMARY: 2 errors" in shown
    assert sanitizer.shown(MEMCHECK, limit=3).endswith("\n...")


def test_the_cache_is_off_for_one_of_the_tools():
    call, settings = sanitizer.command(sanitizer.UNCACHED, ["python"])
    assert call[1:3] == ["--tool", "memcheck"] and settings == {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    call, settings = sanitizer.command("racecheck", ["python"])
    assert call[1:3] == ["--tool", "racecheck"] and settings == {}


@pytest.mark.slow
def test_a_child_that_hangs_is_killed_with_its_children():
    code = "import subprocess, sys; print('begun', flush=True); subprocess.run(['sleep', '60'])"
    output = sanitizer.finish([sys.executable, "-c", code], {}, 5)
    assert "begun" in output and "[ended after 5 s]" in output
    assert "did not start" in sanitizer.finish(["/no/such/program"], {}, 5)


# -- Sessions ----------------------------------------------------------------------------------------------------------

TRACEBACK = f"""/opt/site/torch/cuda/__init__.py:1: UserWarning: something
Traceback (most recent call last):
  File "{sessions.SCRIPT}", line 11, in <module>
    print(doubled.sum().item())
          ^^^^^^^^^^^^^
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com for more information.
CUDA kernel errors might be asynchronously reported at some other API call
"""


def test_a_traceback_is_cut_to_the_script_and_the_error():
    assert sessions.traceback_of(TRACEBACK) == (
        "Traceback (most recent call last):\n"
        '  File "late_error.py", line 11, in <module>\n'
        "    print(doubled.sum().item())\n"
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    )
    assert sessions.traceback_of("1000.0\n") == "1000.0\n"  # no error: the output as it is


def test_a_profile_is_cut_to_kernels_and_counters():
    text = (
        "==PROF== Connected\n[2201] python3.12@127.0.0.1\n"
        "  void micro_global_load_kernel<uint4>(const T1 *) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9\n"
        "    Section: Command line profiler metrics\n"
        "    ----------------------------------------------- ----------- ------------\n"
        f"    {LS}      sector            8\n"
    )
    assert sessions.profile_of(text) == (
        f"  void micro_global_load_kernel<uint4>(const T1 *) (1, 1, 1)x(32, 1, 1)\n    {LS}      sector            8"
    )
    assert sessions.profile_of("==ERROR== no\n") == "==ERROR== no\n"


def test_the_script_of_the_late_error_agrees_with_the_lesson():
    text = sessions.SCRIPT.read_text()
    assert "int_overflow" in text and museum.find("int_overflow").family == "bounds"
    assert {name for name in sessions.SESSIONS if "check" in name} >= {"memcheck", "racecheck", "synccheck"}
    for command, _ in sessions.SESSIONS.values():
        if match := re.search(r"exhibit (\w+)", command):
            museum.find(match[1])


def test_sessions_are_records(monkeypatch):
    monkeypatch.setattr(sessions, "SESSIONS", {"a": ("$ a", lambda: "said a"), "b": ("$ b", pytest.fail)})
    assert sessions.record(only="a") == [{"name": "a", "command": "$ a", "output": "said a"}]


# -- Documents and the campaign ----------------------------------------------------------------------------------------


def test_documents_are_written_whole_and_read_again(tmp_path):
    document = {"machine": MACHINE, "records": [record_of(MICRO, 8, 8), record_of(COURSE, 1000, 500)]}
    write_lists(tmp_path / "x.json", document)
    assert documents.read(tmp_path / "x.json") == document
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    table = documents.counts_table(document)
    assert "Recorded on NVIDIA H200, 2026-11-21 (driver 580.1, cuda 13.0, torch 2.11.0)." in table
    assert "| micro-kernels, global memory | 1 | 1 |" in table and "| kernels of the course | 1 | 0 |" in table
    assert "| vector_add, 2^18 | global load sectors: 1,000 → 500 |" in table
    left_out = documents.without_a_row(document)
    assert "hello_kernel: it only prints" in left_out and "vector_add, 2^18: not in this recording" not in left_out
    assert "softmax, float32, 33 x 1001: not in this recording" in left_out


def test_the_document_is_made_from_the_record():
    assert documents.COUNTS_DOCUMENT.read_text() == documents.counts_table(documents.read(documents.COUNTS))


def test_the_document_has_each_difference_under_its_reason():
    others = {counters.REARRANGED, counters.CORRECTED, documents.SMALL, ""}
    assert {why for *_, why in counters.REASONS} | others == set(documents.WHY)
    differing = [record_of(COURSE, 9, 3, "shared load requests", "8 LDS, 16 LDS.128"), record_of(COURSE, 1000, 1001)]
    table = documents.counts_table({"machine": MACHINE, "records": differing})
    for heading, row in (
        ("Merged reads of shared memory", "shared load requests: 9 → 3 | 8 LDS, 16 LDS.128 |"),
        ("Differences within 2%", "global load sectors: 1,000 → 1,001 |"),
    ):
        assert row in table.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert "Unexplained" not in table
    unknown = documents.counts_table({"machine": MACHINE, "records": [record_of(COURSE, 1000, 500)]})
    assert "## Unexplained differences" in unknown
    silent = [record_of(COURSE, 8, 8), record_of(MICRO, 8, 8)]
    assert "## " not in documents.counts_table({"machine": MACHINE, "records": silent})


def test_every_launch_of_the_catalogue_is_recorded_under_its_name():
    recorded = list(dict.fromkeys(record["kernel"] for record in recorded_counts()))
    named = {f"{kernel.name}, {launch.label}" for _, kernel, launch in cases.LAUNCHES}
    left_out = {line.partition(": ")[0] for line in documents.without_a_row({"records": recorded_counts()})}
    assert set(recorded) & named == named - left_out
    assert set(recorded) <= named | {case.name for case in cases.CASES}


def test_the_record_and_the_table_of_a_bug():
    exhibit = museum.find("tile_overwritten")
    found = {(exhibit.name, "racecheck", False): sanitizer.parse(RACECHECK)}
    found |= {(exhibit.name, "memcheck", False): sanitizer.parse(CLEAN)}
    record = campaign.bug_record(exhibit, found)
    assert record["kind"] == record["xray"]["kind"] == "race" and record["fixed"]["xray"]["kind"] == ""
    assert record["tools"]["racecheck"] == {"kind": "Race reported", "place": "synchronisation.cu:33", "count": 1}
    assert record["tools"]["memcheck"]["kind"] == "" and record["tools"]["synccheck"] is None
    assert json.loads(json.dumps(record)) == record
    table = documents.bugs_table({"machine": MACHINE, "records": [record]})
    row = next(line for line in table.splitlines() if line.startswith("| tile_overwritten"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1] == f"race, line {record['line']}" and cells[2].startswith("race (synchronisation.cu:")
    assert cells[3:] == ["nothing", "-", "Race reported (synchronisation.cu:33)", "-", "-"]
    assert "- no_proxy_fence: not in this recording" in table and "- tile_overwritten" not in table


def test_the_record_of_a_bug_in_the_use_of_units():
    exhibit = museum.find("no_barrier_init")
    record = campaign.bug_record(exhibit, {(exhibit.name, "synccheck", False): sanitizer.parse(MISSING_INIT)})
    assert record["kind"] == record["xray"]["kind"] == "uninitialised-read" and record["fixed"]["xray"]["kind"] == ""
    assert record["tools"].keys() == {"memcheck", "racecheck", "initcheck", "synccheck"}
    assert record["tools"]["synccheck"]["kind"] == "Barrier error detected. Missing init"


@pytest.mark.parametrize("capability", [None, (8, 0), (9, 0), (10, 0)])
def test_units_are_compared_where_there_are_units(monkeypatch, capability):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: capability is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    units = ["units"] if capability == (9, 0) else []
    assert campaign.compared() == ["bounds", "synchronisation", *units, "published"]


@pytest.fixture
def no_build(monkeypatch):
    """A campaign on MACHINE that builds nothing."""
    monkeypatch.setattr(campaign, "machine_record", lambda commit: MACHINE)
    monkeypatch.setattr(campaign.Campaign, "_build", lambda self, parts: None)
    monkeypatch.setattr(campaign, "commit_name", lambda: MACHINE["commit"])


@pytest.mark.usefixtures("no_build")
def test_a_part_that_fails_does_not_end_the_campaign(monkeypatch, tmp_path):
    def fail(*args):
        raise RuntimeError("no profiler here")

    monkeypatch.setattr(campaign.Campaign, "_bugs", fail)
    monkeypatch.setattr(campaign.machine_code, "compile_remembered", lambda jobs: None)  # of all tests before
    monkeypatch.setattr(campaign.ncu, "measure", fail)
    monkeypatch.setattr(campaign.cases, "CASES", cases.MICRO[:1])
    monkeypatch.setattr(campaign.sessions, "record", lambda jobs: [{"name": "a", "command": "b", "output": "c"}])
    said = []
    assert campaign.Campaign(tmp_path / "out", say=said.append).run() == 1
    assert documents.read(tmp_path / "out" / "sanitizer_vs_xray.json")["sessions"][0]["output"] == "c"
    errors = (tmp_path / "out" / "errors.log").read_text()
    assert errors.count("RuntimeError: no profiler here") == 2 and "counts:" in errors and "bugs:" in errors
    assert any("counts failed: no profiler here" in line for line in said)
    assert not (tmp_path / "out" / "xray_vs_ncu.json").exists()


@pytest.mark.parametrize("more", [[], ["units", "published"]])
def test_a_twin_that_is_accused_is_run_alone(monkeypatch, tmp_path, more):
    """All twins of a family share a process; if a tool reports one, each runs alone."""
    jobs, families = [], ["bounds", "synchronisation", *more]

    def run(tool, exhibits, fixed=False, timeout=90):
        jobs.append((tool, exhibits, fixed))
        return RACECHECK if tool == "racecheck" and (not fixed or "last_block" in exhibits) else CLEAN

    monkeypatch.setattr(campaign.sanitizer, "run", run)
    monkeypatch.setattr(campaign, "compared", lambda: families)
    monkeypatch.setattr(campaign, "bug_record", lambda exhibit, found: {"name": exhibit.name, "found": found})
    (tmp_path / "out").mkdir()
    records = campaign.Campaign(tmp_path / "out", jobs=1, say=print)._bugs()
    found = records[0]["found"]
    accused = {key for key, verdict in found.items() if verdict.kind}
    assert {key for key in accused if key[2]} == {("last_block", "racecheck", True)}
    assert found["lost_updates", "racecheck", True] == sanitizer.Verdict("")
    together = [job for job in jobs if len(job[1]) > 1]
    assert len(together) == sum(len(sanitizer.FOR_FAMILY[f]) for f in families) and all(job[2] for job in together)
    assert [r["name"] for r in records] == [e.name for e in museum.EXHIBITS if e.family in families]
    assert len(found) == 2 * sum(len(sanitizer.FOR_FAMILY[museum.find(r["name"]).family]) for r in records)


@pytest.mark.slow  # of a campaign on a GPU, with a planted device
@pytest.mark.usefixtures("no_build")
def test_the_counts_of_a_campaign(monkeypatch, tmp_path):
    chosen = [MICRO, COURSE, BY_NAME["global load, 1 B, neighbours"]]
    zero = dict.fromkeys(counters.METRICS, 0.0)
    first, second = (counters.simulated(case).values for case in chosen[:2])

    def counts(wanted, log, only):
        if only:
            assert wanted == chosen[1:2]
            return [Counts({**zero, **second}, "k2")]
        assert wanted == chosen
        return [Counts({**zero, **first}, "k1"), Counts({**zero, **second, "global load requests": 5.0}, "k2"), None]

    monkeypatch.setattr(gpu_counts, "_listings", lambda: {"k2(float)": "1 LDG.E.128"})
    monkeypatch.setattr(campaign.machine_code, "compile_remembered", lambda jobs: None)  # of all tests before
    monkeypatch.setattr(campaign.cases, "CASES", chosen)
    monkeypatch.setattr(campaign.ncu, "measure", counts)
    assert campaign.Campaign(tmp_path, say=lambda text: None).run(("counts",)) == 1
    records = documents.read(tmp_path / "xray_vs_ncu.json")["records"]
    assert counters.exact(records) == {chosen[0].name: [], chosen[1].name: ["global load requests"]}
    assert next(r for r in records if r["ncu"] == 5.0)["note"].endswith("; SASS: 1 LDG.E.128")
    errors = (tmp_path / "errors.log").read_text().splitlines()  # of SASS: where nvcc or nvdisasm is missing
    assert [line for line in errors if ", by SASS: " not in line] == ["global load, 1 B, neighbours: no counts of ncu"]
    told = (tmp_path / "xray_vs_ncu.json").read_text()
    assert campaign.Campaign(tmp_path, say=lambda text: None).run(("simulator",)) == 1
    assert (tmp_path / "xray_vs_ncu.json").read_text() == told
    campaign.Campaign(tmp_path, say=lambda text: None, launches=chosen[1].name).run(("counts",))
    again = documents.read(tmp_path / "xray_vs_ncu.json")["records"]
    assert counters.exact(again) == {chosen[0].name: [], chosen[1].name: []}
    assert [r for r in again if "commit" not in r] == [r for r in records if r["kernel"] == chosen[0].name]


def test_a_part_of_the_launches_wants_a_recording_before_it_counts(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command_line.main([str(tmp_path), "--only", "simulator", "--launches", "attention"])
    assert "which is missing: copy the one in results/ there" in capsys.readouterr().err


@pytest.mark.usefixtures("no_build")
def test_counts_of_another_commit_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr(campaign.cases, "CASES", [])
    monkeypatch.setattr(campaign.machine_code, "compile_remembered", lambda jobs: None)
    assert campaign.Campaign(tmp_path, say=print).run(("simulator",)) == 1
    assert "--only ncu writes it" in (tmp_path / "errors.log").read_text()
    gpu_counts.write(tmp_path, {**MACHINE, "commit": "another"}, [], [])
    said = []
    assert campaign.Campaign(tmp_path, say=said.append).run(("simulator",)) == 0
    assert any("ncu counted commit another, the simulator" in line for line in said)
    machine = documents.read(tmp_path / "xray_vs_ncu.json")["machine"]
    assert (machine["commit"], machine["simulator_commit"]) == ("another", MACHINE["commit"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_command_asks_for_one(capsys, tmp_path):
    with pytest.raises(SystemExit):
        command_line.main([str(tmp_path)])
    assert "this needs a GPU" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["xray_vs_ncu", "sanitizer_vs_xray"])
def test_the_recorded_files_have_the_fixed_form(name):
    path = ROOT / "results" / f"{name}.json"
    if not path.exists():
        pytest.skip("not recorded yet")
    document = documents.read(path)
    assert {"gpu", "driver", "cuda", "torch", "date", "commit"} <= set(document["machine"])
    if name == "xray_vs_ncu":
        assert all({"kernel", "metric", "simulator", "ncu", "note"} <= set(r) for r in document["records"])
        for group in ("global", "shared"):
            verdict = counters.exact(document["records"], group)
            assert sum(not wrong for wrong in verdict.values()) >= 24, verdict
    else:
        known = {exhibit.name for exhibit in museum.EXHIBITS}
        assert {r["exhibit"] for r in document["records"]} <= known
        assert {s["name"] for s in document["sessions"]} == set(sessions.SESSIONS)
