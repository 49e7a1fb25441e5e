"""Small graphs in the file format of the Indigo suite: 32-bit integers in the machine's byte order.

Number of vertices n, number of edges m, the n + 1 offsets of each vertex's neighbours, the m neighbours.
"""

import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def write(path: Path, vertices: int, edges: Iterable[tuple[int, int]]) -> Path:
    """Writes directed edges (from, to), each once, sorted. Returns `path`."""
    neighbours = np.array(sorted(set(edges)), dtype=np.int32).reshape(-1, 2)
    offsets = np.searchsorted(neighbours[:, 0], range(vertices + 1))
    np.concatenate([[vertices, len(neighbours)], offsets, neighbours[:, 1]]).astype(np.int32).tofile(path)
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
