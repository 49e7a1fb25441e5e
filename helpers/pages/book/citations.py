"""The bibliography's part about published bugs: one entry for each, with links to the lines that were read."""

import re
from urllib.parse import quote

from helpers.pages.museum.published import PUBLISHED, READ_ON, Published

GITHUB = "https://github.com/"
AT_LINE = re.compile(r"(?P<repository>\S+/\S+) (?P<commit>[0-9a-f]{7,40}) (?P<file>.+?):(?P<line>\d+)")
THREAD = re.compile(r"(?P<repository>\S+/\S+) (?P<kind>issue|pull request) (?P<number>\d+)")


def published() -> str:
    """Markdown: every published bug of the museum."""
    found = "\n".join(map(entry, PUBLISHED))
    return f"Files were read at the commit that is named, on {READ_ON}.\n\n{found}"


def entry(bug: Published) -> str:
    """A section: sources with links, who found it, the symptom and the fix."""
    facts = [("Found by", bug.found), ("Symptom", bug.symptom), ("Fix", bug.fix)]
    lines = [f"- [{source}]({url(source)})" for source in bug.sources] + [f"- {name}: {text}" for name, text in facts]
    return f"### {bug.exhibit}\n\n" + "\n".join(lines) + "\n"


def url(source: str) -> str:
    """Where a source of `Published` is on GitHub. Raises ValueError for one of another form."""
    if found := AT_LINE.match(source):
        return f"{GITHUB}{found['repository']}/blob/{found['commit']}/{quote(found['file'])}#L{found['line']}"
    if found := THREAD.match(source):
        return f"{GITHUB}{found['repository']}/{'issues' if found['kind'] == 'issue' else 'pull'}/{found['number']}"
    raise ValueError(f"{source!r} names neither OWNER/REPOSITORY COMMIT FILE:LINE nor an issue or pull request")
