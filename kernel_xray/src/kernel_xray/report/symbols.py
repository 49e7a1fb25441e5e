"""From addresses in loaded libraries and programs to lines of the learner's files, by addr2line (on macOS: atos)."""

import ctypes
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from kernel_xray.runtime import libsimt
from kernel_xray.translate import origins

Place = tuple[str, int]  # file and line
Frame = tuple[str, str, int]  # a function, as the linker names it; file and line
Library = tuple[str, int]  # path and load address; also of a program

_known: dict[tuple[str, int], list[Frame]] = {}  # by library and offset: a library's lines do not change


def resolve(addresses: Iterable[int], image: Library | None = None) -> dict[int, Place]:
    """The innermost line in the learner's own text for each address.

    image   the program, of another process, that holds the addresses; by default, libraries of this process do

    Functions inlined from libraries and the simulator are skipped, and so is a header's function around inline PTX.
    Addresses outside any library, or in a library without debugging information, are left out. Raises RuntimeError if
    the tool that reads that information is missing.
    """
    stacks = frames(addresses, image)
    return {address: stack[0][1:] for address, stack in stacks.items() if stack}


def frames(addresses: Iterable[int], image: Library | None = None) -> dict[int, list[Frame]]:
    """The inlined calls in the learner's own text around each address, the innermost first; as `resolve` otherwise."""
    wanted: dict[Library, list[int]] = defaultdict(list)
    offsets = {}
    for address in set(addresses):
        library = image or _library_of(address)
        if library:
            path, base = library
            offsets[address] = (path, address - base)
            if offsets[address] not in _known:
                wanted[library].append(address - base)
    for (path, base), missing in wanted.items():
        lines = _by_atos(path, base, missing) if sys.platform == "darwin" else _by_addr2line(path, missing)
        for offset in missing:
            stack = [(name, _original(file), line) for name, file, line in lines.get(offset, [])]
            _known[path, offset] = _own(stack)
    files = {file for key in offsets.values() for _, file, _ in _known[key]}
    restored = {file: origins.restored(file) for file in files}
    return {
        address: [(name, restored[file], line) for name, file, line in _known[key]] for address, key in offsets.items()
    }


def bare_name(kernel: str) -> str:
    """`add` from `ops::add<float, 4>(float*)`."""
    return re.split(r"[<(]", kernel.replace("(anonymous namespace)::", ""), maxsplit=1)[0].rpartition("::")[2].strip()


def function_name(mangled: str) -> str:
    """The name of a function or method, without namespaces and arguments: `add` of `_ZN3ops3addIfEEvPT_`."""
    nested = re.match(r"_ZN?K?", mangled)
    if not nested:
        return mangled
    at, name = nested.end(), ""
    while number := re.match(r"\d+", mangled[at:]):
        at += number.end()
        name, at = mangled[at : at + int(number[0])], at + int(number[0])
        if not mangled.startswith("_ZN"):
            break
    return name


def inside(stack: list[Frame], kernel: str) -> list[Frame]:
    """The frames up to the kernel's own; around it is the host's code."""
    for i, (function, _, _) in enumerate(stack):
        if bare_name(function_name(function)) == bare_name(kernel):
            return stack[: i + 1]
    return stack


@cache
def demangled(name: str) -> str:
    """The function as C++ writes it; a name that the linker has not mangled stays."""
    if not name.startswith("_Z"):
        return name
    demangle = _cxx_library().__cxa_demangle
    demangle.restype, demangle.argtypes = ctypes.c_void_p, [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    text = demangle(name.encode(), None, None, None)
    if not text:
        return _demangled_long(name)
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        free = _process().free
        free.argtypes = [ctypes.c_void_p]
        free(text)


def _demangled_long(name: str) -> str:
    """The same for a name that libstdc++ refuses: it bounds its recursion, to names of some 1,000 characters."""
    for command in (["c++filt", "-r"], ["llvm-cxxfilt"]):
        if shutil.which(command[0]):
            done = subprocess.run([*command, name], capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout.strip()
    return name


@cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@cache
def _cxx_library() -> ctypes.CDLL:
    return ctypes.CDLL("libc++.1.dylib" if sys.platform == "darwin" else "libstdc++.so.6")


class _DlInfo(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("symbol_address", ctypes.c_void_p),
    ]


def _library_of(address: int) -> Library | None:
    """The loaded library that contains an address."""
    info = _DlInfo()
    found = _process().dladdr(ctypes.c_void_p(address), ctypes.byref(info))
    return (info.file.decode(), info.base) if found and info.file else None


def _by_addr2line(path: str, offsets: list[int]) -> dict[int, list[Frame]]:
    """Each inlined call at each offset, innermost first."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if tool is None:
        raise RuntimeError("addr2line is not found; it comes with binutils (Debian and Ubuntu: apt install binutils)")
    text = "\n".join(f"{offset:#x}" for offset in offsets)
    done = subprocess.run([tool, "-e", path, "-a", "-f", "-i"], input=text, capture_output=True, text=True, check=True)
    lines: dict[int, list[Frame]] = defaultdict(list)
    offset, function = 0, ""
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            offset, function = int(line, 16), ""
            continue
        if not function:  # a line for the function, then one for the place
            function = line
            continue
        file, _, number = line.partition(" (discriminator")[0].rpartition(":")
        if number.isdigit() and file != "??":
            lines[offset].append((function, file, int(number)))
        function = ""
    return lines


def _by_atos(path: str, base: int, offsets: list[int]) -> dict[int, list[Frame]]:
    """The same on macOS: a paragraph per address, with lines such as `add(int) (in ops.so) (/a/b.cu:12)`."""
    command = ["atos", "-o", path, "-l", hex(base), "-i", "-fullPath", *(hex(base + offset) for offset in offsets)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    paragraphs = re.split(r"\n\n+", done.stdout.strip("\n"))
    return {
        offset: [
            (name, file, int(number))
            for name, file, number in re.findall(r"^(.*?) \(in .*\(([^()]+):(\d+)\)$", paragraph, re.MULTILINE)
        ]
        for offset, paragraph in zip(offsets, paragraphs, strict=False)
    }


@cache
def _original(file: str) -> str:
    """The learner's file if `file` is its translation, as its first lines say; else the file itself."""
    try:
        with open(file, errors="replace") as text:
            named = re.match(r'(?:#include .*\n)?#line 1 "(.+)"', text.readline() + text.readline())
    except OSError:
        return file
    return named[1] if named else file


def _own(stack: list[Frame]) -> list[Frame]:
    """The calls in the learner's own text.

    A header's function around inline PTX gives an instruction a name. It is left out: the line that calls it matters.
    """
    own = [i for i, (_, file, _) in enumerate(stack) if not _is_a_library(file)]
    if len(own) > 1 and stack[own[0]][1] != stack[own[1]][1]:
        if any(Path(file).name.startswith("ptx_") for _, file, _ in stack[: own[0]]):
            own = own[1:]
    return [stack[i] for i in own]


@cache
def _is_a_library(file: str) -> bool:
    """Whether a source file is the simulator's, the compiler's or PyTorch's, not the learner's."""
    path = Path(file)
    roots = [*map(str, libsimt.DEBUG_FOLDERS), *libsimt.DEBUG_FOLDERS.values(), "/usr/include", "/usr/lib"]
    return any(path.is_relative_to(root) for root in roots) or re.search(r"/(include/)?c\+\+/", file) is not None
