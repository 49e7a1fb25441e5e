"""Limits beside what ncu says: its CSV is read, limits are set beside it, and the recorded ones are near and agree."""

import json
import statistics
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from helpers.paths import DOCS
from helpers.upkeep.validation import judged, judged_calls, ncu
from helpers.upkeep.validation.recorded_calls import SAMPLED, by_resource, recorded

MOST = 1.02  # the bound over the measured time
METRICS = ("dram__throughput", "fbpa__dram_sectors", "lts__t_sectors", "idc__request_cycles_active")
ROW = '"{}","1  ""<default domain>:{}:none:none"" ","{}","{}","{}","{}","{}","7"\n'
CSV = (
    "==PROF== Connected to process 1\n"
    '"ID","thread Domain:Push/Pop_Range","Kernel Name","gpu__time_duration.sum",'
    + ",".join(f'"{name}.avg.pct_of_peak_sustained_elapsed"' for name in METRICS)
    + '\n"","","","ns","%","%","%","%"\n'
    + ROW.format(0, "one|simple|float32|8388608", "add_kernel(const float *)", "30,144", 99.0, 65.5, 51)
    + ROW.format(1, "other|tiled|bfloat16|64|32|16", "void small::mma_kernel<(int)1>(int *)", "1,000", 0, 5, 40)
)
CALL = recorded(judged.LEAST)[0]


def record(bounds, seconds=30e-6, **ncu):
    return {"seconds": seconds, "bounds": bounds, "ncu": ncu or {"DRAM": 84.0, "L2": 51.0}}


def test_a_launch_is_read_with_its_call_and_the_largest_share_of_each_resource():
    first, second = judged.read(CSV)
    assert first == {
        "op": "one", "variant": "simple", "dtype": "float32", "shape": [8388608],
        "kernel": "add_kernel", "seconds": pytest.approx(30.144e-6),
        "ncu": {"DRAM": 65.5, "L2": 51.0, "other units": 7.0},  # a throughput is the largest of its parts
    }  # fmt: skip
    assert (second["kernel"], second["shape"]) == ("mma_kernel", [64, 32, 16])
    assert list(second["ncu"]) == ["L2", "other units", "DRAM"]
    assert judged.read("==ERROR== no counters") == []


def test_limits_are_set_beside_launches_of_the_same_names():
    op, variant, dtype, shape = CALL.key
    one = {"op": op, "variant": variant, "dtype": dtype, "shape": [*shape], "kernel": "add_kernel"}
    fill = one | {"kernel": "fill_kernel"}  # of PyTorch, which the X-ray does not see
    records = [fill, one]
    assert judged.complete(records, CALL.key, [("add_kernel", {"L2": 1e-6, "DRAM": 2.00004e-6})]) == ""
    assert records[1]["bounds"] == {"DRAM": 2e-6, "L2": 1e-6} and list(records[1]["bounds"]) == ["DRAM", "L2"]
    assert "bounds" not in fill
    assert judged.complete([one], CALL.key, [("add_kernel", {}), ("add_kernel", {})]) == "other launches under ncu"


def test_a_run_goes_on_where_an_earlier_one_stopped(tmp_path, monkeypatch, capsys):
    keys = [
        ("add", "simple", "float32", (1,)),
        ("add", "simple", "float32", (2,)),
        (judged_calls.MICRO, "load", "", ()),
    ]
    path, counted, asked, broken = tmp_path / judged.PATH.name, [], [], {"micro", keys[1]}
    monkeypatch.setattr(judged_calls, "calls", lambda: dict.fromkeys(keys))
    monkeypatch.setattr(judged_calls, "machine_record", lambda commit: {"gpu": "h100"})
    monkeypatch.setattr(judged_calls, "ProcessPoolExecutor", lambda **_: ThreadPoolExecutor(1))

    def measure(out, operator):
        counted.append(operator)
        if operator in broken:
            raise ncu.NcuError("no counters")
        names = ("op", "variant", "dtype", "shape")
        return [dict(zip(names, k, strict=True)) | {"kernel": "k"} | record(None) for k in keys if k[0] == operator]

    def bounds(gpu, key):
        asked.append(key)
        if key in broken:
            raise RuntimeError("no such tool\nat all")
        return [("k", {"L2": 10e-6})]

    def written():
        return {judged.key_of(each): each["bounds"] for each in json.loads(path.read_text())["records"]}

    assert judged_calls.main([str(tmp_path)], measure, bounds) == 1
    assert counted == ["add", "micro"] and "no counters" in capsys.readouterr().out
    assert written() == {keys[0]: {"L2": 10e-6}, keys[1]: None}
    broken.remove("micro")
    counted.clear()
    assert judged_calls.main([str(tmp_path)], measure, bounds) == 0
    assert counted == ["micro"] and "no such tool" in capsys.readouterr().out
    assert written() == {keys[0]: {"L2": 10e-6}, keys[1]: None, keys[2]: {"L2": 10e-6}}
    broken.clear()
    asked.clear()
    monkeypatch.setattr(judged_calls, "PATH", path)
    assert judged_calls.main([], measure, bounds) == 0 and asked == [keys[1]]
    assert set(map(str, written().values())) == {"{'L2': 1e-05}"} and counted == ["micro"]


def test_a_limiter_agrees_if_ncu_calls_the_same_resource_highest():
    assert judged.agrees(record({"DRAM": 20e-6, "L2": 10e-6})) and judged.ratio(record({"DRAM": 20e-6})) == 1.5
    assert not judged.agrees(record({"DRAM": 20e-6, "issue": 21e-6}))
    assert judged.agrees(record({"tensor, mma.sync": 20e-6}, tensor=50.0, DRAM=20.0))
    assert judged.agrees(record({"launch": 25e-6, "DRAM": 20e-6}))  # of which ncu has no share


def test_short_launches_are_not_compared_and_those_far_from_a_peak_are_told_apart():
    near, far, short = record({"DRAM": 20e-6}), record({"L2": 10e-6}, DRAM=79.0), record({"DRAM": 1e-6}, 19e-6)
    assert judged.compared([near, far, short, {"seconds": 1.0}]) == [near, far]
    assert judged.near_a_peak([near, far, short]) == [near]
    assert judged.table([near, far, short]).splitlines() == [
        "20 us or longer        2 launches, measured / bound 2.25 (median), 1.50 (least); limiter as ncu's in 1 (50%)",
        "at 80% of a peak       1 launches, measured / bound 1.50 (median), 1.50 (least); limiter as ncu's in 1 (100%)",
    ]


def test_limits_that_are_counted_in_the_source_are_left_out():
    estimates = {"issue": "counted in the source", "DRAM": "", "L2": SAMPLED}
    limits = [SimpleNamespace(resource=name, seconds=1.0, estimate=why) for name, why in estimates.items()]
    assert list(by_resource(SimpleNamespace(limits=limits))) == ["DRAM", "L2"]


def test_the_recorded_bounds_hold_are_near_and_name_what_ncu_calls_highest():
    records = json.loads(judged.PATH.read_text())["records"]
    some, near = judged.compared(records), judged.near_a_peak(records)
    assert [r for r in records if r.get("bounds") and judged.ratio(r) < 1 / MOST] == []
    assert statistics.median(map(judged.ratio, near)) <= 1.3 and statistics.median(map(judged.ratio, some)) <= 2
    for group in (some, near):
        assert sum(map(judged.agrees, group)) >= 0.9 * len(group)
    assert judged.table(records) in (DOCS / "limits.md").read_text()
