"""Wrong answers to the exercises of lesson 07."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "rgb_to_grey": [
        # Assumes that the colours of a pixel are neighbours.
        Wrong(
            name="interleaved",
            replace={
                "image[i]": "image[3 * i]",
                "image[i + plane]": "image[3 * i + 1]",
                "image[i + 2 * plane]": "image[3 * i + 2]",
            },
            expect=r"8 x 32: \d+ of 256 elements (is|are) wrong",
        ),
        # One comparison for two dimensions: threads past the end of a row write into the next one.
        Wrong(
            name="one_guard",
            replace={"row >= height || column >= width": "row * width + column >= height * width"},
            expect=r"7 x 31: .*race: a write to grey",
        ),
        # Strides by the height: right only for square images.
        Wrong(
            name="wrong_pitch",
            replace={"row * width + column": "row * height + column"},
            expect=r"8 x 32: .*race: a write to grey",
        ),
    ],
    "transpose": [
        # A column of the tile lies in one bank.
        Wrong(
            name="bank_conflicts",
            replace={"[kTile + 1]": "[kTile]"},
            expect=r"32 x 32: the result is right, but wasteful: bank conflicts in line \d+, "
            r".*takes 32 wavefronts .*where 1 would do",
        ),
        # Threads outside x leave before the barrier, but some of them have an element of out to write.
        Wrong(
            name="early_return",
            replace={
                "if (row + ty < rows && column + tx < columns) tile": (
                    "if (row + ty >= rows || column + tx >= columns) return;\n  tile"
                )
            },
            expect=r"(1 x 1|31 x 33):",
        ),
        # A thread reads what another thread writes, without waiting for it.
        Wrong(
            name="no_barrier",
            replace={"__syncthreads();": ""},
            expect=r"(?s)race: .*transpose_kernel",
        ),
        # Right, but the lanes of a warp write to 32 rows of out.
        Wrong(
            name="without_a_tile",
            gaps=(
                """
  int64_t row = int64_t(blockIdx.y) * kTile + threadIdx.y, column = int64_t(blockIdx.x) * kTile + threadIdx.x;
  if (row < rows && column < columns) out[column * rows + row] = x[row * columns + column];
""",
            ),
            expect=r"32 x 32: the result is right, but wasteful: uncoalesced access in line \d+, .*takes 32 sectors",
        ),
    ],
    "batched_matmul": [
        # Threads outside c leave, but their part of the tiles is needed, and so are they at the barrier.
        Wrong(
            name="early_return",
            replace={"float sum = 0;": "float sum = 0;\n  if (row >= m || column >= n) return;"},
            expect=r"batch 1, m = 1, n = 1, k = 1:",
        ),
        # Reads on past the end of a row of a: what lies there is multiplied by 0, but may be NaN.
        Wrong(
            name="no_end_of_rows",
            replace={"row < m && first + tx < k ?": "row < m ?"},
            expect=r"batch .*:",
        ),
        # Every product uses the first matrix of b.
        Wrong(
            name="one_b",
            replace={"b += blockIdx.z * k * n": "b += 0"},
            expect=r"batch 2, m = 3, n = 5, k = 4: \d+ of 30 elements (is|are) wrong",
        ),
        # The next tiles overwrite what other warps are still reading.
        Wrong(
            name="second_barrier",
            replace={"tile_b[i][tx];\n    __syncthreads();": "tile_b[i][tx];"},
            expect=r"(?s)race: .*batched_matmul_kernel",
        ),
    ],
}
