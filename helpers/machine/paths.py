"""Where the parts of the course lie. Every path to a file of this repository starts here."""

from __future__ import annotations

from pathlib import Path

HELPERS = Path(__file__).resolve().parent.parent
ROOT = HELPERS.parent
KERNELS = ROOT / "kernels"
KERNEL_INCLUDE = KERNELS / "include"  # on the include path of every build
NOTEBOOKS = ROOT / "notebooks"
RESULTS = ROOT / "results"
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
BUILD = ROOT / "build"  # what `make` writes and `make clean` removes
SIMULATOR = HELPERS / "simt"
SIMULATOR_INCLUDE = SIMULATOR / "include"  # headers that stand in for CUDA's
SIMULATOR_RUNTIME = SIMULATOR / "runtime"
