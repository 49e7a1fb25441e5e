"""Empty libraries with the names of PyTorch's, which the linker reads in their place.

PyTorch's builds name its libraries for the linker, which then reads more than a hundred thousand symbols for each
kernel: a quarter of a second. A shared library may leave symbols open until it is loaded, and these are loaded into a
process that has PyTorch. So the linker only needs the libraries' names, by which the loader finds the real ones.
"""

import platform
from pathlib import Path
from shlex import quote

from kernel_xray.machine import artifacts, cache
from kernel_xray.runtime import libsimt

_LARGE = ("torch_python", "torch_cpu")  # of those that PyTorch names


def flags() -> list[str]:
    """What to name first when linking a kernel of the simulator; nothing where the file format is not ELF.

    A failure here cannot break a build, which is only slower without these flags.
    """
    if platform.system() != "Linux":
        return []
    try:
        folders = [_empty(name) for name in _LARGE]
    except RuntimeError:
        return []
    return ["-Wl,--no-as-needed", *(f"-L{quote(str(folder))}" for folder in folders)]


def _empty(name: str) -> Path:
    """The folder of the empty library `name`: one for each, since what a build recorded is one file."""
    place = cache.root() / f"simt-linking-{cache.digest(name, libsimt.compiler())}"

    def make() -> Path:
        library = place / f"lib{name}.so"
        libsimt.run_compiler(["-shared", "-nostdlib", f"-Wl,-soname,{library.name}", "-x", "c", "/dev/null"], library)
        return library

    return artifacts.built(place, place.name, make).parent
