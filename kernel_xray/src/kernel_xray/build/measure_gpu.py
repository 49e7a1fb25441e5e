"""`kernel-xray measure-gpu`: measures what this machine's GPU can do, by micro-kernels, and writes its model.

The model is a file as those of report/gpus/, for `--gpu FILE`. Data sheets do not say how long a launch or a load takes
at least, and promise a bandwidth that no kernel reaches: these figures are measured. What a micro-kernel may miss by a
little is taken from the data sheet, if the GPU is known.
"""

import argparse
import datetime
import sys
from collections.abc import Mapping
from pathlib import Path

from kernel_xray.build.programs import program
from kernel_xray.machine import toolchain
from kernel_xray.report import gpu_models
from kernel_xray.translate.errors import BuildError

_KERNELS = Path(__file__).with_suffix(".cu")
_SECONDS = 180.0  # until the program is given up; it takes some 10 on an H200
# A micro-kernel is as fast as the hardware allows: these are measured even of a GPU that is known.
MEASURED = (
    *("dram_bytes_per_second", "l2_bytes_per_second", "launch_seconds", "blocks_per_second"),
    *("latency.l1", "latency.l2", "latency.dram"),
)
_TOLD = ("sms", "clock_hz", "l2_bytes")  # by the driver
_COMPARED = ("flops.float32", "flops.float64")  # written only if the GPU is not known
_Figures = Mapping[str, tuple[float, str]]  # by name, such as "flops.float32": value and source


def main(arguments: list[str], prog: str = "kernel-xray measure-gpu") -> int:
    """Returns 0, 1 if the micro-kernels failed, 2 if there is no GPU."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__.partition(": ")[2])
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE", help="by default NAME.toml in this folder")
    options = parser.parse_args(arguments)
    if toolchain.of_programs() != "gpu":
        print(f"{prog}: kernels run in the simulator here; run it where nvcc and a GPU are", file=sys.stderr)
        return 2
    try:
        done = program(_KERNELS, timeout=_SECONDS)
    except (BuildError, OSError) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 1
    if done.status != 0:
        print(f"{prog}: the micro-kernels failed: {done.stderr or done}", file=sys.stderr)
        return 1
    return _write(done.stdout, options.output)


def _write(output: str, path: Path | None) -> int:
    found = read(output)
    model = gpu_models.known_like(found["name"])
    figures, sheet = model_of(found), gpu_models.figures(model) if model else {}
    path = path or Path(f"{gpu_models.stem(found['name'])}.toml")
    path.write_text(as_toml(found["name"], found["capability"], figures), encoding="utf-8")
    gpu_models.read(path)  # is complete
    print(f"{'':24}{'measured':>12}{'data sheet':>12}")
    for name in (*_TOLD, *MEASURED, *_COMPARED):
        other = f"{sheet[name][0]:>12.4g}" if name in sheet else ""
        print(f"{name:24}{float(found[name]):>12.4g}{other}")
    print(f"wrote {path}; --gpu {path} and report.limits({str(path)!r}) take it")
    return 0


def read(output: str) -> dict[str, str]:
    """The lines of the micro-kernels, `NAME VALUE`. ValueError if a figure is missing or not greater than 0."""
    found = dict(line.split(" ", 1) for line in output.splitlines() if " " in line)
    for name in (*_TOLD, *MEASURED, *_COMPARED):
        if not float(found.get(name, 0)) > 0:
            raise ValueError(f"the micro-kernels gave {name} as {found.get(name)}; it must be greater than 0")
    return found


def model_of(found: Mapping[str, str], day: datetime.date | None = None) -> _Figures:
    """All figures of a GPU's model: those that were measured, and those of the file in report/gpus/ if there is one."""
    known = gpu_models.known_like(found["name"])
    versions = f"driver {found['driver']}, CUDA {found['runtime']}"
    on = f"on an {found['name']}, {versions}, {day or datetime.date.today()}"
    measured = {name: (float(found[name]), f"measured by kernel-xray measure-gpu {on}") for name in MEASURED}
    measured |= {name: (float(found[name]), f"told by the driver {on}") for name in _TOLD}
    if known:
        return gpu_models.figures(known) | measured
    return measured | {name: (float(found[name]), f"measured by kernel-xray measure-gpu {on}") for name in _COMPARED}


def as_toml(name: str, capability: str, figures: _Figures) -> str:
    """The text of a model's file."""
    whole = {"sms", "l2_bytes"}
    parts = [f'# {name}: what its units can do at most. Each figure has its source.\nname = "{name}"']
    parts[0] += f'\ncapability = "{capability}"\n'
    for key, (value, source) in figures.items():
        number = f"{value:.0f}" if key in whole else f"{value:.6g}"
        parts.append(f'[{key}]\nvalue = {number}\nsource = "{source}"\n')
    return "\n".join(parts)
