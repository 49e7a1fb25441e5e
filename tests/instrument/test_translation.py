"""The course's kernels keep their lines when they are translated, and all of their launches are found."""

import pytest
from translations import assert_launches_as_by_grammar, assert_lines_stay

from helpers.paths import KERNELS

SOURCES = sorted(KERNELS.rglob("*.cu*"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_tokens_join_to_the_source_and_lines_stay(path):
    assert_lines_stay(path)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_an_independent_grammar_finds_the_same_launches(path):
    assert_launches_as_by_grammar(path)
