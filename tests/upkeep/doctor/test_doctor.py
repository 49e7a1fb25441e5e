"""`python -m helpers doctor` and `first-kernel`: what they accept and what they report.

Each failure that the doctor knows is produced in an environment made for it, and must be named together with the
command that fixes it; on this machine, unchanged, the same probe must report no problem.
"""

import os
import re
import shutil
import sys
import time

import pytest
import torch
from running import python
from torch.utils.cpp_extension import get_default_build_root

import helpers
from helpers.upkeep.doctor import diagnosis as doctor
from helpers.upkeep.doctor import first_kernel, kernel_probes, kernel_trial, probes
from kernel_xray.machine import cache


def program(path, text):
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def nvcc(folder, version):
    return program(folder / "bin" / "nvcc", f"echo 'Cuda compilation tools, release {version}, V{version}.48'")


# -- the report --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_this_machine_can_run_the_course(capsys):
    assert doctor.main([]) == 0
    printed = capsys.readouterr().out
    assert "The course can run here." in printed
    for what in ("Python", "PyTorch", "C++ compiler", "ninja", "GPU", "target", "first kernel", "edited operator"):
        assert what in printed
    assert "PROBLEM" not in printed


def test_a_problem_is_explained_and_decides_the_exit_status(monkeypatch, capsys):
    problem = probes.Finding("ninja", "problem", "<none>", "PyTorch builds with it", "make setup")
    note = probes.Finding("GPU", "note", "none", "no GPU times", "nothing")
    monkeypatch.setattr(doctor, "CHECKS", (lambda: note, lambda: None, lambda: problem))
    monkeypatch.setattr(kernel_trial, "check", lambda: pytest.fail("tried a kernel despite a problem"))
    assert doctor.main([]) == 1
    printed = capsys.readouterr().out
    assert "why it matters: PyTorch builds with it" in printed
    assert "fix: make setup" in printed
    assert "1 problem to fix" in printed
    page = doctor.examine()._repr_html_()
    assert page.count("<tr>") == 3
    assert "&lt;none&gt;" in page
    assert "<code>make setup</code>" in page
    monkeypatch.setattr(doctor, "CHECKS", (lambda: note,))
    assert doctor.main(["--quick"]) == 0
    monkeypatch.setattr(kernel_trial, "check", lambda: [problem])
    assert doctor.main([]) == 1


def test_what_takes_long_is_said_while_it_runs(monkeypatch, capsys):
    note = probes.Finding("GPU", "note", "none", "no GPU times", "nothing")
    said = []

    def slow():
        time.sleep(3 * doctor.SILENT_SECONDS)
        said.append(capsys.readouterr().err)
        return note

    monkeypatch.setattr(doctor, "CHECKS", (slow,))
    monkeypatch.setattr(kernel_trial, "check", lambda: [slow()])
    doctor.examine()
    assert "looking at Python, PyTorch, compilers and GPUs ..." in said[0]
    also = "; the first time, the simulator too: minutes" if helpers.target == "simulator" else ""
    assert f"building and running a small kernel{also} ..." in said[1]
    monkeypatch.setattr(doctor, "CHECKS", (lambda: note,))
    monkeypatch.setattr(doctor, "SILENT_SECONDS", 60)
    doctor.examine(trial=False)
    assert "looking" not in capsys.readouterr().err


def test_without_pytorch_nothing_else_is_probed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    report = doctor.examine()
    assert report.findings[-1].what == "PyTorch"
    assert report.findings[-1].fix == "make setup"
    assert report.problems == 1


# -- the host ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "state"), [((3, 9, 18), "problem"), ((3, 10, 0), "ok"), ((3, 13, 0), "ok")])
def test_python(version, state):
    assert probes.check_python(version).state == state


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.10.1", "problem"), ("1.13.0", "problem"), ("2.11.0", "ok"), ("2.13.0+cpu", "ok"), ("3.0.0a0+git1", "ok")],
)
def test_torch(version, state):
    finding = probes.judge_torch(version, None)
    assert finding.state == state
    assert version in finding.found
    assert finding.fix == ("make setup" if state == "problem" else "")


def test_a_compiler_is_judged_by_what_it_compiles(tmp_path, monkeypatch):
    assert probes.check_compiler().state == "ok"
    broken = program(tmp_path / "c++", "echo 'tools are not installed' >&2; exit 1")
    finding = probes.check_compiler(str(broken))
    assert finding.state == "problem"
    assert "tools are not installed" in finding.found
    assert "export CXX=/" in finding.fix
    monkeypatch.setattr(probes, "other_compiler", lambda command: None)
    finding = probes.check_compiler(str(tmp_path / "missing"))
    assert finding.state == "problem"
    assert "sudo apt install g++" in finding.fix


def test_python_headers(tmp_path):
    assert probes.check_python_headers().state == "ok"
    finding = probes.check_python_headers(str(tmp_path))
    assert (finding.state, finding.fix.startswith("sudo apt install python3.")) == ("problem", True)
    (tmp_path / "Python.h").touch()
    assert probes.check_python_headers(str(tmp_path)).state == "ok"


def test_ninja_that_is_not_on_path(tmp_path):
    finding = probes.check_ninja(path="", scripts=str(tmp_path))
    assert (finding.state, finding.fix) == ("problem", "make setup")
    program(tmp_path / "ninja", "echo 1.11")
    finding = probes.check_ninja(path="/nowhere", scripts=str(tmp_path))
    assert (finding.state, finding.fix) == ("note", f"source {tmp_path}/activate")
    assert probes.check_ninja(path=str(tmp_path), scripts="/nowhere").state == "ok"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    assert probes.check_cache().state == "ok"
    (tmp_path / "taken").touch()
    monkeypatch.setenv("KERNEL_XRAY_CACHE", str(tmp_path / "taken" / "cache"))
    finding = probes.check_cache()
    assert finding.state == "problem"
    assert str(tmp_path / "taken") in finding.found
    assert "export KERNEL_XRAY_CACHE=" in finding.fix


@pytest.mark.parametrize(("free", "state"), [(10 << 20, "problem"), (500 << 20, "note"), (2 << 30, "ok")])
def test_room_for_builds(tmp_path, free, state):
    finding = probes.judge_space(tmp_path, free)
    assert finding.state == state
    assert finding.fix.startswith("python -m helpers cache clear") == (state != "ok")


@pytest.mark.parametrize("place", ["ops", "py311_cu130/ops"])
def test_locks_of_killed_builds(tmp_path, monkeypatch, place):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert probes.check_locks().state == "ok"
    lock = tmp_path / place / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert probes.check_locks().state == "ok"  # its build may still be running
    os.utime(lock, (0, 0))
    finding = probes.check_locks()
    assert (finding.state, finding.fix) == ("note", f"rm {lock}")
    lock.unlink()
    assert probes.check_locks().state == "ok"


def test_locks_are_looked_for_where_pytorch_builds(monkeypatch):
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    assert os.path.realpath(probes.check_locks().found.rpartition(" in ")[2]) == get_default_build_root()


def test_a_folder_of_pytorchs_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    finding = probes.check_locks(tmp_path / "file")
    assert finding.state == "note" and "export TORCH_EXTENSIONS_DIR=" in finding.fix


def test_the_tool_that_names_source_lines(tmp_path):
    assert probes.check_addr2line().state == "ok"
    finding = probes.check_addr2line(path=str(tmp_path))
    assert finding.state == "note"
    assert finding.fix in ("sudo apt install binutils", "xcode-select --install")


# -- nvcc, driver, architectures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "torch_cuda", "driver", "gpu", "state", "wanted"),
    [
        ("13.0", (13, 0), (13, 0), True, "ok", None),
        ("13.0", (13, 2), (13, 2), True, "ok", None),
        ("12.8", (12, 8), (13, 0), True, "ok", None),
        ("12.8", None, None, False, "ok", None),  # a CPU build of PyTorch
        ("12.8", (13, 0), (13, 0), True, "problem", "13.0"),  # another major version than PyTorch's
        ("13.0", (12, 8), (13, 0), False, "note", "12.8"),
        ("13.2", (13, 0), (13, 0), True, "note", "13.0"),  # PTX newer than the driver
        ("13.0", (13, 0), (12, 8), True, "problem", "12.8"),
    ],
)
def test_nvcc_beside_pytorch_and_driver(tmp_path, version, torch_cuda, driver, gpu, state, wanted):
    finding = kernel_probes.judge_nvcc(nvcc(tmp_path, version), torch_cuda, driver, gpu)
    assert finding.state == state
    assert f"CUDA {version}" in finding.found
    if wanted:
        assert f"export CUDA_HOME=/usr/local/cuda-{wanted}" in finding.fix
        assert finding.why


def test_nvcc_that_is_missing_or_broken(tmp_path):
    assert kernel_probes.judge_nvcc(None, None, None, gpu=False) is None
    assert kernel_probes.judge_nvcc(None, (13, 0), (13, 0), gpu=True).fix == "make setup"
    broken = program(tmp_path / "nvcc", "exit 1")
    finding = kernel_probes.judge_nvcc(broken, (13, 0), (13, 0), gpu=True)
    assert finding.state == "problem"
    assert "does not run" in finding.found


def test_an_nvcc_that_is_there_is_chosen_rather_than_installed(tmp_path):
    assert "sudo apt install cuda-toolkit-13-0" in kernel_probes.get_cuda((13, 0), tmp_path)
    nvcc(tmp_path / "cuda-13.0", "13.0")
    assert kernel_probes.get_cuda((13, 0), tmp_path) == f"export CUDA_HOME={tmp_path}/cuda-13.0"


@pytest.mark.parametrize(
    ("wanted", "gpus", "cuda", "state", "fix"),
    [
        ("", [], False, None, ""),
        ("", [(9, 0)], True, "ok", ""),
        ("native", [(9, 0)], True, "ok", ""),
        ("9.0", [(9, 0)], True, "ok", ""),
        ("8.0+PTX", [(9, 0)], True, "ok", ""),
        ("8.0;9.0", [(8, 0), (9, 0)], True, "ok", ""),
        ("", [], True, "note", "export TORCH_CUDA_ARCH_LIST="),
        ("7.0 7.5 8.0 8.6 9.0", [(9, 0)], True, "note", "unset TORCH_CUDA_ARCH_LIST"),
        ("Ampere;Hopper", [], True, "note", "export TORCH_CUDA_ARCH_LIST="),
        ("8.0", [(9, 0)], True, "problem", "unset TORCH_CUDA_ARCH_LIST"),  # no code for this GPU
        ("10.0+PTX", [(9, 0)], True, "problem", "unset TORCH_CUDA_ARCH_LIST"),
    ],
)
def test_architectures(wanted, gpus, cuda, state, fix):
    finding = kernel_probes.judge_architectures(wanted, gpus, cuda)
    assert (finding.state if finding else None) == state
    assert not finding or (finding.fix.startswith(fix) and bool(finding.fix) == bool(fix))


# -- the trial of a kernel ---------------------------------------------------------------------------------------------


def states(findings):
    return {finding.what: finding.state for finding in findings}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """The test builds in a folder of its own and shares only the simulator's library."""
    (tmp_path / "cache").mkdir()
    for folder in cache.root().glob("simt-*"):
        (tmp_path / "cache" / folder.name).symlink_to(folder)
    monkeypatch.setenv("KERNEL_XRAY_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no static C++ library")
def test_a_compiler_whose_exceptions_kill_the_process(own_cache, tmp_path, monkeypatch):
    # Like some compilers outside the system's folders, this one links copies of the C++ library and the unwinder into
    # each extension. With --no-eh-frame-hdr this unwinder finds no handler on any system. The script is named like the
    # system's compiler, so that the simulator's library is not built again.
    program(
        tmp_path / "bin" / "c++",
        'case " $* " in *-print-file-name=libstdc++.so*) echo libstdc++.so; exit;; esac\n'
        f'exec {shutil.which("c++")} "$@" -static-libstdc++ -static-libgcc -Wl,--no-eh-frame-hdr',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("CXX", raising=False)
    findings = kernel_trial.check()
    assert states(findings) == {"first kernel": "ok", "C++ exceptions": "problem"}
    assert re.search("SIG(ABRT|SEGV)", findings[-1].found)
    assert "links a copy into every library" in findings[-1].found
    assert findings[-1].fix.startswith("export CXX=/")


@pytest.mark.slow
def test_an_operator_registered_twice(own_cache):
    # A loader that, like PyTorch's own, never gives an edited operator's namespace a new name.
    code = (
        "from kernel_xray.build import extension\n"
        "from helpers.upkeep.doctor import kernel_trial\n"
        "extension._uses = type('Forgetful', (dict,), {'get': lambda self, key, default=None: 0})()\n"
        "kernel_trial.steps()"
    )
    findings = kernel_trial.check([sys.executable, "-c", code])
    assert states(findings) == {"first kernel": "ok", "C++ exceptions": "ok", "edited operator": "problem"}
    assert "restart Python" in findings[-1].fix


@pytest.mark.parametrize(
    ("script", "what", "found", "fix"),
    [
        ("echo built wrong", "first kernel", "never ran", "unset TORCH_CUDA_ARCH_LIST"),
        ("echo 'x.cu:3: error: no such header' >&2; exit 1", "first kernel", "no such header", "first-kernel"),
        ("echo built; kill -SEGV $$", "first kernel", "SIGSEGV", "unset TORCH_CUDA_ARCH_LIST"),
        ("echo built answered edited", "C++ exceptions", "raised nothing", ""),
        ("echo built answered refused old", "edited operator", "the old code still runs", "restart Python"),
    ],
)
def test_trials_that_fail(tmp_path, script, what, found, fix):
    *before, last = kernel_trial.check([str(program(tmp_path / "trial", script))])
    assert all(finding.state == "ok" for finding in before)
    assert (last.what, last.state) == (what, "problem")
    assert found in last.found
    assert fix in last.fix
    assert last.fix


# -- first-kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "expected", "wrong"),
    [
        ([1.0, 2.0], [1.0, 2.0], (0, None)),
        ([1.0, 2.0, 0.0], [1.0, 3.0, 1.0], (2, 1)),
        ([float("nan")], [float("nan")], (1, 0)),
        ([float("nan"), 1.0], [0.0, 1.0], (1, 0)),
    ],
)
def test_wrong_elements_are_counted(got, expected, wrong):
    assert first_kernel.compare(torch.tensor(got), torch.tensor(expected)) == wrong


def test_first_kernel_gives_the_right_answer_here(capsys):
    assert first_kernel.main([]) == 0
    assert "right, all 1,000,003 elements" in capsys.readouterr().out


def test_a_wrong_first_kernel_is_reported(monkeypatch, capsys):
    outcome = first_kernel.Outcome("simulator", 1.0, size=10, wrong=3, first_wrong=7)
    monkeypatch.setattr(first_kernel, "run", lambda: outcome)
    assert first_kernel.main([]) == 1
    printed = capsys.readouterr()
    assert "WRONG at 3 of 10 elements, first at 7" in printed.out
    assert "doctor" in printed.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [("CXX", "/nonexistent", "compiler"), ("KERNEL_LADDER_TARGET", "cpu", "KERNEL_LADDER_TARGET")],
)
def test_the_command_runs_even_if_the_package_cannot_be_imported(variable, value, named):
    done = python("-m", "helpers", "doctor", "--quick", status=1, **{variable: value})
    assert named in done.stdout
    assert "Traceback" not in done.stderr
