"""Small inputs for the Rodinia benchmarks, in the formats that their programs read. Each is the same in every run."""

import math
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np


def make(data: Path, own: Path) -> None:
    """Writes the inputs of all benchmarks into folders below `data`; links those that only the suite's `own` have."""
    for name, write in WRITERS.items():
        folder = data / name
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, random.Random(name))
    for folder in own.iterdir() if own.is_dir() else []:
        if folder.is_dir() and not (data / folder.name).exists():
            (data / folder.name).symlink_to(folder.resolve(), target_is_directory=True)


def _tree(folder: Path, rng: random.Random) -> None:
    """Keys to insert, and commands: 60 searches for a range, 100 for a key."""
    keys = rng.sample(range(3000), 3000)
    (folder / "mil.txt").write_text("\n".join(map(str, [len(keys), *keys])) + "\n")
    (folder / "command.txt").write_text("j 60 30\nk 100\n")


def _bfs(folder: Path, rng: random.Random) -> None:
    """A graph: for each node the first of its edges and their number, the source, the edges with their weights."""
    nodes = [[rng.randrange(600) for _ in range(rng.randrange(1, 6))] for _ in range(600)]
    lines, start = [str(len(nodes))], 0
    for edges in nodes:
        lines.append(f"{start} {len(edges)}")
        start += len(edges)
    lines += ["", "0", "", str(start)]
    lines += [f"{target} {rng.randrange(1, 10)}" for edges in nodes for target in edges]
    (folder / "graph.txt").write_text("\n".join(lines) + "\n")


def _cells(folder: Path, rng: random.Random) -> None:
    """Cells of a mesh: area, then for each of four faces the neighbour, from 1 (-2: far field), and the normal."""
    side = 16
    lines = [str(side * side)]
    for row in range(side):
        for column in range(side):
            faces = []
            for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                inside = 0 <= row + down < side and 0 <= column + right < side
                neighbour = (row + down) * side + column + right + 1 if inside else -2
                bent = 1 + 0.001 * rng.random()
                faces.append(f"{neighbour} {-right * bent:.6f} {-down * bent:.6f} 0.0")
            lines.append(f"1.0 {' '.join(faces)}")
    (folder / "cells").write_text("\n".join(lines) + "\n")


def _colours(folder: Path, rng: random.Random) -> None:
    (folder / "64.bmp").write_bytes(bytes(rng.randrange(256) for _ in range(64 * 64 * 3)))


def _equations(folder: Path, rng: random.Random) -> None:
    """A system of equations: its size, the matrix, the right-hand side."""
    size = 16
    matrix = [[round(rng.uniform(-1, 1), 3) + (20 if i == j else 0) for j in range(size)] for i in range(size)]
    right = [rng.uniform(-5, 5) for _ in range(size)]
    rows = ["\t".join(f"{a:.4f}" for a in row) for row in matrix]
    text = "\n".join([str(size), "", *rows, "", "\t".join(f"{b:.5f}" for b in right)])
    (folder / "matrix.txt").write_text(text + "\n")


def _film(width: int, height: int, frames: int, name: str) -> Callable[[Path, random.Random], None]:
    """An uncompressed AVI film of 8-bit grey: smooth spots on noise."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return kind + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)

    def write(folder: Path, rng: random.Random) -> None:
        size = width * height
        pictures = []
        for frame in range(frames):
            line = [int(100 + 60 * math.sin(x / 9 + frame)) for x in range(width)]
            rows = [
                bytes((v + int(40 * math.sin(y / 7)) + rng.randrange(8)) % 256 for v in line) for y in range(height)
            ]
            pictures.append(chunk(b"00db", b"".join(rows)))
        main = struct.pack("<14I", 40000, size * 25, 0, 16, frames, 0, 1, size, width, height, 0, 0, 0, 0)
        stream = (
            b"vids"
            + b"DIB "
            + struct.pack("<10I", 0, 0, 0, 1, 25, 0, frames, size, 0, 0)
            + struct.pack("<4H", 0, 0, 0, 0)
        )
        form = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, size, 0, 0, 256, 0)
        header = chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", form))
        header = chunk(b"LIST", b"hdrl" + chunk(b"avih", main) + header)
        movie = b"movi" + b"".join(pictures)
        index, offset = b"", 4
        for picture in pictures:
            index += b"00db" + struct.pack("<3I", 16, offset, size)
            offset += len(picture)
        body = b"AVI " + header + chunk(b"LIST", movie) + chunk(b"idx1", index)
        (folder / name).write_bytes(chunk(b"RIFF", body))

    return write


def _heat(folder: Path, rng: random.Random) -> None:
    """Temperatures and powers of 64 x 64 cells in up to 8 layers, one per line."""
    for name, low, high in (("temp", 320.0, 340.0), ("power", 0.0, 0.001)):
        (folder / name).write_text("".join(f"{rng.uniform(low, high):.6f}\n" for _ in range(64 * 64 * 8)))


def _hotspot(folder: Path, rng: random.Random) -> None:
    """Temperatures and powers of a chip of 16 mm x 16 mm, and the temperatures after four steps of its heat equation.

    A cell exchanges heat with its four neighbours and with the air; the constants are those of the benchmark.
    """
    _heat(folder, rng)
    side, thickness, conductivity, heat, air = 64, 0.0005, 100.0, 0.5 * 1.75e6, 80.0
    temperature, power = (np.loadtxt(folder / name)[: side * side].reshape(side, side) for name in ("temp", "power"))
    cell = 0.016 / side
    step = 0.001 / (3.0e6 / (heat * thickness)) / (heat * thickness * cell * cell)
    across, up = 1 / (2.0 * conductivity * thickness), thickness / (conductivity * cell * cell)
    for _ in range(4):
        around = np.pad(temperature, 1, mode="edge")  # a cell at an edge has itself in place of the missing neighbour
        both_ways = around[1:-1, :-2] + around[1:-1, 2:] + around[:-2, 1:-1] + around[2:, 1:-1] - 4 * temperature
        temperature = temperature + step * (power + both_ways / across + (air - temperature) / up)
    np.savetxt(folder / "expected.txt", temperature.ravel(), fmt="%.6g")


def _text(folder: Path, rng: random.Random) -> None:
    """Bytes of which some are much more frequent than others, a multiple of 256 words."""
    (folder / "text.in").write_bytes(bytes(min(255, int(rng.expovariate(0.08))) for _ in range(4 * 256 * 16)))


def _numbers(folder: Path, rng: random.Random) -> None:
    (folder / "numbers.txt").write_text("".join(f"{rng.random():.6f}\n" for _ in range(20_000)))


def _points(folder: Path, rng: random.Random) -> None:
    """Points around five centres: an index and eight coordinates in each line."""
    centres = [[rng.uniform(0, 100) for _ in range(8)] for _ in range(5)]
    drawn = [[rng.gauss(c, 2) for c in rng.choice(centres)] for _ in range(600)]
    lines = [" ".join([str(i), *(f"{x:.4f}" for x in point)]) for i, point in enumerate(drawn)]
    (folder / "points").write_text("\n".join(lines) + "\n")


def _genes(folder: Path, rng: random.Random) -> None:
    """A reference sequence, and 40 pieces of it as queries."""
    sequence = "".join(rng.choice("ACGT") for _ in range(3000))
    (folder / "reference.fna").write_text(f">reference\n{sequence}\n")
    starts = [rng.randrange(2950) for _ in range(40)]
    (folder / "queries.fna").write_text("".join(f">query{i}\n{sequence[s : s + 40]}\n" for i, s in enumerate(starts)))


def _places(folder: Path, rng: random.Random) -> None:
    """Records of 49 characters with latitude and longitude at 28 and 33; the five smallest distances to (30, 90)."""
    places = [(rng.uniform(7, 63), rng.uniform(0, 99)) for _ in range(600)]
    lines = [f"{'1950 1 1 0 ABC'.ljust(28)[:28]}{a:5.1f}{b:5.1f}{' 100 1000'.ljust(10)}" for a, b in places]
    assert {len(line) for line in lines} == {48}
    (folder / "records.db").write_text("\n".join(lines) + "\n")
    (folder / "list").write_text("../../data/nn/records.db\n")
    distances = sorted(math.hypot(round(a, 1) - 30, round(b, 1) - 90) for a, b in places)
    (folder / "distances.txt").write_text("\n".join(f"{d:.6f}" for d in distances[:5]) + "\n")


def _image(folder: Path, rng: random.Random) -> None:
    """The grey image of 502 rows and 458 columns whose size srad_v1 knows; its program takes a part of it."""
    pixels = " \n".join(" ".join(str(rng.randrange(20, 236)) for _ in range(458)) for _ in range(502))
    (folder / "image.pgm").write_text(f"P2\n# speckles\n458 502\n255\n{pixels}\n")


WRITERS: dict[str, Callable[[Path, random.Random], None]] = {
    "b+tree": _tree,
    "bfs": _bfs,
    "cfd": _cells,
    "dwt2d": _colours,
    "gaussian": _equations,
    "heartwall": _film(656, 744, 4, "test.avi"),
    "hotspot": _hotspot,
    "hotspot3D": _heat,
    "huffman": _text,
    "hybridsort": _numbers,
    "kmeans": _points,
    "mummergpu": _genes,
    "nn": _places,
    "srad": _image,
}
