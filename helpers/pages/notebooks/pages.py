"""Pages of the course: HTML for each executed notebook, and an index that links to them."""

import html
import re
from dataclasses import dataclass

from jinja2 import DictLoader
from nbconvert import HTMLExporter
from nbformat import NotebookNode

# nbconvert's page loads require.js, MathJax and Mermaid from the network. The lessons use none of them.
OFFLINE = """{% extends "lab/index.html.j2" %}
{% block html_head_js_requirejs %}{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}
"""


@dataclass(frozen=True)
class Row:
    """The outcome of running one notebook."""

    name: str
    seconds: float
    target: str
    result: str  # "ok", or "failed: " and the reason on one line

    @property
    def ok(self) -> bool:
        return self.result == "ok"


def title_of(notebook: NotebookNode) -> str:
    """The first heading of a notebook, or an empty string."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            found = re.search(r"^#\s+(.+)$", cell.source, re.MULTILINE)
            if found:
                return found.group(1).strip()
    return ""


def to_html(notebook: NotebookNode, name: str) -> str:
    """The page of an executed notebook, which requests nothing; links to other notebooks lead to their pages."""
    exporter = HTMLExporter(
        embed_images=True, extra_loaders=[DictLoader({"offline.html.j2": OFFLINE})], template_file="offline.html.j2"
    )
    page, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": name}})
    return re.sub(r'href="([\w.-]+)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', page)


def index_page(rows: list[tuple[Row, str]]) -> str:
    """index.html for pairs (row, title)."""
    lines = "\n".join(
        f'<tr><td><a href="{row.name}.html">{html.escape(row.name)}</a></td><td>{html.escape(title)}</td>'
        f"<td>{row.seconds:.1f} s</td><td>{html.escape(row.target)}</td><td>{html.escape(row.result)}</td></tr>"
        for row, title in rows
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Kernel Ladder</title>\n'
        "<style>body{font-family:sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:left}</style></head>\n"
        "<body><h1>Kernel Ladder</h1>\n<table><tr><th>notebook</th><th>title</th><th>time</th><th>target</th>"
        f"<th>result</th></tr>\n{lines}\n</table></body></html>\n"
    )
