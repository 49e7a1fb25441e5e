"""The result of one run of the timer."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stats:
    """Milliseconds per call: the median, the 20th and the 80th percentile."""

    median_ms: float
    p20_ms: float
    p80_ms: float
    samples: int


@dataclass
class Measurement:
    """One run of the timer: correct contenders are in `stats` and `errors`, all others in `failures`."""

    gpu: str
    timing: str = "events"  # or "graph"
    stats: dict[str, Stats] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)  # max |result - float64 reference|
    failures: dict[str, str] = field(default_factory=dict)  # the reason
