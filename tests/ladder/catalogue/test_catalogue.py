"""The catalogue is the only list of operators: a new rung touches two files, and no other file repeats a name."""

import json
import os
import re
import shutil

import pytest
from running import python, tracked_files

from helpers.ladder import catalogue
from helpers.ladder.catalogue.fp8 import MATMUL_FP8
from helpers.ladder.catalogue.matmul import MATMUL, RUNGS
from helpers.paths import HELPERS, INSTRUMENT, KERNELS, RESULTS, TESTS

# -- A new rung --------------------------------------------------------------------------------------------------------

ENTRY = """\
    first(name="matmul_dummy", files=("matmul/13_dummy.cu",), launches=EDGES),
"""
LOOK = """
import json
import contracted
from helpers import __main__ as command_line
from helpers.upkeep.benchmarks.campaign import Campaign
from helpers.ladder.catalogue import OPERATORS
from helpers.ladder.pytorch import operators
from helpers.ladder.results.scoreboard import scoreboard
from helpers.upkeep.validation import counted

command_line.main(["bench", "--list", "matmul"])
(case,) = [case for case in counted.COURSE if "dummy" in case.name]
print(json.dumps({
    "contract": [operator.name for operator in contracted.OPERATORS],
    "registered": [*operators.MATMUL, *operators.MATMUL_WITH_GRADIENTS],
    "measured": OPERATORS["matmul"].variants,
    "validation": [case.name, case.kernel, case.source],
    "scoreboard": [row[0] for row in scoreboard(found=[]).rows],
}))
"""


@pytest.fixture(scope="module")
def with_a_new_rung(tmp_path_factory):
    """The output of LOOK in a copy of the repository with one more rung: its file and its entry."""
    copy = tmp_path_factory.mktemp("copy")
    for folder in (HELPERS, KERNELS, RESULTS):
        shutil.copytree(folder, copy / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    source = (KERNELS / RUNGS["matmul_coalesced"]).read_text()
    (copy / "kernels/matmul/13_dummy.cu").write_text(source.replace("matmul_coalesced", "matmul_dummy"))
    entries = copy / "helpers/ladder/catalogue/matmul.py"
    before, ladder, after = entries.read_text().partition("LADDER = (\n")
    entries.write_text(before + ladder + ENTRY + after)
    path = os.pathsep.join(map(str, [copy, INSTRUMENT, TESTS / "kernels"]))
    *listed, found = python("-c", LOOK, cwd=copy, PYTHONPATH=path).stdout.splitlines()
    return listed, json.loads(found)


@pytest.mark.slow  # copies the tree; that a rung is one entry is tested on the real ones
def test_a_new_rung_is_seen_everywhere(with_a_new_rung):
    listed, found = with_a_new_rung
    for place in ("contract", "registered", "measured", "scoreboard"):
        assert "matmul_dummy" in found[place], place
    assert found["validation"] == ["matmul_dummy, float32, 65 x 70 x 33", "matmul_dummy_kernel", "matmul/13_dummy.cu"]
    assert any(line.split() == ["matmul_dummy", "float32,", "bfloat16"] for line in listed)


# -- No name is repeated -----------------------------------------------------------------------------------------------

NAMES = {operator.name for operator in catalogue.OPERATORS.values()}
NAMES |= {kernel.name for _, kernel in catalogue.CONTRACTED} | set(RUNGS)
NAMES -= {"matmul", "attention"}  # the words for what they compute
NAMES = {name for name in NAMES if "." not in name}  # file names

# Places for every name: the sources, whose comments compare kernels; the catalogue; lessons; records.
EVERYWHERE = ("kernels/", "helpers/ladder/catalogue/", "notebooks/", "results/", "docs/", "kernel_xray/", "README.md")
EVERYWHERE += ("CONTRIBUTING.md",)
# Registration with PyTorch differs between operators, but not between rungs: no rung is named there.
REGISTERED = ("helpers/ladder/pytorch/operators.py",)
PROFILED = {"bias_gelu", "bias_gelu_simple"}  # with ncu
IN_PICTURES = {"matmul_coalesced", "matmul_naive", "matmul_tiled_padded", "matmul_vectorised", "vector_add"}
# Files whose subject or example is one operator.
SUBJECTS = {
    ("helpers/upkeep/doctor/first_kernel.py",): {"vector_add"},
    ("helpers/pages/figures/loads.py",): IN_PICTURES,  # whose accesses are examples
    ("helpers/practice/",): {"matmul_bias_gelu"},  # an exercise
    ("helpers/practice/checks/lesson_15.py",): {"softmax"},  # an exercise registers it anew
    ("helpers/practice/checks/lesson_16.py",): {"fused_muladd"},  # likewise
    ("helpers/upkeep/benchmarks/first_result.py",): {"softmax"},  # written with three tools
    ("helpers/upkeep/mutants/",): NAMES,  # which kernels judge a mutant of a header; equivalent mutants
    ("helpers/pages/museum/published.py",): {"attention_backward", "softmax"},  # of other people's code
    ("helpers/ladder/pytorch/fused_linear.py",): {"bias_gelu_backward"},  # a part of its backward
    tuple(f"helpers/ladder/pytorch/{name}.py" for name in ("many_gpus", "sharding")): {"elementwise_mult"},
    ("helpers/upkeep/benchmarks/overhead.py",): {"elementwise_mult"},
    tuple(f"helpers/upkeep/validation/{name}.py" for name in ("sessions", "two_versions")): PROFILED,
}
# Tests of several operators, and tests with some as examples.
IN_TESTS = {
    ("kernels/test_schedules.py", "kernels/far_cases.py", "kernels/test_far_operators.py"): NAMES,
    ("kernels/test_nvcc.py", "ladder/catalogue/test_catalogue.py"): NAMES,
    ("kernels/test_hopper.py", "kernels/test_matmul.py"): set(RUNGS),
    ("kernels/test_bias_gelu.py",): {name for name in NAMES if name.startswith("bias_gelu")},
    ("kernels/test_unset.py", "kernels/test_reductions.py", "practice/wrong_answers/lesson_15.toml"): {"softmax"},
    ("kernels/test_triton.py",): {"bias_gelu", "bias_gelu_backward", "softmax"},
    ("kernels/contract_wrong.py",): {"elementwise_mult", "fused_muladd", "vector_add"},
    ("browser/", "pages/book/", "practice/test_far_case.py", "pages/notebooks/test_quoted_numbers.py"): {"vector_add"},
    ("pages/pictures/test_show_plot.py", "ladder/pytorch/test_pickling.py", "test_repository.py"): {"vector_add"},
    ("ladder/checking/test_far.py", "kernels/test_streams.py"): {"vector_add"},
    ("practice/",): {"matmul_bias_gelu"},
    ("teaching/classroom/test_command.py",): {"attention_backward", "fused_muladd", "matmul_bias_gelu", "softmax"},
    ("upkeep/benchmarks/test_bench.py",): {"attention_backward", "bias_gelu_training", "matmul_bias_gelu", "softmax"},
    ("upkeep/benchmarks/test_bench.py", "upkeep/mutants/"): {"vector_add"},
    ("upkeep/benchmarks/test_bias_gelu_bench.py",): {"bias_gelu_training"},
    ("upkeep/mutants/",): {"softmax"},
    ("upkeep/validation/test_profiled.py", "upkeep/validation/test_sessions.py"): PROFILED,
    ("upkeep/validation/test_validation.py",): {"fused_muladd", "softmax", "vector_add", "matmul_wmma", "matmul_mma"},
    ("upkeep/validation/",): {"bias_gelu", "fused_muladd_backward"},
    ("pages/figures/test_loads.py",): IN_PICTURES,
    ("pages/notebooks/test_older_gpus.py",): {"matmul_cluster", "matmul_mma", "matmul_wgmma", "matmul_wmma"},
    ("pages/museum/test_museum.py",): {"fused_muladd", "softmax", "vector_add"},
    ("pages/pictures/test_at_work.py",): {
        "attention_backward",
        "matmul_async",
        "matmul_vectorised",
        "matmul_warp_tile",
    },
    ("ladder/pytorch/test_derivatives.py", "ladder/pytorch/test_torch_library.py"): {"fused_muladd", "vector_add"},
    ("ladder/pytorch/test_torch_library.py",): {"elementwise_mult", "rms_norm", "rms_norm_backward", "softmax"},
    ("ladder/pytorch/test_derivatives.py",): {"elementwise_mult", "fused_muladd_backward"},
    ("ladder/results/",): {"fused_muladd", "vector_add", *RUNGS},
    ("instrument/test_film.py",): {"fused_muladd", "softmax", *PROFILED, *IN_PICTURES},
    ("instrument/test_sass_xray.py",): {"bias_gelu_backward_simple", "softmax"},  # counted by ncu
    ("instrument/",): {"vector_add", "matmul_wgmma", "matmul_cluster", "matmul_split"},
}


def allowed(path: str, name: str) -> bool:
    """Whether a file of the repository may have the name of an operator or a rung."""
    if path.startswith(EVERYWHERE) or (path.startswith(REGISTERED) and name not in RUNGS):
        return True
    if path.rpartition("/")[2].startswith(f"test_{name.removesuffix('_backward')}"):
        return True  # its own tests
    within = path.removeprefix("tests/")
    table = SUBJECTS if within == path else IN_TESTS
    return any(within.startswith(places) and name in names for places, names in table.items())


def repeated(files: dict[str, str]) -> list[str]:
    """Path and name for each name in a place where it is not allowed. `files` has path -> text."""
    names = re.compile(rf"\b(?:{'|'.join(sorted(NAMES, key=len, reverse=True))})\b")
    found = ((path, name) for path, text in files.items() for name in sorted(set(names.findall(text))))
    return [f"{path}: {name}" for path, name in found if not allowed(path, name)]


def test_no_name_is_repeated():
    texts = {name: path.read_text(encoding="utf-8", errors="replace") for name, path in tracked_files().items()}
    assert repeated(texts) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("helpers/upkeep/validation/counted.py", 'RUNGS = ("matmul_mma",)'),
        ("helpers/ladder/pytorch/operators.py", 'def matmul(rung="matmul_tiled"):'),
        ("helpers/ladder/results/scoreboard.py", "softmax"),
        ("tests/kernels/contract.py", "vector_add"),
        ("tests/kernels/test_softmax.py", "bias_gelu"),
        ("Makefile", "fused_muladd"),
    ],
)
def test_a_repeated_name_is_seen(path, text):
    assert len(repeated({path: text})) == 1
    assert repeated({"helpers/ladder/catalogue/matmul.py": text}) == []


# -- Entries -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", catalogue.ALL, ids=lambda operator: operator.name)
def test_an_entry_is_whole(operator):
    names = [kernel.name for kernel in operator.kernels]
    assert names and len(set(names)) == len(names)
    for kernel in operator.kernels:
        sources = [KERNELS / file for file in kernel.files]
        assert all(source.is_file() for source in sources)
        text = "".join(path.read_text() for path in (*sources, *(KERNELS / "include").glob("*.h")))
        counted = {launch.kernel or kernel.cuda_name for launch in kernel.launches}
        assert all(re.search(rf"\b{name}\(", text) for name in counted), kernel.name
        assert {launch.dtype for launch in kernel.launches} <= {*kernel.dtypes, ""}
        assert not kernel.backward or any(kernel.backward == k.name for _, k in catalogue.CONTRACTED)


def test_rungs_have_one_file_each_and_go_up():
    rungs = (*MATMUL.kernels, *MATMUL_FP8.kernels)
    files = [file for file in dict.fromkeys(kernel.files[0] for kernel in rungs) if file.startswith("matmul/")]
    assert files == sorted(str(path.relative_to(KERNELS)) for path in (KERNELS / "matmul").glob("*.cu"))


def test_a_kernel_with_a_special_capability_has_its_flags():
    assert all(("compute_90a" in str(kernel.nvcc_flags)) == (kernel.capability == (9, 0)) for kernel in MATMUL.kernels)
