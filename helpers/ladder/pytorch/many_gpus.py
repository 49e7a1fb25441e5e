"""A gated MLP that uses the course's operator, on several devices in three ways, each compared with one process.

    torchrun --standalone --nproc-per-node 2 -m helpers.ladder.pytorch.many_gpus

  ddp              every process holds the whole model and works on its part of the batch; gradients are averaged
  fsdp             the same, but each process stores only its part of every parameter and gathers a layer when needed
  tensor_parallel  every process sees the whole batch and works on its part of the hidden columns

If each process has a GPU, they communicate through NCCL; otherwise through gloo, with the kernels in the simulator.
The first process prints a line of JSON for each way. All is float64, so that a difference is a mistake, not rounding.
"""

import argparse
import copy
import gc
import json
import os
import sys
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from helpers.ladder.pytorch import operators
from helpers.ladder.pytorch.processes import call
from helpers.ladder.pytorch.sharding import each_line, elementwise_rule, product_of_sums, register, wrong_rule
from kernel_xray.machine import toolchain

Gradients = dict[str, torch.Tensor]


class GatedMLP(torch.nn.Module):
    """x: [rows, width] -> [rows, width]; sigmoid(gate(x)) * up(x) in between, by elementwise_mult."""

    def __init__(self, width: int, hidden: int, dtype: torch.dtype = torch.float64):
        super().__init__()
        self.gate = torch.nn.Linear(width, hidden, bias=False, dtype=dtype, device=toolchain.device)
        self.up = torch.nn.Linear(width, hidden, bias=False, dtype=dtype, device=toolchain.device)
        self.down = torch.nn.Linear(hidden, width, bias=False, dtype=dtype, device=toolchain.device)
        self.mult = operators.elementwise_mult()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.mult(torch.sigmoid(self.gate(x)), self.up(x)))


def step(model: torch.nn.Module, x: torch.Tensor) -> None:
    """Forward and backward of a mean over x's rows, so that the gradient is the mean of equal parts' gradients."""
    model(x).pow(2).mean().backward()


# ----------------------------------------------------------------------------------------------------------------------
# The ways: each turns a model of one process into a distributed one


def ddp(model: GatedMLP, mesh: DeviceMesh) -> torch.nn.Module:
    return DistributedDataParallel(model)


def fsdp(model: GatedMLP, mesh: DeviceMesh) -> torch.nn.Module:
    for layer in (model.gate, model.up, model.down, model):  # in place; the whole model last
        fully_shard(layer, mesh=mesh)
    return model


def tensor_parallel(model: GatedMLP, mesh: DeviceMesh) -> torch.nn.Module:
    by_column = ColwiseParallel(use_local_output=False)  # the operator receives DTensors
    return parallelize_module(model, mesh, {"gate": by_column, "up": by_column, "down": RowwiseParallel()})


WAYS: dict[str, Callable[[GatedMLP, DeviceMesh], torch.nn.Module]] = {
    way.__name__: way for way in (ddp, fsdp, tensor_parallel)
}


def part_of(x: torch.Tensor, way: str, mesh: DeviceMesh) -> torch.Tensor:
    """The rows that this process works on: all of them if it shares the columns."""
    return x if way == "tensor_parallel" else x.chunk(mesh.size())[mesh.get_rank()]


def gradients(model: torch.nn.Module) -> Gradients:
    """Whole gradients, also of sharded parameters."""
    found = {name.removeprefix("module."): p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {name: g.full_tensor() if isinstance(g, DTensor) else g for name, g in found.items()}


def held(model: torch.nn.Module) -> int:
    """How many elements of the parameters this process holds."""
    return sum((p.to_local() if isinstance(p, DTensor) else p).numel() for p in model.parameters())


def compare(way: str, mesh: DeviceMesh, rows: int = 24, width: int = 8, hidden: int = 48) -> dict:
    """Compares the gradients of one step with those of a single process; counts the elements that a process holds."""
    torch.manual_seed(0)
    alone = GatedMLP(width, hidden)
    x = torch.randn(rows, width, dtype=torch.float64, device=toolchain.device)
    model = WAYS[way](copy.deepcopy(alone), mesh)
    step(alone, x)
    step(model, part_of(x, way, mesh))
    want, got = gradients(alone), gradients(model)
    return {
        "way": way,
        "largest_difference": max((got[name] - want[name]).abs().max().item() for name in want),
        "largest_gradient": max(g.abs().max().item() for g in want.values()),
        "held": held(model),
        "all": held(alone),
    }


# ----------------------------------------------------------------------------------------------------------------------
# Processes


def launch(processes: int, *arguments: str) -> list[dict]:
    """Runs this module in several processes, as torchrun does, and returns the lines that it would print.

    Raises RuntimeError with the processes' messages if they fail.
    """
    return call(lines, processes, arguments)


def join() -> DeviceMesh:
    """Joins the processes that torchrun started. On GPUs, this process uses the one with its local rank."""
    if toolchain.target == "gpu":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if toolchain.target == "gpu" else "gloo")
    return init_device_mesh(toolchain.device.type, (dist.get_world_size(),))


def lines(arguments: Sequence[str]) -> list[dict]:
    """Runs in each of the processes: compares the ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", help=f"of {', '.join(WAYS)}; none: all")
    parser.add_argument(
        "--rule", choices=["right", "wrong", "none"], default="right", help="how DTensor may shard the operator"
    )
    options = parser.parse_args(arguments)
    mesh = join()
    try:
        if options.rule != "none":
            register(wrong_rule if options.rule == "wrong" else elementwise_rule)
        found = [compare(way, mesh) for way in options.ways or WAYS]
        if options.rule != "none":
            found += [each_line(mesh), product_of_sums(mesh)]
        return [{**line, "processes": mesh.size(), "backend": dist.get_backend()} for line in found]
    finally:
        leave()


def main(arguments: Sequence[str]) -> int:
    """Prints the lines in the first process. The exit status is 0: the reader judges."""
    found = lines(arguments)
    for line in found if os.environ["RANK"] == "0" else []:
        print(json.dumps(line), flush=True)
    return 0


def leave() -> None:
    """Leaves the group when all processes are done, after freeing what refers to it: gloo's threads must end first."""
    gc.collect()
    if sys.exc_info()[0] is None:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
