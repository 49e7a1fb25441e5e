"""The paper of all pictures. It is white in every theme: no ink is legible on white and on black. Needs matplotlib."""

import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

PAPER, INK = "#ffffff", "#57606a"  # the ground; text and lines on it
COLOURS = ("#2f6fb5", "#b3541e", "#2d7d46", "#8a4f9e", "#8f6a00", "#1f7a86", "#b03a5b", "#5d6470")  # white text on each
WIDTH = 9.0  # inches; a notebook shows it at about 900 pixels


class Picture(Figure):
    """A Figure that a notebook can show without pyplot; its text form describes it."""

    def __init__(self, height: float, description: str):
        super().__init__(figsize=(WIDTH, height), layout="constrained", facecolor=PAPER)
        self.description = description

    def __repr__(self) -> str:
        return self.description

    def _repr_png_(self) -> tuple[bytes, dict]:
        """The picture at twice its displayed density, for sharp text, and in 256 colours, for small files."""
        density, small = self.get_dpi(), io.BytesIO()
        self.set_dpi(200)
        try:
            canvas = FigureCanvasAgg(self)
            canvas.draw()  # once; savefig would draw twice, to lay out first
            full = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        finally:
            self.set_dpi(density)
        full.quantize(256, method=Image.Quantize.FASTOCTREE).save(small, format="png", optimize=True)
        return small.getvalue(), {"width": int(WIDTH * 100)}
