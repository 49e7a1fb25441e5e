"""The limits of a launch as such: its start, the start of its blocks, and the waves in which they run.

Only for a GPU on which these times were measured (build/measure_gpu.py).

Launch: an empty kernel takes as long, and blocks begin at most so many a second.
Waves: an SM holds a number of blocks at a time, by their threads, shared memory and, where `report.occupancy` has asked
nvcc, registers. Some place for a block is used by as many blocks as there are waves, one after the other, and a block
takes as long as one load at least: from DRAM, if all read memory that no other block reads and the L2 cache is cold.
"""

from kernel_xray.report.facts import Facts, Launch
from kernel_xray.report.gpu_models import GPU
from kernel_xray.report.limits_share import has_its_grid, of_sample, scale
from kernel_xray.report.limits_table import Limit
from kernel_xray.report.resident_warps import SMS, occupancy
from kernel_xray.report.text import count_text

_OTHER_GRID = "the function may launch another number of blocks there"


def launching(launch: Launch, gpu: GPU, report: Facts, warm: bool) -> list[Limit]:
    """The limits by the start of a launch and by its waves, as far as the GPU has figures. warm: the L2 cache is."""
    found = []
    if gpu.launch_seconds:
        blocks = launch.blocks / gpu.blocks_per_second if gpu.blocks_per_second else 0.0
        work = count_text(launch.blocks, "block")
        found.append(Limit("launch", max(gpu.launch_seconds, blocks), work, _why_an_estimate(launch, gpu)))
    level = _first_load(launch, warm)
    if level in gpu.latency and gpu.capability in SMS:
        held = max(1, _resident(launch, gpu, report))
        waves = -(-launch.blocks // (gpu.sms * held))
        work = f"{count_text(waves, 'wave')} of {count_text(held, 'block')} an SM, a load from {_NAMES[level]} each"
        found.append(
            Limit("waves", waves * gpu.latency[level], work, of_sample(launch) or _why_an_estimate(launch, gpu))
        )
    return found


_NAMES = {"l1": "the L1 cache", "dram": "DRAM"}


def _why_an_estimate(launch: Launch, gpu: GPU) -> str:
    return "" if has_its_grid(launch, gpu) else _OTHER_GRID


def _first_load(launch: Launch, warm: bool) -> str:
    """From where each block's first load can come at best; empty if some block may load nothing."""
    if not (launch.even and launch.loading):
        return ""
    disjoint = launch.sectors_read * scale(launch) <= launch.sectors_readable
    return "dram" if not warm and launch.least_read and disjoint else "l1"


def _resident(launch: Launch, gpu: GPU, report: Facts) -> int:
    """How many blocks an SM holds at most."""
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    for known in report.occupancies:
        if (known.kernel, known.threads, known.capability) == (launch.kernel, threads, gpu.capability):
            return known.blocks
    return occupancy(threads, 1, launch.shared_static + launch.shared_dynamic, gpu.capability).blocks
