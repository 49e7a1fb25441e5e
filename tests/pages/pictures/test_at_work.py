"""Pictures of a block at its tiles: their data are the film's, and the film's are what the kernels' headers say."""

import numpy as np
import pytest
import torch

import helpers
from helpers.ladder.catalogue.extensions import extension
from helpers.ladder.catalogue.matmul import RUNGS
from helpers.pages.pictures.at_work import banks_at_work, scores_at_work, stages_at_work, tiles_at_work
from helpers.pages.pictures.tiles import block_picture, spans, stages_picture
from helpers.paths import KERNELS
from kernel_xray.report import run


def film(rung, m, n, k, function="", *more, film=True):
    ops = extension(f"{rung}_traced", (RUNGS[rung],), traced=True)
    return helpers.xray(getattr(ops, function or rung), torch.randn(m, k), torch.randn(k, n), *more, film=film)


@pytest.fixture(scope="module")
def vectorised():
    return film("matmul_vectorised", 128, 128, 8)


def test_a_thread_and_its_warp_are_told_in_words(vectorised):
    said = tiles_at_work(vectorised).description
    assert "thread 0 copies 4 of a's elements and 4 of b's, and computes 64 of c's: rows 0-3, 64-67; columns" in said
    assert "computes 64 of c's: rows 0-3, 64-67; columns 0-3, 64-67" in said
    assert "warp 0 copies 128 of a's elements and 128 of b's, and computes 2,048 of c's: rows 0-7, 64-71; col" in said
    assert "computes 2,048 of c's: rows 0-7, 64-71; columns 0-127" in said
    assert "thread 33 copies 4 of a's elements" in tiles_at_work(vectorised, thread=33).description
    assert tiles_at_work(vectorised)._repr_png_()[0].startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_warp_tile_is_compact():
    said = tiles_at_work(film("matmul_warp_tile", 128, 128, 16)).description
    assert "warp 0 copies 256 of a's elements and 256 of b's, and computes 2,048 of c's: rows 0-31" in said
    assert "computes 2,048 of c's: rows 0-31; columns 0-63" in said


@pytest.mark.slow
def test_stages_are_filled_while_others_are_multiplied(monkeypatch):
    said = stages_at_work(film("matmul_async", 128, 128, 24), 2).description
    assert "0: copies step 0 in stage 0, multiplies nothing; 1: copies step 1 in stage 1, multiplies step 0" in said
    assert said.endswith("3: copies nothing, multiplies step 2 in stage 0")
    ring = film("matmul_warp_tile", 64, 64, 80, "matmul_warp_tile_with", 6)
    said = stages_at_work(ring, 4).description
    assert "0: copies step 0 in stage 0, step 1 in stage 1, step 2 in stage 2, multiplies nothing" in said
    assert "1: copies step 3 in stage 3, multiplies step 0 in stage 0; 2: copies step 4 in stage 0" in said
    with pytest.raises(ValueError, match="are not 7 stages of one size"):
        stages_at_work(ring, 7)
    monkeypatch.setattr(run, "MOST_FRAMES", 1000)
    with pytest.raises(ValueError, match="the film lacks its last"):
        stages_at_work(film("matmul_warp_tile", 64, 64, 16), 4)


@pytest.mark.slow  # builds attention, traced; lesson 17 draws this, and products are drawn above
def test_attention_keeps_queries_or_keys_and_skips_what_the_mask_hides():
    lesson_17s = ("-DLADDER_ONLY=BFloat16",)
    attention, attention_backward = (
        getattr(extension(f"{name}_traced", (f"{name}.cu",), traced=True, flags=lesson_17s), name)
        for name in ("attention", "attention_backward")
    )
    q, k, v, grad = (torch.randn(1, 1, 128, 64).bfloat16() for _ in range(4))
    forward = helpers.xray(attention, q, k, v, True, film=True)
    assert "attention_kernel, block 0: keeps queries 0-127, loops over keys 0-63, 64-127" in repr(
        scores_at_work(forward)
    )
    out, logsumexp = forward.result
    rest = (out, logsumexp, True, None)
    backward = helpers.xray(attention_backward, grad, 0 * logsumexp, q, k, v, *rest, film=[1])
    picture = scores_at_work(backward)
    assert repr(picture).split("; ") == [
        "attention_backward_kernel, block 1: keeps queries 0-63, loops over keys 0-63",
        "attention_backward_kernel, block 1: keeps keys 64-127, loops over queries 64-127",
    ]
    assert picture._repr_png_()[0].startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused(vectorised):
    with pytest.raises(ValueError, match="no filmed block reads both q and k"):
        scores_at_work(vectorised)
    with pytest.raises(ValueError, match="nothing was filmed"):
        tiles_at_work(film("matmul_vectorised", 128, 128, 8, film=False))
    with pytest.raises(ValueError, match="2 blocks ran"):
        tiles_at_work(film("matmul_vectorised", 129, 128, 8))


@pytest.mark.slow
def test_a_swizzle_spreads_the_rows_that_ldmatrix_reads_together():
    ops = helpers.load("matmul_fast_traced", [KERNELS / "wrong/matmul_fast.cu"], is_python_module=False, traced=True)
    x = torch.randn(16, 64).half()
    plain, swizzled = (helpers.xray(ops.copy_by_matrices, x, order, film=True) for order in (False, True))
    picture = banks_at_work({"plain": plain, "swizzled": swizzled})
    assert picture.description.endswith("plain: 8 rows in 4 banks; swizzled: 8 rows in 32 banks")
    assert picture._repr_png_()[0].startswith(b"\x89PNG")


def test_spans_are_short():
    assert spans([0, 1, 2, 3, 64, 65]) == "0-3, 64-65"
    assert spans(range(0, 128, 16)) == "0, 16, ..., 112"
    assert spans([3, 1, 8]) == "1, 3, 8"


def test_pictures_draw_what_they_are_given():
    owners = np.arange(64).reshape(8, 8)
    said = block_picture("k", owners[:, :2], owners[:2], owners, thread=9).description
    assert "thread 9 copies 1 of a's elements and 1 of b's, and computes 1 of c's: rows 1; columns 1" in said
    said = stages_picture("k", [({0: 0}, {}), ({1: 1}, {0: 0})], 2).description
    assert said.endswith("multiplies nothing; 1: copies step 1 in stage 1, multiplies step 0 in stage 0")
