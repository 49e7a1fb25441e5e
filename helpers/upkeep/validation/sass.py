"""The memory instructions of a compiled kernel, from cuobjdump's listing of a built library."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from kernel_xray.machine.toolchain import find_nvcc

_FUNCTION = re.compile(r"^\s*Function : (\S+)")
_MEMORY = re.compile(r"(?<![.\w])((?:LDG|STG|LDS|STS|LD|ST|ATOM\w*|RED\w*|LDGSTS|LDSM|STSM|UTMA\w+)(?:\.[\w.]+)?)\s")


def of_library(path: Path) -> dict[str, str]:
    """Demangled name of each kernel -> "2 LDG.E.128, 1 STG.E.128"; {} if cuobjdump or c++filt cannot run."""
    nvcc = find_nvcc()
    beside = nvcc.with_name("cuobjdump") if nvcc else None
    listing = _run([shutil.which("cuobjdump") or str(beside or "cuobjdump"), "-sass", str(path)])
    found = parse(listing)
    names = _run([shutil.which("c++filt") or "c++filt"], "\n".join(found)).splitlines()
    return dict(zip(names or found, found.values(), strict=True))


def parse(listing: str) -> dict[str, str]:
    """Mangled name -> its memory instructions, from cuobjdump -sass; for several architectures, those of the last."""
    counts: dict[str, Counter] = {}
    current: Counter | None = None
    for line in listing.splitlines():
        if header := _FUNCTION.match(line):
            current = counts[header[1]] = Counter()
        elif current is not None and (instruction := _MEMORY.search(line)):
            current[instruction[1]] += 1
    return {name: ", ".join(f"{n} {opcode}" for opcode, n in sorted(c.items())) for name, c in counts.items()}


def find(listings: dict[str, str], kernel: str) -> str:
    """The listing of the kernel that ncu calls `kernel`: names are compared without parameters, namespaces and blanks.

    c++filt writes a bool of a template as true or false and an enumerator as a cast number; ncu writes both as numbers.
    """
    wanted = _bare(kernel)
    return next((text for name, text in listings.items() if _bare(name) == wanted), "")


def _bare(name: str) -> str:
    bare = re.sub(r"\([\w:]+\)(?=-?\d)", "", name).partition("(")[0].replace("void ", "").replace(" ", "")
    return re.sub(r"\b(?:true|false)\b", lambda found: str(int(found[0] == "true")), re.sub(r"\w+::", "", bare))


def _run(command: list[str], text: str = "") -> str:
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
