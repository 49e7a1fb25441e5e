"""Several devices: the current one, what belongs to a device, peers, copies, variables, and threads that use two."""

import pytest
from simt_programs import CASES

import kernel_xray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(kernel_xray.target != "simulator", reason="KERNEL_XRAY_DEVICES is the simulator's"),
]
SOURCE = CASES / "devices.cu"
TWO = {"KERNEL_XRAY_DEVICES": "2"}


def run(*arguments, env=TWO, **options):
    return kernel_xray.program(SOURCE, *arguments, env=env, **options)


@pytest.mark.parametrize("what", ["properties", "peers", "owners", "streams", "variables", "threads", "copies"])
@pytest.mark.parametrize("traced", [False, True])
def test_two_devices(what, traced):
    result = run(what, traced=traced, max_blocks=1, seed=1)
    assert (result.status, result.stdout) == (0, f"{what}\n"), result.stdout + result.stderr
    assert result.fault is None


@pytest.mark.parametrize("traced", [False, True])
def test_memory_of_another_device_needs_peer_access(traced):
    result = run("foreign", traced=traced, seed=1)
    assert (result.status, result.stdout) == (0, "foreign\n"), result.stdout + result.stderr
    assert result.fault.kind == "illegal-access"
    assert "of 4096 bytes on device 1, which device 0 may not access: call cudaDeviceEnablePeerAccess(1, 0)" in str(
        result.fault
    )


def test_with_one_device_a_program_sees_none_of_this():
    result = run("properties", env={})
    assert result.status == 1
    assert "got 1, expected 2" in result.stdout


@pytest.mark.parametrize("value", ["0", "9", "two", "-1", "1.5"])
def test_a_bad_number_is_refused(value):
    result = run(env={"KERNEL_XRAY_DEVICES": value})
    assert result.status == 1
    assert result.stderr == (
        f"KERNEL_XRAY_DEVICES is '{value}'; it is the number of devices that the simulator has: 1 to 8\n"
    )
