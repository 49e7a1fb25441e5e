"""Where exhibits' mistakes were published: repository, file and line, how they were found, the symptom and the fix.

A source with a line was read at the commit that is named, on the date below; issues and pull requests are cited as
their projects tell them.
"""

from dataclasses import dataclass

READ_ON = "2026-11-22"


@dataclass(frozen=True)
class Published:
    """A published mistake, and the exhibit of the same kind."""

    exhibit: str
    sources: tuple[str, ...]  # each "OWNER/REPOSITORY COMMIT FILE:LINES", or an issue or pull request
    found: str  # by whom, or by which tool
    symptom: str
    fix: str

    def __str__(self) -> str:
        """The exhibit's name, then its sources, who found it, the symptom and the fix, a line each."""
        rows = [("in", source) for source in self.sources]
        rows += [("found by", self.found), ("symptom", self.symptom), ("fix", self.fix)]
        return "\n".join([self.exhibit, *(f"  {label:<10}{text}" for label, text in rows)])


_XRAY = "the X-ray, run on the published file"
_PMPP = "R100001/Programming-Massively-Parallel-Processors a972fb5 "
PUBLISHED = (
    Published(
        "masked_half",
        ("karpathy/llm.c f1e2ace dev/cuda/attention_backward.cu:323 (columns up to the row), 763 (all columns)",),
        "the simulator, run on the published file: its fresh memory holds NaN",
        "none where fresh memory holds zeros; otherwise NaN, which the file's check accepts",
        "the softmax writes zeros to the masked half",
    ),
    Published(
        "nan_passes",
        ("karpathy/llm.c f1e2ace dev/cuda/common.h:333",),
        "the file above, whose NaN passed",
        "none: a kernel that returns NaN passes",
        "test |a - b| <= tolerance, which is false for NaN",
    ),
    Published(
        "winner_overwritten",
        (
            "erikwijmans/Pointnet2_PyTorch b5ceb6d "
            "pointnet2_ops_lib/pointnet2_ops/_ext-src/src/sampling_gpu.cu:112, 170",
            "charlesq34/pointnet2 4292663 tf_ops/sampling/tf_sampling_g.cu:152, 165",
            "open-mmlab/mmcv a8073c7 mmcv/ops/csrc/common/cuda/furthest_point_sample_cuda_kernel.cuh:67, 80",
        ),
        _XRAY,
        "rarely another choice of points: a late warp reads a candidate of the next round",
        "a barrier between reading the winner and the next round",
    ),
    Published(
        "late_clearing",
        ("alicevision/popsift 3e624d2 src/popsift/s_orientation.cu:77, 136 (fixed in pull request 82)",),
        "racecheck",
        "counts are lost when a thread clears a bin after another has counted into it",
        "a barrier after the clearing",
    ),
    Published(
        "block_barrier",
        (_PMPP + "Performance-Tests-NvBench/histogram/histogram_kernels.cuh:10, 16",),
        _XRAY,
        "counts are lost when a block clears bins that another has counted into",
        "clear before the launch, or in a launch of its own",
    ),
    Published(
        "scan_in_place",
        (
            _PMPP + "Chapters/Ch08 - Parallel Patterns: Prefix Sum/labs/scan/scan.cu:28, 57",
            "modular/mojo-gpu-puzzles issue 26 (the same in Mojo)",
        ),
        _XRAY + "; in Mojo, a reader",
        "sums too large: the neighbour's sum already holds this step's addition",
        "read, wait, write: a second barrier, or two buffers",
    ),
    Published(
        "sum_into_empty",
        (
            "ByteDance-Seed/Triton-distributed 1512a81 python/triton_dist/kernels/nvidia/memory_ops.py:640, 732 "
            "(in Triton; issue 182)",
        ),
        "a user",
        "4,096 ones add up to 5,096 where the memory held 1,000",
        "allocate zeros, or clear before the launch",
    ),
    Published(
        "tile_overwritten",
        ("ggml-org/llama.cpp 5a7fe2f ggml/src/ggml-cuda/ssm-scan.cu:78, 94 (fixed in pull request 24360)",),
        "the project's tests",
        "a test that fails now and then",
        "a barrier at the end of each step",
    ),
    Published(
        "barrier_in_branch",
        ("ggml-org/llama.cpp pull request 13469 (in FlashAttention, added as a fix for a race)",),
        "users",
        "wrong results on long contexts",
        "all warps reach the barrier, or none does",
    ),
    Published(
        "last_block",
        ("kokkos/kokkos issue 2681 (in parallel_scan for CUDA)",),
        "a user",
        "a wrong result of the scan, very rarely",
        "a fence between the partial result and the count",
    ),
)


def sources() -> str:
    """All of `PUBLISHED` as text, with the date on which the sources were read."""
    return "\n".join([*map(str, PUBLISHED), f"[read on {READ_ON}]"])
