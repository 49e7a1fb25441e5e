"""Makes the virtual environment of the course: `python -I helpers/set_up.py --venv .venv`. `make setup` calls it.

It runs before anything is installed, under the interpreter that the environment is made from. So it uses only the
standard library and imports nothing from this package (-I keeps this folder off the import path).

A stamp inside the environment records which packages were installed and from which files. While the stamp is valid,
set-up does nothing and prints nothing.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
HASHES = ("hashes/pypi.txt", "hashes/pytorch_cpu.txt")
# They decide which packages are installed.
SOURCES = ("pyproject.toml", "kernel_xray/pyproject.toml", "constraints.txt", *HASHES)
STAMP = "kernel-ladder.json"
LOG = "kernel-ladder.log"
LIST = "kernel-ladder.txt"  # the packages of this machine, with the hashes of their files
PYPI = "https://pypi.org/simple"
PYTORCH_CPU = "https://download.pytorch.org/whl/cpu"
# IPython reads this file for each notebook of the environment: ENV_CONFIG_DIRS of IPython/core/application.py (9.18).
IPYTHON = "etc/ipython/ipython_config.py"
EXTENSION = """# Written by set-up: %%exercise works in any notebook of this environment, also before `import helpers`.
get_config().InteractiveShellApp.extensions = ["helpers.practice.magic"]
"""


# JupyterLab loads it from the environment's share/jupyter/labextensions, without a build.
LABEXTENSION = ROOT / "helpers" / "pages" / "notebooks" / "labextensions" / "kernel-ladder"


# Run without any package, so it can begin before the first is there.
SIMULATOR = "import helpers; from kernel_xray.runtime import libsimt; libsimt.runtime_library()"
# With PyTorch, so that the first kernel and the first check wait for neither.
SHARED = (
    "from kernel_xray.build import flags; from kernel_xray.runtime import precompiled; "
    "precompiled.with_library(flags.of_kernels(traced=True))"
)


class SetUpError(Exception):
    """What went wrong and how to fix it, for the person at the terminal."""


def say(step: str) -> None:
    print(f"set-up: {step}", flush=True)


def fingerprint(root: Path = ROOT) -> str:
    """A hash of the files that decide which packages are installed."""
    return hashlib.sha256(b"\0".join((root / name).read_bytes() for name in SOURCES)).hexdigest()


def has_gpu() -> bool:
    """Whether an NVIDIA driver answers and lists a GPU."""
    command = shutil.which("nvidia-smi")
    if not command:
        return False
    try:
        listed = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU " in listed.stdout


def has_nvcc() -> bool:
    """Whether a CUDA compiler is installed on this machine."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    return bool(shutil.which("nvcc")) or any(home and os.access(Path(home, "bin", "nvcc"), os.X_OK) for home in homes)


def wanted_extras(lessons_only: bool = False) -> list[str]:
    """The extras of pyproject.toml that this machine needs. lessons_only: without the tools of `make test`."""
    tools = [] if lessons_only else ["dev"]
    return ["cuda", *tools] if sys.platform == "linux" and has_gpu() and not has_nvcc() else tools


def read_stamp(venv: Path) -> dict:
    try:
        return json.loads((venv / STAMP).read_text())
    except (OSError, ValueError):
        return {}


def usable(venv: Path, only_this_python: bool) -> bool:
    """Whether the environment exists, has pip, was not moved and, if `only_this_python`, has this Python's version."""
    python = venv / "bin" / "python"
    if not python.exists():
        return False
    made_in = read_stamp(venv).get("venv")
    if made_in is not None and made_in != str(venv):
        return False  # the folder was moved, so the paths inside the environment are wrong
    probe = "import pip, sys; print('%d.%d' % sys.version_info[:2])"
    answer = subprocess.run([python, "-I", "-c", probe], capture_output=True, text=True)
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return answer.returncode == 0 and (not only_this_python or answer.stdout.strip() == here)


def pip_reaches_other_environments() -> bool:
    """Whether this Python has a pip with the option --python, of 22.3 (https://pip.pypa.io, read in November 2026)."""
    from importlib import metadata  # 30 ms, which a `make` with nothing to set up does without

    try:
        return tuple(map(int, metadata.version("pip").split(".")[:2])) >= (22, 3)
    except (metadata.PackageNotFoundError, ValueError):
        return False


def make_venv(venv: Path) -> None:
    """An environment without pip where another installs the first package: ensurepip takes nine seconds longer."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    bare = pip_reaches_other_environments()
    if any(importlib.util.find_spec(module) is None for module in ("venv", *([] if bare else ["ensurepip"]))):
        raise SetUpError(
            f"Python {version} ({sys.executable}) has no venv module. On Debian and Ubuntu install it with\n"
            f"    sudo apt install python{version}-venv\n"
            "or name another Python: make setup PYTHON=/path/to/python3"
        )
    say(f"making {venv.name} with Python {sys.version.split()[0]}")
    command = [sys.executable, "-I", "-m", "venv", "--clear", *(["--without-pip"] if bare else []), str(venv)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise SetUpError(f"Python {version} could not make {venv}:\n{(made.stdout + made.stderr).strip()}")


def pip_of(venv: Path) -> list[str]:
    """The command of the environment's pip, or of the one that installs into it: see make_venv."""
    python = str(venv / "bin" / "python")
    own = subprocess.run([python, "-I", "-c", "import pip"], capture_output=True).returncode == 0
    return [python, "-m", "pip"] if own else [sys.executable, "-m", "pip", "--python", python]


def pip_settings(pip: list[str]) -> dict[str, str]:
    """pip's configuration, from its files and the environment: option -> value."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout
    found = re.findall(r"^(global|install|:env:)\.([\w-]+)=(['\"].*)$", listed, re.MULTILINE)
    weight = ("global", "install", ":env:").index  # a later one wins
    return {option: str(ast.literal_eval(value)) for _, option, value in sorted(found, key=lambda f: weight(f[0]))}


def for_uv(settings: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment with which uv finds packages where pip would: indexes, folders, hosts, certificates.

    uv reads none of pip's configuration, and its own lock file records the URLs of one index: both would fail behind a
    mirror, with --find-links, or offline. Since 24.2, pip trusts the machine's own certificates as well, among which a
    company's proxy has its own; uv does so only when told.

    Unlike pip, uv takes a package from the first index that has its name. So --index-url comes first, and another index
    only adds packages that it lacks. PyTorch's own indexes have copies of many packages: there, uv sees torch alone.
    https://docs.astral.sh/uv/concepts/indexes/#searching-across-multiple-indexes (read in November 2026)
    """
    named = [settings.get("index-url", PYPI), *settings.get("extra-index-url", "").split()]
    indexes = [url for url in named if not is_pytorch(url)] or [PYPI]
    pages = [url.rstrip("/") + "/torch/" for url in named if is_pytorch(url)]
    arguments = [argument for url in indexes[:-1] for argument in ("--index", url)]
    arguments += ["--default-index", indexes[-1]]  # of the lowest priority
    for option, values in (
        ("--find-links", [*settings.get("find-links", "").split(), *pages]),
        ("--allow-insecure-host", settings.get("trusted-host", "").split()),
    ):
        arguments += [argument for value in values for argument in (option, value)]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        arguments.append("--no-index")
    environment = {"UV_HTTP_TIMEOUT": settings.get("timeout", "180")}
    if has_certificates():
        environment["UV_SYSTEM_CERTS"] = "true"
    for option, name in (("cert", "SSL_CERT_FILE"), ("client-cert", "SSL_CLIENT_CERT"), ("proxy", "ALL_PROXY")):
        if option in settings:
            environment[name] = settings[option]
    return arguments, environment


def has_certificates() -> bool:
    """Whether this machine has certificates that uv can use in place of its own: with none, uv would not start."""
    if sys.platform == "darwin":
        return True
    try:
        import ssl
    except ImportError:  # a Python that was built without it
        return False
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())))


def cpu_build(settings: dict[str, str], extras: list[str]) -> bool:
    """Whether torch comes from PyTorch's own index of CPU builds: PyPI has only those with gigabytes of CUDA for Linux.

    It does on Linux without an NVIDIA GPU, where hashes/ lists the build, unless pip is told where to find packages or
    an extra asks for CUDA.
    """
    told = {"index-url", "extra-index-url", "find-links", "no-index"} & set(settings)
    listed = (3, 11) <= sys.version_info[:2] <= (3, 14)
    return sys.platform == "linux" and listed and not told and "cuda" not in extras and not has_gpu()


def is_pytorch(url: str) -> bool:
    return (urlsplit(url).hostname or "").endswith("pytorch.org")


def with_hashes(pins: str, root: Path = ROOT) -> str:
    """`pins`, lines such as "torch==2.13.0", each followed by the SHA-256 of every file that it may be installed from.

    Raises SetUpError for a package without a hash in hashes/.
    """
    listed = "".join((root / name).read_text() for name in HASHES)
    known = dict(re.findall(r"^(\S+==\S+)[^\\\n]*((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", listed, re.MULTILINE))
    if unknown := [pin for pin in pins.split() if pin not in known]:
        raise SetUpError(
            f"hashes/ lists no hash for {', '.join(unknown)}, so nothing shows that its file is the right one.\n"
            "After a change of the constraints run: make lock. A build of torch that is not from PyPI is listed in "
            f"{HASHES[1]}; without pip's find-links and extra-index-url, set-up takes PyPI's"
        )
    return "".join(f"{pin}{known[pin]}\n" for pin in pins.split())


def install(venv: Path, extras: list[str]) -> None:
    """Installs the packages of `extras` with uv: seconds, where pip takes minutes. Course and instrument are editable.

    uv first chooses versions for this machine. Then exactly these are installed, from files whose hashes are listed,
    and from wheels only: building a source distribution would run what its build requires, unchecked.
    """
    start = time.monotonic()
    python, chosen, log = str(venv / "bin" / "python"), venv / LIST, venv / LOG
    wheels = ["--only-binary", ":all:"]
    checked = ["install", "--require-hashes", "--no-deps", *wheels, "-r", str(chosen)]
    chosen.write_text(with_hashes(re.findall(r"^uv==\S+", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[0]))
    pip = pip_of(venv)
    run([*pip, "--disable-pip-version-check", *checked], log)
    chosen.unlink()
    settings = pip_settings(pip)
    if cpu_build(settings, extras):
        say("no NVIDIA GPU here, so PyTorch's CPU build (PIP_INDEX_URL=https://pypi.org/simple takes the CUDA build)")
        settings["extra-index-url"] = PYTORCH_CPU
    where, environment = for_uv(settings)
    uv, place = [python, "-m", "uv", "pip"], ["--python", python]
    plain = ["--quiet", "--no-header", "--no-annotate", "-c", "constraints.txt", "-o", str(chosen)]
    wanted = [argument for extra in extras for argument in ("--extra", extra)]
    run([*uv, "compile", *place, *where, *wheels, *plain, *wanted, "pyproject.toml"], log, environment)
    chosen.write_text(with_hashes(chosen.read_text()))
    say(f"downloading and installing {len(re.findall('^[^ ]', chosen.read_text(), re.MULTILINE))} packages")
    run([*uv, *checked, *place, *where], log, environment)
    run(
        [*uv, "install", *place, "--no-deps", "--no-build-isolation", "-e", ".", "-e", "./kernel_xray"],
        log,
        environment,
    )
    say(f"packages installed in {time.monotonic() - start:.0f} s")


def in_the_making(*command: str | Path) -> subprocess.Popen:
    """Builds what all kernels share. Where it fails, such as for want of a compiler, the first kernel says why."""
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, stdin=nothing, stdout=nothing, stderr=nothing)


def run(command: list[str], log_path: Path, environment: dict[str, str] | None = None) -> None:
    """Runs an installer; shows a line of progress on a terminal, elsewhere large downloads; adds all output to a log.

    Raises SetUpError with the end of the output.
    """
    terminal = sys.stdout.isatty()
    lines: list[str] = []
    with (
        log_path.open("a") as log,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
        ) as installer,
    ):
        assert installer.stdout is not None
        for line in installer.stdout:
            log.write(line)
            lines.append(line.rstrip())
            if terminal and re.match(r"(Collecting|Downloading|Installing|Resolved|Prepared)\b", line.strip()):
                width = shutil.get_terminal_size().columns - 1
                print("\r" + f"set-up: {line.strip()}"[:width].ljust(width), end="", flush=True)
            elif not terminal and re.match(r"\s*Downloading \S+ \(", line):
                say(line.strip())
    if terminal:
        print("\r" + " " * (shutil.get_terminal_size().columns - 1), end="\r")
    if installer.returncode:
        said = "\n".join(lines[-15:]) or "(it said nothing)"
        raise SetUpError(f"{command[2]} could not install the packages. The end of {log_path}:\n{said}")


def set_up(venv: Path, only_this_python: bool = False, further: Iterable[str] = (), lessons_only: bool = False) -> None:
    """Brings `venv` to the state that pyproject.toml and constraints.txt describe; does only what is still missing.

    only_this_python: replace an environment that has another version of Python.
    further: extras of pyproject.toml besides those that this machine needs; they stay installed from then on.
    lessons_only: leave out the tools of `make test`.
    """
    if re.search(r"\s", str(venv)):
        raise SetUpError(
            f"the path {str(venv)!r} contains a space, and PyTorch's extension builder cannot link from such a path.\n"
            "Move the course, or put the environment elsewhere, with every command: make setup VENV=/path/without/space"
        )
    stamp, extras = read_stamp(venv), [*wanted_extras(lessons_only), *further]
    ready = usable(venv, only_this_python)
    if ready and (owner := stamp.get("root", str(ROOT))) != str(ROOT):
        say(f"{venv} was set up in {owner}: a notebook or command that make did not start uses the helpers of {owner}")
    if ready and stamp.get("sources") == fingerprint() and set(extras) <= set(stamp["extras"]):
        return
    with in_the_making(sys.executable, "-S", "-c", SIMULATOR) as simulator:  # while the download leaves the cores idle
        try:
            if not ready:
                make_venv(venv)
            extras = sorted({*extras, *(stamp.get("extras", []) if ready else [])})
            say(f"installing the packages [{', '.join(extras) or 'of the lessons'}] (takes minutes, once)")
            for name in (STAMP, LOG):
                (venv / name).unlink(missing_ok=True)
            install(venv, extras)
        except SetUpError:
            simulator.kill()
            raise
        say("building what all kernels share, once")
        in_the_making(venv / "bin" / "python", "-c", SHARED).wait()
    (venv / IPYTHON).parent.mkdir(parents=True, exist_ok=True)
    (venv / IPYTHON).write_text(EXTENSION)
    shutil.copytree(LABEXTENSION, venv / "share" / "jupyter" / "labextensions" / LABEXTENSION.name, dirs_exist_ok=True)
    if "cuda" in extras and not list(venv.glob("lib/python3*/site-packages/nvidia/cu*/bin/nvcc")):
        raise SetUpError(f"NVIDIA's compiler wheels were installed, but there is no nvcc in {venv}; see {venv / LOG}.")
    if not (shutil.which("g++") or shutil.which("clang++") or os.environ.get("CXX")):
        say("no C++ compiler found; install g++ or clang++ (Debian: apt install g++, macOS: xcode-select --install)")
    written = {"sources": fingerprint(), "extras": extras, "venv": str(venv), "root": str(ROOT)}
    (venv / STAMP).write_text(json.dumps(written) + "\n")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="set_up.py", description="Make the virtual environment of the course.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help="where it is made (default: %(default)s)")
    parser.add_argument("--only-this-python", action="store_true", help="replace one made from another Python version")
    parser.add_argument("--extra", action="append", default=[], metavar="NAME", help="also an extra of pyproject.toml")
    parser.add_argument("--lessons-only", action="store_true", help="leave out the tools of `make test`")
    options = parser.parse_args(arguments)
    try:
        set_up(options.venv.absolute(), options.only_this_python, options.extra, options.lessons_only)
    except SetUpError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
