"""The list of equivalent mutants: each entry is of mutants that exist, and has a reason."""

from collections import Counter
from functools import cache

import pytest

from helpers.upkeep.mutants import equivalents, targets
from helpers.upkeep.mutants.equivalents import Entry
from helpers.upkeep.mutants.kinds import OPERATORS
from helpers.upkeep.mutants.mutation import Mutant, mutants


@cache
def made(file: str, operator: str) -> list[Mutant]:
    (target,) = (target for target in targets.targets() if target.file == file)
    return list(target.mutants([OPERATORS[operator]]))


def covered(entry: Entry) -> list[Mutant]:
    every = (mutant for operator in entry.parts for mutant in made(entry.file, operator))
    return [mutant for mutant in every if entry.covers(mutant.operator, mutant.after)]


def stale(entries: list[Entry]) -> list[str]:
    """Parts of entries that no mutant has, and entries whose mutants are not those of their digest, with these."""
    found = []
    for entry in entries:
        for operator, parts in entry.parts.items():
            lines = [mutant.after for mutant in made(entry.file, operator)]
            unused = [part for part in parts if not any(part in line for line in lines)]
            found += [f"{entry.file}, {operator}: no mutant has {part!r}" for part in unused]
        now = equivalents.digest(covered(entry))
        if now != entry.digest:
            shown = "\n".join(mutant.difference() for mutant in covered(entry))
            found.append(f'{entry.file}, {entry.reason}: digest = "{now}", of these mutants:\n{shown}')
    return found


@pytest.mark.slow  # makes the mutants of every kernel; what makes an entry stale is below
def test_each_entry_is_of_mutants_that_exist_and_have_not_changed():
    found = stale(equivalents.entries())
    assert not found, "\n".join(found)


def test_a_stale_entry_is_found():
    entry = Entry("vector_add.cu", "planted", "", {"narrow-32": ["int stride = 7;", "int stride ="]})
    unused, changed = stale([entry])
    assert "no mutant has 'int stride = 7;'" in unused
    right = Entry("vector_add.cu", "planted", equivalents.digest(covered(entry)), {"narrow-32": ["int stride ="]})
    assert f'digest = "{right.digest}", of these mutants' in changed and "- int64_t stride" in changed
    assert stale([right]) == []


@pytest.mark.parametrize("line", ["  int64_t more = a;", "  int64_t n = a + 1;"])
def test_a_line_that_changes_and_a_further_mutant_make_an_entry_stale(line):
    digests = [
        equivalents.digest(mutants("a.cu", f"void f(int a) {{\n{body}\n}}\n", [OPERATORS["narrow-32"]]))
        for body in ("  int64_t n = a;", "  int64_t n = a;", line, f"  int64_t n = a;\n{line}")
    ]
    assert digests[0] == digests[1] and len(set(digests)) == 3


def test_each_entry_has_a_reason():
    for entry in equivalents.entries():
        assert len(entry.reason.split()) >= 4, entry
        assert entry.parts and all(entry.parts.values())


@pytest.mark.slow  # makes the mutants of every kernel, like the first
def test_no_mutant_has_two_reasons():
    listed = Counter()
    for entry in equivalents.entries():
        listed.update({(entry.file, mutant.operator, mutant.after) for mutant in covered(entry)})
    assert [mutant for mutant, count in listed.items() if count > 1] == []


def test_a_mutant_is_known_by_file_operator_and_line(tmp_path, monkeypatch):
    path = tmp_path / "list.toml"
    path.write_text('["the value fits"]\n"a.cu" = { cast = ["x ="], digest = "0" }\n')
    (entry,) = equivalents.entries(path)
    assert entry == Entry("a.cu", "the value fits", "0", {"cast": ["x ="]})
    monkeypatch.setattr(equivalents, "entries", lambda: [entry])
    assert equivalents.reason("a.cu", "cast", "int x = 1;") == "the value fits"
    for other in (("b.cu", "cast", "x = 1;"), ("a.cu", "sign", "x = 1;"), ("a.cu", "cast", "y = 1;")):
        assert equivalents.reason(*other) == ""


def test_an_entry_without_a_digest_is_an_error(tmp_path):
    path = tmp_path / "list.toml"
    path.write_text('["the value fits"]\n"a.cu" = { cast = ["x;"] }\n')
    with pytest.raises(KeyError, match="digest"):
        equivalents.entries(path)
