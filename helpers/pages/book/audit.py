"""Checks of finished pages: links that lead nowhere, requests to the network, pictures without text, large lessons."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST_LESSON = 1_500_000  # bytes of a lesson's page
# What a browser fetches by itself: tag -> attribute. A link of these relations is only data.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "video": "src"}
NOT_FETCHED = {"canonical", "author", "license", "next", "prev", "index", "search", "help", "alternate"}
IN_STYLES = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")\s]+)""")


@dataclass
class Page(HTMLParser):
    """What the checks need of a page."""

    text: str
    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    without_text: list[str] = field(default_factory=list)  # pictures

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.fetched += IN_STYLES.findall(self.text)
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        address = values.get(FETCHED.get(tag, ""), "")
        if address and not set(values.get("rel", "").split()) & NOT_FETCHED:
            self.fetched.append(address)
            if not outside(address):
                self.links.append(address)
        if tag == "img" and not values.get("alt", "").strip():
            self.without_text.append(address)


def outside(address: str) -> bool:
    """Whether an address is on the network."""
    return bool(re.match(r"(?:https?:)?//", address))


def pages_of(folder: Path) -> list[Path]:
    """The pages of a book, without the templates that its theme leaves beside its style sheets."""
    return sorted(path for path in folder.rglob("*.html") if "_static" not in path.relative_to(folder).parts)


def findings(folder: Path) -> list[str]:
    """What is wrong with the pages of a folder, in words; [] if nothing is."""
    pages = {path.relative_to(folder).as_posix(): Page(path.read_text("utf-8")) for path in pages_of(folder)}
    if not pages:
        return [f"{folder} holds no page"]
    found = [f"{name}: {what}" for name, page in sorted(pages.items()) for what in _of_page(folder, name, page, pages)]
    for path in sorted(folder.rglob("*.css")):
        found += [f"{path.name}: requests {url}" for url in IN_STYLES.findall(path.read_text("utf-8"))]
    return found


def _of_page(folder: Path, name: str, page: Page, pages: dict[str, Page]) -> Iterator[str]:
    for address in page.links:
        parts = urlsplit(address)
        if parts.scheme or outside(address):
            continue
        target = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            yield f"the link {address} leads nowhere"
        elif parts.fragment and target.suffix == ".html":
            there = pages[target.resolve().relative_to(folder.resolve()).as_posix()]
            if unquote(parts.fragment) not in there.anchors:
                yield f"the link {address} leads to a page without this anchor"
    yield from (f"requests {address}" for address in page.fetched if outside(address))
    yield from (f"the picture {address[:60]} has no alternative text" for address in page.without_text)
    size = len(page.text.encode())
    if name.startswith("notebooks/") and size > LARGEST_LESSON:
        yield f"{size:,} bytes, more than {LARGEST_LESSON:,}"
