"""Exercises as leaderboard problems of KernelBot: task.yml, task.py, reference.py and a template for submissions.

A problem is a folder of a problem set in the manner of https://github.com/gpu-mode/reference-kernels: `eval.py` and
`utils.py` are one level up and belong to that set. The keys of task.yml are those that KernelBot reads in
src/libkernelbot/task.py of https://github.com/gpu-mode/kernelbot (both read 2026-11-23). Its runners have PyTorch but
not this course, so a problem is complete in itself: inputs and reference are written out here, for exercises whose
speed is worth comparing. A test holds them to the checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from helpers.practice import registry
from helpers.teaching.handout.assignments import Course


@dataclass(frozen=True)
class Problem:
    """inputs: a tuple of tensors, from the sizes and `normal(*shape)`. reference: the result, in float64.

    sizes: the names of the sizes; tests and benchmarks have a value for each
    """

    sizes: tuple[str, ...]
    inputs: str
    reference: str
    tests: tuple[tuple[int, ...], ...]
    benchmarks: tuple[tuple[int, ...], ...]
    rtol: float = 1e-5


def _of_rows(inputs: str, reference: str, rtol: float) -> Problem:
    """One number for each of m rows of n elements."""
    return Problem(("m", "n"), inputs, reference, ((1, 1), (3, 257), (2, 100_003)), ((4096, 16_384),), rtol)


PROBLEMS = {
    "vector_scale": Problem(("n",), "(normal(n), 2.5)", "data[0] * data[1]", ((1,), (257,), (100_003,)), ((2**26,),)),
    "column_sum": Problem(
        ("m", "n"), "(normal(m, n),)", "data[0].sum(0)", ((1, 1), (33, 257), (1000, 31)), ((8192, 8192),), 1e-4
    ),
    "half_dot": _of_rows("(normal(m, n).half(), normal(m, n).half())", "(data[0] * data[1]).sum(1)", 1e-3),
    "vector_max": _of_rows("(normal(m, n),)", "data[0].amax(1)", 0.0),
    "rgb_to_grey": Problem(
        ("m", "n"),
        "(normal(3, m, n),)",
        "0.299 * data[0][0] + 0.587 * data[0][1] + 0.114 * data[0][2]",
        ((1, 1), (33, 31), (257, 300)),
        ((8192, 8192),),
    ),
    "transpose": Problem(
        ("m", "n"), "(normal(m, n),)", "data[0].T", ((1, 1), (33, 31), (1, 1000)), ((16_384, 16_384),), 0.0
    ),
    "batched_matmul": Problem(
        ("b", "m", "n", "k"),
        "(normal(b, m, k), normal(b, k, n))",
        "data[0] @ data[1]",
        ((1, 1, 1, 1), (2, 33, 31, 17), (3, 128, 64, 256)),
        ((16, 1024, 1024, 1024),),
        1e-3,
    ),
}

REFERENCE = '''"""Inputs and reference of {name}."""

import torch


def generate_input({sizes}, seed: int) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def normal(*shape):
        return torch.randn(*shape, generator=generator).to(device)

    return {inputs}


def ref_kernel(data: tuple) -> torch.Tensor:
    data = tuple(x.double() if isinstance(x, torch.Tensor) else x for x in data)
    return {reference}


def check_implementation(data: tuple, output: torch.Tensor) -> tuple[bool, str]:
    wanted = ref_kernel(data)
    try:
        torch.testing.assert_close(output.double(), wanted, rtol={rtol}, atol={rtol})
    except (AssertionError, AttributeError) as error:
        return False, str(error)
    return True, ""
'''
TASK = '''"""The types of {name}."""

from typing import TypedDict

import torch

input_t = tuple
output_t = torch.Tensor


class TestSpec(TypedDict):
{fields}
'''
TEMPLATE = '''"""Your kernel goes here, for example with torch.utils.cpp_extension.load_inline."""

from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    raise NotImplementedError
'''


def files(course: Course, out: Path) -> Iterator[tuple[str, str]]:
    """The problems of the course's exercises: path and content of each file."""
    for name in course.exercises:
        if problem := PROBLEMS.get(name):
            sizes = ", ".join(f"{size}: int" for size in problem.sizes)
            yield f"{name}/task.yml", yaml.safe_dump(task(name, problem), sort_keys=False, allow_unicode=True)
            yield (
                f"{name}/task.py",
                TASK.format(name=name, fields="\n".join(f"    {size}: int" for size in (*problem.sizes, "seed"))),
            )
            yield (
                f"{name}/reference.py",
                REFERENCE.format(
                    name=name, sizes=sizes, inputs=problem.inputs, reference=problem.reference, rtol=problem.rtol
                ),
            )
            yield f"{name}/template.py", TEMPLATE


def task(name: str, problem: Problem) -> dict[str, Any]:
    """The content of task.yml."""
    own = [{"name": file, "source": file} for file in ("task.py", "reference.py")]
    shared = [{"name": file, "source": f"../{file}"} for file in ("utils.py", "eval.py")]
    return {
        "files": [{"name": "submission.py", "source": "@SUBMISSION@"}, *own, *shared],
        "lang": "py",
        "description": f"{registry.read(name).title}. {registry.read(name).specification}\n",
        "config": {"main": "eval.py"},
        "templates": {"Python": "template.py"},
        "tests": _cases(problem, problem.tests, 4242),
        "benchmarks": _cases(problem, problem.benchmarks, 31_232),
        "ranking_by": "geom",
        "test_timeout": 180,
        "benchmark_timeout": 180,
        "ranked_timeout": 300,
    }


def _cases(problem: Problem, values: tuple[tuple[int, ...], ...], seed: int) -> list[dict[str, int]]:
    return [{**dict(zip(problem.sizes, sizes, strict=True)), "seed": seed + i} for i, sizes in enumerate(values)]
