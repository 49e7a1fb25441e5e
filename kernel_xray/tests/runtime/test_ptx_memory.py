"""Loads, stores, atomics, cp.async and mbarriers of inline PTX (cases/ptx_memory.cu), on whichever target there is."""

import struct

import numpy as np
import pytest
import simt_programs
import torch

import kernel_xray

SIMULATOR = kernel_xray.target == "simulator"
HOPPER = SIMULATOR or torch.cuda.get_device_capability() >= (9, 0)


def run(built, case, *tensors, numbers=()):
    return simt_programs.run(getattr(built("ptx_memory"), case), map(torch.as_tensor, tensors), numbers)


def zeros(*shape, dtype=torch.int32):
    return torch.zeros(*shape, dtype=dtype)


def votes(i, k):
    """What bar.red tells thread i: how many of its part of the block are below a number, whether all, whether not."""
    holds = [j < 20 * k + 50 for j in (range(64) if i < 64 else range(64, 192))]
    return sum(holds) | all(holds) << 16 | (not all(holds)) << 17


VOTES = [[votes(i, k) for k in range(4)] for i in range(192)]


def test_loads(built):
    data = bytes((37 * i + 129) % 256 for i in range(32))

    def at(kind, *offsets):
        return [struct.unpack_from(f"<{kind}", data, offset)[0] for offset in offsets]

    want = [*at("B", 1), at("b", 3)[0] % 2**32, *at("H", 2), at("h", 6)[0] % 2**32, at("b", 3)[0] % 2**64]
    want += [*at("I", 16, 20, 24, 28), *at("I", 0, 4, 8, 12), *at("Q", 0, 8), *at("I", 8, 12), *at("H", 8, 10, 12, 14)]
    want += [*at("Q", 8), *at("I", 8), *at("Q", 24), *at("I", 12), 7]
    assert data[3] >> 7  # a sign is extended
    _, out = run(built, "loads", np.frombuffer(data, np.uint8).copy(), zeros(len(want), dtype=torch.int64))
    assert [x % 2**64 for x in out.tolist()] == want


def test_stores(built):
    (out,) = run(built, "stores", zeros(8, 16, dtype=torch.uint8))
    word = [0x01020304 * (i + 1) % 2**32 for i in range(8)]
    want = [
        struct.pack("<4I", word[0], word[0] + 1, 5, word[0] + 3),
        struct.pack("<2Q", 0x0102030405060708, 0x0102030405060709),
        struct.pack("<4f", 1.5, 1.5, -2.0, 1.0),
        bytes([0, 0, 0x34, 0x12, 0, word[3] & 255]),
        struct.pack("<I", word[4]),
        struct.pack("<QI", 42, word[5]),
        bytes([1, 0x7F, 1, 0x7F]),
        struct.pack("<2I", word[7], word[7]),
    ]
    assert [bytes(row) for row in out.numpy()] == [w.ljust(16, b"\0") for w in want]


def test_shared_memory_by_its_addresses(built):
    (out,) = run(built, "shared", zeros(64, 5))
    rows = [[(63 - i) ** 2, 1063 - i, 1063 - i, i * i, 1 if i % 2 else 2] for i in range(64)]
    assert out.tolist() == rows


def test_atomics(built):
    n = 192
    words, longs = zeros(16), zeros(2, dtype=torch.int64)
    words[1], words[2], words[4] = -5000, -1, -1  # the smallest; the largest unsigned; all bits
    inputs = [
        words,
        longs,
        zeros(8, dtype=torch.float32),
        zeros(1, dtype=torch.float64),
        zeros(10, dtype=torch.float16),
    ]
    longs[1] = -10_000
    words, longs, f, g, h, seen = run(built, "atomics", *inputs, zeros(n))
    assert seen.tolist() == [1] * n  # every thread got another value back
    odd = [sum(i % 32 == bit for i in range(n)) % 2 for bit in range(32)]
    want = [n, n - 1 - 1000, 5000 - (n - 1), -1, ~0x7F, -sum(o << b for b, o in enumerate(odd)), n % 10]
    want += [(-n) % 10, 77, -n, 2 * n, 3 * n, 96, 96]
    assert words.tolist()[:14] == want
    assert longs.tolist() == [n * (2**32 + 1), n - 1 - 500]
    assert (f[0].item(), g.item(), h[:2].tolist()) == (0.5 * n, 0.25 * n, [n, 2 * n])
    if HOPPER:  # vectors
        assert f[2:].tolist() == [0.5 * n, -n * (n - 1) / 2, n, n, 2 * n, n]
        assert h[4:8].tolist() == [1, 2, 0, 0] and h[8:].view(torch.bfloat16).tolist() == [-1 - 7 / 128, 0]


@pytest.mark.skipif(not HOPPER, reason="atomics on vectors need compute capability 9.0")
def test_atomics_on_vectors_return_what_was_there(built):
    given = [zeros(6, dtype=torch.float32), zeros(4, dtype=torch.float16), zeros(64, 6, dtype=torch.float32)]
    f, h, seen, halves = run(built, "vector_atomics", *given, zeros(64, 2))
    assert f.tolist() == [64, 128, sum(range(64)), 64, -64, 32] and h.tolist() == [1, 2, 0, 0]
    for column, step in enumerate([1, 2, None, 1, -1, 0.5]):
        if step is not None:  # each thread saw another number of the others
            assert sorted((seen[:, column] / step).tolist()) == list(range(64))
    assert sorted(halves.tolist()) == [[0, 0], *[[0x40003C00, 0]] * 63]


@pytest.mark.skipif(not SIMULATOR, reason="accesses of 32 bytes need compute capability 10.0")
def test_accesses_of_32_bytes(built):
    values = torch.arange(264.0)
    _, out = run(built, "wide", values, zeros(256, dtype=torch.float32), numbers=[0])
    rows = values[:256].view(32, 4, 2)
    want = rows.clone()
    want[::2], want[1::2, 3, 1] = rows[::2].flip(1), 0
    assert out.view(32, 4, 2).equal(want)
    with pytest.raises(kernel_xray.KernelFault, match="32 bytes at an address that is not a multiple of 32"):
        run(built, "wide", values, zeros(256, dtype=torch.float32), numbers=[4])


@pytest.mark.parametrize("in_flight", [0, 1])
def test_copies(built, in_flight):
    values, singles = torch.arange(1.0, 257), torch.arange(1.0, 33)
    _, _, out, out4 = run(built, "copies", values, singles, zeros(384, dtype=torch.float32),
                          zeros(3, 32, dtype=torch.float32), numbers=[in_flight])  # fmt: skip
    first, second, waited = out.view(3, 128)
    assert first.equal(values[:128]) and waited.equal(values[128:])
    if in_flight == 0:
        assert second.equal(values[128:])
    elif SIMULATOR:  # on a GPU the copy may have arrived
        assert second.isnan().all()
    present = torch.arange(32) < 20
    partly = torch.from_numpy(singles.numpy().view(np.uint32) & 0xFFFF).to(torch.int32).view(torch.float32)
    assert out4.equal(torch.stack([singles * present, partly, singles * present]))


@pytest.mark.parametrize("copied", [False, True])
def test_mbarriers(built, copied):
    values = torch.randint(0, 1000, (6, 32), dtype=torch.int32)
    _, out = run(built, "mbarriers", values, zeros(6, 32), numbers=[copied])
    assert out.equal(values.flip(1))


@pytest.mark.skipif(not HOPPER, reason="cp.async.bulk needs compute capability 9.0")
def test_bulk_copies(built):
    values = torch.arange(128.0)
    _, out = run(built, "bulk", values, zeros(128, dtype=torch.float32), numbers=[1])
    assert out.equal(values + (torch.arange(128) % 4 == 0))


def test_flags(built):
    out, flag = run(built, "flags", zeros(3), zeros(1))
    assert (out.tolist(), flag.item()) == ([5, 6, 7], 1)


def test_named_barriers(built):
    (out,) = run(built, "named", zeros(128))
    assert out.tolist() == [65, 66, 67, 68] * 32


def test_barriers_of_a_part_of_a_block_count_its_threads(built):
    (out,) = run(built, "votes", zeros(192, 4))
    assert out.tolist() == VOTES


@pytest.mark.skipif(not HOPPER, reason="clusters need compute capability 9.0")
def test_the_shape_of_clusters(built):
    (out,) = run(built, "cluster_shape", zeros(32))
    assert out.view(8, 4).tolist() == [[x // 2, 1, y, 2] for y in range(2) for x in range(4)]


@pytest.mark.skipif(not HOPPER, reason="clusters need compute capability 9.0")
def test_numbers_are_sent_to_another_block(built):
    (out,) = run(built, "sent", zeros(16))
    one = struct.unpack("<i", struct.pack("<f", 1))[0]
    assert out.view(2, 8).tolist() == [[x, 1, 2, x, x, -1, one, rank] for x, rank in ((10, 1), (0, 0))]


@pytest.mark.skipif(not HOPPER, reason="bytes of an mbarrier need compute capability 9.0")
def test_an_mbarrier_counts_bytes_apart_and_can_be_left(built):
    (out,) = run(built, "counted", zeros(32))
    assert out.tolist() == list(range(32))


WRONG = {
    0: "outside the block's shared memory",
    1: "not a multiple of the access's size",
    2: "is for whole warps",
    3: "PTX instruction trap",
    4: "not a multiple of the access's size",
}


@pytest.mark.skipif(not SIMULATOR, reason="a GPU's fault would end the process")
@pytest.mark.parametrize("what", WRONG)
def test_faults(built, what):
    with pytest.raises(kernel_xray.KernelFault, match=WRONG[what]):
        run(built, "wrong", zeros(4, dtype=torch.float32), numbers=[what])
    run(built, "wrong", zeros(4, dtype=torch.float32), numbers=[-1])
