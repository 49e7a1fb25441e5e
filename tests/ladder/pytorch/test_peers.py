"""The kernel that reads other processes' buffers: here several buffers of one process, on several GPUs their own."""

import pytest
import torch

import helpers
from helpers.ladder.pytorch import peers
from helpers.ladder.pytorch.processes import call
from helpers.paths import KERNELS
from kernel_xray.build import loader


@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000])
def test_the_sum_over_buffers_has_the_bits_of_a_loop(ranks, n):
    parts = torch.randn(ranks, n, device=helpers.device)
    want = torch.zeros(n, device=helpers.device)
    for part in parts:
        want += part
    assert torch.equal(peers.sum_of(parts), want)


def test_nothing_and_nobody():
    assert peers.sum_of(torch.ones(2, 0, device=helpers.device)).shape == (0,)
    nobody = torch.empty(0, dtype=torch.int64, device=helpers.device)
    assert peers.kernel()(torch.ones(3, device=helpers.device), nobody).tolist() == [0, 0, 0]


def test_bad_arguments_are_named():
    mine, addresses = torch.ones(3, device=helpers.device), torch.zeros(1, dtype=torch.int64, device=helpers.device)
    for arguments, words in (
        ((mine.double(), addresses), "mine must be float32, got float64"),
        ((mine, addresses.int()), "addresses must be int64, got int32"),
        ((mine, addresses[None]), "addresses must have one dimension"),
    ):
        with pytest.raises(RuntimeError, match=words):
            peers.kernel()(*arguments)


@pytest.mark.slow  # a traced build; accesses past a tensor of many kinds are found in kernel_xray/tests
def test_a_peer_whose_buffer_is_shorter_is_found():
    traced = loader.load("sum_of_peers_traced", [KERNELS / "sum_of_peers.cu"], is_python_module=False, traced=True)
    mine, shorter = torch.ones(1000), torch.ones(900)
    right = helpers.xray(traced.sum_of_peers, mine, torch.tensor([mine.data_ptr()] * 2), seed=0)
    assert right.faults == [] and right.result[0] == 2
    wrong = helpers.xray(traced.sum_of_peers, mine, torch.tensor([mine.data_ptr(), shorter.data_ptr()]), seed=0)
    assert wrong.faults and {fault.kind for fault in wrong.faults} <= {"out-of-bounds", "uninitialised-read"}


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_sum_over_processes_is_that_of_nccl():
    assert call(peers.compare, 2) == {"largest_difference": 0.0, "processes": 2}
