"""What the tests of all rooms share. Processes that they start find the package of this checkout."""

import functools
import gc
import os
from pathlib import Path

import pytest
from simt_programs import COMPILERS, load_case

import kernel_xray
from kernel_xray.machine import cache
from kernel_xray.runtime import libsimt

TESTS = Path(__file__).parent
FOUND = [str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, FOUND))
CUDA_FLAGS = ["--extended-lambda", "--expt-relaxed-constexpr"]
# PyTorch switches the operators and conversions of the 16-bit types off for nvcc; these are the usual way back.
HALVES = [f"-U__CUDA_NO_{part}__" for part in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS")]
HALVES += ["-U__CUDA_NO_BFLOAT16_CONVERSIONS__"]


@pytest.fixture(scope="session", autouse=True)
def basetemp(tmp_path_factory):
    """Made here: of the threads that build side by side, those that are the first to ask would each make it."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """The test builds in a folder of its own and shares only the runtime and the precompiled headers."""
    if kernel_xray.target == "simulator":
        libsimt.runtime_library()  # else each of these tests would build it for itself
    shared, own = cache.root(), tmp_path / "cache"
    monkeypatch.setattr(cache, "root", lambda: own)
    own.mkdir()
    for folder in (*shared.glob("simt-*"), *shared.glob("headers-*")):
        (own / folder.name).symlink_to(folder)


@pytest.fixture(scope="module")
def few_objects():
    """An X-ray that meets an unknown address looks through all objects: here, only through those made from now on."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(params=COMPILERS)
def compiler(request):
    return request.param


@pytest.fixture(scope="module")
def built():
    """A function from the name of a file of cases/ to its operators, built when a test first asks for them."""

    @functools.cache
    def build(name):
        flags = CUDA_FLAGS + (HALVES if name in ("atomics", "maths", "warp") else [])
        return load_case(name, flags)

    return build
