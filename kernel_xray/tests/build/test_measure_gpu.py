"""The command that measures a GPU, as far as it goes without one: its micro-kernels in the simulator, and its file."""

import datetime
import re

import pytest

from kernel_xray.build import measure_gpu
from kernel_xray.build.programs import program
from kernel_xray.report import gpu_models

DAY = datetime.date(2026, 11, 26)
OUTPUT = """name NVIDIA H200
capability 9.0
driver 13000
runtime 13000
sms 132
clock_hz 1.98e+09
l2_bytes 6.29146e+07
dram_bytes_per_second 4.4e+12
l2_bytes_per_second 7.5e+12
flops.float32 6.6e+13
flops.float64 3.3e+13
latency.l1 1.6e-08
latency.l2 1.2e-07
latency.dram 2.8e-07
launch_seconds 1.1e-06
blocks_per_second 2e+09
"""


def model(output, tmp_path):
    found = measure_gpu.read(output)
    path = tmp_path / "mine.toml"
    path.write_text(measure_gpu.as_toml(found["name"], found["capability"], measure_gpu.model_of(found, DAY)))
    return gpu_models.find(str(path)), gpu_models.figures(path)


def test_a_known_gpu_keeps_the_data_sheets_arithmetic(tmp_path):
    gpu, figures = model(OUTPUT, tmp_path)
    sheet = gpu_models.find("h200")
    assert gpu.flops == pytest.approx(sheet.flops) and figures["flops.int8"][1].startswith("SMs x 8,192")
    assert (gpu.sms, gpu.dram_bytes_per_second, gpu.l2_bytes_per_second) == (132, 4.4e12, 7.5e12)
    assert gpu.latency == {"l1": 1.6e-8, "l2": 1.2e-7, "dram": 2.8e-7}
    assert (gpu.launch_seconds, gpu.blocks_per_second) == (1.1e-6, 2e9)
    on = "on an NVIDIA H200, driver 13000, CUDA 13000, 2026-11-26"
    assert figures["launch_seconds"][1] == f"measured by kernel-xray measure-gpu {on}"
    assert figures["l2_bytes"] == (62914600, f"told by the driver {on}")


def test_another_gpu_has_what_was_measured_and_no_tensor_cores(tmp_path):
    gpu, figures = model(OUTPUT.replace("H200", "Nonesuch"), tmp_path)
    assert gpu.flops == {"float32": 6.6e13, "float64": 3.3e13}
    assert all("measured" in source or "told by the driver" in source for _, source in figures.values())


@pytest.mark.parametrize("wrong", ["latency.l1 0", "latency.l1 -nan", "latency.l3 1"])
def test_a_figure_that_means_nothing_is_an_error(wrong):
    with pytest.raises(ValueError, match=r"gave latency\.l1 as .*; it must be greater than 0"):
        measure_gpu.read(OUTPUT.replace("latency.l1 1.6e-08", wrong))


def test_without_a_gpu_nothing_is_measured(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure_gpu.toolchain, "of_programs", lambda: "simulator")
    assert measure_gpu.main([]) == 2 and "run it where nvcc and a GPU are" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_writes_what_gpu_takes(capsys, monkeypatch, tmp_path):
    done = type("Done", (), {"status": 0, "stdout": OUTPUT, "stderr": ""})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure_gpu.toolchain, "of_programs", lambda: "gpu")
    monkeypatch.setattr(measure_gpu, "program", lambda *_, **__: done)
    assert measure_gpu.main([]) == 0
    assert gpu_models.find("nvidia_h200.toml").launch_seconds == 1.1e-6
    assert ["flops.float32", "6.6e+13", "6.69e+13"] in [line.split() for line in capsys.readouterr().out.splitlines()]
    done.status, done.stderr = 1, "no memory"
    assert measure_gpu.main([]) == 1 and "no memory" in capsys.readouterr().err


@pytest.mark.slow
def test_the_micro_kernels_give_each_figure():
    """In the simulator, whose clock stands still; that they touch only their memory is its finding."""
    done = program(measure_gpu._KERNELS, 65536)
    assert done.status == 0, done.stderr
    named = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert named.keys() == {line.split()[0] for line in OUTPUT.splitlines()}
    rates = [name for name in named if re.search("per_second|flops|launch", name)]
    assert len(rates) == 6 and all(float(named[name]) > 0 for name in rates)
