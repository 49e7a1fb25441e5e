"""Of PyTorch's headers, those that an extension for the classic interface needs: they are most of what it compiles.

`ATen/Functions.h` declares each of PyTorch's thousands of operators. PyTorch itself is compiled with a header for each
operator instead, `ATen/ops/NAME.h`, and so is an extension here: with those that its texts name. A name that
a macro pastes together is not seen; then the compiler misses a declaration, and the build is repeated with all.
"""

import re
from functools import lru_cache
from pathlib import Path

from kernel_xray.machine.paths import of_torch
from kernel_xray.translate.includes import write_source

# What `ATen/Functions.h` itself defines, and what needs operators that no text names.
_ALL = re.compile(
    r"\b(?:at|torch)::(?:fft|special|native|var|var_mean|std|std_mean|numel|size|stride|conj|is_\w+|_is_zerotensor)\b|"
    r"\bnative::"
)
# torch/autograd.h takes a third of the time that is left, and torch/utils.h includes the same.
_AUTOGRAD = re.compile(r"\bautograd\b|\w*Grad\w*|\bInferenceMode\b|\bRECORD_FUNCTION|\bmanual_seed\b|\w+_num_threads\b")
_FORMS = re.compile(r"(?:_symint)?(?:_outf?)?_?$")  # add_out, zeros_symint and relu_ are in the headers of add, ...
_UNDECLARED = re.compile(
    r"error: .*(?:is not a member of|was not declared|has not been declared|no matching function|incomplete type|"
    r"no member named|undeclared identifier|does not name a type|no type named)"
)


def chosen(texts: dict[Path, str], folder: Path) -> list[str]:
    """The compiler's flags for the headers that these texts need; none if they need all.

    Writes the list of operators into `folder`.
    """
    if any(_ALL.search(text) for text in texts.values()):
        return []
    named = {_FORMS.sub("", word) for text in texts.values() for word in re.findall(r"\w+", text)}
    needed = sorted({"equal", *named} & _operators())  # torch/utils.h calls `equal`
    folder.mkdir(parents=True, exist_ok=True)
    write_source(folder / "simt_operators.h", "".join(f"#include <ATen/ops/{name}.h>\n" for name in needed))
    autograd = any(_AUTOGRAD.search(text) for text in texts.values())
    return ["-DAT_PER_OPERATOR_HEADERS", f"-I{folder}", *(["-DSIMT_AUTOGRAD"] if autograd else [])]


def lacking(output: str) -> bool:
    """Whether a compiler with this output has missed a declaration."""
    return bool(_UNDECLARED.search(output))


@lru_cache(maxsize=1)
def _operators() -> set[str]:
    torch = of_torch()
    return {path.stem for path in (torch / "include" / "ATen" / "ops").glob("*.h")} if torch else set()
