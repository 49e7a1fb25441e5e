"""The least time of a launch: what its bounds are made of, each beside a case in which it has to be another."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from simt_programs import load_cases, operators

from kernel_xray.report import gpu_models
from kernel_xray.report.facts import Launch, Line
from kernel_xray.report.report import Report
from kernel_xray.report.run import xray

HERE = Path(__file__).parent
LAUNCH = Launch(
    "k", "k.cu", 1, (132, 1, 1), (256, 1, 1), 132, 132, 32.0, 0, 0,
    sectors_read=150_000_000, sectors_written=1_638_400, sectors_readable=150_000_000,
)  # fmt: skip
LOADS = Line("k.cu", 2, "k", "global", "load", 1000, 16_000, 16_000, 0, 0, 32.0)
BANKS = Line("k.cu", 3, "k", "shared", "load", 1000, 0, 0, 32_000, 1000, 32.0)
MICROSECOND = 1e-6


def load(name):
    return load_cases(HERE / f"{name}.cu", f"xray_{name}", traced=True)


metrics = operators(load, "metrics")


def limits(launch=LAUNCH, lines=(), sass="", gpu="h200", **options):
    report = Report(None, list(lines), launches=[launch], sass=sass)
    (found,) = report.limits(gpu, **options).launches
    return found, {limit.resource: limit for limit in found.limits}


def test_memory_that_is_read_once_sets_the_bound():
    found, each = limits()
    assert each["DRAM"].seconds == pytest.approx(1000 * MICROSECOND)  # 4.8 GB at 4.8 TB/s
    assert found.bound is each["DRAM"]


def test_what_is_written_may_stay_in_the_l2():
    """50 MiB of it, all that LAUNCH writes; then 48 MB more."""
    more = replace(LAUNCH, sectors_written=LAUNCH.sectors_written + 1_500_000)
    assert limits(more)[1]["DRAM"].seconds == pytest.approx(1010 * MICROSECOND)


def test_a_sample_is_scaled_up_to_all_that_can_be_read_and_is_not_a_bound():
    half = replace(LAUNCH, traced_blocks=66, sectors_read=75_000_000, sectors_written=819_200)
    shared = replace(half, sectors_read=100_000_000)  # blocks read the same memory
    for launch in (half, shared):
        found, each = limits(launch)
        assert each["DRAM"].seconds == pytest.approx(1000 * MICROSECOND)
        assert found.bound is None


def test_the_cycles_of_the_sms_are_a_bound_only_for_machine_code():
    """1,000 requests of 16 bytes a lane are 4,000 cycles; 32,000 wavefronts are as many."""
    for sass, is_bound in (("", False), ("sm_90a", True)):
        found, each = limits(replace(LAUNCH, sectors_read=1), [LOADS, BANKS], sass)
        on_chip = each["L1 and shared memory"]
        assert on_chip.seconds == pytest.approx(36_000 / (132 * 1.98e9))
        assert (found.bound is on_chip) == on_chip.is_bound == is_bound
    one = limits(replace(LAUNCH, grid=(1, 1, 1), blocks=1, traced_blocks=1), [LOADS, BANKS])[1]
    assert one["L1 and shared memory"].seconds == pytest.approx(36_000 / 1.98e9)


def test_arithmetic_is_what_the_caller_says():
    found, each = limits(flops={"bfloat16": 989.4e12, "float32": 1.0})
    assert found.bound is each["arithmetic, bfloat16"] and found.bound.seconds == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "h2000"}, "gpu is 'h2000'; known are a100, h100, h200, "),
        ({"flops": {"int4": 1.0}}, "flops has 'int4'; the NVIDIA H200 has float32, tf32, "),
    ],
)
def test_what_is_not_known_is_named_with_what_is(options, message):
    with pytest.raises(ValueError, match=message):
        limits(**options)


def test_operations_are_of_one_launch():
    with pytest.raises(ValueError, match="flops are of one launch; the report has 2"):
        Report(None, launches=[LAUNCH, LAUNCH]).limits("h200", flops={"float32": 1.0})


def test_the_table_says_what_limits_and_what_is_not_counted():
    text = str(Report(None, [BANKS], launches=[LAUNCH]).limits("NVIDIA H200"))
    assert "\n* DRAM                   1000.000 us  4.8 GB read, 52.43 MB written, 0 bytes past the L2\n" in text
    assert "\n~ L1 and shared memory" in text and "Not counted: the latency of loads" in text
    assert max(map(len, text.splitlines())) <= 88  # of a lesson's column


def test_each_model_has_a_source_for_each_figure(tmp_path):
    for name in gpu_models.known():
        assert gpu_models.find(name).flops["float32"] > 1e12
    good = (gpu_models.GPUS / "t4.toml").read_text()
    for text, message in (
        (good.replace("source =", "from ="), "sms has no source"),
        (good.replace("value = 40", "value = 0"), "sms is 0; it must be greater than 0"),
    ):
        (tmp_path / "mine.toml").write_text(text)
        with pytest.raises(ValueError, match=message):
            gpu_models.read(tmp_path / "mine.toml")


def sectors(metrics, case, a, c, **options):
    (launch,) = xray(metrics.run, a, c, case, **options).launches
    return launch.sectors_read, launch.sectors_written, launch.sectors_readable


def test_a_sector_is_read_once_and_not_if_the_launch_has_written_it(metrics):
    """Of 32 floats in a, 4 sectors; c is written first. An atomic update reads what it then writes."""
    assert sectors(metrics, 10, torch.ones(32), torch.zeros(32)) == (4, 4, 8)
    assert sectors(metrics, 0, torch.zeros(1), torch.zeros(32, dtype=torch.int32)) == (1 + 4, 1 + 4, 1 + 4)
    assert sectors(metrics, 4, torch.zeros(1), torch.zeros(32 * 40), max_blocks=10) == (0, 10 * 4, 0)
