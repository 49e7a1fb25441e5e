"""results/<gpu>.json: reading, checking, merging and writing measurements of a GPU.

A file belongs to one machine: one GPU model, driver, CUDA and PyTorch. Records of another machine are refused, since
they could not be compared; `replace=True` starts the file anew. Each record carries the date and commit of its own run,
because adding an operator later does not invalidate earlier records; `machine` holds those of the latest run.
"""

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from helpers.paths import RESULTS
from kernel_xray.machine import cache

MACHINE = ("gpu", "driver", "cuda", "torch", "clocks", "power", "date", "commit")
IDENTITY = MACHINE[:4]  # must be the same throughout a file
DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn")
PEERS = ("eager", "compile", "compile_dynamic", "triton", "cublas", "flash", "cudnn", "fa4", "quack")
LIBRARIES = {"cublas": "cuBLAS", "cudnn": "cuDNN"}  # peers whose speed is the limit of work that FLOPs limit
SHARES = ("of_copy", *(f"of_{library}" for library in LIBRARIES))
# Files of other forms in the same folder.
OTHER_KINDS = (
    "simulator", "xray_vs_ncu", "sanitizer_vs_xray", "call_overhead", "many_gpus", "indigo", "rodinia", "first_start",
    "first_result", "limits", "limits_vs_ncu",
)  # fmt: skip


class ResultsError(ValueError):
    """Results that cannot be read, do not have the specified form, or do not belong together."""


@dataclass(frozen=True)
class Recorded:
    """Records of one file and the machine that they were measured on."""

    path: Path
    machine: dict
    records: list[dict]

    @property
    def label(self) -> str:
        """The label of every number taken from this file: GPU and date."""
        dates = sorted({r.get("date", self.machine["date"]) for r in self.records} or {self.machine["date"]})
        return f"{self.machine['gpu']}, {dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'}"


def read(path: str | os.PathLike) -> dict:
    """The document in a file. Raises ResultsError if the file is missing or does not have the right form."""
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
    """Writes a document of records. Raises ResultsError if it is not valid."""
    found = problems(document)
    if found:
        raise ResultsError("refused to record: " + "; ".join(found[:5]))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_lists(Path(path), document)


def write_lists(path: Path, document: dict) -> None:
    """Writes a document whole or not at all: the machine, then each list, one entry per line."""
    parts = ['  "machine": ' + json.dumps(document["machine"], indent=2).replace("\n", "\n  ")]
    for key in (key for key in document if key != "machine"):
        lines = ",\n".join("    " + json.dumps(entry) for entry in document[key])
        parts.append(f'  "{key}": [\n{lines}\n  ]')
    cache.write_whole(path, "{\n" + ",\n".join(parts) + "\n}\n")


def merge(
    document: dict | None, machine: dict, records: Sequence[dict], *, replace: bool = False, variants: bool = False
) -> dict:
    """The document with the `records` of `machine` added, in a fixed order.

    They replace earlier records of the same operator, dtype and shape, of any variant; others stay. With `variants`
    those of other variants stay too. Raises ResultsError if the document belongs to another machine, unless `replace`:
    then all its records go.
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
                f"these results belong to another machine ({'; '.join(other)}); --replace starts the file anew"
            )
    stamped = [{**r, "date": machine["date"], "commit": machine["commit"]} for r in records]
    replaced = (lambda r: (_cell(r), r["variant"])) if variants else _cell
    measured = set(map(replaced, stamped))
    kept = [r for r in old if replaced(r) not in measured]
    return {"machine": dict(machine), "records": sorted(kept + stamped, key=_order)}


def recorded(op: str | None = None, folder: str | os.PathLike = RESULTS) -> list[Recorded]:
    """The records of an operator (None: of all) in the files of a folder; files without any are left out.

    Files of another kind (OTHER_KINDS) are skipped. Raises ResultsError for a broken file.
    """
    return [found for found in _each(op, Path(folder)) if found.records]


def _each(op: str | None, folder: Path) -> Iterator[Recorded]:
    for path in sorted(folder.glob("*.json")):
        if path.stem in OTHER_KINDS:
            continue
        written = path.stat()
        document = _read(path, written.st_mtime_ns, written.st_size)
        yield Recorded(path, document["machine"], [r for r in document["records"] if op in (None, r["op"])])


@lru_cache(maxsize=8)
def _read(path: Path, modified: int, size: int) -> dict:
    """The document, read once for each state of the file; nobody changes it."""
    return read(path)


def find(
    op: str,
    variant: str,
    *,
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    folder: str | os.PathLike = RESULTS,
) -> dict | None:
    """One record, at the largest shape unless `shape` is given; None if there is none. The first file wins."""
    for part in recorded(op, folder):
        fitting = [r for r in part.records if r["variant"] == variant and r["dtype"] == dtype]
        fitting = [r for r in fitting if shape is None or r["shape"] == list(shape)]
        if fitting:
            return max(fitting, key=lambda r: math.prod(r["shape"]))
    return None


def problems(document: object) -> list[str]:
    """What is wrong with a document, in words; [] if it has the specified form."""
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
    times: list[Any] = [record.get(k) for k in ("p20_ms", "median_ms", "p80_ms")]
    if not all(_positive(t) for t in times) or not times[0] <= times[1] <= times[2]:
        found.append(f"p20_ms <= median_ms <= p80_ms does not hold for {times}")
    for amount, shares in (("bytes", SHARES[:1]), ("flops", SHARES[1:])):
        has = {share: record[share] for share in shares if record.get(share) is not None}
        few = (0, 1) if amount == "flops" else (1,)  # no library may compute it in one call: a training step
        if amount in record and not (
            _positive(record[amount]) and len(has) in few and all(map(_positive, has.values()))
        ):
            found.append(f"{amount} is {record[amount]!r} and {' or '.join(shares)} {has or None}")
    if ("bytes" in record) == ("flops" in record):
        found.append("it must have either bytes or flops")
    error = record.get("max_error")
    if not isinstance(error, (int, float)) or not 0 <= error < math.inf:
        found.append(f"max_error is {error!r}: a result that was not checked is not recorded")
    versus = record.get("vs")
    if not isinstance(versus, dict) or not all(k in PEERS and _positive(v) for k, v in versus.items()):
        found.append(f"vs is {versus!r}")
    if any((record.get(share) or 0) > 1 for share in SHARES) and not record.get("note"):
        found.append("it exceeds 100% of its limit and has no note to explain that")
    return found


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def _cell(record: dict) -> tuple:
    return record["op"], record["dtype"], tuple(record["shape"])


def _order(record: dict) -> tuple:
    return record["op"], DTYPES.index(record["dtype"]), record["shape"], record["variant"]
