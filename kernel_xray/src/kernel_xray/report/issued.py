"""The fewest instructions that the warps of a kernel issue, from its machine code and from what the tracer counted.

The tracer knows how often warps execute the loads and stores; the machine code has each of them in a basic block, all
of whose instructions are issued as often. Where accesses may have been made in several blocks, those count that cost
least: how often each block is entered is a linear program with a demand for each group of accesses, and prices that fit
into every block (its dual) are a lower bound of it. Blocks without an access are not counted, but for the entry, which
each warp executes once.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernel_xray.report.basic_blocks import Block
from kernel_xray.report.facts import Issued

_WARP = 32
Blocks = Mapping[str, Sequence[Block]]  # of each instance of a kernel, by its mangled name


@dataclass(frozen=True)
class _Demand:
    """Some instructions are executed by warps at least so often, all of them together."""

    times: float
    within: Mapping[int, int]  # how many of them each block has


def least(found: dict, blocks_of: Callable[[str], Blocks]) -> list[Issued]:
    """The fewest instructions of each unit, in all traced blocks of each kernel.

    found       the tracer's findings, with accesses as corrections.correct returns them
    blocks_of   the basic blocks of a source file's kernels
    """
    result = []
    for kernel in dict.fromkeys(launch["kernel"] for launch in found["launches"]):
        launches = [launch for launch in found["launches"] if launch["kernel"] == kernel]
        made = [access for access in found["accesses"] if access["kernel"] == kernel and access.get("made_by")]
        instances = {access["instance"] for access in made}
        if len(instances) != 1:
            continue  # no access, or accesses of several instances of a template
        blocks = next(iter(blocks_of(launches[0]["file"]).get(name, ()) for name in instances))
        demands = _demands(made, blocks, launches)
        units = dict.fromkeys(unit for block in blocks for unit in block.issued)
        for unit in units:
            number = _priced(demands, [block.issued.get(unit, 0) for block in blocks])
            result += [Issued(kernel, unit, number)] if number >= 1 else []
    return result


def _demands(made: Iterable[dict], blocks: Sequence[Block], launches: Iterable[dict]) -> list[_Demand]:
    sizes = [(math.prod(launch["block"]), launch["traced_blocks"]) for launch in launches]
    warps = sum(-(-threads // _WARP) * traced for threads, traced in sizes)
    threads = sum(threads * traced for threads, traced in sizes)
    demands = [_Demand(warps, {0: 1})]
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for access in made:
        groups[id(access["made_by"]), access["size"]].append(access)
    for (_, size), group in groups.items():
        within = Counter(i.block for i in group[0]["made_by"] if i.size == size)
        again = {block: n for block, n in within.items() if blocks[block].repeated}
        demands.append(_Demand(sum(access["requests"] for access in group), within))
        # A thread executes the others once at most, whatever lanes it shares a warp with.
        others = sum(within.values()) - sum(again.values())
        lanes = sum(access["lanes"] for access in group) - others * threads
        demands.append(_Demand(max(lanes, 0) / _WARP, again))
    return [demand for demand in demands if demand.within]


def _priced(demands: Sequence[_Demand], costs: Sequence[int]) -> float:
    """The largest demand has the highest price that its blocks' costs allow, the next one what is left of them."""
    left, open_demands, total = [float(cost) for cost in costs], list(demands), 0.0

    def worth(demand: _Demand) -> float:
        return demand.times * price(demand)

    def price(demand: _Demand) -> float:
        return min(left[block] / n for block, n in demand.within.items())

    while open_demands:
        best = max(open_demands, key=worth)
        open_demands.remove(best)
        each = price(best)
        total += best.times * each
        for block, n in best.within.items():
            left[block] -= each * n
    return total
