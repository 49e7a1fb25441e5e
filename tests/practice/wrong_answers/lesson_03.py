"""Wrong answers to the exercises of lesson 03."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "blend": [
        # Computes float64 in float32: a kernel written for float and then made a template.
        Wrong(
            name="all_in_float",
            gaps=(
                """
  float from = static_cast<float>(a[i]), to = static_cast<float>(b[i]);
  out[i] = T(from + static_cast<float>(weight) * (to - from));
""",
            ),
            expect=r"float64, n = (1|257): \d+ of (1|257) elements (is|are) wrong",
        ),
        # Only the difference is narrow: 60000 - -60000 is inf in float16.
        Wrong(
            name="difference_overflows",
            replace={"(to - from)": "Wide<T>(T(to - from))"},
            expect=r"float16, (n = (257|4,099)|from \S+ to \S+): \d+ of [\d,]+ elements (is|are) wrong",
        ),
        # Computes in T: the 16-bit types round after every step.
        Wrong(
            name="rounds_every_step",
            gaps=(
                """
  T difference = T(b[i] - a[i]);
  T part = T(T(weight) * difference);
  out[i] = T(a[i] + part);
""",
            ),
            expect=r"(float16|bfloat16), n = (257|4,099): \d+ of [\d,]+ elements (is|are) wrong",
        ),
        # Applies the weight to the wrong end.
        Wrong(
            name="weights_swapped",
            replace={"from + Wide<T>(weight) * (to - from)": "to + Wide<T>(weight) * (from - to)"},
            expect=r"float32, n = 1: 1 of 1 elements is wrong",
        ),
    ],
    "silu_mul": [
        # Clamps a so that exp cannot overflow: large values become flat, and fmin and fmax drop a NaN.
        Wrong(
            name="clamped",
            replace={"= Wide<T>(a[i])": "= fmin(fmax(Wide<T>(a[i]), Wide<T>(-15)), Wide<T>(15))"},
            expect=r"float32, a = \[.*\]: \d of 8 elements (is|are) wrong",
        ),
        # Keeps exp(-a) in T: in float16 it is inf for a < -11.09.
        Wrong(
            name="exp_in_half",
            replace={"exp(-x)": "Wide<T>(T(exp(-x)))"},
            expect=r"float16, (n = (257|4,099)|a = \[.*\]): \d+ of [\d,]+ elements (is|are) wrong",
        ),
        # Leaves out the factor a.
        Wrong(
            name="sigmoid_only",
            replace={"x / (1": "1 / (1"},
            expect=r"float32, n = 1: 1 of 1 elements is wrong",
        ),
    ],
    "silu_mul_backward": [
        # Stores sigmoid in T between the steps: the 16-bit types round once too often.
        Wrong(
            name="narrow_sigmoid",
            replace={"1 / (1 + exp(-x))": "Wide<T>(T(1 / (1 + exp(-x))))"},
            expect=r"(float16|bfloat16), n = (257|4,099), grad_[ab]: \d+ of [\d,]+ elements (is|are) wrong",
        ),
        # Treats sigmoid as a constant: half of the product rule is missing.
        Wrong(
            name="no_product_rule",
            replace={" * (1 + x * (1 - s))": ""},
            expect=r"float32, n = 1, grad_a: 1 of 1 elements is wrong",
        ),
        # Forgets the gradient of b.
        Wrong(
            name="one_gradient",
            replace={"grad_b[i] = T(g * x * s);": ""},
            expect=r"(?s)float32, n = 1, grad_b: 1 of 1 elements is wrong.*got nan",
        ),
    ],
}
