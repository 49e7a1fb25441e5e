"""Files of a learner's own, which the course makes and renews, and never takes away.

A hash of each text that was written is kept beside the files: a file with another hash is one that the learner has
changed.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kernel_xray.machine import cache


def renew(folder: Path, texts: Mapping[str, str], record: str) -> tuple[list[str], list[str]]:
    """Writes new and changed texts, by the name of their file in `folder`, except over what the learner has changed.

    Returns the names of the files that it wrote, and of those that a text is newer than. `record` is the name of the
    file with the hashes. Raises OSError if the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, str] = {}
    with suppress(FileNotFoundError, ValueError):  # a damaged record: what differs counts as the learner's
        known = json.loads((folder / record).read_text(encoding="utf-8"))
    before, written, newer = dict(known), [], []
    for name, text in texts.items():
        path, now = folder / name, _hash(text.encode())
        there = _hash(path.read_bytes()) if path.exists() else None
        if there not in (None, now, known.get(name)):
            newer += [name] if known.get(name) != now else []
            continue
        if there != now:
            cache.write_whole(path, text)
            written.append(name)
        known[name] = now
    if known != before:
        cache.write_whole(folder / record, json.dumps(known, indent=1, sort_keys=True) + "\n")
    return written, newer


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
