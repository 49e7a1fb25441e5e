"""The context switch, compiled alone: this machine's own, ucontext, and AArch64 under an emulator."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from simt_programs import COMPILERS, CROSS, EMULATOR, HAS_AARCH64

from kernel_xray.machine.paths import RUNTIME

pytestmark = pytest.mark.slow  # the switch compiled alone; every kernel switches fibres

PROGRAM = Path(__file__).parent / "fibres.cpp"
BOTH = pytest.mark.parametrize("flags", [(), ("-DSIMT_UCONTEXT",)], ids=["native", "ucontext"])


def run(compiler: str, folder: Path, *flags: str, emulator: Sequence[str] = ()) -> subprocess.CompletedProcess:
    program = folder / "fibres"
    sources = [str(PROGRAM), str(RUNTIME / "threads" / "fibre.cpp")]
    command = [compiler, "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}", *flags, *sources]
    subprocess.run([*command, "-o", str(program)], check=True)
    return subprocess.run([*emulator, program], capture_output=True, text=True, check=False, timeout=60)


@BOTH
def test_switch(compiler, flags, tmp_path):
    done = run(compiler, tmp_path, *flags)
    assert done.stdout.splitlines()[-1:] == ["all right"], done.stdout + done.stderr


@pytest.mark.skipif(not HAS_AARCH64, reason="no AArch64 compiler and emulator are installed")
@BOTH
def test_switch_on_aarch64(flags, tmp_path):
    done = run(CROSS, tmp_path, "-static", *flags, emulator=[EMULATOR])
    assert done.stdout.splitlines()[-1:] == ["all right"], done.stdout + done.stderr


@pytest.mark.parametrize("broken", ["registers", "order", "parking"])
def test_the_program_notices_a_broken_switch(broken, tmp_path):
    done = run(COMPILERS[0], tmp_path, f"-DBREAK_{broken.upper()}")
    assert done.returncode != 0
    assert "all right" not in done.stdout
