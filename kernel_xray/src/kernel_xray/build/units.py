"""Objects of an extension's sources, kept by their contents: after an edit of one source, only that one is compiled.

A build has a folder for itself, so ninja finds no object of the build before. Here each object of an extension with
several sources is kept in the cache, under a key of all that it was compiled from; a later build links it as it is.
"""

import re
import shutil
from pathlib import Path
from shlex import quote
from typing import Any

from kernel_xray.build import sources
from kernel_xray.build.request import Build
from kernel_xray.machine import artifacts, cache
from kernel_xray.translate.includes import closure, read_source

_TWO_STEPS = re.compile(r"-dc$|-?-rdc|-?-relocatable-device-code|-dlto")  # nvcc then links device code by itself


class Units:
    """The sources of a build that may be compiled apart from each other, with the objects that are kept of them."""

    def __init__(self, build: Build, extension: str, texts: dict[Path, str], places: dict[Path, Path], folder: Path):
        """places: where the texts lie that are compiled; `folder`: that of the build."""
        self._folder, self._name = folder, build.name
        self._keys: dict[Path, str] = {}  # by the place of a source
        names = build.names(texts)
        free = build.target == "gpu" or all(names[path] != str(path) for path in texts)
        if len(build.sources) < 2 or not free or any(_TWO_STEPS.match(flag) for flag in build.cuda_cflags):
            return
        conditions = build.conditions(texts)
        for source in build.sources:
            paths = closure([source], build.include_paths)
            read = [(names[path], read_source(places[path]).replace(str(folder), "")) for path in paths]
            called = extension if any(sources.EXTENSION_NAME in text for _, text in read) else ""
            self._keys[places[source]] = cache.digest("object", read, called, *conditions)

    def reused(self, options: dict[str, Any]) -> dict[str, Any]:
        """PyTorch's arguments, with kept objects in place of the sources that they were compiled from."""
        kept = {place: made for place, key in self._keys.items() if (made := artifacts.found(self._home(key), key))}
        if len(kept) == len(options["sources"]):
            kept.popitem()  # PyTorch's build needs a source
        objects = []
        for place, made in kept.items():
            objects.append(str(shutil.copy(made, self._folder / f"kept_{place.name}.o")))  # that one can be evicted
        left = [s for s in options["sources"] if Path(s) not in kept]
        cuda = options["with_cuda"]
        if cuda is None:  # PyTorch would go by the sources that are left
            cuda = any(s.endswith(sources.CUDA_SUFFIXES) for s in options["sources"])
        linked = [*map(quote, objects), *options["extra_ldflags"]]
        return {**options, "sources": left, "extra_ldflags": linked, "with_cuda": cuda}

    def keep(self) -> None:
        """Keeps the objects of a build that has ended."""
        for place, key in self._keys.items():
            made = [self._folder / f"{place.stem}{ending}" for ending in (".cuda.o", ".o")]
            if compiled := next((m for m in made if m.exists()), None):
                home = self._home(key)
                artifacts.built(home, key, lambda: Path(shutil.copy(compiled, home)))  # noqa: B023  called at once

    def _home(self, key: str) -> Path:
        return cache.root() / f"{self._name}_object-{key}"
