"""A museum of published bugs: each a small kernel or function, written for this course, with its fixed twin.

`EXHIBITS` lists them. `examine(exhibit)` runs the tool that finds such a bug and returns its finding;
`examine(exhibit, fixed=True)` must find nothing. Nothing here kills or hangs the process: kernels that could do so run
in the simulator's traced mode. `recorded` returns what NVIDIA's own tools printed, from results/. `sources` tells where
such bugs were published.
"""

from helpers.pages.museum.examine import Finding, NotHere, examine
from helpers.pages.museum.exhibit import EXHIBITS, FAMILIES, TRACED, Exhibit, Planted, find, operators, planted
from helpers.pages.museum.published import PUBLISHED, Published, sources
from helpers.pages.museum.recorded import Session, recorded, side_by_side, verdicts

__all__ = [
    "EXHIBITS",
    "FAMILIES",
    "PUBLISHED",
    "TRACED",
    "Exhibit",
    "Finding",
    "NotHere",
    "Planted",
    "Published",
    "Session",
    "examine",
    "find",
    "operators",
    "planted",
    "recorded",
    "side_by_side",
    "sources",
    "verdicts",
]
