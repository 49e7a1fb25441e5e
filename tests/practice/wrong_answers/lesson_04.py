"""Wrong answers to the exercises of lesson 04."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "softplus_backward": [
        # The function itself instead of its slope.
        Wrong(
            name="forward",
            replace={"grad[i] / (1 + expf(-x[i]))": "grad[i] * log1pf(expf(x[i]))"},
            expect=r"n = 1: 1 of 1 elements is wrong",
        ),
        # The slope alone: the chain rule's factor grad is missing.
        Wrong(
            name="no_chain",
            replace={"grad[i] /": "1 /"},
            expect=r"n = 1: 1 of 1 elements is wrong",
        ),
        # Divides infinity by infinity where exp(x) is too large for a float.
        Wrong(
            name="overflows",
            replace={"grad[i] / (1 + expf(-x[i]))": "grad[i] * expf(x[i]) / (1 + expf(x[i]))"},
            expect=r"(?s)x = \[.*\]: 1 of 8 elements is wrong.*expected -1.5, got nan",
        ),
    ],
    "gelu_erf": [
        # The lesson's tanh form: close, but a different function.
        Wrong(
            name="by_tanh",
            replace={
                "x[i] * (0.5f * erfcf(-x[i] * kRootHalf))": (
                    "x[i] / (1 + expf(-1.5957691f * (x[i] + 0.044715f * x[i] * x[i] * x[i])))"
                )
            },
            expect=r"n = 1, out: 1 of 1 elements is wrong",
        ),
        # Subtracts nearly equal numbers where x is far below 0: all digits but one are lost.
        Wrong(
            name="cancels",
            replace={
                "erfcf(-x[i] * kRootHalf)": "(1 + erff(x[i] * kRootHalf))",
                "erfcf(-z * kRootHalf)": "(1 + erff(z * kRootHalf))",
            },
            expect=r"x = \[-3.0, .*\], out: \d of 5 elements (is|are) wrong",
        ),
        # No product rule: the factor x is treated as a constant.
        Wrong(
            name="no_product_rule",
            replace={" + z * kInverseRoot * expf(-0.5f * z * z)": ""},
            expect=r"n = 1, grad_x: 1 of 1 elements is wrong",
        ),
        # The density without its factor 1 / sqrt(2 * pi).
        Wrong(
            name="not_a_density",
            replace={" * kInverseRoot": ""},
            expect=r"n = 1, grad_x: 1 of 1 elements is wrong",
        ),
    ],
    "column_sum": [
        # Adds in the order in which the warps arrive: the result is right each time, but differs in its last bits.
        Wrong(
            name="atomics",
            gaps=(
                """
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  if (threadIdx.y == 0 && column < columns) out[column] = 0;
  __syncthreads();
  if (column >= columns) return;
  float sum = 0;
  for (int64_t row = threadIdx.y; row < rows; row += kRows) sum += x[row * columns + column];
  atomicAdd(&out[column], sum);
""",
            ),
            expect=r"out had different bits in \d of 5 calls with the same inputs",
        ),
        # The first row of threads reads sums that the other warps may not have written yet.
        Wrong(
            name="no_barrier",
            replace={"__syncthreads();": ""},
            expect=r"(?s)race: .*column_sum_kernel",
        ),
        # Returns before it writes the sums of zero rows, which are 0.
        Wrong(
            name="no_rows_not_written",
            replace={"float sum = 0;": "float sum = 0;\n  if (rows == 0) return;"},
            expect=r"0 rows, 5 columns: 5 of 5 elements are wrong",
        ),
        # Adds the sum of only the first of the eight rows of threads: seven rows in eight are missing.
        Wrong(
            name="one_row_of_threads",
            replace={"k < kRows": "k < 1"},
            expect=r"7 rows, 31 columns: 31 of 31 elements are wrong",
        ),
    ],
}
