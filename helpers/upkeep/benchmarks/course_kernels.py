"""Kernels of the course in the simulator of this checkout, or of an older one.

The text is a program for an interpreter of its own. It prints a JSON object, from a kernel and its size to the
processor time of the fastest of many runs on one core, in milliseconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

_CODE = """
import json, time
def fastest(run):
    times, end = [], time.perf_counter() + 2
    while len(times) < 5 or time.perf_counter() < end:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1e3
import torch, helpers
from pathlib import Path
torch.set_num_threads(1)
folder = Path(helpers.__file__).parent.parent / "kernels"
def load(name): return helpers.load("bench_" + Path(name).stem, [str(folder / name)], is_python_module=False)
add, softmax, naive = load("vector_add.cu"), load("softmax.cu"), load("matmul/01_naive.cu")
times = {}
for n in (2**20, 2**22):
    a, b = torch.randn(2, n)
    for variant in ("vector_add_simple", "vector_add"):
        times[f"{variant} {n}"] = fastest(lambda: getattr(add, variant)(a, b))
for rows, columns in ((70, 1000), (512, 4096)):
    x = torch.randn(rows, columns)
    times[f"softmax {rows}x{columns}"] = fastest(lambda: softmax.softmax(x))
a, b = torch.randn(2, 256, 256)
times["matmul_naive 256"] = fastest(lambda: naive.matmul_naive(a, b))
print(json.dumps(times))
"""


def times(root: Path) -> dict[str, float]:
    """The times of the simulator of the checkout at `root`: kernel and size -> milliseconds. Raises OSError."""
    if not (root / "kernel_xray").is_dir():
        raise OSError(f"{root} is not a checkout of this project: it has no kernel_xray")
    variables = {"KERNEL_XRAY_THREADS": "1", "KERNEL_LADDER_TARGET": "simulator", "PYTHONPATH": str(root)}
    call = [sys.executable, "-c", _CODE]
    done = subprocess.run(call, env=os.environ | variables, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)
