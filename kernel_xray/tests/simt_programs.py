"""What the tests of this folder share: the compilers for programs of their own, and the builds of their kernels."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import kernel_xray

CASES = Path(__file__).parent / "cases"
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
CROSS, EMULATOR = "aarch64-linux-gnu-g++", shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
HAS_AARCH64 = EMULATOR is not None and shutil.which(CROSS) is not None


def zeros(*shape, dtype=None):
    import torch  # not above: the process that distributes the tests need not wait for it

    return torch.zeros(shape, dtype=dtype or torch.int32, device=kernel_xray.device)


def line_marked(path, name):
    """The number of the one line of a source that ends with `// <- NAME`."""
    (number,) = [i for i, line in enumerate(path.read_text().splitlines(), 1) if line.endswith(f"// <- {name}")]
    return number


def operators(load, *arguments, **options):
    """A fixture of a module: what load(...) has built."""

    @pytest.fixture(scope="module")
    def built():
        return load(*arguments, **options)

    return built


def load_cases(source, name, flags=(), **options):
    """The operators of a `.cu` file of CASEs."""
    options |= {"extra_include_paths": [str(CASES)], "is_python_module": False}
    return kernel_xray.load(name, [str(source)], extra_cuda_cflags=list(flags), **options)


def run(case, tensors, numbers):
    """The tensors, on this machine's device for a call of the case, as they are after it."""
    moved = [tensor.to(kernel_xray.device) for tensor in tensors]
    case(moved, list(numbers))
    return [tensor.cpu() for tensor in moved]


# Each includes other files of CASES: the simulator compiles these in half the time that they take one by one.
TOGETHER = ("features", "halves", "ptx", "asynchronous")


def load_case(name, flags=(), **options):
    """The operators of cases/NAME.cu; in the simulator, of all files that are compiled with it."""
    wholes = TOGETHER if kernel_xray.target == "simulator" else ()
    whole = next((whole for whole in wholes if f'"{name}.cu"' in (CASES / f"{whole}.cu").read_text()), name)
    return load_cases(CASES / f"{whole}.cu", f"simt_case_{whole}", flags, **options)


@contextmanager
def side_by_side(build, names):
    """A function from a name to the result of build(name). All are built; a failure fails its own tests."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        futures = {name: pool.submit(build, name) for name in names}
        yield lambda name: futures[name].result()


def assert_matches(pattern, text):
    assert re.search(pattern, text), f"{pattern!r} is not in:\n{text}"
