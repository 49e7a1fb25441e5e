"""The least time of a launch: what its bounds are made of, each beside a case in which it has to be another."""

from dataclasses import replace

import pytest
import torch
from simt_programs import operators
from test_xray import load

from kernel_xray.report import gpu_models
from kernel_xray.report.facts import CP_ASYNC, Issued, Launch, Line, Products
from kernel_xray.report.report import Report
from kernel_xray.report.resident_warps import occupancy
from kernel_xray.report.run import xray
from kernel_xray.runtime.libsimt import is_clang

LAUNCH = Launch(
    "k", "k.cu", 1, (132, 1, 1), (256, 1, 1), 132, 132, 32.0, 0, 0,
    sectors_read=150_000_000, sectors_written=1_638_400, sectors_readable=150_000_000,
)  # fmt: skip
LOADS = Line("k.cu", 2, "k", "global", "load", 1000, 16_000, 16_000, 0, 0, 32.0)
BANKS = Line("k.cu", 3, "k", "shared", "load", 1000, 0, 0, 32_000, 1000, 32.0)
UNITS = ("issue", "float32", "float64", "integer", "special", "bits", "mma")
COMPUTES = [Issued("k", unit, 132 * 64_000) for unit in UNITS]
MICROSECOND = 1e-6
DRAM = 4.8e9 / gpu_models.find("h200").dram_bytes_per_second  # seconds for what LAUNCH reads


metrics = operators(load, "metrics")


def limits(launch=LAUNCH, lines=(), sass="", gpu="h200", issued=(), **options):
    report = Report(None, list(lines), launches=[launch], sass=sass, issued=list(issued))
    (found,) = report.limits(gpu, **options).launches
    return found, {limit.resource: limit for limit in found.limits}


def test_memory_that_is_read_once_sets_the_bound():
    found, each = limits()
    assert each["DRAM"].seconds == pytest.approx(DRAM)
    assert found.bound is each["DRAM"]


def test_what_is_written_may_stay_in_the_l2():
    """50 MiB of it, all that LAUNCH writes; then 48 MB more."""
    more = replace(LAUNCH, sectors_written=LAUNCH.sectors_written + 1_500_000)
    assert limits(more)[1]["DRAM"].seconds == pytest.approx(1.01 * DRAM)


def test_a_sample_is_scaled_up_to_all_that_can_be_read_and_is_not_a_bound():
    half = replace(LAUNCH, traced_blocks=66, sectors_read=75_000_000, sectors_written=819_200)
    shared = replace(half, sectors_read=100_000_000)  # blocks read the same memory
    for launch in (half, shared):
        found, each = limits(launch)
        assert each["DRAM"].seconds == pytest.approx(DRAM)
        assert found.bound is None


def test_the_cycles_of_the_sms_are_a_bound_only_for_machine_code():
    """1,000 requests of 16 bytes a lane are 4,000 cycles; 32,000 wavefronts are as many."""
    for sass, is_bound in (("", False), ("sm_90a", True)):
        found, each = limits(replace(LAUNCH, sectors_read=1, sectors_written=1), [LOADS, BANKS], sass)
        on_chip = each["L1 and shared memory"]
        assert on_chip.seconds == pytest.approx(36_000 / (132 * 1.98e9))
        assert (found.bound is on_chip) == on_chip.is_bound == is_bound
    one = limits(replace(LAUNCH, grid=(1, 1, 1), blocks=1, traced_blocks=1), [LOADS, BANKS])[1]
    assert one["L1 and shared memory"].seconds == pytest.approx(36_000 / 1.98e9)


def test_a_copy_past_the_registers_takes_a_cycle_of_the_load_and_store_units():
    """1,000 requests of cp.async are 1,000 cycles; by registers, 4,000 to load and 32,000 to store."""
    to = replace(BANKS, line=LOADS.line, kind="store", wavefronts=0, nvcc=CP_ASYNC)
    for lines, cycles in (([LOADS, to], 1000), ([LOADS, replace(to, line=3)], 4000), ([LOADS, BANKS], 36_000)):
        assert limits(lines=lines, sass="sm_90a")[1]["L1 and shared memory"].seconds == pytest.approx(
            cycles / (132 * 1.98e9)
        )


def test_of_even_blocks_those_of_the_fullest_sm_take_longest():
    """200 blocks are two on some SM: as if each of 132 SMs had two."""
    launch = replace(LAUNCH, grid=(200, 1, 1), blocks=200, traced_blocks=200)
    for even, told, blocks_of_an_sm in ((True, 0, 2), (False, 0, 200 / 132), (True, 108, 200 / 132)):
        each = limits(replace(launch, even=even, sms_told=told), [LOADS], "sm_90a", issued=COMPUTES)[1]
        cycles = {"L1 and shared memory": 4000, "issue": 132 * 16_000}
        for name, total in cycles.items():
            assert each[name].seconds == pytest.approx(total / 200 * blocks_of_an_sm / 1.98e9)
            assert (", 2 blocks on some SM" in each[name].work) == (blocks_of_an_sm == 2)


MEASURED = replace(
    gpu_models.find("h200"),
    launch_seconds=1e-6, blocks_per_second=1e9, latency={"l1": 2e-8, "l2": 1e-7, "dram": 3e-7},
)  # fmt: skip
EVEN = replace(LAUNCH, grid=(9000, 1, 1), blocks=9000, traced_blocks=9000, even=True, loading=9000, least_read=16_000)


def waves(monkeypatch, *launches, gpu=MEASURED, **facts):
    monkeypatch.setattr("kernel_xray.report.limits.find", lambda _: gpu)
    found = Report(None, launches=list(launches), **facts).limits("h200").launches[-1]
    return {limit.resource: limit for limit in found.limits}


def test_a_launch_takes_as_long_as_an_empty_one_and_as_its_blocks_take_to_begin(monkeypatch):
    assert not {"launch", "waves"} & set(limits(EVEN, gpu="a100")[1])  # nobody has measured them
    assert waves(monkeypatch, EVEN)["launch"].seconds == pytest.approx(9e-6)
    assert waves(monkeypatch, replace(EVEN, blocks=9))["launch"].seconds == pytest.approx(1e-6)
    assert waves(monkeypatch, EVEN)["launch"].is_bound
    assert not waves(monkeypatch, replace(EVEN, sms_told=108))["launch"].is_bound


def test_each_wave_takes_as_long_as_a_load(monkeypatch):
    """9,000 blocks on 132 SMs with 8 places for 256 threads: 9 waves; with 100 KB each, 2 places and 35 waves."""
    assert waves(monkeypatch, EVEN)["waves"].seconds == pytest.approx(9 * 3e-7)
    assert waves(monkeypatch, replace(EVEN, shared_dynamic=100_000))["waves"].seconds == pytest.approx(35 * 3e-7)
    by_registers = occupancy(256, 128, 0, "9.0", "k")  # 2 places
    assert waves(monkeypatch, EVEN, occupancies=[by_registers])["waves"].seconds == pytest.approx(35 * 3e-7)
    other = replace(by_registers, capability="8.0")
    assert waves(monkeypatch, EVEN, occupancies=[other])["waves"].seconds == pytest.approx(9 * 3e-7)


@pytest.mark.parametrize(
    "changed",
    [{"least_read": 0}, {"blocks": 18_000, "grid": (18_000, 1, 1), "traced_blocks": 9000}],
    ids=["a block reads nothing new", "there is less to be read"],
)
def test_a_load_of_what_others_read_may_come_from_the_l1(monkeypatch, changed):
    limit = waves(monkeypatch, replace(EVEN, **changed))["waves"]
    assert limit.seconds == pytest.approx((18 if "blocks" in changed else 9) * 2e-8)
    assert waves(monkeypatch, EVEN, EVEN)["waves"].seconds == pytest.approx(9 * 2e-8)  # the first has left it there


@pytest.mark.parametrize("changed", [{"even": False}, {"loading": 0}])
def test_of_blocks_that_may_load_nothing_no_wave_is_known(monkeypatch, changed):
    assert "waves" not in waves(monkeypatch, replace(EVEN, **changed))


def test_of_lines_that_are_not_corrected_nothing_is_counted():
    unknown = replace(BANKS, nvcc="not corrected: the machine code has 16 LDS.128 for this")
    found, each = limits(lines=[LOADS, unknown], sass="sm_90a")
    assert each["L1 and shared memory"].seconds == pytest.approx(4000 / (132 * 1.98e9))
    assert "lines that are not corrected" in found.not_counted
    assert "lines that are not corrected" not in limits(lines=[LOADS, BANKS], sass="sm_90a")[0].not_counted


def test_a_later_launch_may_find_memory_in_the_l2():
    report = Report(None, launches=[LAUNCH, LAUNCH])
    first, second = (launch.bound.seconds for launch in report.limits("h200").launches)
    assert first == pytest.approx(DRAM)
    assert second == pytest.approx(DRAM * (1 - 50 * 2**20 / 4.8e9))


def test_tiles_enter_the_sms_each_time_and_other_loads_may_hit_the_l1():
    """64 MB of tiles at 128 bytes a cycle and SM; what crosses from the L2 once is 32 bytes, or 300 MB."""
    tiles = replace(LOADS, kind="tile load", sectors=2_000_000)
    small = replace(LAUNCH, sectors_read=1, sectors_written=1)
    rate = gpu_models.find("h200").l2_bytes_per_second
    for launch, line, seconds in (
        (small, tiles, 64e6 / (128 * 132 * 1.98e9)),
        (small, replace(tiles, kind="tile store"), 64e6 / (128 * 132 * 1.98e9)),
        (small, replace(tiles, kind="load"), 32 / rate),
        (LAUNCH, tiles, 4.8e9 / rate),
    ):
        assert limits(launch, [line])[1]["L2"].seconds == pytest.approx(seconds)
    found, each = limits(small, [tiles], gpu="l4")
    assert "L2" not in each and found.not_counted[0] == "L2"


def tensor(blocks, products, **options):
    launch = replace(LAUNCH, blocks=blocks, grid=(blocks, 1, 1), traced_blocks=blocks, products=(products,))
    found, each = limits(launch, **options)
    return found, each.get(f"tensor, {products.dtype}")


def test_products_take_as_long_as_on_the_sm_that_has_most_blocks():
    """2^25 multiply-adds are 2^26 operations, 16,384 cycles of an SM that does 4,096 a cycle."""
    each = 2**25
    for blocks, products, cycles in (
        (132, Products("bfloat16", 132 * each, each), 16_384),
        (133, Products("bfloat16", 133 * each, each), 2 * 16_384),
        (264, Products("bfloat16", 264 * each, each), 2 * 16_384),
        (1, Products("bfloat16", each, each), 16_384),
        (144, Products("bfloat16", 132 * each, 0), 16_384),  # 12 blocks have none
        (132, Products("float8", 132 * each, each), 8_192),
    ):
        limit = tensor(blocks, products)[1]
        assert limit.seconds == pytest.approx(cycles / 1.98e9, rel=1e-3) and limit.is_bound


def test_a_grid_that_may_be_of_another_size_there_is_taken_to_use_all_sms():
    launch = replace(LAUNCH, blocks=66, traced_blocks=66, products=(Products("bfloat16", 66 * 2**25, 2**25),))
    for told, cycles in ((0, 16_384), (132, 16_384), (108, 8_192)):
        limit = limits(replace(launch, sms_told=told))[1]["tensor, bfloat16"]
        assert limit.seconds == pytest.approx(cycles / 1.98e9, rel=1e-3)


def test_a_type_that_the_gpu_has_no_figure_for_is_said_not_to_be_counted():
    found, limit = tensor(132, Products("tf32", 2**30, 2**20), gpu="t4")
    assert limit is None and "tensor cores, tf32" in found.not_counted
    assert "tensor cores, tf32" not in tensor(132, Products("tf32", 2**30, 2**20))[0].not_counted


def test_special_functions_are_an_estimate_and_updates_of_a_word_are_a_bound():
    found, each = limits(replace(LAUNCH, special=132 * 16 * 1000, most_updates=3_960_000))
    assert each["special functions"].seconds == pytest.approx(1000 / 1.98e9) and not each["special functions"].is_bound
    assert found.bound is each["atomics on one word"] and found.bound.seconds == pytest.approx(2000 * MICROSECOND)
    assert not {"special functions", "atomics on one word"} & set(limits()[1])


def test_instructions_of_machine_code_take_as_long_as_their_unit_needs():
    """64,000 an SM: 4 schedulers; 128, 64, 64 and 16 lanes, of which 32 are one instruction a cycle.

    The special functions' unit has 64,000 instructions on bits, too; each of 4 tensor cores takes 6 cycles.
    """
    found, each = limits(replace(LAUNCH, sectors_read=1, sectors_written=1), sass="sm_90a", issued=COMPUTES)
    for name, cycles in (
        ("issue", 16_000),
        ("float32 arithmetic", 16_000),
        ("float64 arithmetic", 32_000),
        ("integer arithmetic", 32_000),
        ("special functions", 256_000),
        ("tensor, mma.sync", 96_000),
    ):
        assert each[name].seconds == pytest.approx(cycles / 1.98e9, rel=2e-3) and each[name].is_bound
    assert (
        found.bound is each["special functions"] and "other instructions, float32 among them" not in found.not_counted
    )
    few = limits(replace(LAUNCH, blocks=33, traced_blocks=33, grid=(33, 1, 1)), sass="sm_90a", issued=COMPUTES)[1]
    assert few["issue"].seconds == pytest.approx(64_000 / 1.98e9)
    half = limits(replace(LAUNCH, traced_blocks=66), sass="sm_90a", issued=COMPUTES)[1]["issue"]
    assert half.seconds == pytest.approx(32_000 / 1.98e9) and not half.is_bound


def test_a_gpu_has_its_own_units_and_other_machine_code_is_an_estimate():
    each = limits(sass="sm_90a", gpu="a100", issued=COMPUTES)[1]
    assert each["float32 arithmetic"].seconds == pytest.approx(2 * each["issue"].seconds, rel=1e-2)
    assert not each["issue"].is_bound and limits(sass="sm_80", gpu="a100", issued=COMPUTES)[1]["issue"].is_bound
    assert "tensor, mma.sync" not in each  # what Hopper's rates are of is not known of others
    assert each["special functions"].seconds == pytest.approx(8 * each["issue"].seconds)
    assert "integer arithmetic" not in limits(sass="sm_120", gpu="rtx_5090", issued=COMPUTES)[1]
    found, each = limits(replace(LAUNCH, special=5))
    assert "issue" not in each and not each["special functions"].is_bound
    assert "other instructions, float32 among them" in found.not_counted


def test_arithmetic_is_what_the_caller_says():
    found, each = limits(flops={"bfloat16": gpu_models.find("h200").flops["bfloat16"], "float32": 1.0})
    assert found.bound is each["arithmetic, bfloat16"] and found.bound.seconds == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "h2000"}, "gpu is 'h2000'; known are a100, h100, h200, "),
        ({"gpu": "mine.toml"}, "gpu is 'mine.toml', which is not a file"),
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
    found = Report(None, [BANKS], launches=[LAUNCH]).limits("NVIDIA H200")
    text = str(found)
    assert "\n* DRAM                      1.000 ms  4.8 GB read, 52.43 MB written, 0 bytes past the L2\n" in text
    assert "\n~ L1 and shared memory" in text and "\nNot counted: the start of a launch, latency, " in text
    assert max(map(len, text.splitlines())) <= 88  # of a lesson's column
    some = str(Report(None, launches=[replace(LAUNCH, traced_blocks=4)]).limits("h100"))
    assert "k<<<132, 256>>>, 4 of 132 blocks\n~ DRAM" in some


def test_the_figure_has_a_bar_for_each_resource_and_a_tick_where_it_was_measured():
    found = Report(None, [BANKS], launches=[LAUNCH]).limits("h200")
    (axes,) = found.plot(measured=1.26e-3).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["DRAM", "L2", "L1 and shared memory"]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([1000, 473.4, 0.1224], rel=1e-3)
    assert axes.lines[0].get_xdata()[0] == pytest.approx(1260)
    assert "measured 1.26 ms, 1.26 times the bound" in repr(found.plot(measured=1.26e-3))
    assert not found.plot().axes[0].lines
    for report, measured, message in (
        (found, 0.0, "measured is 0.0; it must be greater than 0"),
        (Report(None).limits("h200"), None, "no traced kernel was launched"),
    ):
        with pytest.raises(ValueError, match=message):
            report.plot(measured)


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
            gpu_models.find(str(tmp_path / "mine.toml"))


def sectors(metrics, case, a, c, **options):
    (launch,) = xray(metrics.run, a, c, case, **options).launches
    return launch.sectors_read, launch.sectors_written, launch.sectors_readable


def test_a_sector_is_read_once_and_not_if_the_launch_has_written_it(metrics):
    """Of 32 floats in a, 4 sectors; c is written first. An atomic update reads what it then writes."""
    assert sectors(metrics, 10, torch.ones(32), torch.zeros(32)) == (4, 4, 8)
    assert sectors(metrics, 0, torch.zeros(1), torch.zeros(32, dtype=torch.int32)) == (1 + 4, 1 + 4, 1 + 4)
    assert sectors(metrics, 4, torch.zeros(1), torch.zeros(32 * 40), max_blocks=10) == (0, 10 * 4, 0)


@pytest.mark.parametrize(
    ("size", "stride", "lanes", "passes"),
    [
        (4, 1, 32, 1),
        (4, 2, 32, 2),
        (4, 32, 32, 32),
        (4, 33, 32, 1),
        (4, 32, 3, 3),
        (2, 64, 32, 32),
        (2, 1, 32, 1),
        (16, 8, 32, 1),
    ],
)
def test_lanes_that_want_one_bank_of_the_l1_cache_take_turns(metrics, size, stride, lanes, passes):
    memory = torch.zeros(64 * 33 * 16, dtype=torch.uint8)
    report = xray(metrics.global_memory, memory, memory.clone(), size, stride, 0, lanes)
    assert [(line.kind, line.passes) for line in report.lines] == [("load", passes), ("store", passes)]
    assert {line.cycles for line in report.lines} == {max(passes, size * lanes / 128)}


def test_atomics_and_tiles_take_no_turns_at_the_l1():
    assert replace(LOADS, passes=32_000).cycles == 32_000
    assert replace(LOADS, passes=32_000, kind="atomic").cycles == 4000
    assert replace(LOADS, passes=32_000, kind="tile load").cycles == 0


def counted(metrics, case, a, c, **options):
    (launch,) = xray(metrics.run, a, c, case, **options).launches
    return launch


def test_products_are_counted_by_block_and_by_type(metrics):
    """Three blocks of 1, 2 and 3 products of 16 x 16 x 16."""
    tiles = torch.zeros(256, dtype=torch.half), torch.zeros(3, 256)
    assert counted(metrics, 11, *tiles).products == (Products("float16", 6 * 4096, 4096),)
    assert counted(metrics, 0, torch.zeros(1), torch.zeros(32, dtype=torch.int32)).products == ()


def test_intrinsics_are_counted_and_other_functions_are_not(metrics):
    assert counted(metrics, 12, torch.ones(64), torch.zeros(64)).special == 2 * 64
    assert counted(metrics, 10, torch.ones(32), torch.zeros(32)).special == 0


@pytest.mark.skipif(is_clang(), reason="clang++ reports the loop of an atomicMax as it does an atomicCAS")
def test_updates_of_a_word_are_counted_by_warp_and_other_atomics_are_not(metrics):
    """2 blocks of 3 warps update the first word of c three times, and no other more than once."""
    launch = counted(metrics, 14, torch.zeros(1), torch.zeros(32, dtype=torch.int32))
    assert launch.most_updates == 2 * 3 * 3
    assert counted(metrics, 4, torch.zeros(1), torch.zeros(64)).most_updates == 0


@pytest.mark.parametrize(("case", "even", "read"), [(15, True, 4 * 4), (16, False, (1 + 2 + 3 + 4) * 4)])
def test_blocks_that_make_the_same_requests_are_even(metrics, case, even, read):
    launch = counted(metrics, case, torch.zeros(4 * 4 * 32), torch.zeros(4 * 32))
    assert (launch.even, launch.sectors_read, launch.least_read) == (even, read, 4)
    one = counted(metrics, case, torch.zeros(4 * 4 * 32), torch.zeros(4 * 32), max_blocks=1)
    assert (one.even, one.least_read) == (False, one.sectors_read)  # there is none to compare it with


def test_blocks_that_are_not_sampled_do_not_run(metrics):
    c = torch.zeros(32 * 40)
    report = xray(metrics.run, torch.zeros(1), c, 4, blocks=4)
    assert [i for i in range(40) if c[32 * i + 31] != 0] == [0, 15, 24, 39]
    assert report.result is None and not report.complete and report.launches[0].traced_blocks == 4
    assert xray(metrics.run, torch.zeros(1), c, 4, blocks=40).complete and c.ne(0).sum() == 32 * 40 - 1
    with pytest.raises(ValueError, match="blocks is 0; it must be 1 or more"):
        xray(metrics.run, torch.zeros(1), c, 4, blocks=0)


def test_a_function_that_asks_is_told_the_sms_of_the_gpu(metrics):
    c = torch.zeros(32 * 132)
    launch = counted(metrics, 13, torch.zeros(1), c, gpu="h200", blocks=2)
    assert (launch.blocks, launch.sms_told) == (132, 132)
    launch = counted(metrics, 13, torch.zeros(1), c, blocks=2)
    assert launch.blocks == launch.sms_told
    assert counted(metrics, 4, torch.zeros(1), c, gpu="h200", blocks=2).sms_told == 0
    with pytest.raises(ValueError, match="gpu is 'h2000'; known are"):
        xray(metrics.run, torch.zeros(1), c, 13, gpu="h2000")
