"""The far case of an exercise: narrow indices are named, and answers with an order of their own are left alone."""

from functools import partial
from pathlib import Path

import pytest
import torch
from inputs import needs_far_memory
from wrong_answers import WRONG

from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.checking.compare import CheckFailed
from helpers.practice import far_case, judge, registry
from helpers.practice.case_inputs import LEAST, far
from helpers.practice.case_runner import Rejected
from helpers.practice.cases import Case, Check, Far
from helpers.practice.checks import CHECKS
from helpers.practice.verdict import Verdict
from kernel_xray.build.flags import filled_locals
from kernel_xray.build.loader import load
from kernel_xray.runtime.far import Computed

pytestmark = needs_far_memory


def test_every_exercise_is_far_or_says_why_not():
    for name, what in CHECKS.items():
        assert (what.far is None) == bool(what.why_not.get("far")), name
    assert len([what for what in CHECKS.values() if what.far]) > 40


def test_the_long_case_needs_more_than_32_bits_and_the_short_one_does_not():
    for name, what in CHECKS.items():
        given = what.far
        if given:
            assert elements(given, given.long) > 2**32, name
            assert elements(given, given.short) < 2**31, name
            assert all(elements(given, length) > 2**32 for length in given.more), name
            if given.least:
                assert elements(given, given.least) < elements(given, given.short), name


def elements(given: Far, length: int) -> int:
    return far_case._largest(given.case(length))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, what in CHECKS.items() if what.far])
def test_the_solution_computes_every_far_case(name):
    """Else the check would leave its far cases out, and those of answers like it."""
    solution, what = registry.find(name).solution, CHECKS[name]
    built = load(name, [str(solution)], is_python_module=False, traced=True, extra_cflags=filled_locals())
    function, given = getattr(built.untraced, name), what.far
    for length in filter(None, (given.short, given.least, given.long, *given.more)):  # `least` is 0 where there is none
        seen = far_case.SEEN if length == given.short else 0
        wrong = far_case._wrong_ends(lambda n: far_case.computed(function, given.case(n)), what, length, seen)
        assert not wrong


def test_small_results_do_not_say_who_computed_them():
    def wrong(size):
        case = Case("n = 2^20", (far(2**20),), tolerance={"sure": (1,)})
        what = Check(lambda x: torch.ones(1024), list, far=Far(lambda n: case))
        return far_case._wrong_ends(lambda n: Computed([what.reference(0)], [(size,)], 1, 2**24), what, 2**20)

    assert not wrong(16)
    assert wrong(2**23) == "n = 2^20: few blocks compute everything"


@pytest.mark.slow  # a build; the 16 bits above go the same way without one
def test_a_narrow_index_is_rejected_in_plain_words():
    wrong = WRONG["vector_scale_narrow_index"]
    answer = judge.check_cell(wrong.exercise, wrong.cell())
    assert answer.kind == "rejected"
    first, why = answer.message.splitlines()
    assert first.startswith("n = 68,719,477,767: element [")
    assert "the index overflows 32 bits, which end at 2,147,483,647" in why


def vector_scale(tmp_path: Path, *changes: tuple[str, str]) -> Verdict:
    text = registry.find("vector_scale").solution.read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "answer.cu").write_text(text, encoding="utf-8")
    return judge.run("vector_scale", tmp_path / "answer.cu")


@pytest.mark.slow  # a right answer of a rare form; the solution itself is checked in the quick suite
def test_a_grid_of_limited_size_is_no_narrow_index(tmp_path):
    """The first and the last blocks alone compute no ends then; a 16-bit index, which looks the same, is found."""
    blocks = "ladder::ceil_div(n, kThreads), kThreads"
    limited = (blocks, "ladder::ceil_div(n, kThreads) < 65535 ? ladder::ceil_div(n, kThreads) : 65535, kThreads")
    guarded = "if (i < n) out[i]"
    strides = (guarded, "for (; i < n; i += int64_t(gridDim.x) * blockDim.x) out[i]")
    for limit in ("65535", "(1 << 20)"):
        answer = vector_scale(tmp_path, (limited[0], limited[1].replace("65535", limit)), strides)
        assert answer.accepted, answer.message
    in_16_bits = ("int64_t(blockIdx.x)", "int64_t(short(blockIdx.x))")
    narrow = vector_scale(tmp_path, in_16_bits, (guarded, "if (i >= 0 && i < n) out[i]"))
    assert narrow.kind == "rejected"
    assert "the index overflows 16 bits" in narrow.message


@pytest.fixture(scope="module")
def add():
    return extension("vector_add", ("vector_add.cu",)).vector_add_simple


def adds(n: int) -> Case:
    return Case(f"n = {n:,}", (far(n), far(n)))


def run(function, **options) -> list[str]:
    seen: list[str] = []
    what = Check(torch.add, list, far=Far(adds, **options))
    compute = partial(_computed, function)
    far_case.run_far_case(compute, what, torch.device("cpu"), seen.append)
    return seen


def _computed(function, n: int, width: int = 0) -> Computed:
    return far_case.computed(function, adds(n), width)


def test_a_right_answer_passes_and_the_case_is_announced(add):
    assert run(add) == ["n = 68,719,477,767"]
    assert run(add, long=2**33) == ["n = 8,589,934,592"]


def spoiled(add, when):
    """a + b, whose last element is wrong for the lengths of which `when` is true."""

    def function(a, b):
        out = add(a, b)
        if when(len(a)):
            out[-1] = 99
        return out

    return function


def test_a_far_case_may_have_a_reference_of_its_own(add):
    what = Check(torch.sub, list, far=Far(adds, reference=torch.add))
    function = spoiled(add, lambda n: n > 2**31)
    with pytest.raises(Rejected, match=r"element .* is 99"):
        far_case.run_far_case(lambda n: far_case.computed(function, adds(n)), what, torch.device("cpu"), lambda x: None)


def test_only_what_is_wrong_on_long_tensors_alone_is_rejected(add):
    with pytest.raises(Rejected, match=r"(?s)^n = 68,719,477,767: element \[68,719,477,766\] is 99, .*int64_t"):
        run(spoiled(add, lambda n: n > 2**31))
    assert run(spoiled(add, lambda n: True))  # it does not compute the ends even where 32 bits are enough


def test_further_lengths_are_computed_too(add):
    assert run(add, more=(2**34,)) == ["n = 68,719,477,767", "n = 17,179,869,184"]
    with pytest.raises(Rejected, match=r"^n = 17,179,869,184: element"):
        run(spoiled(add, lambda n: n == 2**34), more=(2**34,))


def test_an_index_of_16_bits_is_found_where_the_shorter_call_is_right(add):
    with pytest.raises(Rejected, match=r"(?s)^n = 16,778,247: element \[16,778,246\] is 99, .*overflows 16 bits"):
        run(spoiled(add, lambda n: n > 2**23), least=LEAST)
    assert run(spoiled(add, lambda n: True), least=LEAST)  # it does not compute the ends of any

    def whole(a, b):  # as if the first block went over all elements, up to a time limit
        out = add(a, b).copy_(a + b)
        if len(a) > 2**23:
            out[-1] = 99
        return out

    assert run(whole, least=LEAST)


def test_an_answer_that_lets_few_blocks_do_all_is_left_alone(add):
    def whole(a, b):
        if len(a) > 2**31:
            raise CheckFailed("it would take hours")
        return add(a, b).copy_(a + b)

    assert run(whole)


def test_a_gpu_computes_no_far_case():
    what = Check(torch.add, list, far=Far(adds))
    far_case.run_far_case(pytest.fail, what, torch.device("cuda"), pytest.fail)
