"""No kernel of the course reads a local that has no value yet: g++ says nothing of the kind about any of them."""

import pytest

import helpers
from helpers.paths import KERNELS
from helpers.upkeep.mutants.judges import unset_locals_are_errors
from kernel_xray.machine import toolchain
from kernel_xray.runtime.libsimt import is_clang
from kernel_xray.translate.errors import BuildError

FILES = [path for folder in ("", "matmul", "solutions") for path in sorted((KERNELS / folder).glob("*.cu"))]
APART = {"elementwise_mult_stable.cu"}  # the half of an extension: the launcher is in another file

needs_its_compiler = pytest.mark.skipif(toolchain.target == "gpu", reason="it asks the simulator's compiler")
needs_the_warning = pytest.mark.skipif(is_clang(), reason="g++ alone has -Wmaybe-uninitialized")
pytestmark = [pytest.mark.slow, needs_its_compiler, needs_the_warning]


def build(path):
    with unset_locals_are_errors():
        helpers.load(f"unset_{path.stem}", [path], extra_include_paths=[KERNELS], is_python_module=False)


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in APART], ids=lambda path: path.name)
def test_a_kernel_reads_no_local_without_a_value(path):
    build(path)


def test_a_local_without_a_value_is_found(tmp_path):
    path = tmp_path / "softmax_unset.cu"
    text = (KERNELS / "softmax.cu").read_text()
    path.write_text(text.replace("W largest = -INFINITY, sum = 0;", "W largest, sum = 0;"))
    with pytest.raises(BuildError, match=r"largest.*uninitialized"):
        build(path)
