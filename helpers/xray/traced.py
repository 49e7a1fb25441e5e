"""What `helpers.load(..., traced=True)` returns: the module or namespace, whose functions are watched."""

from __future__ import annotations

import functools
from typing import Any


class Traced:
    """Gives the functions of a traced module or namespace.

    Inside `helpers.xray` they just run, and are recorded. Called by themselves, each call is an X-ray of its own that
    raises helpers.KernelFault at the first fault and otherwise returns the function's result.
    """

    def __init__(self, functions: Any):
        self._functions = functions

    def __repr__(self) -> str:
        return f"traced {self._functions!r}"

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        return self._watched(function, name) if callable(function) else function

    @staticmethod
    def _watched(function: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            from helpers.simt.faults import KernelFault
            from helpers.xray import in_progress, xray

            if in_progress():
                return function(*args, **kwargs)
            report = xray(function, *args, **kwargs)
            if report.faults:
                raise KernelFault(str(report.faults[0]), report.faults[0].kind) from report.error
            return report.result

        call.__name__ = call.__qualname__ = name
        return functools.update_wrapper(call, function, assigned=("__doc__",), updated=())
