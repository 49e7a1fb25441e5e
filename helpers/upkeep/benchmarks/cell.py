"""One cell of the results: an operator at one dtype and shape, with all its contenders, measured in one run."""

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from helpers.ladder.catalogue import Operator
from helpers.ladder.catalogue.extensions import missing, version
from helpers.ladder.checking.compare import NARROW, SAFETY, unit_roundoff
from helpers.ladder.results.measurement import Measurement
from helpers.ladder.results.records import LIBRARIES, PEERS, record_problems
from helpers.upkeep.benchmarks.contender import Contender, copy_bytes, copy_contender
from helpers.upkeep.benchmarks.timer import Backend, measure

LARGE = 2**30  # bytes: an L2 holds only a small part of this at the end


@dataclass
class Cell:
    """The records of our variants, and the reason for each contender that has none."""

    op: str
    dtype: str
    shape: list[int]
    records: list[dict] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


def measure_cell(
    operator: Operator,
    variants: Mapping[str, Callable],
    dtype: str,
    shape: Sequence[int],
    backend: Backend,
    *,
    device: torch.device | str,
    compiled: bool,
    budget_ms: float = 400.0,
    peak: float | None = None,
) -> Cell:
    """Measures `variants` (name -> function) and the operator's peers on one set of random inputs.

    compiled  torch.compile is a peer. Only for a process that has compiled nothing yet: a function compiled for one
              shape is compiled for dynamic shapes at the next
    peak      the memory's peak in bytes per second; a record that claims more is refused

    A contender that fails is in `failures`, under its name; a variant that fails has no record.
    """
    kind = getattr(torch, dtype)
    contenders = _contenders(operator, variants, kind, tuple(shape), device, compiled)
    measurement = measure(contenders, backend, budget_ms=budget_ms)
    cell = Cell(operator.name, dtype, list(shape), failures=dict(measurement.failures))
    peaks = {c.name: backend.peak_bytes(c) for c in contenders if c.name in measurement.stats and c.name != "copy"}
    copied = next((copy_bytes(c) for c in contenders if c.name == "copy"), 0)
    for name in variants:
        if name in measurement.stats:
            record = _record(operator, name, cell, measurement, copied) | _memory(name, peaks)
            wrong = impossible(record, peak) or "; ".join(record_problems(record))
            if wrong:
                cell.failures[name] = f"not recorded: {wrong}"
            else:
                cell.records.append(record)
    return cell


def _contenders(
    operator: Operator, variants: Mapping[str, Callable], dtype: torch.dtype, shape: tuple, device, compiled: bool
) -> list[Contender]:
    reference = operator.reference
    assert reference is not None  # an operator that is measured has one
    inputs = operator.inputs(shape, dtype, device)
    terms = operator.terms(shape)
    of_results = operator.dtype_of_results(dtype)
    loose = _tolerance_of_peers(operator, of_results, terms)
    calls: dict[str, tuple[Callable, dict]] = {
        name: (call, {"accumulation": operator.terms(shape, name)}) for name, call in variants.items()
    }
    calls["eager"] = (reference, loose)
    if compiled:
        whole = operator.compiled or (lambda compiler: compiler(reference))
        for name, dynamic in (("compile", False), ("compile_dynamic", True)):
            made = whole(functools.partial(_compiled, dynamic=dynamic))
            calls[name] = (made, {**loose, "thorough": False})
    calls |= {name: (_late(make), loose) for name, make in operator.peers.items() if not missing(name)}
    mixed = {} if operator.result_dtype or one_dtype(operator, inputs) else {"thorough": False}
    contenders = [
        Contender(name, call, inputs, reference, dtype=of_results, **{**how, **mixed})
        for name, (call, how) in calls.items()
    ]
    if operator.limit == "copy":
        contenders.append(copy_contender(operator.bytes(shape, dtype.itemsize), dtype, device))
    return contenders


def one_dtype(operator: Operator, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether all arguments and results have the same dtype, as the thorough check wants them unless it is told."""
    return not operator.widened and len({x.dtype for x in inputs}) == 1


def _tolerance_of_peers(operator: Operator, dtype: torch.dtype, terms: int) -> dict:
    """Our tolerance, and room for the intermediate roundings of an unfused peer, in the dtype of the elements."""
    slack = SAFETY * unit_roundoff(dtype)
    if operator.peer_slack and terms == 1:
        return {"accumulation": terms, "rtol": slack, "atol": slack * operator.peer_slack}
    if operator.peer_sums:  # as many terms as give a float32 sum the error of these roundings
        wide = unit_roundoff(torch.float32 if dtype in NARROW else dtype)
        return {"accumulation": max(terms, round((operator.peer_sums * unit_roundoff(dtype) / wide) ** 2))}
    return {"accumulation": terms}


def _compiled(function: Callable, dynamic: bool) -> Callable:
    return torch.compile(own_code(function), dynamic=dynamic)


def own_code(function: Callable) -> Callable:
    """The same function with a code object of its own.

    torch.compile stores its results with the code object. Two compilations of one function would share it, and the one
    for dynamic shapes would get the kernel for static shapes.
    """
    code = function.__code__.replace(co_name=function.__name__)
    return types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )


def _late(make: Callable[[], Callable]) -> Callable:
    """Makes a peer at its first call, so that a failure (Triton is missing, say) is reported as the peer's."""
    made: list[Callable] = []

    def call(*inputs):
        if not made:
            made.append(make())
        return made[0](*inputs)

    return call


def _record(operator: Operator, variant: str, cell: Cell, measurement: Measurement, copied: int) -> dict:
    """A record in the form of results/<gpu>.json. Shares and speed-ups are ratios of medians in this run."""
    ours = measurement.stats[variant]
    size = getattr(torch, cell.dtype).itemsize
    record: dict[str, Any] = {"op": operator.name, "variant": variant, "dtype": cell.dtype, "shape": cell.shape}
    record |= {"median_ms": ours.median_ms, "p20_ms": ours.p20_ms, "p80_ms": ours.p80_ms}
    notes = []
    if operator.limit == "copy":
        record["bytes"] = operator.bytes(tuple(cell.shape), size)
        if "copy" in measurement.stats:
            rate = record["bytes"] / ours.median_ms
            record["of_copy"] = rate / (copied / measurement.stats["copy"].median_ms)
            if record["of_copy"] > 1:
                notes.append("over 100% of the copy: " + (operator.above_copy or "not explained yet"))
    else:
        record["flops"] = operator.flops(tuple(cell.shape))
        if operator.limit in measurement.stats:
            share = record[f"of_{operator.limit}"] = measurement.stats[operator.limit].median_ms / ours.median_ms
            if share > 1:
                notes.append(f"faster than {LIBRARIES[operator.limit]} in this run")
    record["vs"] = {p: measurement.stats[p].median_ms / ours.median_ms for p in PEERS if p in measurement.stats}
    if versions := {p: found for p in record["vs"] if (found := version(p))}:
        record["versions"] = versions
    record["max_error"] = measurement.errors[variant]
    record["timing"] = measurement.timing
    notes += [
        f"no time for {name}: {_first_line(why)}" for name, why in cell.failures.items() if name not in (variant,)
    ]
    if notes:
        record["note"] = "; ".join(notes)
    return record


def _memory(variant: str, peaks: Mapping[str, int | None]) -> dict:
    """Peak memory of a call beyond its inputs, outputs included: ours and the peers'."""
    if not peaks.get(variant):
        return {}
    return {"peak_bytes": peaks[variant], "peak_bytes_of": {p: peaks[p] for p in PEERS if peaks.get(p)}}


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0][:200]


def impossible(record: dict, peak: float | None) -> str | None:
    """Why a record cannot be true. Only for large shapes: a small output may still be in the L2 when the run ends."""
    rate = record.get("bytes", 0) / record["median_ms"] * 1e3
    if peak and record.get("bytes", 0) >= LARGE and rate > peak:
        return (
            f"{rate / 1e12:.2f} TB/s is more than the memory's peak of {peak / 1e12:.2f} TB/s: "
            "is part of the work missing, or are the bytes counted wrongly?"
        )
    return None
