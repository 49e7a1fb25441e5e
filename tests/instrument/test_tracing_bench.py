"""The benchmark of the tracer counts the accesses that it times."""

import pytest

from helpers.upkeep.benchmarks import tracing


@pytest.mark.slow  # a benchmark of our own tools
def test_the_benchmark_counts_accesses():
    costs = {cost.kernel: cost.accesses for cost in tracing.measure(repeat=1)}
    tiles = 96**3 * 2 + 96**3 // 16 * 4 + 96**2  # reads of tiles; loads and stores that fill them; results
    assert costs["add"] == 3 * 2**18 and costs["matmul"] == tiles
    with pytest.raises(SystemExit):
        tracing.BENCHMARK.main(["--trace", "--repeat", "0"])
