"""Wrong answers to the exercises of lesson 02."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "relu_backward": [
        # Computes ReLU itself, not its gradient.
        Wrong(
            name="forward",
            replace={": grad[i]": ": x[i]"},
            expect=r"n = (1|31): \d+ of (1|31) elements (is|are) wrong",
        ),
        # The comparison the other way round: NaN > 0 is false, so a NaN in x stops the gradient.
        Wrong(
            name="stops_nan",
            replace={"x[i] <= 0 ? 0 : grad[i]": "x[i] > 0 ? grad[i] : 0"},
            expect=r"x = nan everywhere, .*: \d of 6 elements (is|are) wrong",
        ),
        # Multiplies by 0 instead of choosing 0: inf * 0 is NaN.
        Wrong(
            name="times_zero",
            replace={"x[i] <= 0 ? 0 : grad[i]": "grad[i] * float(!(x[i] <= 0))"},
            expect=r"(?s)x = 0.0 everywhere, .*elements (is|are) wrong.*expected 0, got -?nan",
        ),
    ],
    "checked_mul": [
        # Compares the number of elements, not the shapes.
        Wrong(
            name="counts_only",
            replace={"ladder::shape_of(a) == ladder::shape_of(b)": "a.numel() == b.numel()"},
            expect=r"a has shape \[6\], b \[2, 3\]: accepted",
        ),
        # Forgets that a view may skip elements.
        Wrong(
            name="no_strides",
            replace={"t.is_contiguous()": "true"},
            expect=r"a is every other element of a tensor: accepted, and misread by the kernel",
        ),
        # One check for all conditions, joined by || instead of &&: it passes as soon as one of them holds.
        Wrong(
            name="or",
            gaps=(
                """
  STD_TORCH_CHECK(ladder::shape_of(a) == ladder::shape_of(b) || a.scalar_type() == b.scalar_type() ||
                      a.get_device_index() == b.get_device_index(),
                  "a and b must be alike, got shapes ", ladder::shape_of(a), " and ", ladder::shape_of(b));
""",
            ),
            expect=r"b is float64: accepted, and misread by the kernel",
        ),
        # Refuses an empty tensor, which is a valid argument.
        Wrong(
            name="refuses_empty",
            replace={'check_one(a, "a");': 'STD_TORCH_CHECK(a.numel() > 0, "a is empty"); check_one(a, "a");'},
            expect=r"shape \[0\]: .*a is empty",
        ),
        # Refuses, but names neither the argument nor what was got.
        Wrong(
            name="says_nothing",
            gaps=(
                """
  for (const Tensor* t : {&a, &b}) {
    STD_TORCH_CHECK(t->is_cuda() && t->is_contiguous() && t->scalar_type() == ScalarType::Float, "bad argument");
  }
  STD_TORCH_CHECK(ladder::shape_of(a) == ladder::shape_of(b), "bad shapes");
""",
            ),
            expect=r"b is float64: refused, but the message does not name b and say that float64 was got",
        ),
    ],
    "row_scale_backward": [
        # Guards the rows with the number of elements: threads past the last row write past the end of grad_scale.
        Wrong(
            name="guards_swapped",
            replace={"r >= rows)": "r >= rows * columns && columns > 0)"},
            expect=r"wrote outside grad_scale: grad_scale\[\d+\] changed",
        ),
        # Forgets that every column used scale: the gradient of a broadcast input is a sum.
        Wrong(
            name="not_summed",
            gaps=(
                None,
                """
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < rows * columns) grad_scale[i / columns] = grad[i] * x[i];
""",
            ),
            expect=r"3 rows, 0 columns, grad_scale: 3 of 3 elements are wrong",
        ),
        # Uses the column in place of the row.
        Wrong(
            name="remainder",
            replace={"scale[i / columns]": "scale[i % columns]"},
            expect=r"3 rows, 5 columns, grad_x: \d+ of 15 elements (is|are) wrong",
        ),
        # Mixes up rows and columns in the sum: right only for square matrices.
        Wrong(
            name="square_only",
            replace={
                "int64_t i = r * columns; i < (r + 1) * columns; ++i": "int64_t c = 0; c < columns; ++c",
                "grad[i] * x[i]": "grad[r * rows + c] * x[r * rows + c]",
            },
            expect=r"3 rows, 5 columns, grad_scale: \d of 3 elements (is|are) wrong",
        ),
    ],
}
