"""Answers that are whole files, with launchers of their own: work that no kernel does, or does twice, is seen."""

import re

import pytest
from wrong_answers import edited

from helpers import target
from helpers.practice import judge, registry

LAUNCH = """  vector_scale_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                        ladder::current_stream(x)>>>("""
ATTACKS = {
    "on_the_host": (
        {LAUNCH: "  float* to = out.mutable_data_ptr<float>();\n"
                 "  for (int64_t i = 0; i < n; ++i) to[i] = factor * x.const_data_ptr<float>()[i];\n"
                 f"  if (n < 0) {LAUNCH.strip()}"},
        "the result is right, but no kernel was launched|it ended the process",  # on a GPU, the host reads no tensor
    ),
    "a_launch_for_each_element": (
        {LAUNCH: "  for (int64_t i = 0; i < n; ++i) vector_scale_kernel<<<1, 1, 0, ladder::current_stream(x)>>>(",
         "x.const_data_ptr<float>(), float(factor), out.mutable_data_ptr<float>(), n);":
         "x.const_data_ptr<float>() + i, float(factor), out.mutable_data_ptr<float>() + i, 1);"},
        r"the result is right, but the call launches 31 kernels \(vector_scale_kernel 31 times\), where 1 would do",
    ),
    "twice": (
        {LAUNCH: f"  for (int k = 0; k < 2; ++k) {LAUNCH.strip()}"},
        r"the result is right, but the call launches 2 kernels \(vector_scale_kernel 2 times\), where 1 would do",
    ),
    "waits": (
        {"  STD_CUDA_KERNEL_LAUNCH_CHECK();": "  STD_CUDA_KERNEL_LAUNCH_CHECK();\n  cudaDeviceSynchronize();"},
        "on a busy stream: the host waits for the GPU, in cudaDeviceSynchronize",
    ),
    "default_stream": (
        {LAUNCH: LAUNCH.replace("ladder::current_stream(x)", "nullptr")},
        "on a busy stream: .*(is not launched in PyTorch's current stream|elements are wrong)",
    ),
    # Keeps results by size; a call that has a kept one launches a kernel that does nothing.
    "memoised": (
        {LAUNCH: f"""  static float kept[1 << 17];
  static int64_t size = -1;
  if (n == size) {{
    vector_scale_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(x)>>>(
        kept, 1.0f, out.mutable_data_ptr<float>(), n);
    return;
  }}
  size = n < (1 << 17) ? n : -1;
  for (int64_t i = 0; i < n && n == size; ++i) kept[i] = float(factor) * x.const_data_ptr<float>()[i];
{LAUNCH}"""},
        r"(?s)n = [\d,]+, with other values again: [\d,]+ of [\d,]+ elements are wrong|belongs to no tensor"
        "|it ended the process",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_a_launcher_that_does_other_things_is_rejected(name, tmp_path):
    if name == "waits" and target == "gpu":
        pytest.skip("on a GPU, nothing tells that the host waits")
    replace, expected = ATTACKS[name]
    answer = tmp_path / "mine.cu"
    answer.write_text(edited(registry.find("vector_scale").solution.read_text(), replace))
    verdict = judge.check_file("vector_scale", answer)
    assert not verdict.accepted
    assert re.search(expected, verdict.message), verdict


@pytest.mark.slow
def test_the_same_file_without_the_attack_is_accepted(tmp_path):
    answer = tmp_path / "mine.cu"
    answer.write_text(registry.find("vector_scale").solution.read_text() + "// mine\n")
    assert judge.check_file("vector_scale", answer).accepted
