"""Records as a benchmark makes them, for tests of what reads and writes them."""

MACHINE = {
    "gpu": "NVIDIA H200",
    "driver": "580.1",
    "cuda": "13.0",
    "torch": "2.11.0",
    "clocks": {"sm_mhz": 1980.0},
    "power": {"draw_w": 400.0},
    "date": "2026-11-21",
    "commit": "abc",
}


def record(**changes):
    """A valid record of one measurement, with other or, by None, without some fields."""
    fields = {"op": "toy", "variant": "toy", "dtype": "float32", "shape": [2**28], "median_ms": 0.75}
    fields |= {"p20_ms": 0.74, "p80_ms": 0.76, "bytes": 12 * 2**28, "of_copy": 0.99}
    fields |= {"vs": {"eager": 1.0}, "max_error": 0.0}
    return {key: value for key, value in (fields | changes).items() if value is not None}
