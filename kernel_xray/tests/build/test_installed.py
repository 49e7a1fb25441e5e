"""The package as others have it: its wheel in an environment without PyTorch, beside folders of any name."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from simt_programs import line_marked

from kernel_xray.machine import cache

PROJECT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"  # which test_programs.py builds too
RACE = line_marked(PROGRAMS / "traced.cu", "race")
MEGABYTE = 1_000_000
# Without -DBARRIER a race.
PROGRAM = """#include <cstdio>
__global__ void reverse(int* x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
#ifdef BARRIER
  __syncthreads();
#endif
  x[threadIdx.x] = tile[63 - threadIdx.x];
}
int main(int count, char** given) {
  int* x;
  cudaMalloc(&x, 64 * sizeof(int));
  cudaMemset(x, 0, 64 * sizeof(int));
  reverse<<<1, 64>>>(x);
  printf("%s, %d given\\n", cudaGetErrorString(cudaDeviceSynchronize()), count - 1);
  return count;
}
"""
HEAVY = "torch", "numpy", "yaml", "matplotlib", "setuptools", "IPython"
LIGHT = f"""
import sys
from kernel_xray.__main__ import main
status = main(sys.argv[1:])
print(sorted({{*{HEAVY}}} & set(sys.modules)), file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture
def folder(tmp_path):
    """A project of someone else's, whose folders have common names."""
    (tmp_path / "race.cu").write_text(PROGRAM)
    for name in ("helpers", "kernels", "tests", "kernel_xray"):
        (tmp_path / name).mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("raise ImportError('not this one')")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["run", PROGRAMS / "plain.cu", "--", "arguments", "-a"], 7, "[arguments][-a]"),
        (["trace", PROGRAMS / "traced.cu", "--args", "race"], 1, f"traced.cu:{RACE}: race"),
        pytest.param(
            ["trace", "-DBARRIER", "-std=c++17", "race.cu", "--args", "", "--format", "json"],
            1,
            '"faults": []',
            marks=pytest.mark.slow,  # one more build
        ),
    ],
)
def test_programs_need_nothing_but_python_where_pytorch_is_there(folder, arguments, status, word):
    command = [sys.executable, "-c", LIGHT, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (status, "[]"), done.stderr
    assert word in done.stdout


@pytest.mark.slow  # a process with PyTorch; programs run in such a folder above
def test_an_extension_is_loaded_beside_a_folder_named_helpers(folder):
    source = PROJECT / "tests" / "build" / "strided.cu"
    code = f"import kernel_xray, torch; ops = kernel_xray.load('beside', {str(source)!r}, is_python_module=False)\n"
    code += "x = torch.arange(8., device=kernel_xray.device); assert torch.equal(ops.scale(x, 2.0, 1), 2 * x)"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=300)


def contents(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin folder of an environment that has the wheel alone."""
    place = tmp_path_factory.mktemp("installed")
    shutil.copytree(
        PROJECT, place / "project", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "tests")
    )
    shutil.copytree(PROJECT / "src", place / "project" / "src", dirs_exist_ok=True)  # with its room `build`
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    for command in (
        [*pip, "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", str(place), str(place / "project")],
        [sys.executable, "-m", "venv", "--without-pip", str(place / "venv")],
    ):
        subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,) = place.glob("*.whl")
    python = place / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "-q", "--no-index", "--no-deps", str(wheel)], check=True)
    return python.parent


def run(installed, *arguments, cwd, **variables):
    here = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KERNEL_XRAY"))}
    here |= {"PYTHONDONTWRITEBYTECODE": "1", cache.VARIABLE: str(cache.root()), **variables}
    command = [str(installed / "kernel-xray"), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=here, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
def test_the_wheel_runs_and_traces_without_pytorch_and_writes_nothing_into_itself(installed, folder):
    (site,) = installed.parent.glob("lib/python3*/site-packages")
    before = contents(site)
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) <= 10 * MEGABYTE
    assert not {path.name.partition("-")[0] for path in site.iterdir()} - {"kernel_xray", "__pycache__"}
    ran = run(installed, "run", "race.cu", "--", "one", cwd=folder)
    assert (ran.returncode, ran.stdout) == (2, "no error, 1 given\n"), ran.stderr
    racy, budget = run(installed, "trace", "race.cu", cwd=folder), folder / "budget.yml"
    assert racy.returncode == 1 and "race.cu:8: race" in racy.stdout, racy.stderr
    (folder / "right.cu").write_text(PROGRAM.replace("return count", "return 0"))
    right = run(installed, "trace", "-D", "BARRIER", "right.cu", "--write-budget", budget, cwd=folder)
    assert right.returncode == 0 and "no faults" in right.stderr, right.stderr
    kept = run(installed, "trace", "-D", "BARRIER", "right.cu", "--budget", budget, "--format", "sarif", cwd=folder)
    assert kept.returncode == 0 and "within budget" in kept.stderr, kept.stderr
    budget.write_text('{"kernels": {"reverse": {"sectors": 1}}}')
    over = run(installed, "trace", "-D", "BARRIER", "right.cu", "--budget", budget, "--format", "html", cwd=folder)
    assert over.returncode == 1 and "sectors: allowed 1, got 16" in over.stderr, over.stderr
    assert contents(site) == before


@pytest.mark.slow
def test_an_extension_is_refused_with_what_to_install(installed, folder):
    (folder / "ops.cu").write_text("#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n")
    refused = run(installed, "trace", "ops.cu", "--call", "ops.f()", cwd=folder)
    assert refused.returncode == 2 and "pip install torch" in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.slow
def test_a_command_says_its_first_word_at_once(installed, folder):
    run(installed, "run", "race.cu", cwd=folder)  # built

    def seconds(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    bare = min(seconds(lambda: subprocess.run([sys.executable, "-c", "import argparse"], check=True)) for _ in range(5))
    assert run(installed, "run", "race.cu", cwd=folder).returncode == 1
    taken = min(seconds(lambda: run(installed, "run", "race.cu", cwd=folder)) for _ in range(5))
    assert taken <= max(0.5, 8 * bare)  # on a busy machine, Python alone is slow


@pytest.mark.slow
def test_each_user_has_a_cache(installed, folder):
    places = set()
    for user in ("ann", "ben"):
        shown = run(installed, "cache", cwd=folder, **{cache.VARIABLE: "", "XDG_CACHE_HOME": str(folder / user)})
        assert shown.returncode == 0
        places.add(shown.stdout.split(":")[0])
    assert places == {str(folder / user / "kernel_xray") for user in ("ann", "ben")}


@pytest.mark.slow
def test_the_doctor_builds_and_runs_a_kernel(installed, folder):
    well = run(installed, "doctor", cwd=folder)
    assert well.returncode == 0 and well.stdout.count("ok ") >= 4 and "-- " in well.stdout, well.stdout + well.stderr
    ill = run(installed, "doctor", cwd=folder, CXX="no-such-compiler")
    assert ill.returncode == 1 and ill.stdout.startswith("no  compiler") and "Install g++" in ill.stdout
