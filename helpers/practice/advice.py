"""What a compiler's or the operating system's words mean for an exercise: a sentence that says what to do."""

import re
from collections.abc import Iterable

from helpers.practice import registry

NARROW = r"(?:const )?(?:__half|__nv_bfloat16|T|V::T)\b"
_NO_CONVERSION = re.compile(
    rf"(?:invalid cast from type|cannot convert|could not convert|no suitable (?:user-defined )?conversion|"
    rf"no match for 'operator|no operator \").*(?:__half|__nv_bfloat16|__nv_bfloat162|__half2)|"
    rf"static_cast.*{NARROW}"
)
_UNKNOWN = re.compile(r"'(\w+)' was not declared|identifier \"(\w+)\" is undefined|undeclared identifier '(\w+)'")
_WIDE = 160  # characters
_OURS = ("simt::", "SIMT_")  # of lines that the translation for the simulator has made

_ENDED = {
    "SIGSEGV": "did it read or write far out of bounds?",
    "SIGBUS": "did it read or write far out of bounds?",
    "SIGFPE": "did it divide a whole number by 0?",
    "SIGKILL": "did it need more memory than there is?",
}


def on_build(name: str, message: str) -> str:
    """A build's error with advice; without the lines of code that the learner has not written."""
    plain = message.replace("\u2018", "'").replace("\u2019", "'")
    first, *lines = message.split("\n")
    kept = []
    for line in lines:
        if any(mark in line for mark in _OURS):
            break  # and the caret below it
        if len(line) < _WIDE:  # the caret of a line that the translation has made longer
            kept.append(line)
    told = [first, *kept]
    if _NO_CONVERSION.search(plain):
        told.append(
            "  PyTorch builds kernels without the conversions of 16-bit types: write __half2float(x), "
            "__bfloat162float(x) or ladder::widened(x), and __float2half(y) or ladder::narrowed<T>(y)"
        )
    unknown = _UNKNOWN.search(plain)
    called = next(filter(None, unknown.groups())) if unknown else ""
    if called and re.search(rf"\b{called}\s*(?:<[^;()]*>)?\s*<<<", registry.read(name).starter):
        told.append(f"  the launcher below your code calls {called}: a kernel of that name must exist")
    return "\n".join(told)


def on_end(reason: str, case: str, printed: Iterable[str]) -> str:
    """Why the answer's process has ended.

    reason   the name of a signal, or the exit status
    case     the label of the case that was running, "" if it was still being built or loaded
    printed  the lines that it has printed
    """
    if reason in ("SIGPROF", "SIGALRM") and not case:
        return (
            "it was built, but loading it does not end: does the initialisation of a global variable, which runs then, "
            "have a loop without end?"
        )
    text = "\n".join(line.rstrip() for line in printed)
    _, thrown, rest = text.partition("what():")
    because = rest.partition("(originally from")[0].strip()
    if not thrown and reason == "SIGABRT":
        because = text.strip().rpartition("\n")[2]
    because = because or _ENDED.get(reason, "")
    when = "" if case else " while it was loaded"
    return f"it ended the process ({reason}){when}" + (f": {because}" if because else "")
