"""What a compiler says, and how a process ends, with what to do about it."""

import pytest
from wrong_answers import cell_of, edited, uncommented

from helpers.practice import advice, answering, judge


@pytest.mark.parametrize(
    "error",
    [
        "cell:5: error: invalid cast from type \u2018const __half\u2019 to type \u2018float\u2019",
        'cell.cu(5): error: no suitable conversion function from "const __half" to "float" exists',
        "cell:5: error: no match for 'operator*' (operand types are 'const __nv_bfloat16' and 'float')",
        "cell:5: error: cannot convert \u2018__half\u2019 to \u2018float\u2019 in initialization",
    ],
)
def test_conversions_that_pytorch_turns_off_are_named(error):
    told = advice.on_build("half_axpy", error)
    assert told.startswith(error)
    assert "__half2float(x)" in told


@pytest.mark.parametrize(
    "error",
    [
        "cell:5: error: \u2018vector_scale_kernel\u2019 was not declared in this scope",
        'cell.cu(5): error: identifier "vector_scale_kernel" is undefined',
    ],
)
def test_a_kernel_that_the_launcher_calls_is_named(error):
    wide = f"{' ' * 200}^"
    told = advice.on_build("vector_scale", f"{error}\n   35 |   code\n{wide}").splitlines()
    needed = "  the launcher below your code calls vector_scale_kernel: a kernel of that name must exist"
    assert told == [error, "   35 |   code", needed]


def test_other_errors_stay_as_they_are():
    undeclared = "cell:5: error: 'i' was not declared in this scope"
    for error in ("cell:5: error: expected ';'\n  5 | x\n    |  ^", undeclared):
        assert advice.on_build("vector_scale", error) == error
    assert advice.on_build("roll", "a: error: x\n  1 | simt::launch(...\n    | ^") == "a: error: x"


@pytest.mark.parametrize(
    ("reason", "case", "printed", "said"),
    [
        ("SIGSEGV", "n = 1", "", "it ended the process (SIGSEGV): did it read or write far out of bounds?"),
        ("SIGABRT", "n = 1", "", "it ended the process (SIGABRT)"),
        ("SIGABRT", "n = 1", "a\nassertion x failed\n", "it ended the process (SIGABRT): assertion x failed"),
        ("SIGABRT", "", "terminate called\n  what():  \nno type\n  a b\n (originally from x)", "no type\n  a b"),
        ("exit status 3", "n = 1", "", "it ended the process (exit status 3)"),
        ("SIGALRM", "", "", "loading it does not end"),
        ("SIGPROF", "", "", "loading it does not end"),
        ("SIGALRM", "n = 1", "", "it ended the process (SIGALRM)"),
    ],
)
def test_the_end_of_a_process_is_explained_only_by_evidence(reason, case, printed, said):
    told = advice.on_end(reason, case, printed.splitlines())
    assert told.endswith(said) or (said == "loading it does not end" and said in told)
    assert ("far out of bounds" in told) == (reason == "SIGSEGV")


@pytest.mark.slow
def test_what_happens_while_a_library_is_loaded(monkeypatch):
    typo = edited(cell_of("register_mutation"), {"(Tensor(a!) x, Tensor y, float factor)": "(Tensor(a!) x, Tenzor y)"})
    answer = judge.check_cell("register_mutation", typo)
    assert answer.kind == "not built"
    if "SIGABRT" in answer.message:  # so PyTorch 2.13 ends; 2.11 prints the reason and registers nothing
        assert "(SIGABRT) while it was loaded: " in answer.message
    assert "register_mutation(Tensor(a!) x, Tenzor y) -> ()" in str(answer)
    assert "out of bounds" not in answer.message
    monkeypatch.setattr(answering, "LOAD_SECONDS", 2)
    endless = "static volatile int zero; static int hang = [] { while (zero == 0) {} return 0; }();\n"
    answer = judge.check_cell("checked_mul", endless + uncommented(cell_of("checked_mul"), "checked_mul"))
    assert answer.kind == "not built"
    assert "it was built, but loading it does not end" in answer.message


@pytest.mark.slow
def test_a_fault_in_a_header_names_the_line_that_called_it():
    text = uncommented(cell_of("swiglu"), "swiglu")
    wrong = edited(text, {"+ i % row_vectors": "+ i % row_vectors + 1"})
    message = judge.check_cell("swiglu", wrong).message
    assert "vector.h:" in message.splitlines()[0]
    line = next(i for i, code in enumerate(wrong.splitlines(), 2) if "V gates = V::load" in code)
    assert f"  called at cell:{line}: V gates = V::load(x, place)" in message


@pytest.mark.slow
def test_a_loop_over_all_elements_in_each_thread_is_told_at_the_first_fault():
    text = edited(
        uncommented(cell_of("vector_scale"), "vector_scale"),
        {"if (i < n) out[i] = factor * x[i];": "for (int64_t j = 0; j < n; ++j) out[j] = factor * x[j];"},
    )
    first = judge.check_cell("vector_scale", text).message.splitlines()[0]
    assert first.startswith("n = 1: cell:5: race: threads ")
    assert "of one block both write out[0]: which of them should own it?" in first
