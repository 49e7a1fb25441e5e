"""Finds the glossary's terms in a sentence."""

import re
from collections.abc import Iterable, Mapping


def pattern(terms: Iterable[str]) -> re.Pattern:
    """Finds terms, longest first, in singular or plural. An abbreviation or a name keeps its capitals."""
    found = []
    for term in sorted(terms, key=len, reverse=True):
        lower = term == term.lower()
        found.append(f"(?i:{re.escape(term)})" if lower else re.escape(term))
    return re.compile(rf"(?<![\w-])({'|'.join(found)})(?:s|es)?(?![\w-])")


def term_of(text: str, terms: Mapping[str, str]) -> str | None:
    """The term that `text` is, perhaps in plural: its key in `terms`, whose keys are in lower case."""
    lower = text.lower()
    return next((form for form in (lower, lower.removesuffix("s"), lower.removesuffix("es")) if form in terms), None)
