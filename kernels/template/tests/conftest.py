"""Builds the package in place before its tests, so that they test the current sources."""

import os
import subprocess
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).resolve().parent.parent


def pytest_configure():
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    # A machine may have nvcc but no GPU.
    environment = os.environ | ({} if torch.cuda.is_available() else {"KERNEL_LADDER_TARGET": "simulator"})
    built = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True)
    if built.returncode:
        raise SystemExit(f"the build failed:\n{built.stdout[-3000:]}{built.stderr[-3000:]}")
    sys.path.insert(0, str(FOLDER))
