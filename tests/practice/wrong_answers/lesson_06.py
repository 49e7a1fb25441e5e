"""Wrong answers to the exercises of lesson 06."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "float4_tails": [
        # Assumes that every address is a multiple of 16.
        Wrong(
            name="any_address",
            replace={"if (ladder::all_aligned_to(16, x, out)) ": ""},
            expect=r"n = 257, x begins 4 bytes .*: .*misaligned:",
        ),
        # Never writes the elements after the last whole vector.
        Wrong(
            name="left_out",
            replace={"j < n": "false"},
            expect=r"n = (1|5): 1 of (1|5) elements is wrong",
        ),
        # Right, but never moves more than one float at a time.
        Wrong(
            name="no_vectors",
            replace={"vectors = n / 4": "vectors = 0"},
            expect=r"n = 1,023: the result is right, but a thread should move 16 bytes in one access. "
            r"In line \d+, .*moves 4",
        ),
        # Looks only at the address of x.
        Wrong(
            name="one_address",
            replace={"(16, x, out)": "(16, x)"},
            expect=r"n = 258, x begins 0 bytes .* out 8: .*misaligned:",
        ),
        # Guards the first element of a vector, but accesses all four.
        Wrong(
            name="too_long",
            replace={"vectors = n / 4": "vectors = 0", "i < vectors": "4 * i < n"},
            expect=r"n = 1: .*out-of-bounds:",
        ),
    ],
    "swiglu": [
        # The values gate the gates.
        Wrong(
            name="exchanged",
            replace={
                "float gate = float(gates.at[j])": "float gate = float(values.at[j])",
                "* float(values.at[j])": "* float(gates.at[j])",
            },
            expect=r"float32, 1 row, 1 column: 1 of 1 elements is wrong",
        ),
        # Right, but reads the elements of a vector one by one.
        Wrong(
            name="one_by_one",
            gaps=(
                """
  int64_t columns = row_vectors * V::size, i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t k = i * V::size; k < (i + 1) * V::size && k < rows * columns; ++k) {
    int64_t place = k / columns * 2 * columns + k % columns;
    float gate = float(x[place]);
    out[k] = T(gate / (1 + expf(-gate)) * float(x[place + columns]));
  }
""",
            ),
            expect=r"float32, 5 rows, 64 columns: the result is right, but a thread should move 16 bytes in one access",
        ),
        # Rounds the gate before the multiplication.
        Wrong(
            name="rounds_the_gate",
            replace={"gate / (1 + expf(-gate))": "float(T(gate / (1 + expf(-gate))))"},
            expect=r"float16, .*: \d+ of [\d,]+ elements (is|are) wrong",
        ),
        # Assumes that the gates of all rows come before the values of all rows.
        Wrong(
            name="stacked",
            replace={
                "i / row_vectors * 2 * row_vectors + i % row_vectors": "i",
                "place + row_vectors": "rows * row_vectors + i",
            },
            expect=r"float32, 2 rows, 31 columns: \d+ of 62 elements (is|are) wrong",
        ),
    ],
    "vector_max": [
        # fmaxf returns the other number if one is NaN.
        Wrong(
            name="drops_nan",
            replace={"if (b > a || isnan(b)) result = b;": "result = fmaxf(a, b);"},
            expect=r"2 rows of 300, NaN at \[1, 0\]: 1 of 2 elements is wrong",
        ),
        # Threads without elements leave, and the shuffle waits for them.
        Wrong(
            name="lanes_leave",
            replace={"float most = -INFINITY;": "if (threadIdx.x >= n) return;\n  float most = x[threadIdx.x];"},
            expect=r"divergent-barrier: |uninitialised-read:",
        ),
        # Thread 0 reads what the other warps may not have written yet.
        Wrong(
            name="no_barrier",
            replace={"__syncthreads();": ""},
            expect=r"(?s)race: .*vector_max_kernel",
        ),
        # Starts at a small positive number: wrong if all numbers are negative.
        Wrong(
            name="starts_above_zero",
            replace={"-INFINITY": "1e-30f"},
            expect=r"(2 rows of 0|3 rows of 1|3 rows of 300).*: \d of \d elements (is|are) wrong",
        ),
    ],
}
