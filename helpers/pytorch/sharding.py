"""How DTensor may divide an elementwise operator: the rule, a wrong one, and what tells them apart.

A DTensor is a tensor that lies in parts on several processes. Its placement is Shard(dim), a part of each; Replicate(),
the whole in each; or Partial(), a sum over the processes that has not been added up.
"""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import register_sharding

from helpers.machine import toolchain
from helpers.pytorch import operators


def elementwise_rule(a, b):
    """How elementwise_mult may work on parts: (placements of the results, placements of the arguments)."""
    keep = [([Shard(i)], [Shard(i), Shard(i)]) for i in range(a.ndim)]  # the same part of both
    # A sum over processes may wait until after a product with what all have: (p + q) * b = p * b + q * b.
    wait = [([Partial()], [Partial(), Replicate()]), ([Partial()], [Replicate(), Partial()])]
    return [([Replicate()], [Replicate(), Replicate()]), *keep, *wait]


def wrong_rule(a, b):
    """As elementwise_rule, but (p + q) * (r + s) is taken for p * r + q * s."""
    return [*elementwise_rule(a, b), ([Partial()], [Partial(), Partial()])]


def register(rule=elementwise_rule) -> None:
    """Tells DTensor the rule of elementwise_mult; once in a process."""
    register_sharding(operators.elementwise_mult())(rule)


def product_of_sums(mesh: DeviceMesh) -> dict:
    """Two tensors that are sums over the processes, multiplied: right only if the rule adds them up before."""
    local = torch.full((3, 4), 1.0 + mesh.get_rank(), dtype=torch.float64, device=toolchain.device)
    a = DTensor.from_local(local, mesh, [Partial()])
    got = operators.elementwise_mult()(a, a).full_tensor()
    return {"way": "product of sums", "got": got[0, 0].item(), "want": a.full_tensor()[0, 0].item() ** 2}


def each_line(mesh: DeviceMesh) -> dict:
    """For each line of elementwise_rule, whether the results are placed as it says, and their largest difference."""
    torch.manual_seed(0)
    a, b = torch.randn(2, 6, 8, dtype=torch.float64).to(toolchain.device).unbind(0)

    def placed(x: torch.Tensor, placement: Placement) -> DTensor:
        if placement.is_partial():  # weights that add up to 1
            total = mesh.size() * (mesh.size() + 1) / 2
            return DTensor.from_local(x * ((mesh.get_rank() + 1) / total), mesh, [placement])
        return distribute_tensor(x, mesh, [placement])

    lines = []
    for results, arguments in elementwise_rule(a, b):
        inputs = [placed(x, placement) for x, placement in zip((a, b), arguments, strict=True)]
        got = operators.elementwise_mult()(*inputs)
        difference = (got.full_tensor() - a * b).abs().max().item()
        lines.append({"placed": list(got.placements) == results, "largest_difference": difference})
    return {"way": "each line", "lines": lines}
