"""results/<gpu>.json: reading, checking, merging and writing what was measured on a GPU.

A file belongs to one machine: one GPU model, driver, CUDA and PyTorch. Records of another are refused, since nobody
could compare them; `replace=True` begins the file anew. Each record also carries the date and commit of its own run,
because an operator that is added later does not make the earlier ones wrong; `machine` holds those of the latest run.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from helpers.machine.paths import RESULTS

MACHINE = ("gpu", "driver", "cuda", "torch", "clocks", "power", "date", "commit")
IDENTITY = MACHINE[:4]  # what has to be the same in one file
DTYPES = ("float64", "float32", "float16", "bfloat16")
PEERS = ("eager", "compile", "compile_dynamic", "triton", "cublas")
# Files there of other forms.
OTHER_KINDS = ("simulator", "xray_vs_ncu", "sanitizer_vs_xray", "call_overhead", "many_gpus")


class ResultsError(ValueError):
    """Results that cannot be read, are not of the form that DESIGN fixes, or do not belong together."""


@dataclass(frozen=True)
class Recorded:
    """Records of one file, with the machine that they were measured on."""

    path: Path
    machine: dict
    records: list[dict]

    @property
    def label(self) -> str:
        """What every number taken from here is labelled with: GPU and date."""
        dates = sorted({r.get("date", self.machine["date"]) for r in self.records} or {self.machine["date"]})
        return f"{self.machine['gpu']}, {dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}"


def read(path: str | os.PathLike) -> dict:
    """The document in a file. Raises ResultsError if it is not there or not of the right form."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError(f"{path} does not exist; record it: python -m helpers bench OP --record {path}") from None
    except ValueError as error:
        raise ResultsError(f"{path} is not JSON: {error}") from None
    found = problems(document)
    if found:
        raise ResultsError(f"{path}: " + "; ".join(found[:5]))
    return document


def write(path: str | os.PathLike, document: dict) -> None:
    """Writes a document, one record a line, all at once or not at all. Raises ResultsError if it is not valid."""
    found = problems(document)
    if found:
        raise ResultsError("refused to record: " + "; ".join(found[:5]))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = json.dumps(document["machine"], indent=2).replace("\n", "\n  ")
    records = ",\n".join("    " + json.dumps(record) for record in document["records"])
    half = path.with_name(path.name + ".new")
    half.write_text(f'{{\n  "machine": {machine},\n  "records": [\n{records}\n  ]\n}}\n', encoding="utf-8")
    os.replace(half, path)


def merge(document: dict | None, machine: dict, records: Sequence[dict], *, replace: bool = False) -> dict:
    """A document with `records` of `machine` in it, in a fixed order.

    Earlier records of the same operator, dtype and shape go, whatever their variant; others stay. Raises ResultsError
    if the document is of another machine, unless `replace`: then nothing of it stays.
    """
    old = [] if replace or document is None else document["records"]
    if document is not None and not replace:
        other = [
            f"{k} {document['machine'][k]!r} there, {machine[k]!r} now"
            for k in IDENTITY
            if document["machine"][k] != machine[k]
        ]
        if other:
            raise ResultsError(
                f"these results are of another machine ({'; '.join(other)}); --replace begins the file anew"
            )
    stamped = [{**r, "date": machine["date"], "commit": machine["commit"]} for r in records]
    measured = {_cell(r) for r in stamped}
    kept = [r for r in old if _cell(r) not in measured]
    return {"machine": dict(machine), "records": sorted(kept + stamped, key=_order)}


def recorded(op: str | None = None, folder: str | os.PathLike = RESULTS) -> list[Recorded]:
    """What the files of a folder hold for an operator (None: for all); files without such records are left out.

    Files of another kind (OTHER_KINDS) are passed over. Raises ResultsError for a file that is broken.
    """
    return [found for found in _each(op, Path(folder)) if found.records]


def _each(op: str | None, folder: Path) -> Iterator[Recorded]:
    for path in sorted(folder.glob("*.json")):
        if path.stem in OTHER_KINDS:
            continue
        document = read(path)
        yield Recorded(path, document["machine"], [r for r in document["records"] if op in (None, r["op"])])


def find(
    op: str,
    variant: str,
    *,
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    folder: str | os.PathLike = RESULTS,
) -> dict | None:
    """One record, at the largest shape unless one is given; None if there is no such. Of several files, the first."""
    for part in recorded(op, folder):
        fitting = [r for r in part.records if r["variant"] == variant and r["dtype"] == dtype]
        fitting = [r for r in fitting if shape is None or r["shape"] == list(shape)]
        if fitting:
            return max(fitting, key=lambda r: math.prod(r["shape"]))
    return None


def problems(document: object) -> list[str]:
    """What is wrong with a document, in words; [] if it is of the form that DESIGN fixes."""
    if not isinstance(document, dict) or not isinstance(document.get("machine"), dict):
        return ["no machine: it must be an object with machine and records"]
    found = [f"machine has no {key}" for key in MACHINE if key not in document["machine"]]
    records = document.get("records")
    if not isinstance(records, list):
        return [*found, "records is not a list"]
    seen = set()
    for number, record in enumerate(records):
        wrong = record_problems(record)
        found += [
            f"record {number} ({record.get('variant') if isinstance(record, dict) else record}): {w}" for w in wrong
        ]
        if not wrong:
            key = (*_cell(record), record["variant"])
            found += [f"record {number} repeats {key}"] if key in seen else []
            seen.add(key)
    return found


def record_problems(record: object) -> list[str]:
    """What is wrong with one record, in words."""
    if not isinstance(record, dict):
        return ["not an object"]
    found = [f"{k} is {record.get(k)!r}" for k in ("op", "variant") if not isinstance(record.get(k), str)]
    found += [f"dtype is {record.get('dtype')!r}"] if record.get("dtype") not in DTYPES else []
    shape = record.get("shape")
    if not isinstance(shape, list) or not shape or not all(isinstance(n, int) and n > 0 for n in shape):
        found.append(f"shape is {shape!r}")
    times = [record.get(k) for k in ("p20_ms", "median_ms", "p80_ms")]
    if not all(_positive(t) for t in times) or not times[0] <= times[1] <= times[2]:
        found.append(f"p20_ms <= median_ms <= p80_ms does not hold for {times}")
    for amount, share in (("bytes", "of_copy"), ("flops", "of_cublas")):
        if amount in record and not (_positive(record[amount]) and _positive(record.get(share))):
            found.append(f"{amount} is {record[amount]!r} and {share} {record.get(share)!r}")
    if ("bytes" in record) == ("flops" in record):
        found.append("it must have either bytes or flops")
    error = record.get("max_error")
    if not isinstance(error, (int, float)) or not 0 <= error < math.inf:
        found.append(f"max_error is {error!r}: a result that was not checked is not recorded")
    versus = record.get("vs")
    if not isinstance(versus, dict) or not all(k in PEERS and _positive(v) for k, v in versus.items()):
        found.append(f"vs is {versus!r}")
    if (record.get("of_copy") or record.get("of_cublas") or 0) > 1 and not record.get("note"):
        found.append("it is over 100% of its limit, without a note that explains it")
    return found


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def _cell(record: dict) -> tuple:
    return record["op"], record["dtype"], tuple(record["shape"])


def _order(record: dict) -> tuple:
    return record["op"], DTYPES.index(record["dtype"]), record["shape"], record["variant"]
