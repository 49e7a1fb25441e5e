"""The figure 'What does a load cost?': predict the sectors or wavefronts of one load of a warp, then see them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_xray.report.canvas import Picture
from kernel_xray.report.film_data import sectors, wavefronts
from kernel_xray.report.picture import Request, drawn
from kernel_xray.report.shell import Page, assembled

_HERE = Path(__file__).parent
_LANES = 32


@dataclass(frozen=True)
class Access:
    """Lane i loads element `offset + i // across * pitch + i % across * stride`: lanes in rows of a matrix.

    In one dimension all 32 lanes are in one row. The page has the same formula.
    """

    space: str = "global"  # or "shared"
    size: int = 4  # bytes of an element: 1, 2, 4, 8 or 16
    across: int = _LANES  # lanes in a row: 1, 2, 4, 8, 16 or 32
    stride: int = 1  # elements from one lane of a row to the next
    pitch: int = 0  # elements from one row to the next
    offset: int = 0  # the first lane's element

    def addresses(self) -> list[int]:
        """The byte address of each lane, from the beginning of the array, which is aligned."""
        lanes = range(_LANES)
        return [
            self.size * (self.offset + i // self.across * self.pitch + i % self.across * self.stride) for i in lanes
        ]

    def cost(self) -> tuple[int, int]:
        """Sectors or wavefronts, and the fewest that would do."""
        if self.space == "shared":
            return wavefronts(dict(enumerate(self.addresses())), self.size)
        return sectors(self.addresses(), self.size)


@dataclass(frozen=True)
class Preset:
    """An access of a lesson. `at`: kernel file, function that a test calls, and the words of the line that loads."""

    name: str
    lesson: str
    access: Access
    at: tuple[str, str, str]


TILE = "matmul/03_tiled.cu"
PRESETS = (
    Preset("neighbours", "01", Access(), ("vector_add.cu", "vector_add_simple", "a[i]")),
    Preset("chunks of 16", "01", Access(stride=16), ("wrong/vector_add.cu", "add_chunked", "a[i]")),
    Preset("four at a time", "06", Access(size=16), ("vector_add.cu", "vector_add", "(a)[i]")),
    Preset("a column of a", "08", Access(stride=64), ("matmul/01_naive.cu", "matmul_naive", "a.data")),
    Preset("one element for all", "08", Access(stride=0), ("matmul/02_coalesced.cu", "matmul_coalesced", "a.data")),
    Preset("a row of a tile", "08", Access("shared"), (TILE, "matmul_tiled_unpadded", "tile_b")),
    Preset("a column of a tile", "08", Access("shared", stride=32), (TILE, "matmul_tiled_unpadded", "tile[i][j]")),
    Preset("a padded column", "08", Access("shared", stride=33), (TILE, "matmul_tiled_padded", "tile[i][j]")),
    Preset(
        "16 lanes, 16 bytes each",
        "09",
        Access("shared", 16, across=16),
        ("matmul/06_vectorised.cu", "matmul_vectorised", "auto word"),
    ),
)


def load_cost(space: str = "global") -> Page:
    """A figure that asks what one load of a warp costs: predict, then see, then change the access.

    space   of its first access: "global" counts sectors of 32 bytes, "shared" wavefronts over 32 banks

    A notebook shows it; `load_cost().save("load.html")` writes it as one file. Raises ValueError for another space.
    """
    if space not in ("global", "shared"):
        raise ValueError(f'space is {space!r}; it must be "global" or "shared"')
    presets = [{"name": each.name, "lesson": each.lesson, **asdict(each.access)} for each in PRESETS]
    first = next(i for i, each in enumerate(PRESETS) if each.access.space == space)
    page = assembled("What does a load cost?", _HERE, "loads", {"presets": presets, "first": first})
    shown = [each for each in PRESETS if each.access.space == space][:2]
    return Page(page, "load_cost figure", 620, still(shown))


def still(presets: Sequence[Preset]) -> Picture:
    """The picture of some accesses, for where the page's script is not run."""
    requests = []
    for preset in presets:
        access, (cost, ideal) = preset.access, preset.access.cost()
        unit = "wavefront" if access.space == "shared" else "sector"
        title = f"{preset.name}: {cost} {unit}{'s' * (cost != 1)}, {ideal} at best"
        requests.append(Request(title, access.space, access.size, tuple(enumerate(access.addresses()))))
    return drawn(requests)
