"""`Traced`, which `kernel_xray.load(..., traced=True)` returns: a module or namespace whose functions are watched."""

import functools
from typing import Any

from kernel_xray.report import run as engine
from kernel_xray.runtime.kernel_fault import KernelFault


class Traced:
    """The functions of a traced module or namespace.

    Inside `kernel_xray.xray` they run and are recorded. Called directly, each call is an X-ray of its own that raises
    kernel_xray.KernelFault at the first fault and otherwise returns the function's result. `untraced` holds the same
    functions without either.
    """

    def __init__(self, functions: Any):
        self.untraced = functions

    def __repr__(self) -> str:
        return f"traced {self.untraced!r}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(self.untraced, name)
        return _watched(function, name) if callable(function) else function

    def __dir__(self) -> list[str]:
        return dir(self.untraced)


def _watched(function: Any, name: str) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        if engine.in_progress():
            return engine.call(function, args, kwargs)
        report = engine.xray(run, *args, **kwargs)
        if report.faults:
            raise KernelFault(str(report.faults[0]), report.faults[0].kind) from report.error
        return report.result

    run.__name__ = run.__qualname__ = name
    return functools.update_wrapper(run, function, assigned=("__doc__",), updated=())
