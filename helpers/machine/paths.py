"""Paths of the course's parts. Every path to a file of this repository starts from one of these."""

from pathlib import Path

HELPERS = Path(__file__).resolve().parent.parent
ROOT = HELPERS.parent
KERNELS = ROOT / "kernels"
KERNEL_INCLUDE = KERNELS / "include"  # on the include path of every build
NOTEBOOKS = ROOT / "notebooks"
RESULTS = ROOT / "results"
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
BUILD = ROOT / "build"  # written by `make`, removed by `make clean`
SIMULATOR = HELPERS / "simt"
SIMULATOR_INCLUDE = SIMULATOR / "include"  # headers that replace CUDA's
SIMULATOR_RUNTIME = SIMULATOR / "runtime"
