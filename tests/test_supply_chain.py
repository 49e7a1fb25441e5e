"""What set-up installs: only files whose hashes are listed, and from the first index that knows a package.

The indexes here are folders, and pip and uv are the real ones.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from helpers import set_up
from helpers.paths import ROOT

LISTED = "".join((ROOT / name).read_text() for name in set_up.HASHES)


def wheel(index, version, content="", name="ladder_rung"):
    """Adds a wheel to an index; returns its SHA-256."""
    folder = index / name.replace("_", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{version}'\n{content}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(zipfile.ZipInfo(file), text)  # without the time, so that its hash is always the same
    (folder / "index.html").write_text(f'<!DOCTYPE html>\n<a href="{path.name}">{path.name}</a>\n')
    return hashlib.sha256(path.read_bytes()).hexdigest()


def installer(tmp_path, tool, *arguments):
    """Runs pip or uv with `arguments`, away from this machine's own indexes; returns the process."""
    names = {"PIP_CONFIG_FILE": os.devnull, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_NO_CONFIG": "1"}
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    command = [sys.executable, "-m", *(["uv", "pip"] if tool == "uv" else ["pip", "--isolated"]), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**outside, **names})


NEEDS_UV = pytest.mark.skipif(not importlib.util.find_spec("uv"), reason="needs uv, which set-up puts into .venv")


# Set-up installs with uv where it can.
@pytest.mark.parametrize("tool", [pytest.param("uv", marks=NEEDS_UV), pytest.param("pip", marks=pytest.mark.slow)])
def test_a_tampered_wheel_is_refused(tmp_path, tool):
    index, target = tmp_path / "index", tmp_path / "target"
    listed, digest = tmp_path / "listed.txt", wheel(index, "1.0")
    listed.write_text(f"ladder-rung==1.0 \\\n    --hash=sha256:{digest}\n")
    install = ["install", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(listed)]
    install += ["--index-url", index.as_uri(), "--target", str(target)]
    wheel(index, "1.0", "stolen = True\n")
    refused = installer(tmp_path, tool, *install)
    assert refused.returncode and digest in refused.stderr and not list(target.rglob("*.py"))
    assert wheel(index, "1.0") == digest
    accepted = installer(tmp_path, tool, *install)
    assert accepted.returncode == 0, accepted.stderr
    assert (target / "ladder_rung.py").read_text() == "VERSION = '1.0'\n"


def choice(tmp_path, *arguments):
    (tmp_path / "wanted.in").write_text("ladder-rung\n")
    compiled = installer(tmp_path, "uv", "compile", "-q", "--no-header", str(tmp_path / "wanted.in"), *arguments)
    assert compiled.returncode == 0, compiled.stderr
    return compiled.stdout.split()[0]


@NEEDS_UV
def test_another_index_shadows_no_name(tmp_path):
    """It has a higher version, which pip's own strategy would take; it may add a package that the first one lacks."""
    first, second = tmp_path / "first", tmp_path / "second"
    wheel(first, "1.0")
    wheel(second, "2.0")
    settings = {"index-url": first.as_uri(), "extra-index-url": second.as_uri()}
    arguments, _ = set_up.for_uv(settings)
    assert choice(tmp_path, *arguments) == "ladder-rung==1.0"
    assert choice(tmp_path, *arguments, "--index-strategy", "unsafe-best-match") == "ladder-rung==2.0"
    shutil.rmtree(first / "ladder-rung")
    assert choice(tmp_path, *arguments) == "ladder-rung==2.0"


def test_pytorchs_index_gives_torch_alone():
    arguments, _ = set_up.for_uv({"index-url": "https://download.pytorch.org/whl/cpu", "extra-index-url": set_up.PYPI})
    torch_alone = ["--find-links", "https://download.pytorch.org/whl/cpu/torch/"]
    assert arguments == ["--default-index", set_up.PYPI, *torch_alone]
    assert not set_up.is_pytorch("https://pytorch.org.example.com/simple")


# -- The lists ---------------------------------------------------------------------------------------------------------


def pins(text):
    """(name, version, marker) of each line that pins a version."""
    found = [Requirement(line) for line in re.findall(r"^([\w.-]+==[^#\\\n]+)", text, re.MULTILINE)]
    return {(canonicalize_name(r.name), str(next(iter(r.specifier)).version), r.marker) for r in found}


def test_every_constraint_has_hashes():
    """Each version of constraints.txt, and no other version of these packages but PyTorch's own build."""
    constrained = {(name, version) for name, version, _ in pins((ROOT / "constraints.txt").read_text())}
    listed = {(name, version) for name, version, _ in pins(LISTED)}
    names = {name for name, _ in constrained}
    assert {(name, version) for name, version in listed if name in names} ^ constrained == {("torch", "2.13.0+cpu")}
    found = set_up.with_hashes("\n".join(f"{name}=={version}" for name, version in sorted(listed)))
    assert len(re.findall("^[^ ]", found, re.MULTILINE)) == len(listed) > 200
    assert "--hash=sha256:" in found.split("torch==2.13.0+cpu \\\n")[1].splitlines()[0]


def test_a_package_without_a_hash_is_named():
    with pytest.raises(set_up.SetUpError, match=r"no hash for torch==2\.13\.0\+cu999,"):
        set_up.with_hashes("numpy==2.4.6\ntorch==2.13.0+cu999\n")
