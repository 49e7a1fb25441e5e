"""Reads the sizes of tiles from the sources of the matmul ladder, so that no figure repeats them."""

import re

from helpers.paths import KERNELS


def constants(file: str) -> dict[str, int]:
    """The integers that a file below kernels/ defines with `constexpr int NAME = ...;`, outside of functions.

    Those of Hopper's rungs are in the headers that they share, too.
    """
    found: dict[str, int] = {}
    for header in re.findall(r'^#include "(hopper_\w+\.h)"', _text(file), re.MULTILINE):
        found |= constants(f"include/{header}")
    for line in re.findall(r"^(?:\[\[maybe_unused\]\] )?constexpr int ([^;]+);", _text(file), re.MULTILINE):
        for name, value in re.findall(r"(\w+) = ([\w\s+*/-]+)(?:,|$)", line):
            found[name] = int(eval(value.replace("/", "//"), {"__builtins__": {}}, found))
    return found


def best_tile(file: str) -> tuple[int, ...]:
    """The template arguments of the choice of tile that a file uses by default."""
    text = _text(file)
    chosen = re.search(r"\bkBest = (\d+)", text) or re.search(r"\busing Best = Tile(\d+);", text)
    assert chosen, f"{file} names no best tile"
    numbers = re.search(rf"\busing Tile{chosen[1]} = Tile<([\d, ]+)>;", text)
    assert numbers, f"{file} has no Tile{chosen[1]}"
    return tuple(int(number) for number in numbers[1].split(","))


def last_step(file: str) -> tuple[int, int, int, int]:
    """m and n of a block and of a warp in the last `using NAME = Step<...>;` of a file."""
    found = re.findall(r"\busing \w+ = Step<(\d+), (\d+), (\d+), (\d+), [^>]+>;", _text(file))
    assert found, f"{file} has no Step"
    m, n, warp_m, warp_n = map(int, found[-1])
    return m, n, warp_m, warp_n


def shape_in(file: str, pattern: str) -> tuple[int, int, int]:
    """The three numbers that a pattern finds first in a file: m, n and k of an instruction."""
    found = re.search(pattern, _text(file))
    assert found, f"{file} has no {pattern}"
    return int(found[1]), int(found[2]), int(found[3])


def _text(file: str) -> str:
    return (KERNELS / file).read_text(encoding="utf-8")
