"""From the counts of the source to those of the machine code: what nvcc merged, dropped or moved.

The tracer has counted the source's requests by program counter and, beside them, what they would be in other manners
(runtime/trace/whatif.h): neighbouring accesses merged to a width, repeated loads made once, loads of two branches
joined, loops unrolled. The machine code has, for each source line, a number of instructions of each width. A manner is
believed if it makes just these widths in just these proportions and, of several, if its instructions are executed as
often as each other and as others of their loop; where none does, the line is marked instead.

Limits: an unrolled loop with several accesses of one line counts as in the source, even if its remainder makes a warp
diverge; an access that nvcc moved under another condition does, too.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kernel_xray.report.facts import CP_ASYNC, NOT_CORRECTED
from kernel_xray.report.machine_code import Instruction
from kernel_xray.report.symbols import Frame, bare_name, function_name, inside

Listing = dict[str, list[Instruction]]  # mangled name of a kernel -> its loads and stores
AS_IN_SOURCE = ""
# In this order: the first that agrees with the machine code counts.
MERGED = ("in 4", "in 8", "in 16")
# Iterations of a step -> a loop of single ones, and instructions outside of loops.
UNROLLED = {2: (False, 1), 4: (True, 0), 16: (True, 12)}
FEWER = ("once", "once in 4", "once in 8", "once in 16", "joined")


@dataclass
class Site:
    """A program counter of the traced code with its accesses of one kind, and where nvcc's code has the same."""

    counts: dict  # as the tracer gives them: kernel, pc, space, kind, size, requests, ...
    instance: str  # the kernel's mangled name; empty if it is not known
    stack: list[Frame]
    code: frozenset[int] = frozenset()  # indices of instructions
    manners: dict[str, list[dict]] = field(default_factory=dict)  # manner -> counts in it, one for each size

    def found(self, manner: str) -> list[dict]:
        return self.manners.get(manner, []) if manner else [self.counts]


def correct(found: dict, stacks: dict[int, list[Frame]], listing_of: Callable[[str], Listing]) -> list[dict]:
    """The accesses of the tracer's findings with corrected counts and, in "nvcc", a sentence on what nvcc did.

    stacks      of the program counters, from symbols.frames
    listing_of  the machine code of a source file

    An access that is not corrected keeps its counts; if nvcc changed it, its sentence begins with NOT_CORRECTED. Others
    have the instructions among which theirs are, in "made_by", and the kernel's mangled name, in "instance": all of the
    kernel that make such accesses, since nvcc may note another line for some of an unrolled loop.
    """
    launches = {launch["kernel"]: launch for launch in found["launches"]}
    warps: Counter[str] = Counter()
    for launch in found["launches"]:
        x, y, z = launch["block"]
        warps[launch["kernel"]] += launch["traced_blocks"] * -(-x * y * z // 32)
    manners: dict[tuple, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for entry in found["what_if"]:
        counts = entry["counts"]
        manners[counts["kernel"], counts["pc"], counts["kind"]][entry["manner"]].append(counts)
    corrected = [a for a in found["accesses"] if a["kind"] not in ("load", "store")]
    for kernel, launch in launches.items():
        code = {n: i for n, i in listing_of(launch["file"]).items() if bare_name(function_name(n)) == bare_name(kernel)}
        sites = [
            Site(a, _instance(stacks.get(a["pc"], []), code), inside(stacks.get(a["pc"], []), kernel))
            for a in found["accesses"]
            if a["kernel"] == kernel and a["kind"] in ("load", "store")
        ]
        known = {site.instance for site in sites} - {""} or (set(code) if len(code) == 1 else set())
        for site in sites:
            site.instance = site.instance or (min(known) if len(known) == 1 else "")
            site.manners = manners[kernel, site.counts["pc"], site.counts["kind"]]
        parts = []
        for key, together in _by(sites, lambda s: (s.instance, s.counts["space"], s.counts["kind"])).items():
            instance, space, kind = key
            instructions = [i for i in code.get(instance, []) if i.does(space, kind)]
            for site in together:
                site.code = _same_place(site.stack, instructions)
            rest = frozenset(range(len(instructions))).difference(*(site.code for site in together))
            for site in together:  # nvcc has moved it to another line
                site.code = site.code or rest
            for component in components(together, found["links"]):
                indices = set().union(*(site.code for site in component))
                parts.append((instance, component, [instructions[i] for i in sorted(indices)], instructions))
        turns = _turns(parts, warps[kernel])
        for instance, component, theirs, instructions in parts:
            now = corrected_counts(component, theirs, warps[kernel], turns.get((instance, _loop(theirs)), 0.0))
            if not any(counts["nvcc"].startswith(NOT_CORRECTED) for counts in now):
                now = [counts | {"made_by": instructions, "instance": instance} for counts in now]
            corrected += now
    return corrected


def _turns(parts: Iterable[tuple], warps: int) -> dict[tuple[str, int], float]:
    """Instance and loop -> how often warps execute an instruction in it, by accesses that have one manner only.

    A loop for which these differ is left out: some are under conditions, or counted in a wrong manner.
    """
    found: dict[tuple[str, int], set[float]] = defaultdict(set)
    for instance, component, theirs, _ in parts:
        exact = _exact(component, theirs, warps)
        if _loop(theirs) and len({_requests(component, manner) for manner in exact}) == 1:
            found[instance, _loop(theirs)] |= {_executions(component, exact[0], theirs)} - {0.0}
    return {loop: turns.pop() for loop, turns in found.items() if len(turns) == 1}


def _loop(instructions: Sequence[Instruction]) -> int:
    """The loop that all of them are in; 0: there is none."""
    loops = {i.loop for i in instructions}
    return loops.pop() if len(loops) == 1 else 0


def _executions(sites: Sequence[Site], manner: str, theirs: Sequence[Instruction]) -> float:
    """How often each of the instructions is executed, in a manner; 0: some more often than others."""
    static = Counter(i.size for i in theirs)
    times = {requests / static[size] for size, requests in _requests(sites, manner)}
    return times.pop() if len(times) == 1 else 0.0


def corrected_counts(
    sites: Sequence[Site], theirs: Sequence[Instruction], warps: int, turns: float = 0.0
) -> list[dict]:
    """The counts of sites whose accesses nvcc may have exchanged, given all instructions of their lines.

    turns   how often others of their loop are executed; 0: it is not known
    """
    manner = chosen(sites, theirs, warps, turns)
    if manner is None:
        listed = ", ".join(f"{n} {opcode}" for opcode, n in sorted(Counter(i.opcode for i in theirs).items()))
        told = f"{NOT_CORRECTED}the machine code has {listed or 'no instruction'} for this"
        return [site.counts | {"nvcc": told} for site in sites]
    result: list[dict] = []
    for site in sites:
        counted = [dict(counts) for counts in site.found(manner)]
        for counts in counted or [_nothing(site.counts)]:
            counts["nvcc"] = _sentence(site, manner, counted)
            _as_copies(site, counts, theirs)
            result.append(counts)
    return result


def chosen(sites: Sequence[Site], theirs: Sequence[Instruction], warps: int, turns: float = 0.0) -> str | None:
    """The manner whose requests the instructions make; None if there is none, or no certainty.

    turns   how often others of their loop are executed, or 0: of several manners, that in which these are, too
    """
    if not theirs:
        return None
    exact = _exact(sites, theirs, warps)
    if len({i.block for i in theirs}) == 1:  # as often as each other
        exact = [m for m in exact if _executions(sites, m, theirs).is_integer()] or exact
    if turns:
        exact = [m for m in exact if _executions(sites, m, theirs) == turns] or exact
    if exact and exact[0] == AS_IN_SOURCE and "once" in exact and _may_have_left_a_loop(sites, theirs):
        once = [site for site in sites if _total(site, "once") <= warps < _total(site, AS_IN_SOURCE)]
        return "once" if len(once) == sum(not i.loop for i in theirs) else None
    if exact and exact[0] == AS_IN_SOURCE and (steps := _unrolled(sites, theirs)):
        return f"in steps of {steps}"
    if exact:
        under = {AS_IN_SOURCE: "guarded"}.get(exact[0], f"guarded {exact[0]}")
        moved = exact[0] in (AS_IN_SOURCE, *MERGED) and all(i.guarded for i in theirs) and _requests(sites, under)
        return under if moved else exact[0]
    # A part of the instructions may not have been executed: another branch, or what is left of an unrolled loop.
    some = [m for m in (AS_IN_SOURCE, *MERGED) if _agrees(sites, m, theirs, warps, exactly=False)]
    different = {_requests(sites, m) for m in some}
    return some[0] if len(different) == 1 else None


def _exact(sites: Sequence[Site], theirs: Sequence[Instruction], warps: int) -> list[str]:
    return [m for m in (AS_IN_SOURCE, *MERGED, *FEWER) if _agrees(sites, m, theirs, warps, exactly=True)]


def _unrolled(sites: Sequence[Site], theirs: Sequence[Instruction]) -> int:
    """In steps of how many iterations nvcc makes the accesses of these sites; 0: of one, or it is not known.

    A loop of the source has then become one loop with an instruction for each of them, and code for what is left.
    """
    of_loop = Counter(i.loop for i in theirs)
    outside = of_loop.pop(0, 0)
    loops = Counter(of_loop.values())
    for steps, (singly, after) in UNROLLED.items():
        times = loops[steps]
        form = {steps: times, 1: times} if singly else {steps: times}
        if times and times % len(sites) == 0 and loops == form and outside == times * after:
            return steps
    return 0


def _may_have_left_a_loop(sites: Sequence[Site], theirs: Sequence[Instruction]) -> bool:
    """Whether loads that loops repeat may be among the instructions outside of loops."""
    outside = any(i.loop for i in theirs) and not all(i.loop for i in theirs)
    return outside and _requests(sites, "once") != _requests(sites, AS_IN_SOURCE)


def _total(site: Site, manner: str) -> int:
    return sum(counts["requests"] for counts in site.found(manner))


def _requests(sites: Sequence[Site], manner: str) -> frozenset[tuple[int, int]]:
    """Bytes of an access, and requests of that width."""
    total: Counter[int] = Counter()
    for site in sites:
        for counts in site.found(manner):
            total[counts["size"]] += counts["requests"]
    return frozenset(total.items())


def _agrees(sites: Sequence[Site], manner: str, theirs: Sequence[Instruction], warps: int, exactly: bool) -> bool:
    requests = dict(_requests(sites, manner))
    places = Counter(counts["size"] for site in sites for counts in site.found(manner))
    static = Counter(i.size for i in theirs)
    if not requests or (set(requests) != set(static) if exactly else not set(requests) <= set(static)):
        return False
    looped = {i.size for i in theirs if i.loop}
    if any(requests[size] > static[size] * warps for size in requests if size not in looped):
        return False  # too often for instructions outside of loops
    if manner != "joined" and any(static[size] < places[size] for size in places):
        return False  # some of them nvcc does not make
    if manner == AS_IN_SOURCE or len(requests) == 1 or not exactly:
        return True
    one = min(requests)
    return all(requests[size] * static[one] == requests[one] * static[size] for size in requests) or all(
        places[size] * static[one] == places[one] * static[size] for size in requests
    )


def components(sites: Sequence[Site], links: Iterable[dict]) -> list[list[Site]]:
    """Sites whose counts belong together: of the same instructions, or with requests that may have become one."""
    parent = list(range(len(sites)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    of_pc = {site.counts["pc"]: i for i, site in enumerate(sites)}
    of_code: dict[int, int] = {}
    for i, site in enumerate(sites):
        for index in site.code:
            parent[root(i)] = root(of_code.setdefault(index, i))
    for link in links:
        first, second = of_pc.get(link["pc"]), of_pc.get(link["other"])
        if first is None or second is None:
            continue
        # Only a line without instructions of its own may have been joined with another branch.
        if link["manner"] != "joined" or not sites[first].code or not sites[second].code:
            parent[root(first)] = root(second)
    return list(_by(sites, lambda site: root(of_pc[site.counts["pc"]])).values())


def _sentence(site: Site, manner: str, counted: Sequence[dict]) -> str:
    """What nvcc did with the accesses of a site; "" if nothing."""
    size, kind = site.counts["size"], site.counts["kind"]
    if manner == AS_IN_SOURCE:
        return ""
    if not counted:
        return f"nvcc makes this {kind} together with that of another line"
    wide = max(counts["size"] for counts in counted)
    told = f"{wide // size} {kind}s of {size} B became 1 of {wide} B" if wide > size else ""
    if manner.startswith("in steps") and _total(site, manner) > site.counts["requests"]:
        return f"nvcc unrolled the loop by {manner.rpartition(' ')[2]}; lanes make what they have left separately"
    if manner.startswith("guarded") and sum(c["lanes"] * c["size"] for c in counted) < site.counts["lanes"] * size:
        return (told + ", " if told else "") + "only threads load that then store"
    if manner == "joined" and sum(c["lanes"] for c in counted) > site.counts["lanes"]:
        return "one load for both branches"
    if manner.startswith("once") and sum(c["lanes"] * c["size"] for c in counted) < site.counts["lanes"] * size:
        told = (told + ", " if told else "") + "what was loaded before is not loaded again"
    return told


def _as_copies(site: Site, counts: dict, theirs: Sequence[Instruction]) -> None:
    """cp.async writes shared memory without a store; past the L1 it takes sectors by the target's sectors too."""
    copies = [i for i in theirs if i.opcode.startswith("LDGSTS")]
    if not copies or len(copies) < len(theirs):
        return
    if counts["space"] == "shared":
        counts["wavefronts"] = counts["ideal_wavefronts"] = 0
        counts["nvcc"] = CP_ASYNC
    elif any("BYPASS" in i.opcode and i.size == counts["size"] for i in copies):
        past_l1 = [c for c in site.found("copied") if c["requests"] == counts["requests"]]
        if past_l1 and past_l1[0]["sectors"] != counts["sectors"]:
            counts["sectors"] = past_l1[0]["sectors"]
            counts["nvcc"] = "cp.async past the L1: a sector for each pair of a source line and a target sector"


def _nothing(counts: dict) -> dict:
    zeros = ("requests", "sectors", "ideal_sectors", "wavefronts", "ideal_wavefronts", "lanes", "received", "passes")
    return counts | dict.fromkeys(zeros, 0)


def _instance(stack: Sequence[Frame], code: Listing) -> str:
    return next((function for function, _, _ in stack if function in code), "")


def _same_place(stack: Sequence[Frame], instructions: Sequence[Instruction]) -> frozenset[int]:
    """Which instructions stem from the innermost line of the stack that has any."""
    for _, file, line in stack:
        if same := frozenset(i for i, other in enumerate(instructions) if (file, line) in other.stack):
            return same
    return frozenset()


def _by(items: Iterable, key: Callable) -> dict:
    groups: dict = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
