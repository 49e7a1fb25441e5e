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
    place = cache.root() / f"simt-linking-{cache.digest(_LARGE, libsimt.compiler())}"
    last = place / f"lib{_LARGE[-1]}.so"

    def make() -> Path:
        for name in _LARGE:
            options = ["-shared", "-nostdlib", f"-Wl,-soname,lib{name}.so", "-x", "c", "/dev/null"]
            libsimt.run_compiler(options, place / f"lib{name}.so")
        return last

    try:
        found = artifacts.built(place, place.name, make).parent
    except RuntimeError:
        return []
    return ["-Wl,--no-as-needed", f"-L{quote(str(found))}"]
