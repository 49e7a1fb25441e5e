"""Do the checks of the course find a mutant? That of its exercise, or the tests, contract and far cases of its kernels.

The contract is tests/kernels/contract.py: its functions are called in this process. What the results do not show, such
as a missing barrier, an X-ray of the launches in the catalogue does. A local without a value holds a pattern, which is
the right one by luck now and then: what g++ says of it counts, as in tests/kernels/test_unset.py.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from unittest.mock import patch

import torch

from helpers import paths
from helpers.ladder import catalogue
from helpers.ladder.catalogue import Kernel, extensions
from helpers.paths import TESTS
from helpers.practice import trial
from helpers.upkeep.mutants.targets import Target
from helpers.upkeep.validation import counted
from kernel_xray.build import flags
from kernel_xray.machine import paths as instrument
from kernel_xray.report.run import xray
from kernel_xray.runtime import far
from kernel_xray.translate.errors import BuildError

if TYPE_CHECKING:
    import pytest

UNSET = "-Werror=maybe-uninitialized"
POINTS = ("dtypes", "special_values", "layouts", "determinism", "shapes", "gradients", "registration", "stream")


class NotBuilt(Exception):
    """The mutant does not compile, which is not a merit of the checks."""


class Killed(Exception):
    """A check has found the mutant; the message says how."""


def prepare() -> None:
    """Imports what every judge needs, so that forks of this process need not."""
    contract("contracted")
    importlib.import_module("torch._dynamo")
    importlib.import_module("torch.testing._internal.optests")


def contract(name: str) -> ModuleType:
    """A module of tests/kernels/, where the contract is."""
    folder = str(TESTS / "kernels")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


def unset_locals_are_errors() -> contextlib.AbstractContextManager[object]:
    """In the context, g++ builds no kernel that may read a local before it has a value: a BuildError with UNSET."""
    filled = flags.filled_locals()
    return patch.object(flags, "filled_locals", lambda: [*filled, UNSET])


def judge(target: Target, kernels: Path) -> None:
    """Checks the mutant of `target` in `kernels`, a copy of the folder kernels/. Call it in a process of its own.

    Raises Killed, NotBuilt, or nothing if the mutant survives.
    """
    if target.is_answer:
        _judge_answer(target, kernels)
        return
    chosen = [(o, k) for name in target.kernels for o in catalogue.ALL for k in o.kernels if k.name == name]
    with (
        patch.object(extensions, "KERNELS", kernels),
        patch.object(instrument, "include_paths", [kernels / "include"]),
        unset_locals_are_errors(),
    ):
        try:
            if target.tests:
                _run_tests(target, kernels)
            for operator, kernel in chosen:
                _hold(operator, kernel, ("sizes",))
                _compute_far(kernel)
                _hold(operator, kernel, POINTS)
                if kernel.tiles:
                    contract("contracted").every_choice_of_tiles(kernel)
            for operator, kernel in chosen:
                _trace(operator, kernel)
        except BuildError as error:
            if f"[{UNSET}]" in error.output:
                raise Killed(str(error)[:300]) from error
            raise NotBuilt(str(error)[:300]) from error
        except Exception as error:
            raise Killed(f"{type(error).__name__}: {error}"[:300]) from error


def _judge_answer(target: Target, kernels: Path) -> None:
    outcome = trial.run(target.name, kernels / target.file)
    if outcome.kind == "not built":
        raise NotBuilt(outcome.message[:300])
    if outcome.kind != "accepted":
        raise Killed(outcome.message[:300])


class _First:
    """A plugin of pytest that keeps the first error of a run."""

    error: BaseException | None = None

    def pytest_exception_interact(self, node: pytest.Item, call: pytest.CallInfo) -> None:
        if self.error is None and call.excinfo is not None:
            self.error = call.excinfo.value


def _run_tests(target: Target, kernels: Path) -> None:
    """Runs the modules in a fork that has imported none of them: they see the mutant in place of its original.

    Tests that plant a mistake of their own are skipped: they need the original's text. Raises BuildError, and
    AssertionError for the first test that fails.
    """
    import pytest  # what else the command does works without it

    def mistaken(*arguments: object) -> None:
        pytest.skip("it needs the original's text")

    first = _First()
    chosen = [one if one.startswith("-") else str(TESTS / "kernels" / one) for one in target.tests]
    options = ["-x", "-q", "-n0", "-pno:cacheprovider", "-pno:faulthandler", f"--basetemp={kernels.parent / 'pytest'}"]
    with patch.object(paths, "KERNELS", kernels), patch.object(contract("inputs"), "mistaken", mistaken):
        code = pytest.main([*options, *chosen], plugins=[first])
    if isinstance(first.error, BuildError):
        raise first.error
    if code != pytest.ExitCode.OK:
        raise AssertionError(f"{type(first.error).__name__}: {first.error}")


def _hold(operator: catalogue.Operator, kernel: Kernel, names: tuple[str, ...]) -> None:
    points, contracted = contract("contract"), contract("contracted")
    held = {one.name: one for one in contracted.OPERATORS}.get(kernel.name)
    if held is None:
        held, names = contracted.of_first_version(operator, kernel), tuple(set(names) & {"sizes", "stream"})
    for point in names:
        with contextlib.suppress(points.NotHere):
            points.hold(held, point)


def _compute_far(kernel: Kernel) -> None:
    cases = contract("far_cases")
    if far.SUPPORTED:
        for operator, one, case in cases.cases():
            for dtype in cases.dtypes(one, case) if one.name == kernel.name else ():
                cases.check(operator, one, dtype, case)
        if kernel in cases.COUNT_WITH_INT:
            cases.must_refuse(kernel)


def _trace(operator: catalogue.Operator, kernel: Kernel) -> None:
    for fault in _faults(operator, kernel):
        raise Killed(fault)


def _faults(operator: catalogue.Operator, kernel: Kernel) -> Iterator[str]:
    for launch in kernel.launches:
        call = counted.case(operator, kernel, launch).prepared(torch.device("cpu"), True)
        for seed in (0, 1):  # two orders of the threads
            yield from (str(fault) for fault in xray(call, seed=seed, seconds=0).faults)
