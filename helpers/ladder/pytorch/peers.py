"""An all-reduce in one kernel of ours: it reads the buffers of all processes through symmetric memory.

PyTorch's symmetric memory allocates a buffer of the same size in each process and maps all of them into each. That
needs GPUs that can read each other's memory; `sum_of` runs the same kernel on buffers of one process, on any machine.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from helpers.ladder.catalogue.extensions import extension


def kernel() -> torch._ops.OpOverload:
    """sum_of_peers(mine, addresses), built at the first call."""
    return extension("sum_of_peers", ("sum_of_peers.cu",)).sum_of_peers.default


def sum_of(parts: torch.Tensor) -> torch.Tensor:
    """The sum over the rows of `parts`, [ranks, n] float32: each row stands for the buffer of a process."""
    addresses = [part.data_ptr() for part in parts]
    return kernel()(parts[0], torch.tensor(addresses, device=parts.device))


def all_reduce(mine: torch.Tensor) -> torch.Tensor:
    """The sum of `mine`, float32 on this process's GPU, over all processes of the default group.

    Raises RuntimeError if the GPUs cannot read each other's memory.
    """
    import torch.distributed._symmetric_memory as symmetric

    buffer = symmetric.empty(mine.shape, dtype=mine.dtype, device=mine.device)
    handle = symmetric.rendezvous(buffer, dist.group.WORLD)
    buffer.copy_(mine)
    handle.barrier()  # on the stream: every process has written its buffer
    out = kernel()(buffer, torch.tensor(handle.buffer_ptrs, device=mine.device))
    handle.barrier()  # every process has read: the buffers may go
    return out


def compare(arguments: Sequence[str] = ()) -> dict:
    """Runs in each of several processes with a GPU each: the largest difference from NCCL's all-reduce, in this one."""
    from helpers.ladder.pytorch import many_gpus  # a second of imports, which only these processes need

    many_gpus.join()
    try:
        torch.manual_seed(dist.get_rank())
        mine = torch.randn(100_000, device="cuda")
        got, want = all_reduce(mine), mine.clone()
        dist.all_reduce(want)
        return {"largest_difference": (got - want).abs().max().item(), "processes": dist.get_world_size()}
    finally:
        many_gpus.leave()
