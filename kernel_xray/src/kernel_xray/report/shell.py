"""Pages of one file that need neither a network nor a kernel: a notebook shows them in a frame, a browser as they are.

The shell is shell.html with shell.css and shell.js, which knows the theme of the page around it. lanes.js draws a
request of a warp. A room's own page adds its body, its style, its script and its data.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_xray.report.canvas import Picture  # needs matplotlib, which takes a while to import

_HERE = Path(__file__).parent


class Page:
    """A page of one file. A notebook and the book show it; `save` writes it.

    page      its HTML
    name      what it is, in a few words
    height    of its frame, in pixels; a page that calls fillFrame() changes it
    still     what is shown where scripts are not run, as on GitHub
    """

    def __init__(self, page: str, name: str, height: int, still: Picture | None = None):
        self.page, self.name, self.height, self.still = page, name, height, still

    def __repr__(self) -> str:
        return f"<{self.name}, {len(self.page) / 1000:.0f} kB; save('{self.name.split()[0]}.html') writes it>"

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 0"
        frame = f'<iframe title="{self.name}" style="{style}" srcdoc="{html.escape(self.page)}"></iframe>'
        if self.still is None:
            return frame
        png, size = self.still._repr_png_()
        source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        text = html.escape(" ".join(repr(self.still).split()))
        return f'<div>{frame}<img class="ladder-still" alt="{text}" width="{size["width"]}" src="{source}"></div>'

    def save(self, path: str | Path) -> None:
        """Writes the page as one file."""
        Path(path).write_text(self.page, encoding="utf-8")


def assembled(title: str, folder: Path, stem: str, data: Any, *, scripts: tuple[str, ...] = ("lanes.js",)) -> str:
    """The HTML of a page: the shell, with STEM.html, STEM.css and STEM.js of a folder, and data for its script.

    scripts   those of this folder that STEM.js needs, besides shell.js
    """
    packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), 9, mtime=0)
    page = _text(_HERE / "shell.html")
    for name, text in (
        ("TITLE", html.escape(title)),
        ("CSS", _text(_HERE / "shell.css") + _text(folder / f"{stem}.css")),
        ("JS", "\n".join([*(_text(_HERE / name) for name in ("shell.js", *scripts)), _text(folder / f"{stem}.js")])),
        ("BODY", _text(folder / f"{stem}.html")),
        ("DATA", base64.b64encode(packed).decode()),
    ):
        page = page.replace(f"@{name}@", text)
    return page


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
