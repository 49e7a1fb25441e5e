"""Wrong answers to the exercises of lesson 09."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "register_mutation": [
        # Says that x may be aliased, not that it is written to.
        Wrong(
            name="alias_only",
            replace={"Tensor(a!) x": "Tensor(a) x"},
            expect=r"a result may alias x, but not that x is written to",
        ),
        # Says that y is written to as well.
        Wrong(
            name="both",
            replace={"(a!) x, Tensor y": "(a!) x, Tensor(b!) y"},
            expect=r"more than a read for y",
        ),
        # Declares a result, which the function does not return.
        Wrong(
            name="returns",
            replace={
                "Tensor(a!) x, Tensor y, float factor) -> ()": "Tensor(a!) x, Tensor y, float factor) -> Tensor(a!)"
            },
            expect=r"takes x, y and factor, and returns nothing",
        ),
    ],
    "outer_meta": [
        # Accepts what the operator refuses: the error comes only when the compiled code runs.
        Wrong(
            name="accepts_all",
            gaps=("  out = torch::stable::new_empty(a, {a.size(0), b.dim() ? b.size(0) : 1});",),
            expect=r"a with shape \[2, 3\] and float32, b with \[3\] and float32: accepted",
        ),
        # Rows and columns are exchanged.
        Wrong(
            name="exchanged",
            replace={"{a.size(0), b.size(0)}": "{b.size(0), a.size(0)}"},
            expect=r"float32, 0 x 3, on the device meta: the result has shape \[3, 0\], but should have \[0, 3\]",
        ),
        # Always float32.
        Wrong(
            name="one_dtype",
            replace={"{a.size(0), b.size(0)}": "{a.size(0), b.size(0)}, ScalarType::Float"},
            expect=r"float64, 0 x 3, on the device meta: the result has dtype float32",
        ),
        # Calls the operator itself, which needs data.
        Wrong(
            name="runs_the_kernel",
            gaps=("  out = outer_meta(a, b);",),
            expect=r"float32, 0 x 3, on the device meta: it raised\n .*a must be a CUDA tensor",
        ),
    ],
    "compact_registered": [
        # Counts elements that do not exist.
        Wrong(
            name="counts",
            replace={"torch.library.get_ctx().new_dynamic_size()": "int((x > 0).sum())"},
            expect=r"cell:\d+: GuardOnDataDependentSymNode: Could not extract .*",
        ),
        # Puts the gradients at the beginning.
        Wrong(
            name="gradient_in_front",
            replace={
                "torch.zeros_like(x).masked_scatter(x > 0, grad)": (
                    "torch.nn.functional.pad(grad, (0, len(x) - len(grad)))"
                )
            },
            expect=r"n = 31, grad_x: \d+ of 31 elements (is|are) wrong",
        ),
        # Assumes that the incoming gradient is 1.
        Wrong(
            name="gradient_of_a_sum",
            replace={"torch.zeros_like(x).masked_scatter(x > 0, grad)": "(x > 0).to(grad.dtype)"},
            expect=r"n = 1, grad_x: 1 of 1 elements is wrong",
        ),
        # Says that all elements are kept.
        Wrong(
            name="keeps_all",
            replace={"torch.library.get_ctx().new_dynamic_size()": "x.numel()"},
            expect=r"the fake result for 9 elements always has 9",
        ),
        # backward needs x, but setup_context has not saved it.
        Wrong(
            name="saves_nothing",
            replace={"ctx.save_for_backward(inputs[0])": "pass"},
            expect=r"cell:\d+: ValueError: not enough values to unpack",
        ),
    ],
    "compact": [
        # Places by an atomic counter: the right elements, in the order in which the threads arrive.
        Wrong(
            name="any_order",
            gaps=(
                None,
                """
  __shared__ unsigned long long kept;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) kept = 0;
  __syncthreads();
  int warp = threadIdx.x / kWarp;
  for (int w = kThreads / kWarp - 1; w >= 0; --w) {
    if (w == warp && i < n && x[i] > 0) out[first[blockIdx.x] + atomicAdd(&kept, 1ull)] = x[i];
    __syncthreads();
  }
""",
            ),
            expect=r"(n = \d+|\[\w.*|x = .*|1,000 .*|600 .*): .*(elements (is|are) wrong|race)",
        ),
        # Counts threads past the end by what lies there: more elements than there are.
        Wrong(
            name="counts_past_the_end",
            replace={"__syncthreads_count(i < n && x[i] > 0)": "__syncthreads_count(!(x[i] <= 0))"},
            expect=r"n = (1|31|255): .*out-of-bounds:",
        ),
        # Leaves out the counts of the preceding warps: the warps of a block overwrite each other.
        Wrong(
            name="forgets_warps",
            replace={"for (int w = 0; w < warp; ++w) place += of_warps[w];": ""},
            expect=r"n = 255: .*race: a write to",
        ),
        # Reads counts that other warps may not have written yet.
        Wrong(
            name="no_barrier",
            replace={"__syncthreads();": ""},
            expect=r"race: a read of a shared array",
        ),
        # Counts the lane itself among the lanes before it: every place is one too far.
        Wrong(
            name="one_too_far",
            replace={"(1u << lane)": "(2u << lane)"},
            expect=r"n = 1: .*out-of-bounds: writes 4 bytes just past the end of|n = 1: 1 of 1",
        ),
    ],
}
