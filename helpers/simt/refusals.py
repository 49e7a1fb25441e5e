"""What the simulator cannot do, each with a sentence that says what to do instead.

A refusal is an error directive put before the name. It fires only if the compiler gets there, so that code behind an
`#if` does not count.
"""

from __future__ import annotations

import re

from helpers.simt.lexer import Token
from helpers.simt.text import Text

# Marks a refusal in the compiler's output; `helpers.compile_errors` looks for it.
REFUSAL = "not supported by the simulator: "

TEXTURES = "textures and surfaces; read the array through a pointer"
_GRAPHS = "CUDA graphs; launch the kernels one after another"
_COOPERATIVE = "grid-wide synchronisation; split the kernel in two launches"
REFUSED = {
    "asm": "inline PTX; keep it behind a function with a second body for the simulator (#ifdef __SIMT__)",
    "cudaLaunchKernel": "cudaLaunchKernel; launch with kernel<<<grid, block>>>(...)",
    "cudaLaunchKernelEx": "cudaLaunchKernelEx; launch with kernel<<<grid, block>>>(...)",
    "cudaLaunchCooperativeKernel": _COOPERATIVE,
    "this_cluster": "thread-block clusters; they need a GPU of compute capability 9.0",
} | dict.fromkeys(("cudaTextureObject_t", "cudaSurfaceObject_t", "cudaCreateTextureObject"), TEXTURES)
REFUSED |= dict.fromkeys(("__asm__", "__asm"), REFUSED["asm"])
REFUSED |= dict.fromkeys(("cudaGraph_t", "cudaGraphExec_t", "cudaGraphCreate", "cudaStreamBeginCapture"), _GRAPHS)
TEXTURE_CALL = re.compile(r"(?:tex(?:1D|2D|3D|Cubemap)|surf(?:1D|2D|3D))\w*$|texture$|surface$")


def refuse(text: Text, token: Token, sentence: str) -> None:
    """Refuses what begins at `token`."""
    text.replace_span(token.start, token.start, f'_Pragma("GCC error \\"{REFUSAL}{sentence}\\"") ')
