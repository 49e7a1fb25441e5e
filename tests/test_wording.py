"""No file uses the phrases that crept in before; each is listed with what a native engineer writes instead.

Outputs of notebooks and recorded results are what a run printed, and are left out.
"""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import tracked_files

# Regular expression -> what to write instead. Lower and upper case count as the same, except where a name may match.
PHRASES = {
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bnumbers? of (?:a|b|c|k|x|out)\b(?! (?!and|or|in|is|are|for|to)\w)(?!-)": "element of a; elements along k",
    r"\b(?:is|are) to be seen\b": "there is, we see",
    r"\bwithout a word\b": "silently",
    r"\blet loose\b": "run on",
    r"\bwhoever\b": "a thread that, the caller that",
    r"\bwho (?:has passed|reads|writes|waits for)\b(?! (?:what|it|them)\b)": "a thread that",
    r"(?<![\w.])(?-i:multiprocessors?)\b": "SM",
    r"(?<!there )\bis no (?!longer|more|less|better|worse|different|such|faster|new)\w+": "is not a",
    r"\bof so many\b": "name the number",
    r"\bnobody asked\b": "nothing checked",
    r"\bon (?:its|their) way\b": "in flight",
    r"\bas ever\b": "as before",
    r"\btold apart\b": "distinguished",
    r"\bstands? (?:in (?!for\b)|at |on |there\b|below\b|above\b|beside\b|twice\b|once\b)": "is",
    r"\bwhat becomes of\b": "what happens to",
    r"\bin its own hands\b": "itself",
    r"\bare clocks\b": "name the owner: each thread keeps a vector clock",
    r"\bany good tool of\b": "any good tool",
    r"\bNowhere does\b": "subject first",
    r"\bAbsolutely that\b": "in absolute terms",
}
# All in one, which each file is searched for once: a phrase begins at a word, and is a group without groups in it.
ANY = re.compile(r"\b(?:" + "|".join(f"({phrase})" for phrase in PHRASES).replace(r"(\b", "(") + ")", re.IGNORECASE)
MARK = re.compile(r"^[ \t]*(?://|#|\*)", re.MULTILINE)  # of a comment, at the start of a line
LEFT_OUT = {"LICENSE", "tests/test_wording.py"}
NOT_TEXT = {".json", ".png"}


def found_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Line number, phrase and replacement of each hit. A phrase may run over the end of a line, and of a comment's."""
    lines = [line.split() for line in MARK.sub("", text).split("\n")]  # marks of comments are not words
    flat = " ".join(itertools.chain.from_iterable(lines))
    for match in ANY.finditer(flat):
        words = flat.count(" ", 0, match.start())  # before it
        ends = itertools.accumulate(map(len, lines))
        line = next(number for number, end in enumerate(ends, start=1) if end > words)
        yield line, match[0], list(PHRASES.values())[match.lastindex - 1]


def text_of(path: Path) -> str:
    """What a person wrote: of a notebook, its cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def test_no_file_has_one_of_these_phrases():
    hits = [
        f"{name}:{line}: {phrase!r}; better: {better}"
        for name, path in tracked_files().items()
        if not (name.startswith("results/") or path.suffix in NOT_TEXT or name in LEFT_OUT)
        for line, phrase, better in found_in(text_of(path))
    ]
    assert hits == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("what mends it", 1),
        ("one thread for each number of c", 1),
        ("x\n// it is refused without\n//   a word about why", 2),
        ("# a row is no\n# shape", 1),
        ("Whoever waits", 1),
        ("a multiprocessor holds 64 warps", 1),
        ("the name stands in the file", 1),
    ],
)
def test_a_planted_phrase_is_found(text, line):
    assert [hit[0] for hit in found_in(text)] == [line]


@pytest.mark.parametrize(
    "text",
    [
        "amend, recommend, commend",
        "the number of columns; the number of bytes",
        "where there is no GPU; it is no longer there; there was no error",
        "cudaDevAttrMultiProcessorCount, MULTIPROCESSORS, props.multiprocessor_count",
        "headers that stand in for CUDA's",
        "the reader who has it",
    ],
)
def test_good_english_is_left_alone(text):
    assert list(found_in(text)) == []
