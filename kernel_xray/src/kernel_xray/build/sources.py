"""The texts that a build depends on (sources and their own headers) and the names that they register."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from kernel_xray.build import libraries
from kernel_xray.machine import artifacts, cache
from kernel_xray.machine.paths import PACKAGE
from kernel_xray.translate import ptx, rewriter
from kernel_xray.translate.errors import BuildError
from kernel_xray.translate.guards import LEFT_OUT
from kernel_xray.translate.includes import INCLUDE, directives, included, read_source, resolve_include, write_source
from kernel_xray.translate.launch_macros import launch_macros
from kernel_xray.translate.lexer import LexError
from kernel_xray.translate.ptx_macros import Macro, Macros

CUDA_SUFFIXES = (".cu", ".cuh")
_REGISTRATION = re.compile(r"\b((?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT)?|PYBIND11_MODULE)(\s*\(\s*)(\w+)(\s*,)")
_ANY_REGISTRATION = re.compile(
    r"\b((?:STABLE_)?TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?|PYBIND11_MODULE)(\s*\(\s*)(\w+)(\s*,)"
)
EXTENSION_NAME = "TORCH_EXTENSION_NAME"
_TORCH = ("torch/", "ATen/", "c10/", "THC/", "pybind11/")  # the folders of PyTorch's headers
_LARGE = 1 << 12  # characters
_UNSAFE = re.compile(r"[^\w./+-]")  # characters of a path that PyTorch passes to ninja without the escapes it needs
# Names that only the whole torch/extension.h declares: see kernel_xray/include/torch/extension.h.
_FRONTEND = re.compile(
    r"\b(?:nn|optim|data|jit|serialize|python|sparse|nested)::|\btorch::(?:save|load|pickle_\w+|OrderedDict)\b"
)


def uses_cpp_frontend(texts: dict[Path, str]) -> bool:
    """Whether a text names PyTorch's modules, optimisers or other parts of the C++ frontend (comments count too)."""
    return any(_FRONTEND.search(text) for text in texts.values())


def torch_headers(texts: dict[Path, str]) -> list[str]:
    """The headers of PyTorch that the texts include."""
    return [name for text in texts.values() for _, name in directives(text) if name.startswith(_TORCH)]


def uses_stable_abi(texts: dict[Path, str]) -> bool:
    """Whether the texts are written for PyTorch's stable ABI alone."""
    stable = ("torch/csrc/stable/", "torch/csrc/inductor/aoti_torch/", "torch/headeronly/")
    of_torch = torch_headers(texts)
    return any(h.startswith(stable[0]) for h in of_torch) and all(h.startswith(stable) for h in of_torch)


def defined_names(texts: dict[Path, str], macro: str) -> list[str]:
    """The names that `PYBIND11_MODULE` or `TORCH_LIBRARY` (stable or not) define in the texts, in order."""
    found = (m for text in texts.values() for m in _REGISTRATION.finditer(text) if m[1].endswith(macro))
    return list(dict.fromkeys(m[3] for m in found))


def rename_registrations(text: str, names: dict[str, str]) -> str:
    """Gives registered modules and namespaces other names, so that an edited source can be loaded again."""
    if not names:
        return text
    return _ANY_REGISTRATION.sub(lambda m: m[1] + m[2] + names.get(m[3], m[3]) + m[4], text)


@lru_cache(maxsize=1)
def translation_digest() -> str:
    """A key for the Python sources on which the translation of a text depends."""
    folders = (PACKAGE / "translate", Path(__file__).parent)
    return cache.digest([(p.name, p.read_bytes()) for folder in folders for p in sorted(folder.glob("*.py"))])


def _rewritten(text: str, cuda: bool, kernels: Mapping[str, int], macros: Macros, launches: Mapping[str, Macro]) -> str:
    """The translated text. That of a large one is kept in the build cache, for all programs that include it.

    Raises RewriteError and LexError.
    """

    def rewritten() -> str:
        return rewriter.rewrite(text, cuda_registered=cuda, kernels=kernels, macros=macros, launches=launches)

    if len(text) < _LARGE:
        return rewritten()
    words = set(re.findall(r"\w+", text))
    of_text = [sorted(item for item in table.items() if item[0] in words) for table in (kernels, launches)]
    key = cache.digest("translation", translation_digest(), text, cuda, of_text, macros.reached_from(words))
    folder = cache.root() / f"translation-{key}"

    def make() -> Path:
        write_source(folder / "text", rewritten())
        return folder / "text"

    return read_source(artifacts.built(folder, key, make))


def write_translated(
    texts: dict[Path, str],
    folder: Path,
    include_paths: list[Path],
    names: dict[str, str],
    known_as: dict[Path, str],
) -> dict[Path, Path]:
    """Writes every text, translated for the simulator, into `folder`; returns the path of each translation.

    Each file begins with a #line directive, so that compilers call it what `known_as` says. Raises BuildError.
    """
    cuda = any(rewriter.registers_cuda(text) for text in texts.values())
    kernels: Counter[str] = Counter()
    for text in texts.values():
        kernels.update(rewriter.defined_kernels(text))
    macros, launches = Macros(texts.values()), launch_macros(texts.values())
    places = {path: folder / _flat_name(i, path) for i, path in enumerate(texts)}
    folder.mkdir(parents=True, exist_ok=True)
    parts = {file for path, text in texts.items() for file in included(path, text, include_paths)}
    # A precompiled header must come first in a translation unit, so a file that another one includes cannot have it.
    compiled = "simt_stable.h" if uses_stable_abi(texts) else "simt_program.h"
    translated: dict[Path, str] = {}
    for path, text in texts.items():

        def redirect(match: re.Match[str], path: Path = path) -> str:
            file = resolve_include(match[1], match[2], path.parent, include_paths)
            place = places.get(file.resolve()) if file is not None else None
            above = "\n" * match[0].count(
                "\n"
            )  # of a directive on several lines, so that the others keep their numbers
            if file is not None and place is None:
                return f"{above}#error {LEFT_OUT}"
            if place is None:
                instead = libraries.directive(match[2])
                return match[0] if instead is None else above + instead
            once = "import" in match[0][: match.start(1) - match.start()]  # `#import "x.h"` reads a file once
            return f'{above}#{"import" if once else "include"} "{place}"'

        try:
            rewritten = _rewritten(rename_registrations(text, names), cuda, kernels, macros, launches)
            translated[path] = INCLUDE.sub(redirect, rewritten)
        except (rewriter.RewriteError, LexError) as error:
            line = text.split("\n")[error.line - 1].encode(errors="replace").decode()
            raise BuildError(f"{path.name}:{error.line}: error: {error}\n{error.line:5d} | {line}") from error
    # A source may include a part inside a namespace, where the header of the part's PTX would declare its names, too.
    with_ptx = any(translated[path].startswith(ptx.HEADER) for path in parts & texts.keys())
    for path, text in translated.items():
        header = compiled if path.suffix == ".cu" and path not in parts else "cuda_runtime.h"
        first = f'#include "{header}"\n' if path.suffix in CUDA_SUFFIXES else ""
        first += ptx.HEADER if first and with_ptx and path not in parts else ""
        write_source(places[path], f'{first}#line 1 "{known_as[path]}"\n{text}')
    return places


def write_renamed(texts: dict[Path, str], folder: Path, names: dict[str, str]) -> dict[Path, Path]:
    """For a GPU build: copies the texts that register one of `names` into `folder`, renamed; the rest stay in place.

    So are texts whose paths PyTorch's build cannot take.
    """
    places = {}
    for i, (path, text) in enumerate(texts.items()):
        renamed = rename_registrations(text, names)
        if renamed == text and not _UNSAFE.search(str(path)):
            places[path] = path
            continue
        folder.mkdir(parents=True, exist_ok=True)
        places[path] = folder / f"{i}_{_UNSAFE.sub('_', path.name)}"
        write_source(places[path], f'#line 1 "{path}"\n{renamed}')
    return places


def _flat_name(index: int, path: Path) -> str:
    ending = {".cu": ".cpp", ".cuh": ".h"}.get(path.suffix, "")
    return f"{index}_{_UNSAFE.sub('_', path.name)}{ending}"
