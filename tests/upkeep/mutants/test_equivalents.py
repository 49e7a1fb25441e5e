"""The list of equivalent mutants: each entry is of a mutant that exists, and has a reason."""

from collections import Counter

import pytest

from helpers.upkeep.mutants import equivalents, targets
from helpers.upkeep.mutants.equivalents import Entry
from helpers.upkeep.mutants.kinds import OPERATORS


def stale(entries: list[Entry]) -> list[str]:
    """Lines of entries that are the changed line of no mutant of their file and operators."""
    by_file = {target.file: target for target in targets.targets()}
    return [
        f"{entry.file}, {operator}: {line}"
        for entry in entries
        for operator in entry.operators
        for line in set(entry.lines) - {m.after for m in by_file[entry.file].mutants([OPERATORS[operator]])}
    ]


def test_each_entry_is_of_a_mutant_that_exists():
    assert stale(equivalents.entries()) == []


def test_a_stale_entry_is_found():
    entry = Entry("vector_add.cu", ("narrow-32",), "planted", ("int stride = 7;", "int64_t stride = int(gridDim.x);"))
    assert len(stale([entry])) == 2


def test_each_entry_has_a_reason_and_no_mutant_has_two():
    listed = Counter()
    for entry in equivalents.entries():
        assert len(entry.reason.split()) >= 4, entry
        assert entry.lines
        listed.update((entry.file, operator, line) for operator in entry.operators for line in entry.lines)
    assert [mutant for mutant, count in listed.items() if count > 1] == []


def test_a_mutant_is_known_by_file_operator_and_line(tmp_path, monkeypatch):
    path = tmp_path / "list.toml"
    path.write_text(
        '[[equivalent]]\nfile = "a.cu"\noperators = ["cast"]\nreason = """\nthe value\n  fits"""\nlines = ["x;"]\n'
    )
    (entry,) = equivalents.entries(path)
    assert entry == Entry("a.cu", ("cast",), "the value fits", ("x;",))
    monkeypatch.setattr(equivalents, "entries", lambda: [entry])
    assert equivalents.reason("a.cu", "cast", "x;") == "the value fits"
    for other in (("b.cu", "cast", "x;"), ("a.cu", "sign", "x;"), ("a.cu", "cast", "y;")):
        assert equivalents.reason(*other) == ""


def test_an_entry_without_a_reason_is_an_error(tmp_path):
    path = tmp_path / "list.toml"
    path.write_text('[[equivalent]]\nfile = "a.cu"\noperators = ["cast"]\nlines = ["x;"]\n')
    with pytest.raises(KeyError, match="reason"):
        equivalents.entries(path)
