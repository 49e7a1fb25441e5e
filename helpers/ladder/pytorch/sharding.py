"""How DTensor may divide an elementwise operator: the rule, a wrong rule, and runs that distinguish them.

A DTensor is spread over several processes. Its placement is Shard(dim): each process holds a part; Replicate(): each
holds the whole; or Partial(): each holds a term of a sum that has not been added up.
"""

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import register_sharding

from helpers.ladder.pytorch import operators
from kernel_xray.machine import toolchain


def elementwise_rule(a, b):
    """The placements that elementwise_mult supports: (of the results, of the arguments)."""
    keep = [([Shard(i)], [Shard(i), Shard(i)]) for i in range(a.ndim)]  # the same part of both
    # A sum over processes can follow a product with a replicated tensor: (p + q) * b = p * b + q * b.
    wait = [([Partial()], [Partial(), Replicate()]), ([Partial()], [Replicate(), Partial()])]
    return [([Replicate()], [Replicate(), Replicate()]), *keep, *wait]


def wrong_rule(a, b):
    """Like elementwise_rule, but takes (p + q) * (r + s) for p * r + q * s."""
    return [*elementwise_rule(a, b), ([Partial()], [Partial(), Partial()])]


def register(rule=elementwise_rule) -> None:
    """Registers the rule of elementwise_mult with DTensor; once per process."""
    register_sharding(operators.elementwise_mult())(rule)


def product_of_sums(mesh: DeviceMesh) -> dict:
    """Multiplies two Partial tensors: the product is right only if they are added up first."""
    local = torch.full((3, 4), 1.0 + mesh.get_rank(), dtype=torch.float64, device=toolchain.device)
    a = DTensor.from_local(local, mesh, [Partial()])
    got = operators.elementwise_mult()(a, a).full_tensor()
    return {"way": "product of sums", "got": got[0, 0].item(), "want": a.full_tensor()[0, 0].item() ** 2}


def each_line(mesh: DeviceMesh) -> dict:
    """For each line of elementwise_rule: whether the results have its placement, and their largest error."""
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
