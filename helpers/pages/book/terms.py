"""A Sphinx extension for lessons: links to the glossary, and C++ colours in exercises.

The first use of each term of the glossary leads to its definition. Notebooks need no marks for this.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from helpers.pages.book.phrases import pattern, term_of
from helpers.practice import registry

# Text in these is left as it is: headings, links, code, outputs.
CLOSED = (nodes.title, nodes.caption, nodes.reference, addnodes.pending_xref, nodes.FixedTextElement, nodes.literal)


def pieces(text: str, found: Iterable[tuple[int, int, str]]) -> Iterator[nodes.Node]:
    """`text` as nodes, in which each (start, end, address) is a link."""
    at = 0
    for start, end, address in sorted(found):
        if start < at:
            continue  # inside the link before it
        if start > at:
            yield nodes.Text(text[at:start])
        yield nodes.reference("", text[start:end], refuri=address, internal=True, classes=["term"])
        at = end
    if at < len(text):
        yield nodes.Text(text[at:])


class LinkTerms(SphinxPostTransform):
    """Replaces the first use of each term in a lesson by a link."""

    default_priority = 4  # before Sphinx resolves its own references

    def run(self, **_: object) -> None:
        here = self.env.docname
        if not here.startswith("notebooks/"):
            return
        objects = self.env.domaindata["std"]["objects"]
        places = {name: place for (kind, name), place in objects.items() if kind == "term"}
        if not places:
            return
        address = self.app.builder.get_relative_uri
        terms = {name.lower(): f"{address(here, page)}#{label}" for name, (page, label) in places.items()}
        names, used = pattern(places), set()
        for node in list(self.document.findall(nodes.Text)):
            if _closed(node):
                continue
            text, found = str(node), []
            for match in names.finditer(text):
                term = term_of(match.group(1), terms)
                if term and terms[term] not in used:
                    used.add(terms[term])
                    found.append((*match.span(), terms[term]))
            if found:
                node.parent.replace(node, list(pieces(text, found)))


class ColourExercises(SphinxTransform):
    """A cell that begins with %%exercise holds C++, unless its exercise is one in Python."""

    default_priority = 500

    def apply(self, **_: object) -> None:
        for block in self.document.findall(nodes.literal_block):
            found = re.match(r"%%exercise (\w+)", block.astext())
            if found and (registry.folder() / f"{found.group(1)}.cu").exists():
                block["language"] = "cuda"


def _closed(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, CLOSED) or "cell_output" in parent.get("classes", ()):
            return True
        parent = parent.parent
    return False


def setup(app: Any) -> dict:
    app.add_post_transform(LinkTerms)
    app.add_transform(ColourExercises)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
