"""Budgets: each key is checked when read, what exceeds it is named with its line, and a written budget is just kept."""

import json
from dataclasses import replace

import pytest

from kernel_xray.report import budget as budgets
from kernel_xray.report.budget import BudgetError
from kernel_xray.report.facts import Facts, FaultRecord, Launch, Line
from kernel_xray.report.text import as_text

SOURCE = "void f() {\n  out[i] = x[i];\n  y = s[32 * i];\n}\n"


@pytest.fixture
def report(tmp_path):
    file = tmp_path / "csrc" / "scale.cu"
    file.parent.mkdir()
    file.write_text(SOURCE)
    common = {"file": str(file), "kernel": "scale", "active_lanes": 32.0}
    lines = [
        Line(**common, line=2, space="global", kind="load", requests=4, sectors=16, ideal_sectors=16, wavefronts=0,
             ideal_wavefronts=0),
        Line(**common, line=2, space="global", kind="store", requests=4, sectors=36, ideal_sectors=16, wavefronts=0,
             ideal_wavefronts=0),
        Line(**common, line=3, space="shared", kind="load", requests=1, sectors=0, ideal_sectors=0, wavefronts=32,
             ideal_wavefronts=1),
    ]  # fmt: skip
    launches = [Launch("scale", str(file), 9, (1, 1, 1), (128, 1, 1), 1, 1, 32.0, 0, 0)]
    return Facts(None, lines, launches=launches)


def check(report, tmp_path, text):
    path = tmp_path / "budget.yml"
    path.write_text(text)
    return budgets.check(budgets.read(path), report)


def fault(report):
    file = report.lines[0].file
    return FaultRecord("race", file, 3, "scale", (0, 0, 0), (1, 0, 0), "two threads")


def test_a_written_budget_is_kept_and_has_no_slack(report, tmp_path):
    text = budgets.of(report)
    assert check(report, tmp_path, text) == []
    for quantity, less in (
        ("requests: 9", "requests: 8"),
        ("sectors: 52", "sectors: 51"),
        ("wavefronts: 32", "wavefronts: 31"),
        ("sectors_ratio: 2.25", "sectors_ratio: 2.24"),
        ("wavefronts_ratio: 32.0", "wavefronts_ratio: 31.9"),
    ):
        assert quantity in text
        (over,) = check(report, tmp_path, text.replace(quantity, less))
        assert f"{over.quantity}: " == quantity.partition(" ")[0] + " "


def test_a_budget_is_of_a_template_or_of_one_instance(report, tmp_path):
    of_double = [replace(line, kernel="scale<double>") for line in report.lines]
    of_float = [replace(line, kernel="scale<float>", sectors=2 * line.sectors) for line in report.lines]
    launches = [replace(report.launches[0], kernel=line.kernel) for line in (of_double[0], of_float[0])]
    both = Facts(None, of_double + of_float, launches=launches)
    for name, sectors in (("scale", 156), ("scale<double>", 52), ("scale<float>", 104)):
        entry = json.dumps({"kernels": {name: {"sectors": sectors}}})
        assert check(both, tmp_path, entry) == []
        (over,) = check(both, tmp_path, entry.replace(str(sectors), str(sectors - 1)))
        assert over.got == sectors and f"of {over.lines[0].kernel}, " in str(over)
    assert "scale<float>:" in budgets.of(both) or '"scale<float>":' in budgets.of(both)
    with pytest.raises(BudgetError, match="scale<int>"):
        check(both, tmp_path, '{"kernels": {"scale<int>": {"sectors": 1}}}')


def test_equal_launches_are_listed_once(report):
    other = replace(report.launches[0], line=10)
    text = as_text(replace(report, launches=[*report.launches * 3, other]))
    assert "3 x scale<<<1, 128>>> at scale.cu:9\n" in text and "\nscale<<<1, 128>>> at scale.cu:10\n" in text


def test_the_message_has_line_allowed_and_got(report, tmp_path):
    (over,) = check(report, tmp_path, "kernels: {scale: {sectors: 32}}")
    assert str(over).splitlines() == [
        "kernel scale: sectors: allowed 32, got 52",
        "  scale.cu:2  global store, 4 requests, 36 sectors, 16 at best",
        "    > out[i] = x[i];",
        "  scale.cu:2  global load, 4 requests, 16 sectors, 16 at best",
        "    > out[i] = x[i];",
    ]
    assert (over.file, over.line) == (report.lines[1].file, 2)


@pytest.mark.parametrize(
    "key", ["scale.cu:2", "csrc/scale.cu:2", "'scale.cu: out[i] = x[i];'", "'scale.cu:out[i] =  x[i];'"]
)
def test_a_line_is_named_by_number_or_text(report, tmp_path, key):
    assert check(report, tmp_path, f"lines: {{{key}: {{sectors: 52, wavefronts: 0}}}}") == []
    (over,) = check(report, tmp_path, f"lines: {{{key}: {{sectors: 51}}}}")
    assert over.got == 52


def test_a_ratio_holds_for_each_line(report, tmp_path):
    (over,) = check(report, tmp_path, "kernels: {scale: {sectors_ratio: 2}}")
    assert (over.line, over.got) == (2, 2.25)
    assert check(report, tmp_path, "kernels: {scale: {sectors_ratio: 2.25}}") == []


def test_faults_are_over_budget_unless_allowed(report, tmp_path):
    report.faults = [fault(report)]
    (over,) = check(report, tmp_path, "")
    assert (over.entry, over.quantity, over.got, over.line) == ("all kernels", "faults", 1, 3)
    assert check(report, tmp_path, "faults: 1") == []
    assert check(report, tmp_path, "kernels: {scale: {faults: 1}}") == []
    assert check(report, tmp_path, "lines: {'scale.cu:3': {faults: 1}}") == []
    (over,) = check(report, tmp_path, "faults: 1\nkernels: {scale: {faults: 0}}")
    assert over.entry == "kernel scale"
    assert len(check(report, tmp_path, "lines: {'scale.cu:2': {faults: 1}}")) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kernels: {scal: {sectors: 1}}", "names kernel 'scal', which was not launched; did you mean 'scale'?"),
        (
            "lines: {'scale.cu:4': {sectors: 1}}",
            "which accessed no memory; did you mean 'scale.cu:3'? There are scale.cu:2, scale.cu:3",
        ),
        ("lines: {'scale.cu': {sectors: 1}}", "write FILE:NUMBER"),
        ("kernel: {}", "unknown key 'kernel'; did you mean 'kernels'? There are kernels, lines, faults"),
        ("kernels: {scale: {sector: 1}}", "kernels: scale: unknown key 'sector'; did you mean 'sectors'?"),
        ("kernels: {scale: {sectors: many}}", "sectors is 'many'; give an integer"),
        ("kernels: {scale: {sectors: 1.5}}", "sectors is 1.5; give an integer"),
        ("kernels: {scale: {sectors: true}}", "sectors is True; give an integer"),
        ("kernels: {scale: {sectors: -1}}", "sectors is -1; it must be 0 or more"),
        ("kernels: {scale: {sectors_ratio: 0.5}}", "sectors_ratio is 0.5; it must be 1 or more"),
        ("kernels: {scale: {sectors_ratio: .nan}}", "it must be 1 or more"),
        ("kernels: {scale: {}}", "allows nothing"),
        ("kernels: {scale: 5}", "must be a mapping"),
        ("kernels: [scale]", "must be a mapping"),
        ("faults: -1", "faults is -1"),
        ("- kernels", "must be a mapping"),
        ("kernels: {scale", "is not YAML"),
    ],
)
def test_a_bad_budget_is_refused_with_what_to_write(report, tmp_path, text, words):
    with pytest.raises(BudgetError) as error:
        check(report, tmp_path, text)
    assert words in str(error.value)


def test_a_missing_budget_is_refused(tmp_path):
    with pytest.raises(BudgetError, match="does not exist; --write-budget"):
        budgets.read(tmp_path / "none.yml")
