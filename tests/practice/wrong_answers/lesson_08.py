"""Wrong answers to the exercises of lesson 08."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "register_column": [
        # Computes only whole columns of 8 rows.
        Wrong(
            name="last_rows_left_out",
            replace={"column >= n)": "column >= n || row + kRows > m)"},
            expect=r"m = 3, n = 4, k = 0: 12 of 12 elements are wrong",
        ),
        # Right, but each of the 8 products reads its element of b: nothing is gained.
        Wrong(
            name="reads_b_again",
            replace={"float y = b[i * n + column];": "", "* y;": "* b[i * n + column];"},
            expect=r"m = 16, n = 64, k = 8: .* reads 2 times per product",
        ),
        # Does not write rows below a, but reads them.
        Wrong(
            name="reads_rows_outside",
            replace={"if (row + r < m) sum": "sum"},
            expect=r"out-of-bounds: reads 4 bytes",
        ),
        # Right, but the sums are in c, which is memory: each product reads and writes one.
        Wrong(
            name="sums_in_memory",
            replace={
                "float sum[kRows] = {};": (
                    "for (int r = 0; r < kRows && row + r < m; ++r) c[(row + r) * n + column] = 0;"
                ),
                "sum[r] += a": "c[(row + r) * n + column] += a",
                "if (row + r < m) c[(row + r) * n + column] = sum[r];": "",
            },
            expect=r"m = 16, n = 64, k = 8: .* reads 2\.12 times per product",
        ),
    ],
    "split_k": [
        # Blocks take a part in the order in which they arrive: right each time, but the sums differ in their last bits.
        Wrong(
            name="any_order",
            replace={
                "__global__ void split_k_kernel": (
                    "__device__ int tickets[1 << 16];  // one for each block of a range\n\n"
                    "__global__ void split_k_kernel"
                ),
                "int64_t row =": """__shared__ int64_t part;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    part = atomicAdd(&tickets[blockIdx.y * gridDim.x + blockIdx.x], 1) % splits;
  }
  __syncthreads();
  int64_t row =""",
                "parts[(blockIdx.z * m": "parts[(part * m",
            },
            expect=r"c had different bits in \d of 5 calls with the same inputs",
        ),
        # An empty range writes no zeros: its part keeps its previous contents.
        Wrong(
            name="empty_range_not_written",
            replace={"begin + length : k;": "begin + length : k;\n  if (begin >= end) return;"},
            expect=r"m = 3, n = 4, k = 0, 2 splits: .*uninitialised-read",
        ),
        # A range is k / splits long, rounded down: the rest of k is in no range.
        Wrong(
            name="last_numbers_left_out",
            replace={"(k + splits - 1) / splits": "k / splits"},
            expect=r"m = 1, n = 1, k = 5, 3 splits: .*wrong",
        ),
        # All ranges write to the first part; the last write wins.
        Wrong(
            name="one_part",
            replace={"(blockIdx.z * m + row) * n": "row * n"},
            expect=r"race: a write",
        ),
        # The last range goes past the end of k.
        Wrong(
            name="past_the_end",
            replace={"begin + length < k ? begin + length : k": "begin + length"},
            expect=r"m = 1, n = 1, k = 5, 3 splits: .*out-of-bounds: reads",
        ),
    ],
    "matmul_bias_gelu": [
        # Adds bias after GELU.
        Wrong(
            name="bias_last",
            replace={"2 * i] + bias0)": "2 * i]) + bias0", "2 * i + 1] + bias1)": "2 * i + 1]) + bias1"},
            expect=r"m = 1, n = 1, k = 1: .*wrong",
        ),
        # The last tile reads past the end of bias.
        Wrong(
            name="bias_past_the_end",
            replace={
                "at < n ? ladder::widened(bias[at]) : 0": "ladder::widened(bias[at])",
                "at + 1 < n ? ladder::widened(bias[at + 1]) : 0": "ladder::widened(bias[at + 1])",
            },
            expect=r"n = 1, k = 1: .*out-of-bounds: reads 2 bytes.* past the end of bias",
        ),
        # Takes the four elements of a lane for two columns of two rows: they are two rows of two columns.
        Wrong(
            name="halves_swapped",
            replace={
                "sum[r][s][2 * i] = gelu_tanh(sum[r][s][2 * i] + bias0)": (
                    "sum[r][s][i] = gelu_tanh(sum[r][s][i] + bias0)"
                ),
                "sum[r][s][2 * i + 1] = gelu_tanh(sum[r][s][2 * i + 1] + bias1)": (
                    "sum[r][s][i + 2] = gelu_tanh(sum[r][s][i + 2] + bias1)"
                ),
            },
            expect=r"elements (is|are) wrong",
        ),
        # Rounds the product to 16 bits, as two operators would: the error of y is up to twice as large.
        Wrong(
            name="rounds_first",
            replace={
                "gelu_tanh(sum[r][s][2 * i] +": "gelu_tanh(ladder::widened(ladder::narrowed<T>(sum[r][s][2 * i])) +",
                "gelu_tanh(sum[r][s][2 * i + 1] +": (
                    "gelu_tanh(ladder::widened(ladder::narrowed<T>(sum[r][s][2 * i + 1])) +"
                ),
            },
            expect=r"elements (is|are) wrong",
        ),
    ],
}
