"""Environments with packages that the course's own does not have, made once for each version of Python."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_xray.machine import cache


def environment_with(*packages: str) -> Path:
    """The bin/ of a virtual environment that has these packages; skips the test if they cannot be installed."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = cache.root() / "tests" / f"{cache.digest(version, *packages)}-{packages[0].split('=')[0]}"
    if not (folder / "ready").is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        if done.returncode:
            pytest.skip(f"{', '.join(packages)} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        (folder / "ready").touch()
    return folder / "bin"
