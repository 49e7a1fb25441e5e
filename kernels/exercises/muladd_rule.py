# muladd_rule.py: What three tensors may be divided into. Exercise 3 of lesson 16, about 20 minutes.
#
# Write the sharding rule of `fused_muladd(a, b, c)`, which computes `a * b + c` for three tensors of one shape. Each
# line of the rule is a promise: if the arguments are placed like this, each process may run the operator on what it
# has, and its result is placed like that. List every line that holds, and none that does not. The check divides tensors
# among three processes by each line and compares.
#
# Check this file with: python -m helpers check muladd_rule

from itertools import pairwise
from pathlib import Path

import torch
from torch.distributed.tensor import Partial, Replicate, Shard

import helpers

kernel = Path(helpers.__file__).parent.parent / "kernels" / "fused_muladd.cu"
fused_muladd = helpers.load("fused_muladd", [kernel], is_python_module=False).fused_muladd


def rule(a, b, c):
    """The lines of the rule: ([placement of the result], [placements of a, b and c]).

    Placements are Replicate(), Shard(dimension) and Partial().
    """
    whole = [([Replicate()], [Replicate(), Replicate(), Replicate()])]
    cut, summed = [], []
    # YOUR CODE HERE: about 3 lines
    return [*whole, *cut, *summed]


PROCESSES = 3


def divided(x, placement):
    """What each process holds of x."""
    if isinstance(placement, Shard):
        edges = [i * -(-x.shape[placement.dim] // PROCESSES) for i in range(PROCESSES)]
        ends = [min(edge, x.shape[placement.dim]) for edge in edges] + [x.shape[placement.dim]]
        return [x.narrow(placement.dim, begin, end - begin) for begin, end in pairwise(ends)]
    if isinstance(placement, Partial):  # terms that add up to x
        return [x / 2, x / 4, x / 4]
    return [x] * PROCESSES


def joined(parts, placement):
    """The whole tensor of which each process holds a part."""
    if isinstance(placement, Shard):
        return torch.cat(parts, placement.dim)
    return sum(parts) if isinstance(placement, Partial) else parts[-1]


def muladd_rule(a, b, c):
    """a * b + c by three processes, once for each line of the rule."""
    results = []
    for (of_result,), of_arguments in rule(a, b, c):
        shares = zip(*map(divided, (a, b, c), of_arguments), strict=True)
        parts = [fused_muladd(*(x.contiguous() for x in share)) for share in shares]
        results.append(joined(parts, of_result))
    return torch.stack(results)


muladd_rule.rule = rule
