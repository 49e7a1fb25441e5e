"""helpers/pages/front/hosted.py: what a hosted machine lacks, and what its lessons run on."""

import os
import re
from importlib.metadata import PackageNotFoundError, version

import pytest
import torch
from packaging.requirements import Requirement

from helpers.pages.front import hosted
from helpers.upkeep.doctor.probes import Finding

PYTORCH = Finding("PyTorch", "ok", "2.11.0+cu128 (CUDA 12.8)")
GPU = Finding("GPU", "ok", "Tesla T4, compute capability 7.5")
MISMATCH = Finding("nvcc", "problem", "CUDA 13.0; PyTorch is built for CUDA 12.8", "it does not build", "install 12.8")
OLD = Finding("PyTorch", "problem", "2.10.0", "kernels use the interface of 2.11", "make setup")


def machine(gpu, simulator=(PYTORCH,)):
    """A doctor that finds `gpu` there, and `simulator` where the simulator is asked for."""
    return lambda variables: list(simulator if variables else gpu)


def test_a_machine_that_fits_is_left_as_it_is():
    variables, said = hosted.choose(machine([PYTORCH, GPU]))
    assert variables == {}
    assert said.splitlines() == ["PyTorch: 2.11.0+cu128 (CUDA 12.8)", "GPU: Tesla T4, compute capability 7.5"]


def test_the_simulator_is_taken_where_the_gpu_does_not_fit():
    variables, said = hosted.choose(machine([PYTORCH, GPU, MISMATCH]))
    assert variables == hosted.SIMULATOR
    assert "PyTorch is built for CUDA 12.8" in said
    assert "it does not build" in said
    assert "Tesla T4" not in said


def test_an_old_pytorch_is_refused_with_what_to_do():
    with pytest.raises(RuntimeError, match=r"%pip install torch==\d.*restart the session") as refused:
        hosted.choose(machine([OLD], [OLD]))
    assert "make setup" not in str(refused.value)


def test_what_is_missing_or_too_old_is_installed(monkeypatch):
    assert list(hosted.missing()) == []
    # Colab in August 2026: https://github.com/googlecolab/backend-info, commit a724079, pip-freeze.gpu.txt
    there = {"setuptools": "75.2.0", "torch": "2.11.0", "numpy": "2.1.3", "matplotlib": "3.10.0", "tqdm": "4.67.3"}

    def on_colab(name):
        if name == "ninja":
            raise PackageNotFoundError(name)
        return there.get(name) or version(name)

    monkeypatch.setattr(hosted, "version", on_colab)
    assert [Requirement(wanted).name for wanted in hosted.missing()] == ["setuptools", "ninja"]
    assert hosted.met(Requirement("no-such-package; python_version < '3'"))
    assert not hosted.met(Requirement("no-such-package; python_version > '3'"))


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a GPU where there is none")
def test_the_doctor_is_asked_in_a_process_of_its_own():
    def without_a_gpu(variables):
        return hosted.diagnose({"KERNEL_LADDER_TARGET": "gpu", **variables})

    variables, said = hosted.choose(without_a_gpu)
    assert variables == hosted.SIMULATOR
    assert re.search(r"PyTorch sees no NVIDIA GPU|no NVIDIA GPU .*is_available\(\) is False", said)
    assert os.environ.get("KERNEL_LADDER_TARGET") != "gpu"
