"""Each mutation operator on a small source: what it changes, and what it leaves alone."""

import re

import pytest

from helpers.upkeep.mutants.kinds import OPERATORS
from helpers.upkeep.mutants.mutation import mutants

KERNEL = """
template <int kWidth, typename T>
__global__ void k(const float* x, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  __shared__ float s[256];
  extern __shared__ float dynamic[];
  const int fixed = 3;
  float sum = 0;
  Four four = {};
  Sum<T> total = 2.5f;
  if (i >= n || isnan(x[i])) return;
  for (int64_t z = i; z < n; z += 8) sum += expf(x[z]) - fmaxf(sum, -1.0f);
  for (int j = 0; j < 4; ++j) {
    if (j == 3) break;
    s[j] = __shfl_down_sync(0xffffffff, sum, 1);
  }
  __syncthreads();
  __threadfence();
  atomicAdd(&out[3], static_cast<float>(s[0]));
  if (i < n) out[i] = i % 2 == 0 ? sum : total;
}
void launch(int64_t n) {
  // if (n < 7) n = 9;
  static_assert(2 > 1, "1 < 2");
  STD_TORCH_CHECK(n >= 5, "n must be at least 5");
  k<<<ceil_div(n, 256), kThreads, bytes, stream>>>(x, out, n);
}
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("k(int n) -> ()", 1 + 2); }
"""
# Operator -> changed lines that it must make, as regular expressions, and how many mutants there are.
EXPECTED = {
    "narrow-32": ([r"out, int n\) \{", r"int i = int64_t", r"i = int\(block", r"for \(int z", r"launch\(int n\)"], 5),
    "narrow-unsigned": ([r"for \(unsigned z"], 5),
    "narrow-16": ([r"for \(short z", r"short i = int64_t"], 5),
    "uninitialised": ([r"int64_t i;", r"float sum;", r"Four four;", r"Sum<T> total;", r"for \(int j; j < 4"], 6),
    "initial-value": ([r"sum = 1;", r"int64_t i = 0;", r"j = 1;"], 6),
    "constant": ([r"s\[257\]", r"j < 5", r"\(2 \* 2\.5f\)", r"z \+= 7"], None),
    "arithmetic": ([r"\) / blockDim", r"\+ fmaxf", r"i / 2 =="], 4),
    "dropped-term": ([r"i = threadIdx\.x;", r"sum \+= expf\(x\[z\]\);"], 6),
    "sign": ([r"fmaxf\(sum, 1\.0f\)"], 1),
    "index": ([r"x\[z \+ 1\]", r"out\[i \+ 1\] ="], 6),
    "axis": ([r"threadIdx\.y", r"blockDim\.y"], 3),
    "built-in": ([r"\* gridDim\.x", r"\+ blockIdx\.x"], 3),
    "opposite": ([r"fminf\(sum"], 1),
    "nan": ([r"\|\| false\)"], 1),
    "fast-maths": ([r"__expf\("], 1),
    "cast": ([r"= \(blockIdx\.x\)", r"\], \(s\[0\]\)\)"], 2),
    "accumulator": ([r"^T total"], 1),
    "double-constant": ([r"= 2\.5;", r"-1\.0\)"], 2),
    "comparison": ([r"i > n", r"z <= n", r"j <= 4", r"n > 5"], 5),
    "negated": ([r"j != 3", r"i < n \|\|"], None),
    "guard": ([r"if \(true\) out", r"if \(true\) break"], 2),
    "never": ([r"if \(false\) out"], 2),
    "early-return": ([r"if \(false\) return"], 1),
    "logic": ([r"i >= n && isnan"], 1),
    "condition-part": ([r"if \(i >= n\) return", r"if \(isnan\(x\[i\]\)\) return"], 2),
    "choice": ([r"= \(sum\);", r"= \(total\);"], 2),
    "stride": ([r"z \+= 2 \* \(8\)", r"j \+= 2\)"], 2),
    "first-round": ([r"break; \}"], 2),
    "overwritten": ([r"\) sum = expf"], 1),
    "statement": ([r"z \+= 8\) ;", r"^;$"], 5),
    "ending": ([r"if \(j == 3\) ;"], 1),
    "barrier": ([r"^;$"], 1),
    "fence": ([r"^;$"], 1),
    "atomic": ([r"\*\(&out\[3\]\) \+= static_cast<float>\(s\[0\]\);"], 1),
    "shuffle": ([r"__shfl_up_sync"], 1),
    "mask": ([r"0x0000ffffu"], 1),
    "shared": ([r"^float s\[256\];"], 1),
    "shared-size": ([r"s\[\(256\) - 1\]"], 1),
    "stream": ([r"kThreads, bytes>>>"], 1),
    "grid": ([r"ceil_div\(n, 256\) - 1", r"\) \+ 1, kThreads"], 2),
    "block": ([r"kThreads / 2"], 1),
    "dynamic-size": ([r"\(bytes\) / 2"], 1),
    "tail": ([r"\(\(n\) / \(256\)\)", r"= 0 == 0"], 2),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_makes_its_mistakes_and_no_others(name):
    lines, count = EXPECTED[name]
    found = list(mutants("k.cu", KERNEL, [OPERATORS[name]]))
    after = "\n".join(mutant.after for mutant in found)
    for line in lines:
        assert re.search(line, after, re.MULTILINE), f"{line}\n{after}"
    assert count in (None, len(found)), after
    original = KERNEL.split("\n")
    for mutant in found:
        changed = mutant.text.split("\n")
        differs = [i for i, (a, b) in enumerate(zip(original, changed, strict=True), 1) if a != b]
        assert differs[0] == mutant.line
        assert len(differs) == 1 or name == "first-round"  # whose braces surround the loop's body
        assert mutant.before.startswith(original[mutant.line - 1].strip())


def test_there_are_as_many_operators_as_the_tests_say():
    assert set(EXPECTED) == set(OPERATORS)
    assert len(OPERATORS) >= 25


def test_comments_strings_static_assertions_and_registrations_stay_as_they_are():
    changed = {mutant.line for mutant in mutants("k.cu", KERNEL, list(OPERATORS.values()))}
    lines = KERNEL.split("\n")
    for word in ("// if", "static_assert", "STABLE_TORCH_LIBRARY"):
        assert next(i for i, line in enumerate(lines, 1) if word in line) not in changed
    assert '"n must be at least 5"' in KERNEL
    for mutant in mutants("k.cu", KERNEL, list(OPERATORS.values())):
        assert '"n must be at least 5"' in mutant.text


def test_only_lines_of_the_region_change():
    region = (5, 9)
    found = list(mutants("k.cu", KERNEL, list(OPERATORS.values()), region))
    assert {mutant.line for mutant in found} <= set(range(5, 10))
    assert len(found) > 5


def test_no_text_comes_twice_and_none_is_the_original():
    texts = [mutant.text for mutant in mutants("k.cu", KERNEL, list(OPERATORS.values()))]
    assert len(texts) == len(set(texts))
    assert KERNEL not in texts


def test_a_key_names_a_mutant_by_its_text():
    first, second, *_ = mutants("k.cu", KERNEL, [OPERATORS["narrow-32"]])
    (again, *_) = mutants("k.cu", KERNEL, [OPERATORS["narrow-32"]])
    assert first.key == again.key != second.key


def test_every_operator_says_what_it_does():
    for operator in OPERATORS.values():
        assert re.fullmatch(r"[A-Z].*\.", operator.sentence), operator.name
        assert 5 <= len(operator.sentence.split()) <= 30
