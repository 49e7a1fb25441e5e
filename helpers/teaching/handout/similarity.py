"""Which answers of a class have more in common than the exercise explains.

An answer becomes a set of fingerprints: runs of TOKENS tokens of tree-sitter's CUDA grammar, in which a name that is
not in the starter counts only by where it came before in the run. So other names, comments and white space change
nothing.
(Runs of tokens as fingerprints: Schleimer, Wilkerson and Aiken, "Winnowing", SIGMOD 2003.)

What any right answer has proves nothing. Lines of the starter, fingerprints of the course's solution, and those that a
third of the class has are left out. What remains of a short answer is little; below LEAST fingerprints a pair is not
listed. The list is a reason to read two answers side by side, and nothing more.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from helpers.practice import registry
from helpers.teaching.classroom.submissions import Answer, Submission

if TYPE_CHECKING:
    from tree_sitter import Parser

TOKENS = 10  # in a fingerprint: about one statement
LEAST = 12  # fingerprints in common, of a pair that is listed
SHARE = 0.5  # of the fingerprints of the answer that has fewer
COMMON = 1 / 3  # of the class; such a fingerprint says nothing
_NAMES = {"identifier", "field_identifier", "type_identifier", "name"}

Prints = dict[tuple[str, ...], set[int]]  # fingerprint -> lines of the answer, from 1


@dataclass(frozen=True)
class Token:
    """A token, its line from 1, and whether it is a name."""

    text: str
    line: int
    name: bool


@dataclass(frozen=True)
class Common:
    """What two answers to an exercise share. `lines` are those of the first and of the second answer."""

    exercise: str
    answers: tuple[Answer, Answer]
    prints: int
    share: float
    lines: tuple[frozenset[int], frozenset[int]]


@dataclass(frozen=True)
class Pair:
    """Two submissions, by name, with what they share, the most telling first."""

    names: tuple[str, str]
    common: tuple[Common, ...]

    @property
    def prints(self) -> int:
        return sum(one.prints for one in self.common)


def pairs(submissions: Sequence[Submission]) -> list[Pair]:
    """The pairs of submissions with suspiciously similar answers, the most similar first."""
    found: dict[tuple[str, str], list[Common]] = {}
    for exercise in registry.exercises():
        answers = {one.name: one.answers[exercise.name][0] for one in submissions if one.answers.get(exercise.name)}
        for names, common in _of_exercise(exercise.name, answers):
            found.setdefault(names, []).append(common)
    listed = [Pair(names, tuple(sorted(common, key=lambda c: -c.prints))) for names, common in found.items()]
    return sorted(listed, key=lambda pair: (-pair.prints, pair.names))


def counted(submissions: int) -> str:
    """'1 submission', '2 submissions'."""
    return f"{submissions} {'submission' if submissions == 1 else 'submissions'}"


def _of_exercise(name: str, answers: dict[str, Answer]) -> Iterator[tuple[tuple[str, str], Common]]:
    prints = {who: fingerprints(name, answer.text) for who, answer in answers.items()}
    holders = Counter(one for of_answer in prints.values() for one in of_answer)
    solution = registry.find(name).solution.read_text(encoding="utf-8")
    ordinary = set(fingerprints(name, solution)) | {
        one for one, count in holders.items() if count > 2 and count > COMMON * len(answers)
    }
    telling = {who: {one: lines for one, lines in own.items() if one not in ordinary} for who, own in prints.items()}
    for first, second in combinations(sorted(telling), 2):
        both = telling[first].keys() & telling[second].keys()
        smaller = min(len(telling[first]), len(telling[second]))
        if len(both) >= LEAST and len(both) >= SHARE * smaller:
            lines = tuple(frozenset().union(*(telling[who][one] for one in both)) for who in (first, second))
            given = (answers[first], answers[second])
            yield (first, second), Common(name, given, len(both), len(both) / smaller, (lines[0], lines[1]))


def fingerprints(exercise: str, text: str) -> Prints:
    """The fingerprints of an answer, without the lines of the starter."""
    python = registry.find(exercise).starter.suffix == ".py"
    kept, given = _of_starter(registry.read(exercise).starter, python)
    lines, parts = [], [0]  # part of each line: a run does not lead over a line of the starter, but for a brace
    for line in text.split("\n"):
        squeezed = "".join(line.split())
        lines.append("" if squeezed in kept else line)
        parts.append(parts[-1] + (squeezed in kept and len(squeezed) > 3))
    stream = list(tokens("\n".join(lines), python))
    found: Prints = {}
    for i in range(len(stream) - TOKENS + 1):
        run = stream[i : i + TOKENS]
        if parts[run[0].line] == parts[run[-1].line]:
            found.setdefault(_renamed(run, given), set()).update(token.line for token in run)
    return found


@lru_cache(maxsize=256)
def _of_starter(starter: str, python: bool) -> tuple[frozenset[str], frozenset[str]]:
    """The lines of a starter, without white space, and the texts of its tokens."""
    lines = frozenset("".join(line.split()) for line in starter.split("\n"))
    return lines, frozenset(token.text for token in tokens(starter, python))


def _renamed(run: Sequence[Token], given: Set[str]) -> tuple[str, ...]:
    """The run's texts; in place of a name that is not `given`, how far back it came last, or that it is new."""
    last: dict[str, int] = {}
    texts = []
    for i, token in enumerate(run):
        if token.name and token.text not in given:
            texts.append(f"name {i - last[token.text]}" if token.text in last else "new name")
            last[token.text] = i
        else:
            texts.append(token.text)
    return tuple(texts)


def tokens(text: str, python: bool) -> Iterator[Token]:
    """The tokens of CUDA C++ or Python, without comments. A text that is not in the language gives what can be read."""
    yield from _python_tokens(text) if python else _cuda_tokens(text)


def _cuda_tokens(text: str) -> Iterator[Token]:
    waiting = [_parser().parse(text.encode()).root_node]
    while waiting:
        node = waiting.pop()
        if node.child_count == 0 and node.type != "comment" and node.text:
            yield Token(node.text.decode(errors="replace"), node.start_point[0] + 1, node.type in _NAMES)
        waiting += reversed(node.children)


@cache
def _parser() -> Parser:
    """The parser of CUDA C++. Raises ModuleNotFoundError without the `dev` dependencies."""
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def _python_tokens(text: str) -> Iterator[Token]:
    try:
        ast.parse(text)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING) and token.string.strip():
                yield Token(token.string, token.start[0], token.type == tokenize.NAME)
    except (SyntaxError, ValueError, tokenize.TokenError):
        for number, line in enumerate(text.split("\n"), 1):
            yield from (Token(word, number, word.isidentifier()) for word in line.split())
