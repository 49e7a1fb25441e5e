"""Recorded measurements: `records` reads and writes results/<gpu>.json; the other modules show them."""

from helpers.ladder.results.records import (
    PEERS,
    Recorded,
    ResultsError,
    find,
    merge,
    problems,
    read,
    record_problems,
    recorded,
    write,
)

__all__ = [
    "PEERS",
    "Recorded",
    "ResultsError",
    "find",
    "merge",
    "problems",
    "read",
    "record_problems",
    "recorded",
    "write",
]
