"""`kernel-xray trace`: exit status, messages and the four formats, on an extension and on programs."""

import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
from simt_programs import line_marked

from kernel_xray.__main__ import main as command_line
from kernel_xray.report.budget import QUANTITIES
from kernel_xray.report.facts import Facts, FaultRecord
from kernel_xray.report.sarif import OVER_BUDGET, RULES, as_sarif

HERE = Path(__file__).parent
SCHEMA = HERE.parents[1] / "docs" / "xray.schema.json"
SCALE = "ops.scale(torch.randn(1024), 2.0, {})"
PROGRAM = HERE / "programs" / "traced.cu"  # which test_programs.py builds too


@pytest.fixture(autouse=True)
def _in_the_folder_of_the_sources(monkeypatch):
    monkeypatch.chdir(HERE)


@pytest.fixture
def xray(capsys):
    """Runs the command; returns exit status, standard output and standard error."""

    def run(*arguments):
        status = command_line(["trace", *map(str, arguments)])
        return status, *capsys.readouterr()

    return run


def line_of(mark):
    return line_marked(HERE / "strided.cu", mark)


def test_text_and_exit_status(xray):
    status, out, err = xray("strided.cu", "--call", SCALE.format(1))
    assert status == 0
    assert "scale_kernel<<<4, 256>>> at strided.cu:" in out
    assert "128 sectors" in out
    assert err.endswith("xray: no faults\n")
    status, out, err = xray("strided.cu", "--call", "ops.past_end(torch.zeros(8))")
    assert status == 1
    assert f"strided.cu:{line_of('past the end')}: out-of-bounds" in out
    assert err.endswith(f"xray: out-of-bounds at strided.cu:{line_of('past the end')}\n")


def test_a_budget_fails_on_the_uncoalesced_line_and_passes_on_the_coalesced_one(xray, tmp_path):
    budget = tmp_path / "budget.yml"
    assert xray("strided.cu", "--call", SCALE.format(1), "--write-budget", budget)[0] == 0
    status, out, err = xray("strided.cu", "--call", SCALE.format(1), "--budget", budget)
    assert status == 0
    assert err.endswith("xray: no faults; within budget\n")
    assert "OVER BUDGET" not in out
    status, out, err = xray("strided.cu", "--call", SCALE.format(32), "--budget", budget)
    assert status == 1
    assert "OVER BUDGET\nkernel scale_kernel: sectors: allowed 256, got 2,048" in out
    assert f"strided.cu:{line_of('scaled')}  global load, 32 requests, 1,024 sectors, 128 at best" in out
    assert "3 over budget" in err
    status, _, err = xray("strided.cu", "--call", "ops.race(torch.zeros(64))", "--budget", budget)
    assert status == 2
    assert "names kernel 'scale_kernel', which was not launched" in err
    assert "There is race_kernel" in err


def test_a_trace_that_ended_early_is_marked_and_not_judged(xray, tmp_path):
    budget, file = tmp_path / "budget.yml", tmp_path / "report.json"
    cut = ("strided.cu", "--call", SCALE.format(1), "--steps", 1000)
    status, _, err = xray(*cut, "--write-budget", budget)
    assert status == 3 and not budget.exists() and "the budget cannot be written" in err
    budget.write_text("kernels: {scale_kernel: {sectors: 1}}")
    status, out, err = xray(*cut, "--budget", budget, "-o", file)
    assert status == 3 and "the budget cannot be judged" in err and "xray: no faults; incomplete" in out
    document = json.loads(file.read_text())
    assert document["complete"] is False and document["over_budget"] is None
    assert not any(line["complete"] for line in document["lines"]) and document["launches"][0]["cut_blocks"] == 4
    (run,) = sarif_of(xray, tmp_path / "x.sarif", *cut)["runs"]
    assert run["properties"]["complete"] is False
    assert {(result["ruleId"], result["level"]) for result in run["results"]} == {("budget", "note")}
    assert all(result["properties"] == {"complete": False} for result in run["results"])


def test_counts_do_not_depend_on_the_seed_or_the_run(xray, tmp_path):
    documents = []
    for seed in ("0", "0", "7"):
        file = tmp_path / "report.json"
        assert xray("strided.cu", "--call", SCALE.format(3), "--seed", seed, "-o", file)[0] == 0
        documents.append({**json.loads(file.read_text()), "seed": 0})
    assert documents[0] == documents[1] == documents[2]


def test_the_least_time_on_a_gpu_is_in_text_and_json(xray):
    """4,096 bytes of x, 4,096 of the result, which stay in the L2: 128 sectors."""
    call = ["strided.cu", "--call", SCALE.format(1), "--gpu", "NVIDIA H200"]
    status, out, _ = xray(*call)
    assert status == 0
    assert re.search(r"scale_kernel<<<4, 256>>>\n~ L1.*\n\* DRAM +0\.001 us  4\.096 KB read, ", out)
    document = json.loads(xray(*call, "--format", "json")[1])
    dram = document["limits"]["launches"][0][1]
    assert (dram["resource"], dram["is_bound"]) == ("DRAM", True) and dram["seconds"] == pytest.approx(4096 / 4.8e12)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)
    assert json.loads(xray(*call[:3], "--format", "json")[1])["limits"] is None
    status, _, err = xray(*call[:3], "--gpu", "h2000")
    assert status == 2 and "gpu is 'h2000'; known are a100, h100," in err


def test_json_has_the_documented_form(xray, tmp_path):
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    budget = tmp_path / "budget.yml"
    budget.write_text("kernels: {race_kernel: {sectors: 1}}")
    status, out, _ = xray("strided.cu", "--call", "ops.race(torch.zeros(64))", "--budget", budget, "--format", "json")
    document = json.loads(out)
    validator.validate(document)
    assert status == 1
    assert [(fault["kind"], fault["file"], fault["line"]) for fault in document["faults"]] == [
        ("race", "strided.cu", line_of("race"))
    ]
    assert {over["quantity"] for over in document["over_budget"]} == {"sectors", "faults"}
    assert sorted(schema["$defs"]["over"]["properties"]["quantity"]["enum"]) == sorted(QUANTITIES)
    for name in schema["required"]:  # a field that is missing, or of another type, is noticed
        assert not validator.is_valid({key: value for key, value in document.items() if key != name})
        assert not validator.is_valid({**document, name: 1.5})


def sarif_of(xray, path, *arguments):
    xray("strided.cu", *arguments, "-o", path)
    return json.loads(path.read_text())


def test_sarif_puts_findings_on_their_lines(xray, tmp_path):
    file = tmp_path / "x.sarif"
    (run,) = sarif_of(xray, file, "--call", "ops.race(torch.zeros(64))")["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "strided.cu", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": line_of("race"), "snippet": {"text": "last = threadIdx.x;  // <- race"}}
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], result["level"], rule["id"]) == ("race", "error", "race")
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == set(RULES)
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    budget = tmp_path / "budget.yml"
    budget.write_text("kernels: {scale_kernel: {sectors: 1}}")
    (run,) = sarif_of(xray, file, "--call", SCALE.format(1), "--budget", budget)["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == OVER_BUDGET
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == line_of("scaled")
    (run,) = sarif_of(xray, file, "--call", SCALE.format(1))["runs"]
    assert run["results"] == []


def test_a_fingerprint_follows_a_line_that_moves(xray, tmp_path):
    (result,) = sarif_of(xray, tmp_path / "x.sarif", "--call", "ops.race(torch.zeros(64))")["runs"][0]["results"]
    moved = tmp_path / "strided.cu"
    moved.write_text("\n\n" + (HERE / "strided.cu").read_text())
    marks = [result["partialFingerprints"]]
    for line in (line_of("race") + 2, line_of("race")):
        fault = FaultRecord("race", str(moved), line, "race_kernel", (0, 0, 0), (1, 0, 0), "two threads")
        (result,) = json.loads(as_sarif(Facts(None, faults=[fault]), tmp_path))["runs"][0]["results"]
        marks.append(result["partialFingerprints"])
    assert marks[0] == marks[1] != marks[2]


def test_sarif_is_valid_against_its_schema(xray, tmp_path):
    path = os.environ.get("KERNEL_XRAY_SARIF_SCHEMA")
    if not path:
        pytest.skip("KERNEL_XRAY_SARIF_SCHEMA does not name a copy of OASIS' sarif-schema-2.1.0.json")
    schema = json.loads(Path(path).read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)  # of the schema's own draft: 4 or 7
    budget = tmp_path / "budget.yml"
    budget.write_text("kernels: {race_kernel: {sectors: 1}}")
    document = sarif_of(xray, tmp_path / "x.sarif", "--call", "ops.race(torch.zeros(64))", "--budget", budget)
    validator.validate(document)
    result = document["runs"][0]["results"][0]
    result["level"] = "fatal"
    assert not validator.is_valid(document)


def test_html_is_one_file_with_sources_and_faults(xray, tmp_path):
    page = tmp_path / "report.html"
    budget = tmp_path / "budget.yml"
    budget.write_text("faults: 1")
    status, out, _ = xray("strided.cu", "--call", "ops.past_end(torch.zeros(8))", "--budget", budget, "-o", page)
    text = page.read_text()
    assert status == 0
    assert "within budget" in out
    assert "Everything is within budget." in text
    assert "out[i] = x[i];  // &lt;- past the end" in text
    assert re.search(rf'<tr class="fault"><td class="[a-z]*">{line_of("past the end")}</td>', text)
    assert not re.search(r"(?:src|href|url)\s*[=(]", text)
    assert "<script" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["strided.cu"], "is an extension; say what to run: --call"),
        (["strided.cu", "--call", "ops.scal(torch.randn(8), 2.0, 1)"], "did you mean ops.scale?\n  > ops.scal(torch"),
        (["strided.cu", "--call", "ops.nothing()"], "It has: ops.past_end, ops.race, ops.scale"),
        (["strided.cu", "--call", "ops.scale(torch.randn(8"], "--call, line 1: '(' was never closed"),
        (["strided.cu", "--call", "x = 1"], "statements go into --setup"),
        (["strided.cu", "--call", "ops.scale(y, 2.0, 1)"], "NameError: name 'y' is not defined"),
        (["strided.cu", "--call", "ops.scale(torch.zeros(8, device='cuda'), 2.0, 1)"], "on the CPU, without .cuda()"),
        (["strided.cu", "--call", "ops.scale(2.0)"], "--call, line 1: "),
        (["strided.cu", "--call", "ops.scale(torch.zeros(0), 2.0, 1)"], "--call launched no kernel"),
        (["strided.cu", "--call", "ops.race(x)", "--setup", "x = 1\nx = torch.zeros("], "--setup, line 2: '(' was"),
        (["strided.cu", "--call", "ops.race(x)", "--setup", "x = 1\nx = 1 / 0"], "--setup, line 2: ZeroDivisionError"),
        (["strided.cu", "--call", "ops.race(x)", "--setup", "none.py"], "none.py, which does not exist"),
        (["strided.cu", "--call", SCALE.format(1), "--args", "3"], "--args is for programs"),
        (["strided.cu", "--call", SCALE.format(1), "--budget", "none.yml"], "none.yml does not exist"),
        (["strided.cu", "--call", SCALE.format(1), "-o", "no/such/folder.html"], "is not a folder"),
        (["strided.cu", "--call", SCALE.format(1), "--max-blocks", "0"], "--max-blocks is 0"),
        (["none.cu", "--call", "ops.f()"], "FILE names none.cu, which does not exist"),
        (
            [str(HERE / "programs" / "traced.cuh")],
            "has neither operators (PYBIND11_MODULE, TORCH_LIBRARY) nor a main()",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_what_to_do(xray, arguments, words):
    status, out, err = xray(*arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_set_up_statements_and_files(xray, tmp_path):
    file = tmp_path / "inputs.py"
    file.write_text("x = torch.zeros(64)\ny = ops.race\n")
    assert xray("strided.cu", "--call", "y(x)", "--setup", file)[0] == 1
    assert xray("strided.cu", "--call", "ops.scale(x, 2.0, 1)", "--setup", "x = torch.zeros(64)")[0] == 0


def test_a_program(xray):
    status, out, err = xray(PROGRAM, "--args", "cost")
    assert status == 0
    assert "xray: no faults; worst line " in err
    assert "copy_kernel<<<4, 256>>>" in out
    status, out, _ = xray(PROGRAM, "--args", "outside")
    assert status == 1
    assert "out-of-bounds" in out
    status, _, err = xray(PROGRAM, "--args", "exit 2")
    assert status == 1
    assert "traced: exit status 6" in err
    status, _, err = xray(PROGRAM, "--call", "ops.f()")
    assert status == 2
    assert "has a main() and no operators" in err


def test_a_film(xray, tmp_path):
    page = tmp_path / "film.html"
    status, _, err = xray("strided.cu", "--call", SCALE.format(32), "--film", page)
    assert status == 0
    assert err.endswith(f"wrote {page}\nxray: no faults; worst line strided.cu:{line_of('scaled')}: 12% efficient\n")
    assert "A warp through scale_kernel" in page.read_text()
    status, _, err = xray(PROGRAM, "--film", page)
    assert status == 2
    assert "--film is for extensions" in err


def test_a_failed_build_shows_the_compilers_message(xray, tmp_path):
    file = tmp_path / "broken.cu"
    file.write_text("__global__ void fill(int* out) {\n  int i = threadIdx.x\n  out[i] = i;\n}\nint main() {}\n")
    status, out, err = xray(file)
    assert (status, out) == (2, "")
    assert "broken.cu:3: error:" in err or "broken.cu:2: error:" in err
