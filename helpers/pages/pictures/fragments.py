"""Pictures of a warp at the tensor cores: which lane holds which element, and in which banks a tile's rows lie.

They draw what a kernel was seen to do; nothing here knows the instructions' layouts.
"""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from kernel_xray.report.canvas import COLOURS, INK, Picture

Place = tuple[int, int]
_BANKS, _WORD = 32, 4
_CHOSEN = "#111111"  # dark among the colours


def fragment_picture(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Picture:
    """Which lane holds which element of the factors and of the result of mma.sync, m16n8k16; colours are registers.

    a, b   what fragment_map.cu wrote: for each lane and register two numbers of elements, 16 or 8 in a row
    c      for each lane four of them
    """
    parts = (("a", a.view(32, -1), 16, 2), ("b", b.view(32, -1), 8, 2), ("c", c.view(32, -1), 8, 1))
    owners = {name: _owners(found, columns, per_register) for name, found, columns, per_register in parts}
    lane = "; ".join(f"{name}: {_of_lane(owned, 5)}" for name, owned in owners.items())
    figure = Picture(5.5, f"fragments of mma.sync. Lane 5 holds {lane}")
    axes = figure.subplots(1, 3, width_ratios=[16, 8, 8])
    for ax, (name, owned) in zip(axes, owners.items(), strict=True):
        _fragment(ax, owned)
        rows, columns = (max(place[i] for place in owned) + 1 for i in (0, 1))
        ax.set_title(f"{name}: {rows} x {columns}", color=INK, fontsize=10, loc="left")
    words = "number: the lane; colour: a register of a and b, which holds two elements, or a float of c"
    figure.supxlabel(
        "\n".join([words, *(_legend(name, owned) for name, owned in owners.items())]), color=INK, fontsize=9
    )
    return figure


def banks_picture(tiles: Mapping[str, Sequence[Sequence[int]]], read: Mapping[str, Sequence[int]]) -> Picture:
    """Rows of tiles in shared memory as they lie in its banks, before and after a swizzle.

    tiles   name -> for each row of the tile, the offset in bytes of each piece of 16 bytes
    read    name -> the offsets that the first eight lanes of ldmatrix read together; dark
    """
    told = "; ".join(f"{name}: {_together(offsets)}" for name, offsets in read.items())
    figure = Picture(3.4, f"banks of a tile's rows. ldmatrix reads 8 rows of 16 bytes together: {told}")
    for ax, (name, rows) in zip(figure.subplots(1, len(tiles)), tiles.items(), strict=True):
        ax.set(xlim=(0, _BANKS), ylim=(len(rows), -0.9))
        ax.axis("off")
        for row, offsets in enumerate(rows):
            for piece, offset in enumerate(offsets):
                bank = offset // _WORD % _BANKS
                own = offset in read[name]
                colour = _CHOSEN if own else COLOURS[piece % len(COLOURS)]
                ax.add_patch(Rectangle((bank + 0.1, row + 0.08), 3.8, 0.84, facecolor=colour, linewidth=0))
                ax.text(bank + 2, row + 0.5, str(piece), color="white", fontsize=9, ha="center", va="center")
            ax.text(-0.4, row + 0.5, f"row {row}", color=INK, fontsize=8, ha="right", va="center")
        for bank in range(0, _BANKS, 4):
            ax.text(bank + 2, -0.15, f"{bank}-{bank + 3}", color=INK, fontsize=7, ha="center")
        ax.set_title(f"{name}: {_together(read[name])}", color=INK, fontsize=10, loc="left")
    words = "number: piece of 16 bytes of its row; above: banks; dark: what ldmatrix reads together, a matrix"
    figure.supxlabel(words, color=INK, fontsize=9)
    return figure


def _owners(found: torch.Tensor, columns: int, per_register: int) -> dict[Place, tuple[int, int]]:
    """(row, column) -> lane and register."""
    owners = {}
    for lane, numbers in enumerate(found.tolist()):
        for i, number in enumerate(numbers):
            owners[divmod(number, columns)] = lane, i // per_register
    return owners


def _of_lane(owners: Mapping[Place, tuple[int, int]], lane: int) -> str:
    return ", ".join(f"({row}, {column})" for (row, column), (owner, _) in sorted(owners.items()) if owner == lane)


def _fragment(ax: Axes, owners: Mapping[Place, tuple[int, int]]) -> None:
    rows, columns = (max(place[i] for place in owners) + 1 for i in (0, 1))
    ax.set(xlim=(-0.1, columns), ylim=(rows, -0.8), aspect="equal")
    ax.axis("off")
    squares = [Rectangle((column + 0.04, row + 0.04), 0.92, 0.92) for row, column in owners]
    colours = [COLOURS[register] for _, register in owners.values()]
    ax.add_collection(PatchCollection(squares, facecolor=colours, linewidth=0), autolim=False)
    centred = {"color": "white", "fontsize": 7, "ha": "center", "va": "center", "in_layout": False}
    for (row, column), (lane, _) in owners.items():
        ax.text(column + 0.5, row + 0.52, str(lane), **centred)
    for column in range(columns):
        ax.text(column + 0.5, -0.15, str(column), color=INK, fontsize=6.5, ha="center")
    for row in range(rows):
        ax.text(-0.15, row + 0.5, str(row), color=INK, fontsize=6.5, ha="right", va="center")


def _legend(name: str, owners: Mapping[Place, tuple[int, int]]) -> str:
    """Where each register's elements begin."""
    first = {register: place for place, (_, register) in sorted(owners.items(), reverse=True)}
    return ", ".join(f"{name}[{register}] from ({row}, {column})" for register, (row, column) in sorted(first.items()))


def _together(offsets: Sequence[int]) -> str:
    """How many banks some pieces of 16 bytes lie in."""
    banks = {offset // _WORD % _BANKS + i for offset in offsets for i in range(4)}
    return f"{len(offsets)} rows in {len(banks)} banks"
