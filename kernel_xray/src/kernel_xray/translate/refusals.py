"""Features that the simulator lacks and no header can refuse, each with a sentence that says what to do instead.

A refusal is an error directive inserted before the name. It fires only if the compiler reaches it, so code disabled by
an `#if` is not refused. Functions of the run-time API that the simulator lacks are refused by
include/simt/runtime_refused.h.
"""

import re

from kernel_xray.translate.edits import Text
from kernel_xray.translate.lexer import Token

# Marks a refusal in the compiler's output; `kernel_xray.build.compile_errors` looks for it.
REFUSAL = "not supported by the simulator: "

TEXTURES = {
    "texture": "texture references, which CUDA 12 removed; create a texture object",
    "surface": "surface references, which CUDA 12 removed; create a surface object",
}
CUBE_MAPS = "cube maps; read a layered texture"
WAIT_IN_KERNEL = (
    "cudaDeviceSynchronize in a kernel, which CUDA 12 removed: a kernel cannot wait for the kernels that it launches; "
    "launch what needs their results into cudaStreamTailLaunch"
)
CUBE_MAP_CALL = re.compile(r"(?:tex|surf)Cubemap\w*$")


def refuse(text: Text, token: Token, sentence: str) -> None:
    """Inserts a refusal before `token`."""
    reject(text, token, REFUSAL + sentence)


def reject(text: Text, token: Token, sentence: str) -> None:
    """Inserts an error before `token`: nvcc does not accept what begins there either."""
    text.replace_span(token.start, token.start, f'_Pragma("GCC error \\"{sentence}\\"") ')
