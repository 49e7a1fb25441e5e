"""The picture of fragments: its data come from the instructions, here as NVIDIA's documentation describes them."""

import pytest
import torch

import helpers
from helpers.pages.pictures.fragments import fragment_picture
from helpers.paths import KERNELS


@pytest.fixture(scope="module")
def fragments():
    ops = helpers.load("fragment_map", [KERNELS / "fragment_map.cu"], is_python_module=False)
    shapes = (32, 4, 2), (32, 2, 2), (32, 4)
    found = [torch.zeros(shape, dtype=torch.int32, device=helpers.device) for shape in shapes]
    ops.fragment_map(*found)
    return [x.cpu() for x in found]


def test_lanes_hold_what_the_ptx_manual_says(fragments):
    """PTX ISA 9.0, matrix fragments for mma.m16n8k16 with .f16: groupID = lane / 4, threadID_in_group = lane % 4."""
    a, b, c = fragments
    for lane in range(32):
        group, thread = divmod(lane, 4)
        for i in range(8):  # a0 to a7
            row = group + (8 if i in (2, 3, 6, 7) else 0)
            assert a[lane, i // 2, i % 2] == 16 * row + 2 * thread + i % 2 + (8 if i >= 4 else 0)
        for i in range(4):  # b0 to b3, c0 to c3
            assert b[lane, i // 2, i % 2] == 8 * (2 * thread + i % 2 + (8 if i >= 2 else 0)) + group
            assert c[lane, i] == 8 * (group + (8 if i >= 2 else 0)) + 2 * thread + i % 2


def test_the_picture_names_a_lanes_elements(fragments):
    picture = fragment_picture(*fragments)
    assert "Lane 5 holds a: (1, 2), (1, 3), (1, 10), (1, 11), (9, 2)" in picture.description
    assert "b: (2, 1), (3, 1), (10, 1), (11, 1); c: (1, 2), (1, 3), (9, 2), (9, 3)" in picture.description
    assert picture._repr_png_()[0].startswith(b"\x89PNG")
