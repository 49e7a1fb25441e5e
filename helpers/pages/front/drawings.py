"""README.md's pictures, drawn as SVG from traced runs: the same runs give the same bytes.

Both have a dark ground of their own, and so look alike on light and dark pages. The film moves by CSS alone; a reader
who asked for less motion sees its first step.
"""

from collections.abc import Iterable
from html import escape
from textwrap import wrap

from helpers.pages.front.runs import Run
from kernel_xray.report.film_data import Frame

GROUND, PANEL, INK, FAINT, HOT, GOOD = "#0d1117", "#161b22", "#e6edf3", "#8b949e", "#ff7b72", "#56d364"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
ROW = 19  # pixels: a line of source
BARS = 560  # where the bars of the X-ray begin
SECONDS = 1.6  # of a step of the film
LANES, WIDEST = 32, 32  # lanes of a warp; the most sectors of a request


def text(x: float, y: float, words: str, *, size: float = 12, fill: str = INK, mono: bool = False, **more: str) -> str:
    """An SVG text; `more` are further attributes, _ for - in their names."""
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    family = ' class="code" xml:space="preserve"' if mono else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{family}{attributes}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, **more: str) -> str:
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{attributes}/>'


def page(width: int, height: float, title: str, parts: Iterable[str], style: str = "") -> str:
    """An SVG document with a rounded ground."""
    ground = box(0, 0, width, height, GROUND, rx="10")
    css = f"text {{ font-family: {SANS} }} .code {{ font-family: {MONO}; font-size: 12px }} {style}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" width="{width}" '
            f'height="{height:g}" role="img" aria-labelledby="title">',
            f'<title id="title">{escape(title)}</title>',
            f"<style>{css}</style>",
            ground,
            *parts,
            "</svg>\n",
        ]
    )


# ----------------------------------------------------------------------------------------------------------------------
# The X-ray


def xray_picture(runs: Iterable[Run]) -> str:
    """The kernels' sources; beside each line what its requests cost, below it what is wrong with it."""
    width, y, parts, said = 900, 18.0, [], []
    for run in runs:
        kernel = run.report.launches[0].kernel.partition("<")[0]
        parts.append(text(20, y + 16, f"{run.file.parent.name}/{run.file.name}", size=14, font_weight="600"))
        parts.append(text(width - 20, y + 16, kernel, fill=FAINT, text_anchor="end"))
        y += 30
        first, last = run.body()
        for number, line in enumerate(run.source(first, last), first):
            drawn, height, words = source_row(run, number, line, y, width)
            parts += drawn
            said += words
            y += height
        y += 14
    return page(width, y, "X-ray: " + "; ".join(said), parts)


def source_row(run: Run, number: int, line: str, y: float, width: int) -> tuple[list[str], float, list[str]]:
    """A line of the source at height y: its SVG, its height, and what it says in words."""
    records = [r for r in run.report.lines if r.line == number and r.file.endswith(run.file.name)][:1]
    faults = [f for f in run.report.faults if f.line == number and f.file.endswith(run.file.name)]
    line = line.partition("  // ")[0]
    parts, words = [text(20, y + 14, f"{number:4}  {line}", mono=True)], []
    if faults or any(r.cost > r.ideal for r in records):
        parts.insert(0, box(12, y, width - 24, ROW, HOT, opacity="0.13"))
    for record in records:
        each, best = record.cost / record.requests, record.ideal / record.requests
        colour = HOT if record.cost > record.ideal else GOOD
        unit = "sector" if record.space == "global" else "wavefront"
        count = f"{each:g} {unit}{'s' if each != 1 else ''} a request"
        parts.append(box(BARS, y + 5, max(4.0, 120 * each / WIDEST), ROW - 10, colour, rx="2"))
        shown = f"{count}, at best {best:g}" if record.cost > record.ideal else count
        parts.append(text(BARS + 130, y + 14, shown, fill=colour))
        words.append(f"line {number}: {record.kind}, {count}, at best {best:g}")
    height = float(ROW)
    for fault in faults:
        message = f"{fault.kind}: {fault.message}"
        for part in wrap(message, 112):
            parts.append(text(64, y + height + 13, part, fill=HOT, size=11.5))
            height += 16
        words.append(f"line {number}: {message}")
    return parts, height, words


# ----------------------------------------------------------------------------------------------------------------------
# The film


def film_picture(runs: Iterable[Run]) -> str:
    """One warp through each kernel, in step: the line, its 32 lanes, and the sectors that they touch."""
    sides = list(runs)
    steps = len(sides[0].requests)
    if any(len(run.requests) != steps for run in sides):
        raise ValueError(f"the films have {[len(run.requests) for run in sides]} steps; they must have as many each")
    width, gap = 900, 16
    side = (width - 3 * gap) / 2
    first, last = (min(f.line for f in sides[0].requests) - 1, max(f.line for f in sides[0].requests))
    height = 64 + ROW * (last - first + 1) + 152
    parts = []
    for i, run in enumerate(sides):
        x, total = gap + i * (side + gap), 0
        parts += still(run, x, side, height - 32)
        for step, frame in enumerate(run.requests):
            total += frame.cost
            parts.append(f'<g class="step s{step}">' + "".join(moving(run, frame, x, side, step, total)) + "</g>")
    costs = [sum(frame.cost for frame in run.requests) for run in sides]
    said = "; ".join(f"{run.file.name}: {cost} sectors" for run, cost in zip(sides, costs, strict=True))
    title = f"A film of one warp through two kernels in step, {steps} requests: {said}"
    share = 100 / steps
    style = ".step { visibility: hidden; animation: show %gs step-end infinite } .s0 { visibility: visible }" % (
        steps * SECONDS
    )
    style += f" @keyframes show {{ 0% {{ visibility: visible }} {share:g}% {{ visibility: hidden }} }}"
    style += "".join(f" .s{step} {{ animation-delay: {step * SECONDS:g}s }}" for step in range(steps))
    style += " @media (prefers-reduced-motion: reduce) { .step { animation: none } }"
    return page(width, height, title, parts, style)


def lines_of(run: Run) -> tuple[int, int]:
    """First and last line of the source that a side shows."""
    return min(f.line for f in run.requests) - 1, max(f.line for f in run.requests)


def still(run: Run, x: float, side: float, height: float) -> list[str]:
    """What all steps of a side share: its name, source, lanes."""
    parts = [box(x, 16, side, height, PANEL, rx="8"), text(x + 14, 38, run.file.name, size=14, font_weight="600")]
    first, last = lines_of(run)
    for i, line in enumerate(run.source(first, last)):
        parts.append(text(x + 14, 66 + ROW * i, f"{first + i:3} {line}"[:52], mono=True, fill=FAINT))
    y = lanes_at(run)
    parts.append(text(x + 14, y - 6, "32 lanes of a warp", size=10.5, fill=FAINT))
    cell = (side - 28) / LANES
    parts += [
        box(x + 14 + cell * lane, y, cell - 1.5, 13, f"hsl({lane * 9 + 200} 70% 62%)", rx="2") for lane in range(LANES)
    ]
    return parts


def lanes_at(run: Run) -> float:
    first, last = lines_of(run)
    return 64 + ROW * (last - first + 1) + 12


def moving(run: Run, frame: Frame, x: float, side: float, step: int, total: int) -> list[str]:
    """A step of a side: its line lit, rays from the lanes to the sectors, the count."""
    first, _ = lines_of(run)
    line = run.source(frame.line, frame.line)[0]
    row = 66 + ROW * (frame.line - first)
    parts = [box(x + 6, row - 14, side - 12, ROW, "#388bfd", opacity="0.25", rx="3")]
    parts.append(text(x + 14, row, f"{frame.line:3} {line}"[:52], mono=True))
    top, cell = lanes_at(run), (side - 28) / LANES
    bottom = top + 74
    numbers = sorted({address // 32 for address in frame.addresses})
    wide = min(cell * 4, (side - 28) / len(numbers))
    start = x + 14 + ((side - 28) - wide * len(numbers)) / 2
    place = {number: start + wide * i for i, number in enumerate(numbers)}
    for lane, address in zip(frame.lanes, frame.addresses, strict=True):
        within = (address % 32 + 2) / 32 * (wide - 1.5)
        ends = f"{x + 14 + cell * (lane + 0.45):.1f} {top + 13:.1f}L{place[address // 32] + within:.1f} {bottom:.1f}"
        parts.append(f'<path d="M{ends}" stroke="hsl({lane * 9 + 200} 70% 62%)" stroke-width="1" opacity="0.8"/>')
    colour = HOT if frame.cost > frame.ideal else GOOD
    parts += [box(place[number], bottom, wide - 1.5, 15, colour, rx="2") for number in numbers]
    count = f"{frame.kind}: {frame.cost} sector{'s' if frame.cost != 1 else ''}"
    best = f", at best {frame.ideal}" if frame.cost > frame.ideal else ""
    parts.append(text(x + 14, bottom + 38, count + best, size=13, fill=colour))
    so_far = f"request {step + 1}: {total} sector{'s' if total != 1 else ''} so far"
    parts.append(text(x + side - 14, bottom + 38, so_far, size=13, fill=INK, text_anchor="end"))
    return parts
