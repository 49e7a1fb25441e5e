"""One wheel for two PyTorches and two Pythons. Not part of `make test`, since it needs a second environment:

    KERNEL_XRAY_SECOND_PYTHON=/other/venv/bin/python \
      .venv/bin/python -m pytest -m wheels tests/instrument/test_wheels.py

The second interpreter has another PyTorch (2.11 or newer), setuptools, wheel, numpy and ninja; another Python version
makes the test complete. Nothing is installed into either of the two.
"""

import os
import sys
from pathlib import Path

import pytest
from running import run

from helpers.pages.notebooks.new_op import write
from helpers.paths import ROOT

SECOND = os.environ.get("KERNEL_XRAY_SECOND_PYTHON")
needs_second = pytest.mark.skipif(not SECOND, reason="KERNEL_XRAY_SECOND_PYTHON names no second environment")
pytestmark = [pytest.mark.wheels, needs_second]
USE = """
import sys, torch, two_lands
a, b = torch.randn(2, 1000, dtype=torch.float64)
assert torch.equal(two_lands.two_lands(a, b), (a - b) ** 2)
torch.library.opcheck(two_lands.two_lands, (a.requires_grad_(), b))
print(torch.__version__, sys.version.split()[0], two_lands.__file__)
"""


def by(python, *arguments, cwd, path=""):
    """What a command of one of the two environments prints."""
    found = {"KERNEL_LADDER_TARGET": "simulator", "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    return run(python, *arguments, cwd=cwd, PYTHONPATH=str(path), **found).stdout


def install_and_use(python, package, folder):
    by(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, package, cwd=folder)
    torch, version, file = by(python, "-c", USE, cwd=folder, path=folder).split()
    assert Path(file).is_relative_to(folder)
    return torch, version


def pip_wheel(python, source, folder):
    command = ("-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder, source)
    by(python, *command, cwd=folder, path=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.parametrize(("builder", "user"), [("first", "second"), ("second", "first")])
def test_a_wheel_of_one_environment_works_in_the_other(builder, user, tmp_path):
    pythons = {"first": sys.executable, "second": SECOND}
    wheel = pip_wheel(pythons[builder], write("two_lands", tmp_path), tmp_path)
    assert "-cp310-abi3-" in wheel.name
    found = []
    for name in (builder, user):
        (tmp_path / name).mkdir()
        found.append(install_and_use(pythons[name], wheel, tmp_path / name))
    assert found[0][0] != found[1][0], f"both environments have PyTorch {found[0][0]}"


def test_the_source_distribution_can_be_installed(tmp_path):
    package, folder = write("two_lands", tmp_path), tmp_path / "there"
    by(sys.executable, "setup.py", "-q", "sdist", cwd=package, path=ROOT)
    (archive,) = (package / "dist").glob("*.tar.gz")
    folder.mkdir()
    install_and_use(SECOND, pip_wheel(SECOND, archive, folder), folder)
