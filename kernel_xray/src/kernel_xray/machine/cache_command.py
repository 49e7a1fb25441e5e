"""`kernel-xray cache`: what the build cache holds; `cache clear` deletes it."""

import argparse
import re
import sys
import time
from collections import defaultdict

from kernel_xray.machine import cache, eviction

_KEY = re.compile(r"(?:_v\d+)?-[0-9a-f]{16}$")  # ends a folder's name
_SHOWN = 15


def main(arguments: list[str], prog: str = "kernel-xray cache") -> int:
    """Returns 1 if the cache cannot be used, or if a folder could not be deleted."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=f"Show what the build cache holds, or delete it. {cache.VARIABLE} is its folder, "
        f"{eviction.VARIABLE} its limit in gigabytes ({eviction.DEFAULT:g}; 0: none).",
    )
    parser.add_argument("action", nargs="?", choices=("show", "clear"), default="show")
    action = parser.parse_args(arguments).action
    try:
        return _clear() if action == "clear" else _show()
    except cache.CacheError as error:
        print(error, file=sys.stderr)
        return 1


def _show() -> int:
    root, most = cache.root(), eviction.limit()
    entries = eviction.entries(root)
    total = sum(entry.bytes for entry in entries)
    print(f"{root}: {len(entries)} builds, {_size(total)}" + (f" of at most {_size(most)}" if most else ", no limit"))
    groups = defaultdict(list)
    for entry in entries:
        groups[_KEY.sub("", entry.folder.name)].append(entry)
    largest = sorted(groups.items(), key=lambda group: -sum(entry.bytes for entry in group[1]))
    for name, group in largest[:_SHOWN]:
        age = (time.time() - max(entry.used for entry in group)) / 3600
        used = f"{age:.0f} h ago" if age < 48 else f"{age / 24:.0f} days ago"
        builds = "1 build" if len(group) == 1 else f"{len(group)} builds"
        print(f"  {_size(sum(entry.bytes for entry in group)):>9}  {name}: {builds}, last used {used}")
    if len(largest) > _SHOWN:
        print(f"  and {len(largest) - _SHOWN} more")
    return 0


def _clear() -> int:
    entries = eviction.entries(cache.root())
    left = [entry.folder for entry in entries if not eviction.delete(entry.folder)]
    print(f"{_size(sum(entry.bytes for entry in entries if entry.folder not in left))} deleted")
    for folder in left:
        print(f"not deleted: {folder} (a build is running there, or it belongs to another user)", file=sys.stderr)
    return 1 if left else 0


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
