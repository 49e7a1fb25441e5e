"""build/torch_headers.py: an extension is compiled with the operators that it names, or with all."""

from pathlib import Path

import pytest
import torch

import kernel_xray
from kernel_xray.build import torch_headers

PASTED = """
#include <torch/extension.h>
#define AT(name) at::sig ## name
torch::Tensor f(torch::Tensor x) { return AT(moid)(torch::relu_(x)); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }
"""


def listed(text, folder):
    """The operators that are included for a text, and the flags without the folder; None for all operators."""
    flags = torch_headers.chosen({Path("a"): "int f();", Path("b"): text}, folder)
    made = (folder / "simt_operators.h").read_text() if flags else ""
    names = [line.partition("ops/")[2].removesuffix(".h>") for line in made.splitlines()]
    return (names, [flag for flag in flags if flag.startswith("-D")]) if flags else None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("return x;", ["equal"]),
        ("at::add_out(y, x, x); zeros_symint(n); x.relu_(); at::no_operator(x);", ["add", "equal", "relu", "zeros"]),
        ("using namespace torch; abs(x)", ["abs", "equal"]),
    ],
)
def test_operators_are_taken_from_the_text(text, names, tmp_path):
    assert listed(text, tmp_path) == (names, ["-DAT_PER_OPERATOR_HEADERS"])


@pytest.mark.parametrize("text", ["torch::autograd::Function<F>", "torch::NoGradGuard g;", "at::get_num_threads()"])
def test_autograd_comes_with_its_names(text, tmp_path):
    assert listed(text, tmp_path)[1][-1] == "-DSIMT_AUTOGRAD"


@pytest.mark.parametrize("text", ["torch::fft::rfft(x)", "at::native::copy(x)", "torch::std(x, 0)", "at::numel(x)"])
def test_names_of_no_operator_bring_all(text, tmp_path):
    assert listed(text, tmp_path) is None
    assert listed(text.replace("::", "."), tmp_path) is not None


def test_a_missing_declaration_is_told_from_other_errors():
    said = "a.cu:4:11: error: ‘sum’ is not a member of ‘at’"
    assert torch_headers.lacking(said) and torch_headers.lacking("a.cu:1:2: error: no member named 'sum' in namespace")
    assert not torch_headers.lacking("a.cu:4:11: error: expected ‘;’ before ‘}’ token")


@pytest.mark.slow  # compiles PyTorch's headers twice; the tests above have the choice, test_seed_documents.py builds
@pytest.mark.skipif(kernel_xray.target != "simulator", reason="for a GPU, PyTorch's own builder decides")
def test_a_name_that_a_macro_pastes_together_is_found(tmp_path):
    (tmp_path / "pasted.cu").write_text(PASTED)
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(kernel_xray.load("pasted", [tmp_path / "pasted.cu"]).f(x.clone()), x.relu().sigmoid())
