"""RMSNorm and its backward: every path of the launchers, refused inputs, X-rays, and mistakes that they find."""

from types import SimpleNamespace

import pytest
import torch
from inputs import FLOATING, NARROW, load, mistaken, only, randn, with_mistake

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.catalogue.rms_norm import forward, gradients
from helpers.ladder.checking.checker import check
from helpers.paths import KERNELS

SOURCES = [KERNELS / f"{name}.cu" for name in ("rms_norm", "rms_norm_backward")]
BACKWARD = SOURCES[1]
# On both sides of what 32 to 1,024 threads keep, in vectors of float32, of halves, in single elements; and longer.
COLUMNS = (1, 31, 33, 128, 512, 513, 516, 520, 2048, 2049, 2056, 4096, 5001, 8192, 8193, 8200, 16384, 33_000, 33_001)


@pytest.fixture(scope="module")
def ops():
    """All dtypes, ten seconds of compiling, for slow tests. The quick suite has the X-ray's build, of one dtype."""
    return both(lambda source: extension(source.stem, (source.name,)))


def both(load_one):
    """The operators of both sources, each loaded by load_one(source)."""
    return SimpleNamespace(**{source.stem: getattr(load_one(source), source.stem) for source in SOURCES})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATING)
def test_rows_of_every_length(ops, dtype):
    check_every_length(ops, dtype)


def check_every_length(ops, dtype):
    for vectors in NARROW:
        columns = vectors * 16 // dtype.itemsize
        grad, x = (randn(517, columns, dtype=dtype, seed=i) for i in (2, 0))
        weight = randn(columns, dtype=dtype, seed=1)
        check(ops.rms_norm, x, weight, reference=forward, accumulation=64)
        check(ops.rms_norm_backward, grad, x, weight, reference=gradients, accumulation=64)
    for columns in COLUMNS:
        x, weight = randn(3, columns, dtype=dtype), randn(columns, dtype=dtype, seed=1)
        check(ops.rms_norm, x, weight, reference=forward, accumulation=64)
        if columns > 1:  # there the terms of grad_x cancel
            grad = randn(3, columns, dtype=dtype, seed=2)
            check(ops.rms_norm_backward, grad, x, weight, reference=gradients, accumulation=64)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (1001, 40), (5, 3, 33), (700, 300)])
def test_any_number_of_rows_and_dimensions(ops, shape):
    x, weight, grad = randn(*shape), randn(shape[-1], seed=1), randn(*shape, seed=2)
    check(ops.rms_norm, x, weight, reference=forward, accumulation=64)
    check(ops.rms_norm_backward, grad, x, weight, reference=gradients, accumulation=2000)
    first = ops.rms_norm_backward(grad, x, weight)
    assert all(map(torch.equal, ops.rms_norm_backward(grad, x, weight), first))


@pytest.mark.slow
def test_rows_without_elements(ops):
    x, weight = randn(3, 0), randn(0)
    assert ops.rms_norm(x, weight).shape == (3, 0)
    assert [tuple(t.shape) for t in ops.rms_norm_backward(x, x, weight)] == [(3, 0), (0,)]


@pytest.mark.slow
def test_eps_is_an_argument(ops):
    x, weight = randn(5, 40) / 1000, randn(40)
    for eps in (1e-3, 1.0):
        wanted = torch.nn.functional.rms_norm(x.double(), (40,), weight.double(), eps)
        torch.testing.assert_close(ops.rms_norm(x, weight, eps).double(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_views_that_begin_between_vectors(ops):
    for columns in (3, 1023, 1024):
        x, grad = (randn(4 * columns + skip, seed=skip)[skip:].view(4, columns) for skip in (1, 2))
        weight = randn(columns + 3)[3:]
        check(ops.rms_norm, x, weight, reference=forward, accumulation=64)
        check(ops.rms_norm_backward, grad, x, weight, reference=gradients, accumulation=64)


@pytest.mark.slow
def test_what_is_refused(ops):
    x, weight = randn(4, 8), randn(8)
    for arguments, message in (
        ((torch.zeros((), device=x.device), weight), "x must have a dimension"),
        ((x, weight[:7]), "weight must have one element for each of the 8 columns"),
        ((x, weight.double()), "weight must be float32"),
        ((x.t(), weight), "x must be contiguous"),
        ((x.int(), weight), "x must be float64, float32, float16 or bfloat16"),
    ):
        with pytest.raises(RuntimeError, match=message):
            ops.rms_norm(*arguments)
    with pytest.raises(RuntimeError, match="grad and x must have the same shape"):
        ops.rms_norm_backward(x[:3].contiguous(), x, weight)


# -- X-rays ------------------------------------------------------------------------------------------------------------

SHAPES = (
    (300, 4),
    (300, 24),
    (9, 33),
    (9, 1001),
    (5, 5000),
    (2, 20_000),
    (2, 20_001),
)  # of rows for a warp, some warps, the largest block, long rows


def faults(ops, shape, dtype, seed):
    x, weight = randn(*shape, dtype=dtype).cpu(), randn(shape[1], dtype=dtype, seed=1).cpu()
    forward = helpers.xray(ops.rms_norm, x, weight, seed=seed)
    backward = helpers.xray(ops.rms_norm_backward, x, x, weight, seed=seed)
    return forward.faults + backward.faults


@pytest.mark.slow  # as long a build as lesson 07's; reductions.cu, with the same sums, is X-rayed
@pytest.mark.parametrize(("dtype", "seeds"), [(torch.float32, 3), (torch.bfloat16, 1)])
def test_one_dtype_is_right_and_an_xray_finds_no_fault(dtype, seeds, tmp_path):
    loaded = {source: load(f"{source.stem}_one", only(dtype, source, tmp_path), traced=True) for source in SOURCES}
    for shape in SHAPES:
        for seed in range(seeds):
            assert faults(both(loaded.get), shape, dtype, seed) == []
    if helpers.target == "simulator":
        check_every_length(both(lambda source: loaded[source].untraced), dtype)


MISTAKES = {
    "a sum is read before it is written": ("__syncthreads();  // every warp's values", "//"),
    "the sums begin before their parts are there": ("wait_for_kernel_before();\n", "\n"),
    "the first row's sums are read before they are written": ("barrier();  // the first row's sums", "//"),
    "the next row's sums are read before they are written": ("barrier();  // the next row's sums", "//"),
    "a row's sums in the array of the row before": ("sums.put(y,", "sums_of_row[0].put(y,"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_xray_finds_a_missing_barrier(mistake, tmp_path):
    sources = {source: with_mistake(source, *MISTAKES[mistake], tmp_path) for source in SOURCES}
    ops = both(lambda source: load(f"mistaken_{source.stem}", sources[source], traced=True))
    found = {fault.kind for seed in range(5) for fault in faults(ops, (600, 3000), torch.float32, seed)}
    assert found == {"race"}


def of_one_cluster(tmp_path):
    """A source whose backward has one cluster of two blocks, or four if rows begin anywhere: each takes some rows."""
    return mistaken(BACKWARD, "blocks == 2 ? 66", "blocks == 2 ? 1", tmp_path)


def gradient_report(ops, rows, columns, seed):
    grad, x, weight = (randn(*shape, seed=i).cpu() for i, shape in enumerate([(rows, columns)] * 2 + [(columns,)]))
    report = helpers.xray(ops.rms_norm_backward, grad, x, weight, seed=seed)
    wanted = gradients(grad.double(), x.double(), weight.double())
    right = report.result is not None and all(
        torch.allclose(got.double(), exact, rtol=1e-4, atol=1e-4)
        for got, exact in zip(report.result, wanted, strict=True)
    )
    return report, right


CLUSTER_ROWS = ((5, 8200), (9, 8201))


@pytest.mark.slow
def test_a_cluster_takes_one_row_after_the_other(tmp_path):
    ops = load("one_cluster", only(torch.float32, of_one_cluster(tmp_path), tmp_path), traced=True)
    for shape in CLUSTER_ROWS:
        for seed in range(5):
            report, right = gradient_report(ops, *shape, seed)
            assert right and report.faults == []


CLUSTER_MISTAKES = {
    "a row's sums before they have arrived": ("sums.wait(iteration / 2, warps_of_row);", ""),
    "the phase of an earlier row": ("Cluster::wait(mailbox, turn % 2)", "Cluster::wait(mailbox, 0)"),
    "bytes of one phase alone": ("if (threadIdx.x == 0) Cluster::expect", "if (false) Cluster::expect"),
    "the weights of the block before": ("load<aligned>(weight, column, v", "load<aligned>(weight, row.before, v"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mistake", CLUSTER_MISTAKES)
def test_a_mistake_in_a_cluster_is_found(mistake, tmp_path):
    source = mistaken(of_one_cluster(tmp_path), *CLUSTER_MISTAKES[mistake], tmp_path)
    ops = load("mistaken_cluster", only(torch.float32, source, tmp_path), traced=True)
    found = (gradient_report(ops, 5, 8200, seed) for seed in range(5))
    assert any(report.faults or not right for report, right in found)


@pytest.mark.slow
def test_rows_of_a_cluster_that_begin_anywhere_take_their_weights_from_copies(ops):
    for dtype in (torch.bfloat16, torch.float32):
        for columns in (16_401, 16_407):
            x, weight = randn(70, columns, dtype=dtype), randn(columns, dtype=dtype, seed=1)
            check(ops.rms_norm, x, weight, reference=forward, accumulation=64)


def changed(good, bad, tmp_path):
    return load("changed_rms_norm", mistaken(BACKWARD, good, bad, tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(helpers.target != "simulator", reason="a copy that has not arrived need not show on a GPU")
@pytest.mark.parametrize(("before", "rows"), [("add_up(0, 0, now);", 5), ("W squares, products;", 3000)])
def test_a_copy_that_is_not_waited_for_gives_a_wrong_result(before, rows, tmp_path):
    indent = "  " if rows == 5 else "    "
    ops = changed(f"wait_for_next();\n{indent}{before}", before, tmp_path)
    x, weight = randn(rows, 1000), randn(1000, seed=1)
    assert not ops.rms_norm_backward(x, x, weight)[0].isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_a_gpu_with_less_shared_memory_gives_the_same_bits(ops, stages, tmp_path):
    fewer = changed("std::min(kStages<T>, room / stage)", f"std::min(kStages<T>, {stages})", tmp_path)
    for shape in ((1200, 1000), (900, 4096), (2, 8)):
        grad, x, weight = (randn(*s, dtype=torch.bfloat16, seed=i) for i, s in enumerate((shape, shape, shape[1:])))
        wanted = ops.rms_norm_backward(grad, x, weight)
        assert all(map(torch.equal, fewer.rms_norm_backward(grad, x, weight), wanted))
