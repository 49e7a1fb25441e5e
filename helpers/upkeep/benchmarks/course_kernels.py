"""Kernels of the course in the simulator, in an older checkout of it, and written in OpenCL for PoCL.

Each text is a program for an interpreter of its own. It prints a JSON object, from a kernel and its size to the
processor time of the fastest of many runs on one core, in milliseconds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

_FASTEST = """
import json, time
def fastest(run):
    times, end = [], time.perf_counter() + 2
    while len(times) < 5 or time.perf_counter() < end:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1e3
"""

_OURS = """
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

_OPENCL = '''
import numpy as np, pyopencl as cl
device = next(d for p in cl.get_platforms() if "Portable" in p.name for d in p.get_devices())
context = cl.Context([device])
queue = cl.CommandQueue(context)
program = cl.Program(context, """
#pragma OPENCL FP_CONTRACT OFF
kernel void add(global const float* a, global const float* b, global float* out, long n) {
  long i = get_global_id(0);
  if (i < n) out[i] = a[i] + b[i];
}
kernel void matmul(global const float* a, global const float* b, global float* c, long n) {
  long row = get_global_id(0), column = get_global_id(1);
  if (row >= n || column >= n) return;
  float sum = 0;
  for (long i = 0; i < n; ++i) sum += a[row * n + i] * b[i * n + column];
  c[row * n + column] = sum;
}
#define OVER_ROW(value, combine)                                    \\\\
  part[t] = value;                                                  \\\\
  barrier(CLK_LOCAL_MEM_FENCE);                                     \\\\
  for (int k = 128; k > 0; k /= 2) {                                \\\\
    if (t < k) part[t] = combine(part[t], part[t + k]);             \\\\
    barrier(CLK_LOCAL_MEM_FENCE);                                   \\\\
  }                                                                 \\\\
  value = part[0];                                                  \\\\
  barrier(CLK_LOCAL_MEM_FENCE);
#define SUM(a, b) ((a) + (b))
kernel void softmax(global const float* x, global float* out, long columns) {
  local float part[256];
  long t = get_local_id(0), first = get_group_id(0) * columns;
  float largest = -INFINITY, sum = 0;
  for (long i = t; i < columns; i += 256) largest = fmax(largest, x[first + i]);
  OVER_ROW(largest, fmax)
  for (long i = t; i < columns; i += 256) sum += exp(x[first + i] - largest);
  OVER_ROW(sum, SUM)
  for (long i = t; i < columns; i += 256) out[first + i] = exp(x[first + i] - largest) / sum;
}""").build()

def buffer(values):
    return cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR, hostbuf=values)

def timed(name, threads, group, values, count):
    kernel = cl.Kernel(program, name)
    arguments = [*map(buffer, values), np.int64(count)]
    return fastest(lambda: (kernel(queue, threads, group, *arguments), queue.finish()))

def random(n): return np.random.randn(n).astype(np.float32)
times = {}
for n in (2**20, 2**22):
    a, b, out = random(n), random(n), random(n)
    times[f"vector_add_simple {n}"] = timed("add", (n,), (256,), (a, b, out), n)
for rows, columns in ((70, 1000), (512, 4096)):
    x, out = random(rows * columns), random(rows * columns)
    times[f"softmax {rows}x{columns}"] = timed("softmax", (rows * 256,), (256,), (x, out), columns)
    reference = np.exp(x.reshape(rows, -1) - x.reshape(rows, -1).max(1, keepdims=True))
    assert np.allclose(out.reshape(rows, -1), reference / reference.sum(1, keepdims=True), atol=1e-6)
a, b, c = random(256**2), random(256**2), random(256**2)
times["matmul_naive 256"] = timed("matmul", (256, 256), (32, 8), (a, b, c), 256)
assert np.allclose(c.reshape(256, 256), a.reshape(256, 256) @ b.reshape(256, 256), atol=1e-3)
print(json.dumps(times))
'''


def ours(root: Path) -> dict[str, float]:
    """The times of the simulator of the checkout at `root`: kernel and size -> milliseconds. Raises OSError."""
    if not (root / "kernel_xray").is_dir():
        raise OSError(f"{root} is not a checkout of this project: it has no kernel_xray")
    variables = {"KERNEL_XRAY_THREADS": "1", "KERNEL_LADDER_TARGET": "simulator", "PYTHONPATH": str(root)}
    return _printed(sys.executable, _FASTEST + _OURS, variables, root)


def pocl(interpreter: str) -> dict[str, float]:
    """The times of PoCL, which `interpreter` has with pyopencl: kernel and size -> milliseconds."""
    return _printed(interpreter, _FASTEST + _OPENCL, {"POCL_MAX_PTHREAD_COUNT": "1"}, None)


def _printed(interpreter: str, code: str, variables: dict[str, str], folder: Path | None) -> dict[str, float]:
    done = subprocess.run(
        [interpreter, "-c", code], env=os.environ | variables, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return {name: float(time) for name, time in json.loads(done.stdout).items()}
