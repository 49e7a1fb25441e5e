"""Headers that builds begin with, compiled once for all of them.

Only for g++. It finds `x.h.gch` in a folder that precedes the folder of `x.h`, and uses it if the flags are the same;
otherwise it reads the header itself. So a failure here cannot break a build, and is ignored.
"""

from pathlib import Path

from kernel_xray.machine import artifacts, cache
from kernel_xray.machine.progress import Progress
from kernel_xray.runtime import libsimt

PROGRAMS = "simt_program.h"  # the first header of each translated .cu file: half a second of a program's build


def folder(header: str, arguments: list[str], what: str, *versions: str) -> Path | None:
    """The folder to name before libsimt.INCLUDE in builds with these arguments; None if there is none for them."""
    if not libsimt.finds_precompiled_headers():
        return None
    identity = libsimt.compiler_identity(libsimt.compiler())
    # `#pragma once` knows a header by its place: what is compiled here serves only builds that find the headers there.
    source = str(libsimt.INCLUDE / header)
    key = cache.digest(arguments, versions, source, libsimt.headers_digest(), libsimt.compiler(), identity)
    place = cache.root() / f"headers-{key}"
    made = place / f"{header}.gch"

    def make() -> Path:
        with Progress(f"preparing {what}, once for all"):
            libsimt.run_compiler([*arguments, "-x", "c++-header", source], made)
        return made

    try:
        return artifacts.built(place, key, make).parent
    except RuntimeError:
        return None


def of_programs(flags: list[str]) -> Path | None:
    """The folder for programs that are compiled with these flags."""
    return folder(PROGRAMS, [f"-I{libsimt.INCLUDE}", *flags], "CUDA's headers for programs")
