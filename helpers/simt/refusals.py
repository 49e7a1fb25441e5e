"""Features that the simulator lacks and no header can refuse, each with a sentence that says what to do instead.

A refusal is an error directive inserted before the name. It fires only if the compiler reaches it, so code disabled by
an `#if` is not refused. Functions of the run-time API that the simulator lacks are refused by
include/simt/runtime_refused.h.
"""

import re

from helpers.simt.edits import Text
from helpers.simt.lexer import Token

# Marks a refusal in the compiler's output; `helpers.build.compile_errors` looks for it.
REFUSAL = "not supported by the simulator: "

TEXTURES = "textures and surfaces; read the array through a pointer"
_PTX = "inline PTX; keep it behind a function with a second body for the simulator (#ifdef __SIMT__)"
REFUSED = dict.fromkeys(("asm", "__asm__", "__asm"), _PTX)
TEXTURE_CALL = re.compile(r"(?:tex(?:1D|2D|3D|Cubemap)|surf(?:1D|2D|3D))\w*$|texture$|surface$")


def refuse(text: Text, token: Token, sentence: str) -> None:
    """Inserts a refusal before `token`."""
    reject(text, token, REFUSAL + sentence)


def reject(text: Text, token: Token, sentence: str) -> None:
    """Inserts an error before `token`: nvcc does not accept what begins there either."""
    text.replace_span(token.start, token.start, f'_Pragma("GCC error \\"{sentence}\\"") ')
