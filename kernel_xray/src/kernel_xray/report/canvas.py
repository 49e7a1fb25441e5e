"""The paper of all pictures: legible in light and dark themes, and small in a notebook. Needs matplotlib."""

import io

from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

INK = "#858585"  # text and lines on the page: readable on white and on near-black
COLOURS = ("#2f6fb5", "#b3541e", "#2d7d46", "#8a4f9e", "#8f6a00", "#1f7a86", "#b03a5b", "#5d6470")  # white text on each
WIDTH = 9.0  # inches; a notebook shows it at about 900 pixels


class Picture(Figure):
    """A Figure that a notebook can show without pyplot; its text form describes it."""

    def __init__(self, height: float, description: str):
        super().__init__(figsize=(WIDTH, height), layout="constrained")
        self.patch.set_alpha(0)
        self.description = description

    def __repr__(self) -> str:
        return self.description

    def _repr_png_(self) -> tuple[bytes, dict]:
        """The picture at twice its displayed density, for sharp text, and in 256 colours, for small files."""
        full, small = io.BytesIO(), io.BytesIO()
        self.savefig(full, format="png", dpi=200, transparent=True)
        Image.open(full).quantize(256, method=Image.Quantize.FASTOCTREE).save(small, format="png", optimize=True)
        return small.getvalue(), {"width": int(WIDTH * 100)}
