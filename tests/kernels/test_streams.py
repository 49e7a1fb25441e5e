"""Each launch of the course's kernels is seen if it leaves PyTorch's current stream, and no other is."""

import re

import pytest
import torch
from contract import stray_launches
from contracted import counted_inputs

import helpers
from helpers.ladder import catalogue
from helpers.ladder.pytorch.operators import library
from helpers.paths import KERNELS
from kernel_xray.runtime.streams import side_stream

pytestmark = pytest.mark.skipif(helpers.target == "gpu", reason="on a GPU the contract runs on a busy stream")

STREAM = re.compile(r",\s+(?:ladder::)?(?:stream|current_stream\(\w+\)|(?:c10|at)::cuda::getCurrentCUDAStream\(\))>>>")
CONFIGURED = re.compile(r"(?<=\.stream = )stream\b|(?<=size_t\(shared_bytes\), )stream\b")  # for cudaLaunchKernelEx
KERNEL = re.compile(r"\w+(?:<[\w:,. ]+>)?\s*<<<")
LIBRARIES: dict[tuple[str, ...], list] = {}  # files -> the kernels that they are for
for entry in catalogue.ALL:
    for kernel in entry.kernels:
        is_exercise = kernel.files[0].startswith("solutions/")  # tests/practice
        own_inputs = is_exercise or entry.result_dtype  # fp8, whose b has a layout of its own
        if entry.reference and not (own_inputs or kernel.flags or callable(kernel.function)):
            LIBRARIES.setdefault(kernel.files, []).append((entry, kernel))


def in_the_default_stream(source, folder):
    """Copies a source to `folder`, with all launches in the default stream; returns the copy and their lines."""
    text = source.read_text()
    names = [list(KERNEL.finditer(text, 0, launch.start()))[-1] for launch in STREAM.finditer(text)]
    lines = {f"{source.name}:{text.count(chr(10), 0, name.start()) + 1}" for name in names}
    copy = folder / source.name
    changed = STREAM.sub(lambda launch: "\n" * launch[0].count("\n") + ", nullptr>>>", text)
    copy.write_text(CONFIGURED.sub("nullptr", changed))
    return copy, lines


def parameter(files):
    slow = files[0] != "vector_add.cu"
    return pytest.param(files, id=files[0], marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize("files", [parameter(files) for files in LIBRARIES])
def test_a_launch_in_the_default_stream_is_seen(files, tmp_path):
    for header in [*KERNELS.glob("*.h"), *(KERNELS / "include").glob("*.h")]:
        in_the_default_stream(header, tmp_path)
    copies = [in_the_default_stream(KERNELS / file, tmp_path) for file in files]
    first = LIBRARIES[files][0][1]
    sources, folders = [copy for copy, _ in copies], [tmp_path, KERNELS / "include", KERNELS]
    options = {"is_python_module": first.python_module}
    built = helpers.load("default_stream", sources, extra_include_paths=folders, **options)
    seen: set[str] = set()
    for entry, kernel in LIBRARIES[files]:
        sizes = (136,) if "matmul" in files[0] else (257,)  # rows that every rung takes
        if "norm" in files[0]:
            sizes += (2000,)  # more than a warp to a row
        dtype = getattr(torch, kernel.dtypes[0])
        calls = [entry.inputs(entry.at_size(size), dtype, helpers.device) for size in sizes]
        calls += counted_inputs(entry, kernel)
        stray = stray_launches(getattr(built, kernel.function or kernel.name), calls).stray
        assert stray, kernel.name
        seen |= {place.rsplit("/", 1)[-1] for place in stray}
    lines = set().union(*(lines for _, lines in copies))
    assert lines <= seen
    # A kernel that starts early has no <<<>>>
    assert bool(lines) == any("<<<" in (KERNELS / file).read_text() for file in files)


def test_a_launch_after_a_wait_is_not_accused():
    ones = torch.ones(1000)
    default_stream = library("vector_add_wrong", "wrong/vector_add.cu").add_default_stream
    with side_stream() as watched:
        default_stream(ones, ones, torch.empty(1000))
    assert [place.split(",")[0] for place in watched.stray] == ["add_kernel"]
    default_stream(ones, ones, torch.empty(1000))  # there is no side stream any more
    with side_stream() as watched:
        pass
    assert not watched.stray
    assert not watched.problem
