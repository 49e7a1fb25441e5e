"""The plugin for pytest: a fixture `xray`, which fails a test where a kernel breaks CUDA's rules or costs too much.

    def test_scale(xray):
        report = xray(ops.scale, torch.randn(1000), 2.0)     # of a module loaded with traced=True
        assert report.worst is None

`--xray-budget FILE` holds every X-ray against a budget, `--xray-seeds N` repeats each with N schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kernel_xray.report import budget as budgets

if TYPE_CHECKING:
    from kernel_xray.report.report import Report

_BUDGET = pytest.StashKey[budgets.Budget]()
_NAMED = pytest.StashKey[set[str]]()  # entries of the budget that an X-ray had


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kernel-xray", "X-rays of CUDA kernels")
    group.addoption("--xray-budget", type=Path, metavar="FILE", help="what kernels and lines may cost, in YAML or JSON")
    group.addoption("--xray-seeds", type=int, default=1, metavar="N", help="schedules of each X-ray; 1 by default")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("xray_seeds") < 1:
        raise pytest.UsageError(f"--xray-seeds is {config.getoption('xray_seeds')}; it must be 1 or more")
    if file := config.getoption("xray_budget"):
        try:
            config.stash[_BUDGET], config.stash[_NAMED] = budgets.read(file), set()
        except budgets.BudgetError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.fixture
def xray(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """`xray(function, *args, **options)` is `kernel_xray.xray`, and fails the test with the report if there is a fault.

    By default the schedules are those of the seeds 0 to N - 1 (`--xray-seeds N`). All but the last work on copies of
    the tensors; that one's report is returned. A failed test shows it.
    """
    seeds = request.config.getoption("xray_seeds")

    def run(function: Callable, *args: Any, **options: Any) -> Report:
        from kernel_xray.report.run import xray as examined  # imports PyTorch

        wanted = [options.pop("seed")] if "seed" in options else range(seeds)
        for left, seed in zip(range(len(wanted) - 1, -1, -1), wanted, strict=True):
            given, named = (_copied(args), _copied(options)) if left else (args, options)
            report = examined(function, *given, seed=seed, **named)
            if problem := _problem(report, request.config):
                pytest.fail(f"{problem}\n{report}", pytrace=False)
        request.node.add_report_section("call", "X-ray", str(report))
        return report

    return run


def _problem(report: Report, config: pytest.Config) -> str:
    """Why the test fails; empty if it does not."""
    budget = config.stash.get(_BUDGET, None)
    if budget is None:
        return f"the X-ray found: {', '.join(fault.kind for fault in report.faults)}" if report.faults else ""
    of_report = budgets.named_in(budget, report)
    config.stash[_NAMED] |= {*of_report.kernels, *of_report.lines}
    if report.cut:
        return f"the budget cannot be judged: the trace of {', '.join(report.cut)} ended early"
    return "\n".join(map(str, budgets.check(of_report, report)))


def _copied(value: Any) -> Any:
    """The value with copies of its tensors."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    return {key: _copied(item) for key, item in value.items()} if type(value) is dict else value


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    budget, named = config.stash.get(_BUDGET, None), config.stash.get(_NAMED, set())
    unused = sorted({*budget.kernels, *budget.lines} - named) if budget and named else []
    if unused:
        terminalreporter.write_line(
            f"no X-ray had these entries of {config.getoption('xray_budget')}: {', '.join(unused)}"
        )
