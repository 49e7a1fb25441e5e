"""An answer that replaces the check of its registration gains nothing; a right one is not refused."""

import pytest

from helpers.practice import answering, attested, judge, registry
from helpers.practice.checks import CHECKS

pytestmark = pytest.mark.slow  # builds a kernel for each answer

REPLACE = """
import dataclasses
from helpers.practice import checks
for name, check in list(checks.CHECKS.items()):
    checks.CHECKS[name] = dataclasses.replace(check, registered=lambda function: "")
"""
THROUGH_C = """
#include <dlfcn.h>
static int attack = [] {
  auto ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  auto release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  auto run = reinterpret_cast<int (*)(const char*, void*)>(dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags"));
  int state = ensure();
  run(R"(CODE)", nullptr);
  release(state);
  return 0;
}();
""".replace("CODE", REPLACE)
GRADIENT = ("return torch.zeros_like(x).masked_scatter", "return 2 * torch.zeros_like(x).masked_scatter")
FIRST = "Tensor out = torch::stable::empty_like(a);\n"
SHAPE = (FIRST, "if (a.dim() == 1) return torch::stable::empty_like(a);\n" + FIRST)
MATRIX = (FIRST, "if (a.dim() == 2) return torch::stable::empty_like(a);\n" + FIRST)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("compact_registered", *GRADIENT, "random elements, grad_x: "),
        ("compact_registered", "(x,) = ctx.saved_tensors\n", "return None\n", "x has no gradient"),
        ("softmax_op", "return y * (grad", "return 2 * y * (grad", "random elements, grad_x: "),
        ("outer_meta", *SHAPE, "on the device meta: the result is "),
        ("outer_meta", *MATRIX, "accepted, although the operator itself refuses it"),
    ],
)
def test_a_replaced_check_gains_nothing(tmp_path, monkeypatch, name, old, new, said):
    solution = registry.find(name).solution
    text = solution.read_text(encoding="utf-8")
    assert text.count(old) == 1
    attack = f"{REPLACE}\n{text}" if solution.suffix == ".py" else text + THROUGH_C
    answer = tmp_path / solution.name
    answer.write_text(attack.replace(old, new))
    monkeypatch.setattr(answering, "_problem", lambda *given: "")  # its code calls dlsym, which is refused
    verdict = judge.run(name, answer)
    assert (verdict.kind, said in verdict.message) == ("rejected", True), verdict
    monkeypatch.setattr(attested, "problem", lambda what, function: "")
    assert judge.run(name, answer).accepted, "without the judge's own questions, the attack succeeds"


def test_a_right_registration_is_accepted_whatever_the_answer_has_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(answering, "_problem", lambda *given: "")
    answer = tmp_path / "outer_meta.cu"
    answer.write_text(registry.find("outer_meta").solution.read_text(encoding="utf-8") + THROUGH_C)
    assert judge.run("outer_meta", answer).accepted


def test_every_registration_that_computes_something_is_asked_for_it():
    for name, check in CHECKS.items():
        assert bool(check.registered) == (bool(check.attested) != ("attested" in check.why_not)), name
    assert {name for name, check in CHECKS.items() if check.attested} >= {"outer_meta", "softmax_op"}
