"""results/<gpu>.json: the form that is accepted, and the violations that are refused."""

import functools
import json

import pytest
from made_up import MACHINE, record

from helpers.ladder import results
from helpers.ladder.results.records import Recorded, ResultsError, problems, read, record_problems, recorded, write
from helpers.ladder.results.table import contenders_table, duration, recorded_table


def document(*records):
    return {"machine": dict(MACHINE), "records": list(records)}


def test_the_committed_files_are_valid():
    for part in recorded():
        assert problems(read(part.path)) == []


def test_a_record_of_the_specified_form_is_accepted():
    assert record_problems(record()) == []
    assert record_problems(record(bytes=None, of_copy=None, flops=10**12, of_cublas=0.9, vs={"cublas": 0.9})) == []
    assert problems(document(record(), record(variant="simple"), record(dtype="float16"))) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"op": None}, "op"),
        ({"variant": 3}, "variant"),
        ({"dtype": "fp32"}, "dtype"),
        ({"shape": 1024}, "shape"),
        ({"shape": [0]}, "shape"),
        ({"median_ms": float("nan")}, "median_ms"),
        ({"median_ms": 0.5}, "p20_ms"),
        ({"p80_ms": -1.0}, "p80_ms"),
        ({"bytes": 0}, "bytes"),
        ({"of_copy": None}, "of_copy"),
        ({"bytes": None, "of_copy": None}, "bytes or flops"),
        ({"flops": 1, "of_cublas": 1.0}, "bytes or flops"),
        ({"max_error": None}, "not checked"),
        ({"max_error": float("nan")}, "not checked"),
        ({"vs": {"numpy": 2.0}}, "vs"),
        ({"vs": {"eager": 0.0}}, "vs"),
        ({"of_copy": 1.04}, "note"),
    ],
)
def test_a_wrong_record_is_refused(changes, word, tmp_path):
    found = record_problems(record(**changes))
    assert len(found) >= 1
    assert any(word in f for f in found)
    with pytest.raises(ResultsError, match="refused to record"):
        write(tmp_path / "h200.json", document(record(**changes)))
    assert not list(tmp_path.iterdir())


def test_over_the_limit_needs_a_note_that_explains_it():
    assert record_problems(record(of_copy=1.04, note="reads more than it writes")) == []


@pytest.mark.parametrize(
    "broken",
    [[], {}, {"machine": MACHINE}, {"machine": {"gpu": "x"}, "records": []}, document(3), document(record(), record())],
)
def test_a_wrong_document_is_refused(broken, tmp_path):
    assert problems(broken)
    (tmp_path / "x.json").write_text(json.dumps(broken))
    with pytest.raises(ResultsError, match=r"x\.json"):
        read(tmp_path / "x.json")


def test_reading_gives_what_was_written(tmp_path):
    path = tmp_path / "folder" / "h200.json"
    write(path, document(record(), record(variant="simple")))
    assert read(path) == document(record(), record(variant="simple"))
    assert [p.name for p in path.parent.iterdir()] == ["h200.json"]
    assert path.read_text().count('\n    {"op"') == 2  # one line each, for small diffs


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(ResultsError, match=r"does not exist; record it"):
        read(tmp_path / "none.json")
    (tmp_path / "torn.json").write_text('{"machine"')
    with pytest.raises(ResultsError, match=r"torn\.json is not JSON"):
        read(tmp_path / "torn.json")


def test_merging_replaces_the_same_operator_dtype_and_shape():
    old = results.merge(None, MACHINE, [record(), record(variant="gone"), record(shape=[1024]), record(op="other")])
    now = {**MACHINE, "date": "2026-12-01", "commit": "fedcba"}
    new = results.merge(old, now, [record(median_ms=0.745)])
    assert [(r["op"], r["shape"], r["variant"], r["date"]) for r in new["records"]] == [
        ("other", [2**28], "toy", "2026-11-21"),
        ("toy", [1024], "toy", "2026-11-21"),
        ("toy", [2**28], "toy", "2026-12-01"),
    ]
    assert new["machine"] == now
    assert problems(new) == []


def test_some_variants_leave_the_others_of_their_cell():
    old = results.merge(None, MACHINE, [record(), record(variant="stays")])
    new = results.merge(old, MACHINE, [record(median_ms=0.745)], variants=True)
    assert {r["variant"]: r["median_ms"] for r in new["records"]} == {
        record()["variant"]: 0.745,
        "stays": record()["median_ms"],
    }


def test_one_record_is_found_at_the_largest_shape_or_the_given_one(tmp_path):
    small, large = record(shape=[512, 4096]), record(shape=[4096, 8192])
    write(tmp_path / "gpu.json", document(small, large, record(variant="other", shape=[8192, 8192])))
    found = functools.partial(results.find, "toy", folder=tmp_path)
    assert found("toy") == large
    assert found("toy", shape=(512, 4096)) == small
    assert found("toy", shape=(1, 1)) is None
    assert found("toy", dtype="float16") is None
    assert found("another") is None
    assert results.find("another", "toy", folder=tmp_path) is None


@pytest.mark.parametrize("key", ["gpu", "driver", "cuda", "torch"])
def test_machines_are_not_mixed(key):
    old = results.merge(None, MACHINE, [record()])
    other = {**MACHINE, key: "another"}
    with pytest.raises(ResultsError, match=rf"{key} '.*' there, 'another' now.*--replace"):
        results.merge(old, other, [record(op="other")])
    assert [r["op"] for r in results.merge(old, other, [record(op="other")], replace=True)["records"]] == ["other"]


def test_another_date_is_not_another_machine():
    old = results.merge(None, MACHINE, [record()])
    new = results.merge(old, {**MACHINE, "date": "2027-01-01", "clocks": {}}, [record(op="other")])
    assert len(new["records"]) == 2


def test_files_of_another_kind_are_skipped(tmp_path):
    (tmp_path / "xray_vs_ncu.json").write_text('{"machine": {}, "records": [{"kernel": "x"}]}')
    write(tmp_path / "h200.json", document(record(), record(op="other")))
    (found,) = recorded("other", tmp_path)
    assert [r["op"] for r in found.records] == ["other"]
    assert len(recorded(None, tmp_path)[0].records) == 2
    assert recorded("unknown", tmp_path) == []
    (tmp_path / "a100.json").write_text("{")
    with pytest.raises(ResultsError, match=r"a100\.json"):
        recorded("other", tmp_path)


def test_a_label_names_the_gpu_and_the_date():
    dated = [record(date="2026-11-21"), record(date="2026-12-01")]
    assert Recorded("x", MACHINE, dated[:1]).label == "NVIDIA H200, 2026-11-21"
    assert Recorded("x", MACHINE, dated).label == "NVIDIA H200, 2026-11-21 to 2026-12-01"
    assert Recorded("x", MACHINE, [record()]).label == "NVIDIA H200, 2026-11-21"


def test_the_table_shows_the_largest_shape_of_each_dtype():
    other = record(dtype="float16", vs={"eager": 1.0, "compile": 1.5}, of_copy=1.02, note="why")
    rows = [record(), record(shape=[1024]), other]
    shown = repr(recorded_table("toy", [Recorded("x", MACHINE, rows)]))
    assert "recorded on NVIDIA H200, 2026-11-21" in shown
    assert "1,024" not in shown
    assert "99.0%" in shown and "102.0%" in shown and "1.50x" in shown and "4,295 GB/s" in shown
    assert shown.splitlines()[-1].strip() == "why"
    both = [Recorded("x", MACHINE, [*rows, record(variant="other", dtype="float64", date="2026-12-01")])]
    assert "other" in repr(recorded_table("toy", both))
    assert repr(recorded_table("toy", both, variant=record()["variant"])) == shown
    page = recorded_table("a<b", [Recorded("x", MACHINE, rows)])._repr_html_()
    assert "a&lt;b" in page and page.count("<tr>") == 3


def test_an_operator_that_is_not_recorded_says_so():
    shown = recorded_table("vector_add", [])
    assert "nothing is recorded yet" in repr(shown)
    assert "python -m helpers bench vector_add --record" in shown._repr_html_()


def test_durations():
    assert [duration(ms) for ms in (12.3456, 0.1, 0.0123)] == ["12.346 ms", "0.100 ms", "12.30 us"]


def test_the_peers_are_the_specified_ones():
    assert results.PEERS == (
        "eager",
        "compile",
        "compile_dynamic",
        "triton",
        "cublas",
        "flash",
        "cudnn",
        "fa4",
        "quack",
    )


# -- A lesson's contenders ---------------------------------------------------------------------------------------------


def found(*rows):
    return [Recorded("x", MACHINE, list(rows))]


def test_a_lessons_table_has_its_contenders_and_their_peer_only():
    rows = [record(variant=v, median_ms=ms) for v, ms in (("simple", 2.0), ("fast", 1.0), ("of_a_later_lesson", 0.5))]
    table = contenders_table("toy", found(*rows), ["simple", "eager", "absent"], "float32", versus="eager")
    assert [row[0] for row in table.rows] == ["copy", "simple", "eager"]  # the copy takes 0.99 of the 2 ms
    assert [row[-2] for row in table.rows] == ["1.01x", "1.00x", "1.00x"]
    assert table.notes == ["not recorded: absent"]
    assert "268,435,456: recorded on NVIDIA H200, 2026-11-21 (not measured now)" in table.title


def test_a_lessons_table_is_of_its_dtype_and_nearest_shape():
    sizes = [record(shape=[2**k], median_ms=2.0**k) for k in (10, 20, 28)]
    half = record(dtype="float16", shape=[2**26], median_ms=9.0)
    for wanted, shown in ((2**26, 2**28), (2**23, 2**20), (2**3, 2**10)):
        table = contenders_table("toy", found(*sizes, half), ["toy"], "float32", (wanted,))
        assert f"float32, {shown:,}:" in table.title
    assert "float16, 67,108,864:" in contenders_table("toy", found(*sizes, half), ["toy"], "float16", (1,)).title
    assert "float32, 268,435,456:" in contenders_table("toy", found(*sizes, half), ["toy"], "float32").title


def test_a_lessons_table_prefers_a_shape_with_its_peers():
    near, far = record(shape=[2**26]), record(shape=[2**28], vs={"eager": 1.5, "compile": 1.25})
    table = contenders_table("toy", found(near, far), ["toy", "eager", "torch.compile"], "float32", (2**26,))
    assert [row[0] for row in table.rows] == ["copy", "toy", "torch.compile", "eager"] and table.notes == []
    assert [row[1] for row in table.rows] == ["0.742 ms", "0.750 ms", "0.938 ms", "1.125 ms"]


def test_a_lesson_without_a_peer_gets_one():
    table = contenders_table("toy", found(record()), ["toy"], "float32")
    assert "eager" in [row[0] for row in table.rows]


def test_nothing_recorded_says_how_to_record():
    table = contenders_table("toy", found(record()), ["theirs"], "float32")
    assert table.rows == () and "nothing is recorded yet for theirs" in table.title and "bench toy" in table.notes[0]
