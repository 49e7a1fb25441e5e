"""The first cell of a lesson on a hosted machine, such as Colab's: what is missing is installed, what runs is chosen.

The machine came with its own PyTorch, CUDA and packages. PyTorch is kept, as everything else there is built for it. The
doctor then builds and runs a small kernel: where that fails on the GPU and works in the simulator, the simulator is
taken, and the reason is printed.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version

from packaging.requirements import Requirement

from helpers.paths import ROOT, environment
from helpers.upkeep.doctor.probes import Finding

# The machine's own PyTorch and notebook server stay; nbval and nbconvert are for tests and pages.
KEPT = {"torch", "jupyterlab", "ipykernel", "nbclient", "nbval", "nbconvert"}
SIMULATOR = {"KERNEL_LADDER_TARGET": "simulator", "CUDA_VISIBLE_DEVICES": ""}
Diagnose = Callable[[dict[str, str]], list[Finding]]


def prepare() -> None:
    """Makes `import helpers` work in this process and its children, in the simulator if the GPU cannot be used.

    Raises RuntimeError, with what to do, if the lessons cannot run at all.
    """
    os.environ.update(environment())
    if wanted := list(missing()):
        print("installing", ", ".join(wanted))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), *wanted]
        subprocess.run(pip, check=True)
    variables, said = choose(diagnose)
    os.environ.update(variables)
    print(said)


def missing() -> Iterator[str]:
    """The requirements of the lessons, in pyproject.toml, that this machine does not meet."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    for requirement in map(Requirement, re.findall(r'"(.+?)"', listed)):
        if requirement.name not in KEPT and not met(requirement):
            yield str(requirement)


def met(requirement: Requirement) -> bool:
    """Whether this Python has it, or does not need it."""
    if requirement.marker and not requirement.marker.evaluate():
        return True
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False


def choose(diagnose: Diagnose) -> tuple[dict[str, str], str]:
    """The environment variables with which the lessons run here, and what to tell the reader. Raises RuntimeError."""
    findings = diagnose({})
    problems = [finding for finding in findings if finding.state == "problem"]
    if not problems:
        return {}, "\n".join(f"{f.what}: {f.found}" for f in findings if f.what in ("PyTorch", "GPU", "nvcc", "target"))
    in_simulator = [finding for finding in diagnose(SIMULATOR) if finding.state == "problem"]
    if in_simulator:
        raise RuntimeError("The lessons cannot run here.\n" + "\n".join(map(in_words, in_simulator)))
    return SIMULATOR, "The kernels run in the simulator, because on this GPU they would not:\n" + "\n".join(
        map(in_words, problems)
    )


def in_words(finding: Finding) -> str:
    fix = finding.fix
    if finding.what == "PyTorch":  # the doctor's advice is for an environment that the course made
        (pinned,) = re.findall(r"^torch==\S+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
        fix = f"run %pip install {pinned}, restart the session, and run this cell again"
    return f"{finding.what}: {finding.found}\n    why it matters: {finding.why}\n    to change it: {fix}"


def diagnose(variables: dict[str, str]) -> list[Finding]:
    """The doctor's findings, from a process with these environment variables: the choice of a target is made once."""
    command = [sys.executable, "-m", "helpers.pages.front.hosted"]
    given = {**os.environ, **variables}
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"the doctor failed:\n{done.stderr}")
    return [Finding(**finding) for finding in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    from helpers.upkeep.doctor.diagnosis import examine

    print(json.dumps([asdict(finding) for finding in examine().findings]))


if __name__ == "__main__":
    main()
