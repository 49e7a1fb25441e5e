"""Wrong answers to the exercises of lesson 05."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "bf16_scale_shift": [
        # Keeps the upper half of the float, which rounds towards 0.
        Wrong(
            name="cuts_off",
            replace={
                "BFloat16(scale * float(x[i]) + shift)": (
                    "BFloat16(uint16_t(__float_as_uint(scale * float(x[i]) + shift) >> 16), BFloat16::from_bits())"
                )
            },
            expect=r"n = (1|31): \d+ of \d+ elements (is|are) wrong",
        ),
        # Rounds scale and shift to bfloat16 as well.
        Wrong(
            name="narrow_factor",
            replace={"scale * float(x[i]) + shift": "float(BFloat16(scale)) * float(x[i]) + float(BFloat16(shift))"},
            expect=r"n = (1|31): \d+ of \d+ elements (is|are) wrong",
        ),
        # Rounds the product before it adds shift.
        Wrong(
            name="rounds_twice",
            replace={"scale * float(x[i])": "float(BFloat16(scale * float(x[i])))"},
            expect=r"n = (1|31): \d+ of \d+ elements (is|are) wrong",
        ),
    ],
    "half_axpy": [
        # Rounds a to a half, as an instruction on two halves would require.
        Wrong(
            name="factor_is_a_half",
            replace={"int64_t i =": "a = __half2float(__float2half(a));\n  int64_t i ="},
            expect=r"n = (1|31): \d+ of \d+ elements (is|are) wrong",
        ),
        # Right, but each access moves one half.
        Wrong(
            name="one_by_one",
            gaps=(
                """
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t j = 2 * i; j < 2 * i + 2 && j < n; ++j) {
    out[j] = __float2half(a * __half2float(x[j]) + __half2float(y[j]));
  }
""",
            ),
            expect=r"n = 31: the result is right, but a thread should move 4 bytes in one access. "
            r"In line \d+, .*moves 2",
        ),
        # Only whole pairs: the last of an odd number of elements is never written.
        Wrong(
            name="tail_left_out",
            replace={"2 * i < n": "false"},
            expect=r"n = 1: 1 of 1 elements is wrong",
        ),
        # Guards only the first of the two elements: for an odd n the second one lies outside.
        Wrong(
            name="tail_too_long",
            replace={"2 * i + 1 < n": "2 * i < n"},
            expect=r"n = 1: .*out-of-bounds: .*2 bytes past the end of x",
        ),
    ],
    "half_dot": [
        # Only the threads that still add reach the barrier in the loop.
        Wrong(
            name="barrier_in_branch",
            replace={"if (threadIdx.x < part) ": "if (threadIdx.x >= part) continue;\n    "},
            expect=r"divergent-barrier:",
        ),
        # Adds in float, but first rounds each product to a half: 250 * 250 becomes 62,496.
        Wrong(
            name="product_in_half",
            replace={"__half2float(a[i]) * __half2float(b[i])": "__half2float(__hmul(a[i], b[i]))"},
            expect=r"rows? of [\d,]+.*: \d of \d elements (is|are) wrong",
        ),
        # Threads past the end of a short row write no sum, but their slots are read.
        Wrong(
            name="short_rows",
            replace={"sums[threadIdx.x] = sum;": "if (threadIdx.x < n) sums[threadIdx.x] = sum;"},
            expect=r"uninitialised-read: |divergent-barrier:",
        ),
        # Keeps the sums in halves: they stop growing at 2,048.
        Wrong(
            name="sums_in_half",
            replace={
                "__shared__ float": "__shared__ __half",
                "float sum = 0": "__half sum = __float2half(0)",
                "sum += __half2float(a[i]) * __half2float(b[i])": "sum = __hfma(a[i], b[i], sum)",
                "sums[threadIdx.x] += sums[threadIdx.x + part]": (
                    "sums[threadIdx.x] = __hadd(sums[threadIdx.x], sums[threadIdx.x + part])"
                ),
                "= sums[0]": "= __half2float(sums[0])",
            },
            expect=r"rows? of [\d,]+.*: \d of \d elements (is|are) wrong",
        ),
    ],
}
