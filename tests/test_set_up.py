"""helpers/set_up.py: when it makes an environment, what it installs, and when it does nothing.

The environments here are small programs that stand in for Python and pip; `make setup` itself is proven by every run
of the tests from a fresh clone.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import set_up

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
FAKE_PYTHON = """#!/bin/sh
case "$*" in
  *"import pip"*) {probe}; exit ;;
  *"config list") echo "{self.settings}"; exit ;;
esac
echo "$@ [$SSL_CERT_FILE]" >> "{self.record}"
case "$*" in
  *" compile "*) printf '{self.chosen}' > "{self.venv}/{list}" ;;
esac
case "$*" in
  *"{self.failing}"*) echo "Collecting things"; exit 1 ;;
esac
"""
CHECKED = "install --require-hashes --no-deps --only-binary :all: -r"


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without GPU, with a compiler, where making an environment makes a stand-in; records what is done."""

    class Machine:
        venv = tmp_path / "venv"
        record = tmp_path / "installed"
        made = 0
        version = VERSION
        settings = ""
        chosen = "anyio==4.16.0\\n"
        failing = "nothing"

        def make_venv(self, venv):
            self.made += 1
            (venv / "bin").mkdir(parents=True, exist_ok=True)
            probe = f"echo {self.version}" if self.version else "exit 1"
            write_program(venv / "bin" / "python", FAKE_PYTHON.format(self=self, probe=probe, list=set_up.LIST))

        def installs(self):
            return self.record.read_text().splitlines() if self.record.exists() else []

        def run(self, *arguments):
            return set_up.main(["--venv", str(self.venv), *arguments])

    here = Machine()
    monkeypatch.setattr(set_up, "make_venv", here.make_venv)
    monkeypatch.setattr(set_up, "in_the_making", lambda *command: subprocess.Popen(["true"]))
    monkeypatch.setattr(set_up, "has_gpu", lambda: False)
    monkeypatch.setattr(set_up, "has_nvcc", lambda: False)
    monkeypatch.setenv("CXX", "c++")
    return here


def test_the_first_run_installs_and_the_second_does_nothing(machine, capsys):
    for said in ("packages installed", ""):
        assert machine.run() == 0
        pip, choice, installed, course = machine.installs()
        assert f"-m pip --disable-pip-version-check {CHECKED}" in pip and machine.made == 1
        assert "-c constraints.txt" in choice and "--extra dev pyproject.toml" in choice
        assert f"-m uv pip {CHECKED}" in installed
        assert "--no-deps --no-build-isolation -e . -e ./kernel_xray" in course
        assert (machine.venv / set_up.IPYTHON).read_text() == set_up.EXTENSION
        assert (machine.venv / "share/jupyter/labextensions/kernel-ladder/static/lessons.css").exists()
        shown = capsys.readouterr().out
        assert said in shown and bool(said) == bool(shown)


def test_the_simulator_is_built_without_any_package(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for program, ends_well in (
        (set_up.SIMULATOR, True),  # in the cache of these tests it is already
        (set_up.SIMULATOR.replace("import helpers", "import torch"), False),
    ):
        assert (set_up.in_the_making(sys.executable, "-S", "-c", program).wait() == 0) == ends_well


@pytest.mark.slow  # set-up has done it, or no test would run
def test_what_all_kernels_share_is_built_with_the_environments_pytorch():
    assert set_up.in_the_making(sys.executable, "-c", set_up.SHARED).wait() == 0


def test_a_further_extra_is_installed_once_and_stays(machine, monkeypatch):
    machine.run()
    for arguments in (["--extra", "book"], ["--extra", "book"], []):
        machine.run(*arguments)
    assert len(machine.installs()) == 8
    assert "--extra book --extra dev pyproject.toml" in machine.installs()[5]
    monkeypatch.setattr(set_up, "fingerprint", lambda: "another")
    machine.run()
    assert "--extra book" in machine.installs()[9]
    assert machine.made == 1


def test_changed_dependencies_are_installed_into_the_same_environment(machine, monkeypatch):
    machine.run()
    monkeypatch.setattr(set_up, "fingerprint", lambda: "another")
    machine.run()
    machine.run()
    assert (machine.made, len(machine.installs())) == (1, 8)


def test_an_environment_of_another_clone_is_named(machine, capsys, monkeypatch, tmp_path):
    machine.run()
    capsys.readouterr()
    sources = set_up.fingerprint()
    monkeypatch.setattr(set_up, "fingerprint", lambda: sources)  # of the same commit
    monkeypatch.setattr(set_up, "ROOT", tmp_path / "second")
    assert machine.run() == 0
    first = Path(set_up.__file__).parent.parent
    assert f"{machine.venv} was set up in {first}" in capsys.readouterr().out


def test_the_fingerprint_is_that_of_all_files(tmp_path):
    for name in set_up.SOURCES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a")
    first = set_up.fingerprint(tmp_path)
    assert set_up.fingerprint(tmp_path) == first
    for name in set_up.SOURCES:
        (tmp_path / name).write_text("b")
        assert set_up.fingerprint(tmp_path) != first
        (tmp_path / name).write_text("a")


def test_uv_installs_where_pip_would_look(machine):
    machine.settings = "global.index-url='https://a/simple'\n:env:.find-links='/w x'\nglobal.cert='c.pem'"
    machine.run()
    _, choice, installed, _ = machine.installs()
    for said in (choice, installed):
        assert "--default-index https://a/simple --find-links /w --find-links x" in said and "[c.pem]" in said


def test_a_package_without_a_hash_is_refused(machine, capsys):
    machine.chosen = "anyio==4.16.0\\nanyio-plus==1.0\\n"
    assert machine.run() == 1
    assert "no hash for anyio-plus==1.0, so" in capsys.readouterr().err
    assert len(machine.installs()) == 2  # uv itself, and its choice
    assert set_up.read_stamp(machine.venv) == {}


def test_the_settings_of_pip_are_read(tmp_path, monkeypatch):
    """From a file and the environment, which counts more."""
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = https://a/simple\nretries = 3\n[install]\nfind-links =\n  /one\n  /two\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_INDEX_URL", "https://b/simple")
    found = set_up.pip_settings([sys.executable, "-m", "pip"])
    assert found["index-url"] == "https://b/simple"
    assert found["retries"] == "3"
    if "PIP_FIND_LINKS" not in os.environ:
        assert found["find-links"].split() == ["/one", "/two"]


DEFAULT = ["--default-index", set_up.PYPI]


@pytest.mark.parametrize(
    ("settings", "arguments", "environment"),
    [
        ({}, DEFAULT, {}),
        (  # of the lowest priority is the last one
            {"index-url": "https://a", "extra-index-url": "https://b https://c"},
            ["--index", "https://a", "--index", "https://b", "--default-index", "https://c"],
            {},
        ),
        (
            {"extra-index-url": "https://download.pytorch.org/whl/cpu"},
            [*DEFAULT, "--find-links", "https://download.pytorch.org/whl/cpu/torch/"],
            {},
        ),
        ({"no-index": "true", "trusted-host": "h"}, [*DEFAULT, "--allow-insecure-host", "h", "--no-index"], {}),
        ({"no-index": "false", "timeout": "9", "proxy": "p"}, DEFAULT, {"UV_HTTP_TIMEOUT": "9", "ALL_PROXY": "p"}),
    ],
)
def test_what_uv_is_told(monkeypatch, settings, arguments, environment):
    for certificates, further in ((False, {}), (True, {"UV_SYSTEM_CERTS": "true"})):
        monkeypatch.setattr(set_up, "has_certificates", lambda found=certificates: found)
        assert set_up.for_uv(settings) == (arguments, {"UV_HTTP_TIMEOUT": "180", **environment, **further})


def test_the_certificates_of_the_machine_are_used_where_there_are_any(tmp_path, monkeypatch):
    """In a file or a folder of Linux, and always on macOS, whose keychain cannot be empty."""
    monkeypatch.setattr(set_up.sys, "platform", "linux")
    file, folder = tmp_path / "all.pem", tmp_path / "certs"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert not set_up.has_certificates()
    folder.mkdir()
    assert not set_up.has_certificates()
    (folder / "one.pem").touch()
    assert set_up.has_certificates()
    (folder / "one.pem").unlink()
    file.touch()
    assert set_up.has_certificates()
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setattr(set_up.sys, "platform", "darwin")
    assert set_up.has_certificates()


def test_without_a_terminal_each_large_download_is_a_line(tmp_path, capsys):
    lines = ["Resolved 3 packages", "Downloading torch (182.9MiB)", "Prepared 3 packages", "other"]
    command = [sys.executable, "-c", f"print(*{lines}, sep=chr(10))"]
    set_up.run(command, tmp_path / "log")
    assert capsys.readouterr().out == "set-up: Downloading torch (182.9MiB)\n"
    assert (tmp_path / "log").read_text().splitlines() == lines


def test_a_failed_installation_is_reported_and_tried_again(machine, capsys):
    machine.failing = f"pip {CHECKED}"
    assert machine.run() == 1
    error = capsys.readouterr().err
    assert "Collecting things" in error
    assert set_up.LOG in error
    assert set_up.read_stamp(machine.venv) == {}
    assert machine.run() == 1
    assert len(machine.installs()) == 6


def test_an_environment_without_pip_or_python_is_made_anew(machine):
    machine.version = ""
    machine.run()
    machine.version = VERSION
    machine.run()
    assert machine.made == 2
    (machine.venv / "bin" / "python").unlink()
    machine.run()
    assert machine.made == 3


def test_a_moved_environment_is_made_anew(machine):
    machine.run()
    machine.venv = machine.venv.rename(machine.venv.with_name("moved"))
    machine.run()
    assert machine.made == 2
    assert set_up.read_stamp(machine.venv)["venv"] == str(machine.venv)


def test_another_python_replaces_the_environment_only_if_asked(machine):
    machine.version = "3.0"
    machine.run()
    machine.run()
    assert machine.made == 1
    machine.version = VERSION
    machine.run("--only-this-python")
    machine.run("--only-this-python")
    assert machine.made == 2


def test_a_gpu_without_nvcc_gets_the_compiler_wheels(machine, monkeypatch, capsys):
    machine.run()
    monkeypatch.setattr(set_up.sys, "platform", "linux")
    monkeypatch.setattr(set_up, "has_gpu", lambda: True)
    assert machine.run() == 1  # pip claims success, but there is no nvcc
    assert "no nvcc" in capsys.readouterr().err
    nvcc = machine.venv / "lib" / f"python{VERSION}" / "site-packages" / "nvidia" / "cu13" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch()
    assert machine.run() == 0
    assert "--extra cuda --extra dev" in machine.installs()[-3]
    count = len(machine.installs())
    monkeypatch.setattr(set_up, "has_gpu", lambda: False)  # what is installed stays
    machine.run()
    assert len(machine.installs()) == count


@pytest.mark.parametrize(
    ("platform", "gpu", "nvcc", "extras"),
    [
        ("linux", True, False, ["cuda", "dev"]),
        ("linux", True, True, ["dev"]),
        ("linux", False, False, ["dev"]),
        ("darwin", True, False, ["dev"]),
    ],
)
def test_extras(monkeypatch, platform, gpu, nvcc, extras):
    monkeypatch.setattr(set_up.sys, "platform", platform)
    monkeypatch.setattr(set_up, "has_gpu", lambda: gpu)
    monkeypatch.setattr(set_up, "has_nvcc", lambda: nvcc)
    assert set_up.wanted_extras() == extras


def test_the_lessons_alone_need_no_tools(machine):
    assert machine.run("--lessons-only") == 0
    assert "--extra" not in machine.installs()[1]
    machine.run("--lessons-only")
    assert len(machine.installs()) == 4
    machine.run()  # the tools are added
    assert "--extra dev" in machine.installs()[5]


def test_without_a_gpu_torch_is_the_cpu_build(machine, monkeypatch, capsys):
    """Unless pip is told where packages are, the machine has a GPU, or hashes/ has no such build for this Python."""
    page = f"--find-links {set_up.PYTORCH_CPU}/torch/"
    monkeypatch.setattr(set_up.sys, "platform", "linux")
    monkeypatch.setattr(set_up.sys, "version_info", (3, 12, 1))
    machine.version = "3.12"
    machine.run()
    assert all(page in command for command in machine.installs()[1:3])
    assert "PIP_INDEX_URL=https://pypi.org/simple" in capsys.readouterr().out
    for settings, extras in (({"index-url": set_up.PYPI}, []), ({"find-links": "/wheels"}, []), ({}, ["cuda"])):
        assert not set_up.cpu_build(settings, [*extras, "dev"])
    for version, platform, fits in (
        ((3, 12, 1), "linux", True),
        ((3, 10, 1), "linux", False),
        ((3, 15, 0), "linux", False),
        ((3, 14, 1), "linux", True),
        ((3, 12, 1), "darwin", False),
        ((3, 12, 1), "linux", True),
    ):
        monkeypatch.setattr(set_up.sys, "version_info", version)
        monkeypatch.setattr(set_up.sys, "platform", platform)
        assert set_up.cpu_build({}, ["dev"]) == fits
    monkeypatch.setattr(set_up, "has_gpu", lambda: True)
    assert not set_up.cpu_build({}, ["dev"])


@pytest.mark.parametrize(
    ("script", "gpu"),
    [("echo 'GPU 0: NVIDIA H200'", True), ("echo 'No devices were found'; exit 6", False), ("true", False)],
)
def test_a_gpu_is_what_the_driver_lists(tmp_path, monkeypatch, script, gpu):
    write_program(tmp_path / "nvidia-smi", f"#!/bin/sh\n{script}\n")
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.defpath)
    assert set_up.has_gpu() is gpu


def test_no_venv_module_names_the_package(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(set_up, "has_gpu", lambda: False)
    monkeypatch.setattr(set_up.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else object())
    monkeypatch.setattr(set_up, "pip_reaches_other_environments", lambda: False)
    assert set_up.main(["--venv", str(tmp_path / "venv")]) == 1
    error = capsys.readouterr().err
    assert f"apt install python{VERSION}-venv" in error
    assert "PYTHON=" in error


@pytest.mark.parametrize(
    ("version", "bare"), [("22.2.2", False), ("22.3", True), ("26.3", True), ("", False), ("of mine", False)]
)
def test_another_pip_installs_the_first_package_if_it_can(tmp_path, monkeypatch, version, bare):
    def installed(name):
        if not version:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", installed)
    commands = []
    done = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(set_up.subprocess, "run", lambda command, **options: commands.append(command) or done)
    set_up.make_venv(tmp_path)
    assert ("--without-pip" in commands[0]) == bare


def test_an_environment_without_pip_is_installed_into_from_outside(tmp_path):
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    for status, pip in ((1, [sys.executable, "-m", "pip", "--python", str(python)]), (0, [str(python), "-m", "pip"])):
        write_program(python, f"#!/bin/sh\nexit {status}\n")
        assert set_up.pip_of(tmp_path) == pip


def test_a_broken_stamp_counts_as_none(tmp_path):
    (tmp_path / set_up.STAMP).write_text("{")
    assert set_up.read_stamp(tmp_path) == {}
    (tmp_path / set_up.STAMP).write_text(json.dumps({"venv": "x"}))
    assert set_up.read_stamp(tmp_path) == {"venv": "x"}


def test_a_path_with_a_space_is_refused(machine, capsys):
    machine.venv = machine.venv.with_name("my venv")
    assert machine.run() == 1
    assert machine.made == 0
    assert "VENV=" in capsys.readouterr().err
