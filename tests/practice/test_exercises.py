"""The exercises: starters match their solutions and are rejected, solutions are accepted, wrong answers are rejected.

The wrong answers are in wrong_answers/, each with the message of the check.
"""

import importlib
import os
import re
from pathlib import Path

import pytest
from running import python
from wrong_answers import WRONG, Wrong, cell_of, edited

import helpers
from helpers.paths import NOTEBOOKS, ROOT
from helpers.practice import isolated, judge, registry
from helpers.practice.checks import CHECKS
from kernel_xray.machine import toml

EXERCISES = registry.exercises()
NAMES = [exercise.name for exercise in EXERCISES]


LESSONS = sorted({exercise.lesson for exercise in EXERCISES})


def test_exercises_for_each_lesson():
    assert len(EXERCISES) >= 57
    assert [path.name[:2] for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))] == LESSONS
    for exercise in EXERCISES:
        name, lesson, title, starter, solution = exercise
        assert solution.is_file()
        assert title
        assert name == starter.stem == solution.stem
        marked = registry.read(name)
        assert 2 + (lesson > "03") <= len(marked.hints) <= 4
        assert 25 <= len(marked.specification.split()) <= 90  # one short paragraph
        assert not re.search(r"[*_<]\S", re.sub("`.*?`", "", marked.specification))  # which is Markdown too
    for lesson in LESSONS:
        numbers = [registry.read(e.name).number for e in EXERCISES if e.lesson == lesson]
        assert numbers == list(range(1, len(numbers) + 1))
        times = [registry.read(e.name).minutes for e in EXERCISES if e.lesson == lesson]
        assert times == sorted(times)
        assert times[-1] == 30 if "01" <= lesson <= "08" else times[-1] <= 30


def test_checks_and_wrong_answers_are_in_the_file_of_their_lesson():
    lessons = {exercise.name: exercise.lesson for exercise in EXERCISES}
    for lesson in LESSONS:
        checks = importlib.import_module(f"helpers.practice.checks.lesson_{lesson}").CHECKS
        wrong = toml.loads((Path(__file__).parent / "wrong_answers" / f"lesson_{lesson}.toml").read_text())
        for there in (checks, wrong):
            assert set(there) == {name for name, of in lessons.items() if of == lesson}
        assert min(map(len, wrong.values())) >= 2
    assert set(CHECKS) == set(NAMES)


def test_no_exercise_found_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "KERNELS", tmp_path)
    with pytest.raises(RuntimeError, match="no exercises"):
        registry.exercises()


@pytest.mark.slow
@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_the_starter_builds_and_is_rejected(exercise, tmp_path):
    starter = tmp_path / exercise.starter.name
    starter.write_text(registry.read(exercise.name).starter)
    answer = judge.run(exercise.name, starter)
    # The bug of a starter may be one that only the traced run sees, and a function without its body may raise.
    partly = registry.read(exercise.name).broken or exercise.solution.suffix == ".py"
    partly = partly or exercise.name == "ring_consumer"  # whose producer waits for the consumer that is to be written
    assert answer.kind in ("rejected", *(["fault"] if partly else [])), answer
    assert not answer.accepted


# The quick suite judges the last solution of lesson 01: a judge that refuses right answers refuses it. Whether another
# solution is right changes only with its own file, and the slow suite tells.
LAST = {e.lesson: e.name for e in EXERCISES if e.lesson == "01"}.values()


@pytest.mark.parametrize(
    "exercise", [pytest.param(e, id=e.name, marks=() if e.name in LAST else pytest.mark.slow) for e in EXERCISES]
)
def test_the_solution_is_accepted(exercise):
    answer = judge.check_cell(exercise.name, cell_of(exercise.name))
    assert answer.accepted, answer


def test_every_replacement_matches_once():
    for wrong in WRONG.values():
        wrong.cell()  # raises ValueError naming the one that does not


@pytest.mark.parametrize(
    ("replace", "gaps", "problem"),
    [({"i": "j"}, {}, "'i' matches 1[0-9]"), ({"nothing": ""}, {}, "'nothing' matches 0"), ({}, {"2": ""}, "1 gaps")],
)
def test_a_replacement_that_does_not_match_once_is_named(replace, gaps, problem):
    with pytest.raises(ValueError, match=problem):
        Wrong("vector_scale", "", replace, gaps).cell()


def test_a_wrong_answer_keeps_or_replaces_gaps():
    text = Wrong("row_scale_backward", "", {"columns]": "rows]"}, {"2": "\n  // how\n  mine;\n"}).cell()
    assert "scale[i / rows];" in text
    assert "columns) {\n  mine;\n}" in text
    assert "//" not in text
    assert "[" not in "".join(line for line in text.splitlines() if "end]" in line or "solution" in line)


RIGHT = {
    f"{exercise}_{manner}": Wrong(exercise, **{"expect": r"^\d+ cases are right[^\n]*$"} | entry)
    for exercise, manners in toml.loads((Path(__file__).parent / "right_answers.toml").read_text()).items()
    for manner, entry in manners.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_an_unusual_right_answer_is_accepted(name):
    right = RIGHT[name]
    answer = judge.check_cell(right.exercise, right.cell())
    assert answer.accepted, answer
    assert re.search(right.expect, answer.message), answer


ENDS_THERE = {"half_dot_barrier_in_branch", "float4_tails_one_address"}  # the run that shows the result ends, too
BY_LUCK = {"half_dot_short_rows", "batched_matmul_second_barrier"} if helpers.target == "gpu" else set()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_rejected(name):
    wrong = WRONG[name]
    if wrong.target not in ("", helpers.target):
        pytest.skip(f"only the {wrong.target} shows it")
    text = wrong.cell()
    answer = judge.check_cell(wrong.exercise, text)
    assert not answer.accepted
    assert re.search(wrong.expect, answer.message), answer
    assert answer.kind in ("rejected", "not built", "fault")
    assert str(ROOT) not in str(answer)
    if wrong.fault:  # the traced run comes first: kind of fault, line of the cell, the line itself, block and thread
        fault, shown, place, *result = answer.message.splitlines()
        assert re.search(wrong.fault, fault)
        assert shown == f"  > {wrong.shown}"
        number = int(re.search(r"cell:(\d+):", fault)[1])
        assert text.splitlines()[number - 2].strip() == wrong.shown  # %%exercise is line 1
        assert re.fullmatch(r"  in kernel '\w+', block \(\d+, \d+, \d+\), thread \(\d+, \d+, 0\)", place)
        assert name in BY_LUCK or bool(result) == (name not in ENDS_THERE), "the result follows, unless it is right"


@pytest.mark.slow
def test_a_process_in_which_an_answer_has_registered_operators_is_not_used_again(monkeypatch):
    """PyTorch 2.11 refuses a second registration in a process."""
    monkeypatch.setattr(isolated, "METHOD", "spawn")
    solution = cell_of("compact_registered")
    for _ in range(2):
        answer = judge.check_cell("compact_registered", solution)
        assert answer.accepted, answer
        assert isolated.Process.idle is None


def test_a_wasteful_answer_is_accepted_with_a_remark():
    wide = """
__global__ void vector_scale_kernel(const float* x, float factor, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t first = i % 8 * ((n + 7) / 8);  // neighbouring threads get elements that lie far apart
  int64_t j = first + i / 8;
  if (j < n && i / 8 < (n + 7) / 8) out[j] = factor * x[j];
}
"""
    answer = judge.check_cell("vector_scale", wide)
    assert answer.accepted, answer
    _, waste, *rest = answer.message.splitlines()
    assert all(line.startswith("Not checked on this machine") for line in rest)  # on a GPU
    assert re.search(r"uncoalesced access in line 7, `if .*`: this global (load|store) takes 1[01].* sectors p", waste)
    assert re.search(r"where 3\.[89]\d? would do", waste)
    page = answer._repr_html_()
    assert page.count("<details>") == 2  # and the solution
    assert "The X-ray of this call" in page
    assert ">cell.cu</th>" in page or ">cell</th>" in page


@pytest.mark.slow  # builds the solution twice; its acceptance is quick, among all others
def test_a_tidy_answer_has_no_remark():
    tidy = judge.check_cell("vector_scale", cell_of("vector_scale"))
    assert tidy.message.startswith("12 cases")
    assert "would do" not in tidy.message
    assert tidy.film == "" and "X-ray" not in tidy._repr_html_()


@pytest.mark.slow
def test_a_file_is_checked_by_the_command(tmp_path):
    def check(*arguments):
        return python("-m", "helpers", "check", *arguments, status=None)

    solution = registry.find("vector_scale").solution
    accepted = check("vector_scale", solution)
    assert (accepted.returncode, accepted.stdout.splitlines()[0][:23]) == (0, "vector_scale: accepted:"), accepted
    starter = tmp_path / "mine.cu"
    starter.write_text(registry.read("vector_scale").starter + "\n\n")
    unsolved = check("vector_scale", starter)
    assert unsolved.returncode == 1
    assert "not solved yet: replace the comment in " in unsolved.stdout
    assert unsolved.stdout.endswith("a solution is in kernels/solutions/vector_scale.cu\n")
    assert "hint(" not in unsolved.stdout
    unknown = check("vector_skale", solution)
    assert unknown.returncode == 2
    assert "vector_scale, saxpy, roll" in unknown.stderr
    missing = check("vector_scale", tmp_path / "none.cu")
    assert missing.returncode == 2
    assert "there is no file" in missing.stderr


def test_a_terminal_is_told_where_the_hints_are(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "MY_LESSONS", tmp_path / "my_lessons")
    solution = registry.find("gelu_erf").solution
    assert repr(judge.check_file("gelu_erf")) == (
        "gelu_erf: not solved yet: replace the 2 comments in my_lessons/exercises/gelu_erf.cu with your code "
        "(about 2 lines and about 5 lines); python -m helpers hint gelu_erf shows a hint, and a solution is in "
        + min(str(solution), os.path.relpath(solution), key=len)
    )


def test_a_starter_is_told_from_an_answer_without_pytorch(tmp_path):
    """Its import takes longer than all the rest."""
    starter = tmp_path / "roll.cu"
    starter.write_text(registry.read("roll").starter)
    code = "import sys; sys.modules['torch'] = None; from helpers.practice import command; command.main(sys.argv[1:])"
    assert "roll: not solved yet" in python("-c", code, "roll", starter).stdout
    starter.write_text(registry.read("roll").starter + "// more\n")
    assert "torch" in python("-c", code, "roll", starter, status=1).stderr


def test_a_file_without_the_function_is_explained(tmp_path):
    other = tmp_path / "other.cu"
    other.write_text(registry.find("roll").solution.read_text())
    answer = judge.check_file("vector_scale", other)
    assert answer.kind == "not built"
    assert "registers no function vector_scale" in answer.message


@pytest.mark.slow  # a build; those of a cell are below
def test_messages_name_lines_of_python_code():
    cell = cell_of("compact_registered")
    broken = judge.check_cell("compact_registered", cell.replace("inputs[0])", "inputs[0]"))
    assert broken.kind == "not built"
    assert re.match(r"cell:11: error: '\(' was never closed\n  > ctx.save_for_backward\(inputs\[0\]$", broken.message)
    unknown = judge.check_cell("compact_registered", cell.replace("def backward", "x = nothing\n\n\ndef backward"))
    assert unknown.kind == "not built"
    assert re.match(r"cell:\d+: NameError: name 'nothing' is not defined\n  > x = nothing$", unknown.message)
    without = judge.check_cell("compact_registered", cell.replace("def backward", "def backwards"))
    assert without.message == "NameError: name 'backward' is not defined"


def with_kernel(body):
    """A cell for vector_scale whose kernel is `body`."""
    head = registry.read("vector_scale").cell_text.partition("  // YOUR")[0]
    return f"{head}{body}\n}}\n"


def test_messages_name_lines_of_the_cell():
    answer = judge.check_cell("vector_scale", with_kernel("  out[0] = nothing;"))
    assert answer.kind == "not built"
    line = with_kernel("").count("\n")  # of the closing brace; in a cell, `%%exercise` is the line above them
    assert f"cell:{line}: error:" in answer.message
    assert "out[0] = nothing;" in answer.message
    answer = judge.check_cell("vector_scale", "// no kernel\n")
    assert "my_lessons/exercises/vector_scale.cu:" in answer.message


@pytest.mark.slow
def test_what_a_kernel_prints_is_shown():
    answer = judge.check_cell("vector_scale", with_kernel('  if (threadIdx.x == 1) printf("i am %d\\n", 1);'))
    assert answer.kind == "rejected"
    assert answer.printed.splitlines()[0] == "i am 1"
    assert "printed:\ni am 1" in repr(answer)
    answer = judge.check_cell("vector_scale", with_kernel('  printf("%d\\n", int(threadIdx.x));'))
    assert len(answer.printed.splitlines()) == isolated.OUTPUT_LINES + 1
    assert answer.printed.endswith("more lines")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["abort();", "__builtin_trap();", "*(volatile int*)8 = 0;"])
def test_an_answer_that_ends_its_process_ends_no_other(how):
    text = edited(cell_of("checked_mul"), {'check_one(a, "a");': how})
    answer = judge.check_cell("checked_mul", f"#include <cstdlib>\n{text}")
    assert answer.kind == "fault"
    assert answer.message.startswith("shape [0]: it ended the process (")
    assert judge.check_cell("checked_mul", cell_of("checked_mul")).accepted


@pytest.mark.slow
def test_an_answer_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(isolated, "RUN_SECONDS", 1.0)
    endless = edited(cell_of("checked_mul"), {'check_one(a, "a");': "for (volatile int i = 0;; i = 1) {}"})
    answer = judge.check_cell("checked_mul", endless)
    assert answer.kind == "fault"
    assert answer.message.startswith("shape [0]: it did not end within 1 s")
