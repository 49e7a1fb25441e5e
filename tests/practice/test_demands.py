"""What an exercise's text asks for beyond the values: each demand accepts what meets it, and rejects the rest."""

import pytest
from wrong_answers import cell_of

from helpers.practice import demands
from helpers.practice.checks import lesson_14
from kernel_xray.report.facts import FaultRecord, Line
from kernel_xray.report.report import Report

PLACE = ("cell.cu", 3, "some_kernel")


def report(requests=4, sectors=4, space="global", kind="load", remarks=()):
    line = Line(*PLACE, space, kind, requests, sectors, 4, 0, 0, 32.0, size=4)
    return Report(None, lines=[line], remarks=[FaultRecord(kind, *PLACE, (0,) * 3, (0,) * 3, kind) for kind in remarks])


def test_whole_sectors():
    assert demands.whole_sectors(report(sectors=4)) == ""
    assert "wasteful: uncoalesced access in line 3" in demands.whole_sectors(report(sectors=32))


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ({"requests": 4}, ""),
        ({"requests": 5}, "the warps make 5 load requests, where 4 would do: read once"),
        ({"requests": 5, "kind": "store"}, ""),
        ({"requests": 5, "space": "shared"}, ""),
    ],
)
def test_at_most(seen, found):
    assert demands.at_most(4, "load", "read once")(report(**seen)).endswith(found)
    assert bool(demands.at_most(4, "load", "read once")(report(**seen))) == bool(found)


def test_barriers_for_all():
    assert demands.barriers_for_all(report(remarks=["race"])) == ""
    assert "cell.cu:3: divergent-barrier" in demands.barriers_for_all(report(remarks=["race", "divergent-barrier"]))


def test_a_front_for_numpy_is_called_with_what_users_have():
    """The check of numpy_face, without its kernel."""
    import numpy as np

    class Island:
        @staticmethod
        def add(a, b):
            assert a.dtype == b.dtype == np.float32
            assert a.flags.c_contiguous and b.flags.c_contiguous
            return a + b

    def front(cell):
        names = {"np": np, "island": Island}
        exec(cell, names)
        return type("Answer", (), {"add": staticmethod(names["add"]), "island_add": staticmethod(Island.add)})

    solution = cell_of("numpy_face")
    assert lesson_14.takes_any_array(front(solution)) == ""
    for old, new, problem in (
        ("TypeError(", "KeyError(", "it raised KeyError, not TypeError"),
        ("{name} must", "it must", "does not name x"),
        ("np.ascontiguousarray(array, np.float32)", "array", "transposed: it raised AssertionError"),
        ("return island.add(a, b)", "return island.add(a, a)", "transposed: the result is"),
        ("return island.add(a, b)", "return np.add(a, b)", "transposed: the sum is right, but island.add was not"),
    ):
        assert solution.count(old) == 1
        assert problem in lesson_14.takes_any_array(front(solution.replace(old, new)))
