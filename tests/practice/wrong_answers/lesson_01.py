"""Wrong answers to the exercises of lesson 01."""

from wrong_answers.answer import Wrong

ANSWERS = {
    "vector_scale": [
        # A semicolon is missing.
        Wrong(
            name="does_not_compile",
            replace={"blockDim.x + threadIdx.x;": "blockDim.x + threadIdx.x"},
            expect=r"(?s)cell:[34]: error: expected .*;",
        ),
        # Guards one index and uses another, far outside any tensor.
        Wrong(
            name="far_outside",
            replace={"out[i]": "out[(i + 1) << 40]"},
            expect=r"(?s)n = 1: cell:\d+: out-of-bounds: writes 4 bytes at an address that belongs to no tensor"
            r".*thread \(0, 0, 0\)",
        ),
        # The index lacks the block: all blocks write the first 256 elements.
        Wrong(
            name="first_block_only",
            replace={"int64_t(blockIdx.x) * blockDim.x + threadIdx.x": "threadIdx.x"},
            expect=r"(?s)n = 257: 1 of 257 elements is wrong.*\[256\]: expected .*, got nan",
        ),
        # The guard admits one thread too many: it writes past the end of the vector.
        Wrong(
            name="guard_off_by_one",
            replace={"i < n": "i <= n"},
            expect=r"n = 1: it wrote outside out: out\[1\] changed",
        ),
        # No guard: right only for multiples of 256.
        Wrong(
            name="no_guard",
            replace={"if (i < n) ": ""},
            expect=r"n = 1: it wrote outside out: out\[1\] changed; out has only element 0",
        ),
    ],
    "roll": [
        # 32 bits: a large shift loses its upper half.
        Wrong(
            name="int_shift",
            replace={"shift % n": "int(shift) % n"},
            expect=r"n = 100,003, shift = 1,099,511,627,777: [\d,]+ of 100,003 elements (is|are) wrong",
        ),
        # In C++ the remainder of a negative number is negative, and so is the index.
        Wrong(
            name="negative_index",
            replace={"if (from < 0) from += n;": ""},
            expect=r"n = 5, shift = 2: 2 of 5 elements are wrong",
        ),
        # Wraps only once: a shift by more than n leads outside.
        Wrong(
            name="once_around",
            replace={"(i - shift % n) % n": "i - shift", "from += n;": "from += n;\n  if (from >= n) from -= n;"},
            expect=r"n = (1|5|257), shift = \S+: (\d+ of \d+ elements (is|are) wrong|.*illegal memory access)",
        ),
        # Rolls in the other direction.
        Wrong(
            name="other_way",
            replace={"i - shift": "i + shift"},
            expect=r"n = 5, shift = 2: 5 of 5 elements are wrong",
        ),
    ],
    "moving_average": [
        # Ignores the caller's grid and requests more threads than a block can have.
        Wrong(
            name="block_too_large",
            replace={"<<<blocks, threads,": "<<<1, 2048,"},
            expect=r"n = 1, .*: .*invalid (configuration )?argument",
        ),
        # Launches on the default stream, whatever stream produces its input.
        Wrong(
            name="default_stream",
            replace={", 0, stream>>>": ">>>"},
            target="gpu",
            expect=r"on a busy stream: [\d,]+ of [\d,]+ elements (is|are) wrong",
        ),
        # The loop never reaches its next element. (volatile: a compiler may remove an endless loop of plain accesses.)
        Wrong(
            name="endless",
            replace={"i += stride": "i += stride - stride", "out[i]": "reinterpret_cast<volatile float*>(out)[i]"},
            expect=r"(?s)n = 1, .*(deadlock: the block has spent its budget|deadlock).*moving_average_kernel",
        ),
        # One element per thread, whatever the grid: elements past the last thread are never written.
        Wrong(
            name="no_loop",
            replace={"for (int64_t i": "if (int64_t i", "; i < n; i += stride)": "; i < n)"},
            expect=r"(?s)n = 257, .*1 x 256 threads: 1 of 257 elements is wrong.*\[256\]: expected .*, got nan",
        ),
        # The window is not cut off at the ends: the mean includes what lies around x.
        Wrong(
            name="reads_past_the_ends",
            replace={
                "i < radius ? 0 : i - radius": "i - radius",
                "n - 1 - i < radius ? n - 1 : i + radius": "i + radius",
            },
            expect=r"n = 1, radius = 3, .*: 1 of 1 elements is wrong",
        ),
    ],
}
