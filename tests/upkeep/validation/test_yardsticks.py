"""Suites of others: labels and verdicts, small inputs, the runs, the page. The suites here are tiny ones of our own."""

import json
import random
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from running import git

from helpers.upkeep.validation import documents
from helpers.upkeep.validation.yardsticks import graphs, indigo, page, rodinia, rodinia_inputs, rodinia_runs, trials
from kernel_xray.machine.progress import ProgressBar

# -- Indigo: labels and verdicts ---------------------------------------------------------------------------------------


def record(name: str, faults=(), remarks=(), results=None) -> dict:
    return {
        "name": name,
        "bugs": indigo.bugs(name),
        "faults": [[kind, 10, 1] for kind in faults],
        "remarks": [[kind, 10, 1] for kind in remarks],
        "results": results or {"right": 1},
    }


@pytest.mark.parametrize(
    ("name", "bugs", "expected"),
    [
        ("push_node_neighbors_persistent_cond", [], []),
        ("push_node_neighbors_atomicBug", ["atomicBug"], ["race"]),
        (
            "conditional_edge_neighbor_boundsBug_guardBug_atomicBug.cu",
            ["boundsBug", "guardBug", "atomicBug"],
            ["race", "out-of-bounds"],
        ),
        ("pull_node_neighbors_boundsBug", ["boundsBug"], ["out-of-bounds"]),
        ("path_compression_raceBug", ["raceBug"], ["race"]),
        ("pull_node_neighbors_block_syncBug", ["syncBug"], ["race"]),
    ],
)
def test_a_name_says_the_bugs_and_the_faults_to_expect(name, bugs, expected):
    assert indigo.bugs(name) == bugs
    assert indigo.expected(name) == expected


def test_a_fault_of_the_planted_kind_is_found_and_another_is_a_false_alarm():
    right = record("x_atomicBug", ["race"])
    assert indigo.found(right, "race")
    assert not indigo.false_alarms(right)
    missed = record("x_atomicBug", ["out-of-bounds"])
    assert not indigo.found(missed, "race")
    assert indigo.false_alarms(missed) == ["out-of-bounds"]
    assert indigo.false_alarms(record("x", ["race"])) == ["race"]


def test_a_race_is_a_consequence_of_a_bounds_bug_that_was_found_and_else_a_false_alarm():
    strayed = record("x_boundsBug", ["out-of-bounds", "race", "uninitialised-read"])
    assert indigo.consequences(strayed) == ["race", "uninitialised-read"]
    assert not indigo.false_alarms(strayed)
    assert indigo.false_alarms(record("x_boundsBug", ["race"])) == ["race"]  # the bounds bug was not found
    assert indigo.false_alarms(record("x_atomicBug", ["race", "uninitialised-read"])) == ["uninitialised-read"]
    assert indigo.false_alarms(record("x_boundsBug", ["out-of-bounds", "misaligned"])) == ["misaligned"]


def test_a_remark_on_stores_of_one_value_finds_a_race_and_accuses_nobody():
    assert indigo.found(record("x_raceBug", remarks=["race"]), "race")
    assert indigo.remarked(record("x_raceBug", remarks=["race"]))
    assert not indigo.remarked(record("x_raceBug", ["race"], ["race"]))
    assert not indigo.false_alarms(record("x", remarks=["race"]))


def test_the_summary_counts_what_was_found_missed_and_invented():
    records = [
        record("a"),
        record("b", ["race"], results={"wrong": 2}),
        record("c_atomicBug", ["race"]),
        record("d_atomicBug"),
        record("e_boundsBug_syncBug", ["out-of-bounds"], ["race"]),
        {"name": "f_atomicBug", "error": "does not build"},
    ]
    row = {entry["what"]: entry for entry in indigo.summary(records, 590)}
    assert row["all"] == {"what": "all", "cases": 6, "of": 590, "ran": 5}
    race = row["race"]
    assert [race[key] for key in ("planted", "found", "by_remark", "clean", "false_alarms")] == [3, 2, 1, 2, 1]
    bounds = row["out-of-bounds"]
    assert [bounds[key] for key in ("planted", "found", "by_remark", "clean", "false_alarms")] == [1, 1, 0, 4, 0]
    assert row["no bug"] == {"what": "no bug", "cases": 2, "any_false_alarm": 1, "wrong_result": 1}
    assert row["atomicBug alone"] == {"what": "atomicBug alone", "cases": 2, "found": 1}


# -- Indigo: graphs, generator, a run ----------------------------------------------------------------------------------


def test_graphs_have_the_suites_format(tmp_path):
    path = graphs.write(tmp_path / "g.egr", 4, [(1, 2), (2, 1), (1, 0), (1, 2)])
    assert struct.unpack("=10i", path.read_bytes()) == (4, 3, 0, 0, 2, 3, 3, 0, 2, 1)


def test_first_and_last_vertex_of_each_graph_have_no_neighbours(tmp_path):
    for path in graphs.make(tmp_path):
        count, edges, *numbers = struct.unpack(f"={path.stat().st_size // 4}i", path.read_bytes())
        offsets, targets = numbers[: count + 1], numbers[count + 1 :]
        assert offsets[1] == 0
        assert offsets[-2] == offsets[-1] == edges == len(targets) > 0
        assert offsets == sorted(offsets)
        assert all(0 < target < count - 1 for target in targets)


HEADER = r"""
#include <cstdio>
__global__ void test_kernel(int* sum);
int main(int argc, char** argv) {
  int *device, host = 0, blocks = atoi(argv[3]), threads = atoi(argv[2]);
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, &host, sizeof host, cudaMemcpyHostToDevice);
  test_kernel<<<blocks, threads>>>(device);
  cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost);
  printf("result %s serial code\n", host == blocks * threads ? "matches" : "differs from");
}
"""
KERNEL = '#include "toy.h"\n__global__ void test_kernel(int* sum) {{ {} }}\n'
GENERATOR = """
import sys
from pathlib import Path
template, copyright, out = map(Path, sys.argv[1:])
(out / template.stem).mkdir()
for name, line in (("", "atomicAdd(sum, 1);"), ("_atomicBug", "sum[0]++;")):
    (out / template.stem / f"{template.stem}{name}.cu").write_text(template.read_text().replace("LINE", line))
"""


def toy_generator(folder: Path) -> Path:
    """A suite like Indigo's: a generator, a template, a header; its kernels add, one of them without an atomic."""
    generators = folder / "Generators"
    for name in ("CUDA_sources", "sources_include"):
        (generators / name).mkdir(parents=True)
    (folder / "copyright.txt").touch()
    (generators / "generate_CUDA_codes.py").write_text(GENERATOR)
    (generators / "sources_include" / "toy.h").write_text(HEADER)
    (generators / "CUDA_sources" / "toy.idg").write_text(KERNEL.format("LINE"))
    return folder


def test_the_users_generator_writes_the_kernels_outside_its_folder(tmp_path):
    suite, work = toy_generator(tmp_path / "suite"), tmp_path / "work"
    before = sorted(suite.rglob("*"))
    (tmp_path / "work").mkdir()
    files, include = indigo.sources(suite, work)
    assert [file.name for file in files] == ["toy.cu", "toy_atomicBug.cu"]
    assert (include / "toy.h").is_file()
    assert sorted(suite.rglob("*")) == before
    assert indigo.sources(suite, work)[0] == files  # a second run finds them


def test_a_generated_suite_is_used_as_it_is_and_another_folder_refused(tmp_path):
    (tmp_path / "made" / "CUDA" / "x").mkdir(parents=True)
    (tmp_path / "made" / "include").mkdir()
    (tmp_path / "made" / "CUDA" / "x" / "x.cu").touch()
    assert indigo.sources(tmp_path, tmp_path)[1] == tmp_path / "made" / "include"
    shutil.rmtree(tmp_path / "made")
    with pytest.raises(FileNotFoundError, match="must be a copy of"):
        indigo.sources(tmp_path, tmp_path)


@pytest.mark.slow  # of suites that are not the course's; idioms and museum find races
def test_the_racy_kernel_is_found_and_the_other_is_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(indigo, "LAUNCHES", ((64, 2),))
    suite = toy_generator(tmp_path / "suite")
    clean, racy = sorted(indigo.cases(suite, tmp_path, [tmp_path / "none.egr"]), key=lambda case: case.name)
    assert indigo.examine(clean) == {"bugs": [], "faults": [], "remarks": [], "results": {"right": 1}}
    found = indigo.examine(racy)
    assert indigo.found({"name": racy.name, **found}, "race")
    assert found["bugs"] == ["atomicBug"]


def test_a_sample_has_every_bug():
    names = ["a", "b_atomicBug", "c", "d_raceBug", "e_atomicBug", "f_raceBug_boundsBug"]
    every = [indigo.IndigoCase(name, Path(), Path(), ()) for name in names]
    assert [case.name for case in indigo.sample(every, 2)] == ["a", "b_atomicBug", "d_raceBug", "f_raceBug_boundsBug"]
    assert indigo.sample(every, None) == every


@pytest.mark.slow  # of suites that are not the course's
def test_a_kernel_that_does_not_build_is_an_error(tmp_path):
    (tmp_path / "x.cu").write_text("__global__ void k() { none(); }\n")
    case = indigo.IndigoCase("x", tmp_path / "x.cu", tmp_path, (tmp_path,))
    assert "does not build" in indigo.examine(case)["error"]


# -- Runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    name: str
    value: int


def halved(case: Number) -> dict:
    if case.value % 2:
        raise ValueError(f"{case.value} is odd")
    return {"half": case.value // 2}


@pytest.mark.slow  # of suites that are not the course's
def test_records_keep_their_order_and_a_case_that_raises_is_an_error(tmp_path):
    cases = [Number(str(n), n) for n in (4, 3, 2)]
    records = trials.run("halves", halved, cases, 1, tmp_path / "log")
    odd = {"name": "3", "error": "ValueError: 3 is odd"}
    assert records == [{"name": "4", "half": 2}, odd, {"name": "2", "half": 1}]


def test_finished_cases_are_not_run_again_and_a_broken_line_is(tmp_path):
    log = tmp_path / "log"
    log.write_text('{"name": "4", "half": "from before"}\n{"name": "2", "ha')
    assert trials._logged(log) == [{"name": "4", "half": "from before"}]
    records = trials.run("halves", halved, [Number("4", 4)], 1, log)
    assert records == [{"name": "4", "half": "from before"}]


def test_the_suites_commit_is_that_of_its_own_checkout(tmp_path):
    assert trials.suite_commit(tmp_path) == "unknown"
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    assert len(trials.suite_commit(tmp_path)) == 40
    (tmp_path / "inside").mkdir()
    assert trials.suite_commit(tmp_path / "inside") == "unknown"  # not the suite's own


def test_the_bar_writes_a_line_for_every_tenth(capsys):
    with ProgressBar("cases", 20) as bar:
        for _ in range(20):
            bar.step()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert "2/20" in lines[0]
    assert f"[{'#' * 30}] 20/20, 0 s left" in lines[-1]


# -- Rodinia -----------------------------------------------------------------------------------------------------------


def test_numbers_are_compared_within_the_tolerance():
    assert rodinia_runs.numbers("a -1.5e-3, 2) nan") == pytest.approx([-1.5e-3, 2, float("nan")], nan_ok=True)
    assert rodinia_runs.difference([1.0, 2.0], [1.00001, 2.0], 1e-4) == ""
    assert rodinia_runs.difference([1.0, 2.1], [1.0, 2.0], 1e-4) == "number 1 is 2.1, not 2.0"
    assert "instead of" in rodinia_runs.difference([1.0], [1.0, 2.0], 1e-4)
    assert "instead of" in rodinia_runs.difference([], [], 1e-4)  # nothing to compare is not right
    assert rodinia_runs.difference([float("nan")], [1.0], 1e-4)


def test_only_the_chosen_lines_count():
    assert rodinia_runs.counted("time 3\n1 2 \n4", r"^(?:\d+ )+$") == [1, 2]


CUDA = """
#include <cstdio>
__global__ void square(float* x) { x[threadIdx.x] *= x[threadIdx.x]; }
extern "C" float doubled(float x);
int main() {
  float *device, host[32];
  for (int i = 0; i < 32; i++) host[i] = doubled(i);
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  square<<<1, 32>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  FILE* file = fopen("out", "w");
  for (float x : host) fprintf(file, "%g ", x);
}
"""
CPU = """
#include <cstdio>
int main() { FILE* file = fopen("out", "w"); for (int i = 0; i < 32; i++) fprintf(file, "%g ", 1.0 * FACTOR * i * i); }
"""


@pytest.fixture
def toy(tmp_path):
    """A suite with one program: CUDA and C, and a reference for CPUs."""
    suite, work = tmp_path / "suite", tmp_path / "work"
    (suite / "cuda" / "toy").mkdir(parents=True)
    (suite / "openmp" / "toy").mkdir(parents=True)
    (suite / "cuda" / "toy" / "toy.cu").write_text(CUDA)
    (suite / "cuda" / "toy" / "doubled.c").write_text("float doubled(float class) { return 2 * class; }\n")
    (suite / "openmp" / "toy" / "toy.cpp").write_text(CPU)
    (work / "data").mkdir(parents=True)

    def case(**other) -> rodinia_runs.RodiniaCase:
        given = {"c": ("doubled.c",), "output": "out", "traced": False} | other
        return rodinia_runs.RodiniaCase(rodinia.Program("toy", "toy", ("toy.cu",), (), **given), suite, work)

    return case


def reference(factor: int) -> rodinia.Reference:
    return rodinia.Reference("openmp/toy", ("toy.cpp",), (), (f"-DFACTOR={factor}",))


@pytest.mark.slow  # of suites that are not the course's
def test_a_program_is_right_if_it_writes_what_the_reference_writes(toy):
    assert rodinia_runs.examine(toy(reference=reference(4), traced=True)) == {
        "benchmark": "toy", "check": "the suite's program for CPUs", "stage": "right", "reason": "", "xray": []
    }  # fmt: skip
    wrong = rodinia_runs.examine(toy(reference=reference(3)))
    assert (wrong["stage"], wrong["reason"]) == ("result", "number 1 is 4.0, not 3.0")
    assert rodinia_runs.examine(toy(says="PASSED"))["stage"] == "result"


@pytest.mark.slow  # builds a program; how its results are added up is below
def test_a_program_without_its_input_or_with_an_error_is_not_right(toy):
    assert rodinia_runs.examine(toy(needs=("toy/film.avi",)))["stage"] == "input"
    assert rodinia_runs.examine(toy(c=()))["stage"] == "build"  # `doubled` is undefined


def test_the_summary_counts_a_benchmark_only_if_all_its_programs_are_right():
    stages = "a right, a right, b right, b result, c build, d run, e input, f bug"
    records = [dict(zip(("benchmark", "stage"), pair.split(), strict=True)) for pair in stages.split(", ")]
    rows = {row["what"]: (row["programs"], row["benchmarks"]) for row in rodinia_runs.summary(records)}
    assert rows == {"all": (8, 6), "built": (6, 4), "ended": (4, 2), "right": (3, 1), "right or bug": (4, 2)}


def test_every_program_of_the_table_is_named_once():
    names = [program.name for program in rodinia.PROGRAMS]
    assert len(names) == len(set(names))
    assert len({program.benchmark for program in rodinia.PROGRAMS}) == 23


@pytest.mark.slow  # writes all of them; the film of one is below
def test_every_program_of_the_table_finds_its_inputs(tmp_path):
    (tmp_path / "own" / "extra").mkdir(parents=True)
    rodinia_inputs.make(tmp_path / "data", tmp_path / "own")
    assert (tmp_path / "data" / "extra").is_symlink()
    for program in rodinia.PROGRAMS:
        for argument in program.arguments:
            if argument.startswith("../../data/") and not program.needs:
                assert (tmp_path / "data" / argument.removeprefix("../../data/")).is_file(), argument


def test_the_films_are_avi_files_of_grey_frames(tmp_path):
    rodinia_inputs._film(8, 6, 2, "x.avi")(tmp_path, random.Random(0))
    data = (tmp_path / "x.avi").read_bytes()
    assert (data[:4], data[8:12]) == (b"RIFF", b"AVI ")
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    assert data.count(b"00db" + struct.pack("<I", 48)) == 2


# -- The page ----------------------------------------------------------------------------------------------------------


def test_the_tables_name_what_was_missed_and_what_failed():
    machine = {"suite_commit": "a" * 40, "commit": "b" * 40 + "-dirty", "date": "2026-01-01"}
    records = [record("free", ["race"]), record("x_atomicBug"), record("y_syncBug", ["race"])]
    text = page.table("indigo", {"machine": machine, "summary": indigo.summary(records), "records": records})
    assert "| race | 2 | 1 | 0 | 1 | 1 | 0 |" in text
    assert "Not found: x_atomicBug." in text
    assert "Falsely accused: free (race)." in text
    assert f"our commit {'b' * 12}-dirty, theirs {'a' * 12}" in text
    found = {"name": "lud", "benchmark": "lud", "check": "its own check", "stage": "right", "reason": "", "xray": []}
    failed = {**found, "name": "nn", "benchmark": "nn", "stage": "build", "reason": "/folder/x/nn.cu:3: not here\nmore"}
    both = [found, {**failed, "xray": None}]
    text = page.table("rodinia", {"machine": machine, "summary": rodinia_runs.summary(both), "records": both})
    assert "| gave the right result | 1 of 2 | 1 of 2 |" in text
    assert "| lud | its own check | right | nothing |" in text
    assert "| nn | its own check | not built: nn.cu:3: not here | - |" in text


@pytest.mark.parametrize("suite", ["indigo", "rodinia"])
def test_the_recorded_results_and_the_page_agree(suite):
    path = page.RESULTS / f"{suite}.json"
    if not path.exists():
        pytest.skip("not recorded yet")
    document = documents.read(path)
    assert {"suite", "suite_commit", "commit", "date"} <= set(document["machine"])
    again = {
        "indigo": lambda: indigo.summary(document["records"], document["summary"][0].get("of", 0)),
        "rodinia": lambda: rodinia_runs.summary(document["records"]),
    }[suite]()
    assert json.loads(json.dumps(again)) == document["summary"]
    assert page.table(suite, document) in page.PAGE.read_text(encoding="utf-8")


def test_indigo_stays_without_false_alarms():
    records = documents.read(page.RESULTS / "indigo.json")["records"]
    assert not [r["name"] for r in records if indigo.false_alarms(r)]
    racy = [r for r in records if "race" in indigo.expected(r["name"])]
    assert sum(indigo.found(r, "race") for r in racy) >= 0.95 * len(racy)
