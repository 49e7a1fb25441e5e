"""A copy is found whatever its names are; answers that were written independently are not listed."""

import pytest

from helpers.paths import KERNELS
from helpers.practice import judge, registry
from helpers.teaching.classroom.submissions import read
from helpers.teaching.handout import similarity, similarity_command, similarity_page

HEAD = """%%exercise moving_average
// x, out: n floats each; radius >= 0. For any grid: its threads share the n elements by a grid-stride loop.
__global__ void moving_average_kernel(const float* x, int64_t radius, float* out, int64_t n) {
"""
START = """}

// Starts the kernel with `blocks` blocks of `threads` threads on `stream`.
void start(const float* x, int64_t radius, float* out, int64_t n, int64_t blocks, int64_t threads,
           cudaStream_t stream) {
  moving_average_kernel<<<blocks, threads, 0, stream>>>(x, radius, out, n);
}
"""
ANN = """  const int64_t me = threadIdx.x + (int64_t)blockDim.x * blockIdx.x;
  const int64_t all = (int64_t)blockDim.x * gridDim.x;
  for (int64_t place = me; place < n; place += all) {
    int64_t low = place - radius;  // may be outside
    if (low < 0) low = 0;
    int64_t high = place;
    high = radius > n - 1 - high ? n - 1 : high + radius;
    float total = 0.0f;
    int64_t count = 0;
    while (low <= high) {
      total = total + x[low];
      low = low + 1;
      count = count + 1;
    }
    out[place] = total / (float)count;
  }
"""
BOB = """  int64_t k = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  while (k < n) {
    int64_t left = max(int64_t(0), k - radius), right = k + min(radius, n - 1 - k);
    float mean = 0;
    for (int64_t p = 0; p <= right - left; ++p) mean += x[left + p];
    out[k] = mean / (right - left + 1);
    k += int64_t(gridDim.x) * blockDim.x;
  }
"""
RENAMED = (  # what a copy would look like: other names, comments, white space and line breaks
    ANN.replace("place", "i").replace("total", "acc").replace("count", "w").replace("low", "a").replace("high", "b")
    .replace("me", "first").replace("all", "step").replace("// may be outside", "// clamp it")
    .replace("    ", "\t").replace(") {\n", ")\n  {\n")
)  # fmt: skip


def cell(text):
    return HEAD + text + START


@pytest.fixture
def class_of(tmp_path):
    """Makes submissions of name -> answer to moving_average."""

    def made(answers):
        for name, text in answers.items():
            (tmp_path / "class" / name).mkdir(parents=True)
            body = cell(text).partition("\n")[2]
            before, after = registry.read("moving_average").around_cell
            (tmp_path / "class" / name / "moving_average.cu").write_text(before + body + after)
        return [read(path) for path in sorted((tmp_path / "class").iterdir())]

    return made


def names(submissions):
    return [pair.names for pair in similarity.pairs(submissions)]


def test_a_renamed_copy_is_found_and_an_independent_answer_is_not(class_of):
    assert "place" not in RENAMED and "total" not in RENAMED
    assert names(class_of({"ann": ANN, "bob": BOB, "cheat": RENAMED})) == [("ann", "cheat")]


def test_a_part_that_was_copied_is_found(class_of):
    """The loop is Ann's, the rest Bob's."""
    inner = ANN[ANN.index("    int64_t low") : ANN.index("    out[place]")].replace("place", "k")
    mixed = BOB[: BOB.index("    int64_t left")] + inner + BOB[BOB.index("    out[k]") :]
    mixed = mixed.replace("mean / (right - left + 1)", "total / count")
    assert names(class_of({"ann": ANN, "bob": BOB, "part": mixed})) == [("ann", "part")]


def test_untouched_starters_and_answers_like_the_solution_are_not_listed(class_of):
    text = (KERNELS / "solutions" / "moving_average.cu").read_text()
    inside = text[text.index("  int64_t stride") : text.index("  // [end]\n}\n\n// Starts")]
    gap = "  // YOUR CODE HERE: about 8 lines\n"
    assert names(class_of({"a": gap, "b": gap, "c": inside, "d": inside.replace("stride", "step")})) == []


def test_what_a_third_of_the_class_wrote_is_not_evidence(class_of):
    """As after an exercise session: everybody has what was on the board."""
    many = {f"s{i}": ANN for i in range(4)} | {f"t{i}": BOB for i in range(3)}
    assert names(class_of(many)) == []


def test_a_mistake_that_two_share_is_listed_in_a_class(class_of):
    others = {f"t{i}": "  // YOUR CODE HERE: about 8 lines\n" for i in range(8)}
    wrong = ANN.replace("low <= high", "low < high")
    copied = RENAMED.replace("a <= b", "a < b")
    assert names(class_of({"ann": wrong, "copy": copied, "bob": BOB, **others})) == [("ann", "copy")]


def test_names_of_the_starter_and_of_cuda_keep_their_meaning():
    given = {"threadIdx", "x"}
    run = [similarity.Token(text, 1, text.isidentifier()) for text in ("i", "=", "threadIdx", ".", "x", "+", "i")]
    assert similarity._renamed(run, given) == ("new name", "=", "threadIdx", ".", "x", "+", "name 6")


def test_python_answers_are_compared_too():
    text = registry.find("compact_registered").solution.read_text()
    assert len(list(similarity.tokens(text, python=True))) > 50
    assert list(similarity.tokens("def f(:\n  x", python=True))


def test_the_command_writes_table_and_page(class_of, tmp_path, capsys):
    class_of({"ann": ANN, "bob": BOB, "c<heat>": RENAMED})
    out = tmp_path / "report.html"
    assert similarity_command.main([str(tmp_path / "class"), "--out", str(out)]) == 0
    table = capsys.readouterr().out
    assert "ann  c<heat>  moving_average" in table and "bob" not in table
    text = out.read_text(encoding="utf-8")
    assert "c&lt;heat&gt;" in text and "<heat>" not in text
    assert "<mark>    while (low &lt;= high) {</mark>" in text
    assert "<mark>  moving_average_kernel&lt;&lt;&lt;" not in text, "every right answer has this line"


def test_a_class_without_copies_gets_a_sentence(class_of, tmp_path, capsys):
    class_of({"ann": ANN, "bob": BOB})
    assert similarity_command.main([str(tmp_path / "class"), "--out", str(tmp_path / "report.html")]) == 0
    assert "2 submissions: no two are alike" in capsys.readouterr().out
    assert "No pair." in (tmp_path / "report.html").read_text()
    assert similarity_command.main([str(tmp_path / "nowhere")]) == 2


def test_the_page_loads_nothing():
    assert "http" not in similarity_page.page([], 0)


@pytest.mark.slow
@pytest.mark.parametrize("text", [ANN, BOB, RENAMED], ids=["ann", "bob", "renamed"])
def test_the_answers_are_right(text):
    verdict = judge.check_cell("moving_average", cell(text).partition("\n")[2])
    assert verdict.accepted, verdict
