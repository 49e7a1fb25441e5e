"""The timer, contenders, cells, processes, campaigns and the command, with a scripted clock.

No test measures time: the clock returns the times that the test gives it.
"""

import argparse
import dataclasses
import importlib.metadata
import json
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
from made_up import MACHINE, record
from running import git, without
from scripted import Script

import helpers
from helpers.ladder import results
from helpers.ladder.catalogue import OPERATORS, Kernel, Operator, extensions
from helpers.ladder.catalogue.attention import CAUSAL_OPERATORS
from helpers.ladder.catalogue.elementwise import TWO, add
from helpers.ladder.catalogue.entry import FLOATING, uniform
from helpers.paths import KERNELS
from helpers.upkeep.benchmarks import cell as cell_module
from helpers.upkeep.benchmarks import timer, worker
from helpers.upkeep.benchmarks.campaign import Campaign
from helpers.upkeep.benchmarks.cell import impossible, measure_cell, one_dtype, own_code
from helpers.upkeep.benchmarks.command import main, parse_shapes
from helpers.upkeep.benchmarks.conditions import FIELDS, commit_name, parse_answer
from helpers.upkeep.benchmarks.contender import Contender, copy_bytes, copy_contender
from helpers.upkeep.benchmarks.gpu import CudaBackend, Direct
from helpers.upkeep.benchmarks.live import bench
from helpers.upkeep.benchmarks.timer import TimerError, measure, refusal, summary

on_gpu = pytest.mark.skipif(helpers.target != "gpu", reason="needs an NVIDIA GPU and nvcc")
in_simulator = pytest.mark.skipif(helpers.target != "simulator", reason="about a machine without a GPU")


def contender(name="ours", call=torch.add, reference=torch.add, n=100, **options):
    return Contender(name, call, (torch.randn(n), torch.randn(n)), reference, **options)


# -- The timer ---------------------------------------------------------------------------------------------------------


def test_the_timer_refuses_the_simulator():
    with pytest.raises(TimerError, match="says nothing about a GPU"):
        CudaBackend(target="simulator")
    assert refusal("gpu") is None


def test_the_refusal_names_what_was_recorded(tmp_path):
    assert "nothing yet" in refusal("simulator", tmp_path)
    results.write(tmp_path / "h200.json", {"machine": MACHINE, "records": [record()]})
    assert "h200.json (NVIDIA H200, 2026-11-21)" in refusal("simulator", tmp_path)


def test_a_summary_is_of_positive_times_only():
    stats = summary([5.0, 1.0, 2.0, 3.0, 4.0, 6.0])
    assert (stats.median_ms, stats.p20_ms, stats.p80_ms, stats.samples) == (3.5, 2.0, 5.0, 6)
    for bad in ([], [1.0, 0.0], [1.0, float("nan")], [float("inf")]):
        with pytest.raises(ValueError, match="positive"):
            summary(bad)


def test_contenders_alternate_and_each_begins_a_round():
    clock = Script(a=1.0, b=2.0, c=3.0)
    measured = measure([contender(n) for n in "abc"], clock, budget_ms=6.0 * 25)
    assert {n: s.median_ms for n, s in measured.stats.items()} == {"a": 1.0, "b": 2.0, "c": 3.0}
    rounds = [clock.order[i : i + 3] for i in range(len(clock.order) - 25 * 3, len(clock.order), 3)]
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert {r[0] for r in rounds} == {"a", "b", "c"}
    assert {s.samples for s in measured.stats.values()} == {25}


def test_warm_up_is_not_counted():
    cold = Script(ours=lambda asked: 100.0 if asked <= 6 else 1.0)
    assert measure([contender()], cold).stats["ours"].p80_ms == 1.0


@pytest.mark.parametrize(("ms", "timing"), [(timer.SHORT_MS * 0.9, "graph"), (timer.SHORT_MS * 1.1, "events")])
def test_short_work_is_timed_in_graphs_on_fresh_copies_of_the_inputs(ms, timing):
    clock = Script(ours=ms, peer=5.0)
    entered = [contender(), contender("peer")]
    measured = measure(entered, clock)
    assert measured.timing == timing
    if timing == "graph":
        ours = clock.prepared[-2]
        assert ours.calls >= 2
        assert len({inputs[0].data_ptr() for inputs in ours.sets}) == ours.calls
        assert all(torch.equal(inputs[0], entered[0].inputs[0]) for inputs in ours.sets)


def raises(a, b):
    raise RuntimeError("no kernel image is available")


def leaves_last_out(a, b):
    out = torch.empty_like(a)
    out[:-1] = (a + b)[:-1]
    return out


def test_a_contender_that_fails_is_reported_and_has_no_time():
    failing = {"broken": raises, "wrong": torch.sub, "short": leaves_last_out}
    measured = measure([contender(), *(contender(name, call) for name, call in failing.items())], Script())
    assert list(measured.stats) == ["ours"]
    assert "no kernel image" in measured.failures["broken"]
    assert "elements are wrong" in measured.failures["wrong"]
    assert "filled fresh memory before the run" in measured.failures["short"]


def test_a_contender_that_goes_wrong_while_it_is_timed_has_no_time():
    calls = []

    def tired(a, b):
        calls.append(1)
        return a + b if len(calls) < 20 else a - b

    measured = measure([contender(), contender("tired", tired)], Script())
    assert list(measured.stats) == ["ours"]
    assert measured.failures["tired"].startswith("check after timing")


def test_a_result_kept_from_an_earlier_call_is_rejected():
    kept = {}

    def cached(a, b):
        if "out" not in kept:
            kept["out"] = a + b
        return kept["out"]

    measured = measure([contender(), contender("cached", cached, thorough=False)], Script())
    assert "cached" in measured.failures
    assert "cached" not in measured.stats


def test_a_contender_that_cannot_be_captured_is_reported():
    measured = measure([contender(), contender("uncapturable")], Script(ours=0.01, uncapturable=0.01))
    assert list(measured.stats) == ["ours"]
    assert "capturing" in measured.failures["uncapturable"]


def test_names_are_unique():
    with pytest.raises(ValueError, match="different names"):
        measure([contender(), contender()], Script())


def test_nothing_left_to_time_is_not_an_error():
    assert measure([contender(call=raises)], Script()).stats == {}


# -- Contenders --------------------------------------------------------------------------------------------------------


def test_a_compiled_function_is_checked_without_compiling_it_again():
    seen = []

    def spy(a, b):
        seen.append(torch.are_deterministic_algorithms_enabled())
        return a + b

    contender(call=spy).check_before()
    assert any(seen)
    seen.clear()
    spy._torchdynamo_orig_callable = spy
    contender(call=spy).check_before()
    assert seen and not any(seen)
    assert hasattr(torch.compile(add, backend="eager"), "_torchdynamo_orig_callable")
    wrong = lambda a, b: a - b  # noqa: E731
    wrong._torchdynamo_orig_callable = wrong
    with pytest.raises(helpers.CheckFailed):
        contender(call=wrong).check_before()


def test_a_copy_is_checked_too():
    copy = copy_contender(1200, torch.float16, "cpu")
    assert copy_bytes(copy) == 1200
    assert copy.check_before() == 0
    copy.call = lambda target, source: target[1:].copy_(source[1:])
    with pytest.raises(helpers.CheckFailed):
        copy.check_before()


def test_outputs_checked_after_timing_were_poisoned_before():
    kept = torch.ones(3)
    cached = Contender("cached", lambda a: kept, (torch.ones(3),), lambda a: a)
    (outputs,) = Direct(cached, cached.inputs).outputs_again()
    assert outputs[0].isnan().all()
    honest = Contender("honest", lambda a: a + 0, (torch.ones(3),), lambda a: a)
    (outputs,) = Direct(honest, honest.inputs).outputs_again()
    assert torch.equal(outputs[0], torch.ones(3))


def test_inputs_are_never_poisoned():
    a = torch.ones(3)
    same_memory = Contender("identity", lambda a: a, (a,), lambda a: a, thorough=False)
    same_memory.check_before()
    assert torch.equal(a, torch.ones(3))


def test_a_contender_that_returns_no_tensor_is_refused():
    with pytest.raises(helpers.CheckFailed, match="name it in `out`"):
        contender(call=lambda a, b: None).outputs((torch.ones(1), torch.ones(1)))


def test_two_compilations_of_one_function_share_no_code():
    copy = own_code(add)
    assert copy.__code__ is not add.__code__
    assert copy(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


# -- Operators ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_counts_its_bytes_and_its_reference_agrees_with_itself(name):
    operator = OPERATORS[name]
    assert operator.name == name
    shape = {1: (1000,), 2: (10, 100), 3: (10, 20, 30), 4: (2, 1, 20, 64)}[len(operator.shapes[0])]
    inputs = operator.inputs(shape, torch.float32, torch.device("cpu"))
    outputs = operator.reference(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    again = inputs[1:] if name == "bias_gelu_training" else ()  # forward and backward both read it
    assert operator.bytes(shape, 4) == sum(t.nbytes for t in (*inputs, *outputs, *again))
    assert operator.flops(shape) >= 1000
    assert len(inputs) == 1 or not torch.equal(*inputs[:2])
    zeros = int(name.startswith("attention_backward"))  # the gradient of logsumexp, as in training
    assert sum(bool(t.numel() > 1 and t.std() < 0.1) for t in inputs) == zeros
    assert operator.variants and len(set(operator.variants)) == len(operator.variants)
    for kernel in operator.kernels:
        assert all((KERNELS / file).is_file() for file in kernel.files)
        assert set(kernel.dtypes) & set(operator.dtypes)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operators_kernels_pass_their_check(name):
    operator = OPERATORS[name]
    # Rows of whole 16 bytes for matmul, since not every rung takes others.
    shape = {1: (1003,), 2: (17, 59), 3: (17, 56, 32), 4: (4, 2, 17, 64)}[len(operator.shapes[0])]
    for kernel in operator.kernels:
        if kernel.python_module:
            continue  # half a minute to compile; lesson 02 and its tests build it
        for variant, call in kernel.load().items():
            for dtype in set(kernel.dtypes) & set(operator.dtypes):
                inputs = operator.inputs(shape, getattr(torch, dtype), helpers.device)
                options = {"accumulation": operator.terms(shape, variant)}
                options["dtype"] = operator.dtype_of_results(inputs[0].dtype)
                options["thorough"] = None if operator.result_dtype or one_dtype(operator, inputs) else False
                entered = Contender(variant, call, inputs, operator.reference, **options)
                entered.check_before()
                entered.call = lambda *x, call=call: call(*x[:-1], 2 * x[-1] + 1)  # softmax(x + 1) is softmax(x)
                with pytest.raises(helpers.CheckFailed):
                    entered.check_before()


def test_a_build_that_fails_leaves_the_others():
    operator = toy(kernels=[Kernel("no_such_function", ("vector_add.cu",)), Kernel("missing", ("no_such.cu",))])
    functions, failures = operator.load()
    assert functions == {}
    assert set(failures) == {"no_such_function", "missing"}
    assert "no_such.cu" in failures["missing"]


# -- A cell ------------------------------------------------------------------------------------------------------------


def toy(kind=Operator, **options):
    kernels = [Kernel("best", ("best.cu",), dtypes=FLOATING)]
    return kind(**({"name": "toy", "arguments": TWO, "reference": add, "kernels": kernels} | options))


def cell(clock, variants=None, operator=None, dtype="float32", shape=(1024,), **options):
    options = {"device": "cpu", "compiled": False} | options
    return measure_cell(operator or toy(), variants or {"best": torch.add}, dtype, shape, clock, **options)


def test_a_record_is_made_of_ratios_of_one_run():
    done = cell(Script(best=2.0, eager=3.0, copy=1.9))
    (made,) = done.records
    assert made["of_copy"] == pytest.approx(0.95)
    assert made["vs"] == {"eager": pytest.approx(1.5)}
    assert made["bytes"] == 3 * 4 * 1024
    assert made["timing"] == "events"
    assert "note" not in made
    assert results.record_problems(made) == []
    assert done.failures == {}


def test_every_peer_is_in_the_record():
    done = cell(Script(best=2.0, eager=3.0, twin=2.0, copy=1.0), operator=toy(peers={"triton": lambda: torch.add}))
    assert set(done.records[0]["vs"]) == {"eager", "triton"}


def test_a_peer_that_fails_is_noted_and_reported():
    def missing():
        raise ImportError("No module named 'triton'")

    done = cell(Script(), operator=toy(peers={"triton": missing}))
    assert "triton" not in done.records[0]["vs"]
    assert "no time for triton" in done.records[0]["note"]
    assert "No module named 'triton'" in done.failures["triton"]


def test_a_peer_of_another_package_takes_part_where_it_is_installed(monkeypatch):
    operator = toy(peers={"fa4": lambda: torch.add})
    monkeypatch.setitem(extensions.PACKAGES, "fa4", "no-such-distribution")
    without = cell(Script(), operator=operator)
    assert without.failures == {} and "note" not in without.records[0] and set(without.records[0]["vs"]) == {"eager"}
    monkeypatch.setitem(extensions.PACKAGES, "fa4", "torch")
    with_it = cell(Script(), operator=operator)
    assert set(with_it.records[0]["vs"]) == {"eager", "fa4"}
    assert with_it.records[0]["versions"] == {"fa4": importlib.metadata.version("torch")}
    assert results.record_problems(with_it.records[0]) == []


def test_a_wrong_variant_is_not_recorded():
    done = cell(Script(), {"best": torch.add, "wrong": torch.sub})
    assert [r["variant"] for r in done.records] == ["best"]
    assert "elements are wrong" in done.failures["wrong"]


@pytest.mark.parametrize(("reason", "note"), [("reads more than it writes", "reads more"), ("", "not explained yet")])
def test_more_than_the_copy_carries_a_note(reason, note):
    done = cell(Script(best=1.0, copy=1.03), operator=toy(above_copy=reason))
    assert done.records[0]["of_copy"] > 1
    assert note in done.records[0]["note"]


@pytest.mark.parametrize(
    ("moved", "peak", "refused"), [(2**31, 1e12, True), (2**31, 1e13, False), (2**31, None, False), (2**20, 1e8, False)]
)
def test_more_than_the_memory_can_move_is_refused(moved, peak, refused):
    assert bool(impossible(record(bytes=moved, median_ms=1.0), peak)) == refused


def test_an_impossible_rate_is_not_recorded(monkeypatch):
    monkeypatch.setattr(cell_module, "LARGE", 1)
    done = cell(Script(), peak=1e3)
    assert done.records == []
    assert "more than the memory's peak" in done.failures["best"]


def test_without_a_copy_of_the_same_run_there_is_no_record(monkeypatch):
    def broken(*arguments):
        copy = copy_contender(*arguments)
        copy.call = raises
        return copy

    monkeypatch.setattr(cell_module, "copy_contender", broken)
    done = cell(Script())
    assert done.records == []
    assert set(done.failures) == {"best", "copy"}


def test_a_variant_is_measured_in_the_dtypes_that_it_takes_only():
    both = ("float32", "float16")
    kernels = [Kernel("all", ("a.cu",), dtypes=both), Kernel("halves", ("b.cu",), dtypes=("float16",))]
    operator = toy(kernels=kernels, dtypes=both)
    taken = {dtype: [n for n in operator.variants if operator.takes(n, dtype)] for dtype in both}
    assert taken == {"float32": ["all"], "float16": ["all", "halves"]}


def test_a_slow_variant_is_measured_on_the_smaller_shapes_only():
    operator = toy(kernels=[Kernel("slow", ("a.cu",), largest=(64, 64)), Kernel("fast", ("b.cu",))])
    shapes = ((64, 64), (64, 128))
    taken = [[n for n in operator.variants if operator.takes(n, "float32", shape)] for shape in shapes]
    assert taken == [["slow", "fast"], ["fast"]]


def test_the_peer_of_a_product_is_cublas_without_tf32():
    operator = OPERATORS["matmul"]
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        call = operator.peers["cublas"]()
        assert not torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    done = cell(Script(rung=2.0, cublas=1.5), {"rung": torch.mm}, operator, shape=(64, 48, 32))
    (made,) = done.records
    assert made["of_cublas"] == pytest.approx(0.75) and made["flops"] == 2 * 64 * 48 * 32
    assert made["vs"]["cublas"] == pytest.approx(0.75)
    a, b = operator.inputs((64, 48, 32), torch.float32, "cpu")
    assert torch.equal(call(a, b), torch.mm(a, b))


def test_the_peer_of_a_fused_epilogue_is_cublas_with_its_epilogue():
    operator = OPERATORS["matmul_bias_gelu"]
    inputs = operator.inputs((64, 48, 32), torch.float16, "cpu")
    contenders = {
        "rung": lambda *inputs: operator.reference(*(x.float() for x in inputs)).half(),
        "rounds_in_between": operator.reference,  # only eager may do that
        "no_bias": lambda a, b, bias: operator.reference(a, b, 0 * bias),
    }
    script = Script(rung=2.0, cublas=1.5, eager=3.0)
    done = cell(script, contenders, operator, "float16", (64, 48, 32))
    (made,) = [record for record in done.records if record["variant"] == "rung"]
    assert made["of_cublas"] == pytest.approx(0.75) and made["vs"]["eager"] == pytest.approx(1.5)
    assert set(done.failures) == {"rounds_in_between", "no_bias"}
    got, expected = operator.peers["cublas"]()(*inputs), operator.reference(*inputs)
    assert (got - expected).abs().max() < 2e-3  # on a CPU, PyTorch computes the exact form of GELU


def test_a_product_that_leaves_out_a_term_is_not_recorded():
    operator = OPERATORS["matmul"]
    for dtype in operator.dtypes:
        wrong = {"rung": lambda a, b: a[:, 1:] @ b[1:]}
        done = cell(Script(), wrong, operator, dtype, (64, 48, 512))
        assert done.records == [] and "wrong" in done.failures["rung"]


def test_an_operator_bound_by_flops_is_compared_with_cublas():
    operator = toy(limit="cublas", flops=lambda shape: 7, peers={"cublas": lambda: torch.add})
    done = cell(Script(best=2.0, cublas=1.8), operator=operator)
    (made,) = done.records
    assert made["flops"] == 7
    assert made["of_cublas"] == pytest.approx(0.9)
    assert "bytes" not in made and "of_copy" not in made


def test_eager_may_round_in_between():
    def rough(a, b):
        return a * b + (1e-6 - a * b)  # a cancellation: the error is about 1e-6, far more than a rounding

    operator = toy(reference=rough)
    tight = cell(Script(), {"best": rough}, operator, shape=(4096,))
    assert "eager" in tight.failures
    loose = toy(reference=rough, peer_slack=4.0)
    done = cell(Script(), {"best": rough}, loose, shape=(4096,))
    assert "eager" not in done.failures
    assert "best" in done.failures  # ours may round only once


# -- Processes ---------------------------------------------------------------------------------------------------------


class FakeGpu:
    device = "cpu"

    def __init__(self, clock=None, machine=MACHINE):
        self.clock, self.told = clock or Script(), machine

    def backend(self):
        return self.clock

    def machine(self, commit, backend):
        return {**self.told, "commit": commit}

    def peak(self):
        return None


class Loaded(Operator):
    """An operator whose kernels are PyTorch's."""

    def load(self):
        return {"best": torch.add}, {"other": "build: no nvcc"}


def do(job, operator=None, gpu=None):
    lines = []
    job = {"op": "toy", "dtype": "float32", "commit": "abc"} | job
    worker.run_job(job, lines.append, operators={"toy": operator or toy(Loaded)}, gpu=gpu or FakeGpu())
    return lines


def two_cells(compiled=False):
    return [{"shape": [n], "compiled": compiled, "budget_ms": 50} for n in (64, 128)]


def test_a_job_emits_each_cell_the_machine_and_what_failed():
    lines = do({"cells": two_cells()})
    assert lines[0] == {"failures": {"toy, other": "build: no nvcc"}}
    assert [line["cell"]["shape"] for line in lines if "cell" in line] == [[64], [128]]
    assert [line["machine"]["commit"] for line in lines if "machine" in line] == ["abc"]
    json.dumps(lines)


def test_a_process_compiles_for_one_shape_only():
    with pytest.raises(ValueError, match="a job of their own"):
        do({"cells": two_cells(compiled=True)})


def test_a_build_job_measures_nothing():
    assert [list(line) for line in do({"build": True})] == [["failures"], ["machine"]]


def test_a_cell_that_breaks_leaves_the_others():
    def sample(shapes, dtype, device):
        if shapes[0] == (64,):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return uniform(2)(shapes, dtype, device)

    lines = do({"cells": two_cells()}, toy(Loaded, sample=sample))
    assert any("out of memory" in str(line.get("failures")) for line in lines)
    assert [line["cell"]["shape"] for line in lines if "cell" in line] == [[128]]


def test_a_process_that_dies_keeps_what_it_had_measured(tmp_path):
    output = tmp_path / "job" / "lines"
    output.parent.mkdir()
    code = (
        'import sys; f = open(sys.argv[1], \'a\'); f.write(\'{"machine": {}}\\n{"cell": {}}\\n{"cell\'); f.flush();'
        "print('illegal memory access'); sys.exit(3)"
    )
    with open(output.with_name("log"), "w") as log:
        process = subprocess.Popen([sys.executable, "-c", code, str(output)], stdout=log)
    lines = worker.collect((process, output), {"op": "toy", "dtype": "float32"})
    assert lines[:2] == [{"machine": {}}, {"cell": {}}]
    (why,) = lines[2]["failures"].values()
    assert "status 3" in why and "illegal memory access" in why


def test_a_process_that_hangs_is_killed(tmp_path):
    output = tmp_path / "job" / "lines"
    output.parent.mkdir()
    output.touch()
    output.with_name("log").touch()
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    lines = worker.collect((process, output), {"op": "toy", "dtype": "float32"}, seconds=0.2)
    assert "killed after" in str(lines)
    assert process.poll() is not None


@pytest.mark.slow
@in_simulator
def test_a_fresh_process_refuses_the_simulator():
    lines = worker.launch({"op": "vector_add", "dtype": "float32", "cells": [], "commit": "abc"})
    (why,) = lines[0]["failures"].values()
    assert "TimerError" in why and len(lines) == 1


# -- Campaigns ---------------------------------------------------------------------------------------------------------


def campaign(tmp_path, **options):
    names = options.pop("ops", ["toy"])
    operators = {name: toy(Loaded, name=name, shapes=((1024,),), sweep=((64,), (128,))) for name in names}
    gpu = options.pop("gpu", None) or FakeGpu(Script(best=1.0, eager=1.2, copy=0.9))

    def launch(job):
        if job["op"] == "crash":
            return [{"failures": {"crash, float32": "the process ended with status 1"}}]
        lines = []
        worker.run_job(job, lines.append, operators=operators, gpu=gpu)
        return json.loads(json.dumps(lines))

    fields = {"record": str(tmp_path / "h200.json"), "launch": launch, "compiled": False, "commit": "abc"}
    fields["launch_together"] = lambda jobs: [line for job in jobs for line in launch(job)]
    return Campaign(operators, **(fields | options))


def test_only_the_first_cell_of_a_process_is_compiled(tmp_path):
    first, second = campaign(tmp_path, compiled=True, dtypes=["float32", "float16"]).jobs()
    assert [(c["shape"], c["compiled"]) for c in first["cells"]] == [([1024], True), ([64], False), ([128], False)]
    assert [(c["shape"], c["compiled"]) for c in second["cells"]] == [([1024], True)]
    given = campaign(tmp_path, compiled=True, shapes=[(8,), (16,)]).jobs()
    assert [[(c["shape"], c["compiled"]) for c in job["cells"]] for job in given] == [[([8], True)], [([16], True)]]


def test_a_campaign_records_what_works_and_reports_what_does_not(tmp_path, capsys):
    todo = campaign(tmp_path, ops=["toy", "crash", "third"])
    assert todo.run() == 1
    document = results.read(tmp_path / "h200.json")
    found = {(r["op"], *r["shape"]) for r in document["records"]}
    assert found == {(op, n) for op in ("toy", "third") for n in (64, 128, 1024)}
    assert document["machine"] == MACHINE
    said = capsys.readouterr()
    assert "FAILED crash" in said.err and "FAILED toy, other" in said.err
    assert "toy, float32 on NVIDIA H200" in said.out


def test_a_repeated_measurement_replaces_only_itself(tmp_path):
    campaign(tmp_path, ops=["toy", "other"]).run()
    campaign(tmp_path, gpu=FakeGpu(Script(best=0.5, eager=1.2, copy=0.4)), commit="def").run()
    records = results.read(tmp_path / "h200.json")["records"]
    assert {(r["op"], r["median_ms"], r["commit"]) for r in records} == {("toy", 0.5, "def"), ("other", 1.0, "abc")}
    assert len(records) == 6


def test_only_what_the_file_lacks_is_measured(tmp_path):
    campaign(tmp_path, sweep=False).run()
    todo = campaign(tmp_path, ops=["toy", "other"], missing=True)
    assert [(job["op"], [c["shape"] for c in job["cells"]]) for job in todo.jobs()] == [
        ("toy", [[64], [128]]),
        ("other", [[1024], [64], [128]]),
    ]
    todo.run()
    assert campaign(tmp_path, ops=["toy", "other"], missing=True).jobs() == []
    (job,) = campaign(tmp_path, missing=True, dtypes=["float32", "float16"]).jobs()
    assert job["dtype"] == "float16"
    assert len(campaign(tmp_path).jobs()[0]["cells"]) == 3


def test_only_the_kernels_that_are_named_are_measured(tmp_path):
    assert "kernels" not in campaign(tmp_path).jobs()[0]
    campaign(tmp_path, kernels=["best"]).run()
    assert {r["variant"] for r in results.read(tmp_path / "h200.json")["records"]} == {"best"}
    (tmp_path / "h200.json").unlink()
    campaign(tmp_path, kernels=["other"]).run()
    assert not (tmp_path / "h200.json").exists()


def test_another_machine_is_refused_before_anything_is_measured(tmp_path):
    campaign(tmp_path).run()
    before = (tmp_path / "h200.json").read_text()
    other = FakeGpu(machine={**MACHINE, "driver": "590.0"})
    with pytest.raises(results.ResultsError, match=r"driver '580.1' there, '590.0' now.*--replace"):
        campaign(tmp_path, gpu=other, launch=lambda job: pytest.fail("measured")).run()
    assert (tmp_path / "h200.json").read_text() == before
    campaign(tmp_path, gpu=other, replace=True, ops=["toy", "second"]).run()
    document = results.read(tmp_path / "h200.json")
    assert document["machine"]["driver"] == "590.0"
    assert {r["op"] for r in document["records"]} == {"toy", "second"}


def test_a_campaign_without_failures_ends_with_zero(tmp_path):
    todo = campaign(tmp_path, record=None)
    todo.launch = lambda job: [{"machine": MACHINE}, {"cell": dict(CELL, records=[record()])}]
    todo.launch_together = lambda jobs: []
    assert todo.run() == 0
    assert not list(tmp_path.iterdir())


CELL = {"op": "toy", "dtype": "float32", "shape": [1024], "failures": {}}

# -- In a notebook and on the command line -----------------------------------------------------------------------------


def test_bench_shows_rates_shares_and_speed_ups():
    a, b = torch.randn(2, 1000)
    contenders, clock = {"ours": torch.add, "eager": add, "wrong": torch.sub}, Script(ours=1.0, eager=2.0, copy=0.95)
    done = bench(contenders, a, b, reference=torch.add, bytes=12000, versus="eager", backend=clock)
    assert done.measured
    assert done.stats["ours"].median_ms == 1.0
    lines = repr(done).splitlines()
    assert lines[0].startswith("measured on NVIDIA Script")
    ours = next(line for line in lines if line.split()[0] == "ours")
    assert "95.0%" in ours and "2.00x" in ours and "GB/s" in ours
    assert any(line.strip().startswith("failed: wrong") for line in lines)
    assert "<table>" in done._repr_html_() and "NVIDIA Script" in done._repr_html_()


def test_bench_counts_flops():
    done = bench({"ours": torch.add}, torch.ones(2), torch.ones(2), reference=torch.add, flops=10**9, backend=Script())
    assert "1.0 TFLOP/s" in repr(done)


def test_bench_needs_a_contender_for_versus():
    with pytest.raises(ValueError, match="versus is 'eger'"):
        bench({"eager": add}, torch.ones(2), torch.ones(2), reference=add, versus="eger", backend=Script())


@in_simulator
def test_bench_in_the_simulator_shows_what_was_recorded():
    ours = {"vector_add": pytest.fail, "eager": torch.add}
    shown = bench(ours, torch.ones(2), reference=add, op="vector_add", shape=(2**26,), versus="eager")
    assert not shown.measured
    assert shown.stats == {}
    assert [row[0] for row in shown.table.rows].count("vector_add") == 1
    assert "vector_add, float32, 67,108,864: recorded on NVIDIA H200" in repr(shown)
    other = bench({"ours": pytest.fail}, torch.ones(2), reference=add, op="vector_add")
    assert repr(other).startswith("vector_add, float32: nothing is recorded yet for ours")
    with pytest.raises(TimerError, match="Give op="):
        bench({"ours": torch.add}, torch.ones(2), reference=add)


@in_simulator
def test_the_command_refuses_the_simulator_and_shows_what_was_recorded(capsys, tmp_path):
    assert main(["vector_add", "--record", str(tmp_path / "x.json")]) == 1
    said = capsys.readouterr()
    assert "says nothing about a GPU" in said.err
    assert "vector_add" in said.out
    assert not list(tmp_path.iterdir())


def test_the_command_knows_its_operators(capsys):
    assert main(["vector_ad"]) == 2
    assert main(["--missing"]) == 2
    said = capsys.readouterr().err
    assert "vector_add" in said and "--record" in said
    assert main(["--show", "vector_add"]) == 0


def test_the_command_hands_build_times_over(capsys):
    with pytest.raises(SystemExit):
        main(["--build", "--help"])
    assert "--repeat" in capsys.readouterr().out


def test_shapes_on_the_command_line():
    assert parse_shapes("2**12..2**14,1000,64x32x16") == [(4096,), (8192,), (16384,), (1000,), (64, 32, 16)]
    for bad in ("big", "0", "12..", "4x", "-1"):
        with pytest.raises(argparse.ArgumentTypeError, match="not a shape"):
            parse_shapes(bad)


# -- The machine -------------------------------------------------------------------------------------------------------


def test_the_answer_of_nvidia_smi_is_read_or_rejected():
    answer = parse_answer("1980, 3201, 1980, 3201, 412.5, 700.00, 580.159.04\n")
    assert answer == dict(zip(FIELDS, ["1980", "3201", "1980", "3201", "412.5", "700.00", "580.159.04"], strict=True))
    for other in ("", "No devices were found", "1, 2\n", "1, 2, 3, 4, 5, 6, 7\n1, 2, 3, 4, 5, 6, 7\n"):
        assert parse_answer(other) == {}


def test_the_commit_says_whether_files_differ(tmp_path):
    clean = without("GIT_", "KERNEL_LADDER_COMMIT")
    assert commit_name(tmp_path, clean) == "unknown"
    (tmp_path / "file").write_text("1")
    for arguments in (["init"], ["add", "file"], ["commit", "-m", "one"]):
        git(tmp_path, *arguments)
    assert len(commit_name(tmp_path, clean)) == 40
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "h200.json").write_text("{}")
    assert len(commit_name(tmp_path, clean)) == 40
    (tmp_path / "file").write_text("2")
    assert commit_name(tmp_path, clean).endswith("-dirty")
    assert commit_name(tmp_path, clean | {"KERNEL_LADDER_COMMIT": "abc"}) == "abc"


# -- On a GPU ----------------------------------------------------------------------------------------------------------


@on_gpu
@pytest.mark.gpu
@pytest.mark.parametrize(("n", "timing"), [(2**12, "graph"), (2**27, "events")])
def test_the_gpu_is_timed(n, timing):
    a, b = torch.randn(2, n, device="cuda")
    done = bench({"eager": torch.add, "wrong": torch.sub}, a, b, reference=torch.add, bytes=12 * n)
    assert set(done.stats) == {"eager", "copy"}
    assert timing.replace("events", "CUDA events").replace("graph", "CUDA graph") in repr(done)


@on_gpu
@pytest.mark.gpu
def test_a_launch_on_another_stream_is_seen_in_a_graph():
    side = torch.cuda.Stream()

    def elsewhere(a, b):
        out = torch.empty_like(a)
        with torch.cuda.stream(side):
            torch.add(a, b, out=out)
        if not torch.cuda.is_current_stream_capturing():
            side.synchronize()
        return out

    a, b = torch.randn(2, 4096, device="cuda")
    done = bench({"eager": torch.add, "elsewhere": elsewhere}, a, b, reference=torch.add)
    assert "elsewhere" not in done.stats


def rounded(*inputs):
    """Gradients of exact arithmetic but for the roundings of a fused kernel."""
    grad, _, q, k, v, out, logsumexp = (x.double() for x in inputs)
    p = (q @ k.mT * q.shape[-1] ** -0.5 - logsumexp[..., None]).exp()
    ds = (p * (grad @ v.mT - (grad * out).sum(-1, keepdim=True))).bfloat16().double() * q.shape[-1] ** -0.5
    return tuple(x.to(inputs[0].dtype) for x in (ds @ k, ds.mT @ q, p.bfloat16().double().mT @ grad))


def test_rounded_gradients_are_right_and_without_delta_they_are_wrong():
    entry = OPERATORS["attention_backward"]

    def without_delta(grad, grad_logsumexp, q, k, v, out, logsumexp):
        return rounded(grad, grad_logsumexp, q, k, v, 0 * out, logsumexp)

    for function, wrong in ((rounded, False), (without_delta, True)):
        operator = dataclasses.replace(entry, peers={"cudnn": lambda f=function: f}, peer_sums=0)
        contenders = cell_module._contenders(operator, {}, torch.bfloat16, (16, 16, 128, 64), "cpu", compiled=False)
        with pytest.raises(helpers.CheckFailed) if wrong else nullcontext():
            contenders[-1].check_before()


def test_gradients_that_a_peer_rounds_in_between_have_a_time_and_wrong_ones_have_none():
    entry = CAUSAL_OPERATORS[1]  # the backward pass

    def swapped(*inputs):
        of_q, of_k, of_v = entry.reference(*inputs)
        return of_q, of_v, of_k

    operator = dataclasses.replace(entry, peers={"cudnn": lambda: swapped})
    torch.manual_seed(0)
    for slack, wrong in ((entry.peer_sums, ["cudnn"]), (0, ["eager", "cudnn"])):
        changed = dataclasses.replace(operator, peer_sums=slack, accumulation_timed=None)
        contenders = cell_module._contenders(changed, {}, torch.bfloat16, (2, 2, 512, 64), "cpu", compiled=False)
        assert [c.name for c in contenders] == ["eager", "cudnn"]
        for contender in contenders:
            with pytest.raises(helpers.CheckFailed) if contender.name in wrong else nullcontext():
                contender.check_before()
