"""The matmul scoreboard: rates and shares from records, rungs without a record, lines of code."""

import json
import re
from pathlib import Path

import pytest
from made_up import MACHINE, record

from helpers.ladder.catalogue.fp8 import MATMUL_FP8
from helpers.ladder.catalogue.matmul import MATMUL
from helpers.ladder.results.records import Recorded, ResultsError
from helpers.ladder.results.scoreboard import RUNGS, ladder, lines_of_code, scoreboard
from helpers.paths import KERNELS

CUBE = [4096] * 3


def product(variant, ms, of_cublas, **changes):
    fields = {"op": "matmul", "shape": CUBE, "flops": 2 * 4096**3, "bytes": None, "of_copy": None} | changes
    return record(variant=variant, median_ms=ms, of_cublas=of_cublas, **fields)


def found(*records):
    return [Recorded(Path("h200.json"), MACHINE, list(records))]


def rows(table):
    return {row[0]: list(row[1:]) for row in table.rows}


def test_rates_and_shares_come_from_the_records():
    table = scoreboard(found=found(product("matmul_naive", 20.0, 0.125), product("matmul_warp_tile", 2.5, 1.0)))
    got = rows(table)
    assert got["matmul_naive"][:3] == ["6.9", "12.5%", "10%"]
    assert got["matmul_warp_tile"][:3] == ["55.0", "100.0%", "82%"]
    assert got["cublas"] == ["55.0", "100.0%", "82%", "", "", ""]
    assert "NVIDIA H200, 2026-11-21" in table.title


def test_a_rung_has_the_resource_that_takes_longest_and_its_share_of_the_time(monkeypatch):
    seconds = {"issue": 1e-2, "DRAM": 1e-5}
    monkeypatch.setattr(
        "helpers.ladder.results.scoreboard._limits", lambda: {("matmul_naive", "float32", tuple(CUBE)): seconds}
    )
    got = rows(scoreboard(found=found(product("matmul_naive", 20.0, 0.125), product("matmul_tiled", 2.5, 1.0))))
    assert got["matmul_naive"][3] == "issue, 50%" and got["matmul_tiled"][3] == ""
    assert rows(scoreboard(found=[]))["matmul_naive"][3] == ""


def test_recorded_limits_are_below_the_recorded_times():
    """A limit above the time would be wrong; one far below it would say nothing."""
    shares = [
        float(row[4].rpartition(", ")[2].rstrip("%"))
        for dtype in ("float32", "bfloat16")
        for row in scoreboard(dtype).rows
        if row[4]
    ]
    assert len(shares) > 15 and min(shares) > 2 and max(shares) <= 102


def test_rungs_without_a_record_say_so_and_dtypes_do_not_mix():
    mma = product("matmul_mma", 1.0, 0.5, dtype="bfloat16")
    got = rows(scoreboard(found=found(product("matmul_naive", 20.0, 0.1), mma)))
    assert got["matmul_tiled"][0] == "not measured yet" and "matmul_mma" not in got
    assert rows(scoreboard("bfloat16", found=found(mma)))["matmul_mma"][1] == "50.0%"
    nothing = scoreboard(found=[])
    assert list(rows(nothing)) == [rung for rung in RUNGS if MATMUL.takes(rung, "float32")]
    assert "python -m helpers bench matmul" in nothing.title
    assert rows(scoreboard(found=found(product("matmul_mma", 1.0, 0.5, shape=[64] * 3))))["matmul_naive"][0] != "6.9"


def test_a_step_shows_the_rungs_before_and_after_it():
    step = ("matmul_async", "matmul_warp_ring")
    assert list(rows(scoreboard(rungs=step))) == ["matmul_async", "matmul_warp_compact", "matmul_warp_ring", "cublas"]
    assert list(rows(scoreboard(rungs=("matmul_wmma",)))) == ["cublas"]
    with pytest.raises(ValueError, match="'matmul_fast' is not one of matmul_naive, "):
        scoreboard(rungs=("matmul_fast",))


def test_every_rung_says_in_a_sentence_what_it_changes_and_why():
    for dtype in ("float32", "bfloat16"):
        sentences = [row[-1] for row in scoreboard(dtype).rows if row[0] != "cublas"]
        assert len(set(sentences)) == len(sentences) > 8
        assert all(5 < len(sentence.split()) <= 20 for sentence in sentences)


def test_the_plot_names_what_it_shows():
    text = repr(ladder(found=found(product("matmul_naive", 20.0, 0.125))))
    assert "matmul_naive: 6.87 TFLOP/s" in text and "H200" in text
    with pytest.raises(ResultsError, match="not recorded with float32"):
        ladder(found=[])


def test_comments_and_blank_lines_are_not_code(tmp_path):
    file = tmp_path / "x.cu"
    file.write_text("// a\n\nint x;  // b\n  // c\nint y;\n")
    assert lines_of_code(file) == 2
    assert all(20 < lines_of_code(f) < 350 for f in RUNGS.values())


# A file of kernels/matmul -> the operator and the name of its last rung
LAST = {rung.files[0]: (op.name, rung.name) for op in (MATMUL, MATMUL_FP8) for rung in op.kernels if not rung.not_timed}


@pytest.mark.parametrize("path", sorted((KERNELS / "matmul").glob("*.cu")), ids=lambda path: path.stem)
def test_a_rungs_header_says_what_limits_it_and_its_recorded_share(path):
    text = path.read_text()
    assert "// What limits it: " in text
    said = re.search(r"On an H200 it has (\d+)% [^%]* at 4096 x 4096 x 4096, (\w+)\.", text.replace("\n// ", " "))
    recorded = json.loads((KERNELS.parent / "results" / "h200.json").read_text())["records"]
    op, rung = LAST[f"matmul/{path.name}"]
    ours = [r for r in recorded if (r["op"], r["variant"], r["shape"]) == (op, rung, CUBE)]
    assert bool(said) == bool(ours)  # a rung that is not measured yet claims nothing
    if said:
        (record,) = (r for r in ours if r["dtype"] == said[2])
        assert int(said[1]) == round(100 * record["of_cublas"])
