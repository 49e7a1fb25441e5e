"""Kernels whose indices are too narrow: copies of a source, each with one int64_t of its device code narrowed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Changed lines that are as right as before, by file: the value never needs more than 32 bits (a stride, a row of a
# band, a k; a grid has at most 65,535 blocks in y), or only in a loop that would take minutes.
HARMLESS = {
    "vector_add.cu": r"\w+ stride =|gridDim|for \(int64_t i = \w+\(",
    "bias_gelu.cu": r"(int|unsigned) band|= \w+\(blockIdx.y",
    "bias_gelu_float4.cu": r"(int|unsigned) band|= \w+\(blockIdx.y",
    "bias_gelu.h": r"(int|unsigned) (count|row)\b",
    "softmax.cu": r"(?<!rows, )(int|unsigned) (row_vectors|v)\b|first = \w+\(",
    "matmul.h": r"element_or_zero|load_four|store_four|, (int|unsigned) column\) const",  # few columns: tested with 01
    "01_naive.cu": r"(int|unsigned) (n|k|i|column)\b|column = \w+\(",
    "02_coalesced.cu": r"(int|unsigned) (m|k|i|row)\b|row = \w+\(",
    "03_tiled.cu": r"(int|unsigned) (m|k|begin|rows?|first_row)\b|row = (int|unsigned)\(",
}
DEVICE = re.compile(r"(?:__global__|__device__)(?! static)[^;{]*\{.*?\n\}", re.DOTALL)


@dataclass(frozen=True)
class Narrowed:
    """A source with one narrower type: where, and what it was."""

    line: int
    after: str  # the changed line
    text: str


def narrowed(source: Path) -> Iterator[Narrowed]:
    """Every copy of `source` in which one int64_t of a kernel is an int or an unsigned."""
    text = source.read_text()
    harmless = re.compile(HARMLESS.get(source.name, r"(?!)"))
    for body in DEVICE.finditer(text):
        for found in re.finditer(r"\bint64_t\b", body[0]):
            start, end = body.start() + found.start(), body.start() + found.end()
            for narrow in ("int", "unsigned"):
                changed = text[:start] + narrow + text[end:]
                line = text.count("\n", 0, start)
                after = changed.split("\n")[line].strip()
                if not harmless.search(after):
                    yield Narrowed(line + 1, after, changed)
