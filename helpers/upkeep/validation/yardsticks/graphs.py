"""Small graphs in the file format of the Indigo suite: 32-bit integers in the machine's byte order.

Number of vertices n, number of edges m, the n + 1 offsets of each vertex's neighbours, the m neighbours.
"""

import random
import struct
from collections.abc import Iterable
from pathlib import Path


def write(path: Path, vertices: int, edges: Iterable[tuple[int, int]]) -> Path:
    """Writes directed edges (from, to), each once, sorted. Returns `path`."""
    neighbours = sorted(set(edges))
    offsets = [0] * (vertices + 1)
    for source, _ in neighbours:
        offsets[source + 1] += 1
    for vertex in range(vertices):
        offsets[vertex + 1] += offsets[vertex]
    numbers = [vertices, len(neighbours), *offsets, *(target for _, target in neighbours)]
    path.write_bytes(struct.pack(f"={len(numbers)}i", *numbers))
    return path


def make(folder: Path, seed: int = 0) -> list[Path]:
    """Writes three graphs of 33 to 48 vertices. In each, the first and the last vertex have no neighbours.

    random    undirected, about four neighbours each: neighbouring vertices write to common ones
    star      undirected, one vertex beside all others
    directed  about three outgoing edges each, in any direction
    """
    rng = random.Random(seed)

    def drawn(vertices: int, count: int) -> set[tuple[int, int]]:
        pairs = {(rng.randrange(1, vertices - 1), rng.randrange(1, vertices - 1)) for _ in range(count)}
        return {(a, b) for a, b in pairs if a != b}

    def both_ways(edges: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        return {pair for a, b in edges for pair in ((a, b), (b, a))}

    return [
        write(folder / "random.egr", 40, both_ways(drawn(40, 90))),
        write(folder / "star.egr", 33, both_ways((1, leaf) for leaf in range(2, 32))),
        write(folder / "directed.egr", 48, drawn(48, 150)),
    ]
