"""One ncu profile of two kernels, read section by section. The sample is in the form of ncu 2025.3."""

from helpers.paths import KERNELS
from helpers.upkeep.validation import profiled

PROFILE = """==PROF== Connected to process 1
  void bias_gelu_simple_kernel<float>(const T1 *, T1 *, long) (262144, 1, 1)x(256, 1, 1), Context 1, Stream 7, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         3.19
    Duration                         us       213.34
    DRAM Throughput                   %        57.92
    ----------------------- ----------- ------------

    OPT   Duration is not a row here    12

    Section: Instruction Statistics
    Executed Instructions                           inst  134,217,728
  void bias_gelu_kernel<float, 16>(const T1 *, T1 *, long) (8192, 1, 1)x(256, 1, 1), Context 1, Stream 7, CC 9.0
    Section: GPU Speed Of Light Throughput
    DRAM Throughput                   %        91.92
    Duration                         us       126.34
    Section: Instruction Statistics
    Executed Instructions                           inst   50,331,648
"""


def test_a_section_shows_both_kernels_side_by_side():
    assert profiled.section_of(PROFILE, "GPU Speed Of Light Throughput").splitlines() == [
        "GPU Speed Of Light Throughput  bias_gelu_simple         bias_gelu",
        "Duration, us                             213.34            126.34",
        "DRAM Throughput, %                        57.92             91.92",
    ]
    row = profiled.section_of(PROFILE, "Instruction Statistics").splitlines()[1]
    assert row.split() == ["Executed", "Instructions,", "inst", "134,217,728", "50,331,648"]


def test_a_profile_without_the_section_shows_its_end():
    assert profiled.section_of("==ERROR== ERR_NVGPUCTRPERM", "Occupancy") == "==ERROR== ERR_NVGPUCTRPERM"


def test_a_counter_that_ncu_does_not_know_is_left_out(monkeypatch):
    known, unknown = profiled.READ[profiled.ASKED][:2]
    calls = []

    def finish(command, settings, seconds):
        calls.append(command[command.index("--metrics") + 1].split(","))
        return f"==ERROR== Failed to find metric {unknown}" if unknown in calls[-1] else PROFILE

    monkeypatch.setattr(profiled.sanitizer, "finish", finish)
    assert profiled._output.__wrapped__() == PROFILE
    assert unknown in calls[0] and unknown not in calls[1] and known in calls[1]


def test_the_profiled_script_launches_what_is_read():
    text = profiled.SCRIPT.read_text()
    assert all(name.removesuffix("_kernel") in text for name in profiled.KERNELS)
    sources = (KERNELS / "bias_gelu.cu").read_text() + (KERNELS / "bias_gelu_float4.cu").read_text()
    assert all(f"{name}(" in sources for name in profiled.KERNELS)
