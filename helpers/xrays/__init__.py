"""X-rays: run.py runs a function under the tracer; findings.py turns the trace into a `report.Report`.

`helpers.xrays.film(report)` makes a film of it, or of two side by side.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "film":
        raise AttributeError(f"module 'helpers.xrays' has no attribute {name!r}")
    from helpers.xrays.films import film

    return film
