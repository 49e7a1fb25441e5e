"""Measured numbers that a lesson's prose quotes, and whether one of its cells shows each.

A quote is a number with a unit of measurements: 184 us, 81%, 1.53x, 5.9 times as fast, a factor of 2.8, 8.4 TFLOP/s. A
cell shows it if its output has a number that rounds to it, or, for a factor, two times or rates with that ratio. Of
a listing only the comments count: its code has line numbers, and `%` between integers.
Numbers from elsewhere (a data sheet, another lesson, a sum in the sentence) are in quotes.toml, each with its source.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from kernel_xray.machine import toml

LIST = Path(__file__).with_suffix(".toml")
# unit -> (kind, factor): numbers of one kind can be compared
UNITS = {
    "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1.0), "seconds": ("time", 1.0),
    "GB/s": ("bandwidth", 1e9), "TB/s": ("bandwidth", 1e12), "TFLOP/s": ("speed", 1e12),
    "%": ("ratio", 0.01), "x": ("ratio", 1.0), "times as": ("ratio", 1.0),
}  # fmt: skip
HEADINGS = {"microseconds": "us"}  # words in an output that give its bare numbers a unit; so do the units themselves
_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_NUMBER = r"(?<![\w.,^*/-])(\d+(?:,\d{3})*(?:\.\d+)?)"
_QUOTE = re.compile(rf"{_NUMBER}(?:(?: to | and |, ){_NUMBER})?(?: ?(%|x)|\s({_UNIT}))(?![\w(])")
_FACTOR = re.compile(r"factor\sof\s(\d+(?:\.\d+)?)")
_SHOWN = re.compile(rf"{_NUMBER} ?({_UNIT})(?![\w(])")
_LISTING = re.compile(r"^(?:[-+] )?\S+\.(?:cu|h|cpp), lines \d+-\d+$", re.MULTILINE)
_COMMENT = re.compile(r"//.*")
_LEFT_OUT = re.compile(r"<details>.*?</details>|`[^`\n]*`|```.*?```|\d+ x \d+", re.DOTALL)


@dataclass(frozen=True)
class Number:
    """As written; in the base unit of its kind; half of its last place."""

    text: str
    kind: str
    value: float
    half: float


def _number(digits: str, unit: str) -> Number:
    kind, factor = UNITS[unit]
    place = 10.0 ** -len(digits.partition(".")[2])
    space = "" if unit in "%x" else " "
    return Number(f"{digits}{space}{unit}", kind, float(digits.replace(",", "")) * factor, place / 2 * factor)


def quotes(prose: str) -> Iterator[Number]:
    """The quotes in Markdown, without code, shapes and folded answers. In '1.3 to 1.4 times' both have the unit."""
    text = _LEFT_OUT.sub(" ", prose)
    for first, second, attached, apart in _QUOTE.findall(text):
        yield from (_number(digits, attached or apart) for digits in (first, second) if digits)
    yield from (_number(digits, "x") for digits in _FACTOR.findall(text))


def shown(output: str) -> Iterator[Number]:
    """The numbers of an output, and the factors between any two of one kind.

    A number with a unit beside it is of that unit; a bare one is of each unit that is anywhere in the output.
    """
    found = [_number(*match) for match in _SHOWN.findall(output)]
    words = set(re.findall(rf"(?<!\w)(?:{_UNIT})(?![\w(])", output))
    words |= {unit for word, unit in HEADINGS.items() if word in output}
    for digits in set(re.findall(_NUMBER, output)):
        found += [_number(digits, unit) for unit in words]
    yield from found
    by_kind: dict[str, set[float]] = {}
    for number in found:
        if number.kind != "ratio" and number.value > 0:
            by_kind.setdefault(number.kind, set()).add(number.value)
    for values in by_kind.values():
        if len(values) <= 60:
            yield from (Number("", "factor", a / b, 0) for a in values for b in values)


def unshown(prose: Iterable[str], outputs: Iterable[str], slack: float = 0.0) -> list[str]:
    """The quotes that no output shows, as written. `slack` is the relative difference allowed beside rounding."""
    values: dict[str, list[float]] = {}
    for output in outputs:
        for number in shown(output):
            values.setdefault(number.kind, []).append(number.value)
    found = []
    for quote in (q for text in prose for q in quotes(text)):
        room = quote.half * 1.0001 + slack * quote.value
        kinds = (quote.kind, "factor") if quote.kind == "ratio" and not quote.text.endswith("%") else (quote.kind,)
        if not any(abs(value - quote.value) <= room for kind in kinds for value in values.get(kind, [])):
            found.append(quote.text)
    return list(dict.fromkeys(found))


def elsewhere(lesson: str) -> dict[str, str]:
    """The quotes of a lesson, by its file's stem, that no cell of it shows: as written -> where the number is from."""
    return toml.loads(LIST.read_text(encoding="utf-8"))["recorded"].get(lesson, {})


def unshown_here(lesson: str, notebook: NotebookNode, outputs: Iterable[str]) -> list[str]:
    """The quotes that no cell shows in a run without a GPU, save those listed.

    There a cell shows what results/ has, of another run and near the lesson's shape: within 6%.
    """
    listed = elsewhere(lesson)
    return [quote for quote in unshown(prose_of(notebook), outputs, slack=0.06) if quote not in listed]


def prose_of(notebook: NotebookNode) -> list[str]:
    """The Markdown that a lesson's author wrote: without what is generated for exercises, and pencil questions."""
    cells = notebook.cells
    generated = {i - 1 for i, cell in enumerate(cells) if cell.source.startswith("%%exercise ")}
    return [
        cell.source
        for i, cell in enumerate(cells)
        if cell.cell_type == "markdown" and i not in generated and not cell.source.startswith("### With a pencil")
    ]


def texts(outputs: Iterable[NotebookNode]) -> str:
    """What a cell showed, as text; of a listing, its comments."""
    found = (o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs)
    return "\n".join("\n".join(_COMMENT.findall(text)) if _LISTING.search(text) else text for text in found)
