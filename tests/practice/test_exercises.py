"""The exercises: starters match their solutions and are rejected, solutions are accepted, wrong answers are rejected.

The wrong answers are in wrong_answers/, each a notebook cell as a learner might run it, with the message of the check.
"""

import re
import subprocess
import sys
from collections import Counter

import nbformat
import pytest
import torch
from wrong_answers import WRONG, Wrong, cell_of, edited

import helpers
from helpers.machine.paths import ROOT
from helpers.practice import case_runner, cases, isolated, judge, magic, marks, registry, starters, verdict
from helpers.practice.checks import CHECKS

EXERCISES = registry.exercises()
NAMES = [exercise.name for exercise in EXERCISES]


# ----------------------------------------------------------------------------------------------------------------------
# What there is


LESSONS = {"01": 3, "02": 3, "03": 3, "04": 3, "05": 3, "06": 3, "07": 3, "08": 3, "09": 4}


def test_exercises_for_each_lesson_that_writes_kernels():
    assert [e.lesson for e in EXERCISES] == [lesson for lesson, count in LESSONS.items() for _ in range(count)]
    assert set(NAMES) == set(CHECKS)
    for exercise in EXERCISES:
        name, lesson, title, starter, solution = exercise
        assert starter.is_file()
        assert solution.is_file()
        assert title
        assert name == starter.stem == solution.stem
        marked = registry.read(name)
        assert 2 + (lesson > "03") <= len(marked.hints) <= 4
        assert 25 <= len(marked.specification.split()) <= 90  # one short paragraph
        assert not re.search(r"[*_<]\S", re.sub("`.*?`", "", marked.specification))  # which is Markdown too
    for lesson in LESSONS:
        times = [registry.read(e.name).minutes for e in EXERCISES if e.lesson == lesson]
        assert times == sorted(times)
        assert times[-1] == 30


def test_no_exercise_found_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "KERNELS", tmp_path)
    with pytest.raises(RuntimeError, match="no exercises"):
        registry.exercises()


def test_every_exercise_has_wrong_answers():
    counts = Counter(exercise for exercise, _ in WRONG.values())
    assert set(counts) == set(NAMES)
    assert min(counts.values()) >= 2


def test_starters_and_cells_are_as_generated():
    assert list(starters.stale(ROOT / "notebooks")) == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_every_exercise_has_one_cell_in_its_lesson(exercise):
    (path,) = (ROOT / "notebooks").glob(f"{exercise.lesson}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    cells = [cell.source for cell in notebook.cells if starters.named_in(cell.source) == exercise.name]
    assert cells == [starters.cell_source(exercise.name)]


def test_what_is_not_as_generated_is_reported_and_fixed(tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "roll.cu").write_text((registry.KERNELS / "solutions" / "roll.cu").read_text())
    monkeypatch.setattr(registry, "KERNELS", tmp_path)
    cells = [nbformat.v4.new_code_cell(text) for text in ("%%exercise roll\nint x;", "%%exercise rool\n", "x = 1")]
    cells.insert(0, nbformat.v4.new_markdown_cell("roll it"))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "lesson.ipynb")
    found = list(starters.stale(tmp_path))
    assert len(found) == 4
    assert "roll.cu is not the starter" in found[0]
    assert "the cell of exercise roll is not" in found[1]
    assert "the cell before exercise roll is not its specification" in found[2]
    assert "no exercise rool" in found[3]
    with pytest.raises(registry.UnknownExercise, match="rool"):
        starters.write(tmp_path)
    cells[2].source = "y = 1"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "lesson.ipynb")
    assert starters.write(tmp_path) == ["notebooks/lesson.ipynb"]  # the starter is there since the first call
    assert list(starters.stale(tmp_path)) == []
    (tmp_path / "exercises" / "left_over.cu").write_text("")
    assert list(starters.stale(tmp_path)) == ["kernels/exercises/left_over.cu has no solution"]


# ----------------------------------------------------------------------------------------------------------------------
# Starters are solutions without the marked lines


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_solving_only_adds_lines(exercise):
    marked = registry.read(exercise.name)
    solution = iter(exercise.solution.read_text().split("\n"))
    gaps = [line for line in marked.starter.split("\n") if marks.GAP in line]
    kept = [line for line in marked.starter.split("\n") if marks.GAP not in line]
    assert all(line in solution for line in kept)  # in this order
    assert "[hints]" not in marked.starter
    assert "[cell]" not in marked.starter
    assert [line.partition(": ")[2] for line in gaps] == [size for size, _ in marked.gaps]
    assert all(hint[:30] not in marked.starter for hint in marked.hints)


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_the_stated_size_is_that_of_the_solution(exercise):
    for size, lines in registry.read(exercise.name).gaps:
        stated = int(size.split()[1])
        assert abs(stated - lines) <= max(0, stated // 5), size


@pytest.mark.parametrize("name", NAMES)
def test_a_cell_is_short_and_has_a_gap(name):
    text = starters.cell_source(name)
    assert text.startswith((f"%%exercise {name}\n// ", f"%%exercise {name}\ndef "))
    assert marks.GAP in text
    assert text.count("\n") < 20


SMALL = """// small.cu: A title. Exercise 2 of lesson 07, about 3 minutes.
//
// What it does,
// in two lines.
//
// More.
//
// [hints]
// - first,
//   still the first
// - second
// [end]

before
// [cell]
given
  // [solution: about 1 line]
  // why
  secret
  // [end]
// [end]
after
"""


def test_a_small_solution_is_read():
    marked = marks.parse(SMALL, "small.cu")
    assert (marked.name, marked.title, marked.number) == ("small", "A title", 2)
    assert (marked.lesson, marked.minutes) == ("07", 3)
    assert marked.specification == "What it does, in two lines."
    assert marked.hints == ("first, still the first", "second")
    assert marked.gaps == (("about 1 line", 1),)
    assert marked.cell_text == "given\n  // YOUR CODE HERE: about 1 line\n"
    before, after = marked.around_cell
    assert before + marked.cell_text + after == marked.starter
    assert marked.starter == (
        "// small.cu: A title. Exercise 2 of lesson 07, about 3 minutes.\n//\n// What it does,\n// in two lines.\n//\n"
        "// More.\n\nbefore\ngiven\n  // YOUR CODE HERE: about 1 line\nafter\n"
    )
    first, last = marked.solution_cell
    assert SMALL.split("\n")[first - 1] == "given"
    assert SMALL.split("\n")[last - 1] == "  // [end]"


def test_a_small_solution_in_python_is_read():
    marked = marks.parse(SMALL.replace("//", "#").replace("small.cu", "small.py"), "small.py")
    plain = marks.parse(SMALL, "small.cu")
    for part in ("title", "specification", "hints", "gaps", "cell", "solution_cell"):
        assert getattr(marked, part) == getattr(plain, part)
    assert marked.cell_text == "given\n  # YOUR CODE HERE: about 1 line\n"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Exercise 2", "Exercise two", "small.cu:1: the first line must be"),
        ("// [cell]\n", "", "small.cu:16: .solution. outside of .cell."),
        (": about 1 line]", "]", "small.cu:17: write"),
        ("  // [end]\n// [end]\nafter", "  // [end]\nafter", r"small.cu:15: \[cell\] without"),
        ("after", "// [end]", r"small.cu:22: \[end\] with nothing open"),
        ("after", "// [cell]\n// [end]", "small.cu:22: a second"),
        ("// - first,", "// first", "small.cu:9: a hint begins"),
        ("  // [solution: about 1 line]\n  // why\n  secret\n  // [end]\n", "", "at least one"),
        ("// - first,\n//   still the first\n// - second\n", "", "hints"),
        ("  secret\n", "  // [hints]\n  // [end]\n", r"small.cu:19: \[hints\] inside \[solution\]"),
    ],
)
def test_a_bad_solution_file_is_refused(old, new, problem):
    assert old in SMALL
    with pytest.raises(ValueError, match=problem):
        marks.parse(SMALL.replace(old, new, 1), "small.cu")


# ----------------------------------------------------------------------------------------------------------------------
# Answers


@pytest.mark.slow
@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_the_starter_builds_and_is_rejected(exercise):
    answer = judge.run(exercise.name, exercise.starter)
    assert answer.kind == "rejected", answer
    assert not answer.accepted


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(e, id=e.name, marks=() if e.lesson <= "03" else pytest.mark.slow) for e in EXERCISES],
)
def test_the_solution_is_accepted(exercise):
    answer = judge.check_cell(exercise.name, cell_of(exercise.name))
    assert answer.accepted, answer


def test_every_replacement_matches_once():
    for exercise, wrong in WRONG.values():
        wrong.cell(exercise)  # raises ValueError naming the one that does not


@pytest.mark.parametrize(
    ("replace", "gaps", "problem"),
    [
        ({"i": "j"}, (), "'i' matches 1[0-9] times"),
        ({"nothing": ""}, (), "'nothing' matches 0"),
        ({}, (None, ""), "1 gaps"),
    ],
)
def test_a_replacement_that_does_not_match_once_is_named(replace, gaps, problem):
    with pytest.raises(ValueError, match=problem):
        Wrong(name="", expect="", replace=replace, gaps=gaps).cell("vector_scale")


def test_a_wrong_answer_keeps_or_replaces_gaps():
    kept = Wrong(name="", expect="", replace={"columns]": "rows]"}, gaps=(None, "\n  // how\n  mine;\n"))
    text = kept.cell("row_scale_backward")
    assert "scale[i / rows];" in text
    assert "columns) {\n  mine;\n}" in text
    assert "//" not in text
    assert "[" not in "".join(line for line in text.splitlines() if "end]" in line or "solution" in line)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_rejected(name):
    exercise, wrong = WRONG[name]
    if wrong.target not in ("", helpers.target):
        pytest.skip(f"only the {wrong.target} shows it")
    answer = judge.check_cell(exercise, wrong.cell(exercise))
    assert not answer.accepted
    assert re.search(wrong.expect, answer.message), answer
    assert answer.kind in ("rejected", "not built", "fault")
    assert str(ROOT) not in str(answer)


EXPLAINED = {  # the message, and the line of the code without comments that it shows
    "vector_scale_guard_off_by_one": (
        r"n = 1: cell:4: out-of-bounds: .* just past the end of x \(1 float32\)",
        "if (i <= n) out[i] = factor * x[i];",
    ),
    "vector_scale_first_block_only": (
        r"n = 257: cell:4: race: a write to out .* of block",
        "if (i < n) out[i] = factor * x[i];",
    ),
    "row_scale_backward_not_summed": (
        r"3 rows, 5 columns: cell:\d+: race: a write to grad_scale",
        "if (i < rows * columns) grad_scale[i / columns] = grad[i] * x[i];",
    ),
    "roll_negative_index": (
        r"cell:7: out-of-bounds: reads 4 bytes, 8 bytes before the start of x",
        "out[i] = x[from];",
    ),
    "half_axpy_tail_too_long": (
        r"n = 1: cell:5: out-of-bounds: reads 4 bytes, of which 2 bytes past the end of x",
        "float2 u = __half22float2(reinterpret_cast<const __half2*>(x)[i]);",
    ),
    "half_dot_barrier_in_branch": (
        r"cell:1[12]: divergent-barrier: 128 of the block's 256 threads have ended",
        "__syncthreads();",
    ),
    "half_dot_short_rows": (
        r"cell:\d+: uninitialised-read: reads 4 bytes of a shared array of 1024 bytes",
        "if (threadIdx.x < part) sums[threadIdx.x] += sums[threadIdx.x + part];",
    ),
    "float4_tails_one_address": (
        r"n = 258, .*: cell:\d+: misaligned: writes 16 bytes at once",
        "reinterpret_cast<float4*>(out)[i] = v;",
    ),
    "batched_matmul_second_barrier": (
        r"cell:\d+: race: a read of a shared array of 1024 bytes races with the write",
        "for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];",
    ),
}
ENDS_THERE = {"half_dot_barrier_in_branch", "float4_tails_one_address"}  # the run that shows the result ends, too
BY_LUCK = {"half_dot_short_rows", "batched_matmul_second_barrier"} if helpers.target == "gpu" else set()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLAINED)
def test_a_mistake_is_explained_before_the_result(name):
    """The traced run comes first: kind of fault, line of the cell, the line itself, block and thread."""
    exercise, wrong = WRONG[name]
    text = wrong.cell(exercise)
    message = judge.check_cell(exercise, text).message
    fault, shown, place, *result = message.splitlines()
    pattern, line = EXPLAINED[name]
    assert re.search(pattern, fault)
    assert shown == f"  > {line}"
    number = int(re.search(r"cell:(\d+):", fault)[1])
    assert text.splitlines()[number - 2].strip() == line  # %%exercise is line 1
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
        assert isolated._Worker.idle is None


def test_a_wasteful_answer_is_accepted_and_told_so():
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
    _, waste = answer.message.splitlines()
    assert re.search(r"uncoalesced access in line 7, `if .*`: this global (load|store) takes 1[01].* sectors p", waste)
    assert re.search(r"where 3\.[89]\d? would do", waste)
    page = answer._repr_html_()
    assert page.count("<details>") == 1
    assert "The X-ray of this call" in page
    assert ">cell.cu</th>" in page or ">cell</th>" in page
    tidy = judge.check_cell("vector_scale", cell_of("vector_scale"))
    assert tidy.message.startswith("8 cases")
    assert "\n" not in tidy.message
    assert "X-ray" not in tidy._repr_html_()


@pytest.mark.slow
def test_a_file_is_checked_by_the_command(tmp_path):
    def check(*arguments):
        command = [sys.executable, "-m", "helpers", "check", *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    solution = registry.find("vector_scale").solution
    accepted = check("vector_scale", solution)
    assert (accepted.returncode, accepted.stdout.splitlines()[0][:23]) == (0, "vector_scale: accepted:"), accepted
    starter = tmp_path / "mine.cu"
    starter.write_text(registry.read("vector_scale").starter + "\n\n")
    unsolved = check("vector_scale", starter)
    assert unsolved.returncode == 1
    assert "not solved yet: replace the comment in " in unsolved.stdout
    assert unsolved.stdout.endswith("hints and a solution are in kernels/solutions/vector_scale.cu\n")
    assert "hint(" not in unsolved.stdout
    unknown = check("vector_skale", solution)
    assert unknown.returncode == 2
    assert "vector_scale, roll" in unknown.stderr
    missing = check("vector_scale", tmp_path / "none.cu")
    assert missing.returncode == 2
    assert "there is no file" in missing.stderr


def test_a_file_without_the_function_is_explained(tmp_path):
    other = tmp_path / "other.cu"
    other.write_text(registry.find("roll").solution.read_text())
    answer = judge.check_file("vector_scale", other)
    assert answer.kind == "not built"
    assert "registers no function vector_scale" in answer.message


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
    assert "cell:4: error:" in answer.message  # %%exercise is line 1
    assert "out[0] = nothing;" in answer.message
    answer = judge.check_cell("vector_scale", "// no kernel at all\n")
    assert "kernels/exercises/vector_scale.cu:" in answer.message


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
@pytest.mark.parametrize("how", ["abort();", "_exit(0);", "raise(SIGKILL);"])
def test_an_answer_that_ends_its_process_ends_no_other(how):
    text = edited(cell_of("checked_mul"), {'check_one(a, "a");': how})
    answer = judge.check_cell("checked_mul", f"#include <csignal>\n#include <cstdlib>\n#include <unistd.h>\n{text}")
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


# ----------------------------------------------------------------------------------------------------------------------
# The cases


def fenced_call(function, **kwargs):
    case = cases.Case("a case", (torch.ones(3),), {"out": torch.zeros(3)})
    return case_runner.run_cases(function, cases.Check(lambda x: 2 * x, lambda: [case], **kwargs), torch.device("cpu"))


def test_cases_pass_and_are_listed():
    assert fenced_call(lambda x, out: out.copy_(2 * x)) == ["a case"]


def test_a_write_outside_is_seen():
    def outside(x, out, at):
        out.copy_(2 * x)
        out.as_strided((1,), (1,), out.storage_offset() + at).fill_(1)

    for at in (-1, 3):
        with pytest.raises(
            case_runner.Rejected, match=rf"a case: it wrote outside out: out\[{at}\] changed; out has ele"
        ):
            fenced_call(lambda x, out, at=at: outside(x, out, at))


def test_a_read_outside_spoils_the_result():
    with pytest.raises(case_runner.Rejected, match=r"1 of 3 elements is wrong"):
        fenced_call(lambda x, out: out.copy_(2 * x.as_strided((3,), (1,), x.storage_offset() + 1)))


def test_an_error_is_not_a_rejection():
    def refuse(x, out):
        raise RuntimeError("no\nException raised from nowhere")

    with pytest.raises(RuntimeError, match=r"^a case: no$"):
        fenced_call(refuse)


def test_tensors_begin_where_the_case_says():
    seen = []

    def twice(x, out):
        seen.append((x.data_ptr() % 64, out.data_ptr() % 64))
        out.copy_(2 * x)

    for offsets in ((), (1,), (0, 3)):
        case = cases.Case("a case", (torch.ones(3),), {"out": torch.zeros(3)}, offsets=offsets)
        case_runner.run_cases(twice, cases.Check(lambda x: 2 * x, lambda case=case: [case]), torch.device("cpu"))
    assert seen == [(0, 0), (4, 0), (0, 12)]


def test_a_result_that_changes_from_call_to_call_is_seen():
    calls = []

    def almost(x, out):
        calls.append(1)
        out.copy_(2 * x * (1 + 1e-7 * (len(calls) == 4)))

    with pytest.raises(case_runner.Rejected, match=r"a case, again and again: out had different bits in 1 of 5 calls"):
        fenced_call(almost, repeatable=True)
    assert fenced_call(lambda x, out: out.copy_(2 * x), repeatable=True) == ["a case", "a case, again and again"]


def test_a_changed_input_is_seen():
    def change(x, out):
        out.copy_(2 * x)
        x.zero_()

    with pytest.raises(case_runner.Rejected, match="changed its input"):
        fenced_call(change)


def test_no_cases_is_an_error():
    with pytest.raises(RuntimeError, match="no cases"):
        case_runner.run_cases(lambda: None, cases.Check(lambda: None, list), torch.device("cpu"))


@pytest.mark.parametrize(
    ("message", "complaint"),
    [(None, "accepted, and misread"), ("b is wrong", "does not say float64"), ("wrong float64", "does not name b")],
)
def test_a_refusal_must_say_what_is_wrong(message, complaint):
    def refuse(x):
        if message:
            raise RuntimeError(message)

    refusal = cases.Refusal("b is float64", (1,), {"name b": r"\bb\b", "say float64": "float64"})
    what = cases.Check(lambda: None, list, lambda device: [refusal])
    with pytest.raises(case_runner.Rejected, match=complaint):
        case_runner.run_cases(refuse, what, torch.device("cpu"))


# ----------------------------------------------------------------------------------------------------------------------
# In a notebook


@pytest.fixture
def shell():
    pytest.importorskip("IPython")
    from IPython.testing.globalipapp import start_ipython

    start_ipython()
    import IPython

    assert magic.register()
    magic._unfolded.clear()
    return IPython.get_ipython()


def test_the_magic_checks_a_cell(shell):
    unsolved = shell.run_cell_magic("exercise", "vector_scale", registry.read("vector_scale").cell_text + "\n\n")
    assert repr(unsolved) == (
        "vector_scale: not solved yet: replace the comment in this cell by your code (about 2 lines) and run it again; "
        'hint("vector_scale") shows a hint'
    )
    solved = shell.run_cell_magic("exercise", "vector_scale", cell_of("vector_scale"))
    assert solved.accepted
    unknown = shell.run_cell_magic("exercise", "vector_skale", "x")
    assert unknown.kind == "unknown"
    assert "there is no exercise 'vector_skale'" in repr(unknown)


@pytest.mark.parametrize(("error", "kind"), [(KeyboardInterrupt(), "interrupted"), (OSError("disk full"), "fault")])
def test_the_magic_never_raises(monkeypatch, error, kind):
    def broken(name, text):
        raise error

    monkeypatch.setattr(judge, "check_cell", broken)
    answer = magic.exercise("vector_scale", "x")
    assert answer.kind == kind
    assert str(error) in repr(answer)


def test_an_interrupted_check_leaves_no_process(monkeypatch):
    started = []

    def interrupted(self, seconds):
        started.append(self.process)
        raise KeyboardInterrupt

    monkeypatch.setattr(isolated._Worker, "_receive", interrupted)
    answer = magic.exercise("vector_scale", with_kernel("  out[0] = 1;"))
    assert answer.kind == "interrupted"
    assert [process.is_alive() for process in started] == [False]


def test_hints_unfold_one_by_one(shell):
    hints = registry.read("vector_scale").hints
    seen = [repr(shell.user_ns["hint"]("vector_scale")) for _ in range(len(hints) + 1)]
    for shown, text in enumerate(seen[:-1], 1):
        assert [hint in text for hint in hints] == [i < shown for i in range(len(hints))]
    assert seen[-1] == seen[-2]
    assert 'solution("vector_scale") is next' in seen[-1]


@pytest.mark.parametrize("function", ["hint", "solution"])
def test_an_unknown_exercise_in_a_notebook_is_a_message_without_a_traceback(shell, capsys, function):
    shell.run_cell(f'{function}("rol")')
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("UnknownExercise: there is no exercise 'rol'; the exercises are vector_scale, roll, ")


def test_the_solution_is_folded(shell):
    shown = shell.user_ns["solution"]("vector_scale")
    assert repr(shown) == "the solution of vector_scale is in kernels/solutions/vector_scale.cu"
    page = shown._repr_html_()
    assert page.startswith("<details><summary>")
    assert "factor" in page
    with pytest.raises(registry.UnknownExercise):
        magic.solution("vector_skale")


def test_a_verdict_as_html_is_escaped_and_folds_help():
    page = verdict.Verdict("roll", "rejected", "a < b\nc")._repr_html_()
    assert "a &lt; b" in page
    assert page.count("<details>") == len(registry.read("roll").hints) + 1
    assert "<details>" not in verdict.Verdict("roll", "accepted", "9 cases")._repr_html_()
