"""From addresses in loaded libraries to lines of the learner's files, by addr2line (on macOS: atos)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from helpers.simt.build import INCLUDE

Place = tuple[str, int]  # file and line; line 0 if unknown


def resolve(addresses: Iterable[int]) -> dict[int, Place]:
    """The innermost line in the learner's own text for each address; inlined simulator headers are looked through."""
    by_library: dict[tuple[str, int], list[int]] = defaultdict(list)
    maps = _mappings()
    for address in set(addresses):
        library = next(((path, base) for start, end, base, path in maps if start <= address < end), None)
        if library:
            by_library[library].append(address)
    places: dict[int, Place] = {}
    for (path, base), group in by_library.items():
        places |= _addr2line(path, base, group)
    return places


def _mappings() -> list[tuple[int, int, int, str]]:
    """Start, end, load address and path of each mapped library."""
    bases: dict[str, int] = {}
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not fields[5].startswith("/"):
            continue
        start, end = (int(x, 16) for x in fields[0].split("-"))
        base = bases.setdefault(fields[5], start - int(fields[2], 16))
        found.append((start, end, base, fields[5]))
    return found


def _addr2line(path: str, base: int, addresses: list[int]) -> dict[int, Place]:
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None:
        raise RuntimeError("addr2line is not found; it comes with binutils (Debian and Ubuntu: apt install binutils)")
    text = "\n".join(f"{a - base:#x}" for a in addresses)
    done = subprocess.run([tool, "-e", path, "-a", "-i"], input=text, capture_output=True, text=True, check=True)
    places: dict[int, Place] = {}
    current = 0
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = int(line, 16) + base
            continue
        file, _, number = line.partition(" (discriminator")[0].rpartition(":")
        if current in places or file.startswith(str(INCLUDE)) or not number.isdigit():
            continue
        places[current] = (file, int(number))
    return places


if sys.platform == "darwin":
    raise ImportError("X-ray reads lines through addr2line and /proc, which macOS does not have")
