"""The exercises: starters are those of their solutions and are rejected, solutions are accepted, wrong answers are not.

The wrong answers are in exercises_wrong/NAME_*, each a notebook cell as a learner might run it. Their comments say
what is wrong and, as a regular expression, what the check must answer.
"""

import re
import subprocess
import sys

import nbformat
import pytest
import torch

import helpers
from helpers.machine.paths import ROOT
from helpers.practice import cases, isolated, judge, magic, marks, registry, starters, verdict
from helpers.practice.checks import CHECKS

EXERCISES = registry.exercises()
NAMES = [exercise.name for exercise in EXERCISES]
WRONG = sorted((ROOT / "tests" / "practice" / "exercises_wrong").glob("*.*"))


def exercise_of(path):
    """The exercise that a wrong answer belongs to: the longest name that its own begins with."""
    return max((name for name in NAMES if path.stem.startswith(f"{name}_")), key=len)


def cell_of(text):
    """The solution's cell, without marks."""
    lines = text.split("\n")
    start, *_ = (i for i, line in enumerate(lines) if line in ("// [cell]", "# [cell]"))
    marked = [line for line in lines[start + 1 :] if not re.fullmatch(r"\s*(//|#) \[solution.*\]", line)]
    end, *_ = (i for i, line in enumerate(marked) if line in ("// [end]", "# [end]"))
    return "".join(f"{line}\n" for line in marked[:end] if line.strip() not in ("// [end]", "# [end]"))


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
    assert {exercise_of(path) for path in WRONG} == set(NAMES)
    for name in NAMES:
        assert sum(exercise_of(path) == name for path in WRONG) >= 2


def test_starters_and_cells_are_as_generated():
    assert list(starters.stale(ROOT / "notebooks")) == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=NAMES)
def test_every_exercise_has_one_cell_in_its_lesson(exercise):
    (path,) = (ROOT / "notebooks").glob(f"{exercise.lesson}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    cells = [cell.source for cell in notebook.cells if starters.named_in(cell.source) == exercise.name]
    assert cells == [starters.cell_source(exercise.name)]


def test_what_is_not_as_generated_is_seen_and_mended(tmp_path, monkeypatch):
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
    assert "before the cell of exercise roll" in found[2]
    assert "no exercise rool" in found[3]
    with pytest.raises(registry.UnknownExercise, match="rool"):
        starters.write(tmp_path)
    cells[2].source = "y = 1"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "lesson.ipynb")
    assert starters.write(tmp_path) == ["notebooks/lesson.ipynb"]  # the starter is there since the first call
    assert list(starters.stale(tmp_path)) == []
    (tmp_path / "exercises" / "left_over.cu").write_text("")
    assert list(starters.stale(tmp_path)) == ["kernels/exercises/left_over.cu has no solution"]


CELLS = {name: (starters.text_source(name), starters.cell_source(name)) for name in NAMES}


def sources(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


@pytest.fixture
def notebook(tmp_path):
    def write(*cells):
        path = tmp_path / "01_some.ipynb"
        v4 = nbformat.v4
        made = [v4.new_code_cell(t) if t.startswith("%") else v4.new_markdown_cell(t) for t in cells]
        nbformat.write(nbformat.v4.new_notebook(cells=made), path)
        return path

    return write


def test_cells_are_inserted_below_their_heading_once(notebook):
    path = notebook("# One", "More.\n\n## Exercises\n\nWrite.\n\n## Summary\n\nDone.", "## Next")
    assert starters.insert(path, ["moving_average", "vector_scale"]) == ["vector_scale", "moving_average"]
    scale, roll, average = (CELLS[name] for name in NAMES[:3])
    begin, end = ["# One", "More.\n\n## Exercises\n\nWrite."], ["## Summary\n\nDone.", "## Next"]
    assert sources(path) == [*begin, *scale, *average, *end]
    assert starters.insert(path, []) == ["roll"]
    assert sources(path) == [*begin, *scale, *roll, *average, *end]
    text = path.read_text()
    assert starters.insert(path, []) == []
    assert path.read_text() == text
    assert list(starters.stale(path.parent)) == []


def test_cells_that_are_there_are_refreshed(notebook):
    path = notebook("## Exercises", "old text", "%%exercise roll\nint old;", "%%exercise vector_scale\nint x;", "end")
    changed = starters.insert(path, [])
    assert changed == NAMES[:3]
    scale, roll, average = (CELLS[name] for name in NAMES[:3])
    assert sources(path) == ["## Exercises", *roll, *scale, *average, "end"]  # where they were; the text that lacked


def test_cells_are_not_inserted_anywhere(notebook, capsys):
    path = notebook("# One\n\n### Exercises")
    assert starters.main(["--into", str(path)]) == 2
    assert "01_some.ipynb: there is no heading '## Exercises'" in capsys.readouterr().err
    assert starters.main(["--into", str(path), "rool"]) == 2
    assert "no exercise 'rool'" in capsys.readouterr().err
    other = path.rename(path.with_name("99_other.ipynb"))
    assert starters.main(["--into", str(other)]) == 2
    assert "no exercises for a lesson of this name" in capsys.readouterr().err


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
    answer = judge.check_cell(exercise.name, cell_of(exercise.solution.read_text()))
    assert answer.accepted, answer


@pytest.mark.slow
@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_answer_is_rejected(path):
    text = path.read_text()
    only = re.search(r"^(?://|#) target: (\w+)$", text, re.MULTILINE)
    if only and only.group(1) != helpers.target:
        pytest.skip(f"only the {only.group(1)} shows it")
    expected = re.search(r"^(?://|#) expect: (.*)$", text, re.MULTILINE).group(1)
    answer = judge.check_cell(exercise_of(path), text)
    assert not answer.accepted
    assert re.search(expected, answer.message), answer
    assert answer.kind in ("rejected", "not built", "fault")
    assert str(ROOT) not in str(answer)


EXPLAINED = {
    "vector_scale_guard_off_by_one": r"n = 1: cell:6: out-of-bounds: .* just past the end of x \(1 float32\)",
    "vector_scale_first_block_only": r"n = 257: cell:6: race: a write to out .* of block",
    "row_scale_backward_not_summed": r"3 rows, 5 columns: cell:11: race: a write to grad_scale",
    "roll_negative_index": r"out-of-bounds: reads 4 bytes, 8 bytes before the start of x",
    "half_axpy_tail_too_long": r"n = 1: cell:7: out-of-bounds: reads 4 bytes, of which 2 bytes past the end of x",
    "half_dot_barrier_in_branch": r"cell:14: divergent-barrier: 128 of the block's 256 threads have ended",
    "half_dot_short_rows": r"cell:14: uninitialised-read: reads 4 bytes of a shared array of 1024 bytes",
    "float4_tails_one_address": r"n = 258, .*: cell:10: misaligned: writes 16 bytes at once",
    "batched_matmul_second_barrier": r"cell:14: race: a read of a shared array of 1024 bytes races with the write",
}
ENDS_THERE = {"half_dot_barrier_in_branch", "float4_tails_one_address"}  # the run that shows the result ends, too
BY_LUCK = {"half_dot_short_rows", "batched_matmul_second_barrier"} if helpers.target == "gpu" else set()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLAINED)
def test_a_mistake_is_explained_before_the_result_is(name):
    """The traced run comes first: kind of fault, line of the cell, the line itself, block and thread."""
    path = ROOT / "tests" / "practice" / "exercises_wrong" / f"{name}.cu"
    message = judge.check_cell(exercise_of(path), path.read_text()).message
    fault, line, place, *result = message.splitlines()
    assert re.search(EXPLAINED[name], fault)
    assert line.startswith("  > ")
    assert line[4:] in path.read_text()
    assert re.fullmatch(r"  in kernel '\w+', block \(\d+, \d+, \d+\), thread \(\d+, \d+, 0\)", place)
    assert name in BY_LUCK or bool(result) == (name not in ENDS_THERE), "and what the result shows, unless it is right"


@pytest.mark.slow
def test_a_process_in_which_an_answer_has_registered_operators_is_not_used_again(monkeypatch):
    """PyTorch 2.11 refuses a second registration in a process."""
    monkeypatch.setattr(isolated, "METHOD", "spawn")
    solution = cell_of((ROOT / "kernels" / "solutions" / "compact_registered.py").read_text())
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
    assert re.search(r"lanes lie apart in line 7, `if .*`: this global (load|store) takes 1[01].* sectors", waste)
    assert re.search(r"where 3\.[89]\d? would do", waste)
    page = answer._repr_html_()
    assert page.count("<details>") == 1
    assert "The X-ray of this call" in page
    assert ">cell.cu</th>" in page or ">cell</th>" in page
    tidy = judge.check_cell("vector_scale", cell_of(registry.find("vector_scale").solution.read_text()))
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
    assert "not solved yet" in unsolved.stdout
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
    cell = cell_of(registry.find("compact_registered").solution.read_text())
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
    assert answer.printed.endswith("lines more")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["abort();", "_exit(0);", "raise(SIGKILL);"])
def test_an_answer_that_ends_its_process_ends_no_other(how):
    text = (ROOT / "tests" / "practice" / "exercises_wrong" / "checked_mul_refuses_empty.cu").read_text()
    text = "#include <csignal>\n#include <cstdlib>\n#include <unistd.h>\n" + re.sub(r"STD_TORCH_CHECK\(.*", how, text)
    answer = judge.check_cell("checked_mul", text)
    assert answer.kind == "fault"
    assert answer.message.startswith("shape [0]: it ended the process (")
    assert judge.check_cell("checked_mul", cell_of(registry.find("checked_mul").solution.read_text())).accepted


@pytest.mark.slow
def test_an_answer_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(isolated, "RUN_SECONDS", 1.0)
    text = (ROOT / "tests" / "practice" / "exercises_wrong" / "checked_mul_refuses_empty.cu").read_text()
    endless = re.sub(r"STD_TORCH_CHECK\(.*", "for (volatile int i = 0;; i = 1) {}", text)
    answer = judge.check_cell("checked_mul", endless)
    assert answer.kind == "fault"
    assert answer.message.startswith("shape [0]: no end within 1 s")


# ----------------------------------------------------------------------------------------------------------------------
# The cases


def fenced_call(function, **kwargs):
    case = cases.Case("a case", (torch.ones(3),), {"out": torch.zeros(3)})
    return cases.run_cases(function, cases.Check(lambda x: 2 * x, lambda: [case], **kwargs), torch.device("cpu"))


def test_cases_pass_and_are_listed():
    assert fenced_call(lambda x, out: out.copy_(2 * x)) == ["a case"]


def test_a_write_outside_is_seen():
    def outside(x, out, at):
        out.copy_(2 * x)
        out.as_strided((1,), (1,), out.storage_offset() + at).fill_(1)

    for at in (-1, 3):
        with pytest.raises(cases.Rejected, match=rf"a case: it wrote outside of out: out\[{at}\] was changed, and its"):
            fenced_call(lambda x, out, at=at: outside(x, out, at))


def test_a_read_outside_spoils_the_result():
    with pytest.raises(cases.Rejected, match=r"1 of 3 elements are wrong"):
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
        cases.run_cases(twice, cases.Check(lambda x: 2 * x, lambda case=case: [case]), torch.device("cpu"))
    assert seen == [(0, 0), (4, 0), (0, 12)]


def test_a_result_that_changes_from_call_to_call_is_seen():
    calls = []

    def almost(x, out):
        calls.append(1)
        out.copy_(2 * x * (1 + 1e-7 * (len(calls) == 4)))

    with pytest.raises(cases.Rejected, match=r"a case, again and again: out had other bits in 1 of 5 calls"):
        fenced_call(almost, repeatable=True)
    assert fenced_call(lambda x, out: out.copy_(2 * x), repeatable=True) == ["a case", "a case, again and again"]


def test_a_changed_input_is_seen():
    def change(x, out):
        out.copy_(2 * x)
        x.zero_()

    with pytest.raises(cases.Rejected, match="changed its input"):
        fenced_call(change)


def test_no_cases_is_an_error():
    with pytest.raises(RuntimeError, match="no cases"):
        cases.run_cases(lambda: None, cases.Check(lambda: None, list), torch.device("cpu"))


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
    with pytest.raises(cases.Rejected, match=complaint):
        cases.run_cases(refuse, what, torch.device("cpu"))


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
        "vector_scale: not solved yet: write in place of the comment in this cell, and run it again (about 2 lines); "
        'hint("vector_scale") unfolds a hint'
    )
    solved = shell.run_cell_magic(
        "exercise", "vector_scale", cell_of(registry.find("vector_scale").solution.read_text())
    )
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
    with pytest.raises(registry.UnknownExercise):
        magic.hint("vector_skale")


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
